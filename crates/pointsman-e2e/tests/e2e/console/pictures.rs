//! What each page looks like under mixed traffic, kept in the guide; and whether everybody can use it.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use pointsman_e2e::{
    Authority, Browser, Client, Exchange, Origin, Setup, Switch, Then, TlsClient, axe_script, ok, pause,
    workspace,
};

use super::bench::{RUNS, choose, kept};
use super::{click, sign_in_well};

const RULES: &str = r#"moved: if (path under "/old") { redirect(308, "/catalogue"); }
inside: if (path under "/admin") { reject(403, "inside only"); }
images: if (path matches "\.(gif|jpe?g|png)$") { bandwidth(pictures); routeTo(images); }
gold: if (cookie["customer"] == "gold") { routeTo(fast); }
api: if (path under "/api") { bandwidth(api); routeTo(split(80: standard, 20: trial)); }
cart: if (path under "/cart") { routeTo(standard, STICKY_ON_IP); }
else: routeTo(standard);"#;
/// What is asked for, in turn, as a target and what of a cookie is shown.
const ASKED: [(&str, &str); 16] = [
    ("/", ""),
    ("/logo.png", ""),
    ("/api/prices", ""),
    ("/cart", ""),
    ("/catalogue", ""),
    ("/a.jpg", ""),
    ("/api/stock", ""),
    ("/catalogue/3", "Cookie: customer=gold\r\n"),
    ("/b.jpg", ""),
    ("/old/1", ""),
    ("/cart", ""),
    ("/", "Cookie: customer=gold\r\n"),
    ("/api/stock", ""),
    ("/catalogue/4", ""),
    ("/admin", ""),
    ("/api/stock/7", ""),
];
const BANDWIDTH: &str = "[bandwidth.link]\nceiling_bytes_per_second = 1_000_000\n\
    [bandwidth.pictures]\nparent = \"link\"\nguaranteed_bytes_per_second = 150_000\n\
    ceiling_bytes_per_second = 400_000\n[bandwidth.api]\nparent = \"link\"\nguaranteed_bytes_per_second = 500_000\n";
/// What a picture has.
const IMAGE_BYTES: usize = 8_000;
/// Clients that have looked at their carts once, besides those that do again and again.
const CARTS: u8 = 12;

/// A page as it is looked at and photographed, each in its place in the guide: a new page is a row more.
struct Sight {
    /// As in its address, and in the name of its pictures.
    page: &'static str,
    /// What brings it there, once the page is open: a file that is chosen, a row that is pressed.
    arrange: fn(&mut Browser),
    /// What is true when all of it is there.
    there: &'static str,
    /// The share of it that may look otherwise than in the guide: figures, charts, lines.
    difference_max: f64,
    /// What is below that is not in the pictures.
    height_max: u32,
}

const USUAL: Sight = Sight { page: "", arrange: |_| {}, there: "", difference_max: 0.25, height_max: 1_600 };

const SIGHTS: &[Sight] = &[
    Sight {
        page: "live",
        there: "document.querySelector('.spot[data-name=next1] .figure')?.textContent > '0' && \
                document.querySelectorAll('tr[data-outlier]').length === 8 && \
                document.querySelector('tr[data-tls=intern]')?.cells[1].textContent > '0'",
        height_max: 1_900,
        ..USUAL
    },
    // What shows that one rule conflicts with another is tried out.
    Sight {
        page: "rules",
        arrange: |browser| click(browser, "[data-severity=warning] .witness"),
        there: "document.querySelector('.decision')?.dataset.rule === 'images' && !document.querySelector('[data-looking]')",
        ..USUAL
    },
    Sight { page: "servers", there: "document.querySelectorAll('tr[data-server]').length === 7", ..USUAL },
    Sight {
        page: "sticky",
        arrange: |browser| click(browser, "[aria-labelledby=sticky] .choice button:nth-child(1)"),
        there: "document.querySelectorAll('tr[data-client]').length === 16",
        ..USUAL
    },
    Sight {
        page: "bandwidth",
        there: "/^[1-9]/.test(document.querySelector('tr[data-class=pictures] .had span')?.textContent)",
        ..USUAL
    },
    Sight {
        page: "certificates",
        there: "document.querySelectorAll('tr[data-certificate]').length === 2",
        ..USUAL
    },
    // Nothing moves there.
    Sight {
        page: "bench",
        arrange: |browser| choose(browser, &[&kept(RUNS)], 2),
        there: "document.querySelectorAll('figure > svg').length > 3",
        difference_max: 0.06,
        ..USUAL
    },
];

/// A narrow telephone, and a desk.
const WIDTHS: [u32; 2] = [360, 1280];

/// A switch before servers of which some are quick, one is new and fails, one is down, and one drains.
struct Fair {
    switch: Switch,
    authority: Authority,
    _servers: Vec<Origin>,
}

impl Fair {
    fn start() -> Fair {
        let quick = |name: &str| Origin::answering(name, |exchange| after(exchange, 1));
        let standard = ["server1", "server2", "server3"]
            .map(|name| Origin::answering(name, |exchange| after(exchange, 4)));
        let image = Origin::answering("image1", |exchange| {
            pause(Duration::from_millis(1));
            exchange.answer("200 OK", &"x".repeat(IMAGE_BYTES))
        });
        let fast = quick("quick1");
        let turns = AtomicUsize::new(0);
        let trial = Origin::answering("next1", move |exchange| {
            if turns.fetch_add(1, Ordering::Relaxed) % 9 != 8 {
                return after(exchange, 20);
            }
            exchange.body();
            exchange.answer("500 Internal Server Error", "")
        });
        let authority = Authority::new("Example CA");
        let intern = authority.server_for(&["intern.shop.example"], 75);
        let partners = authority.server_for(&["partners.shop.example", "b2b.shop.example"], 19);
        let setup = Setup::new(2).rules(RULES).with_token();
        let setup = setup.another_listener("intern").default_pool("standard").tls(&intern, "");
        let setup = setup.another_listener("partners").default_pool("standard").tls(&partners, "");
        let fast_servers = [(fast.name(), fast.address()), ("quick2", Origin::dead_address())];
        let setup = setup
            .pool("standard", &standard.each_ref())
            .pool("images", &[&image])
            .pool_at("fast", "health = { path = \"/\" }", &fast_servers)
            .pool("trial", &[&trial])
            .raw(BANDWIDTH);
        let switch = setup.start();
        let servers = standard.into_iter().chain([image, fast, trial]).collect();
        let drained = "/api/v1/pools/standard/servers/server3/state";
        let (answer, said) = switch.admin_ask("PUT", drained, "", "{\"state\": \"draining\"}");
        assert_eq!(answer.status(), 200, "{said}");
        for cart in 0..CARTS {
            let from = IpAddr::from([127, 0, 1, cart]);
            assert_eq!(Client::plain_from(from, switch.address("shop")).get("/cart").status(), 200);
        }
        Fair { switch, authority, _servers: servers }
    }
}

fn after(exchange: &mut Exchange<'_>, ms: u64) -> Then {
    pause(Duration::from_millis(ms));
    ok(exchange)
}

/// Several who ask, more and less in waves, until it is dropped.
struct Crowd {
    is_over: Arc<AtomicBool>,
    asking: Vec<JoinHandle<()>>,
}

impl Crowd {
    fn gather(Fair { switch, authority, .. }: &Fair) -> Crowd {
        let is_over = Arc::new(AtomicBool::new(false));
        let began = Instant::now();
        let asking = (0..5_u8).map(|number| {
            let (over, is_intern) = (is_over.clone(), number == 4);
            let address = switch.address(if is_intern { "intern" } else { "shop" });
            let trusts =
                [TlsClient::new(authority), TlsClient::v12(authority), TlsClient::new(authority).forgetful()];
            let begin = move |turn: usize| match is_intern {
                true => {
                    Client::tls(address, &trusts[turn / 4 % 3], "intern.shop.example").expect("a handshake")
                }
                false => Client::plain_from(IpAddr::from([127, 0, 2, number]), address),
            };
            std::thread::spawn(move || {
                let mut client = begin(0);
                for (turn, (target, cookie)) in ASKED.iter().cycle().skip(5 * usize::from(number)).enumerate()
                {
                    if over.load(Ordering::Relaxed) {
                        return;
                    }
                    if is_intern && turn % 4 == 0 {
                        client = begin(turn);
                    }
                    client.ask("GET", target, cookie);
                    let wave = (began.elapsed().as_secs_f64() / 8.0 + f64::from(number)).sin();
                    pause(Duration::from_secs_f64(0.03 * (1.3 + wave)));
                }
            })
        });
        let asking = asking.collect();
        Crowd { is_over, asking }
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let all_well = self.asking.drain(..).map(JoinHandle::join).all(|ended| ended.is_ok());
        assert!(std::thread::panicking() || all_well, "they were answered");
    }
}

/// Nothing is in the way of who has no mouse, sees little, or looks at a telephone; and the guide shows what there is.
/// `UPDATE_EXPECT=1`, or `cargo xtask screenshots`, takes its pictures again.
#[test]
fn pages() {
    let fair = Fair::start();
    let Some(mut browser) = Browser::start(1280, 900) else { return };
    // The policy of the console lets no picture of ours in: they are compared on another page.
    let mut judge = Browser::start(100, 100).expect("as above");
    let axe = axe_script();
    let _crowd = Crowd::gather(&fair);
    browser.visit(fair.switch.admin(), "/console/");
    sign_in_well(&mut browser);
    let is_taken = std::env::var_os("UPDATE_EXPECT").is_some();
    if is_taken {
        // The charts are to have something to show.
        pause(Duration::from_secs(125));
    }
    let mut differing = Vec::new();
    for Sight { page, arrange, there, difference_max, height_max } in SIGHTS {
        browser.evaluate(&format!("location.hash = '#/{page}'"));
        arrange(&mut browser);
        browser.wait_until(there);
        for scheme in ["light", "dark"] {
            browser.medium("screen", scheme);
            for width in WIDTHS {
                browser.resize(width, 900);
                let place = format!("{page}, {scheme}, {width} pixels");
                axe.iter().for_each(|axe| check_access(&mut browser, axe, &place));
                // Charts take their new width in the frame behind that of the page.
                let fits = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => \
                            setTimeout(() => done(document.documentElement.scrollWidth <= innerWidth)))))";
                assert_eq!(browser.evaluate(fits), true, "{place}");
            }
            let name = format!("docs/guide/console-{page}-{scheme}.png");
            differing.extend(compare(
                &browser.picture_of_top(*height_max),
                &name,
                (*difference_max, is_taken),
                &mut judge,
            ));
        }
    }
    assert_eq!(differing, [""; 0], "pages are not as in the guide");
    assert_eq!(browser.complaints(), [""; 0]);
}

#[track_caller]
pub(super) fn check_access(browser: &mut Browser, axe: &str, place: &str) {
    browser.evaluate(&format!("{axe}; 0"));
    let run = "axe.run().then(found => JSON.stringify(found.violations.filter(fault => \
        ['serious', 'critical'].includes(fault.impact)).map(fault => [fault.id, fault.nodes[0].html])))";
    assert_eq!(browser.evaluate(run), "[]", "{place}");
}

/// With the one that is kept; how much differs is said, also where it is kept anew. What there is to say of one that differs
/// by more than it may.
#[expect(clippy::print_stdout, reason = "`cargo xtask screenshots` shows it")]
fn compare(
    picture: &[u8],
    name: &str,
    (difference_max, is_taken): (f64, bool),
    judge: &mut Browser,
) -> Option<String> {
    let kept = workspace().join(name);
    let before = std::fs::read(&kept).ok();
    let difference = 100.0 * before.map_or(1.0, |before| judge.difference(picture, &before, 40));
    println!("{name}: {difference:.1} % is not as before");
    if is_taken {
        std::fs::write(&kept, picture).expect("a writable folder");
    } else if difference > 100.0 * difference_max {
        let found = std::env::temp_dir().join(name.replace('/', "-"));
        std::fs::write(&found, picture).expect("a writable folder");
        return Some(format!("{name}: {difference:.1} % differs, see {}", found.display()));
    }
    None
}

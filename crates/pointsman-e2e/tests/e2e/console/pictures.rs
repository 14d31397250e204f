//! What each page looks like under mixed traffic, kept in the guide; and whether everybody can use it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use pointsman_e2e::{
    Browser, Client, Exchange, Origin, Setup, Switch, Then, axe_script, ok, pause, workspace,
};

use super::bench::{RUNS, choose, kept};
use super::{click, sign_in_well};

const RULES: &str = r#"moved: if (path under "/old") { redirect(308, "/catalogue"); }
inside: if (path under "/admin") { reject(403, "inside only"); }
images: if (path matches "\.(gif|jpe?g|png)$") { routeTo(images); }
gold: if (cookie["customer"] == "gold") { routeTo(fast); }
api: if (path under "/api") { routeTo(split(80: standard, 20: trial)); }
cart: if (path under "/cart") { routeTo(standard, STICKY_ON_COOKIE); }
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
}

const USUAL: Sight = Sight { page: "", arrange: |_| {}, there: "", difference_max: 0.25 };

const SIGHTS: &[Sight] = &[
    Sight {
        page: "live",
        there: "document.querySelector('.spot[data-name=next1] .figure')?.textContent > '0'",
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
    // Nothing moves there.
    Sight {
        page: "bench",
        arrange: |browser| choose(browser, &[&kept(RUNS)], 2),
        there: "document.querySelectorAll('figure > svg').length > 3",
        difference_max: 0.06,
    },
];

/// A narrow telephone, and a desk.
const WIDTHS: [u32; 2] = [360, 1280];
/// What is below that is not in the pictures.
const HEIGHT_MAX: u32 = 1_600;

/// A switch before servers of which some are quick, one is new and fails, one is down, and one drains.
struct Fair {
    switch: Switch,
    _servers: Vec<Origin>,
}

impl Fair {
    fn start() -> Fair {
        let quick = |name: &str| Origin::answering(name, |exchange| after(exchange, 1));
        let standard = ["server1", "server2", "server3"]
            .map(|name| Origin::answering(name, |exchange| after(exchange, 4)));
        let (image, fast) = (quick("image1"), quick("quick1"));
        let turns = AtomicUsize::new(0);
        let trial = Origin::answering("next1", move |exchange| {
            if turns.fetch_add(1, Ordering::Relaxed) % 9 != 8 {
                return after(exchange, 20);
            }
            exchange.body();
            exchange.answer("500 Internal Server Error", "")
        });
        let setup =
            Setup::new(2).rules(RULES).with_token().another_listener("intern").default_pool("standard");
        let fast_servers = [(fast.name(), fast.address()), ("quick2", Origin::dead_address())];
        let setup = setup
            .pool("standard", &standard.each_ref())
            .pool("images", &[&image])
            .pool_at("fast", "health = { path = \"/\" }", &fast_servers)
            .pool("trial", &[&trial]);
        let switch = setup.start();
        let servers = standard.into_iter().chain([image, fast, trial]).collect();
        let drained = "/api/v1/pools/standard/servers/server3/state";
        let (answer, said) = switch.admin_ask("PUT", drained, "", "{\"state\": \"draining\"}");
        assert_eq!(answer.status(), 200, "{said}");
        Fair { switch, _servers: servers }
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
    fn gather(switch: &Switch) -> Crowd {
        let is_over = Arc::new(AtomicBool::new(false));
        let began = Instant::now();
        let places = ["shop", "shop", "shop", "shop", "intern"].into_iter().enumerate();
        let asking = places.map(|(number, listener)| {
            let (over, address) = (is_over.clone(), switch.address(listener));
            std::thread::spawn(move || {
                let mut client = Client::plain(address);
                for (target, cookie) in ASKED.iter().cycle().skip(5 * number) {
                    if over.load(Ordering::Relaxed) {
                        return;
                    }
                    client.ask("GET", target, cookie);
                    let wave = (began.elapsed().as_secs_f64() / 8.0 + number as f64).sin();
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
    let _crowd = Crowd::gather(&fair.switch);
    browser.visit(fair.switch.admin(), "/console/");
    sign_in_well(&mut browser);
    let is_taken = std::env::var_os("UPDATE_EXPECT").is_some();
    if is_taken {
        // The charts are to have something to show.
        pause(Duration::from_secs(125));
    }
    let mut differing = Vec::new();
    for Sight { page, arrange, there, difference_max } in SIGHTS {
        browser.evaluate(&format!("location.hash = '#/{page}'"));
        arrange(&mut browser);
        browser.wait_until(there);
        for scheme in ["light", "dark"] {
            browser.medium("screen", scheme);
            for width in WIDTHS {
                browser.resize(width, 900);
                let place = format!("{page}, {scheme}, {width} pixels");
                axe.iter().for_each(|axe| check_access(&mut browser, axe, &place));
                let fits = "document.documentElement.scrollWidth <= innerWidth";
                assert_eq!(browser.evaluate(fits), true, "{place}");
            }
            let name = format!("docs/guide/console-{page}-{scheme}.png");
            differing.extend(compare(
                &browser.picture_of_top(HEIGHT_MAX),
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
fn check_access(browser: &mut Browser, axe: &str, place: &str) {
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

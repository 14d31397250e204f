//! The console, in a browser: it shows what the switch does, changes what its user may change, and is usable by everybody.

mod bench;
mod crowded;
mod hands;
mod live;
mod pictures;
pub(crate) mod rules;
mod tables;
mod unsure;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use pointsman_e2e::{ADMIN_TOKEN, Browser, Client, Origin, Response, Setup, Switch, pause, until};
use serde_json::Value;

use crate::admin::Secured;
use crate::off_loopback::{elsewhere, within};
use crate::servers_at_run_time::change;

const RULES: &str = "api: if (path under \"/api\") { routeTo(fast); }\n\
                     old: if (path under \"/old\") { redirect(308, \"/\"); }\n\
                     else: routeTo(standard);";
/// What the traffic asks for, in turn.
const TARGETS: [&str; 6] = ["/", "/cart", "/api/prices", "/", "/old/1", "/api/x"];
const ENTER: (&str, u32) = ("Enter", 13);

/// The console of a switch at one of its pages; nothing where there is no browser.
fn open(admin: SocketAddr, page: &str) -> Option<Browser> {
    let mut browser = Browser::start(1280, 900)?;
    browser.visit(admin, &format!("/console/{page}"));
    browser.wait_until("!!document.querySelector('.bar')");
    Some(browser)
}

/// A switch before three servers.
struct Shop {
    switch: Switch,
    servers: [Origin; 3],
}

impl Shop {
    fn start() -> Shop {
        let servers = ["server1", "server2", "quick1"].map(Origin::new);
        let setup = Setup::new(2).rules(RULES).with_token();
        let setup = setup.pool("standard", &[&servers[0], &servers[1]]).pool("fast", &[&servers[2]]);
        Shop { switch: setup.start(), servers }
    }

    /// The console at one of its pages; nothing where there is no browser.
    fn open(&self, page: &str) -> Option<Browser> {
        open(self.switch.admin(), page)
    }

    fn traffic(&self) -> Traffic {
        let (address, is_over) = (self.switch.address("shop"), Arc::new(AtomicBool::new(false)));
        let over = is_over.clone();
        let asking = std::thread::spawn(move || {
            let mut client = Client::plain(address);
            for target in TARGETS.iter().cycle() {
                if over.load(Ordering::Relaxed) {
                    return;
                }
                assert!(matches!(client.get(target).status(), 200 | 308), "{target}");
                pause(Duration::from_millis(4));
            }
        });
        Traffic { is_over, asking: Some(asking) }
    }
}

/// Somebody who asks the switch again and again, until it is dropped.
struct Traffic {
    is_over: Arc<AtomicBool>,
    asking: Option<JoinHandle<()>>,
}

impl Drop for Traffic {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let ended = self.asking.take().map(JoinHandle::join);
        assert!(std::thread::panicking() || ended.is_some_and(|ended| ended.is_ok()), "it was answered well");
    }
}

/// By the keyboard, as far as typing goes.
fn sign_in(browser: &mut Browser, token: &str) {
    click(browser, ".who button");
    browser.wait_until("document.activeElement.id === 'token'");
    browser.type_text(token);
    browser.press(ENTER.0, ENTER.1);
}

pub(crate) fn sign_in_well(browser: &mut Browser) {
    sign_in(browser, ADMIN_TOKEN);
    browser.wait_until("document.querySelector('.who').textContent.includes('deploy may change')");
}

#[track_caller]
fn click(browser: &mut Browser, selector: &str) {
    // At once: what is there may be drawn anew in the next moment.
    browser.wait_until(&format!(
        "(() => {{ const found = document.querySelector({selector:?}); found?.click(); return !!found; }})()"
    ));
}

/// How many requests a second something has on the map, as it is written there.
fn on_map(name: &str) -> String {
    format!("Number(document.querySelector('.spot[data-name={name:?}] .figure')?.textContent ?? -1)")
}

fn asked(switch: &Switch, method: &str, path: &str, lines: &str) -> Response {
    let mut client = Client::plain(switch.admin());
    client.send(format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n{lines}\r\n"));
    client.response()
}

/// It comes as it was built, under names that are kept for ever, with a policy that lets nothing else in.
#[test]
fn files() {
    let shop = Shop::start();
    let ask = |path: &str, lines: &str| asked(&shop.switch, "GET", path, lines);
    let page = ask("/console/", "");
    assert_eq!((page.status(), page.head.field("content-type")), (200, Some("text/html; charset=utf-8")));
    assert_eq!(page.head.field("cache-control"), Some("no-cache"));
    let policy = page.head.field("content-security-policy").expect("a policy");
    assert!(policy.starts_with("default-src 'none';") && !policy.contains("unsafe"), "{policy}");
    let page = page.text();
    let assets: Vec<&str> = page
        .split('"')
        .filter_map(|part| part.strip_prefix("./").filter(|path| path.starts_with("assets/")))
        .collect();
    assert_eq!(assets.len(), 2, "{page}");
    for asset in assets {
        let plain = ask(&format!("/console/{asset}"), "");
        assert_eq!(plain.head.field("cache-control"), Some("public, max-age=31536000, immutable"));
        for (accepted, coding) in [("gzip, deflate", "gzip"), ("gzip, br", "br")] {
            let packed = ask(&format!("/console/{asset}"), &format!("Accept-Encoding: {accepted}\r\n"));
            assert_eq!(packed.head.field("content-encoding"), Some(coding));
            assert_eq!(packed.head.field("content-type"), plain.head.field("content-type"));
            assert!(packed.body.bytes.len() < plain.body.bytes.len() / 2);
        }
    }
    let moved = ask("/console", "");
    assert_eq!((moved.status(), moved.head.field("location")), (308, Some("/console/")));
    assert_eq!(ask("/console/assets/other.js", "").status(), 404);
    assert_eq!(asked(&shop.switch, "POST", "/console/", "").status(), 405);
    assert_eq!(ask("/console/", "Origin: http://page.example\r\n").status(), 403);
    let mut client = Client::plain(shop.switch.admin());
    client.send("GET /console/ HTTP/1.1\r\nHost: rebound.example\r\n\r\n");
    assert_eq!(client.response().status(), 403);
}

/// All that a first look loads, as it goes over the wire.
#[test]
fn the_first_load_is_small() {
    let shop = Shop::start();
    let Some(mut browser) = shop.open("") else { return };
    browser.wait_until("document.querySelector('.pulse').textContent === 'live'");
    let loaded = "[...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]\
        .filter(file => file.name.includes('/console/')).map(file => file.encodedBodySize)";
    let bytes = browser.evaluate(&format!("{loaded}.reduce((all, bytes) => all + bytes)"));
    let bytes = bytes.as_u64().expect("a number");
    assert!((20_000..400_000).contains(&bytes), "{bytes}: {}", browser.evaluate(&format!("{loaded}.join()")));
}

/// What the API says of who asks.
#[test]
fn access() {
    let shop = Shop::start();
    let said = |line: &str| -> Value {
        let answer = asked(&shop.switch, "GET", "/api/v1/access", line);
        serde_json::from_str(&answer.text()).expect("JSON")
    };
    let nobody = said("");
    assert_eq!((&nobody["who"], &nobody["may"]), (&Value::Null, &"view".into()));
    assert_eq!(nobody["takes"], serde_json::json!(["token"]));
    assert_eq!(said(&format!("Authorization: Bearer {}\r\n", ADMIN_TOKEN.replace('8', "9")))["may"], "view");
    let known = said(&format!("Authorization: Bearer {ADMIN_TOKEN}\r\n"));
    assert_eq!((&known["who"], &known["may"]), (&"deploy".into(), &"change".into()));
}

/// What the API counts is what was asked, with the pools that a rule may lead to.
#[test]
fn traffic() {
    let shop = Shop::start();
    (0..6).for_each(|at| drop(shop.switch.get(TARGETS[at])));
    let shown = until("all is counted", || {
        let shown = shop.switch.admin_shows("/api/v1/traffic");
        let counted = |at: &Value| at["responses"]["2xx"].as_u64().zip(at["responses"]["3xx"].as_u64());
        (counted(&shown["listeners"][0]) == Some((5, 1))).then_some(shown)
    });
    let rules = shown["listeners"][0]["rules"].as_array().expect("rules");
    let told: Vec<_> = rules.iter().map(|rule| (rule["rule"].as_str(), rule["hits"].as_u64())).collect();
    let pools: Vec<_> = rules.iter().map(|rule| rule["pools"].to_string()).collect();
    assert_eq!(told, [(Some("api"), Some(2)), (Some("old"), Some(1)), (Some("else"), Some(3))]);
    assert_eq!(pools, ["[\"fast\"]", "[]", "[\"standard\"]"]);
    let bounds = shown["took_up_to_us"].as_array().expect("bounds").len();
    for counted in rules.iter().chain([&shown["listeners"][0], &shown["pools"][0]["servers"][0]]) {
        let took = counted["took"].as_array().expect("counts");
        let all: u64 = took.iter().filter_map(Value::as_u64).sum();
        let answered: u64 =
            counted["responses"].as_object().expect("classes").values().filter_map(Value::as_u64).sum();
        assert_eq!((took.len(), all), (bounds + 1, answered), "{counted}");
    }
}

#[test]
fn live_moves_under_load() {
    let shop = Shop::start();
    let Some(mut browser) = shop.open("") else { return };
    browser.wait_until("document.querySelector('.pulse').textContent === 'live'");
    assert_eq!(browser.evaluate("document.querySelector('.totals dd').textContent"), "0");
    let drawn = "document.querySelector('.chart canvas').toDataURL()";
    let before = browser.evaluate(drawn);
    let traffic = shop.traffic();
    for name in
        ["shop", "api", "old", "else", "standard", "fast", "answered here", "server1", "server2", "quick1"]
    {
        browser.wait_until(&format!("{} > 0", on_map(name)));
    }
    browser.wait_until("Number(document.querySelector('.totals dd').textContent) > 10");
    assert_ne!(browser.evaluate(drawn), before, "the charts move");
    // Lines are as wide as what goes along them.
    let widths =
        "[...document.querySelectorAll('.line')].map(line => Number(line.getAttribute('stroke-width')))";
    browser.wait_until(&format!("Math.max(...{widths}) > 2 * Math.min(...{widths})"));
    for (kind, place) in
        [("Listeners", "shop"), ("Rules", "else"), ("Pools", "standard"), ("Servers", "quick1")]
    {
        let button =
            format!("[...document.querySelectorAll('.choice button')].find(b => b.textContent === {kind:?})");
        browser.evaluate(&format!("{button}.click()"));
        let row = format!(
            "[...document.querySelectorAll('tr[data-place]')].find(row => row.cells[0].textContent === {place:?})"
        );
        browser.wait_until(&format!("Number({row}?.querySelector('.n').textContent) > 0"));
    }
    drop(traffic);
    browser.wait_until(&format!("{} === 0", on_map("shop")));
    assert_eq!(browser.complaints(), [""; 0]);
}

#[test]
fn signing_in() {
    let shop = Shop::start();
    let Some(mut browser) = shop.open("#/servers") else { return };
    browser.wait_until("document.querySelectorAll('tr[data-server]').length === 3");
    let may_press = "[...document.querySelectorAll('[data-admission]')].some(button => !button.disabled)";
    assert_eq!(browser.evaluate(may_press), false, "who has no token looks");
    click(&mut browser, ".who button");
    browser.wait_until("document.activeElement.id === 'token'");
    browser.press(ENTER.0, ENTER.1);
    browser.wait_until("document.querySelector('.said').textContent === 'a token is needed'");
    browser.type_text(&ADMIN_TOKEN.replace('8', "9"));
    browser.press(ENTER.0, ENTER.1);
    browser.wait_until("document.querySelector('.said').textContent === 'the token is not known'");
    assert_eq!(browser.evaluate("document.querySelector('dialog').open"), true);
    assert_eq!(browser.evaluate(may_press), false);
    browser.evaluate("document.querySelector('#token').select()");
    browser.type_text(ADMIN_TOKEN);
    browser.press(ENTER.0, ENTER.1);
    browser.wait_until("document.querySelector('.who').textContent.includes('deploy may change')");
    browser.wait_until(may_press);
    assert_eq!(browser.evaluate("localStorage.length + sessionStorage.length + document.cookie.length"), 0);
    click(&mut browser, ".who button");
    browser.wait_until(&format!("!({may_press})"));
    // A token that a reload takes away is one no longer.
    sign_in_well(&mut browser);
    let other = format!("deploy {}\n", ADMIN_TOKEN.replace('8', "9"));
    std::fs::write(shop.switch.folder().join("admin.token"), other).expect("a writable folder");
    shop.switch.signal("HUP");
    browser.wait_until(
        "document.querySelector('.who')?.textContent.startsWith('your token is no longer known')",
    );
    browser.wait_until(&format!("!({may_press})"));
    // Another one signs in, in the same page.
    click(&mut browser, ".who button");
    browser.wait_until("document.activeElement.id === 'token'");
    browser.type_text(&ADMIN_TOKEN.replace('8', "9"));
    browser.press(ENTER.0, ENTER.1);
    browser.wait_until(may_press);
    // Who goes on by the keyboard goes on from there.
    browser.wait_until("document.activeElement.textContent === 'Sign out'");
    assert_eq!(browser.complaints(), [""; 0]);
}

/// Who has put the window away is not signed in by an answer that comes late.
#[test]
fn signing_in_is_given_up() {
    let shop = Shop::start();
    let Some(mut browser) = shop.open("#/servers") else { return };
    unsure::ask_by(
        &mut browser,
        "async (ask, path, options) => { const answer = await ask(path, options); \
         if (options.headers?.Authorization) await new Promise((come) => { window.come = come; }); return answer; }",
    );
    sign_in(&mut browser, ADMIN_TOKEN);
    browser.wait_until("!!window.come");
    click(&mut browser, "dialog[open] .buttons button");
    browser.wait_until("!document.querySelector('dialog')");
    browser.evaluate("window.come()");
    browser.evaluate("new Promise((pass) => setTimeout(pass, 50))");
    assert_eq!(browser.evaluate("document.querySelector('.who').textContent"), "you may lookSign in");
    assert_eq!(browser.complaints(), [""; 0]);
}

/// From elsewhere nothing is shown before a token is, and nothing after it.
#[test]
fn the_gate() {
    let Some(switch) = elsewhere(2) else { return };
    let id = switch.id().to_string();
    let by = [&["nsenter"], &within(&id)[..]].concat();
    let Some(mut browser) = Browser::start_by(&by, 1280, 900) else { return };
    browser.visit(SocketAddr::new([192, 0, 2, 1].into(), switch.admin().port()), "/console/");
    browser.wait_until("document.activeElement.id === 'token'");
    let is_empty = "!document.querySelector('.bar, table, svg')";
    browser.type_text(&ADMIN_TOKEN.replace('8', "9"));
    browser.press(ENTER.0, ENTER.1);
    browser.wait_until("document.querySelector('.said').textContent === 'the token is not known'");
    assert_eq!(browser.evaluate(is_empty), true);
    browser.evaluate("document.querySelector('#token').select()");
    browser.type_text(ADMIN_TOKEN);
    browser.press(ENTER.0, ENTER.1);
    browser.wait_until("document.querySelector('.who')?.textContent.includes('deploy may change')");
    browser.wait_until("document.querySelector('.pulse').textContent === 'live'");
    click(&mut browser, ".who button");
    browser.wait_until(&format!("!!document.querySelector('#token') && {is_empty}"));
    // A browser notes each answer that is a refusal.
    let complaints = browser.complaints();
    assert!(complaints.iter().all(|complaint| complaint.contains("401")), "{complaints:?}");
}

/// Whoever shows a certificate need not sign in, and cannot sign out. Another switch shows it in the browser's place.
#[test]
fn a_certificate_signs_in() {
    let (origin, secured) = (Origin::new("origin"), Secured::new());
    let switch = secured.setup(2, &origin, "").start();
    let tls =
        "tls = { ca = \"ca.crt\", name = \"admin.example\", certificate = \"ops.crt\", key = \"ops.key\" }";
    let shower = Setup::new(2).pool_at("admin", tls, &[("admin", switch.admin())]);
    let shower = shower.file("ca.crt", &secured.authority.pem()).pair("ops", &secured.ours).start();
    // To the switch the page is one of another scheme.
    let file = switch.folder().join("pointsman.toml");
    let text = std::fs::read_to_string(&file).expect("it is there");
    let allowed = format!("[admin]\nallowed_origins = [\"http://{}\"]\n", shower.address("shop"));
    std::fs::write(&file, text.replace("[admin]\n", &allowed)).expect("a writable folder");
    switch.signal("HUP");
    switch.wait_for_line("reloaded generation=2");
    let Some(mut browser) = Browser::start(1280, 900) else { return };
    browser.visit(shower.address("shop"), "/console/");
    browser.wait_until(
        "document.querySelector('.who')?.textContent === 'CN=ops may changeby client certificate'",
    );
    assert_eq!(browser.evaluate("!!document.querySelector('.who button')"), false);
    assert_eq!(browser.complaints(), [""; 0]);
}

/// What is shown while nothing new comes says so, and from when it is.
#[test]
fn a_silent_switch() {
    let shop = Shop::start();
    let Some(mut browser) = shop.open("") else { return };
    browser.wait_until("document.querySelector('.pulse').textContent === 'live'");
    shop.switch.signal("STOP");
    let said = "the switch does not answer: what is shown is from ";
    browser.wait_until(&format!("!!document.querySelector('.stale')?.textContent.startsWith({said:?})"));
    assert_eq!(browser.evaluate("document.querySelector('.pulse').textContent"), "not live");
    shop.switch.signal("CONT");
    browser.wait_until(
        "!document.querySelector('.stale') && document.querySelector('.pulse').textContent === 'live'",
    );
}

#[test]
fn a_server_is_drained() {
    let shop = Shop::start();
    let Some(mut browser) = shop.open("#/servers") else { return };
    let traffic = shop.traffic();
    sign_in_well(&mut browser);
    let [drained, other, _] = &shop.servers;
    drained.wait_for_requests(1);
    let row = "document.querySelector('[data-server=\"standard/server1\"]')";
    click(&mut browser, "[data-server='standard/server1'] [data-admission=draining]");
    browser.wait_until(&format!("{row}.querySelector('.state').textContent === 'draining'"));
    let (before, others_before) = (drained.count(), other.count());
    other.wait_for_requests(others_before + 20);
    assert_eq!(drained.count(), before, "it gets nothing any more");
    browser.wait_until(&format!("{row}.querySelectorAll('.n')[1].textContent === '0'"));
    browser.evaluate("location.hash = '#/live'");
    browser.wait_until("document.querySelector('.spot[data-name=server1]')?.dataset.state === 'draining'");
    browser.evaluate("location.hash = '#/servers'");
    click(&mut browser, "[data-server='standard/server1'] [data-admission=enabled]");
    drained.wait_for_requests(before + 1);
    drop(traffic);
    // A pool says how many of its servers are up; all that drain are not the same as none that is there.
    browser.evaluate("location.hash = '#/live'");
    click(&mut browser, "[aria-labelledby=by] button:nth-child(3)");
    let state =
        "document.querySelector('tr[data-place*=standard]')?.querySelector('.state').textContent".to_owned();
    browser.wait_until(&format!("{state} === 'all up'"));
    for (server, words) in [("server1", "1 of 2 up"), ("server2", "all draining")] {
        let path = format!("/api/v1/pools/standard/servers/{server}/state");
        let (answer, _) = shop.switch.admin_ask("PUT", &path, "", "{\"state\": \"draining\"}");
        assert_eq!(answer.status(), 200);
        browser.wait_until(&format!("{state} === '{words}'"));
    }
    assert_eq!(browser.complaints(), [""; 0]);
}

#[test]
fn servers_come_change_and_go() {
    let (shop, more) = (Shop::start(), Origin::new("server3"));
    let Some(mut browser) = shop.open("#/servers") else { return };
    let _traffic = shop.traffic();
    sign_in_well(&mut browser);
    click(&mut browser, "section .head button");
    browser.wait_until("document.activeElement.id === 'server-name'");
    browser.type_text("server3");
    browser.evaluate("document.querySelector('#server-address').focus()");
    browser.type_text(&more.address().to_string());
    browser.press(ENTER.0, ENTER.1);
    more.wait_for_requests(1);
    let weigh = "[data-server='standard/server3'] [aria-label='Weight of server3']";
    click(&mut browser, weigh);
    browser.wait_until("document.activeElement.id === 'server-weight'");
    // Somebody else changes the configuration while the dialog is open.
    let (status, said) = change(&shop.switch, "PATCH", "server2", "{\"weight\": 3}");
    assert_eq!(status, 200, "{said}");
    browser.evaluate("document.activeElement.select()");
    browser.type_text("7");
    browser.press(ENTER.0, ENTER.1);
    browser.wait_until("document.querySelector('dialog[open] .said').textContent.startsWith('not done: ')");
    let weight = |name: &str| {
        shop.switch.admin_shows(&format!("/api/v1/pools/standard/servers/{name}"))["weight"].clone()
    };
    assert_eq!((weight("server2"), weight("server3")), (3.into(), 1.into()));
    click(&mut browser, "dialog[open] button[type=button]");
    click(&mut browser, weigh);
    browser.wait_until("document.activeElement.id === 'server-weight'");
    browser.evaluate("document.activeElement.select()");
    browser.type_text("7");
    browser.press(ENTER.0, ENTER.1);
    browser.wait_until("document.querySelector('[data-server=\"standard/server3\"] .n').textContent === '7'");
    click(&mut browser, "[aria-label='Remove server3']");
    click(&mut browser, "dialog[open] button.main");
    browser.wait_until("document.querySelectorAll('tr[data-server]').length === 3");
    let text = std::fs::read_to_string(shop.switch.folder().join("pointsman.toml")).expect("it is there");
    assert!(!text.contains("server3"), "{text}");
    // A browser notes each answer that is a refusal.
    let complaints = browser.complaints();
    assert!(complaints.len() == 1 && complaints[0].contains("412"), "{complaints:?}");
}

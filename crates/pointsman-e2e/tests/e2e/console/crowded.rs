//! The console before a switch with more than anybody looks at, under names as long and as strange as they may be.

use std::fmt::Write as _;

use pointsman_e2e::{ADMIN_TOKEN, Browser, Client, Origin, Setup};

use super::sign_in;

const SERVERS: usize = 300;
const RULES: usize = 1_000;
/// Labels that are written from the right.
const ODD: [&str; 2] = ["שלום_עולם", "مرحبا"];

/// 300 servers and 1,000 rules, each of which has decided: it can be looked at, moves, and fits a telephone.
#[test]
fn hundreds_of_servers_and_a_thousand_rules() {
    let origin = Origin::new("origin");
    let long = "a-name-that-is-as-long-as-somebody-who-likes-them-would-make";
    let mut rules = String::new();
    for rule in 0..RULES {
        let label = ODD.get(rule).map_or_else(
            || format!("rule_{rule}_with_a_long_label_that_says_it_all"),
            |odd| (*odd).to_owned(),
        );
        writeln!(rules, "{label}: if (path == \"/{rule}\") {{ routeTo(standard); }}").expect("a string");
    }
    rules.push_str("else: routeTo(standard);");
    let names: Vec<String> = (1..SERVERS).map(|server| format!("{long}-{server}")).collect();
    let servers: Vec<_> = names.iter().map(|name| (name.as_str(), Origin::dead_address())).collect();
    let setup = Setup::new(2).rules(&rules).with_token();
    let switch = setup.pool("standard", &[&origin]).pool_at("crowd", "", &servers).start();
    let mut client = Client::plain(switch.address("shop"));
    for rule in 0..RULES {
        assert_eq!(client.get(&format!("/{rule}")).status(), 200);
    }
    let named = format!("<img/src=x/onerror=alert(1)> {ADMIN_TOKEN}\n");
    std::fs::write(switch.folder().join("admin.token"), named).expect("a writable folder");
    switch.signal("HUP");
    switch.wait_for_line("reloaded generation=2");
    let Some(mut browser) = Browser::start(1280, 900) else { return };
    browser.visit(switch.admin(), "/console/");
    sign_in(&mut browser, ADMIN_TOKEN);
    browser.wait_until(
        "document.querySelector('.who').textContent.startsWith('<img/src=x/onerror=alert(1)> may change')",
    );
    browser.wait_until("document.querySelector('.pulse').textContent === 'live'");
    let is_moving = "(async () => { const looks = () => performance.getEntriesByType('resource').length; \
        const before = looks(); for (let turn = 0; turn < 200 && looks() < before + 3; turn += 1) \
        await new Promise(done => setTimeout(done, 50)); return looks() >= before + 3; })()";
    for (page, there) in [
        ("live", "document.querySelectorAll('.spot[data-kind=server]').length === 17".to_owned()),
        ("servers", format!("document.querySelectorAll('tr[data-server]').length === {SERVERS}")),
    ] {
        browser.evaluate(&format!("location.hash = '#/{page}'"));
        browser.wait_until(&there);
        for width in [360, 1280] {
            browser.resize(width, 900);
            assert_eq!(browser.evaluate(is_moving), true, "{page}");
            let fits = "document.documentElement.scrollWidth <= innerWidth";
            assert_eq!(browser.evaluate(fits), true, "{page}, {width} pixels");
        }
        assert_eq!(browser.evaluate("document.querySelectorAll('img').length"), 0);
    }
    let is_whole = "[...document.querySelectorAll('.servers tbody th')].every(name => name.scrollWidth <= name.clientWidth)";
    assert_eq!(browser.evaluate(is_whole), true, "whose row it is can be read");
    browser.evaluate("location.hash = '#/live'");
    let names = "[...document.querySelectorAll('.spot text:first-of-type')].map(name => name.textContent)";
    browser.wait_until(&format!("{names}.length > 30"));
    assert_eq!(
        browser.evaluate(&format!("new Set({names}).size === {names}.length")),
        true,
        "the map tells them apart"
    );
    for label in ODD {
        assert_eq!(browser.evaluate(&format!("!!document.querySelector('[data-name={label:?}]')")), true);
    }
    assert_eq!(browser.complaints(), [""; 0]);
}

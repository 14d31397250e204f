//! The page Rules where answers come late or not at all, and where the switch has begun anew.

use pointsman_e2e::{Browser, Origin, Setup, Switch};

use super::rules::{
    EDITOR, IS_SERVED, POSTS, line_first, open, press_button, publish, rules_of, served, type_first, written,
};
use super::{ENTER, Shop, click};

/// The page with somebody who has written something and looks at what it changes.
pub(super) fn in_steps(shop: &Shop) -> Option<Browser> {
    let mut browser = open(shop)?;
    line_first(&mut browser, POSTS);
    press_button(&mut browser, "Publish…");
    Some(browser)
}

/// The page has asked for something more than so many times more.
pub(super) fn wait_for_asks(browser: &mut Browser, what: &str, times: u32) {
    let asks = format!(
        "performance.getEntriesByType('resource').filter(({{ name }}) => name.endsWith('{what}')).length"
    );
    browser.evaluate(&format!("window.before = {asks}"));
    browser.wait_until(&format!("{asks} > window.before + {times}"));
}

/// From now on the page asks by `answer(ask, path, options)`.
pub(super) fn ask_by(browser: &mut Browser, answer: &str) {
    browser.evaluate(&format!(
        "{{ const ask = fetch; const answer = {answer}; window.isAway = true; \
         window.fetch = (path, options = {{}}) => answer(ask, String(path), options); }}"
    ));
}

pub(super) fn begin_another(switch: &Switch, n: u32) {
    let target = "/api/v1/listeners/shop/rules/dry-run?seconds=600";
    let (answer, said) = switch.admin_ask("POST", target, "", "else: routeTo(fast);\n");
    assert_eq!((answer.status(), &said["n"]), (200, &n.into()), "{said}");
}

pub(super) const IS_RUNNING: &str = "document.querySelector('.dry-run')?.dataset.state === 'running'";
const DRY_RUN_SAYS: &str = "document.querySelector('.dry-run [role=status]')?.textContent ?? ''";

/// A dry-run is gone with its switch; another one, which has its number again, is neither shown nor ended.
#[test]
fn dry_runs_of_another_process() {
    let mut shop = Shop::start();
    let Some(mut browser) = in_steps(&shop) else { return };
    press_button(&mut browser, "Dry-run");
    browser.wait_until(IS_RUNNING);
    ask_by(
        &mut browser,
        "(ask, path, options) => window.isAway && path.endsWith('/dry-run') ? Promise.reject(new TypeError('away')) : ask(path, options)",
    );
    shop.switch.upgrade();
    browser.evaluate("window.isAway = false");
    browser.wait_until(&format!("({DRY_RUN_SAYS}).includes('began anew')"));
    press_button(&mut browser, "Dry-run again");
    browser.wait_until(IS_RUNNING);
    browser.evaluate("window.isAway = true");
    shop.switch.upgrade();
    begin_another(&shop.switch, 1);
    browser.evaluate("window.isAway = false");
    browser.wait_until(&format!("({DRY_RUN_SAYS}).includes('another one has begun')"));
    browser.evaluate("dispatchEvent(new Event('pagehide'))");
    press_button(&mut browser, "Back to the editor");
    assert_eq!(shop.switch.admin_shows("/api/v1/dry-run")["state"], "running");
}

/// Numbers of versions begin anew with the switch: what was asked for is the text that was seen.
#[test]
fn a_roll_back_is_of_the_rules_that_were_seen() {
    let mut shop = Shop::start();
    let Some(mut browser) = open(&shop) else { return };
    let bad = "else: routeTo(fast);\n";
    publish(&shop.switch, bad, "");
    click(&mut browser, "[aria-label='Roll back to version 1']");
    browser.wait_until("document.activeElement.id === 'roll-why'");
    shop.switch.upgrade();
    click(&mut browser, "dialog[open] button.main");
    let said = "document.querySelector('dialog[open] .said').textContent";
    browser.wait_until(&format!("{said}.startsWith('not done: ') && {said}.includes('counts anew')"));
    assert_eq!(served(&shop.switch)["text"], bad);
}

/// Where the answer is lost it is not said that nothing was done; what serves is seen to be what was written.
#[test]
fn a_lost_answer_is_no_failure() {
    let shop = Shop::start();
    let Some(mut browser) = in_steps(&shop) else { return };
    ask_by(
        &mut browser,
        "async (ask, path, options) => { const answer = await ask(path, options); \
         if (options.method === 'PUT') throw new TypeError('lost'); return answer; }",
    );
    press_button(&mut browser, "Publish");
    browser.wait_until(&format!("!document.querySelector('.publish') && {IS_SERVED}"));
    let notice = browser.evaluate("document.querySelector('.notice').textContent").to_string();
    assert!(notice.contains("published: the rules serve"), "{notice}");
    assert!(served(&shop.switch)["text"].as_str().is_some_and(|text| text.starts_with(POSTS)));
    // Of a server, too.
    browser.evaluate("location.hash = '#/servers'");
    click(&mut browser, "[data-server='standard/server1'] td button");
    browser.wait_until("document.querySelector('.notice').textContent.includes('it is not known whether')");
    assert_eq!(browser.complaints(), [""; 0]);
}

/// What is being published is nobody else's, however late its answer is lost.
#[test]
fn an_answer_is_lost_late() {
    let shop = Shop::start();
    let Some(mut browser) = in_steps(&shop) else { return };
    ask_by(
        &mut browser,
        "async (ask, path, options) => { const answer = await ask(path, options); \
         if (options.method === 'PUT' && !path.includes('dry_run')) await new Promise((_, lose) => { window.lose = lose; }); \
         return answer; }",
    );
    press_button(&mut browser, "Publish");
    browser.wait_until("!!window.lose");
    // It has been looked which rules serve.
    wait_for_asks(&mut browser, "/plan", 1);
    assert_eq!(browser.evaluate("!!document.querySelector('.newer')"), false);
    browser.evaluate("window.lose(new TypeError('lost'))");
    browser.wait_until(&format!("!document.querySelector('.publish') && {IS_SERVED}"));
    let notice = browser.evaluate("document.querySelector('.notice').textContent").to_string();
    assert!(notice.contains("published: the rules serve, though"), "{notice}");
    assert_eq!(browser.complaints(), [""; 0]);
}

/// Whoever presses on, or goes back and writes on, is told all the same that what they sent serves.
#[test]
fn a_lost_answer_is_remembered() {
    for press in ["Publish", "Back to the editor"] {
        let shop = Shop::start();
        let Some(mut browser) = in_steps(&shop) else { return };
        ask_by(
            &mut browser,
            "async (ask, path, options) => { if (path.endsWith('/plan') && window.isAway) throw new TypeError('away'); \
             const answer = await ask(path, options); \
             if (options.method === 'PUT' && !path.includes('dry_run') && !window.isLost) { window.isLost = true; throw new TypeError('lost'); } \
             return answer; }",
        );
        press_button(&mut browser, "Publish");
        browser
            .wait_until("document.querySelector('.publish .said')?.textContent.includes('it is not known')");
        press_button(&mut browser, press);
        browser.wait_until("!document.querySelector('.publish')");
        if press != "Publish" {
            type_first(&mut browser, "# more");
            browser.press(ENTER.0, ENTER.1);
        }
        browser.evaluate("window.isAway = false");
        browser.wait_until(
            "document.querySelector('.notice').textContent.includes('published: the rules serve, though')",
        );
        assert_eq!(browser.evaluate("!!document.querySelector('.newer')"), false);
        // What was written since is changed, and can be taken back to what was sent.
        if press != "Publish" {
            press_button(&mut browser, "Take back");
        }
        browser.wait_until(IS_SERVED);
        assert_eq!(written(&mut browser).lines().next(), Some(POSTS));
        // A browser notes each answer that is a refusal.
        let refusals = usize::from(press == "Publish");
        assert_eq!(browser.complaints().len(), refusals);
    }
}

/// A text that comes while another one is looked at before it serves takes its place no more.
#[test]
fn what_comes_late_changes_nothing() {
    let shop = Shop::start();
    let Some(mut browser) = open(&shop) else { return };
    line_first(&mut browser, "posts:   { routeTo(standard); }");
    browser.wait_until(&format!("!({IS_SERVED})"));
    let written_then = written(&mut browser);
    ask_by(
        &mut browser,
        "async (ask, path, options) => { const answer = await ask(path, options); \
         if (path.includes('rules/format')) await new Promise((come) => { window.come = come; }); return answer; }",
    );
    press_button(&mut browser, "Format");
    browser.wait_until("!!window.come");
    press_button(&mut browser, "Publish…");
    browser.wait_until("!!document.querySelector('.difference')");
    browser.evaluate("window.come()");
    press_button(&mut browser, "Publish");
    browser.wait_until(&format!("!document.querySelector('.publish') && {IS_SERVED}"));
    assert_eq!(written(&mut browser), written_then);
    assert_eq!(served(&shop.switch)["text"], written_then);
}

/// What did not come once is asked for again, without being told to.
#[test]
fn what_others_publish_comes_in_the_end() {
    let shop = Shop::start();
    let Some(mut browser) = open(&shop) else { return };
    ask_by(
        &mut browser,
        "(ask, path, options) => { if (!window.isAway || !path.endsWith('/rules')) return ask(path, options); \
         window.isAway = false; return Promise.reject(new TypeError('away')); }",
    );
    let theirs = "theirs: { routeTo(fast); }\n";
    publish(&shop.switch, theirs, "");
    browser.wait_until(&format!("{EDITOR}.querySelector('.cm-line').textContent.startsWith('theirs')"));
    assert_eq!(browser.evaluate("window.isAway"), false, "once it did not come");
}

/// A pool that a reload has brought is offered.
#[test]
fn words_of_a_reload_are_offered() {
    let servers = ["server1", "server2"].map(Origin::new);
    let setup = Setup::new(2).rules("else: routeTo(standard);").with_token().pool("standard", &[&servers[0]]);
    let switch = setup.start();
    let Some(mut browser) = rules_of(&switch) else { return };
    switch.reload(&setup.clone().pool("fresh", &[&servers[1]]), 2);
    let vocabulary =
        "performance.getEntriesByType('resource').filter(({ name }) => name.endsWith('/vocabulary')).length";
    browser.wait_until(&format!("{vocabulary} > 1"));
    type_first(&mut browser, "all: { routeTo(fr");
    let offered = format!(
        "[...{EDITOR}.querySelectorAll('.cm-tooltip-autocomplete li')].map(option => option.textContent).join()"
    );
    browser.wait_until(&format!("({offered}).includes('fresh')"));
    assert_eq!(browser.complaints(), [""; 0]);
}

/// Lines that end in different ways go on doing so.
#[test]
fn lines_end_as_they_did() {
    let (mixed, crlf) = ("# one\nelse:\r\n  routeTo(standard);\n", "# one\r\nelse: routeTo(standard);\r\n");
    for text in [mixed, crlf] {
        let server = Origin::new("server1");
        let switch = Setup::new(2).rules(text).with_token().pool("standard", &[&server]).start();
        let before = served(&switch)["text"].as_str().expect("a text").to_owned();
        let Some(mut browser) = rules_of(&switch) else { return };
        type_first(&mut browser, "# new ");
        press_button(&mut browser, "Publish…");
        press_button(&mut browser, "Publish");
        browser.wait_until(&format!("!document.querySelector('.publish') && {IS_SERVED}"));
        assert_eq!(served(&switch)["text"], format!("# new {before}"));
        assert_eq!(browser.complaints(), [""; 0]);
    }
}

/// Who undoes or takes back has lines end as they did, and what differs in that alone is something else.
#[test]
fn ends_of_lines_are_taken_back() {
    let [mixed, crlf, lf] =
        ["# one\r\nelse: reject(403);\n", "# one\r\nelse: reject(403);\r\n", "# one\nelse: reject(403);\n"];
    let switch = Setup::new(2).rules(mixed).with_token().start();
    let Some(mut browser) = rules_of(&switch) else { return };
    publish(&switch, crlf, "");
    publish(&switch, lf, "");
    let is_changed = format!("!({IS_SERVED})");
    let undo = format!(
        "{EDITOR}.querySelector('.cm-content').dispatchEvent(new KeyboardEvent('keydown', \
         {{ key: 'z', keyCode: 90, ctrlKey: true, bubbles: true, cancelable: true }}))"
    );
    for (version, text) in [(1, mixed), (2, crlf)] {
        let into = format!("[aria-label='Version {version} into the editor']");
        click(&mut browser, &into);
        browser.wait_until(&is_changed);
        browser.evaluate(&undo);
        browser.wait_until(IS_SERVED);
        click(&mut browser, &into);
        browser.wait_until(&is_changed);
        press_button(&mut browser, "Take back");
        browser.wait_until(IS_SERVED);
        click(&mut browser, &into);
        browser.wait_until(&is_changed);
        press_button(&mut browser, "Publish…");
        press_button(&mut browser, "Publish");
        browser.wait_until(&format!("!document.querySelector('.publish') && {IS_SERVED}"));
        assert_eq!(served(&switch)["text"], text);
    }
    assert_eq!(browser.complaints(), [""; 0]);
}

//! The page Rules: what is typed is looked at, tried out, published with what it changes, and taken back.

use pointsman_e2e::{Browser, Origin, Setup, Switch, axe_script, until};
use serde_json::Value;

use super::pictures::check_access;
use super::{ENTER, Shop, click, sign_in_well};

/// Where the editor is: in a shadow root of its own.
pub(crate) const EDITOR: &str = "document.querySelector('.editor').shadowRoot";
pub(super) const POSTS: &str = "posts: if (method == \"POST\") { routeTo(standard); }";
pub(super) const IS_SERVED: &str = "document.querySelector('[data-changed]')?.dataset.changed === 'false'";

/// What only its editor has that nobody may write in.
const FROZEN: &str = "document.querySelector('.editor').shadowRoot.querySelector('[aria-readonly=true]')";

/// The page with somebody who may change, and what is found of the rules that serve.
pub(super) fn open(shop: &Shop) -> Option<Browser> {
    let mut browser = rules_of(&shop.switch)?;
    wait_until_looked_at(&mut browser);
    Some(browser)
}

/// The page with somebody who may change.
pub(super) fn rules_of(switch: &Switch) -> Option<Browser> {
    let mut browser = super::open(switch.admin(), "#/rules")?;
    browser.wait_until("!!document.querySelector('.editor')");
    sign_in_well(&mut browser);
    Some(browser)
}

/// Nothing is asked of the analyst any more, and something was.
pub(crate) fn wait_until_looked_at(browser: &mut Browser) {
    browser.wait_until(
        "!!document.querySelector('.findings') && !document.querySelector('[data-looking]') \
         && document.querySelector('#findings + [role=status]').textContent !== ''",
    );
}

/// Types at the head of the rules.
pub(super) fn type_first(browser: &mut Browser, text: &str) {
    browser.evaluate(&format!("{EDITOR}.querySelector('.cm-content').focus()"));
    browser.press("Home", 36);
    browser.type_text(text);
}

pub(super) fn line_first(browser: &mut Browser, text: &str) {
    type_first(browser, text);
    browser.press(ENTER.0, ENTER.1);
}

/// What stands in the editor, as far as it is drawn.
pub(super) fn written(browser: &mut Browser) -> String {
    let lines =
        format!("[...{EDITOR}.querySelectorAll('.cm-line')].map(line => line.textContent).join('\\n')");
    browser.evaluate(&lines).as_str().expect("a text").to_owned()
}

pub(super) fn press_button(browser: &mut Browser, name: &str) {
    let button = format!(
        "[...document.querySelectorAll('main button')].find(button => !button.disabled && button.textContent === {name:?})"
    );
    browser.wait_until(&format!("(() => {{ const found = {button}; found?.click(); return !!found; }})()"));
}

fn fill(browser: &mut Browser, selector: &str, text: &str) {
    browser.evaluate(&format!("document.querySelector({selector:?}).select()"));
    browser.evaluate(&format!("document.querySelector({selector:?}).focus()"));
    browser.type_text(text);
}

/// Somebody else publishes.
pub(super) fn publish(switch: &Switch, text: &str, why: &str) {
    let target = format!("/api/v1/listeners/shop/rules?why={why}");
    let (answer, said) = switch.admin_ask("PUT", &target, "If-Match: *\r\n", text);
    assert_eq!(answer.status(), 200, "{said}");
}

pub(super) fn served(switch: &Switch) -> Value {
    switch.admin_shows("/api/v1/listeners/shop/rules")
}

#[test]
fn a_conflict_is_underlined_with_its_witness() {
    let shop = Shop::start();
    let Some(mut browser) = open(&shop) else { return };
    line_first(&mut browser, POSTS);
    let found = "document.querySelector('.findings [data-code=conflict][data-severity=warning]')";
    browser.wait_until(&format!("!!{found}"));
    assert!(browser.evaluate(&format!("{found}.textContent")).to_string().contains("posts"));
    let underlined = format!(
        "[...{EDITOR}.querySelectorAll('.cm-lintRange-warning')].map(mark => mark.textContent).join('')"
    );
    browser.wait_until(&format!("{underlined}.includes('path under \"/api\"')"));
    browser.evaluate(&format!("{found}.querySelector('.witness').click()"));
    browser.wait_until("document.querySelector('.decision')?.dataset.rule === 'posts'");
    let request = browser.evaluate("document.querySelector('#try-text').value").to_string();
    assert!(request.contains("POST /api HTTP/1.1"), "{request}");
    let marked = format!("{EDITOR}.querySelector('.decided').textContent");
    assert_eq!(browser.evaluate(&marked), POSTS, "the rule that decides is marked");
    // What does not compile is told in the same way.
    line_first(&mut browser, "wrong: if (metod == \"GET\") { routeTo(standard); }");
    browser.wait_until(&format!("{EDITOR}.querySelector('.cm-lintRange-error')?.textContent === 'metod'"));
    browser.wait_until("document.querySelector('.findings li').dataset.code === 'invalid'");
    // Back at what serves, all is as it was in the beginning.
    press_button(&mut browser, "Take back");
    browser.wait_until(IS_SERVED);
    browser.wait_until(&format!("!{EDITOR}.querySelector('.cm-lintRange-error') && !({found})"));
    assert_eq!(browser.complaints(), [""; 0]);
}

/// The code of a finding opens its page of the reference, and that leads to others.
#[test]
fn a_code_has_its_page() {
    let shop = Shop::start();
    let Some(mut browser) = open(&shop) else { return };
    line_first(&mut browser, POSTS);
    click(&mut browser, ".findings [data-code=conflict] .plain:has(code)");
    let read = |browser: &mut Browser, what: &str| {
        let text = browser.evaluate(&format!("document.querySelector('dialog.code {what}')?.textContent"));
        text.as_str().unwrap_or_else(|| panic!("no {what}")).to_owned()
    };
    browser.wait_until("document.querySelector('dialog.code[open] h2')?.textContent === 'conflict'");
    assert!(read(&mut browser, "p").contains("Severity: warning"));
    assert!(read(&mut browser, "pre.lines").contains("routeTo"));
    axe_script().iter().for_each(|axe| check_access(&mut browser, axe, "the page of a code"));
    let link = "[...document.querySelectorAll('dialog.code p button.plain')].find(link => link.textContent === 'exception')";
    browser.evaluate(&format!("{link}.click()"));
    browser.wait_until("document.querySelector('dialog.code h2').textContent === 'exception'");
    click(&mut browser, "dialog.code .buttons button");
    browser.wait_until("!document.querySelector('dialog')");
    assert_eq!(browser.complaints(), [""; 0]);
}

#[test]
fn words_are_completed_and_explained() {
    let shop = Shop::start();
    let Some(mut browser) = open(&shop) else { return };
    let offered = format!(
        "[...({EDITOR}.querySelectorAll('.cm-tooltip-autocomplete li'))].map(option => option.textContent).join('|')"
    );
    line_first(&mut browser, "");
    type_first(&mut browser, "");
    browser.evaluate(&format!("{EDITOR}.querySelector('.cm-content').focus()"));
    browser.press("ArrowUp", 38);
    for (typed, expected, takes) in [
        ("gets: if (met", "method", true),
        (" ", "startsWith", false),
        ("== \"GET\") { rou", "routeTo", false),
        ("teTo", "", false),
        ("(st", "standard", true),
        ("); }", "", false),
    ] {
        browser.type_text(typed);
        if expected.is_empty() {
            continue;
        }
        browser.wait_until(&format!("{offered}.includes('{expected}')"));
        if takes {
            browser.evaluate(&format!(
                "[...{EDITOR}.querySelectorAll('.cm-tooltip-autocomplete li')].find(option => \
                 option.textContent.includes('{expected}')).dispatchEvent(new MouseEvent('mousedown', {{ bubbles: true }}))"
            ));
            browser.wait_until(&format!("{offered} === ''"));
        }
    }
    let first = "gets: if (method == \"GET\") { routeTo(standard); }";
    assert_eq!(written(&mut browser).lines().next(), Some(first));
    // What the pointer rests on is explained.
    browser.evaluate(&format!(
        "(() => {{ const word = [...{EDITOR}.querySelectorAll('.cm-line span')].find(word => word.textContent === 'method'); \
         const {{ x, y }} = word.getBoundingClientRect(); const there = {{ clientX: x + 5, clientY: y + 5 }}; \
         word.dispatchEvent(new MouseEvent('mousemove', {{ bubbles: true, composed: true, ...there }})); }})()"
    ));
    browser.wait_until(&format!("{EDITOR}.querySelector('.help')?.textContent.startsWith('method')"));
    // Labels come from the text.
    browser.press(ENTER.0, ENTER.1);
    browser.type_text("more: if (path==\"/x\") {goto ");
    browser.wait_until(&format!("{offered}.includes('old') && {offered}.includes('api')"));
    browser.press("Escape", 27);
    browser.type_text("old; }");
    browser.press(ENTER.0, ENTER.1);
    wait_until_looked_at(&mut browser);
    press_button(&mut browser, "Format");
    browser.wait_until("document.querySelector('.notice').textContent.includes('formatted')");
    let formatted = format!("{first}\nmore: if (path == \"/x\") {{ goto old; }}\n\napi: ");
    let written = written(&mut browser);
    assert!(written.starts_with(&formatted), "{written}");
    assert_eq!(browser.complaints(), [""; 0]);
}

/// The value that each condition saw, and the byte at which it was decided: that behind a number says that it ends there.
#[test]
fn a_request_is_tried_out() {
    let server = Origin::new("server1");
    let rules = "old: if (path under \"/old\") { redirect(308, \"/\"); }\n\
                 dear: if (json.total > 100) { setHeader(\"x-total\", \"${json.total}\"); routeTo(standard); }\n\
                 else: reject(403);";
    let switch = Setup::new(2).rules(rules).with_token().pool("standard", &[&server]).start();
    let Some(mut browser) = Browser::start(1280, 900) else { return };
    // Who may look may ask the rules that serve.
    browser.visit(switch.admin(), "/console/#/rules");
    browser.wait_until("!!document.querySelector('[data-kind=json]')");
    click(&mut browser, "[data-kind=json]");
    browser.wait_until("!!document.querySelector('#try-body')");
    fill(&mut browser, "#try-target", "/buy");
    fill(&mut browser, "#try-body", "{\"total\": 250, \"items\": [1, 2]}");
    press_button(&mut browser, "Ask the rules");
    browser.wait_until("document.querySelector('.decision')?.dataset.rule === 'dear'");
    let outcome = browser.evaluate("document.querySelector('.outcome').textContent").to_string();
    for part in
        ["path is “/buy”", "json.total is “250”", "→ 250", "decided at byte 14 of 31", "Nearest misses"]
    {
        assert!(outcome.contains(part), "{part} in {outcome}");
    }
    assert_eq!(browser.evaluate("document.querySelector('.read mark').textContent"), "{\"total\": 250,");
    let marked = format!("{EDITOR}.querySelector('.decided').textContent.startsWith('dear:')");
    assert_eq!(browser.evaluate(&marked), true);
    // As a text it is the same, until somebody writes in it.
    press_button(&mut browser, "As text");
    let text = "document.querySelector('#try-text').value";
    browser.wait_until(&format!("{text}.includes('Content-Length: 31')"));
    let less = format!("{text}.replace('250', '25')");
    browser.evaluate(&format!(
        "(() => {{ const field = document.querySelector('#try-text'); field.value = {less}; \
         field.dispatchEvent(new Event('input', {{ bubbles: true }})); }})()"
    ));
    press_button(&mut browser, "Set it to 30");
    press_button(&mut browser, "Ask the rules");
    browser.wait_until("document.querySelector('.decision')?.textContent.includes('reject(403)')");
    assert_eq!(browser.complaints(), [""; 0]);
}

#[test]
fn rules_are_published_and_rolled_back() {
    let shop = Shop::start();
    let Some(mut browser) = open(&shop) else { return };
    let traffic = shop.traffic();
    line_first(&mut browser, "carts: if (path under \"/cart\") { routeTo(fast); }");
    browser.wait_until(&format!("!({IS_SERVED})"));
    press_button(&mut browser, "Publish…");
    browser.wait_until("document.querySelector('.difference')?.dataset.verdict === 'different'");
    let ways = browser.evaluate("document.querySelector('.difference').textContent").to_string();
    assert!(ways.contains("carts") && ways.contains("GET /cart HTTP/1.1"), "{ways}");
    assert_eq!(browser.evaluate(&format!("{EDITOR}.querySelector('[aria-readonly=true]') !== null")), true);
    // Each way has its request; here it is decided by what is written, not by what serves.
    browser.evaluate("document.querySelector('.difference .witness').click()");
    browser.wait_until("document.querySelector('.decision')?.dataset.rule === 'carts'");
    press_button(&mut browser, "Dry-run");
    let counted = "[...document.querySelectorAll('.dry-run dd')].map(figure => Number(figure.textContent.replaceAll(',', '')))";
    browser.wait_until(&format!("{counted}[0] > 20 && {counted}[3] > 3"));
    let kinds = browser.evaluate("document.querySelector('.dry-run table').textContent").to_string();
    assert!(kinds.contains("/cart"), "{kinds}");
    press_button(&mut browser, "Stop");
    browser.wait_until("document.querySelector('.dry-run').dataset.state === 'ended'");
    let before = shop.servers[2].count();
    fill(&mut browser, "#why", "ticket 417");
    press_button(&mut browser, "Publish");
    browser.wait_until(&format!("!document.querySelector('.publish') && {IS_SERVED}"));
    until("the new rules send more there", || (shop.servers[2].count() > before + 5).then_some(()));
    assert!(served(&shop.switch)["text"].as_str().is_some_and(|text| text.starts_with("carts: ")));
    let row = |n: u32| format!("document.querySelector('tr[data-version=\"{n}\"]')");
    browser.wait_until(&format!("!!{}?.textContent.includes('deployticket 417')", row(2)));
    click(&mut browser, "[aria-label='Difference of version 1']");
    browser.wait_until(
        "document.querySelector('[aria-labelledby=history] .difference')?.dataset.verdict === 'different'",
    );
    click(&mut browser, "[aria-label='Roll back to version 1']");
    browser.wait_until("document.activeElement.id === 'roll-why'");
    browser.type_text("too many");
    browser.press(ENTER.0, ENTER.1);
    browser.wait_until(&format!("!!{}?.textContent.includes('restores 1: too many')", row(3)));
    assert_eq!(served(&shop.switch)["text"], format!("{}\n", super::RULES));
    browser.wait_until(&format!("{EDITOR}.querySelector('.cm-line').textContent.startsWith('api:')"));
    drop(traffic);
    assert_eq!(browser.complaints(), [""; 0]);
}

/// What was said of a rule because of another one goes with that one, also where only it was touched.
#[test]
fn findings_go_with_their_reason() {
    let server = Origin::new("server1");
    let rules = "all: if (path under \"/\") { routeTo(standard); }\n\
                 api: if (path under \"/api\") { reject(403); }\n\
                 else: routeTo(standard);";
    let switch = Setup::new(2).rules(rules).with_token().pool("standard", &[&server]).start();
    let Some(mut browser) = Browser::start(1280, 900) else { return };
    browser.visit(switch.admin(), "/console/#/rules");
    browser.wait_until("!!document.querySelector('.editor')");
    sign_in_well(&mut browser);
    let unreachable = "document.querySelectorAll('.findings [data-code=unreachable]').length";
    browser.wait_until(&format!("{unreachable} === 1"));
    type_first(&mut browser, "# ");
    browser.wait_until(&format!("!({IS_SERVED}) && {unreachable} === 0"));
    assert_eq!(browser.complaints(), [""; 0]);
}

/// Who rolls back what they have seen does not roll back what was published since.
#[test]
fn a_roll_back_is_of_what_was_seen() {
    let shop = Shop::start();
    let Some(mut browser) = open(&shop) else { return };
    let put = "fetch('../api/v1/listeners/shop/rules', { method: 'PUT', body: BODY, \
               headers: { 'If-Match': '*', Authorization: 'Bearer TOKEN' } })"
        .replace("TOKEN", pointsman_e2e::ADMIN_TOKEN);
    let publish = |status: u32| put.replace("BODY", &format!("'else: reject({status});'"));
    browser.evaluate(&format!("{}.then(() => null)", publish(403)));
    click(&mut browser, "[aria-label='Roll back to version 1']");
    browser.wait_until("document.activeElement.id === 'roll-why'");
    // The page looks every few seconds which rules serve: here it is pressed at once.
    let press = "document.querySelector('dialog[open] button.main').click()";
    browser.evaluate(&format!("{}.then(() => {press})", publish(404)));
    browser.wait_until(
        "document.querySelector('dialog[open] .said')?.textContent.includes('other rules serve')",
    );
    assert_eq!(served(&shop.switch)["text"], "else: reject(404);");
    let complaints = browser.complaints();
    assert!(complaints.len() == 1 && complaints[0].contains("412"), "{complaints:?}");
}

/// What others have published and taken back stands in nobody's way.
#[test]
fn others_take_back_what_they_published() {
    let shop = Shop::start();
    let Some(mut browser) = open(&shop) else { return };
    line_first(&mut browser, POSTS);
    browser.wait_until(&format!("!({IS_SERVED})"));
    for (method, target, body, is_newer) in [
        ("PUT", "/api/v1/listeners/shop/rules", "else: reject(403);\n", true),
        ("POST", "/api/v1/versions/1/restore", "", false),
    ] {
        let (answer, said) = shop.switch.admin_ask(method, target, "If-Match: *\r\n", body);
        assert_eq!(answer.status(), 200, "{said}");
        browser.wait_until(&format!("!!document.querySelector('.newer') === {is_newer}"));
    }
    assert_eq!(written(&mut browser).lines().next(), Some(POSTS));
    assert_eq!(browser.complaints(), [""; 0]);
}

/// Nobody can look at a dry-run whose page is gone: it ends with the page.
#[test]
fn a_dry_run_ends_with_its_page() {
    let shop = Shop::start();
    let Some(mut browser) = open(&shop) else { return };
    line_first(&mut browser, POSTS);
    browser.wait_until(&format!("!({IS_SERVED})"));
    press_button(&mut browser, "Publish…");
    press_button(&mut browser, "Dry-run");
    browser.wait_until("document.querySelector('.dry-run')?.dataset.state === 'running'");
    browser.evaluate("dispatchEvent(new Event('pagehide'))");
    until("the dry-run ends", || {
        (shop.switch.admin_shows("/api/v1/dry-run")["ended_by"] == "told").then_some(())
    });
    assert_eq!(browser.complaints(), [""; 0]);
}

/// Rules that did not come once are asked for again.
#[test]
fn rules_come_when_the_switch_is_back() {
    let shop = Shop::start();
    let Some(mut browser) = shop.open("#/live") else { return };
    browser.evaluate(
        "{ const ask = fetch; let isAway = true; window.fetch = (path, ...more) => { \
         if (!isAway || !String(path).endsWith('vocabulary')) return ask(path, ...more); \
         isAway = false; return Promise.reject(new TypeError('nobody is there')); }; }",
    );
    browser.evaluate("location.hash = '#/rules'");
    browser.wait_until("document.querySelector('.stale')?.textContent.includes('does not answer')");
    browser.wait_until("!!document.querySelector('.editor') && !document.querySelector('.stale')");
    assert_eq!(browser.complaints(), [""; 0]);
}

/// What somebody else has published is told, and nothing that was written is lost.
#[test]
fn others_publish_meanwhile() {
    let shop = Shop::start();
    let Some(mut browser) = open(&shop) else { return };
    let theirs = "api: if (path under \"/api\") { routeTo(standard); }\nelse: routeTo(standard);\n";
    let publish = |text: &str, why: &str| publish(&shop.switch, text, why);
    // Who has written nothing is shown what serves.
    publish(theirs, "first");
    browser
        .wait_until(&format!("{EDITOR}.querySelector('.cm-line').textContent.includes('routeTo(standard)')"));
    line_first(&mut browser, POSTS);
    browser.wait_until(&format!("!({IS_SERVED})"));
    press_button(&mut browser, "Publish…");
    browser.wait_until("!!document.querySelector('.difference')");
    publish("else: reject(403);\n", "second");
    fill(&mut browser, "#why", "mine");
    browser.wait_until("document.querySelector('.newer')?.textContent.includes('deploy has published them')");
    press_button(&mut browser, "Back to the editor");
    assert_eq!(written(&mut browser).lines().next(), Some(POSTS));
    press_button(&mut browser, "What they have changed");
    browser.wait_until("document.querySelector('.newer .difference')?.textContent.includes('reject(403)')");
    press_button(&mut browser, "Keep mine, compare with theirs");
    browser.wait_until("!document.querySelector('.newer')");
    assert_eq!(written(&mut browser).lines().next(), Some(POSTS));
    press_button(&mut browser, "Publish…");
    browser.wait_until("!!document.querySelector('.difference')?.textContent.includes('reject(403)')");
    press_button(&mut browser, "Publish");
    browser.wait_until(&format!("!document.querySelector('.publish') && {IS_SERVED}"));
    assert!(served(&shop.switch)["text"].as_str().is_some_and(|text| text.starts_with("posts: ")));
    assert_eq!(browser.complaints(), [""; 0]);
}

/// A change that comes between the look and the press is the switch's to refuse.
#[test]
fn a_version_that_is_old_is_refused() {
    let shop = Shop::start();
    let Some(mut browser) = open(&shop) else { return };
    line_first(&mut browser, POSTS);
    press_button(&mut browser, "Publish…");
    browser.wait_until("!!document.querySelector('.publish button.main')");
    // The page looks every two seconds which rules serve: here it is pressed at once.
    let theirs = "fetch('../api/v1/listeners/shop/rules', { method: 'PUT', body: 'else: reject(403);', \
                  headers: { 'If-Match': '*', Authorization: 'Bearer TOKEN' } })"
        .replace("TOKEN", pointsman_e2e::ADMIN_TOKEN);
    let press = format!("{theirs}.then(() => document.querySelector('.publish button.main').click())");
    browser.evaluate(&press);
    browser.wait_until(
        "document.querySelector('.publish .said')?.textContent.includes('other rules serve by now')",
    );
    browser.wait_until("!!document.querySelector('.newer')");
    assert_eq!(served(&shop.switch)["text"], "else: reject(403);");
    assert_eq!(written(&mut browser).lines().next(), Some(POSTS));
    // A browser notes each answer that is a refusal.
    let complaints = browser.complaints();
    assert!(complaints.len() == 1 && complaints[0].contains("412"), "{complaints:?}");
}

#[test]
fn who_may_not_change_reads() {
    let shop = Shop::start();
    let Some(mut browser) = shop.open("#/rules") else { return };
    browser.wait_until(&format!("!!document.querySelector('.editor') && !!{FROZEN}"));
    type_first(&mut browser, "x");
    assert!(written(&mut browser).starts_with("api: "));
    let buttons = "[...document.querySelectorAll('main button')].map(button => button.textContent).join('|')";
    let buttons = browser.evaluate(buttons).to_string();
    assert!(!["Publish", "Format", "Roll back"].iter().any(|name| buttons.contains(name)), "{buttons}");
    // What is found in them is told, as the API tells it.
    wait_until_looked_at(&mut browser);
    let found = browser.evaluate("document.querySelectorAll('.findings > li').length");
    let said = shop.switch.admin_shows("/api/v1/listeners/shop/rules/check?within_ms=10000");
    assert_eq!(found, said["findings"].as_array().map_or(0, Vec::len), "{said}");
    // What is written is kept on other pages, and where somebody signs out.
    sign_in_well(&mut browser);
    wait_until_looked_at(&mut browser);
    line_first(&mut browser, POSTS);
    for page in ["live", "rules"] {
        browser.evaluate(&format!("location.hash = '#/{page}'"));
        browser.wait_until(&format!("document.title.toLowerCase().startsWith('{page}')"));
    }
    browser.wait_until("!!document.querySelector('.editor')");
    assert_eq!(written(&mut browser).lines().next(), Some(POSTS));
    // The browser asks before the tab goes, and with it what was written.
    let asks = "(() => { const going = new Event('beforeunload', { cancelable: true }); dispatchEvent(going); \
                return going.defaultPrevented; })()";
    assert_eq!(browser.evaluate(asks), true);
    // In the middle of the steps it ends them, and nobody is offered to publish.
    press_button(&mut browser, "Publish…");
    press_button(&mut browser, "Dry-run");
    browser.wait_until("!!document.querySelector('.dry-run[data-state=running]')");
    click(&mut browser, ".who button");
    browser.wait_until(&format!(
        "!!document.querySelector('.editor') && !document.querySelector('.publish') && !!{FROZEN}"
    ));
    assert_eq!(written(&mut browser).lines().next(), Some(POSTS));
    until("the end of the dry-run", || {
        (shop.switch.admin_shows("/api/v1/dry-run")["state"] == "ended").then_some(())
    });
    sign_in_well(&mut browser);
    browser.wait_until(&format!("!!document.querySelector('.editor') && !{FROZEN}"));
    assert_eq!(written(&mut browser).lines().next(), Some(POSTS));
    assert_eq!(browser.complaints(), [""; 0]);
}

/// By the keyboard alone: Tab indents, and Escape lets it out.
#[test]
fn the_editor_is_no_trap() {
    let shop = Shop::start();
    let Some(mut browser) = open(&shop) else { return };
    let said =
        browser.evaluate(&format!("{EDITOR}.querySelector('.cm-content').getAttribute('aria-description')"));
    assert!(said.to_string().contains("press Esc, then Tab, to leave"), "who does not see is told: {said}");
    type_first(&mut browser, "");
    browser.press("Tab", 9);
    browser.wait_until(&format!("{EDITOR}.querySelector('.cm-line').textContent.startsWith('    api')"));
    browser.press("Escape", 27);
    browser.press("Tab", 9);
    browser.wait_until("!document.activeElement.classList.contains('editor')");
    assert_eq!(browser.complaints(), [""; 0]);
}

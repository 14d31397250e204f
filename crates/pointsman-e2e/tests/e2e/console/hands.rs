//! The page Rules where one person goes and another one comes, and where others are at work.

use pointsman_e2e::{ADMIN_TOKEN, Origin, Setup, until};

use super::rules::{
    EDITOR, IS_SERVED, POSTS, line_first, open, press_button, type_first, wait_until_looked_at, written,
};
use super::unsure::{IS_RUNNING, ask_by, begin_another, in_steps, wait_for_asks};
use super::{Shop, click, sign_in, sign_in_well};

/// Who signs out on another page leaves nothing for who signs in next to go on with; what they wrote is kept.
#[test]
fn signing_out_ends_what_is_not_shown() {
    let shop = Shop::start();
    let Some(mut browser) = open(&shop) else { return };
    line_first(&mut browser, POSTS);
    browser.wait_until("!!document.querySelector('.findings [data-code=conflict]')");
    press_button(&mut browser, "Publish…");
    press_button(&mut browser, "Dry-run");
    browser.wait_until(IS_RUNNING);
    browser.evaluate("location.hash = '#/live'");
    browser.wait_until("!document.querySelector('.publish')");
    click(&mut browser, ".who button");
    until("the end of the dry-run", || {
        (shop.switch.admin_shows("/api/v1/dry-run")["ended_by"] == "told").then_some(())
    });
    browser.evaluate("location.hash = '#/rules'");
    browser.wait_until("!!document.querySelector('.editor')");
    // Who may only look is told nothing of it.
    let findings = browser.evaluate("document.querySelectorAll('.findings > li').length");
    let said = browser.evaluate("document.querySelector('#findings + [role=status]').textContent");
    assert_eq!((findings, said), (0.into(), "".into()));
    sign_in_well(&mut browser);
    browser.wait_until("!!document.querySelector('.findings [data-code=conflict]')");
    assert_eq!(browser.evaluate("!!document.querySelector('.publish')"), false);
    assert_eq!(written(&mut browser).lines().next(), Some(POSTS));
    assert_eq!(browser.complaints(), [""; 0]);
}

/// Whose token is taken away goes on with another one, and with what they have written.
#[test]
fn another_token_goes_on() {
    let shop = Shop::start();
    let Some(mut browser) = open(&shop) else { return };
    line_first(&mut browser, POSTS);
    let other = ADMIN_TOKEN.replace('8', "9");
    std::fs::write(shop.switch.folder().join("admin.token"), format!("other {other}\n"))
        .expect("a writable folder");
    shop.switch.signal("HUP");
    browser.wait_until(
        "document.querySelector('.who')?.textContent.startsWith('your token is no longer known')",
    );
    sign_in(&mut browser, &other);
    browser.wait_until("document.querySelector('.who')?.textContent.includes('other may change')");
    assert_eq!(written(&mut browser).lines().next(), Some(POSTS));
    press_button(&mut browser, "Publish…");
    press_button(&mut browser, "Publish");
    browser.wait_until(&format!("!document.querySelector('.publish') && {IS_SERVED}"));
    // Who goes on by the keyboard goes on from the editor.
    browser.wait_until("document.activeElement.id === 'editor-title'");
    let complaints = browser.complaints();
    assert!(complaints.iter().all(|complaint| complaint.contains("401")), "{complaints:?}");
}

/// What was answered to who has signed out moves nothing of who came next.
#[test]
fn late_answers_are_nobodys() {
    let shop = Shop::start();
    let Some(mut browser) = open(&shop) else { return };
    ask_by(
        &mut browser,
        "async (ask, path, options) => { const answer = await ask(path, options); \
         if (window.isAway && (path.includes('rules/format') || (options.method === 'PUT' && !path.includes('dry_run')))) \
           await new Promise((come) => { window.come = come; }); \
         return answer; }",
    );
    line_first(&mut browser, "posts:   { routeTo(standard); }");
    let written_then = written(&mut browser);
    press_button(&mut browser, "Format");
    browser.wait_until("!!window.come");
    click(&mut browser, ".who button");
    browser.wait_until("document.querySelector('.who')?.textContent.includes('you may look')");
    browser.evaluate("window.come(); window.come = null");
    sign_in_well(&mut browser);
    assert_eq!(written(&mut browser), written_then);
    press_button(&mut browser, "Publish…");
    press_button(&mut browser, "Publish");
    browser.wait_until("!!window.come");
    click(&mut browser, ".who button");
    sign_in_well(&mut browser);
    browser.evaluate("window.isAway = false");
    // It serves, and stands there: it is no other one.
    browser.wait_until(IS_SERVED);
    type_first(&mut browser, "# mine");
    press_button(&mut browser, "Publish…");
    browser.wait_until("!!document.querySelector('.difference')");
    browser.evaluate("window.come()");
    browser.evaluate("new Promise((pass) => setTimeout(pass, 50))");
    assert_eq!(
        browser.evaluate("!!document.querySelector('.publish') && !document.querySelector('.newer')"),
        true
    );
    assert_eq!(browser.evaluate("document.querySelector('.notice').textContent"), "");
}

/// Who may only look is shown what serves, also behind somebody who had something of their own.
#[test]
fn what_serves_is_shown_to_who_comes_next() {
    let shop = Shop::start();
    let Some(mut browser) = open(&shop) else { return };
    line_first(&mut browser, POSTS);
    super::rules::publish(&shop.switch, "theirs: { routeTo(fast); }\n", "");
    browser.wait_until("!!document.querySelector('.newer')");
    press_button(&mut browser, "Take back");
    click(&mut browser, ".who button");
    browser.wait_until(&format!(
        "!!document.querySelector('.editor') && !document.querySelector('.newer') \
         && {EDITOR}.querySelector('.cm-line').textContent.startsWith('theirs')"
    ));
    browser.wait_until("document.querySelector('#findings + [role=status]').textContent === 'none'");
    // What stands there is what somebody else has published: it is no other one.
    sign_in_well(&mut browser);
    line_first(&mut browser, POSTS);
    let written = written(&mut browser);
    super::rules::publish(&shop.switch, &written, "");
    browser.wait_until(IS_SERVED);
    assert_eq!(browser.evaluate("!!document.querySelector('.newer')"), false);
    assert_eq!(browser.complaints(), [""; 0]);
}

/// What is found in the rules of several listeners is asked for one by one, and comes.
#[test]
fn several_listeners_are_looked_at() {
    let server = Origin::new("server1");
    let rules =
        "all: if (path under \"/\") { routeTo(standard); }\napi: if (path under \"/api\") { reject(403); }\n";
    let setup = Setup::new(2).rules(rules).with_token().pool("standard", &[&server]);
    let switch = setup.another_listener("other").rules(rules).start();
    let Some(mut browser) = super::open(switch.admin(), "#/rules") else { return };
    let choose = |name: &str| {
        format!(
            "(() => {{ const chosen = document.querySelector('#listener'); chosen.value = '{name}'; \
             chosen.dispatchEvent(new Event('change', {{ bubbles: true }})); }})()"
        )
    };
    let found = "!!document.querySelector('.findings [data-code=unreachable]')";
    for name in ["shop", "other"] {
        browser.wait_until("!!document.querySelector('#listener')");
        browser.evaluate(&choose(name));
        browser.wait_until(&format!(
            "document.querySelector('#editor-title')?.textContent === '{name}' && {found}"
        ));
    }
    for _ in 0..2 {
        sign_in_well(&mut browser);
        for name in ["shop", "other"] {
            browser.evaluate(&choose(name));
            browser.wait_until(&format!(
                "document.querySelector('#editor-title')?.textContent === '{name}' && {found}"
            ));
            wait_until_looked_at(&mut browser);
        }
        click(&mut browser, ".who button");
        browser.wait_until(&format!(
            "document.querySelector('.who')?.textContent.includes('you may look') && {found}"
        ));
    }
    assert_eq!(browser.complaints(), [""; 0]);
}

/// A dry-run that has begun though nobody was told so is found, and ends with who began it.
#[test]
fn a_dry_run_is_known_by_its_id() {
    let shop = Shop::start();
    let Some(mut browser) = in_steps(&shop) else { return };
    ask_by(
        &mut browser,
        "async (ask, path, options) => { if (window.isCut) throw new TypeError('away'); \
         const answer = await ask(path, options); \
         if (!path.includes('rules/dry-run')) return answer; \
         if (window.isAway) { window.isCut = true; throw new TypeError('lost'); } \
         return new Promise((come) => { window.come = () => come(answer); }); }",
    );
    press_button(&mut browser, "Dry-run");
    browser.wait_until(
        "window.isCut && document.querySelector('.publish .said').textContent.includes('not known')",
    );
    // Who presses again while nothing gets there loses the first one not.
    press_button(&mut browser, "Dry-run");
    browser.evaluate("window.isCut = false");
    browser.wait_until(&format!("{IS_RUNNING} && !document.querySelector('.publish .said').textContent"));
    press_button(&mut browser, "Stop");
    browser.wait_until("document.querySelector('.dry-run').dataset.state === 'ended'");
    let ended_by = |n: u32| {
        until("its end", || {
            let said = shop.switch.admin_shows("/api/v1/dry-run");
            (said["n"] == n && said["state"] == "ended").then(|| said["ended_by"].clone())
        })
    };
    // Its answer is on its way when the page goes, and when somebody signs out.
    browser.evaluate("window.isAway = false");
    press_button(&mut browser, "Dry-run again");
    browser.wait_until("!!window.come");
    browser.evaluate("dispatchEvent(new Event('pagehide'))");
    assert_eq!(ended_by(2), "told");
    browser.evaluate("window.come(); window.come = null");
    press_button(&mut browser, "Dry-run again");
    browser.wait_until("!!window.come");
    click(&mut browser, ".who button");
    assert_eq!(ended_by(3), "told");
}

/// Who goes back while the switch is not there has it ended all the same, and that of others is shown and can be ended.
#[test]
fn a_dry_run_that_is_in_the_way() {
    let shop = Shop::start();
    let Some(mut browser) = in_steps(&shop) else { return };
    ask_by(
        &mut browser,
        "async (ask, path, options) => { if (window.isCut) throw new TypeError('away'); return ask(path, options); }",
    );
    press_button(&mut browser, "Dry-run");
    browser.wait_until(IS_RUNNING);
    browser.evaluate("window.isCut = true");
    press_button(&mut browser, "Back to the editor");
    browser.wait_until("!document.querySelector('.publish')");
    browser.evaluate("window.isCut = false");
    let state = || shop.switch.admin_shows("/api/v1/dry-run")["state"].clone();
    until("its end", || (state() == "ended").then_some(()));
    begin_another(&shop.switch, 2);
    press_button(&mut browser, "Publish…");
    press_button(&mut browser, "Dry-run");
    browser.wait_until("document.querySelector('.publish').textContent.includes('That of deploy goes on, of rules for shop')");
    press_button(&mut browser, "End it");
    until("its end", || (state() == "ended").then_some(()));
    press_button(&mut browser, "Dry-run");
    browser.wait_until(IS_RUNNING);
    // Why it is not published stays, while the dry-run is looked at.
    std::fs::write(shop.switch.folder().join("shop.rules"), "else: reject(404);").expect("a writable folder");
    press_button(&mut browser, "Publish");
    let is_said = "document.querySelector('.publish .said').textContent.includes('has changed since')";
    browser.wait_until(is_said);
    wait_for_asks(&mut browser, "/dry-run", 2);
    assert_eq!(browser.evaluate(is_said), true);
    // A browser notes each answer that is a refusal.
    let complaints = browser.complaints();
    assert!(complaints.iter().all(|complaint| complaint.contains("409")), "{complaints:?}");
    assert!(browser.evaluate(&format!("!!{EDITOR}")).as_bool().is_some_and(|is_there| is_there));
}

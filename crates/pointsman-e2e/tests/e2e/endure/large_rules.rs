//! Thousands of rules in the console's editor: what is typed stands there at once, and what is wrong with it is soon told.

use std::fmt::Write;

use pointsman_e2e::{Bound, Browser, Origin, Setup, Unit, figure, scale};
use serde_json::Value;

use crate::console::rules::{EDITOR, wait_until_looked_at};
use crate::console::sign_in_well;

/// From a key until what it wrote is drawn.
const KEY_MS_MAX: u64 = 50;
/// From the last key until what is found is drawn.
const FOUND_MS_MAX: u64 = 1_000;
/// A rule that conflicts with one of the others.
const TYPED: &str = "fresh: if (path under \"/7\" && method == \"POST\") { routeTo(b); }";

/// Notes how long each key took until the frame with it was there.
const LISTENER: &str = "(() => {
    window.keys = [];
    EDITOR.addEventListener('keydown', () => {
        const began = performance.now();
        window.pressed = began;
        requestAnimationFrame(() => {
            const drawn = new MessageChannel();
            drawn.port1.onmessage = () => window.keys.push(performance.now() - began);
            drawn.port2.postMessage(null);
        });
    }, true);
})()";

#[test]
fn typing() {
    let count = scale(300, 5_000);
    let servers = ["sa", "sb"].map(Origin::new);
    let setup = Setup::new(2).rules(&rules(count)).with_token();
    let switch = setup.pool("a", &[&servers[0]]).pool("b", &[&servers[1]]).start();
    let Some(mut browser) = Browser::start(1280, 900) else { return };
    browser.visit(switch.admin(), "/console/#/rules");
    browser.wait_until("!!document.querySelector('.editor')");
    sign_in_well(&mut browser);
    wait_until_looked_at(&mut browser);
    browser.evaluate(&LISTENER.replace("EDITOR", EDITOR));
    browser.evaluate(&format!("{EDITOR}.querySelector('.cm-content').focus()"));
    browser.press("Enter", 13);
    browser.press("ArrowUp", 38);
    // The editor closes brackets and texts by itself, and takes those that are typed behind.
    for (at, letter) in TYPED.chars().enumerate() {
        browser.press(&letter.to_string(), 0);
        browser.wait_until(&format!("window.keys.length >= {}", at + 3));
    }
    let found = browser.evaluate(
        "new Promise(done => {
            const look = () => {
                const found = [...document.querySelectorAll('.findings [data-code=conflict]')];
                if (found.some(one => one.textContent.includes('fresh'))) done(performance.now() - window.pressed);
                else requestAnimationFrame(look);
            };
            look();
        })",
    );
    let first = browser.evaluate(&format!("{EDITOR}.querySelector('.cm-line').textContent"));
    assert_eq!(first, TYPED);
    assert_eq!(browser.complaints(), [""; 0]);
    // How long it takes is told of the release binary alone.
    if scale(false, true) {
        tell_times(&format!("{count} rules in the editor"), &times(&mut browser), found.as_f64());
    }
}

/// Of each key, the quickest first.
fn times(browser: &mut Browser) -> Vec<u64> {
    let times = browser.evaluate("window.keys.map(Math.ceil).sort((a, b) => a - b)");
    times.as_array().expect("times").iter().filter_map(Value::as_u64).collect()
}

fn tell_times(fault: &str, keys: &[u64], found: Option<f64>) {
    let at = |percent: usize| keys[keys.len() * percent / 100];
    let key = Bound::AtMost(KEY_MS_MAX);
    figure(fault, at(50), Unit::Count("ms from a key to its frame, half of them"), key);
    figure(fault, at(95), Unit::Count("ms from a key to its frame, 95 % of them"), key);
    let found = found.expect("a time").ceil() as u64;
    figure(fault, found, Unit::Count("ms from the last key to what is found"), Bound::AtMost(FOUND_MS_MAX));
}

/// As many as there are customers, each with a place of its own.
fn rules(count: usize) -> String {
    let mut text = String::new();
    for n in 0..count {
        writeln!(text, "R{n}: if (host == \"h{n}.example\" && path under \"/{n}\") {{ routeTo(a); }}")
            .expect("a string");
    }
    text + "else: routeTo(b);\n"
}

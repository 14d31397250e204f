//! `pointsman top`: what the running switch does now.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use pointsman_e2e::{
    Finished, Lines, Origin, SetOnDrop, Setup, Switch, ends, folder, installed, program, until,
};
use serde_json::Value;

pointsman_e2e::for_threads!(
    a_second_for_people,
    a_second_for_programs,
    an_object_each_second,
    a_screen,
    what_is_no_screen,
    who_cannot_be_asked
);

const RULES: &str =
    "R1: if (path under \"/gold\") { routeTo(fast); }\nR2: if (path == \"/no\") { reject(403, \"no\"); }";
const PROBED: &str = "health = { kind = \"tcp\", interval_ms = 100, timeout_ms = 100, rise = 1, fall = 1 }";

/// A switch before a server that answers and one that is not there.
fn start(threads: usize, fast: &Origin) -> Switch {
    let dead = [("gone", Origin::free_address())];
    let setup = Setup::new(threads).rules(RULES).pool("standard", &[fast]).pool("fast", &[fast]);
    let switch = setup.pool_at("dead", PROBED, &dead).with_token().start();
    switch.wait_for_line("server down pool=dead server=gone");
    switch
}

/// The command and its answer, while clients ask for this and that.
fn while_busy(switch: &Switch, words: &[&str]) -> Finished {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _over = SetOnDrop(&is_over);
        scope.spawn(|| {
            let mut client = switch.client();
            while !is_over.load(Ordering::Relaxed) {
                assert_eq!(client.get("/gold").status(), 200);
                assert_eq!(client.get("/no").status(), 403);
            }
        });
        ends(switch.folder(), &[&["top"], words].concat(), 0, &[])
    })
}

fn a_second_for_people(threads: usize) {
    let fast = Origin::new("server1");
    let switch = start(threads, &fast);
    let text = while_busy(&switch, &["--once"]).stdout;
    let line = |start: &str| {
        let line = text
            .lines()
            .find(|line| line.split_whitespace().collect::<Vec<_>>().join(" ").starts_with(start));
        line.unwrap_or_else(|| panic!("`{start}` is missing in:\n{text}"))
    };
    assert!(line("pointsman ").contains("generation 1 "), "{text}");
    assert!(line("errors").contains("refusal rule "), "{text}");
    line("dead gone down");
    line("fast server1 up");
    // What is hit stands before what is not.
    let rules: Vec<_> = text.lines().skip_while(|line| !line.contains("RULE")).skip(1).collect();
    assert!(rules[0].contains("R1") || rules[0].contains("R2"), "{text}");
    let has_times = |line: &str| line.contains(" us ") || line.contains(" ms ");
    assert!(has_times(rules[0]) && has_times(line("fast server1 up")), "{text}");
    assert!(!text.contains('\x1b'), "{text}");
}

fn a_second_for_programs(threads: usize) {
    let fast = Origin::new("server1");
    let switch = start(threads, &fast);
    let text = while_busy(&switch, &["--once", "--json"]).stdout;
    let view: Value = serde_json::from_str(&text).expect("JSON");
    let positive = |value: &Value| value.as_f64().is_some_and(|value| value > 0.0);
    assert_eq!((&view["version"], &view["generation"]), (&1.into(), &1.into()), "{text}");
    let all = &view["all"];
    for figure in ["requests_per_second", "p50_seconds", "p99_seconds", "received_bytes_per_second"] {
        assert!(positive(&all[figure]), "{figure} in {text}");
    }
    for class in ["2xx", "4xx"] {
        assert!(positive(&all["status_per_second"][class]), "{class} in {text}");
    }
    assert_eq!(all["status_per_second"]["5xx"], 0.0, "{text}");
    assert_eq!(view["listeners"][0]["name"], "shop", "{text}");
    assert!(positive(&view["listeners"][0]["connections_open"]), "{text}");
    assert!(positive(&view["uptime_seconds"]) && positive(&view["interval_seconds"]), "{text}");
    let find = |list: &str, key: &str, name: &str| {
        let found = view[list].as_array().and_then(|rows| rows.iter().find(|row| row[key] == name));
        found.unwrap_or_else(|| panic!("{name} is missing in {text}")).clone()
    };
    for (rule, class) in [("R1", "2xx"), ("R2", "4xx")] {
        let rule = find("rules", "rule", rule);
        for figure in ["hits_per_second", "p50_seconds", "p99_seconds"] {
            assert!(positive(&rule[figure]), "{figure} in {text}");
        }
        assert!(positive(&rule["status_per_second"][class]), "{class} in {text}");
    }
    assert!(positive(&find("errors", "reason", "rule")["per_second"]), "{text}");
    assert_eq!(find("servers", "pool", "dead")["state"], "down");
    let server = find("servers", "pool", "fast");
    assert!(positive(&server["p50_seconds"]) && positive(&server["p99_seconds"]), "{text}");
    assert_eq!(find("servers", "pool", "dead")["p99_seconds"], Value::Null, "{text}");
    assert_eq!((&server["state"], positive(&server["requests_per_second"])), (&"up".into(), true));
}

/// It goes on until nobody reads it.
fn an_object_each_second(threads: usize) {
    let fast = Origin::new("server1");
    let switch = start(threads, &fast);
    let mut command = Command::new(program());
    command.args(["top", "--json"]).current_dir(switch.folder()).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("the binary starts");
    let lines = Lines::of(child.stdout.take().expect("piped"));
    let all = until("two objects", || Some(lines.all()).filter(|all| all.len() >= 2));
    child.kill().expect("it is ours");
    child.wait().expect("it is ours");
    for line in &all {
        let view: Value = serde_json::from_str(line).expect("an object a line");
        assert!(view["all"]["requests_per_second"].is_f64(), "{line}");
    }
}

/// The command on a terminal of this kind, and what it wrote until it has ended by a `q`.
fn on_a_terminal(switch: &Switch, kind: &str, end: &[u8], wanted: &[&str]) -> Option<String> {
    if !installed("script") {
        return None;
    }
    // Who runs the tests in the background lets them ignore what ^C sends.
    let line = format!("stty rows 12 cols 50; env --default-signal=INT {} top; stty -a", program().display());
    let mut command = Command::new("script");
    command.args(["--quiet", "--return", "--flush", "--command", &line, "/dev/null"]);
    command.env("TERM", kind).env_remove("NO_COLOR").current_dir(switch.folder());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().expect("it is installed");
    let mut keys = child.stdin.take().expect("piped");
    let lines = Lines::of(child.stdout.take().expect("piped"));
    for wanted in wanted {
        lines.wait_for(wanted, |line| line.contains(wanted).then_some(()));
    }
    keys.write_all(end).expect("the terminal is there");
    assert!(lines.wait_for_end(), "it does not end:\n{}", lines.text());
    child.wait().expect("it is ours");
    Some(lines.text())
}

/// It fits, it moves, and the terminal is afterwards as it was.
fn a_screen(threads: usize) {
    let fast = Origin::new("server1");
    let switch = start(threads, &fast);
    let Some(text) = on_a_terminal(&switch, "xterm", b"q", &["requests", "errors"]) else { return };
    let (_, shown) = text.split_once("\x1b[?1049h").expect("another screen");
    let (shown, rest) = shown.split_once("\x1b[?1049l").expect("the screen that was there");
    // A screen has no more lines than there is room, so the rules at the end wait to be moved to.
    assert!(shown.contains("LISTENER") && !shown.contains("RULE"), "{text:?}");
    for mode in ["icanon", "echo", "isig"] {
        assert!(rest.split_whitespace().any(|word| word == mode), "{mode} in {rest}");
    }
    assert!(rest.contains("rows 12; columns 50"), "{rest}");
}

/// A terminal that cannot move its cursor gets views one after the other, without colours.
fn what_is_no_screen(threads: usize) {
    let fast = Origin::new("server1");
    let switch = start(threads, &fast);
    let wanted = ["requests", "RULE"];
    let Some(text) = on_a_terminal(&switch, "dumb", b"\x03", &wanted) else { return };
    assert!(!text.contains("\x1b[?") && !text.contains("\x1b[H"), "{text:?}");
}

fn who_cannot_be_asked(threads: usize) {
    let origin = Origin::new("origin");
    let check = |admin: &str, code, said: &[&str]| {
        let files = [("pointsman.toml", admin)];
        ends(folder(&files).path(), &["top", "--once"], code, said);
    };
    check("", 2, &["`pointsman.toml` has no `[admin]`", "help: "]);
    let admin = |address| format!("[admin]\nbind = \"{address}\"\ntoken_file = \"not.there\"");
    check(&admin(Origin::free_address()), 2, &["cannot be asked", "refused", "help: "]);
    check(&admin(origin.address()), 2, &["is no switch", "help: "]);
    ends(folder(&[]).path(), &["top"], 2, &["cannot read `pointsman.toml`", "--config FILE"]);
    // Whoever may not read the tokens may look.
    let switch = Setup::new(threads).pool("standard", &[&origin]).with_token().start();
    check(&admin(switch.admin()), 0, &["requests "]);
}

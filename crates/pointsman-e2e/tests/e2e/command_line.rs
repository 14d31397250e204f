//! `check`, `fmt`, the demo and wrong use: what they print and how they end.

use std::path::Path;
use std::process::{Command, Stdio};

use pointsman_e2e::{Client, Lines, Origin, Setup, ends, folder, kill, pointsman, program, until};

const GOOD: &str = "R1: if (path under \"/a\") { routeTo(fast); }\nelse: routeTo(standard);\n";
const BAD: &str = "R1: if (pth == \"/\") { routeTo(fast); }\nR2: { goto R1; }\n";
const OLD: &str = "If (match(url, “xmlprocess.pl”)) { return route_to(\"fast\", NONSTICKY); } # why\n";

/// Rules alone: targets are taken as given.
#[test]
fn check_rules() {
    let folder = folder(&[("good.rules", GOOD), ("bad.rules", BAD)]);
    ends(folder.path(), &["check", "good.rules"], 0, &[]);
    ends(folder.path(), &["check", "bad.rules"], 1, &["bad.rules", "pth", "path", "^", "goto", "R1"]);
    ends(folder.path(), &["check", "good.rules", "bad.rules"], 1, &["bad.rules"]);
    ends(folder.path(), &["check", "absent.rules"], 2, &["absent.rules"]);
    ends(folder.path(), &["check"], 2, &[]);
}

/// What is not settled in the time that there is is unknown, and never fine where it was to be proved.
#[test]
fn check_in_time() {
    let rules = "R1: if (path under \"/a\") { routeTo(a); }\nR2: if (path == \"/a/b\") { routeTo(b); }\n";
    let asserted = "assert \"none\": never (path == \"/a/b\") -> b;\n";
    let folder = folder(&[("a.rules", rules), ("b.rules", &format!("{rules}{asserted}"))]);
    let unreachable = &["no request that gets to `R2` makes its condition true"];
    ends(folder.path(), &["check", "--within", "1h", "a.rules"], 1, unreachable);
    let late = ["note: it is unknown whether", "help: the time for it was over"];
    ends(folder.path(), &["check", "--within", "0s", "a.rules"], 0, &late);
    ends(folder.path(), &["check", "--within", "0s", "--fail-on", "note", "a.rules"], 1, &late);
    let unproved = ["warning: it is unknown whether the assertion `none` holds", "0 of 1 assertion proved"];
    ends(folder.path(), &["check", "--within", "0s", "b.rules"], 1, &unproved);
    let json = ends(folder.path(), &["check", "--within", "0s", "--json", "a.rules"], 0, &[]);
    let json: serde_json::Value = serde_json::from_str(&json.stdout).expect("JSON");
    assert_eq!(json["findings"][0]["reasons"][0]["kind"], "time", "{json}");
    ends(folder.path(), &["check", "--within", "soon", "a.rules"], 2, &["a time is a number with a unit"]);
}

/// Of what rules mean, only what is about one of them.
#[test]
fn check_of_one_rule() {
    let rules = "R1: if (path under \"/a\") { routeTo(a); }
R2: if (method == \"PUT\") { routeTo(b); }
R3: if (path under \"/a/b\") { routeTo(c); }
R4: { routeTo(d); }\n";
    let folder = folder(&[("a.rules", rules), ("bad.rules", BAD)]);
    let (conflict, unreachable) = ("`R2` would do something else", "makes its condition true");
    for (label, [conflicts, is_hidden]) in
        [("R2", [true, false]), ("R3", [false, true]), ("R4", [false, false])]
    {
        let finished = pointsman(folder.path(), &["check", "--rule", label, "a.rules"]);
        let told = [conflict, unreachable].map(|word| finished.stdout.contains(word));
        assert_eq!(told, [conflicts, is_hidden], "{label}\n{}", finished.output());
        assert_eq!(finished.code, i32::from(conflicts || is_hidden), "{label}\n{}", finished.output());
    }
    ends(folder.path(), &["check", "--rule", "R2", "--rule", "R3", "a.rules"], 1, &[conflict, unreachable]);
    ends(
        folder.path(),
        &["check", "--rule", "R22", "a.rules"],
        2,
        &["error: no rule `R22`; did you mean `R2`?"],
    );
    ends(folder.path(), &["check", "--rule", "R2", "bad.rules"], 1, &["pth"]);
    let no_else = &["error: no rule `else`"];
    ends(folder.path(), &["check", "--rule", "else", "a.rules"], 2, no_else);
    let with_else = rules.replace("R4: { routeTo(d); }", "else: routeTo(d);");
    std::fs::write(folder.path().join("b.rules"), with_else).expect("a writable folder");
    let finished = pointsman(folder.path(), &["check", "--rule", "else", "b.rules"]);
    assert!(finished.stdout.contains("only the final `else` takes this request"), "{}", finished.output());
    assert!(!finished.stdout.contains(conflict), "{}", finished.output());
    assert_eq!(finished.code, 0, "{}", finished.output());
}

/// A warning is a finding, unless only errors count.
#[test]
fn check_warnings() {
    let folder =
        folder(&[("warns.rules", "R1: if (url == \"*jpg\") { routeTo(images); }\nelse: routeTo(a);\n")]);
    ends(folder.path(), &["check", "warns.rules"], 1, &["like", "^"]);
    ends(folder.path(), &["check", "--fail-on", "error", "warns.rules"], 0, &["like"]);
}

#[test]
fn check_json() {
    let folder = folder(&[("good.rules", GOOD), ("bad.rules", BAD)]);
    let fine = ends(folder.path(), &["check", "--json", "good.rules"], 0, &[]);
    let fine: serde_json::Value = serde_json::from_str(&fine.stdout).expect("JSON");
    assert_eq!(fine["version"], 1);
    let gap = &fine["findings"][0];
    assert_eq!((fine["findings"].as_array().map(Vec::len), &gap["code"]), (Some(1), &"gap".into()), "{fine}");
    assert_eq!((&gap["severity"], &gap["rule"]), (&"note".into(), &"else".into()), "{fine}");
    let request = gap["witness"]["request"].as_str().expect("a text");
    assert!(request.starts_with("GET / HTTP/1.1\n"), "{request}");
    let bad = ends(folder.path(), &["check", "--json", "bad.rules"], 1, &[]);
    let bad: serde_json::Value = serde_json::from_str(&bad.stdout).expect("JSON");
    let findings = bad["findings"].as_array().expect("a list");
    assert_eq!(findings.len(), 2, "{bad}");
    for finding in findings {
        assert_eq!(finding["severity"], "error", "{finding}");
        assert!(finding["message"].is_string() && !finding["span"].is_null(), "{finding}");
    }
}

/// What rules mean together: what is never reached, and because of whom, and what is in conflict with what.
#[test]
fn check_meaning() {
    let rules = r#"R1: if (path under "/a") { routeTo(a); }
R2: if (path == "/a/b" && method == "POST") { routeTo(b); }
R3: if (method == "GET") { routeTo(c); }
else: routeTo(d);
"#;
    let folder = folder(&[("all.rules", rules)]);
    let said = [
        "warning: no request that gets to `R2` makes its condition true",
        "help: `R1` leaves none that does",
        "warning: `R3` would do something else with some requests that `R1` takes",
        "`allow conflict(R1)` says that it is meant",
        "GET /a HTTP/1.1",
        "note: only the final `else` takes this request",
        "POST / HTTP/1.1",
        "2 warnings, 1 note in 1 file",
    ];
    ends(folder.path(), &["check", "all.rules"], 1, &said);
    let json = ends(folder.path(), &["check", "--json", "all.rules"], 1, &[]);
    let json: serde_json::Value = serde_json::from_str(&json.stdout).expect("JSON");
    let findings = json["findings"].as_array().expect("a list");
    let codes: Vec<_> = findings.iter().map(|finding| (&finding["code"], &finding["rule"])).collect();
    let words = |code: &str, rule: &str| (serde_json::json!(code), serde_json::json!(rule));
    let expected = [words("unreachable", "R2"), words("gap", "else"), words("conflict", "R3")];
    assert_eq!(codes, expected.iter().map(|(code, rule)| (code, rule)).collect::<Vec<_>>(), "{json}");
    assert_eq!(findings[0]["others"], serde_json::json!(["R1"]));
}

/// What rules cost of a body is said of those that look into one, for people and for programs.
#[test]
fn check_costs() {
    let rules = "R1: if (xml.order/total > 5) { routeTo(standard); }\nR2: if (path == \"/\") { allow conflict(R1); reject(); }\n";
    let folder = folder(&[("good.rules", GOOD), ("body.rules", rules)]);
    let said = [
        "body.rules: what is read of a body when a rule decides\n  R1: up to a value of `xml.order/total` that fits",
        "  R2, no rule: the whole body, because R1 is false only when no value of `xml.order/total` fits",
    ];
    ends(folder.path(), &["check", "good.rules", "body.rules"], 0, &said);
    let quiet = ends(folder.path(), &["check", "good.rules"], 0, &[]);
    assert!(!quiet.output().contains("is read"), "{}", quiet.output());
    let json = ends(folder.path(), &["check", "--json", "good.rules", "body.rules"], 0, &[]);
    let json: serde_json::Value = serde_json::from_str(&json.stdout).expect("JSON");
    let costs = json["body_costs"].as_array().expect("a list");
    assert_eq!((costs.len(), &costs[0]["file"]), (1, &"body.rules".into()), "{json}");
    assert_eq!(costs[0]["groups"][1]["rules"], serde_json::json!(["R2", "no rule"]));
    assert_eq!(costs[0]["groups"][1]["latest"]["reach"], "body");

    let setup = Setup::new(1).pool_at("standard", "", &[("s", Origin::dead_address())]);
    setup.rules(rules).write(folder.path());
    ends(
        folder.path(),
        &["check", "pointsman.toml"],
        0,
        &["shop.rules: what is read of a body when a rule decides"],
    );
}

/// A whole configuration: its rules are read against its pools.
#[test]
fn check_configuration() {
    let setup = Setup::new(1).pool_at("standard", "", &[("s", Origin::dead_address())]);
    let folder = folder(&[]);
    setup.clone().rules("R1: { routeTo(standard); }").write(folder.path());
    ends(folder.path(), &["check", "pointsman.toml"], 0, &[]);
    setup.clone().rules("R1: { routeTo(standrd); }").write(folder.path());
    ends(folder.path(), &["check", "pointsman.toml"], 1, &["shop.rules", "standrd", "standard", "^"]);
    setup.top("thread = 1").write(folder.path());
    ends(folder.path(), &["check", "pointsman.toml"], 1, &["thread", "threads", "^"]);
}

/// The formatter prints the modern form in place, keeps comments, and has nothing to do the second time.
#[test]
fn format() {
    let folder = folder(&[("old.rules", OLD)]);
    let read = || std::fs::read_to_string(folder.path().join("old.rules")).expect("it is there");
    ends(folder.path(), &["fmt", "--check", "old.rules"], 1, &["old.rules"]);
    assert_eq!(read(), OLD, "--check changes nothing");
    ends(folder.path(), &["fmt", "old.rules"], 0, &[]);
    let formatted = read();
    for word in ["if (", "url matches \"xmlprocess.pl\"", "routeTo(fast", "# why"] {
        assert!(formatted.contains(word), "`{word}` is missing in:\n{formatted}");
    }
    ends(folder.path(), &["fmt", "--check", "old.rules"], 0, &[]);
    ends(folder.path(), &["fmt", "old.rules"], 0, &[]);
    assert_eq!(read(), formatted);
}

/// What cannot be read is not formatted.
#[test]
fn format_bad() {
    let folder = folder(&[("bad.rules", "R1: if (path == { routeTo(a); }\n")]);
    let finished = pointsman(folder.path(), &["fmt", "bad.rules"]);
    assert_ne!(finished.code, 0);
    assert!(finished.stderr.contains('^'), "{}", finished.stderr);
    let left = std::fs::read_to_string(folder.path().join("bad.rules")).expect("it is there");
    assert_eq!(left, "R1: if (path == { routeTo(a); }\n");
    ends(folder.path(), &["fmt", "absent.rules"], 2, &["absent.rules"]);
}

/// Wrong use says what would be right.
#[test]
fn wrong_use() {
    let folder = folder(&[]);
    ends(folder.path(), &["rnu"], 2, &["no command `rnu`; did you mean `run`?", "--help"]);
    ends(folder.path(), &["format"], 2, &["did you mean `fmt`?"]);
    ends(folder.path(), &["run", "--confg", "x"], 2, &["no option `--confg`; did you mean `--config`?"]);
    ends(
        folder.path(),
        &["run", "-c"],
        2,
        &["`-c` needs a value", "`pointsman run --help` lists its options"],
    );
    ends(folder.path(), &["check", "--json=1", "a"], 2, &["`--json` takes no value, and `1` is one"]);
    let load = ["bench", "load", "http://127.0.0.1:1/", "--clients"];
    let help = "`pointsman bench load --help` lists its options";
    ends(folder.path(), &[&load[..], &["x"]].concat(), 2, &["`--clients` takes a number, not `x`", help]);
    ends(
        folder.path(),
        &[&load[..], &["1", "--close", "x"]].concat(),
        2,
        &["`--close` takes `fin` or `reset`"],
    );
    ends(folder.path(), &[], 2, &["run", "check", "fmt", "explain", "demo"]);
    ends(folder.path(), &["--help"], 0, &["run", "check", "fmt", "explain", "demo"]);
    ends(folder.path(), &["--version"], 0, &["pointsman", "0.1.0"]);
}

/// The demo sends requests through a switch of its own, and says which rule took each where.
#[test]
fn demo_once() {
    let folder = folder(&[]);
    let finished = ends(folder.path(), &["demo", "--once"], 0, &["TLS 1.3", "plain", "connected in"]);
    let row = |request: &str| {
        let row = finished.stdout.lines().find(|line| line.trim_start().starts_with(request));
        row.unwrap_or_else(|| panic!("no `{request}` in:\n{}", finished.stdout)).to_owned()
    };
    for (request, words) in [
        ("GET / ", &["else", "standard/server", "200"][..]),
        ("GET /logo.png", &["images", "images/server2", "200"]),
        ("GET /  cookie customer=gold", &["gold", "fast/server3", "200"]),
        ("POST /api/orders", &["api", "fast/server3", "200"]),
        ("GET /cart  cookie pm_route", &["cart", "standard/server", "200"]),
        ("GET /old/shelf", &["moved", "redirected", "308"]),
        ("POST /orders  XML, 60000", &["large", "fast/server3", "200"]),
        ("POST /orders  XML, 4000", &["else", "standard/server", "200"]),
        ("POST /orders  JSON, 52000.01", &["large", "fast/server3", "200"]),
        ("POST /v1/chat/completions  llama", &["llama", "llama/server4", "200"]),
        ("POST /v1/chat/completions  mistral", &["mistral", "mistral/server5", "200"]),
        ("GET /hello", &["hello", "answered here", "200"]),
        ("GET /  no user agent", &["robots", "refused here", "403"]),
        ("POST /orders  torn XML", &["large", "refused here", "400", "an end tag"]),
    ] {
        let row = row(request);
        assert!(words.iter().all(|word| row.contains(word)), "{words:?} in: {row}");
        let row = row.split("  XML: ").next().unwrap_or_default();
        assert!(row.ends_with("µs") || row.ends_with(" ms") || row.ends_with(" s"), "how long: {row}");
    }
    assert!(!finished.stdout.contains("curl"), "it does not stay up, so there is nothing to try");
    ends(folder.path(), &["demo", "--twice"], 2, &["--twice"]);
}

/// Without `--once` it stays up until it is told to end, and then leaves nothing behind.
#[test]
fn demo_stays_up() {
    let folder = folder(&[]);
    let mut command = Command::new(program());
    command.arg("demo").env("TMPDIR", folder.path());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the binary starts");
    let stdout = Lines::of(child.stdout.take().expect("piped"));
    let stderr = Lines::of(child.stderr.take().expect("piped"));
    let waited = std::panic::catch_unwind(|| {
        stdout.wait_for("the last line before it waits", |line| line.contains("Ctrl-C").then_some(()));
        watch_the_traffic(&stdout.text());
        pointsman_e2e::installed("curl").then(|| try_what_is_shown(&stdout.text()))
    });
    let goes_on = child.try_wait().expect("it is ours").is_none();
    let told = kill("TERM", child.id()).is_ok();
    if waited.is_err() || !told || !stdout.wait_for_end() {
        child.kill().expect("it is ours");
    }
    let status = child.wait().expect("it is ours");
    assert!(waited.is_ok() && goes_on && status.success(), "{}\n{}", stdout.text(), stderr.text());
    assert!(stdout.text().contains("curl --cacert "), "{}", stdout.text());
    let tried = waited.expect("looked at above");
    assert!(tried.is_none_or(|tried| tried.contains("server3 saw\nPOST /orders")));
    let (_, since) =
        stdout.text().split_once("Ctrl-C").map(|(a, b)| (a.to_owned(), b.to_owned())).expect("as above");
    assert!(!since.contains("/catalogue/"), "the lines of its own visitors are not shown:\n{since}");
    let left = std::fs::read_dir(folder.path()).expect("it is there").count();
    assert_eq!(left, 0, "the demo's folder is removed");
}

/// What the demo's own visitors leave in the console: on both listeners, by all rules, slow and broken ones too. Its token signs in.
fn watch_the_traffic(shown: &str) {
    let mut lines = shown.lines().map(str::trim);
    let address = lines.find_map(|line| line.strip_prefix("http://")?.strip_suffix("/console/"));
    let address = address.and_then(|address| address.parse().ok()).expect("it says where the console is");
    let token = lines.next().expect("and what signs in");
    let ask = |path: &str, lines: &str| -> serde_json::Value {
        let mut client = Client::plain(address);
        client.send(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{lines}\r\n"));
        serde_json::from_str(&client.response().text()).expect("JSON")
    };
    let access = ask("/api/v1/access", &format!("Authorization: Bearer {token}\r\n"));
    assert_eq!((&access["who"], &access["may"]), (&"demo".into(), &"change".into()));
    until("each rule of both listeners decides", || {
        let traffic = ask("/api/v1/traffic", "");
        let listeners = traffic["listeners"].as_array()?;
        let is_busy = |listener: &serde_json::Value| {
            let rules = listener["rules"].as_array().expect("rules");
            rules.iter().filter(|rule| rule["hits"].as_u64() > Some(0)).count() >= 10
        };
        (listeners.len() == 2 && listeners.iter().all(is_busy)).then_some(())
    });
}

/// What the lines print that the demo shows, pasted into a shell. All of them work.
fn try_what_is_shown(shown: &str) -> String {
    let lines: Vec<_> = shown.lines().filter(|line| line.starts_with("  curl ")).collect();
    assert!(lines.len() >= 8, "{shown}");
    let (_, explains) = shown.split_once(" explain ").expect("it says how to ask why");
    let files = explains.lines().next().expect("it goes on").split(' ');
    let explained = pointsman(Path::new("."), &["explain"].into_iter().chain(files).collect::<Vec<_>>());
    assert!(explained.stdout.contains("bytes of the body"), "{}", explained.output());
    let curls = Command::new("sh").args(["-e", "-c", &lines.join("\n")]).output().expect("a shell");
    assert!(curls.status.success(), "{}\n{}", lines.join("\n"), String::from_utf8_lossy(&curls.stderr));
    String::from_utf8_lossy(&curls.stdout).into_owned()
}

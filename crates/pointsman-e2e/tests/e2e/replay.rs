//! `pointsman replay`: what it says of logs, and how it ends.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use pointsman_e2e::{Client, Finished, Origin, Setup, pointsman, program, testdata};

/// Each folder: a log, rules, the words of the command in `args`, and in `out` what it says. `UPDATE_EXPECT=1` writes
/// what is said now.
#[test]
fn vectors() {
    let mut ran = 0;
    for entry in std::fs::read_dir(testdata("replay")).expect("a readable folder").flatten() {
        let folder = entry.path();
        let words = std::fs::read_to_string(folder.join("args")).expect("each folder has one");
        let words: Vec<_> = ["replay"].into_iter().chain(words.split_whitespace()).collect();
        let Finished { stdout, stderr, code, .. } = &pointsman(&folder, &words);
        let said = format!("{stdout}\n---- standard error\n{stderr}\n---- exit status {code}\n");
        assert!(!said.chars().any(|letter| letter.is_control() && letter != '\n'), "{said:?}");
        let expected = folder.join("out");
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            std::fs::write(&expected, said).expect("a writable folder");
        } else {
            let wanted = std::fs::read_to_string(&expected).unwrap_or_default();
            assert_eq!(said, wanted, "{}; UPDATE_EXPECT=1 rewrites it", folder.display());
        }
        ran += 1;
    }
    assert!(ran >= 18, "{ran} vectors");
}

#[test]
fn as_json() {
    let folder = testdata("replay/own-log");
    let words = ["replay", "access.log", "new.rules", "--json", "--samples", "1"];
    let finished = pointsman(&folder, &words);
    assert_eq!(finished.code, 1, "{}", finished.output());
    let report: serde_json::Value = serde_json::from_str(&finished.stdout).expect("JSON");
    let counts =
        ["decisions", "changed", "same", "other_rule", "untold", "refused", "undecided", "unreadable"];
    let counts: Vec<_> = counts.iter().map(|key| report[key].as_u64().expect("a number")).collect();
    assert_eq!(counts, [12, 4, 4, 1, 2, 1, 2, 1], "{report}");
    let changes = [serde_json::json!({
        "kind": "changed", "count": 2,
        "old": { "rule": "R1", "outcome": "api" }, "new": { "rule": "R1", "outcome": "next" },
        "samples": [{ "line": 3, "request": "GET shop.example/api/v2/x from 192.0.2.3" }],
    })];
    assert_eq!(report["groups"][0], changes[0], "{report}");
    let wanted = serde_json::json!([{ "what": "`header[\"x-key\"]`", "count": 2 }]);
    assert_eq!(report["not_written_down"], wanted, "{report}");
    assert_eq!(report["unreadable_lines"][0]["line"], 15, "{report}");
}

/// What a program says that is given its log on standard input.
fn piped(folder: &Path, words: &[&str], log: &[u8]) -> Finished {
    let mut command = Command::new(program());
    command
        .current_dir(folder)
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program is there");
    let mut input = child.stdin.take().expect("it is a pipe");
    std::thread::scope(|scope| {
        scope.spawn(move || input.write_all(log));
        let output = child.wait_with_output().expect("it ends");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
        let code = output.status.code().expect("nobody has killed it");
        Finished { code, stdout: text(output.stdout), stderr: text(output.stderr) }
    })
}

/// A long log, whatever stands in it, is read to its end.
#[test]
fn hostile_logs() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let rules = "R1: if (path == \"/a\") { routeTo(a); }\nelse: routeTo(b);\n";
    std::fs::write(folder.path().join("new.rules"), rules).expect("a writable folder");
    let good = "{\"listener\":\"w\",\"client\":\"unix:\",\"method\":\"GET\",\"path\":\"/\",\"rule\":\"else\",\"pool\":\"b\"}\n";
    let injected = good.replace("\"/\"", "\"/ HTTP/1.1\\r\\nhost: x\\r\\nx: \"");
    let log = [
        good.as_bytes(),
        &b"x".repeat(3_000_000),
        b"\n",
        &b"[".repeat(60_000),
        b"\n{\"a\":",
        &b"[".repeat(60_000),
        b"\n\xff\xfe\0\x1b[2J\n",
        injected.as_bytes(),
        good.as_bytes(),
    ]
    .concat();
    let finished = piped(folder.path(), &["replay", "-", "new.rules", "--json"], &log);
    let report: serde_json::Value = serde_json::from_str(&finished.stdout).expect("JSON");
    assert_eq!(
        (finished.code, &report["same"], &report["unreadable"]),
        (1, &2.into(), &4.into()),
        "{report}"
    );
    assert_eq!(report["groups"][0]["new"]["outcome"], "malformed head");
    for (words, code) in [(&["replay", "-", "-"][..], 2), (&["replay", "absent", "new.rules"], 2)] {
        assert_eq!(piped(folder.path(), words, b"").code, code, "{words:?}");
    }
    assert_eq!(piped(folder.path(), &["replay", "-", "new.rules"], b"").code, 3);
}

/// Of a compressed log that is cut off the lines before that count, and it is no success. Blanks before JSON are none of it.
#[test]
fn a_log_that_is_cut_off() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let rules = "R1: if (path == \"/a\") { routeTo(a); }\nelse: routeTo(b);\n";
    std::fs::write(folder.path().join("new.rules"), rules).expect("a writable folder");
    let good = "{\"listener\":\"w\",\"client\":\"unix:\",\"method\":\"GET\",\"path\":\"/\",\"rule\":\"else\",\"pool\":\"b\"}\n";
    let coded = good.replace("\"/\"", "\"/\",\"query\":\"t=QUJDRA==\"");
    let whole = format!("{good} \t{good}{coded}");
    let log = format!("{whole}{good}");
    let [low, high] = u16::try_from(log.len()).expect("a short log").to_le_bytes();
    // One member, and in it one block that is stored as it is (RFC 1952 section 2.3, RFC 1951 section 3.2.4).
    let head = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff, 1, low, high, !low, !high];
    let cut = &[&head[..], log.as_bytes()].concat()[..head.len() + log.len() - 20];
    let words = ["replay", "-", "new.rules", "--json"];
    let finished = piped(folder.path(), &words, cut);
    let report: serde_json::Value = serde_json::from_str(&finished.stdout).expect("JSON");
    let counts = (finished.code, &report["same"], &report["unreadable"]);
    assert_eq!(counts, (2, &3.into(), &0.into()), "{}", finished.output());
    for said in ["error: cannot read `standard input`: ", "help: the lines before, up to line 3, are counted"]
    {
        assert!(finished.stderr.contains(said), "{}", finished.output());
    }
    assert_eq!((&report["lines"], &report["bytes"]), (&3.into(), &whole.len().into()), "{report}");
    let why = report["cut_off"].as_str().expect("a reason");
    assert!(why.starts_with("cannot read `standard input`: "), "{why}");
    let nothing = piped(folder.path(), &words, &cut[..head.len() + 9]);
    assert_eq!((nothing.code, nothing.stdout.as_str()), (2, ""), "{}", nothing.output());
    let finished = piped(folder.path(), &words, log.as_bytes());
    let report: serde_json::Value = serde_json::from_str(&finished.stdout).expect("JSON");
    assert_eq!(
        (finished.code, &report["lines"], &report["cut_off"]),
        (0, &4.into(), &serde_json::Value::Null)
    );
}

/// What a switch has written is what its own rules decide again; others decide otherwise.
#[test]
fn a_log_of_the_switch_itself() {
    let origins = [Origin::new("a"), Origin::new("b")];
    let setup = Setup::new(1).pool_at("standard", "", &[("one", origins[0].address())]).pool_at(
        "fast",
        "",
        &[("two", origins[1].address())],
    );
    let rules = "R1: if (path under \"/fast\") { routeTo(fast); }\nR2: if (path == \"/no\") { reject(404); }
R3: if (path == \"/gone\") { redirect(301, \"https://a.example/\"); }\n";
    let switch = setup.clone().rules(rules).start();
    let mut client = Client::plain(switch.address("shop"));
    for path in ["/", "/fast/a?b=c", "/no", "/gone", "/fast/%6cast"] {
        client.get(path);
    }
    switch.log_entry("the last one", |line| line["path"] == "/fast/last");
    std::fs::write(switch.folder().join("access.log"), switch.output().text()).expect("a writable folder");
    let log = "access.log";
    let replayed = |rules: &str| {
        std::fs::write(switch.folder().join("new.rules"), rules).expect("a writable folder");
        pointsman(switch.folder(), &["replay", log, "new.rules", "--old", "pointsman.toml"])
    };
    let same = pointsman(switch.folder(), &["replay", log, "pointsman.toml"]);
    assert_eq!(same.code, 0, "{}", same.output());
    let same = replayed(rules);
    assert_eq!(same.code, 0, "{}", same.output());
    let other = replayed(&rules.replace("404", "403"));
    assert_eq!(other.code, 1, "{}", other.output());
    assert!(other.stdout.contains("1  R2 -> reject(404)  becomes  R2 -> reject(403)"), "{}", other.output());
}

/// The log can have queries, says of each request whether it had a body, and of a refused target no query.
#[test]
fn a_log_with_queries() {
    let origin = Origin::new("a");
    for (top, has_query) in [("query = true", true), ("", false)] {
        let setup = Setup::new(1).top(&format!("[access_log]\npath = \"access.log\"\n{top}")).pool_at(
            "standard",
            "",
            &[("one", origin.address())],
        );
        let mut switch = setup.start();
        let mut client = Client::plain(switch.address("shop"));
        client.get("/a?token=secret");
        client.get("/b");
        let body = "POST /c HTTP/1.1\r\nHost: a.example\r\nContent-Type: Application/JSON; charset=utf-8\r\nContent-Length: 7\r\n\r\n{\"a\":1}";
        client.send(body);
        assert_eq!(client.response().status(), 200);
        client.send("GET /%zz?token=secret HTTP/1.1\r\nHost: a.example\r\n\r\n");
        assert_eq!(client.response().status(), 400);
        // When it has ended, all is written.
        switch.signal("TERM");
        assert_eq!(switch.wait_for_exit(), Some(0));
        let log = switch.folder().join("access.log");
        let log = std::fs::read_to_string(log).expect("a log");
        let lines: Vec<serde_json::Value> =
            log.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        assert_eq!(
            lines.iter().map(|line| line["body"].as_bool()).collect::<Vec<_>>(),
            [Some(false), Some(false), Some(true), None]
        );
        assert_eq!(
            (&lines[2]["content_type"], &lines[2]["content_length"]),
            (&"application/json".into(), &7.into())
        );
        assert_eq!(lines[3]["path"], "/%zz");
        assert_eq!(
            lines.iter().filter(|line| line.to_string().contains("secret")).count(),
            usize::from(has_query)
        );
        if has_query {
            assert_eq!(lines[0]["query"], "token=secret");
            assert!(lines[1]["query"].is_null() && lines[1].get("query").is_some());
        }
        let rules = "R1: if (query[\"token\"] == \"secret\") { reject(); }\nR2: if (json.a == 2) { reject(); }\n\
                     R3: if (content_type == \"application/json\" && body.size > 6) { reject(); }\n";
        std::fs::write(switch.folder().join("new.rules"), rules).expect("a writable folder");
        let finished = pointsman(switch.folder(), &["replay", "access.log", "new.rules", "--json"]);
        let report: serde_json::Value = serde_json::from_str(&finished.stdout).expect("JSON");
        let counts = ["changed", "untold"].map(|key| report[key].as_u64().expect("a number"));
        assert_eq!(counts, if has_query { [1, 1] } else { [0, 3] }, "{report}");
        let wanted: Vec<_> = report["not_written_down"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|one| one["what"].clone())
            .collect();
        assert_eq!(wanted.contains(&"`query[\"token\"]`".into()), !has_query, "{report}");
        assert_eq!(wanted.contains(&"`json.a`".into()), has_query, "{report}");
    }
}

//! The access log as other programs read it, and as a sample.

use pointsman_e2e::{Origin, Setup, Switch, pointsman};

pointsman_e2e::for_threads!(common, combined, with_details, a_sample, replayed);

fn setup(threads: usize, origin: &Origin, keys: &str) -> Setup {
    let log = format!("[access_log]\npath = \"access.log\"\n{keys}");
    let rules =
        "R1: if (path == \"/no\") { reject(403); }\nR2: if (path under \"/gold\") { routeTo(standard); }\n";
    Setup::new(threads).top(&log).rules(rules).pool("standard", &[origin])
}

/// All lines, once the switch has ended.
fn lines_of(mut switch: Switch) -> Vec<String> {
    switch.signal("TERM");
    assert_eq!(switch.wait_for_exit(), Some(0));
    let log = std::fs::read_to_string(switch.folder().join("access.log")).expect("a log");
    log.lines().map(str::to_owned).collect()
}

/// Without its time, which is that of a calendar.
fn without_time(line: &str) -> String {
    let (before, rest) = line.split_once('[').expect("a time");
    let (time, rest) = rest.split_once(']').expect("an end of the time");
    let pattern = "00/Aaa/0000:00:00:00 +0000";
    let is_like = |(written, expected): (char, char)| match expected {
        '0' => written.is_ascii_digit(),
        'A' => written.is_ascii_uppercase(),
        'a' => written.is_ascii_lowercase(),
        other => written == other,
    };
    assert!(time.len() == pattern.len() && time.chars().zip(pattern.chars()).all(is_like), "{line}");
    format!("{before}[]{rest}")
}

fn common(threads: usize) {
    let origin = Origin::new("origin");
    let switch = setup(threads, &origin, "format = \"common\"\ndetails = false").start();
    let mut client = switch.client();
    let answer = client.ask("GET", "/gold/%22?secret=1", "User-Agent: curl/8\r\n");
    assert_eq!((answer.status(), client.get("/no").status()), (200, 403));
    client.send("GET / HTTP/1.1\r\n\r\n");
    assert_eq!(client.response().status(), 400);
    let lines: Vec<String> = lines_of(switch).iter().map(|line| without_time(line)).collect();
    assert_eq!(lines.len(), 3, "{lines:?}");
    let start = "127.0.0.1 - - [] \"GET /gold/%22 HTTP/1.1\" 200 ";
    let bytes = lines[0].strip_prefix(start).unwrap_or_else(|| panic!("{lines:?}"));
    assert!(bytes.parse::<u32>().is_ok_and(|bytes| bytes > 0), "{lines:?}");
    assert!(lines[1].starts_with("127.0.0.1 - - [] \"GET /no HTTP/1.1\" 403 "), "{lines:?}");
    assert!(lines[2].starts_with("127.0.0.1 - - [] \"-\" 400 "), "{lines:?}");
}

fn combined(threads: usize) {
    let origin = Origin::new("origin");
    let keys = "format = \"combined\"\ndetails = false\nquery = true";
    let switch = setup(threads, &origin, keys).start();
    let mut client = switch.client();
    let fields = "User-Agent: a \"browser\"\r\nReferer: https://b.example/?x\r\n";
    assert_eq!(client.ask("GET", "/gold?a=b", fields).status(), 200);
    // Nothing is left of the request before it.
    assert_eq!(client.get("/gold").status(), 200);
    let lines = lines_of(switch);
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[0].contains("\"GET /gold?a=b HTTP/1.1\" 200 "), "{lines:?}");
    assert!(lines[0].ends_with(r#" "https://b.example/?x" "a \x22browser\x22""#), "{lines:?}");
    assert!(lines[1].ends_with(r#" "-" "-""#), "{lines:?}");
}

/// The deciding rule, the server, the times and the reason stand behind what everybody reads.
fn with_details(threads: usize) {
    let origin = Origin::new("origin");
    let switch = setup(threads, &origin, "format = \"combined\"").start();
    let mut client = switch.client();
    assert_eq!((client.get("/gold").status(), client.get("/no").status()), (200, 403));
    let lines = lines_of(switch);
    let has = |line: &str, pairs: &[&str]| {
        let missing = pairs.iter().find(|pair| !line.contains(&format!(" {pair}")));
        assert!(missing.is_none(), "{missing:?} in {line}");
    };
    has(
        &lines[0],
        &["listener=\"shop\" host=\"shop.example\" rule=\"R2\" pool=\"standard\" server=\"origin\""],
    );
    has(
        &lines[0],
        &["decided_us=", "connected_us=", "first_byte_us=", "total_us=", "tries=1", "reused=false"],
    );
    has(&lines[1], &["rule=\"R1\"", "total_us="]);
    assert!(!lines[1].contains("server="), "{}", lines[1]);
}

/// Of what went well there is a share, of what went wrong all.
fn a_sample(threads: usize) {
    let origin = Origin::new("origin");
    let dead = [("dead", Origin::dead_address())];
    let rules = "if (path == \"/dead\") { routeTo(dead); }\n";
    let log = "[access_log]\npath = \"access.log\"\nsample = \"0%\"";
    let setup = Setup::new(threads).top(log).rules(rules).pool("standard", &[&origin]);
    let switch = setup.pool_at("dead", "", &dead).start();
    let mut client = switch.client();
    for _ in 0..20 {
        assert_eq!(client.get("/well").status(), 200);
    }
    for _ in 0..3 {
        assert_eq!(switch.get("/dead").status(), 502);
    }
    let lines = lines_of(switch);
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert!(lines.iter().all(|line| line.contains("\"path\":\"/dead\"")), "{lines:?}");

    let half = log.replace("0%", "50%");
    let setup = Setup::new(threads).top(&half).pool("standard", &[&origin]);
    let switch = setup.start();
    let mut client = switch.client();
    for _ in 0..400 {
        assert_eq!(client.get("/well").status(), 200);
    }
    let lines = lines_of(switch).len();
    // One in 10^19 runs has fewer or more.
    assert!((110..290).contains(&lines), "{lines} of 400");
}

/// What was written so can be decided again: one rule is gone.
fn replayed(threads: usize) {
    let origin = Origin::new("origin");
    let rules =
        "R1: if (header[\"user-agent\"] contains \"bot\") { reject(403); }\nelse: routeTo(standard);\n";
    let new = "else: routeTo(standard);\n";
    let setup = setup(threads, &origin, "format = \"combined\"").rules(rules).file("new.rules", new);
    let mut switch = setup.start();
    let mut client = switch.client();
    for (agent, status) in [("a bot", 403), ("curl", 200), ("\"bot\"", 403)] {
        assert_eq!(client.ask("GET", "/", &format!("User-Agent: {agent}\r\n")).status(), status);
    }
    switch.signal("TERM");
    assert_eq!(switch.wait_for_exit(), Some(0));
    let words = ["replay", "access.log", "new.rules", "--old", "shop.rules", "--json"];
    let finished = pointsman(switch.folder(), &words);
    let report: serde_json::Value = serde_json::from_str(&finished.stdout).expect("JSON");
    let counts = ["decisions", "changed", "same", "unreadable"].map(|key| report[key].as_u64());
    assert_eq!(counts, [Some(3), Some(2), Some(1), Some(0)], "{report}");
}

//! The access log, the metrics and the health of the admin listener.

use std::time::Instant;

use pointsman_e2e::{Client, Origin, PATIENCE, Setup, Switch, until};

use crate::drain::held;

pointsman_e2e::for_threads!(
    access_log,
    times_of_long_uploads,
    access_log_of_proxies,
    access_log_escapes,
    access_log_of_failures,
    access_log_in_a_file,
    access_log_reopened,
    bytes_of_pipelined_requests,
    metrics,
    failures_and_refusals_are_counted,
    gauges_fall_to_zero,
    health,
    silent_connections_to_admin,
    one_line_each
);

const RULES: &str = r#"
R1: if (path under "/gold") { tag(gold); routeTo(fast); }
R2: if (path == "/no") { reject(403, "no"); }
if (path == "/unnamed") { routeTo(fast); }
"#;

fn setup(threads: usize, fast: &Origin, slow: &Origin) -> Setup {
    Setup::new(threads).rules(RULES).pool("standard", &[slow]).pool("fast", &[fast])
}

/// Who decided, where it went, and how long it took.
fn access_log(threads: usize) {
    let (fast, slow) = (Origin::new("server1"), Origin::new("server2"));
    let switch = setup(threads, &fast, &slow).start();
    let mut client = switch.client();
    let answer = client.ask("GET", "/gold/x?q=1", "");
    assert_eq!(answer.status(), 200);
    let entry = switch.log_of("/gold/x");
    for (key, value) in [
        ("listener", "shop"),
        ("client_ip", "127.0.0.1"),
        ("method", "GET"),
        ("host", "shop.example"),
        ("version", "1.1"),
        ("rule", "R1"),
        ("pool", "fast"),
        ("server", "server1"),
    ] {
        assert_eq!(entry[key], value, "{entry}");
    }
    assert_eq!(entry["client"], client.local().to_string());
    assert_eq!((&entry["status"], &entry["tries"]), (&200.into(), &1.into()), "{entry}");
    assert_eq!(entry["tags"], serde_json::json!(["gold"]));
    assert!(entry["time"].as_str().is_some_and(|time| time.len() == 24 && time.ends_with('Z')), "{entry}");
    for key in ["decided_us", "first_byte_us", "total_us", "request_bytes", "response_bytes"] {
        assert!(entry[key].is_u64(), "{key} in {entry}");
    }
    let absent = |entry: &serde_json::Value, key: &str| entry.get(key).is_none();
    assert!(absent(&entry, "tls") && absent(&entry, "error"), "{entry}");

    assert_eq!(client.get("/no").status(), 403);
    let entry = switch.log_of("/no");
    assert_eq!((&entry["rule"], &entry["status"]), (&"R2".into(), &403.into()), "{entry}");
    // Nothing is left of the request before it.
    for key in ["server", "pool", "tags"] {
        assert!(absent(&entry, key), "{key} in {entry}");
    }

    assert_eq!(client.get("/unnamed").status(), 200);
    assert_eq!(switch.log_of("/unnamed")["rule"], "#3");

    assert_eq!(client.get("/nobody").server(), "server2");
    let entry = switch.log_of("/nobody");
    assert_eq!((&entry["pool"], &entry["server"]), (&"standard".into(), &"server2".into()), "{entry}");
    assert_eq!(entry["rule"], "(default)");
}

/// An answer that begins behind the last byte of a long body has a time, too.
fn times_of_long_uploads(threads: usize) {
    let origin = Origin::new("origin");
    let switch = Setup::new(threads).pool("standard", &[&origin]).start();
    let body = "x".repeat(300_000);
    let mut client = switch.client();
    client.send(format!("POST /long HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n{body}", body.len()));
    assert_eq!(client.response().status(), 200);
    let entry = switch.log_of("/long");
    assert!(entry["first_byte_us"].is_u64(), "{entry}");
}

/// Whom a trusted proxy speaks for, or the proxy itself where it names nobody, or where its request is refused.
fn access_log_of_proxies(threads: usize) {
    let (fast, slow) = (Origin::new("server1"), Origin::new("server2"));
    let switch = setup(threads, &fast, &slow).listener("trusted_proxies = [\"127.0.0.1\"]").start();
    let mut client = switch.client();
    for (path, field, status, expected) in [
        ("/four", "X-Forwarded-For: 203.0.113.9\r\n", 200, "203.0.113.9"),
        ("/six", "X-Forwarded-For: 2001:DB8:0::7\r\n", 200, "2001:db8::7"),
        ("/none", "", 200, "127.0.0.1"),
        ("/%zz", "X-Forwarded-For: 203.0.113.9\r\n", 400, "127.0.0.1"),
    ] {
        assert_eq!(client.ask("GET", path, field).status(), status);
        let entry = switch.log_of(path);
        assert_eq!(entry["client_ip"], expected, "{entry}");
        assert_eq!(entry["client"], client.local().to_string());
    }
}

/// A line stays a line and JSON stays JSON, whatever the client sends.
fn access_log_escapes(threads: usize) {
    let (fast, slow) = (Origin::new("server1"), Origin::new("server2"));
    let switch = setup(threads, &fast, &slow).start();
    let mut client = switch.client();
    assert_eq!(client.get("/%22%0a%C3%28").status(), 200);
    let entry = switch.log_entry("an entry", |entry| entry["method"] == "GET");
    assert_eq!(entry["path"], "/%22%0A%C3%28");
    client.send(b"GET /bytes HTTP/1.1\r\nHost: shop.example\r\nUser-Agent: \"\xff\\\"\r\n\r\n");
    assert_eq!(client.response().status(), 200);
    assert_eq!(switch.log_of("/bytes")["status"], 200);
}

/// A failure says why, in the log and not to the client.
fn access_log_of_failures(threads: usize) {
    let servers = [("dead", Origin::dead_address())];
    let switch = Setup::new(threads).pool_at("standard", "", &servers).start();
    let answer = switch.get("/dead");
    assert_eq!(answer.status(), 502);
    let entry = switch.log_of("/dead");
    assert!(entry["error"].is_string(), "{entry}");
    assert!(!answer.text().contains("127.0.0.1"), "{}", answer.text());
    // What was never a request is logged too, with its status.
    let mut client = switch.client();
    client.send("GET / HTTP/1.1\r\n\r\n");
    assert_eq!(client.response().status(), 400);
    let entry = switch.log_entry("an entry of the refusal", |entry| entry["status"] == 400);
    assert!(entry["error"].is_string(), "{entry}");
}

/// The path is relative to the configuration, and the file is appended to.
fn access_log_in_a_file(threads: usize) {
    let origin = Origin::new("origin");
    let setup =
        Setup::new(threads).top("[access_log]\npath = \"access.log\"").file("access.log", "earlier\n");
    let mut switch = setup.pool("standard", &[&origin]).start();
    assert_eq!(switch.get("/logged").status(), 200);
    // When it has ended, all is written.
    switch.signal("TERM");
    assert_eq!(switch.wait_for_exit(), Some(0));
    let log = std::fs::read_to_string(switch.folder().join("access.log")).expect("a log");
    let lines: Vec<&str> = log.lines().collect();
    assert_eq!((lines.len(), lines[0]), (2, "earlier"), "{log}");
    let entry: serde_json::Value = serde_json::from_str(lines[1]).expect("JSON");
    assert_eq!(entry["path"], "/logged");
}

/// SIGHUP opens the log again, and so does SIGUSR1, which reloads nothing: an operator who moved the file away gets a
/// new one.
fn access_log_reopened(threads: usize) {
    let origin = Origin::new("origin");
    let setup = Setup::new(threads).top("[access_log]\npath = \"access.log\"");
    let setup = setup.pool("standard", &[&origin]);
    let mut switch = setup.start();
    assert_eq!(switch.get("/before").status(), 200);
    let log = switch.folder().join("access.log");
    std::fs::rename(&log, switch.folder().join("access.log.1")).expect("it is there");
    switch.reload(&setup, 2);
    assert_eq!(switch.get("/after").status(), 200);
    until("the line", || {
        std::fs::read_to_string(&log).unwrap_or_default().contains("\"/after\"").then_some(())
    });
    std::fs::rename(&log, switch.folder().join("access.log.2")).expect("it is there");
    switch.signal("USR1");
    until("a new file", || log.exists().then_some(()));
    assert_eq!(switch.get("/last").status(), 200);
    switch.signal("TERM");
    assert_eq!(switch.wait_for_exit(), Some(0));
    let text = std::fs::read_to_string(log).expect("a new log");
    assert!(text.contains("\"/last\"") && !text.contains("\"/after\""), "{text}");
    assert!(!switch.said().contains("generation=3"), "{}", switch.said());
}

/// Requests that came in one packet are each counted by their own bytes.
fn bytes_of_pipelined_requests(threads: usize) {
    let origin = Origin::new("origin");
    let switch = Setup::new(threads).pool("standard", &[&origin]).start();
    let request = |number: usize| {
        let (path, body) =
            (format!("/{number}{}", "-".repeat(number * 13 % 50)), "x".repeat(number * 7 % 40));
        let head = format!("Host: shop.example\r\nContent-Length: {}", body.len());
        (format!("POST {path} HTTP/1.1\r\n{head}\r\n\r\n{body}"), path)
    };
    let requests: Vec<(String, String)> = (0..50).map(request).collect();
    let mut client = switch.client();
    client.send(requests.iter().map(|(text, _)| text.as_str()).collect::<String>());
    for _ in &requests {
        assert_eq!(client.response().status(), 200);
    }
    for (text, path) in &requests {
        let entry = switch.log_of(path);
        assert_eq!(entry["request_bytes"], text.len(), "{entry}");
    }
}

/// A server that speaks no HTTP, and a client that a rule refuses.
fn failures_and_refusals_are_counted(threads: usize) {
    let origin = Origin::saying("origin", "SSH-2.0-OpenSSH_9.2\r\n", pointsman_e2e::Then::Close);
    let rules = "if (path == \"/no\") { reject(); }";
    let switch = Setup::new(threads).rules(rules).pool("standard", &[&origin]).start();
    for _ in 0..3 {
        assert_eq!(switch.client().ask("POST", "/", "Content-Length: 0\r\n").status(), 502);
        assert_eq!(switch.get("/no").status(), 403);
    }
    let failed = [("pool", "standard"), ("server", "origin"), ("kind", "protocol")];
    wait_for_metric(&switch, "pointsman_server_failures_total", &failed, 3.0);
    let refused = [("listener", "shop"), ("reason", "rule")];
    wait_for_metric(&switch, "pointsman_refusals_total", &refused, 3.0);
}

/// Threads hand their figures over from time to time.
fn wait_for_metric(switch: &Switch, name: &str, labels: &[(&str, &str)], value: f64) {
    let until = Instant::now() + PATIENCE;
    while (switch.metric(name, labels) - value).abs() > 0.5 {
        assert!(Instant::now() < until, "{name} {labels:?} is not {value}\n{}", switch.metrics());
        std::thread::yield_now();
    }
}

/// Counters by rule and by server, in Prometheus' text format.
fn metrics(threads: usize) {
    let (fast, slow) = (Origin::new("server1"), Origin::new("server2"));
    let switch = setup(threads, &fast, &slow).start();
    let asked = [("/gold", 5), ("/no", 3), ("/", 2)];
    for (path, count) in asked {
        for _ in 0..count {
            assert!([200, 403].contains(&switch.get(path).status()));
        }
    }
    // Threads hand their figures over from time to time.
    let until = Instant::now() + PATIENCE;
    let by_rule = |rule: &str| switch.metric("pointsman_rule_hits_total", &[("rule", rule)]);
    while by_rule("R1") < 5.0 || by_rule("R2") < 3.0 {
        assert!(Instant::now() < until, "{}", switch.metrics());
        std::thread::yield_now();
    }
    assert!((by_rule("R1") - 5.0).abs() < 0.5 && (by_rule("R2") - 3.0).abs() < 0.5, "{}", switch.metrics());
    wait_for_metric(&switch, "pointsman_rule_hits_total", &[("rule", "(default)")], 2.0);
    let text = switch.metrics();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (name, value) = line.rsplit_once(' ').expect("a sample");
        assert!(name.starts_with("pointsman_") || name.starts_with("process_"), "{line}");
        assert!(value.parse::<f64>().is_ok(), "{line}");
    }
}

/// What is counted up is counted down: by an answer, by a client that leaves, by a server that does.
fn gauges_fall_to_zero(threads: usize) {
    let (origin, go) = held();
    let switch = Setup::new(threads).pool("standard", &[&origin]).start();
    wait_for_gauges(&switch, 0, 0);
    let (mut staying, mut leaving) = ([switch.client(), switch.client()], switch.client());
    for client in &mut staying {
        client.send("GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n");
    }
    // In the middle of its body: one that has said everything may still be waiting for its answer.
    leaving.send("POST / HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 10\r\n\r\nhalf");
    origin.wait_for_requests(3);
    wait_for_gauges(&switch, 3, 0);
    drop(leaving);
    wait_for_gauges(&switch, 2, 0);
    for _ in 0..3 {
        go.send(()).expect("the origin is there");
    }
    for client in &mut staying {
        assert_eq!(client.response().status(), 200);
    }
    wait_for_gauges(&switch, 0, 2);
    drop(origin);
    wait_for_gauges(&switch, 0, 0);
}

/// Threads hand their figures over from time to time.
fn wait_for_gauges(switch: &Switch, in_flight: u32, idle: u32) {
    let until = Instant::now() + PATIENCE;
    let reads = |name: &str, wanted: u32| {
        let gauge = switch.metric(name, &[("pool", "standard"), ("server", "held")]);
        (gauge - f64::from(wanted)).abs() < 0.5
    };
    while !reads("pointsman_server_in_flight_requests", in_flight)
        || !reads("pointsman_server_idle_connections", idle)
    {
        assert!(Instant::now() < until, "{in_flight} in flight, {idle} idle\n{}", switch.metrics());
        std::thread::yield_now();
    }
}

/// A balancer in front can ask whether the switch lives.
fn health(threads: usize) {
    let origin = Origin::new("origin");
    let switch = Setup::new(threads).pool("standard", &[&origin]).start();
    assert_eq!(switch.admin_get("/health").status(), 200);
    assert_eq!(switch.admin_get("/nothing").status(), 404);
    // A page of another site that a browser was told to find here.
    assert_eq!(Client::plain(switch.admin()).get("/metrics").status(), 403);
}

/// Of connections that say nothing, as many as the admin listener serves, the first gives way; one that speaks does
/// not.
fn silent_connections_to_admin(threads: usize) {
    let origin = Origin::new("origin");
    let switch = Setup::new(threads).pool("standard", &[&origin]).start();
    let mut open: Vec<Client> = (0..64).map(|_| Client::plain(switch.admin())).collect();
    let (half, rest) = ("GET /health HTTP/1.1\r\n", "Host: localhost\r\n\r\n");
    open[0].send(half);
    assert!(switch.metrics().contains("pointsman_build_info"));
    assert!(open[1].closes(), "the one that was silent longest");
    open[0].send(rest);
    assert_eq!(open[0].response().status(), 200);
    for client in &mut open[2..] {
        client.send([half, rest].concat());
        assert_eq!(client.response().status(), 200);
    }
}

/// Every request once, also from many threads at the same time.
fn one_line_each(threads: usize) {
    let origin = Origin::new("origin");
    let switch = Setup::new(threads).pool("standard", &[&origin]).start();
    std::thread::scope(|scope| {
        for number in 0..8 {
            let mut client = switch.client();
            scope.spawn(move || {
                for round in 0..25 {
                    assert_eq!(client.get(&format!("/{number}-{round}")).status(), 200);
                }
            });
        }
    });
    for number in 0..8 {
        for round in 0..25 {
            assert_eq!(switch.log_of(&format!("/{number}-{round}"))["status"], 200);
        }
    }
}

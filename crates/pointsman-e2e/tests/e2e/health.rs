//! Probes: what they ask, whom they take for down, and that those get nothing.

use std::io::Read;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use pointsman_e2e::{
    Authority, Exchange, H2Origin, Origin, RawOrigin, Setup, Switch, Then, TlsServer, echo, ok, until,
};

pointsman_e2e::for_threads!(
    down_and_up_again,
    nobody_is_up,
    nothing_before_the_first_probe,
    what_is_asked_for,
    what_is_expected,
    over_tls,
    over_http2,
    grpc,
    behind_a_proxy_header,
    reloads,
);

/// Often enough for a test; one probe decides.
const FAST: &str = "interval_ms = 100, jitter_percent = 0, rise = 1, fall = 1";

fn health(keys: &str) -> String {
    format!("health = {{ {FAST}, {keys} }}")
}

/// A server whose `/health` is 200 or 503 as the flag says.
fn fragile(name: &str) -> (Origin, Arc<AtomicBool>) {
    let is_well = Arc::new(AtomicBool::new(true));
    let theirs = is_well.clone();
    let origin = Origin::answering(name, move |exchange: &mut Exchange<'_>| {
        match (exchange.target(), theirs.load(Ordering::SeqCst)) {
            ("/health", false) => exchange.answer("503 Service Unavailable", ""),
            _ => ok(exchange),
        }
    });
    (origin, is_well)
}

fn is_up(switch: &Switch, server: &str) -> bool {
    switch.metric("pointsman_server_up", &[("server", server)]) > 0.5
}

fn probes(switch: &Switch, server: &str, outcome: &str) -> f64 {
    switch.metric("pointsman_server_probes_total", &[("server", server), ("outcome", outcome)])
}

/// Waits until a server was probed with that outcome.
fn wait_for(switch: &Switch, server: &str, outcome: &str) {
    until(&format!("a probe of {server} comes to {outcome}"), || {
        (probes(switch, server, outcome) > 0.5).then_some(())
    });
}

/// Who answered so many requests.
fn answered(switch: &Switch, requests: usize) -> Vec<String> {
    let mut names: Vec<_> = (0..requests).map(|_| switch.get("/").server().to_owned()).collect();
    names.sort();
    names.dedup();
    names
}

fn down_and_up_again(threads: usize) {
    let ((one, is_well), (two, _)) = (fragile("one"), fragile("two"));
    let keys = "health = { path = \"/health\", interval_ms = 100, rise = 2, fall = 2 }";
    let switch = Setup::new(threads).pool_with("standard", keys, &[&one, &two]).start();
    assert_eq!(answered(&switch, 8), ["one", "two"]);
    is_well.store(false, Ordering::SeqCst);
    let line = switch.wait_for_line("server down");
    assert_eq!(line, "server down pool=standard server=one probe=\"status 503\"");
    assert_eq!(answered(&switch, 8), ["two"]);
    assert!(!is_up(&switch, "one") && is_up(&switch, "two"));
    assert!(probes(&switch, "one", "status") > 1.5, "one failure is not enough");
    is_well.store(true, Ordering::SeqCst);
    assert_eq!(switch.wait_for_line("server up"), "server up pool=standard server=one");
    assert_eq!(answered(&switch, 8), ["one", "two"]);
}

/// Then there is an answer that says so, and a sticky client gets the same.
fn nobody_is_up(threads: usize) {
    let dead = [("one", Origin::dead_address()), ("two", Origin::dead_address())];
    let rules = "a: if (path == \"/sticky\") { routeTo(standard, STICKY_ON_IP); }\n\
                 b: if (path == \"/one\") { routeTo(standard.one); }";
    let switch =
        Setup::new(threads).rules(rules).pool_at("standard", &health("kind = \"tcp\""), &dead).start();
    switch.wait_for_line("server down pool=standard server=one probe=\"connection refused\"");
    switch.wait_for_line("server down pool=standard server=two");
    for path in ["/", "/sticky", "/one"] {
        assert_eq!(switch.get(path).status(), 503, "{path}");
        assert_eq!(switch.log_of(path)["error"], "no server", "{path}");
    }
}

/// Also where the server is there: nobody has looked yet.
fn nothing_before_the_first_probe(threads: usize) {
    let silent = RawOrigin::serving(|mut socket, _| {
        // It takes the probe, and says nothing.
        let mut all = Vec::new();
        drop(socket.read_to_end(&mut all));
    });
    let keys = "health = { start = \"probe\", timeout_ms = 60000 }";
    let switch = Setup::new(threads).pool_at("standard", keys, &[("silent", silent.address())]).start();
    assert_eq!(switch.get("/").status(), 503);
    assert!(!is_up(&switch, "silent"));
    let (origin, _) = fragile("origin");
    let setup = Setup::new(threads).pool_with("standard", &health("start = \"probe\""), &[&origin]);
    switch.reload(&setup, 2);
    assert_eq!(switch.wait_for_line("server up"), "server up pool=standard server=origin");
    assert_eq!(switch.get("/").server(), "origin");
}

fn what_is_asked_for(threads: usize) {
    let origins = ["plain", "other"].map(Origin::new);
    let keys = health("path = \"/health?full\", method = \"OPTIONS\", host = \"shop.example:81\"");
    let port = health(&format!("port = {}", origins[0].address().port()));
    let elsewhere = Origin::dead_address();
    let switch = Setup::new(threads)
        .pool_with("standard", &keys, &[&origins[1]])
        .pool_at("elsewhere", &port, &[("elsewhere", elsewhere)])
        .start();
    for (origin, line, host) in [
        (&origins[1], "OPTIONS /health?full HTTP/1.1", "shop.example:81".to_owned()),
        // The name is that of the server, whatever port is asked.
        (&origins[0], "GET / HTTP/1.1", elsewhere.to_string()),
    ] {
        origin.wait_for_requests(1);
        let head = origin.requests()[0].head.clone();
        assert_eq!(head.start, line);
        assert_eq!(head.field("host"), Some(host.as_str()));
        assert_eq!(head.field("user-agent"), Some("pointsman-probe"));
        assert_eq!(head.field("connection"), Some("close"));
    }
    wait_for(&switch, "elsewhere", "passed");
}

fn what_is_expected(threads: usize) {
    let rows = [
        ("", "200 OK", "", "ready", "passed"),
        ("", "302 Found", "", "", "passed"),
        ("", "404 Not Found", "", "ready", "status"),
        ("expect_status = [\"200\", \"404\"]", "404 Not Found", "", "", "passed"),
        ("expect_status = [\"200\", \"404\"]", "403 Forbidden", "", "", "status"),
        ("expect_header = [\"X-Ready\"]", "200 OK", "x-ready: no\r\n", "", "passed"),
        ("expect_header = [\"x-ready\"]", "200 OK", "", "", "content"),
        ("expect_header = [\"x-ready: yes\"]", "200 OK", "X-Ready: yes\r\n", "", "passed"),
        ("expect_header = [\"x-ready: yes\"]", "200 OK", "X-Ready: no\r\n", "", "content"),
        ("expect_body = \"ready\"", "200 OK", "", "all is ready now", "passed"),
        ("expect_body = \"ready\"", "200 OK", "", "steady", "content"),
        ("expect_body_regex = \"^r.*y$\"", "200 OK", "", "ready", "passed"),
        ("expect_body_regex = \"^r.*y$\"", "200 OK", "", "ready?", "content"),
        ("expect_body = \"ready\", body_bytes_max = 7", "200 OK", "", "is ready", "content"),
        ("expect_body = \"ready\", body_bytes_max = 8", "200 OK", "", "is ready", "passed"),
        ("method = \"HEAD\"", "200 OK", "", "ready", "passed"),
    ];
    let mut setup = Setup::new(threads);
    let mut origins = Vec::new();
    for (number, (keys, status, fields, body, _)) in rows.into_iter().enumerate() {
        let answer = format!("HTTP/1.1 {status}\r\n{fields}Content-Length: {}\r\n\r\n", body.len());
        let origin = Origin::answering(&format!("row{number}"), move |exchange: &mut Exchange<'_>| {
            exchange.send(&answer);
            if exchange.method() != "HEAD" {
                exchange.send(body);
            }
            Then::Close
        });
        setup = setup.pool_with(&format!("pool{number}"), &health(keys), &[&origin]);
        origins.push(origin);
    }
    let broken: [(&str, Then, &str); 4] = [
        ("", Then::Close, "protocol"),
        ("SSH-2.0-x\r\n\r\n", Then::Close, "protocol"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort", Then::Close, "protocol"),
        // What comes in chunks is put together, and what is behind what was looked for is not waited for.
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nrea\r\n2\r\ndy\r\n",
            Then::KeepAlive,
            "passed",
        ),
    ];
    for (number, (answer, then, _)) in broken.iter().enumerate() {
        let origin = Origin::saying(&format!("broken{number}"), *answer, *then);
        let keys = health("expect_body = \"ready\"");
        setup = setup.pool_with(&format!("broken{number}"), &keys, &[&origin]);
        origins.push(origin);
    }
    let switch = setup.start();
    for (number, (keys, status, fields, body, outcome)) in rows.iter().enumerate() {
        let server = format!("row{number}");
        wait_for(&switch, &server, outcome);
        let row = format!("{keys} {status} {fields} {body}");
        assert_eq!(is_up(&switch, &server), *outcome == "passed", "{row}");
    }
    for (number, (answer, _, outcome)) in broken.iter().enumerate() {
        let server = format!("broken{number}");
        wait_for(&switch, &server, outcome);
        assert_eq!(is_up(&switch, &server), *outcome == "passed", "{answer}");
    }
}

/// The certificate is looked at as for a request.
fn over_tls(threads: usize) {
    let (authority, stranger) = (Authority::new("server CA"), Authority::new("another CA"));
    let origins = [&authority, &stranger].map(|authority| {
        Origin::secured("origin", &TlsServer::new(&authority.server(&["server.example"])), echo)
    });
    let tls = "tls = { ca = \"ca.crt\", name = \"server.example\" }";
    let mut setup = Setup::new(threads).file("ca.crt", &authority.pem());
    for (kind, names) in [("http", ["a", "b"]), ("tls", ["c", "d"]), ("tcp", ["e", "f"])] {
        let servers = [0, 1].map(|at| (names[at], origins[at].address()));
        let keys = format!("{tls}\n{}", health(&format!("kind = \"{kind}\"")));
        setup = setup.pool_at(kind, &keys, &servers);
    }
    let switch = setup.start();
    for (server, outcome) in
        [("a", "passed"), ("b", "tls"), ("c", "passed"), ("d", "tls"), ("e", "passed"), ("f", "passed")]
    {
        wait_for(&switch, server, outcome);
        assert_eq!(is_up(&switch, server), outcome == "passed", "{server}");
    }
    switch
        .wait_for_line("server down pool=tls server=d probe=\"TLS with the server: its certificate is from");
    let asked = origins[0].requests();
    assert_eq!(asked[0].head.field("host"), Some("server.example"));
}

fn over_http2(threads: usize) {
    let server = H2Origin::echoing(&[]);
    let keys = |keys: &str| format!("protocol = \"h2\"\n{}", health(keys));
    let switch = Setup::new(threads)
        .pool_at(
            "standard",
            &keys("path = \"/ready\", expect_body = \"/ready\""),
            &[("one", server.address())],
        )
        .pool_at("other", &keys("path = \"/ready\", expect_body = \"/steady\""), &[("two", server.address())])
        .start();
    wait_for(&switch, "one", "passed");
    wait_for(&switch, "two", "content");
    assert!(is_up(&switch, "one") && !is_up(&switch, "two"));
    // Each probe ends its connection.
    assert!(server.wait_for_end(0).is_some());
}

/// Services by name: one serves, one does not, and of one the server knows nothing.
fn grpc(threads: usize) {
    let server = H2Origin::serving(&[], |peer| {
        while let Some(request) = peer.next_whole() {
            assert_eq!(request.path(), "/grpc.health.v1.Health/Check");
            assert_eq!(request.field("content-type").as_deref(), Some("application/grpc"));
            assert_eq!(request.field("te").as_deref(), Some("trailers"));
            let kind = [("content-type", "application/grpc")];
            let status: &[u8] = match &request.body[..] {
                [0, 0, 0, 0, 0] | b"\0\0\0\0\x06\x0a\x04good" => &[0, 0, 0, 0, 2, 8, 1],
                b"\0\0\0\0\x05\x0a\x03bad" => &[0, 0, 0, 0, 2, 8, 2],
                _ => {
                    peer.answer(request.stream, "200", &[kind[0], ("grpc-status", "5")], b"");
                    continue;
                }
            };
            peer.answer(request.stream, "200", &kind, status);
        }
    });
    let mut setup = Setup::new(threads);
    for (pool, service) in [("all", ""), ("good", "good"), ("bad", "bad"), ("unknown", "unknown")] {
        let service = if service.is_empty() { String::new() } else { format!(", service = \"{service}\"") };
        let keys = format!("protocol = \"h2\"\n{}", health(&format!("kind = \"grpc\"{service}")));
        setup = setup.pool_at(pool, &keys, &[(pool, server.address())]);
    }
    let switch = setup.start();
    for (server, outcome) in
        [("all", "passed"), ("good", "passed"), ("bad", "content"), ("unknown", "content")]
    {
        wait_for(&switch, server, outcome);
        assert_eq!(is_up(&switch, server), outcome == "passed", "{server}");
    }
}

/// A probe is on the switch's own behalf, and says so.
fn behind_a_proxy_header(threads: usize) {
    for (version, expected) in
        [("v1", &b"PROXY UNKNOWN\r\nGET "[..]), ("v2", b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0GET ")]
    {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let theirs = heard.clone();
        let origin = RawOrigin::serving(move |mut socket, _| {
            let mut first = vec![0; expected.len()];
            if socket.read_exact(&mut first).is_ok() {
                theirs.lock().expect("whole").push(first);
            }
        });
        let keys = format!("proxy_protocol = \"{version}\"\n{}", health(""));
        let switch = Setup::new(threads).pool_at("standard", &keys, &[("one", origin.address())]).start();
        let first = until("a probe", || heard.lock().expect("whole").first().cloned());
        assert_eq!(first, expected, "{version}");
        drop(switch);
    }
}

/// What is known of a server outlives a reload, and is forgotten with its probes.
fn reloads(threads: usize) {
    let (one, is_well) = fragile("one");
    is_well.store(false, Ordering::SeqCst);
    let two = Origin::new("two");
    let setup = |keys: &str| Setup::new(threads).pool_with("standard", keys, &[&one, &two]);
    let switch = setup(&health("path = \"/health\"")).start();
    switch.wait_for_line("server down pool=standard server=one");
    switch.reload(&setup(&health("path = \"/health\", timeout_ms = 1000")), 2);
    assert_eq!(answered(&switch, 8), ["two"]);
    switch.reload(&setup(""), 3);
    until("it is up without probes", || is_up(&switch, "one").then_some(()));
    assert_eq!(answered(&switch, 8), ["one", "two"]);
}

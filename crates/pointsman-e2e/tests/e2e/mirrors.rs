//! Copies of requests go to another pool, whole, and whatever becomes of them is nothing to the client.

use std::time::Instant;

use pointsman_e2e::{Origin, PATIENCE, Setup, Switch, Then, ok};

pointsman_e2e::for_threads!(
    copies_are_whole,
    bodies_that_decide_are_copied,
    http2_is_copied,
    a_bad_mirror_harms_nobody,
    what_is_not_tried_is_dropped,
    what_is_too_much_is_dropped
);

const RULES: &str = "R1: if (path under \"/m\") { setHeader(\"x-new\", \"1\"); mirror(shadow); }";

fn named(name: &str) -> Origin {
    Origin::answering(name, ok)
}

/// Waits until so many copies came to that.
fn expect(switch: &Switch, result: &str, count: f64) {
    let began = Instant::now();
    while switch.metric("pointsman_mirrored_requests_total", &[("result", result)]) < count {
        assert!(began.elapsed() < PATIENCE, "{}", switch.metrics());
    }
    assert_eq!(switch.metric("pointsman_mirrored_requests_total", &[("result", result)]), count);
}

fn copies_are_whole(threads: usize) {
    let (one, shadow) = (named("one"), named("shadow"));
    let setup = Setup::new(threads).rules(RULES).default_pool("one").pool("one", &[&one]);
    let switch = setup.pool("shadow", &[&shadow]).start();
    let mut client = switch.client();
    let long = "y".repeat(40_000);
    let requests = [
        ("GET", "/m/1", String::new(), vec![]),
        ("POST", "/m/2", "Content-Length: 5\r\n".to_owned(), vec!["hello".to_owned()]),
        ("PUT", "/m/3", format!("Content-Length: {}\r\n", 2 * long.len()), vec![long.clone(), long.clone()]),
        (
            "POST",
            "/m/4",
            "Transfer-Encoding: chunked\r\n".to_owned(),
            vec!["3\r\nabc\r\n".to_owned(), "2\r\nde\r\n0\r\n\r\n".to_owned()],
        ),
        ("DELETE", "/m/5", String::new(), vec![]),
    ];
    for (number, (method, target, fields, pieces)) in (1..).zip(&requests) {
        client.send(format!("{method} {target} HTTP/1.1\r\nHost: shop.example\r\n{fields}\r\n"));
        if !pieces.is_empty() {
            // The head goes on before the body comes.
            one.wait_for_requests(number);
        }
        pieces.iter().for_each(|piece| client.send(piece));
        let answer = client.response();
        assert_eq!((answer.status(), answer.server()), (200, "one"));
        let is_too_long = *target == "/m/3";
        if is_too_long {
            expect(&switch, "dropped", 1.0);
        }
    }
    assert_eq!(client.get("/other").server(), "one");
    expect(&switch, "answered", 4.0);
    let seen = shadow.requests();
    for (at, body) in [(0, ""), (1, "hello"), (3, "abcde"), (4, "")] {
        let (_, target, ..) = &requests[at];
        let copy = seen.iter().find(|request| request.target() == *target).expect("a copy");
        let (copied, asked) = (&copy.head, &one.requests()[at].head);
        assert_eq!((copied.word(0), copy.body.bytes.as_slice()), (asked.word(0), body.as_bytes()));
        let marks: Vec<_> = copied.fields.iter().filter(|field| !asked.fields.contains(field)).collect();
        let [(name, value)] = marks[..] else { panic!("{marks:?}") };
        assert!(name.eq_ignore_ascii_case("x-mirrored") && value == "1");
        assert!(copied.fields.iter().any(|(name, _)| name.eq_ignore_ascii_case("x-new")));
    }
    assert_eq!(seen.len(), 4);
    assert_eq!(switch.log_of("/m/1")["mirror"], "shadow");
    assert_eq!(switch.log_of("/other").get("mirror"), None);
}

/// A body that was held is copied with the rest that comes later.
fn bodies_that_decide_are_copied(threads: usize) {
    let (one, shadow) = (named("one"), named("shadow"));
    let rules = "R1: if (json.amount > 5) { mirror(shadow); routeTo(one); }";
    let setup = Setup::new(threads).rules(rules).default_pool("one").pool("one", &[&one]);
    let switch = setup.pool("shadow", &[&shadow]).start();
    let mut client = switch.client();
    for rest in ["}", ", \"more\": \"than the rules ask for\"}"] {
        let body = format!("{{\"amount\": 10{rest}");
        let head = "POST / HTTP/1.1\r\nHost: shop.example\r\nContent-Type: application/json\r\n";
        client.send(format!("{head}Content-Length: {}\r\n\r\n{}", body.len(), &body[..8]));
        client.send(&body[8..]);
        assert_eq!(client.response().server(), "one");
        assert_eq!(one.last().body.bytes, body.as_bytes());
    }
    expect(&switch, "answered", 2.0);
    let mut copies: Vec<Vec<u8>> = shadow.requests().into_iter().map(|request| request.body.bytes).collect();
    let mut asked: Vec<Vec<u8>> = one.requests().into_iter().map(|request| request.body.bytes).collect();
    copies.sort();
    asked.sort();
    assert_eq!(copies, asked);
}

fn http2_is_copied(threads: usize) {
    let (one, shadow) = (named("one"), named("shadow"));
    let setup = Setup::new(threads).rules(RULES).default_pool("one").pool("one", &[&one]);
    let switch = setup.pool("shadow", &[&shadow]).start();
    let mut client = crate::http2::begin(&switch);
    client.ask(1, "GET", "/m/1", &[]);
    client.post(3, "/m/2", &[("content-length", "10")]);
    client.send_content(3, 0, b"01234").expect("the switch reads");
    client.send_content(3, 1, b"56789").expect("the switch reads");
    assert_eq!((client.answer(1).text(), client.answer(3).text()), ("one".into(), "one".into()));
    expect(&switch, "answered", 2.0);
    let copies = shadow.requests();
    let posted = copies.iter().find(|request| request.target() == "/m/2").expect("a copy");
    assert_eq!((copies.len(), posted.body.bytes.as_slice()), (2, &b"0123456789"[..]));
}

/// Nobody there, nobody who answers, and an answer that breaks off.
fn a_bad_mirror_harms_nobody(threads: usize) {
    let one = named("one");
    let (stalls, _go) = crate::drain::held();
    let breaks = Origin::saying("breaks", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab", Then::Reset);
    let rules = "R1: if (path == \"/dead\") { mirror(dead); }
                 R2: if (path == \"/stalls\") { mirror(stalls); }
                 R3: if (path == \"/breaks\") { mirror(breaks); }";
    let setup = Setup::new(threads).rules(rules).default_pool("one").pool("one", &[&one]);
    let setup = setup.pool_at("dead", "", &[("s", Origin::dead_address())]);
    let setup = setup.pool("stalls", &[&stalls]).pool("breaks", &[&breaks]).top("mirror_ms_max = 300");
    let switch = setup.start();
    let mut client = switch.client();
    for path in ["/dead", "/stalls", "/breaks", "/stalls", "/dead"] {
        let answer = client.ask("POST", path, "Content-Length: 0\r\n");
        assert_eq!((answer.status(), answer.server()), (200, "one"), "{path}");
    }
    expect(&switch, "failed", 5.0);
    assert_eq!(client.get("/").server(), "one");
    assert_eq!(one.connections(), 1, "the client's way is as it was");
}

/// Where no server may be asked, nothing has failed.
fn what_is_not_tried_is_dropped(threads: usize) {
    let one = named("one");
    let setup = Setup::new(threads).rules(RULES).default_pool("one").pool("one", &[&one]);
    let keys = "health = { path = \"/health\", interval_ms = 100, rise = 1, fall = 1 }";
    let switch = setup.pool_at("shadow", keys, &[("s", Origin::dead_address())]).start();
    switch.wait_for_line("server down pool=shadow");
    assert_eq!(switch.get("/m/1").server(), "one");
    expect(&switch, "dropped", 1.0);
    expect(&switch, "failed", 0.0);
}

fn what_is_too_much_is_dropped(threads: usize) {
    let one = named("one");
    let (stalls, go) = crate::drain::held();
    let setup = Setup::new(threads).rules(RULES).default_pool("one").pool("one", &[&one]);
    let setup = setup.pool("shadow", &[&stalls]).top("mirrors_max = 1\nmirror_bytes_max = 1024");
    let switch = setup.start();
    let mut client = switch.client();
    assert_eq!(client.get("/m/1").server(), "one");
    stalls.wait_for_requests(1);
    // There is one on its way; the next is too many, and the one behind it too long.
    assert_eq!(client.get("/m/2").server(), "one");
    client.send(format!("POST /m/3 HTTP/1.1\r\nHost: a\r\nContent-Length: 2000\r\n\r\n{}", "x".repeat(2000)));
    assert_eq!(client.response().server(), "one");
    expect(&switch, "dropped", 2.0);
    go.send(()).expect("the origin is there");
    expect(&switch, "answered", 1.0);
    assert_eq!(stalls.count(), 1);
}

//! How connections of HTTP/2 begin and end: preface, drain, reload, limits.

use pointsman_e2e::h2_wire::{PREFACE, kind};
use pointsman_e2e::{Authority, Frame, H2Client, Origin, Outcome, Setup, Switch, TlsClient, ok};

use crate::drain::held;
use crate::http2::{begin, figure};

pointsman_e2e::for_threads!(
    a_drain_ends_idle_connections,
    a_drain_lets_streams_end,
    a_drain_that_is_cut,
    a_listener_is_removed,
    rules_are_changed,
    requests_max,
    idle_ms_max,
    the_preface_never_comes,
    another_preface,
    off,
    only,
    both_on_one_port,
    a_preface_behind_a_request,
    a_client_that_ends_its_side
);

/// Where nothing is open the connection closes at once, with a word.
fn a_drain_ends_idle_connections(threads: usize) {
    let origin = Origin::answering("origin", ok);
    let mut switch = Setup::new(threads).top("drain_ms_max = 600000").pool("standard", &[&origin]).start();
    let (mut used, mut unused) = (begin(&switch), begin(&switch));
    assert_eq!(used.fetch(1, "/").status(), 200);
    unused.turn();
    switch.signal("TERM");
    assert_eq!((used.ending(), unused.ending()), (Some(0), Some(0)));
    assert_eq!(used.goaway(), Some((1, 0)), "the last stream that was served");
    assert_eq!(switch.wait_for_exit(), Some(0));
}

/// Streams that are open end, new ones are never begun, which the client is told; then the connection closes.
fn a_drain_lets_streams_end(threads: usize) {
    let (origin, go) = held();
    let mut switch = Setup::new(threads).top("drain_ms_max = 600000").pool("standard", &[&origin]).start();
    let mut client = begin(&switch);
    for stream in [1, 3] {
        client.ask(stream, "GET", "/", &[]);
    }
    origin.wait_for_requests(2);
    switch.signal("TERM");
    client.wait("GOAWAY with the last stream", |client| client.goaway() == Some((3, 0)));
    client.ask(5, "GET", "/late", &[]);
    client.turn();
    for _ in 0..2 {
        go.send(()).expect("the origin is there");
    }
    assert_eq!((client.answer(1).status(), client.answer(3).status()), (200, 200));
    assert_eq!(client.ending(), Some(0));
    assert_eq!((client.seen(5).status(), origin.count()), (0, 2), "the late one");
    assert_eq!(switch.wait_for_exit(), Some(0));
}

/// What has not ended in time is broken off, and no half answer looks whole.
fn a_drain_that_is_cut(threads: usize) {
    let origin = Origin::answering("origin", |exchange| {
        exchange.send("HTTP/1.1 200 OK\r\n\r\nhalf");
        exchange.piece();
        ok(exchange)
    });
    let (waiting, go) = held();
    let rules = "if (path == \"/waiting\") { routeTo(waiting); }";
    let setup = Setup::new(threads).top("drain_ms_max = 200").rules(rules);
    let setup = setup.pool("standard", &[&origin]).pool("waiting", &[&waiting]);
    let mut switch = setup.start();
    let mut client = begin(&switch);
    client.post(1, "/answered", &[]);
    client.ask(3, "GET", "/waiting", &[]);
    client.wait("half an answer", |client| client.seen(1).text() == "half");
    waiting.wait_for_requests(1);
    switch.signal("TERM");
    client.ending();
    for stream in [1, 3] {
        assert!(!client.seen(stream).is_whole, "an answer that was cut looks whole");
    }
    assert_eq!(switch.wait_for_exit(), Some(1));
    for path in ["/answered", "/waiting"] {
        assert_eq!(switch.log_of(path)["error"], "cut off: the drain was over");
    }
    drop(go);
}

/// Its connections end as in a drain; those of other listeners go on.
fn a_listener_is_removed(threads: usize) {
    let (origin, go) = held();
    let setup = Setup::new(threads).pool("standard", &[&origin]);
    let switch = setup.clone().another_listener("other").start();
    let mut idle = H2Client::begin(pointsman_e2e::Client::plain(switch.address("other")));
    let mut busy = H2Client::begin(pointsman_e2e::Client::plain(switch.address("other")));
    let mut staying = begin(&switch);
    idle.turn();
    staying.turn();
    busy.ask(1, "GET", "/", &[]);
    origin.wait_for_requests(1);
    switch.reload(&setup, 2);
    assert_eq!(idle.ending(), Some(0));
    busy.wait("GOAWAY with the last stream", |client| client.goaway() == Some((1, 0)));
    for _ in 0..2 {
        go.send(()).expect("the origin is there");
    }
    assert_eq!(busy.answer(1).status(), 200);
    assert_eq!(busy.ending(), Some(0));
    assert_eq!((staying.fetch(1, "/").status(), staying.goaway()), (200, None));
}

/// The next stream meets the new rules, on the connection that was there before.
fn rules_are_changed(threads: usize) {
    let (a, b) = (Origin::answering("sa", ok), Origin::answering("sb", ok));
    let setup = Setup::new(threads).rules("R1: { routeTo(a); }").pool("a", &[&a]).pool("b", &[&b]);
    let switch = setup.start();
    let mut clients: Vec<_> = (0..8).map(|_| begin(&switch)).collect();
    for client in &mut clients {
        assert_eq!(client.fetch(1, "/").text(), "sa");
    }
    switch.reload(&setup.rules("R1: { routeTo(b); }"), 2);
    for client in &mut clients {
        assert_eq!(client.fetch(3, "/").text(), "sb");
        assert_eq!(client.goaway(), None);
    }
}

/// So many streams, and the client is told that there are no more.
fn requests_max(threads: usize) {
    let origin = Origin::answering("origin", ok);
    let switch = Setup::new(threads).limits("requests_max = 3").pool("standard", &[&origin]).start();
    for _ in 0..3 {
        let mut client = begin(&switch);
        for stream in [1, 3, 5] {
            assert_eq!(client.goaway(), None);
            assert_eq!(client.fetch(stream, "/").status(), 200);
        }
        assert_eq!(client.ending(), Some(0));
        assert_eq!(client.goaway(), Some((5, 0)));
    }
    assert_eq!(origin.count(), 9);
}

/// A connection on which nothing is asked ends with a word; one that is asked something does not.
fn idle_ms_max(threads: usize) {
    let (origin, go) = held();
    let switch = Setup::new(threads).limits("idle_ms_max = 200").pool("standard", &[&origin]).start();
    let (mut idle, mut busy) = (begin(&switch), begin(&switch));
    busy.ask(1, "GET", "/", &[]);
    origin.wait_for_requests(1);
    assert_eq!(idle.ending(), Some(0));
    assert_eq!(busy.goaway(), None);
    go.send(()).expect("the origin is there");
    assert_eq!(busy.answer(1).status(), 200);
    assert_eq!(busy.ending(), Some(0));
}

/// Nothing, or half of it: the connection closes after `head_ms_max`.
fn the_preface_never_comes(threads: usize) {
    let (authority, origin) = (Authority::new("test CA"), Origin::answering("origin", ok));
    let setup = Setup::new(threads).limits("head_ms_max = 200").pool("standard", &[&origin]);
    let setup = setup.another_listener("only").listener("http2 = \"only\"").limits("head_ms_max = 200");
    let setup = setup.another_listener("tls").tls(&authority.server(&["shop.example"]), "");
    let switch = setup.limits("head_ms_max = 200").start();
    let mut silent = H2Client::silent(pointsman_e2e::Client::plain(switch.address("only")));
    silent.ending();
    for half in [1, 10, 20, PREFACE.len() - 1] {
        // The first line says what is spoken; less may be the beginning of a request of HTTP/1.
        let names = if half < 16 { &["only"][..] } else { &["only", "shop"] };
        for name in names {
            let mut client = H2Client::silent(pointsman_e2e::Client::plain(switch.address(name)));
            client.try_send(&PREFACE[..half]).expect("the switch reads");
            client.ending();
        }
    }
    let trust = TlsClient::new(&authority).alpn(&["h2"]);
    let client = pointsman_e2e::Client::tls(switch.address("tls"), &trust, "shop.example");
    H2Client::silent(client.expect("a handshake")).ending();
    figure(&switch, "pointsman_connections_open", &[], 0.0);
    assert_eq!(origin.connections(), 0);
}

/// What is no preface is refused, and said in the log.
fn another_preface(threads: usize) {
    let origin = Origin::answering("origin", ok);
    let setup = Setup::new(threads).listener("http2 = \"only\"").pool("standard", &[&origin]);
    let switch = setup.start();
    for text in [
        "GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\r",
        "\x16\x03\x01\0\0xxxxxxxxxxxxxxxxxxxx",
    ] {
        let mut client = switch.client();
        client.send(text);
        let answer = client.everything();
        assert!(!answer.starts_with("HTTP/1"), "{answer}");
    }
    figure(&switch, "pointsman_refusals_total", &[("reason", "http2")], 3.0);
    assert_eq!(origin.connections(), 0);
}

/// Plain, the preface is a request of a version that is not spoken; over TLS it is not offered.
fn off(threads: usize) {
    let (authority, origin) = (Authority::new("test CA"), Origin::answering("origin", ok));
    let setup = Setup::new(threads).listener("http2 = \"off\"").pool("standard", &[&origin]);
    let setup = setup.another_listener("tls").listener("http2 = \"off\"");
    let switch = setup.tls(&authority.server(&["shop.example"]), "").start();
    refused_as_http1(&switch, switch.client());
    let tls = |protocols: &[&str]| {
        let trust = TlsClient::new(&authority).alpn(protocols);
        pointsman_e2e::Client::tls(switch.address("tls"), &trust, "shop.example")
    };
    let mut client = tls(&["h2", "http/1.1"]).expect("a handshake");
    assert_eq!(client.get("/").status(), 200);
    assert_eq!(client.alpn().as_deref(), Some("http/1.1"));
    assert!(tls(&["h2"]).is_err(), "HTTP/2 was agreed on");
    refused_as_http1(&switch, tls(&[]).expect("a handshake"));
}

fn refused_as_http1(switch: &Switch, mut client: pointsman_e2e::Client) {
    client.send([PREFACE, &Frame::settings(&[]).bytes()].concat());
    let answer = client.response();
    assert_eq!((answer.status(), answer.head.word(0)), (505, "HTTP/1.1"));
    switch.log_entry("a refusal", |entry| entry["status"] == 505);
}

/// Without HTTP/1, plain and over TLS.
fn only(threads: usize) {
    let (authority, origin) = (Authority::new("test CA"), Origin::answering("origin", ok));
    let setup = Setup::new(threads).listener("http2 = \"only\"").pool("standard", &[&origin]);
    let setup = setup.another_listener("tls").listener("http2 = \"only\"");
    let switch = setup.tls(&authority.server(&["shop.example"]), "").start();
    assert_eq!(begin(&switch).fetch(1, "/").text(), "origin");
    let tls = |protocols: &[&str]| {
        let trust = TlsClient::new(&authority).alpn(protocols);
        pointsman_e2e::Client::tls(switch.address("tls"), &trust, "shop.example")
    };
    let client = tls(&["http/1.1", "h2"]).expect("a handshake");
    assert_eq!(client.alpn().as_deref(), Some("h2"));
    assert_eq!(H2Client::begin(client).fetch(1, "/").text(), "origin");
    assert!(tls(&["http/1.1"]).is_err(), "HTTP/1 was agreed on");
    assert_eq!(origin.count(), 2);
}

/// Each connection says by its first bytes what it speaks; over TLS the handshake does.
fn both_on_one_port(threads: usize) {
    let (authority, origin) = (Authority::new("test CA"), Origin::answering("origin", ok));
    let setup = Setup::new(threads).pool("standard", &[&origin]).another_listener("tls");
    let switch = setup.tls(&authority.server(&["shop.example"]), "").start();
    let (mut one, mut two) = (switch.client(), begin(&switch));
    for stream in [1, 3, 5] {
        assert_eq!((one.get("/").text(), two.fetch(stream, "/").text()), ("origin".into(), "origin".into()));
    }
    // In pieces it is the same preface.
    let mut slow = H2Client::silent(switch.client());
    for byte in [PREFACE, &Frame::settings(&[]).bytes()].concat() {
        slow.try_send(&[byte]).expect("the switch reads");
        // On one thread this byte was looked at by itself.
        one.get("/");
    }
    assert_eq!(slow.fetch(1, "/").text(), "origin");
    for (protocols, agreed) in [
        (&["h2", "http/1.1"][..], Some("h2")),
        (&["http/1.1", "h2"], Some("h2")),
        (&["http/1.1"], Some("http/1.1")),
        (&[], None),
    ] {
        let trust = TlsClient::new(&authority).alpn(protocols);
        let client = pointsman_e2e::Client::tls(switch.address("tls"), &trust, "shop.example");
        let mut client = client.expect("a handshake");
        assert_eq!(client.alpn().as_deref(), agreed, "{protocols:?}");
        let answer = match agreed {
            Some("h2") => H2Client::begin(client).fetch(1, "/").text(),
            _ => client.get("/").text(),
        };
        assert_eq!(answer, "origin");
    }
}

/// A connection that has begun with HTTP/1 stays with it.
fn a_preface_behind_a_request(threads: usize) {
    let origin = Origin::answering("origin", ok);
    let switch = Setup::new(threads).pool("standard", &[&origin]).start();
    let mut client = switch.client();
    assert_eq!(client.get("/").status(), 200);
    refused_as_http1(&switch, client);
    // Nor does it change where the request and the preface come together.
    let mut client = switch.client();
    client.send([b"GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n", PREFACE].concat());
    assert_eq!(client.response().status(), 200);
    assert_eq!(client.response().status(), 505);
    assert!(client.closes());
}

/// A client that sends nothing more gets what it has asked for.
fn a_client_that_ends_its_side(threads: usize) {
    let (origin, go) = held();
    let switch = Setup::new(threads).pool("standard", &[&origin]).start();
    let mut client = begin(&switch);
    client.ask(1, "GET", "/", &[]);
    origin.wait_for_requests(1);
    client.send(&Frame::new(kind::GOAWAY, 0, 0, [0; 8])).expect("the switch reads");
    client.turn();
    go.send(()).expect("the origin is there");
    assert!(matches!(client.outcome(1), Ok(Outcome::Answer(answer)) if answer.status() == 200));
    client.ending();
    figure(&switch, "pointsman_connections_open", &[], 0.0);
}

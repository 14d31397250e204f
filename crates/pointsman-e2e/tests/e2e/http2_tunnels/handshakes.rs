//! What the client says, what the server hears of it, and the same back.

use std::collections::HashSet;
use std::io::{ErrorKind, Read, Write};

use pointsman_e2e::h2_wire::{kind, setting};
use pointsman_e2e::{Authority, Origin, RawOrigin, Setup, ok, read_head};

use super::{VERSION, asked, begin_tls, hears, is_open, setup, values};
use crate::http2::{begin, figure};
use crate::tunnels::{next, switching, tunnelled};
use crate::upgrades::{KEY, WEBSOCKET, echo};

pointsman_e2e::for_threads!(
    announced_where_allowed,
    what_the_server_gets,
    rules_see_a_get,
    answers_of_rules,
    another_protocol,
    no_content_is_announced,
    a_server_that_refuses,
    a_server_that_does_not_change,
    a_wrong_101,
    refused,
    a_refused_version_is_told,
    servers_of_http2_are_not_asked
);

type Fields<'a> = &'a [(&'a str, &'a str)];

/// A connection says whether there are tunnels (RFC 8441 section 3); where there are none `:protocol` is malformed.
fn announced_where_allowed(threads: usize) {
    let server = tunnelled(echo);
    for (upgrades, announced) in [("", Some(1)), ("upgrades = [\"foo\"]", Some(1)), ("upgrades = []", None)] {
        let switch = setup(threads, &server).listener(upgrades).start();
        let mut client = begin(&switch);
        let settings = client.frame().expect("HTTP/2").expect("it is open");
        assert_eq!(settings.kind, kind::SETTINGS);
        let named = setting::ENABLE_CONNECT_PROTOCOL.to_be_bytes();
        let mut values = settings.payload.chunks(6).filter(|pair| pair[..2] == named);
        let value = values.next().map(|pair| u32::from_be_bytes([pair[2], pair[3], pair[4], pair[5]]));
        assert_eq!((value, values.next()), (announced, None), "{upgrades}");
        client.take(settings).expect("HTTP/2");
        if announced.is_none() {
            client.connect(1, "/chat", &[VERSION]);
            assert_eq!(client.reset(1), 1, "PROTOCOL_ERROR");
            client.turn();
            assert_eq!(client.goaway(), None);
        }
    }
    assert_eq!(server.connections(), 0);
}

/// A GET with Upgrade, and a key of its own each time; the client gets a success without what is HTTP/1's.
fn what_the_server_gets(threads: usize) {
    let (authority, (server, handed)) = (Authority::new("test CA"), asked());
    let plain = setup(threads, &server).start();
    let over_tls = setup(threads, &server).tls(&authority.server(&["shop.example"]), "").start();
    let mut clients = [begin(&plain), begin_tls(&over_tls, &authority)];
    let more = [
        VERSION,
        ("sec-websocket-protocol", "chat, superchat"),
        ("sec-websocket-extensions", "permessage-deflate"),
        ("sec-websocket-key", "AAAAAAAAAAAAAAAAAAAAAA=="),
        ("origin", "https://shop.example"),
        ("cookie", "a=1"),
        ("cookie", "b=2"),
        ("x-a", "b"),
    ];
    let mut keys = HashSet::new();
    for stream in [1, 3, 5] {
        for client in &mut clients {
            client.connect(stream, "/chat/a?x=%20y", &more);
            let (head, mut socket) = next(&handed);
            keys.insert(key_of(&head));
            let answer = switching(&head).replacen(
                "\r\n",
                "\r\nSec-WebSocket-Protocol: chat\r\nSec-WebSocket-Extensions: permessage-deflate\r\n\
                 X-B: c\r\nSet-Cookie: d=1\r\nSet-Cookie: e=2\r\n",
                1,
            );
            socket.write_all(answer.as_bytes()).expect("open");
            is_open(client, stream);
            let fields = client.seen(stream).fields;
            let gets = |name: &str| values(&fields, name);
            assert_eq!(gets("sec-websocket-protocol"), ["chat"]);
            assert_eq!(gets("sec-websocket-extensions"), ["permessage-deflate"]);
            assert_eq!((gets("x-b"), gets("set-cookie").len()), (vec!["c".to_owned()], 2));
            for name in
                ["sec-websocket-accept", "upgrade", "connection", "content-length", "transfer-encoding"]
            {
                assert!(gets(name).is_empty(), "{name}: {fields:?}");
            }
        }
    }
    assert_eq!(keys.len(), 6, "keys come again: {keys:?}");
}

/// The key of a handshake whose head is what it is to be.
fn key_of(head: &str) -> String {
    let mut lines = head.lines();
    assert_eq!(lines.next(), Some("GET /chat/a?x=%20y HTTP/1.1"));
    let fields: Vec<(String, &str)> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value))
        .collect();
    let all = |name: &str| -> Vec<&str> {
        fields.iter().filter(|(other, _)| other == name).map(|(_, value)| *value).collect()
    };
    let expected = [
        ("host", "shop.example"),
        ("connection", "Upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-protocol", "chat, superchat"),
        ("sec-websocket-extensions", "permessage-deflate"),
        ("origin", "https://shop.example"),
        ("cookie", "a=1; b=2"),
        ("x-a", "b"),
    ];
    for (name, value) in expected {
        assert_eq!(all(name), [value], "{name}: {head}");
    }
    for name in ["content-length", "transfer-encoding", "te", "expect"] {
        assert_eq!(all(name), [""; 0], "{head}");
    }
    let [key] = all("sec-websocket-key")[..] else { panic!("{head}") };
    // 16 bytes in Base64: 21 digits of six bits each, one of two, and what fills it up.
    let (digits, padding) = key.split_at(22);
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/';
    assert!(
        padding == "==" && digits.bytes().all(is_digit) && digits.ends_with(['A', 'Q', 'g', 'w']),
        "{key}"
    );
    assert_ne!(key, "AAAAAAAAAAAAAAAAAAAAAA==", "the client's own");
    key.to_owned()
}

/// What a rule sees of WebSocket it sees over HTTP/2, and what it changes the server gets.
fn rules_see_a_get(threads: usize) {
    let (server, handed) = asked();
    let rules = "R1: if (method == \"CONNECT\") { reject(405); }
                 R2: if (upgrade == \"websocket\" && method == \"GET\" && path under \"/chat\" && version == \"2\"
                         && cookie[\"sid\"] == \"1\" && header[\"sec-websocket-version\"] == \"13\")
                     { setHeader(\"X-Rule\", \"${path}\"); rewritePath(\"/chat\", \"/ws\");
                       setResponseHeader(\"X-Answer\", \"yes\"); routeTo(chat); }
                 R3: { reject(404); }";
    let setup = Setup::new(threads).rules(rules).pool_at("chat", "", &[("c", server.address())]);
    let switch = setup.start();
    let mut client = begin(&switch);
    client.connect(1, "/chat/room", &[VERSION, ("cookie", "sid=1")]);
    let (head, mut socket) = next(&handed);
    assert!(head.starts_with("GET /ws/room HTTP/1.1\r\n"), "{head}");
    assert!(head.contains("\r\nx-rule: /chat/room\r\n"), "{head}");
    socket.write_all(switching(&head).as_bytes()).expect("open");
    is_open(&mut client, 1);
    assert_eq!(client.seen(1).field("x-answer").as_deref(), Some("yes"));
    client.connect(3, "/chat/room", &[VERSION]);
    assert_eq!(client.answer(3).status(), 404);
    client.connect(5, "/other", &[VERSION, ("cookie", "sid=1")]);
    assert_eq!(client.answer(5).status(), 404);
    assert_eq!((server.connections(), client.goaway()), (1, None));
}

/// A rule's own answer is one, unless the client would take it for a tunnel.
fn answers_of_rules(threads: usize) {
    let server = RawOrigin::silent();
    let rules = "if (path == \"/no\") { reject(403, \"not you\"); }
                 if (path == \"/moved\") { redirect(308, \"https://${host}/new\"); }
                 if (path == \"/said\") { respond(200, \"no frames\"); }
                 if (path == \"/nothing\") { respond(204, \"\"); }
                 if (path == \"/gone\") { discard(); }";
    let switch = setup(threads, &server).rules(rules).start();
    let mut client = begin(&switch);
    let cases = [
        ("/no", 403, "not you\n"),
        ("/moved", 308, ""),
        ("/said", 501, "protocol not supported\n"),
        ("/nothing", 501, "protocol not supported\n"),
    ];
    for (stream, (path, status, text)) in (1..).step_by(4).zip(cases) {
        client.connect(stream, path, &[VERSION]);
        let answer = client.answer(stream);
        assert_eq!((answer.status(), answer.text().as_str()), (status, text), "{path}");
    }
    client.connect(101, "/gone", &[VERSION]);
    client.reset(101);
    assert_eq!(client.fetch(103, "/said").text(), "no frames");
    assert_eq!((server.connections(), client.goaway()), (0, None));
}

/// Any protocol that `upgrades` names is asked for; only WebSocket has a key.
fn another_protocol(threads: usize) {
    let (server, handed) = asked();
    let switch = setup(threads, &server).listener("upgrades = [\"foo/2\"]").start();
    let mut client = begin(&switch);
    client.connect(1, "/", &[(":protocol", "FOO/2")]);
    let (head, mut socket) = next(&handed);
    assert!(
        head.contains("\r\nUpgrade: FOO/2\r\n") && head.contains("\r\nConnection: Upgrade\r\n"),
        "{head}"
    );
    assert!(!head.to_ascii_lowercase().contains("sec-websocket"), "{head}");
    let answer = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: foo/2\r\n\r\n";
    socket.write_all(answer.as_bytes()).expect("open");
    is_open(&mut client, 1);
    socket.write_all(b"\0anything").expect("open");
    hears(&mut client, 1, b"\0anything");
    client.connect(3, "/chat", &[VERSION]);
    assert_eq!(client.answer(3).status(), 501, "WebSocket is not named");
    assert_eq!(server.connections(), 1);
}

/// A tunnel's bytes are no content. A client that says that there will be none is held to it (RFC 9113 section 8.1.1).
fn no_content_is_announced(threads: usize) {
    let (server, handed) = asked();
    let switch = setup(threads, &server).start();
    let mut client = begin(&switch);
    client.connect(1, "/chat", &[VERSION, ("content-length", "0")]);
    let (head, mut socket) = next(&handed);
    socket.write_all(switching(&head).as_bytes()).expect("open");
    is_open(&mut client, 1);
    socket.write_all(b"down").expect("open");
    hears(&mut client, 1, b"down");
    client.send_content(1, 0, b"up").expect("there is leave");
    assert_eq!(client.reset(1), 1, "PROTOCOL_ERROR");
    assert_eq!(socket.read(&mut [0]).expect_err("broken off").kind(), ErrorKind::ConnectionReset);
    assert_eq!(client.goaway(), None);
}

/// An answer like any is passed on whole, and its stream ends; the connection is as it was.
fn a_server_that_refuses(threads: usize) {
    let answers = [
        ("403 Forbidden\r\nContent-Length: 6\r\nX-Why: no\r\n\r\nnot me", 403, "not me"),
        (
            "404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nnot\r\n5\r\n here\r\n0\r\n\r\n",
            404,
            "not here",
        ),
        ("302 Found\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n", 302, ""),
        (
            "426 Upgrade Required\r\nUpgrade: other\r\nConnection: Upgrade\r\nContent-Length: 0\r\n\r\n",
            426,
            "",
        ),
        ("503 Busy\r\nConnection: close\r\n\r\nto the end", 503, "to the end"),
    ];
    let server = answering(answers.map(|(answer, ..)| answer).to_vec());
    let switch = setup(threads, &server).start();
    let mut client = begin(&switch);
    for (stream, (number, (_, status, text))) in (1..).step_by(2).zip(answers.iter().enumerate()) {
        client.connect(stream, &format!("/{number}"), &[VERSION]);
        let answer = client.answer(stream);
        assert_eq!((answer.status(), answer.text().as_str()), (*status, *text));
        assert_eq!(answer.field("upgrade").or(answer.field("connection")), None);
        client.wait("a reset", |client| client.seen(stream).reset.is_some());
        assert_eq!(client.seen(stream).reset, Some(0), "the rest is not wanted");
    }
    assert_eq!(client.goaway(), None);
    figure(&switch, "pointsman_server_in_flight_requests", &[], 0.0);
    assert!(switch.metric("pointsman_tunnels_total", &[]) < 0.5);
}

/// A server that answers the request with the number of its path.
fn answering(answers: Vec<&'static str>) -> RawOrigin {
    RawOrigin::serving(move |mut socket, _| {
        while let Some((head, _)) = read_head(&mut socket) {
            let number = head.split(' ').nth(1).and_then(|path| path[1..].parse::<usize>().ok());
            let answer = number.and_then(|number| answers.get(number)).expect("a number of an answer");
            let sent = socket.write_all(format!("HTTP/1.1 {answer}").as_bytes());
            if sent.is_err() || answer.contains("Connection: close") {
                return;
            }
        }
    })
}

/// The client takes every success for a change (RFC 8441 section 5), so it must not get one that is none.
fn a_server_that_does_not_change(threads: usize) {
    let answers = [
        "200 OK\r\nContent-Length: 5\r\n\r\nhello",
        "200 OK\r\nContent-Length: 0\r\n\r\n",
        "204 No Content\r\n\r\n",
        "206 Partial Content\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "299 Fine\r\nConnection: close\r\n\r\n",
    ];
    bad_answers(threads, answers.to_vec());
}

fn a_wrong_101(threads: usize) {
    let answers = [
        "101 S\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
        "101 S\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n",
        "101 S\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n",
        "101 S\r\nConnection: Upgrade\r\n\r\n",
        "101 S\r\n\r\n",
    ];
    bad_answers(threads, answers.to_vec());
}

/// Each is a 502, and nothing of it reaches the client.
fn bad_answers(threads: usize, answers: Vec<&'static str>) {
    let count = u32::try_from(answers.len()).expect("a few");
    let server = answering(answers);
    let switch = setup(threads, &server).start();
    let mut client = begin(&switch);
    for number in 0..count {
        let stream = 2 * number + 1;
        client.connect(stream, &format!("/{number}"), &[VERSION]);
        let answer = client.answer(stream);
        assert_eq!(answer.status(), 502, "answer {number}");
        assert!(!answer.text().contains("hello"), "{answer:?}");
    }
    assert_eq!(client.goaway(), None);
    figure(&switch, "pointsman_server_in_flight_requests", &[], 0.0);
    assert!(switch.metric("pointsman_tunnels_total", &[]) < 0.5);
}

/// No server sees anything of what is no handshake, or one for something that is not allowed.
fn refused(threads: usize) {
    let server = RawOrigin::silent();
    let switch = setup(threads, &server).start();
    let mut client = begin(&switch);
    let long = "x".repeat(2000);
    let cases: &[(&str, Fields<'_>, u16)] = &[
        ("unknown", &[VERSION], 501),
        ("h2c", &[VERSION], 501),
        ("", &[VERSION], 501),
        ("web socket", &[VERSION], 501),
        (" websocket", &[VERSION], 501),
        ("websocket\t", &[VERSION], 501),
        ("websocket, foo", &[VERSION], 501),
        ("websocket,", &[VERSION], 501),
        ("websocket\r\nX-Evil: 1", &[VERSION], 501),
        ("websocket\r\n\r\nGET /evil HTTP/1.1\r\nHost: a\r\n\r\n", &[VERSION], 501),
        ("websocket\0", &[VERSION], 501),
        ("websock\u{e9}t", &[VERSION], 501),
        (&long, &[VERSION], 501),
        ("websocket", &[], 400),
        ("websocket", &[VERSION, VERSION], 400),
        ("websocket", &[VERSION, ("content-length", "5")], 400),
        ("websocket", &[("sec-websocket-version", "8")], 426),
        ("websocket", &[("sec-websocket-version", "13, 8")], 426),
    ];
    for (stream, (protocol, more, status)) in (1..).step_by(2).zip(cases) {
        client.connect(stream, "/chat", &[&[(":protocol", *protocol)], *more].concat());
        let answer = client.answer(stream);
        assert_eq!(answer.status(), *status, "{protocol:?} {more:?}");
        assert_eq!(answer.text().contains("protocol not supported"), *status == 501, "{answer:?}");
    }
    assert_eq!((server.connections(), client.goaway()), (0, None));
    figure(&switch, "pointsman_connections_open", &[("listener", "shop")], 1.0);
}

/// Which version there is stands in the answer, and nothing of what HTTP/1 says beside it.
fn a_refused_version_is_told(threads: usize) {
    let server = RawOrigin::silent();
    let switch = setup(threads, &server).start();
    let mut client = begin(&switch);
    client.connect(1, "/chat", &[("sec-websocket-version", "8")]);
    let answer = client.answer(1);
    assert_eq!((answer.status(), answer.text().as_str()), (426, "WebSocket version not supported\n"));
    assert_eq!(values(&answer.fields, "sec-websocket-version"), ["13"]);
    for name in ["upgrade", "connection", "keep-alive", "transfer-encoding"] {
        assert_eq!(answer.field(name), None, "{name}");
    }
    let refused = [("listener", "shop"), ("reason", "unsupported")];
    figure(&switch, "pointsman_refusals_total", &refused, 1.0);
    assert_eq!(server.connections(), 0);
}

/// A server that is spoken HTTP/2 to gets a request like any, whichever version the client speaks.
fn servers_of_http2_are_not_asked(threads: usize) {
    let origin = Origin::answering("origin", |exchange| match exchange.target() {
        "/missing" => exchange.answer("404 Not Found", "missing"),
        _ => ok(exchange),
    });
    let inner = Setup::new(threads).pool("standard", &[&origin]).start();
    let setup = Setup::new(threads);
    let setup = setup.pool_at("standard", "protocol = \"h2\"", &[("inner", inner.address("shop"))]);
    let switch = setup.start();
    let mut client = begin(&switch);
    client.connect(1, "/missing", &[VERSION]);
    let answer = client.answer(1);
    assert_eq!((answer.status(), answer.text().as_str()), (404, "missing"));
    client.connect(3, "/chat", &[VERSION]);
    assert_eq!(client.answer(3).status(), 502, "a success that is no change");
    let fields = format!("{WEBSOCKET}{KEY}");
    assert_eq!(switch.client().ask("GET", "/chat", &fields).text(), "origin");
    for request in origin.requests() {
        assert!(request.head.start.starts_with("GET /"), "{request:?}");
        for name in ["upgrade", "connection"] {
            assert_eq!(request.head.field(name), None, "{request:?}");
        }
    }
    assert_eq!((origin.count(), client.fetch(5, "/").text().as_str()), (3, "origin"));
}

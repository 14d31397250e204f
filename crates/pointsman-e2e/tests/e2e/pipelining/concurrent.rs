//! `pipeline = "concurrent"`: side by side at servers, in order at the client.

use pointsman_e2e::{H2Client, Outcome, TlsClient};

use super::{BIG_BYTES, Over, Shop, big, expect, get, gets};

pointsman_e2e::for_threads!(
    answers_come_in_order,
    each_kind_of_answer,
    some_requests_are_alone,
    no_more_than_the_limit,
    answers_that_wait_are_bounded,
    the_last_request_is_the_last,
    in_pieces,
    the_switch_answers_in_turn_too,
    http2_has_its_streams,
    a_drain_answers_what_was_taken,
    a_reload_leaves_them_alone
);

/// All are at their servers before any is answered, and each server is free when its answer is here.
fn answers_come_in_order(threads: usize) {
    for over in [Over::Plain, Over::Tls] {
        let shop = Shop::with(threads, "concurrent", over, |setup| setup);
        let mut client = shop.client();
        let targets = ["/a/gated/1", "/b/gated/2", "/c/gated/3"];
        for round in 0..2 {
            client.send(gets(&targets));
            for target in targets {
                shop.stage.wait_for(&format!("GET {target}"));
            }
            for (target, server) in [(targets[2], "c"), (targets[1], "b")] {
                shop.stage.open(target);
                shop.wait_in_flight(server, 0.0);
            }
            shop.wait_in_flight("a", if round == 0 { 1.0 } else { 0.0 });
            shop.stage.open(targets[0]);
            for target in targets {
                expect(&mut client, target);
            }
        }
        let entry = shop.switch.log_of(targets[1]);
        assert_eq!(
            (&entry["status"], &entry["server"], entry.get("error")),
            (&200.into(), &"b".into(), None)
        );
        shop.switch.expect_log_lines(6);
    }
}

/// Answers of every framing wait and go out whole.
fn each_kind_of_answer(threads: usize) {
    for over in [Over::Plain, Over::Tls] {
        let shop = Shop::with(threads, "concurrent", over, |setup| setup);
        let mut client = shop.client();
        let head = "HEAD /c/head HTTP/1.1\r\nHost: shop.example\r\n\r\n";
        let options = "OPTIONS /a/options HTTP/1.1\r\nHost: shop.example\r\n\r\n";
        let more = gets(&["/b/chunked", "/c/304", "/a/early", "/b/chunked/half"]);
        client.send(format!("{}{more}{head}{options}{}", get("/a/gated/1"), get("/b/2")));
        shop.stage.wait_for("GET /b/2");
        shop.stage.open("/b/chunked/half");
        shop.stage.open("/a/gated/1");
        expect(&mut client, "/a/gated/1");
        let chunked = expect(&mut client, "/b/chunked");
        assert_eq!(chunked.body.trailers, [("X-Trailer".to_owned(), "/b/chunked".to_owned())]);
        let unmodified = client.response();
        assert_eq!((unmodified.status(), unmodified.server()), (304, "c"));
        let early = expect(&mut client, "/a/early");
        let hints: Vec<_> = early.interim.iter().map(|head| head.field("link")).collect();
        assert_eq!(hints, [Some("</a/early>")]);
        expect(&mut client, "/b/chunked/half");
        let head = client.response_to_head();
        assert_eq!((head.status(), head.head.field("content-length")), (200, Some("7")));
        expect(&mut client, "/a/options");
        expect(&mut client, "/b/2");
    }
}

/// Such a request waits until all before it are answered, and those behind wait for it.
fn some_requests_are_alone(threads: usize) {
    let host = "Host: shop.example\r\n";
    let alone = [
        ("POST", format!("POST /b/alone HTTP/1.1\r\n{host}Content-Length: 3\r\n\r\nabc")),
        ("POST", format!("POST /b/alone HTTP/1.1\r\n{host}\r\n")),
        ("DELETE", format!("DELETE /b/alone HTTP/1.1\r\n{host}\r\n")),
        ("PURGE", format!("PURGE /b/alone HTTP/1.1\r\n{host}\r\n")),
        ("GET", format!("GET /b/alone HTTP/1.1\r\n{host}Content-Length: 3\r\n\r\nabc")),
        ("GET", format!("GET /b/alone HTTP/1.1\r\n{host}Connection: upgrade\r\nUpgrade: x\r\n\r\n")),
        ("GET", format!("GET /b/alone HTTP/1.0\r\n{host}Connection: keep-alive\r\n\r\n")),
        (
            "PUT",
            format!("PUT /b/alone HTTP/1.1\r\n{host}Expect: 100-continue\r\nContent-Length: 3\r\n\r\nabc"),
        ),
    ];
    for (method, request) in alone {
        let shop = Shop::open(threads, "concurrent");
        let mut client = shop.client();
        client.send(format!("{}{}{request}{}", get("/a/gated/1"), get("/c/gated/2"), get("/c/3")));
        shop.stage.wait_for("GET /a/gated/1");
        shop.stage.wait_for("GET /c/gated/2");
        shop.stage.open("/c/gated/2");
        shop.stage.open("/a/gated/1");
        for target in ["/a/gated/1", "/c/gated/2", "/b/alone", "/c/3"] {
            expect(&mut client, target);
        }
        let happened = shop.stage.told();
        let alone = happened.iter().position(|what| *what == format!("{method} /b/alone"));
        let alone = alone.unwrap_or_else(|| panic!("{request}: {happened:?}"));
        assert_eq!(happened[alone + 1..], ["answers /b/alone", "GET /c/3", "answers /c/3"], "{request}");
        assert_eq!(alone, 4, "{request}: {happened:?}");
    }
}

/// One more goes to its server when one is answered.
fn no_more_than_the_limit(threads: usize) {
    let shop =
        Shop::with(threads, "concurrent", Over::Plain, |setup| setup.limits("pipeline_requests_max = 2"));
    let mut client = shop.client();
    let targets = ["/a/gated/1", "/b/gated/2", "/c/gated/3", "/a/gated/4"];
    client.send(gets(&targets));
    for two in targets.windows(2) {
        two.iter().for_each(|target| shop.stage.wait_for(&format!("GET {target}")));
        shop.stage.open(two[0]);
        expect(&mut client, two[0]);
    }
    shop.stage.open(targets[3]);
    expect(&mut client, targets[3]);
    for three in targets.windows(3) {
        shop.stage.expect_order(&format!("answers {}", three[0]), &format!("GET {}", three[2]));
    }
}

/// A server whose answer waits is not read beyond the limit; all of the answer comes in the end.
fn answers_that_wait_are_bounded(threads: usize) {
    let limits = "pipeline_bytes_max = 100000";
    for over in [Over::Plain, Over::Tls] {
        let shop =
            Shop::with(threads, "concurrent", over, |setup| setup.limits(limits).top("splice_pipes_max = 0"));
        let mut client = shop.client();
        let targets = ["/a/gated/1", "/b/big", "/c/big", "/a/4"];
        client.send(gets(&targets));
        shop.stage.wait_for("answers /b/big");
        shop.stage.wait_for("answers /c/big");
        // Whoever is answered behind them has found no room, but has been sent on.
        shop.stage.wait_for("GET /a/4");
        // As much goes over other connections meanwhile.
        for number in 0..2 {
            let answer = shop.client().get(&format!("/b/big/{number}"));
            assert_eq!(answer.body.bytes.len(), BIG_BYTES);
        }
        let booked = shop.switch.metric("pointsman_buffer_booked_bytes", &[]);
        assert!(booked < (BIG_BYTES / 2) as f64, "{booked} bytes");
        assert!(!shop.stage.has("sent /b/big") && !shop.stage.has("sent /c/big"));
        shop.stage.open("/a/gated/1");
        expect(&mut client, "/a/gated/1");
        for target in ["/b/big", "/c/big"] {
            let answer = client.response();
            assert!(answer.body.bytes == big(target), "{target}: {} bytes", answer.body.bytes.len());
        }
        expect(&mut client, "/a/4");
        shop.wait_in_flight("b", 0.0);
    }
}

/// What a client sends behind its last request is nobody's.
fn the_last_request_is_the_last(threads: usize) {
    let close = "GET /b/2 HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n\r\n";
    let by_limit = |setup: pointsman_e2e::Setup| setup.limits("requests_max = 2");
    let usual = |setup: pointsman_e2e::Setup| setup;
    let cases: [(String, &dyn Fn(pointsman_e2e::Setup) -> pointsman_e2e::Setup); 2] =
        [(close.to_owned(), &usual), (get("/b/2"), &by_limit)];
    for (last, setup) in cases {
        let shop = Shop::with(threads, "concurrent", Over::Plain, setup);
        let mut client = shop.client();
        client.send(format!("{}{last}{}", get("/a/gated/1"), get("/c/3")));
        shop.stage.wait_for("GET /b/2");
        shop.stage.open("/a/gated/1");
        assert_eq!(expect(&mut client, "/a/gated/1").head.field("connection"), None);
        assert_eq!(expect(&mut client, "/b/2").head.field("connection"), Some("close"));
        assert!(client.closes());
        assert!(!shop.stage.has("GET /c/3"));
        assert_eq!(shop.switch.log_of("/b/2")["status"], 200);
        shop.switch.expect_log_lines(2);
    }
}

/// However the bytes come, each request is what it is.
fn in_pieces(threads: usize) {
    let shop = Shop::open(threads, "concurrent");
    let targets = ["/a/1", "/b/gated/2", "/c/3", "/a/4"];
    let all = gets(&targets);
    for size in [1, 7, 50, 119] {
        let mut client = shop.client();
        for piece in all.as_bytes().chunks(size) {
            client.send(piece);
        }
        shop.stage.open("/b/gated/2");
        for target in targets {
            expect(&mut client, target);
        }
        client.send(get("/c/5"));
        expect(&mut client, "/c/5");
    }
}

/// What a rule answers waits as well.
fn the_switch_answers_in_turn_too(threads: usize) {
    let shop = Shop::open(threads, "concurrent");
    let mut client = shop.client();
    client.send(gets(&["/a/gated/1", "/own", "/b/2", "/refused", "/c/3"]));
    for target in ["/b/2", "/c/3"] {
        shop.stage.wait_for(&format!("answers {target}"));
    }
    shop.stage.open("/a/gated/1");
    expect(&mut client, "/a/gated/1");
    let own = client.response();
    assert_eq!((own.status(), own.text().as_str()), (200, "own"));
    expect(&mut client, "/b/2");
    assert_eq!(client.response().status(), 403);
    expect(&mut client, "/c/3");
    client.send(gets(&["/a/gated/4", "/discarded", "/b/5"]));
    shop.stage.wait_for("answers /b/5");
    shop.stage.open("/a/gated/4");
    expect(&mut client, "/a/gated/4");
    assert!(client.closes());
    assert_eq!(shop.switch.log_of("/b/5").get("status"), None);
}

/// With prior knowledge, and agreed on in the handshake.
fn http2_has_its_streams(threads: usize) {
    for (over, scheme) in [(Over::Plain, "http"), (Over::Tls, "https")] {
        for mode in ["concurrent", "latest"] {
            let shop = Shop::with(threads, mode, over, |setup| setup);
            let client = match &shop.authority {
                None => shop.switch.client(),
                Some(authority) => {
                    let config = TlsClient::new(authority).alpn(&["h2"]);
                    shop.switch.tls_client(&config, "shop.example").expect("a handshake")
                }
            };
            let mut client = H2Client::begin(client);
            for (stream, target) in [(1, "/a/1"), (3, "/b/2")] {
                match client.get(stream, scheme, target).expect("HTTP/2") {
                    Outcome::Answer(answer) => {
                        assert_eq!((answer.status(), answer.text().as_str()), (200, target))
                    }
                    other => panic!("{mode} {over:?}: {other:?}"),
                }
            }
        }
    }
}

fn a_drain_answers_what_was_taken(threads: usize) {
    for over in [Over::Plain, Over::Tls] {
        let mut shop = Shop::with(threads, "concurrent", over, |setup| setup);
        let mut client = shop.client();
        let targets = ["/a/gated/1", "/b/gated/2", "/c/gated/3"];
        client.send(gets(&targets));
        for target in targets {
            shop.stage.wait_for(&format!("GET {target}"));
        }
        shop.switch.signal("TERM");
        let drains = || shop.switch.admin_get("/health").status() == 503;
        pointsman_e2e::until("a drain", || drains().then_some(()));
        for target in [targets[2], targets[1], targets[0]] {
            shop.stage.open(target);
        }
        for target in targets {
            let says = expect(&mut client, target).head.field("connection").map(str::to_owned);
            assert_eq!(says.as_deref(), if target == targets[2] { Some("close") } else { None });
        }
        assert!(client.closes());
        assert_eq!(shop.switch.wait_for_exit(), Some(0));
    }
}

/// A connection keeps the mode that it began with; new ones have the new one.
fn a_reload_leaves_them_alone(threads: usize) {
    let (setup, stage, servers, authority) = Shop::setup(threads, "concurrent", Over::Plain);
    let text = setup.text().replace("pipeline = \"concurrent\"", "pipeline = \"hold\"");
    let shop = Shop { switch: setup.start(), stage, authority, _servers: servers };
    let mut client = shop.client();
    client.send(gets(&["/a/gated/1", "/b/2"]));
    shop.stage.wait_for("answers /b/2");
    std::fs::write(shop.switch.folder().join("pointsman.toml"), text).expect("a writable folder");
    shop.switch.signal("HUP");
    shop.switch.wait_for_line("reloaded generation=2");
    shop.stage.open("/a/gated/1");
    expect(&mut client, "/a/gated/1");
    expect(&mut client, "/b/2");
    client.send(gets(&["/a/gated/3", "/b/4"]));
    shop.stage.wait_for("answers /b/4");
    shop.stage.open("/a/gated/3");
    expect(&mut client, "/a/gated/3");
    expect(&mut client, "/b/4");
    let mut other = shop.client();
    other.send(gets(&["/a/gated/5", "/b/6"]));
    shop.stage.wait_for("GET /a/gated/5");
    shop.stage.open("/a/gated/5");
    expect(&mut other, "/a/gated/5");
    expect(&mut other, "/b/6");
    shop.stage.expect_order("answers /a/gated/5", "GET /b/6");
}

//! Limits of a stream are those of a request, and end it alone.

use pointsman_e2e::h2_wire::{Frame, kind, setting};
use pointsman_e2e::{Client, H2Client, Origin, Outcome, Setup, Then, ok, until};

use crate::drain::held;
use crate::http2::{begin, figure};

pointsman_e2e::for_threads!(
    http2_streams_max,
    sizes_of_a_head,
    body_bytes_max,
    body_ms_max,
    response_ms_max,
    write_ms_max,
    windows_that_are_taken_back,
    many_resets
);

/// More at a time are refused as never processed, and may come again.
fn http2_streams_max(threads: usize) {
    let (origin, go) = held();
    let switch = Setup::new(threads).limits("http2_streams_max = 2").pool("standard", &[&origin]).start();
    let mut client = begin(&switch);
    let settings = client.frame().expect("HTTP/2").expect("it is open");
    let most = [&setting::MAX_CONCURRENT_STREAMS.to_be_bytes()[..], &2_u32.to_be_bytes()].concat();
    assert!(
        settings.kind == kind::SETTINGS && settings.payload.chunks(6).any(|pair| pair == most),
        "{settings:?}"
    );
    client.take(settings).expect("HTTP/2");
    client.turn();
    for stream in [1, 3] {
        client.ask(stream, "GET", "/", &[]);
    }
    origin.wait_for_requests(2);
    client.ask(5, "GET", "/late", &[]);
    assert_eq!(client.reset(5), 7, "REFUSED_STREAM");
    for _ in 0..3 {
        go.send(()).expect("the origin is there");
    }
    assert_eq!((client.answer(1).status(), client.answer(3).status()), (200, 200));
    assert_eq!(client.fetch(7, "/").status(), 200);
    assert_eq!((origin.count(), client.goaway()), (3, None));
}

/// 431 and 414 as over HTTP/1.
fn sizes_of_a_head(threads: usize) {
    let origin = Origin::new("origin");
    let limits = "head_bytes_max = 2000\nheaders_max = 20\ntarget_bytes_max = 100";
    let switch = Setup::new(threads).limits(limits).pool("standard", &[&origin]).start();
    let mut client = begin(&switch);
    let (long, too_long) = ("x".repeat(1000), "x".repeat(3000));
    let path = |bytes: usize| format!("/{}", "p".repeat(bytes - 1));
    let many: Vec<(&str, &str)> = (0..25).map(|_| ("x", "y")).collect();
    let (fits, exceeds) = (path(100), path(101));
    let cases = [
        ("/", vec![("x", long.as_str())], 200),
        ("/", vec![("x", too_long.as_str())], 431),
        ("/", many, 431),
        (fits.as_str(), vec![], 200),
        (exceeds.as_str(), vec![], 414),
    ];
    for (stream, (path, more, status)) in (1..).step_by(2).zip(cases) {
        client.ask(stream, "GET", path, &more);
        assert_eq!(client.answer(stream).status(), status, "{path} {more:?}");
    }
    assert_eq!((origin.count(), client.goaway()), (2, None));
}

/// What is announced is refused at once, what is not when it has come.
fn body_bytes_max(threads: usize) {
    let origin = Origin::new("origin");
    let switch = Setup::new(threads).limits("body_bytes_max = 1000").pool("standard", &[&origin]).start();
    let mut client = begin(&switch);
    client.post(1, "/announced", &[("content-length", "1001")]);
    assert_eq!(client.answer(1).status(), 413);
    client.post(3, "/unannounced", &[]);
    client.send_content(3, 0, &[7; 1500]).expect("the switch reads");
    assert_eq!(client.answer(3).status(), 413);
    client.wait("resets", |client| [1, 3].iter().all(|stream| client.seen(*stream).reset == Some(0)));
    client.post(5, "/fits", &[("content-length", "1000")]);
    client.send_content(5, 1, &[7; 1000]).expect("the switch reads");
    assert_eq!(client.answer(5).status(), 200);
    assert_eq!(origin.requests().iter().filter(|request| request.complete).count(), 1);
    figure(&switch, "pointsman_refusals_total", &[("reason", "body_bytes")], 2.0);
    assert_eq!(client.goaway(), None);
}

/// 408 to a stream whose content pauses; one beside it waits for its server.
fn body_ms_max(threads: usize) {
    let (origin, go) = held();
    let switch = Setup::new(threads).limits("body_ms_max = 200").pool("standard", &[&origin]).start();
    let mut client = begin(&switch);
    client.ask(1, "GET", "/", &[]);
    client.post(3, "/slow", &[("content-length", "9")]);
    client.send_content(3, 0, b"half").expect("the switch reads");
    assert_eq!(client.answer(3).status(), 408);
    for _ in 0..2 {
        go.send(()).expect("the origin is there");
    }
    assert_eq!((client.answer(1).status(), client.goaway()), (200, None));
}

/// 504 to a stream whose server is silent; the next one is served.
fn response_ms_max(threads: usize) {
    let (silent, go) = held();
    let origin = Origin::new("origin");
    let setup = Setup::new(threads).rules("if (path == \"/silent\") { routeTo(silent); }");
    let setup = setup.pool("standard", &[&origin]);
    let switch = setup.pool_with("silent", "response_ms_max = 200", &[&silent]).start();
    let mut client = begin(&switch);
    client.ask(1, "GET", "/silent", &[]);
    client.ask(3, "GET", "/", &[]);
    assert_eq!((client.answer(3).status(), client.answer(1).status()), (200, 504));
    assert_eq!((client.fetch(5, "/").status(), client.goaway()), (200, None));
    drop(go);
}

/// A stream whose answer is not taken is reset, and its server let go of; others are taken.
fn write_ms_max(threads: usize) {
    let origin = Origin::answering("origin", |exchange| match exchange.target() {
        "/long" => {
            exchange.send("HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n");
            exchange.send([7; 1_000_000]);
            // Until the switch lets go.
            exchange.piece();
            Then::Close
        }
        _ => ok(exchange),
    });
    let switch = Setup::new(threads).limits("write_ms_max = 300").pool("standard", &[&origin]).start();
    let mut client = H2Client::begin_with_window(switch.client(), 1000);
    client.hold(1);
    client.ask(1, "GET", "/long", &[]);
    assert_eq!(client.reset(1), 2);
    assert_eq!(client.seen(1).body.len(), 1000);
    figure(&switch, "pointsman_refusals_total", &[("reason", "write_timeout")], 1.0);
    figure(&switch, "pointsman_server_in_flight_requests", &[], 0.0);
    assert_eq!((client.fetch(3, "/").text().as_str(), client.goaway()), ("origin", None));
}

/// A client that takes back what it asks for is told to be calm (CVE-2023-44487), and others are served.
fn many_resets(threads: usize) {
    let (origin, go) = held();
    let switch = Setup::new(threads).pool("standard", &[&origin]).start();
    let mut client = begin(&switch);
    let end = (1..100_000_u32).step_by(2).find(|stream| {
        client.ask(*stream, "GET", "/", &[]);
        client.send(&Frame::rst_stream(*stream, 8)).is_err()
    });
    assert!(end.is_some(), "it goes on");
    let outcome = client.outcome(99_999).expect("HTTP/2");
    assert!(matches!(outcome, Outcome::GoAway(11) | Outcome::Closed), "{outcome:?}");
    figure(&switch, "pointsman_server_in_flight_requests", &[], 0.0);
    figure(&switch, "pointsman_refusals_total", &[("reason", "http2")], 1.0);
    drop(go);
    let mut next = H2Client::begin(switch.client());
    assert_eq!(next.fetch(1, "/").status(), 200);
}

/// Answers are whole and held, and then the client takes their windows back: what else it takes is no sign that it wants
/// them.
fn windows_that_are_taken_back(threads: usize) {
    const STREAMS: u32 = 60;
    let body = "x".repeat(60 * 1024);
    let origin = Origin::answering("origin", move |exchange| exchange.answer("200 OK", &body));
    let setup = Setup::new(threads).limits("write_ms_max = 1000").pool("standard", &[&origin]);
    let switch = setup.start();
    let mut client = H2Client::begin(Client::cramped(switch.address("shop"), 16 * 1024));
    for stream in (1..).step_by(2).take(STREAMS as usize) {
        client.ask(stream, "GET", "/", &[]);
    }
    until("answers that are whole", || {
        let of = |name| switch.metric(name, &[]);
        let is_done = of("pointsman_requests_total") > f64::from(STREAMS) - 0.5;
        (is_done && of("pointsman_server_in_flight_requests") < 0.5).then_some(())
    });
    client.send(&Frame::settings(&[(setting::INITIAL_WINDOW_SIZE, 0)])).expect("the switch reads");
    let mut number = 0_u64;
    while client.send(&Frame::ping(number.to_be_bytes())).is_ok() {
        number += 1;
        match client.frame() {
            Ok(Some(frame)) => client.take(frame).expect("HTTP/2"),
            Ok(None) | Err(_) => break,
        }
    }
    assert_eq!(client.goaway(), None, "not for what it sent");
    let refused = || switch.metric("pointsman_refusals_total", &[("reason", "write_timeout")]);
    until("a client that was given up", || (refused() > 0.5).then_some(()));
}

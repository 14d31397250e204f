//! What clients begin and do not go on with, and what is taken for a flood and what is none.

use std::time::{Duration, Instant};

use pointsman_e2e::h2_wire::{Frame, PREFACE, flag, kind, request};
use pointsman_e2e::{H2Client, Origin, PATIENCE, RawOrigin, Setup, Then, ok};

use crate::http2::{begin, figure};

pointsman_e2e::for_threads!(
    heads_that_do_not_come,
    a_head_that_does_not_come_beside_a_stream,
    an_end_that_does_not_come,
    write_ms_max_of_each_stream,
    resets_behind_a_deadline_are_no_flood,
    refused_content_is_no_flood,
    what_is_refused_may_be_said_to_its_end,
    a_stream_that_failed_asks_for_nothing
);

const CANCEL: u32 = 8;

/// Says nothing more to the end of the connection.
fn ends_unheard(client: &mut H2Client) {
    while client.frame().expect("HTTP/2").is_some() {}
}

/// Whatever it is that has begun: a connection, a frame, a head.
fn heads_that_do_not_come(threads: usize) {
    let origin = Origin::new("origin");
    let switch = Setup::new(threads).limits("head_ms_max = 300").pool("standard", &[&origin]).start();
    let begin = [PREFACE, &Frame::settings(&[]).bytes()].concat();
    let whole = Frame::headers(1, flag::END_STREAM, &request("GET", "/")).bytes();
    let open = Frame::new(kind::HEADERS, flag::END_STREAM, 1, []).bytes();
    let ways = [
        PREFACE[..20].to_vec(),
        PREFACE.to_vec(),
        [&begin, &whole[..5]].concat(),
        [&begin, &whole[..20]].concat(),
        [&begin[..], &open].concat(),
        [&begin[..], &open, &Frame::new(kind::CONTINUATION, 0, 1, []).bytes()].concat(),
    ];
    for (way, count) in ways.iter().zip(1_u8..) {
        let mut client = H2Client::silent(switch.client());
        client.try_send(way).expect("the switch reads");
        ends_unheard(&mut client);
        figure(&switch, "pointsman_refusals_total", &[("reason", "head_timeout")], count.into());
        switch
            .log_entry("a line for each", |line| line["error"] == "HTTP/2: the head did not arrive in time");
    }
    assert_eq!(origin.count(), 0);
    // Who goes on in time is served, however long the connection lives.
    let mut client = self::begin(&switch);
    let began = Instant::now();
    for stream in (1..).step_by(2) {
        assert_eq!(client.fetch(stream, "/").status(), 200);
        if began.elapsed() > Duration::from_millis(600) {
            break;
        }
    }
}

/// Its head is in the way of whatever the client could say: the connection ends.
fn a_head_that_does_not_come_beside_a_stream(threads: usize) {
    let server = RawOrigin::silent();
    let setup = Setup::new(threads).limits("head_ms_max = 300");
    let switch = setup.pool_at("standard", "", &[("s", server.address())]).start();
    let mut client = begin(&switch);
    client.ask(1, "GET", "/waits", &[]);
    figure(&switch, "pointsman_server_in_flight_requests", &[], 1.0);
    client.turn();
    client.send(&Frame::new(kind::HEADERS, 0, 3, [])).expect("the switch reads");
    ends_unheard(&mut client);
    figure(&switch, "pointsman_refusals_total", &[("reason", "head_timeout")], 1.0);
    figure(&switch, "pointsman_server_in_flight_requests", &[], 0.0);
}

/// No content was announced, and whether none comes is not known before the stream ends.
fn an_end_that_does_not_come(threads: usize) {
    let origin = Origin::new("origin");
    let switch = Setup::new(threads).limits("head_ms_max = 300").pool("standard", &[&origin]).start();
    let mut client = begin(&switch);
    client.post(1, "/", &[("content-length", "0")]);
    assert_eq!(client.answer(1).status(), 408);
    client.post(3, "/late", &[("content-length", "0")]);
    client.send(&Frame::data(3, flag::END_STREAM, [])).expect("the switch reads");
    assert_eq!(client.answer(3).status(), 200);
    assert_eq!((origin.count(), client.goaway()), (1, None));
}

/// That others are taken is no sign that this one is wanted.
fn write_ms_max_of_each_stream(threads: usize) {
    let origin = Origin::answering("origin", |exchange| match exchange.target() {
        "/" => ok(exchange),
        _ => {
            exchange.send("HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n");
            exchange.send([7; 1_000_000]);
            // Until the switch lets go.
            exchange.piece();
            Then::Close
        }
    });
    let switch = Setup::new(threads).limits("write_ms_max = 400").pool("standard", &[&origin]).start();
    let mut client = H2Client::begin_with_window(switch.client(), 1000);
    client.hold(1);
    client.hold(3);
    client.ask(1, "GET", "/stuck", &[]);
    client.ask(3, "GET", "/slow", &[]);
    let (began, mut last) = (Instant::now(), Instant::now());
    while client.seen(1).reset.is_none() {
        assert!(began.elapsed() < PATIENCE, "it goes on");
        // A byte now and then.
        if last.elapsed() > Duration::from_millis(50) {
            last = Instant::now();
            client.send(&Frame::window_update(3, 1)).expect("the switch reads");
        }
        client.turn();
    }
    assert!(began.elapsed() >= Duration::from_millis(400), "{:?}", began.elapsed());
    assert_eq!((client.seen(3).reset, client.goaway()), (None, None));
    assert_eq!(client.fetch(5, "/").status(), 200);
}

/// A client whose own deadlines are over may say so as often as it likes.
fn resets_behind_a_deadline_are_no_flood(threads: usize) {
    const AT_A_TIME: u32 = 20;
    let server = RawOrigin::silent();
    let origin = Origin::new("origin");
    let setup = Setup::new(threads).rules("if (path == \"/slow\") { routeTo(slow); }");
    let setup = setup.pool("standard", &[&origin]);
    let switch = setup.pool_at("slow", "", &[("s", server.address())]).start();
    let mut client = begin(&switch);
    for batch in 0..8 {
        let streams = (batch * AT_A_TIME..(batch + 1) * AT_A_TIME).map(|number| 2 * number + 1);
        streams.clone().for_each(|stream| client.ask(stream, "GET", "/slow", &[]));
        let began = Instant::now();
        while began.elapsed() < Duration::from_millis(80) {
            client.turn();
        }
        streams.for_each(|stream| client.send(&Frame::rst_stream(stream, CANCEL)).expect("the switch reads"));
    }
    client.turn();
    assert_eq!((client.fetch(1001, "/").status(), client.goaway()), (200, None));
}

/// Whoever is refused has sent some of it already, within the windows that it was given.
fn refused_content_is_no_flood(threads: usize) {
    let origin = Origin::new("origin");
    let setup = Setup::new(threads).rules("if (path == \"/refused\") { reject(403); }");
    let switch = setup.limits("body_bytes_max = 150000").pool("standard", &[&origin]).start();
    let mut client = begin(&switch);
    client.turn();
    for (stream, refused) in (1..).step_by(4).zip(0..60) {
        let (path, status) = if refused % 2 == 0 { ("/refused", 403) } else { ("/too-large", 413) };
        client.post(stream, path, &[("content-length", "200000")]);
        // What is still to be sent when the stream is reset stays away.
        drop(client.send_content(stream, flag::END_STREAM, &[7; 200_000]));
        assert_eq!(client.answer(stream).status(), status, "{path}");
        assert_eq!(client.fetch(stream + 2, "/").status(), 200);
    }
    assert_eq!(client.goaway(), None);
}

/// A client that reads of its stream's end before it has sent a little content may take the answer for none: it has a
/// second for that.
fn what_is_refused_may_be_said_to_its_end(threads: usize) {
    let origin = Origin::new("origin");
    let setup = Setup::new(threads).rules("if (path == \"/refused\") { reject(403); }");
    let switch = setup.pool("standard", &[&origin]).start();
    let mut client = begin(&switch);
    client.turn();
    client.post(1, "/refused", &[("content-length", "4")]);
    assert_eq!(client.answer(1).status(), 403);
    client.turn();
    client.send_content(1, flag::END_STREAM, b"body").expect("there is leave");
    client.turn();
    assert_eq!(client.seen(1).reset, None);
    // No more of it comes, or more than a little.
    client.post(3, "/refused", &[("content-length", "4")]);
    client.post(5, "/refused", &[]);
    assert_eq!((client.answer(3).status(), client.answer(5).status()), (403, 403));
    client.send_content(5, 0, &[7; 100_000]).expect("there is leave");
    for stream in [5, 3] {
        client.wait("a reset", |client| client.seen(stream).reset == Some(0));
    }
    assert_eq!((client.fetch(7, "/").status(), client.goaway()), (200, None));
}

/// A request without content may be broken off before anybody has read that it has none: it is no request with content
/// then.
fn a_stream_that_failed_asks_for_nothing(threads: usize) {
    let origin = Origin::answering("origin", ok);
    let switch = Setup::new(threads).pool("standard", &[&origin]).start();
    let mut warm = begin(&switch);
    for round in 0..20_u32 {
        // A kept connection is taken at once.
        assert_eq!(warm.fetch(2 * round + 1, "/warm").status(), 200);
        let mut client = begin(&switch);
        client.turn();
        let request = Frame::headers(1, flag::END_STREAM, &request("DELETE", "/victim")).bytes();
        let breaks = match round % 2 {
            0 => Frame::window_update(1, 0x7fff_ffff),
            _ => Frame::rst_stream(1, CANCEL),
        };
        client.try_send(&[request, breaks.bytes()].concat()).expect("the switch reads");
        client.turn();
    }
    for request in origin.requests() {
        assert_eq!(request.head.field("transfer-encoding"), None, "{:?}", request.head);
    }
}

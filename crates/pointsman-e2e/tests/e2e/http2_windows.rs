//! Flow control: who does not read holds up whoever sends to it, and nobody else.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

use pointsman_e2e::h2_wire::{flag, setting};
use pointsman_e2e::{Frame, H2Client, Origin, Outcome, Setup, Then, ok};

use crate::http2::{begin, figure};

pointsman_e2e::for_threads!(
    a_client_that_takes_nothing,
    a_server_that_takes_nothing,
    windows_of_one_byte,
    windows_that_change,
    windows_that_overflow,
    content_without_leave
);

const WINDOW_BYTES: u32 = 20_000;
/// More than the kernel and the switch together hold of a connection that stands still.
const HELD_BYTES_MAX: usize = 32 * 1024 * 1024;
const PIECE_BYTES: usize = 64 * 1024;

/// Its server is held up, too, and other streams of its connection are not.
fn a_client_that_takes_nothing(threads: usize) {
    let sent = Arc::new(AtomicUsize::new(0));
    let counted = sent.clone();
    let origin = Origin::answering("origin", move |exchange| {
        if exchange.target() != "/long" {
            return ok(exchange);
        }
        exchange.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", 2 * HELD_BYTES_MAX));
        for _ in 0..2 * HELD_BYTES_MAX / PIECE_BYTES {
            exchange.send([7; PIECE_BYTES]);
            counted.fetch_add(PIECE_BYTES, Ordering::SeqCst);
        }
        Then::KeepAlive
    });
    let switch = Setup::new(threads).pool("standard", &[&origin]).start();
    let mut client = H2Client::begin_with_window(switch.client(), WINDOW_BYTES);
    client.hold(1);
    client.ask(1, "GET", "/long", &[]);
    client.wait("all that may come", |client| client.seen(1).body.len() == WINDOW_BYTES as usize);
    let mut before = 0;
    for stream in (3..603).step_by(2) {
        assert_eq!(client.fetch(stream, "/").text(), "origin");
        before = sent.load(Ordering::SeqCst).max(before);
    }
    assert!(before < HELD_BYTES_MAX, "{before} bytes, although nobody takes them");
    assert_eq!(client.seen(1).body.len(), WINDOW_BYTES as usize, "more than there was leave for");
    // A little room, a little content.
    client.send(&Frame::window_update(1, 7)).expect("the switch reads");
    client.wait("seven bytes", |client| client.seen(1).body.len() == WINDOW_BYTES as usize + 7);
    client.send(&Frame::rst_stream(1, 8)).expect("the switch reads");
    figure(&switch, "pointsman_server_in_flight_requests", &[], 0.0);
    assert_eq!(client.fetch(605, "/").text(), "origin");
}

/// The client gets no leave to send more on that stream; on others it does.
fn a_server_that_takes_nothing(threads: usize) {
    let (go, may_go) = channel::<()>();
    let may_go = Mutex::new(may_go);
    let origin = Origin::answering("origin", move |exchange| {
        if exchange.target() == "/stuck" {
            // The test may have ended.
            may_go.lock().expect("no panic under the lock").recv().unwrap_or_default();
        }
        let body = exchange.body();
        let length = body.bytes.len().to_string();
        exchange.answer("200 OK", &length)
    });
    let switch = Setup::new(threads).pool("standard", &[&origin]).start();
    let mut client = begin(&switch);
    client.post(1, "/stuck", &[]);
    origin.wait_for_requests(1);
    let (mut sent, mut still) = (0, 0);
    // So many turns without leave for another byte are taken for the end of it.
    while still < 100 {
        client.turn();
        let room = client.room(1);
        still = if room == 0 { still + 1 } else { 0 };
        if room > 0 {
            client.send_content(1, 0, &vec![7; room]).expect("the switch reads");
        }
        sent += room;
        assert!(sent < HELD_BYTES_MAX, "{sent} bytes, although nobody takes them");
    }
    for stream in [3, 5, 7] {
        client.post(stream, "/", &[]);
        client.send_content(stream, flag::END_STREAM, &[7; 300_000]).expect("there is leave");
        assert_eq!(client.answer(stream).text(), "300000");
    }
    assert!(!client.seen(1).is_whole);
    go.send(()).expect("the origin is there");
    client.send_content(1, flag::END_STREAM, &[7; 100_000]).expect("there is leave again");
    assert_eq!(client.answer(1).text(), (sent + 100_000).to_string());
}

/// An answer comes whole byte by byte.
fn windows_of_one_byte(threads: usize) {
    let origin = Origin::new("origin");
    let switch = Setup::new(threads).pool("standard", &[&origin]).start();
    let mut client = H2Client::begin_with_window(switch.client(), 1);
    for stream in [1, 3] {
        client.ask(stream, "GET", "/x", &[]);
    }
    let mut frames = 0;
    while ![1, 3].iter().all(|stream| client.seen(*stream).is_whole) {
        let frame = client.frame().expect("HTTP/2").expect("it is open");
        if frame.kind == 0 {
            assert!(frame.payload.len() <= 1, "{frame:?}");
            frames += 1;
        }
        client.take(frame).expect("HTTP/2");
    }
    let text = client.answer(1).text();
    let seen: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(seen["target"], "/x");
    assert!(frames >= 2 * text.len(), "{frames} frames");
}

/// Nothing comes without room; a setting makes room on streams that are open (RFC 9113 section 6.9.2).
fn windows_that_change(threads: usize) {
    let origin =
        Origin::saying("origin", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123456789", Then::KeepAlive);
    let switch = Setup::new(threads).pool("standard", &[&origin]).start();
    let mut client = H2Client::begin_with_window(switch.client(), 0);
    client.hold(1);
    client.ask(1, "GET", "/", &[]);
    client.wait("a head", |client| client.seen(1).status() == 200);
    client.turn();
    assert_eq!(client.seen(1).text(), "");
    client.send(&Frame::settings(&[(setting::INITIAL_WINDOW_SIZE, 4)])).expect("the switch reads");
    client.wait("four bytes", |client| client.seen(1).text() == "0123");
    // Less than nothing: what was taken counts against it.
    client.send(&Frame::settings(&[(setting::INITIAL_WINDOW_SIZE, 1)])).expect("the switch reads");
    client.send(&Frame::window_update(1, 3)).expect("the switch reads");
    client.turn();
    assert_eq!(client.seen(1).text(), "0123");
    client.send(&Frame::window_update(1, 6)).expect("the switch reads");
    assert_eq!(client.answer(1).text(), "0123456789");
}

/// A window over 2^31-1 ends the stream, or the connection, with FLOW_CONTROL_ERROR (RFC 9113 section 6.9.1).
fn windows_that_overflow(threads: usize) {
    let (origin, go) = crate::drain::held();
    let switch = Setup::new(threads).pool("standard", &[&origin]).start();
    let mut client = begin(&switch);
    for stream in [1, 3] {
        client.ask(stream, "GET", "/", &[]);
    }
    origin.wait_for_requests(2);
    client.send(&Frame::window_update(1, u32::MAX >> 1)).expect("the switch reads");
    assert_eq!(client.reset(1), 3);
    for _ in 0..2 {
        go.send(()).expect("the origin is there");
    }
    assert_eq!(client.answer(3).status(), 200);
    client.send(&Frame::window_update(0, u32::MAX >> 1)).expect("the switch reads");
    assert_eq!(client.ending(), Some(3));
    let entry = switch.log_entry("the refusal", |entry| {
        entry["error"].as_str().is_some_and(|error| error.starts_with("HTTP/2: FLOW_CONTROL_ERROR"))
    });
    assert_eq!((&entry["listener"], entry.get("status")), (&"shop".into(), None), "{entry}");
    figure(&switch, "pointsman_refusals_total", &[("reason", "http2")], 1.0);
    figure(&switch, "pointsman_connections_open", &[], 0.0);
}

/// Content beyond the window is not taken.
fn content_without_leave(threads: usize) {
    let (go, may_go) = channel::<()>();
    let may_go = Mutex::new(may_go);
    let origin = Origin::answering("origin", move |exchange| {
        // Until the test ends.
        may_go.lock().expect("no panic under the lock").recv().unwrap_or_default();
        ok(exchange)
    });
    let limits = "http2_stream_window_bytes = 16384\nhttp2_window_bytes = 65535";
    let switch = Setup::new(threads).limits(limits).pool("standard", &[&origin]).start();
    let mut client = begin(&switch);
    client.turn();
    assert_eq!(client.room(1), 16_384);
    client.post(1, "/", &[]);
    // More at once than could be passed on meanwhile.
    let frame = Frame::data(1, 0, vec![7; 16_000]).bytes();
    drop(client.try_send(&frame.repeat(1000)));
    let outcome = client.outcome(1).expect("HTTP/2");
    assert!(matches!(outcome, Outcome::Reset(3) | Outcome::GoAway(3)), "{outcome:?}");
    drop(go);
}

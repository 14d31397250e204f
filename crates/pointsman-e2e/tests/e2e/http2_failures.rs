//! Servers that fail and clients that leave: a stream ends, and its connection does not.

use std::sync::Mutex;
use std::sync::mpsc::channel;

use pointsman_e2e::{Origin, Setup, Then, ok};

use crate::drain::held;
use crate::http2::{begin, figure};

pointsman_e2e::for_threads!(
    a_server_that_dies,
    servers_that_are_not_there,
    a_kept_connection_that_has_closed,
    a_client_that_resets_a_waiting_stream,
    a_client_that_resets_amid_an_answer,
    a_client_that_resets_amid_its_request,
    a_client_that_leaves_with_many_streams,
    a_client_that_breaks_off_with_many_streams
);

/// Before its answer, 502; in the middle of it, a reset with INTERNAL_ERROR. The others go on.
fn a_server_that_dies(threads: usize) {
    let (cut, may_cut) = channel::<()>();
    let may_cut = Mutex::new(may_cut);
    let origin = Origin::answering("origin", move |exchange| {
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n";
        let (start, is_amid) = match exchange.target() {
            "/before" => ("", false),
            "/head" => ("HTTP/1.1 200 OK\r\nContent-Le", false),
            "/no-http" => ("SSH-2.0-OpenSSH_9.2\r\n", false),
            "/length" => ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", true),
            _ => (chunked, true),
        };
        exchange.body();
        exchange.send(start);
        if is_amid {
            // A reset takes with it what is still on its way. The test may have ended.
            may_cut.lock().expect("no panic under the lock").recv().unwrap_or_default();
        }
        if exchange.target() == "/last" {
            exchange.send("0\r\n");
        }
        Then::Close
    });
    let (held, go) = held();
    let setup = Setup::new(threads).rules("if (path == \"/held\") { routeTo(held); }");
    let switch = setup.pool("standard", &[&origin]).pool("held", &[&held]).start();
    let mut client = begin(&switch);
    client.ask(1, "GET", "/held", &[]);
    held.wait_for_requests(1);
    for (stream, path) in [(3, "/before"), (5, "/head"), (7, "/no-http")] {
        // POST: it is not tried again.
        client.ask(stream, "POST", path, &[]);
        assert_eq!(client.answer(stream).status(), 502, "{path}");
    }
    for (stream, path) in [(9, "/length"), (11, "/chunks"), (13, "/last")] {
        client.ask(stream, "POST", path, &[]);
        client.wait("half an answer", |client| client.seen(stream).text() == "half");
        cut.send(()).expect("the origin is there");
        assert_eq!(client.reset(stream), 2, "{path}");
        let answer = client.seen(stream);
        assert_eq!(
            (answer.status(), answer.text().as_str(), answer.is_whole),
            (200, "half", false),
            "{path}"
        );
        let entry = switch.log_of(path);
        assert!(entry["error"].is_string() && entry["status"] == 200, "{entry}");
    }
    go.send(()).expect("the origin is there");
    assert_eq!((client.answer(1).text().as_str(), client.goaway()), ("held", None));
}

/// 502 where none is there; where one is, it is asked instead, also with content that was kept.
fn servers_that_are_not_there(threads: usize) {
    let origin = Origin::answering("origin", ok);
    let dead = Origin::dead_address();
    let setup = Setup::new(threads).rules("if (path == \"/dead\") { routeTo(dead); }");
    let setup = setup.pool_at("standard", "", &[("gone", dead), ("origin", origin.address())]);
    let switch = setup.pool_at("dead", "", &[("gone", dead)]).start();
    let mut client = begin(&switch);
    for stream in (1..60).step_by(4) {
        assert_eq!(client.fetch(stream, "/dead").status(), 502);
        assert_eq!(client.fetch(stream + 2, "/").text(), "origin");
    }
    client.post(61, "/", &[]);
    client.send_content(61, 1, b"abc").expect("the switch reads");
    assert_eq!((client.answer(61).text().as_str(), origin.last().body.bytes), ("origin", b"abc".to_vec()));
    assert_eq!(client.goaway(), None);
}

/// A server that closes kept connections at the next request: a GET is sent again on a new one.
fn a_kept_connection_that_has_closed(threads: usize) {
    let origin = Origin::answering("origin", |exchange| {
        let is_first = exchange.target() == "/first";
        exchange.answer("200 OK", "fine");
        if is_first { Then::KeepAlive } else { Then::Cut }
    });
    let switch = Setup::new(threads).pool("standard", &[&origin]).start();
    let mut client = begin(&switch);
    for stream in (1..40).step_by(2) {
        let path = if stream % 4 == 1 { "/first" } else { "/second" };
        assert_eq!(client.fetch(stream, path).text(), "fine");
    }
    assert_eq!(client.goaway(), None);
}

/// Its server's connection is closed, and not used for another.
fn a_client_that_resets_a_waiting_stream(threads: usize) {
    let (origin, go) = held();
    let switch = Setup::new(threads).pool("standard", &[&origin]).start();
    let mut client = begin(&switch);
    for stream in [1, 3] {
        client.ask(stream, "GET", "/", &[]);
    }
    origin.wait_for_requests(2);
    client.send(&pointsman_e2e::Frame::rst_stream(1, 8)).expect("the switch reads");
    figure(&switch, "pointsman_server_in_flight_requests", &[], 1.0);
    for _ in 0..3 {
        go.send(()).expect("the origin is there");
    }
    assert_eq!(client.answer(3).text(), "held");
    assert_eq!(client.fetch(5, "/").text(), "held");
    assert_eq!(client.seen(1).fields, []);
    figure(&switch, "pointsman_server_idle_connections", &[], 1.0);
    assert_eq!((origin.connections(), client.goaway()), (2, None));
}

fn a_client_that_resets_amid_an_answer(threads: usize) {
    let origin = Origin::answering("origin", |exchange| {
        if exchange.target() != "/half" {
            return ok(exchange);
        }
        exchange.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf");
        // Until the switch lets go.
        exchange.piece();
        Then::KeepAlive
    });
    let switch = Setup::new(threads).pool("standard", &[&origin]).start();
    let mut client = begin(&switch);
    for stream in (1..20).step_by(4) {
        client.ask(stream, "GET", "/half", &[]);
        client.wait("half an answer", |client| client.seen(stream).text() == "half");
        client.send(&pointsman_e2e::Frame::rst_stream(stream, 8)).expect("the switch reads");
        figure(&switch, "pointsman_server_in_flight_requests", &[], 0.0);
        // The other half would be taken for its answer.
        assert_eq!(client.fetch(stream + 2, "/").text(), "origin");
    }
    assert_eq!(client.goaway(), None);
}

/// The server sees that the request is not whole.
fn a_client_that_resets_amid_its_request(threads: usize) {
    let origin = Origin::answering("origin", ok);
    let switch = Setup::new(threads).pool("standard", &[&origin]).start();
    let mut client = begin(&switch);
    for (stream, more) in [(1, vec![]), (3, vec![("content-length", "9")])] {
        let before = origin.count();
        client.post(stream, "/half", &more);
        client.send_content(stream, 0, b"half").expect("the switch reads");
        origin.wait_for_requests(before + 1);
        client.send(&pointsman_e2e::Frame::rst_stream(stream, 8)).expect("the switch reads");
        figure(&switch, "pointsman_server_in_flight_requests", &[], 0.0);
        assert!(!origin.last().complete);
    }
    assert_eq!(client.fetch(5, "/").text(), "origin");
    assert_eq!(origin.connections(), 3);
}

const STREAMS: usize = 50;

/// All servers are let go of.
fn a_client_that_leaves_with_many_streams(threads: usize) {
    leaves(threads, |_| {});
}

fn a_client_that_breaks_off_with_many_streams(threads: usize) {
    leaves(threads, |client| {
        // It is told, and has gone before it could read that.
        drop(client.try_send(b"\0\0\0\x07\0\0\0\0\0 no frame at all, and more than one"));
    });
}

fn leaves(threads: usize, last_words: impl Fn(&mut pointsman_e2e::H2Client)) {
    let (origin, go) = held();
    let switch = Setup::new(threads).pool("standard", &[&origin]).start();
    let mut client = begin(&switch);
    for number in 0..STREAMS as u32 {
        if number % 2 == 0 {
            client.ask(2 * number + 1, "GET", "/", &[]);
        } else {
            client.post(2 * number + 1, "/", &[]);
            client.send_content(2 * number + 1, 0, b"half").expect("the switch reads");
        }
    }
    origin.wait_for_requests(STREAMS);
    figure(&switch, "pointsman_server_in_flight_requests", &[], STREAMS as f64);
    last_words(&mut client);
    drop(client);
    figure(&switch, "pointsman_server_in_flight_requests", &[], 0.0);
    figure(&switch, "pointsman_server_idle_connections", &[], 0.0);
    figure(&switch, "pointsman_connections_open", &[], 0.0);
    figure(&switch, "pointsman_requests_total", &[("status", "none")], STREAMS as f64);
    for _ in 0..=STREAMS {
        go.send(()).expect("the origin is there");
    }
    assert_eq!(begin(&switch).fetch(1, "/").text(), "held");
}

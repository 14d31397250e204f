//! Servers of HTTP/2 that refuse, break off and go: what is sent again, and what clients see.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use pointsman_e2e::h2_wire::{flag, setting};
use pointsman_e2e::{Client, Frame, H2Client, H2Origin, H2Peer, Origin, Setup, until};

use crate::http2::begin;
use crate::server_http2::{H2, before};

pointsman_e2e::for_threads!(
    refused_streams_are_sent_again,
    refused_amid_a_body,
    always_refused,
    behind_the_last_stream,
    the_last_streams_end,
    resets_amid_an_answer,
    a_connection_that_dies,
    an_answer_before_the_request_ends,
    a_server_of_http1
);

/// RFC 9113 section 7.
const INTERNAL_ERROR: u32 = 2;
const REFUSED_STREAM: u32 = 7;

fn post(client: &mut Client, path: &str) -> u16 {
    client.send(format!("POST {path} HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 4\r\n\r\nbody"));
    client.response().status()
}

/// Whatever the method: the server has not looked at it. It may be the only one.
fn refused_streams_are_sent_again(threads: usize) {
    let server = H2Origin::serving(&[], |peer| {
        let mut refused = 0;
        while let Some(request) = peer.next_whole() {
            if refused < 2 {
                refused += 1;
                peer.send(&Frame::rst_stream(request.stream, REFUSED_STREAM));
            } else {
                peer.answer(request.stream, "200", &[], b"fine");
            }
        }
    });
    let switch = before(threads, "tries_max = 3", &server).start();
    assert_eq!(post(&mut switch.client(), "/once"), 200);
    let entry = switch.log_of("/once");
    assert!(entry["tries"] == 3 && entry["error"].is_null(), "{entry}");
    let paths: Vec<_> =
        server.requests().iter().map(|request| (request.path(), request.body.len())).collect();
    assert_eq!(paths, [(); 3].map(|()| ("/once".to_owned(), 4)));
    let retries = switch.metric("pointsman_server_retries_total", &[]);
    assert!((retries - 2.0).abs() < 0.5, "{retries}");
    assert!(switch.metric("pointsman_server_failures_total", &[]) < 0.5, "no failure of the server");
}

/// A refusal that comes while the body waits for room is one all the same.
fn refused_amid_a_body(threads: usize) {
    let heads = AtomicUsize::new(0);
    let server = H2Origin::serving(&[(setting::INITIAL_WINDOW_SIZE, 0)], move |peer| {
        while let Some(request) = peer.next_head() {
            if heads.fetch_add(1, Ordering::SeqCst) == 0 {
                peer.send(&Frame::rst_stream(request.stream, REFUSED_STREAM));
            } else {
                peer.send(&Frame::window_update(request.stream, 100));
                peer.wait(|peer| peer.request(request.stream).is_whole);
                peer.answer(request.stream, "200", &[], b"fine");
            }
        }
    });
    let switch = before(threads, "", &server).start();
    assert_eq!(post(&mut switch.client(), "/"), 200);
    assert_eq!(switch.log_of("/")["tries"], 2);
}

/// As often as `tries_max` says; then it is 502.
fn always_refused(threads: usize) {
    let server = H2Origin::serving(&[], |peer| {
        while let Some(request) = peer.next_whole() {
            peer.send(&Frame::rst_stream(request.stream, REFUSED_STREAM));
        }
    });
    let switch = before(threads, "tries_max = 4", &server).start();
    assert_eq!(post(&mut switch.client(), "/"), 502);
    assert_eq!(server.requests().len(), 4);
    assert_eq!(switch.log_of("/")["error"], "the server did not look at the request");
    assert!((switch.metric("pointsman_server_failures_total", &[("kind", "closed")]) - 1.0).abs() < 0.5);
}

/// What a GOAWAY leaves out was not looked at: it goes over another connection, a POST, too.
fn behind_the_last_stream(threads: usize) {
    let server = H2Origin::serving(&[], |peer| {
        if peer.number > 0 {
            return peer.echo();
        }
        let Some(request) = peer.next_whole() else { return };
        // Codes are not asked for: whatever was the cause, the stream was left out.
        peer.send_goaway(request.stream - 1, INTERNAL_ERROR);
    });
    let switch = before(threads, "", &server).start();
    let mut client = switch.client();
    assert_eq!(post(&mut client, "/left-out"), 200);
    assert_eq!(switch.log_of("/left-out")["tries"], 2);
    assert_eq!((server.connections(), server.requests().len()), (2, 2));
    // The first is not used again.
    assert_eq!((post(&mut client, "/next"), server.connections()), (200, 2));
}

/// A server that goes serves what it has begun; what comes goes elsewhere, and nothing is lost.
fn the_last_streams_end(threads: usize) {
    let go = Arc::new(AtomicBool::new(false));
    let may_end = go.clone();
    let server = H2Origin::serving(&[], move |peer| {
        if peer.number > 0 {
            return peer.echo();
        }
        let Some(first) = peer.next_whole() else { return };
        peer.send_goaway(first.stream, 0);
        peer.head(first.stream, "200", &[("content-length", "8")]);
        peer.content(first.stream, b"half", 0);
        until("leave to end", || may_end.load(Ordering::SeqCst).then_some(()));
        peer.content(first.stream, b"half", flag::END_STREAM);
    });
    let switch = before(threads, "", &server).start();
    let mut slow = begin(&switch);
    slow.ask(1, "GET", "/slow", &[]);
    slow.wait("half an answer", |client| client.seen(1).text() == "half");
    let mut other = switch.client();
    for _ in 0..3 {
        assert_eq!(other.get("/other").text(), "/other");
    }
    assert!(server.requests()[1..].iter().all(|request| request.connection > 0));
    go.store(true, Ordering::SeqCst);
    assert_eq!(slow.answer(1).text(), "halfhalf");
    server.wait_for_end(0);
}

/// Nobody takes half an answer for a whole one.
fn resets_amid_an_answer(threads: usize) {
    let server = H2Origin::serving(&[], |peer| {
        while let Some(request) = peer.next_whole() {
            let (stream, path) = (request.stream, request.path());
            let head: &[_] = if path == "/length" { &[("content-length", "9")] } else { &[] };
            peer.head(stream, "200", head);
            peer.content(stream, b"half", 0);
            peer.send(&Frame::rst_stream(stream, INTERNAL_ERROR));
        }
    });
    let switch = before(threads, "", &server).start();
    for (path, stream) in [("/length", 1), ("/chunks", 3)] {
        let mut first = switch.client();
        first.send(format!("GET {path} HTTP/1.1\r\nHost: shop.example\r\n\r\n"));
        assert!(first.try_response().is_err(), "{path}: half an answer looks whole");
        let mut second = begin(&switch);
        second.ask(stream, "GET", path, &[]);
        second.reset(stream);
        assert!(!second.seen(stream).is_whole);
        assert_eq!(switch.log_of(path)["error"], "the server closed the connection");
    }
    assert!(server.connections() <= threads, "the connection goes on");
}

/// Before its answer: a GET is sent again, a POST is 502. Amid it: the client's answer breaks off.
fn a_connection_that_dies(threads: usize) {
    let server = H2Origin::serving(&[], |peer| {
        while let Some(request) = peer.next_whole() {
            if peer.number > 0 && request.path() == "/get" {
                peer.answer(request.stream, "200", &[], b"again");
                continue;
            }
            if request.path() == "/amid" {
                peer.head(request.stream, "200", &[]);
                peer.content(request.stream, b"half", 0);
            }
            return peer.cut();
        }
    });
    let switch = before(threads, "", &server).start();
    let second = [("other", H2Origin::serving(&[], H2Peer::echo))];
    assert_eq!(switch.get("/get").status(), 502, "it was the only server");
    assert_eq!(post(&mut switch.client(), "/post"), 502);
    let mut client = switch.client();
    client.send("GET /amid HTTP/1.1\r\nHost: shop.example\r\n\r\n");
    assert!(client.try_response().is_err());
    let both = [("server", server.address()), ("other", second[0].1.address())];
    let switch = Setup::new(threads).pool_at("standard", H2, &both).start();
    for _ in 0..4 {
        assert_eq!(switch.get("/get").status(), 200);
    }
}

/// A server that answers before it has the body, and takes no more of it.
fn an_answer_before_the_request_ends(threads: usize) {
    let server = H2Origin::serving(&[(setting::INITIAL_WINDOW_SIZE, 10)], |peer| {
        peer.give_no_window();
        while let Some(request) = peer.next_head() {
            peer.answer(request.stream, "413", &[], b"too much");
            peer.send(&Frame::rst_stream(request.stream, 0));
        }
    });
    let switch = before(threads, "", &server).start();
    let mut client = switch.client();
    client
        .send("POST /short HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 20\r\n\r\ntwenty bytes of body");
    let answer = client.response();
    assert_eq!((answer.status(), answer.text().as_str()), (413, "too much"));
    let mut client = switch.client();
    client.send("POST /long HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 3000000\r\n\r\n");
    drop(client.try_send(vec![b'x'; 200_000]));
    let answer = client.response();
    assert_eq!((answer.status(), answer.text().as_str()), (413, "too much"));
    let mut second = begin(&switch);
    second.post(1, "/second", &[]);
    drop(second.send_content(1, 0, &[b'x'; 20_000]));
    assert_eq!(second.answer(1).status(), 413);
}

/// Answers that their clients do not take yet are no flood: others on the same connection go on.
#[test]
fn clients_that_take_nothing() {
    const LARGE: usize = 24;
    let large = vec![b'x'; 200 * 1024];
    let server = H2Origin::serving(&[], move |peer| {
        let mut waiting = None;
        while let Some(request) = peer.next_whole() {
            match request.path().as_str() {
                "/slow" => waiting = Some(request.stream),
                "/go" => {
                    peer.answer(request.stream, "200", &[], b"gone");
                    peer.answer(waiting.expect("asked for before"), "200", &[], b"fine");
                }
                _ => drop(peer.answer(request.stream, "200", &[], &large)),
            }
        }
    });
    // On one thread: all of them share its connection.
    let switch = before(1, "", &server).start();
    let mut victim = switch.client();
    victim.send("GET /slow HTTP/1.1\r\nHost: shop.example\r\n\r\n");
    server.wait_for_requests(1);
    let mut greedy = H2Client::begin_with_window(switch.client(), 0);
    for stream in (1..).step_by(2).take(LARGE) {
        greedy.ask(stream, "GET", "/large", &[]);
    }
    server.wait_for_requests(1 + LARGE);
    assert_eq!(switch.get("/go").text(), "gone");
    assert_eq!(victim.response().text(), "fine");
    assert_eq!(server.connections(), 1);
}

/// A server that says nothing at all for as long as a request may take may be gone: the next one goes elsewhere.
#[test]
fn a_connection_that_keeps_silent() {
    let connections = AtomicUsize::new(0);
    let server = H2Origin::serving(&[], move |peer| {
        let is_first = connections.fetch_add(1, Ordering::SeqCst) == 0;
        while let Some(request) = peer.next_whole() {
            if !is_first {
                peer.answer(request.stream, "200", &[], b"fine");
            }
        }
    });
    let switch = before(1, "response_ms_max = 300", &server).start();
    // Its settings come while the first waits.
    assert_eq!([(); 2].map(|()| switch.get("/silent").status()), [504, 504]);
    assert_eq!(switch.get("/next").text(), "fine");
    assert_eq!(server.connections(), 2);
}

/// A server that reads nothing takes no farewell: its connection is closed all the same, and what it took is given back.
#[test]
fn a_connection_that_is_never_read() {
    let (done, is_done) = std::sync::mpsc::channel::<()>();
    let is_done = std::sync::Mutex::new(is_done);
    let server = H2Origin::serving(&[(setting::INITIAL_WINDOW_SIZE, (1 << 31) - 1)], move |peer| {
        peer.send(&Frame::window_update(0, (1 << 31) - 1 - 65_535));
        peer.next_head();
        // Until the test ends.
        is_done.lock().expect("no panic under the lock").recv().unwrap_or_default();
    });
    let keys = "write_ms_max = 500\nidle_ms_max = 1000";
    let switch = before(1, keys, &server).start();
    let mut client = switch.client();
    client.send("POST /much HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 30000000\r\n\r\n");
    let piece = vec![b'x'; 1 << 20];
    while client.try_send(&piece).is_ok() && switch.metric("pointsman_server_failures_total", &[]) < 0.5 {}
    drop(client);
    let is_zero = |name| (switch.metric(name, &[]) < 0.5).then_some(());
    until("the client's end", || is_zero("pointsman_connections_open"));
    until("that nobody shares it", || is_zero("pointsman_server_idle_connections"));
    let open = switch.descriptors();
    until("the end of its socket", || (switch.descriptors() < open).then_some(()));
    drop(done);
}

/// It answers what it does not understand in its own version, and is not asked again by that.
fn a_server_of_http1(threads: usize) {
    let server = Origin::new("old");
    let switch = Setup::new(threads).pool_at("standard", H2, &[("s", server.address())]).start();
    let answer = switch.get("/");
    assert_eq!((answer.status(), answer.text().as_str()), (502, "the server does not speak HTTP/2\n"));
    assert_eq!(switch.log_of("/")["error"], "the server does not speak HTTP/2");
}

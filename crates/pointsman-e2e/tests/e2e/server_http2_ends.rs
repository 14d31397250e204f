//! How connections to servers of HTTP/2 are shared, counted and ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pointsman_e2e::h2_wire::setting;
use pointsman_e2e::{Client, H2Origin, H2Peer, Origin, Setup, ok, until};

use crate::http2::begin;
use crate::server_http2::{H2, before};

pointsman_e2e::for_threads!(
    idle_connections_are_counted_and_end,
    a_drain,
    a_drain_with_a_request,
    a_server_leaves_the_plan,
    one_stream_at_a_time,
    the_limit_changes,
    one_client_a_connection,
    protocols_change_under_load,
);

/// What the switch says of idle connections.
fn idle(switch: &pointsman_e2e::Switch) -> f64 {
    switch.metric("pointsman_server_idle_connections", &[("server", "server")])
}

/// A connection is idle while no request is on it; after `idle_ms_max` it says GOAWAY and ends.
fn idle_connections_are_counted_and_end(threads: usize) {
    let go = Arc::new(AtomicBool::new(false));
    let may_answer = go.clone();
    let server = H2Origin::serving(&[], move |peer| {
        while let Some(request) = peer.next_whole() {
            until("leave to answer", || may_answer.load(Ordering::SeqCst).then_some(()));
            peer.answer(request.stream, "200", &[], b"fine");
        }
    });
    let switch = before(threads, "idle_ms_max = 1000", &server).start();
    let mut client = switch.client();
    client.send("GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n");
    server.wait_for_requests(1);
    assert!(idle(&switch) < 0.5, "it is in use");
    go.store(true, Ordering::SeqCst);
    assert_eq!(client.response().status(), 200);
    // Until it has ended there is one, and then none.
    until("one that is idle", || (idle(&switch) > 0.5 || server.connections() > 1).then_some(()));
    assert_eq!(server.wait_for_end(0), Some((0, 0)));
    until("none", || (idle(&switch) < 0.5).then_some(()));
    assert_eq!(client.get("/again").status(), 200);
    assert_eq!(server.connections(), 2);
}

/// Idle ones are told when the switch drains.
fn a_drain(threads: usize) {
    let server = H2Origin::echoing(&[]);
    let mut switch = before(threads, "", &server).start();
    assert_eq!(switch.get("/").status(), 200);
    switch.signal("TERM");
    assert_eq!(server.wait_for_end(0), Some((0, 0)));
    assert_eq!(switch.wait_for_exit(), Some(0));
}

/// What was begun is ended first.
fn a_drain_with_a_request(threads: usize) {
    let go = Arc::new(AtomicBool::new(false));
    let may_answer = go.clone();
    let server = H2Origin::serving(&[], move |peer| {
        while let Some(request) = peer.next_whole() {
            until("leave to answer", || may_answer.load(Ordering::SeqCst).then_some(()));
            let is_left = if peer.is_left() { "left" } else { "stays" };
            peer.answer(request.stream, "200", &[], is_left.as_bytes());
        }
    });
    let mut switch = before(threads, "", &server).start();
    let mut client = switch.client();
    client.send("GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n");
    server.wait_for_requests(1);
    switch.signal("TERM");
    switch.wait_for_line("draining connections=");
    go.store(true, Ordering::SeqCst);
    assert_eq!(client.response().text(), "stays");
    assert_eq!(server.wait_for_end(0), Some((0, 0)));
    assert_eq!(switch.wait_for_exit(), Some(0));
}

/// A reload that takes a server out of the plan ends its connections.
fn a_server_leaves_the_plan(threads: usize) {
    let (server, other) = (H2Origin::echoing(&[]), Origin::answering("other", ok));
    let switch = before(threads, "", &server).start();
    assert_eq!(switch.get("/").text(), "/");
    switch.reload(&Setup::new(threads).pool("standard", &[&other]), 2);
    assert_eq!(switch.get("/").text(), "other");
    assert_eq!(server.wait_for_end(0), Some((0, 0)));
}

/// A server that takes one request at a time gets one at a time on each connection, from the first on; others open
/// connections of their own, and none fails.
fn one_stream_at_a_time(threads: usize) {
    let (go, too_many) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (may_answer, are_too_many) = (go.clone(), too_many.clone());
    let server = H2Origin::serving(&[(setting::MAX_CONCURRENT_STREAMS, 1)], move |peer| {
        while let Some(request) = peer.next_whole() {
            until("leave to answer", || may_answer.load(Ordering::SeqCst).then_some(()));
            // A second request would have come behind the first by now.
            let open = peer.turn();
            are_too_many.fetch_or(open > 1, Ordering::SeqCst);
            peer.answer(request.stream, "200", &[], b"fine");
        }
    });
    let switch = before(threads, "", &server).start();
    let mut clients: Vec<Client> = (0..12).map(|_| switch.client()).collect();
    for client in &mut clients {
        client.send("POST / HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 0\r\n\r\n");
    }
    server.wait_for_requests(12);
    go.store(true, Ordering::SeqCst);
    for client in &mut clients {
        assert_eq!(client.response().status(), 200);
    }
    assert!(!too_many.load(Ordering::SeqCst), "two at a time");
    assert_eq!(server.connections(), 12);
    assert!(clients.iter_mut().all(|client| client.get("/").status() == 200));
    assert!(server.connections() <= 13 + threads, "they are used again");
}

/// A server that lowers its limit gets no more than it says from then on.
fn the_limit_changes(threads: usize) {
    let server = H2Origin::serving(&[(setting::MAX_CONCURRENT_STREAMS, 100)], |peer| {
        while let Some(request) = peer.next_whole() {
            match request.path().as_str() {
                "/one" => {
                    let one = [(setting::MAX_CONCURRENT_STREAMS, 1)];
                    peer.send(&pointsman_e2e::Frame::settings(&one));
                    peer.turn();
                    peer.answer(request.stream, "200", &[], b"one");
                }
                // It is never answered.
                "/held" => {}
                _ => {
                    peer.answer(request.stream, "200", &[], b"more");
                }
            }
        }
    });
    let switch = before(threads, "", &server).start();
    let mut client = begin(&switch);
    assert_eq!(client.fetch(1, "/one").text(), "one");
    client.ask(3, "GET", "/held", &[]);
    server.wait_for_requests(2);
    // The only stream of the first connection is taken.
    assert_eq!(client.fetch(5, "/more").text(), "more");
    assert_eq!(server.connections(), 2);
    drop(client);
}

/// Where connections begin with a PROXY header, no two clients share one; it ends with its client.
fn one_client_a_connection(threads: usize) {
    let server = H2Origin::echoing(&[]);
    let switch = before(threads, "proxy_protocol = \"v1\"", &server).start();
    let ours = switch.address("shop").port();
    let (mut first, mut second) = (switch.client(), switch.client());
    for _ in 0..3 {
        assert_eq!((first.get("/").status(), second.get("/").status()), (200, 200));
    }
    assert_eq!(server.connections(), 2);
    for (number, client) in [&first, &second].into_iter().enumerate() {
        let port = client.local().port();
        let line = format!("PROXY TCP4 127.0.0.1 127.0.0.1 {port} {ours}\r\n");
        assert_eq!(String::from_utf8_lossy(&server.start_of(number)), line);
    }
    until("two are kept", || ((idle(&switch) - 2.0).abs() < 0.5).then_some(()));
    drop(first);
    assert_eq!(server.wait_for_end(0), Some((0, 0)));
    until("one is kept", || ((idle(&switch) - 1.0).abs() < 0.5).then_some(()));
    // Streams of one client share, too.
    let mut third = begin(&switch);
    for stream in [1, 3, 5] {
        third.ask(stream, "GET", "/", &[]);
    }
    assert!([1, 3, 5].into_iter().all(|stream| third.answer(stream).status() == 200));
    let of_third = server.requests().iter().filter(|request| request.connection >= 2).count();
    assert_eq!((of_third, server.connections()), (3, 3));
}

/// A reload from one protocol to the other and back loses no request.
fn protocols_change_under_load(threads: usize) {
    let is_over = Arc::new(AtomicBool::new(false));
    let (old, new) = (Origin::answering("old", ok), H2Origin::serving(&[], H2Peer::echo));
    let of_old = Setup::new(threads).pool_at("standard", "", &[("server", old.address())]);
    let of_new = Setup::new(threads).pool_at("standard", H2, &[("server", new.address())]);
    let switch = of_old.start();
    let clients: Vec<_> = (0..4)
        .map(|_| {
            let (mut client, is_over) = (switch.client(), is_over.clone());
            std::thread::spawn(move || {
                let mut asked = 0_u32;
                while !is_over.load(Ordering::SeqCst) {
                    client.send("POST /x HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 3\r\n\r\nabc");
                    let answer = client.response();
                    assert_eq!(answer.status(), 200, "{}", answer.text());
                    asked += 1;
                }
                asked
            })
        })
        .collect();
    for round in 1..=3 {
        let (seen, more) = (new.requests().len(), old.count());
        switch.reload(&of_new, 2 * round);
        until("requests of HTTP/2", || (new.requests().len() > seen + 5).then_some(()));
        switch.reload(&of_old, 2 * round + 1);
        until("requests of HTTP/1", || (old.count() > more + 5).then_some(()));
    }
    is_over.store(true, Ordering::SeqCst);
    for client in clients {
        assert!(client.join().expect("every answer is 200") > 0);
    }
}

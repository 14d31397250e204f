//! How tunnels of HTTP/2 end: END_STREAM is the end of a connection, RST_STREAM its reset (RFC 8441 section 5).

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use pointsman_e2e::h2_wire::flag;
use pointsman_e2e::{Authority, Frame, H2Client, Switch};

use super::{VERSION, begin_tls, expect, hears, open, say, setup};
use crate::http2::{begin, figure};
use crate::tunnels::{handed_over, log_of_tunnel, next, tunnelled};
use crate::upgrades::echo;

pointsman_e2e::for_threads!(
    the_client_ends_first,
    the_server_ends_first,
    both_end_without_a_word,
    the_client_resets,
    the_server_resets,
    the_connection_is_gone,
    idle_for_too_long,
    half_closed_for_too_long,
    outlives_a_reload,
    a_reload_forbids_new_ones,
    drains_in_time,
    drains_in_time_over_tls,
    drains_before_the_end_of_all,
    drains_those_that_do_not_answer,
    is_cut_when_the_drain_is_over
);

const CANCEL: u32 = 8;

fn the_client_ends_first(threads: usize) {
    let (server, handed) = handed_over();
    let switch = setup(threads, &server).start();
    let mut client = begin(&switch);
    open(&mut client, 1);
    let mut socket = next(&handed);
    client.send_content(1, flag::END_STREAM, b"last words").expect("there is leave");
    let mut said = String::new();
    socket.read_to_string(&mut said).expect("an end in order");
    assert_eq!(said, "last words");
    socket.write_all(b"and now me").expect("open");
    hears(&mut client, 1, b"and now me");
    assert!(!client.seen(1).is_whole);
    drop(socket);
    assert_eq!(client.answer(1).text(), "and now me");
    assert!(log_of_tunnel(&switch)["error"].is_null());
    client.turn();
    assert_eq!((client.seen(1).reset, client.goaway()), (None, None));
}

fn the_server_ends_first(threads: usize) {
    let (server, handed) = handed_over();
    let switch = setup(threads, &server).start();
    let mut client = begin(&switch);
    open(&mut client, 1);
    let mut socket = next(&handed);
    socket.write_all(b"last words").expect("open");
    socket.shutdown(Shutdown::Write).expect("open");
    assert_eq!(client.answer(1).text(), "last words");
    say(&mut client, 1, b"and now ");
    expect(&socket, b"and now ");
    client.send_content(1, flag::END_STREAM, b"me").expect("there is leave");
    let mut said = String::new();
    socket.read_to_string(&mut said).expect("an end in order");
    assert_eq!(said, "me");
    assert!(log_of_tunnel(&switch)["error"].is_null());
    assert_eq!((client.seen(1).reset, client.goaway()), (None, None));
}

/// A client may end its side with its request: then there is nothing to be said but by the server.
fn both_end_without_a_word(threads: usize) {
    let (server, handed) = handed_over();
    let switch = setup(threads, &server).start();
    let mut client = begin(&switch);
    client.ask(1, "CONNECT", "/chat", &[(":protocol", "websocket"), VERSION]);
    let mut socket = next(&handed);
    assert_eq!(socket.read(&mut [0]).expect("an end in order"), 0);
    socket.write_all(b"alone").expect("open");
    drop(socket);
    let answer = client.answer(1);
    assert_eq!((answer.status(), answer.text().as_str()), (200, "alone"));
    assert!(log_of_tunnel(&switch)["error"].is_null());
}

/// Its server is reset.
fn the_client_resets(threads: usize) {
    one_of_two(threads, "the client closed the connection", |client, mut socket| {
        client.send(&Frame::rst_stream(1, CANCEL)).expect("the switch reads");
        let error = socket.read(&mut [0]).expect_err("broken off");
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    });
}

fn the_server_resets(threads: usize) {
    one_of_two(threads, "the server closed the connection", |client, mut socket| {
        socket.write_all(b"said before").expect("open");
        hears(client, 1, b"said before");
        socket2::SockRef::from(&socket).set_linger(Some(Duration::ZERO)).expect("an open socket");
        drop(socket);
        assert_eq!(client.reset(1), CANCEL);
    });
}

/// Breaks the tunnel of stream 1 off, which leaves the other one as it is.
fn one_of_two(threads: usize, error: &str, breaks_off: impl FnOnce(&mut H2Client, TcpStream)) {
    let (server, handed) = handed_over();
    let switch = setup(threads, &server).start();
    let mut client = begin(&switch);
    open(&mut client, 1);
    let socket = next(&handed);
    open(&mut client, 3);
    let other = next(&handed);
    breaks_off(&mut client, socket);
    let line = log_of_tunnel(&switch);
    assert_eq!(line["error"], error, "{line}");
    say(&mut client, 3, b"still here");
    expect(&other, b"still here");
    assert_eq!(client.goaway(), None);
}

/// A connection that ends without the end of its streams breaks them all off, also where TLS was not told.
fn the_connection_is_gone(threads: usize) {
    let (authority, (server, handed)) = (Authority::new("test CA"), handed_over());
    let plain = setup(threads, &server).start();
    let over_tls = setup(threads, &server).tls(&authority.server(&["shop.example"]), "").start();
    for (mut client, switch) in [(begin(&plain), &plain), (begin_tls(&over_tls, &authority), &over_tls)] {
        let mut sockets = Vec::new();
        for stream in [1, 3] {
            open(&mut client, stream);
            sockets.push(next(&handed));
        }
        client.turn();
        drop(client);
        for mut socket in sockets {
            let error = socket.read(&mut [0]).expect_err("broken off");
            assert_eq!(error.kind(), ErrorKind::ConnectionReset);
        }
        figure(switch, "pointsman_tunnels_open", &[], 0.0);
    }
}

/// It ends in order, and leaves its connection as it is.
fn idle_for_too_long(threads: usize) {
    const IDLE: Duration = Duration::from_millis(600);
    let server = tunnelled(echo);
    let switch = setup(threads, &server).limits("tunnel_idle_ms_max = 600").start();
    let mut client = begin(&switch);
    open(&mut client, 1);
    let began = Instant::now();
    // For longer than that in all, and never for so long without a word.
    let (mut last, mut said) = (Instant::now(), Vec::new());
    while began.elapsed() < IDLE * 2 {
        said.push(b'x');
        say(&mut client, 1, b"x");
        hears(&mut client, 1, &said);
        last = Instant::now();
    }
    client.answer(1);
    assert!(last.elapsed() >= IDLE, "after {:?}", last.elapsed());
    let line = log_of_tunnel(&switch);
    assert_eq!(line["error"], "nothing came through the tunnel in time", "{line}");
    open(&mut client, 3);
    assert_eq!(client.goaway(), None);
}

fn half_closed_for_too_long(threads: usize) {
    let (server, handed) = handed_over();
    let switch = setup(threads, &server).limits("half_closed_ms_max = 300").start();
    let mut client = begin(&switch);
    for (stream, client_ends) in [(1, true), (3, false)] {
        open(&mut client, stream);
        let mut socket = next(&handed);
        match client_ends {
            true => client.send(&Frame::data(stream, flag::END_STREAM, [])).expect("the switch reads"),
            false => socket.shutdown(Shutdown::Write).expect("open"),
        }
        client.answer(stream);
        assert_eq!(socket.read(&mut [0]).expect("an end in order"), 0);
    }
    assert_eq!(client.goaway(), None);
}

/// A reload leaves tunnels and their connection alone.
fn outlives_a_reload(threads: usize) {
    let server = tunnelled(echo);
    let switch = setup(threads, &server).start();
    let mut client = begin(&switch);
    open(&mut client, 1);
    switch.reload(&setup(threads, &server).limits("tunnel_idle_ms_max = 5000"), 2);
    say(&mut client, 1, b"still here");
    hears(&mut client, 1, b"still here");
    assert_eq!(client.goaway(), None);
    // Without its listener no more is begun, and it goes on all the same.
    switch.reload(&setup(threads, &server).named("other"), 3);
    client.wait("GOAWAY with the last stream", |client| client.goaway() == Some((1, 0)));
    say(&mut client, 1, b", still here");
    hears(&mut client, 1, b"still here, still here");
    client.send(&Frame::data(1, flag::END_STREAM, [])).expect("the switch reads");
    client.answer(1);
    assert_eq!(client.ending(), Some(0));
}

/// What a connection was told cannot be taken back; who asks is refused.
fn a_reload_forbids_new_ones(threads: usize) {
    let server = tunnelled(echo);
    let switch = setup(threads, &server).start();
    let mut client = begin(&switch);
    open(&mut client, 1);
    switch.reload(&setup(threads, &server).listener("upgrades = []"), 2);
    client.connect(3, "/chat", &[VERSION]);
    assert_eq!(client.answer(3).status(), 501);
    say(&mut client, 1, b"still here");
    hears(&mut client, 1, b"still here");
    assert_eq!((server.connections(), client.goaway()), (1, None));
}

fn drains_in_time(threads: usize) {
    let (server, handed) = handed_over();
    let mut switch = setup(threads, &server).top("tunnel_drain_ms_max = 700").start();
    let client = begin(&switch);
    drain(&mut switch, client, || next(&handed));
}

fn drains_in_time_over_tls(threads: usize) {
    let (authority, (server, handed)) = (Authority::new("test CA"), handed_over());
    let setup = setup(threads, &server).top("tunnel_drain_ms_max = 700");
    let mut switch = setup.tls(&authority.server(&["shop.example"]), "").start();
    let client = begin_tls(&switch, &authority);
    drain(&mut switch, client, || next(&handed));
}

/// A part of the drain is left for it, however long tunnels may go on.
fn drains_before_the_end_of_all(threads: usize) {
    let (server, handed) = handed_over();
    let mut switch = setup(threads, &server).top("drain_ms_max = 4000").start();
    let mut client = begin(&switch);
    open(&mut client, 1);
    let mut socket = next(&handed);
    switch.signal("TERM");
    hears(&mut client, 1, b"\x88\x02\x03\xe9");
    client.send_content(1, flag::END_STREAM, b"\x88\x82\x01\x02\x03\x04\x02\xeb").expect("there is leave");
    expect(&socket, b"\x88\x82\x01\x02\x03\x04\x02\xeb");
    assert_eq!(socket.read(&mut [0]).expect("an end in order"), 0);
    drop(socket);
    assert_eq!(client.ending(), Some(0));
    drop(client);
    assert_eq!(switch.wait_for_exit(), Some(0));
}

/// The client is told to begin nothing, and its tunnel goes on for its time. Then it gets a Close frame, between two
/// frames; what it answers goes to the server, and both sides end in order.
fn drain(switch: &mut Switch, mut client: H2Client, next: impl Fn() -> TcpStream) {
    open(&mut client, 1);
    let mut socket = next();
    let began = Instant::now();
    switch.signal("TERM");
    client.wait("GOAWAY with the last stream", |client| client.goaway() == Some((1, 0)));
    say(&mut client, 1, b"still here");
    expect(&socket, b"still here");
    // Half of a frame, and its end when the tunnel's time is over.
    socket.write_all(b"\x82\x04ab").expect("open");
    hears(&mut client, 1, b"\x82\x04ab");
    while began.elapsed() < Duration::from_millis(900) {
        std::thread::yield_now();
    }
    socket.write_all(b"cd").expect("open");
    hears(&mut client, 1, b"\x82\x04abcd\x88\x02\x03\xe9");
    let close = b"\x88\x82\x01\x02\x03\x04\x02\xeb";
    say(&mut client, 1, close);
    expect(&socket, close);
    // Nothing goes to the client behind its Close frame, the server's own one neither.
    socket.write_all(b"\x88\x02\x03\xe9").expect("open");
    socket.shutdown(Shutdown::Write).expect("open");
    assert_eq!(client.answer(1).body, b"\x82\x04abcd\x88\x02\x03\xe9");
    client.send(&Frame::data(1, flag::END_STREAM, [])).expect("the switch reads");
    assert_eq!(client.ending(), Some(0));
    assert_eq!(socket.read(&mut [0]).expect("an end in order"), 0);
    assert_eq!(switch.wait_for_exit(), Some(0));
    let line = log_of_tunnel(switch);
    assert_eq!(line["error"], "the tunnel was closed: the switch drains", "{line}");
}

/// Who does not answer the Close frame is closed all the same, and what are no frames are closed without one.
fn drains_those_that_do_not_answer(threads: usize) {
    let (server, handed) = handed_over();
    let mut switch = setup(threads, &server).top("tunnel_drain_ms_max = 100").start();
    let mut client = begin(&switch);
    open(&mut client, 1);
    let mut silent = next(&handed);
    open(&mut client, 3);
    let mut strange = next(&handed);
    strange.write_all(b"\x89\x7f no frame").expect("open");
    hears(&mut client, 3, b"\x89\x7f no frame");
    switch.signal("TERM");
    assert_eq!(client.answer(1).body, b"\x88\x02\x03\xe9");
    assert_eq!(client.answer(3).body, b"\x89\x7f no frame");
    for socket in [&mut silent, &mut strange] {
        assert_eq!(socket.read(&mut [0]).expect("an end in order"), 0);
    }
    assert_eq!(client.ending(), Some(0));
    assert_eq!(switch.wait_for_exit(), Some(0));
}

/// What is on its way when the drain is over is broken off, and does not look whole.
fn is_cut_when_the_drain_is_over(threads: usize) {
    let (server, handed) = handed_over();
    let top = "tunnel_drain_ms_max = 60000\ndrain_ms_max = 700";
    let mut switch = setup(threads, &server).top(top).start();
    let mut client = H2Client::begin_with_window(switch.client(), 1000);
    client.hold(1);
    open(&mut client, 1);
    let mut socket = next(&handed);
    socket.set_write_timeout(Some(Duration::from_millis(200))).expect("an open socket");
    while socket.write(&[7; 64 * 1024]).is_ok() {}
    switch.signal("TERM");
    client.ending();
    assert!(!client.seen(1).is_whole, "what is cut off looks whole");
    assert_eq!(switch.wait_for_exit(), Some(1));
}

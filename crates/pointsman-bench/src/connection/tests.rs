//! How much of a turn a connection takes.

use std::io::Write;
use std::net::{TcpListener, TcpStream};

use super::*;
use crate::poller::Poller;
use crate::{Load, Plan, Target, Url};

/// A connection of which a request has just been sent, its server's end, and what was heard of it.
fn begun(protocol: Protocol) -> (Connection, TcpStream, Ready, Turn) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
    let address = listener.local_addr().expect("it listens");
    let url = Url::parse(&format!("http://{address}/")).expect("a URL");
    let target =
        Target { url, weight: 1, method: "GET".into(), headers: Vec::new(), body: Default::default() };
    let mut plan = Plan::new(vec![target], Load::Closed { clients: 1 });
    plan.protocol = protocol;
    let requests = Arc::new(Requests::new(&plan).expect("good"));
    let mut turn = Turn::new(requests, fastrand::Rng::with_seed(1));
    let transport = Transport::open(address, None, None).expect("loopback");
    let mut connection = Connection::new(transport, Parts::new(protocol), 0, (1, 1), 1, false);
    connection.ask(&[Job::new(0)], 1, &mut turn).expect("it is sent when it is open");
    let (peer, _) = listener.accept().expect("it comes");
    let mut poller = Poller::new().expect("descriptors");
    poller.watch(connection.socket(), 0).expect("epoll");
    let mut ready = Vec::new();
    while ready.is_empty() {
        poller.wait(0, 1_000_000_000, &mut ready).expect("epoll");
    }
    assert!(matches!(connection.on_ready(ready[0], 2, &mut turn), End::Goes) && connection.is_open());
    (connection, peer, ready[0].unread(), turn)
}

/// Waits until so much can be read.
fn until_there(connection: &Connection, bytes: usize) {
    while connection.socket().peek(&mut [0; 10_000]).unwrap_or(0) < bytes {
        std::thread::yield_now();
    }
}

#[test]
fn what_a_failed_connection_had_to_say_is_not_said_to_another() {
    use crate::http2::frames::{kind, write, write_settings};
    let (mut connection, mut peer, heard, mut turn) = begun(Protocol::Http2);
    let mut bytes = Vec::new();
    write_settings(&mut bytes, &[]);
    write(&mut bytes, kind::PING, 0, 0, &[0; 8]);
    write(&mut bytes, kind::PUSH_PROMISE, 4, 1, &[0, 0, 0, 2]);
    peer.write_all(&bytes).expect("there is room");
    until_there(&connection, bytes.len());
    let end = connection.on_ready(heard, 3, &mut turn);
    assert!(matches!(end, End::Failed(ErrorKind::Malformed, None)), "{end:?}");
    assert!(turn.out.is_empty(), "{:?}", turn.out);
}

#[test]
fn who_sends_much_is_not_read_to_the_end_in_a_turn() {
    const PIECE: usize = 100;
    let (mut connection, mut peer, heard, mut turn) = begun(Protocol::Http1);
    turn.scratch = vec![0; PIECE];
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", 3 * READS_A_TURN * PIECE);
    let answer = [head.as_bytes(), &vec![b'x'; 3 * READS_A_TURN * PIECE]].concat();
    peer.write_all(&answer).expect("there is room");
    until_there(&connection, answer.len());
    for at in 1..=3 {
        assert!(matches!(connection.on_ready(heard, 3, &mut turn), End::Unread));
        assert_eq!(turn.bytes as usize, at * READS_A_TURN * PIECE);
    }
    assert!(matches!(connection.on_ready(heard, 3, &mut turn), End::Goes));
    assert_eq!((turn.bytes as usize, turn.done.len()), (answer.len(), 1));
}

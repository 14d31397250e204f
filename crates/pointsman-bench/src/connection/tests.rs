//! How much of a turn a connection takes.

use std::io::Write;
use std::net::TcpListener;

use super::*;
use crate::poller::Poller;
use crate::{Load, Plan, Target, Url};

#[test]
fn who_sends_much_is_not_read_to_the_end_in_a_turn() {
    const PIECE: usize = 100;
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
    let address = listener.local_addr().expect("it listens");
    let url = Url::parse(&format!("http://{address}/")).expect("a URL");
    let target =
        Target { url, weight: 1, method: "GET".into(), headers: Vec::new(), body: Default::default() };
    let plan = Plan::new(vec![target], Load::Closed { clients: 1 });
    let requests = Arc::new(Requests::new(&plan).expect("good"));
    let mut turn = Turn::new(requests, fastrand::Rng::with_seed(1));
    turn.scratch = vec![0; PIECE];
    let transport = Transport::open(address, None, None).expect("loopback");
    let parts = Parts::new(Protocol::Http1);
    let mut connection = Connection::new(transport, parts, 0, (1, 1), 1, false);
    connection.ask(&[Job::new(0)], 1, &mut turn).expect("it is sent when it is open");
    let (mut peer, _) = listener.accept().expect("it comes");
    let mut poller = Poller::new().expect("descriptors");
    poller.watch(connection.socket(), 0).expect("epoll");
    let mut ready = Vec::new();
    while ready.is_empty() {
        poller.wait(0, 1_000_000_000, &mut ready).expect("epoll");
    }
    assert!(matches!(connection.on_ready(ready[0], 2, &mut turn), End::Goes) && connection.is_open());
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", 3 * READS_A_TURN * PIECE);
    let answer = [head.as_bytes(), &vec![b'x'; 3 * READS_A_TURN * PIECE]].concat();
    peer.write_all(&answer).expect("there is room");
    while connection.socket().peek(&mut [0; 10_000]).unwrap_or(0) < answer.len() {
        std::thread::yield_now();
    }
    let heard = ready[0].unread();
    for at in 1..=3 {
        assert!(matches!(connection.on_ready(heard, 3, &mut turn), End::Unread));
        assert_eq!(turn.bytes as usize, at * READS_A_TURN * PIECE);
    }
    assert!(matches!(connection.on_ready(heard, 3, &mut turn), End::Goes));
    assert_eq!((turn.bytes as usize, turn.done.len()), (answer.len(), 1));
}

//! Urgent data, which HTTP has no use for (RFC 6093): its byte is lost, and nothing else happens.

use std::io::Write;
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::mpsc::channel;

use pointsman_e2e::{Origin, PATIENCE, RawOrigin, Reader, Setup, Switch, echo, read_head};
use socket2::SockRef;

pointsman_e2e::for_threads!(from_a_client, from_a_server, idle_with_urgent_data);

/// Longer than a test may take: what hangs until its time is over fails.
const LIMITS: &str = "head_ms_max = 600000\nbody_ms_max = 600000\nbody_bytes_per_second_min = 0";
const POOL: &str = "response_ms_max = 600000\nbody_ms_max = 600000";

/// Sends two parts with an urgent byte between them. TCP has room for one such byte: another one before the first
/// is read makes that one an ordinary byte.
fn send_with_urgent_byte(socket: &mut TcpStream, [before, behind]: [&[u8]; 2]) {
    socket.write_all(before).expect("open");
    assert_eq!(SockRef::from(&*socket).send_out_of_band(b"!").expect("open"), 1);
    socket.write_all(behind).expect("open");
}

/// While the switch stands still, so that it finds all of what is sent at once.
fn standing_still(switch: &Switch, act: impl FnOnce()) {
    switch.signal("STOP");
    act();
    switch.signal("CONT");
}

/// Wherever the byte is: in a head, between requests, in a body that is spliced or in one that is read.
fn from_a_client(threads: usize) {
    let origin = Origin::answering("origin", echo);
    let switch = Setup::new(threads).limits(LIMITS).pool_with("standard", POOL, &[&origin]).start();
    let long = vec![b'a'; 100_000];
    let length =
        [b"POST /length HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 200000\r\n\r\n", &long[..]];
    let cases: [(&str, [&[u8]; 2]); 4] = [
        ("/head", [b"GET /head HTTP/1.1\r\nHost: sh", b"op.example\r\n\r\n"]),
        (
            "/second",
            [
                b"GET /first HTTP/1.1\r\nHost: shop.example\r\n\r\n",
                b"GET /second HTTP/1.1\r\nHost: shop.example\r\n\r\n",
            ],
        ),
        ("/length", [&length.concat(), &long]),
        (
            "/chunks",
            [
                b"POST /chunks HTTP/1.1\r\nHost: shop.example\r\nTransfer-Encoding: chunked\r\n\r\n2\r\na",
                b"b\r\n0\r\n\r\n",
            ],
        ),
    ];
    for (path, parts) in cases {
        let mut socket = TcpStream::connect(switch.address("shop")).expect("it listens");
        socket.set_read_timeout(Some(PATIENCE)).expect("open");
        standing_still(&switch, || send_with_urgent_byte(&mut socket, parts));
        let mut reader = Reader::new(socket);
        let answers = if path == "/second" { 2 } else { 1 };
        for _ in 0..answers {
            let head = reader.head().unwrap_or_else(|error| panic!("{path}: {error}")).expect("an answer");
            assert_eq!(head.word(1), "200", "{path}");
            reader.begin_body(head.response_framing(false));
            reader.rest().unwrap_or_else(|error| panic!("{path}: {error}"));
        }
        assert_eq!(origin.last().target(), path);
    }
    let length = |path: &str| {
        let of_path = |request: &pointsman_e2e::Request| request.target() == path;
        origin.requests().into_iter().find(of_path).map(|request| request.body.bytes.len())
    };
    assert_eq!((length("/length"), length("/chunks")), (Some(200_000), Some(2)));
}

/// The answer arrives, and the connection that it came on is not used again.
fn from_a_server(threads: usize) {
    let long = vec![b'a'; 100_000];
    let length = [b"HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n", &long[..]].concat();
    let cases: [[Vec<u8>; 2]; 3] = [
        [b"HTTP/1.1 200 OK\r\nContent-".to_vec(), b"Length: 0\r\n\r\n".to_vec()],
        [length, long],
        [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\na".to_vec(), b"b\r\n0\r\n\r\n".to_vec()],
    ];
    let (asked, asks) = channel();
    let (go, may_go) = channel::<usize>();
    let (done, is_done) = channel();
    let ends = Mutex::new((asked, may_go, done));
    let origin = RawOrigin::serving(move |mut socket, _| {
        while read_head(&mut socket).is_some() {
            let ends = ends.lock().expect("no panic under the lock");
            ends.0.send(()).expect("the test is there");
            let [before, behind] = &cases[ends.1.recv().expect("the test is there")];
            send_with_urgent_byte(&mut socket, [before, behind]);
            ends.2.send(()).expect("the test is there");
        }
    });
    let switch = Setup::new(threads).pool_at("standard", POOL, &[("s1", origin.address())]).start();
    let mut client = switch.client();
    for (case, length) in [0, 200_000, 2].into_iter().enumerate() {
        client.send("GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n");
        asks.recv_timeout(PATIENCE).expect("a request");
        standing_still(&switch, || {
            go.send(case).expect("the origin is there");
            is_done.recv_timeout(PATIENCE).expect("sent");
        });
        let answer = client.response();
        assert_eq!((answer.status(), answer.body.bytes.len()), (200, length), "case {case}");
        assert_eq!(origin.connections(), case + 1, "a connection each");
    }
}

/// A kept connection on which an urgent byte comes is not used for a request.
fn idle_with_urgent_data(threads: usize) {
    let (kept, keeps) = channel();
    let kept = Mutex::new(kept);
    let origin = RawOrigin::serving(move |mut socket, _| {
        while read_head(&mut socket).is_some() {
            socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").expect("open");
            let another = socket.try_clone().expect("a descriptor");
            kept.lock().expect("no panic under the lock").send(another).unwrap_or_default();
        }
    });
    let switch = Setup::new(threads).pool_at("standard", POOL, &[("s1", origin.address())]).start();
    let mut client = switch.client();
    for connections in 1..=3 {
        assert_eq!(client.get("/").status(), 200);
        assert_eq!(origin.connections(), connections);
        let mut idle = keeps.recv_timeout(PATIENCE).expect("a connection");
        standing_still(&switch, || send_with_urgent_byte(&mut idle, [b"", b""]));
    }
}

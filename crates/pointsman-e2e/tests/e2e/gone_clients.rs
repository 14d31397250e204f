//! Clients that leave while their server thinks.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use pointsman_e2e::{Authority, Client, PATIENCE, RawOrigin, Setup, Switch, TlsClient, read_head};
use socket2::{Domain, SockRef, Socket, Type};

pointsman_e2e::for_threads!(
    resets,
    resets_before_there_is_a_server,
    ends,
    says_goodbye_over_tls,
    sends_on_over_tls,
    resets_amid_its_upload
);

/// A server that reads a head, never answers, and tells of each connection's end.
fn silent() -> (RawOrigin, Receiver<()>) {
    let (ended, ends) = channel();
    let ended = Mutex::new(ended);
    let origin = RawOrigin::serving(move |mut socket, _| {
        if read_head(&mut socket).is_some() {
            while matches!(socket.read(&mut [0; 1024]), Ok(1..)) {}
            ended.lock().expect("no panic under the lock").send(()).unwrap_or_default();
        }
    });
    (origin, ends)
}

/// More of the next request than the switch reads of it while one is answered, and less than the kernel takes of what
/// nobody reads: it offers a window of 64 KiB to begin with, and takes back nothing of it.
const READ_IN_PART: usize = 30_000;

/// More than the kernel takes: the rest of it, and the end behind it, stay with the client.
const TAKEN_IN_PART: usize = 300_000;

/// Longer than any test may take, unless the client's own limit says otherwise.
const POOL: &str = "response_ms_max = 600000\nwrite_ms_max = 600000";

fn setup(threads: usize, origin: &RawOrigin) -> Setup {
    Setup::new(threads).pool_at("silent", POOL, &[("s1", origin.address())])
}

fn setup_with_tls(threads: usize, origin: &RawOrigin, authority: &Authority) -> Setup {
    setup(threads, origin).tls(&authority.server(&["shop.example"]), "")
}

fn tls_client(switch: &Switch, authority: &Authority) -> Client {
    switch.tls_client(&TlsClient::new(authority), "shop.example").expect("a handshake")
}

fn expect_end(switch: &Switch, ends: &Receiver<()>, path: &str) {
    ends.recv_timeout(PATIENCE).expect("the server is let go");
    let entry = switch.log_of(path);
    assert_eq!(entry["error"], "the client closed the connection", "{entry}");
    assert!(entry.get("status").is_none(), "{entry}");
}

/// A reset says that nobody waits any more, whatever was sent behind the request.
fn resets(threads: usize) {
    let (authority, (origin, ends)) = (Authority::new("test CA"), silent());
    let (plain, tls) =
        (setup(threads, &origin).start(), setup_with_tls(threads, &origin, &authority).start());
    let begun = "GET /next HTTP/1.1\r\n";
    let more = [("", 1), (begun, 1), ("x", READ_IN_PART), ("x", TAKEN_IN_PART)];
    for (number, more) in more.into_iter().map(|(what, times)| what.repeat(times)).enumerate() {
        for (switch, mut client) in [(&plain, plain.client()), (&tls, tls_client(&tls, &authority))] {
            let path = format!("/{number}");
            client.send(format!("GET {path} HTTP/1.1\r\nHost: shop.example\r\n\r\n{more}"));
            until_reached(switch);
            client.reset();
            expect_end(switch, &ends, &path);
        }
    }
}

/// Nor is a server looked for any longer that nobody waits for.
fn resets_before_there_is_a_server(threads: usize) {
    let full = FullQueue::new();
    let pool = "connect_ms_max = 600000";
    let switch = Setup::new(threads).pool_at("full", pool, &[("s1", full.address())]).start();
    let mut client = switch.client();
    client.send("GET /full HTTP/1.1\r\nHost: shop.example\r\n\r\n");
    until_reached(&switch);
    client.reset();
    let entry = switch.log_of("/full");
    assert_eq!(entry["error"], "the client closed the connection", "{entry}");
    assert!(entry.get("status").is_none(), "{entry}");
    assert_eq!(switch.metric("pointsman_server_in_flight_requests", &[]), 0.0);
}

/// A socket that answers no more connections: its queue is full, and nobody takes any from it.
struct FullQueue {
    listener: Socket,
    /// Held open, or there would be room again.
    waiting_there: Vec<TcpStream>,
}

impl FullQueue {
    fn new() -> FullQueue {
        let listener = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
        listener.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).expect("loopback");
        listener.listen(0).expect("bound");
        let mut full = FullQueue { listener, waiting_there: Vec::new() };
        while let Ok(waiting) = TcpStream::connect_timeout(&full.address(), Duration::from_millis(300)) {
            full.waiting_there.push(waiting);
        }
        full
    }

    fn address(&self) -> SocketAddr {
        self.listener.local_addr().ok().and_then(|address| address.as_socket()).expect("bound")
    }
}

fn until_reached(switch: &Switch) {
    let reached = || switch.metric("pointsman_server_in_flight_requests", &[]) > 0.5;
    pointsman_e2e::until("a request on its way", || reached().then_some(()));
}

/// An orderly end may be that of a client that waits: it has its time. What lies unread before it is no reason to
/// overlook it, once it has come.
fn ends(threads: usize) {
    let (origin, ends) = silent();
    let switch = setup(threads, &origin).limits("half_closed_ms_max = 300").start();
    for (path, more) in [("/1", String::new()), ("/2", "x".repeat(READ_IN_PART))] {
        let mut client = switch.client();
        client.send(format!("GET {path} HTTP/1.1\r\nHost: shop.example\r\n\r\n{more}"));
        client.finish_sending();
        expect_end(&switch, &ends, path);
        assert!(client.closes());
    }
}

/// Over TLS the end is a record of its own, with or without that of the connection underneath.
fn says_goodbye_over_tls(threads: usize) {
    let (authority, (origin, ends)) = (Authority::new("test CA"), silent());
    let setup = setup_with_tls(threads, &origin, &authority).limits("half_closed_ms_max = 300");
    let switch = setup.start();
    let mut client = tls_client(&switch, &authority);
    client.send("GET /1 HTTP/1.1\r\nHost: shop.example\r\n\r\n");
    client.notify_of_close();
    expect_end(&switch, &ends, "/1");
    let mut client = tls_client(&switch, &authority);
    client.send("GET /2 HTTP/1.1\r\nHost: shop.example\r\n\r\n");
    client.finish_sending();
    expect_end(&switch, &ends, "/2");
}

/// What was read to find an end is the next request, and is answered as such.
fn sends_on_over_tls(threads: usize) {
    let authority = Authority::new("test CA");
    let (origin, go) = crate::drain::held();
    let switch = Setup::new(threads).tls(&authority.server(&["shop.example"]), "");
    let switch = switch.pool("standard", &[&origin]).start();
    let mut client = tls_client(&switch, &authority);
    client.send("GET /1 HTTP/1.1\r\nHost: shop.example\r\n\r\n");
    origin.wait_for_requests(1);
    let body = "x".repeat(100_000);
    client.send("POST /2 HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 100000\r\n\r\n");
    client.send(&body);
    for _ in 0..2 {
        go.send(()).expect("the origin is there");
        assert_eq!(client.response().status(), 200);
    }
    assert_eq!(origin.last().target(), "/2");
    assert!(origin.last().body.bytes == body.as_bytes(), "the body changed on its way");
}

/// Also where its body is on its way to a server that takes none of it.
fn resets_amid_its_upload(threads: usize) {
    let origin = RawOrigin::silent();
    let switch = setup(threads, &origin).start();
    let mut client = TcpStream::connect(switch.address("shop")).expect("it listens");
    let head = "POST /1 HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 1000000000\r\n\r\n";
    client.write_all(head.as_bytes()).expect("open");
    // Until the switch takes no more.
    client.set_write_timeout(Some(Duration::from_millis(500))).expect("open");
    while client.write_all(&[b'x'; 64 * 1024]).is_ok() {}
    SockRef::from(&client).set_linger(Some(Duration::ZERO)).expect("open");
    drop(client);
    let entry = switch.log_of("/1");
    assert_eq!(entry["error"], "the client closed the connection", "{entry}");
}

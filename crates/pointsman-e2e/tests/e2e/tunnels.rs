//! Tunnels: bytes both ways after a 101, ends, limits, drains and reloads.

use std::io::{Error, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use pointsman_e2e::{
    Authority, Client, PATIENCE, Pattern, RawOrigin, Setup, Switch, TlsClient, is_closed, read_head,
    read_some, until, websocket_accept,
};

use crate::upgrades::{KEY, SWITCHING, WEBSOCKET, echo};

pointsman_e2e::for_threads!(
    echoes,
    echoes_over_tls,
    carries_much_down,
    carries_much_up,
    the_client_ends_first,
    the_server_ends_first,
    early_bytes_wait_for_the_answer,
    idle_for_too_long,
    half_closed_for_too_long,
    the_server_takes_nothing,
    the_client_takes_nothing,
    the_client_is_gone,
    the_server_is_gone,
    is_counted_and_logged,
    outlives_a_reload,
    drains_in_time,
    drains_in_time_over_tls,
    drains_those_that_do_not_answer,
    is_cut_when_the_drain_is_over
);

const LENGTH: u64 = 24 * 1024 * 1024;

/// A server that changes to WebSocket, and then does with each connection as it is told.
pub(crate) fn tunnelled(then: impl Fn(&mut TcpStream) + Send + Sync + 'static) -> RawOrigin {
    RawOrigin::serving(move |mut socket, _| {
        let Some((head, _)) = read_head(&mut socket) else { return };
        if socket.write_all(switching(&head).as_bytes()).is_ok() {
            then(&mut socket);
        }
    })
}

/// The 101 to a handshake.
pub(crate) fn switching(head: &str) -> String {
    let key = head.lines().find_map(|line| line.strip_prefix("Sec-WebSocket-Key: ")).unwrap_or_default();
    let accept = websocket_accept(key);
    format!("{SWITCHING}Upgrade: websocket\r\nSec-WebSocket-Accept: {accept}\r\n\r\n")
}

/// The same, its connections handed to the test.
pub(crate) fn handed_over() -> (RawOrigin, Receiver<TcpStream>) {
    let (hand, handed) = channel::<TcpStream>();
    let hand = Mutex::new(hand);
    let origin = tunnelled(move |socket| {
        let socket = socket.try_clone().expect("a descriptor");
        // The test may have ended.
        hand.lock().expect("no panic under the lock").send(socket).unwrap_or_default();
    });
    (origin, handed)
}

fn setup(threads: usize, server: &RawOrigin) -> Setup {
    Setup::new(threads).pool_at("standard", "", &[("s", server.address())])
}

/// Asks for a WebSocket, and gets one.
pub(crate) fn open(mut client: Client) -> Client {
    client.send(format!("GET /chat HTTP/1.1\r\nHost: shop.example\r\n{WEBSOCKET}{KEY}\r\n"));
    let head = client.head();
    assert_eq!(head.word(1), "101", "{head:?}");
    client.begin_tunnel();
    client
}

pub(crate) fn next<T>(handed: &Receiver<T>) -> T {
    handed.recv_timeout(PATIENCE).expect("the server is reached")
}

/// The end of a connection: in order, or broken off.
fn end(client: &mut Client) -> Result<(), Error> {
    while client.piece()?.is_some() {}
    Ok(())
}

pub(crate) fn log_of_tunnel(switch: &Switch) -> serde_json::Value {
    switch.log_entry("the tunnel", |line| line["status"] == 101)
}

fn echoes(threads: usize) {
    let server = tunnelled(echo);
    let switch = setup(threads, &server).start();
    echo_much(open(switch.client()));
    assert!(log_of_tunnel(&switch)["request_bytes"].as_u64() > Some(LENGTH));
}

fn echoes_over_tls(threads: usize) {
    let (authority, server) = (Authority::new("test CA"), tunnelled(echo));
    let switch = setup(threads, &server).tls(&authority.server(&["shop.example"]), "").start();
    let client = switch.tls_client(&TlsClient::new(&authority), "shop.example").expect("a handshake");
    echo_much(open(client));
}

/// Pieces of many sizes, each of which comes back before the next goes.
fn echo_much(mut client: Client) {
    let (mut sent, mut came) = (Pattern::default(), Pattern::default());
    let mut size = 1;
    while sent.position() < LENGTH {
        size = size * 7 % 100_003;
        client.send(sent.next(size));
        while came.position() < sent.position() {
            came.expect(&client.piece().expect("open").expect("more"));
        }
    }
    client.finish_sending();
    assert!(client.closes());
}

/// Through pipes over plain connections, and through buffers where there are none.
fn carries_much_down(threads: usize) {
    let server = tunnelled(|socket| {
        let mut pattern = Pattern::default();
        while pattern.position() < LENGTH {
            if socket.write_all(pattern.next(LENGTH)).is_err() {
                return;
            }
        }
    });
    for pipes in ["splice_pipes_max = 4", "splice_pipes_max = 0"] {
        let switch = setup(threads, &server).top(pipes).start();
        let mut client = open(switch.client());
        let mut came = Pattern::default();
        while let Some(piece) = client.piece().expect("open") {
            came.expect(&piece);
        }
        assert_eq!(came.position(), LENGTH, "{pipes}");
    }
}

/// A server that looks at what comes, and says at its end how much it was.
pub(crate) fn counts(socket: &mut TcpStream) {
    let (mut pattern, mut space) = (Pattern::default(), vec![0; 64 * 1024]);
    while let Ok(count @ 1..) = read_some(socket, &mut space) {
        pattern.expect(&space[..count]);
    }
    // The test may have ended.
    socket.write_all(format!("{} bytes", pattern.position()).as_bytes()).unwrap_or_default();
}

fn carries_much_up(threads: usize) {
    let server = tunnelled(counts);
    let authority = Authority::new("test CA");
    let plain = setup(threads, &server).start();
    let over_tls = setup(threads, &server).tls(&authority.server(&["shop.example"]), "").start();
    let tls_client = over_tls.tls_client(&TlsClient::new(&authority), "shop.example").expect("a handshake");
    for mut client in [open(plain.client()), open(tls_client)] {
        let mut sent = Pattern::default();
        while sent.position() < LENGTH {
            let left = LENGTH - sent.position();
            client.send(sent.next(left));
        }
        client.finish_sending();
        client.expect_body(format!("{LENGTH} bytes").as_bytes());
        assert!(client.closes());
    }
}

fn the_client_ends_first(threads: usize) {
    let (server, handed) = handed_over();
    let switch = setup(threads, &server).start();
    let mut client = open(switch.client());
    let mut socket = next(&handed);
    client.send("last words");
    client.finish_sending();
    let mut said = String::new();
    socket.read_to_string(&mut said).expect("an end in order");
    assert_eq!(said, "last words");
    socket.write_all(b"and now me").expect("open");
    client.expect_body(b"and now me");
    drop(socket);
    end(&mut client).expect("an end in order");
    assert!(log_of_tunnel(&switch)["error"].is_null());
}

fn the_server_ends_first(threads: usize) {
    let (server, handed) = handed_over();
    let switch = setup(threads, &server).start();
    let mut client = open(switch.client());
    let mut socket = next(&handed);
    socket.write_all(b"last words").expect("open");
    socket.shutdown(Shutdown::Write).expect("open");
    client.expect_body(b"last words");
    end(&mut client).expect("an end in order");
    client.send("and now me");
    client.finish_sending();
    let mut said = String::new();
    socket.read_to_string(&mut said).expect("an end in order");
    assert_eq!(said, "and now me");
    assert!(log_of_tunnel(&switch)["error"].is_null());
}

/// What a client says before the server has agreed is for nobody yet. What the server says with its 101 comes
/// behind it.
fn early_bytes_wait_for_the_answer(threads: usize) {
    let (hand, handed) = channel::<(String, TcpStream)>();
    let hand = Mutex::new(hand);
    let server = RawOrigin::serving(move |mut socket, _| {
        let (head, early) = read_head(&mut socket).expect("a handshake");
        assert!(early.is_empty(), "bytes came before the 101");
        hand.lock().expect("no panic under the lock").send((head, socket)).unwrap_or_default();
    });
    let authority = Authority::new("test CA");
    let plain = setup(threads, &server).start();
    let over_tls = setup(threads, &server).tls(&authority.server(&["shop.example"]), "").start();
    let tls_client = over_tls.tls_client(&TlsClient::new(&authority), "shop.example").expect("a handshake");
    for mut client in [plain.client(), tls_client] {
        client.send(format!("GET /chat HTTP/1.1\r\nHost: shop.example\r\n{WEBSOCKET}{KEY}\r\nwith it,"));
        let (head, mut socket) = next(&handed);
        client.send(" behind it");
        socket.set_read_timeout(Some(Duration::from_millis(50))).expect("an open socket");
        assert_eq!(socket.read(&mut [0]).expect_err("too early").kind(), ErrorKind::WouldBlock);
        socket.set_read_timeout(Some(PATIENCE)).expect("an open socket");
        socket.write_all((switching(&head) + "hello").as_bytes()).expect("open");
        assert_eq!(client.head().word(1), "101");
        client.begin_tunnel();
        client.expect_body(b"hello");
        let mut said = [0; 18];
        socket.read_exact(&mut said).expect("open");
        assert_eq!(&said, b"with it, behind it");
    }
}

fn idle_for_too_long(threads: usize) {
    const IDLE: Duration = Duration::from_millis(600);
    let server = tunnelled(echo);
    let switch = setup(threads, &server).limits("tunnel_idle_ms_max = 600").start();
    let mut client = open(switch.client());
    let began = Instant::now();
    // For longer than that in all, and never for so long without a word.
    let mut last = Instant::now();
    while began.elapsed() < IDLE * 2 {
        client.send("x");
        client.expect_body(b"x");
        last = Instant::now();
    }
    end(&mut client).expect("an end in order");
    assert!(last.elapsed() >= IDLE, "after {:?}", last.elapsed());
    let line = log_of_tunnel(&switch);
    assert_eq!(line["error"], "nothing came through the tunnel in time", "{line}");
}

fn half_closed_for_too_long(threads: usize) {
    let (server, handed) = handed_over();
    let switch = setup(threads, &server).limits("half_closed_ms_max = 300").start();
    for client_ends in [true, false] {
        let mut client = open(switch.client());
        let mut socket = next(&handed);
        match client_ends {
            true => client.finish_sending(),
            false => socket.shutdown(Shutdown::Write).expect("open"),
        }
        end(&mut client).expect("an end in order");
        assert_eq!(socket.read(&mut [0]).expect("an end in order"), 0);
    }
}

/// A server that reads nothing: the client is held back, and in the end both are cut.
fn the_server_takes_nothing(threads: usize) {
    let (server, handed) = handed_over();
    let setup = Setup::new(threads).limits("write_ms_max = 60000");
    let switch = setup.pool_at("standard", "write_ms_max = 800", &[("s", server.address())]).start();
    let mut client = open(switch.client());
    let _socket = next(&handed);
    client.waits_to_send(Duration::from_millis(300));
    let (bytes, mut sent) = (vec![7; 64 * 1024], 0);
    let held_back = loop {
        match client.send_some(&bytes) {
            Ok(count) => sent += count,
            Err(error) => break error,
        }
        assert!(sent < 64 << 20, "nothing holds the client back");
    };
    // Where it was cut before it was held back, its end was told there.
    assert!(is_closed(&held_back) || end(&mut client).is_err(), "what is cut off looks whole");
    let line = log_of_tunnel(&switch);
    assert_eq!(line["error"], "the server took nothing of the request in time", "{line}");
}

fn the_client_takes_nothing(threads: usize) {
    let (tell, told) = channel::<u64>();
    let tell = Mutex::new(tell);
    let server = tunnelled(move |socket| {
        socket.set_write_timeout(Some(PATIENCE)).expect("an open socket");
        let mut sent = 0;
        while let Ok(count) = socket.write(&[7; 64 * 1024]) {
            sent += count as u64;
        }
        tell.lock().expect("no panic under the lock").send(sent).unwrap_or_default();
    });
    let authority = Authority::new("test CA");
    let limits = "write_ms_max = 800";
    let plain = setup(threads, &server).limits(limits).start();
    let pair = authority.server(&["shop.example"]);
    let over_tls = setup(threads, &server).limits(limits).tls(&pair, "").start();
    let config = TlsClient::new(&authority);
    let cramped = Client::cramped(plain.address("shop"), 16 * 1024);
    let address = over_tls.address("shop");
    let cramped_tls = Client::cramped_tls(address, 16 * 1024, &config, "shop.example").expect("a handshake");
    for (client, switch) in [(cramped, &plain), (cramped_tls, &over_tls)] {
        let mut client = open(client);
        let sent = told.recv_timeout(PATIENCE * 2).expect("the server is cut off");
        assert!(sent < 64 << 20, "nothing holds the server back");
        let line = log_of_tunnel(switch);
        assert_eq!(line["error"], "the client took nothing of the answer in time", "{line}");
        assert!(end(&mut client).is_err(), "what is cut off looks whole");
    }
}

/// A client that breaks off breaks its server off, which must not take that for an end.
fn the_client_is_gone(threads: usize) {
    let (server, handed) = handed_over();
    let switch = setup(threads, &server).start();
    let client = open(switch.client());
    let mut socket = next(&handed);
    client.reset();
    let error = socket.read(&mut [0]).expect_err("broken off");
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    let line = log_of_tunnel(&switch);
    assert_eq!(line["error"], "the client closed the connection", "{line}");
}

fn the_server_is_gone(threads: usize) {
    let (server, handed) = handed_over();
    let switch = setup(threads, &server).start();
    let mut client = open(switch.client());
    let mut socket = next(&handed);
    socket.write_all(b"said before").expect("open");
    client.expect_body(b"said before");
    socket2::SockRef::from(&socket).set_linger(Some(Duration::ZERO)).expect("an open socket");
    drop(socket);
    assert!(end(&mut client).is_err(), "what is broken off looks whole");
    let line = log_of_tunnel(&switch);
    assert_eq!(line["error"], "the server closed the connection", "{line}");
}

/// One tunnel is one request at its server, and one line, when it ends.
fn is_counted_and_logged(threads: usize) {
    let server = tunnelled(echo);
    let switch = setup(threads, &server).start();
    let shop = [("listener", "shop")];
    let in_flight = [("pool", "standard"), ("server", "s")];
    let figures = || {
        let in_flight = switch.metric("pointsman_server_in_flight_requests", &in_flight);
        [switch.metric("pointsman_tunnels_open", &shop), in_flight].map(|figure| figure.to_string())
    };
    let mut clients: Vec<_> = (0..3).map(|_| open(switch.client())).collect();
    until("three tunnels", || (figures() == ["3", "3"]).then_some(()));
    assert_eq!(switch.log_lines(), 0);
    clients[0].send("hello, hello");
    clients[0].expect_body(b"hello, hello");
    drop(clients);
    until("no tunnel", || (figures() == ["0", "0"]).then_some(()));
    assert!((switch.metric("pointsman_tunnels_total", &shop) - 3.0).abs() < 0.1);
    let head = format!("GET /chat HTTP/1.1\r\nHost: shop.example\r\n{WEBSOCKET}{KEY}\r\n").len() as u64;
    let line = switch.log_entry("the one that spoke", |line| line["request_bytes"] == head + 12);
    assert_eq!(line["path"], "/chat");
    assert!(line["response_bytes"].as_u64() > Some(12 + 100), "{line}");
}

/// Neither a reload nor the end of its listener ends a tunnel.
fn outlives_a_reload(threads: usize) {
    let server = tunnelled(echo);
    let first = setup(threads, &server);
    let switch = first.start();
    let mut client = open(switch.client());
    switch.reload(&setup(threads, &server).limits("tunnel_idle_ms_max = 5000"), 2);
    switch.reload(&setup(threads, &server).named("other"), 3);
    for _ in 0..3 {
        client.send("still here");
        client.expect_body(b"still here");
    }
    client.finish_sending();
    end(&mut client).expect("an end in order");
}

fn drains_in_time(threads: usize) {
    let (server, handed) = handed_over();
    let mut switch = setup(threads, &server).top("tunnel_drain_ms_max = 700").start();
    let client = open(switch.client());
    drain(&mut switch, client, &next(&handed));
}

fn drains_in_time_over_tls(threads: usize) {
    let (authority, (server, handed)) = (Authority::new("test CA"), handed_over());
    let setup = setup(threads, &server).top("tunnel_drain_ms_max = 700");
    let mut switch = setup.tls(&authority.server(&["shop.example"]), "").start();
    let client = switch.tls_client(&TlsClient::new(&authority), "shop.example").expect("a handshake");
    drain(&mut switch, open(client), &next(&handed));
}

/// It goes on for its time. Then the client is told by a Close frame, between two frames; what it answers goes to the
/// server, and both sides end in order.
fn drain(switch: &mut Switch, mut client: Client, mut socket: &TcpStream) {
    let began = Instant::now();
    switch.signal("TERM");
    switch.wait_for_line("draining connections=");
    client.send("still here");
    let mut said = [0; 10];
    socket.read_exact(&mut said).expect("open");
    assert_eq!(&said, b"still here");
    // Half of a frame, and its end when the tunnel's time is over.
    socket.write_all(b"\x82\x04ab").expect("open");
    client.expect_body(b"\x82\x04ab");
    while began.elapsed() < Duration::from_millis(900) {
        std::thread::yield_now();
    }
    socket.write_all(b"cd").expect("open");
    client.expect_body(b"cd\x88\x02\x03\xe9");
    let close = b"\x88\x82\x01\x02\x03\x04\x02\xeb";
    client.send(close);
    let mut answered = [0; 8];
    socket.read_exact(&mut answered).expect("open");
    assert_eq!(&answered, close);
    // Nothing goes to the client behind its Close frame, the server's own one neither.
    socket.write_all(b"\x88\x02\x03\xe9").expect("open");
    socket.shutdown(Shutdown::Write).expect("open");
    assert_eq!(client.everything(), "");
    drop(client);
    assert_eq!(socket.read(&mut [0]).expect("an end in order"), 0);
    assert_eq!(switch.wait_for_exit(), Some(0));
    let line = log_of_tunnel(switch);
    assert_eq!(line["error"], "the tunnel was closed: the switch drains", "{line}");
}

/// Who does not answer the Close frame is closed all the same, and what are no frames are closed without one.
fn drains_those_that_do_not_answer(threads: usize) {
    let (server, handed) = handed_over();
    let mut switch = setup(threads, &server).top("tunnel_drain_ms_max = 100").start();
    let (mut silent, silent_socket) = (open(switch.client()), next(&handed));
    let (mut strange, mut strange_socket) = (open(switch.client()), next(&handed));
    strange_socket.write_all(b"\x89\x7f no frame").expect("open");
    strange.expect_body(b"\x89\x7f no frame");
    switch.signal("TERM");
    silent.expect_body(b"\x88\x02\x03\xe9");
    for (client, mut socket) in [(&mut silent, silent_socket), (&mut strange, strange_socket)] {
        end(client).expect("an end in order");
        assert_eq!(socket.read(&mut [0]).expect("an end in order"), 0);
    }
    drop((silent, strange));
    assert_eq!(switch.wait_for_exit(), Some(0));
}

/// What is on its way when the drain is over is broken off; a tunnel that is silent ends in order even then.
fn is_cut_when_the_drain_is_over(threads: usize) {
    let (server, handed) = handed_over();
    let top = "tunnel_drain_ms_max = 60000\ndrain_ms_max = 700";
    let mut switch = setup(threads, &server).top(top).start();
    let mut silent = open(switch.client());
    let _silent_socket = next(&handed);
    let mut busy = open(Client::cramped(switch.address("shop"), 16 * 1024));
    let mut socket = next(&handed);
    socket.set_write_timeout(Some(Duration::from_millis(200))).expect("an open socket");
    while socket.write(&[7; 64 * 1024]).is_ok() {}
    switch.signal("TERM");
    assert_eq!(switch.wait_for_exit(), Some(1));
    end(&mut silent).expect("an end in order");
    assert!(end(&mut busy).is_err(), "what is cut off looks whole");
}

//! Clients and servers that go on, but slowly.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use pointsman_e2e::{
    Authority, Client, Origin, PATIENCE, RawOrigin, Setup, Switch, Then, TlsClient, is_closed, read_head,
};

pointsman_e2e::for_threads!(
    reads_slowly,
    reads_slowly_over_tls,
    reads_nothing,
    reads_nothing_over_tls,
    drips_its_body,
    sends_fast_enough,
    drips_behind_its_answer,
    drips_beside_its_answer
);

/// Longer than what the kernel holds for a client.
pub(crate) const LENGTH: usize = 6 * 1024 * 1024;
/// The room of a client for what it has not read.
pub(crate) const ROOM: usize = 16 * 1024;
const WRITE_MS_MAX: u32 = 1000;

/// Answers `/length` by length, which is spliced over plain connections, and everything else in one chunk.
pub(crate) fn large() -> Origin {
    Origin::answering("large", |exchange| {
        let body = vec![b'a'; LENGTH];
        if exchange.target() == "/length" {
            exchange.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {LENGTH}\r\n\r\n"));
            exchange.send(body);
        } else {
            exchange.send(format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{LENGTH:x}\r\n"));
            exchange.send(body);
            exchange.send("\r\n0\r\n\r\n");
        }
        Then::KeepAlive
    })
}

pub(crate) fn setup(threads: usize, large: &Origin, other: &Origin) -> Setup {
    let setup = Setup::new(threads).rules("if (path == \"/other\") { routeTo(quick); }");
    let setup = setup.limits(&format!("write_ms_max = {WRITE_MS_MAX}"));
    setup.pool("standard", &[large]).pool("quick", &[other])
}

/// The limit is on taking nothing, whatever the kernel says of room: a third of its buffer is more than these
/// clients take in three times the limit.
fn reads_slowly(threads: usize) {
    let (large, other) = (large(), Origin::new("other"));
    let switch = setup(threads, &large, &other).start();
    let clients = ["/length", "/chunked"].map(|path| (Client::cramped(switch.address("shop"), ROOM), path));
    get_whole_bodies_slowly(clients, switch.client());
}

/// TLS holds bytes of its own, and has them to push out behind the last.
fn reads_slowly_over_tls(threads: usize) {
    let (large, other, authority) = (large(), Origin::new("other"), Authority::new("test CA"));
    let switch = setup(threads, &large, &other).tls(&authority.server(&["shop.example"]), "").start();
    let config = TlsClient::new(&authority);
    let clients = ["/length", "/chunked"].map(|path| (cramped_tls(&switch, &config), path));
    get_whole_bodies_slowly(clients, switch.tls_client(&config, "shop.example").expect("a handshake"));
}

fn cramped_tls(switch: &Switch, config: &TlsClient) -> Client {
    Client::cramped_tls(switch.address("shop"), ROOM, config, "shop.example").expect("a handshake")
}

fn get_whole_bodies_slowly(mut clients: [(Client, &str); 2], mut others: Client) {
    for (client, path) in &mut clients {
        client.send(format!("GET {path} HTTP/1.1\r\nHost: shop.example\r\n\r\n"));
        assert_eq!(client.head().word(1), "200");
    }
    let (started, mut came) = (Instant::now(), [0; 2]);
    let slow = Duration::from_millis(u64::from(WRITE_MS_MAX) * 3);
    while started.elapsed() < slow {
        for ((client, path), came) in clients.iter_mut().zip(&mut came) {
            // 8 KiB in 60 ms.
            if *came < started.elapsed().as_millis() as usize * 8192 / 60 {
                *came += piece(client, path, *came).expect("more of the body");
            }
        }
        assert_eq!(others.get("/other").server(), "other");
    }
    for ((mut client, path), mut came) in clients.into_iter().zip(came) {
        assert!(came < LENGTH / 4, "{path} was read too fast for this test: {came} bytes");
        while let Some(more) = piece(&mut client, path, came) {
            came += more;
        }
        assert_eq!(came, LENGTH, "{path}");
    }
}

fn piece(client: &mut Client, path: &str, came: usize) -> Option<usize> {
    let piece = client.piece().unwrap_or_else(|error| panic!("{path}: {error} after {came} bytes"));
    piece.map(|piece| piece.len())
}

/// A client that takes nothing is cut.
fn reads_nothing(threads: usize) {
    let (large, other) = (large(), Origin::new("other"));
    let switch = setup(threads, &large, &other).start();
    for path in ["/length", "/chunked"] {
        cut_when_it_reads_nothing(&switch, Client::cramped(switch.address("shop"), ROOM), path);
    }
}

fn reads_nothing_over_tls(threads: usize) {
    let (large, other, authority) = (large(), Origin::new("other"), Authority::new("test CA"));
    let switch = setup(threads, &large, &other).tls(&authority.server(&["shop.example"]), "").start();
    for path in ["/length", "/chunked"] {
        cut_when_it_reads_nothing(&switch, cramped_tls(&switch, &TlsClient::new(&authority)), path);
    }
}

fn cut_when_it_reads_nothing(switch: &Switch, mut client: Client, path: &str) {
    client.send(format!("GET {path} HTTP/1.1\r\nHost: shop.example\r\n\r\n"));
    let entry = switch.log_of(path);
    assert_eq!(entry["error"], "the client took nothing of the answer in time", "{entry}");
    assert!(client.try_response().is_err(), "an answer that was given up looks whole");
}

/// A body that never pauses for long, and never comes to its end either.
fn drips_its_body(threads: usize) {
    let origin = Origin::answering("origin", |exchange| {
        exchange.body();
        exchange.answer("200 OK", "")
    });
    let limits = "body_ms_max = 500\nbody_bytes_per_second_min = 1000";
    let switch = Setup::new(threads).limits(limits).pool("standard", &[&origin]).start();
    let answer = drip(&switch, "/drips");
    assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
    assert_eq!(switch.log_of("/drips")["error"], "the body did not arrive in time");
}

/// As many bytes as must come in a second, and more, may take as long as they like.
fn sends_fast_enough(threads: usize) {
    let origin = Origin::new("origin");
    let limits = "body_ms_max = 500\nbody_bytes_per_second_min = 1000";
    let switch = Setup::new(threads).limits(limits).pool("standard", &[&origin]).start();
    let (mut client, mut others, started) = (switch.client(), switch.client(), Instant::now());
    let length = 20_000;
    client.send(format!("POST / HTTP/1.1\r\nHost: shop.example\r\nContent-Length: {length}\r\n\r\n"));
    for part in 1..=length / 500 {
        // All of it in three times what the client has without earning it.
        let due = Duration::from_millis(part * 1500 * 500 / length);
        while started.elapsed() < due {
            assert_eq!(others.get("/other").status(), 200);
        }
        client.send([b'x'; 500]);
    }
    assert_eq!(client.response().status(), 200);
}

/// What is still sent when the answer is over is no reason to wait for ever.
fn drips_behind_its_answer(threads: usize) {
    let (ended, ends) = channel();
    let ended = Mutex::new(ended);
    let origin = RawOrigin::serving(move |mut socket, _| {
        if read_head(&mut socket).is_some_and(|(head, _)| head.contains("/drips")) {
            socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nearly").expect("open");
            while matches!(socket.read(&mut [0; 1024]), Ok(1..)) {}
            ended.lock().expect("no panic under the lock").send(()).unwrap_or_default();
        }
    });
    let limits = "body_ms_max = 500\nbody_bytes_per_second_min = 1000";
    let setup = Setup::new(threads).limits(limits).rules("if (path == \"/other\") { respond(200, \"\"); }");
    let switch = setup.pool_at("standard", "", &[("s1", origin.address())]).start();
    let answer = drip(&switch, "/drips");
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("early"), "{answer}");
    ends.recv_timeout(PATIENCE).expect("the server is let go");
}

/// A body that goes on is no sign that the answer does.
fn drips_beside_its_answer(threads: usize) {
    let origin = RawOrigin::serving(|mut socket, _| {
        if read_head(&mut socket).is_some_and(|(head, _)| head.contains("/drips")) {
            socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf").expect("open");
            while matches!(socket.read(&mut [0; 1024]), Ok(1..)) {}
        }
    });
    let setup = Setup::new(threads).limits("body_bytes_per_second_min = 0");
    let setup = setup.rules("if (path == \"/other\") { respond(200, \"\"); }");
    let switch = setup.pool_at("standard", "body_ms_max = 500", &[("s1", origin.address())]).start();
    let answer = drip(&switch, "/drips");
    assert!(answer.ends_with("half"), "{answer}");
    assert_eq!(switch.log_of("/drips")["error"], "the server's answer stopped in its body");
}

/// Sends a body byte by byte, twenty times a second, until the switch takes no more. Returns what it answered.
fn drip(switch: &Switch, path: &str) -> String {
    let (mut others, started) = (switch.client(), Instant::now());
    let mut socket = TcpStream::connect(switch.address("shop")).expect("it listens");
    let head = format!("POST {path} HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 1000000\r\n\r\n");
    socket.write_all(head.as_bytes()).expect("open");
    socket.set_nonblocking(true).expect("open");
    let (mut came, mut space, mut sent) = (Vec::new(), [0; 4096], 0);
    loop {
        if let Ok(count) = socket.read(&mut space) {
            came.extend_from_slice(&space[..count]);
        }
        if sent < started.elapsed().as_millis() / 50 {
            sent += 1;
            if socket.write(b"x").is_err_and(|error| is_closed(&error)) {
                return String::from_utf8_lossy(&came).into_owned();
            }
        }
        assert!(started.elapsed() < PATIENCE, "it drips on: {}", String::from_utf8_lossy(&came));
        assert_eq!(others.get("/other").status(), 200);
    }
}

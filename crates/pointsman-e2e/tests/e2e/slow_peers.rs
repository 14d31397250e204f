//! Clients and servers that go on, but slowly.

use std::time::{Duration, Instant};

use pointsman_e2e::{Authority, Client, Origin, Setup, Switch, Then, TlsClient};

pointsman_e2e::for_threads!(reads_slowly, reads_slowly_over_tls, reads_nothing, reads_nothing_over_tls);

/// Longer than what the kernel holds for a client.
const LENGTH: usize = 6 * 1024 * 1024;
/// The room of a client for what it has not read.
const ROOM: usize = 16 * 1024;
const WRITE_MS_MAX: u32 = 1000;

/// Answers `/length` by length, which is spliced over plain connections, and everything else in one chunk.
fn large() -> Origin {
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

fn setup(threads: usize, large: &Origin, other: &Origin) -> Setup {
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

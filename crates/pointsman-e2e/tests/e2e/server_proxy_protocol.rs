//! PROXY headers to servers: whom a connection is for, and that it is for nobody else.

use std::io::Write;
use std::net::TcpStream;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Mutex, PoisonError};

use pointsman_e2e::{Authority, Origin, PATIENCE, RawOrigin, Setup, TlsClient, read_head, read_some, until};

pointsman_e2e::for_threads!(one_connection_a_client, what_is_said_of_tls, with_retries, off_after_a_reload);

/// A server that answers with the line before the first head of a connection, and tells when a connection ends.
fn lines() -> (RawOrigin, Receiver<usize>) {
    let (ended, ends) = channel();
    let ended = Mutex::new(ended);
    let origin = RawOrigin::serving(move |mut socket, number| {
        let mut line = None;
        while let Some((head, _)) = read_head(&mut socket) {
            let line = line.get_or_insert_with(|| head.lines().next().unwrap_or_default().to_owned());
            let answer = format!(
                "HTTP/1.1 200 OK\r\nX-Connection: {number}\r\nContent-Length: {}\r\n\r\n{line}",
                line.len()
            );
            if socket.write_all(answer.as_bytes()).is_err() {
                break;
            }
        }
        // The test may be over.
        ended.lock().unwrap_or_else(PoisonError::into_inner).send(number).unwrap_or_default();
    });
    (origin, ends)
}

const V1: &str = "proxy_protocol = \"v1\"";

/// The requests of a client share a connection, no other client uses it, and it ends with its client.
fn one_connection_a_client(threads: usize) {
    let (origin, ends) = lines();
    let switch = Setup::new(threads).pool_at("standard", V1, &[("origin", origin.address())]).start();
    let ours = switch.address("shop").port();
    let mut clients = [switch.client(), switch.client(), switch.client()];
    for _ in 0..3 {
        for client in &mut clients {
            let port = client.local().port();
            let said = client.get("/").text();
            assert_eq!(said, format!("PROXY TCP4 127.0.0.1 127.0.0.1 {port} {ours}"));
        }
    }
    assert_eq!(origin.connections(), 3);
    let kept = || switch.metric("pointsman_server_idle_connections", &[("server", "origin")]);
    // The answer is there before its connection is given back.
    until("three are kept", || ((kept() - 3.0).abs() < 0.5).then_some(()));
    let [first, ..] = clients;
    drop(first);
    assert_eq!(ends.recv_timeout(PATIENCE), Ok(0));
    until("two are kept", || ((kept() - 2.0).abs() < 0.5).then_some(()));
}

/// Version 2 says which name the client asked for, and what it speaks.
fn what_is_said_of_tls(threads: usize) {
    let (say, said) = channel();
    let say = Mutex::new(say);
    let origin = RawOrigin::serving(move |mut socket: TcpStream, _| {
        let (mut came, mut space) = (Vec::new(), [0; 4096]);
        while !came.windows(4).any(|four| four == b"GET ") {
            match read_some(&mut socket, &mut space) {
                Ok(count @ 1..) => came.extend_from_slice(&space[..count]),
                _ => return,
            }
        }
        drop(say.lock().unwrap_or_else(PoisonError::into_inner).send(came));
        drop(socket.write_all(b"HTTP/1.1 204 No Content\r\n\r\n"));
    });
    let (authority, pool) = (Authority::new("test CA"), "proxy_protocol = \"v2\"");
    let setup = Setup::new(threads).tls(&authority.server(&["shop.example"]), "");
    let switch = setup.pool_at("standard", pool, &[("origin", origin.address())]).start();
    let trust = TlsClient::v13(&authority).alpn(&["http/1.1"]);
    let mut client = switch.tls_client(&trust, "shop.example").expect("a handshake");
    assert_eq!(client.get("/").status(), 204);
    let came = said.recv_timeout(PATIENCE).expect("a request");
    let mut expected = b"\r\n\r\n\0\r\nQUIT\n\x21\x11".to_vec();
    let mut block = vec![127, 0, 0, 1, 127, 0, 0, 1];
    block.extend(client.local().port().to_be_bytes());
    block.extend(switch.address("shop").port().to_be_bytes());
    block.extend(b"\x01\x00\x08http/1.1\x02\x00\x0cshop.example");
    let cipher = client.cipher().expect("one");
    let mut ssl = b"\x01\x00\x00\x00\x01\x21\x00\x07TLSv1.3\x23\x00".to_vec();
    ssl.push(u8::try_from(cipher.len()).expect("a short name"));
    ssl.extend(cipher.bytes());
    block.extend([0x20, 0, u8::try_from(ssl.len()).expect("a short block")]);
    block.extend(ssl);
    expected.extend(u16::try_from(block.len()).expect("a short block").to_be_bytes());
    expected.extend(block);
    let header = &came[..expected.len().min(came.len())];
    assert_eq!(header, expected, "{}", String::from_utf8_lossy(header));
    assert!(came[expected.len()..].starts_with(b"GET / HTTP/1.1\r\n"));
}

/// Each connection begins with a header, also that of a second try.
fn with_retries(threads: usize) {
    let (origin, _ends) = lines();
    let servers = [("dead", Origin::dead_address()), ("origin", origin.address())];
    let switch = Setup::new(threads).pool_at("standard", V1, &servers).start();
    for _ in 0..4 {
        let mut client = switch.client();
        assert!(client.get("/").text().starts_with("PROXY TCP4 127.0.0.1 127.0.0.1 "));
    }
}

/// Connections of before are not used where none is to begin so, nor the other way round.
fn off_after_a_reload(threads: usize) {
    let (origin, _ends) = lines();
    let setup = |keys| Setup::new(threads).pool_at("standard", keys, &[("origin", origin.address())]);
    let switch = setup(V1).start();
    let mut client = switch.client();
    assert!(client.get("/").text().starts_with("PROXY "));
    switch.reload(&setup(""), 2);
    assert_eq!(client.get("/").text(), "GET / HTTP/1.1");
    switch.reload(&setup(V1), 3);
    assert!(client.get("/").text().starts_with("PROXY "));
}

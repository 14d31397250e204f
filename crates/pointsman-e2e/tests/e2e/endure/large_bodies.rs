//! Bodies far larger than the memory of the switch: byte for byte, both ways, plain and over TLS.

use std::io::Write;
use std::net::TcpStream;

use pointsman_e2e::{
    Authority, Bound, Client, Pattern, RawOrigin, Setup, Switch, TlsClient, Unit, figure, read_head,
    read_some, scale,
};

pointsman_e2e::for_threads!(plain, over_tls);

const RESIDENT: Unit = Unit::Bytes("resident at its peak");
const RESIDENT_MAX: Bound = Bound::AtMost(64 * 1024 * 1024);
const MIB: u64 = 1024 * 1024;

fn plain(threads: usize) {
    let length = scale(128, 1024) * MIB;
    let origin = both_ways(length);
    let switch = Setup::new(threads).pool_at("standard", "", &[("large", origin.address())]).start();
    download(&switch, &mut switch.client(), length, &format!("{} MiB down, {threads} threads", length / MIB));
    upload(&switch, &mut switch.client(), length, &format!("{} MiB up, {threads} threads", length / MIB));
}

fn over_tls(threads: usize) {
    let length = scale(32, 1024) * MIB;
    let (authority, origin) = (Authority::new("test CA"), both_ways(length));
    let setup = Setup::new(threads).tls(&authority.server(&["shop.example"]), "");
    let switch = setup.pool_at("standard", "", &[("large", origin.address())]).start();
    let trust = TlsClient::new(&authority);
    let client = || switch.tls_client(&trust, "shop.example").expect("a handshake");
    let fault = |way| format!("{} MiB {way} over TLS, {threads} threads", length / MIB);
    download(&switch, &mut client(), length, &fault("down"));
    upload(&switch, &mut client(), length, &fault("up"));
}

/// A server that sends so much of the pattern to a GET, and expects as much of any other request.
fn both_ways(length: u64) -> RawOrigin {
    RawOrigin::serving(move |mut socket, _| {
        while let Some((head, body)) = read_head(&mut socket) {
            let answer = match head.starts_with("GET ") {
                true => format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n"),
                false => {
                    let bytes = expect_body(&mut socket, &body, length);
                    let text = bytes.to_string();
                    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{text}", text.len())
                }
            };
            // The switch may have gone; the client's end looks at what came.
            drop(socket.write_all(answer.as_bytes()));
            if head.starts_with("GET ") {
                drop(send_body(length, |piece| socket.write_all(piece)));
            }
        }
    })
}

fn send_body(length: u64, mut send: impl FnMut(&[u8]) -> std::io::Result<()>) -> std::io::Result<()> {
    let mut pattern = Pattern::default();
    while pattern.position() < length {
        let left = length - pattern.position();
        send(pattern.next(left))?;
    }
    Ok(())
}

/// How many of the right bytes came.
fn expect_body(socket: &mut TcpStream, came: &[u8], length: u64) -> u64 {
    let (mut pattern, mut space) = (Pattern::default(), vec![0; 256 * 1024]);
    pattern.expect(came);
    while pattern.position() < length {
        match read_some(socket, &mut space) {
            Ok(count @ 1..) => pattern.expect(&space[..count]),
            _ => break,
        }
    }
    pattern.position()
}

fn download(switch: &Switch, client: &mut Client, length: u64, fault: &str) {
    client.send("GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n");
    assert_eq!(client.head().word(1), "200");
    let mut pattern = Pattern::default();
    while let Some(piece) = client.piece().expect("a whole body") {
        pattern.expect(&piece);
    }
    assert_eq!(pattern.position(), length);
    figure(fault, switch.peak_resident_bytes(), RESIDENT, RESIDENT_MAX);
}

fn upload(switch: &Switch, client: &mut Client, length: u64, fault: &str) {
    client.send(format!("PUT / HTTP/1.1\r\nHost: shop.example\r\nContent-Length: {length}\r\n\r\n"));
    send_body(length, |piece| client.try_send(piece)).expect("the switch reads");
    let answer = client.response();
    assert_eq!((answer.status(), answer.text()), (200, length.to_string()));
    figure(fault, switch.peak_resident_bytes(), RESIDENT, RESIDENT_MAX);
}

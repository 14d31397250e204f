//! Bodies far larger than the memory of the switch: byte for byte, both ways, in every framing, plain and over TLS.

use std::io::Write;

use pointsman_e2e::{Bound, RawOrigin, Reader, Unit, figure, scale};

use super::framed::{Body, Site, WAYS, Way, expect};

pointsman_e2e::for_threads!(down, up);

const RESIDENT: Unit = Unit::Bytes("resident at its peak");
const RESIDENT_MAX: Bound = Bound::AtMost(64 * 1024 * 1024);
const MIB: u64 = 1024 * 1024;

fn length() -> u64 {
    scale(48, 1024) * MIB
}

fn down(threads: usize) {
    for way in WAYS {
        let origin = both_ways(way);
        let (site, fault) = (site(way, &origin, threads), fault(way, "down", threads));
        let mut client = site.client();
        client.send("GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n");
        let head = client.head();
        assert_eq!(head.word(1), "200");
        let field = way.body(length()).field();
        let (name, value) = field.split_once(": ").expect("a field");
        assert_eq!(head.field(name), Some(value), "framed as the server framed it");
        assert_eq!(expect(|| client.piece()).expect("a whole body"), length(), "{fault}");
        figure(&fault, site.switch.peak_resident_bytes(), RESIDENT, RESIDENT_MAX);
    }
}

fn up(threads: usize) {
    for way in WAYS {
        let origin = both_ways(way);
        let (site, fault) = (site(way, &origin, threads), fault(way, "up", threads));
        let mut client = site.client();
        let mut body = way.body(length());
        client.send(format!("PUT / HTTP/1.1\r\nHost: shop.example\r\n{}\r\n\r\n", body.field()));
        assert!(body.send(|piece| client.send_some(piece)).expect("the switch reads"), "{fault}: it stopped");
        let answer = client.response();
        assert_eq!((answer.status(), answer.text()), (200, length().to_string()), "{fault}");
        figure(&fault, site.switch.peak_resident_bytes(), RESIDENT, RESIDENT_MAX);
    }
}

fn site(way: Way, origin: &RawOrigin, threads: usize) -> Site {
    way.start(threads, |setup| setup.pool_at("standard", "", &[("large", origin.address())]))
}

fn fault(way: Way, direction: &str, threads: usize) -> String {
    format!("{} MiB {direction} {}, {threads} threads", length() / MIB, way.name)
}

/// A server that sends the body to a GET, and tells how much of it came with any other request.
fn both_ways(way: Way) -> RawOrigin {
    RawOrigin::serving(move |socket, _| {
        let mut reader = Reader::new(socket);
        while let Ok(Some(head)) = reader.head() {
            let mut body = way.body(length());
            let answer = match head.word(0) {
                "GET" => format!("HTTP/1.1 200 OK\r\n{}\r\n\r\n", body.field()),
                _ => {
                    reader.begin_body(head.request_framing());
                    let text = expect(|| reader.piece()).unwrap_or_default().to_string();
                    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{text}", text.len())
                }
            };
            // The switch may have gone; the client's end looks at what came.
            drop(reader.stream().write_all(answer.as_bytes()));
            if head.word(0) == "GET" {
                drop(send(&mut body, reader.stream()));
            }
        }
    })
}

fn send(body: &mut Body, socket: &mut impl Write) -> std::io::Result<bool> {
    body.send(|piece| socket.write(piece))
}

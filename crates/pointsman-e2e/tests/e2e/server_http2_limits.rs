//! What HTTP/2 servers may take of the switch, and what one client may take of another's connection.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};

use pointsman_e2e::h2_wire::{fields, flag, kind, setting};
use pointsman_e2e::{Client, Frame, H2Origin, H2Peer, Setup, until};

use crate::server_http2::{H2, before};

pointsman_e2e::for_threads!(
    a_client_that_does_not_read,
    floods,
    long_lived_pings,
    a_server_that_takes_none,
    others_take_what_one_does_not,
    idle_connections_max_of_none
);

const MIB: u64 = 1024 * 1024;
const LARGE: usize = 8 * 1024 * 1024;

/// Its answer waits, and those of others on the same connection do not.
fn a_client_that_does_not_read(threads: usize) {
    let server = H2Origin::serving(&[], |peer| {
        let large = vec![b'a'; LARGE];
        let mut slow = None;
        while let Some(request) = peer.next_whole() {
            if request.path() == "/slow" {
                // As much as there is room for; the rest comes when somebody wants it.
                peer.head(request.stream, "200", &[("content-length", &LARGE.to_string())]);
                let sent = peer.room(request.stream).min(LARGE);
                peer.content(request.stream, &large[..sent], 0);
                slow = Some((request.stream, sent));
            } else if request.path() == "/rest" {
                peer.answer(request.stream, "200", &[], b"soon");
                let (stream, sent) = slow.take().expect("it was asked");
                peer.content(stream, &large[sent..], flag::END_STREAM);
            } else {
                peer.answer(request.stream, "200", &[], &large[..256 * 1024]);
            }
        }
    });
    let switch = before(1, "http2_streams_max = 8", &server).start();
    let mut slow = Client::cramped(switch.address("shop"), 16 * 1024);
    slow.send("GET /slow HTTP/1.1\r\nHost: shop.example\r\n\r\n");
    server.wait_for_requests(1);
    let mut others: Vec<_> = (0..4).map(|_| switch.client()).collect();
    for _ in 0..5 {
        for other in &mut others {
            assert_eq!(other.get("/other").body.bytes.len(), 256 * 1024);
        }
    }
    assert_eq!(server.connections(), 1, "{threads}");
    assert_eq!(others[0].get("/rest").text(), "soon");
    assert_eq!(slow.response().body.bytes.len(), LARGE);
}

/// Frames of a flood on a stream.
type Again = fn(u32) -> Vec<u8>;

/// Frames about nothing, again and again, for a stream that was asked for.
const FLOODS: &[(&str, Again)] = &[
    ("PING", |_| Frame::ping(*b"flooding").bytes()),
    ("PING acknowledgments", |_| Frame::new(kind::PING, flag::ACK, 0, *b"flooding").bytes()),
    ("SETTINGS", |_| Frame::settings(&[]).bytes()),
    ("empty DATA", |stream| Frame::data(stream, 0, []).bytes()),
    ("padding", |stream| {
        Frame::new(kind::DATA, flag::PADDED, stream, [&[255][..], &[0; 255]].concat()).bytes()
    }),
    ("WINDOW_UPDATE", |_| Frame::window_update(0, 1).bytes()),
    ("RST_STREAM", |stream| Frame::rst_stream(stream, 8).bytes()),
    ("PRIORITY", |stream| Frame::new(kind::PRIORITY, 0, stream, [0, 0, 0, 0, 16]).bytes()),
    ("unknown frames", |_| Frame::new(0xbb, 0, 0, [0; 64]).bytes()),
    ("interim answers", |stream| {
        Frame::headers(stream, 0, &fields(&[(":status", "103"), ("x", "y")])).bytes()
    }),
    ("CONTINUATION", |stream| Frame::new(kind::CONTINUATION, 0, stream, [0; 64]).bytes()),
];

/// A server that floods is cut, whatever with; memory stays where it is, and others are served.
fn floods(threads: usize) {
    let taken = Arc::new(AtomicU64::new(0));
    let taken_bytes = taken.clone();
    let server = H2Origin::serving(&[], move |peer| {
        while let Some(request) = peer.next_whole() {
            let flood = request.field("x-flood").and_then(|flood| flood.parse::<usize>().ok());
            let Some(flood) = flood else {
                peer.answer(request.stream, "200", &[], b"fine");
                continue;
            };
            let (name, again) = FLOODS[flood];
            if name.contains("DATA") || name == "padding" {
                peer.head(request.stream, "200", &[]);
            }
            if name == "CONTINUATION" {
                peer.send(&Frame::new(kind::HEADERS, 0, request.stream, []));
            }
            let piece: Vec<u8> = (0..1000).flat_map(|_| again(request.stream)).collect();
            taken_bytes.store(0, Ordering::SeqCst);
            // It has an end, so that a switch that takes all of it fails and does not hang.
            while taken_bytes.load(Ordering::SeqCst) < 200 * MIB && peer.send_bytes(&piece) {
                taken_bytes.fetch_add(piece.len() as u64, Ordering::SeqCst);
            }
            return;
        }
    });
    let honest = H2Origin::echoing(&[]);
    let setup = before(threads, "", &server).rules("if (path == \"/honest\") { routeTo(honest); }");
    let switch =
        setup.pool_at("honest", H2, &[("honest", honest.address())]).default_pool("standard").start();
    assert_eq!((switch.get("/").text(), switch.get("/honest").text()), ("fine".into(), "/honest".into()));
    let before = switch.allocated_bytes();
    for (number, (name, _)) in FLOODS.iter().enumerate() {
        let connections = server.connections();
        let mut client = switch.client();
        client.send(format!(
            "POST /flood HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 0\r\nX-Flood: {number}\r\n\r\n"
        ));
        let mut other = switch.client();
        for _ in 0..20 {
            assert_eq!(other.get("/honest").text(), "/honest", "{name}");
        }
        let answer = client.try_response();
        assert!(answer.is_err() || answer.is_ok_and(|answer| answer.status() == 502), "{name}");
        for connection in 0..connections {
            // Only those of threads that were not asked go on.
            if server
                .requests()
                .iter()
                .any(|request| request.connection == connection && request.field("x-flood").is_some())
            {
                server.wait_for_end(connection);
            }
        }
        assert!(taken.load(Ordering::SeqCst) < 24 * MIB, "{name}: {} bytes", taken.load(Ordering::SeqCst));
        let grown = switch.allocated_bytes().saturating_sub(before);
        assert!(grown < 32 * MIB, "{name}: {grown} bytes of memory");
    }
    assert_eq!(switch.get("/").text(), "fine");
}

/// What a server says in its time is no flood: pings between requests, and answers that nobody wanted to the end.
fn long_lived_pings(threads: usize) {
    let server = H2Origin::serving(&[], |peer| {
        while let Some(request) = peer.next_whole() {
            for _ in 0..20 {
                peer.turn();
            }
            peer.answer(request.stream, "200", &[], &[b'a'; 100_000]);
        }
    });
    let setup = Setup::new(threads).pool_at("standard", H2, &[("server", server.address())]);
    let switch = setup.start();
    for _ in 0..40 {
        let mut client = switch.client();
        client.send("GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n");
        client.head();
        // It has seen enough.
        client.reset();
    }
    assert_eq!(switch.get("/").body.bytes.len(), 100_000);
    assert!(server.connections() <= threads, "{} connections", server.connections());
}

const REFUSED_STREAM: u32 = 7;
const NONE: &[(u16, u32)] = &[(setting::MAX_CONCURRENT_STREAMS, 0)];

/// What was sent before the settings had come is not looked at.
fn refuse_one(peer: &mut H2Peer) {
    if let Some(request) = peer.next_head() {
        peer.send(&Frame::rst_stream(request.stream, REFUSED_STREAM));
    }
}

/// It is asked once more by nobody until it takes requests again, and nobody opens another connection to hear the same
/// (RFC 9113 section 6.5.2).
fn a_server_that_takes_none(threads: usize) {
    let (go, goes) = mpsc::channel();
    let goes = Mutex::new(goes);
    let server = H2Origin::serving(NONE, move |peer| {
        refuse_one(peer);
        goes.lock().expect("no panic under the lock").recv().expect("it is told");
        peer.send(&Frame::settings(&[(setting::MAX_CONCURRENT_STREAMS, 10)]));
        peer.echo();
    });
    let switch = before(threads, "", &server).start();
    let mut client = switch.client();
    for _ in 0..20 {
        let answer = client.get("/");
        assert_eq!(
            (answer.status(), answer.text().as_str()),
            (503, "the server takes no requests for now\n")
        );
    }
    assert_eq!((server.connections(), server.requests().len()), (1, 1));
    let tries = switch.log_of("/")["tries"].as_u64();
    assert_eq!(tries, Some(2));
    go.send(()).expect("it waits");
    until("an answer", || (client.get("/later").status() == 200).then_some(()));
    assert_eq!(server.connections(), 1);
}

/// They are asked in its place.
fn others_take_what_one_does_not(threads: usize) {
    let (none, other) = (
        H2Origin::serving(NONE, |peer| {
            refuse_one(peer);
            peer.echo();
        }),
        H2Origin::echoing(&[]),
    );
    let servers = [("none", none.address()), ("other", other.address())];
    let switch = Setup::new(threads).pool_at("standard", H2, &servers).start();
    for _ in 0..20 {
        assert_eq!(switch.get("/").text(), "/");
    }
    assert_eq!(other.requests().len(), 20);
}

/// None is kept without a request.
fn idle_connections_max_of_none(threads: usize) {
    for (pool, top) in [("idle_connections_max = 0", ""), ("", "upstream_idle_connections_max = 0")] {
        let server = H2Origin::echoing(&[]);
        let switch = before(threads, pool, &server).top(top).start();
        let mut client = switch.client();
        for connection in 0..3 {
            assert_eq!(client.get("/").text(), "/");
            server.wait_for_end(connection);
        }
        assert_eq!(server.connections(), 3, "{pool} {top}");
    }
}

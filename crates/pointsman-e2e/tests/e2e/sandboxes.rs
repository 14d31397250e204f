//! In a sandbox without netlink sockets the kernel cannot be asked what a client has taken.

use std::time::{Duration, Instant};

use pointsman_e2e::h2_wire::{flag, kind};
use pointsman_e2e::{Client, H2Client, Origin, Setup, peers_installed, without_netlink};

use crate::slow_peers::{LENGTH, ROOM, large, setup};

pointsman_e2e::for_threads!(takes_its_time, takes_it_over_http2, takes_too_little, takes_nothing);

/// Longer than nothing may be taken, in all, and much shorter for a third of what the kernel holds.
const IN_ALL: Duration = Duration::from_millis(2000);

/// Before servers of large bodies and small ones. Nothing where the sandbox cannot be made.
fn sandboxed(threads: usize, large: &Origin, other: &Origin) -> Option<Setup> {
    peers_installed().then(|| setup(threads, large, other).after(&without_netlink()))
}

/// Waits until it is time for so many bytes of all.
fn pace(started: Instant, came: usize) {
    let due = IN_ALL.mul_f64(came as f64 / LENGTH as f64);
    while started.elapsed() < due {
        std::thread::yield_now();
    }
}

fn takes_its_time(threads: usize) {
    let (large, other) = (large(), Origin::new("other"));
    let Some(setup) = sandboxed(threads, &large, &other) else { return };
    let switch = setup.start();
    for path in ["/length", "/chunked"] {
        let mut client = Client::cramped(switch.address("shop"), ROOM);
        client.send(format!("GET {path} HTTP/1.1\r\nHost: shop.example\r\n\r\n"));
        assert_eq!(client.head().word(1), "200");
        let (started, mut came) = (Instant::now(), 0);
        while let Some(piece) = client.piece().unwrap_or_else(|error| panic!("{error} after {came} bytes")) {
            came += piece.len();
            pace(started, came);
        }
        assert_eq!(came, LENGTH, "{path}");
    }
}

fn takes_it_over_http2(threads: usize) {
    let (large, other) = (large(), Origin::new("other"));
    let Some(setup) = sandboxed(threads, &large, &other) else { return };
    let switch = setup.start();
    let mut client = H2Client::begin(Client::cramped(switch.address("shop"), ROOM));
    for (stream, path) in [(1, "/length"), (3, "/chunked")] {
        client.ask(stream, "GET", path, &[]);
        let (started, mut came, mut is_over) = (Instant::now(), 0, false);
        while !is_over {
            let frame = client.frame().expect("HTTP/2").expect("it is open");
            if frame.kind == kind::DATA {
                came += frame.payload.len();
                is_over = frame.flags & flag::END_STREAM != 0;
                pace(started, came);
            }
            assert_ne!(frame.kind, kind::RST_STREAM, "{path}, after {came} bytes");
            client.take(frame).expect("HTTP/2");
        }
        assert_eq!(came, LENGTH, "{path}");
    }
}

/// What is taken too slowly for a third of the kernel's buffer to become free in time is not seen to be taken. Where
/// the kernel can be asked such a client is served: `slow_peers::reads_slowly`.
fn takes_too_little(threads: usize) {
    let (large, other) = (large(), Origin::new("other"));
    let Some(setup) = sandboxed(threads, &large, &other) else { return };
    let switch = setup.start();
    let mut client = Client::cramped(switch.address("shop"), ROOM);
    client.send("GET /chunked HTTP/1.1\r\nHost: shop.example\r\n\r\n");
    assert_eq!(client.head().word(1), "200");
    let (started, mut came) = (Instant::now(), 0);
    let is_whole = loop {
        while started.elapsed().as_millis() * 8192 / 60 < came {
            std::thread::yield_now();
        }
        match client.piece() {
            Ok(Some(piece)) => came += piece.len() as u128,
            ended => break ended.is_ok(),
        }
    };
    assert!(!is_whole, "the sandbox is none: the kernel was asked");
    assert_eq!(switch.log_of("/chunked")["error"], "the client took nothing of the answer in time");
}

fn takes_nothing(threads: usize) {
    let (large, other) = (large(), Origin::new("other"));
    let Some(setup) = sandboxed(threads, &large, &other) else { return };
    let switch = setup.start();
    let mut client = Client::cramped(switch.address("shop"), ROOM);
    client.send("GET /length HTTP/1.1\r\nHost: shop.example\r\n\r\n");
    let mut http2 = H2Client::begin(Client::cramped(switch.address("shop"), ROOM));
    http2.ask(1, "GET", "/chunked", &[]);
    for path in ["/length", "/chunked"] {
        let entry = switch.log_of(path);
        assert_eq!(entry["error"], "the client took nothing of the answer in time", "{entry}");
    }
    assert_eq!(switch.client().get("/other").server(), "other");
}

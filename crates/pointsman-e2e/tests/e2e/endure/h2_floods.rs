//! HTTP/2 clients that say much and want nothing: frames without end, heads without end, streams that are taken back,
//! windows that never open.

use std::io::ErrorKind;
use std::time::Duration;

use pointsman_e2e::h2_wire::{Frame, PAYLOAD_BYTES_MAX, PREFACE, fields, flag, kind, setting};
use pointsman_e2e::{Bound, H2Client, Origin, Outcome, Setup, Switch, Unit, figure, literal, scale, until};

use super::is_served;

pointsman_e2e::for_threads!(floods, closed_windows);

/// Clients of each flood, one after the other; their connections stay as long as the switch leaves them.
const CLIENTS: usize = 5;
/// What floods may cost in all while they last: less than their bytes by far.
const MEMORY: Bound = Bound::AtMost(24 * 1024 * 1024);

/// What a flood is, and its frames: first once, then again and again by their number.
struct Flood {
    name: &'static str,
    first: fn() -> Vec<u8>,
    again: fn(u32) -> Vec<u8>,
    /// Whether no connection may live through it.
    ends: bool,
}

const FLOODS: &[Flood] = &[
    Flood { name: "pings", first: Vec::new, again: |_| Frame::ping(*b"flooding").bytes(), ends: false },
    Flood { name: "settings", first: Vec::new, again: |_| Frame::settings(&[]).bytes(), ends: false },
    Flood { name: "changed settings", first: Vec::new, again: changed_settings, ends: false },
    Flood {
        name: "window updates",
        first: Vec::new,
        again: |_| Frame::window_update(0, 1).bytes(),
        // The sum of them is soon more than a window may be.
        ends: false,
    },
    Flood { name: "streams taken back", first: Vec::new, again: taken_back, ends: true },
    Flood { name: "malformed streams", first: Vec::new, again: malformed, ends: true },
    Flood {
        name: "a head without end",
        first: open_head,
        again: |_| more_of_head(&[b'x'; 8192]),
        ends: true,
    },
    Flood { name: "a head of empty frames", first: open_head, again: |_| more_of_head(&[]), ends: true },
    Flood { name: "heads that unpack to megabytes", first: Vec::new, again: bomb, ends: false },
    Flood {
        name: "empty content",
        first: open_request,
        again: |_| Frame::data(1, 0, []).bytes(),
        ends: false,
    },
    Flood {
        name: "frames of unknown kinds",
        first: Vec::new,
        again: |_| Frame::new(0xee, 0, 0, [0; 64]).bytes(),
        ends: false,
    },
    Flood {
        name: "priorities",
        first: Vec::new,
        again: |number| Frame::new(kind::PRIORITY, 0, stream(number), [0, 0, 0, 0, 16]).bytes(),
        ends: false,
    },
];

/// Clients' streams have odd numbers.
fn stream(number: u32) -> u32 {
    2 * number + 1
}

fn get(target: &str) -> Vec<pointsman_e2e::Field> {
    fields(&[(":method", "GET"), (":scheme", "http"), (":authority", "shop.example"), (":path", target)])
}

fn changed_settings(number: u32) -> Vec<u8> {
    Frame::settings(&[
        (setting::HEADER_TABLE_SIZE, number % 4096),
        (setting::INITIAL_WINDOW_SIZE, number % 65_535),
    ])
    .bytes()
}

fn taken_back(number: u32) -> Vec<u8> {
    let stream = stream(number);
    let head = Frame::headers(stream, flag::END_STREAM, &get("/taken-back"));
    [head.bytes(), Frame::rst_stream(stream, 8).bytes()].concat()
}

fn malformed(number: u32) -> Vec<u8> {
    Frame::headers(stream(number), flag::END_STREAM, &fields(&[("connection", "close")])).bytes()
}

fn open_head() -> Vec<u8> {
    Frame::new(kind::HEADERS, flag::END_STREAM, 1, literal(&get("/"))).bytes()
}

/// A field that is not at its end, whatever comes.
fn more_of_head(bytes: &[u8]) -> Vec<u8> {
    let field = if bytes.is_empty() { Vec::new() } else { literal(&[(b"x-more".to_vec(), bytes.to_vec())]) };
    Frame::new(kind::CONTINUATION, 0, 1, field).bytes()
}

/// Some KiB that mean some MiB: a large field is learned, and named again with a byte each time.
fn bomb(number: u32) -> Vec<u8> {
    let mut block = literal(&get("/"));
    // Literal with incremental indexing (RFC 7541 section 6.2.1): `x` and 4000 bytes, in HPACK's own lengths.
    block.extend([0x40, 1, b'x', 0x7f, 0xa1, 0x1e]);
    block.extend([b'a'; 4000]);
    block.extend([0x80 | 62; PAYLOAD_BYTES_MAX - 6000]);
    Frame::new(kind::HEADERS, flag::END_STREAM | flag::END_HEADERS, stream(number), block).bytes()
}

fn open_request() -> Vec<u8> {
    let post =
        fields(&[(":method", "POST"), (":scheme", "http"), (":authority", "shop.example"), (":path", "/")]);
    Frame::headers(1, 0, &post).bytes()
}

/// Others are served beside each flood and behind it, and memory stays where it is.
fn floods(threads: usize) {
    let origin = Origin::new("origin");
    let limits = "head_ms_max = 600000\nbody_ms_max = 600000\nwrite_ms_max = 600000";
    let switch = Setup::new(threads).limits(limits).pool("standard", &[&origin]).start();
    let mut other = switch.client();
    assert!(is_served(&mut other));
    for flood in FLOODS {
        let before = switch.allocated_bytes();
        let (mut most, mut ended, mut open) = (before, 0, Vec::new());
        for _ in 0..CLIENTS {
            let (client, is_ended) = flood.run(&switch);
            ended += usize::from(is_ended);
            open.push(client);
            assert!(is_served(&mut other), "{}", flood.name);
            most = most.max(switch.allocated_bytes());
        }
        let fault = format!("flood: {}, {threads} threads", flood.name);
        figure(&fault, most - before, Unit::Bytes("resident memory"), MEMORY);
        if flood.ends {
            figure(&fault, ended as u64, Unit::Count("connections ended"), Bound::Exactly(CLIENTS as u64));
        }
    }
    drop(other);
    until("no descriptor left behind", || (switch.descriptors() < 100).then_some(()));
}

impl Flood {
    /// Floods until the switch closes, or takes no more. The connection, and whether it was closed.
    fn run(&self, switch: &Switch) -> (H2Client, bool) {
        let frames = scale(20_000, 400_000);
        let mut client = switch.client();
        // Nothing is read of what the switch says to it, so that it may stop to read.
        client.waits_to_send(Duration::from_millis(500));
        client.send([PREFACE, &Frame::settings(&[]).bytes(), &(self.first)()].concat());
        let mut piece = Vec::new();
        for number in 0..frames {
            piece.extend((self.again)(number));
            if piece.len() < 64 * 1024 && number + 1 < frames {
                continue;
            }
            match client.try_send(&piece) {
                Ok(()) => piece.clear(),
                // It has ended the connection, or takes no more, which is an answer, too.
                Err(_) => break,
            }
        }
        let mut client = H2Client::silent(client);
        let is_ended = self.ends && ends(&mut client);
        (client, is_ended)
    }
}

/// Whether the connection ends, once all is read that was said on it.
fn ends(client: &mut H2Client) -> bool {
    loop {
        match client.frame() {
            Ok(Some(_)) => {}
            Ok(None) => return true,
            // A reset may cut a frame.
            Err(error) => return error.kind() == ErrorKind::InvalidData,
        }
    }
}

/// Clients that ask for much and give no room for it: what waits for them is bounded, and they are let go in time.
fn closed_windows(threads: usize) {
    const STREAMS: u32 = 100;
    let count = scale(10, 100);
    let body = "x".repeat(1 << 20);
    let origin = Origin::answering("origin", move |exchange| exchange.answer("200 OK", &body));
    let limits = format!("write_ms_max = {}", scale(2000, 10_000));
    let switch = Setup::new(threads).limits(&limits).pool("standard", &[&origin]).start();
    let mut other = switch.client();
    let before = switch.allocated_bytes();
    let mut clients: Vec<_> = (0..count)
        .map(|_| {
            let mut client = H2Client::silent(switch.client());
            let start = [PREFACE, &Frame::settings(&[(setting::INITIAL_WINDOW_SIZE, 0)]).bytes()].concat();
            client.try_send(&start).expect("the switch reads");
            for number in 0..STREAMS {
                let sent = client.send_fields(stream(number), flag::END_STREAM, &get("/large"));
                sent.expect("the switch reads");
            }
            client
        })
        .collect();
    let wanted = count * STREAMS as usize;
    until("every request at its server", || (origin.count() >= wanted).then_some(()));
    let mut most = 0;
    for _ in 0..20 {
        assert!(other.ask("HEAD", "/large", "").status() == 200);
        most = most.max(switch.allocated_bytes());
    }
    let fault = format!("{count} clients with {STREAMS} closed windows each, {threads} threads");
    let each = most.saturating_sub(before) / wanted as u64;
    figure(&fault, each, Unit::Bytes("resident memory each stream"), Bound::AtMost(96 * 1024));
    let is_let_go = |client: &mut H2Client| !matches!(client.outcome(1), Ok(Outcome::Answer(_)) | Err(_));
    let let_go = clients.iter_mut().filter_map(|client| is_let_go(client).then_some(()));
    figure(&fault, let_go.count() as u64, Unit::Count("clients let go"), Bound::Exactly(count as u64));
}

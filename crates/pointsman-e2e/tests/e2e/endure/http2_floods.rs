//! HTTP/2 clients that send what costs them nothing, as fast as it is taken: the switch ends their connections, and
//! others are served all the while.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};

use pointsman_e2e::h2_wire::{PREFACE, flag, kind, request, setting};
use pointsman_e2e::{
    Authority, Bound, Client, Field, Frame, H2Client, Origin, Outcome, PATIENCE, RawOrigin, Switch,
    TlsClient, Unit, figure, scale, until,
};

use super::{Costs, is_served, modest, returns_to_rest, unhurried};

pointsman_e2e::for_threads!(floods, floods_that_hear_nothing, resets_behind_the_first_byte);

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;
/// What is sent at a time, at least.
const PIECE_BYTES: usize = 16 * 1024;
/// What the switch may have taken before it ends a flood: what it allows, and what both kernels hold meanwhile.
const TAKEN_MAX: u64 = 24 * MIB;
/// Codes of RFC 9113 section 7.
const PROTOCOL_ERROR: u32 = 1;
const COMPRESSION_ERROR: u32 = 9;
const ENHANCE_YOUR_CALM: u32 = 11;
const FLOW_CONTROL_ERROR: u32 = 3;
/// Streams that wait for their server where a flood is about them.
const WAITING: u32 = 100;

/// What is sent again and again.
struct Flood {
    name: &'static str,
    /// What comes first, once.
    start: Vec<u8>,
    /// Frames that are about the stream of this number.
    again: fn(u32) -> Vec<u8>,
    /// With which codes the connection may end.
    codes: &'static [u32],
    /// What it may cost of processors; a debug build is slow.
    cpu_ms_max: u64,
}

impl Flood {
    /// Behind the preface and settings.
    fn new(name: &'static str, codes: &'static [u32], again: fn(u32) -> Vec<u8>) -> Self {
        let settings = Frame::settings(&[(setting::ENABLE_PUSH, 0)]).bytes();
        Self { name, start: [PREFACE, &settings].concat(), again, codes, cpu_ms_max: scale(1000, 500) }
    }

    /// Behind something more.
    fn after(mut self, more: &[u8]) -> Self {
        self.start.extend_from_slice(more);
        self
    }

    /// One that moves all streams of its connection again and again.
    fn moves_all(self) -> Self {
        Self { cpu_ms_max: scale(8000, 1500), ..self }
    }
}

/// All of them; a number of stream that is free is at least 1001.
fn all() -> Vec<Flood> {
    let waiting: Vec<u8> = (0..WAITING).flat_map(|number| get(2 * number + 1, "/held")).collect();
    let upload = Frame::headers(1, 0, &request("POST", "/held")).bytes();
    let done = [get(1, "/"), Frame::rst_stream(1, 8).bytes()].concat();
    let block = Frame::new(kind::HEADERS, 0, 1, []).bytes();
    let calm = &[ENHANCE_YOUR_CALM];
    let blocks = &[ENHANCE_YOUR_CALM, COMPRESSION_ERROR];
    let content = &[ENHANCE_YOUR_CALM, FLOW_CONTROL_ERROR];
    vec![
        Flood::new("PING", calm, |_| Frame::ping(*b"flooding").bytes()),
        Flood::new("PING acknowledgments", calm, |_| {
            Frame::new(kind::PING, flag::ACK, 0, *b"flooding").bytes()
        }),
        Flood::new("SETTINGS", calm, |_| Frame::settings(&[]).bytes()),
        Flood::new("SETTINGS that move 100 windows", calm, |stream| {
            let size = if stream % 4 == 1 { 0 } else { 1 << 20 };
            Frame::settings(&[(setting::INITIAL_WINDOW_SIZE, size)]).bytes()
        })
        .after(&waiting)
        .moves_all(),
        Flood::new("SETTINGS that move the table", calm, |stream| {
            Frame::settings(&[
                (setting::HEADER_TABLE_SIZE, stream % 4096),
                (setting::INITIAL_WINDOW_SIZE, stream % 65_535),
            ])
            .bytes()
        }),
        Flood::new("empty DATA", calm, |_| Frame::data(1, 0, []).bytes()).after(&upload),
        Flood::new("DATA of a byte", content, |_| Frame::data(1, 0, *b"a").bytes()).after(&upload),
        Flood::new("padding", content, |_| padding()).after(&upload),
        Flood::new("WINDOW_UPDATE", calm, |_| Frame::window_update(0, 1).bytes()),
        Flood::new("WINDOW_UPDATE of a stream", calm, |_| Frame::window_update(1, 1).bytes()).after(&waiting),
        Flood::new("PRIORITY", calm, |stream| {
            Frame::new(kind::PRIORITY, 0, stream, [0, 0, 0, 0, 16]).bytes()
        }),
        Flood::new("RST_STREAM of a closed stream", calm, |_| Frame::rst_stream(1, 8).bytes()).after(&done),
        Flood::new("RST_STREAM of an idle stream", &[PROTOCOL_ERROR], |stream| {
            Frame::rst_stream(stream, 8).bytes()
        }),
        Flood::new("unknown frames, empty", calm, |_| Frame::new(0xbb, 0, 0, []).bytes()),
        Flood::new("unknown frames, full", calm, |_| Frame::new(0xbb, 0, 0, [0; PIECE_BYTES]).bytes()),
        Flood::new("GOAWAY", calm, |_| Frame::new(kind::GOAWAY, 0, 0, [0; 8]).bytes())
            .after(&waiting)
            .moves_all(),
        Flood::new("empty CONTINUATION", calm, |_| Frame::new(kind::CONTINUATION, 0, 1, []).bytes())
            .after(&block),
        Flood::new("CONTINUATION", blocks, |_| continuation()).after(&block),
        Flood::new("rapid reset", calm, |stream| [get(stream, "/"), cancel(stream)].concat()),
        Flood::new("malformed streams", calm, |stream| {
            Frame::headers(stream, flag::END_STREAM, &[(b"connection".to_vec(), b"close".to_vec())]).bytes()
        }),
        Flood::new("more streams than allowed", calm, |stream| get(stream, "/held")),
        Flood::new("one entry of the table, thousands of times", calm, |stream| {
            Frame::new(kind::HEADERS, flag::END_STREAM | flag::END_HEADERS, stream, bomb()).bytes()
        }),
        Flood::new("Huffman", calm, |stream| {
            Frame::new(kind::HEADERS, flag::END_STREAM | flag::END_HEADERS, stream, packed()).bytes()
        }),
    ]
}

/// A field that is put into the table, as large as one can be there, and named until the frame is full.
fn bomb() -> Vec<u8> {
    // RFC 7541 section 6.2.1: a literal with indexing and a new name of one byte, a value of 4000.
    let mut block = [&[0x40, 1, b'x', 0x7f, 0xa1, 0x1e][..], &[b'a'; 4000]].concat();
    block.resize(PIECE_BYTES, 0x80 | 62);
    block
}

/// A value of which each byte is more than one letter (RFC 7541 appendix B: `0` is five zeros).
fn packed() -> Vec<u8> {
    // A length of 16,000 behind the prefix of seven bits.
    [&[0x10, 1, b'x', 0xff, 0x81, 0x7c][..], &[0; 16_000]].concat()
}

fn continuation() -> Vec<u8> {
    let fields: Vec<Field> = (0..16).map(|_| (b"x-more".to_vec(), vec![b'a'; 900])).collect();
    Frame::new(kind::CONTINUATION, 0, 1, pointsman_e2e::literal(&fields)).bytes()
}

/// A byte of content in a frame of padding.
fn padding() -> Vec<u8> {
    let payload = [&[255, b'a'][..], &[0; 255]].concat();
    Frame::new(kind::DATA, flag::PADDED, 1, payload).bytes()
}

fn get(stream: u32, path: &str) -> Vec<u8> {
    Frame::headers(stream, flag::END_STREAM, &request("GET", path)).bytes()
}

fn cancel(stream: u32) -> Vec<u8> {
    Frame::rst_stream(stream, 8).bytes()
}

/// What came of a flood.
struct Ended {
    taken_bytes: u64,
    said: Vec<u8>,
}

impl Ended {
    /// The code of the last GOAWAY.
    fn code(&self) -> Option<u32> {
        let (mut rest, mut code) = (&self.said[..], None);
        while let Some((head, behind)) = rest.split_at_checked(9) {
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
            let Some((payload, behind)) = behind.split_at_checked(length.try_into().expect("24 bits")) else {
                break;
            };
            if head[3] == kind::GOAWAY {
                code = payload.get(4..8).map(|code| u32::from_be_bytes(code.try_into().expect("four bytes")));
            }
            rest = behind;
        }
        code
    }
}

/// Sends a flood until nothing more is taken, and hears what is said to it.
fn send(flood: &Flood, to: SocketAddr) -> Ended {
    let mut socket = TcpStream::connect(to).expect("it listens");
    for set in [TcpStream::set_read_timeout, TcpStream::set_write_timeout] {
        set(&socket, Some(PATIENCE * 3)).expect("an open socket");
    }
    let mut reader = socket.try_clone().expect("a descriptor");
    let hears = std::thread::spawn(move || {
        let mut said = Vec::new();
        // A reset behind the last word ends it as well.
        drop(reader.read_to_end(&mut said));
        said
    });
    let (mut taken_bytes, mut stream) = (0, 1001);
    let mut piece = flood.start.clone();
    // What is offered has an end, so that a switch that takes all of it fails and does not hang.
    while taken_bytes < scale(4, 16) * TAKEN_MAX && socket.write_all(&piece).is_ok() {
        taken_bytes += piece.len() as u64;
        piece.clear();
        while piece.len() < PIECE_BYTES {
            piece.extend((flood.again)(stream));
            stream += 2;
        }
    }
    // Where it was ended it is so already.
    drop(socket.shutdown(Shutdown::Write));
    Ended { taken_bytes, said: hears.join().expect("a reader") }
}

fn floods(threads: usize) {
    let (origin, held) = (Origin::answering("origin", unhurried), RawOrigin::silent());
    let setup = modest(threads).rules("if (path == \"/held\") { routeTo(held); }");
    let setup = setup.pool("standard", &[&origin]).pool_at("held", "", &[("h", held.address())]);
    let switch = setup.start();
    let rest = returns_to_rest(&switch, threads);
    let mut behind_the_first = None;
    for flood in all() {
        let fault = format!("HTTP/2 flood: {}, {threads} threads", flood.name);
        let (costs, refused_before) = (Costs::since(&switch), refused(&switch));
        let (ended, served) = meanwhile(&switch, || send(&flood, switch.address("shop")));
        costs.cpu(&fault, flood.cpu_ms_max);
        let taken = ended.taken_bytes;
        figure(&fault, taken, Unit::Bytes("taken before it was ended"), Bound::AtMost(TAKEN_MAX));
        let code = ended.code();
        assert!(code.is_some_and(|code| flood.codes.contains(&code)), "{fault}: ended with {code:?}");
        assert!(refused(&switch) > refused_before, "{fault}: it is counted");
        figure(&fault, served, Unit::Count("others served meanwhile"), Bound::AtLeast(2));
        rest(&fault);
        // What the first one of them needs stays with the allocator; none needs more.
        behind_the_first.get_or_insert_with(|| Costs::since(&switch)).memory(&fault, 24 * MIB);
    }
    figure(
        &format!("HTTP/2 floods, {threads} threads"),
        switch.peak_resident_bytes(),
        Unit::Bytes("resident at its peak"),
        Bound::AtMost(96 * MIB),
    );
    until("no descriptor left behind", || (switch.descriptors() < 100).then_some(()));
}

/// Those that cost most, plain and under TLS, from clients that read nothing of what is said to them until they can
/// send no more.
fn floods_that_hear_nothing(threads: usize) {
    let authority = Authority::new("test CA");
    let (origin, held) = (Origin::answering("origin", unhurried), RawOrigin::silent());
    let setup =
        modest(threads).limits("write_ms_max = 3000").rules("if (path == \"/held\") { routeTo(held); }");
    let setup = setup.pool("standard", &[&origin]).pool_at("held", "", &[("h", held.address())]);
    let setup =
        setup.listener_alike("tls").default_pool("standard").tls(&authority.server(&["shop.example"]), "");
    let switch = setup.start();
    let trust = TlsClient::new(&authority).alpn(&["h2"]);
    let rest = returns_to_rest(&switch, threads);
    let mut behind_the_first = None;
    for flood in all() {
        if !["PING", "SETTINGS", "CONTINUATION", "rapid reset", "malformed streams"].contains(&flood.name) {
            continue;
        }
        for listener in ["shop", "tls"] {
            let fault =
                format!("HTTP/2 flood that hears nothing: {}, {listener}, {threads} threads", flood.name);
            let (costs, ended_before) = (Costs::since(&switch), ended_for_it(&switch));
            let address = switch.address(listener);
            let client = match listener {
                "tls" => Client::tls(address, &trust, "shop.example").expect("a handshake"),
                _ => Client::plain(address),
            };
            let (taken, served) = meanwhile(&switch, || send_unheard(&flood, client));
            costs.cpu(&fault, flood.cpu_ms_max);
            figure(&fault, taken, Unit::Bytes("taken before it was ended"), Bound::AtMost(TAKEN_MAX));
            figure(&fault, served, Unit::Count("others served meanwhile"), Bound::AtLeast(2));
            until("its connection ended", || (ended_for_it(&switch) > ended_before).then_some(()));
            rest(&fault);
            behind_the_first.get_or_insert_with(|| Costs::since(&switch)).memory(&fault, 24 * MIB);
        }
    }
    let peak = switch.peak_resident_bytes();
    let fault = format!("HTTP/2 floods that hear nothing, {threads} threads");
    figure(&fault, peak, Unit::Bytes("resident at its peak"), Bound::AtMost(96 * MIB));
}

/// Connections that ended for what they sent, or for not taking what is said to it: nothing more is read meanwhile.
fn ended_for_it(switch: &Switch) -> f64 {
    let ended = |reason| switch.metric("pointsman_refusals_total", &[("reason", reason)]);
    ended("http2") + ended("write_timeout")
}

/// Sends a flood until nothing more is taken. Says how much was.
fn send_unheard(flood: &Flood, mut client: Client) -> u64 {
    let (mut taken_bytes, mut stream) = (0, 1001);
    let mut piece = flood.start.clone();
    while taken_bytes < scale(4, 16) * TAKEN_MAX && client.try_send(&piece).is_ok() {
        taken_bytes += piece.len() as u64;
        piece.clear();
        while piece.len() < PIECE_BYTES {
            piece.extend((flood.again)(stream));
            stream += 2;
        }
    }
    taken_bytes
}

/// Streams that are reset when their answer has begun cost a server each: most of them may not be.
fn resets_behind_the_first_byte(threads: usize) {
    let fault = format!("HTTP/2 resets behind the first byte, {threads} threads");
    let (origin, endless) = (
        Origin::answering("origin", unhurried),
        RawOrigin::serving(|mut socket, _| {
            if pointsman_e2e::read_head(&mut socket).is_some() {
                drop(socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 67108864\r\n\r\n"));
                while socket.write_all(&[b'a'; 64 * 1024]).is_ok() {}
            }
        }),
    );
    let setup = modest(threads).rules("if (path == \"/endless\") { routeTo(endless); }");
    let setup = setup.pool("standard", &[&origin]).pool_at("endless", "", &[("e", endless.address())]);
    let switch = setup.start();
    let rest = returns_to_rest(&switch, threads);
    let costs = Costs::since(&switch);
    let (ended, served) = meanwhile(&switch, || {
        let mut client = H2Client::begin(switch.client());
        for number in 0..1000 {
            let stream = 2 * number + 1;
            drop(client.try_send(&get(stream, "/endless")));
            loop {
                match client.frame().expect("frames") {
                    None => return (number, client.goaway().map(|(_, code)| code)),
                    Some(frame) if frame.kind == kind::DATA && frame.stream == stream => break,
                    // What is still to come of earlier streams gets no room.
                    Some(frame) if frame.kind == kind::DATA => {}
                    Some(frame) => client.take(frame).expect("HTTP/2"),
                }
            }
            drop(client.try_send(&[cancel(stream), Frame::window_update(0, 1 << 16).bytes()].concat()));
        }
        (1000, None)
    });
    costs.cpu(&fault, 600);
    costs.memory(&fault, 8 * MIB);
    figure(&fault, ended.0.into(), Unit::Count("streams before it was ended"), Bound::AtMost(250));
    assert_eq!(ended.1, Some(ENHANCE_YOUR_CALM));
    figure(&fault, served, Unit::Count("others served meanwhile"), Bound::AtLeast(2));
    rest(&fault);
}

fn refused(switch: &Switch) -> f64 {
    switch.metric("pointsman_refusals_total", &[("reason", "http2")])
}

/// Does something on a thread of its own while two honest clients, of HTTP/1 and HTTP/2, ask and are answered, once at
/// least. Says what came of it and how many answers they had.
fn meanwhile<T: Send>(switch: &Switch, act: impl FnOnce() -> T + Send) -> (T, u64) {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let acts = scope.spawn(|| {
            let outcome = act();
            is_over.store(true, Ordering::SeqCst);
            outcome
        });
        let (mut first, mut second) = (switch.client(), H2Client::begin(switch.client()));
        let mut served = 0;
        for stream in (1..).step_by(2) {
            assert!(is_served(&mut first), "a client of HTTP/1");
            let answer = second.get(stream, "http", "/other").expect("an answer");
            assert!(matches!(answer, Outcome::Answer(answer) if answer.status() == 200), "one of HTTP/2");
            served += 2;
            if is_over.load(Ordering::SeqCst) || acts.is_finished() {
                break;
            }
        }
        (acts.join().expect("it is over"), served)
    })
}

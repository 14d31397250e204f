//! The kinds of clients: good ones that look at every byte, slow, broken and hostile ones.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::client::{Answer, Client, Outcome, request};
use super::server::{CHUNKED_BYTES, SLOW_BYTES, Sum, UNTIL_CLOSE_BYTES};
use super::site::{HEAD_MAX, STALL_MAX};
use super::tally::Tally;
use crate::packages::located;
use crate::project::written;

/// Where the switch listens.
pub(super) struct Ports {
    pub(super) plain: u16,
    pub(super) tls: u16,
}

/// What a client of the soak is given.
pub(super) struct Around<'a> {
    pub(super) ports: &'a Ports,
    pub(super) tally: &'a Tally,
    pub(super) over: &'a AtomicBool,
    pub(super) folder: &'a Path,
    pub(super) name: &'static str,
}

type Behaviour = fn(&Around<'_>);

/// Every kind, each on a thread of its own.
pub(super) const ALL: &[(&str, Behaviour)] = &[
    ("checked answers, kept alive", |around| around.again(5, answers)),
    ("checked answers from broken servers", |around| around.again(50, broken_servers)),
    ("checked answers while servers die", |around| around.again(10, dying_servers)),
    ("checked uploads by length", |around| around.again(100, |port| upload(port, false))),
    ("checked uploads in chunks", |around| around.again(100, |port| upload(port, true))),
    ("checked answers and uploads, TLS", over_tls),
    ("heads by the byte", |around| around.again(10, |port| unless_held_up(HEAD_MAX, || slow_head(port)))),
    ("heads that never end", |around| around.again(10, endless_head)),
    ("bodies by the byte", |around| around.again(10, |port| unless_held_up(STALL_MAX, || slow_body(port)))),
    ("readers that stall and go on", |around| {
        around.again(10, |port| unless_held_up(STALL_MAX, || stalling_reader(port)))
    }),
    ("readers that stall for good", |around| around.again(10, dead_reader)),
    ("resets in the middle of an answer", |around| around.again(20, reset_in_answer)),
    ("ends in the middle of an upload", |around| around.again(20, end_in_upload)),
    ("malformed requests", malformed),
    ("idle connections", idle),
];

impl Around<'_> {
    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Does the same thing until the end, with a pause in between, and counts.
    fn again(&self, pause_ms: u64, act: impl Fn(u16) -> Outcome<()>) {
        while !self.is_over() {
            self.tally.note(self.name, act(self.ports.plain));
            std::thread::sleep(Duration::from_millis(pause_ms));
        }
    }
}

/// Several requests on one connection, in every framing.
fn answers(port: u16) -> Outcome<()> {
    let mut client = Client::connect(port)?;
    client.get("/img/1k")?.expect_filled(200, b'x', 1024)?;
    client.get("/ok/chunked")?.expect_filled(200, b'c', CHUNKED_BYTES)?;
    client.get("/img/1m")?.expect_filled(200, b'x', 1 << 20)?;
    // Two at once are answered in order.
    client.send(&[request("/img/1k"), request("/ok/chunked")].concat())?;
    client.answer()?.expect_filled(200, b'x', 1024)?;
    client.answer()?.expect_filled(200, b'c', CHUNKED_BYTES)?;
    client.get("/ok/until-close")?.expect_filled(200, b'u', UNTIL_CLOSE_BYTES)
}

/// A broken server's fault is a 502, or an answer that is visibly cut off; never one that looks whole.
fn broken_servers(port: u16) -> Outcome<()> {
    for target in ["/broken/closes", "/broken/garbage"] {
        let status = Client::connect(port)?.get(target)?.status;
        if status != 502 {
            return Err(format!("{target}: status {status} in place of 502"));
        }
    }
    match Client::connect(port)?.get("/broken/short") {
        Err(cut) if cut.contains("the body ended after 3 of") || cut.contains("reading a ") => Ok(()),
        Err(problem) => Err(problem),
        Ok(answer) => Err(format!("/broken/short: a whole answer, status {}", answer.status)),
    }
}

/// A server that dies with a request in hand is a gateway's error; otherwise the answer is right.
fn dying_servers(port: u16) -> Outcome<()> {
    let is_gateway_error = |answer: &Answer| (502..=504).contains(&answer.status);
    match Client::connect(port)?.get("/shaky/chunked") {
        Ok(answer) if is_gateway_error(&answer) => Ok(()),
        Ok(answer) => answer.expect_filled(200, b'c', CHUNKED_BYTES),
        Err(cut) if cut.contains("the body ended") || cut.contains("reading a body") => Ok(()),
        // What is cut off is cut with a reset, which may take the head with it.
        Err(cut) if cut.contains("the head ended after ``") || cut.contains("reading a head") => Ok(()),
        Err(problem) => Err(problem),
    }
}

/// Bytes that no two uploads share, so that none can be taken for another.
fn upload_bytes(port: u16) -> Vec<u8> {
    const BYTES: usize = 3 << 20;
    let mut number = u64::from(port) ^ u64::from(std::process::id());
    let fresh = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    number ^= fresh.map_or(0, |time| u64::from(time.subsec_nanos()));
    let next = || {
        number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (number >> 33) as u8
    };
    std::iter::repeat_with(next).take(BYTES).collect()
}

fn upload(port: u16, is_chunked: bool) -> Outcome<()> {
    let bytes = upload_bytes(port);
    let mut sum = Sum::default();
    sum.add(&bytes);
    let mut client = Client::connect(port)?;
    let head = "POST /up HTTP/1.1\r\nHost: soak.example\r\n";
    if is_chunked {
        client.send(format!("{head}Transfer-Encoding: chunked\r\n\r\n").as_bytes())?;
        for piece in bytes.chunks(50_000) {
            let framed = [format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat();
            client.send(&framed)?;
        }
        client.send(b"0\r\n\r\n")?;
    } else {
        client.send(format!("{head}Content-Length: {}\r\n\r\n", bytes.len()).as_bytes())?;
        client.send(&bytes)?;
    }
    client.answer()?.expect(200, sum.told().as_bytes())
}

/// curl knows TLS: 1 MiB down, some MiB up, every byte looked at.
fn over_tls(around: &Around<'_>) {
    let file = around.folder.join("upload");
    while !around.is_over() {
        around.tally.note(around.name, tls_exchanges(around.ports.tls, &file));
        std::thread::sleep(Duration::from_millis(300));
    }
}

fn tls_exchanges(port: u16, file: &Path) -> Outcome<()> {
    let url = |target: &str| format!("https://127.0.0.1:{port}{target}");
    let curl = |words: &[&str]| {
        let mut command = Command::new(located("curl").map_err(|failure| failure.to_string())?);
        command.args(["--silent", "--show-error", "--fail", "--insecure", "--http1.1", "--max-time", "60"]);
        written(command.args(words)).map_err(|failure| failure.to_string())
    };
    let body = curl(&[&url("/img/1m")])?.into_bytes();
    Answer { status: 200, body, closes: false }.expect_filled(200, b'x', 1 << 20)?;
    let bytes = upload_bytes(port);
    let mut sum = Sum::default();
    sum.add(&bytes);
    std::fs::write(file, &bytes).map_err(|error| format!("cannot write an upload: {error}"))?;
    let told = curl(&["--data-binary", &format!("@{}", file.display()), &url("/up")])?;
    if told == sum.told() { Ok(()) } else { Err(format!("uploaded `{}`, arrived `{told}`", sum.told())) }
}

/// A slow client is quicker than the limit that it is to keep. One that a busy machine held up for longer than that
/// is rightly refused or cut off, and shows nothing about the switch.
fn unless_held_up(limit: Duration, act: impl FnOnce() -> Outcome<()>) -> Outcome<()> {
    let started = Instant::now();
    let is_refused = |problem: &str| {
        ["status 408 ", "sending: ", "reading ", "the head ended", "the body ended"]
            .iter()
            .any(|start| problem.starts_with(start))
    };
    match act() {
        Err(problem) if started.elapsed() >= limit && is_refused(&problem) => Ok(()),
        outcome => outcome,
    }
}

fn slow_head(port: u16) -> Outcome<()> {
    let mut client = Client::connect(port)?;
    for byte in request("/img/1k") {
        client.send(&[byte])?;
        std::thread::sleep(Duration::from_millis(20));
    }
    client.answer()?.expect_filled(200, b'x', 1024)
}

/// It is told so, or cut off; it must not hold its connection for ever.
fn endless_head(port: u16) -> Outcome<()> {
    let mut client = Client::connect(port)?;
    client.send(b"GET /img/1k HTTP/1.1\r\nHost: soak.example\r\n")?;
    let told = client.rest();
    match told.is_empty() || told.starts_with(b"HTTP/1.1 408 ") {
        true => Ok(()),
        false => Err(format!("an endless head is answered with `{}`", told.escape_ascii())),
    }
}

fn slow_body(port: u16) -> Outcome<()> {
    let mut client = Client::connect(port)?;
    let mut sum = Sum::default();
    client.send(b"POST /up HTTP/1.1\r\nHost: soak.example\r\nContent-Length: 100\r\n\r\n")?;
    for byte in 0..100 {
        sum.add(&[byte]);
        client.send(&[byte])?;
        std::thread::sleep(Duration::from_millis(20));
    }
    client.answer()?.expect(200, sum.told().as_bytes())?;
    client.get("/ok/slow")?.expect_filled(200, b's', SLOW_BYTES)
}

fn stalling_reader(port: u16) -> Outcome<()> {
    let mut client = Client::connect(port)?;
    client.send(&[request("/img/1m"), request("/img/1m")].concat())?;
    client.wait_for_bytes()?;
    std::thread::sleep(Duration::from_secs(3));
    client.answer()?.expect_filled(200, b'x', 1 << 20)?;
    client.answer()?.expect_filled(200, b'x', 1 << 20)
}

/// Asks for far more than any buffer holds, and takes nothing: it must be cut off before all of it has come.
fn dead_reader(port: u16) -> Outcome<()> {
    const ASKED: usize = 20;
    let mut client = Client::connect(port)?;
    client.send(&request("/img/1m").repeat(ASKED))?;
    client.wait_for_bytes()?;
    std::thread::sleep(Duration::from_secs(12));
    let taken = client.rest().len();
    if taken < ASKED << 20 {
        Ok(())
    } else {
        Err(format!("{taken} bytes for a reader that took none for 12 s"))
    }
}

/// The bytes that nobody reads make the kernel reset the connection.
fn reset_in_answer(port: u16) -> Outcome<()> {
    let mut client = Client::connect(port)?;
    client.send(&request("/img/1m"))?;
    client.read_some(1000).map(drop)
}

fn end_in_upload(port: u16) -> Outcome<()> {
    let mut client = Client::connect(port)?;
    client.send(b"POST /up HTTP/1.1\r\nHost: soak.example\r\nContent-Length: 1000000\r\n\r\n")?;
    client.send(&[b'x'; 20_000])
}

/// Each is refused with a status, or the connection is closed; none reaches a server.
fn malformed(around: &Around<'_>) {
    let long = format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "x".repeat(40_000));
    let many = format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "X: 1\r\n".repeat(500));
    let requests: [&[u8]; 12] = [
        b"GET / HTTP/1.1\r\n\r\n",
        b"G@T / HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET / HTTP/3.7\r\nHost: a\r\n\r\n",
        b"GET / HTTP/1.1\nHost: a\n\n",
        b"GET /%00 HTTP/1.1\r\nHost: a\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
        b"POST /up HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"\0\0\0\0\0\0\0\0",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        long.as_bytes(),
        many.as_bytes(),
    ];
    while !around.is_over() {
        for request in requests {
            around.tally.note(around.name, refused(around.ports.plain, request, true));
            around.tally.note("malformed handshakes", refused(around.ports.tls, request, false));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn refused(port: u16, request: &[u8], is_told: bool) -> Outcome<()> {
    let mut client = Client::connect(port)?;
    // It may be refused before all of it is there.
    client.try_send(request);
    client.no_more();
    let told = client.rest();
    let status = told.strip_prefix(b"HTTP/1.1 ").and_then(|rest| rest.first());
    match (is_told, status) {
        (true, Some(b'4' | b'5')) | (false, None) => Ok(()),
        (true, None) if told.is_empty() => Ok(()),
        _ => Err(format!("`{}` is answered with `{}`", shown(request), shown(&told))),
    }
}

fn shown(bytes: &[u8]) -> String {
    bytes[..bytes.len().min(80)].escape_ascii().to_string()
}

/// Many connections that ask once and then nothing for longer than they may.
fn idle(around: &Around<'_>) {
    const CONNECTIONS: usize = 100;
    while !around.is_over() {
        let mut open = Vec::new();
        for _ in 0..CONNECTIONS {
            let asked = Client::connect(around.ports.plain).and_then(|mut client| {
                client.get("/img/1k")?.expect_filled(200, b'x', 1024)?;
                Ok(client)
            });
            match asked {
                Ok(client) => open.push(client),
                Err(problem) => around.tally.note(around.name, Err(problem)),
            }
        }
        for mut client in open {
            // The switch closes it in the end, without a word.
            let told = client.rest();
            let problem = || Err(format!("an idle connection is told `{}`", shown(&told)));
            around.tally.note(around.name, if told.is_empty() { Ok(()) } else { problem() });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_was_held_up_may_be_refused() {
        let refused = || Err("status 408 in place of 200".to_owned());
        assert!(unless_held_up(Duration::ZERO, refused).is_ok());
        assert!(unless_held_up(STALL_MAX, refused).is_err(), "in time");
        let wrong = || Err("1024 bytes, or others, in place of 100".to_owned());
        assert!(unless_held_up(Duration::ZERO, wrong).is_err());
    }
}

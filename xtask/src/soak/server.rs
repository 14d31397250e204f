//! Servers of the soak that do more than the benchmark's origin: they read uploads, answer in every framing,
//! break off on demand, and one of them dies and comes back.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::free_port;
use crate::failure::{Because, Result};

/// Bytes of the answers, by what is asked for.
pub(super) const CHUNKED_BYTES: usize = 64_000;
pub(super) const UNTIL_CLOSE_BYTES: usize = 5000;
pub(super) const SLOW_BYTES: usize = 20;
/// What `/broken/short` announces, and does not send.
const ANNOUNCED_BYTES: usize = 100_000;

const ALIVE: Duration = Duration::from_secs(4);
const DEAD: Duration = Duration::from_secs(1);

/// The ports of the servers, which run as threads until this is dropped.
pub(super) struct Servers {
    pub(super) steady: u16,
    pub(super) dying: u16,
    over: Arc<AtomicBool>,
}

impl Servers {
    pub(super) fn start() -> Result<Self> {
        let doing = || "cannot listen on a port of 127.0.0.1".into();
        let over = Arc::new(AtomicBool::new(false));
        let steady = TcpListener::bind(("127.0.0.1", 0)).because(doing)?;
        let port = steady.local_addr().because(doing)?.port();
        let dying = free_port()?;
        let ends = Arc::clone(&over);
        std::thread::spawn(move || {
            let open = Connections::default();
            serve(&steady, &open, || ends.load(Ordering::Relaxed));
        });
        let ends = Arc::clone(&over);
        std::thread::spawn(move || live_and_die(dying, &ends));
        Ok(Self { steady: port, dying, over })
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

type Connections = Arc<Mutex<Vec<TcpStream>>>;

/// Listens for a while, then breaks every connection and is not there for a moment.
fn live_and_die(port: u16, over: &AtomicBool) {
    while !over.load(Ordering::Relaxed) {
        let Ok(listener) = TcpListener::bind(("127.0.0.1", port)) else {
            std::thread::sleep(DEAD);
            continue;
        };
        let open = Connections::default();
        let born = std::time::Instant::now();
        serve(&listener, &open, || over.load(Ordering::Relaxed) || born.elapsed() > ALIVE);
        drop(listener);
        for stream in open.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            drop(stream.shutdown(Shutdown::Both));
        }
        std::thread::sleep(DEAD);
    }
}

/// Accepts until `ends` says so; a thread for each connection.
fn serve(listener: &TcpListener, open: &Connections, ends: impl Fn() -> bool) {
    // Waiting in `accept` nobody would hear that it is over.
    if listener.set_nonblocking(true).is_err() {
        return;
    }
    while !ends() {
        match listener.accept() {
            Ok((stream, _)) => {
                drop(stream.set_nonblocking(false).and_then(|()| stream.set_nodelay(true)));
                let Ok(copy) = stream.try_clone() else { continue };
                let mut kept = open.lock().unwrap_or_else(PoisonError::into_inner);
                // Those that have ended are not worth their descriptor.
                kept.retain(|stream| stream.peer_addr().is_ok());
                kept.push(copy);
                drop(kept);
                std::thread::spawn(move || connection(stream));
            }
            Err(_) => std::thread::sleep(Duration::from_millis(2)),
        }
    }
}

fn connection(stream: TcpStream) {
    let mut reader = BufReader::new(stream);
    while exchange(&mut reader).is_some() {}
    drop(reader.get_ref().shutdown(Shutdown::Both));
}

/// Reads a request and answers it; nothing where the connection is at its end.
fn exchange(reader: &mut BufReader<TcpStream>) -> Option<()> {
    let first = line(reader)?;
    let target = first.split(' ').nth(1)?.to_owned();
    let (mut length, mut is_chunked) = (0, false);
    loop {
        let line = line(reader)?.to_ascii_lowercase();
        match line.split_once(':').map(|(name, value)| (name, value.trim())) {
            None => break,
            Some(("content-length", value)) => length = value.parse::<u64>().ok()?,
            Some(("transfer-encoding", _)) => is_chunked = true,
            Some(("expect", _)) => reader.get_mut().write_all(b"HTTP/1.1 100 Continue\r\n\r\n").ok()?,
            Some(_) => {}
        }
    }
    let mut sum = Sum::default();
    match is_chunked {
        true => read_chunks(reader, &mut sum)?,
        false => read_exactly(reader, length, &mut sum)?,
    }
    answer(reader.get_mut(), &target, &sum)
}

fn answer(stream: &mut TcpStream, target: &str, sum: &Sum) -> Option<()> {
    let mut send = |bytes: &[u8]| stream.write_all(bytes).ok();
    match target {
        "/ok/chunked" => {
            send(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")?;
            for _ in 0..CHUNKED_BYTES / 1000 {
                send(&[b"3e8\r\n", &[b'c'; 1000][..], b"\r\n"].concat())?;
            }
            send(b"0\r\n\r\n")
        }
        "/ok/until-close" => {
            send(&[b"HTTP/1.1 200 OK\r\n\r\n", &[b'u'; UNTIL_CLOSE_BYTES][..]].concat())?;
            None
        }
        "/ok/slow" => {
            send(format!("HTTP/1.1 200 OK\r\nContent-Length: {SLOW_BYTES}\r\n\r\n").as_bytes())?;
            for _ in 0..SLOW_BYTES {
                send(b"s")?;
                std::thread::sleep(Duration::from_millis(100));
            }
            Some(())
        }
        "/broken/closes" => None,
        "/broken/short" => {
            send(format!("HTTP/1.1 200 OK\r\nContent-Length: {ANNOUNCED_BYTES}\r\n\r\nxxx").as_bytes())?;
            None
        }
        "/broken/garbage" => {
            send(b"HTTP/1.1 2x0 What\r\n\r\n")?;
            None
        }
        _ => {
            let body = sum.told();
            send(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).as_bytes())
        }
    }
}

/// What an upload comes to: nobody keeps its bytes.
#[derive(Default)]
pub(super) struct Sum {
    bytes: u64,
    sum: u64,
}

impl Sum {
    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        self.sum =
            bytes.iter().fold(self.sum, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(*byte)));
    }

    /// As it is answered.
    pub(super) fn told(&self) -> String {
        format!("{} bytes, sum {:016x}\n", self.bytes, self.sum)
    }
}

fn read_exactly(reader: &mut BufReader<TcpStream>, mut left: u64, sum: &mut Sum) -> Option<()> {
    let mut room = [0; 16 * 1024];
    while left > 0 {
        let wanted = room.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let taken = reader.read(&mut room[..wanted]).ok().filter(|taken| *taken > 0)?;
        sum.add(&room[..taken]);
        left -= taken as u64;
    }
    Some(())
}

fn read_chunks(reader: &mut BufReader<TcpStream>, sum: &mut Sum) -> Option<()> {
    loop {
        let bytes = u64::from_str_radix(&line(reader)?, 16).ok()?;
        read_exactly(reader, bytes, sum)?;
        if !line(reader)?.is_empty() {
            return None;
        }
        if bytes == 0 {
            return Some(());
        }
    }
}

fn line(reader: &mut BufReader<TcpStream>) -> Option<String> {
    let mut line = Vec::new();
    reader.read_until(b'\n', &mut line).ok()?;
    Some(String::from_utf8_lossy(line.strip_suffix(b"\r\n")?).into_owned())
}

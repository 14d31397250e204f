//! The server behind every proxy of a benchmark: one thread, fixed answers, as little work as epoll allows.
//!
//! It listens on [`LISTENERS`] free ports, one for each pool, and prints them in one line. A target that
//! ends in `/1m` is answered with 1 MiB, one that ends in `/seen` with the request's own head, every other
//! one with 1 KiB. The content of a POST has a length, and is let by;
//! pipelined requests are answered in order.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::rc::Rc;

use memchr::memmem;
use mio::event::Event;
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};
use slab::Slab;

use crate::failure::{Because, Failure, Result};

/// How many ports it listens on: as many as the benchmark's rules have pools.
pub(crate) const LISTENERS: usize = 4;

/// A request head longer than this is not from the benchmark.
const HEAD_BYTES_MAX: usize = 16 * 1024;

/// Serves until it is killed.
pub(crate) fn run() -> Result<()> {
    let mut origin = Origin::start()?;
    println!("{}", origin.ports()?.map(|port| port.to_string()).join(" "));
    let mut events = Events::with_capacity(256);
    loop {
        match origin.poll.poll(&mut events, None) {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            outcome => outcome.because(|| "cannot wait for events".into())?,
        }
        for event in &events {
            origin.take(event)?;
        }
    }
}

struct Origin {
    poll: Poll,
    listeners: [TcpListener; LISTENERS],
    /// By token, counted behind the listeners'.
    connections: Slab<Connection>,
    answers: [Answers; LISTENERS],
    /// Where every connection reads into: heads are looked at and forgotten at once.
    scratch: Vec<u8>,
}

impl Origin {
    fn start() -> Result<Self> {
        let doing = || "cannot listen on a port of 127.0.0.1".into();
        let poll = Poll::new().because(doing)?;
        let bind = || TcpListener::bind(([127, 0, 0, 1], 0).into());
        let mut listeners =
            [bind().because(doing)?, bind().because(doing)?, bind().because(doing)?, bind().because(doing)?];
        for (token, listener) in listeners.iter_mut().enumerate() {
            poll.registry().register(listener, Token(token), Interest::READABLE).because(doing)?;
        }
        Ok(Self {
            poll,
            listeners,
            connections: Slab::new(),
            answers: std::array::from_fn(Answers::of),
            scratch: vec![0; 16 * 1024],
        })
    }

    fn ports(&self) -> Result<[u16; LISTENERS]> {
        let mut ports = [0; LISTENERS];
        for (port, listener) in ports.iter_mut().zip(&self.listeners) {
            *port = listener.local_addr().because(|| "cannot name my own port".into())?.port();
        }
        Ok(ports)
    }

    fn take(&mut self, event: &Event) -> Result<()> {
        let token = event.token();
        if token.0 < LISTENERS {
            return self.accept(token.0);
        }
        let Some(connection) = self.connections.get_mut(token.0 - LISTENERS) else { return Ok(()) };
        let answers = &self.answers[connection.listener];
        let goes_on = connection.read(event, answers, &mut self.scratch) && connection.write();
        if !goes_on {
            // Closing the socket takes it out of epoll.
            self.connections.remove(token.0 - LISTENERS);
        }
        Ok(())
    }

    fn accept(&mut self, listener: usize) -> Result<()> {
        loop {
            let mut stream = match self.listeners[listener].accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::ConnectionAborted => continue,
                Err(error) => return Err(Failure::new(format!("cannot accept: {error}"))),
            };
            let vacant = self.connections.vacant_entry();
            let token = Token(LISTENERS + vacant.key());
            let both = Interest::READABLE | Interest::WRITABLE;
            let registry = self.poll.registry();
            let registered =
                stream.set_nodelay(true).and_then(|()| registry.register(&mut stream, token, both));
            registered.because(|| "cannot watch a connection".into())?;
            vacant.insert(Connection::new(stream, listener));
        }
    }
}

/// The fixed answers of one listener; a field names it, so that a check can tell the pools apart.
struct Answers {
    small: Rc<[u8]>,
    large: Rc<[u8]>,
    listener: usize,
}

impl Answers {
    fn of(listener: usize) -> Self {
        Self {
            small: answer(listener, &[b'x'; 1024]),
            large: answer(listener, &vec![b'x'; 1 << 20]),
            listener,
        }
    }

    fn to(&self, head: &[u8]) -> Rc<[u8]> {
        // The target ends at the second space: `GET /img/1m HTTP/1.1`.
        let target = head.split(|byte| *byte == b' ').nth(1).unwrap_or_default();
        if target.ends_with(b"/1m") {
            Rc::clone(&self.large)
        } else if target.ends_with(b"/seen") {
            answer(self.listener, head)
        } else {
            Rc::clone(&self.small)
        }
    }
}

fn answer(listener: usize, body: &[u8]) -> Rc<[u8]> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 200 OK\r\nServer: origin\r\nDate: Tue, 14 Oct 2025 12:00:00 GMT\r\n\
         Content-Type: application/octet-stream\r\n\
         Content-Length: {length}\r\nLast-Modified: Tue, 14 Oct 2025 10:00:00 GMT\r\n\
         ETag: \"68ee1f40-400\"\r\nAccept-Ranges: bytes\r\nX-Pool: {listener}\r\n\r\n"
    );
    [head.as_bytes(), body].concat().into()
}

struct Connection {
    stream: TcpStream,
    listener: usize,
    /// A head that has not ended yet; empty nearly always.
    rest: Vec<u8>,
    /// Answers to write, in order; the first from `written` on.
    queue: VecDeque<Rc<[u8]>>,
    written: usize,
}

impl Connection {
    fn new(stream: TcpStream, listener: usize) -> Self {
        Self { stream, listener, rest: Vec::new(), queue: VecDeque::new(), written: 0 }
    }

    /// Reads what is there and queues the answers. False: the connection is at its end.
    fn read(&mut self, event: &Event, answers: &Answers, scratch: &mut [u8]) -> bool {
        if !event.is_readable() {
            return true;
        }
        loop {
            match self.stream.read(scratch) {
                Ok(0) => return false,
                Ok(count) => {
                    if !self.queue_answers(&scratch[..count], answers) {
                        return false;
                    }
                    // A short read empties the socket; a new byte is a new event. An end that has
                    // come already is not, so it must be read now.
                    if count < scratch.len() && !event.is_read_closed() {
                        return true;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
    }

    fn queue_answers(&mut self, bytes: &[u8], answers: &Answers) -> bool {
        if self.rest.is_empty() {
            let used = each_head(bytes, |head| self.queue.push_back(answers.to(head)));
            self.rest.extend_from_slice(&bytes[used..]);
        } else {
            self.rest.extend_from_slice(bytes);
            let used = each_head(&self.rest, |head| self.queue.push_back(answers.to(head)));
            self.rest.drain(..used);
        }
        self.rest.len() <= HEAD_BYTES_MAX
    }

    /// Writes what the socket takes. False: the connection is at its end.
    fn write(&mut self) -> bool {
        while let Some(answer) = self.queue.front() {
            match self.stream.write(&answer[self.written..]) {
                Ok(count) => self.written += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
            if self.written == answer.len() {
                self.queue.pop_front();
                self.written = 0;
            }
        }
        true
    }
}

/// Shows the head of each complete request and says how many bytes they took.
fn each_head(bytes: &[u8], mut see: impl FnMut(&[u8])) -> usize {
    let mut start = 0;
    while let Some(at) = memmem::find(&bytes[start..], b"\r\n\r\n") {
        let head = &bytes[start..start + at + 4];
        let end = start + head.len() + content_bytes(head);
        if end > bytes.len() {
            break;
        }
        see(head);
        start = end;
    }
    start
}

/// How much content comes behind a head; only POST has some.
fn content_bytes(head: &[u8]) -> usize {
    const NAME: &[u8] = b"content-length:";
    if !head.starts_with(b"POST") {
        return 0;
    }
    let length = |line: &[u8]| {
        let (name, value) = line.split_at_checked(NAME.len())?;
        let value = name.eq_ignore_ascii_case(NAME).then(|| value.trim_ascii())?;
        std::str::from_utf8(value).ok()?.parse().ok()
    };
    head.split(|byte| *byte == b'\n').find_map(length).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_found_in_a_pipeline() {
        let mut heads = Vec::new();
        let bytes = b"GET /a HTTP/1.1\r\nHost: x\r\n\r\nGET /b HTTP/1.1\r\n\r\nGET /c";
        let used = each_head(bytes, |head| heads.push(head.to_vec()));
        assert_eq!(used, bytes.len() - b"GET /c".len());
        assert_eq!(heads, [&b"GET /a HTTP/1.1\r\nHost: x\r\n\r\n"[..], b"GET /b HTTP/1.1\r\n\r\n"]);
    }

    #[test]
    fn the_content_of_a_post_is_no_request() {
        let mut heads = Vec::new();
        let post = b"POST /a HTTP/1.1\r\nContent-length: 12\r\n\r\nGET /\r\n\r\nabc";
        let bytes = [&post[..], b"GET /b HTTP/1.1\r\n\r\n", &post[..post.len() - 1]].concat();
        let used = each_head(&bytes, |head| heads.push(head.to_vec()));
        assert_eq!(used, bytes.len() - (post.len() - 1));
        assert_eq!(heads, [&post[..post.len() - 12], b"GET /b HTTP/1.1\r\n\r\n"]);
    }

    #[test]
    fn the_target_chooses_the_answer() {
        let answers = Answers::of(2);
        let body = |head: &[u8]| {
            let answer = answers.to(head);
            let text = String::from_utf8_lossy(&answer);
            text.split_once("\r\n\r\n").expect("an answer has a head").1.to_owned()
        };
        assert_eq!(body(b"GET /x HTTP/1.1\r\n\r\n").len(), 1024);
        assert_eq!(body(b"GET /img/1m HTTP/1.1\r\n\r\n").len(), 1 << 20);
        assert_eq!(body(b"GET /img/seen HTTP/1.1\r\n\r\n"), "GET /img/seen HTTP/1.1\r\n\r\n");
    }
}

//! One connection of a null server, whichever version of HTTP its client speaks.

use std::collections::VecDeque;
use std::io::{self, BufRead, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use rustls::ServerConnection;

use super::http2::NullHttp2;
use crate::http2::frames::PREFACE;
use crate::poller::Ready;

/// So many reads a turn: who sends faster than it is read holds up no others.
const READS_A_TURN: usize = 4;

/// A request's head may be so long, and its body is read past.
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// A longer body is sent in pieces of this, each when the one before is gone.
const PIECE_BYTES: u64 = 64 * 1024;
static PIECE: [u8; PIECE_BYTES as usize] = [b'x'; PIECE_BYTES as usize];
/// The longest body that may be asked for.
const ASKED_BYTES_MAX: u64 = 1 << 30;

/// What a server answers in HTTP/1.1.
pub(super) struct Answers {
    /// What is usual: with its body, if that is no longer than a piece.
    usual: Vec<u8>,
    body_bytes: u64,
    /// To what is too much.
    refusal: Vec<u8>,
    closes: bool,
}

impl Answers {
    /// With bodies of so many bytes; it ends each connection behind its answer, or does not.
    pub(super) fn new(body_bytes: u64, closes: bool) -> Answers {
        let mut answers = Answers { usual: Vec::new(), body_bytes, refusal: Vec::new(), closes };
        answers.usual = answers.head("200 OK", body_bytes);
        if body_bytes <= PIECE_BYTES {
            answers.usual.extend_from_slice(&PIECE[..body_bytes as usize]);
        }
        answers.refusal = answers.head("503 Service Unavailable", 0);
        answers
    }

    fn head(&self, status: &str, body_bytes: u64) -> Vec<u8> {
        let end = if self.closes { "Connection: close\r\n" } else { "" };
        format!("HTTP/1.1 {status}\r\nContent-Length: {body_bytes}\r\n{end}\r\n").into_bytes()
    }
}

/// An answer that waits for the end of the one before.
enum Answer {
    Refusal,
    To(Asked),
}

/// What a request asks for.
enum Asked {
    Usual,
    /// A body of so many bytes.
    Sized(u64),
    /// The head alone of what has so many bytes, or of what is usual.
    Head(Option<u64>),
}

/// One connection.
pub(super) struct Peer {
    socket: TcpStream,
    tls: Option<Box<ServerConnection>>,
    speech: Speech,
    answers: Arc<Answers>,
    /// What the socket has not taken.
    unsent: Vec<u8>,
    /// Bytes of a body that go behind it.
    body_left: u64,
    /// Answers that go behind that.
    behind: VecDeque<Answer>,
    /// Answers that it waits for.
    pub(super) owed: usize,
    /// It asks no more, and has said so by the farewell of TLS or by the end of what it sends.
    has_left: bool,
    /// There is an end to read.
    has_ended: bool,
    /// There may be more to read than its turn had room for, of which no edge tells.
    pub(super) is_unread: bool,
    /// What it was answered is the last.
    pub(super) is_last: bool,
    pub(super) is_gone: bool,
}

/// What its client speaks.
enum Speech {
    /// Nothing yet.
    Unknown,
    Http1 {
        /// A head that is not whole yet.
        rest: Vec<u8>,
        /// What is left of a request's body.
        body: u64,
        /// What each request asks for that is not answered, oldest first.
        asked: VecDeque<Asked>,
    },
    Http2(Box<NullHttp2>),
}

impl Peer {
    pub(super) fn new(socket: TcpStream, tls: Option<Box<ServerConnection>>, answers: Arc<Answers>) -> Peer {
        Peer {
            socket,
            tls,
            speech: Speech::Unknown,
            answers,
            unsent: Vec::new(),
            body_left: 0,
            behind: VecDeque::new(),
            owed: 0,
            has_left: false,
            has_ended: false,
            is_unread: false,
            is_last: false,
            is_gone: false,
        }
    }

    /// How many requests came. An error: the connection is of no use any more.
    pub(super) fn serve(&mut self, ready: Ready, scratch: &mut [u8]) -> io::Result<usize> {
        self.has_ended |= ready.ended;
        if ready.writable {
            self.flush()?;
        }
        let requests = if ready.readable { self.read(scratch)? } else { 0 };
        self.flush()?;
        Ok(requests)
    }

    /// Reads what is there, or as much of it as a turn may.
    fn read(&mut self, scratch: &mut [u8]) -> io::Result<usize> {
        let mut requests = 0;
        for _ in 0..READS_A_TURN {
            match self.socket.read(scratch) {
                // Whoever has asked and says no more may still want its answers.
                Ok(0) => {
                    self.has_left = true;
                    return Ok(requests);
                }
                Ok(count) => {
                    requests += self.take(&scratch[..count])?;
                    if count < scratch.len() && !self.has_ended {
                        return Ok(requests);
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(requests),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.is_unread = true;
        Ok(requests)
    }

    fn take(&mut self, mut bytes: &[u8]) -> io::Result<usize> {
        let body_bytes = self.answers.body_bytes as usize;
        let Some(mut tls) = self.tls.take() else { return self.speech.take(bytes, body_bytes) };
        let mut requests = 0;
        // What is behind a farewell is nothing, and the library takes none of it.
        while !bytes.is_empty() && !self.has_left {
            tls.read_tls(&mut bytes)?;
            let state = tls.process_new_packets().map_err(io::Error::other)?;
            self.has_left = state.peer_has_closed();
            let mut left = state.plaintext_bytes_to_read();
            while left > 0 {
                let mut reader = tls.reader();
                let plain = reader.fill_buf()?;
                let count = plain.len();
                requests += self.speech.take(plain, body_bytes)?;
                tls.reader().consume(count);
                left -= count;
            }
        }
        self.tls = Some(tls);
        Ok(requests)
    }

    /// Answers the oldest request, or refuses it. [`Peer::flush`] sends it.
    pub(super) fn answer(&mut self, is_served: bool) -> io::Result<()> {
        let asked = match &mut self.speech {
            Speech::Http2(http2) => {
                http2.answer(is_served);
                return Ok(());
            }
            Speech::Http1 { asked, .. } => asked.pop_front(),
            Speech::Unknown => None,
        };
        let asked = asked.unwrap_or(Asked::Usual);
        self.behind.push_back(if is_served { Answer::To(asked) } else { Answer::Refusal });
        self.put_answers()
    }

    /// Puts what may be sent of the answers: up to one whose body is long.
    fn put_answers(&mut self) -> io::Result<()> {
        while self.body_left == 0
            && let Some(answer) = self.behind.pop_front()
        {
            let answers = self.answers.clone();
            match answer {
                Answer::Refusal => self.put(&answers.refusal)?,
                Answer::To(Asked::Usual) => {
                    self.put(&answers.usual)?;
                    self.body_left = if answers.body_bytes > PIECE_BYTES { answers.body_bytes } else { 0 };
                }
                Answer::To(Asked::Sized(bytes)) => {
                    self.put(&answers.head("200 OK", bytes))?;
                    self.body_left = bytes;
                }
                Answer::To(Asked::Head(bytes)) => {
                    self.put(&answers.head("200 OK", bytes.unwrap_or(answers.body_bytes)))?;
                }
            }
        }
        Ok(())
    }

    /// Puts the next piece of a body, and what is behind it. False: there is none.
    fn put_piece(&mut self) -> io::Result<bool> {
        if self.body_left == 0 {
            return Ok(false);
        }
        let bytes = self.body_left.min(PIECE_BYTES);
        self.put(&PIECE[..bytes as usize])?;
        self.body_left -= bytes;
        self.put_answers()?;
        Ok(true)
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.tls {
            Some(tls) => {
                tls.set_buffer_limit(None);
                tls.writer().write_all(bytes)
            }
            None => {
                self.unsent.extend_from_slice(bytes);
                Ok(())
            }
        }
    }

    /// Whether nothing more is to be done here: it asks no more, or was told that the last answer was the last.
    pub(super) fn is_over(&self) -> bool {
        let has_windows = !matches!(&self.speech, Speech::Http2(http2) if !http2.is_sent());
        // Whoever has left opens none.
        let is_answered = self.is_last && has_windows || self.has_left && self.owed == 0;
        is_answered
            && self.body_left == 0
            && self.behind.is_empty()
            && self.unsent.is_empty()
            && !self.tls.as_ref().is_some_and(|tls| tls.wants_write())
    }

    /// Says that it ends, where there is a word for that. Whoever does not hear it is gone.
    pub(super) fn leave(&mut self) {
        if let Speech::Http2(http2) = &mut self.speech {
            http2.leave();
        }
        let (Ok(()) | Err(_)) = self.flush();
        if let Some(tls) = &mut self.tls {
            tls.send_close_notify();
            let (Ok(_) | Err(_)) = tls.write_tls(&mut self.socket);
        }
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        if let Speech::Http2(http2) = &mut self.speech
            && !http2.out.is_empty()
        {
            let mut out = std::mem::take(&mut http2.out);
            self.put(&out)?;
            out.clear();
            if let Speech::Http2(http2) = &mut self.speech {
                http2.out = out;
            }
        }
        loop {
            let written = match &mut self.tls {
                Some(tls) if tls.wants_write() => Some(tls.write_tls(&mut self.socket)),
                None if !self.unsent.is_empty() => Some(self.socket.write(&self.unsent)),
                _ => None,
            };
            let Some(written) = written else {
                match self.put_piece()? {
                    true => continue,
                    false => return Ok(()),
                }
            };
            match written {
                Ok(count) if self.tls.is_none() => drop(self.unsent.drain(..count)),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl Speech {
    /// Requests that end in these bytes.
    fn take(&mut self, bytes: &[u8], body_bytes: usize) -> io::Result<usize> {
        if let Speech::Unknown = self {
            let known = bytes.len().min(PREFACE.len());
            *self = match bytes.len() > 3 && bytes[..known] == PREFACE[..known] {
                true => Speech::Http2(Box::new(NullHttp2::new(body_bytes))),
                false => Speech::Http1 { rest: Vec::new(), body: 0, asked: VecDeque::new() },
            };
        }
        match self {
            Speech::Unknown => Ok(0),
            Speech::Http1 { rest, body, asked } => count(rest, body, asked, bytes),
            Speech::Http2(http2) => http2.feed(bytes).map_err(|_| io::Error::other("no HTTP/2")),
        }
    }
}

/// Requests of HTTP/1.1 that end in these bytes.
fn count(rest: &mut Vec<u8>, body: &mut u64, asked: &mut VecDeque<Asked>, bytes: &[u8]) -> io::Result<usize> {
    let joined;
    let mut bytes = if rest.is_empty() {
        bytes
    } else {
        rest.extend_from_slice(bytes);
        joined = std::mem::take(rest);
        &joined
    };
    let mut requests = 0;
    loop {
        let skipped = (*body).min(bytes.len() as u64);
        bytes = &bytes[skipped as usize..];
        *body -= skipped;
        if *body > 0 {
            return Ok(requests);
        }
        let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { break };
        *body = content_length(&bytes[..end]);
        asked.push_back(Asked::by(&bytes[..end]));
        bytes = &bytes[end + 4..];
        requests += 1;
    }
    if bytes.len() > HEAD_BYTES_MAX {
        return Err(io::Error::other("a head without an end"));
    }
    rest.extend_from_slice(bytes);
    Ok(requests)
}

impl Asked {
    /// `GET /bytes/1024 HTTP/1.1`
    fn by(head: &[u8]) -> Asked {
        let mut words = head.split(|byte| *byte == b' ');
        let is_head = words.next() == Some(b"HEAD");
        let digits =
            words.next().and_then(|target| std::str::from_utf8(target.strip_prefix(b"/bytes/")?).ok());
        let bytes = digits.and_then(|digits| digits.parse().ok()).filter(|bytes| *bytes <= ASKED_BYTES_MAX);
        match (is_head, bytes) {
            (true, bytes) => Asked::Head(bytes),
            (false, Some(bytes)) => Asked::Sized(bytes),
            (false, None) => Asked::Usual,
        }
    }
}

fn content_length(head: &[u8]) -> u64 {
    const NAME: &[u8] = b"content-length:";
    let length = |line: &[u8]| {
        let (name, value) = line.split_at_checked(NAME.len())?;
        let value = name.eq_ignore_ascii_case(NAME).then(|| value.trim_ascii())?;
        std::str::from_utf8(value).ok()?.parse().ok()
    };
    head.split(|byte| *byte == b'\n').find_map(length).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;
    use crate::poller::Poller;

    #[test]
    fn who_sends_much_is_not_read_to_the_end_in_a_turn() {
        const PIECE: usize = 100;
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
        let mut client = TcpStream::connect(listener.local_addr().expect("it listens")).expect("loopback");
        let (socket, _) = listener.accept().expect("it comes");
        socket.set_nonblocking(true).expect("a socket");
        let mut poller = Poller::new().expect("descriptors");
        poller.watch(&socket, 0).expect("epoll");
        let mut ready = Vec::new();
        while ready.is_empty() {
            poller.wait(0, 1_000_000_000, &mut ready).expect("epoll");
        }
        let heard = ready[0].unread();
        let body = 3 * READS_A_TURN * PIECE;
        let head = format!("POST / HTTP/1.1\r\nContent-Length: {body}\r\n\r\n");
        let request = [head.as_bytes(), &vec![b'x'; body]].concat();
        client.write_all(&request).expect("there is room");
        while socket.peek(&mut [0; 10_000]).unwrap_or(0) < request.len() {
            std::thread::yield_now();
        }
        let mut peer = Peer::new(socket, None, Arc::new(Answers::new(0, false)));
        let (mut turns, mut requests) = (0, 0);
        while turns == 0 || std::mem::take(&mut peer.is_unread) {
            turns += 1;
            requests += peer.serve(heard, &mut [0; PIECE]).expect("a request");
        }
        assert_eq!((turns, requests), (4, 1));
    }
}

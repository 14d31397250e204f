//! One connection of a null server, whichever version of HTTP its client speaks.

use std::io::{self, BufRead, ErrorKind, Read, Write};
use std::net::TcpStream;

use rustls::ServerConnection;

use super::http2::NullHttp2;
use crate::http2::frames::PREFACE;
use crate::poller::Ready;

/// A request's head may be so long, and its body is read past.
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// One connection.
pub(super) struct Peer {
    socket: TcpStream,
    tls: Option<Box<ServerConnection>>,
    speech: Speech,
    body_bytes: usize,
    /// What the socket has not taken.
    unsent: Vec<u8>,
    /// Answers that it waits for.
    pub(super) owed: usize,
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
    },
    Http2(Box<NullHttp2>),
}

impl Peer {
    /// Its answers in HTTP/2 have so many bytes.
    pub(super) fn new(socket: TcpStream, tls: Option<Box<ServerConnection>>, body_bytes: usize) -> Peer {
        Peer {
            socket,
            tls,
            speech: Speech::Unknown,
            body_bytes,
            unsent: Vec::new(),
            owed: 0,
            is_last: false,
            is_gone: false,
        }
    }

    /// How many requests came. An error: the connection is at its end.
    pub(super) fn serve(&mut self, ready: Ready, scratch: &mut [u8]) -> io::Result<usize> {
        if ready.writable {
            self.flush()?;
        }
        let requests = if ready.readable { self.read(ready.ended, scratch)? } else { 0 };
        self.flush()?;
        Ok(requests)
    }

    fn read(&mut self, ended: bool, scratch: &mut [u8]) -> io::Result<usize> {
        let mut requests = 0;
        loop {
            match self.socket.read(scratch) {
                // Whoever has asked and says no more may still want its answers.
                Ok(0) if requests + self.owed > 0 => return Ok(requests),
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(count) => {
                    requests += self.take(&scratch[..count])?;
                    if count < scratch.len() && !ended {
                        return Ok(requests);
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(requests),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn take(&mut self, mut bytes: &[u8]) -> io::Result<usize> {
        let Some(mut tls) = self.tls.take() else { return self.speech.take(bytes, self.body_bytes) };
        let mut requests = 0;
        while !bytes.is_empty() {
            tls.read_tls(&mut bytes)?;
            let mut left = tls.process_new_packets().map_err(io::Error::other)?.plaintext_bytes_to_read();
            while left > 0 {
                let mut reader = tls.reader();
                let plain = reader.fill_buf()?;
                let count = plain.len();
                requests += self.speech.take(plain, self.body_bytes)?;
                tls.reader().consume(count);
                left -= count;
            }
        }
        self.tls = Some(tls);
        Ok(requests)
    }

    /// Answers the oldest request, with `answer` where HTTP/1.1 is spoken. [`Peer::flush`] sends it.
    pub(super) fn answer(&mut self, answer: &[u8], is_served: bool) -> io::Result<()> {
        match &mut self.speech {
            Speech::Http2(http2) => {
                http2.answer(is_served);
                Ok(())
            }
            _ => self.put(answer),
        }
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

    /// Whether nothing is left to be sent.
    pub(super) fn is_sent(&self) -> bool {
        let is_said = !matches!(&self.speech, Speech::Http2(http2) if !http2.is_sent());
        is_said && self.unsent.is_empty() && !self.tls.as_ref().is_some_and(|tls| tls.wants_write())
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
                Some(tls) if tls.wants_write() => tls.write_tls(&mut self.socket),
                None if !self.unsent.is_empty() => self.socket.write(&self.unsent),
                _ => return Ok(()),
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
                false => Speech::Http1 { rest: Vec::new(), body: 0 },
            };
        }
        match self {
            Speech::Unknown => Ok(0),
            Speech::Http1 { rest, body } => count(rest, body, bytes),
            Speech::Http2(http2) => http2.feed(bytes).map_err(|_| io::Error::other("no HTTP/2")),
        }
    }
}

/// Requests of HTTP/1.1 that end in these bytes.
fn count(rest: &mut Vec<u8>, body: &mut u64, bytes: &[u8]) -> io::Result<usize> {
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
        bytes = &bytes[end + 4..];
        requests += 1;
    }
    if bytes.len() > HEAD_BYTES_MAX {
        return Err(io::Error::other("a head without an end"));
    }
    rest.extend_from_slice(bytes);
    Ok(requests)
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

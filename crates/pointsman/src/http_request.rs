//! A request of HTTP/1.1 on a connection of its own, and its answer: to a switch that runs, and to a collector of traces.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use pointsman_http::{AnswerTo, Framing, HeadLimits, ResponseHead};

/// The longest head of an answer.
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum Unanswered {
    /// The connection failed.
    Io(io::Error),
    /// What came is none of HTTP, or not whole.
    Foreign,
}

impl From<io::Error> for Unanswered {
    fn from(error: io::Error) -> Unanswered {
        Unanswered::Io(error)
    }
}

/// Connects to the first of these addresses that lets us in, each within that time.
pub(crate) fn connect(addresses: &[SocketAddr], max: Duration) -> io::Result<TcpStream> {
    let mut fault = io::ErrorKind::NotFound.into();
    for address in addresses {
        match TcpStream::connect_timeout(address, max) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Err(error) => fault = error,
        }
    }
    Err(fault)
}

/// Sends a request, in pieces.
pub(crate) fn send<S: Read + Write>(mut stream: S, request: &[&[u8]]) -> io::Result<Answer<S>> {
    for piece in request {
        stream.write_all(piece)?;
    }
    stream.flush()?;
    Ok(Answer::from(stream))
}

/// An answer on its way.
pub(crate) struct Answer<R> {
    from: R,
    received: Vec<u8>,
    head: ResponseHead,
}

impl<R: Read> Answer<R> {
    fn from(from: R) -> Self {
        Answer { from, received: Vec::new(), head: ResponseHead::default() }
    }

    /// Reads its head, behind those of interim ones.
    pub(crate) fn status(&mut self) -> Result<u16, Unanswered> {
        let limits = HeadLimits { head_bytes_max: HEAD_BYTES_MAX, ..HeadLimits::default() };
        loop {
            match self.head.parse(&self.received, AnswerTo::Other, &limits) {
                Ok(true) if self.head.status() >= 200 => return Ok(self.head.status()),
                // Another one follows.
                Ok(true) => drop(self.received.drain(..self.head.head_bytes())),
                Ok(false) => self.read()?,
                Err(_) => return Err(Unanswered::Foreign),
            }
        }
    }

    /// Reads its body, behind the [head](Answer::status): as many bytes as that says, and at most so many.
    pub(crate) fn body(mut self, bytes_max: usize) -> Result<Vec<u8>, Unanswered> {
        let length = match self.head.framing() {
            Framing::Length(bytes) if bytes <= bytes_max as u64 => bytes as usize,
            _ => return Err(Unanswered::Foreign),
        };
        let end = self.head.head_bytes() + length;
        while self.received.len() < end {
            self.read()?;
        }
        match self.received.len() == end {
            true => Ok(self.received.split_off(end - length)),
            false => Err(Unanswered::Foreign),
        }
    }

    fn read(&mut self) -> Result<(), Unanswered> {
        let mut piece = [0; 16 * 1024];
        match self.from.read(&mut piece)? {
            0 => Err(Unanswered::Foreign),
            count => {
                self.received.extend_from_slice(&piece[..count]);
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As it comes byte by byte.
    struct Slowly<'a>(&'a [u8]);

    impl Read for Slowly<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            self.0.read(&mut into[..1])
        }
    }

    fn said(from: impl Read) -> String {
        let mut answer = Answer::from(from);
        let whole = answer.status().and_then(|status| Ok((status, answer.body(3)?)));
        match whole {
            Ok((status, body)) => format!("{status} {}", body.escape_ascii()),
            Err(Unanswered::Foreign) => "foreign".to_owned(),
            Err(Unanswered::Io(error)) => error.to_string(),
        }
    }

    #[test]
    fn only_whole_messages_are_answers() {
        for (text, expected) in [
            ("HTTP/1.1 422 No\r\nContent-Length: 2\r\n\r\n{}", "422 {}"),
            ("HTTP/1.1 100 Go on\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", "200 x"),
            ("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n{}", "foreign"),
            ("HTTP/1.1 200 OK\r\nContent-Len", "foreign"),
            ("", "foreign"),
            ("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n{}{}", "foreign"),
            ("HTTP/1.1 204 None\r\n\r\n", "foreign"),
            ("SSH-2.0-x\r\n", "foreign"),
        ] {
            assert_eq!(said(text.as_bytes()), expected, "{text:?}");
            assert_eq!(said(Slowly(text.as_bytes())), expected, "{text:?}");
        }
        let longer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}{}";
        assert_eq!(said(longer.as_bytes()), "foreign");
        let endless = format!("HTTP/1.1 200 OK\r\nX: {}", "x".repeat(HEAD_BYTES_MAX));
        assert_eq!(said(endless.as_bytes()), "foreign");
    }
}

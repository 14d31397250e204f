//! A client that speaks HTTP/1.1 by hand and looks at what it gets.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

/// Longer than every limit of the switch: whoever waits so long waits for nothing.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// What a client says is wrong.
pub(super) type Outcome<T> = Result<T, String>;

/// A connection to the switch.
pub(super) struct Client(BufReader<TcpStream>);

/// A whole answer.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
    pub(super) closes: bool,
}

/// A request with nothing special in it.
pub(super) fn request(target: &str) -> Vec<u8> {
    format!("GET {target} HTTP/1.1\r\nHost: soak.example\r\nAccept: */*\r\n\r\n").into_bytes()
}

impl Client {
    pub(super) fn connect(port: u16) -> Outcome<Self> {
        let connected = TcpStream::connect(("127.0.0.1", port)).and_then(|stream| {
            stream.set_read_timeout(Some(WAIT_MAX))?;
            stream.set_write_timeout(Some(WAIT_MAX))?;
            stream.set_nodelay(true)?;
            Ok(stream)
        });
        connected.map(|stream| Self(BufReader::new(stream))).map_err(|error| format!("connecting: {error}"))
    }

    pub(super) fn send(&mut self, bytes: &[u8]) -> Outcome<()> {
        self.0.get_mut().write_all(bytes).map_err(|error| format!("sending: {error}"))
    }

    /// Sends what the other side may refuse to take.
    pub(super) fn try_send(&mut self, bytes: &[u8]) {
        drop(self.0.get_mut().write_all(bytes));
    }

    pub(super) fn no_more(&self) {
        drop(self.0.get_ref().shutdown(Shutdown::Write));
    }

    pub(super) fn get(&mut self, target: &str) -> Outcome<Answer> {
        self.send(&request(target))?;
        self.answer().map_err(|problem| format!("{target}: {problem}"))
    }

    /// Waits until something has come.
    pub(super) fn wait_for_bytes(&mut self) -> Outcome<()> {
        match self.0.fill_buf() {
            Ok([]) => Err("the connection ended before the answer".to_owned()),
            Ok(_) => Ok(()),
            Err(error) => Err(format!("waiting: {error}")),
        }
    }

    /// Takes a few bytes and leaves the others.
    pub(super) fn read_some(&mut self, bytes: usize) -> Outcome<usize> {
        let mut some = vec![0; bytes];
        self.0.read(&mut some).map_err(|error| format!("reading: {error}"))
    }

    /// Whatever comes until the other side closes; an error is an end like any other.
    pub(super) fn rest(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        drop(self.0.read_to_end(&mut rest));
        rest
    }

    /// The next answer that is not interim.
    pub(super) fn answer(&mut self) -> Outcome<Answer> {
        loop {
            let answer = self.one_answer()?;
            if answer.status >= 200 {
                return Ok(answer);
            }
        }
    }

    fn one_answer(&mut self) -> Outcome<Answer> {
        let first = self.line()?;
        let status = first.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status: u16 = status.ok_or_else(|| format!("the status line is `{}`", first.escape_debug()))?;
        let (mut length, mut is_chunked, mut closes) = (None, false, false);
        loop {
            let line = self.line()?.to_ascii_lowercase();
            match line.split_once(':').map(|(name, value)| (name, value.trim())) {
                None if line.is_empty() => break,
                Some(("content-length", value)) => length = value.parse::<u64>().ok(),
                Some(("transfer-encoding", value)) => is_chunked = value == "chunked",
                Some(("connection", value)) => closes = value == "close",
                _ => {}
            }
        }
        let body = match (status, is_chunked, length) {
            (100..200 | 204 | 304, ..) => Vec::new(),
            (_, true, _) => self.chunks()?,
            (_, false, Some(length)) => self.exactly(length)?,
            (_, false, None) => {
                closes = true;
                let mut body = Vec::new();
                self.0.read_to_end(&mut body).map_err(|error| format!("reading to the end: {error}"))?;
                body
            }
        };
        Ok(Answer { status, body, closes })
    }

    fn line(&mut self) -> Outcome<String> {
        let mut line = Vec::new();
        self.0.read_until(b'\n', &mut line).map_err(|error| format!("reading a head: {error}"))?;
        match line.strip_suffix(b"\r\n") {
            Some(line) => Ok(String::from_utf8_lossy(line).into_owned()),
            None => Err(format!("the head ended after `{}`", line.escape_ascii())),
        }
    }

    fn exactly(&mut self, length: u64) -> Outcome<Vec<u8>> {
        let mut body = Vec::new();
        let taken = (&mut self.0).take(length).read_to_end(&mut body);
        match taken {
            Ok(taken) if taken as u64 == length => Ok(body),
            Ok(taken) => Err(format!("the body ended after {taken} of {length} bytes")),
            Err(error) => Err(format!("reading a body: {error}")),
        }
    }

    fn chunks(&mut self) -> Outcome<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let size = self.line()?;
            let bytes = u64::from_str_radix(&size, 16).map_err(|_| format!("a chunk's size is `{size}`"))?;
            body.extend(self.exactly(bytes)?);
            if !self.line()?.is_empty() {
                return Err("a chunk is longer than its size".to_owned());
            }
            if bytes == 0 {
                return Ok(body);
            }
        }
    }
}

impl Answer {
    pub(super) fn expect(&self, status: u16, body: &[u8]) -> Outcome<()> {
        if self.status != status {
            return Err(format!("status {} in place of {status}", self.status));
        }
        match self.body == body {
            true => Ok(()),
            false => Err(format!("{} bytes of another body in place of {}", self.body.len(), body.len())),
        }
    }

    /// A body that is one byte over and over.
    pub(super) fn expect_filled(&self, status: u16, byte: u8, length: usize) -> Outcome<()> {
        if self.status != status {
            return Err(format!("status {} in place of {status}", self.status));
        }
        match self.body.len() == length && self.body.iter().all(|there| *there == byte) {
            true => Ok(()),
            false => Err(format!("{} bytes, or others, in place of {length}", self.body.len())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_answer_is_seen() {
        let answer = Answer { status: 200, body: b"xxx".to_vec(), closes: false };
        assert!(answer.expect(200, b"xxx").is_ok() && answer.expect_filled(200, b'x', 3).is_ok());
        assert!(answer.expect(200, b"xxy").is_err() && answer.expect(404, b"xxx").is_err());
        assert!(answer.expect_filled(200, b'x', 4).is_err() && answer.expect_filled(200, b'y', 3).is_err());
    }
}

//! Connections to the switch and to readers: one request at a time, its response read whole.

use std::collections::HashMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

/// How long a response may take; machines that run this are busy.
const RESPONSE_MAX: Duration = Duration::from_secs(20);
const RESPONSE_BYTES_MAX: usize = 1 << 20;

/// A response whose body is complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Response {
    pub(super) status: u16,
    /// Whether a reader wrote it, and not the switch.
    pub(super) is_reading: bool,
    pub(super) body: Vec<u8>,
    closes: bool,
}

/// Connections of one thread that are kept between requests, by port.
#[derive(Default)]
pub(super) struct Connections(HashMap<u16, TcpStream>);

impl Connections {
    /// Sends a request that is framed as one and reads its response; `None` where the connection was closed instead.
    pub(super) fn one(&mut self, port: u16, request: &[u8]) -> io::Result<Option<Response>> {
        if let Some(mut stream) = self.0.remove(&port) {
            // The other side may have closed it since.
            if let Ok(Some(response)) = exchanged(&mut stream, request) {
                return Ok(Some(self.kept(port, stream, response)));
            }
        }
        let mut stream = connected(port)?;
        let response = exchanged(&mut stream, request)?;
        Ok(response.map(|response| self.kept(port, stream, response)))
    }

    /// Sends bytes that may be several requests or none, says that no more come, and reads all responses.
    pub(super) fn all(port: u16, bytes: &[u8]) -> io::Result<Vec<Response>> {
        let mut stream = connected(port)?;
        // What is refused early is not taken to its end.
        if stream.write_all(bytes).is_ok() {
            drop(stream.shutdown(Shutdown::Write));
        }
        let (mut responses, mut buffer) = (Vec::new(), Vec::new());
        while let Some(response) = response(&mut stream, &mut buffer)? {
            let closes = response.closes;
            responses.push(response);
            if closes {
                break;
            }
        }
        Ok(responses)
    }

    fn kept(&mut self, port: u16, stream: TcpStream, response: Response) -> Response {
        if !response.closes {
            self.0.insert(port, stream);
        }
        response
    }
}

fn connected(port: u16) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(RESPONSE_MAX))?;
    stream.set_write_timeout(Some(RESPONSE_MAX))?;
    Ok(stream)
}

fn exchanged(stream: &mut TcpStream, request: &[u8]) -> io::Result<Option<Response>> {
    // What is refused early is not taken to its end; the response is there all the same.
    let written = stream.write_all(request);
    let mut buffer = Vec::new();
    match response(stream, &mut buffer) {
        Ok(Some(response)) => {
            // Bytes behind it belong to no request: the connection is out of step.
            let closes = response.closes || written.is_err() || !buffer.is_empty();
            Ok(Some(Response { closes, ..response }))
        }
        other => other,
    }
}

/// The next response that is no interim one; bytes behind it stay in the buffer.
fn response(stream: &mut impl Read, buffer: &mut Vec<u8>) -> io::Result<Option<Response>> {
    loop {
        let Some(end) = head_end(stream, buffer)? else { return Ok(None) };
        let head = String::from_utf8_lossy(&buffer[..end]).to_ascii_lowercase();
        buffer.drain(..end);
        let status: u16 =
            head.get(9..12).and_then(|digits| digits.parse().ok()).ok_or(ErrorKind::InvalidData)?;
        if status < 200 {
            continue;
        }
        let field = |name: &str| {
            head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':').map(str::trim))
        };
        let has_end = field("content-length").is_some() || field("transfer-encoding").is_some();
        let body = if status == 204 || status == 304 {
            Vec::new()
        } else if field("transfer-encoding").is_some() {
            chunks(stream, buffer)?
        } else {
            let length = field("content-length").map_or(RESPONSE_BYTES_MAX, |text| text.parse().unwrap_or(0));
            taken(stream, buffer, length.min(RESPONSE_BYTES_MAX), has_end)?
        };
        let is_kept = head.starts_with("http/1.1") && field("connection") != Some("close");
        let closes = !is_kept || !(has_end || status == 204 || status == 304);
        return Ok(Some(Response { status, is_reading: field("x-reader").is_some(), body, closes }));
    }
}

fn head_end(stream: &mut impl Read, buffer: &mut Vec<u8>) -> io::Result<Option<usize>> {
    loop {
        if let Some(at) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            return Ok(Some(at + 4));
        }
        match more(stream, buffer) {
            Ok(true) => {}
            Ok(false) => return Ok(None),
            // A close with bytes of ours unread.
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return Ok(None),
            Err(error) => return Err(error),
        }
    }
}

/// Reads once; false at the end.
fn more(stream: &mut impl Read, buffer: &mut Vec<u8>) -> io::Result<bool> {
    let mut piece = [0; 16384];
    let count = stream.read(&mut piece)?;
    buffer.extend_from_slice(&piece[..count]);
    if buffer.len() > 2 * RESPONSE_BYTES_MAX { Err(ErrorKind::InvalidData.into()) } else { Ok(count > 0) }
}

fn taken(
    stream: &mut impl Read,
    buffer: &mut Vec<u8>,
    length: usize,
    must_come: bool,
) -> io::Result<Vec<u8>> {
    while buffer.len() < length {
        if !more(stream, buffer)? {
            if must_come {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            break;
        }
    }
    Ok(buffer.drain(..length.min(buffer.len())).collect())
}

fn chunks(stream: &mut impl Read, buffer: &mut Vec<u8>) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let line = loop {
            if let Some(at) = buffer.windows(2).position(|window| window == b"\r\n") {
                break buffer.drain(..at + 2).collect::<Vec<u8>>();
            }
            if !more(stream, buffer)? {
                return Err(ErrorKind::UnexpectedEof.into());
            }
        };
        let digits = String::from_utf8_lossy(&line).trim().to_owned();
        let size = usize::from_str_radix(&digits, 16).map_err(|_| ErrorKind::InvalidData)?;
        if size > RESPONSE_BYTES_MAX || body.len() > RESPONSE_BYTES_MAX {
            return Err(ErrorKind::InvalidData.into());
        }
        // Trailers are none of a reader's.
        let mut chunk = taken(stream, buffer, size + 2, true)?;
        if size == 0 {
            return Ok(body);
        }
        chunk.truncate(size);
        body.extend(chunk);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<Response> {
        let (mut stream, mut buffer, mut all) = (text.as_bytes(), Vec::new(), Vec::new());
        while let Ok(Some(response)) = response(&mut stream, &mut buffer) {
            all.push(response);
        }
        all
    }

    #[test]
    fn responses_are_told_apart() {
        let text = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nX-Reader: go\r\nContent-Length: 2\r\n\r\nabHTTP/1.1 403 Forbidden\r\n\
                    Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
        let all = read(text);
        let seen: Vec<_> =
            all.iter().map(|one| (one.status, one.is_reading, one.body.as_slice(), one.closes)).collect();
        assert_eq!(seen, [(200, true, &b"ab"[..], false), (403, false, &b"abc"[..], true)]);
        assert_eq!(read("HTTP/1.1 200 OK\r\n\r\nab")[0].body, b"ab");
        assert_eq!(read("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab"), []);
    }
}

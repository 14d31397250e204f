//! A request as bytes in parts: what is sent, cut down and kept in files.

use std::fmt::Write;

/// How the end of a body is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    Length,
    Chunked {
        /// Bytes of each chunk.
        size: usize,
        /// Extension of each chunk's size line, with its semicolon.
        extension: Vec<u8>,
        trailers: Vec<Vec<u8>>,
    },
}

/// Everything that goes over the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Request {
    /// Request line without its end.
    pub(super) start: Vec<u8>,
    /// Field lines without their ends; those of the framing are not among them.
    pub(super) lines: Vec<Vec<u8>>,
    pub(super) body: Option<Vec<u8>>,
    pub(super) framing: Framing,
}

impl Request {
    /// The bytes, with a framing that fits the body.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.start.clone();
        bytes.extend_from_slice(b"\r\n");
        for line in &self.lines {
            bytes.extend_from_slice(line);
            bytes.extend_from_slice(b"\r\n");
        }
        let Some(body) = &self.body else {
            bytes.extend_from_slice(b"\r\n");
            return bytes;
        };
        match &self.framing {
            Framing::Length => {
                bytes.extend_from_slice(format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes());
                bytes.extend_from_slice(body);
            }
            Framing::Chunked { size, extension, trailers } => {
                bytes.extend_from_slice(b"Transfer-Encoding: chunked\r\n\r\n");
                for chunk in body.chunks((*size).max(1)) {
                    bytes.extend_from_slice(format!("{:x}", chunk.len()).as_bytes());
                    bytes.extend_from_slice(extension);
                    bytes.extend_from_slice(b"\r\n");
                    bytes.extend_from_slice(chunk);
                    bytes.extend_from_slice(b"\r\n");
                }
                bytes.extend_from_slice(b"0\r\n");
                for trailer in trailers {
                    bytes.extend_from_slice(trailer);
                    bytes.extend_from_slice(b"\r\n");
                }
                bytes.extend_from_slice(b"\r\n");
            }
        }
        bytes
    }

    /// Whether bytes of the head may end it early, or make two requests of it: a kept connection would be out of step.
    pub(super) fn needs_own_connection(&self) -> bool {
        let trailers: &[Vec<u8>] = match &self.framing {
            Framing::Length => &[],
            Framing::Chunked { trailers, .. } => trailers,
        };
        let has_line_end = |line: &Vec<u8>| line.is_empty() || line.contains(&b'\r') || line.contains(&b'\n');
        let frames = |line: &Vec<u8>| {
            let name: Vec<u8> = line.iter().take(20).map(u8::to_ascii_lowercase).collect();
            [&b"content-l"[..], b"transfer-", b"connection", b"upgrade", b"expect"]
                .iter()
                .any(|known| name.windows(known.len()).any(|window| window == *known))
        };
        has_line_end(&self.start)
            || self.lines.iter().chain(trailers).any(|line| has_line_end(line) || frames(line))
            || matches!(&self.framing, Framing::Chunked { extension, .. } if extension.contains(&b'\n'))
    }
}

/// Text of bytes for people: one line for each line of a head, everything but printable ASCII escaped.
pub(super) fn escaped(bytes: &[u8]) -> String {
    let mut text = String::new();
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'\r' => text.push_str("\\r"),
            b'\n' => text.push_str(if at + 1 == bytes.len() { "\\n" } else { "\\n\n" }),
            b'\\' => text.push_str("\\\\"),
            b' '..=b'~' => text.push(char::from(*byte)),
            _ => {
                // Memory takes all of it.
                let (Ok(()) | Err(_)) = write!(text, "\\x{byte:02x}");
            }
        }
    }
    text
}

/// The bytes again; `None` where an escape is not one of ours.
pub(super) fn unescaped(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut rest = text.bytes().filter(|byte| *byte != b'\n');
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        bytes.push(match rest.next()? {
            b'r' => b'\r',
            b'n' => b'\n',
            b'\\' => b'\\',
            b'x' => {
                let digits = [rest.next()?, rest.next()?];
                u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
            }
            _ => return None,
        });
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(framing: Framing) -> Request {
        let lines = vec![b"Host: a".to_vec()];
        Request { start: b"POST / HTTP/1.1".to_vec(), lines, body: Some(b"abcde".to_vec()), framing }
    }

    #[test]
    fn the_framing_fits_the_body() {
        let length = request(Framing::Length);
        assert_eq!(length.bytes(), b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nabcde");
        let chunked = request(Framing::Chunked {
            size: 4,
            extension: b";a".to_vec(),
            trailers: vec![b"x-role: root".to_vec()],
        });
        let text = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\
                    4;a\r\nabcd\r\n1;a\r\ne\r\n0\r\nx-role: root\r\n\r\n";
        assert_eq!(chunked.bytes(), text.as_bytes());
    }

    #[test]
    fn a_line_end_in_a_field_takes_a_connection_of_its_own() {
        let mut request = request(Framing::Length);
        assert!(!request.needs_own_connection());
        request.lines.push(b"x: a\r\n b".to_vec());
        assert!(request.needs_own_connection());
    }

    #[test]
    fn bytes_come_back_from_their_text() {
        let bytes: Vec<u8> = (0..=255).chain(*b"\r\nx\\").collect();
        assert_eq!(unescaped(&escaped(&bytes)), Some(bytes));
        assert_eq!(unescaped("\\q"), None);
        assert_eq!(unescaped("\\x4"), None);
    }
}

//! The head of an HTTP/1.1 answer as the fields of a stream.

use http::{Response, StatusCode};

use crate::fields::read_lines;

/// An answer's head, read from the start of `bytes`, and how many of them it is. It is whole and well-formed, or it
/// would not have come here.
pub(crate) fn read_head(bytes: &[u8]) -> Option<(Response<()>, usize)> {
    let end = memchr::memmem::find(bytes, b"\r\n\r\n")? + b"\r\n\r\n".len();
    let status = StatusCode::from_bytes(bytes.get("HTTP/1.1 ".len()..)?.get(..3)?).ok()?;
    let first_line = memchr::memchr(b'\n', bytes)? + 1;
    let mut answer = Response::new(());
    *answer.status_mut() = status;
    *answer.headers_mut() = read_lines(&bytes[first_line..end - b"\r\n".len()])?;
    Some((answer, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read() {
        let bytes = b"HTTP/1.1 200 OK\r\nServer: x\r\nVary:\ta,  b \r\nConnection: close\r\nA:\r\nvary: c\r\n\r\nbody";
        let (answer, used) = read_head(bytes).expect("a head");
        assert_eq!((answer.status().as_u16(), &bytes[used..]), (200, &b"body"[..]));
        let lines: Vec<_> = answer
            .headers()
            .iter()
            .map(|(name, value)| format!("{name}={}", value.to_str().expect("text")))
            .collect();
        assert_eq!(lines, ["server=x", "vary=a,  b", "vary=c", "a="]);
        let (answer, used) = read_head(b"HTTP/1.1 204 \r\n\r\n").expect("a head");
        assert_eq!((answer.status().as_u16(), answer.headers().len(), used), (204, 0, 17));
    }

    #[test]
    fn what_is_no_head_is_none() {
        for bytes in ["", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 2x0 OK\r\n\r\n", "HTTP/1.1 200 OK\r\nab\r\n\r\n"] {
            assert!(read_head(bytes.as_bytes()).is_none(), "{bytes:?}");
        }
    }
}

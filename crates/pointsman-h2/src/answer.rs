//! The head of an HTTP/1.1 answer as the fields of a stream.

use bytes::Bytes;
use http::header::{HeaderName, HeaderValue};
use http::{HeaderMap, Response, StatusCode};

/// An answer's head, read from the start of `bytes`, and how many of them it is.
///
/// It is whole and well-formed, or it would not have come here; fields that are about a connection are left out (RFC
/// 9113 section 8.2.2).
pub(crate) fn read_head(bytes: &[u8]) -> Option<(Response<()>, usize)> {
    let end = memchr::memmem::find(bytes, b"\r\n\r\n")? + b"\r\n\r\n".len();
    let status = StatusCode::from_bytes(bytes.get("HTTP/1.1 ".len()..)?.get(..3)?).ok()?;
    let first_line = memchr::memchr(b'\n', bytes)? + 1;
    let mut answer = Response::new(());
    *answer.status_mut() = status;
    *answer.headers_mut() = fields(&bytes[first_line..end - b"\r\n".len()])?;
    Some((answer, end))
}

/// Whole lines as fields.
pub(crate) fn fields(lines: &[u8]) -> Option<HeaderMap> {
    // One piece of memory for all values.
    let shared = Bytes::copy_from_slice(lines);
    let mut fields = HeaderMap::with_capacity(memchr::memchr_iter(b'\n', lines).count());
    let mut start = 0;
    while start < lines.len() {
        let end = start + memchr::memchr(b'\n', &lines[start..])?;
        let line = lines[start..end].strip_suffix(b"\r")?;
        let colon = memchr::memchr(b':', line)?;
        let value = &line[colon + 1..];
        let from = start + colon + 1 + value.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        let to = start + line.trim_ascii_end().len();
        start = end + 1;
        let name = &line[..colon];
        if is_about_connection(name) {
            continue;
        }
        let name = HeaderName::from_bytes(name).ok()?;
        let value = HeaderValue::from_maybe_shared(shared.slice(from..to.max(from))).ok()?;
        fields.append(name, value);
    }
    Some(fields)
}

fn is_about_connection(name: &[u8]) -> bool {
    match name.len() {
        7 => name.eq_ignore_ascii_case(b"upgrade"),
        10 => name.eq_ignore_ascii_case(b"connection") || name.eq_ignore_ascii_case(b"keep-alive"),
        16 => name.eq_ignore_ascii_case(b"proxy-connection"),
        17 => name.eq_ignore_ascii_case(b"transfer-encoding"),
        _ => false,
    }
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

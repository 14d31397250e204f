//! Recognition of an HTTP request by its first bytes, on a port that expects another protocol.

use crate::is_token;

/// Longer than any registered method; `UPDATEREDIRECTREF` has 17 bytes.
const METHOD_BYTES_MAX: usize = 24;

/// How many bytes at the start of a connection [`begins_request`] needs at most.
pub const REQUEST_START_BYTES_MAX: usize = METHOD_BYTES_MAX + 2;

/// Whether `received`, the first bytes of a connection, begin an HTTP/1 request line or the preface of HTTP/2. `None`
/// while more bytes must come to tell.
pub fn begins_request(received: &[u8]) -> Option<bool> {
    let start = &received[..received.len().min(REQUEST_START_BYTES_MAX)];
    let method = start.split(|&byte| byte == b' ').next().unwrap_or_default();
    if received.is_empty() {
        return None;
    }
    // The word of the PROXY protocol looks like a method.
    let is_method = is_token(method) && method[0].is_ascii_alphabetic() && method != b"PROXY";
    match start.get(method.len()..) {
        _ if !is_method || method.len() > METHOD_BYTES_MAX => Some(false),
        Some([b' ', target, ..]) => Some(target.is_ascii_graphic()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_and_other_protocols_are_told_apart() {
        let long = [b'A'; METHOD_BYTES_MAX + 1];
        let rows: [(&[u8], Option<bool>); 16] = [
            (b"", None),
            (b"G", None),
            (b"GET", None),
            (b"GET ", None),
            (b"GET /", Some(true)),
            (b"get /x HTTP/1.1\r\n", Some(true)),
            (b"OPTIONS * HTTP/1.1\r\n", Some(true)),
            (b"CONNECT a:443 HTTP/1.1\r\n", Some(true)),
            (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", Some(true)),
            (b"GET  /", Some(false)),
            (b"\x16\x03\x01", Some(false)),
            (b"\x80\x2e\x01", Some(false)),
            (b"SSH-2.0-client\r\n", Some(false)),
            (b"PROXY TCP4 192.0.2.1", Some(false)),
            (&long[1..], None),
            (&long, Some(false)),
        ];
        for (received, expected) in rows {
            assert_eq!(begins_request(received), expected, "{}", received.escape_ascii());
        }
    }
}

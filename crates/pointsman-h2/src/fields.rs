//! Fields of HTTP/2 from lines of HTTP/1.1, and back.

use std::io;

use bytes::Bytes;
use h2::Reason;
use http::HeaderMap;
use http::header::{HeaderName, HeaderValue};

/// Whole lines as fields. Those that are about a connection are left out (RFC 9113 section 8.2.2). `None`: they are
/// no lines.
pub(crate) fn read_lines(lines: &[u8]) -> Option<HeaderMap> {
    // One piece of memory for all values.
    let shared = Bytes::copy_from_slice(lines);
    let mut fields = HeaderMap::with_capacity(memchr::memchr_iter(b'\n', lines).count());
    let mut start = 0;
    while start < lines.len() {
        let end = start + memchr::memchr(b'\n', &lines[start..])?;
        let line = lines[start..end].strip_suffix(b"\r")?;
        let colon = memchr::memchr(b':', line)?;
        let padding = line[colon + 1..].iter().take_while(|byte| is_space(**byte)).count();
        let from = start + colon + 1 + padding;
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

/// Room that fields take as lines.
pub(crate) fn lines_bytes(fields: &HeaderMap) -> usize {
    fields.iter().map(|(name, value)| name.as_str().len() + value.len() + ": \r\n".len()).sum()
}

pub(crate) fn write_line(name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// Whether white space stands at an end of a value, where it may not (RFC 9113 section 8.2.1).
pub(crate) fn is_padded(value: &[u8]) -> bool {
    value.first().is_some_and(|byte| is_space(*byte)) || value.last().is_some_and(|byte| is_space(*byte))
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// What went wrong with a stream, for whoever reads and writes it as bytes. [`io::ErrorKind::ConnectionRefused`]: the
/// other side says that it has not looked at it (RFC 9113 section 8.7). [`io::ErrorKind::InvalidData`]: what it sent
/// on it is malformed.
pub(crate) fn broken(error: h2::Error) -> io::Error {
    if error.is_io() {
        let error = error.into_io().unwrap_or_else(|| io::ErrorKind::BrokenPipe.into());
        return match error.kind() {
            // The connection has ended, and no stream has by that.
            io::ErrorKind::UnexpectedEof => io::Error::new(io::ErrorKind::ConnectionReset, error),
            _ => error,
        };
    }
    // By a GOAWAY that was received only streams end that are behind its last.
    let is_unread = error.is_go_away() || error.reason() == Some(Reason::REFUSED_STREAM);
    let kind = match (error.is_remote(), error.is_reset()) {
        (true, _) if is_unread => io::ErrorKind::ConnectionRefused,
        (false, true) => io::ErrorKind::InvalidData,
        _ => io::ErrorKind::ConnectionReset,
    };
    io::Error::new(kind, error)
}

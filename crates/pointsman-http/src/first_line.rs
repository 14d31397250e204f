//! The first line of a head: one form each, and a limit for each of its parts.
//!
//! It is refused at its first byte that cannot stand there; while it is unfinished nothing is said of it.

use std::ops::Range;

use crate::lines::{line_feed, token};
use crate::sixteen::{up_to_control, up_to_space_or_control};
use crate::{HeadLimits, Refusal, Version};

/// Nearly twice the longest method that is registered, `UPDATEREDIRECTREF`.
const METHOD_BYTES_MAX: usize = 32;

/// A request line (RFC 9112 section 3), as offsets into the buffer it lies in.
pub(crate) struct RequestLine {
    pub(crate) method_end: usize,
    pub(crate) target: Range<usize>,
    pub(crate) version: Version,
    /// Where the field lines start.
    pub(crate) end: usize,
}

/// Reads the request line that begins at `start`.
pub(crate) fn request(
    buffer: &[u8],
    start: usize,
    limits: &HeadLimits,
) -> Result<Option<RequestLine>, Refusal> {
    let message = &buffer[start..];
    let method_bytes = token(&message[..message.len().min(METHOD_BYTES_MAX + 1)]);
    if method_bytes > METHOD_BYTES_MAX {
        return Err(Refusal::MethodTooLong);
    }
    match message.get(method_bytes) {
        None => return Ok(None),
        Some(b' ') if method_bytes > 0 => {}
        Some(_) => return Err(Refusal::Syntax),
    }
    let target_start = method_bytes + 1;
    let target_end = up_to_space_or_control(message, target_start);
    let target_bytes = target_end - target_start;
    if target_bytes > limits.target_bytes_max {
        return Err(Refusal::TargetTooLong);
    }
    match message.get(target_end) {
        None => return Ok(None),
        Some(b' ') if target_bytes > 0 => {}
        Some(_) => return Err(Refusal::Syntax),
    }
    let Some((version, version_bytes)) = version(&message[target_end + 1..])? else { return Ok(None) };
    let line_end = target_end + 1 + version_bytes;
    let Some(end) = line_feed(message, line_end)? else { return Ok(None) };
    Ok(Some(RequestLine {
        method_end: start + method_bytes,
        target: start + target_start..start + target_end,
        version,
        end: start + end,
    }))
}

/// A status line (RFC 9112 section 4).
pub(crate) struct StatusLine {
    pub(crate) status: u16,
    pub(crate) version: Version,
    /// Where the field lines start.
    pub(crate) end: usize,
}

/// Reads the status line at the start. Many servers leave out the space where there is no reason.
pub(crate) fn status(buffer: &[u8]) -> Result<Option<StatusLine>, Refusal> {
    let found = match version(buffer) {
        Err(Refusal::Version) => Err(Refusal::Syntax),
        found => found,
    };
    let Some((version, version_bytes)) = found? else { return Ok(None) };
    let mut code = 0;
    let mut rest = &buffer[version_bytes..];
    for is_part in [|byte| byte == b' ', is_digit, is_digit, is_digit] {
        match rest {
            [] => return Ok(None),
            [byte, behind @ ..] if is_part(*byte) => {
                code = code * 10 + u16::from(*byte & 0xf);
                rest = behind;
            }
            _ => return Err(Refusal::Syntax),
        }
    }
    // Below 100 there is no class that says whether a body follows (RFC 9110 section 15); from 600 on it
    // follows as after any final status.
    if code < 100 {
        return Err(Refusal::Syntax);
    }
    let mut line_end = buffer.len() - rest.len();
    if rest.first() == Some(&b' ') {
        line_end = up_to_control(buffer, line_end);
    }
    let end = line_feed(buffer, line_end)?;
    Ok(end.map(|end| StatusLine { status: code, version, end }))
}

fn is_digit(byte: u8) -> bool {
    byte.is_ascii_digit()
}

/// Reads a version that we speak. One of the same form that we do not is refused as such (RFC 9110
/// section 15.6.6), where it stands before a line's end.
fn version(bytes: &[u8]) -> Result<Option<(Version, usize)>, Refusal> {
    const NAME: &[u8] = b"HTTP/";
    match bytes.first_chunk() {
        Some(b"HTTP/1.1") => return Ok(Some((Version::Http11, b"HTTP/1.1".len()))),
        Some(b"HTTP/1.0") => return Ok(Some((Version::Http10, b"HTTP/1.0".len()))),
        _ => {}
    }
    let name = &bytes[..bytes.len().min(NAME.len())];
    if !NAME.starts_with(name) {
        return Err(Refusal::Syntax);
    }
    match &bytes[name.len()..] {
        [] => Ok(None),
        [major] if is_digit(*major) => Ok(None),
        [major, b'.'] if is_digit(*major) => Ok(None),
        [major, b'.', minor] if is_digit(*major) && is_digit(*minor) => Ok(None),
        [major, b'.', minor, b'\r' | b'\n', ..] if is_digit(*major) && is_digit(*minor) => {
            Err(Refusal::Version)
        }
        _ => Err(Refusal::Syntax),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: HeadLimits = HeadLimits { head_bytes_max: 1000, headers_max: 10, target_bytes_max: 12 };

    /// Whole, the line says what is expected; cut anywhere it is unfinished, or already refused for the same.
    fn check<T: PartialEq + std::fmt::Debug>(
        line: &str,
        expected: &Result<T, Refusal>,
        read: impl Fn(&[u8]) -> Result<Option<T>, Refusal>,
    ) {
        let outcome = read(line.as_bytes()).map(|found| found.expect("it is whole"));
        assert_eq!(outcome, *expected, "{line:?}");
        for cut in 0..line.len() {
            match (read(&line.as_bytes()[..cut]), expected) {
                (Ok(None), _) => {}
                (Err(why), Err(expected)) => assert_eq!(why, *expected, "{line:?} at {cut}"),
                (early, _) => panic!("{line:?} at {cut}: {early:?}"),
            }
        }
    }

    #[test]
    fn request_lines_have_one_form() {
        let read = |line: &[u8]| {
            let found = request(line, 0, &LIMITS)?;
            let part = |range: Range<usize>| String::from_utf8_lossy(&line[range]).into_owned();
            Ok(found.map(|found| {
                assert_eq!(found.end, line.len());
                (part(0..found.method_end), part(found.target), found.version)
            }))
        };
        let whole = |method: &str, target: &str, version| Ok((method.to_owned(), target.to_owned(), version));
        for (line, expected) in [
            ("GET / HTTP/1.1\r\n", whole("GET", "/", Version::Http11)),
            ("X-Y /abcdefghijk HTTP/1.0\r\n", whole("X-Y", "/abcdefghijk", Version::Http10)),
            ("GET /abcdefghijkl HTTP/1.1\r\n", Err(Refusal::TargetTooLong)),
            ("GET / HTTP/1.2\r\n", Err(Refusal::Version)),
            ("GET / HTTP/2.0\n", Err(Refusal::Version)),
            ("GET / HTTP/1.10\r\n", Err(Refusal::Syntax)),
            ("GET / HTTP/01.1\r\n", Err(Refusal::Syntax)),
            ("GET / HTTP/1.1 \r\n", Err(Refusal::Syntax)),
            ("GET / http/1.1\r\n", Err(Refusal::Syntax)),
            ("GET / HTTP/1.1\n", Err(Refusal::BareLineFeed)),
            ("GET / HTTP/1.1\rx", Err(Refusal::Syntax)),
            ("GET  / HTTP/1.1\r\n", Err(Refusal::Syntax)),
            ("GET /  HTTP/1.1\r\n", Err(Refusal::Syntax)),
            ("GET /\tHTTP/1.1\r\n", Err(Refusal::Syntax)),
            ("GET\t/ HTTP/1.1\r\n", Err(Refusal::Syntax)),
            ("GET /\r\n", Err(Refusal::Syntax)),
            ("GET\r\n", Err(Refusal::Syntax)),
            (" GET / HTTP/1.1\r\n", Err(Refusal::Syntax)),
            ("G\u{e9}T / HTTP/1.1\r\n", Err(Refusal::Syntax)),
        ] {
            check(line, &expected, read);
        }
        let long = |bytes| format!("{} / HTTP/1.1\r\n", "M".repeat(bytes));
        check(&long(32), &whole(&"M".repeat(32), "/", Version::Http11), read);
        check(&long(33), &Err(Refusal::MethodTooLong), read);
    }

    #[test]
    fn status_lines_have_one_form() {
        let read = |line: &[u8]| Ok(status(line)?.map(|found| (found.status, found.version, found.end)));
        let whole = |line: &str, code| Ok((code, Version::Http11, line.len()));
        for line in
            ["HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 \r\n", "HTTP/1.1 200\r\n", "HTTP/1.1 200 \t\u{e9} z\r\n"]
        {
            check(line, &whole(line, 200), read);
        }
        check("HTTP/1.1 999 x\r\n", &whole("HTTP/1.1 999 x\r\n", 999), read);
        check("HTTP/1.0 100\r\n", &Ok((100, Version::Http10, 14)), read);
        for line in [
            "HTTP/1.1 099 x\r\n",
            "HTTP/1.1 20 x\r\n",
            "HTTP/1.1 2000 x\r\n",
            "HTTP/1.1  200 OK\r\n",
            "HTTP/1.1 +20 OK\r\n",
            "HTTP/1.1 200OK\r\n",
            "HTTP/1.1 200 O\x01K\r\n",
            "HTTP/1.1 200 OK\rx",
            "HTTP/1.1200 OK\r\n",
            "HTTP/1.10 200 OK\r\n",
            "HTTP/2.0 200 OK\r\n",
            "ICY 200 OK\r\n",
        ] {
            check(line, &Err(Refusal::Syntax), read);
        }
        check("HTTP/1.1 200 OK\n", &Err(Refusal::BareLineFeed), read);
        check("HTTP/1.1 200\n", &Err(Refusal::BareLineFeed), read);
    }
}

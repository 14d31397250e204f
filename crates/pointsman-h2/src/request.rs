//! A stream's request as the head of an HTTP/1.1 message.

use std::hash::{BuildHasher, RandomState};

use base64::prelude::{BASE64_STANDARD, Engine as _};
use h2::ext::Protocol;
use http::header::{CONTENT_LENGTH, COOKIE, HOST, SEC_WEBSOCKET_KEY, TE};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method};

use crate::fields::{is_padded, lines_bytes, write_line};
use crate::incoming::Framing;

/// What is odd about a request in a way that an HTTP/1.1 head could not show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Oddity {
    /// A field value begins or ends with white space (RFC 9113 section 8.2.1).
    WhiteSpace,
    /// `:authority` and Host differ (RFC 9113 section 8.3.1).
    HostConflict,
    /// `:protocol` is not the name of a protocol (RFC 8441 section 4).
    Protocol,
}

const CHUNKED_LINE: &[u8] = b"Transfer-Encoding: chunked\r\n";
/// What asks for another protocol, but for its name.
const UPGRADE_BYTES: usize = "Connection: Upgrade\r\nUpgrade: \r\nSec-WebSocket-Key: \r\n".len() + KEY_BYTES;
/// A key of a WebSocket handshake: 16 bytes in Base64 (RFC 6455 section 4.1).
const KEY_BYTES: usize = 24;

/// Room that a head takes, at most.
pub(crate) fn bytes_max(parts: &Parts) -> usize {
    let lines = lines_bytes(&parts.headers);
    let target = parts.uri.path_and_query().map_or(1, |target| target.as_str().len());
    let authority = parts.uri.authority().map_or(0, |authority| authority.as_str().len());
    let first_line = parts.method.as_str().len() + target.max(authority) + "  HTTP/1.1\r\n".len();
    let upgrade = protocol(parts).map_or(0, |protocol| protocol.len() + UPGRADE_BYTES);
    first_line + authority + "Host: \r\n".len() + lines + CHUNKED_LINE.len() + upgrade + "\r\n".len()
}

/// The protocol that the stream is to change to (RFC 8441 section 4).
pub(crate) fn protocol(parts: &Parts) -> Option<&str> {
    parts.extensions.get::<Protocol>().map(Protocol::as_str)
}

/// Whether the request says that its body, which has not ended with the head, is empty. A tunnel has none.
pub(crate) fn announces_nothing(parts: &Parts) -> bool {
    let is_zero = |length: &HeaderValue| length.as_bytes().iter().all(|byte| *byte == b'0');
    protocol(parts).is_none() && parts.headers.get(CONTENT_LENGTH).is_some_and(is_zero)
}

/// Writes the head, and says how the body follows it.
///
/// One that asks for another protocol is the GET that asks for it in HTTP/1.1 (RFC 8441 section 5).
///
/// Names are lower-case tokens, and no value has CR, LF or NUL in it: the frame reader has refused all else. Whatever
/// else a head may not be is found by whoever parses it.
pub(crate) fn write_head(parts: &Parts, has_body: bool, out: &mut Vec<u8>) -> (Framing, Option<Oddity>) {
    let authority = parts.uri.authority().map(http::uri::Authority::as_str);
    let protocol = protocol(parts);
    let method = if protocol.is_some() { &Method::GET } else { &parts.method };
    out.extend_from_slice(method.as_str().as_bytes());
    out.push(b' ');
    let target = match parts.uri.path_and_query() {
        _ if method == Method::CONNECT => authority.unwrap_or_default(),
        Some(target) => target.as_str(),
        None => "/",
    };
    out.extend_from_slice(target.as_bytes());
    out.extend_from_slice(b" HTTP/1.1\r\n");
    if let Some(authority) = authority {
        write_line(b"Host", authority.as_bytes(), out);
    }
    let mut oddity = write_fields(&parts.headers, authority, protocol.is_some(), out);
    if let Some(protocol) = protocol
        && !write_upgrade(protocol, out)
    {
        oddity = Some(Oddity::Protocol);
    }
    let framing = match (has_body, parts.headers.get(CONTENT_LENGTH)) {
        // What follows is no body.
        _ if protocol.is_some() => Framing::Not,
        (false, _) => Framing::Not,
        // What is no number is refused when the head is parsed.
        (true, Some(length)) => {
            Framing::Length(length.to_str().ok().and_then(|text| text.parse().ok()).unwrap_or_default())
        }
        (true, None) => Framing::Chunks,
    };
    if framing == Framing::Chunks {
        out.extend_from_slice(CHUNKED_LINE);
    }
    out.extend_from_slice(b"\r\n");
    (framing, oddity)
}

/// Asks for a protocol. False where that is no name of one (RFC 9110 section 7.8).
fn write_upgrade(protocol: &str, out: &mut Vec<u8>) -> bool {
    let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~/".contains(&byte);
    if protocol.is_empty() || !protocol.bytes().all(is_of_name) {
        return false;
    }
    write_line(b"Connection", b"Upgrade", out);
    write_line(b"Upgrade", protocol.as_bytes(), out);
    if protocol.eq_ignore_ascii_case("websocket") {
        // The client has none (RFC 8441 section 5.1), and a server of HTTP/1.1 wants one.
        let keys = RandomState::new();
        write_line(b"Sec-WebSocket-Key", &key_of(keys.hash_one(0), keys.hash_one(1)), out);
    }
    true
}

/// A key of so many bits.
fn key_of(high: u64, low: u64) -> [u8; KEY_BYTES] {
    let mut key = [0; KEY_BYTES];
    let bytes = u128::from(high) << 64 | u128::from(low);
    let written = BASE64_STANDARD.encode_slice(bytes.to_be_bytes(), &mut key);
    debug_assert_eq!(written, Ok(KEY_BYTES), "sixteen bytes");
    key
}

fn write_fields(
    fields: &HeaderMap,
    authority: Option<&str>,
    is_upgrade: bool,
    out: &mut Vec<u8>,
) -> Option<Oddity> {
    let mut oddity = None;
    let mut has_cookie = false;
    for (name, value) in fields {
        let value = value.as_bytes();
        if is_padded(value) {
            oddity = Some(Oddity::WhiteSpace);
        }
        if name == COOKIE {
            // All of them are one line, as HTTP/1.1 wants it (RFC 9113 section 8.2.3). They follow one another here.
            if !std::mem::replace(&mut has_cookie, true) {
                let mut values = fields.get_all(COOKIE).iter();
                join(&mut values, out);
            }
        } else if name == HOST
            && let Some(authority) = authority
        {
            if !authority.as_bytes().eq_ignore_ascii_case(value) {
                oddity = Some(Oddity::HostConflict);
            }
        } else if name == TE || is_upgrade && name == SEC_WEBSOCKET_KEY {
            // The one is about this connection, and says `trailers` if anything (RFC 9113 section 8.2.2); the other
            // is not used here, and its place is taken.
        } else {
            write_line(name.as_str().as_bytes(), value, out);
        }
    }
    oddity
}

fn join<'a>(values: &mut impl Iterator<Item = &'a HeaderValue>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"Cookie: ");
    for (at, value) in values.enumerate() {
        if at > 0 {
            out.extend_from_slice(b"; ");
        }
        out.extend_from_slice(value.as_bytes());
    }
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn check(request: http::request::Builder, has_body: bool, expected: &str, odd: Option<Oddity>) {
        let (parts, ()) = request.body(()).expect("a request").into_parts();
        let mut out = Vec::new();
        let (_, oddity) = write_head(&parts, has_body, &mut out);
        assert_eq!((String::from_utf8_lossy(&out).as_ref(), oddity), (expected, odd));
        assert!(out.len() <= bytes_max(&parts));
    }

    #[test]
    fn a_request_is_a_head() {
        let get = || Request::get("https://a.test:8443/x?y=1");
        check(get(), false, "GET /x?y=1 HTTP/1.1\r\nHost: a.test:8443\r\n\r\n", None);
        check(
            get().header("x-a", "1").header("cookie", "a=1").header("te", "trailers").header("cookie", "b=2"),
            false,
            "GET /x?y=1 HTTP/1.1\r\nHost: a.test:8443\r\nx-a: 1\r\nCookie: a=1; b=2\r\n\r\n",
            None,
        );
        check(
            Request::post("https://a.test/").header("content-length", "5"),
            true,
            "POST / HTTP/1.1\r\nHost: a.test\r\ncontent-length: 5\r\n\r\n",
            None,
        );
        check(
            Request::post("/").header("host", "b"),
            true,
            "POST / HTTP/1.1\r\nhost: b\r\nTransfer-Encoding: chunked\r\n\r\n",
            None,
        );
        check(Request::options("*"), false, "OPTIONS * HTTP/1.1\r\n\r\n", None);
        check(
            Request::connect("a.test:443"),
            false,
            "CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n",
            None,
        );
    }

    #[test]
    fn what_http1_could_not_show_is_said() {
        let get = || Request::get("https://a.test/");
        let plain = "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n";
        check(get().header("host", "A.test"), false, plain, None);
        check(get().header("host", "b.test"), false, plain, Some(Oddity::HostConflict));
        for value in [" 1", "1\t", " "] {
            let head = format!("GET / HTTP/1.1\r\nHost: a.test\r\nx: {value}\r\n\r\n");
            check(get().header("x", value), false, &head, Some(Oddity::WhiteSpace));
        }
    }

    /// A CONNECT with `:protocol` is a GET with Upgrade; what is no name of a protocol is not written at all.
    #[test]
    fn protocols_are_asked_for_by_upgrade() {
        let ask = |protocol: &str| {
            let request = Request::connect("https://a.test/x").header("x", "1");
            let request = request.header("sec-websocket-key", "of the client");
            request.extension(Protocol::from(protocol))
        };
        let start = "GET /x HTTP/1.1\r\nHost: a.test\r\nx: 1\r\n";
        let head = format!("{start}Connection: Upgrade\r\nUpgrade: foo/2\r\n\r\n");
        check(ask("foo/2"), true, &head, None);
        for protocol in ["", "a b", "a,b", "a\r\nb: c", "a\0", "\u{e9}", "a\t"] {
            check(ask(protocol), true, &format!("{start}\r\n"), Some(Oddity::Protocol));
        }
    }

    #[test]
    fn keys_are_base64() {
        let (high, low) = (u64::from_be_bytes(*b"the samp"), u64::from_be_bytes(*b"le nonce"));
        assert_eq!(&key_of(high, low), b"dGhlIHNhbXBsZSBub25jZQ==");
        assert_eq!(&key_of(u64::MAX, u64::MAX), b"/////////////////////w==");
    }
}

//! What the head of a request can be in HTTP/2.

use pointsman_http::{Framing, HeaderKind, HeaderLine, Method, RequestHead};

/// Fields of one connection, which no request of HTTP/2 has (RFC 9113 section 8.2.2), and TE, which is taken away.
const NEVER: [&str; 3] = ["keep-alive", "proxy-connection", "te"];

/// Whether rules may see this as the head of a request of HTTP/2, as HTTP/1.1 writes it: all cookies are one line, Connection and
/// Upgrade stand for a CONNECT that asks for a protocol (RFC 8441 section 5), and Transfer-Encoding for a body that announces
/// no length.
pub(super) fn may_be_of_http2(head: &RequestHead, bytes: &[u8]) -> bool {
    let is = |line: &HeaderLine, name: &str| line.name(bytes).eq_ignore_ascii_case(name.as_bytes());
    let is_other = |line: &HeaderLine| {
        NEVER.iter().any(|name| is(line, name))
            || is(line, "transfer-encoding") && line.value(bytes) != b"chunked"
    };
    let cookies = head.lines().iter().filter(|line| line.kind == HeaderKind::Cookie);
    if head.lines().iter().any(is_other) || cookies.count() > 1 {
        return false;
    }
    let of_tunnel = head.lines().iter().filter(|line| is(line, "connection") || is(line, "upgrade"));
    match of_tunnel.collect::<Vec<_>>().as_slice() {
        [] => true,
        [one, other] => {
            let (connection, upgrade) = if is(one, "connection") { (one, other) } else { (other, one) };
            let can_change = head.method() == Method::Get && head.framing() == Framing::None;
            let asks = connection.value(bytes) == b"Upgrade" && is(upgrade, "upgrade");
            can_change && asks && upgrade.value(bytes).iter().all(is_of_protocol)
        }
        _ => false,
    }
}

/// Of a protocol's name (RFC 9110 section 7.8): `:protocol` says one.
fn is_of_protocol(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~/".contains(byte)
}

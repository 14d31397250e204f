//! The normal form of a host name.

use std::fmt::{self, Write};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// Bytes of the longest authority: a name of 255 bytes, a colon and a port.
pub const HOST_BYTES_MAX: usize = 255 + 6;

/// The host in `authority` (host and port as received): lower case, no port, no trailing dot.
///
/// An IPv6 address stays in its brackets and is written as RFC 5952 has it, so that `[::1]` and
/// `[0:0::1]` are one host. What is in normal form already is borrowed; otherwise it is written to
/// `scratch`. `None` where there is no host (HTTP/1.0), or one longer than the codec lets through.
pub fn normal_host<'a>(authority: &'a [u8], scratch: &'a mut [u8; HOST_BYTES_MAX]) -> Option<&'a [u8]> {
    if authority.first() == Some(&b'[') {
        return bracketed(authority, scratch);
    }
    let end = memchr::memchr(b':', authority).unwrap_or(authority.len());
    let mut name = &authority[..end];
    while let [start @ .., b'.'] = name {
        name = start;
    }
    if name.is_empty() {
        return None;
    }
    lower_case(name, scratch)
}

/// The authority of a target that names none (RFC 9112 section 3.3): where the client connected to, without
/// the port that the scheme, `http` or `https`, has by default. A Unix socket is `localhost`.
pub fn default_authority(arrived_at: Option<SocketAddr>, scheme: &str) -> String {
    let Some(arrived_at) = arrived_at else { return "localhost".to_owned() };
    let host = match arrived_at.ip().to_canonical() {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    };
    match (scheme, arrived_at.port()) {
        ("http", 80) | ("https", 443) => host,
        (_, port) => format!("{host}:{port}"),
    }
}

fn bracketed<'a>(authority: &'a [u8], scratch: &'a mut [u8; HOST_BYTES_MAX]) -> Option<&'a [u8]> {
    let close = memchr::memchr(b']', authority)?;
    let text = std::str::from_utf8(&authority[1..close]).ok()?;
    let address: Ipv6Addr = text.parse().ok()?;
    let mut canonical = Canonical { scratch, length: 0 };
    write!(canonical, "[{address}]").ok()?;
    let Canonical { scratch, length } = canonical;
    Some(&scratch[..length])
}

/// `text` in lower case: borrowed where it is so already. `None` where it does not fit `scratch`.
pub(crate) fn lower_case<'a>(text: &'a [u8], scratch: &'a mut [u8; HOST_BYTES_MAX]) -> Option<&'a [u8]> {
    if !text.iter().any(u8::is_ascii_uppercase) {
        return Some(text);
    }
    let lower = scratch.get_mut(..text.len())?;
    lower.copy_from_slice(text);
    lower.make_ascii_lowercase();
    Some(lower)
}

struct Canonical<'a> {
    scratch: &'a mut [u8; HOST_BYTES_MAX],
    length: usize,
}

impl Write for Canonical<'_> {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        let end = self.length + piece.len();
        self.scratch.get_mut(self.length..end).ok_or(fmt::Error)?.copy_from_slice(piece.as_bytes());
        self.length = end;
        Ok(())
    }
}

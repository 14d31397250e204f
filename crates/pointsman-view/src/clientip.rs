//! The client behind trusted proxies.

use std::net::{IpAddr, SocketAddr};

use ipnet::IpNet;
use pointsman_http::{HeaderKind, RequestHead, is_token};

use crate::Connection;

/// The peers whose word is taken.
#[derive(Clone, Copy, Debug)]
pub struct TrustedProxies<'a> {
    /// Those with an address in one of these.
    pub networks: &'a [IpNet],
    /// Those of Unix sockets.
    pub unix: bool,
}

impl TrustedProxies<'_> {
    /// Whether an address is one of them.
    pub fn contain(self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.networks.iter().any(|network| network.contains(&address))
    }

    /// Whether a peer is, by its address if it has one.
    pub fn believes(self, peer: Option<SocketAddr>) -> bool {
        peer.map_or(self.unix, |peer| self.contain(peer.ip()))
    }
}

/// The address of the client: the connection's [sender](Connection::sender), or what the trusted proxies in front of
/// the switch say. `None` where all of that is a Unix socket.
///
/// The chain of hops is walked from the right, where the nearest proxy wrote: it goes on where a PROXY header ends,
/// which names the hop before the peer. A hop's word is taken
/// only while the hop itself is in `trusted_proxies`; the first one that is not is the client. A
/// hop without an address (`unknown`, `_hidden`, nonsense) ends the walk at the hop that named it.
///
/// **X-Forwarded-For wins over Forwarded** where both are there. A proxy adds to the field it knows
/// and passes the other one through as the client wrote it, and nearly every proxy knows
/// X-Forwarded-For. To prefer Forwarded would let any client behind such a proxy name its own
/// address; to fall back on the sender where they disagree would let it pass for the proxy. A trusted
/// proxy that writes only Forwarded must take X-Forwarded-For away.
pub fn client_ip(
    connection: &Connection,
    head: &RequestHead,
    buffer: &[u8],
    trusted: TrustedProxies<'_>,
) -> Option<IpAddr> {
    let src = connection.sender().map(|sender| sender.ip().to_canonical());
    if !connection.is_trusted(trusted) {
        return src;
    }
    let has_x_forwarded_for =
        head.lines().iter().any(|line| line.kind == HeaderKind::XForwardedFor && !line.hidden);
    if has_x_forwarded_for {
        let hops = lines_from_right(head, buffer, HeaderKind::XForwardedFor)
            .flat_map(|line| line.rsplit(|&byte| byte == b','))
            .map(<[u8]>::trim_ascii)
            .filter(|hop| !hop.is_empty())
            .map(hop_address);
        return walk(src, hops, trusted);
    }
    let hops = lines_from_right(head, buffer, HeaderKind::Forwarded)
        .flat_map(ElementsFromRight)
        .map(|element| hop_address(forwarded_for(element)?));
    walk(src, hops, trusted)
}

fn lines_from_right<'b>(
    head: &'b RequestHead,
    buffer: &'b [u8],
    kind: HeaderKind,
) -> impl Iterator<Item = &'b [u8]> {
    let lines = head.lines().iter().rev();
    lines.filter(move |line| line.kind == kind && !line.hidden).map(|line| line.value(buffer))
}

fn walk(
    src: Option<IpAddr>,
    hops: impl Iterator<Item = Option<IpAddr>>,
    trusted: TrustedProxies<'_>,
) -> Option<IpAddr> {
    let mut client = src;
    for hop in hops {
        let Some(address) = hop else { break };
        client = Some(address);
        if !trusted.contain(address) {
            break;
        }
    }
    client
}

/// The address of one hop: bare, in brackets, with or without a port.
fn hop_address(hop: &[u8]) -> Option<IpAddr> {
    let hop = std::str::from_utf8(hop).ok()?;
    let (address, port) = match hop.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?,
        // One colon comes before a port; several are an IPv6 address without brackets.
        None => match hop.find(':') {
            Some(at) if !hop[at + 1..].contains(':') => hop.split_at(at),
            _ => (hop, ""),
        },
    };
    let port_fits = port.is_empty() || port.strip_prefix(':').is_some_and(|port| !port.is_empty());
    let address: IpAddr = address.parse().ok()?;
    port_fits.then(|| address.to_canonical())
}

/// The elements of a Forwarded value (RFC 7239 section 4) from the right.
///
/// The right end is what a trusted proxy wrote. Quotes are matched from there too, so that an open
/// quote further left, where the client wrote, cannot swallow it.
struct ElementsFromRight<'a>(&'a [u8]);

impl<'a> Iterator for ElementsFromRight<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        while !self.0.is_empty() {
            let (rest, element) = match last_outside_quotes(self.0, b',') {
                Some(at) => (&self.0[..at], &self.0[at + 1..]),
                None => (&b""[..], self.0),
            };
            self.0 = rest;
            let element = element.trim_ascii();
            if !element.is_empty() {
                return Some(element);
            }
        }
        None
    }
}

fn last_outside_quotes(text: &[u8], wanted: u8) -> Option<usize> {
    let mut quoted = false;
    for (at, &byte) in text.iter().enumerate().rev() {
        if byte == b'"' {
            quoted = !quoted;
        } else if byte == wanted && !quoted {
            return Some(at);
        }
    }
    None
}

/// The value of `for` in one element. `None` where it is missing, given twice, or anything in the
/// element is out of form: then nobody can say what the hop meant.
fn forwarded_for(element: &[u8]) -> Option<&[u8]> {
    // An escaped quote would end a quoted string for one reader and not for another.
    if memchr::memchr(b'\\', element).is_some() {
        return None;
    }
    let mut found = None;
    let mut rest = element;
    while !rest.is_empty() {
        let (before, pair) = match last_outside_quotes(rest, b';') {
            Some(at) => (&rest[..at], &rest[at + 1..]),
            None => (&b""[..], rest),
        };
        rest = before;
        let pair = pair.trim_ascii();
        if pair.is_empty() {
            continue;
        }
        let equals = memchr::memchr(b'=', pair)?;
        if !is_token(&pair[..equals]) {
            return None;
        }
        let value = unquoted(&pair[equals + 1..])?;
        if pair[..equals].eq_ignore_ascii_case(b"for") && found.replace(value).is_some() {
            return None;
        }
    }
    found
}

fn unquoted(value: &[u8]) -> Option<&[u8]> {
    let inside = match value {
        [b'"', inside @ .., b'"'] => inside,
        _ => value,
    };
    memchr::memchr(b'"', inside).is_none().then_some(inside)
}

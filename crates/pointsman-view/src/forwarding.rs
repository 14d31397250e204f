//! The lines that tell a server whom the switch forwards for.

use pointsman_http::{HeaderKind, HeaderLine, RequestHead};

use crate::AddressText;

/// What becomes of the lines that name the hops before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Forwarding {
    /// Earlier values are kept where the peer is a trusted proxy, and the peer is added; from
    /// anyone else they are replaced.
    #[default]
    Append,
    /// Earlier values are replaced by the peer.
    Replace,
    /// The switch adds none, and takes away what anyone but a trusted proxy wrote: a server never
    /// sees a forged one.
    Off,
}

/// What becomes of either family of lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForwardingModes {
    /// X-Forwarded-For, X-Forwarded-Proto and X-Forwarded-Host.
    pub x_forwarded: Forwarding,
    /// Forwarded (RFC 7239).
    pub forwarded: Forwarding,
}

/// The [sender](crate::Connection::sender) of a client connection.
#[derive(Clone, Copy, Debug)]
pub struct Peer {
    /// Its address; `None` on a Unix socket.
    pub address: Option<AddressText>,
    /// Whether it is one of the trusted proxies.
    pub is_trusted: bool,
    /// `http` or `https`: how it came.
    pub scheme: &'static str,
}

/// Takes away what somebody who is no trusted proxy says of the hops before: neither rules nor servers see it, for
/// they would believe whoever says it.
pub fn take_away_forwarding(head: &mut RequestHead) {
    for line in head.lines_mut().iter_mut().filter(|line| is_of_hops(line.kind)) {
        line.hidden = true;
        line.dropped = true;
    }
}

/// Whether a field of this name is one of those that [`take_away_forwarding`] takes away.
pub fn is_about_hops(name: &[u8]) -> bool {
    is_of_hops(HeaderKind::of_name(name))
}

fn is_of_hops(kind: HeaderKind) -> bool {
    matches!(
        kind,
        HeaderKind::Forwarded
            | HeaderKind::XForwardedFor
            | HeaderKind::XForwardedProto
            | HeaderKind::XForwardedHost
            | HeaderKind::OtherForwarded
    )
}

/// Appends the forwarding lines for a server to `added`, whole lines with their CRLF, and marks the
/// client's lines that they replace as dropped. What a peer says that is not trusted has been taken away before, by
/// [`take_away_forwarding`]: before the rules were asked.
///
/// With [`Forwarding::Append`] behind a trusted proxy a chain goes on in the form it came in: where
/// only Forwarded names hops, no X-Forwarded-For is begun, and the other way round. A fresh one
/// would name the proxy as the client to a server that reads the other form.
pub fn add_forwarding_lines(
    head: &mut RequestHead,
    buffer: &[u8],
    peer: &Peer,
    modes: ForwardingModes,
    added: &mut Vec<u8>,
) {
    let is_believed = |line: &HeaderLine| is_of_hops(line.kind) && !line.dropped;
    debug_assert!(
        peer.is_trusted || !head.lines().iter().any(is_believed),
        "what nobody believes is still there"
    );
    let x_chain = peer.is_trusted && has(head, HeaderKind::XForwardedFor);
    let chain = peer.is_trusted && has(head, HeaderKind::Forwarded);
    if let Some(keeps) = keeps_earlier(modes.x_forwarded, peer) {
        if !keeps || x_chain || !chain {
            x_forwarded_for(head, buffer, peer, keeps, added);
        }
        replace_unless_kept(head, HeaderKind::XForwardedProto, keeps, added, |added| {
            line(added, b"X-Forwarded-Proto", peer.scheme.as_bytes());
        });
        let authority = head.authority(buffer);
        replace_unless_kept(head, HeaderKind::XForwardedHost, keeps, added, |added| {
            if !authority.is_empty() {
                line(added, b"X-Forwarded-Host", authority);
            }
        });
    }
    if let Some(keeps) = keeps_earlier(modes.forwarded, peer)
        && (!keeps || chain || !x_chain)
    {
        forwarded(head, buffer, peer, keeps, added);
    }
}

/// Whether earlier values stay; `None` where the switch leaves the lines alone.
fn keeps_earlier(mode: Forwarding, peer: &Peer) -> Option<bool> {
    match mode {
        Forwarding::Append => Some(peer.is_trusted),
        Forwarding::Replace => Some(false),
        Forwarding::Off => None,
    }
}

fn has(head: &RequestHead, kind: HeaderKind) -> bool {
    head.lines().iter().any(|line| line.kind == kind && !line.dropped)
}

fn drop_lines(head: &mut RequestHead, kind: HeaderKind) {
    for line in head.lines_mut().iter_mut().filter(|line| line.kind == kind) {
        line.dropped = true;
    }
}

fn x_forwarded_for(head: &mut RequestHead, buffer: &[u8], peer: &Peer, keeps: bool, added: &mut Vec<u8>) {
    let Some(address) = peer.address else {
        // Nothing names it: a chain stays as it is, and none is begun.
        if !keeps {
            drop_lines(head, HeaderKind::XForwardedFor);
        }
        return;
    };
    added.extend_from_slice(b"X-Forwarded-For: ");
    if keeps {
        earlier_values(head, buffer, HeaderKind::XForwardedFor, added);
    }
    drop_lines(head, HeaderKind::XForwardedFor);
    added.extend_from_slice(address.as_bytes());
    added.extend_from_slice(b"\r\n");
}

/// `for=192.0.2.1;host=shop.example;proto=https`, after the elements that stay.
fn forwarded(head: &mut RequestHead, buffer: &[u8], peer: &Peer, keeps: bool, added: &mut Vec<u8>) {
    if peer.address.is_none() && keeps && has(head, HeaderKind::Forwarded) {
        // An element without an address would end the way back to the client.
        return;
    }
    added.extend_from_slice(b"Forwarded: ");
    if keeps {
        earlier_values(head, buffer, HeaderKind::Forwarded, added);
    }
    drop_lines(head, HeaderKind::Forwarded);
    let address = peer.address.as_ref().map_or(&b"unknown"[..], AddressText::as_bytes);
    match memchr::memchr(b':', address) {
        None => extend(added, [b"for=", address]),
        // A colon or a bracket may stand only in quotes (RFC 7239 section 6.1).
        Some(_) => extend(added, [b"for=\"[", address, b"]\""]),
    }
    let authority = head.authority(buffer);
    match memchr::memchr2(b':', b'[', authority) {
        _ if authority.is_empty() => {}
        None => extend(added, [b";host=", authority]),
        Some(_) => extend(added, [b";host=\"", authority, b"\""]),
    }
    extend(added, [b";proto=", peer.scheme.as_bytes(), b"\r\n"]);
}

/// Joins the values of all lines of `kind`: many servers read only one line.
fn earlier_values(head: &RequestHead, buffer: &[u8], kind: HeaderKind, added: &mut Vec<u8>) {
    for line in head.lines().iter().filter(|line| line.kind == kind && !line.dropped) {
        let mut value = line.value(buffer);
        if kind == HeaderKind::Forwarded
            && let Some(rest) = behind_open_quote(value)
        {
            // Joined, an open quote would be closed by one of another line, and the next hop would read other
            // elements than there are. Nobody can say which hop was meant: the way back ends here.
            added.extend_from_slice(b"for=unknown, ");
            value = rest;
        }
        if !value.is_empty() {
            extend(added, [value, b", "]);
        }
    }
}

/// Where quotes, matched from the right as [`client_ip`](crate::client_ip) does, leave one open: the elements
/// behind the one that has it.
fn behind_open_quote(value: &[u8]) -> Option<&[u8]> {
    if memchr::memchr_iter(b'"', value).count().is_multiple_of(2) {
        return None;
    }
    let open = memchr::memchr(b'"', value)?;
    let mut quoted = false;
    for (at, &byte) in value.iter().enumerate().skip(open + 1) {
        match byte {
            b'"' => quoted = !quoted,
            b',' if !quoted => return Some(value[at + 1..].trim_ascii_start()),
            _ => {}
        }
    }
    Some(b"")
}

/// The first trusted proxy knew the client's scheme and host; a later one must not overwrite them.
fn replace_unless_kept(
    head: &mut RequestHead,
    kind: HeaderKind,
    keeps: bool,
    added: &mut Vec<u8>,
    write: impl FnOnce(&mut Vec<u8>),
) {
    if keeps && has(head, kind) {
        return;
    }
    drop_lines(head, kind);
    write(added);
}

fn line(added: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    extend(added, [name, b": ", value, b"\r\n"]);
}

fn extend<const N: usize>(added: &mut Vec<u8>, pieces: [&[u8]; N]) {
    for piece in pieces {
        added.extend_from_slice(piece);
    }
}

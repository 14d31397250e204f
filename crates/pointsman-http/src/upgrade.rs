//! A change of protocol: what a request asks for, and whether an answer grants it (RFC 9110 section 7.8).

use crate::websocket;
use crate::{Framing, HeaderKind, HeaderLine, Method, Refusal, RequestHead, ResponseHead, Version};

/// The protocol of RFC 6455, whose handshake is checked.
const WEBSOCKET: &str = "websocket";

/// A change of protocol that a server is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upgrade {
    /// What the server may change to, as the lines of the request say it.
    lines: Vec<u8>,
    /// Where the list stands in them.
    list: std::ops::Range<usize>,
    /// What a server answers that takes the key of a WebSocket handshake.
    accept: Option<websocket::Accept>,
}

/// A 101 that changes to a protocol that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Granted<'b> {
    /// The protocol as the server wrote it.
    pub protocol: &'b [u8],
    /// Whether what follows are WebSocket frames.
    pub is_websocket: bool,
}

impl RequestHead {
    /// The protocols that the request asks to change to, as they were written. None where `Connection` does not
    /// say so, too, nor in HTTP/1.0, which knows no such thing. In HTTP/2 there are no such fields: what is there stands
    /// for a CONNECT that asks for it.
    pub fn offered_protocols<'b>(&'b self, buffer: &'b [u8]) -> impl Iterator<Item = &'b [u8]> {
        let asks = self.options.upgrade && self.version != Version::Http10;
        self.lines.iter().filter(move |_| asks).flat_map(move |line| protocols(line, buffer))
    }

    /// The change of protocol that the request asks for, of those that are `allowed`; names are compared without
    /// regard to case. A request with a body, and HEAD, change nothing. Without one the request goes on, and its
    /// `Upgrade` is left out: a server may do the same.
    ///
    /// # Errors
    /// A WebSocket handshake that is none (RFC 6455 section 4.2.1).
    pub fn upgrade(&self, buffer: &[u8], allowed: &[Box<str>]) -> Result<Option<Upgrade>, Refusal> {
        if !self.options.upgrade {
            return Ok(None);
        }
        let is_allowed = |protocol: &&[u8]| allowed.iter().any(|name| is(protocol, name));
        let mut upgrade =
            Upgrade { lines: b"Connection: Upgrade\r\nUpgrade: ".to_vec(), list: 0..0, accept: None };
        let start = upgrade.lines.len();
        for protocol in self.offered_protocols(buffer).filter(is_allowed) {
            if is(protocol, WEBSOCKET) {
                upgrade.accept = Some(self.websocket_handshake(buffer)?);
            }
            if upgrade.lines.len() > start {
                upgrade.lines.extend_from_slice(b", ");
            }
            upgrade.lines.extend_from_slice(protocol);
        }
        upgrade.list = start..upgrade.lines.len();
        upgrade.lines.extend_from_slice(b"\r\n");
        let can_change = self.framing == Framing::None && self.method != Method::Head;
        Ok(Some(upgrade).filter(|upgrade| can_change && !upgrade.list.is_empty()))
    }

    /// Checks a WebSocket handshake, and says what its answer must be.
    fn websocket_handshake(&self, buffer: &[u8]) -> Result<websocket::Accept, Refusal> {
        if self.method != Method::Get || self.framing != Framing::None {
            return Err(Refusal::WebSocket);
        }
        match self.only_value(buffer, "sec-websocket-version") {
            Some(b"13") => {}
            Some(_) => return Err(Refusal::WebSocketVersion),
            None => return Err(Refusal::WebSocket),
        }
        let key = self.only_value(buffer, "sec-websocket-key");
        key.and_then(websocket::Accept::of_key).ok_or(Refusal::WebSocket)
    }

    /// The value of a field that stands there once.
    fn only_value<'b>(&self, buffer: &'b [u8], name: &str) -> Option<&'b [u8]> {
        only_value(&self.lines, buffer, name)
    }
}

impl ResponseHead {
    /// The protocol that a 101 changes to, where that is what was asked for, and is said as it must be
    /// (RFC 9110 section 15.2.2, RFC 6455 section 4.1).
    pub fn grants<'b>(&self, buffer: &'b [u8], upgrade: &Upgrade) -> Option<Granted<'b>> {
        if self.status != 101 || self.version != Version::Http11 || !self.options.upgrade {
            return None;
        }
        let mut named = self.lines.iter().flat_map(|line| protocols(line, buffer));
        let protocol = named.next()?;
        // It may stack protocols on each other; who follows the bytes must know of one.
        if named.next().is_some() || !upgrade.asks_for(protocol) {
            return None;
        }
        let is_websocket = is(protocol, WEBSOCKET);
        let has_accepted = || {
            let accept = only_value(&self.lines, buffer, "sec-websocket-accept");
            upgrade.accept.as_ref().is_some_and(|expected| accept == Some(expected.as_bytes()))
        };
        (!is_websocket || has_accepted()).then_some(Granted { protocol, is_websocket })
    }
}

impl Upgrade {
    /// `Connection` and `Upgrade` as the server is sent them, whole lines.
    pub fn lines(&self) -> &[u8] {
        &self.lines
    }

    fn asks_for(&self, protocol: &[u8]) -> bool {
        let mut asked = self.lines[self.list.clone()].split(|&byte| byte == b',');
        asked.any(|asked| asked.trim_ascii().eq_ignore_ascii_case(protocol))
    }
}

/// The protocols that an `Upgrade` line names.
fn protocols<'b>(line: &HeaderLine, buffer: &'b [u8]) -> impl Iterator<Item = &'b [u8]> {
    let value = if line.kind == HeaderKind::Upgrade { line.value(buffer) } else { b"" };
    value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii).filter(|protocol| !protocol.is_empty())
}

fn only_value<'b>(lines: &[HeaderLine], buffer: &'b [u8], name: &str) -> Option<&'b [u8]> {
    let named = |line: &&HeaderLine| !line.hidden && line.is_named(name.as_bytes(), buffer);
    let mut found = lines.iter().filter(named);
    let value = found.next()?.value(buffer);
    found.next().is_none().then_some(value)
}

fn is(protocol: &[u8], name: &str) -> bool {
    protocol.eq_ignore_ascii_case(name.as_bytes())
}

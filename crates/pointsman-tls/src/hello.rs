//! A ClientHello as it comes over the wire, read without ending TLS: what a connection is routed by whose TLS is
//! somebody else's.
//!
//! Invariant: nothing here needs keys, certificates or a library; what is read is public.

use std::collections::HashSet;
use std::net::IpAddr;

use crate::alert::fatal;
use crate::reader::Reader;
use crate::session_name::{SESSION_ID_BYTES_MAX, SESSION_TICKET, SUPPORTED_VERSIONS, ShownSession};

/// Bytes of the longest hello that is read: its message, without the heads of the records that it comes in.
pub const HELLO_BYTES_MAX: usize = 64 * 1024;

/// Bytes that a hello may take on the wire: records of one byte each are refused long before.
pub const HELLO_WIRE_BYTES_MAX: usize = HELLO_BYTES_MAX + 256 * RECORD_HEAD_BYTES;

/// Application protocols that a hello may offer: clients offer two or three, and what is kept of each takes memory.
pub const HELLO_PROTOCOLS_MAX: usize = 32;

/// Bytes of their list (RFC 7301 section 3.1).
pub const HELLO_PROTOCOLS_BYTES_MAX: usize = 1024;

/// A record holds at most this much (RFC 8446 section 5.1).
pub(crate) const RECORD_BYTES_MAX: usize = 16 * 1024;
pub(crate) const RECORD_HEAD_BYTES: usize = 5;
pub(crate) const MESSAGE_HEAD_BYTES: usize = 4;
/// More records than this make no hello: 64 KiB fit in 4.
const RECORDS_MAX: usize = 256;

pub(crate) const HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const SERVER_NAME: u16 = 0;
const ALPN: u16 = 16;

/// What a client asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientHello {
    /// The server name, in lower case and without a dot at its end; with an encrypted hello (ECH) the outer one,
    /// which is what is seen. An address is none.
    pub sni: Option<String>,
    /// The application protocols, in the client's order.
    pub alpn: Vec<Vec<u8>>,
    /// `1.0` to `1.3`: the highest version that the client offers and that has a name.
    pub version: Option<&'static str>,
}

/// Why there is no hello.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HelloFault {
    /// What came is not TLS.
    NotTls,
    /// It is broken, or could be read in two ways.
    Malformed,
    /// It is longer than [`HELLO_BYTES_MAX`], or offers more protocols than [`HELLO_PROTOCOLS_MAX`] or
    /// [`HELLO_PROTOCOLS_BYTES_MAX`].
    TooLong,
}

impl HelloFault {
    /// What was wrong, for the log.
    pub fn sentence(self) -> &'static str {
        match self {
            HelloFault::NotTls => "what came is not TLS",
            HelloFault::Malformed => "the hello is malformed",
            HelloFault::TooLong => "the hello is too long",
        }
    }

    /// The alert that tells the client: a record of its own, fatal (RFC 8446 section 6).
    pub fn alert(self) -> [u8; 7] {
        const UNEXPECTED_MESSAGE: u8 = 10;
        const DECODE_ERROR: u8 = 50;
        fatal(match self {
            HelloFault::NotTls => UNEXPECTED_MESSAGE,
            HelloFault::Malformed | HelloFault::TooLong => DECODE_ERROR,
        })
    }
}

/// Reads the hello at the start of `received`; nothing while it is not whole.
///
/// # Errors
/// What has come begins no hello that is read, whatever follows.
pub fn client_hello(received: &[u8]) -> Result<Option<ClientHello>, HelloFault> {
    let Some(message) = whole_message(received)? else { return Ok(None) };
    let (hello, Shown { protocols, .. }) = read_message(&message).ok_or(HelloFault::Malformed)?;
    // Not a part of them: a rule that refuses one would not see it behind so many others.
    if protocols.len() > HELLO_PROTOCOLS_BYTES_MAX || names(protocols).count() > HELLO_PROTOCOLS_MAX {
        return Err(HelloFault::TooLong);
    }
    Ok(Some(ClientHello { alpn: names(protocols).map(<[u8]>::to_vec).collect(), ..hello }))
}

/// The session that a client shows in the hello at the start of `received`; none where that is not whole or not sound.
pub fn shown_session(received: &[u8]) -> ShownSession {
    let message = whole_message(received).ok().flatten();
    let read = message.as_deref().and_then(read_message);
    read.map(|(_, Shown { id, ticket, .. })| ShownSession::new(id, ticket)).unwrap_or_default()
}

/// The body of the message, once all of it is there.
fn whole_message(received: &[u8]) -> Result<Option<Vec<u8>>, HelloFault> {
    let mut message = Vec::new();
    let mut rest = received;
    for _ in 0..RECORDS_MAX {
        let Some(record) = next_record(&mut rest)? else {
            // What is there of it tells enough to refuse it.
            check_message_head(&message)?;
            return Ok(None);
        };
        message.extend_from_slice(record);
        let Some(length) = check_message_head(&message)? else { continue };
        if message.len() >= length {
            // Behind a hello nothing may come before it is answered (RFC 8446 section 5.1).
            if message.len() > length {
                return Err(HelloFault::Malformed);
            }
            message.drain(..MESSAGE_HEAD_BYTES);
            return Ok(Some(message));
        }
    }
    Err(HelloFault::TooLong)
}

/// How many bytes must have come before [`client_hello`] may say more than that `received` holds no whole hello.
pub fn hello_bytes_needed(received: &[u8]) -> usize {
    let mut end = 0;
    while let Some([_, _, _, high, low]) = received.get(end..).and_then(<[u8]>::first_chunk) {
        end += RECORD_HEAD_BYTES + usize::from(u16::from_be_bytes([*high, *low]));
        if end > received.len() {
            return end;
        }
    }
    received.len() + 1
}

/// The content of the next record, and `rest` behind it.
fn next_record<'r>(rest: &mut &'r [u8]) -> Result<Option<&'r [u8]>, HelloFault> {
    let received = *rest;
    // Of SSLv2, whose hello begins with its length, and of plain text the first bytes are others.
    if received.first().is_some_and(|kind| *kind != HANDSHAKE)
        || received.get(1).is_some_and(|major| *major != 3)
    {
        return Err(HelloFault::NotTls);
    }
    let Some((head, behind)) = received.split_first_chunk::<RECORD_HEAD_BYTES>() else { return Ok(None) };
    let length = usize::from(u16::from_be_bytes([head[3], head[4]]));
    // No record of a handshake is empty.
    if length == 0 || length > RECORD_BYTES_MAX {
        return Err(HelloFault::Malformed);
    }
    let Some((record, behind)) = behind.split_at_checked(length) else { return Ok(None) };
    *rest = behind;
    Ok(Some(record))
}

/// How long the message is with its head, as soon as that is there.
fn check_message_head(message: &[u8]) -> Result<Option<usize>, HelloFault> {
    if message.first().is_some_and(|kind| *kind != CLIENT_HELLO) {
        return Err(HelloFault::NotTls);
    }
    let Some([_, high, middle, low]) = message.first_chunk::<MESSAGE_HEAD_BYTES>() else { return Ok(None) };
    let length = u32::from_be_bytes([0, *high, *middle, *low]) as usize + MESSAGE_HEAD_BYTES;
    if length > HELLO_BYTES_MAX { Err(HelloFault::TooLong) } else { Ok(Some(length)) }
}

/// What a hello shows of an earlier session, and the protocols that it offers, as they stand in it.
struct Shown<'b> {
    id: &'b [u8],
    ticket: &'b [u8],
    protocols: &'b [u8],
}

/// Reads the body of a ClientHello but for its protocols (RFC 8446 section 4.1.2, RFC 5246 section 7.4.1.2). Every length must fit.
fn read_message(body: &[u8]) -> Option<(ClientHello, Shown<'_>)> {
    let mut body = Reader(body);
    let legacy_version = body.u16()?;
    body.take(32)?;
    let session_id = body.short_vector()?;
    let suites = body.vector()?;
    let compressions = body.short_vector()?;
    let is_sound = session_id.len() <= SESSION_ID_BYTES_MAX
        && !suites.is_empty()
        && suites.len().is_multiple_of(2)
        && !compressions.is_empty();
    if !is_sound {
        return None;
    }
    let mut hello = ClientHello { version: version_name(legacy_version), ..ClientHello::default() };
    let mut shown = Shown { id: session_id, ticket: &[], protocols: &[] };
    // Old clients end here.
    if body.is_empty() {
        return Some((hello, shown));
    }
    let mut extensions = Reader(body.vector()?);
    if !body.is_empty() {
        return None;
    }
    let mut seen = HashSet::new();
    while !extensions.is_empty() {
        let (kind, value) = (extensions.u16()?, extensions.vector()?);
        // Each may stand once (RFC 8446 section 4.2): of two readers one would take the other.
        if !seen.insert(kind) {
            return None;
        }
        match kind {
            SERVER_NAME => hello.sni = server_name(value)?,
            ALPN => shown.protocols = protocols(value)?,
            SUPPORTED_VERSIONS => hello.version = highest_version(value)?,
            SESSION_TICKET => shown.ticket = value,
            _ => {}
        }
    }
    Some((hello, shown))
}

/// The one name there may be (RFC 6066 section 3): a DNS name as it is looked up. That section allows neither an
/// address nor a dot at the end; clients send them, and TLS that is ended here takes them, too.
fn server_name(value: &[u8]) -> Option<Option<String>> {
    let mut value = Reader(value);
    let mut names = Reader(value.vector()?);
    let (kind, name) = (names.u8()?, std::str::from_utf8(names.vector()?).ok()?);
    if kind != 0 || !names.is_empty() || !value.is_empty() {
        return None;
    }
    if name.parse::<IpAddr>().is_ok() {
        return Some(None);
    }
    let name = without_last_dot(name);
    is_dns_name(name.as_bytes()).then(|| Some(name.to_ascii_lowercase()))
}

/// The name of a server without the dot that says that it is whole.
pub fn without_last_dot(name: &str) -> &str {
    name.strip_suffix('.').unwrap_or(name)
}

/// Whether a hello may ask for a name: letters, digits, `-` and `_` in labels, at most 253 bytes, without a dot at the end;
/// no address.
pub fn is_dns_name(name: &[u8]) -> bool {
    let mut labels = name.split(|byte| *byte == b'.');
    let is_label = |label: &[u8]| {
        (1..=63).contains(&label.len())
            && label.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(byte))
    };
    let last = name.rsplit(|byte| *byte == b'.').next().unwrap_or_default();
    name.len() <= 253 && labels.all(is_label) && !last.iter().all(u8::is_ascii_digit)
}

/// The list of RFC 7301 section 3.1: neither it nor a name in it is empty.
fn protocols(value: &[u8]) -> Option<&[u8]> {
    let mut value = Reader(value);
    let list = value.vector()?;
    let mut rest = Reader(list);
    while !rest.is_empty() {
        if rest.short_vector()?.is_empty() {
            return None;
        }
    }
    (value.is_empty() && !list.is_empty()).then_some(list)
}

/// The names in such a list.
fn names(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Reader(list);
    std::iter::from_fn(move || rest.short_vector())
}

/// The highest version of the list that has a name: values of GREASE (RFC 8701) and drafts have none.
fn highest_version(value: &[u8]) -> Option<Option<&'static str>> {
    let mut value = Reader(value);
    let versions = value.short_vector()?;
    if !value.is_empty() || versions.is_empty() || !versions.len().is_multiple_of(2) {
        return None;
    }
    let numbers = versions.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]]));
    Some(numbers.filter(|number| version_name(*number).is_some()).max().and_then(version_name))
}

fn version_name(number: u16) -> Option<&'static str> {
    Some(match number {
        0x0301 => "1.0",
        0x0302 => "1.1",
        0x0303 => "1.2",
        0x0304 => "1.3",
        _ => return None,
    })
}

#[cfg(test)]
mod tests;

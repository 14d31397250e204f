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
mod tests {
    use std::sync::Arc;

    use rustls::{ClientConfig, ClientConnection, RootCertStore};

    use super::*;

    fn vector(bytes: &[u8]) -> Vec<u8> {
        [&(bytes.len() as u16).to_be_bytes()[..], bytes].concat()
    }

    fn extension(kind: u16, value: &[u8]) -> Vec<u8> {
        [&kind.to_be_bytes()[..], &vector(value)].concat()
    }

    fn sni(name: &[u8]) -> Vec<u8> {
        extension(SERVER_NAME, &vector(&[&[0][..], &vector(name)].concat()))
    }

    /// A message with these extensions; none at all without a list of them.
    fn message(extensions: Option<&[Vec<u8>]>) -> Vec<u8> {
        let mut body = [&[3, 3][..], &[7; 32], &[0], &vector(&[0x13, 0x01, 0xc0, 0x2f]), &[1, 0]].concat();
        if let Some(extensions) = extensions {
            body.extend(vector(&extensions.concat()));
        }
        [&[CLIENT_HELLO][..], &(body.len() as u32).to_be_bytes()[1..], &body].concat()
    }

    /// The message in records of so many bytes.
    fn records(message: &[u8], bytes: usize) -> Vec<u8> {
        let record = |piece: &[u8]| [&[HANDSHAKE, 3, 1][..], &vector(piece)].concat();
        message.chunks(bytes).flat_map(record).collect()
    }

    fn read(extensions: &[Vec<u8>]) -> Result<Option<ClientHello>, HelloFault> {
        client_hello(&records(&message(Some(extensions)), RECORD_BYTES_MAX))
    }

    fn full() -> (Vec<u8>, ClientHello) {
        let extensions = [
            // GREASE, which stands for nothing.
            extension(0x0a0a, b""),
            sni(b"Shop.Example"),
            extension(ALPN, &vector(b"\x02h2\x08http/1.1")),
            extension(SUPPORTED_VERSIONS, b"\x06\x7a\x7a\x03\x04\x03\x03"),
            extension(0xfe0d, b"an encrypted hello"),
        ];
        let hello = ClientHello {
            sni: Some("shop.example".to_owned()),
            alpn: vec![b"h2".to_vec(), b"http/1.1".to_vec()],
            version: Some("1.3"),
        };
        (message(Some(&extensions)), hello)
    }

    #[test]
    fn a_hello_is_read_however_it_comes() {
        let (message, hello) = full();
        for bytes in [1, 2, 3, 7, 100, RECORD_BYTES_MAX] {
            let wire = records(&message, bytes);
            for end in 0..wire.len() {
                let expected = if message.len().div_ceil(bytes) > RECORDS_MAX { continue } else { Ok(None) };
                assert_eq!(client_hello(&wire[..end]), expected, "{end} bytes in records of {bytes}");
                let needed = hello_bytes_needed(&wire[..end]);
                assert!(needed > end && needed <= wire.len(), "{needed} after {end} in records of {bytes}");
                assert_eq!(client_hello(&wire[..needed - 1]), Ok(None), "{needed} after {end}");
            }
            assert_eq!(client_hello(&wire), Ok(Some(hello.clone())), "records of {bytes}");
            let early = [&wire[..], b"\x14\x03\x03\0\x01\x01"].concat();
            assert_eq!(client_hello(&early), Ok(Some(hello.clone())), "the next record is not its");
        }
    }

    #[test]
    fn what_is_not_asked_for_is_absent() {
        let old = ClientHello { version: Some("1.2"), ..ClientHello::default() };
        assert_eq!(client_hello(&records(&message(None), 100)), Ok(Some(old.clone())));
        assert_eq!(read(&[]), Ok(Some(old)));
        let unknown = extension(SUPPORTED_VERSIONS, b"\x02\x7f\x1c");
        assert_eq!(read(&[unknown]).map(|hello| hello.and_then(|hello| hello.version)), Ok(None));
    }

    #[test]
    fn names_that_clients_should_not_send_are_read() {
        for (sent, expected) in [
            (&b"Shop.Example."[..], Some("shop.example")),
            (b"example.", Some("example")),
            (b"192.0.2.1", None),
            (b"2001:db8::1", None),
        ] {
            let hello = read(&[sni(sent)]).expect("a good hello").expect("a whole one");
            assert_eq!(hello.sni.as_deref(), expected, "{sent:?}");
        }
    }

    #[test]
    fn what_could_be_read_in_two_ways_is_refused() {
        let names =
            |kind: u8, name: &[u8]| extension(SERVER_NAME, &vector(&[&[kind][..], &vector(name)].concat()));
        let two = [&[0][..], &vector(b"a.example"), &[0], &vector(b"b.example")].concat();
        for (what, extensions) in [
            ("two lists of names", vec![sni(b"a.example"), sni(b"b.example")]),
            ("two names", vec![extension(SERVER_NAME, &vector(&two))]),
            ("no name", vec![extension(SERVER_NAME, &vector(b""))]),
            ("a name of another kind", vec![names(1, b"a.example")]),
            (
                "bytes behind the names",
                vec![extension(SERVER_NAME, &[vector(b"\0\0\x01a"), vec![0]].concat())],
            ),
            ("an empty name", vec![sni(b"")]),
            ("a dot alone", vec![sni(b".")]),
            ("two dots at the end", vec![sni(b"a.example..")]),
            ("an empty label", vec![sni(b"a..example")]),
            ("a zero byte", vec![sni(b"a.example\0.evil")]),
            ("white space", vec![sni(b"a example")]),
            ("a port", vec![sni(b"a.example:443")]),
            ("letters beyond ASCII", vec![sni("gr\u{f6}\u{df}e.example".as_bytes())]),
            ("an address and a dot", vec![sni(b"192.0.2.1.")]),
            ("an address in brackets", vec![sni(b"[::1]")]),
            ("half an address", vec![sni(b"192.0.2")]),
            ("a label of 64 bytes", vec![sni(&[b'a'; 64])]),
            ("a name of 255 bytes", vec![sni(&b"a.".repeat(128)[..255])]),
            ("no protocol", vec![extension(ALPN, &vector(b""))]),
            ("an empty protocol", vec![extension(ALPN, &vector(b"\0\x02h2"))]),
            ("half a protocol", vec![extension(ALPN, &vector(b"\x03h2"))]),
            ("no version", vec![extension(SUPPORTED_VERSIONS, b"\0")]),
            ("half a version", vec![extension(SUPPORTED_VERSIONS, b"\x03\x03\x04\x03")]),
            ("half an extension", vec![b"\0\x17\0\x05abc".to_vec()]),
            ("one twice", vec![extension(23, b""), extension(23, b"")]),
        ] {
            assert_eq!(read(&extensions), Err(HelloFault::Malformed), "{what}");
        }
        let (message, _) = full();
        for at in [4 + 2 + 32, 4 + 2 + 32 + 1 + 1] {
            let mut broken = message.clone();
            // The session's id is too long, the suites end amid one.
            broken[at] ^= 33;
            assert_eq!(client_hello(&records(&broken, 4096)), Err(HelloFault::Malformed), "{at}");
        }
    }

    /// However many names a hello has room for, those of one that is read take few bytes.
    #[test]
    fn protocols_are_counted() {
        let offer = |count: usize, bytes: usize| {
            let name = [&[bytes as u8][..], &vec![b'a'; bytes]].concat();
            read(&[extension(ALPN, &vector(&name.repeat(count)))])
                .map(|hello| hello.map(|hello| hello.alpn.len()))
        };
        let most = |bytes: usize| HELLO_PROTOCOLS_BYTES_MAX / (bytes + 1);
        for (what, count, bytes, expected) in [
            ("as many as may be", HELLO_PROTOCOLS_MAX, 1, true),
            ("one more", HELLO_PROTOCOLS_MAX + 1, 1, false),
            ("as many as fit", 30_000, 1, false),
            ("as long as may be", most(255), 255, true),
            ("longer", most(255) + 1, 255, false),
            ("as long as fit", 240, 255, false),
        ] {
            let expected = if expected { Ok(Some(count)) } else { Err(HelloFault::TooLong) };
            assert_eq!(offer(count, bytes), expected, "{what}");
        }
        let many: Vec<_> = (0..15_000).map(|kind| extension(0x1000 + kind, b"")).collect();
        assert_eq!(read(&many).map(|hello| hello.is_some()), Ok(true), "as many extensions as fit");
    }

    #[test]
    fn what_is_no_hello_is_refused_at_once() {
        for (what, wire, fault) in [
            ("plain text", &b"GET / HTTP/1.1\r\n"[..], HelloFault::NotTls),
            ("one byte of it", b"G", HelloFault::NotTls),
            ("SSLv2", b"\x80\x2e\x01\x03\x01", HelloFault::NotTls),
            ("an alert", b"\x15\x03\x01\0\x02", HelloFault::NotTls),
            ("SSL 2 in a record", b"\x16\x02\0\0\x05", HelloFault::NotTls),
            ("a server's hello", b"\x16\x03\x01\0\x01\x02", HelloFault::NotTls),
            ("an empty record", b"\x16\x03\x01\0\0", HelloFault::Malformed),
            ("a long record", b"\x16\x03\x01\x40\x01", HelloFault::Malformed),
            ("a long hello", b"\x16\x03\x01\0\x04\x01\x01\0\0", HelloFault::TooLong),
            ("more behind it", b"\x16\x03\x01\0\x06\x01\0\0\x01\0\0", HelloFault::Malformed),
        ] {
            assert_eq!(client_hello(wire), Err(fault), "{what}");
        }
        let (message, _) = full();
        let padded = extension(21, &vec![0; 600]);
        let long = self::message(Some(&[padded]));
        assert_eq!(client_hello(&records(&long, 1)), Err(HelloFault::TooLong), "a byte a record");
        assert!(message.len() < RECORDS_MAX);
    }

    /// What a library sends and another reads of it is what is read here.
    #[test]
    fn a_librarys_hello_is_read_as_the_library_does() {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let builder = builder.expect("versions").with_root_certificates(RootCertStore::empty());
        let mut config = builder.with_no_client_auth();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let name = "Shop.Example".try_into().expect("a DNS name");
        let mut client = ClientConnection::new(Arc::new(config), name).expect("a configuration");
        let mut wire = Vec::new();
        client.write_tls(&mut wire).expect("memory");
        let mut acceptor = rustls::server::Acceptor::default();
        acceptor.read_tls(&mut &wire[..]).expect("memory");
        let accepted = acceptor.accept().map_err(|_| "refused").expect("a good hello").expect("a whole one");
        let theirs = accepted.client_hello();
        let ours = client_hello(&wire).expect("a good hello").expect("a whole one");
        assert_eq!(ours.sni.as_deref(), theirs.server_name());
        let alpn: Vec<_> = theirs.alpn().expect("it was sent").map(<[u8]>::to_vec).collect();
        assert_eq!((ours.alpn, ours.version), (alpn, Some("1.3")));
    }

    #[test]
    fn a_session_is_shown_by_its_id_or_its_ticket() {
        let names = |wire: &[u8]| {
            let shown = shown_session(wire);
            shown.names().map(|name| name.as_bytes().to_vec()).collect::<Vec<_>>()
        };
        let (plain, ticket) = (message(Some(&[])), message(Some(&[extension(SESSION_TICKET, b"sealed")])));
        let with_id = |message: &[u8]| {
            let at = MESSAGE_HEAD_BYTES + 2 + 32;
            let mut body = [&message[MESSAGE_HEAD_BYTES..at], &[3], b"abc", &message[at + 1..]].concat();
            let length = (body.len() as u32).to_be_bytes();
            body.splice(..0, [CLIENT_HELLO, length[1], length[2], length[3]]);
            body
        };
        for bytes in [1, 5, RECORD_BYTES_MAX] {
            assert_eq!(names(&records(&plain, bytes)), [b""; 0]);
            assert_eq!(names(&records(&message(Some(&[extension(SESSION_TICKET, b"")])), bytes)), [b""; 0]);
            assert_eq!(names(&records(&with_id(&plain), bytes)), [b"\0abc"]);
            assert_eq!(names(&records(&ticket, bytes)), [b"\x01sealed"]);
            assert_eq!(names(&records(&with_id(&ticket), bytes)), [&b"\x01sealed"[..], b"\0abc"]);
        }
        let wire = records(&with_id(&ticket), RECORD_BYTES_MAX);
        assert_eq!(names(&wire[..wire.len() - 1]), [b""; 0], "it is not whole");
        assert_eq!(names(b"GET / HTTP/1.1\r\n"), [b""; 0]);
    }
}

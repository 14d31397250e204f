//! Hellos as clients send them, and as none should.

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
        ("bytes behind the names", vec![extension(SERVER_NAME, &[vector(b"\0\0\x01a"), vec![0]].concat())]),
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

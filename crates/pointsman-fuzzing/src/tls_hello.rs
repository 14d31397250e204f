//! ClientHellos: what is read does not depend on the records they come in, and names are names.

use pointsman_tls::{
    ClientHello, HELLO_WIRE_BYTES_MAX, HelloFault, SessionWatch, ShownSession, client_hello, shown_session,
};

pub(crate) const TOKENS: &[&str] = &[
    "\x16\x03\x01",
    "\x01\0",
    "\x02\0",
    "\x04\0",
    "\0\x23",
    "\0\0",
    "\0\x10",
    "\0\x2b",
    "\x0a\x0a",
    "a.example",
    "A.",
    "h2",
    "\x08http/1.1",
    "\x03\x04",
    "\0",
];

/// Panics where a property does not hold.
///
/// # Panics
/// With the property.
pub fn check(input: &[u8]) {
    names_do_not_hang_on_pieces(input);
    let read = client_hello(input);
    match &read {
        Ok(Some(hello)) => {
            is_clean(hello);
            let (message, bytes) = message(input);
            for end in 0..bytes {
                assert_eq!(client_hello(&input[..end]), Ok(None), "a part of it says nothing");
            }
            for bytes in [7, 300, 16 * 1024] {
                // So many records at most are no hello.
                if message.len() < bytes * 256 {
                    let shown = |wire: &[u8]| names(&shown_session(wire));
                    assert_eq!(shown(&records(&message, bytes)), shown(input), "in records of {bytes}");
                    assert_eq!(client_hello(&records(&message, bytes)), read, "in records of {bytes}");
                }
            }
        }
        Ok(None) => assert!(input.len() <= HELLO_WIRE_BYTES_MAX, "more is never needed"),
        Err(fault) => {
            assert_eq!(fault.alert().len(), 7);
            let longer = [input, b"\x16\x03\x01\0\x01\0"].concat();
            let again: Result<_, HelloFault> = client_hello(&longer);
            assert!(again.is_err(), "more makes it good");
        }
    }
}

/// The same bytes as a server's: what names its session is the same in whatever pieces they come.
fn names_do_not_hang_on_pieces(input: &[u8]) {
    let heard = |bytes: usize| {
        let (mut watch, mut names) = (SessionWatch::new(ShownSession::default()), Vec::new());
        let mut hear = |piece: &[u8]| watch.hear(piece, &mut |name| names.push(name.as_bytes().to_vec()));
        let goes_on = input.chunks(bytes).all(|piece| hear(piece).is_continue());
        (names, goes_on)
    };
    let whole = heard(input.len().max(1));
    assert!(whole.0.len() <= 2, "an identifier and a ticket");
    for bytes in [1, 7, 100] {
        assert_eq!(heard(bytes), whole, "in pieces of {bytes}");
    }
}

fn names(shown: &ShownSession) -> Vec<Vec<u8>> {
    shown.names().map(|name| name.as_bytes().to_vec()).collect()
}

fn is_clean(hello: &ClientHello) {
    if let Some(name) = &hello.sni {
        let is_of_names =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-_".contains(&byte);
        assert!(!name.is_empty() && name.len() <= 253 && name.bytes().all(is_of_names), "{name:?}");
        assert!(name.parse::<std::net::IpAddr>().is_err() && !name.contains("..") && !name.ends_with('.'));
    }
    assert!(hello.alpn.iter().all(|name| !name.is_empty()));
}

/// The message in the records at the start, by its own length, and where the record ends in which it does.
fn message(wire: &[u8]) -> (Vec<u8>, usize) {
    let (mut message, mut at) = (Vec::new(), 0);
    loop {
        let length = usize::from(wire[at + 3]) * 256 + usize::from(wire[at + 4]);
        message.extend_from_slice(&wire[at + 5..at + 5 + length]);
        at += 5 + length;
        if let [_, high, middle, low, ..] = message[..] {
            let length = 4 + usize::from(high) * 65_536 + usize::from(middle) * 256 + usize::from(low);
            if message.len() >= length {
                return (message, at);
            }
        }
    }
}

/// A message in records of so many bytes.
pub(crate) fn records(message: &[u8], bytes: usize) -> Vec<u8> {
    let record = |piece: &[u8]| [b"\x16\x03\x01", &(piece.len() as u16).to_be_bytes()[..], piece].concat();
    message.chunks(bytes).flat_map(record).collect()
}

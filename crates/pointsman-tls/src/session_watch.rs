//! What a server calls the session that it begins or goes on with, read as it passes: TLS 1.2 says it in the clear.
//!
//! Invariant: nothing that a server sends is refused here, nor changed, nor held back. What cannot be read names nothing.

use std::ops::ControlFlow::{self, Break, Continue};

use crate::hello::{HANDSHAKE, MESSAGE_HEAD_BYTES, RECORD_BYTES_MAX, RECORD_HEAD_BYTES};
use crate::reader::Reader;
use crate::session_name::{
    SESSION_ID_BYTES_MAX, SESSION_TICKET, SUPPORTED_VERSIONS, SessionName, ShownSession,
};

const SERVER_HELLO: u8 = 2;
const NEW_SESSION_TICKET: u8 = 4;

/// A longer message than this names nothing: hellos have some hundred bytes, tickets a few thousand where they hold a
/// client's certificates.
const MESSAGE_BYTES_MAX: usize = 8 * 1024;

/// More bytes than this come before no ticket: certificates are the most of them.
const WATCHED_BYTES_MAX: usize = 256 * 1024;

/// Listens to one server from its first byte on, until it has named its session, or will not. Holds one message at most,
/// and nothing of the others.
#[derive(Debug)]
pub struct SessionWatch {
    shown: ShownSession,
    record: Part<RECORD_HEAD_BYTES>,
    message: Part<MESSAGE_HEAD_BYTES>,
    /// What has come of a message that is read.
    held: Vec<u8>,
    /// Whether the server has said hello: then a ticket is all that is waited for.
    has_said_hello: bool,
    watched_bytes: usize,
}

/// A head and how much behind it belongs to it.
#[derive(Debug)]
struct Part<const HEAD: usize> {
    head: [u8; HEAD],
    head_bytes: usize,
    /// How much of the rest is still to come.
    left: usize,
}

impl<const HEAD: usize> Part<HEAD> {
    const BEGIN: Part<HEAD> = Part { head: [0; HEAD], head_bytes: 0, left: 0 };

    /// Takes what belongs to the head. Says whether it is whole by that.
    fn take_head(&mut self, bytes: &mut &[u8]) -> bool {
        let (head, rest) = bytes.split_at(bytes.len().min(HEAD - self.head_bytes));
        self.head[self.head_bytes..self.head_bytes + head.len()].copy_from_slice(head);
        self.head_bytes += head.len();
        *bytes = rest;
        !head.is_empty() && self.head_bytes == HEAD
    }

    /// Takes what belongs to the rest.
    fn take<'b>(&mut self, bytes: &mut &'b [u8]) -> &'b [u8] {
        let (taken, rest) = bytes.split_at(bytes.len().min(self.left));
        self.left -= taken.len();
        *bytes = rest;
        taken
    }

    fn is_over(&self) -> bool {
        self.head_bytes == HEAD && self.left == 0
    }
}

impl SessionWatch {
    /// Listens to the server of a client that has shown this.
    #[must_use]
    pub fn new(shown: ShownSession) -> SessionWatch {
        SessionWatch {
            shown,
            record: Part::BEGIN,
            message: Part::BEGIN,
            held: Vec::new(),
            has_said_hello: false,
            watched_bytes: 0,
        }
    }

    /// Hears what the server says next, and tells by what its session may be known. It breaks off once nothing of that can
    /// follow: the rest need not be heard.
    pub fn hear(&mut self, mut bytes: &[u8], named: &mut impl FnMut(&SessionName)) -> ControlFlow<()> {
        self.watched_bytes = self.watched_bytes.saturating_add(bytes.len());
        while !bytes.is_empty() {
            if self.record.take_head(&mut bytes) {
                let [kind, major, _, high, low] = self.record.head;
                self.record.left = u16::from_be_bytes([high, low]).into();
                // What is neither is encrypted from here on, or no TLS.
                if kind != HANDSHAKE || major != 3 || !(1..=RECORD_BYTES_MAX).contains(&self.record.left) {
                    return Break(());
                }
            }
            let mut piece = self.record.take(&mut bytes);
            while !piece.is_empty() {
                self.hear_messages(&mut piece, named)?;
            }
            if self.record.is_over() {
                self.record = Part::BEGIN;
            }
        }
        if self.watched_bytes > WATCHED_BYTES_MAX { Break(()) } else { Continue(()) }
    }

    /// Takes what belongs to one message of those in a record.
    fn hear_messages(&mut self, piece: &mut &[u8], named: &mut impl FnMut(&SessionName)) -> ControlFlow<()> {
        if self.message.take_head(piece) {
            let [kind, high, middle, low] = self.message.head;
            self.message.left = u32::from_be_bytes([0, high, middle, low]) as usize;
            // The hello is the first that a server says.
            let is_out_of_turn = (kind == SERVER_HELLO) == self.has_said_hello;
            if is_out_of_turn || self.is_read() && self.message.left > MESSAGE_BYTES_MAX {
                return Break(());
            }
        }
        let part = self.message.take(piece);
        if self.is_read() {
            self.held.extend_from_slice(part);
        }
        if !self.message.is_over() {
            return Continue(());
        }
        let is_read = self.is_read();
        self.message = Part::BEGIN;
        if !is_read {
            return Continue(());
        }
        let whole = std::mem::take(&mut self.held);
        if self.has_said_hello {
            new_session_ticket(&whole).iter().for_each(named);
            return Break(());
        }
        self.has_said_hello = true;
        let Some(ServerHello { id, is_ticket_to_come }) = server_hello(&whole) else { return Break(()) };
        id.iter().filter(|id| self.shown.is_named_by(id)).for_each(named);
        if is_ticket_to_come { Continue(()) } else { Break(()) }
    }

    /// Whether the message that comes is one that names something.
    fn is_read(&self) -> bool {
        self.message.head_bytes == MESSAGE_HEAD_BYTES
            && matches!(self.message.head[0], SERVER_HELLO | NEW_SESSION_TICKET)
    }
}

/// What is heard of a ServerHello of TLS 1.2 or older.
struct ServerHello {
    id: Option<SessionName>,
    is_ticket_to_come: bool,
}

/// Reads one (RFC 5246 section 7.4.1.3). Nothing where it is broken, or agrees on TLS 1.3, which a server says by an
/// extension: what stands in the place of an identifier is the client's then (RFC 8446 section 4.1.3).
fn server_hello(body: &[u8]) -> Option<ServerHello> {
    let mut body = Reader(body);
    body.take(2 + 32)?;
    let id = body.short_vector()?;
    // The suite, and how it is compressed.
    body.take(2 + 1)?;
    if id.len() > SESSION_ID_BYTES_MAX {
        return None;
    }
    let mut hello = ServerHello { id: SessionName::of_id(id), is_ticket_to_come: false };
    if body.is_empty() {
        return Some(hello);
    }
    let mut extensions = Reader(body.vector()?);
    while !extensions.is_empty() {
        let (kind, _) = (extensions.u16()?, extensions.vector()?);
        match kind {
            SUPPORTED_VERSIONS => return None,
            SESSION_TICKET => hello.is_ticket_to_come = true,
            _ => {}
        }
    }
    Some(hello)
}

/// The ticket of a NewSessionTicket (RFC 5077 section 3.3), if the server gives one after all.
fn new_session_ticket(body: &[u8]) -> Option<SessionName> {
    let mut body = Reader(body);
    body.take(4)?;
    SessionName::of_ticket(body.vector()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICKET: &[u8] = &[0, 35, 0, 0];
    const V13: &[u8] = &[0, 43, 0, 2, 3, 4];
    const OTHER: &[u8] = &[0xff, 1, 0, 1, 0];

    fn message(kind: u8, body: &[u8]) -> Vec<u8> {
        [&[kind][..], &(body.len() as u32).to_be_bytes()[1..], body].concat()
    }

    fn hello(id: &[u8], extensions: Option<&[&[u8]]>) -> Vec<u8> {
        let mut body = [&[3, 3][..], &[9; 32], &[id.len() as u8], id, &[0xc0, 0x2f, 0]].concat();
        if let Some(extensions) = extensions.map(<[_]>::concat) {
            body.extend((extensions.len() as u16).to_be_bytes());
            body.extend(extensions);
        }
        message(SERVER_HELLO, &body)
    }

    fn ticket(ticket: &[u8]) -> Vec<u8> {
        let length = (ticket.len() as u16).to_be_bytes();
        message(NEW_SESSION_TICKET, &[&[0, 0, 1, 0], &length[..], ticket].concat())
    }

    fn certificates(bytes: usize) -> Vec<u8> {
        message(11, &vec![7; bytes])
    }

    fn records(messages: &[u8], bytes: usize) -> Vec<u8> {
        let record = |piece: &[u8]| [&[22, 3, 3][..], &(piece.len() as u16).to_be_bytes(), piece].concat();
        messages.chunks(bytes).flat_map(record).collect()
    }

    /// What is heard in pieces of so many bytes, and whether the watch goes on behind it.
    fn heard(shown: &ShownSession, wire: &[u8], bytes: usize) -> (Vec<Vec<u8>>, bool) {
        let (mut watch, mut names) = (SessionWatch::new(shown.clone()), Vec::new());
        let mut hear = |piece| watch.hear(piece, &mut |name| names.push(name.as_bytes().to_vec()));
        let goes_on = wire.chunks(bytes).all(|piece| hear(piece).is_continue());
        assert!(watch.held.len() <= MESSAGE_BYTES_MAX);
        (names, goes_on)
    }

    fn check(what: &str, shown: &ShownSession, messages: &[Vec<u8>], names: &[&[u8]], goes_on: bool) {
        let messages = messages.concat();
        for record in [1, 3, 100, RECORD_BYTES_MAX] {
            let wire = records(&messages, record);
            for piece in [1, 7, 1000, wire.len()] {
                let found = heard(shown, &wire, piece);
                let expected = (names.iter().map(|name| name.to_vec()).collect(), goes_on);
                assert_eq!(found, expected, "{what}, in records of {record}, in pieces of {piece}");
            }
        }
    }

    #[test]
    fn a_server_names_its_session_by_an_id_or_a_ticket() {
        let (nothing, both) = (ShownSession::default(), ShownSession::new(b"own", b"sealed"));
        let (by_id, done) = (ShownSession::new(b"abc", b""), message(14, b""));
        let chain = certificates(5000);
        for (what, shown, messages, names, goes_on) in [
            ("an id", &nothing, vec![hello(b"abc", Some(&[OTHER]))], &[&b"\0abc"[..]][..], false),
            ("of a server without extensions", &nothing, vec![hello(b"abc", None)], &[b"\0abc"], false),
            ("none", &nothing, vec![hello(b"", Some(&[OTHER]))], &[], false),
            ("resumed", &by_id, vec![hello(b"abc", Some(&[]))], &[b"\0abc"], false),
            ("not resumed", &by_id, vec![hello(b"xyz", None)], &[b"\0xyz"], false),
            ("TLS 1.3", &by_id, vec![hello(b"abc", Some(&[OTHER, V13]))], &[], false),
            ("a ticket", &nothing, vec![hello(b"", Some(&[TICKET])), chain.clone()], &[], true),
            (
                "the same to its end",
                &nothing,
                vec![hello(b"", Some(&[OTHER, TICKET])), chain, done.clone(), ticket(b"new")],
                &[b"\x01new"],
                false,
            ),
            ("no ticket after all", &nothing, vec![hello(b"", Some(&[TICKET])), ticket(b"")], &[], false),
            (
                "an id, too",
                &nothing,
                vec![hello(b"a", Some(&[TICKET])), ticket(b"b")],
                &[b"\0a", b"\x01b"],
                false,
            ),
            ("a ticket taken", &both, vec![hello(b"own", None)], &[], false),
            ("and renewed", &both, vec![hello(b"own", Some(&[TICKET])), ticket(b"b")], &[b"\x01b"], false),
            ("refused", &both, vec![hello(b"other", None)], &[b"\0other"], false),
        ] {
            check(what, shown, &messages, names, goes_on);
        }
    }

    #[test]
    fn what_is_not_understood_ends_the_watch() {
        let nothing = ShownSession::default();
        let long = hello(b"abc", Some(&[&[&[0, 99, 0x20, 0][..], &[0; 8192]].concat()]));
        for (what, messages) in [
            ("a ticket before a hello", vec![ticket(b"a")]),
            ("a certificate before it", vec![certificates(5)]),
            ("a request", vec![message(0, b"")]),
            ("a long hello", vec![long]),
            ("half a hello", vec![message(SERVER_HELLO, &[3, 3, 9, 9])]),
            ("a long id", vec![hello(&[5; 33], None)]),
            ("half an extension", vec![hello(b"abc", Some(&[&[0, 35, 0, 9]]))]),
        ] {
            check(what, &nothing, &messages, &[], false);
        }
        let twice = [hello(b"a", Some(&[TICKET])), hello(b"b", None)];
        check("two hellos", &nothing, &twice, &[b"\0a"], false);
        let long = [hello(b"", Some(&[TICKET])), ticket(&[1; MESSAGE_BYTES_MAX])];
        check("a long ticket", &nothing, &long, &[], false);
        let hello = records(&hello(b"", Some(&[TICKET])), 100);
        for wire in [
            &b"HTTP/1.1 400 Bad Request\r\n\r\n"[..],
            b"220 mail\r\n",
            b"\x15\x03\x03\0\x02\x02\x28",
            b"\x16\x02\0\0\x01\x02",
            b"\x16\x03\x03\0\0",
            b"\x16\x03\x03\x40\x01",
        ] {
            assert_eq!(heard(&nothing, wire, 1), (vec![], false), "{wire:?}");
            assert_eq!(heard(&nothing, &[&hello, wire].concat(), 3), (vec![], false), "{wire:?}");
        }
        // Encrypted from here on.
        assert_eq!(heard(&nothing, &[&hello, &b"\x14\x03\x03\0\x01\x01"[..]].concat(), 9), (vec![], false));
    }

    #[test]
    fn nobody_is_listened_to_for_ever() {
        let messages = [hello(b"", Some(&[TICKET])), certificates(1 << 20)].concat();
        let wire = records(&messages, RECORD_BYTES_MAX);
        let (mut watch, mut heard) = (SessionWatch::new(ShownSession::default()), 0);
        for piece in wire.chunks(1000) {
            heard += piece.len();
            if watch.hear(piece, &mut |_| panic!("no name")).is_break() {
                break;
            }
        }
        assert!((WATCHED_BYTES_MAX..WATCHED_BYTES_MAX + 2000).contains(&heard), "{heard}");
        assert!(watch.held.capacity() <= MESSAGE_BYTES_MAX);
    }
}

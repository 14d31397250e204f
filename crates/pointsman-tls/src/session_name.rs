//! What a session of TLS 1.2 and older is called on the wire, where whoever stands between client and server can read it.
//!
//! Under TLS 1.3 nothing names a session: identifiers are drawn anew for each connection (RFC 8446 appendix D.4), and
//! tickets come encrypted.

/// Bytes of the longest identifier (RFC 5246 section 7.4.1.2).
pub(crate) const SESSION_ID_BYTES_MAX: usize = 32;

/// The extension in which a client shows a ticket, and a server says that one will come (RFC 5077 section 3.2).
pub(crate) const SESSION_TICKET: u16 = 35;

pub(crate) const SUPPORTED_VERSIONS: u16 = 43;

/// An identifier or a ticket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionName(Vec<u8>);

impl SessionName {
    const ID: u8 = 0;
    const TICKET: u8 = 1;

    /// Nothing where it is empty, which names no session.
    pub(crate) fn of_id(id: &[u8]) -> Option<SessionName> {
        SessionName::new(SessionName::ID, id)
    }

    /// The same.
    pub(crate) fn of_ticket(ticket: &[u8]) -> Option<SessionName> {
        SessionName::new(SessionName::TICKET, ticket)
    }

    fn new(kind: u8, name: &[u8]) -> Option<SessionName> {
        (!name.is_empty()).then(|| SessionName([&[kind], name].concat()))
    }

    /// Bytes that no other name has, an identifier not those of a ticket.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// The session that a client would resume, as far as its hello shows one.
#[derive(Clone, Debug, Default)]
pub struct ShownSession {
    id: Option<SessionName>,
    ticket: Option<SessionName>,
}

impl ShownSession {
    pub(crate) fn new(id: &[u8], ticket: &[u8]) -> ShownSession {
        ShownSession { id: SessionName::of_id(id), ticket: SessionName::of_ticket(ticket) }
    }

    /// What it may be known by. A ticket goes first: beside one the identifier is the client's own, by which it learns
    /// whether the ticket was taken (RFC 5077 section 3.4).
    pub fn names(&self) -> impl Iterator<Item = &SessionName> {
        self.ticket.iter().chain(&self.id)
    }

    /// Whether an identifier that the server says names the session, and is not what the client drew beside its ticket.
    pub(crate) fn is_named_by(&self, id: &SessionName) -> bool {
        self.ticket.is_none() || self.id.as_ref() != Some(id)
    }
}

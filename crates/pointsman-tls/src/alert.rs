//! Alerts to clients whose TLS is not ended here, before their server has said a word.

/// Why a client is not served whose hello is sound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alert {
    /// A rule refuses it.
    AccessDenied,
    /// Nothing is wrong with it: there is no server, or no memory.
    InternalError,
}

impl Alert {
    /// The alert as a record of its own, fatal (RFC 8446 section 6.2).
    pub fn record(self) -> [u8; 7] {
        fatal(match self {
            Alert::AccessDenied => 49,
            Alert::InternalError => 80,
        })
    }
}

pub(crate) fn fatal(what: u8) -> [u8; 7] {
    [21, 3, 3, 0, 2, 2, what]
}

//! The certificates that a client has shown, kept to be looked at again.

use std::fmt;

use rustls::pki_types::CertificateDer;

/// What a client has shown in its handshake: its own certificate, and those between that and an authority.
#[derive(Clone)]
pub struct ClientChain {
    leaf: CertificateDer<'static>,
    others: Vec<CertificateDer<'static>>,
}

impl ClientChain {
    /// Nothing where none was shown.
    pub(crate) fn of(shown: &[CertificateDer<'_>]) -> Option<ClientChain> {
        let (leaf, others) = shown.split_first()?;
        let others = others.iter().map(|certificate| certificate.clone().into_owned()).collect();
        Some(ClientChain { leaf: leaf.clone().into_owned(), others })
    }

    pub(crate) fn leaf(&self) -> &CertificateDer<'static> {
        &self.leaf
    }

    pub(crate) fn others(&self) -> &[CertificateDer<'static>] {
        &self.others
    }
}

impl fmt::Debug for ClientChain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientChain").field("certificates", &(1 + self.others.len())).finish_non_exhaustive()
    }
}

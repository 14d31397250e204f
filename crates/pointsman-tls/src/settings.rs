//! What an operator wrote about TLS on a listener and to a pool's servers, as plain data.

use std::path::PathBuf;

/// TLS on one listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerTls {
    /// Certificates with their keys. The first is the default: it goes to clients that name no server, or
    /// one that no certificate is for.
    pub certificates: Vec<CertificateFiles>,
    /// The oldest version that is spoken.
    pub min_version: TlsVersion,
    /// Protocols for ALPN, best first. Empty: the extension is ignored. Otherwise a client that offers
    /// protocols but none of these is refused with the alert `no_application_protocol` (RFC 7301,
    /// section 3.2); a client that does not use the extension is served.
    pub alpn: Vec<Vec<u8>>,
    /// Whether sessions can be resumed, by tickets (1.3 and 1.2) or session identifiers (1.2).
    pub tickets: bool,
    /// How long a session can be resumed after the handshake that made or continued it, in seconds.
    pub session_s_max: u32,
    /// A file of keys that tickets are sealed with, the same for all processes that take each other's; `None`: keys
    /// that the acceptor draws and replaces by itself.
    pub ticket_keys: Option<PathBuf>,
    /// A PEM file of the authorities that client certificates must come from.
    pub client_ca: Option<PathBuf>,
    /// Whether clients are asked for a certificate.
    pub client_auth: ClientAuth,
}

/// TLS to the servers of one pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientTls {
    /// A PEM file of the authorities that a server's certificate must come from; a server may also show a
    /// certificate that stands in it itself. `None`: the authorities that the system trusts.
    pub ca: Option<PathBuf>,
    /// What is shown to a server that asks for a certificate.
    pub certificate: Option<CertificateFiles>,
    /// Whether a server's certificate is checked at all.
    pub verify: bool,
    /// The oldest version that is spoken.
    pub min_version: TlsVersion,
    /// The application protocol that is asked for (ALPN).
    pub protocol: &'static str,
}

/// A certificate chain, leaf first, and the leaf's private key: two PEM files, or one file named twice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFiles {
    /// The chain.
    pub certificate: PathBuf,
    /// The key.
    pub key: PathBuf,
    /// File whose first line is the passphrase of an encrypted key.
    pub key_passphrase: Option<PathBuf>,
}

impl CertificateFiles {
    /// A pair whose key is not encrypted.
    pub fn new(certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> CertificateFiles {
        CertificateFiles { certificate: certificate.into(), key: key.into(), key_passphrase: None }
    }
}

/// The oldest version of TLS that is spoken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TlsVersion {
    /// 1.2 and 1.3.
    #[default]
    Tls12,
    /// 1.3 only.
    Tls13,
}

/// Whether clients are asked for a certificate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ClientAuth {
    /// Not asked.
    #[default]
    Off,
    /// Asked, and served without one. A certificate that does not verify still fails the handshake: a
    /// client that shows who it is and cannot prove it is not treated as one that kept silent.
    Request,
    /// Asked, and refused without one.
    Require,
}

/// What the handshakes of an acceptor can come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terms {
    /// The oldest version that is spoken.
    pub min_version: TlsVersion,
    /// Protocols that can be agreed on by ALPN, best first.
    pub alpn: Vec<Vec<u8>>,
    /// Whether sessions can be resumed.
    pub tickets: bool,
    /// Whether clients are asked for a certificate.
    pub client_auth: ClientAuth,
    /// Whether a certificate with a key of RSA can be shown.
    pub signs_by_rsa: bool,
    /// Whether one with another key can.
    pub signs_by_ecdsa: bool,
}

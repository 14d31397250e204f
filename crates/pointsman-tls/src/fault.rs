//! Why a handshake failed.

use std::io;

use rustls::{AlertDescription, Error, InvalidMessage, PeerIncompatible};

use crate::words::{Worded, is_old_version};

/// What was wrong with a handshake, by what an operator can do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandshakeFault {
    /// What came is no record of TLS: plain HTTP, for instance.
    NotTls,
    /// A message that is broken, or came out of turn.
    Malformed,
    /// No version that both sides speak: the hello offers none, or names no signature scheme, as those before 1.2.
    NoSharedVersion,
    /// No cipher suite, key exchange or signature scheme that both sides know.
    NoSharedCipher,
    /// No application protocol (ALPN) that both sides speak.
    NoSharedProtocol,
    /// The client showed no certificate where it must, or one that does not verify.
    ClientCertificate,
    /// The client showed a certificate of X.509 version 1 or 2.
    ClientCertificateVersion,
    /// The client refuses our certificate: it said so in an alert.
    ServerCertificate,
    /// The client broke it off with another alert.
    Alert,
    /// The connection ended.
    Closed,
    /// Something else.
    Other,
}

impl HandshakeFault {
    /// What the error of [`crate::Acceptor::accept`] means.
    pub fn of(error: &io::Error) -> HandshakeFault {
        match library_error(error) {
            Some(error) => of_library(error),
            None if has_ended(error) => HandshakeFault::Closed,
            // A certificate that verified and cannot be read.
            None if error.kind() == io::ErrorKind::InvalidData => HandshakeFault::ClientCertificate,
            None => HandshakeFault::Other,
        }
    }
}

/// What TLS itself has to say, with clients and servers alike.
pub(crate) fn library_error(error: &io::Error) -> Option<&Error> {
    let inner = error.get_ref()?;
    inner.downcast_ref().or_else(|| inner.downcast_ref::<Worded>().map(|worded| &worded.0))
}

/// Whether the connection underneath has ended.
pub(crate) fn has_ended(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::UnexpectedEof
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::NotConnected
    )
}

/// Whether the library could not read what came as TLS at all.
pub(crate) fn is_not_tls(error: &Error) -> bool {
    matches!(
        error,
        Error::InvalidMessage(InvalidMessage::InvalidContentType | InvalidMessage::UnknownProtocolVersion)
    )
}

/// Whether a message is broken, or came out of turn.
pub(crate) fn is_malformed(error: &Error) -> bool {
    matches!(
        error,
        Error::InvalidMessage(_)
            | Error::InappropriateMessage { .. }
            | Error::InappropriateHandshakeMessage { .. }
            | Error::PeerMisbehaved(_)
            | Error::DecryptError
            | Error::PeerSentOversizedRecord
    )
}

fn of_library(error: &Error) -> HandshakeFault {
    match error {
        error if is_not_tls(error) => HandshakeFault::NotTls,
        error if is_malformed(error) => HandshakeFault::Malformed,
        Error::PeerIncompatible(
            PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig
            | PeerIncompatible::ServerDoesNotSupportTls12Or13
            | PeerIncompatible::SupportedVersionsExtensionRequired
            | PeerIncompatible::Tls12NotOffered
            | PeerIncompatible::Tls12NotOfferedOrEnabled
            // Clients name them from 1.2 on (RFC 5246 section 7.4.1.4.1); it is looked at before the version.
            | PeerIncompatible::SignatureAlgorithmsExtensionRequired,
        ) => HandshakeFault::NoSharedVersion,
        Error::PeerIncompatible(_) => HandshakeFault::NoSharedCipher,
        Error::NoApplicationProtocol => HandshakeFault::NoSharedProtocol,
        Error::InvalidCertificate(fault) if is_old_version(fault) => HandshakeFault::ClientCertificateVersion,
        Error::NoCertificatesPresented | Error::InvalidCertificate(_) => HandshakeFault::ClientCertificate,
        Error::AlertReceived(
            AlertDescription::BadCertificate
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::CertificateRevoked
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateUnknown
            | AlertDescription::UnknownCA,
        ) => HandshakeFault::ServerCertificate,
        Error::AlertReceived(_) => HandshakeFault::Alert,
        _ => HandshakeFault::Other,
    }
}

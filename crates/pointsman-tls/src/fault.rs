//! Why a handshake failed.

use std::io;

use rustls::{AlertDescription, Error, InvalidMessage, PeerIncompatible};

/// What was wrong with a handshake, by what an operator can do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandshakeFault {
    /// What came is no record of TLS: plain HTTP, for instance.
    NotTls,
    /// A message that is broken, or came out of turn.
    Malformed,
    /// No version that both sides speak.
    NoSharedVersion,
    /// No cipher suite, key exchange or signature scheme that both sides know.
    NoSharedCipher,
    /// No application protocol (ALPN) that both sides speak.
    NoSharedProtocol,
    /// The client showed no certificate where it must, or one that does not verify.
    ClientCertificate,
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
        match error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) {
            Some(error) => of_library(error),
            None => match error.kind() {
                io::ErrorKind::UnexpectedEof
                | io::ErrorKind::ConnectionReset
                | io::ErrorKind::ConnectionAborted
                | io::ErrorKind::BrokenPipe
                | io::ErrorKind::NotConnected => HandshakeFault::Closed,
                // A certificate that verified and cannot be read.
                io::ErrorKind::InvalidData => HandshakeFault::ClientCertificate,
                _ => HandshakeFault::Other,
            },
        }
    }
}

fn of_library(error: &Error) -> HandshakeFault {
    match error {
        Error::InvalidMessage(
            InvalidMessage::InvalidContentType | InvalidMessage::UnknownProtocolVersion,
        ) => HandshakeFault::NotTls,
        Error::InvalidMessage(_)
        | Error::InappropriateMessage { .. }
        | Error::InappropriateHandshakeMessage { .. }
        | Error::PeerMisbehaved(_)
        | Error::DecryptError
        | Error::PeerSentOversizedRecord => HandshakeFault::Malformed,
        Error::PeerIncompatible(
            PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig
            | PeerIncompatible::ServerDoesNotSupportTls12Or13
            | PeerIncompatible::SupportedVersionsExtensionRequired
            | PeerIncompatible::Tls12NotOffered
            | PeerIncompatible::Tls12NotOfferedOrEnabled,
        ) => HandshakeFault::NoSharedVersion,
        Error::PeerIncompatible(_) => HandshakeFault::NoSharedCipher,
        Error::NoApplicationProtocol => HandshakeFault::NoSharedProtocol,
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

//! Why a handshake with a server failed.

use std::io;

use rustls::{AlertDescription, CertificateError, Error, PeerIncompatible};

use crate::fault::{has_ended, is_malformed, is_not_tls, library_error};
use crate::words::is_old_version;

/// What was wrong with a handshake with a server, by what an operator can do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerHandshakeFault {
    /// The server's certificate comes from no authority that is trusted.
    Untrusted,
    /// Its certificate is for another name.
    WrongName,
    /// Its certificate has expired.
    Expired,
    /// Its certificate is not valid yet.
    NotYetValid,
    /// Its certificate is of X.509 version 1 or 2.
    CertificateVersion,
    /// Its certificate cannot be used for another reason.
    BadCertificate,
    /// The server refuses our certificate, or wants one: it said so in an alert.
    OurCertificate,
    /// The server does not know the name that it was called by: it said so in an alert.
    UnknownName,
    /// What came is no record of TLS: plain HTTP, for instance.
    NotTls,
    /// A message that is broken, or came out of turn.
    Malformed,
    /// No version that both sides speak.
    NoSharedVersion,
    /// No cipher suite, key exchange or signature scheme that both sides know.
    NoSharedCipher,
    /// The server does not speak the protocol that was asked for, and said so (ALPN).
    NoSharedProtocol,
    /// The server broke it off with another alert.
    Alert,
    /// The connection ended.
    Closed,
    /// Something else.
    Other,
}

impl ServerHandshakeFault {
    /// What the error of [`crate::Connector::connect`] means, or of reading from the server behind it.
    pub fn of(error: &io::Error) -> ServerHandshakeFault {
        match library_error(error) {
            Some(error) => of_library(error),
            None if has_ended(error) => ServerHandshakeFault::Closed,
            None => ServerHandshakeFault::Other,
        }
    }

    /// What TLS itself has to say of an error of reading; `None` where the connection broke underneath it.
    pub fn of_tls(error: &io::Error) -> Option<ServerHandshakeFault> {
        library_error(error).map(of_library)
    }
}

fn of_library(error: &Error) -> ServerHandshakeFault {
    match error {
        Error::InvalidCertificate(error) => of_certificate(error),
        Error::AlertReceived(alert) => of_alert(*alert),
        error if is_not_tls(error) => ServerHandshakeFault::NotTls,
        error if is_malformed(error) => ServerHandshakeFault::Malformed,
        Error::PeerIncompatible(
            PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig
            | PeerIncompatible::ServerDoesNotSupportTls12Or13,
        ) => ServerHandshakeFault::NoSharedVersion,
        Error::PeerIncompatible(_) => ServerHandshakeFault::NoSharedCipher,
        Error::NoApplicationProtocol => ServerHandshakeFault::NoSharedProtocol,
        Error::NoCertificatesPresented => ServerHandshakeFault::BadCertificate,
        _ => ServerHandshakeFault::Other,
    }
}

fn of_certificate(error: &CertificateError) -> ServerHandshakeFault {
    match error {
        CertificateError::UnknownIssuer | CertificateError::BadSignature => ServerHandshakeFault::Untrusted,
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            ServerHandshakeFault::WrongName
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => ServerHandshakeFault::Expired,
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            ServerHandshakeFault::NotYetValid
        }
        other if is_old_version(other) => ServerHandshakeFault::CertificateVersion,
        _ => ServerHandshakeFault::BadCertificate,
    }
}

fn of_alert(alert: AlertDescription) -> ServerHandshakeFault {
    match alert {
        AlertDescription::NoCertificate
        | AlertDescription::BadCertificate
        | AlertDescription::UnsupportedCertificate
        | AlertDescription::CertificateRevoked
        | AlertDescription::CertificateExpired
        | AlertDescription::CertificateUnknown
        | AlertDescription::CertificateRequired
        | AlertDescription::UnknownCA
        | AlertDescription::AccessDenied => ServerHandshakeFault::OurCertificate,
        AlertDescription::UnrecognisedName => ServerHandshakeFault::UnknownName,
        AlertDescription::ProtocolVersion => ServerHandshakeFault::NoSharedVersion,
        AlertDescription::InsufficientSecurity => ServerHandshakeFault::NoSharedCipher,
        AlertDescription::NoApplicationProtocol => ServerHandshakeFault::NoSharedProtocol,
        _ => ServerHandshakeFault::Alert,
    }
}

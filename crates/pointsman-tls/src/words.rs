//! Errors of TLS in words: the library prints some of them as the Rust types that they are.

use std::fmt;
use std::io;

use rustls::{CertificateError, Error};

/// An error of the library that is displayed in words.
#[derive(Debug)]
pub(crate) struct Worded(pub(crate) Error);

impl fmt::Display for Worded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&in_words(&self.0))
    }
}

impl std::error::Error for Worded {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

/// The same error, displayed in words if it is one of the library.
pub fn worded(error: io::Error) -> io::Error {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) {
        Some(inner) => io::Error::new(error.kind(), Worded(inner.clone())),
        None => error,
    }
}

/// Text of an error of the library.
pub fn in_words(error: &Error) -> String {
    match error {
        Error::InvalidMessage(fault) => format!("what came is broken: {}", spaced(fault)),
        Error::PeerIncompatible(fault) => format!("nothing in common: {}", spaced(fault)),
        Error::PeerMisbehaved(fault) => format!("the peer breaks the protocol: {}", spaced(fault)),
        Error::AlertReceived(alert) => {
            format!("the peer sent the alert `{}`", spaced(alert).replace(' ', "_"))
        }
        Error::InvalidCertificate(fault) => format!("the peer's certificate {}", of_certificate(fault)),
        Error::NoCertificatesPresented => "the peer shows no certificate".to_owned(),
        Error::Other(_) => "the cryptographic library refuses it".to_owned(),
        other => other.to_string(),
    }
}

/// What is wrong with a certificate, behind its name.
fn of_certificate(fault: &CertificateError) -> String {
    match fault {
        CertificateError::BadEncoding => "cannot be read",
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => "has expired",
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => "is not valid yet",
        CertificateError::Revoked => "was revoked",
        CertificateError::UnhandledCriticalExtension => "has a critical extension that is not known",
        CertificateError::UnknownIssuer => "comes from no authority that is trusted",
        CertificateError::BadSignature => "is not signed by the authority that it names",
        CertificateError::UnsupportedSignatureAlgorithmContext { .. }
        | CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => {
            "has a key or a signature of a kind that is not supported"
        }
        CertificateError::NotValidForName => "is for another name",
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "is for another purpose (extended key usage)"
        }
        other if is_old_version(other) => {
            "is of X.509 version 1 or 2, and TLS takes version 3 alone (RFC 5246 section 7.4.6)"
        }
        CertificateError::Other(inner) => return format!("cannot be used: {}", spaced(&inner.0)),
        // These have words of their own.
        CertificateError::NotValidForNameContext { .. } => return format!("is for another name: {fault}"),
        other => return format!("cannot be used: {}", spaced(other)),
    }
    .to_owned()
}

/// Whether a certificate is of another version than 3. The crate that says so is not one of ours.
pub(crate) fn is_old_version(fault: &CertificateError) -> bool {
    matches!(fault, CertificateError::Other(inner) if format!("{:?}", inner.0) == "UnsupportedCertVersion")
}

/// The name of a variant as words in lower case: `MissingKeyShare` becomes `missing key share`.
fn spaced(fault: &impl fmt::Debug) -> String {
    let name = format!("{fault:?}");
    let name = name.split(['(', '{', ' ']).next().unwrap_or_default();
    let mut words = String::with_capacity(name.len() + 8);
    let mut was_lower = false;
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && was_lower {
            words.push(' ');
        }
        was_lower = letter.is_ascii_lowercase() || letter.is_ascii_digit();
        words.push(letter.to_ascii_lowercase());
    }
    words
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rustls::{AlertDescription, InvalidMessage, OtherError, PeerIncompatible, PeerMisbehaved};

    use super::*;

    /// Stands for an error of a crate that ours do not name.
    #[derive(Debug)]
    struct UnsupportedCertVersion;

    impl fmt::Display for UnsupportedCertVersion {
        fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
            Ok(())
        }
    }

    impl std::error::Error for UnsupportedCertVersion {}

    #[test]
    fn no_error_shows_a_type_of_rust() {
        let other = |inner: Arc<dyn std::error::Error + Send + Sync>| {
            Error::InvalidCertificate(CertificateError::Other(OtherError(inner)))
        };
        for (error, expected) in [
            (
                other(Arc::new(UnsupportedCertVersion)),
                "the peer's certificate is of X.509 version 1 or 2, and TLS takes version 3 alone (RFC 5246 section 7.4.6)",
            ),
            (other(Arc::new(Error::DecryptError)), "the peer's certificate cannot be used: decrypt error"),
            (
                Error::InvalidCertificate(CertificateError::UnknownIssuer),
                "the peer's certificate comes from no authority that is trusted",
            ),
            (
                Error::InvalidCertificate(CertificateError::UnknownRevocationStatus),
                "the peer's certificate cannot be used: unknown revocation status",
            ),
            (
                Error::InvalidMessage(InvalidMessage::InvalidContentType),
                "what came is broken: invalid content type",
            ),
            (
                Error::AlertReceived(AlertDescription::CertificateUnknown),
                "the peer sent the alert `certificate_unknown`",
            ),
            (
                Error::PeerIncompatible(PeerIncompatible::NoKxGroupsInCommon),
                "nothing in common: no kx groups in common",
            ),
            (
                Error::PeerMisbehaved(PeerMisbehaved::IllegalTlsInnerPlaintext),
                "the peer breaks the protocol: illegal tls inner plaintext",
            ),
            (Error::Other(OtherError(Arc::new(Error::EncryptError))), "the cryptographic library refuses it"),
        ] {
            assert_eq!(in_words(&error), expected);
            let io = worded(io::Error::new(io::ErrorKind::InvalidData, error));
            assert_eq!((io.kind(), io.to_string().as_str()), (io::ErrorKind::InvalidData, expected));
        }
        let plain = worded(io::ErrorKind::UnexpectedEof.into());
        assert_eq!(plain.kind(), io::ErrorKind::UnexpectedEof);
    }
}

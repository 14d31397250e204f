//! Authorities out of a file: what peers' certificates are verified by, and until when.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::certificate::system_time;
use crate::error::{Problem, TlsError};
use crate::identity::{fingerprint, rfc4514};
use crate::pem;

/// Authorities of one file whose facts are kept. Files that a person writes have fewer; of a bundle of all public
/// authorities those that end first are kept.
const FACTS_MAX: usize = 64;

/// An authority that peers' certificates may come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthorityFacts {
    /// The file that names it.
    pub file: PathBuf,
    /// Its subject, as RFC 4514 writes it.
    pub subject: String,
    /// SHA-256 of its certificate, in lower-case hex.
    pub fingerprint: String,
    /// End of its time.
    pub not_after: SystemTime,
}

/// What a file of authorities holds.
pub(crate) struct Authorities {
    pub(crate) roots: RootCertStore,
    pub(crate) facts: Vec<AuthorityFacts>,
}

/// The authorities in a file, every one of them usable.
pub(crate) fn authorities(path: &Path, text: &[u8]) -> Result<Authorities, Vec<TlsError>> {
    let (mut roots, mut facts, mut errors) = (RootCertStore::empty(), Vec::new(), Vec::new());
    let certificates = pem::authorities(path, text).map_err(|error| vec![error])?;
    for (certificate, position) in certificates.into_iter().zip(1..) {
        facts.extend(facts_of(path, &certificate));
        if roots.add(certificate).is_err() {
            let reason = "it is not an authority's X.509 certificate".to_owned();
            errors.push(TlsError::new(path, Problem::BadCertificate { position, reason }));
        }
    }
    facts.sort_by_key(|facts| facts.not_after);
    facts.truncate(FACTS_MAX);
    if errors.is_empty() { Ok(Authorities { roots, facts }) } else { Err(errors) }
}

/// `None`: the certificate is of no use, or of a form that the library alone reads.
fn facts_of(path: &Path, certificate: &CertificateDer<'_>) -> Option<AuthorityFacts> {
    let (_, parsed) = X509Certificate::from_der(certificate).ok()?;
    Some(AuthorityFacts {
        file: path.to_owned(),
        subject: rfc4514(parsed.subject()),
        fingerprint: fingerprint(certificate),
        not_after: system_time(parsed.validity().not_after),
    })
}

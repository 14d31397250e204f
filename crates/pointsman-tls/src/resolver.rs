//! Which certificate a client is shown: by the server name it asks for, then by what it can verify.

use std::collections::HashMap;
use std::sync::Arc;

use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{SignatureAlgorithm, SignatureScheme};

use crate::certificate::{Concern, Loaded};
use crate::hello::without_last_dot;

/// Certificates by name. An exact name is preferred to a wildcard, which stands for exactly one label; a
/// client without a name, or with an unknown one, is shown the first certificate.
#[derive(Debug, Default)]
pub(crate) struct ByName {
    exact: HashMap<String, Candidates>,
    /// Keyed by what follows `*.`.
    wildcard: HashMap<String, Candidates>,
    default: Candidates,
}

impl ByName {
    /// Sorts certificates by their names, and notes those that can never be shown.
    pub(crate) fn new(certificates: &mut [Loaded]) -> ByName {
        let mut by_name = ByName::default();
        let default_names = certificates.first().map(|first| first.facts.names.clone()).unwrap_or_default();
        for (index, certificate) in certificates.iter_mut().enumerate() {
            let certified = &certificate.certified;
            // The default may come with both kinds of key, too.
            let mut shown =
                (index == 0 || certificate.facts.names == default_names) && by_name.default.insert(certified);
            for name in &certificate.facts.names {
                shown |= match name.strip_prefix("*.") {
                    Some(parent) => by_name.wildcard.entry(parent.to_owned()).or_default().insert(certified),
                    None => by_name.exact.entry(name.clone()).or_default().insert(certified),
                };
            }
            if !shown && !certificate.facts.names.is_empty() {
                certificate.facts.concerns.push(Concern::NeverChosen);
            }
        }
        by_name
    }

    /// Whether whoever asked for `name` may ask for `host`, in lower case, as well.
    pub(crate) fn serves(&self, name: Option<&str>, host: &str) -> bool {
        if name.is_some_and(|name| name.eq_ignore_ascii_case(host)) {
            return true;
        }
        let wanted = match (self.named(host), name) {
            (Some(wanted), _) => wanted,
            (None, Some(_)) => return false,
            (None, None) => &self.default,
        };
        self.candidates(name).0.iter().all(|one| wanted.0.iter().any(|other| Arc::ptr_eq(one, other)))
    }

    fn candidates(&self, name: Option<&str>) -> &Candidates {
        name.and_then(|name| self.named(name)).unwrap_or(&self.default)
    }

    /// Those that are for a name.
    fn named(&self, name: &str) -> Option<&Candidates> {
        let lower_case;
        let name = match name.bytes().any(|byte| byte.is_ascii_uppercase()) {
            true => {
                lower_case = name.to_ascii_lowercase();
                lower_case.as_str()
            }
            false => name,
        };
        let by_wildcard = || self.wildcard.get(name.split_once('.')?.1);
        self.exact.get(name).or_else(by_wildcard)
    }
}

impl ResolvesServerCert for ByName {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.candidates(hello.server_name().map(without_last_dot)).choose(hello.signature_schemes())
    }
}

/// Certificates for one name, at most one for each kind of key, the preferred kind first.
#[derive(Debug, Default)]
struct Candidates(Vec<Arc<CertifiedKey>>);

impl Candidates {
    /// Adds a certificate, unless an earlier one has the same kind of key.
    fn insert(&mut self, certified: &Arc<CertifiedKey>) -> bool {
        let rank = preference(certified);
        match self.0.binary_search_by_key(&rank, |held| preference(held)) {
            Ok(_) => false,
            Err(position) => {
                self.0.insert(position, certified.clone());
                true
            }
        }
    }

    /// The first that the client can verify. If it can verify none, the handshake is lost, and the first
    /// lets it end with the alert that says so.
    fn choose(&self, schemes: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        let verifiable = self.0.iter().find(|held| held.key.choose_scheme(schemes).is_some());
        verifiable.or(self.0.first()).cloned()
    }
}

/// ECDSA signs many times faster than RSA, and every client that has Ed25519 has ECDSA, too.
fn preference(certified: &CertifiedKey) -> u16 {
    match certified.key.algorithm() {
        SignatureAlgorithm::ECDSA => 0,
        SignatureAlgorithm::ED25519 => 1,
        SignatureAlgorithm::RSA => 2,
        other => 3 + u16::from(u8::from(other)),
    }
}

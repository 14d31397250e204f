//! A certificate chain and its key, read, checked against each other, and what is worth a warning.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustls::InconsistentKeys;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::CertificateDer;
use rustls::sign::CertifiedKey;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};
use x509_parser::time::ASN1Time;
use x509_parser::x509::X509Version;

use crate::error::{Problem, TlsError};
use crate::identity::{dns_name, rfc4514};
use crate::pem;
use crate::settings::CertificateFiles;

/// Certificates that end within this time are worth a warning.
const EXPIRY_NOTICE: Duration = Duration::from_secs(7 * DAY_SECS);

const DAY_SECS: u64 = 24 * 60 * 60;

/// What there is to know about a certificate that a listener or a pool shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFacts {
    /// The file of the chain.
    pub file: PathBuf,
    /// The leaf's subject, as RFC 4514 writes it.
    pub subject: String,
    /// The DNS names that the leaf is for, in lower case.
    pub names: Vec<String>,
    /// The chain is valid from this time: the latest beginning of its certificates.
    pub not_before: SystemTime,
    /// The chain is valid up to this time: the earliest end of its certificates.
    pub not_after: SystemTime,
    /// What is odd about it at any time.
    pub(crate) concerns: Vec<Concern>,
}

/// A certificate that can be used and probably should not be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateWarning {
    /// The file of the chain.
    pub file: PathBuf,
    /// What is odd about it.
    pub concern: Concern,
}

/// What is odd about a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Concern {
    /// The chain's time is over.
    Expired {
        /// For this many whole days.
        days_ago: u64,
    },
    /// The chain's time has not begun.
    NotYetValid {
        /// It begins within this many days.
        days_to_go: u64,
    },
    /// The chain's time is over soon.
    ExpiresSoon {
        /// In this many whole days.
        days_left: u64,
    },
    /// The leaf has no DNS name, and clients look at nothing else.
    NoName,
    /// Every name of the leaf belongs to an earlier certificate with the same kind of key.
    NeverChosen,
    /// A certificate of the chain was not issued by the next one.
    BrokenChain {
        /// Which one, from 1.
        position: usize,
    },
}

/// A chain with its key, ready to be shown.
pub(crate) struct Loaded {
    pub(crate) certified: Arc<CertifiedKey>,
    pub(crate) facts: CertificateFacts,
}

/// Reads a chain and its key, and checks that they belong together.
pub(crate) fn load(files: &CertificateFiles, provider: &CryptoProvider) -> Result<Loaded, Vec<TlsError>> {
    // Both files are read before either is complained about.
    let chain = pem::read(&files.certificate).and_then(|text| pem::certificates(&files.certificate, &text));
    let key = pem::read(&files.key).and_then(|text| pem::private_key(&files.key, &text));
    let (chain, key) = match (chain, key) {
        (Ok(chain), Ok(key)) => (chain, key),
        (chain, key) => return Err(chain.err().into_iter().chain(key.err()).collect()),
    };
    let facts = read_chain(&files.certificate, &chain).map_err(|error| vec![error])?;
    let key = provider
        .key_provider
        .load_private_key(key)
        .map_err(|_| vec![TlsError::new(&files.key, Problem::BadKey)])?;
    let certified = CertifiedKey::new(chain, key);
    check_key(files, &certified).map_err(|error| vec![error])?;
    Ok(Loaded { certified: Arc::new(certified), facts })
}

fn check_key(files: &CertificateFiles, certified: &CertifiedKey) -> Result<(), TlsError> {
    match certified.keys_match() {
        Ok(()) => Ok(()),
        // The key cannot say which public key is its own, so there is nothing to compare.
        Err(rustls::Error::InconsistentKeys(InconsistentKeys::Unknown)) => Ok(()),
        Err(rustls::Error::InconsistentKeys(_)) => {
            // The usual mistake is a chain in the wrong order.
            let belongs_to = (1..certified.cert.len()).find(|&index| {
                CertifiedKey::new(certified.cert[index..].to_vec(), certified.key.clone())
                    .keys_match()
                    .is_ok()
            });
            Err(TlsError::new(
                &files.key,
                Problem::KeyMismatch {
                    certificate: files.certificate.clone(),
                    belongs_to: belongs_to.map(|index| index + 1),
                },
            ))
        }
        Err(_) => Err(TlsError::new(
            &files.certificate,
            Problem::BadCertificate { position: 1, reason: "it is not a server's certificate".to_owned() },
        )),
    }
}

/// Parses every certificate of a chain.
fn read_chain(file: &Path, chain: &[CertificateDer<'_>]) -> Result<CertificateFacts, TlsError> {
    let mut parsed = Vec::with_capacity(chain.len());
    for (index, der) in chain.iter().enumerate() {
        let certificate = parse(der)
            .map_err(|reason| TlsError::new(file, Problem::BadCertificate { position: index + 1, reason }))?;
        parsed.push(certificate);
    }
    let Some(leaf) = parsed.first() else {
        return Err(TlsError::new(file, Problem::NoCertificate { found: None }));
    };
    let mut concerns = Vec::new();
    let names = dns_names(leaf);
    if names.is_empty() {
        concerns.push(Concern::NoName);
    }
    for (index, pair) in parsed.windows(2).enumerate() {
        if pair[0].issuer().as_raw() != pair[1].subject().as_raw() {
            concerns.push(Concern::BrokenChain { position: index + 1 });
        }
    }
    let times = || parsed.iter().map(|certificate| certificate.validity());
    Ok(CertificateFacts {
        file: file.to_owned(),
        subject: rfc4514(leaf.subject()),
        names,
        not_before: times().map(|times| system_time(times.not_before)).max().unwrap_or(UNIX_EPOCH),
        not_after: times().map(|times| system_time(times.not_after)).min().unwrap_or(UNIX_EPOCH),
        concerns,
    })
}

pub(crate) fn parse<'a>(der: &'a CertificateDer<'_>) -> Result<X509Certificate<'a>, String> {
    match X509Certificate::from_der(der) {
        Ok(([], certificate)) if certificate.version() == X509Version::V3 => Ok(certificate),
        Ok(([], certificate)) => {
            Err(format!("it is of X.509 version {}, not 3", certificate.version().0.saturating_add(1)))
        }
        Ok(_) => Err("there are bytes after its end".to_owned()),
        Err(_) => Err("it is not an X.509 certificate".to_owned()),
    }
}

fn dns_names(leaf: &X509Certificate<'_>) -> Vec<String> {
    let extension = leaf.subject_alternative_name().ok().flatten();
    let names = extension.iter().flat_map(|extension| &extension.value.general_names);
    names
        .filter_map(|name| match name {
            GeneralName::DNSName(name) => dns_name(name),
            _ => None,
        })
        .collect()
}

fn system_time(time: ASN1Time) -> SystemTime {
    let seconds = Duration::from_secs(time.timestamp().unsigned_abs());
    let time =
        if time.timestamp() < 0 { UNIX_EPOCH.checked_sub(seconds) } else { UNIX_EPOCH.checked_add(seconds) };
    time.unwrap_or(UNIX_EPOCH)
}

impl CertificateFacts {
    /// What is odd about the certificate at this time.
    pub fn warnings(&self, now: SystemTime) -> Vec<CertificateWarning> {
        let concerns = self.time_concern(now).into_iter().chain(self.concerns.iter().cloned());
        concerns.map(|concern| CertificateWarning { file: self.file.clone(), concern }).collect()
    }

    fn time_concern(&self, now: SystemTime) -> Option<Concern> {
        let days = |time: Duration| time.as_secs() / DAY_SECS;
        // The last second counts as valid, in both directions, as RFC 5280 section 4.1.2.5 has it.
        if let Ok(late) = now.duration_since(self.not_after)
            && late >= Duration::from_secs(1)
        {
            return Some(Concern::Expired { days_ago: days(late) });
        }
        if let Ok(early) = self.not_before.duration_since(now)
            && !early.is_zero()
        {
            return Some(Concern::NotYetValid { days_to_go: days(early) + 1 });
        }
        let left = self.not_after.duration_since(now).unwrap_or_default();
        (left <= EXPIRY_NOTICE).then(|| Concern::ExpiresSoon { days_left: days(left) })
    }
}

impl CertificateWarning {
    /// What to do about it.
    pub fn help(&self) -> &'static str {
        match self.concern {
            Concern::Expired { .. } | Concern::ExpiresSoon { .. } => "renew it; a reload takes the new files",
            Concern::NotYetValid { .. } => "check the clock of this machine",
            Concern::NoName => "ask the authority for one with subject alternative names",
            Concern::NeverChosen => "remove it, or remove the earlier one",
            Concern::BrokenChain { .. } => {
                "put the server's own certificate first, then the one that signed it, and so on"
            }
        }
    }
}

impl fmt::Display for CertificateWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.file.display();
        match &self.concern {
            Concern::Expired { days_ago: 0 } => write!(f, "the certificate `{file}` expired today"),
            Concern::Expired { days_ago } => {
                write!(f, "the certificate `{file}` expired {days_ago} days ago")
            }
            Concern::NotYetValid { days_to_go } => {
                write!(f, "the certificate `{file}` is not valid yet, but within {days_to_go} days")
            }
            Concern::ExpiresSoon { days_left: 0 } => write!(f, "the certificate `{file}` expires today"),
            Concern::ExpiresSoon { days_left } => {
                write!(f, "the certificate `{file}` expires in {days_left} days")
            }
            Concern::NoName => write!(f, "the certificate `{file}` has no DNS name, so clients refuse it"),
            Concern::NeverChosen => {
                write!(f, "the certificate `{file}` is never shown: earlier ones have all its names")
            }
            Concern::BrokenChain { position } => {
                write!(f, "certificate {position} in `{file}` was not issued by the one after it")
            }
        }
    }
}

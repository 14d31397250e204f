//! A certificate chain and its key, read, checked against each other, and what is worth a warning.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::sign::CertifiedKey;
use rustls::{InconsistentKeys, RootCertStore};
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};
use x509_parser::public_key::PublicKey;
use x509_parser::time::ASN1Time;
use x509_parser::x509::X509Version;

use crate::encrypted_key;
use crate::error::{Problem, TlsError};
use crate::identity::{dns_name, fingerprint, rfc4514};
use crate::pem;
use crate::settings::CertificateFiles;
use crate::words::in_words;

/// Certificates that end within this time are worth a warning.
const EXPIRY_NOTICE: Duration = Duration::from_secs(7 * DAY_SECS);

const DAY_SECS: u64 = 24 * 60 * 60;

/// What there is to know about a certificate that a listener or a pool shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFacts {
    /// The file of the chain.
    pub file: PathBuf,
    /// The file of the key; the same where both stand in one.
    pub key_file: PathBuf,
    /// The file of the key's passphrase.
    pub key_passphrase_file: Option<PathBuf>,
    /// The leaf's subject, as RFC 4514 writes it.
    pub subject: String,
    /// Who issued the leaf, likewise.
    pub issuer: String,
    /// What kind of key the leaf has, as in `ECDSA P-256` or `RSA 2048`.
    pub key_kind: String,
    /// SHA-256 of the leaf, in lower-case hex: no other certificate has it.
    pub fingerprint: String,
    /// How many certificates the chain has.
    pub chain: usize,
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
    /// The chain is in another order than clients expect, and is sent in theirs.
    Reordered,
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
    // Both files are looked at before either is complained about.
    match (pem::read(&files.certificate), pem::read(&files.key)) {
        (Ok(chain), Ok(key)) => of_texts(files, (&chain, &key), provider),
        (chain, key) => {
            let chain = chain.and_then(|text| pem::certificates(&files.certificate, &text));
            let keys = key.and_then(|text| private_keys(files, &text));
            Err(chain.err().into_iter().chain(keys.err()).collect())
        }
    }
}

/// The keys of a PEM text, encrypted ones opened.
fn private_keys(files: &CertificateFiles, text: &[u8]) -> Result<Vec<PrivateKeyDer<'static>>, TlsError> {
    let passphrase = files.key_passphrase.as_deref().map(pem::passphrase).transpose()?;
    pem::private_keys(&files.key, text, passphrase.as_ref())
}

/// The first DNS name that the certificate in a file is for, a wildcard's with any word in its place; nothing where it
/// has none.
///
/// # Errors
/// The file cannot be read, or holds no certificate.
pub fn name_in(file: &Path) -> Result<Option<String>, TlsError> {
    let chain = pem::certificates(file, &pem::read(file)?)?;
    let files = CertificateFiles::new(file, file);
    let names = read_chain(&files, &chain)?.names;
    Ok(names.first().map(|name| any_of(name)))
}

/// A name that a wildcard is for.
fn any_of(name: &str) -> String {
    name.replacen('*', "any", 1)
}

/// The same of what would stand in the files. Of several keys that which belongs to the leaf is taken: so a pair of files
/// can be replaced one after the other, and each pair in between is a good one.
fn of_texts(
    files: &CertificateFiles,
    (chain, keys): (&[u8], &[u8]),
    provider: &CryptoProvider,
) -> Result<Loaded, Vec<TlsError>> {
    let (chain, keys) = match (pem::certificates(&files.certificate, chain), private_keys(files, keys)) {
        (Ok(chain), Ok(keys)) => (chain, keys),
        (chain, keys) => return Err(chain.err().into_iter().chain(keys.err()).collect()),
    };
    let mut facts = read_chain(files, &chain).map_err(|error| vec![error])?;
    let mut fault = None;
    for key in keys {
        let kind = encrypted_key::kind_of(&key);
        let certified = provider
            .key_provider
            .load_private_key(key)
            .map_err(|_| TlsError::new(&files.key, Problem::BadKey { kind }))
            .map(|key| CertifiedKey::new(chain.clone(), key))
            .and_then(|certified| own_first(files, certified));
        match certified {
            Ok(certified) => {
                if certified.cert != chain {
                    facts = read_chain(files, &certified.cert).map_err(|error| vec![error])?;
                    facts.concerns.push(Concern::Reordered);
                }
                return Ok(Loaded { certified: Arc::new(certified), facts });
            }
            // What is wrong with the first one is what is said.
            Err(error) => fault = fault.or(Some(error)),
        }
    }
    Err(fault.into_iter().collect())
}

/// A certificate that was sent to take the place of another.
#[derive(Clone, Copy, Debug)]
pub struct Sent<'a> {
    /// The chain, as PEM.
    pub chain: &'a [u8],
    /// The key, as PEM: what was sent, or what stands in its file.
    pub key: &'a [u8],
    /// Whether the key was sent.
    pub is_key_sent: bool,
    /// Whom it is shown to.
    pub shown_to: ShownTo,
}

/// Whom a certificate is shown to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShownTo {
    /// Clients, by a listener.
    Clients,
    /// Servers, by a pool, and no client.
    Servers,
}

/// A pair that is to take the place of what stands in `files`: its texts are good, belong together, and are of use now.
///
/// # Errors
/// All that is wrong with it.
pub fn check_pair(
    files: &CertificateFiles,
    sent: Sent<'_>,
    now: SystemTime,
) -> Result<CertificateFacts, Vec<TlsError>> {
    let provider = Arc::new(crate::acceptor::provider());
    let blame = |errors: Vec<TlsError>| {
        errors.into_iter().map(|error| error.of_what_was_sent(sent.is_key_sent)).collect::<Vec<_>>()
    };
    let loaded = of_texts(files, (sent.chain, sent.key), &provider).map_err(blame)?;
    let unfit = |reason: String| vec![TlsError::without_file(Problem::Unfit { reason })];
    if let Some(concern @ (Concern::Expired { .. } | Concern::NotYetValid { .. })) =
        loaded.facts.time_concern(now)
    {
        return Err(unfit(format!("the certificate that was sent {concern}")));
    }
    check_chain(&loaded, sent.shown_to, provider, now).map_err(unfit)?;
    Ok(loaded.facts)
}

/// Whether each certificate of a chain was signed by the next one. Of one alone nothing can be said.
fn check_chain(
    loaded: &Loaded,
    shown_to: ShownTo,
    provider: Arc<CryptoProvider>,
    now: SystemTime,
) -> Result<(), String> {
    let [leaf, between @ .., last] = &loaded.certified.cert[..] else { return Ok(()) };
    let wrong = |error: &rustls::Error| format!("its chain does not hold: {}", in_words(error));
    let refused = |error: &dyn fmt::Display| format!("its chain does not hold: {error}");
    let mut roots = RootCertStore::empty();
    roots.add(last.clone()).map_err(|error| wrong(&error))?;
    let roots = Arc::new(roots);
    let now = UnixTime::since_unix_epoch(now.duration_since(UNIX_EPOCH).unwrap_or_default());
    if shown_to == ShownTo::Servers {
        let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider).build();
        let verifier = verifier.map_err(|error| refused(&error))?;
        return verifier.verify_client_cert(leaf, between, now).map(drop).map_err(|error| wrong(&error));
    }
    let Some(name) = loaded.facts.names.first() else { return Ok(()) };
    let verifier = WebPkiServerVerifier::builder_with_provider(roots, provider)
        .build()
        .map_err(|error| refused(&error))?;
    let name = ServerName::try_from(any_of(name)).map_err(|error| refused(&error))?;
    verifier.verify_server_cert(leaf, between, &name, &[], now).map(drop).map_err(|error| wrong(&error))
}

/// Puts the certificate of the key first, and behind each one that which issued it.
fn own_first(files: &CertificateFiles, certified: CertifiedKey) -> Result<CertifiedKey, TlsError> {
    let mut fault = None;
    for index in 0..certified.cert.len() {
        let from_here = CertifiedKey::new(certified.cert[index..].to_vec(), certified.key.clone());
        match check_key(files, &from_here) {
            Ok(()) => return Ok(CertifiedKey::new(in_order(&certified.cert, index), certified.key)),
            Err(error) => fault = fault.or(Some(error)),
        }
    }
    Err(fault.unwrap_or_else(|| TlsError::new(&files.certificate, Problem::NoCertificate { found: None })))
}

/// The chain that begins with the certificate at `leaf`. What has no place in it comes last.
fn in_order(chain: &[CertificateDer<'static>], leaf: usize) -> Vec<CertificateDer<'static>> {
    let names: Vec<_> = chain
        .iter()
        .map(|certificate| {
            let parsed = parse(certificate).ok();
            parsed.map(|parsed| (parsed.subject().as_raw().to_vec(), parsed.issuer().as_raw().to_vec()))
        })
        .collect();
    let mut left: Vec<_> = (0..chain.len()).filter(|&index| index != leaf).collect();
    let mut order = vec![leaf];
    while let Some(at) = order.last().and_then(|&last| {
        let (subject, issuer) = names[last].as_ref()?;
        // One that signed itself is the end.
        let is_issuer = |other: &(Vec<u8>, Vec<u8>)| subject != issuer && other.0 == *issuer;
        left.iter().position(|&index| names[index].as_ref().is_some_and(is_issuer))
    }) {
        order.push(left.remove(at));
    }
    order.into_iter().chain(left).map(|index| chain[index].clone()).collect()
}

fn check_key(files: &CertificateFiles, certified: &CertifiedKey) -> Result<(), TlsError> {
    match certified.keys_match() {
        Ok(()) => Ok(()),
        // The key cannot say which public key is its own, so there is nothing to compare.
        Err(rustls::Error::InconsistentKeys(InconsistentKeys::Unknown)) => Ok(()),
        Err(rustls::Error::InconsistentKeys(_)) => {
            let certificate = Some(files.certificate.clone());
            Err(TlsError::new(&files.key, Problem::KeyMismatch { certificate }))
        }
        Err(_) => Err(TlsError::new(
            &files.certificate,
            Problem::BadCertificate { position: 1, reason: "it is not a server's certificate".to_owned() },
        )),
    }
}

/// Parses every certificate of a chain.
fn read_chain(files: &CertificateFiles, chain: &[CertificateDer<'_>]) -> Result<CertificateFacts, TlsError> {
    let file = &files.certificate;
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
        file: file.clone(),
        key_file: files.key.clone(),
        key_passphrase_file: files.key_passphrase.clone(),
        subject: rfc4514(leaf.subject()),
        issuer: rfc4514(leaf.issuer()),
        key_kind: key_kind(leaf),
        fingerprint: fingerprint(&chain[0]),
        chain: chain.len(),
        names,
        not_before: times().map(|times| system_time(times.not_before)).max().unwrap_or(UNIX_EPOCH),
        not_after: times().map(|times| system_time(times.not_after)).min().unwrap_or(UNIX_EPOCH),
        concerns,
    })
}

/// By the registered numbers of kinds and curves (RFC 5480, RFC 8410).
fn key_kind(leaf: &X509Certificate<'_>) -> String {
    let key = leaf.public_key();
    let curve = key.algorithm.parameters.as_ref().and_then(|parameters| parameters.as_oid().ok());
    let algorithm = key.algorithm.algorithm.to_id_string();
    let kind = match (algorithm.as_str(), curve) {
        ("1.2.840.10045.2.1", Some(curve)) => match curve.to_id_string().as_str() {
            "1.2.840.10045.3.1.7" => "ECDSA P-256",
            "1.3.132.0.34" => "ECDSA P-384",
            "1.3.132.0.35" => "ECDSA P-521",
            _ => "ECDSA",
        },
        ("1.3.101.112", _) => "Ed25519",
        (other, _) => match key.parsed() {
            Ok(PublicKey::RSA(key)) => return format!("RSA {}", key.key_size()),
            _ => other,
        },
    };
    kind.to_owned()
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

pub(crate) fn system_time(time: ASN1Time) -> SystemTime {
    let seconds = Duration::from_secs(time.timestamp().unsigned_abs());
    let time =
        if time.timestamp() < 0 { UNIX_EPOCH.checked_sub(seconds) } else { UNIX_EPOCH.checked_add(seconds) };
    time.unwrap_or(UNIX_EPOCH)
}

impl CertificateFacts {
    /// Whether it is for a host, in lower case, as RFC 9525 section 6.3 compares names: `*` stands for one label.
    pub fn is_for(&self, host: &str) -> bool {
        let behind_first = host.split_once('.').map(|(_, rest)| rest);
        let is_it = |name: &String| {
            name == host || name.strip_prefix("*.").is_some_and(|rest| behind_first == Some(rest))
        };
        self.names.iter().any(is_it)
    }

    /// How many whole days are left of its time; nothing where it is over.
    pub fn days_left(&self, now: SystemTime) -> Option<u64> {
        self.not_after.duration_since(now).ok().map(|left| left.as_secs() / DAY_SECS)
    }

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
            Concern::Reordered | Concern::BrokenChain { .. } => {
                "put the server's own certificate first, then the one that signed it, and so on"
            }
        }
    }
}

impl fmt::Display for CertificateWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.file.display();
        match &self.concern {
            Concern::Reordered => {
                write!(
                    f,
                    "the certificates in `{file}` are in the wrong order, and are sent in the right one"
                )
            }
            Concern::BrokenChain { position } => {
                write!(f, "certificate {position} in `{file}` was not issued by the one after it")
            }
            concern => write!(f, "the certificate `{file}` {concern}"),
        }
    }
}

/// What is said of a certificate, behind what it is called.
impl fmt::Display for Concern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Concern::Expired { days_ago: 0 } => f.write_str("expired today"),
            Concern::Expired { days_ago } => write!(f, "expired {days_ago} days ago"),
            Concern::NotYetValid { days_to_go } => {
                write!(f, "is not valid yet, but within {days_to_go} days")
            }
            Concern::ExpiresSoon { days_left: 0 } => f.write_str("expires today"),
            Concern::ExpiresSoon { days_left } => write!(f, "expires in {days_left} days"),
            Concern::NoName => f.write_str("has no DNS name, so clients refuse it"),
            Concern::NeverChosen => f.write_str("is never shown: earlier ones have all its names"),
            Concern::Reordered => {
                f.write_str("has a chain in the wrong order, which is sent in the right one")
            }
            Concern::BrokenChain { position } => write!(f, "has a gap in its chain behind number {position}"),
        }
    }
}

//! PEM files: read whole, within a limit, with errors that say what is there instead.

use std::io::Read;
use std::path::Path;

use rustls::pki_types::pem::{self, PemObject, SectionKind};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::bounded_file::BoundedFile;
use crate::encrypted_key::{self, Passphrase};
use crate::error::{Problem, TlsError};

/// The largest file that is read. The system's bundle of all public authorities is a twentieth of it.
const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// The bytes of a file.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    let unreadable =
        |error: std::io::Error| TlsError::new(path, Problem::Unreadable { reason: plain_reason(&error) });
    let mut text = Vec::new();
    let file = BoundedFile::open(path).map_err(unreadable)?;
    // One byte more than the limit tells "too large" from "just fits", whatever kind of file it is.
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut text).map_err(unreadable)?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(TlsError::new(path, Problem::TooLarge { file_bytes_max: FILE_BYTES_MAX }));
    }
    Ok(text)
}

/// The passphrase of a key: the first line of a file.
pub(crate) fn passphrase(path: &Path) -> Result<Passphrase, TlsError> {
    let text = without_marks(&read(path)?);
    let line = text.split(|&byte| byte == b'\n' || byte == b'\r').next().unwrap_or_default();
    if line.is_empty() {
        return Err(TlsError::new(path, Problem::NoPassphrase));
    }
    Ok(Passphrase::new(line))
}

/// All certificates of a PEM text, at least one.
pub(crate) fn certificates(path: &Path, text: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    read_certificates(path, text, Settings::Ignored)
}

/// The same where they are to be trusted: trust settings of OpenSSL (`TRUSTED CERTIFICATE`) are not supported there.
pub(crate) fn authorities(path: &Path, text: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    read_certificates(path, text, Settings::Refused)
}

/// What becomes of OpenSSL's trust settings behind a certificate.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Settings {
    Ignored,
    Refused,
}

fn read_certificates(
    path: &Path,
    text: &[u8],
    settings: Settings,
) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let wrong = |reason: &str| TlsError::new(path, Problem::BrokenPem { reason: reason.to_owned() });
    if text.starts_with(b"\xff\xfe") || text.starts_with(b"\xfe\xff") {
        return Err(wrong("it is UTF-16 text; save it as ASCII or UTF-8"));
    }
    let Plain { text, is_trusted, .. } = plain(text);
    let found = CertificateDer::pem_slice_iter(&text)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| TlsError::new(path, broken(&error)))?;
    if found.is_empty() {
        return Err(TlsError::new(path, Problem::NoCertificate { found: first_section(&text) }));
    }
    let cut = |(certificate, is_trusted): (CertificateDer<'static>, bool)| {
        if !is_trusted {
            return Ok(certificate);
        }
        // What does not even begin as a certificate is complained about as one.
        let bytes = first_element_bytes(&certificate).unwrap_or(certificate.len());
        let (own, behind) = certificate.split_at(bytes);
        if settings == Settings::Refused && !matches!(behind, [] | [SEQUENCE, 0]) {
            return Err(wrong(
                "a `TRUSTED CERTIFICATE` has trust settings of OpenSSL, which are not supported; \
                 remove them with `openssl x509`",
            ));
        }
        Ok(CertificateDer::from(own.to_vec()))
    };
    found.into_iter().zip(is_trusted).map(cut).collect()
}

/// All private keys of a PEM text, at least one. `passphrase` opens those that are encrypted.
pub(crate) fn private_keys(
    path: &Path,
    text: &[u8],
    passphrase: Option<&Passphrase>,
) -> Result<Vec<PrivateKeyDer<'static>>, TlsError> {
    let Plain { text, is_encrypted, .. } = plain(text);
    // First, because it is otherwise reported as broken base64.
    if lines(&text).any(|line| line.starts_with(b"Proc-Type:") && line.ends_with(b"ENCRYPTED")) {
        return Err(TlsError::new(path, Problem::OldEncryptedKey));
    }
    let found = PrivateKeyDer::pem_slice_iter(&text)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| TlsError::new(path, broken(&error)))?;
    if found.is_empty() {
        return Err(TlsError::new(path, Problem::NoKey { found: first_section(&text) }));
    }
    let opened =
        found.into_iter().zip(is_encrypted).map(|(key, is_encrypted)| match (is_encrypted, passphrase) {
            (false, _) => Ok(key),
            (true, None) => Err(Problem::EncryptedKey),
            (true, Some(passphrase)) => encrypted_key::open(key.secret_der(), passphrase),
        });
    opened.collect::<Result<_, _>>().map_err(|problem| TlsError::new(path, problem))
}

/// PEM text in the labels that the library knows.
struct Plain {
    text: Vec<u8>,
    /// For each certificate in turn, whether OpenSSL's trust settings may follow it.
    is_trusted: Vec<bool>,
    /// For each private key in turn, whether it is encrypted.
    is_encrypted: Vec<bool>,
}

fn plain(text: &[u8]) -> Plain {
    let (text, mut is_trusted, mut is_encrypted) = (without_marks(text), Vec::new(), Vec::new());
    let mut renamed = Vec::with_capacity(text.len());
    for line in text.split_inclusive(|&byte| byte == b'\n' || byte == b'\r') {
        let label = line.trim_ascii().strip_prefix(b"-----").and_then(|line| line.strip_suffix(b"-----"));
        let (word, kind) = label.and_then(split_word).unwrap_or_default();
        let known: &[u8] = match kind {
            kind if is_certificate(kind) => b"CERTIFICATE",
            b"ENCRYPTED PRIVATE KEY" => b"PRIVATE KEY",
            kind => kind,
        };
        match known {
            b"CERTIFICATE" if word == b"BEGIN" => is_trusted.push(kind == b"TRUSTED CERTIFICATE"),
            b"PRIVATE KEY" | b"RSA PRIVATE KEY" | b"EC PRIVATE KEY" if word == b"BEGIN" => {
                is_encrypted.push(kind == b"ENCRYPTED PRIVATE KEY");
            }
            _ => {}
        }
        match known == kind {
            true => renamed.extend_from_slice(line),
            false => renamed.extend_from_slice(&[b"-----", word, b" ", known, b"-----\n"].concat()),
        }
    }
    Plain { text: renamed, is_trusted, is_encrypted }
}

/// All labels that certificates have had.
fn is_certificate(label: &[u8]) -> bool {
    matches!(label, b"CERTIFICATE" | b"TRUSTED CERTIFICATE" | b"X509 CERTIFICATE")
}

/// The text without byte-order marks. Files are put together from others (`cat`), so that one may stand before any line.
fn without_marks(text: &[u8]) -> Vec<u8> {
    const MARK: &[u8] = b"\xef\xbb\xbf";
    let lines = text.split_inclusive(|&byte| byte == b'\n' || byte == b'\r');
    lines.flat_map(|line| line.strip_prefix(MARK).unwrap_or(line)).copied().collect()
}

/// What stands before the first blank, and behind it.
fn split_word(label: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = label.iter().position(|&byte| byte == b' ')?;
    Some((&label[..at], &label[at + 1..]))
}

/// The tag of an ASN.1 sequence.
const SEQUENCE: u8 = 0x30;

/// How long the DER element is that `bytes` begin with.
fn first_element_bytes(bytes: &[u8]) -> Option<usize> {
    let (&[_, first], rest) = bytes.split_first_chunk::<2>()?;
    let (head, length) = match first {
        0..=0x7f => (2, usize::from(first)),
        0x81..=0x83 => {
            let octets = usize::from(first & 0x7f);
            let length =
                rest.get(..octets)?.iter().fold(0, |length, &octet| length << 8 | usize::from(octet));
            (2 + octets, length)
        }
        _ => return None,
    };
    Some(head + length).filter(|&end| end <= bytes.len())
}

/// The certificates and the private keys of a PEM text, each as a text of its own; what is neither is left out.
pub fn split_pem(text: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let (mut certificates, mut keys) = (Vec::new(), Vec::new());
    let mut section: Option<&mut Vec<u8>> = None;
    for line in lines(&without_marks(text)).filter(|line| !line.is_empty()) {
        if let Some(label) = line.strip_prefix(b"-----BEGIN ") {
            section = match label.strip_suffix(b"-----") {
                Some(label) if is_certificate(label) => Some(&mut certificates),
                Some(label) if label.ends_with(b"PRIVATE KEY") => Some(&mut keys),
                _ => None,
            };
        }
        if let Some(section) = &mut section {
            section.extend_from_slice(line);
            section.push(b'\n');
        }
        if line.starts_with(b"-----END ") {
            section = None;
        }
    }
    (certificates, keys)
}

/// What the first section of a PEM text is, in words.
fn first_section(text: &[u8]) -> Option<String> {
    let label = lines(text).find_map(|line| line.strip_prefix(b"-----BEGIN ")?.strip_suffix(b"-----"))?;
    let words = match SectionKind::try_from(label) {
        Ok(SectionKind::Certificate) => "a certificate",
        Ok(SectionKind::PublicKey) => "a public key",
        Ok(SectionKind::RsaPrivateKey | SectionKind::PrivateKey | SectionKind::EcPrivateKey) => {
            "a private key"
        }
        Ok(SectionKind::Crl) => "a revocation list",
        Ok(SectionKind::Csr) => "a certificate signing request",
        _ => return Some(format!("`{}`", String::from_utf8_lossy(label).escape_debug())),
    };
    Some(words.to_owned())
}

fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|&byte| byte == b'\n' || byte == b'\r').map(<[u8]>::trim_ascii)
}

fn broken(error: &pem::Error) -> Problem {
    let reason = match error {
        pem::Error::MissingSectionEnd { end_marker } => {
            format!("a section has no line `-----END {}-----`", String::from_utf8_lossy(end_marker))
        }
        pem::Error::IllegalSectionStart { line } => {
            format!("`{}` starts no section", String::from_utf8_lossy(line).escape_debug())
        }
        pem::Error::Base64Decode(_) => "a section is not base64".to_owned(),
        _ => "its sections cannot be read".to_owned(),
    };
    Problem::BrokenPem { reason }
}

/// The system's words without the error number that Rust appends, in lower case.
fn plain_reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    let words = text.split(" (os error").next().unwrap_or_default();
    let mut characters = words.chars();
    match characters.next() {
        Some(first) => first.to_lowercase().chain(characters).collect(),
        None => String::new(),
    }
}

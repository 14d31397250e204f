//! PEM files: read whole, within a limit, with errors that say what is there instead.

use std::io::Read;
use std::path::Path;

use rustls::pki_types::pem::{self, PemObject, SectionKind};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::bounded_file::BoundedFile;
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

/// All certificates of a PEM text, at least one.
pub(crate) fn certificates(path: &Path, text: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found = CertificateDer::pem_slice_iter(text)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| TlsError::new(path, broken(&error)))?;
    if found.is_empty() {
        return Err(TlsError::new(path, Problem::NoCertificate { found: first_section(text) }));
    }
    Ok(found)
}

/// All private keys of a PEM text, at least one.
pub(crate) fn private_keys(path: &Path, text: &[u8]) -> Result<Vec<PrivateKeyDer<'static>>, TlsError> {
    // First, because an encrypted key in the old form is otherwise reported as broken base64.
    if is_encrypted(text) {
        return Err(TlsError::new(path, Problem::EncryptedKey));
    }
    let found = PrivateKeyDer::pem_slice_iter(text)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| TlsError::new(path, broken(&error)))?;
    if found.is_empty() {
        return Err(TlsError::new(path, Problem::NoKey { found: first_section(text) }));
    }
    Ok(found)
}

/// The certificates and the private keys of a PEM text, each as a text of its own; what is neither is left out.
pub fn split_pem(text: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let (mut certificates, mut keys) = (Vec::new(), Vec::new());
    let mut section: Option<&mut Vec<u8>> = None;
    for line in lines(text).filter(|line| !line.is_empty()) {
        if let Some(label) = line.strip_prefix(b"-----BEGIN ") {
            section = match label.strip_suffix(b"-----") {
                Some(b"CERTIFICATE") => Some(&mut certificates),
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

/// Both forms of an encrypted key: PKCS #8's section of its own, and OpenSSL's header within a section.
fn is_encrypted(text: &[u8]) -> bool {
    lines(text).any(|line| {
        line.starts_with(b"-----BEGIN ENCRYPTED PRIVATE KEY-----")
            || line.starts_with(b"Proc-Type:") && line.ends_with(b"ENCRYPTED")
    })
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

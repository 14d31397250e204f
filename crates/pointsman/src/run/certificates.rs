//! Certificates that are put in the place of others at run time: they stand in their files, and new handshakes get them.
//!
//! Invariant: whenever the process or the machine stops, what stands in the two files belongs together. A key file may
//! hold several keys, of which the certificate's own is taken, so the new key is written beside the old one before
//! the certificate, and the old one is taken away behind it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use pointsman_config::{Plan, changed_file};
use pointsman_tls::{CertificateFacts, CertificateFiles, TlsError, check_pair, split_pem};

use super::history::By;
use super::publishing::write;
use super::reloads::{Refused, Reloaded, Reloads};

/// Why a certificate was not replaced. Nothing has changed.
pub(super) enum Unreplaced {
    /// What stands on disk is not what serves.
    Changed(PathBuf),
    /// What is wrong with it.
    Wrong(Vec<TlsError>),
    /// The files cannot be read or written.
    Unwritable(io::Error),
    /// The plan with it cannot serve.
    Refused(Refused),
}

/// Each certificate that listeners show, with who shows it.
pub(super) fn shown_certificates(plan: &Plan) -> Vec<(CertificateFacts, Vec<Arc<str>>)> {
    let mut shown: Vec<(CertificateFacts, Vec<Arc<str>>)> = Vec::new();
    for listener in &plan.listeners {
        for facts in listener.tls.iter().flat_map(|tls| tls.certificates()) {
            match shown
                .iter_mut()
                .find(|(known, _)| known.file == facts.file && known.key_file == facts.key_file)
            {
                Some((_, listeners)) => listeners.push(listener.name.clone()),
                None => shown.push((facts.clone(), vec![listener.name.clone()])),
            }
        }
    }
    shown
}

impl Reloads {
    /// Puts what `pem` holds in the place of a certificate, and of its key where it holds one.
    pub(super) fn replace_certificate(
        &self,
        old: &CertificateFacts,
        pem: &[u8],
        by: By,
    ) -> Result<Reloaded, Unreplaced> {
        if let Some(changed) = changed_file(&self.files.borrow()) {
            return Err(Unreplaced::Changed(changed.to_owned()));
        }
        self.is_free().map_err(Unreplaced::Refused)?;
        let files = CertificateFiles { certificate: old.file.clone(), key: old.key_file.clone() };
        let before = Texts::read(&files).map_err(Unreplaced::Unwritable)?;
        let new = before.replaced_by(pem);
        check_pair(&files, (&new.certificate, &new.key), SystemTime::now()).map_err(Unreplaced::Wrong)?;
        let replaced = new.write(&files, &before).map_err(Unreplaced::Unwritable);
        match replaced.and_then(|()| self.reload(by).map_err(Unreplaced::Refused)) {
            Ok(reloaded) => Ok(reloaded),
            Err(why) => {
                // Where that fails, too, the files hold one pair or the other, and the next reload takes it.
                before.write(&files, &new).map_err(Unreplaced::Unwritable)?;
                Err(why)
            }
        }
    }
}

/// What stands in the two files; all of it in the first where they are one.
struct Texts {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

impl Texts {
    fn read(files: &CertificateFiles) -> io::Result<Texts> {
        let certificate = fs::read(&files.certificate)?;
        let is_one = is_one_file(&files.certificate, &files.key)?;
        Ok(Texts { certificate, key: if is_one { Vec::new() } else { fs::read(&files.key)? } })
    }

    /// What is to stand there; the key stays where there is none in `pem`.
    fn replaced_by(&self, pem: &[u8]) -> Texts {
        match split_pem(pem) {
            (certificate, key) if !key.is_empty() => Texts { certificate, key },
            (certificate, _) if self.key.is_empty() => {
                Texts { certificate, key: split_pem(&self.certificate).1 }
            }
            (certificate, _) => Texts { certificate, key: self.key.clone() },
        }
    }

    /// Writes them in the place of others.
    fn write(&self, files: &CertificateFiles, before: &Texts) -> io::Result<()> {
        if is_one_file(&files.certificate, &files.key)? {
            return write(&files.certificate, [&self.certificate[..], &self.key].concat());
        }
        if self.key == before.key {
            return write(&files.certificate, &self.certificate);
        }
        write(&files.key, [&before.key[..], b"\n", &self.key].concat())?;
        write(&files.certificate, &self.certificate)?;
        write(&files.key, &self.key)
    }
}

fn is_one_file(one: &Path, other: &Path) -> io::Result<bool> {
    Ok(one.canonicalize()? == other.canonicalize()?)
}

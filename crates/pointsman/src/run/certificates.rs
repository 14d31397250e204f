//! Certificates that are put in the place of others at run time: they stand in their files, and new handshakes get them.
//!
//! Invariant: whenever the process or the machine stops, what stands in the two files belongs together. A key file may
//! hold several keys, of which the certificate's own is taken, so the new key is written beside the old one before
//! the certificate, and the old one is taken away behind it. What somebody else writes there meanwhile is never written over.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use pointsman_config::{Plan, changed_file};
use pointsman_tls::{CertificateFacts, CertificateFiles, Sent, ShownTo, TlsError, check_pair, split_pem};

use super::history::By;
use super::notice;
use super::publishing::write;
use super::reloads::{Refused, Reloaded, Reloads};
use super::turns::Turn;

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

/// A certificate, and who shows it.
pub(super) struct Shown {
    pub(super) facts: CertificateFacts,
    pub(super) listeners: Vec<Arc<str>>,
    /// Those that show it to their servers.
    pub(super) pools: Vec<Arc<str>>,
    /// Whether the admin listener shows it.
    pub(super) is_of_admin: bool,
}

impl Shown {
    fn to(&self) -> ShownTo {
        match self.listeners.is_empty() && !self.is_of_admin {
            true => ShownTo::Servers,
            false => ShownTo::Clients,
        }
    }
}

/// Each certificate that listeners, the admin listener among them, or pools show.
pub(super) fn shown_certificates(plan: &Plan) -> Vec<Shown> {
    let mut all: Vec<Shown> = Vec::new();
    for listener in &plan.listeners {
        for facts in listener.tls.iter().flat_map(|tls| tls.certificates()) {
            shown(&mut all, facts).listeners.push(listener.name.clone());
        }
    }
    for pool in &plan.pools {
        if let Some(facts) = &pool.certificate {
            shown(&mut all, facts).pools.push(pool.name.clone());
        }
    }
    let admin = plan.admin.iter().filter_map(|admin| admin.tls.as_ref());
    for facts in admin.flat_map(|tls| tls.certificates()) {
        shown(&mut all, facts).is_of_admin = true;
    }
    all
}

/// The entry of a certificate; one that is shown twice has one.
fn shown<'a>(all: &'a mut Vec<Shown>, facts: &CertificateFacts) -> &'a mut Shown {
    let is_it = |known: &Shown| known.facts.file == facts.file && known.facts.key_file == facts.key_file;
    let at = all.iter().position(is_it).unwrap_or_else(|| {
        all.push(Shown {
            facts: facts.clone(),
            listeners: Vec::new(),
            pools: Vec::new(),
            is_of_admin: false,
        });
        all.len() - 1
    });
    &mut all[at]
}

impl Reloads {
    /// Puts what `pem` holds in the place of a certificate, and of its key where it holds one.
    pub(super) async fn replace_certificate(
        &self,
        turn: &Turn,
        old: &Shown,
        pem: &[u8],
        by: By,
    ) -> Result<Reloaded, Unreplaced> {
        if let Some(changed) = changed_file(&self.files.borrow()) {
            return Err(Unreplaced::Changed(changed.to_owned()));
        }
        self.is_free().map_err(Unreplaced::Refused)?;
        let files = CertificateFiles {
            certificate: old.facts.file.clone(),
            key: old.facts.key_file.clone(),
            key_passphrase: old.facts.key_passphrase_file.clone(),
        };
        let before = Texts::read(&files).map_err(Unreplaced::Unwritable)?;
        let (new, is_key_sent) = before.replaced_by(pem);
        let sent = Sent { chain: &new.certificate, key: &new.key, is_key_sent, shown_to: old.to() };
        check_pair(&files, sent, SystemTime::now()).map_err(Unreplaced::Wrong)?;
        let mut written = Written { files: &files, before: &before, new: &new, is_over: false };
        let reloaded = match new.write(&files, &before) {
            Ok(()) => self.reload(turn, by).await.map_err(Unreplaced::Refused),
            Err(error) => Err(Unreplaced::Unwritable(error)),
        };
        written.is_over = true;
        reloaded.or_else(|why| {
            // Where that fails, too, the files hold one pair or the other, and the next reload takes it.
            before.write_back(&files, &new).map_err(Unreplaced::Unwritable)?;
            self.is_written_back();
            Err(why)
        })
    }
}

/// New files that do not serve yet. Where nobody waits any more for whether they will, the old ones are written back.
struct Written<'a> {
    files: &'a CertificateFiles,
    before: &'a Texts,
    new: &'a Texts,
    is_over: bool,
}

impl Drop for Written<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            // As above, where it fails.
            if let Err(error) = self.before.write_back(self.files, self.new) {
                let file = self.files.certificate.display();
                notice::error(&format!("certificate not written back file={file}: {error}"));
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
        let certificate = read(&files.certificate)?;
        let is_one = is_one_file(&files.certificate, &files.key)?;
        Ok(Texts { certificate, key: if is_one { Vec::new() } else { read(&files.key)? } })
    }

    /// What is to stand there, and whether the key was sent: it stays where there is none in `pem`.
    fn replaced_by(&self, pem: &[u8]) -> (Texts, bool) {
        let (certificate, key) = split_pem(pem);
        if !key.is_empty() {
            return (Texts { certificate, key }, true);
        }
        let key = if self.key.is_empty() { split_pem(&self.certificate).1 } else { self.key.clone() };
        (Texts { certificate, key }, false)
    }

    /// Writes them in the place of others.
    fn write(&self, files: &CertificateFiles, before: &Texts) -> io::Result<()> {
        if is_one_file(&files.certificate, &files.key)? {
            return write(&files.certificate, self.in_one());
        }
        if self.key == before.key {
            return write(&files.certificate, &self.certificate);
        }
        write(&files.key, self.behind(before))?;
        write(&files.certificate, &self.certificate)?;
        write(&files.key, &self.key)
    }

    /// Writes them again in the place of what was written there, `new`, or of a part of it. Where somebody else has
    /// written since, that stays, and it is said.
    fn write_back(&self, files: &CertificateFiles, new: &Texts) -> io::Result<()> {
        if let Some(theirs) = new.changed(files, self)? {
            let file = theirs.display();
            notice::warn(&format!("certificate not written back file={file}: it has changed since"));
            return Ok(());
        }
        self.write(files, new)
    }

    /// A file that holds neither what stood there `before` nor what these write in its place.
    fn changed<'f>(&self, files: &'f CertificateFiles, before: &Texts) -> io::Result<Option<&'f Path>> {
        let now = Texts::read(files)?;
        let is_one = is_one_file(&files.certificate, &files.key)?;
        let new = if is_one { self.in_one() } else { self.certificate.clone() };
        if ![&new, &before.certificate].contains(&&now.certificate) {
            return Ok(Some(files.certificate.as_path()));
        }
        let is_ours = is_one || [&self.key, &before.key, &self.behind(before)].contains(&&now.key);
        Ok((!is_ours).then_some(files.key.as_path()))
    }

    fn in_one(&self) -> Vec<u8> {
        [&self.certificate[..], &self.key].concat()
    }

    /// Both keys, while the certificate is replaced.
    fn behind(&self, before: &Texts) -> Vec<u8> {
        [&before.key[..], b"\n", &self.key].concat()
    }
}

/// What is in a regular file: no other is put in the place of one, and this thread has others to serve.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    match fs::metadata(path)?.is_file() {
        true => fs::read(path),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file")),
    }
}

fn is_one_file(one: &Path, other: &Path) -> io::Result<bool> {
    Ok(one.canonicalize()? == other.canonicalize()?)
}

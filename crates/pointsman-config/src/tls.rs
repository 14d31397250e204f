//! TLS of a listener: what was written becomes an acceptor, and what is wrong with a file is said where the
//! configuration names it.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use pointsman_rules::Span;
use pointsman_tls::{Acceptor, ClientAuth, ServerTls};

use crate::WatchedFile;
use crate::findings::{Findings, Spanned};
use crate::lower::Outside;
use crate::tls_spec::{CertificateSpec, TlsSpec};

/// TLS of one listener, with its files and where they were named.
struct Settings {
    at: Span,
    tls: ServerTls,
    files: Vec<Spanned<PathBuf>>,
}

impl Settings {
    /// Nothing where an essential part is missing, which was reported.
    fn new(spec: &TlsSpec, folder: &Path) -> Option<Self> {
        let asks = spec.client_auth != ClientAuth::Off;
        if spec.certificates.is_empty() || asks && spec.client_ca.is_none() {
            return None;
        }
        let full = |path: &Spanned<String>| folder.join(&path.value);
        let named = spec.certificates.iter().flat_map(CertificateSpec::named);
        let files = named
            .chain(&spec.client_ca)
            .chain(&spec.ticket_key_file)
            .map(|path| Spanned { value: full(path), span: path.span });
        let tls = ServerTls {
            certificates: spec.certificates.iter().map(|certificate| certificate.files(folder)).collect(),
            min_version: spec.min_version,
            alpn: spec.alpn.iter().map(|protocol| protocol.value.as_bytes().to_vec()).collect(),
            tickets: spec.tickets,
            session_s_max: spec.session_s_max,
            ticket_keys: spec.ticket_key_file.as_ref().map(full),
            client_ca: spec.client_ca.as_ref().map(full),
            client_auth: spec.client_auth,
        };
        Some(Self { at: spec.at, files: files.collect(), tls })
    }

    /// The files that will be read.
    fn files(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().map(|file| file.value.as_path())
    }

    /// Reads the files. `previous` is what the listener of this name had, so that its sessions live on.
    fn build(&self, previous: Option<&Acceptor>, findings: &Findings<'_>) -> Option<Acceptor> {
        match Acceptor::build(&self.tls, previous) {
            Ok(acceptor) => {
                for warning in acceptor.warnings(SystemTime::now()) {
                    let place = self.place(Some(&warning.file));
                    findings.warning(place, warning.to_string(), warning.help());
                }
                Some(acceptor)
            }
            Err(errors) => {
                for error in errors {
                    findings.error(
                        self.place(error.file()),
                        error.to_string(),
                        error.help().unwrap_or_default(),
                    );
                }
                None
            }
        }
    }

    fn place(&self, file: Option<&Path>) -> Span {
        place_of(file, &self.files, self.at)
    }
}

/// Lowers what was written; `files` gets those that were read. `previous` is as of [`Settings::build`].
pub(crate) fn lower(
    spec: &TlsSpec,
    folder: &Path,
    outside: Outside<'_>,
    previous: Option<&Acceptor>,
    (files, findings): (&mut Vec<WatchedFile>, &Findings<'_>),
) -> Option<Acceptor> {
    let settings = Settings::new(spec, folder)?;
    if let Outside::Texts { .. } = outside {
        findings.error(spec.at, "TLS needs files", "and there are none");
        return None;
    }
    files.extend(settings.files().map(WatchedFile::look));
    settings.build(previous, findings)
}

/// Where the configuration names a file; the table that is about TLS where it names none.
pub(crate) fn place_of(file: Option<&Path>, files: &[Spanned<PathBuf>], table: Span) -> Span {
    let named = files.iter().find(|named| Some(named.value.as_path()) == file);
    named.map_or(table, |named| named.span)
}

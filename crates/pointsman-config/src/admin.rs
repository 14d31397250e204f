//! The admin listener: where it listens, who may change something there, and how a command finds it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pointsman_rules::Span;
use pointsman_tls::{Acceptor, ClientAuth};

use crate::findings::{Findings, Spanned};
use crate::lower::Outside;
use crate::reading::{reason, text};
use crate::section::Section;
use crate::spec::AdminSpec;
use crate::tokens::{self, Tokens};
use crate::{Problems, WatchedFile, syntax, tls};

/// Where the switch shows itself, and takes changes.
#[derive(Debug)]
pub struct Admin {
    /// Where it listens.
    pub bind: SocketAddr,
    /// Ends TLS; plain HTTP when absent.
    pub tls: Option<Acceptor>,
    /// Who may change something; none without a file of tokens.
    pub tokens: Tokens,
    /// Where changes are kept, besides standard error.
    pub audit_log: Option<PathBuf>,
    /// Web pages that may ask, besides those of the listener itself: `https://console.example`, in lower case.
    pub allowed_origins: Vec<Box<str>>,
    /// Of how many rules the metrics tell statuses and durations by name.
    pub metrics_rules_max: u32,
}

impl Admin {
    /// Whether clients are asked for certificates.
    pub fn asks_for_certificates(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.terms().client_auth != ClientAuth::Off)
    }

    /// Whether there is nobody who may change something.
    pub fn knows_nobody(&self) -> bool {
        self.tokens.are_none() && !self.asks_for_certificates()
    }
}

/// What a command needs that speaks to a running switch.
#[derive(Debug)]
pub struct AdminClient {
    /// Where the switch listens for it.
    pub address: SocketAddr,
    /// The first token of the file; absent where no file is named, or where what is asked needs none.
    pub token: Option<String>,
    /// Of a switch that speaks TLS there, the certificate that it shows.
    pub certificate: Option<PathBuf>,
}

/// What a command wants of a running switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdminUse {
    /// To look. On the loopback that needs no token, so that whoever may not read its file may look, too.
    Read,
    /// To change something, which always needs one.
    Change,
    /// Either, by somebody who shows a client certificate instead.
    WithCertificate,
}

impl AdminClient {
    /// Reads what a configuration says of its admin listener, whatever else is wrong with the file: a command must
    /// find the switch also to be told so. `None` where it has no admin listener.
    ///
    /// # Errors
    /// What is wrong with this part of the file, or that the file cannot be read.
    pub fn of(path: &Path, wanted: AdminUse) -> Result<Option<AdminClient>, Problems> {
        let (_, content) = WatchedFile::read(path);
        let source = content.and_then(text).map_err(|error| Problems::cannot_read(path, &error))?;
        let (table, errors) = syntax::parse(&source);
        let is_torn = !errors.is_empty();
        let findings = Findings::around(&source, errors);
        let Some(section) = Section::part(table.get_ref(), &findings, "admin") else {
            let is_wrong = is_torn || findings.has_errors();
            return if is_wrong { Err(Problems::of(path, &source, findings)) } else { Ok(None) };
        };
        // What is wrong elsewhere in the file is for the switch to say.
        let spec = AdminSpec::read(&section);
        let folder = path.parent().unwrap_or(Path::new(""));
        let is_local = spec.bind.as_ref().is_some_and(|bind| reached_at(bind.value).ip().is_loopback());
        let needs_token = match wanted {
            AdminUse::Change => true,
            AdminUse::Read => !is_local,
            AdminUse::WithCertificate => false,
        };
        let token_file = spec.token_file.as_ref().filter(|_| needs_token);
        let token = token_file.and_then(|file| first_token(file, folder, &findings));
        if let Some(bind) = spec.bind.as_ref().filter(|bind| bind.value.port() == 0) {
            let message = "port 0 is any free port, and no command can find it";
            findings.error(bind.span, message, "name a port, as in `127.0.0.1:9090`");
        }
        let shown = spec.tls.as_ref().and_then(|tls| tls.certificates.first());
        let certificate = shown.map(|files| folder.join(&files.certificate.value));
        let is_whole = token_file.is_some() == token.is_some() && spec.tls.is_some() == certificate.is_some();
        match &spec.bind {
            Some(bind) if bind.value.port() != 0 && is_whole => {
                Ok(Some(AdminClient { address: reached_at(bind.value), token, certificate }))
            }
            _ => Err(Problems::of(path, &source, findings)),
        }
    }
}

/// Where a client on this machine connects to.
fn reached_at(bind: SocketAddr) -> SocketAddr {
    let ip = match bind.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, bind.port())
}

fn first_token(written: &Spanned<String>, folder: &Path, findings: &Findings<'_>) -> Option<String> {
    let path = folder.join(&written.value);
    let (_, content) = WatchedFile::read(&path);
    let source =
        content.and_then(text).map_err(|error| unreadable(&path, &error, written.span, findings)).ok()?;
    let (_, first) = tokens::read(&source).map_err(|faults| say(&faults, written, findings)).ok()?;
    Some(first)
}

/// Lowers what was written. `files` gets the file of tokens and those of TLS: when one changes, the plan is out of date.
pub(crate) fn lower(
    spec: &AdminSpec,
    folder: &Path,
    outside: Outside<'_>,
    files: &mut Vec<WatchedFile>,
    findings: &Findings<'_>,
) -> Option<Arc<Admin>> {
    let tokens = spec.token_file.as_ref().map(|file| match outside {
        Outside::Texts { .. } => {
            findings.error(file.span, "tokens need a file", "and there are none");
            Tokens::default()
        }
        Outside::System { .. } => tokens_of(file, &folder.join(&file.value), files, findings),
    });
    let tls = spec.tls.as_ref().and_then(|spec| tls::lower(spec, folder, outside, None, (files, findings)));
    let bind = spec.bind.as_ref()?;
    if !bind.value.ip().is_loopback() {
        check_distant(bind, spec, findings);
    }
    let allowed_origins = spec.allowed_origins.iter().map(|origin| origin.value.clone()).collect();
    let audit_log = spec.audit_log.as_ref().map(|path| folder.join(&path.value));
    let tokens = tokens.unwrap_or_default();
    let AdminSpec { metrics_rules_max, .. } = *spec;
    Some(Arc::new(Admin { bind: bind.value, tls, tokens, audit_log, allowed_origins, metrics_rules_max }))
}

/// Whoever is not on this machine must say who they are, and nobody else is to hear it.
fn check_distant(bind: &Spanned<SocketAddr>, spec: &AdminSpec, findings: &Findings<'_>) {
    let local = SocketAddr::new(IpAddr::from(Ipv4Addr::LOCALHOST), bind.value.port());
    let asks = spec.tls.as_ref().is_some_and(|tls| tls.client_auth != ClientAuth::Off);
    if spec.token_file.is_none() && !asks {
        let message = format!(
            "`{}` is not on the loopback, and whoever asks there needs a token or a client certificate",
            bind.value
        );
        let help = format!("set `token_file`, or `client_ca` of `tls`, or `bind` to `{local}`");
        findings.error(bind.span, message, help);
    } else if spec.tls.is_none() {
        let message =
            format!("tokens come to `{}` in the clear: whoever can listen on the way has them", bind.value);
        let help = format!("set `tls` to a certificate and its key, or `bind` to `{local}`");
        findings.warning(bind.span, message, help);
    }
}

fn tokens_of(
    written: &Spanned<String>,
    path: &Path,
    files: &mut Vec<WatchedFile>,
    findings: &Findings<'_>,
) -> Tokens {
    let (file, content) = WatchedFile::read(path);
    files.push(file);
    let source = match content.and_then(text) {
        Ok(source) => source,
        Err(error) => {
            unreadable(path, &error, written.span, findings);
            return Tokens::default();
        }
    };
    match tokens::read(&source) {
        Ok((tokens, _)) => {
            warn_of_readers(written, path, findings);
            tokens
        }
        Err(faults) => {
            say(&faults, written, findings);
            Tokens::default()
        }
    }
}

fn unreadable(path: &Path, error: &std::io::Error, span: Span, findings: &Findings<'_>) {
    let message = format!("cannot read `{}`: {}", path.display(), reason(error));
    findings.error(span, message, "make it with `(umask 077; openssl rand -hex 32 > FILE)`");
}

/// The text of a file of secrets is never shown.
fn say(faults: &[String], written: &Spanned<String>, findings: &Findings<'_>) {
    for fault in faults {
        let message = format!("`{}`: {fault}", written.value);
        findings.error(written.span, message, "make a token with `openssl rand -hex 32`");
    }
}

fn warn_of_readers(written: &Spanned<String>, path: &Path, findings: &Findings<'_>) {
    use std::os::unix::fs::PermissionsExt;
    const OTHERS_READ: u32 = 0o004;
    const OTHERS_WRITE: u32 = 0o002;
    // It was read a moment ago; where it is gone since, the next look finds that.
    let Ok(metadata) = std::fs::metadata(path) else { return };
    let mode = metadata.permissions().mode();
    let what = match (mode & OTHERS_READ != 0, mode & OTHERS_WRITE != 0) {
        (false, false) => return,
        (true, false) => "read",
        (false, true) => "write",
        (true, true) => "read and write",
    };
    let message =
        format!("everybody on this machine can {what} `{}`, and with it change the switch", written.value);
    findings.warning(written.span, message, format!("chmod 600 {}", path.display()));
}

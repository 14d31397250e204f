//! One request to the admin listener of a running switch, and its answer.

use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pointsman_config::{AdminClient, AdminUse, reason};
use pointsman_tls::{CertificateFiles, Client, TlsError, name_in};

use crate::http_request::{Unanswered, connect, send};

/// How long the switch may take to let us in.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// The longest answer.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;

/// What was answered.
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
}

/// What a command is told of TLS, by options that all commands have which ask a running switch.
#[derive(Debug, Default)]
pub(crate) struct TlsOptions {
    ca: Option<PathBuf>,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
}

impl TlsOptions {
    /// Whether an option is one of these.
    pub(crate) fn know(option: &str) -> bool {
        matches!(option, "ca" | "cert" | "key")
    }

    /// Takes one of them.
    pub(crate) fn take(&mut self, option: &str, file: PathBuf) {
        let wanted = match option {
            "ca" => &mut self.ca,
            "cert" => &mut self.certificate,
            _ => &mut self.key,
        };
        *wanted = Some(file);
    }

    /// What is to be asked for, where the command wants this.
    pub(crate) fn wanted(&self, wanted: AdminUse) -> AdminUse {
        if self.certificate.is_some() { AdminUse::WithCertificate } else { wanted }
    }

    fn pair(&self) -> Result<Option<CertificateFiles>, String> {
        match (&self.certificate, &self.key) {
            (None, None) => Ok(None),
            (Some(certificate), key) => {
                // Both may stand in one file.
                let key = key.as_ref().unwrap_or(certificate).clone();
                Ok(Some(CertificateFiles::new(certificate, key)))
            }
            (None, Some(_)) => Err("error: `--key` needs `--cert`\n".to_owned()),
        }
    }
}

/// Where a switch is asked, and how.
#[derive(Debug)]
pub(crate) struct Way {
    pub(crate) address: SocketAddr,
    /// Where it speaks TLS, what does that, and the name that its certificate must be for.
    tls: Option<(Client, String)>,
}

impl Way {
    /// To the switch that a configuration names. Without other authorities the certificate that stands there is
    /// trusted, and those above it in its file. The error is a text for people.
    pub(crate) fn to(client: &AdminClient, options: &TlsOptions) -> Result<Way, String> {
        let address = client.address;
        let pair = options.pair()?;
        let Some(shown) = &client.certificate else {
            return match (&options.ca, pair) {
                (None, None) => Ok(Way { address, tls: None }),
                _ => Err(format!(
                    "error: the switch at {address} speaks no TLS\n\
                     help: leave `--ca`, `--cert` and `--key` out, or set `tls` of `[admin]`\n"
                )),
            };
        };
        let trusting = |file: &Path| Client::showing(pair, file).map_err(|errors| unusable(&errors));
        let client = trusting(options.ca.as_deref().unwrap_or(shown))?;
        let name = name_in(shown).map_err(|error| unusable(&[error]))?;
        Ok(Way { address, tls: Some((client, name.unwrap_or_else(|| address.ip().to_string()))) })
    }
}

fn unusable(errors: &[TlsError]) -> String {
    let lines = errors.iter().map(|error| match error.help() {
        Some(help) => format!("error: {error}\nhelp: {help}\n"),
        None => format!("error: {error}\n"),
    });
    lines.collect()
}

/// Sends a request and reads its answer; nothing where it is none of HTTP. The error is a text for people.
pub(crate) fn exchange(way: &Way, request: &str, answer_max: Duration) -> Result<Option<Reply>, String> {
    let error = match ask(way, request, answer_max) {
        Ok(reply) => return Ok(Some(reply)),
        Err(Unanswered::Foreign) => return Ok(None),
        Err(Unanswered::Io(error)) => error,
    };
    let help = match (&way.tls, error.kind()) {
        (Some(_), io::ErrorKind::InvalidData | io::ErrorKind::Other) => {
            "`--ca FILE` names the authorities of its certificate, `--cert FILE` and `--key FILE` what is shown to \
             it; it serves the certificate that it read at its start or last reload: SIGHUP lets it read it again"
        }
        _ => "look whether it runs, and whether it listens there: it says `admin address=` at its start",
    };
    Err(format!("error: the switch cannot be asked at {}: {}\nhelp: {help}\n", way.address, reason(&error)))
}

fn ask(way: &Way, request: &str, answer_max: Duration) -> Result<Reply, Unanswered> {
    let stream = connect(&[way.address], CONNECT_MAX)?;
    stream.set_write_timeout(Some(CONNECT_MAX))?;
    match &way.tls {
        None => {
            stream.set_read_timeout(Some(answer_max))?;
            converse(stream, request)
        }
        Some((client, name)) => {
            stream.set_read_timeout(Some(CONNECT_MAX))?;
            let patient = stream.try_clone()?;
            let stream = client.connect(stream, name)?;
            // Both are the same socket.
            patient.set_read_timeout(Some(answer_max))?;
            converse(stream, request)
        }
    }
}

fn converse(stream: impl Read + Write, request: &str) -> Result<Reply, Unanswered> {
    let mut answer = send(stream, &[request.as_bytes()])?;
    let status = answer.status()?;
    Ok(Reply { status, body: answer.body(ANSWER_BYTES_MAX)? })
}

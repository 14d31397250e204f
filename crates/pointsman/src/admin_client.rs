//! One request to the admin listener of a running switch, and its answer.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use pointsman_config::{AdminClient, AdminUse, reason};
use pointsman_http::{AnswerTo, Framing, HeadLimits, ResponseHead};
use pointsman_tls::{CertificateFiles, Client, TlsError, name_in};

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
                Ok(Some(CertificateFiles { certificate: certificate.clone(), key }))
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
    let address = way.address;
    ask(way, request.as_bytes(), answer_max).map_err(|error| {
        let help = match (&way.tls, error.kind()) {
            (Some(_), io::ErrorKind::InvalidData | io::ErrorKind::Other) => {
                "`--ca FILE` names the authorities of its certificate, `--cert FILE` and `--key FILE` what is shown to \
                 it; it serves the certificate that it read at its start or last reload: SIGHUP lets it read it again"
            }
            _ => "look whether it runs, and whether it listens there: it says `admin address=` at its start",
        };
        format!("error: the switch cannot be asked at {address}: {}\nhelp: {help}\n", reason(&error))
    })
}

fn ask(way: &Way, request: &[u8], answer_max: Duration) -> io::Result<Option<Reply>> {
    let stream = TcpStream::connect_timeout(&way.address, CONNECT_MAX)?;
    stream.set_nodelay(true)?;
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

fn converse(mut stream: impl Read + Write, request: &[u8]) -> io::Result<Option<Reply>> {
    stream.write_all(request)?;
    stream.flush()?;
    let mut received = Vec::new();
    loop {
        match read(&received) {
            Received::Whole(reply) => return Ok(Some(reply)),
            Received::Foreign => return Ok(None),
            Received::Part if received.len() > ANSWER_BYTES_MAX => return Ok(None),
            Received::Part => {}
        }
        let mut piece = [0; 16 * 1024];
        let count = stream.read(&mut piece)?;
        received.extend_from_slice(&piece[..count]);
        if count == 0 {
            return Ok(None);
        }
    }
}

/// What was received, read.
enum Received {
    /// There is more to come.
    Part,
    Whole(Reply),
    /// It is not what a switch says.
    Foreign,
}

fn read(received: &[u8]) -> Received {
    let mut head = ResponseHead::default();
    match head.parse(received, AnswerTo::Other, &HeadLimits::default()) {
        Ok(true) => {}
        Ok(false) => return Received::Part,
        Err(_) => return Received::Foreign,
    }
    let body = received.get(head.head_bytes()..).unwrap_or_default();
    match head.framing() {
        Framing::Length(bytes) if (body.len() as u64) < bytes => Received::Part,
        Framing::Length(bytes) if bytes == body.len() as u64 => {
            Received::Whole(Reply { status: head.status(), body: body.to_vec() })
        }
        _ => Received::Foreign,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_messages_are_answers() {
        let check = |text: &str, expected: &str| {
            let said = match read(text.as_bytes()) {
                Received::Whole(Reply { status, body }) => format!("{status} {}", body.escape_ascii()),
                Received::Part => "part".to_owned(),
                Received::Foreign => "foreign".to_owned(),
            };
            assert_eq!(said, expected, "{text:?}");
        };
        check("HTTP/1.1 422 No\r\nContent-Length: 2\r\n\r\n{}", "422 {}");
        check("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n{}", "part");
        check("HTTP/1.1 200 OK\r\nContent-Len", "part");
        check("", "part");
        check("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}{}", "foreign");
        check("HTTP/1.1 204 None\r\n\r\n", "foreign");
        check("SSH-2.0-x\r\n", "foreign");
    }
}

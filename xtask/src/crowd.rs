//! The clients of an idle-memory benchmark: each asks once, and then keeps its connection and is silent.
//!
//! `xtask crowd ADDRESS TARGET CONNECTIONS [CERTIFICATE]` says `ready` when all have had their answers, and
//! ends only when one of them loses its connection, or when it is killed. With a certificate it speaks TLS
//! 1.3, by the same choices as the load generator's.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use lexopt::ValueExt;
use rustls::crypto::aws_lc_rs::{cipher_suite, default_provider, kx_group};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::failure::{Because, Failure, Result};

/// A proxy that does not answer must not hang the benchmark.
const ANSWER_MAX: Duration = Duration::from_secs(10);
/// How often it is looked whether all connections are still there.
const LOOK_EVERY: Duration = Duration::from_millis(100);

pub(crate) fn run(mut arguments: lexopt::Parser) -> Result<()> {
    let words =
        arguments.raw_args()?.map(|word| word.string()).collect::<std::result::Result<Vec<_>, _>>()?;
    let (address, target, count, certificate) = match words.as_slice() {
        [address, target, count] => (address, target, count, None),
        [address, target, count, certificate] => (address, target, count, Some(certificate)),
        _ => return Err(Failure::usage("crowd ADDRESS TARGET CONNECTIONS [CERTIFICATE]")),
    };
    let address: SocketAddr = address.parse().because(|| format!("no address: `{address}`"))?;
    let count: usize = count.parse().because(|| format!("no number: `{count}`"))?;
    let tls = certificate.map(|path| trusting(Path::new(path))).transpose()?;
    let request = format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let mut sockets = Vec::with_capacity(count);
    for _ in 0..count {
        sockets.push(Connection::after_one_request(address, tls.as_ref(), request.as_bytes())?);
    }
    println!("ready");
    loop {
        for connection in &sockets {
            connection.expect_open()?;
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

enum Connection {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Connection {
    fn after_one_request(
        address: SocketAddr,
        tls: Option<&Arc<ClientConfig>>,
        request: &[u8],
    ) -> Result<Self> {
        let socket = TcpStream::connect(address).because(|| format!("cannot connect to {address}"))?;
        // The end of a handshake and the request are two small writes, and the second must not wait.
        let set = socket.set_nodelay(true).and_then(|()| socket.set_read_timeout(Some(ANSWER_MAX)));
        set.because(|| "cannot set up a socket".into())?;
        let mut connection = match tls {
            None => Self::Plain(socket),
            Some(config) => {
                let name = ServerName::try_from("localhost").because(|| "cannot name the server".into())?;
                let state = ClientConnection::new(config.clone(), name);
                let state = state.because(|| "cannot begin a handshake".into())?;
                Self::Tls(Box::new(StreamOwned::new(state, socket)))
            }
        };
        match &mut connection {
            Self::Plain(stream) => ask(stream, request)?,
            Self::Tls(stream) => ask(stream, request)?,
        }
        // From here on it is only looked at.
        connection.socket().set_nonblocking(true).because(|| "cannot set a socket to non-blocking".into())?;
        Ok(connection)
    }

    fn socket(&self) -> &TcpStream {
        match self {
            Self::Plain(stream) => stream,
            Self::Tls(stream) => &stream.sock,
        }
    }

    fn expect_open(&self) -> Result<()> {
        match self.socket().peek(&mut [0]) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
            Ok(1..) => Ok(()),
            Ok(0) => Err(Failure::new("the proxy closed an idle connection")),
            Err(error) => Err(Failure::new(format!("an idle connection broke: {error}"))),
        }
    }
}

/// One exchange, to the last byte of the answer.
fn ask(stream: &mut (impl Read + Write), request: &[u8]) -> Result<()> {
    stream.write_all(request).and_then(|()| stream.flush()).because(|| "cannot ask".into())?;
    let mut answer = Vec::with_capacity(4096);
    let mut piece = [0; 4096];
    while !is_whole(&answer)? {
        match stream.read(&mut piece).because(|| "the answer does not come".into())? {
            0 => return Err(Failure::new("the connection ends amid an answer")),
            count => answer.extend_from_slice(&piece[..count]),
        }
    }
    Ok(())
}

/// Whether a 200 with its whole body is there.
fn is_whole(answer: &[u8]) -> Result<bool> {
    let text = String::from_utf8_lossy(answer);
    let Some((head, _)) = text.split_once("\r\n\r\n") else { return Ok(false) };
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("content-length").then(|| value.parse::<usize>().ok())?
    });
    match length {
        Some(length) if head.starts_with("HTTP/1.1 200 ") => Ok(answer.len() >= head.len() + 4 + length),
        _ => Err(Failure::new(format!("not the answer that was asked for:\n{head}"))),
    }
}

/// TLS 1.3 with X25519 and AES-128-GCM, and no session to resume.
fn trusting(certificate: &Path) -> Result<Arc<ClientConfig>> {
    let doing = || format!("cannot trust `{}`", certificate.display());
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(certificate).because(doing)?).because(doing)?;
    let mut provider = default_provider();
    provider.cipher_suites = vec![cipher_suite::TLS13_AES_128_GCM_SHA256];
    provider.kx_groups = vec![kx_group::X25519];
    let config = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .because(doing)?;
    let mut config = config.with_root_certificates(roots).with_no_client_auth();
    config.resumption = rustls::client::Resumption::disabled();
    Ok(Arc::new(config))
}

#[cfg(test)]
mod tests {
    use super::is_whole;

    #[test]
    fn an_answer_is_whole_with_its_last_byte() {
        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabc";
        for cut in 0..answer.len() {
            assert!(!is_whole(&answer[..cut]).expect("no fault yet"), "{cut}");
        }
        assert!(is_whole(answer).expect("as it should be"));
        assert!(is_whole(b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n").is_err());
        assert!(is_whole(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").is_err());
    }
}

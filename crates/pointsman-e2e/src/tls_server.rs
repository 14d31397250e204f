//! The TLS side of an origin: what it shows and wants, and what came of its handshakes.

use std::io::{Read, Result, Write};
use std::net::TcpStream;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{
    HandshakeKind, RootCertStore, ServerConfig, ServerConnection, StreamOwned, SupportedProtocolVersion,
};

use crate::{Authority, Pair};

/// What a TLS server shows and wants. It remembers sessions.
#[derive(Clone)]
pub struct TlsServer {
    config: Arc<ServerConfig>,
}

/// What a server knows of a handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shaken {
    /// The server name that it was asked for.
    pub sni: Option<String>,
    /// The protocol that was agreed on.
    pub alpn: Option<String>,
    /// Whether an earlier session was resumed.
    pub resumed: bool,
    /// The certificate that it was shown, as DER.
    pub certificate: Option<Vec<u8>>,
}

impl TlsServer {
    /// Shows this certificate; speaks TLS 1.3 and 1.2.
    #[must_use]
    pub fn new(pair: &Pair) -> Self {
        Self::with(pair, rustls::DEFAULT_VERSIONS, None)
    }

    /// The same with TLS 1.2 alone.
    #[must_use]
    pub fn v12(pair: &Pair) -> Self {
        Self::with(pair, &[&rustls::version::TLS12], None)
    }

    /// Wants a certificate from `authority`, too.
    #[must_use]
    pub fn demanding(pair: &Pair, authority: &Authority) -> Self {
        Self::with(pair, rustls::DEFAULT_VERSIONS, Some(authority))
    }

    /// The same with TLS 1.2 alone, where it is refused within the handshake.
    #[must_use]
    pub fn demanding_v12(pair: &Pair, authority: &Authority) -> Self {
        Self::with(pair, &[&rustls::version::TLS12], Some(authority))
    }

    /// The same with these protocols to agree on, in place of `h2` and `http/1.1`.
    #[must_use]
    pub fn alpn(mut self, protocols: &[&str]) -> Self {
        let protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        Arc::make_mut(&mut self.config).alpn_protocols = protocols;
        self
    }

    /// Gives no tickets: it keeps sessions itself, and calls them by identifiers.
    #[must_use]
    pub fn without_tickets(mut self) -> Self {
        let config = Arc::make_mut(&mut self.config);
        config.ticketer = Arc::new(NoTickets);
        config.session_storage = rustls::server::ServerSessionMemoryCache::new(1024);
        self
    }

    /// A connection of which the test does all by itself, with its handshake done.
    pub fn open(&self, mut socket: TcpStream) -> Result<StreamOwned<ServerConnection, TcpStream>> {
        let mut session = ServerConnection::new(self.config.clone()).expect("a working configuration");
        while session.is_handshaking() {
            session.complete_io(&mut socket)?;
        }
        Ok(StreamOwned::new(session, socket))
    }

    fn with(pair: &Pair, versions: &[&'static SupportedProtocolVersion], wanted: Option<&Authority>) -> Self {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(versions)
            .expect("known versions");
        let builder = match wanted {
            None => builder.with_no_client_auth(),
            Some(authority) => {
                let mut roots = RootCertStore::empty();
                roots.add(CertificateDer::from(authority.der())).expect("a CA certificate");
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                builder.with_client_cert_verifier(verifier.build().expect("an authority"))
            }
        };
        let chain = vec![CertificateDer::from(pair.der.clone())];
        let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).expect("a key");
        let mut config = builder.with_single_cert(chain, key).expect("a matching key");
        config.ticketer = rustls::crypto::aws_lc_rs::Ticketer::new().expect("randomness");
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Self { config: Arc::new(config) }
    }
}

#[derive(Debug)]
struct NoTickets;

impl rustls::server::ProducesTickets for NoTickets {
    fn enabled(&self) -> bool {
        false
    }

    fn lifetime(&self) -> u32 {
        0
    }

    fn encrypt(&self, _: &[u8]) -> Option<Vec<u8>> {
        None
    }

    fn decrypt(&self, _: &[u8]) -> Option<Vec<u8>> {
        None
    }
}

/// A connection as the origin has it.
pub(crate) enum Line {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ServerConnection, TcpStream>>),
}

impl Line {
    /// Does the handshake, where there is one.
    pub(crate) fn open(socket: TcpStream, tls: Option<&TlsServer>) -> Result<(Self, Option<Shaken>)> {
        let Some(tls) = tls else { return Ok((Line::Plain(socket), None)) };
        let stream = tls.open(socket)?;
        let session = &stream.conn;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let shaken = Shaken {
            sni: session.server_name().map(str::to_owned),
            alpn: session.alpn_protocol().map(text),
            resumed: session.handshake_kind() == Some(HandshakeKind::Resumed),
            certificate: session.peer_certificates().and_then(|chain| Some(chain.first()?.to_vec())),
        };
        Ok((Line::Tls(Box::new(stream)), Some(shaken)))
    }

    /// Says that nothing more follows, where there is a word for it.
    pub(crate) fn farewell(&mut self) {
        if let Line::Tls(stream) = self {
            stream.conn.send_close_notify();
            // The far end may be gone.
            drop(stream.flush());
        }
    }
}

impl Read for Line {
    fn read(&mut self, space: &mut [u8]) -> Result<usize> {
        match self {
            Line::Plain(socket) => socket.read(space),
            Line::Tls(stream) => stream.read(space),
        }
    }
}

impl Write for Line {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        match self {
            Line::Plain(socket) => socket.write(bytes),
            Line::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> Result<()> {
        match self {
            Line::Plain(socket) => socket.flush(),
            Line::Tls(stream) => stream.flush(),
        }
    }
}

//! What is known of a client connection before its first request.

use std::net::SocketAddr;
use std::sync::Arc;

/// A client connection, as plain data: the same for every request on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connection {
    /// Where the client is: the socket's peer, or what the PROXY protocol says in its place.
    pub src: SocketAddr,
    /// Where the client connected to.
    pub dst: SocketAddr,
    /// What the handshake agreed on; `None` for plain HTTP.
    ///
    /// Apart: most of what an idle connection costs would otherwise be room for it, and all streams share it.
    pub tls: Option<Arc<TlsFacts>>,
}

impl Connection {
    /// `http` or `https`, after what the listener speaks. An absolute target that claims another
    /// scheme changes nothing.
    pub fn scheme(&self) -> &'static str {
        match self.tls {
            Some(_) => "https",
            None => "http",
        }
    }
}

/// What a TLS handshake agreed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFacts {
    /// The server name the client asked for, in lower case.
    pub sni: Option<String>,
    /// `1.2` or `1.3`.
    pub version: &'static str,
    /// The cipher suite's name in IANA's registry.
    pub cipher: &'static str,
    /// The application protocol.
    pub alpn: Option<Vec<u8>>,
    /// Whether an earlier session was resumed.
    pub resumed: bool,
    /// The holder of the client's certificate, if it showed one.
    pub client: Option<TlsClient>,
}

/// The holder of a verified client certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsClient {
    /// The subject as RFC 4514 writes it.
    pub subject: String,
    /// The alternative names.
    pub sans: Vec<String>,
    /// SHA-256 of the certificate in lower-case hex.
    pub fingerprint: String,
}

//! What is known of a client connection before its first request.

use std::net::SocketAddr;
use std::sync::Arc;

use crate::TrustedProxies;

/// A client connection, as plain data: the same for every request on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connection {
    /// The socket's peer; `None` on a Unix socket.
    pub src: Option<SocketAddr>,
    /// Where the client connected to; `None` on a Unix socket.
    pub dst: Option<SocketAddr>,
    /// Whom the peer speaks for by a PROXY header; `None` where none came, or one for the peer itself.
    ///
    /// Shared by the streams of a connection, as what follows: most connections have none.
    pub proxied: Option<Arc<Proxied>>,
    /// What the handshake agreed on; `None` for plain HTTP.
    ///
    /// Apart: most of what an idle connection costs would otherwise be room for it, and all streams share it.
    pub tls: Option<Arc<TlsFacts>>,
}

/// Whom a peer speaks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proxied {
    /// A client whose address it does not say.
    Unknown,
    /// This client.
    Client(SocketAddr),
}

impl Connection {
    /// Who has sent the requests of the connection, as far as the connection itself says: the client of a PROXY
    /// header, otherwise the peer. It may be a proxy too. `None`: the peer of a Unix socket, which has no address.
    pub fn sender(&self) -> Option<SocketAddr> {
        match self.proxied.as_deref() {
            Some(Proxied::Client(client)) => Some(*client),
            Some(Proxied::Unknown) | None => self.src,
        }
    }

    /// Whether the sender is believed when it names who is behind it. A client that its proxy cannot name is not,
    /// whoever the proxy is.
    pub fn is_trusted(&self, trusted: TrustedProxies<'_>) -> bool {
        self.proxied.as_deref() != Some(&Proxied::Unknown) && trusted.believes(self.sender())
    }

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
    /// What the client's session is known by, over all connections that resume it; `None` where nobody shook hands.
    pub session: Option<[u8; 16]>,
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
    /// The certificate in base64 of its DER.
    pub certificate: String,
}

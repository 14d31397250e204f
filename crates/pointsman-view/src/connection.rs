//! What is known of a client connection before its first request.

use std::borrow::Cow;
use std::net::SocketAddr;
use std::sync::Arc;

use pointsman_rules::ProxyValue;

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
    pub proxied: Option<Arc<ProxyFacts>>,
    /// What the handshake agreed on; `None` for plain HTTP.
    ///
    /// Apart: most of what an idle connection costs would otherwise be room for it, and all streams share it.
    pub tls: Option<Arc<TlsFacts>>,
}

/// What a PROXY header says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxyFacts {
    /// Whom the connection is for.
    pub client: Proxied,
    /// What else it says of the connection.
    pub values: ProxyValues,
}

impl From<Proxied> for ProxyFacts {
    fn from(client: Proxied) -> ProxyFacts {
        ProxyFacts { client, values: ProxyValues::default() }
    }
}

/// Values of a PROXY header of version 2.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProxyValues {
    /// The application protocol.
    pub alpn: Option<Box<[u8]>>,
    /// The host that the client asked for, in lower case.
    pub authority: Option<Box<str>>,
    /// What the proxy calls the connection.
    pub unique_id: Option<Box<[u8]>>,
    /// The VPC endpoint of AWS.
    pub aws_vpce_id: Option<Box<str>>,
    /// The private link of Azure.
    pub azure_link_id: Option<u32>,
}

impl ProxyValues {
    /// A value as rules see it.
    #[must_use]
    pub fn text(&self, value: ProxyValue) -> Option<Cow<'_, [u8]>> {
        Some(match value {
            ProxyValue::Alpn => Cow::Borrowed(self.alpn.as_deref()?),
            ProxyValue::Authority => Cow::Borrowed(self.authority.as_deref()?.as_bytes()),
            ProxyValue::UniqueId => Cow::Owned(hex(self.unique_id.as_deref()?)),
            ProxyValue::AwsVpceId => Cow::Borrowed(self.aws_vpce_id.as_deref()?.as_bytes()),
            ProxyValue::AzureLinkId => Cow::Owned(self.azure_link_id?.to_string().into_bytes()),
        })
    }

    /// Sets a value to what rules are to see. False where no header has such a one.
    #[must_use]
    pub fn set(&mut self, value: ProxyValue, text: &[u8]) -> bool {
        let utf8 = || std::str::from_utf8(text).ok().map(Box::<str>::from);
        match value {
            ProxyValue::Alpn => self.alpn = Some(text.into()).filter(|_| (1..=255).contains(&text.len())),
            ProxyValue::Authority => self.authority = utf8(),
            ProxyValue::UniqueId => self.unique_id = unhex(text),
            ProxyValue::AwsVpceId => self.aws_vpce_id = utf8().filter(|id| !id.is_empty()),
            ProxyValue::AzureLinkId => self.azure_link_id = utf8().and_then(|digits| digits.parse().ok()),
        }
        self.text(value).as_deref() == Some(text)
    }
}

fn hex(bytes: &[u8]) -> Vec<u8> {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]).map(|digit| DIGITS[usize::from(digit)]).collect()
}

fn unhex(digits: &[u8]) -> Option<Box<[u8]>> {
    let (pairs, rest) = digits.as_chunks::<2>();
    let value = |digit: u8| char::from(digit).to_digit(16);
    let byte = |[high, low]: &[u8; 2]| u8::try_from(value(*high)? << 4 | value(*low)?).ok();
    pairs
        .iter()
        .map(byte)
        .collect::<Option<_>>()
        .filter(|_| rest.is_empty() && (1..=128).contains(&pairs.len()))
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
        match self.proxied.as_deref().map(|facts| facts.client) {
            Some(Proxied::Client(client)) => Some(client),
            Some(Proxied::Unknown) | None => self.src,
        }
    }

    /// Whether the sender is believed when it names who is behind it. A client that its proxy cannot name is not,
    /// whoever the proxy is.
    pub fn is_trusted(&self, trusted: TrustedProxies<'_>) -> bool {
        self.proxied.as_deref().map(|facts| facts.client) != Some(Proxied::Unknown)
            && trusted.believes(self.sender())
    }

    /// A value of its PROXY header, as rules see it.
    pub(crate) fn proxy_value(&self, value: ProxyValue) -> Option<Cow<'_, [u8]>> {
        self.proxied.as_deref()?.values.text(value)
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

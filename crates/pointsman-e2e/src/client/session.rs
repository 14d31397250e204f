//! What a client sees of its TLS session.

use rustls::{ClientConnection, HandshakeKind, ProtocolVersion};

use super::{Client, Stream};

impl Client {
    /// Whether the TLS session was resumed.
    #[must_use]
    pub fn resumed(&self) -> bool {
        self.session().handshake_kind() == Some(HandshakeKind::Resumed)
    }

    /// The TLS version agreed on.
    #[must_use]
    pub fn version(&self) -> Option<ProtocolVersion> {
        self.session().protocol_version()
    }

    /// The protocol agreed on by ALPN.
    #[must_use]
    pub fn alpn(&self) -> Option<String> {
        self.session().alpn_protocol().map(|name| String::from_utf8_lossy(name).into_owned())
    }

    /// The name of the key exchange group.
    #[must_use]
    pub fn group(&self) -> Option<String> {
        self.session().negotiated_key_exchange_group().map(|group| format!("{:?}", group.name()))
    }

    /// The IANA name of the cipher suite.
    #[must_use]
    pub fn cipher(&self) -> Option<String> {
        let suite = self.session().negotiated_cipher_suite()?;
        suite.suite().as_str().map(|name| name.replace("TLS13_", "TLS_"))
    }

    /// The certificate the switch showed, as DER.
    #[must_use]
    pub fn certificate(&self) -> Vec<u8> {
        self.session().peer_certificates().map(|chain| chain[0].to_vec()).unwrap_or_default()
    }

    fn session(&self) -> &ClientConnection {
        match self.reader.stream_ref() {
            Stream::Tls(stream) => &stream.conn,
            Stream::Plain(_) => panic!("a plain connection has no TLS session"),
        }
    }
}

//! The TLS side of a client: what it trusts, offers and remembers.

use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, SupportedProtocolVersion};

use crate::{Authority, Pair};

/// What a TLS client trusts and offers. It remembers sessions, so a second connection with the same
/// value may resume; [`TlsClient::forgetful`] never does.
#[derive(Clone)]
pub struct TlsClient {
    config: Arc<ClientConfig>,
}

impl TlsClient {
    /// Trusts `authority`, offers TLS 1.3 and 1.2.
    #[must_use]
    pub fn new(authority: &Authority) -> Self {
        Self::with(authority, rustls::DEFAULT_VERSIONS, None)
    }

    /// Offers TLS 1.2 only.
    #[must_use]
    pub fn v12(authority: &Authority) -> Self {
        Self::with(authority, &[&rustls::version::TLS12], None)
    }

    /// Offers TLS 1.3 only.
    #[must_use]
    pub fn v13(authority: &Authority) -> Self {
        Self::with(authority, &[&rustls::version::TLS13], None)
    }

    /// Trusts `authority` and shows a certificate when asked.
    #[must_use]
    pub fn identified(authority: &Authority, identity: &Pair) -> Self {
        Self::with(authority, rustls::DEFAULT_VERSIONS, Some(identity))
    }

    /// Offers these protocols by ALPN.
    #[must_use]
    pub fn alpn(mut self, protocols: &[&str]) -> Self {
        let config = Arc::make_mut(&mut self.config);
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        self
    }

    /// Sends no server name.
    #[must_use]
    pub fn without_sni(mut self) -> Self {
        Arc::make_mut(&mut self.config).enable_sni = false;
        self
    }

    /// Remembers no session.
    #[must_use]
    pub fn forgetful(mut self) -> Self {
        Arc::make_mut(&mut self.config).resumption = rustls::client::Resumption::disabled();
        self
    }

    /// The ClientHello with which it asks for the server `name`, as it goes over the wire.
    ///
    /// # Panics
    /// When `name` is no name.
    #[must_use]
    pub fn hello(&self, name: &str) -> Vec<u8> {
        let mut wire = Vec::new();
        self.connection(name).write_tls(&mut wire).expect("memory");
        wire
    }

    /// A connection of which the test does all by itself, and nothing has been done yet.
    ///
    /// # Panics
    /// When `name` is no name.
    #[must_use]
    pub fn connection(&self, name: &str) -> ClientConnection {
        let name = ServerName::try_from(name.to_owned()).expect("a DNS name");
        ClientConnection::new(self.config.clone(), name).expect("a working configuration")
    }

    fn with(
        authority: &Authority,
        versions: &[&'static SupportedProtocolVersion],
        identity: Option<&Pair>,
    ) -> Self {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from(authority.der())).expect("a CA certificate");
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)
            .expect("known versions")
            .with_root_certificates(roots);
        let config = match identity {
            None => builder.with_no_client_auth(),
            Some(pair) => {
                let chain = vec![CertificateDer::from(pair.der.clone())];
                let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).expect("a key");
                builder.with_client_auth_cert(chain, key).expect("a matching key")
            }
        };
        Self { config: Arc::new(config) }
    }
}

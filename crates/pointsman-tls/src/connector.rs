//! The client's side of handshakes with the servers of a pool: built whole from files, then immutable.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::SystemTime;

use aws_lc_rs::digest;
use rustls::client::Resumption;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::sign::SingleCertAndKey;
use rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;

use crate::acceptor::{provider, versions};
use crate::authority::{Authorities, AuthorityFacts, authorities};
use crate::certificate::{self, CertificateFacts, CertificateWarning, Concern, Loaded};
use crate::error::{Problem, TlsError};
use crate::pem;
use crate::server_stream::ServerStream;
use crate::settings::{ClientTls, TlsVersion};
use crate::stream::UNSENT_BYTES_MAX;
use crate::verifier::{Checked, Unchecked};
use crate::words::worded;

/// Sessions that are kept for a server: a ticket is used once, and threads connect at the same time.
const SESSIONS_MAX: usize = 8;

/// Does the client's side of TLS handshakes with one server. Cheap to clone; two are equal when they were built
/// from the same name and the same contents of files.
#[derive(Clone)]
pub struct Connector(Arc<Inner>);

struct Inner {
    connector: TlsConnector,
    name: ServerName<'static>,
    identity: [u8; 32],
}

/// What the connectors of a pool share: the files are read once.
pub struct Connectors {
    config: ClientConfig,
    /// SHA-256 of the settings and of what the files hold.
    policy: [u8; 32],
    certificate: Option<CertificateFacts>,
    authorities: Vec<AuthorityFacts>,
}

/// The authorities that the system trusts, looked for when they are first wanted.
#[derive(Default)]
pub struct SystemAuthorities(OnceCell<Vec<CertificateDer<'static>>>);

impl SystemAuthorities {
    fn get(&self) -> &[CertificateDer<'static>] {
        // Some of them may be broken: what is left is what there is.
        self.0.get_or_init(|| rustls_native_certs::load_native_certs().certs)
    }
}

impl Connectors {
    /// Reads and checks all files, and reports everything that is wrong with them.
    pub fn build(settings: &ClientTls, system: &SystemAuthorities) -> Result<Connectors, Vec<TlsError>> {
        Connectors::offering(settings, system, Arc::new(provider()), versions(settings.min_version))
    }

    /// The same with what `provider` has, in these versions.
    pub(crate) fn offering(
        settings: &ClientTls,
        system: &SystemAuthorities,
        provider: Arc<CryptoProvider>,
        versions: &[&'static SupportedProtocolVersion],
    ) -> Result<Connectors, Vec<TlsError>> {
        let trust = Trust::read(settings, system, &provider);
        let shown = settings.certificate.as_ref().map(|files| certificate::load(files, &provider));
        let (trust, shown) = match (trust, shown.transpose()) {
            (Ok(trust), Ok(shown)) => (trust, shown),
            (trust, shown) => return Err(trust.err().into_iter().chain(shown.err()).flatten().collect()),
        };
        let policy = policy(settings, &trust, shown.as_ref());
        let certificate = shown.as_ref().map(|loaded| {
            let mut facts = loaded.facts.clone();
            // Servers look at other things than a DNS name.
            facts.concerns.retain(|concern| *concern != Concern::NoName);
            facts
        });
        let authorities = trust.known.clone();
        let config = assemble(settings, (provider, versions), trust, shown)
            .map_err(|error| vec![TlsError::without_file(Problem::Refused { reason: error.to_string() })])?;
        Ok(Connectors { config, policy, certificate, authorities })
    }

    /// The connector to a server with this name, a DNS name or an address: what its certificate must be for, and, if
    /// it is a DNS name, the server name that is sent. `None`: it is neither.
    ///
    /// `previous` is what the *same server* had before a reload. Where nothing has changed it goes on, with its
    /// sessions.
    pub fn to(&self, name: &str, previous: Option<&Connector>) -> Option<Connector> {
        let name = server_name(name)?;
        let mut identity = digest::Context::new(&digest::SHA256);
        identity.update(&self.policy);
        identity.update(name.to_str().as_bytes());
        let identity = array(&identity.finish());
        if let Some(previous) = previous.filter(|previous| previous.0.identity == identity) {
            return Some(previous.clone());
        }
        let mut config = self.config.clone();
        config.resumption = Resumption::in_memory_sessions(SESSIONS_MAX);
        let connector = TlsConnector::from(Arc::new(config));
        Some(Connector(Arc::new(Inner { connector, name, identity })))
    }

    /// Our certificate, if we have one.
    pub fn certificate(&self) -> Option<&CertificateFacts> {
        self.certificate.as_ref()
    }

    /// Authorities that a file names for servers' certificates.
    pub fn authorities(&self) -> &[AuthorityFacts] {
        &self.authorities
    }

    /// What is odd about it at this time, above all that it expires.
    pub fn warnings(&self, now: SystemTime) -> Vec<CertificateWarning> {
        self.certificate.iter().flat_map(|certificate| certificate.warnings(now)).collect()
    }

    pub(crate) fn into_config(self) -> ClientConfig {
        self.config
    }
}

impl Connector {
    /// Does a handshake over a stream. Its time is the caller's to limit; dropping the future ends it.
    ///
    /// What an error means, [`ServerHandshakeFault::of`](crate::ServerHandshakeFault::of) says.
    pub fn connect<S>(&self, stream: S) -> impl Future<Output = io::Result<ServerStream<S>>> + use<S>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let Inner { connector, name, .. } = &*self.0;
        let handshake = connector.connect_with(name.clone(), stream, |connection| {
            connection.set_buffer_limit(Some(UNSENT_BYTES_MAX));
        });
        async move { Ok(ServerStream::new(handshake.await.map_err(worded)?)) }
    }

    /// The same to another server of that name, with sessions of its own.
    #[must_use]
    pub fn apart(&self) -> Connector {
        let Inner { connector, name, identity } = &*self.0;
        let mut config = ClientConfig::clone(connector.config());
        config.resumption = Resumption::in_memory_sessions(SESSIONS_MAX);
        let connector = TlsConnector::from(Arc::new(config));
        Connector(Arc::new(Inner { connector, name: name.clone(), identity: *identity }))
    }

    /// The name that the server's certificate is for: a DNS name or an address.
    pub fn name(&self) -> Cow<'_, str> {
        self.0.name.to_str()
    }

    /// Tells connectors apart: a hash of the name, the settings and what the files hold.
    pub fn identity(&self) -> [u8; 32] {
        self.0.identity
    }
}

impl PartialEq for Connector {
    fn eq(&self, other: &Connector) -> bool {
        self.0.identity == other.0.identity
    }
}

impl Eq for Connector {}

impl std::fmt::Debug for Connector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connector").field("name", &self.0.name).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Connectors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connectors").field("certificate", &self.certificate).finish_non_exhaustive()
    }
}

/// A trailing dot belongs to DNS, not to TLS (RFC 6066 section 3).
fn server_name(name: &str) -> Option<ServerName<'static>> {
    let name = name.strip_suffix('.').unwrap_or(name);
    ServerName::try_from(name.to_ascii_lowercase()).ok()
}

/// Whose certificates are taken, and what that rests on.
struct Trust {
    verifier: Arc<dyn ServerCertVerifier>,
    known: Vec<AuthorityFacts>,
    authorities: digest::Digest,
}

impl Trust {
    /// Reads the authorities, even when they are not asked for: a broken file is found before it is needed.
    fn read(
        settings: &ClientTls,
        system: &SystemAuthorities,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Trust, Vec<TlsError>> {
        let mut hash = digest::Context::new(&digest::SHA256);
        let (mut listed, mut known) = (Vec::new(), Vec::new());
        let roots = match &settings.ca {
            Some(path) => {
                let text = pem::read(path).map_err(|error| vec![error])?;
                hash.update(&text);
                listed = pem::authorities(path, &text).map_err(|error| vec![error])?;
                let Authorities { roots, facts } = authorities(path, &text)?;
                known = facts;
                roots
            }
            None if settings.verify => {
                let mut roots = RootCertStore::empty();
                for certificate in system.get() {
                    hash.update(certificate);
                }
                if roots.add_parsable_certificates(system.get().iter().cloned()).0 == 0 {
                    return Err(vec![TlsError::without_file(Problem::NoSystemAuthorities)]);
                }
                roots
            }
            None => RootCertStore::empty(),
        };
        let verifier: Arc<dyn ServerCertVerifier> = match settings.verify {
            true => Arc::new(Checked::new(roots, listed, provider.clone())?),
            false => Arc::new(Unchecked::new(provider)),
        };
        Ok(Trust { verifier, known, authorities: hash.finish() })
    }
}

/// The key is that of the certificate, so the certificate stands for both.
fn policy(settings: &ClientTls, trust: &Trust, shown: Option<&Loaded>) -> [u8; 32] {
    let mut hash = digest::Context::new(&digest::SHA256);
    hash.update(trust.authorities.as_ref());
    hash.update(&[
        u8::from(settings.verify),
        u8::from(settings.min_version == TlsVersion::Tls13),
        u8::from(shown.is_some()),
    ]);
    hash.update(settings.protocol.as_bytes());
    for certificate in shown.iter().flat_map(|loaded| &loaded.certified.cert) {
        hash.update(&(certificate.len() as u64).to_be_bytes());
        hash.update(certificate);
    }
    array(&hash.finish())
}

fn array(digest: &digest::Digest) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest.as_ref());
    bytes
}

fn assemble(
    settings: &ClientTls,
    (provider, versions): (Arc<CryptoProvider>, &[&'static SupportedProtocolVersion]),
    trust: Trust,
    shown: Option<Loaded>,
) -> Result<ClientConfig, rustls::Error> {
    let config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)?
        .dangerous()
        .with_custom_certificate_verifier(trust.verifier);
    let mut config = match shown {
        None => config.with_no_client_auth(),
        Some(loaded) => config.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(loaded.certified))),
    };
    config.alpn_protocols = vec![settings.protocol.as_bytes().to_vec()];
    Ok(config)
}

//! The server's side of handshakes on one listener: built whole from files, then immutable.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::SystemTime;

use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::UnixTime;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::version::{TLS12, TLS13};
use rustls::{RootCertStore, ServerConfig, SupportedProtocolVersion};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;

use crate::authority::{Authorities, AuthorityFacts, authorities};
use crate::certificate::{self, CertificateFacts, CertificateWarning, Loaded};
use crate::client_chain::ClientChain;
use crate::error::{Problem, TlsError};
use crate::own_keys::{OwnKeys, TicketSecret};
use crate::pem;
use crate::resolver::ByName;
use crate::session_id::Identified;
use crate::sessions::{Policy, Sessions};
use crate::settings::{ClientAuth, ServerTls, Terms, TlsVersion};
use crate::stream::{TlsStream, UNSENT_BYTES_MAX};
use crate::tickets::KeyFile;
use crate::words::worded;

/// Does the server's side of TLS handshakes. Cheap to clone.
#[derive(Clone)]
pub struct Acceptor(Arc<Inner>);

struct Inner {
    acceptor: TlsAcceptor,
    by_name: Arc<ByName>,
    clients: Arc<dyn ClientCertVerifier>,
    certificates: Vec<CertificateFacts>,
    authorities: Vec<AuthorityFacts>,
    sessions: Option<Sessions>,
    terms: Terms,
}

impl Acceptor {
    /// Reads and checks all files, and reports everything that is wrong with them.
    ///
    /// `previous` is what the *same listener* had before a reload: if its client-certificate policy (mode and
    /// content of the file of authorities) is the same, its sessions can still be resumed. The acceptor of
    /// another listener must never be passed here.
    pub fn build(settings: &ServerTls, previous: Option<&Acceptor>) -> Result<Acceptor, Vec<TlsError>> {
        let provider = Arc::new(provider());
        let mut errors = Vec::new();
        let mut certificates = Vec::with_capacity(settings.certificates.len());
        if settings.certificates.is_empty() {
            errors.push(TlsError::without_file(Problem::NoCertificateConfigured));
        }
        for files in &settings.certificates {
            match certificate::load(files, &provider) {
                Ok(loaded) => certificates.push(loaded),
                Err(wrong) => errors.extend(wrong),
            }
        }
        let ticket_keys = settings.ticket_keys.as_deref().map(KeyFile::read).transpose();
        match (ClientPolicy::read(settings, &provider), ticket_keys) {
            (Ok(clients), Ok(ticket_keys)) if errors.is_empty() => {
                let parts = Parts { provider, certificates, clients, ticket_keys };
                parts.assemble(settings, previous).map_err(|error| {
                    vec![TlsError::without_file(Problem::Refused { reason: error.to_string() })]
                })
            }
            (clients, ticket_keys) => {
                errors.extend(clients.err().into_iter().flatten());
                errors.extend(ticket_keys.err().into_iter().flatten());
                Err(errors)
            }
        }
    }

    /// Does a handshake over a stream. Its time is the caller's to limit; dropping the future ends it.
    pub fn accept<S>(&self, stream: S) -> impl Future<Output = io::Result<TlsStream<S>>> + use<S>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let handshake = Identified::new(self.0.acceptor.accept_with(stream, |connection| {
            connection.set_buffer_limit(Some(UNSENT_BYTES_MAX));
        }));
        async move {
            let (shaken, session) = handshake.await;
            TlsStream::new(shaken.map_err(worded)?, session)
        }
    }

    /// Whether a client that was let in as `name`, the server name of its handshake, may ask for `host`, in lower
    /// case, on the same connection: that is what it came for, or the certificate that it was shown is for it and is
    /// the one that it would be shown for it (RFC 9113 section 9.1.1). Who named nobody came for whatever has no
    /// certificate of its own. Client certificates are asked for alike for all hosts of an acceptor.
    pub fn serves(&self, name: Option<&str>, host: &str) -> bool {
        self.0.by_name.serves(name, host)
    }

    /// Whether a client that has shown these certificates in an earlier handshake, of this acceptor or of another one, would be let
    /// in with them now.
    pub fn would_let_in(&self, chain: &ClientChain) -> bool {
        let verifier = &self.0.clients;
        // One that asks for none knows nobody.
        verifier.offer_client_auth()
            && verifier.verify_client_cert(chain.leaf(), chain.others(), UnixTime::now()).is_ok()
    }

    /// The keys of its tickets, the newest first, as far as no file names them: for the process that takes the place of
    /// this one, and for nobody else.
    pub fn ticket_secrets(&self) -> Vec<TicketSecret> {
        let own = self.0.sessions.as_ref().and_then(Sessions::own_keys);
        own.map(OwnKeys::secrets).unwrap_or_default()
    }

    /// Opens the tickets that the *same listener* of the process before this one has sealed, and goes on with its keys,
    /// unless a file names them. Sessions that rested on another client-certificate policy cannot be resumed all the
    /// same.
    pub fn take_over_tickets(&self, secrets: &[TicketSecret]) {
        let own = self.0.sessions.as_ref().and_then(Sessions::own_keys);
        own.into_iter().for_each(|own| own.take_over(secrets));
    }

    /// The certificates, in the order of the configuration.
    pub fn certificates(&self) -> &[CertificateFacts] {
        &self.0.certificates
    }

    /// Authorities that client certificates may come from.
    pub fn authorities(&self) -> &[AuthorityFacts] {
        &self.0.authorities
    }

    /// What its handshakes can come to.
    pub fn terms(&self) -> &Terms {
        &self.0.terms
    }

    /// What is odd about the certificates at this time, above all those that expire.
    pub fn warnings(&self, now: SystemTime) -> Vec<CertificateWarning> {
        self.0.certificates.iter().flat_map(|certificate| certificate.warnings(now)).collect()
    }
}

impl std::fmt::Debug for Acceptor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Acceptor").field("certificates", &self.0.certificates).finish_non_exhaustive()
    }
}

/// The library's own cipher suites, and its key exchanges in a written-down order. Among those that both
/// sides know, the client's order decides.
pub(crate) fn provider() -> CryptoProvider {
    use aws_lc_rs::kx_group::{SECP256R1, SECP384R1, X25519, X25519MLKEM768};
    CryptoProvider {
        kx_groups: vec![X25519MLKEM768, X25519, SECP256R1, SECP384R1],
        ..aws_lc_rs::default_provider()
    }
}

/// The versions that are spoken, the newest first.
pub(crate) fn versions(min: TlsVersion) -> &'static [&'static SupportedProtocolVersion] {
    static ALL: [&SupportedProtocolVersion; 2] = [&TLS13, &TLS12];
    match min {
        TlsVersion::Tls12 => &ALL,
        TlsVersion::Tls13 => &ALL[..1],
    }
}

/// What was read.
struct Parts {
    provider: Arc<CryptoProvider>,
    certificates: Vec<Loaded>,
    clients: ClientPolicy,
    ticket_keys: Option<KeyFile>,
}

impl Parts {
    fn assemble(
        mut self,
        settings: &ServerTls,
        previous: Option<&Acceptor>,
    ) -> Result<Acceptor, rustls::Error> {
        let sessions = match settings.tickets {
            true => {
                let previous = previous.and_then(|previous| previous.0.sessions.as_ref());
                let lifetime_s = settings.session_s_max;
                Some(Sessions::new(self.clients.policy, self.ticket_keys.as_ref(), lifetime_s, previous)?)
            }
            false => None,
        };
        let terms = self.terms(settings);
        let by_name = Arc::new(ByName::new(&mut self.certificates));
        let mut config = ServerConfig::builder_with_provider(self.provider)
            .with_protocol_versions(versions(settings.min_version))?
            .with_client_cert_verifier(self.clients.verifier.clone())
            .with_cert_resolver(by_name.clone());
        config.alpn_protocols.clone_from(&settings.alpn);
        Sessions::install(sessions.as_ref(), &mut config);
        Ok(Acceptor(Arc::new(Inner {
            acceptor: TlsAcceptor::from(Arc::new(config)),
            by_name,
            clients: self.clients.verifier,
            authorities: self.clients.known,
            certificates: self.certificates.into_iter().map(|loaded| loaded.facts).collect(),
            sessions,
            terms,
        })))
    }

    fn terms(&self, settings: &ServerTls) -> Terms {
        let is_rsa = |loaded: &Loaded| loaded.certified.key.algorithm() == rustls::SignatureAlgorithm::RSA;
        Terms {
            min_version: settings.min_version,
            alpn: settings.alpn.clone(),
            tickets: settings.tickets,
            client_auth: settings.client_auth,
            signs_by_rsa: self.certificates.iter().any(is_rsa),
            signs_by_ecdsa: self.certificates.iter().any(|loaded| !is_rsa(loaded)),
        }
    }
}

/// Who is let in, and what that decision rests on.
struct ClientPolicy {
    verifier: Arc<dyn ClientCertVerifier>,
    policy: Policy,
    known: Vec<AuthorityFacts>,
}

impl ClientPolicy {
    /// Reads the authorities, even when they are not asked for: a broken file is found before it is needed.
    fn read(settings: &ServerTls, provider: &Arc<CryptoProvider>) -> Result<ClientPolicy, Vec<TlsError>> {
        let auth = settings.client_auth;
        let mut known = Vec::new();
        let (text, roots) = match &settings.client_ca {
            Some(path) => {
                let text = pem::read(path).map_err(|error| vec![error])?;
                let Authorities { roots, facts } = authorities(path, &text)?;
                known = facts;
                (Some(text), Arc::new(roots))
            }
            None if auth == ClientAuth::Off => (None, Arc::new(RootCertStore::empty())),
            None => return Err(vec![TlsError::without_file(Problem::NoClientCa)]),
        };
        let policy = Policy::new(auth, text.as_deref());
        let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider.clone());
        let verifier = match auth {
            ClientAuth::Off => {
                let verifier = WebPkiClientVerifier::no_client_auth();
                return Ok(ClientPolicy { verifier, policy, known });
            }
            ClientAuth::Request => verifier.allow_unauthenticated().build(),
            ClientAuth::Require => verifier.build(),
        };
        match verifier {
            Ok(verifier) => Ok(ClientPolicy { verifier, policy, known }),
            Err(error) => Err(vec![TlsError::without_file(Problem::Refused { reason: error.to_string() })]),
        }
    }
}

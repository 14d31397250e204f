//! Handshakes between this crate and a client, in memory.

mod alerts;
mod choice;
mod client_side;
mod clients;
mod connectors;
mod files;
mod pem_forms;
mod resumption;
mod version_1;

use std::fs;
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, PKCS_RSA_SHA256, RsaKeySize,
    SanType,
};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use rustls::{ClientConfig, NamedGroup, RootCertStore, SupportedProtocolVersion};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::TlsConnector;

use crate::{Acceptor, CertificateFiles, ClientAuth, PeerFacts, ServerTls, SessionId, TlsVersion};

/// An authority, and a folder for what it issues.
struct Site {
    authority: CertifiedIssuer<'static, KeyPair>,
    folder: TempDir,
}

/// A certificate that an authority issued.
struct Issued {
    der: CertificateDer<'static>,
    key: KeyPair,
    files: CertificateFiles,
}

/// What both sides know after a handshake and a ping.
#[derive(Debug)]
struct Connected {
    facts: PeerFacts,
    certificate: CertificateDer<'static>,
    group: Option<NamedGroup>,
    alpn: Option<Vec<u8>>,
}

impl Site {
    fn new() -> Site {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "test authority");
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        Site { authority, folder: tempfile::tempdir().unwrap() }
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.folder.path().join(name);
        fs::write(&path, text).unwrap();
        path
    }

    /// A certificate for these names, in files `NAME.crt` and `NAME.key`.
    fn issue(&self, file: &str, names: &[&str]) -> Issued {
        self.issue_for(file, KeyPair::generate().unwrap(), params(names))
    }

    fn issue_rsa(&self, file: &str, names: &[&str]) -> Issued {
        let key = KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048).unwrap();
        self.issue_for(file, key, params(names))
    }

    fn issue_for(&self, file: &str, key: KeyPair, params: CertificateParams) -> Issued {
        let certificate = params.signed_by(&key, &self.authority).unwrap();
        let path = self.write(&format!("{file}.crt"), certificate.pem());
        let files = CertificateFiles::new(path, self.write(&format!("{file}.key"), key.serialize_pem()));
        Issued { der: certificate.der().clone(), key, files }
    }

    /// A client that trusts this site's authority and shows no certificate.
    fn client(&self) -> ClientConfig {
        self.client_of(&[&rustls::version::TLS13, &rustls::version::TLS12])
    }

    fn client_of(&self, versions: &[&'static SupportedProtocolVersion]) -> ClientConfig {
        self.client_builder(versions).with_no_client_auth()
    }

    fn client_showing(&self, issued: &Issued) -> ClientConfig {
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(issued.key.serialize_der()));
        self.client_builder(&[&rustls::version::TLS13, &rustls::version::TLS12])
            .with_client_auth_cert(vec![issued.der.clone()], key)
            .unwrap()
    }

    fn client_builder(
        &self,
        versions: &[&'static SupportedProtocolVersion],
    ) -> rustls::ConfigBuilder<ClientConfig, rustls::client::WantsClientCert> {
        let mut roots = RootCertStore::empty();
        roots.add(self.authority.der().clone()).unwrap();
        ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_protocol_versions(versions)
            .unwrap()
            .with_root_certificates(roots)
    }
}

fn params(names: &[&str]) -> CertificateParams {
    CertificateParams::new(names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>()).unwrap()
}

/// Settings with all defaults.
fn settings(certificates: &[&Issued]) -> ServerTls {
    ServerTls {
        certificates: certificates.iter().map(|issued| issued.files.clone()).collect(),
        min_version: TlsVersion::Tls12,
        alpn: vec![b"http/1.1".to_vec()],
        tickets: true,
        session_s_max: 43_200,
        ticket_keys: None,
        client_ca: None,
        client_auth: ClientAuth::Off,
    }
}

/// A handshake for a name, then a ping and its echo, so that tickets reach the client.
async fn connect(acceptor: &Acceptor, client: &Arc<ClientConfig>, name: &str) -> io::Result<Connected> {
    let (near, far) = tokio::io::duplex(64 * 1024);
    let server_side = async {
        let mut stream = acceptor.accept(far).await?;
        let mut ping = [0; 4];
        stream.read_exact(&mut ping).await?;
        stream.write_all(&ping).await?;
        stream.flush().await?;
        let facts = stream.facts();
        stream.shutdown().await?;
        Ok::<_, io::Error>(facts)
    };
    let client_side = async {
        let name = ServerName::try_from(name.to_owned()).unwrap();
        let mut stream = TlsConnector::from(client.clone()).connect(name, near).await?;
        stream.write_all(b"ping").await?;
        stream.flush().await?;
        let mut echo = Vec::new();
        stream.read_to_end(&mut echo).await?;
        assert_eq!(echo, b"ping");
        let connection = stream.get_ref().1;
        let certificate = connection.peer_certificates().unwrap()[0].clone().into_owned();
        let group = connection.negotiated_key_exchange_group().map(|group| group.name());
        Ok::<_, io::Error>((certificate, group, connection.alpn_protocol().map(<[u8]>::to_vec)))
    };
    match tokio::join!(server_side, client_side) {
        (Ok(facts), Ok((certificate, group, alpn))) => Ok(Connected { facts, certificate, group, alpn }),
        // What the server says is what is tested; the client often sees the consequence only.
        (Err(error), _) | (_, Err(error)) => Err(error),
    }
}

fn error_text<T: std::fmt::Debug>(result: io::Result<T>) -> String {
    result.expect_err("the handshake should fail").to_string()
}

fn ip(text: &str) -> SanType {
    SanType::IpAddress(text.parse::<IpAddr>().unwrap())
}

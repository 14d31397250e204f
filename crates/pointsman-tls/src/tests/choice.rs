//! Certificates by name and kind of key, versions, protocols and key exchanges.

use std::time::SystemTime;

use rustls::SignatureScheme;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::UnixTime;
use rustls::version::{TLS12, TLS13};
use rustls::{DigitallySignedStruct, Error};

use super::*;

#[tokio::test]
async fn certificates_are_chosen_by_name() {
    let site = Site::new();
    let first = site.issue("first", &["first.example"]);
    let second = site.issue("second", &["second.example", "*.second.example"]);
    let exact = site.issue("exact", &["www.second.example"]);
    let acceptor = Acceptor::build(&settings(&[&first, &second, &exact]), None).unwrap();
    // The client does not check names here: the default goes to names that it is not for.
    let client = Arc::new(trusting_any_name(&site, &ALL_SCHEMES));
    for (name, expected) in [
        ("first.example", &first),
        ("second.example", &second),
        ("a.second.example", &second),
        ("A.Second.EXAMPLE", &second),
        ("www.second.example", &exact),
        ("a.b.second.example", &first),
        ("unknown.example", &first),
        ("example", &first),
        ("127.0.0.1", &first),
    ] {
        let connected = connect(&acceptor, &client, name).await.unwrap();
        assert_eq!(connected.certificate, expected.der, "{name}");
        let sni = name.parse::<IpAddr>().is_err().then(|| name.to_lowercase());
        assert_eq!(connected.facts.sni, sni);
    }
}

/// What it came for, and what its certificate is for, unless that has one of its own.
#[test]
fn one_connection_serves_some_hosts() {
    let site = Site::new();
    let first = site.issue("first", &["first.example", "www.first.example"]);
    let second = site.issue("second", &["second.example", "*.second.example"]);
    let exact = site.issue("exact", &["www.second.example"]);
    let one = Acceptor::build(&settings(&[&first]), None).unwrap();
    let three = Acceptor::build(&settings(&[&first, &second, &exact]), None).unwrap();
    for (name, host, by_one, by_three) in [
        (Some("first.example"), "first.example", true, true),
        (Some("First.EXAMPLE"), "first.example", true, true),
        (Some("first.example"), "www.first.example", true, true),
        (Some("first.example"), "second.example", false, false),
        (Some("first.example"), "unknown.example", false, false),
        (Some("first.example"), "127.0.0.1", false, false),
        (Some("second.example"), "a.second.example", false, true),
        (Some("second.example"), "www.second.example", false, false),
        (Some("second.example"), "unknown.example", false, false),
        (Some("unknown.example"), "unknown.example", true, true),
        (Some("unknown.example"), "first.example", true, true),
        (Some("unknown.example"), "second.example", false, false),
        (None, "first.example", true, true),
        (None, "unknown.example", true, true),
        (None, "127.0.0.1", true, true),
        (None, "second.example", true, false),
    ] {
        let served = (one.serves(name, host), three.serves(name, host));
        assert_eq!(served, (by_one, by_three), "{host} on a connection to {name:?}");
    }
}

#[tokio::test]
async fn the_kind_of_key_is_chosen_by_what_the_client_verifies() {
    let site = Site::new();
    let rsa = site.issue_rsa("rsa", &["shop.example"]);
    let ecdsa = site.issue("ecdsa", &["shop.example"]);
    let acceptor = Acceptor::build(&settings(&[&rsa, &ecdsa]), None).unwrap();
    assert_eq!(acceptor.warnings(SystemTime::now()), []);
    for (schemes, expected) in [
        (&ALL_SCHEMES[..], &ecdsa),
        (&[SignatureScheme::RSA_PSS_SHA256, SignatureScheme::ECDSA_NISTP256_SHA256], &ecdsa),
        (&[SignatureScheme::RSA_PSS_SHA256], &rsa),
    ] {
        let client = Arc::new(trusting_any_name(&site, schemes));
        for name in ["shop.example", "unknown.example"] {
            let connected = connect(&acceptor, &client, name).await.unwrap();
            assert_eq!(connected.certificate, expected.der, "{schemes:?} {name}");
        }
    }
}

#[tokio::test]
async fn both_versions_are_spoken_and_named() {
    let site = Site::new();
    let issued = site.issue("shop", &["shop.example"]);
    let acceptor = Acceptor::build(&settings(&[&issued]), None).unwrap();
    for (version, expected, ciphers) in [
        (&TLS13, "1.3", ["TLS_AES_256_GCM_SHA384", "TLS_AES_128_GCM_SHA256"]),
        (
            &TLS12,
            "1.2",
            ["TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"],
        ),
    ] {
        let connected = connect(&acceptor, &Arc::new(site.client_of(&[version])), "shop.example").await;
        let facts = connected.unwrap().facts;
        assert_eq!(facts.version, expected);
        assert!(ciphers.contains(&facts.cipher), "{}", facts.cipher);
        assert_eq!((facts.resumed, facts.client), (false, None));
    }
}

#[tokio::test]
async fn an_old_version_is_refused() {
    let site = Site::new();
    let issued = site.issue("shop", &["shop.example"]);
    let settings = ServerTls { min_version: TlsVersion::Tls13, ..settings(&[&issued]) };
    let acceptor = Acceptor::build(&settings, None).unwrap();
    let refused = connect(&acceptor, &Arc::new(site.client_of(&[&TLS12])), "shop.example").await;
    assert!(error_text(refused).contains("tls12 not offered or enabled"));
    assert!(connect(&acceptor, &Arc::new(site.client()), "shop.example").await.is_ok());
}

#[tokio::test]
async fn protocols_are_agreed_on_or_the_client_refused() {
    let site = Site::new();
    let issued = site.issue("shop", &["shop.example"]);
    let acceptor = Acceptor::build(&settings(&[&issued]), None).unwrap();
    for (offer, expected) in [
        (&[][..], Some(None)),
        (&["http/1.1"], Some(Some("http/1.1"))),
        (&["h2", "http/1.1"], Some(Some("http/1.1"))),
        (&["h2"], None),
    ] {
        let mut client = site.client();
        client.alpn_protocols = offer.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
        let connected = connect(&acceptor, &Arc::new(client), "shop.example").await;
        match expected {
            Some(protocol) => {
                let connected = connected.unwrap();
                let protocol = protocol.map(|protocol| protocol.as_bytes().to_vec());
                assert_eq!((connected.facts.alpn, connected.alpn), (protocol.clone(), protocol));
            }
            None => assert!(error_text(connected).contains("known protocol"), "{offer:?}"),
        }
    }
}

#[tokio::test]
async fn key_exchange_is_post_quantum_with_clients_that_know_it() {
    let site = Site::new();
    let issued = site.issue("shop", &["shop.example"]);
    let acceptor = Acceptor::build(&settings(&[&issued]), None).unwrap();
    let connected = connect(&acceptor, &Arc::new(site.client()), "shop.example").await.unwrap();
    assert_eq!(connected.group, Some(NamedGroup::X25519MLKEM768));
    let connected = connect(&acceptor, &Arc::new(site.client_of(&[&TLS12])), "shop.example").await.unwrap();
    assert_eq!(connected.group, Some(NamedGroup::X25519));
}

const ALL_SCHEMES: [SignatureScheme; 3] = [
    SignatureScheme::ECDSA_NISTP256_SHA256,
    SignatureScheme::RSA_PSS_SHA256,
    SignatureScheme::RSA_PKCS1_SHA256,
];

/// A client that verifies these signatures only, and takes a certificate for any name.
fn trusting_any_name(site: &Site, schemes: &[SignatureScheme]) -> ClientConfig {
    let mut client = site.client();
    let mut roots = RootCertStore::empty();
    roots.add(site.authority.der().clone()).unwrap();
    let provider = Arc::new(aws_lc_rs::default_provider());
    let signatures = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap();
    let verifier = AnyName { signatures, schemes: schemes.to_vec() };
    client.dangerous().set_certificate_verifier(Arc::new(verifier));
    client
}

#[derive(Debug)]
struct AnyName {
    signatures: Arc<WebPkiServerVerifier>,
    schemes: Vec<SignatureScheme>,
}

impl ServerCertVerifier for AnyName {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.signatures.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.signatures.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.schemes.clone()
    }
}

//! Certificates of X.509 version 1, which `openssl x509 -req` makes without extensions.

use rcgen::SigningKey;
use rustls::sign::{CertifiedKey, SingleCertAndKey};

use super::*;
use crate::HandshakeFault;

/// A DER element and what follows it.
fn element(bytes: &[u8]) -> (&[u8], &[u8]) {
    let head = match bytes[1] {
        0x81 => 3,
        0x82 => 4,
        _ => 2,
    };
    let length = bytes[if head == 2 { 1 } else { 2 }..head]
        .iter()
        .fold(0, |length, &octet| length << 8 | usize::from(octet));
    bytes.split_at(head + length)
}

fn sequence(tag: u8, content: &[u8]) -> Vec<u8> {
    let [high, low] = u16::try_from(content.len()).unwrap().to_be_bytes();
    match content.len() {
        0..=0x7f => [&[tag, low], content].concat(),
        0x80..=0xff => [&[tag, 0x81, low], content].concat(),
        _ => [&[tag, 0x82, high, low], content].concat(),
    }
}

fn content(element: &[u8]) -> &[u8] {
    let head = match element[1] {
        0x81 => 3,
        0x82 => 4,
        _ => 2,
    };
    &element[head..]
}

/// The same certificate without what version 3 has, signed anew.
fn version_1(site: &Site, certificate: &[u8]) -> CertificateDer<'static> {
    const VERSION: u8 = 0xa0;
    const EXTENSIONS: u8 = 0xa3;
    let (signed, rest) = element(content(certificate));
    let (algorithm, _) = element(rest);
    let (mut kept, mut left) = (Vec::new(), content(signed));
    while !left.is_empty() {
        let (next, behind) = element(left);
        if ![VERSION, EXTENSIONS].contains(&next[0]) {
            kept.extend_from_slice(next);
        }
        left = behind;
    }
    let signed = sequence(0x30, &kept);
    let signature = [vec![0], site.authority.key().sign(&signed).unwrap()].concat();
    let whole = [&signed, algorithm, &sequence(3, &signature)].concat();
    CertificateDer::from(sequence(0x30, &whole))
}

#[tokio::test]
async fn a_client_certificate_of_version_1_is_refused_by_name() {
    let site = Site::new();
    let (issued, client) = (site.issue("shop", &["shop.example"]), site.issue("client", &["client.example"]));
    let old = version_1(&site, &client.der);
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(client.key.serialize_der()));
    let key = aws_lc_rs::default_provider().key_provider.load_private_key(key).unwrap();
    let mut config = site.client();
    config.client_auth_cert_resolver = Arc::new(SingleCertAndKey::from(CertifiedKey::new(vec![old], key)));
    let settings = ServerTls {
        client_ca: Some(site.write("ca.crt", site.authority.pem())),
        client_auth: ClientAuth::Require,
        ..settings(&[&issued])
    };
    let acceptor = Acceptor::build(&settings, None).unwrap();
    let refused = connect(&acceptor, &Arc::new(config), "shop.example").await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the peer's certificate is of X.509 version 1 or 2, and TLS takes version 3 alone (RFC 5246 section 7.4.6)"
    );
    assert_eq!(HandshakeFault::of(&refused), HandshakeFault::ClientCertificateVersion);
}

/// The own certificate of a listener is complained about at load.
#[test]
fn an_own_certificate_of_version_1_is_an_error() {
    let site = Site::new();
    let issued = site.issue("shop", &["shop.example"]);
    let old = version_1(&site, &issued.der);
    assert_eq!(crate::certificate::parse(&old).unwrap_err(), "it is of X.509 version 1, not 3");
}

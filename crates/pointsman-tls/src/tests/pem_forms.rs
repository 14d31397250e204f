//! PEM files as people have them: marks, old labels, encrypted keys, chains in any order.

use std::path::Path;

use rustls::pki_types::PrivateKeyDer;

use super::*;
use crate::encrypted_key::{Passphrase, kind_of};
use crate::error::Problem;
use crate::{Concern, pem};

const MARK: &[u8] = b"\xef\xbb\xbf";

/// What `openssl` wrote: a key of Ed25519, and the same under the passphrase `open`.
const PLAIN: &str = "MC4CAQAwBQYDK2VwBCIEIDSTsr6tFr7gwvS6kx7ywmORVjgKFMJ4F8ZGfRdPWlsb";
const AES: &str = "MIGbMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAjCaV20B/vw2gICCAAw
DAYIKoZIhvcNAgkFADAdBglghkgBZQMEASoEEKN3XvPOYyMdQk0zhMNbUY0EQD/Q
/kjyU9zW/j2DwDvrMUcgRZwG7JJojE2UbFaUaWwHKbiQREz2uoosiuy4aluPy0i+
2riMmnB9eqyqYvNbGpQ=";
const TRIPLE_DES: &str = "MHwwQAYJKoZIhvcNAQUNMDMwGwYJKoZIhvcNAQUMMA4ECNMi+XMXzcFZAgIIADAU
BggqhkiG9w0DBwQI8Pxpj7I0OiYEOGFBl/biUmRBKpomeil13FrkCJ4TTLtkS1J/
zuo3Et2n40ivXISjL3nGtsmPEk1mISfhRNVpdXzW";
const SCRYPT: &str = "MIGTME8GCSqGSIb3DQEFDTBCMCEGCSsGAQQB2kcECzAUBAipcWekUvTIBwICQAAC
AQgCAQEwHQYJYIZIAWUDBAEqBBA98gyVl+iHFA6AHDALi0MMBEAw+qC0VDkVaw1t
2MsHoWlGUnrBbxS+YJeb9B+OyoOTp4i6UN19W4cgSsqME5LKOKoQNib3Fa8mTU98
U4vNNJ3Z";
const PBES1: &str = "MFgwHAYKKoZIhvcNAQwBAzAOBAjaews/BB2y8QICCAAEOKaswxdyLWzRstGtgJIc
FglIe3trD5PweUKdEc54einbXa0SyM9SR/11BTRUp+3sX6FlFSYZoDcw";

fn section(label: &str, base64: &str) -> Vec<u8> {
    format!("-----BEGIN {label}-----\n{base64}\n-----END {label}-----\n").into_bytes()
}

fn keys(text: &[u8], passphrase: Option<&str>) -> Result<Vec<PrivateKeyDer<'static>>, Problem> {
    let passphrase = passphrase.map(|passphrase| Passphrase::new(passphrase.as_bytes()));
    pem::private_keys(Path::new("key"), text, passphrase.as_ref()).map_err(|error| error.problem().clone())
}

fn served(site: &Site, certificate: &[u8], key: &[u8]) -> Acceptor {
    let files = CertificateFiles::new(site.write("form.crt", certificate), site.write("form.key", key));
    let settings = ServerTls { certificates: vec![files], ..settings(&[]) };
    Acceptor::build(&settings, None).unwrap_or_else(|errors| panic!("{errors:?}"))
}

#[test]
fn marks_and_old_labels_are_read() {
    let site = Site::new();
    let a = site.issue("a", &["a.example"]);
    let certificate = fs::read(&a.files.certificate).unwrap();
    let key = fs::read(&a.files.key).unwrap();
    let labelled = |label: &str| {
        String::from_utf8(certificate.clone()).unwrap().replace("CERTIFICATE", label).into_bytes()
    };
    for form in [
        [MARK, &certificate].concat(),
        [&certificate[..], MARK, site.authority.pem().as_bytes()].concat(),
        labelled("X509 CERTIFICATE"),
        labelled("TRUSTED CERTIFICATE"),
    ] {
        let acceptor = served(&site, &form, &[MARK, &key].concat());
        assert_eq!(acceptor.certificates()[0].names, ["a.example"]);
        let (certificates, none) = crate::split_pem(&form);
        assert!(certificates.starts_with(b"-----BEGIN ") && none.is_empty());
    }
    // Every part of a file that was put together is there.
    let chain = [&certificate[..], MARK, site.authority.pem().as_bytes()].concat();
    assert_eq!(served(&site, &chain, &key).certificates()[0].chain, 2);
}

/// What stands behind a certificate of OpenSSL says what it may be trusted for.
#[test]
fn trust_settings_are_cut_off_and_refused_of_authorities() {
    const NONE: &[u8] = &[0x30, 0];
    const CLIENT_AUTH: &[u8] = &[0x30, 12, 0x30, 10, 6, 8, 0x2b, 6, 1, 5, 5, 7, 3, 2];
    let site = Site::new();
    let a = site.issue("a", &["a.example"]);
    let trusted =
        |der: &[u8], settings: &[u8]| section("TRUSTED CERTIFICATE", &base64(&[der, settings].concat()));
    let key = fs::read(&a.files.key).unwrap();
    for settings in [NONE, CLIENT_AUTH] {
        let acceptor = served(&site, &trusted(&a.der, settings), &key);
        assert_eq!(acceptor.certificates()[0].names, ["a.example"]);
    }
    let authority = site.authority.der();
    let ca = |settings: &[u8]| pem::authorities(Path::new("ca"), &trusted(authority, settings));
    assert_eq!(ca(NONE).unwrap(), std::slice::from_ref(authority));
    assert!(ca(CLIENT_AUTH).unwrap_err().to_string().contains("trust settings of OpenSSL"));
    // What is no DER at all is complained about as a certificate.
    assert_eq!(pem::certificates(Path::new("c"), &section("TRUSTED CERTIFICATE", "MIL/")).unwrap().len(), 1);
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let bits =
            three.iter().fold(0_u32, |bits, &byte| bits << 8 | u32::from(byte)) << (8 * (3 - three.len()));
        for at in 0..4 {
            let digit = char::from(DIGITS[(bits >> (18 - 6 * at) & 63) as usize]);
            text.push(if at <= three.len() { digit } else { '=' });
        }
    }
    text
}

#[test]
fn encrypted_keys_open_by_their_passphrase() {
    let plain = keys(&section("PRIVATE KEY", PLAIN), None).unwrap();
    for sealed in [AES, TRIPLE_DES, SCRYPT] {
        let text = section("ENCRYPTED PRIVATE KEY", sealed);
        assert_eq!(keys(&text, Some("open")).unwrap(), plain);
        assert_eq!(keys(&text, None), Err(Problem::EncryptedKey));
        assert_eq!(keys(&text, Some("shut")), Err(Problem::WrongPassphrase));
    }
    let text = section("ENCRYPTED PRIVATE KEY", PBES1);
    assert_eq!(keys(&text, Some("open")), Err(Problem::UnknownEncryption));
    assert_eq!(
        keys(&section("ENCRYPTED PRIVATE KEY", "AAAA"), Some("open")),
        Err(Problem::UnknownEncryption)
    );
    let both = [section("PRIVATE KEY", PLAIN), section("ENCRYPTED PRIVATE KEY", AES)].concat();
    assert_eq!(keys(&both, Some("open")).unwrap().len(), 2);
}

#[test]
fn the_passphrase_is_the_first_line_of_its_file() {
    let site = Site::new();
    let key = site.write("e.key", section("ENCRYPTED PRIVATE KEY", AES));
    let text = fs::read(&key).unwrap();
    for written in [&b"open"[..], b"open\n", b"open\r\nother\n", b"\xef\xbb\xbfopen\n"] {
        let passphrase = pem::passphrase(&site.write("pass", written)).unwrap();
        assert!(pem::private_keys(&key, &text, Some(&passphrase)).is_ok(), "{}", written.escape_ascii());
    }
    for empty in [&b""[..], b"\nopen\n"] {
        let error = pem::passphrase(&site.write("pass", empty)).unwrap_err();
        assert_eq!(error.problem(), &Problem::NoPassphrase);
    }
    let a = site.issue("a", &["a.example"]);
    let files = CertificateFiles { key_passphrase: Some(site.folder.path().join("none")), ..a.files.clone() };
    let errors =
        Acceptor::build(&ServerTls { certificates: vec![files], ..settings(&[]) }, None).unwrap_err();
    assert!(errors[0].to_string().contains("none`: no such file"), "{errors:?}");
}

#[test]
fn kinds_of_keys_that_the_library_does_not_take_are_named() {
    let rsa_pss = "MIIBVAIBADALBgkqhkiG9w0BAQoEggFAMIIBPAIBAAJBAJ/DoajaKmlg65KFcVWx
OzBfZhmeJnAzzMk4xCJqVv7ke7OEoUQFi5d9EkOdlEMecIgB1LpuJW3L0wHIu5K7
3qECAwEAAQJBAIlYsKCttapURRD4oV9O9xh12xuI53isP5B5ubvweYu0W0DnfMat
qUBNfnE+blcAnS3v64dXSsdGZrmOjYb/L8ECIQDTvaPvPB2Em79qhDvYtBjXO4Vg
JRk8RFa1JJishFgG+QIhAMEoskFO+39jfVuQRKG637ihSlqRsWTZgAfgf7XmjTbp
AiEAv4GDpbqPUAK1q5cRsbuhw/j3dq/XFSUR7x+8XjwMibECIGPUM6R7PJIPCkfb
XQ01NtEGUxZR/BvCKWBoz7hkSpGZAiEAsRCY8Q0GPrZ77PyOZMMPMZQK/rLBPKST
H6I5hNpsLZA=";
    let ed448 = "MEcCAQAwBQYDK2VxBDsEOckbp+N20sKFkZ1GJ00Nf1nYah7tDddLDNBfkWqw+QFZ
VMAzxKKEgUmVlfD1CkgYx8bcgq89BRcbeA==";
    let site = Site::new();
    let a = site.issue("a", &["a.example"]);
    for (key, kind) in [(rsa_pss, "RSA-PSS"), (ed448, "Ed448")] {
        let text = section("PRIVATE KEY", key);
        assert_eq!(kind_of(&keys(&text, None).unwrap()[0]).as_deref(), Some(kind));
        let files = CertificateFiles { key: site.write("other.key", &text), ..a.files.clone() };
        let errors =
            Acceptor::build(&ServerTls { certificates: vec![files], ..settings(&[]) }, None).unwrap_err();
        let said = errors[0].to_string();
        assert!(
            said.contains(&format!("is of the kind {kind}, which the TLS library does not support")),
            "{said}"
        );
    }
}

#[test]
fn a_chain_in_the_wrong_order_is_put_right() {
    let site = Site::new();
    let mut middle = CertificateParams::new(Vec::new()).unwrap();
    middle.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    middle.distinguished_name.push(DnType::CommonName, "between");
    let key = KeyPair::generate().unwrap();
    let middle = CertifiedIssuer::signed_by(middle, key, &site.authority).unwrap();
    let key = KeyPair::generate().unwrap();
    let leaf = params(&["a.example"]).signed_by(&key, &middle).unwrap();
    let (one, two, three) = (leaf.pem(), middle.pem(), site.authority.pem());
    for (order, is_right) in [
        ([&one, &two, &three], true),
        ([&one, &three, &two], false),
        ([&three, &two, &one], false),
        ([&two, &one, &three], false),
    ] {
        let text: String = order.into_iter().map(String::as_str).collect();
        let acceptor = served(&site, text.as_bytes(), key.serialize_pem().as_bytes());
        let facts = &acceptor.certificates()[0];
        assert_eq!((&*facts.names[0], &*facts.issuer, facts.chain), ("a.example", "CN=between", 3));
        let concerns: Vec<_> = acceptor
            .warnings(std::time::SystemTime::now())
            .into_iter()
            .map(|warning| warning.concern)
            .collect();
        assert_eq!(concerns, if is_right { vec![] } else { vec![Concern::Reordered] }, "{text}");
    }
    // A stranger among them comes last.
    let stranger = fs::read_to_string(&site.issue("b", &["b.example"]).files.certificate).unwrap();
    let text = [&*stranger, &one, &two].concat();
    let acceptor = served(&site, text.as_bytes(), key.serialize_pem().as_bytes());
    let warned = acceptor.warnings(std::time::SystemTime::now());
    assert!(
        warned.iter().any(|warning| warning.concern == Concern::BrokenChain { position: 2 }),
        "{warned:?}"
    );
}

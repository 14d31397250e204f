//! Throw-away certificates.

use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose,
};

/// A certificate and its key.
#[derive(Clone, Debug)]
pub struct Pair {
    /// The certificate as PEM.
    pub certificate: String,
    /// The key as PEM (PKCS #8).
    pub key: String,
    /// The certificate as DER, to recognise it on the wire.
    pub der: Vec<u8>,
}

/// A certificate authority that exists for one test.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    /// A new one; each has its own key.
    #[must_use]
    pub fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate().expect("randomness");
        Self { issuer: CertifiedIssuer::self_signed(params, key).expect("a CA certificate") }
    }

    /// Its own certificate as PEM.
    #[must_use]
    pub fn pem(&self) -> String {
        self.issuer.pem()
    }

    /// Its own certificate as DER.
    #[must_use]
    pub fn der(&self) -> Vec<u8> {
        self.issuer.der().to_vec()
    }

    /// A certificate for a server of these DNS names.
    #[must_use]
    pub fn server(&self, names: &[&str]) -> Pair {
        self.issue(names[0], names, ExtendedKeyUsagePurpose::ServerAuth)
    }

    /// The same for a server, and its time is over.
    #[must_use]
    pub fn expired_server(&self, names: &[&str]) -> Pair {
        self.expired(params(names[0], names, ExtendedKeyUsagePurpose::ServerAuth))
    }

    /// The same for a client, and its time is over.
    #[must_use]
    pub fn expired_client(&self, name: &str) -> Pair {
        self.expired(params(name, &[], ExtendedKeyUsagePurpose::ClientAuth))
    }

    /// The same for a server, for so many days from now on; it has been good for sixty.
    #[must_use]
    pub fn server_for(&self, names: &[&str], days: u64) -> Pair {
        const DAY: Duration = Duration::from_secs(24 * 60 * 60);
        let mut params = params(names[0], names, ExtendedKeyUsagePurpose::ServerAuth);
        let now = SystemTime::now();
        params.not_before = (now - DAY * 60).into();
        // So many whole ones are left for as long as a test may take.
        params.not_after = (now + DAY * u32::try_from(days).unwrap_or(u32::MAX) + DAY / 2).into();
        self.sign(&params)
    }

    fn expired(&self, mut params: CertificateParams) -> Pair {
        params.not_before = rcgen::date_time_ymd(2020, 1, 1);
        params.not_after = rcgen::date_time_ymd(2021, 1, 1);
        self.sign(&params)
    }

    /// Another certificate for the key of `pair`.
    #[must_use]
    pub fn renewed(&self, pair: &Pair, names: &[&str]) -> Pair {
        let key = KeyPair::from_pem(&pair.key).expect("its own form");
        let params = params(names[0], names, ExtendedKeyUsagePurpose::ServerAuth);
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        Pair { certificate: certificate.pem(), key: pair.key.clone(), der: certificate.der().to_vec() }
    }

    /// A certificate for a client: common name and alternative DNS names.
    #[must_use]
    pub fn client(&self, name: &str, alternatives: &[&str]) -> Pair {
        self.issue(name, alternatives, ExtendedKeyUsagePurpose::ClientAuth)
    }

    fn issue(&self, name: &str, alternatives: &[&str], purpose: ExtendedKeyUsagePurpose) -> Pair {
        self.sign(&params(name, alternatives, purpose))
    }

    fn sign(&self, params: &CertificateParams) -> Pair {
        let key = KeyPair::generate().expect("randomness");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        Pair { certificate: certificate.pem(), key: key.serialize_pem(), der: certificate.der().to_vec() }
    }
}

impl Pair {
    /// A certificate for a server of these DNS names that it has signed itself, as `openssl req -x509` makes them: one
    /// that says it is an authority's.
    #[must_use]
    pub fn self_signed(names: &[&str]) -> Pair {
        let mut params = params(names[0], names, ExtendedKeyUsagePurpose::ServerAuth);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("randomness");
        let certificate = params.self_signed(&key).expect("a certificate");
        Pair { certificate: certificate.pem(), key: key.serialize_pem(), der: certificate.der().to_vec() }
    }
}

fn params(name: &str, alternatives: &[&str], purpose: ExtendedKeyUsagePurpose) -> CertificateParams {
    let names: Vec<String> = alternatives.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(names).expect("ASCII names");
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![purpose];
    params
}

/// SHA-256 in lower-case hex: the fingerprint of a certificate. The hash is the TLS library's,
/// which is here anyway.
#[must_use]
pub fn sha256_hex(bytes: &[u8]) -> String {
    let suite = rustls::crypto::aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256;
    let suite = suite.tls13().expect("a TLS 1.3 suite");
    let digest = suite.common.hash_provider.hash(bytes);
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

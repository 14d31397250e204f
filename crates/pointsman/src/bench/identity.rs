//! A certificate that nobody knows, for servers that are measured with.

use pointsman_bench::{Fault, NullTls, Offer};
use rcgen::{CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_RSA_SHA256, SignatureAlgorithm};

/// For `localhost` and 127.0.0.1, with the key that most servers have.
pub(super) fn identity() -> Result<NullTls, Fault> {
    made(&PKCS_ECDSA_P256_SHA256)
}

/// The same with a key that suites of this offer can be agreed on with: those of TLS 1.2 name its kind.
pub(super) fn identity_for(offer: &Offer) -> Result<NullTls, Fault> {
    let names = |kind: &str| offer.suites.iter().any(|suite| suite.to_ascii_uppercase().contains(kind));
    made(if names("_RSA_WITH_") && !names("_ECDSA_WITH_") {
        &PKCS_RSA_SHA256
    } else {
        &PKCS_ECDSA_P256_SHA256
    })
}

fn made(algorithm: &'static SignatureAlgorithm) -> Result<NullTls, Fault> {
    let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    let made = || {
        let key = KeyPair::generate_for(algorithm)?;
        let certificate = CertificateParams::new(names)?.self_signed(&key)?;
        Ok(NullTls { certificate: certificate.pem(), key: key.serialize_pem(), resumes: true })
    };
    made().map_err(|error: rcgen::Error| Fault::new(format!("cannot make a certificate: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suites_say_which_key_it_needs() {
        let plain = key_length(&identity());
        assert!(plain < 400, "a key of ECDSA is short: {plain}");
        let offer = |suites: &[&str]| Offer {
            suites: suites.iter().map(|name| (*name).to_owned()).collect(),
            ..Offer::default()
        };
        let rsa = "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256";
        assert!(key_length(&identity_for(&offer(&[rsa]))) > 1_000, "2048 bits");
        for any in [&[][..], &["TLS_AES_128_GCM_SHA256"], &[rsa, "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"]] {
            assert!(key_length(&identity_for(&offer(any))) < 400, "{any:?}");
        }
    }

    fn key_length(made: &Result<NullTls, Fault>) -> usize {
        made.as_ref().expect("made").key.len()
    }
}

//! Private keys that a passphrase encrypts (PKCS #8 with PBES2, RFC 8018), and what kind a key is.

use std::fmt;

use pkcs8::pkcs5::EncryptionScheme;
use pkcs8::pkcs5::pbes2::Kdf;
use pkcs8::{EncryptedPrivateKeyInfoRef, PrivateKeyInfoRef};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::error::Problem;

/// Rounds of PBKDF2 that are done at most: some seconds of work.
const ROUNDS_MAX: u32 = 10_000_000;

/// Memory that scrypt may take.
const SCRYPT_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// What opens an encrypted key.
pub(crate) struct Passphrase(Vec<u8>);

impl Passphrase {
    pub(crate) fn new(bytes: &[u8]) -> Passphrase {
        Passphrase(bytes.to_vec())
    }
}

/// It does not go into logs.
impl fmt::Debug for Passphrase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Passphrase").finish_non_exhaustive()
    }
}

/// Decrypts the DER of a section `ENCRYPTED PRIVATE KEY`.
pub(crate) fn open(der: &[u8], passphrase: &Passphrase) -> Result<PrivateKeyDer<'static>, Problem> {
    let info = EncryptedPrivateKeyInfoRef::try_from(der).map_err(|_| Problem::UnknownEncryption)?;
    let EncryptionScheme::Pbes2(parameters) = &info.encryption_algorithm else {
        return Err(Problem::UnknownEncryption);
    };
    let is_within_limits = match &parameters.kdf {
        Kdf::Pbkdf2(pbkdf2) => pbkdf2.iteration_count <= ROUNDS_MAX,
        Kdf::Scrypt(scrypt) => {
            let block_bytes = 128 * u64::from(scrypt.block_size) * u64::from(scrypt.parallelization);
            block_bytes.saturating_mul(scrypt.cost_parameter) <= SCRYPT_BYTES_MAX
        }
        _ => return Err(Problem::UnknownEncryption),
    };
    if !is_within_limits {
        return Err(Problem::CostlyKey);
    }
    let key = info.decrypt(&passphrase.0).map_err(|_| Problem::WrongPassphrase)?;
    Ok(PrivatePkcs8KeyDer::from(key.as_bytes().to_vec()).into())
}

/// The kind of a key that the library does not take, where PKCS #8 says it.
pub(crate) fn kind_of(key: &PrivateKeyDer<'_>) -> Option<String> {
    let PrivateKeyDer::Pkcs8(key) = key else { return None };
    let info = PrivateKeyInfoRef::try_from(key.secret_pkcs8_der()).ok()?;
    let named = match info.algorithm.oid.to_string().as_str() {
        "1.2.840.113549.1.1.10" => "RSA-PSS",
        "1.2.840.113549.1.1.1" => "RSA",
        "1.2.840.10040.4.1" => "DSA",
        "1.3.101.110" => "X25519",
        "1.3.101.111" => "X448",
        "1.3.101.112" => "Ed25519",
        "1.3.101.113" => "Ed448",
        "1.2.840.10045.2.1" => {
            let curve = info.algorithm.parameters_oid().ok()?.to_string();
            return Some(match curve.as_str() {
                "1.3.132.0.10" => "ECDSA secp256k1".to_owned(),
                "1.3.36.3.3.2.8.1.1.7" => "ECDSA brainpoolP256r1".to_owned(),
                "1.3.36.3.3.2.8.1.1.11" => "ECDSA brainpoolP384r1".to_owned(),
                "1.3.36.3.3.2.8.1.1.13" => "ECDSA brainpoolP512r1".to_owned(),
                other => format!("ECDSA over the curve {other}"),
            });
        }
        other => return Some(other.to_owned()),
    };
    Some(named.to_owned())
}

//! Keys for one run: made when they are first wanted, the same for every provider.

use std::collections::HashMap;
use std::sync::Mutex;

use aws_lc_rs::encoding::AsDer;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P384_SHA384_ASN1_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair,
    RsaKeyPair,
};

use crate::operation::Signature;
use crate::work::Trouble;

/// A key and its public half.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    /// The private key as PKCS #8.
    pub(crate) private: Vec<u8>,
    /// The public key as it stands in a certificate, without what says which kind it is.
    pub(crate) public: Vec<u8>,
}

/// Keys by kind.
#[derive(Debug, Default)]
pub(crate) struct Keys(Mutex<HashMap<Signature, Key>>);

impl Keys {
    /// The key for this kind of signature.
    pub(crate) fn of(&self, signature: Signature) -> Result<Key, Trouble> {
        let mut keys = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(key) = keys.get(&signature) {
            return Ok(key.clone());
        }
        let key = made(signature)?;
        keys.insert(signature, key.clone());
        Ok(key)
    }
}

fn made(signature: Signature) -> Result<Key, Trouble> {
    let random = SystemRandom::new();
    match signature {
        Signature::Rsa2048 => rsa(KeySize::Rsa2048),
        Signature::Rsa3072 => rsa(KeySize::Rsa3072),
        Signature::Rsa4096 => rsa(KeySize::Rsa4096),
        Signature::EcdsaP256 | Signature::EcdsaP384 => {
            let algorithm = match signature {
                Signature::EcdsaP256 => &ECDSA_P256_SHA256_ASN1_SIGNING,
                _ => &ECDSA_P384_SHA384_ASN1_SIGNING,
            };
            let private = EcdsaKeyPair::generate_pkcs8(algorithm, &random).map_err(unmade)?;
            let pair = EcdsaKeyPair::from_pkcs8(algorithm, private.as_ref()).map_err(unmade)?;
            Ok(key(private.as_ref(), pair.public_key().as_ref()))
        }
        Signature::Ed25519 => {
            let private = Ed25519KeyPair::generate_pkcs8(&random).map_err(unmade)?;
            let pair = Ed25519KeyPair::from_pkcs8(private.as_ref()).map_err(unmade)?;
            Ok(key(private.as_ref(), pair.public_key().as_ref()))
        }
    }
}

fn rsa(size: KeySize) -> Result<Key, Trouble> {
    let pair = RsaKeyPair::generate(size).map_err(unmade)?;
    let private = AsDer::as_der(&pair).map_err(unmade)?;
    Ok(key(private.as_ref(), pair.public_key().as_ref()))
}

fn key(private: &[u8], public: &[u8]) -> Key {
    Key { private: private.to_owned(), public: public.to_owned() }
}

fn unmade(error: impl std::fmt::Display) -> Trouble {
    Trouble::new(format!("cannot make a key: {error}"))
}

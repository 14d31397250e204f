//! A library in this process: what TLS calls, called as TLS calls it.
//!
//! Signatures, agreements and key schedules go through rustls' own interface to its provider, so that a handshake of ours
//! costs what is measured here. Records are encrypted by the library itself, in place: rustls would copy them first.

use rustls::SignatureScheme;
use rustls::crypto::{CryptoProvider, SupportedKxGroup};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::keys::Keys;
use crate::operation::{Cipher, Group, Operation, Signature};
use crate::schedule;
use crate::work::{Plain, Trouble, Work};

/// What a server signs in TLS 1.3 (RFC 8446 section 4.4.3): 64 spaces, a text of 33 bytes, a zero, and a hash.
pub(crate) const SIGNED: [u8; 130] = [b' '; 130];
/// Offers that lie ready, so that finishing them is measured alone.
const OFFERS: usize = 64;

/// A library that rustls can use.
#[derive(Clone, Debug)]
pub struct Library {
    name: &'static str,
    version: &'static str,
    pub(crate) crypto: CryptoProvider,
    groups: &'static [&'static dyn SupportedKxGroup],
    sealer: fn(Cipher, usize) -> Result<Box<dyn Work>, Trouble>,
}

impl Library {
    /// AWS-LC, which the switch itself uses.
    pub fn aws_lc_rs() -> Library {
        Library {
            name: "aws-lc-rs",
            version: AWS_LC_RS,
            crypto: rustls::crypto::aws_lc_rs::default_provider(),
            groups: rustls::crypto::aws_lc_rs::ALL_KX_GROUPS,
            sealer: aws_lc::sealer,
        }
    }

    /// ring.
    pub fn ring() -> Library {
        Library {
            name: "ring",
            version: RING,
            crypto: rustls::crypto::ring::default_provider(),
            groups: rustls::crypto::ring::ALL_KX_GROUPS,
            sealer: of_ring::sealer,
        }
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Its version.
    pub fn version(&self) -> &'static str {
        self.version
    }

    /// What one thread does for an operation.
    pub(crate) fn work(&self, operation: Operation, keys: &Keys) -> Result<Box<dyn Work>, Trouble> {
        match operation {
            Operation::Sign(signature) => self.sign(signature, keys),
            Operation::Verify(signature) => self.verify(signature, keys),
            Operation::Offer(group) => {
                let group = self.group(group)?;
                Ok(Box::new(Plain(move || group.start().map(drop).map_err(failed))))
            }
            Operation::Answer(group) => {
                let group = self.group(group)?;
                let offered = group.start().map_err(failed)?.pub_key().to_vec();
                Ok(Box::new(Plain(move || group.start_and_complete(&offered).map(drop).map_err(failed))))
            }
            Operation::Finish(group) => {
                Ok(Box::new(Finish { group: self.group(group)?, offers: Vec::with_capacity(OFFERS) }))
            }
            Operation::Seal(cipher, bytes) => (self.sealer)(cipher, bytes),
            Operation::Derive(of) => schedule::work(&self.crypto, of),
        }
    }

    /// A signature under `key` of what is signed in a handshake.
    pub(crate) fn signature(&self, signature: Signature, keys: &Keys) -> Result<Vec<u8>, Trouble> {
        self.signer(signature, keys)?.sign(&SIGNED).map_err(failed)
    }

    fn signer(&self, signature: Signature, keys: &Keys) -> Result<Box<dyn rustls::sign::Signer>, Trouble> {
        let key = PrivatePkcs8KeyDer::from(keys.of(signature)?.private);
        let key = self.crypto.key_provider.load_private_key(PrivateKeyDer::from(key)).map_err(failed)?;
        key.choose_scheme(&[scheme(signature)]).ok_or_else(|| self.unable(signature.name()))
    }

    fn sign(&self, signature: Signature, keys: &Keys) -> Result<Box<dyn Work>, Trouble> {
        let signer = self.signer(signature, keys)?;
        Ok(Box::new(Plain(move || signer.sign(&SIGNED).map(drop).map_err(failed))))
    }

    fn verify(&self, signature: Signature, keys: &Keys) -> Result<Box<dyn Work>, Trouble> {
        let signed = self.signature(signature, keys)?;
        self.verifying(signature, keys, signed)
    }

    /// Checks this signature again and again.
    pub(crate) fn verifying(
        &self,
        signature: Signature,
        keys: &Keys,
        signed: Vec<u8>,
    ) -> Result<Box<dyn Work>, Trouble> {
        let algorithms = self.crypto.signature_verification_algorithms.mapping;
        let found = algorithms.iter().find(|(known, _)| *known == scheme(signature));
        // The first is the one of TLS 1.3, where the scheme says the curve as well.
        let algorithm =
            *found.and_then(|(_, all)| all.first()).ok_or_else(|| self.unable(signature.name()))?;
        let public = keys.of(signature)?.public;
        Ok(Box::new(Plain(move || {
            let verified = algorithm.verify_signature(&public, &SIGNED, &signed);
            verified.map_err(|_| Trouble::new("a good signature is refused"))
        })))
    }

    fn group(&self, group: Group) -> Result<&'static dyn SupportedKxGroup, Trouble> {
        let wanted = pointsman_tls::group_name(group.name());
        let found = self.groups.iter().find(|known| known.name().as_str() == Some(wanted));
        found.copied().ok_or_else(|| self.unable(group.name()))
    }

    fn unable(&self, what: &str) -> Trouble {
        Trouble::new(format!("{} has no {what}", self.name))
    }
}

/// A client's last step: offers lie ready, with the answer to each.
struct Finish {
    group: &'static dyn SupportedKxGroup,
    offers: Vec<(Box<dyn rustls::crypto::ActiveKeyExchange>, Vec<u8>)>,
}

impl Work for Finish {
    fn prepare(&mut self, turns: usize) -> Result<(), Trouble> {
        while self.offers.len() < turns.min(OFFERS) {
            let offer = self.group.start().map_err(failed)?;
            let answer = self.group.start_and_complete(offer.pub_key()).map_err(failed)?;
            self.offers.push((offer, answer.pub_key));
        }
        Ok(())
    }

    fn turns_at_once(&self) -> usize {
        OFFERS
    }

    fn turn(&mut self) -> Result<(), Trouble> {
        let (offer, answer) = self.offers.pop().ok_or_else(|| Trouble::new("no offer lies ready"))?;
        offer.complete(&answer).map(drop).map_err(failed)
    }
}

fn scheme(signature: Signature) -> SignatureScheme {
    match signature {
        Signature::Rsa2048 | Signature::Rsa3072 | Signature::Rsa4096 => SignatureScheme::RSA_PSS_SHA256,
        Signature::EcdsaP256 => SignatureScheme::ECDSA_NISTP256_SHA256,
        Signature::EcdsaP384 => SignatureScheme::ECDSA_NISTP384_SHA384,
        Signature::Ed25519 => SignatureScheme::ED25519,
    }
}

fn failed(error: impl std::fmt::Display) -> Trouble {
    Trouble::new(error.to_string())
}

/// Both libraries have one interface, which ring made and aws-lc-rs took over, and no trait for it.
macro_rules! sealing {
    ($module:ident, $library:ident) => {
        pub(crate) mod $module {
            use $library::aead::{
                AES_128_GCM, AES_256_GCM, Aad, Algorithm, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey,
            };

            use super::{Cipher, Plain, Trouble, Work};

            /// Additional data of a record of TLS 1.3: its head.
            const HEAD: [u8; 5] = [23, 3, 3, 0, 0];

            /// Encrypts a buffer of so many bytes where it lies, over and over.
            pub(super) fn sealer(cipher: Cipher, bytes: usize) -> Result<Box<dyn Work>, Trouble> {
                let key = key(cipher)?;
                let mut buffer = vec![0; bytes];
                let mut number = 0_u64;
                Ok(Box::new(Plain(move || {
                    number += 1;
                    seal(&key, number, &mut buffer).map(drop)
                })))
            }

            /// The key whose bytes are all 7.
            pub(crate) fn key(cipher: Cipher) -> Result<LessSafeKey, Trouble> {
                let algorithm: &Algorithm = match cipher {
                    Cipher::Aes128Gcm => &AES_128_GCM,
                    Cipher::Aes256Gcm => &AES_256_GCM,
                    Cipher::ChaCha20Poly1305 => &CHACHA20_POLY1305,
                };
                let key = UnboundKey::new(algorithm, &vec![7; algorithm.key_len()]);
                Ok(LessSafeKey::new(key.map_err(|_| Trouble::new("a key is refused"))?))
            }

            /// Encrypts in place; what comes back is the tag.
            pub(crate) fn seal(
                key: &LessSafeKey,
                number: u64,
                buffer: &mut [u8],
            ) -> Result<Vec<u8>, Trouble> {
                let mut nonce = [0; 12];
                nonce[4..].copy_from_slice(&number.to_be_bytes());
                let nonce = Nonce::assume_unique_for_key(nonce);
                let tag = key.seal_in_place_separate_tag(nonce, Aad::from(HEAD), buffer);
                let tag = tag.map_err(|_| Trouble::new("a record is not encrypted"))?;
                Ok(tag.as_ref().to_vec())
            }
        }
    };
}

sealing!(aws_lc, aws_lc_rs);
sealing!(of_ring, ring);

/// What is linked; a test holds them to the lock file.
const AWS_LC_RS: &str = "1.19.0";
const RING: &str = "0.17.14";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::Primitive;

    fn libraries() -> [Library; 2] {
        [Library::aws_lc_rs(), Library::ring()]
    }

    #[test]
    fn the_versions_are_those_of_the_lock_file() {
        let lock = include_str!("../../../Cargo.lock");
        for library in libraries() {
            let entry = format!("name = \"{}\"\nversion = \"{}\"\n", library.name(), library.version());
            assert!(lock.contains(&entry), "{entry} is not so any more");
        }
    }

    #[test]
    fn every_operation_is_done_or_refused_with_its_name() {
        let keys = Keys::default();
        let operations = Primitive::all(&[16, 1350]).into_iter().flat_map(Primitive::operations);
        for operation in operations {
            for library in libraries() {
                let work = library.work(operation, &keys);
                if library.name() == "ring" && operation.primitive().name() == "X25519MLKEM768" {
                    let trouble = work.err().expect("ring has no ML-KEM").to_string();
                    assert_eq!(trouble, "ring has no X25519MLKEM768");
                    continue;
                }
                let mut work = work.expect("both have it");
                for _ in 0..3 {
                    work.prepare(1).expect("possible");
                    work.turn()
                        .unwrap_or_else(|trouble| panic!("{}: {operation}: {trouble}", library.name()));
                }
            }
        }
    }

    #[test]
    fn what_one_signs_the_other_verifies_and_nothing_else() {
        let keys = Keys::default();
        for signature in Signature::ALL {
            let [one, other] = libraries();
            for (signer, verifier) in [(&one, &other), (&other, &one)] {
                let mut signed = signer.signature(signature, &keys).expect("a signature");
                let turn = |signed: Vec<u8>| {
                    verifier.verifying(signature, &keys, signed).and_then(|mut work| work.turn())
                };
                turn(signed.clone()).unwrap_or_else(|_| panic!("{}", signature.name()));
                let last = signed.len() - 1;
                signed[last] ^= 1;
                assert!(turn(signed).is_err(), "{} of another", signature.name());
            }
        }
    }

    #[test]
    fn two_libraries_agree_on_a_secret() {
        for group in [Group::X25519, Group::P256, Group::P384] {
            let [one, other] = libraries().map(|library| library.group(group).expect("both have it"));
            let offer = one.start().expect("random");
            let answer = other.start_and_complete(offer.pub_key()).expect("a good key");
            let secret = offer.complete(&answer.pub_key).expect("a good key");
            assert_eq!(secret.secret_bytes(), answer.secret.secret_bytes(), "{}", group.name());
        }
    }

    /// RFC 8439 section 2.8.2 and NIST's vectors use other keys; so do both libraries check each other here.
    #[test]
    fn two_libraries_encrypt_alike() {
        for cipher in Cipher::ALL {
            for bytes in [0, 16, 1350, 16_384] {
                let (mut one, mut other) = (vec![9; bytes], vec![9; bytes]);
                let tag = aws_lc::seal(&aws_lc::key(cipher).expect("a key"), 5, &mut one).expect("sealed");
                let tag_of_other =
                    of_ring::seal(&of_ring::key(cipher).expect("a key"), 5, &mut other).expect("sealed");
                assert_eq!((one, tag), (other, tag_of_other), "{} {bytes}", cipher.name());
            }
        }
    }
}

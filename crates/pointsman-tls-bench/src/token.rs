//! A token behind PKCS#11: a card, a hardware security module, or software that behaves like one.
//!
//! The module is loaded when somebody asks for it. Keys are made in the token for the length of the run, as objects of a
//! session, and nothing of the token's own is touched. Calls wait for their answer, so that so many operations at a time
//! are so many threads, each with a session.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use aws_lc_rs::digest;
use cryptoki::context::{CInitializeArgs, CInitializeFlags, Pkcs11};
use cryptoki::mechanism::aead::GcmParams;
use cryptoki::mechanism::eddsa::{EddsaParams, EddsaSignatureScheme};
use cryptoki::mechanism::rsa::{PkcsMgfType, PkcsPssParams};
use cryptoki::mechanism::{Mechanism, MechanismType};
use cryptoki::object::{Attribute, ObjectHandle};
use cryptoki::session::{Session, UserType};
use cryptoki::slot::Slot;
use cryptoki::types::AuthPin;

use crate::library::SIGNED;
use crate::operation::{Cipher, Operation, Signature};
use crate::work::{Plain, Trouble, Work};

/// Object identifiers of curves, as DER.
const P256: [u8; 10] = [6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7];
const P384: [u8; 7] = [6, 5, 0x2b, 0x81, 4, 0, 0x22];
const ED25519: [u8; 5] = [6, 3, 0x2b, 0x65, 0x70];

/// One token.
#[derive(Clone)]
pub struct Token {
    module: Pkcs11,
    slot: Slot,
    label: String,
    version: String,
    made: Arc<Made>,
}

/// What lives as long as the token is used.
struct Made {
    /// Logged in; the keys are its objects.
    session: Mutex<Session>,
    pairs: Mutex<HashMap<Signature, (ObjectHandle, ObjectHandle)>>,
    keys: Mutex<HashMap<Cipher, ObjectHandle>>,
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Token").field("label", &self.label).field("slot", &self.slot).finish_non_exhaustive()
    }
}

impl Token {
    /// Loads a module, and logs in at the token of this label, or at the only one that there is.
    ///
    /// # Errors
    /// A file that is no module, no such token, a wrong PIN.
    pub fn open(module: &Path, label: Option<&str>, pin: Option<&str>) -> Result<Token, Trouble> {
        let cannot = |error| Trouble::new(format!("cannot use `{}`: {error}", module.display()));
        let name = module.display().to_string();
        let module = Pkcs11::new(module).map_err(cannot)?;
        module.initialize(CInitializeArgs::new(CInitializeFlags::OS_LOCKING_OK)).map_err(cannot)?;
        let mut tokens = Vec::new();
        for slot in module.get_slots_with_initialized_token().map_err(cannot)? {
            tokens.push((slot, module.get_token_info(slot).map_err(cannot)?));
        }
        let labels: Vec<String> = tokens.iter().map(|(_, info)| format!("`{}`", info.label())).collect();
        let wanted = tokens.into_iter().filter(|(_, info)| label.is_none_or(|label| info.label() == label));
        let mut wanted: Vec<_> = wanted.collect();
        let (Some((slot, info)), None) = (wanted.pop(), wanted.pop()) else {
            let there = if labels.is_empty() { "none".to_owned() } else { labels.join(", ") };
            return Err(Trouble::new(format!("say which token of `{name}`: there are {there}")));
        };
        let session = module.open_rw_session(slot).map_err(cannot)?;
        if let Some(pin) = pin {
            let pin = AuthPin::new(pin.into());
            let login = session.login(UserType::User, Some(&pin));
            login.map_err(|error| {
                Trouble::new(format!("cannot log in at the token `{}`: {error}", info.label()))
            })?;
        }
        let made = Made { session: Mutex::new(session), pairs: Mutex::default(), keys: Mutex::default() };
        Ok(Token {
            module,
            slot,
            label: info.label().to_owned(),
            version: format!(
                "{} {}, firmware {}",
                info.manufacturer_id(),
                info.model(),
                info.firmware_version()
            ),
            made: Arc::new(made),
        })
    }

    /// What it is called in results.
    pub fn name(&self) -> String {
        format!("token {}", self.label)
    }

    /// Who made it, which model, and its firmware.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Whether the token says that it does this in hardware (`CKF_HW`); nothing where it does not do it at all.
    pub(crate) fn claims_hardware(&self, operation: Operation) -> Option<bool> {
        let mechanism = match operation {
            Operation::Sign(signature) | Operation::Verify(signature) => {
                mechanism(signature).mechanism_type()
            }
            Operation::Seal(Cipher::Aes128Gcm | Cipher::Aes256Gcm, _) => MechanismType::AES_GCM,
            _ => return None,
        };
        self.module.get_mechanism_info(self.slot, mechanism).ok().map(|info| info.hardware())
    }

    /// What one thread does for an operation.
    pub(crate) fn work(&self, operation: Operation) -> Result<Box<dyn Work>, Trouble> {
        match operation {
            Operation::Sign(signature) => {
                let (_, key) = self.pair(signature)?;
                let session = self.session()?;
                Ok(Box::new(Plain(move || sign(&session, signature, key).map(drop))))
            }
            Operation::Verify(signature) => {
                let (public, key) = self.pair(signature)?;
                let session = self.session()?;
                let signed = sign(&session, signature, key)?;
                Ok(Box::new(Plain(move || {
                    let verified =
                        session.verify(&mechanism(signature), public, &message(signature), &signed);
                    verified.map_err(failed)
                })))
            }
            Operation::Seal(cipher, bytes) => {
                let key = self.key(cipher)?;
                let session = self.session()?;
                let (buffer, mut number) = (vec![0; bytes], 0_u64);
                Ok(Box::new(Plain(move || {
                    number += 1;
                    seal(&session, key, number, &buffer).map(drop)
                })))
            }
            Operation::Offer(_) | Operation::Answer(_) | Operation::Finish(_) | Operation::Derive(_) => {
                Err(Trouble::new("a token is measured by its signatures and by AES-GCM alone"))
            }
        }
    }

    /// A thread's own.
    fn session(&self) -> Result<Session, Trouble> {
        self.module.open_ro_session(self.slot).map_err(failed)
    }

    /// The public and the private half, made when they are first wanted.
    fn pair(&self, signature: Signature) -> Result<(ObjectHandle, ObjectHandle), Trouble> {
        let mut pairs = self.made.pairs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pair) = pairs.get(&signature) {
            return Ok(*pair);
        }
        let (generate, kind) = match signature {
            Signature::Rsa2048 => (Mechanism::RsaPkcsKeyPairGen, rsa_kind(2048)),
            Signature::Rsa3072 => (Mechanism::RsaPkcsKeyPairGen, rsa_kind(3072)),
            Signature::Rsa4096 => (Mechanism::RsaPkcsKeyPairGen, rsa_kind(4096)),
            Signature::EcdsaP256 => (Mechanism::EccKeyPairGen, vec![Attribute::EcParams(P256.to_vec())]),
            Signature::EcdsaP384 => (Mechanism::EccKeyPairGen, vec![Attribute::EcParams(P384.to_vec())]),
            Signature::Ed25519 => {
                (Mechanism::EccEdwardsKeyPairGen, vec![Attribute::EcParams(ED25519.to_vec())])
            }
        };
        let public = [kind, vec![Attribute::Token(false), Attribute::Verify(true)]].concat();
        let private = [Attribute::Token(false), Attribute::Sensitive(true), Attribute::Sign(true)];
        let session = self.made.session.lock().unwrap_or_else(PoisonError::into_inner);
        let pair = session.generate_key_pair(&generate, &public, &private).map_err(|error| {
            Trouble::new(format!("the token makes no key for {}: {error}", signature.name()))
        })?;
        pairs.insert(signature, pair);
        Ok(pair)
    }

    fn key(&self, cipher: Cipher) -> Result<ObjectHandle, Trouble> {
        let mut keys = self.made.keys.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(key) = keys.get(&cipher) {
            return Ok(*key);
        }
        let length = match cipher {
            Cipher::Aes128Gcm => 16_u64,
            Cipher::Aes256Gcm => 32,
            Cipher::ChaCha20Poly1305 => {
                return Err(Trouble::new("a token is measured by its signatures and by AES-GCM alone"));
            }
        };
        let template = [
            Attribute::Token(false),
            Attribute::Sensitive(true),
            Attribute::Encrypt(true),
            Attribute::ValueLen(length.into()),
        ];
        let session = self.made.session.lock().unwrap_or_else(PoisonError::into_inner);
        let key = session.generate_key(&Mechanism::AesKeyGen, &template).map_err(|error| {
            Trouble::new(format!("the token makes no key for {}: {error}", cipher.name()))
        })?;
        keys.insert(cipher, key);
        Ok(key)
    }
}

fn rsa_kind(bits: u64) -> Vec<Attribute> {
    vec![Attribute::ModulusBits(bits.into()), Attribute::PublicExponent(vec![1, 0, 1])]
}

/// How the token is asked to sign: with the same padding and hash as TLS, where the token hashes; of an elliptic curve it
/// signs a hash that was made here.
fn mechanism(signature: Signature) -> Mechanism<'static> {
    match signature {
        Signature::Rsa2048 | Signature::Rsa3072 | Signature::Rsa4096 => {
            Mechanism::Sha256RsaPkcsPss(PkcsPssParams {
                hash_alg: MechanismType::SHA256,
                mgf: PkcsMgfType::MGF1_SHA256,
                s_len: 32_u64.into(),
            })
        }
        Signature::EcdsaP256 | Signature::EcdsaP384 => Mechanism::Ecdsa,
        Signature::Ed25519 => Mechanism::Eddsa(EddsaParams::new(EddsaSignatureScheme::Pure)),
    }
}

fn message(signature: Signature) -> Vec<u8> {
    match signature {
        Signature::EcdsaP256 => digest::digest(&digest::SHA256, &SIGNED).as_ref().to_vec(),
        Signature::EcdsaP384 => digest::digest(&digest::SHA384, &SIGNED).as_ref().to_vec(),
        _ => SIGNED.to_vec(),
    }
}

fn sign(session: &Session, signature: Signature, key: ObjectHandle) -> Result<Vec<u8>, Trouble> {
    session.sign(&mechanism(signature), key, &message(signature)).map_err(failed)
}

fn seal(session: &Session, key: ObjectHandle, number: u64, buffer: &[u8]) -> Result<Vec<u8>, Trouble> {
    let mut nonce = [0; 12];
    nonce[4..].copy_from_slice(&number.to_be_bytes());
    let params = GcmParams::new(&mut nonce, &[23, 3, 3, 0, 0], 128_u64.into()).map_err(failed)?;
    session.encrypt(&Mechanism::AesGcm(params), key, buffer).map_err(failed)
}

fn failed(error: cryptoki::error::Error) -> Trouble {
    Trouble::new(format!("the token refuses: {error}"))
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::signature::{
        ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519 as ED25519_VERIFYING,
        RSA_PSS_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey,
    };
    use cryptoki::object::AttributeType;
    use pointsman_e2e::SoftToken;

    use super::*;

    #[test]
    fn what_is_no_module_is_refused() {
        let trouble = Token::open(Path::new("/dev/null"), None, None).expect_err("no library").to_string();
        assert!(trouble.starts_with("cannot use `/dev/null`: "), "{trouble}");
    }

    /// An attribute of bytes.
    fn bytes(session: &Session, of: ObjectHandle, wanted: AttributeType) -> Vec<u8> {
        let attributes = session.get_attributes(of, &[wanted]).expect("it has one");
        match &attributes[0] {
            Attribute::Modulus(bytes) | Attribute::PublicExponent(bytes) | Attribute::EcPoint(bytes) => {
                bytes.clone()
            }
            other => panic!("{other:?}"),
        }
    }

    /// The module is configured by the environment of its process: so this test is run again in one of its own.
    #[test]
    fn what_a_token_signs_a_library_verifies() {
        if std::env::var_os("SOFTHSM2_CONF").is_some() {
            return with_a_token();
        }
        let Some(token) = SoftToken::made() else { return };
        let mut again = std::process::Command::new(std::env::current_exe().expect("a test has a path"));
        again.args(["--exact", "token::tests::what_a_token_signs_a_library_verifies"]);
        let ended = again.env("SOFTHSM2_CONF", token.configuration()).output().expect("it ran once");
        let said = String::from_utf8_lossy(&ended.stdout);
        assert!(ended.status.success() && said.contains("1 passed"), "{said}");
    }

    fn with_a_token() {
        let open = |label: &str, pin| Token::open(SoftToken::module(), Some(label), Some(pin));
        let token = open("bench", SoftToken::pin()).expect("a token");
        assert_eq!(token.name(), "token bench");
        for signature in Signature::ALL {
            let pair = match token.pair(signature) {
                Ok(pair) => pair,
                // Debian's is built without Ed25519 in some releases.
                Err(_) if signature == Signature::Ed25519 => continue,
                Err(trouble) => panic!("{trouble}"),
            };
            let session = token.session().expect("a session");
            let signed = sign(&session, signature, pair.1).expect("a signature");
            // The point is an OCTET STRING, whose head has two bytes for these lengths.
            let point = || bytes(&session, pair.0, AttributeType::EcPoint)[2..].to_vec();
            let verified = match signature {
                Signature::EcdsaP256 => {
                    UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point()).verify(&SIGNED, &signed)
                }
                Signature::EcdsaP384 => {
                    UnparsedPublicKey::new(&ECDSA_P384_SHA384_FIXED, point()).verify(&SIGNED, &signed)
                }
                Signature::Ed25519 => {
                    UnparsedPublicKey::new(&ED25519_VERIFYING, point()).verify(&SIGNED, &signed)
                }
                _ => RsaPublicKeyComponents {
                    n: bytes(&session, pair.0, AttributeType::Modulus),
                    e: bytes(&session, pair.0, AttributeType::PublicExponent),
                }
                .verify(&RSA_PSS_2048_8192_SHA256, &SIGNED, &signed),
            };
            assert!(verified.is_ok(), "{}", signature.name());
            token.work(Operation::Verify(signature)).expect("a key").turn().expect("its own signature");
        }
        let rsa = Operation::Sign(Signature::Rsa2048);
        assert_eq!(token.claims_hardware(rsa), Some(false), "it is software, and says so");
        let seal = Operation::Seal(Cipher::Aes128Gcm, 1350);
        token.work(seal).expect("a key").turn().expect("encrypted");
        assert!(token.work(Operation::Seal(Cipher::ChaCha20Poly1305, 16)).is_err());
        // Threads have sessions of their own.
        let work = || token.work(rsa);
        let round = crate::round::round(2, std::time::Duration::from_millis(5), &work).expect("a token");
        assert!(round.operations >= 2);
    }
}

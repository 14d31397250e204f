//! What is measured: the operations that handshakes and records of TLS are made of, by the names that the field has.

use std::fmt;

/// A kind of signature and its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Signature {
    /// RSASSA-PSS with SHA-256, as TLS 1.3 signs; OpenSSL's own speed test signs PKCS #1 v1.5, which costs the same.
    Rsa2048,
    /// The same with 3072 bits.
    Rsa3072,
    /// The same with 4096 bits.
    Rsa4096,
    /// ECDSA on P-256 with SHA-256.
    EcdsaP256,
    /// ECDSA on P-384 with SHA-384.
    EcdsaP384,
    /// Ed25519.
    Ed25519,
}

/// A group that secrets are agreed on in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Group {
    /// X25519.
    X25519,
    /// P-256.
    P256,
    /// P-384.
    P384,
    /// X25519 and ML-KEM-768 together.
    X25519MlKem768,
}

/// A cipher of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cipher {
    /// AES-128 in Galois/counter mode.
    Aes128Gcm,
    /// AES-256 in Galois/counter mode.
    Aes256Gcm,
    /// ChaCha20 with Poly1305.
    ChaCha20Poly1305,
}

/// How all secrets of a connection come from the one that was agreed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Schedule {
    /// RFC 8446 section 7.1, with SHA-256.
    Tls13Sha256,
    /// The same with SHA-384.
    Tls13Sha384,
    /// RFC 5246 sections 8.1, 6.3 and 7.4.9: master secret, keys and both Finished, with SHA-256.
    Tls12Sha256,
    /// The same with SHA-384.
    Tls12Sha384,
}

/// What is measured together, because a provider does its steps with one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Primitive {
    /// Sign and verify.
    Signature(Signature),
    /// The three steps of an agreement.
    Exchange(Group),
    /// Encrypt so many bytes.
    Cipher(Cipher, usize),
    /// Secrets out of a secret.
    Schedule(Schedule),
}

/// One step, which has a time of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// A server's proof that the certificate is its own.
    Sign(Signature),
    /// The client's check of it.
    Verify(Signature),
    /// A key pair, whose public half is sent: what a client begins with.
    Offer(Group),
    /// The other side's key pair, or capsule, and the secret: what a server does with what a client offered.
    Answer(Group),
    /// The secret out of one's own key and the other side's answer: what a client ends with.
    Finish(Group),
    /// Encrypting a record of so many bytes.
    Seal(Cipher, usize),
    /// The key schedule of a whole handshake, on one side.
    Derive(Schedule),
}

impl Signature {
    /// All of them.
    pub const ALL: [Signature; 6] = [
        Signature::Rsa2048,
        Signature::Rsa3072,
        Signature::Rsa4096,
        Signature::EcdsaP256,
        Signature::EcdsaP384,
        Signature::Ed25519,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Signature::Rsa2048 => "RSA-2048",
            Signature::Rsa3072 => "RSA-3072",
            Signature::Rsa4096 => "RSA-4096",
            Signature::EcdsaP256 => "ECDSA P-256",
            Signature::EcdsaP384 => "ECDSA P-384",
            Signature::Ed25519 => "Ed25519",
        }
    }
}

impl Group {
    /// All of them.
    pub const ALL: [Group; 4] = [Group::X25519, Group::P256, Group::P384, Group::X25519MlKem768];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Group::X25519 => "X25519",
            Group::P256 => "P-256",
            Group::P384 => "P-384",
            Group::X25519MlKem768 => "X25519MLKEM768",
        }
    }
}

impl Cipher {
    /// All of them.
    pub const ALL: [Cipher; 3] = [Cipher::Aes128Gcm, Cipher::Aes256Gcm, Cipher::ChaCha20Poly1305];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Cipher::Aes128Gcm => "AES-128-GCM",
            Cipher::Aes256Gcm => "AES-256-GCM",
            Cipher::ChaCha20Poly1305 => "ChaCha20-Poly1305",
        }
    }
}

impl Schedule {
    /// All of them.
    pub const ALL: [Schedule; 4] =
        [Schedule::Tls13Sha256, Schedule::Tls13Sha384, Schedule::Tls12Sha256, Schedule::Tls12Sha384];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Schedule::Tls13Sha256 => "TLS 1.3 SHA-256",
            Schedule::Tls13Sha384 => "TLS 1.3 SHA-384",
            Schedule::Tls12Sha256 => "TLS 1.2 SHA-256",
            Schedule::Tls12Sha384 => "TLS 1.2 SHA-384",
        }
    }
}

impl Primitive {
    /// All of them, with ciphers at these sizes.
    pub fn all(sizes: &[usize]) -> Vec<Primitive> {
        let ciphers = Cipher::ALL
            .into_iter()
            .flat_map(|cipher| sizes.iter().map(move |size| Primitive::Cipher(cipher, *size)));
        let signatures = Signature::ALL.into_iter().map(Primitive::Signature);
        let groups = Group::ALL.into_iter().map(Primitive::Exchange);
        let schedules = Schedule::ALL.into_iter().map(Primitive::Schedule);
        signatures.chain(groups).chain(ciphers).chain(schedules).collect()
    }

    /// Its steps, in the order in which they are measured.
    pub fn operations(self) -> Vec<Operation> {
        match self {
            Primitive::Signature(signature) => {
                vec![Operation::Sign(signature), Operation::Verify(signature)]
            }
            Primitive::Exchange(group) => {
                vec![Operation::Offer(group), Operation::Answer(group), Operation::Finish(group)]
            }
            Primitive::Cipher(cipher, bytes) => vec![Operation::Seal(cipher, bytes)],
            Primitive::Schedule(schedule) => vec![Operation::Derive(schedule)],
        }
    }

    /// The name that it is asked for by: without the size of what is encrypted.
    pub fn name(self) -> &'static str {
        match self {
            Primitive::Signature(signature) => signature.name(),
            Primitive::Exchange(group) => group.name(),
            Primitive::Cipher(cipher, _) => cipher.name(),
            Primitive::Schedule(schedule) => schedule.name(),
        }
    }
}

impl Operation {
    /// What it works with.
    pub fn primitive(self) -> Primitive {
        match self {
            Operation::Sign(signature) | Operation::Verify(signature) => Primitive::Signature(signature),
            Operation::Offer(group) | Operation::Answer(group) | Operation::Finish(group) => {
                Primitive::Exchange(group)
            }
            Operation::Seal(cipher, bytes) => Primitive::Cipher(cipher, bytes),
            Operation::Derive(schedule) => Primitive::Schedule(schedule),
        }
    }

    /// What is done with it.
    pub fn verb(self) -> &'static str {
        match self {
            Operation::Sign(_) => "sign",
            Operation::Verify(_) => "verify",
            Operation::Offer(_) => "offer",
            Operation::Answer(_) => "answer",
            Operation::Finish(_) => "finish",
            Operation::Seal(..) => "seal",
            Operation::Derive(_) => "derive",
        }
    }

    /// Bytes that it encrypts; 0 of what encrypts nothing.
    pub fn bytes(self) -> usize {
        match self {
            Operation::Seal(_, bytes) => bytes,
            _ => 0,
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.primitive().name(), self.verb())?;
        match self.bytes() {
            0 => Ok(()),
            bytes => write!(f, " {bytes} B"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_operation_belongs_to_its_primitive() {
        let all = Primitive::all(&[16, 1024]);
        assert_eq!(all.len(), 6 + 4 + 6 + 4);
        for primitive in all {
            assert!(primitive.operations().iter().all(|operation| operation.primitive() == primitive));
        }
        let seal = Operation::Seal(Cipher::Aes128Gcm, 1024);
        assert_eq!(seal.to_string(), "AES-128-GCM seal 1024 B");
        assert_eq!(Operation::Sign(Signature::EcdsaP256).to_string(), "ECDSA P-256 sign");
    }
}

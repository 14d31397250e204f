//! What the primitives say that a handshake should cost each side: SURFnet's second method, and the part that it leaves
//! unexplained.

use pointsman_bench::Kind;
use pointsman_measure::Interval;

use crate::operation::{Cipher, Group, Operation, Schedule, Signature};

/// What was agreed on, as far as it decides what is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Agreed {
    /// Full, retried or resumed.
    pub kind: Kind,
    /// Whether it is TLS 1.2, else 1.3.
    pub is_tls12: bool,
    /// The cipher and the key schedule; nothing of a suite that is not known here.
    pub suite: Option<(Cipher, Schedule)>,
    /// The group; nothing where a session was resumed without one.
    pub group: Option<Group>,
    /// The key of the server's certificate; nothing where it is of another kind than those that are measured.
    pub key: Option<Signature>,
    /// Bytes that the server sends encrypted, or not, up to its Finished.
    pub flight_bytes: usize,
}

/// An operation of one side, so many times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// What.
    pub operation: Operation,
    /// What it takes, in µs; nothing where it was not measured.
    pub us: Option<Interval>,
}

/// What one side should need.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prediction {
    /// In the order in which they are done.
    pub steps: Vec<Step>,
    /// What cannot be said, in words.
    pub missing: Vec<String>,
}

impl Prediction {
    /// The sum of what is known, in µs. Each step was measured for itself.
    pub fn us(&self) -> Interval {
        let known = self.steps.iter().filter_map(|step| step.us);
        known.fold(Interval::around(0.0, 0.0), Interval::plus)
    }

    /// Whether every step has a time.
    pub fn is_whole(&self) -> bool {
        self.missing.is_empty() && self.steps.iter().all(|step| step.us.is_some())
    }

    fn of(
        operations: &[Option<Operation>],
        missing: Vec<String>,
        cost: impl Fn(Operation) -> Option<Interval>,
    ) -> Self {
        let steps = operations.iter().flatten();
        let steps = steps.map(|operation| Step { operation: *operation, us: cost(*operation) }).collect();
        Prediction { steps, missing }
    }
}

impl Agreed {
    /// What the server computes. `cost` gives an operation's time in µs.
    pub fn servers(&self, cost: impl Fn(Operation) -> Option<Interval>) -> Prediction {
        let sign = self.signs().then_some(self.key).flatten().map(Operation::Sign);
        let schedule = self.suite.map(|(_, schedule)| Operation::Derive(schedule));
        let operations = match self.is_tls12 {
            // Its key pair goes out, signed; the client's comes back.
            true => vec![self.group.map(Operation::Offer), sign, self.group.map(Operation::Finish), schedule],
            false => vec![self.group.map(Operation::Answer), schedule, sign, self.seal()],
        };
        Prediction::of(&operations, self.missing(), cost)
    }

    /// What the client computes; who issued the certificates is not among it.
    pub fn clients(&self, cost: impl Fn(Operation) -> Option<Interval>) -> Prediction {
        let verify = self.signs().then_some(self.key).flatten().map(Operation::Verify);
        let schedule = self.suite.map(|(_, schedule)| Operation::Derive(schedule));
        let operations = match self.is_tls12 {
            true => vec![verify, self.group.map(Operation::Answer), schedule],
            false => vec![
                self.group.map(Operation::Offer),
                self.group.map(Operation::Finish),
                schedule,
                // Opening costs what sealing does.
                self.seal(),
                verify,
            ],
        };
        Prediction::of(&operations, self.missing(), cost)
    }

    /// All that either side needs, each once.
    pub fn operations(&self) -> Vec<Operation> {
        let all = [self.servers(|_| None), self.clients(|_| None)];
        let mut operations: Vec<Operation> = Vec::new();
        for step in all.iter().flat_map(|side| &side.steps) {
            if !operations.contains(&step.operation) {
                operations.push(step.operation);
            }
        }
        operations
    }

    fn signs(&self) -> bool {
        self.kind != Kind::Resumed
    }

    /// The server's flight is encrypted in TLS 1.3 alone.
    fn seal(&self) -> Option<Operation> {
        let cipher = self.suite.map(|(cipher, _)| cipher)?;
        (self.flight_bytes > 0).then_some(Operation::Seal(cipher, self.flight_bytes))
    }

    fn missing(&self) -> Vec<String> {
        let mut missing = Vec::new();
        if self.signs() && self.key.is_none() {
            missing.push("the server's key is of a kind that is not measured".to_owned());
        }
        if self.suite.is_none() {
            missing.push("the suite is one that is not measured".to_owned());
        }
        if self.group.is_none() && self.signs() {
            missing.push("the group is one that is not measured".to_owned());
        }
        missing
    }
}

/// A suite by its name in IANA's registry.
pub(crate) fn suite(name: &str) -> Option<(Cipher, Schedule)> {
    let cipher = [
        ("AES_128_GCM", Cipher::Aes128Gcm),
        ("AES_256_GCM", Cipher::Aes256Gcm),
        ("CHACHA20_POLY1305", Cipher::ChaCha20Poly1305),
    ];
    let cipher = cipher.into_iter().find(|(part, _)| name.contains(part)).map(|(_, cipher)| cipher)?;
    let schedule = match (name.contains("_WITH_"), name.ends_with("SHA384")) {
        (true, true) => Schedule::Tls12Sha384,
        (true, false) => Schedule::Tls12Sha256,
        (false, true) => Schedule::Tls13Sha384,
        (false, false) => Schedule::Tls13Sha256,
    };
    Some((cipher, schedule))
}

/// A group by its name there.
pub(crate) fn group(name: &str) -> Option<Group> {
    Group::ALL.into_iter().find(|group| pointsman_tls::group_name(group.name()).eq_ignore_ascii_case(name))
}

/// The kind of key in a certificate.
pub(crate) fn key(certificate: &[u8]) -> Option<Signature> {
    use x509_parser::public_key::PublicKey;
    let (_, certificate) = x509_parser::parse_x509_certificate(certificate).ok()?;
    let public = certificate.public_key();
    // RFC 8410: the algorithm says all, and the library reads no key of it.
    if public.algorithm.algorithm.to_id_string() == "1.3.101.112" {
        return Some(Signature::Ed25519);
    }
    match public.parsed().ok()? {
        PublicKey::RSA(key) => match key.key_size() {
            2048 => Some(Signature::Rsa2048),
            3072 => Some(Signature::Rsa3072),
            4096 => Some(Signature::Rsa4096),
            _ => None,
        },
        PublicKey::EC(point) => match point.key_size() {
            256 => Some(Signature::EcdsaP256),
            384 => Some(Signature::EcdsaP384),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: Agreed = Agreed {
        kind: Kind::Full,
        is_tls12: false,
        suite: Some((Cipher::Aes128Gcm, Schedule::Tls13Sha256)),
        group: Some(Group::X25519),
        key: Some(Signature::EcdsaP256),
        flight_bytes: 900,
    };

    fn cost(operation: Operation) -> Option<Interval> {
        let us = match operation {
            Operation::Sign(_) => 100.0,
            Operation::Verify(_) => 50.0,
            Operation::Offer(_) => 10.0,
            Operation::Answer(_) => 30.0,
            Operation::Finish(_) => 20.0,
            Operation::Derive(_) => 5.0,
            Operation::Seal(_, bytes) => bytes as f64 / 1000.0,
        };
        Some(Interval::around(us, us / 10.0))
    }

    #[test]
    fn each_side_is_the_sum_of_its_steps() {
        let near = |one: Interval, other: f64| (one.estimate - other).abs() < 1e-9;
        assert!(near(FULL.servers(cost).us(), 30.0 + 5.0 + 100.0 + 0.9));
        assert!(near(FULL.clients(cost).us(), 10.0 + 20.0 + 5.0 + 0.9 + 50.0));
        let resumed = Agreed { kind: Kind::Resumed, ..FULL };
        assert!(near(resumed.servers(cost).us(), 30.0 + 5.0 + 0.9));
        let older = (Cipher::Aes128Gcm, Schedule::Tls12Sha256);
        let older = Agreed { is_tls12: true, suite: Some(older), ..FULL };
        assert!(near(older.servers(cost).us(), 10.0 + 100.0 + 20.0 + 5.0));
        assert!(near(older.clients(cost).us(), 50.0 + 30.0 + 5.0));
        let older = Agreed { kind: Kind::Resumed, group: None, ..older };
        assert!(near(older.servers(cost).us(), 5.0) && older.servers(cost).is_whole());
        let spread = FULL.servers(cost).us();
        let of_parts = (9.0_f64 + 0.25 + 100.0 + 0.0081).sqrt();
        assert!((spread.high - spread.estimate - of_parts).abs() < 1e-9, "{spread:?}");
        assert_eq!(FULL.operations().len(), 6 + 1, "no step twice");
    }

    #[test]
    fn what_is_not_known_is_said() {
        let strange = Agreed { key: None, suite: None, ..FULL };
        let prediction = strange.servers(cost);
        assert!(!prediction.is_whole() && prediction.missing.len() == 2, "{prediction:?}");
        let unmeasured = FULL.servers(|_| None);
        assert!(!unmeasured.is_whole() && unmeasured.us().estimate == 0.0);
        assert!(FULL.servers(cost).is_whole());
    }

    #[test]
    fn names_of_the_registry_are_known() {
        assert_eq!(suite("TLS_AES_256_GCM_SHA384"), Some((Cipher::Aes256Gcm, Schedule::Tls13Sha384)));
        assert_eq!(
            suite("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256"),
            Some((Cipher::ChaCha20Poly1305, Schedule::Tls12Sha256))
        );
        assert_eq!(suite("TLS_NULL"), None);
        assert_eq!(group("secp256r1"), Some(Group::P256));
        assert_eq!(group("X25519MLKEM768"), Some(Group::X25519MlKem768));
        assert_eq!((group("secp521r1"), group("")), (None, None));
        assert_eq!(key(b"no certificate"), None);
    }
}

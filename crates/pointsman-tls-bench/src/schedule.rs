//! The key schedules of TLS 1.3 and 1.2, with the calls that a handshake makes: many short hashes, which together cost as
//! much as an agreement in a cheap group.

use rustls::crypto::CryptoProvider;
use rustls::crypto::tls12::Prf;
use rustls::crypto::tls13::{Hkdf, HkdfExpander};
use rustls::{CipherSuite, SupportedCipherSuite};

use crate::operation::Schedule;
use crate::work::{Plain, Trouble, Work};

/// Of X25519 and P-256; the two of X25519MLKEM768 are twice as long, and within one block of the hash as well.
const SECRET: [u8; 32] = [7; 32];
/// The label with its prefix and a hash, as long as they are: HkdfLabel of RFC 8446 section 7.1.
const LABEL: [u8; 52] = [b'x'; 52];

/// What a thread does for it.
pub(crate) fn work(crypto: &CryptoProvider, schedule: Schedule) -> Result<Box<dyn Work>, Trouble> {
    let suite = match schedule {
        Schedule::Tls13Sha256 => CipherSuite::TLS13_AES_128_GCM_SHA256,
        Schedule::Tls13Sha384 => CipherSuite::TLS13_AES_256_GCM_SHA384,
        Schedule::Tls12Sha256 => CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
        Schedule::Tls12Sha384 => CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
    };
    let found = crypto.cipher_suites.iter().find(|known| known.suite() == suite);
    match found {
        Some(SupportedCipherSuite::Tls13(suite)) => {
            let hkdf = suite.hkdf_provider;
            Ok(Box::new(Plain(move || of_tls13(hkdf))))
        }
        Some(SupportedCipherSuite::Tls12(suite)) => {
            let prf = suite.prf_provider;
            Ok(Box::new(Plain(move || {
                of_tls12(prf);
                Ok(())
            })))
        }
        None => Err(Trouble::new(format!("the library has no suite of {}", schedule.name()))),
    }
}

/// RFC 8446 section 7.1, without a pre-shared key: three extractions, and of each what a handshake needs of it.
fn of_tls13(hkdf: &dyn Hkdf) -> Result<(), Trouble> {
    let early = hkdf.extract_from_zero_ikm(None);
    let salt = early.expand_block(&[&LABEL]);
    let handshake = hkdf.extract_from_secret(Some(salt.as_ref()), &SECRET);
    traffic(hkdf, handshake.as_ref(), true)?;
    let salt = handshake.expand_block(&[&LABEL]);
    let main = hkdf.extract_from_secret(Some(salt.as_ref()), &vec![0; handshake.hash_len()]);
    traffic(hkdf, main.as_ref(), false)?;
    // For exports and for resumption.
    main.expand_block(&[&LABEL]);
    main.expand_block(&[&LABEL]);
    Ok(())
}

/// The secrets, keys and vectors of both directions; in a handshake also both Finished.
fn traffic(hkdf: &dyn Hkdf, secrets: &dyn HkdfExpander, is_handshake: bool) -> Result<(), Trouble> {
    for _ in 0..2 {
        let secret = secrets.expand_block(&[&LABEL]);
        let expander = hkdf.expander_for_okm(&secret);
        let (mut key, mut vector) = ([0; 32], [0; 12]);
        let too_long = |_| Trouble::new("a key is longer than the hash can make");
        expander.expand_slice(&[&LABEL], &mut key).map_err(too_long)?;
        expander.expand_slice(&[&LABEL], &mut vector).map_err(too_long)?;
        if is_handshake {
            let finished = expander.expand_block(&[&LABEL]);
            std::hint::black_box(hkdf.hmac_sign(&finished, &SECRET));
        }
        std::hint::black_box((key, vector));
    }
    Ok(())
}

/// RFC 5246: the master secret, the block of keys, and both Finished.
fn of_tls12(prf: &dyn Prf) {
    let (mut master, mut keys, mut finished) = ([0; 48], [0; 72], [0; 12]);
    prf.for_secret(&mut master, &SECRET, b"extended master secret", &LABEL);
    prf.for_secret(&mut keys, &master, b"key expansion", &LABEL);
    prf.for_secret(&mut finished, &master, b"client finished", &LABEL);
    prf.for_secret(&mut finished, &master, b"server finished", &LABEL);
    std::hint::black_box((keys, finished));
}

//! Tickets: a session's state and its id, sealed under keys of this process or under those that several share.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::{hmac, rand};
use rustls::server::ProducesTickets;

use crate::error::{Problem, TlsError};
use crate::own_keys::OwnKeys;
use crate::pem;
use crate::session_id::{with_id, without_id};

/// Each key may have sealed what a client shows, and all of them are looked through.
const KEYS_MAX: usize = 16;

/// 256 bits as hex digits.
const HEX_DIGITS: usize = 64;

/// Fewer different bytes are in no random key.
const DIFFERENT_BYTES_MIN: usize = 8;

const NAME_BYTES: usize = 16;
const SALT_BYTES: usize = 16;
pub(crate) const TIME_BYTES: usize = size_of::<u64>();

/// Makes and reads the tickets of one acceptor.
#[derive(Debug)]
pub(crate) struct Tickets {
    pub(crate) keys: Arc<TicketKeys>,
    pub(crate) lifetime_s: u32,
}

/// What tickets are sealed with.
#[derive(Debug)]
pub(crate) enum TicketKeys {
    /// Under keys that this process draws, or the one before it.
    Own(OwnKeys),
    /// Under keys out of a file. The first one seals, each of them opens.
    Shared(Vec<TicketKey>),
}

impl TicketKeys {
    /// `policy` is what the sessions rest on. `None`: no randomness.
    pub(crate) fn own(policy: &[u8]) -> Option<TicketKeys> {
        OwnKeys::draw(policy, now_s()).map(TicketKeys::Own)
    }

    /// `policy` is what the sessions rest on: under another one the same file gives other keys.
    pub(crate) fn shared(keys: &KeyFile, policy: &[u8]) -> TicketKeys {
        TicketKeys::Shared(keys.0.iter().map(|secret| TicketKey::derive(secret, policy)).collect())
    }
}

impl ProducesTickets for Tickets {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        self.lifetime_s
    }

    fn encrypt(&self, state: &[u8]) -> Option<Vec<u8>> {
        let identified = with_id(state)?;
        match &*self.keys {
            TicketKeys::Own(own) => own.seal(&identified, now_s(), self.lifetime_s),
            TicketKeys::Shared(keys) => keys.first()?.seal(&identified, now_s()),
        }
    }

    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        let identified = match &*self.keys {
            TicketKeys::Own(own) => own.open(ticket, now_s(), self.lifetime_s),
            TicketKeys::Shared(keys) => {
                keys.iter().find(|key| key.has_sealed(ticket))?.open(ticket, now_s(), self.lifetime_s)
            }
        }?;
        without_id(identified)
    }
}

/// What a key file says, the first key first.
pub(crate) struct KeyFile(Vec<[u8; 32]>);

impl KeyFile {
    /// One key a line, 64 hex digits as `openssl rand -hex 32` writes them; `#` begins a comment.
    pub(crate) fn read(path: &Path) -> Result<KeyFile, Vec<TlsError>> {
        let text = pem::read(path).map_err(|error| vec![error])?;
        let (mut keys, mut errors) = (Vec::new(), Vec::new());
        let mut wrong = |reason: String| errors.push(TlsError::new(path, Problem::BadTicketKeys { reason }));
        for (line, number) in text.split(|&byte| byte == b'\n').zip(1..) {
            let digits = line.split(|&byte| byte == b'#').next().unwrap_or_default().trim_ascii();
            match key(digits) {
                _ if digits.is_empty() => {}
                None => wrong(format!("line {number} is not {HEX_DIGITS} hex digits")),
                Some(key) if !is_random(&key) => wrong(format!("the key on line {number} is not random")),
                Some(key) if keys.contains(&key) => {
                    wrong(format!("the key on line {number} stands there before"));
                }
                Some(key) => keys.push(key),
            }
        }
        if keys.len() > KEYS_MAX {
            wrong(format!("there are {} keys, and {KEYS_MAX} are enough", keys.len()));
        }
        match errors.is_empty() {
            true if keys.is_empty() => {
                let reason = "there is no key in it".to_owned();
                Err(vec![TlsError::new(path, Problem::BadTicketKeys { reason })])
            }
            true => Ok(KeyFile(keys)),
            false => Err(errors),
        }
    }
}

fn key(digits: &[u8]) -> Option<[u8; 32]> {
    let digits: &[u8; HEX_DIGITS] = digits.try_into().ok()?;
    let mut key = [0; 32];
    for (byte, digits) in key.iter_mut().zip(digits.chunks_exact(2)) {
        let value = |digit: u8| char::from(digit).to_digit(16);
        *byte = u8::try_from(value(digits[0])? << 4 | value(digits[1])?).ok()?;
    }
    Some(key)
}

fn is_random(key: &[u8]) -> bool {
    let mut different = key.to_vec();
    different.sort_unstable();
    different.dedup();
    different.len() >= DIFFERENT_BYTES_MIN
}

/// A key for the tickets of one policy.
///
/// A ticket is the key's name, a random salt, and AES-256-GCM over the time and the session, with name and salt
/// authenticated. The key of that is HMAC-SHA-256 of the salt: it seals once, so that no number of nodes or tickets
/// wears a key out.
pub(crate) struct TicketKey {
    name: [u8; NAME_BYTES],
    secret: hmac::Key,
}

/// Neither a key nor what is computed with it goes into logs.
impl fmt::Debug for TicketKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TicketKey").finish_non_exhaustive()
    }
}

impl TicketKey {
    pub(crate) fn derive(secret: &[u8; 32], policy: &[u8]) -> TicketKey {
        let written = hmac::Key::new(hmac::HMAC_SHA256, secret);
        let derived = |purpose: &[u8]| hmac::sign(&written, &[purpose, policy].concat());
        let mut name = [0; NAME_BYTES];
        name.copy_from_slice(&derived(b"pointsman ticket name 1").as_ref()[..NAME_BYTES]);
        let secret = hmac::Key::new(hmac::HMAC_SHA256, derived(b"pointsman ticket key 1").as_ref());
        TicketKey { name, secret }
    }

    /// Whether a ticket names this key.
    pub(crate) fn has_sealed(&self, ticket: &[u8]) -> bool {
        ticket.split_first_chunk::<NAME_BYTES>().is_some_and(|(name, _)| self.name == *name)
    }

    pub(crate) fn seal(&self, identified: &[u8], now_s: u64) -> Option<Vec<u8>> {
        let mut salt = [0; SALT_BYTES];
        rand::fill(&mut salt).ok()?;
        let head = [self.name, salt].concat();
        let mut sealed = [&now_s.to_be_bytes(), identified].concat();
        self.key(&salt)?.seal_in_place_append_tag(nonce(), Aad::from(&head), &mut sealed).ok()?;
        Some([head, sealed].concat())
    }

    pub(crate) fn open(&self, ticket: &[u8], now_s: u64, lifetime_s: u32) -> Option<Vec<u8>> {
        let (head, sealed) = ticket.split_at_checked(NAME_BYTES + SALT_BYTES)?;
        let mut sealed = sealed.to_vec();
        let opened =
            self.key(&head[NAME_BYTES..])?.open_in_place(nonce(), Aad::from(head), &mut sealed).ok()?;
        let (sealed_s, identified) = opened.split_first_chunk::<TIME_BYTES>()?;
        // The clock of another node may be a little ahead.
        let age_s = now_s.saturating_sub(u64::from_be_bytes(*sealed_s));
        (age_s <= u64::from(lifetime_s)).then(|| identified.to_vec())
    }

    fn key(&self, salt: &[u8]) -> Option<LessSafeKey> {
        let key = hmac::sign(&self.secret, salt);
        UnboundKey::new(&AES_256_GCM, key.as_ref()).ok().map(LessSafeKey::new)
    }
}

/// Each key seals one ticket.
fn nonce() -> Nonce {
    Nonce::assume_unique_for_key([0; 12])
}

/// Seconds since 1970.
pub(crate) fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_S: u64 = 1_700_000_000;
    const LIFETIME_S: u32 = 300;

    fn ticket_key(first: u8, policy: &[u8]) -> TicketKey {
        let mut secret = [0; 32];
        (first..).zip(&mut secret).for_each(|(byte, place)| *place = byte);
        TicketKey::derive(&secret, policy)
    }

    #[test]
    fn what_is_sealed_opens_under_the_same_key_and_policy_alone() {
        let key = ticket_key(1, b"policy");
        let ticket = key.seal(b"state", NOW_S).unwrap();
        assert_eq!(key.open(&ticket, NOW_S, LIFETIME_S).as_deref(), Some(&b"state"[..]));
        assert_eq!(ticket_key(1, b"policy").open(&ticket, NOW_S, LIFETIME_S).as_deref(), Some(&b"state"[..]));
        for other in [ticket_key(2, b"policy"), ticket_key(1, b"other")] {
            assert_eq!(other.open(&ticket, NOW_S, LIFETIME_S), None);
            assert_ne!(other.name, key.name);
        }
    }

    #[test]
    fn two_tickets_of_one_session_differ() {
        let key = ticket_key(1, b"");
        assert_ne!(key.seal(b"state", NOW_S), key.seal(b"state", NOW_S));
    }

    #[test]
    fn any_flipped_bit_and_any_cut_is_refused() {
        let key = ticket_key(1, b"");
        let ticket = key.seal(b"state", NOW_S).unwrap();
        // The name is compared before.
        for bit in 8 * NAME_BYTES..8 * ticket.len() {
            let mut forged = ticket.clone();
            forged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(key.open(&forged, NOW_S, LIFETIME_S), None, "bit {bit}");
        }
        for bytes in 0..ticket.len() {
            assert_eq!(key.open(&ticket[..bytes], NOW_S, LIFETIME_S), None, "{bytes} bytes");
        }
    }

    #[test]
    fn a_ticket_is_good_for_its_time() {
        let key = ticket_key(1, b"");
        let ticket = key.seal(b"state", NOW_S).unwrap();
        let lifetime_s = u64::from(LIFETIME_S);
        assert!(key.open(&ticket, NOW_S + lifetime_s, LIFETIME_S).is_some());
        assert!(key.open(&ticket, NOW_S - 60, LIFETIME_S).is_some(), "by a clock that is behind");
        assert_eq!(key.open(&ticket, NOW_S + lifetime_s + 1, LIFETIME_S), None);
    }
}

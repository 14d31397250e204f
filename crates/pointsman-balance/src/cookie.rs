//! The switch's own cookie: an opaque name for a client that only the switch can make.

use std::hash::Hasher;

use siphasher::sip128::{Hasher128, SipHasher24};

/// What a client is known by.
pub type ClientId = [u8; 16];

/// Length of the cookie's value.
pub const ROUTE_COOKIE_BYTES: usize = 2 * SEALED_BYTES;

/// A client's id and the tag over it.
const SEALED_BYTES: usize = 32;

/// Makes and checks the values of the switch's own cookie: 16 bytes of id and 16 bytes of tag, in
/// lower-case hex.
#[derive(Clone, Debug)]
pub struct RouteCookie {
    tag_hasher: SipHasher24,
}

impl RouteCookie {
    /// Cookies under the sticky key. Nodes that share their clients share the key.
    #[must_use]
    pub fn new(sticky_key: [u8; 16]) -> RouteCookie {
        RouteCookie { tag_hasher: derived_hasher(sticky_key, b"pointsman route cookie tag 1") }
    }

    /// The cookie's value for a client.
    #[must_use]
    pub fn seal(&self, id: ClientId) -> [u8; ROUTE_COOKIE_BYTES] {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        let mut value = [0; ROUTE_COOKIE_BYTES];
        let sealed = id.into_iter().chain(self.tag(id));
        for (digits, byte) in value.chunks_exact_mut(2).zip(sealed) {
            digits.copy_from_slice(&[HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
        }
        value
    }

    /// The client that a cookie's value names, if it was sealed under this key.
    #[must_use]
    pub fn open(&self, value: &[u8]) -> Option<ClientId> {
        let value: &[u8; ROUTE_COOKIE_BYTES] = value.try_into().ok()?;
        let mut sealed = [0; SEALED_BYTES];
        for (byte, digits) in sealed.iter_mut().zip(value.chunks_exact(2)) {
            *byte = hex_digit(digits[0])? << 4 | hex_digit(digits[1])?;
        }
        let (id, tag) = sealed.split_at(16);
        let id = id.try_into().ok()?;
        equal_in_constant_time(tag, &self.tag(id)).then_some(id)
    }

    fn tag(&self, id: ClientId) -> [u8; 16] {
        let mut hasher = self.tag_hasher;
        hasher.write(&id);
        hasher.finish128().as_bytes()
    }
}

/// Names new clients: unpredictable without the key, different for each thread and call.
#[derive(Clone, Debug)]
pub struct ClientIds {
    hasher: SipHasher24,
    thread: u64,
    counter: u64,
}

impl ClientIds {
    /// Ids for one thread. The key must be drawn anew at each start of the process, since the
    /// counter starts anew too and the same key would name other clients alike.
    #[must_use]
    pub fn new(key: [u8; 16], thread: u64) -> ClientIds {
        ClientIds { hasher: derived_hasher(key, b"pointsman client id 1"), thread, counter: 0 }
    }

    /// The next id.
    #[must_use]
    pub fn next_id(&mut self) -> ClientId {
        let mut hasher = self.hasher;
        hasher.write(&self.thread.to_le_bytes());
        hasher.write(&self.counter.to_le_bytes());
        self.counter = self.counter.wrapping_add(1);
        hasher.finish128().as_bytes()
    }
}

/// A hasher under a key of its own for each purpose, so that what one purpose shows of its hashes
/// says nothing about another's.
fn derived_hasher(key: [u8; 16], purpose: &[u8]) -> SipHasher24 {
    let mut hasher = SipHasher24::new_with_key(&key);
    hasher.write(purpose);
    SipHasher24::new_with_key(&hasher.finish128().as_bytes())
}

/// Capital letters are refused: a client has one cookie, not many spellings of it.
fn hex_digit(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

/// A comparison that stopped at the first difference would tell a forger how far he got.
fn equal_in_constant_time(a: &[u8], b: &[u8; 16]) -> bool {
    let difference = a.iter().zip(b).fold(0, |difference, (a, b)| std::hint::black_box(difference | (a ^ b)));
    a.len() == b.len() && difference == 0
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_sealed_opens(key: [u8; 16], id: ClientId) {
            let cookie = RouteCookie::new(key);
            let value = cookie.seal(id);
            prop_assert!(value.iter().all(|byte| byte.is_ascii_hexdigit() && !byte.is_ascii_uppercase()));
            prop_assert_eq!(cookie.open(&value), Some(id));
        }

        #[test]
        fn any_flipped_bit_is_refused(key: [u8; 16], id: ClientId) {
            let cookie = RouteCookie::new(key);
            let value = cookie.seal(id);
            for bit in 0..8 * value.len() {
                let mut forged = value;
                forged[bit / 8] ^= 1 << (bit % 8);
                prop_assert_eq!(cookie.open(&forged), None);
            }
        }

        #[test]
        fn another_key_or_any_other_bytes_are_refused(
            key: [u8; 16],
            id: ClientId,
            other in proptest::collection::vec(any::<u8>(), 0..130),
        ) {
            let cookie = RouteCookie::new(key);
            let mut other_key = key;
            other_key[0] ^= 1;
            prop_assert_eq!(RouteCookie::new(other_key).open(&cookie.seal(id)), None);
            prop_assert_eq!(cookie.open(&other), None);
            let sealed = cookie.seal(id);
            prop_assert_eq!(cookie.open(&sealed[..63]), None);
            prop_assert_eq!(cookie.open(&[&sealed[..], b"0"].concat()), None);
        }
    }

    #[test]
    fn ids_do_not_repeat() {
        let mut seen = HashSet::new();
        for thread in 0..4 {
            let mut ids = ClientIds::new([9; 16], thread);
            assert!((0..1000).all(|_| seen.insert(ids.next_id())));
        }
        let mut other_key = ClientIds::new([8; 16], 0);
        assert!(seen.insert(other_key.next_id()));
    }
}

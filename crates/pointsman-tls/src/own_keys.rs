//! Keys of tickets that no file names: drawn here, replaced as they age, and handed to the process that takes the place of
//! this one.

use std::fmt;
use std::sync::{PoisonError, RwLock};

use aws_lc_rs::rand;

use crate::tickets::TicketKey;

/// How long a key seals. From then on it opens what it has sealed, as long as that is good.
const SEALS_S_MAX: u64 = 6 * 60 * 60;

/// A key that seals tickets, or has sealed some that are still good. Whoever has it can read those sessions.
#[derive(Clone, PartialEq, Eq)]
pub struct TicketSecret {
    /// When it was drawn, in seconds since 1970.
    pub since_s: u64,
    /// What the keys are derived from.
    pub secret: [u8; 32],
}

/// It does not go into logs.
impl fmt::Debug for TicketSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TicketSecret").field("since_s", &self.since_s).finish_non_exhaustive()
    }
}

/// The keys of one acceptor, for sessions that rest on one policy.
#[derive(Debug)]
pub(crate) struct OwnKeys {
    policy: Vec<u8>,
    /// The newest first, which seals.
    keys: RwLock<Vec<OwnKey>>,
}

#[derive(Debug)]
struct OwnKey {
    written: TicketSecret,
    key: TicketKey,
}

impl OwnKeys {
    /// `None`: no randomness.
    pub(crate) fn draw(policy: &[u8], now_s: u64) -> Option<OwnKeys> {
        let keys = RwLock::new(vec![OwnKey::draw(policy, now_s)?]);
        Some(OwnKeys { policy: policy.to_owned(), keys })
    }

    /// Seals under the newest key, or under a newer one where that is too old. Where none can be drawn the old one goes
    /// on: it is no worse for it.
    pub(crate) fn seal(&self, identified: &[u8], now_s: u64, lifetime_s: u32) -> Option<Vec<u8>> {
        self.renew(now_s, lifetime_s);
        self.read(|keys| keys.first()?.key.seal(identified, now_s))
    }

    pub(crate) fn open(&self, ticket: &[u8], now_s: u64, lifetime_s: u32) -> Option<Vec<u8>> {
        self.renew(now_s, lifetime_s);
        self.read(|keys| {
            keys.iter().find(|own| own.key.has_sealed(ticket))?.key.open(ticket, now_s, lifetime_s)
        })
    }

    /// All of them, the newest first.
    pub(crate) fn secrets(&self) -> Vec<TicketSecret> {
        self.read(|keys| keys.iter().map(|own| own.written.clone()).collect())
    }

    /// Goes on with the keys of another process, the newest first, in place of those drawn here. Under another policy
    /// they are other keys. None of them: what was drawn stays.
    pub(crate) fn take_over(&self, secrets: &[TicketSecret]) {
        let theirs: Vec<_> =
            secrets.iter().map(|written| OwnKey::derive(&self.policy, written.clone())).collect();
        if !theirs.is_empty() {
            *self.keys.write().unwrap_or_else(PoisonError::into_inner) = theirs;
        }
    }

    fn renew(&self, now_s: u64, lifetime_s: u32) {
        let is_over = |own: &OwnKey| !own.is_of_use(now_s, lifetime_s);
        if !self.read(|keys| is_due(keys, now_s) || keys.iter().any(is_over)) {
            return;
        }
        let mut keys = self.keys.write().unwrap_or_else(PoisonError::into_inner);
        // Another thread may have been here first.
        if is_due(&keys, now_s)
            && let Some(new) = OwnKey::draw(&self.policy, now_s)
        {
            keys.insert(0, new);
        }
        keys.retain(|own| own.is_of_use(now_s, lifetime_s));
    }

    /// No code panics while it holds the lock, and what it guards is whole at any time.
    fn read<T>(&self, see: impl FnOnce(&[OwnKey]) -> T) -> T {
        see(&self.keys.read().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Whether the key that seals is too old for it.
fn is_due(keys: &[OwnKey], now_s: u64) -> bool {
    keys.first().is_none_or(|newest| now_s.saturating_sub(newest.written.since_s) >= SEALS_S_MAX)
}

impl OwnKey {
    fn draw(policy: &[u8], since_s: u64) -> Option<OwnKey> {
        let mut secret = [0; 32];
        rand::fill(&mut secret).ok()?;
        Some(OwnKey::derive(policy, TicketSecret { since_s, secret }))
    }

    fn derive(policy: &[u8], written: TicketSecret) -> OwnKey {
        let key = TicketKey::derive(&written.secret, policy);
        OwnKey { written, key }
    }

    /// Whether tickets of it may be good.
    fn is_of_use(&self, now_s: u64, lifetime_s: u32) -> bool {
        now_s.saturating_sub(self.written.since_s) <= SEALS_S_MAX + u64::from(lifetime_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_S: u64 = 1_700_000_000;
    const LIFETIME_S: u32 = 12 * 60 * 60;

    fn keys(policy: &[u8]) -> OwnKeys {
        OwnKeys::draw(policy, NOW_S).expect("randomness")
    }

    #[test]
    fn a_key_seals_for_six_hours_and_opens_as_long_as_its_tickets_are_good() {
        let keys = keys(b"policy");
        let first = keys.secrets();
        let ticket = keys.seal(b"state", NOW_S + SEALS_S_MAX - 1, LIFETIME_S).expect("randomness");
        assert_eq!(keys.secrets(), first);
        keys.seal(b"state", NOW_S + SEALS_S_MAX, LIFETIME_S).expect("randomness");
        assert_eq!(keys.secrets()[1..], first);
        for age_s in [1, u64::from(LIFETIME_S)] {
            let now_s = NOW_S + SEALS_S_MAX - 1 + age_s;
            assert_eq!(keys.open(&ticket, now_s, LIFETIME_S).as_deref(), Some(&b"state"[..]), "{age_s}");
        }
        let all_s = SEALS_S_MAX + u64::from(LIFETIME_S);
        for (age_s, count) in [(all_s, 3), (all_s + 1, 2), (10 * all_s, 1)] {
            keys.open(&ticket, NOW_S + age_s, LIFETIME_S);
            assert_eq!(keys.secrets().len(), count, "{age_s}");
        }
    }

    #[test]
    fn another_process_goes_on_with_them_under_the_same_policy_alone() {
        let old = keys(b"policy");
        let before = old.seal(b"before", NOW_S, LIFETIME_S).expect("randomness");
        let after = old.seal(b"after", NOW_S + SEALS_S_MAX, LIFETIME_S).expect("randomness");
        let (new, other) = (keys(b"policy"), keys(b"other"));
        let drawn = new.secrets();
        new.take_over(&[]);
        assert_eq!(new.secrets(), drawn);
        new.take_over(&old.secrets());
        other.take_over(&old.secrets());
        let now_s = NOW_S + SEALS_S_MAX + 1;
        for (ticket, state) in [(&before, &b"before"[..]), (&after, b"after")] {
            assert_eq!(new.open(ticket, now_s, LIFETIME_S).as_deref(), Some(state));
            assert_eq!(other.open(ticket, now_s, LIFETIME_S), None);
        }
        assert_eq!(
            old.open(&new.seal(b"new", now_s, LIFETIME_S).expect("randomness"), now_s, LIFETIME_S).as_deref(),
            Some(&b"new"[..])
        );
        assert_eq!(new.secrets(), old.secrets());
    }

    #[test]
    fn what_is_no_ticket_is_none() {
        let keys = keys(b"");
        for bytes in [0, 1, 16, 40] {
            assert_eq!(keys.open(&vec![7; bytes], NOW_S, LIFETIME_S), None, "{bytes} bytes");
        }
    }
}

//! Sticky clients on their way from the table of one process into that of another, whose clock begins elsewhere.

use crate::{StickyEntry, StickyTable, Whereabouts};

/// Bytes of a client on its way.
pub const PASSED_ENTRY_BYTES: usize = 16;

const AWAY: u32 = 1 << 31;
/// The client was seen once. Versions without this bit take such a client for one that was idle too long.
const ONCE: u32 = 1 << 30;

impl StickyEntry {
    /// The entry with the time since the client was last seen.
    #[must_use]
    pub fn to_bytes(&self, now_s: u32) -> [u8; PASSED_ENTRY_BYTES] {
        let away = if self.whereabouts == Whereabouts::Away { AWAY } else { 0 };
        let once = if self.has_returned { 0 } else { ONCE };
        let idle_s = now_s.saturating_sub(self.used_s).min(ONCE - 1);
        let mut bytes = [0; PASSED_ENTRY_BYTES];
        bytes[..8].copy_from_slice(&self.client.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.server.to_le_bytes());
        bytes[12..].copy_from_slice(&(idle_s | away | once).to_le_bytes());
        bytes
    }

    /// What [`StickyEntry::to_bytes`] gave, by the clock of who reads it.
    #[must_use]
    pub fn of_bytes(bytes: &[u8; PASSED_ENTRY_BYTES], now_s: u32) -> StickyEntry {
        let [c0, c1, c2, c3, c4, c5, c6, c7, s0, s1, s2, s3, w0, w1, w2, w3] = *bytes;
        let word = u32::from_le_bytes([w0, w1, w2, w3]);
        StickyEntry {
            client: u64::from_le_bytes([c0, c1, c2, c3, c4, c5, c6, c7]),
            server: u32::from_le_bytes([s0, s1, s2, s3]),
            whereabouts: if word & AWAY == 0 { Whereabouts::Home } else { Whereabouts::Away },
            used_s: now_s.saturating_sub(word & (ONCE - 1)),
            has_returned: word & ONCE == 0,
        }
    }
}

impl StickyTable {
    /// Takes a client over from another table, where there is room for it.
    ///
    /// Who is known here already stays, unless it was taken to be at home and the other table knows that it is not: a client that
    /// comes before its entry does is where its hash says. Of two that are away the one seen last is right.
    pub fn adopt(&self, entry: &StickyEntry, now_s: u32) {
        if !self.is_there(entry.used_s, now_s) {
            return;
        }
        let is_right = |own: StickyEntry| match (own.whereabouts, entry.whereabouts) {
            (_, Whereabouts::Home) => true,
            (Whereabouts::Home, Whereabouts::Away) => false,
            (Whereabouts::Away, Whereabouts::Away) => own.used_s >= entry.used_s,
        };
        if !self.entry(entry.client, now_s).is_some_and(is_right) {
            self.put_entry(entry);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const IDLE_S_MAX: u32 = 100;

    fn entry(whereabouts: Whereabouts, server: u32, used_s: u32) -> StickyEntry {
        StickyEntry { client: 7, server, whereabouts, used_s, has_returned: true }
    }

    proptest! {
        #[test]
        fn an_entry_passes_with_its_age(client: u64, server: u32, away: bool, has_returned: bool, idle_s in 0u32..1 << 30, now_s in 1u32 << 30..1 << 31) {
            let whereabouts = if away { Whereabouts::Away } else { Whereabouts::Home };
            let entry = StickyEntry { client, server, whereabouts, used_s: now_s - idle_s, has_returned };
            let there_s = 1 << 30;
            let taken = StickyEntry::of_bytes(&entry.to_bytes(now_s), there_s);
            prop_assert_eq!(taken, StickyEntry { used_s: there_s - idle_s, ..entry });
        }
    }

    #[test]
    fn what_is_known_better_stays() {
        use Whereabouts::{Away, Home};
        for (own, passed, expected) in [
            (None, entry(Home, 1, 950), Some((1, Home))),
            (None, entry(Away, 1, 950), Some((1, Away))),
            (None, entry(Away, 1, 899), None),
            (Some(entry(Home, 1, 990)), entry(Away, 2, 950), Some((2, Away))),
            (Some(entry(Home, 1, 940)), entry(Home, 2, 950), Some((1, Home))),
            (Some(entry(Away, 1, 940)), entry(Home, 2, 950), Some((1, Away))),
            (Some(entry(Away, 1, 940)), entry(Away, 2, 950), Some((2, Away))),
            (Some(entry(Away, 1, 960)), entry(Away, 2, 950), Some((1, Away))),
            // It was forgotten here.
            (Some(entry(Away, 1, 800)), entry(Home, 2, 950), Some((2, Home))),
        ] {
            let table = StickyTable::new(16, IDLE_S_MAX);
            own.iter().for_each(|own| table.put(own.client, own.server, own.whereabouts, own.used_s));
            table.adopt(&passed, 1000);
            let found = table.entry(7, 1000).map(|entry| (entry.server, entry.whereabouts));
            assert_eq!(found, expected, "{own:?}, then {passed:?}");
            assert_eq!(table.server_of(7, 1000).map(|kept| kept.server), expected.map(|(server, _)| server));
        }
    }
}

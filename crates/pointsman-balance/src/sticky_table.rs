//! Clients that do not stand where their hash says, and the servers that they stay with instead: a bounded table that
//! all threads read and write without a lock.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// Bytes of memory for each client that there is room for.
pub const STICKY_ENTRY_BYTES: usize = size_of::<Slot>();

/// A client has two sets of so many places to stand in: four times sixteen bytes are what a processor reads at once.
const WAYS: usize = 4;

/// One client that stays with a server which is not the one of its hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StickyEntry {
    /// The client's hash.
    pub client: u64,
    /// The server, as it was put in.
    pub server: u32,
    /// When the client was last seen, within a sixteenth of the time that it may be idle.
    pub used_s: u32,
}

/// The table. Where there is no room for a client, the one goes that has been idle longest of those that stand in its
/// places; who is idle for longer than the table says is not there.
#[derive(Debug)]
pub struct StickyTable {
    sets: Box<[[Slot; WAYS]]>,
    idle_s_max: AtomicU32,
    /// Behind this second nobody is in it. Where there are no exceptions, this is all that is looked at.
    occupied_until_s: AtomicU32,
}

/// A place in the table.
///
/// Two words cannot be written at once without a lock. So the first one is the client's hash mixed with the server: a
/// reader that comes between the two writes finds a client that does not exist, and not another one's server.
#[derive(Debug, Default)]
struct Slot {
    mixed: AtomicU64,
    /// The server and the second after the one in which it was used; 0: nobody stands here.
    held: AtomicU64,
}

impl StickyTable {
    /// A table for so many clients.
    #[must_use]
    pub fn new(entries_max: u32, idle_s_max: u32) -> StickyTable {
        let sets = (entries_max as usize).div_ceil(WAYS).max(1);
        StickyTable {
            sets: std::iter::repeat_with(Default::default).take(sets).collect(),
            idle_s_max: AtomicU32::new(idle_s_max),
            occupied_until_s: AtomicU32::new(0),
        }
    }

    /// Sets how long a client may be idle before it is forgotten.
    pub fn set_idle_s_max(&self, idle_s_max: u32) {
        self.idle_s_max.store(idle_s_max, Relaxed);
        // Nobody who stays for longer now is overlooked.
        let last_s =
            self.slots().filter_map(Slot::entry).map(|entry| entry.used_s.saturating_add(idle_s_max));
        self.occupied_until_s.fetch_max(last_s.max().unwrap_or(0), Relaxed);
    }

    /// The server that a client stays with, if it is an exception. It is seen now.
    #[inline]
    #[must_use]
    pub fn server_of(&self, client: u64, now_s: u32) -> Option<u32> {
        if self.occupied_until_s.load(Relaxed) < now_s.max(1) {
            return None;
        }
        self.find(client, now_s)
    }

    /// Notes that a client stays with a server from now on.
    pub fn put(&self, client: u64, server: u32, now_s: u32) {
        let until_s = now_s.saturating_add(self.idle_s_max.load(Relaxed));
        self.occupied_until_s.fetch_max(until_s.max(1), Relaxed);
        let places = || self.places(client).into_iter().flatten();
        let own = places().find(|slot| slot.entry().is_some_and(|entry| entry.client == client));
        // An empty place, in the set that has more of them; otherwise that of who was idle longest.
        let taken = |set: &[Slot; WAYS]| set.iter().filter(|slot| slot.used() > 0).count();
        let ranked = |set| {
            let taken: usize = taken(set);
            set.iter().map(move |slot| (slot.used(), taken, slot))
        };
        let best = || {
            let ranked = self.places(client).into_iter().flat_map(ranked);
            ranked.min_by_key(|(used, taken, _)| (*used, *taken)).map(|(_, _, slot)| slot)
        };
        if let Some(slot) = own.or_else(best) {
            slot.held.store(held(server, now_s), Relaxed);
            slot.mixed.store(client ^ mask(server), Relaxed);
        }
    }

    /// All that are in it. The table goes on changing meanwhile.
    pub fn entries(&self, now_s: u32) -> impl Iterator<Item = StickyEntry> {
        self.slots().filter_map(Slot::entry).filter(move |entry| self.is_there(entry, now_s))
    }

    /// Forgets those that `which` says, and tells how many they were.
    pub fn forget(&self, which: impl Fn(&StickyEntry) -> bool, now_s: u32) -> usize {
        let mut forgotten = 0;
        for slot in self.slots() {
            if slot.entry().is_some_and(|entry| self.is_there(&entry, now_s) && which(&entry)) {
                slot.held.store(0, Relaxed);
                forgotten += 1;
            }
        }
        forgotten
    }

    fn find(&self, client: u64, now_s: u32) -> Option<u32> {
        let idle_s_max = self.idle_s_max.load(Relaxed);
        for slot in self.places(client).into_iter().flatten() {
            let Some(entry) = slot.entry().filter(|entry| entry.client == client) else { continue };
            let idle_s = now_s.saturating_sub(entry.used_s);
            if idle_s > idle_s_max {
                return None;
            }
            // Not at each request: a line that is written is one that other threads must fetch.
            if idle_s > idle_s_max / 16 {
                slot.held.store(held(entry.server, now_s), Relaxed);
                self.occupied_until_s.fetch_max(now_s.saturating_add(idle_s_max), Relaxed);
            }
            return Some(entry.server);
        }
        None
    }

    fn is_there(&self, entry: &StickyEntry, now_s: u32) -> bool {
        now_s.saturating_sub(entry.used_s) <= self.idle_s_max.load(Relaxed)
    }

    /// The two sets in which a client may stand: that of two one is full is seldom, until most are.
    fn places(&self, client: u64) -> [&[Slot; WAYS]; 2] {
        let scale = |bits: u64| ((u128::from(bits) * self.sets.len() as u128) >> 32) as usize;
        [client >> 32, client & u64::from(u32::MAX)].map(|bits| &self.sets[scale(bits)])
    }

    fn slots(&self) -> impl Iterator<Item = &Slot> {
        self.sets.iter().flatten()
    }
}

impl Slot {
    /// The second after the one in which it was used; 0: it is empty.
    fn used(&self) -> u32 {
        self.held.load(Relaxed) as u32
    }

    fn entry(&self) -> Option<StickyEntry> {
        let held = self.held.load(Relaxed);
        let (server, used_s) = ((held >> 32) as u32, (held as u32).checked_sub(1)?);
        Some(StickyEntry { client: self.mixed.load(Relaxed) ^ mask(server), server, used_s })
    }
}

fn held(server: u32, now_s: u32) -> u64 {
    u64::from(server) << 32 | u64::from(now_s.saturating_add(1))
}

/// Spreads a server's number over a word, each to another one: the factor is odd.
fn mask(server: u32) -> u64 {
    (u64::from(server) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::hash::Hasher;

    use proptest::collection::vec;
    use proptest::prelude::*;
    use siphasher::sip::SipHasher13;

    use super::*;

    const IDLE_S_MAX: u32 = 100;

    /// As clients are hashed.
    fn client(number: u32) -> u64 {
        let mut hasher = SipHasher13::new();
        hasher.write_u32(number);
        hasher.finish()
    }

    #[derive(Clone, Debug)]
    enum Step {
        Put(u32, u32),
        Ask(u32),
        Pass(u32),
        Forget(u32),
    }

    fn steps(clients: u32) -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            4 => (0..clients, 0u32..4).prop_map(|(client, server)| Step::Put(client, server)),
            4 => (0..clients).prop_map(Step::Ask),
            2 => (0u32..IDLE_S_MAX / 2).prop_map(Step::Pass),
            1 => (0u32..4).prop_map(Step::Forget),
        ];
        vec(step, 0..200)
    }

    /// Runs the steps over a table and a map of server and last use, and holds one to the other.
    fn check(table: &StickyTable, steps: &[Step], is_roomy: bool) -> Result<(), TestCaseError> {
        let mut map: HashMap<u32, (u32, u32)> = HashMap::new();
        let mut now_s = 0;
        for step in steps {
            map.retain(|_, (_, used_s)| now_s - *used_s <= IDLE_S_MAX);
            match *step {
                Step::Put(number, server) => {
                    table.put(client(number), server, now_s);
                    map.insert(number, (server, now_s));
                }
                Step::Ask(number) => {
                    let (found, known) = (table.server_of(client(number), now_s), map.get_mut(&number));
                    match known {
                        Some((server, used_s)) if found.is_some() || is_roomy => {
                            prop_assert_eq!(found, Some(*server));
                            if now_s - *used_s > IDLE_S_MAX / 16 {
                                *used_s = now_s;
                            }
                        }
                        // It had to make room; or it never was there.
                        _ => prop_assert_eq!(found, None),
                    }
                }
                Step::Pass(seconds) => now_s += seconds,
                Step::Forget(server) => {
                    let forgotten = table.forget(|entry| entry.server == server, now_s);
                    let before = map.len();
                    map.retain(|_, (kept, _)| *kept != server);
                    prop_assert!(forgotten == before - map.len() || !is_roomy && forgotten < before);
                }
            }
            map.retain(|_, (_, used_s)| now_s - *used_s <= IDLE_S_MAX);
            let entries: Vec<_> = table.entries(now_s).collect();
            prop_assert!(entries.len() <= map.len());
            prop_assert!(entries.len() == map.len() || !is_roomy);
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn it_is_a_map_where_there_is_room(steps in steps(8)) {
            check(&StickyTable::new(4096, IDLE_S_MAX), &steps, true)?;
        }

        /// Whoever is in it has the right server, and there are never more than it has room for.
        #[test]
        fn without_room_it_forgets_and_errs_never(steps in steps(60)) {
            let table = StickyTable::new(16, IDLE_S_MAX);
            check(&table, &steps, false)?;
            prop_assert!(table.entries(0).count() <= 16);
        }
    }

    #[test]
    fn the_one_that_was_idle_longest_makes_room() {
        // One set, twice.
        let table = StickyTable::new(4, IDLE_S_MAX);
        (0..4).for_each(|number| table.put(client(number), number, number));
        assert_eq!(table.server_of(client(0), 20), Some(0));
        table.put(client(9), 9, 21);
        let mut left: Vec<_> = table.entries(21).map(|entry| entry.server).collect();
        left.sort_unstable();
        assert_eq!(left, [0, 2, 3, 9]);
    }

    #[test]
    fn a_client_that_comes_stays_and_one_that_does_not_is_forgotten() {
        let table = StickyTable::new(64, IDLE_S_MAX);
        table.put(client(1), 7, 0);
        table.put(client(2), 8, 0);
        assert!((0..50).all(|look| table.server_of(client(1), look * 60) == Some(7)));
        assert_eq!(table.server_of(client(2), IDLE_S_MAX + 1), None);
        assert_eq!(table.server_of(client(1), 49 * 60 + IDLE_S_MAX + 7), None);
        assert_eq!(table.entries(49 * 60 + IDLE_S_MAX + 7).count(), 0);
    }

    #[test]
    fn a_longer_time_holds_at_once() {
        let table = StickyTable::new(64, IDLE_S_MAX);
        table.put(client(1), 7, 0);
        table.set_idle_s_max(1000);
        assert_eq!(table.server_of(client(1), 900), Some(7));
    }

    #[test]
    fn three_quarters_full_it_has_nearly_all() {
        let table = StickyTable::new(1 << 14, IDLE_S_MAX);
        let clients = 3 << 12;
        (0..clients).for_each(|number| table.put(client(number), number, 0));
        let kept = (0..clients).filter(|&number| table.server_of(client(number), 0) == Some(number)).count();
        assert!(kept > clients as usize * 97 / 100, "{kept} of {clients}");
    }

    /// Whatever threads do to the same few places, nobody is sent to another client's server.
    #[test]
    fn threads_never_mix_clients_up() {
        let table = StickyTable::new(8, IDLE_S_MAX);
        let server = |number: u32| number.wrapping_mul(0x9e37);
        std::thread::scope(|scope| {
            for thread in 0..4u32 {
                let table = &table;
                scope.spawn(move || {
                    for step in 0..20_000u32 {
                        let (put, asked) = ((step + thread * 5) % 24, (step * 7 + thread) % 24);
                        table.put(client(put), server(put), step / 100);
                        if let Some(found) = table.server_of(client(asked), step / 100) {
                            assert_eq!(found, server(asked));
                        }
                    }
                });
            }
        });
    }

    #[test]
    fn an_entry_takes_sixteen_bytes() {
        assert_eq!(STICKY_ENTRY_BYTES, 16);
    }
}

//! Sticky clients, and the servers that they stay with: a bounded table that all threads read and write without a lock.
//!
//! Most clients stand where their hash says, and lose nothing when they are forgotten. So they make room for those that
//! do not.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// Bytes of memory for each client that there is room for.
pub const STICKY_ENTRY_BYTES: usize = size_of::<Slot>();

/// A client has two sets of so many places to stand in: four times sixteen bytes are what a processor reads at once.
const WAYS: usize = 4;

/// Where a sticky client is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whereabouts {
    /// Where its hash says: who forgets it finds it there again.
    Home,
    /// Elsewhere: its server was down, or the servers were others when it came.
    Away,
}

/// One client, and the server that it stays with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StickyEntry {
    /// The client's hash.
    pub client: u64,
    /// The server, as it was put in.
    pub server: u32,
    /// Where that is for the client, as far as anybody has looked.
    pub whereabouts: Whereabouts,
    /// When the client was last seen, within a sixteenth of the time that it may be idle.
    pub used_s: u32,
}

/// A client that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The server that it stays with.
    pub server: u32,
    /// Whether it is to be put in again, for it was not for a while.
    pub is_due: bool,
}

/// The table. Where there is no room for a client, one goes that is at home, the one that has been idle longest of
/// those that stand in its places; who is away goes for somebody who is away, too, and for nobody else. Who is idle for
/// longer than the table says is not there.
#[derive(Debug)]
pub struct StickyTable {
    sets: Box<[Set]>,
    idle_s_max: AtomicU32,
    /// Behind this second nobody is in it. Where it is empty, this is all that is looked at.
    occupied_until_s: AtomicU32,
}

/// Places that are one line of a processor's cache: to look for a client is to read two of them, whatever the table's size.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Set([Slot; WAYS]);

/// A place in the table.
///
/// Two words cannot be written at once without a lock. So the first one is the client's hash mixed with the server: a
/// reader that comes between the two writes finds a client that does not exist, and not another one's server.
#[derive(Debug, Default)]
struct Slot {
    mixed: AtomicU64,
    /// The bits of a [`Held`]; 0: nobody stands here.
    held: AtomicU64,
}

/// The second word of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Held {
    server: u32,
    whereabouts: Whereabouts,
    used_s: u32,
}

impl Held {
    const AWAY: u32 = 1 << 31;

    /// Seconds fit for 68 years.
    fn bits(self) -> u64 {
        let away = if self.whereabouts == Whereabouts::Away { Held::AWAY } else { 0 };
        u64::from(self.server) << 32 | u64::from(self.used_s.saturating_add(1).min(Held::AWAY - 1) | away)
    }

    fn of_bits(bits: u64) -> Option<Held> {
        let (server, low) = ((bits >> 32) as u32, bits as u32);
        let whereabouts = if low & Held::AWAY == 0 { Whereabouts::Home } else { Whereabouts::Away };
        Some(Held { server, whereabouts, used_s: (low & !Held::AWAY).checked_sub(1)? })
    }
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

    /// The server that a client stays with, if it is known.
    #[inline]
    #[must_use]
    pub fn server_of(&self, client: u64, now_s: u32) -> Option<Kept> {
        if self.occupied_until_s.load(Relaxed) < now_s.max(1) {
            return None;
        }
        self.find(client, now_s)
    }

    /// Notes that a client stays with a server from now on, where there is room for it.
    pub fn put(&self, client: u64, server: u32, whereabouts: Whereabouts, now_s: u32) {
        let places = || self.places(client).into_iter().flat_map(|set| &set.0);
        let own = places().find(|slot| slot.entry().is_some_and(|entry| entry.client == client));
        // An empty place, in the set that has more of them; otherwise that of who was idle longest.
        let ranked = |set| {
            let taken = self.taken(set, now_s);
            set.0.iter().map(move |slot| (self.rank(slot, now_s), taken, slot))
        };
        let best = || {
            let ranked = self.places(client).into_iter().flat_map(ranked);
            let best = ranked.min_by_key(|(rank, taken, _)| (*rank, *taken));
            best.filter(|(rank, ..)| whereabouts == Whereabouts::Away || rank.0 < Rank::AWAY)
        };
        let Some(slot) = own.or_else(|| best().map(|(_, _, slot)| slot)) else { return };
        let until_s = now_s.saturating_add(self.idle_s_max.load(Relaxed)).max(1);
        // All threads read it: it is written once a second, and not for each client.
        if self.occupied_until_s.load(Relaxed) < until_s {
            self.occupied_until_s.fetch_max(until_s, Relaxed);
        }
        slot.held.store(Held { server, whereabouts, used_s: now_s }.bits(), Relaxed);
        slot.mixed.store(client ^ mask(server), Relaxed);
    }

    /// All that are in it. The table goes on changing meanwhile.
    pub fn entries(&self, now_s: u32) -> impl Iterator<Item = StickyEntry> {
        self.entries_from(0, now_s).map(|(_, entry)| entry)
    }

    /// The same from a place of the table on, each with its own.
    pub fn entries_from(&self, from: usize, now_s: u32) -> impl Iterator<Item = (usize, StickyEntry)> {
        let entries = self.slots().enumerate().skip(from);
        entries
            .filter_map(|(at, slot)| Some((at, slot.entry()?)))
            .filter(move |(_, entry)| self.is_there(entry.used_s, now_s))
    }

    /// Forgets those that `which` says, and tells how many they were.
    pub fn forget(&self, which: impl Fn(&StickyEntry) -> bool, now_s: u32) -> usize {
        let mut forgotten = 0;
        self.look_again(now_s, |entry| match which(entry) {
            true => {
                forgotten += 1;
                None
            }
            false => Some(entry.whereabouts),
        });
        forgotten
    }

    /// Asks of everybody in it where it is now that the servers are others; nothing: it is forgotten. Who comes meanwhile is
    /// not disturbed.
    pub fn look_again(&self, now_s: u32, mut now: impl FnMut(&StickyEntry) -> Option<Whereabouts>) {
        for slot in self.slots() {
            let bits = slot.held.load(Relaxed);
            let Some(entry) = slot.entry_of(bits).filter(|entry| self.is_there(entry.used_s, now_s)) else {
                continue;
            };
            let StickyEntry { server, used_s, .. } = entry;
            let held = now(&entry).map_or(0, |whereabouts| Held { server, whereabouts, used_s }.bits());
            if held != bits {
                // Who was put in since is where it should be.
                let (Ok(_) | Err(_)) = slot.held.compare_exchange(bits, held, Relaxed, Relaxed);
            }
        }
    }

    fn find(&self, client: u64, now_s: u32) -> Option<Kept> {
        let idle_s_max = self.idle_s_max.load(Relaxed);
        for slot in self.places(client).into_iter().flat_map(|set| &set.0) {
            let Some(entry) = slot.entry().filter(|entry| entry.client == client) else { continue };
            let idle_s = now_s.saturating_sub(entry.used_s);
            // Not at each request: a line that is written is one that other threads must fetch.
            let is_due = idle_s > idle_s_max / 16;
            return (idle_s <= idle_s_max).then_some(Kept { server: entry.server, is_due });
        }
        None
    }

    /// What stands in it of a client.
    pub(crate) fn entry(&self, client: u64, now_s: u32) -> Option<StickyEntry> {
        let entries = self.places(client).into_iter().flat_map(|set| &set.0).filter_map(Slot::entry);
        let mut own = entries.filter(|entry| entry.client == client);
        own.next().filter(|entry| self.is_there(entry.used_s, now_s))
    }

    pub(crate) fn is_there(&self, used_s: u32, now_s: u32) -> bool {
        now_s.saturating_sub(used_s) <= self.idle_s_max.load(Relaxed)
    }

    /// Who goes first where there is no room: the least.
    fn rank(&self, slot: &Slot, now_s: u32) -> (u8, u32) {
        match Held::of_bits(slot.held.load(Relaxed)) {
            Some(held) if self.is_there(held.used_s, now_s) => match held.whereabouts {
                Whereabouts::Home => (Rank::HOME, held.used_s),
                Whereabouts::Away => (Rank::AWAY, held.used_s),
            },
            _ => (Rank::EMPTY, 0),
        }
    }

    fn taken(&self, set: &Set, now_s: u32) -> usize {
        set.0.iter().filter(|slot| self.rank(slot, now_s).0 != Rank::EMPTY).count()
    }

    /// The two sets in which a client may stand: that of two one is full is seldom, until most are.
    fn places(&self, client: u64) -> [&Set; 2] {
        let scale = |bits: u64| ((u128::from(bits) * self.sets.len() as u128) >> 32) as usize;
        [client >> 32, client & u64::from(u32::MAX)].map(|bits| &self.sets[scale(bits)])
    }

    fn slots(&self) -> impl Iterator<Item = &Slot> {
        self.sets.iter().flat_map(|set| &set.0)
    }
}

/// What stands in a place, by what it is worth.
struct Rank;

impl Rank {
    const EMPTY: u8 = 0;
    const HOME: u8 = 1;
    const AWAY: u8 = 2;
}

impl Slot {
    fn entry(&self) -> Option<StickyEntry> {
        self.entry_of(self.held.load(Relaxed))
    }

    fn entry_of(&self, held: u64) -> Option<StickyEntry> {
        let Held { server, whereabouts, used_s } = Held::of_bits(held)?;
        Some(StickyEntry { client: self.mixed.load(Relaxed) ^ mask(server), server, whereabouts, used_s })
    }
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

    fn put(table: &StickyTable, client: u64, server: u32, now_s: u32) {
        table.put(client, server, Whereabouts::Away, now_s);
    }

    /// The server of a client that comes.
    fn see(table: &StickyTable, client: u64, now_s: u32) -> Option<u32> {
        let kept = table.server_of(client, now_s)?;
        if kept.is_due {
            put(table, client, kept.server, now_s);
        }
        Some(kept.server)
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
                    put(table, client(number), server, now_s);
                    map.insert(number, (server, now_s));
                }
                Step::Ask(number) => {
                    let (found, known) = (see(table, client(number), now_s), map.get_mut(&number));
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
        (0..4).for_each(|number| put(&table, client(number), number, number));
        assert_eq!(see(&table, client(0), 20), Some(0));
        put(&table, client(9), 9, 21);
        let mut left: Vec<_> = table.entries(21).map(|entry| entry.server).collect();
        left.sort_unstable();
        assert_eq!(left, [0, 2, 3, 9]);
    }

    #[test]
    fn a_client_that_comes_stays_and_one_that_does_not_is_forgotten() {
        let table = StickyTable::new(64, IDLE_S_MAX);
        put(&table, client(1), 7, 0);
        put(&table, client(2), 8, 0);
        assert!((0..50).all(|look| see(&table, client(1), look * 60) == Some(7)));
        assert_eq!(see(&table, client(2), IDLE_S_MAX + 1), None);
        assert_eq!(see(&table, client(1), 49 * 60 + IDLE_S_MAX + 7), None);
        assert_eq!(table.entries(49 * 60 + IDLE_S_MAX + 7).count(), 0);
    }

    #[test]
    fn a_longer_time_holds_at_once() {
        let table = StickyTable::new(64, IDLE_S_MAX);
        put(&table, client(1), 7, 0);
        table.set_idle_s_max(1000);
        assert_eq!(see(&table, client(1), 900), Some(7));
    }

    #[test]
    fn three_quarters_full_it_has_nearly_all() {
        let table = StickyTable::new(1 << 14, IDLE_S_MAX);
        let clients = 3 << 12;
        (0..clients).for_each(|number| put(&table, client(number), number, 0));
        let kept = (0..clients).filter(|&number| see(&table, client(number), 0) == Some(number)).count();
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
                        let (new, asked) = ((step + thread * 5) % 24, (step * 7 + thread) % 24);
                        put(table, client(new), server(new), step / 100);
                        if let Some(found) = see(table, client(asked), step / 100) {
                            assert_eq!(found, server(asked));
                        }
                    }
                });
            }
        });
    }

    /// However many come who are at home, who is away stays.
    #[test]
    fn who_is_at_home_makes_room() {
        let table = StickyTable::new(64, IDLE_S_MAX);
        (0..20).for_each(|number| put(&table, client(number), number, 0));
        for number in 100..10_000 {
            table.put(client(number), number, Whereabouts::Home, 1);
        }
        assert!((0..20).all(|number| see(&table, client(number), 2) == Some(number)));
        assert_eq!(table.entries(2).count(), 64);
        // Who is looked at again, and found at home, makes room, too.
        table.look_again(2, |_| Some(Whereabouts::Home));
        for number in 10_000..20_000 {
            table.put(client(number), number, Whereabouts::Home, 3);
        }
        assert!((0..20).all(|number| see(&table, client(number), 4).is_none()));
    }

    #[test]
    fn a_second_look_forgets_and_disturbs_nobody_else() {
        let table = StickyTable::new(64, IDLE_S_MAX);
        (0..20).for_each(|number| table.put(client(number), number, Whereabouts::Home, number));
        table.look_again(20, |entry| (entry.server % 2 == 0).then_some(Whereabouts::Away));
        let mut left: Vec<_> = table.entries(20).collect();
        left.sort_unstable_by_key(|entry| entry.server);
        let expected = (0..20).step_by(2).map(|number| StickyEntry {
            client: client(number),
            server: number,
            whereabouts: Whereabouts::Away,
            used_s: number,
        });
        assert_eq!(left, expected.collect::<Vec<_>>());
    }

    #[test]
    fn an_entry_takes_sixteen_bytes_and_four_are_one_line() {
        assert_eq!(STICKY_ENTRY_BYTES, 16);
        assert_eq!((size_of::<Set>(), align_of::<Set>()), (64, 64));
    }
}

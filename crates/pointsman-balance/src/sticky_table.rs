//! Sticky clients, and the servers that they stay with: a bounded table that all threads read and write without a lock.
//!
//! Most clients stand where their hash says, and lose nothing when they are forgotten. So they make room for those that
//! do not. A client that has come back is worth more than one that was seen once: strangers cost an attacker one request
//! each.

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
    /// Whether the client has come back since it was put in.
    pub has_returned: bool,
}

/// A client that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The server that it stays with.
    pub server: u32,
    /// Whether it is to be put in again, for it was not for a while.
    pub is_due: bool,
}

/// The table. Where there is no room for a client, another one in its places is forgotten: clients at home go before
/// those away, among them clients that never came back before those that did, and then the one that was idle longest. A
/// client that is away goes only for another one that is away. Who is idle for longer than the table says is not there.
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
    has_returned: bool,
}

impl Held {
    const AWAY: u32 = 1 << 31;
    const RETURNED: u32 = 1 << 30;
    const SECONDS: u32 = Held::RETURNED - 1;

    /// Seconds fit for 34 years.
    fn bits(self) -> u64 {
        let away = if self.whereabouts == Whereabouts::Away { Held::AWAY } else { 0 };
        let returned = if self.has_returned { Held::RETURNED } else { 0 };
        let used = self.used_s.saturating_add(1).min(Held::SECONDS);
        u64::from(self.server) << 32 | u64::from(used | away | returned)
    }

    fn of_bits(bits: u64) -> Option<Held> {
        let (server, low) = ((bits >> 32) as u32, bits as u32);
        let whereabouts = if low & Held::AWAY == 0 { Whereabouts::Home } else { Whereabouts::Away };
        let used_s = (low & Held::SECONDS).checked_sub(1)?;
        Some(Held { server, whereabouts, used_s, has_returned: low & Held::RETURNED != 0 })
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

    /// The server that a client stays with, if it is known. The client is there to ask: if it is known, it has come back.
    #[inline]
    #[must_use]
    pub fn server_of(&self, client: u64, now_s: u32) -> Option<Kept> {
        let (slot, bits, kept) = self.find(client, now_s)?;
        if let Some(held) = Held::of_bits(bits).filter(|held| !held.has_returned) {
            // Once for each client. One that is put in anew meanwhile has returned with its next request.
            let returned = Held { has_returned: true, ..held }.bits();
            let (Ok(_) | Err(_)) = slot.held.compare_exchange(bits, returned, Relaxed, Relaxed);
        }
        Some(kept)
    }

    /// The entry of a client, without counting a visit: for a server that names the client in a response.
    #[must_use]
    pub fn known(&self, client: u64, now_s: u32) -> Option<Kept> {
        self.find(client, now_s).map(|(.., kept)| kept)
    }

    /// Notes that a client stays with a server from now on, where there is room for it.
    pub fn put(&self, client: u64, server: u32, whereabouts: Whereabouts, now_s: u32) {
        self.put_entry(&StickyEntry { client, server, whereabouts, used_s: now_s, has_returned: false });
    }

    /// The same for a client that may be known to have come back.
    pub(crate) fn put_entry(&self, entry: &StickyEntry) {
        let StickyEntry { client, server, whereabouts, used_s: now_s, has_returned } = *entry;
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
            best.filter(|(rank, ..)| whereabouts == Whereabouts::Away || rank.0 < Rank::AWAY_ONCE)
        };
        let Some(slot) = own.or_else(|| best().map(|(_, _, slot)| slot)) else { return };
        let until_s = now_s.saturating_add(self.idle_s_max.load(Relaxed)).max(1);
        // All threads read it: it is written once a second, and not for each client.
        if self.occupied_until_s.load(Relaxed) < until_s {
            self.occupied_until_s.fetch_max(until_s, Relaxed);
        }
        let has_returned = has_returned || own.and_then(Slot::entry).is_some_and(|entry| entry.has_returned);
        slot.held.store(Held { server, whereabouts, used_s: now_s, has_returned }.bits(), Relaxed);
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
            let StickyEntry { server, used_s, has_returned, .. } = entry;
            let held = |whereabouts| Held { server, whereabouts, used_s, has_returned };
            let held = now(&entry).map_or(0, |whereabouts| held(whereabouts).bits());
            if held != bits {
                // Who was put in since is where it should be.
                let (Ok(_) | Err(_)) = slot.held.compare_exchange(bits, held, Relaxed, Relaxed);
            }
        }
    }

    /// The place of a client, what it holds, and what that means.
    #[inline]
    fn find(&self, client: u64, now_s: u32) -> Option<(&Slot, u64, Kept)> {
        if self.occupied_until_s.load(Relaxed) < now_s.max(1) {
            return None;
        }
        let idle_s_max = self.idle_s_max.load(Relaxed);
        for slot in self.places(client).into_iter().flat_map(|set| &set.0) {
            let bits = slot.held.load(Relaxed);
            let Some(entry) = slot.entry_of(bits).filter(|entry| entry.client == client) else { continue };
            let idle_s = now_s.saturating_sub(entry.used_s);
            // Not at each request: a line that is written is one that other threads must fetch.
            let is_due = idle_s > idle_s_max / 16;
            return (idle_s <= idle_s_max).then_some((slot, bits, Kept { server: entry.server, is_due }));
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
            Some(held) if self.is_there(held.used_s, now_s) => match (held.whereabouts, held.has_returned) {
                (Whereabouts::Home, false) => (Rank::HOME_ONCE, held.used_s),
                (Whereabouts::Home, true) => (Rank::HOME, held.used_s),
                (Whereabouts::Away, false) => (Rank::AWAY_ONCE, held.used_s),
                (Whereabouts::Away, true) => (Rank::AWAY, held.used_s),
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
    /// Seen once.
    const HOME_ONCE: u8 = 1;
    const HOME: u8 = 2;
    /// Seen once, or given a session that it has not shown yet.
    const AWAY_ONCE: u8 = 3;
    const AWAY: u8 = 4;
}

impl Slot {
    fn entry(&self) -> Option<StickyEntry> {
        self.entry_of(self.held.load(Relaxed))
    }

    fn entry_of(&self, held: u64) -> Option<StickyEntry> {
        let Held { server, whereabouts, used_s, has_returned } = Held::of_bits(held)?;
        let client = self.mixed.load(Relaxed) ^ mask(server);
        Some(StickyEntry { client, server, whereabouts, used_s, has_returned })
    }
}

/// Spreads a server's number over a word, each to another one: the factor is odd.
fn mask(server: u32) -> u64 {
    (u64::from(server) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod threads {
    use super::StickyTable;
    use super::tests::{client, put, see};

    /// Whatever threads do to the same few places, nobody is sent to another client's server.
    #[test]
    fn threads_never_mix_clients_up() {
        let table = StickyTable::new(8, 100);
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
}

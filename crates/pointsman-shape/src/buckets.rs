//! Buckets by key: as many as there is room for, and no lock.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::{Bucket, Rate, Wait};

/// Slots that a key may stand in: two lines of the cache.
const WAYS: usize = 8;

/// Slots for each key that there is to be room for: keys fall to sets unevenly.
const SLOTS_PER_KEY: usize = 2;

/// What a key takes, before the number of sets is rounded up to a power of two.
pub const BYTES_PER_KEY: usize = SLOTS_PER_KEY * size_of::<Slot>();

/// A bucket for each key, in a table whose size never changes.
///
/// A key stands in one of the slots of its set. A key that is new takes the slot whose bucket is the first to be full
/// again: mostly it is full already, and to forget it changes nothing. Where it is not, its key begins anew with a full
/// one. So a flood of new keys forgets those first that are least over, and who is limited stays so the longest.
#[derive(Debug)]
pub struct Buckets {
    sets: Box<[Set]>,
}

#[derive(Debug, Default)]
#[repr(align(64))]
struct Set {
    slots: [Slot; WAYS],
}

#[derive(Debug, Default)]
struct Slot {
    /// The hash of the key; 0 where there is none.
    key: AtomicU64,
    bucket: Bucket,
}

impl Buckets {
    /// Room for about so many keys that are not full: of exactly so many about one in a hundred is forgotten early.
    #[must_use]
    pub fn new(keys_max: usize) -> Buckets {
        let sets = (keys_max * SLOTS_PER_KEY).div_ceil(WAYS).next_power_of_two();
        Buckets { sets: (0..sets).map(|_| Set::default()).collect() }
    }

    /// Takes a token of a key, which is told by a hash that nobody can choose. Where a key comes to several threads at
    /// once that none has seen, each of them may be given one more.
    ///
    /// # Errors
    /// Its bucket is empty.
    pub fn take(&self, key: u64, rate: Rate, now_ns: u64) -> Result<(), Wait> {
        let key = key.max(1);
        let slots = self.set(key);
        loop {
            if let Some(slot) = find(slots, key) {
                return slot.bucket.take(rate, now_ns);
            }
            let full_again_ns = rate.take(0, now_ns)?;
            let order = |slot: &&Slot| slot.bucket.full_ns.load(Ordering::Relaxed);
            let Some(slot) = slots.iter().min_by_key(order) else { return Ok(()) };
            let old = slot.key.load(Ordering::Relaxed);
            if slot.key.compare_exchange(old, key, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
                slot.bucket.full_ns.store(full_again_ns, Ordering::Relaxed);
                return Ok(());
            }
        }
    }

    /// What [`Buckets::take`] would say, without taking.
    ///
    /// # Errors
    /// Its bucket is empty.
    pub fn look(&self, key: u64, rate: Rate, now_ns: u64) -> Result<(), Wait> {
        let key = key.max(1);
        match find(self.set(key), key) {
            Some(slot) => slot.bucket.look(rate, now_ns),
            None => rate.take(0, now_ns).map(drop),
        }
    }

    /// The slots that a key may stand in.
    fn set(&self, key: u64) -> &[Slot; WAYS] {
        // There are a power of two of them.
        &self.sets[key as usize & (self.sets.len() - 1)].slots
    }
}

fn find(slots: &[Slot; WAYS], key: u64) -> Option<&Slot> {
    slots.iter().find(|slot| slot.key.load(Ordering::Relaxed) == key)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::num::NonZeroU32;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn rate(per_second: u32, burst: u32) -> Rate {
        let [count, burst] = [per_second, burst].map(|number| NonZeroU32::new(number).expect("some"));
        Rate::new(count, 1_000_000_000, burst)
    }

    /// A hash that spreads.
    fn spread(number: u64) -> u64 {
        let mixed = (number ^ 0x5bd1_e995).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
    }

    #[test]
    fn the_table_has_the_size_that_is_said() {
        assert_eq!((size_of::<Set>(), BYTES_PER_KEY), (128, 32));
        for (keys_max, bytes) in [(1, 128), (4, 128), (5, 256), (100_000, 4 << 20), (1_000_000, 32 << 20)] {
            assert_eq!(Buckets::new(keys_max).sets.len() * size_of::<Set>(), bytes, "{keys_max}");
        }
    }

    /// A flood of keys leaves the one alone that is over its rate the most.
    #[test]
    fn who_is_limited_stays_so() {
        let (buckets, slow) = (Buckets::new(1000), rate(1, 5));
        let busy = spread(7);
        while buckets.take(busy, slow, 0).is_ok() {}
        let flood = (1000..9000).filter(|key| buckets.take(spread(*key), slow, 0).is_ok()).count();
        assert_eq!(flood, 8000, "whoever is new has a full bucket");
        assert!(buckets.take(busy, slow, 0).is_err());
    }

    /// At the number of keys that was asked for nearly all are remembered.
    #[test]
    fn there_is_room_for_the_keys_that_were_asked_for() {
        const KEYS: u64 = 1 << 14;
        let (buckets, slow) = (Buckets::new(KEYS as usize), rate(1, 1));
        (0..KEYS).for_each(|key| assert_eq!(buckets.take(spread(key), slow, 0), Ok(())));
        let known = (0..KEYS).filter(|key| buckets.look(spread(*key), slow, 0).is_err()).count() as u64;
        assert!(known > KEYS - KEYS / 50, "{known} of {KEYS}");
    }

    #[test]
    fn threads_share_the_table() {
        let (buckets, slow) = (Buckets::new(1000), rate(1, 100));
        let taken = std::thread::scope(|scope| {
            let take =
                || (0..4000u64).filter(|turn| buckets.take(spread(turn % 10), slow, 1).is_ok()).count();
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(take)).collect();
            threads.into_iter().map(|thread| thread.join().expect("it does not panic")).sum::<usize>()
        });
        // One more for each thread and key at the very first moment.
        assert!((1000..=1000 + 4 * 10).contains(&taken), "{taken}");
    }

    proptest! {
        /// Where there is room for all, each key has a bucket of its own.
        #[test]
        fn it_is_a_bucket_for_each_key(
            asks in vec((0u64..8, 0u64..2_000_000_000), 1..300),
            per_second in 1u32..5,
            burst in 1u32..5,
        ) {
            let (buckets, rate, mut now_ns) = (Buckets::new(1000), rate(per_second, burst), 0);
            let mut each: HashMap<u64, Bucket> = HashMap::new();
            for (key, pause_ns) in asks {
                now_ns += pause_ns / 7;
                let expected = each.entry(key).or_default().take(rate, now_ns);
                prop_assert_eq!(buckets.look(spread(key), rate, now_ns), expected);
                prop_assert_eq!(buckets.take(spread(key), rate, now_ns), expected);
            }
        }
    }
}

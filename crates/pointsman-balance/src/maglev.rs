//! A table that says which server a client's hash belongs to: Maglev hashing (Eisenbud and others, NSDI 2016, section
//! 3.4), with weights.

use std::hash::Hasher;

use siphasher::sip::SipHasher13;

/// Who has which entry. It is made when the servers change, and looked up once a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Maglev {
    /// Positions of servers. Empty where no server has a weight.
    entries: Box<[u32]>,
}

impl Maglev {
    /// A table of so many entries, which must be a prime, for servers that are given as their identity (a hash of the
    /// name, not the position) and their weight. Only these decide, and not the order.
    ///
    /// Each server has an order of its own in which it wants the entries. They take turns, each as often as its weight
    /// says, and take the next one that is free. So a server that comes or goes changes little beside its own entries.
    #[must_use]
    pub fn new(servers: &[(u64, u32)], size: u32) -> Maglev {
        let mut takers: Vec<_> = (0..)
            .zip(servers)
            .filter(|(_, (_, weight))| *weight > 0)
            .map(|(position, (identity, weight))| Taker::new(position, *identity, *weight, size))
            .collect();
        takers.sort_unstable_by_key(|taker| taker.identity);
        let Some(weight_max) = takers.iter().map(|taker| u64::from(taker.weight)).max() else {
            return Maglev { entries: Box::default() };
        };
        let mut entries = vec![FREE; size as usize];
        let mut left = entries.len();
        'filling: loop {
            for taker in &mut takers {
                taker.credit += u64::from(taker.weight);
                if taker.credit < weight_max {
                    continue;
                }
                taker.credit -= weight_max;
                taker.take_next(&mut entries);
                left -= 1;
                if left == 0 {
                    break 'filling;
                }
            }
        }
        Maglev { entries: entries.into() }
    }

    /// The position of the server that a client's hash belongs to; none where no server has a weight.
    #[must_use]
    pub fn server(&self, hash: u64) -> Option<usize> {
        // The upper bits of the product: every entry is as likely as any other, without a division.
        let entry = (u128::from(hash) * self.entries.len() as u128) >> 64;
        self.entries.get(entry as usize).map(|position| *position as usize)
    }
}

/// Stands for an entry that nobody has taken.
const FREE: u32 = u32::MAX;

/// A server that takes entries.
struct Taker {
    position: u32,
    identity: u64,
    weight: u32,
    /// What it has gained by its weight and not yet spent on an entry.
    credit: u64,
    /// The entry that it wants next, and how far from it the one after that is.
    next: u64,
    skip: u64,
    size: u64,
}

impl Taker {
    fn new(position: u32, identity: u64, weight: u32, size: u32) -> Taker {
        let size = u64::from(size);
        Taker {
            position,
            identity,
            weight,
            credit: 0,
            next: hashed(identity, 0) % size,
            skip: hashed(identity, 1) % (size - 1) + 1,
            size,
        }
    }

    /// Takes the first free entry in its order. Since the size is a prime, its order has every entry once.
    fn take_next(&mut self, entries: &mut [u32]) {
        loop {
            let wanted = self.next as usize;
            self.next = (self.next + self.skip) % self.size;
            if entries[wanted] == FREE {
                entries[wanted] = self.position;
                return;
            }
        }
    }
}

/// Hashes that are independent of each other, and of what else is made of an identity.
fn hashed(identity: u64, which: u64) -> u64 {
    let mut hasher = SipHasher13::new_with_keys(which, 0x006d_6167_6c65_7600);
    hasher.write(&identity.to_le_bytes());
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    const SIZE: u32 = 65_537;

    fn servers(weights: &[u32]) -> Vec<(u64, u32)> {
        (0..).map(|number| hashed(number, 7)).zip(weights.iter().copied()).collect()
    }

    /// How many entries each server has.
    fn shares(table: &Maglev, servers: usize) -> Vec<u32> {
        let mut shares = vec![0; servers];
        table.entries.iter().for_each(|position| shares[*position as usize] += 1);
        shares
    }

    #[test]
    fn nobody_is_found_where_nobody_is() {
        for servers in [&[][..], &[(5, 0)]] {
            assert_eq!(Maglev::new(servers, 101).server(7), None);
        }
    }

    #[test]
    fn a_hash_finds_every_entry_evenly() {
        let table = Maglev::new(&servers(&[1, 1, 1]), 101);
        let step = u64::MAX / 101;
        let found: Vec<_> = (0..101).filter_map(|entry| table.server(entry * step + step / 2)).collect();
        let expected: Vec<_> = table.entries.iter().map(|position| *position as usize).collect();
        assert_eq!(found, expected);
        assert_eq!(table.server(u64::MAX), expected.last().copied());
    }

    /// A change of these would move every client of every installation.
    #[test]
    fn tables_are_the_same_in_every_version() {
        let table = Maglev::new(&[(1, 1), (2, 2), (3, 1)], 23);
        assert_eq!(*table.entries, [2, 0, 1, 0, 1, 1, 2, 1, 1, 1, 0, 0, 0, 1, 2, 2, 1, 1, 1, 0, 1, 2, 1]);
    }

    /// What a server takes with it when it goes, and what else moves: of ten servers, a tenth, and little more.
    #[test]
    fn little_moves_beside_what_must() {
        let weights = [1; 10];
        let before = Maglev::new(&servers(&weights), SIZE);
        for gone in 0..weights.len() {
            let mut without = weights;
            without[gone] = 0;
            let after = Maglev::new(&servers(&without), SIZE);
            let others = before.entries.iter().zip(&after.entries).filter(|(old, _)| **old as usize != gone);
            let moved = others.filter(|(old, new)| old != new).count();
            assert!(moved * 100 < SIZE as usize * 3, "{moved} of {SIZE} moved without need");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn shares_are_even_to_one_entry(count in 1usize..60) {
            let shares = shares(&Maglev::new(&servers(&vec![3; count]), 5003), count);
            let (least, most) = (shares.iter().min(), shares.iter().max());
            prop_assert!(most.zip(least).is_some_and(|(most, least)| most - least <= 1), "{shares:?}");
        }

        #[test]
        fn shares_follow_the_weights(weights in vec(0u32..20, 1..20)) {
            prop_assume!(weights.iter().any(|weight| *weight > 0));
            let total = f64::from(weights.iter().sum::<u32>());
            let shares = shares(&Maglev::new(&servers(&weights), 5003), weights.len());
            for (share, weight) in shares.iter().zip(&weights) {
                let expected = 5003.0 * f64::from(*weight) / total;
                // A turn of each, which the last round may have cut short.
                prop_assert!((f64::from(*share) - expected).abs() <= weights.len() as f64, "{shares:?}");
            }
        }

        #[test]
        fn the_order_does_not_matter(weights in vec(0u32..5, 1..10), hashes in vec(any::<u64>(), 20)) {
            let forward = servers(&weights);
            let reversed: Vec<_> = forward.iter().rev().copied().collect();
            let (one, other) = (Maglev::new(&forward, 1009), Maglev::new(&reversed, 1009));
            for hash in hashes {
                let name = |position: Option<usize>, servers: &[(u64, u32)]| position.map(|at| servers[at]);
                prop_assert_eq!(name(one.server(hash), &forward), name(other.server(hash), &reversed));
            }
        }

        /// A twentieth is far above what was measured for any of these; a table by position would move nearly all.
        #[test]
        fn a_server_that_goes_moves_few_others(weights in vec(1u32..4, 2..20), gone in 0usize..20) {
            let gone = gone % weights.len();
            let mut without = weights.clone();
            without[gone] = 0;
            let (before, after) = (Maglev::new(&servers(&weights), SIZE), Maglev::new(&servers(&without), SIZE));
            let others = before.entries.iter().zip(&after.entries).filter(|(old, _)| **old as usize != gone);
            let moved = others.filter(|(old, new)| old != new).count();
            prop_assert!(moved * 20 < SIZE as usize, "{moved} of {SIZE}");
        }
    }
}

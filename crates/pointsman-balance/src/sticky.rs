//! Which server a client stays with, computed and not remembered: the same on every node.

use std::cmp::Ordering;
use std::hash::Hasher;

use siphasher::sip::{SipHasher13, SipHasher24};

/// Hashes what clients are known by. The key keeps them from choosing their server.
#[derive(Clone, Debug)]
pub struct StickyHash {
    hasher: SipHasher24,
}

impl StickyHash {
    /// A hash under this key. Nodes that share their clients share the key.
    #[must_use]
    pub fn new(key: [u8; 16]) -> StickyHash {
        StickyHash { hasher: SipHasher24::new_with_key(&key) }
    }

    /// The hash of a client's key. `salt` names the target, so that the choices inside two
    /// targets are independent.
    #[must_use]
    pub fn hash(&self, salt: &[u8], key: &[u8]) -> u64 {
        let mut hasher = self.hasher;
        // With its length in front, no salt and key run into another salt and key.
        hasher.write(&(salt.len() as u64).to_le_bytes());
        hasher.write(salt);
        hasher.write(key);
        hasher.finish()
    }
}

/// The server for a client's hash, by its position: weighted rendezvous hashing. Each server is
/// given as its identity (a hash of its name, not its position), its weight, and whether it is
/// usable; only that decides, and not the order. When a server goes, its clients spread over the
/// others by weight, and no other client moves.
pub fn rendezvous(hash: u64, servers: impl Iterator<Item = (u64, u32, bool)>) -> Option<usize> {
    servers
        .enumerate()
        .filter(|(_, (_, weight, usable))| *usable && *weight > 0)
        .map(|(position, (identity, weight, _))| (score(hash, identity, weight), identity, position))
        .max_by(compare)
        .map(|(_, _, position)| position)
}

/// Equal scores are as good as impossible, but if they come, every node must choose alike.
fn compare(a: &(f64, u64, usize), b: &(f64, u64, usize)) -> Ordering {
    a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)).then(b.2.cmp(&a.2))
}

/// `-weight / ln(u)` for a `u` between 0 and 1 that depends on client and server: the highest
/// score falls to each server with a probability in proportion to its weight.
fn score(hash: u64, identity: u64, weight: u32) -> f64 {
    let mut hasher = SipHasher13::new_with_keys(hash, 0);
    hasher.write(&identity.to_le_bytes());
    // The upper 53 bits fill a float's mantissa; the half keeps `u` away from both 0 and 1.
    let u = ((hasher.finish() >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
    -f64::from(weight) / u.ln()
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn server(name: usize) -> u64 {
        StickyHash::new([1; 16]).hash(b"server", &name.to_le_bytes())
    }

    #[test]
    fn salt_and_key_do_not_run_together() {
        let hash = StickyHash::new([7; 16]);
        assert_ne!(hash.hash(b"ab", b"c"), hash.hash(b"a", b"bc"));
        assert_ne!(hash.hash(b"pool", b"c"), StickyHash::new([8; 16]).hash(b"pool", b"c"));
        assert_eq!(hash.hash(b"pool", b"c"), StickyHash::new([7; 16]).hash(b"pool", b"c"));
    }

    /// A change of these numbers would move every client of every installation.
    #[test]
    fn choices_are_the_same_in_every_version() {
        let hash = StickyHash::new(*b"0123456789abcdef");
        let choices: Vec<_> = (0..16u8)
            .filter_map(|client| rendezvous(hash.hash(b"pool", &[client]), (0..4).map(|n| (n, 1, true))))
            .collect();
        assert_eq!(hash.hash(b"pool", b"client"), 2_832_798_403_333_302_344);
        assert_eq!(choices, [3, 2, 1, 1, 3, 0, 2, 0, 2, 0, 1, 0, 2, 2, 2, 3]);
    }

    #[test]
    fn shares_follow_the_weights() {
        const CLIENTS: usize = 20_000;
        let weights = [1, 2, 3, 4, 0];
        let hash = StickyHash::new([3; 16]);
        let mut counts = [0usize; 5];
        for client in 0..CLIENTS {
            let servers = weights.iter().enumerate().map(|(name, weight)| (server(name), *weight, true));
            let choice = rendezvous(hash.hash(b"pool", &client.to_le_bytes()), servers);
            counts[choice.expect("all are usable")] += 1;
        }
        for (count, weight) in counts.iter().zip(weights) {
            let expected = CLIENTS / 10 * weight as usize;
            // Six standard deviations of a fair draw of this many clients.
            assert!(count.abs_diff(expected) < 420, "{counts:?}");
        }
    }

    /// Between two, what one loses is all that moves.
    #[test]
    fn a_share_that_moves_is_all_that_moves() {
        const CLIENTS: usize = 20_000;
        let hash = StickyHash::new([5; 16]);
        let choose = |client: usize, stable: u32| {
            let targets = [(server(0), stable, true), (server(1), 10_000 - stable, true)];
            rendezvous(hash.hash(b"split", &client.to_le_bytes()), targets.into_iter())
        };
        let moves = (0..CLIENTS).map(|client| (choose(client, 9000), choose(client, 8000)));
        let moved: Vec<_> = moves.filter(|(before, after)| before != after).collect();
        assert!(moved.iter().all(|way| *way == (Some(0), Some(1))), "nobody comes back");
        // Six standard deviations of a fair draw of this many clients.
        assert!(moved.len().abs_diff(CLIENTS / 10) < 255, "{}", moved.len());
    }

    proptest! {
        /// Who moves goes to where there is relatively more than before, whatever else changes.
        #[test]
        fn clients_only_move_with_the_weights(
            hash: u64,
            before in vec(0u32..10_000, 2..6),
            after in vec(0u32..10_000, 6),
        ) {
            let choose = |weights: &[u32]| {
                let servers = weights.iter().enumerate().map(|(name, weight)| (server(name), *weight, true));
                rendezvous(hash, servers)
            };
            let after = &after[..before.len()];
            if let (Some(from), Some(to)) = (choose(&before), choose(after)) && from != to {
                let gain = |at: usize| (u64::from(after[at]), u64::from(before[at]));
                let ((to_now, to_then), (from_now, from_then)) = (gain(to), gain(from));
                prop_assert!(to_now * from_then > from_now * to_then, "{from} to {to}");
            }
        }

        #[test]
        fn when_a_server_goes_only_its_clients_move(
            hash: u64,
            weights in vec(0u32..5, 1..10),
            gone in 0usize..10,
        ) {
            let choose = |gone: Option<usize>| {
                let servers = weights.iter().enumerate();
                rendezvous(hash, servers.map(|(name, weight)| (server(name), *weight, Some(name) != gone)))
            };
            let (before, after) = (choose(None), choose(Some(gone)));
            prop_assert_ne!(after, Some(gone));
            if before != Some(gone) {
                prop_assert_eq!(before, after);
            }
        }

        #[test]
        fn the_order_of_the_servers_does_not_matter(
            hash: u64,
            servers in vec((any::<u64>(), 0u32..5, any::<bool>()), 0..10),
        ) {
            let name = |position: Option<usize>, servers: &[(u64, u32, bool)]| position.map(|p| servers[p].0);
            let forward = name(rendezvous(hash, servers.iter().copied()), &servers);
            let reversed: Vec<_> = servers.iter().rev().copied().collect();
            prop_assert_eq!(forward, name(rendezvous(hash, reversed.iter().copied()), &reversed));
        }

        #[test]
        fn only_usable_servers_are_chosen_and_one_if_there_is_one(
            hash: u64,
            servers in vec((any::<u64>(), 0u32..3, any::<bool>()), 0..6),
        ) {
            let fits = |(_, weight, usable): (u64, u32, bool)| usable && weight > 0;
            match rendezvous(hash, servers.iter().copied()) {
                Some(position) => prop_assert!(fits(servers[position])),
                None => prop_assert!(!servers.into_iter().any(fits)),
            }
        }
    }
}

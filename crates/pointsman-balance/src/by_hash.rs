//! Which server a client's hash belongs to, and where it goes when that one is full.

use std::sync::Arc;

use crate::{Maglev, rendezvous};

/// How a client's hash finds its server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HashMethod {
    /// The server with the highest score for this client: nobody else moves when one goes.
    #[default]
    Rendezvous,
    /// A table: one look-up, however many servers there are.
    Maglev,
}

impl HashMethod {
    /// All of them, for suggestions and documentation.
    pub const ALL: [HashMethod; 2] = [HashMethod::Rendezvous, HashMethod::Maglev];

    /// The name a configuration gives it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            HashMethod::Rendezvous => "rendezvous",
            HashMethod::Maglev => "maglev",
        }
    }

    /// The method of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<HashMethod> {
        HashMethod::ALL.into_iter().find(|method| method.name() == name)
    }
}

/// How much more than its share of all requests in flight a server may have, in percent of that share: at least 100.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadFactor(pub u32);

impl LoadFactor {
    /// How many requests a server of this weight may have, where all servers together have `in_flight` and the weight
    /// `total`, and one more request comes. All servers together have room for that.
    #[must_use]
    pub fn room(self, in_flight: u64, weight: u32, total: u64) -> u64 {
        let share = u128::from(self.0) * (u128::from(in_flight) + 1) * u128::from(weight);
        u64::try_from(share.div_ceil(100 * u128::from(total.max(1)))).unwrap_or(u64::MAX)
    }
}

/// A server, to whoever looks for one by a hash.
#[derive(Clone, Copy, Debug)]
pub struct Hashed {
    /// A hash of its name.
    pub identity: u64,
    /// Its weight; 0 where it may not be used now.
    pub weight: u32,
}

/// Finds servers by hashes.
#[derive(Clone, Debug, Default)]
pub struct ByHash {
    /// Of all servers, in the order that they are given in; without it the method is rendezvous hashing.
    pub table: Option<Arc<Maglev>>,
    /// Consistent hashing with bounded loads (Mirrokni and others, 2018), if a server may not have much more than others.
    pub load_factor: Option<LoadFactor>,
}

impl ByHash {
    /// The server for a client's hash, by its position below `count`. Where that may not be used, or has more requests
    /// than its room, the client goes on to the next one in its own order, which is that of its scores in rendezvous
    /// hashing.
    #[must_use]
    pub fn pick(
        &self,
        hash: u64,
        count: usize,
        server: impl Fn(usize) -> Hashed,
        in_flight: impl Fn(usize) -> u32,
    ) -> Option<usize> {
        let by_table = self.table.as_ref().and_then(|table| table.server(hash));
        let by_table = by_table.filter(|first| *first < count && server(*first).weight > 0);
        let by_score = |takes: &dyn Fn(usize, u32) -> bool| {
            let servers = (0..count).map(|at| (at, server(at)));
            rendezvous(
                hash,
                servers.map(|(at, Hashed { identity, weight })| (identity, weight, takes(at, weight))),
            )
        };
        let first = by_table.or_else(|| by_score(&|_, _| true))?;
        let Some(load_factor) = self.load_factor else { return Some(first) };
        let usable = (0..count).map(|at| (at, server(at).weight)).filter(|(_, weight)| *weight > 0);
        let (all, total) = usable.fold((0, 0), |(all, total), (at, weight)| {
            (all + u64::from(in_flight(at)), total + u64::from(weight))
        });
        let takes = |at: usize, weight| u64::from(in_flight(at)) < load_factor.room(all, weight, total);
        if takes(first, server(first).weight) {
            return Some(first);
        }
        // Other threads may have filled them all since they were counted.
        by_score(&takes).or(Some(first))
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::StickyHash;

    fn by(method: HashMethod, weights: &[u32], load_factor: Option<u32>) -> ByHash {
        let server = server(weights);
        let servers: Vec<_> = (0..weights.len()).map(|at| (server(at).identity, server(at).weight)).collect();
        let table = (method == HashMethod::Maglev).then(|| Arc::new(Maglev::new(&servers, 1009)));
        ByHash { table, load_factor: load_factor.map(LoadFactor) }
    }

    fn server(weights: &[u32]) -> impl Fn(usize) -> Hashed {
        let identity = |name: usize| StickyHash::new([1; 16]).hash(b"server", &name.to_le_bytes());
        move |at| Hashed { identity: identity(at), weight: weights[at] }
    }

    fn client(number: usize) -> u64 {
        StickyHash::new([2; 16]).hash(b"pool", &number.to_le_bytes())
    }

    #[test]
    fn names_are_read_back() {
        for method in HashMethod::ALL {
            assert_eq!(HashMethod::from_name(method.name()), Some(method));
        }
        assert_eq!(HashMethod::from_name("ring"), None);
    }

    #[test]
    fn room_is_a_share_rounded_up() {
        for (percent, in_flight, weight, total, room) in
            [(125, 0, 1, 4, 1), (125, 7, 1, 4, 3), (100, 7, 1, 4, 2), (100, 8, 1, 4, 3), (150, 9, 2, 3, 10)]
        {
            assert_eq!(
                LoadFactor(percent).room(in_flight, weight, total),
                room,
                "{percent} % of {in_flight}"
            );
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// The definition: nobody has more than the factor times its share, rounded up, whoever comes.
        #[test]
        fn loads_are_bounded(
            weights in vec(0u32..4, 1..8),
            percent in 100u32..300,
            method in proptest::sample::select(&HashMethod::ALL[..]),
            clients in vec(0usize..5, 1..200),
        ) {
            let by_hash = by(method, &weights, Some(percent));
            let total: u64 = weights.iter().map(|weight| u64::from(*weight)).sum();
            let mut in_flight = vec![0u32; weights.len()];
            for (come, number) in clients.iter().enumerate() {
                let picked = by_hash.pick(client(*number), weights.len(), server(&weights), |at| in_flight[at]);
                let Some(picked) = picked else {
                    prop_assert_eq!(total, 0);
                    return Ok(());
                };
                in_flight[picked] += 1;
                let share = f64::from(percent) / 100.0 * (come as f64 + 1.0) * f64::from(weights[picked]) / total as f64;
                prop_assert!(f64::from(in_flight[picked]) < share + 1.0, "{in_flight:?}");
            }
        }

        /// Who finds room at the first server stays there, whatever the others have.
        #[test]
        fn room_is_all_that_moves_a_client(
            weights in vec(1u32..4, 1..8),
            in_flight in vec(0u32..20, 8),
            method in proptest::sample::select(&HashMethod::ALL[..]),
            number in 0usize..1000,
        ) {
            let load = |at: usize| in_flight[at];
            let own = by(method, &weights, None).pick(client(number), weights.len(), server(&weights), load);
            let picked = by(method, &weights, Some(125)).pick(client(number), weights.len(), server(&weights), load);
            let (own, picked) = (own.expect("all are usable"), picked.expect("all are usable"));
            let all = (0..weights.len()).map(|at| u64::from(in_flight[at])).sum();
            let total = weights.iter().map(|weight| u64::from(*weight)).sum();
            let has_room = |at: usize| u64::from(in_flight[at]) < LoadFactor(125).room(all, weights[at], total);
            prop_assert!(has_room(picked));
            prop_assert_eq!(own == picked, has_room(own));
        }

        /// When servers go, only their clients move, and what is left gets them by weight.
        #[test]
        fn only_the_clients_of_unusable_servers_move(
            weights in vec(0u32..4, 1..8),
            down in vec(any::<bool>(), 8),
            method in proptest::sample::select(&HashMethod::ALL[..]),
            number in 0usize..1000,
        ) {
            let by_hash = by(method, &weights, None);
            let left: Vec<_> = weights.iter().zip(&down).map(|(weight, down)| if *down { 0 } else { *weight }).collect();
            let before = by_hash.pick(client(number), weights.len(), server(&weights), |_| 0);
            let after = by_hash.pick(client(number), left.len(), server(&left), |_| 0);
            prop_assert_eq!(after.is_some(), left.iter().any(|weight| *weight > 0));
            if let Some(before) = before.filter(|before| left[*before] > 0) {
                prop_assert_eq!(after, Some(before));
            }
            prop_assert!(after.is_none_or(|after| left[after] > 0));
        }
    }
}

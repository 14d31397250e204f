//! Picks the server of a request that is not sticky.

use std::cmp::Ordering;

use crate::Algorithm;

/// The picks of one thread in one pool. Each thread has its own, so that a pick takes no lock.
///
/// A server of weight 0 is never picked, whatever the algorithm.
#[derive(Debug)]
pub struct Picker {
    algorithm: Algorithm,
    count: usize,
    /// What each server bore at the last pick by weight.
    loads: Box<[u64]>,
    rotation: Rotation,
    shares: Shares,
}

impl Picker {
    /// A picker for servers of these weights, as long as nobody changes them. `thread` numbers the threads from 0: each starts
    /// at another place, so that few requests on many threads spread over all servers too.
    #[must_use]
    pub fn new(algorithm: Algorithm, weights: &[u32], thread: usize) -> Picker {
        let mut shares = Shares { credits: vec![0; weights.len()].into() };
        // The first picks of threads 0, 1, 2, … together are then the sequence itself.
        for _ in 0..position_in_cycle(weights, thread) {
            shares.pick(|index| weights[index]);
        }
        Picker {
            algorithm,
            count: weights.len(),
            loads: vec![0; weights.len()].into(),
            rotation: Rotation { next: thread.checked_rem(weights.len()).unwrap_or(0) },
            shares,
        }
    }

    /// The server for one request, by its position; nothing if none is usable.
    ///
    /// `load` says what a server bears: how many requests it has, and under [`Algorithm::LeastTime`] what one more
    /// would cost ([`crate::ResponseTime::cost`]). It is asked where the algorithm compares servers, once about each
    /// of those compared. `weight` is 0 for a server that may not be used now, and may be asked about one more than once. `random` serves those that draw.
    pub fn pick(
        &mut self,
        load: impl Fn(usize) -> u64,
        weight: impl Fn(usize) -> u32,
        random: u64,
    ) -> Option<usize> {
        let Picker { algorithm, count, loads, rotation, shares } = self;
        let count = *count;
        let candidate = |index: usize| weight(index) > 0;
        match algorithm {
            Algorithm::RoundRobin => rotation.pick_first(count, candidate),
            Algorithm::WeightedRoundRobin => shares.pick(weight),
            Algorithm::LeastConnections => rotation.pick_least(count, candidate, load),
            Algorithm::WeightedLeastConnections => {
                let known = (0..).zip(&mut *loads).filter(|(index, _)| candidate(*index));
                known.for_each(|(index, known)| *known = load(index));
                pick_least_for_weight(shares, loads, weight)
            }
            Algorithm::RandomTwoChoices => pick_of_two(count, candidate, load, random),
            Algorithm::LeastTime => {
                // Between two looks at it a server may have become one that cannot be used.
                let ratio = |index: usize| Ratio { load: load(index), weight: weight(index).max(1) };
                pick_of_two(count, candidate, ratio, random)
            }
        }
    }
}

/// Servers in turn.
#[derive(Debug)]
struct Rotation {
    next: usize,
}

impl Rotation {
    fn pick_first(&mut self, count: usize, candidate: impl Fn(usize) -> bool) -> Option<usize> {
        let picked = self.turn(count).find(|index| candidate(*index));
        self.advance(picked)
    }

    /// Of several with the least load, the one whose turn it is: otherwise the first server
    /// would get every request of a pool that is seldom busy.
    fn pick_least(
        &mut self,
        count: usize,
        candidate: impl Fn(usize) -> bool,
        load: impl Fn(usize) -> u64,
    ) -> Option<usize> {
        let picked = self.turn(count).filter(|index| candidate(*index)).min_by_key(|index| load(*index));
        self.advance(picked)
    }

    fn turn(&self, count: usize) -> impl Iterator<Item = usize> + use<> {
        (self.next.min(count)..count).chain(0..self.next.min(count))
    }

    fn advance(&mut self, picked: Option<usize>) -> Option<usize> {
        if let Some(picked) = picked {
            self.next = picked + 1;
        }
        picked
    }
}

/// Servers as often as their weights say, spread evenly: the smooth weighted round robin known
/// from nginx. With every pick each candidate gains its weight, and the one that has gained most
/// is picked and pays for all.
#[derive(Debug)]
struct Shares {
    /// What each server has gained and not yet spent.
    credits: Box<[i64]>,
}

impl Shares {
    fn pick(&mut self, weight: impl Fn(usize) -> u32) -> Option<usize> {
        let mut total = 0;
        let mut picked: Option<usize> = None;
        for index in 0..self.credits.len() {
            let weight = i64::from(weight(index));
            if weight == 0 {
                continue;
            }
            self.credits[index] += weight;
            total += weight;
            if picked.is_none_or(|picked| self.credits[index] > self.credits[picked]) {
                picked = Some(index);
            }
        }
        let picked = picked?;
        self.credits[picked] -= total;
        Some(picked)
    }
}

/// How far into the sequence of picks a thread starts; the sequence repeats once every server
/// has had its weight, in lowest terms.
fn position_in_cycle(weights: &[u32], thread: usize) -> u64 {
    let divisor = weights.iter().fold(0, |divisor, weight| greatest_common_divisor(divisor, *weight));
    let cycle: u64 = weights.iter().map(|weight| u64::from(weight.checked_div(divisor).unwrap_or(0))).sum();
    (thread as u64).checked_rem(cycle).unwrap_or(0)
}

fn greatest_common_divisor(a: u32, b: u32) -> u32 {
    match b {
        0 => a,
        _ => greatest_common_divisor(b, a % b),
    }
}

/// The least requests in flight for its weight. Several servers that are equally busy, as all are
/// in a pool that is idle, share by weight.
fn pick_least_for_weight(shares: &mut Shares, loads: &[u64], weight: impl Fn(usize) -> u32) -> Option<usize> {
    let ratio =
        |index: usize| Some(Ratio { load: loads[index], weight: weight(index) }).filter(|r| r.weight > 0);
    let least = (0..loads.len()).filter_map(ratio).min()?;
    let is_least = |index: usize| ratio(index).is_some_and(|ratio| ratio <= least);
    shares.pick(|index| if is_least(index) { weight(index) } else { 0 })
}

/// What a server bears for its weight, which is not 0.
struct Ratio {
    load: u64,
    weight: u32,
}

impl Ord for Ratio {
    fn cmp(&self, other: &Ratio) -> Ordering {
        let product = |load, weight| u128::from(load) * u128::from(weight);
        product(self.load, other.weight).cmp(&product(other.load, self.weight))
    }
}

impl PartialOrd for Ratio {
    fn partial_cmp(&self, other: &Ratio) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Ratio {
    fn eq(&self, other: &Ratio) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Ratio {}

/// Two different candidates, each pair as likely as any other, and the one of them that bears less.
fn pick_of_two<L: Ord>(
    count: usize,
    candidate: impl Fn(usize) -> bool,
    load: impl Fn(usize) -> L,
    random: u64,
) -> Option<usize> {
    let candidates = || (0..count).filter(|index| candidate(*index));
    let number = candidates().count();
    let [low, high] = [random & u64::from(u32::MAX), random >> 32];
    let first = scale(high, number);
    let distance = scale(low, number.saturating_sub(1));
    let second = (first + 1 + distance) % number.max(1);
    // A server may have become unusable since it was counted.
    let nth = |position: usize| candidates().nth(position).or_else(|| candidates().next());
    let (first, second) = (nth(first)?, nth(second)?);
    Some(if load(second) < load(first) { second } else { first })
}

/// Maps 32 random bits to a number below `bound`, evenly for any bound that a pool can have.
fn scale(random: u64, bound: usize) -> usize {
    ((u128::from(random) * bound as u128) >> 32) as usize
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    const IDLE: fn(usize) -> u64 = |_| 0;
    const EVEN: fn(usize) -> u32 = |_| 1;

    fn busy(in_flight: &[u32]) -> impl Fn(usize) -> u64 {
        move |index| u64::from(in_flight[index])
    }

    fn of(weights: &[u32]) -> impl Fn(usize) -> u32 {
        move |index| weights[index]
    }

    fn sequence(picker: &mut Picker, weights: &[u32], picks: usize) -> Vec<usize> {
        (0..picks).map(|_| picker.pick(IDLE, of(weights), 0).expect("all are usable")).collect()
    }

    fn counts(picks: &[usize], servers: usize) -> Vec<u64> {
        let mut counts = vec![0; servers];
        picks.iter().for_each(|index| counts[*index] += 1);
        counts
    }

    #[test]
    fn smooth_as_in_the_textbook() {
        let mut picker = Picker::new(Algorithm::WeightedRoundRobin, &[5, 1, 1], 0);
        assert_eq!(sequence(&mut picker, &[5, 1, 1], 14), [0, 0, 1, 0, 2, 0, 0, 0, 0, 1, 0, 2, 0, 0]);
    }

    #[test]
    fn the_first_picks_of_many_threads_are_the_sequence_itself() {
        let first = |thread| {
            let mut picker = Picker::new(Algorithm::WeightedRoundRobin, &[5, 1, 1], thread);
            sequence(&mut picker, &[5, 1, 1], 1)[0]
        };
        assert_eq!((0..7).map(first).collect::<Vec<_>>(), [0, 0, 1, 0, 2, 0, 0]);
    }

    #[test]
    fn an_idle_pool_shares_evenly_or_by_weight() {
        for (algorithm, expected) in
            [(Algorithm::LeastConnections, [4, 4, 4]), (Algorithm::WeightedLeastConnections, [6, 4, 2])]
        {
            let mut picker = Picker::new(algorithm, &[3, 2, 1], 0);
            assert_eq!(counts(&sequence(&mut picker, &[3, 2, 1], 12), 3), expected, "{algorithm}");
        }
    }

    #[test]
    fn a_pool_without_servers_picks_none() {
        for algorithm in Algorithm::ALL {
            let mut picker = Picker::new(algorithm, &[], 3);
            assert_eq!(picker.pick(IDLE, |_| 0, 7), None, "{algorithm}");
            let mut picker = Picker::new(algorithm, &[0, 0], 3);
            assert_eq!(picker.pick(IDLE, |_| 0, 7), None, "{algorithm}");
        }
    }

    #[test]
    fn huge_weights_do_not_overflow() {
        let mut picker = Picker::new(Algorithm::WeightedRoundRobin, &[u32::MAX; 3], usize::MAX);
        assert_eq!(counts(&sequence(&mut picker, &[u32::MAX; 3], 300), 3), [100; 3]);
    }

    #[test]
    fn two_choices_reach_every_pair() {
        let mut picker = Picker::new(Algorithm::RandomTwoChoices, &[1; 4], 0);
        let picks: Vec<_> =
            (0..4096u64).filter_map(|step| picker.pick(IDLE, EVEN, step << 52 | (step & 63) << 26)).collect();
        assert_eq!(counts(&picks, 4), [1024; 4]);
        let picks: Vec<_> = (0..4096u64)
            .filter_map(|step| picker.pick(busy(&[5, 4, 3, 2]), EVEN, step << 52 | (step & 63) << 26))
            .collect();
        let counts = counts(&picks, 4);
        assert!(counts.is_sorted() && counts[0] == 0 && counts[3] > 2000, "{counts:?}");
    }

    /// What a server has, and whether it may be used.
    fn pools() -> impl Strategy<Value = (Vec<u32>, Vec<u32>, Vec<bool>)> {
        (1usize..8)
            .prop_flat_map(|count| (vec(0u32..5, count), vec(0u32..6, count), vec(any::<bool>(), count)))
    }

    proptest! {
        #[test]
        fn only_usable_servers_are_picked_and_one_if_there_is_one(
            (weights, in_flight, usable) in pools(),
            algorithm in proptest::sample::select(&Algorithm::ALL[..]),
            thread in 0usize..20,
            randoms in vec(any::<u64>(), 1..20),
        ) {
            let mut picker = Picker::new(algorithm, &weights, thread);
            let weight = |index: usize| if usable[index] { weights[index] } else { 0 };
            let candidate = |index: usize| weight(index) > 0;
            for random in randoms {
                match picker.pick(busy(&in_flight), weight, random) {
                    Some(picked) => prop_assert!(candidate(picked)),
                    None => prop_assert!(!(0..weights.len()).any(candidate)),
                }
            }
        }

        #[test]
        fn round_robin_is_exact(usable in vec(any::<bool>(), 1..9), thread in 0usize..20, rounds in 1usize..5) {
            let mut picker = Picker::new(Algorithm::RoundRobin, &vec![1; usable.len()], thread);
            let number = usable.iter().filter(|usable| **usable).count();
            let picks: Vec<_> =
                (0..number * rounds).filter_map(|_| picker.pick(IDLE, |index| usable[index].into(), 0)).collect();
            let expected: Vec<_> = usable.iter().map(|usable| if *usable { rounds as u64 } else { 0 }).collect();
            prop_assert_eq!(counts(&picks, usable.len()), expected);
        }

        #[test]
        fn weights_are_exact_in_each_cycle_and_nobody_runs_ahead(
            weights in vec(1u32..7, 1..6),
            thread in 0usize..40,
        ) {
            let total = u64::from(weights.iter().sum::<u32>());
            let mut picker = Picker::new(Algorithm::WeightedRoundRobin, &weights, thread);
            let picks = sequence(&mut picker, &weights, 2 * total as usize);
            for cycle in picks.windows(total as usize) {
                let expected: Vec<_> = weights.iter().map(|weight| u64::from(*weight)).collect();
                prop_assert_eq!(counts(cycle, weights.len()), expected);
            }
            let from_start = Picker::new(Algorithm::WeightedRoundRobin, &weights, 0);
            let picks = sequence(&mut { from_start }, &weights, total as usize);
            for length in 1..=picks.len() {
                for (count, weight) in counts(&picks[..length], weights.len()).iter().zip(&weights) {
                    // Less than one whole pick above its share of the picks so far.
                    prop_assert!(count * total < length as u64 * u64::from(*weight) + total);
                }
            }
        }

        #[test]
        fn least_connections_pick_a_least(
            (weights, in_flight, usable) in pools(),
            weighted: bool,
            picks in 1usize..20,
        ) {
            let mut in_flight = in_flight;
            let algorithm =
                if weighted { Algorithm::WeightedLeastConnections } else { Algorithm::LeastConnections };
            let mut picker = Picker::new(algorithm, &weights, 0);
            for _ in 0..picks {
                let weight = |index: usize| if usable[index] { weights[index] } else { 0 };
                let Some(picked) = picker.pick(busy(&in_flight), weight, 0) else {
                    break;
                };
                let load = |index: usize| {
                    f64::from(in_flight[index]) / if weighted { f64::from(weights[index]) } else { 1.0 }
                };
                let candidates = (0..weights.len()).filter(|index| usable[*index] && weights[*index] > 0);
                let least = candidates.map(load).fold(f64::INFINITY, f64::min);
                prop_assert!((load(picked) - least).abs() < 1e-9);
                in_flight[picked] += 1;
            }
        }

        #[test]
        fn the_worse_of_two_is_never_picked(in_flight in vec(0u32..4, 2..8), random: u64) {
            let mut picker = Picker::new(Algorithm::RandomTwoChoices, &vec![1; in_flight.len()], 0);
            let picked = picker.pick(busy(&in_flight), EVEN, random).expect("all are usable");
            // One server is busier than the picked one, or as busy: the other choice.
            let others = (0..in_flight.len()).filter(|index| *index != picked);
            prop_assert!(others.clone().any(|index| in_flight[index] >= in_flight[picked]));
            let mut pair = Picker::new(Algorithm::RandomTwoChoices, &[1, 1], 0);
            let picked = pair.pick(busy(&in_flight), EVEN, random).expect("both are usable");
            prop_assert_eq!(in_flight[picked], in_flight[0].min(in_flight[1]));
        }

        #[test]
        fn of_two_the_one_that_answers_first_for_its_weight_is_picked(
            costs in vec(0u64..1 << 60, 2),
            weights in vec(1u32..1000, 2),
            random: u64,
        ) {
            let mut picker = Picker::new(Algorithm::LeastTime, &weights, 0);
            let picked = picker.pick(|index| costs[index], of(&weights), random).expect("both are usable");
            let other = 1 - picked;
            let product = |cost: usize, weight: usize| u128::from(costs[cost]) * u128::from(weights[weight]);
            prop_assert!(product(picked, other) <= product(other, picked));
        }
    }
}

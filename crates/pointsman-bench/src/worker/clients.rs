//! Which clients of a closed loop are a thread's. Those that share a connection are of one thread.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::Assignment;
use crate::clock::SECOND_NS;

/// How many of all clients the thread `index` of `threads` has: threads take groups of `streams` clients in turns, of which
/// the last may be smaller.
pub(super) fn of_thread(all: usize, streams: usize, (index, threads): (usize, usize)) -> usize {
    (index * streams..all).step_by(threads * streams).map(|first| streams.min(all - first)).sum()
}

/// Which of all clients a thread's client is.
fn number(client: usize, streams: usize, (index, threads): (usize, usize)) -> usize {
    (client / streams * threads + index) * streams + client % streams
}

/// When each client of a thread first asks: one after another, within the first tenth of a second where nothing is said.
pub(super) fn to_come(given: &Assignment, clients: usize) -> BinaryHeap<Reverse<(u64, u32)>> {
    let (streams, place) = (given.plan.streams as usize, (given.index, given.threads));
    let after_ns = |client: usize| match given.plan.delay {
        Some(delay) => delay.as_nanos() as u64 * number(client, streams, place) as u64,
        None => SECOND_NS / 10 * client as u64 / clients as u64,
    };
    (0..clients).map(|client| Reverse((given.timeline.begin_ns + after_ns(client), client as u32))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_client_is_of_one_thread_and_shares_as_many_connections_as_are_needed() {
        for all in [1_usize, 7, 24, 100, 101] {
            for streams in [1_usize, 3, 10, 200] {
                for threads in [1, 2, 3, 8] {
                    let (mut numbers, mut connections) = (Vec::new(), 0);
                    for index in 0..threads {
                        let clients = of_thread(all, streams, (index, threads));
                        connections += clients.div_ceil(streams);
                        numbers.extend((0..clients).map(|client| number(client, streams, (index, threads))));
                    }
                    numbers.sort_unstable();
                    assert_eq!(numbers, Vec::from_iter(0..all), "{all} {streams} {threads}");
                    assert_eq!(connections, all.div_ceil(streams), "{all} {streams} {threads}");
                }
            }
        }
    }
}

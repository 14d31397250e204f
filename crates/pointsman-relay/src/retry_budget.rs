//! What the requests of a pool may make of further tries, as all threads together make them.
//!
//! Each thread counts its own requests. A try that is to follow a failed one adds them up, and writes what all read:
//! only failures pay for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pointsman_balance::{RETRY_WINDOW_S, RetryBudget, SecondCount};
use pointsman_config::PoolLimits;
use pointsman_net::Clock;
use pointsman_telemetry::{ByThread, OwnLines};

use crate::pool_state::PoolState;

/// A word for each second that is looked back at.
type Window = OwnLines<[AtomicU64; RETRY_WINDOW_S]>;

/// What was counted of a pool.
#[derive(Debug)]
pub(crate) struct RetryCounts {
    requests: ByThread<Window>,
    retries: Window,
}

/// A thread's part in it, and what the pool says.
#[derive(Debug)]
pub(crate) struct Retries {
    pool: Arc<PoolState>,
    thread: usize,
    budget: RetryBudget,
}

impl RetryCounts {
    /// For so many threads, to begin with.
    pub(crate) fn new(threads: usize) -> RetryCounts {
        RetryCounts { requests: ByThread::new(threads), retries: Window::default() }
    }
}

impl Retries {
    /// For the thread of that number, and for no other: its counts have one writer. `None`: the pool tries once.
    pub(crate) fn of_pool(limits: &PoolLimits, pool: Arc<PoolState>, thread: usize) -> Option<Retries> {
        let PoolLimits { retries_percent_max, retries_per_second_min, .. } = *limits;
        let budget = RetryBudget { percent_max: retries_percent_max, per_second_min: retries_per_second_min };
        (limits.tries_max > 1).then_some(Retries { pool, thread, budget })
    }

    /// Counts a request.
    #[inline]
    pub(crate) fn asked(&self, clock: Clock) {
        let now_s = seconds(clock);
        let word = &self.pool.retries.requests.of(self.thread)[SecondCount::place(now_s)];
        let count = SecondCount::from_bits(word.load(Ordering::Relaxed));
        word.store(count.with_one(now_s).bits(), Ordering::Relaxed);
    }

    /// Takes one further try of what is left. False where nothing is.
    pub(crate) fn take(&self, clock: Clock) -> bool {
        let now_s = seconds(clock);
        let RetryCounts { requests, retries } = &self.pool.retries;
        let asked = requests.iter().map(|window| sum(window, now_s)).sum();
        let word = &retries[SecondCount::place(now_s)];
        // Whoever takes one in this second changes this word: of two at once the second one looks again.
        let mut known = word.load(Ordering::Relaxed);
        loop {
            if !self.budget.allows(asked, sum(retries, now_s)) {
                return false;
            }
            let more = SecondCount::from_bits(known).with_one(now_s).bits();
            match word.compare_exchange(known, more, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(now) => known = now,
            }
        }
    }
}

fn seconds(clock: Clock) -> u64 {
    clock.round_us() / 1_000_000
}

fn sum(window: &Window, now_s: u64) -> u64 {
    window.iter().map(|word| SecondCount::from_bits(word.load(Ordering::Relaxed)).still(now_s)).sum()
}

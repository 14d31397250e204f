//! How long a server takes to answer, as all threads together have seen it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pointsman_balance::ResponseTime;
use pointsman_net::Clock;
use pointsman_telemetry::OwnLines;

/// What a try that failed counts for, at the least: a server that refuses at once must not look like a fast one.
const FAILED_US_MIN: u64 = 1_000_000;

/// One word that every thread writes: only pools that balance by it pay for it.
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedResponseTime(Arc<OwnLines<AtomicU64>>);

impl SharedResponseTime {
    /// What one more request beside those in flight would cost there.
    pub(crate) fn cost(&self, in_flight: u32, clock: Clock) -> u64 {
        // The round's time: a cost to compare by need not be exact.
        ResponseTime::from_bits(self.0.load(Ordering::Relaxed)).cost(in_flight, clock.round_us() / 1000)
    }

    /// An answer to what was sent at `since_us` has begun.
    pub(crate) fn answered(&self, since_us: u64, clock: Clock) {
        let now_us = clock.now_us();
        self.add(now_us.saturating_sub(since_us), now_us);
    }

    /// What was tried at `since_us` came to nothing.
    pub(crate) fn failed(&self, since_us: u64, clock: Clock) {
        let now_us = clock.now_us();
        self.add(now_us.saturating_sub(since_us).max(FAILED_US_MIN), now_us);
    }

    fn add(&self, took_us: u64, now_us: u64) {
        let with = |bits| ResponseTime::from_bits(bits).with(took_us, now_us / 1000).bits();
        self.0.update(Ordering::Relaxed, Ordering::Relaxed, with);
    }
}

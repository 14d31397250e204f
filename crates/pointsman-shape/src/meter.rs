//! A bucket of bytes as one number: when it will be full again.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

const SECOND_NS: u128 = 1_000_000_000;

/// How a bucket fills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fill {
    pub(crate) bytes_per_second: u64,
    /// How long an empty one takes to be full.
    pub(crate) depth_ns: u64,
}

impl Fill {
    pub(crate) fn new(bytes_per_second: u64, burst_bytes: u64) -> Fill {
        let bytes_per_second = bytes_per_second.max(1);
        Fill { bytes_per_second, depth_ns: ns(burst_bytes, bytes_per_second) }
    }

    /// The same with so many quarters of the room.
    pub(crate) fn quarters(self, quarters: u64) -> Fill {
        Fill { depth_ns: self.depth_ns / 4 * quarters, ..self }
    }

    /// How long so many bytes take to come. Rounded up: what is given is never more than the rate.
    pub(crate) fn cost_ns(self, bytes: u32) -> u64 {
        let cost = (u128::from(bytes) * SECOND_NS).div_ceil(u128::from(self.bytes_per_second));
        u64::try_from(cost).unwrap_or(u64::MAX)
    }
}

fn ns(bytes: u64, bytes_per_second: u64) -> u64 {
    u64::try_from(u128::from(bytes) * SECOND_NS / u128::from(bytes_per_second)).unwrap_or(u64::MAX)
}

/// What was taken of a bucket, by all threads.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    full_ns: AtomicU64,
    /// By which rate `full_ns` was reckoned last.
    bytes_per_second: AtomicU64,
}

impl Meter {
    /// What is lacking stays so many bytes when the rate changes.
    pub(crate) fn retune(&self, fill: Fill, now_ns: u64) {
        let old = self.bytes_per_second.swap(fill.bytes_per_second, Relaxed);
        if old == 0 || old == fill.bytes_per_second {
            return;
        }
        self.update(|full_ns| {
            let debt = u128::from(full_ns.saturating_sub(now_ns)) * u128::from(old);
            let debt_ns = u64::try_from(debt / u128::from(fill.bytes_per_second)).unwrap_or(u64::MAX);
            now_ns.saturating_add(debt_ns.min(fill.depth_ns))
        });
    }

    /// Takes so many nanoseconds' worth, where all of it is there.
    pub(crate) fn take(&self, fill: Fill, cost_ns: u64, now_ns: u64) -> Result<(), u64> {
        let full_at_most_ns = now_ns.saturating_add(fill.depth_ns);
        let after = |full_ns: u64| full_ns.max(now_ns).saturating_add(cost_ns);
        let taken = self.full_ns.fetch_update(Relaxed, Relaxed, |full_ns| {
            let after_ns = after(full_ns);
            (after_ns <= full_at_most_ns).then_some(after_ns)
        });
        taken.map(drop).map_err(|full_ns| after(full_ns) - full_at_most_ns)
    }

    /// What [`Meter::take`] would say, without taking.
    pub(crate) fn look(&self, fill: Fill, cost_ns: u64, now_ns: u64) -> Result<(), u64> {
        let after_ns = self.full_ns.load(Relaxed).max(now_ns).saturating_add(cost_ns);
        match after_ns.checked_sub(now_ns.saturating_add(fill.depth_ns)) {
            None | Some(0) => Ok(()),
            Some(wait_ns) => Err(wait_ns),
        }
    }

    /// Takes what is there or not.
    pub(crate) fn owe(&self, cost_ns: u64, now_ns: u64) {
        self.update(|full_ns| full_ns.max(now_ns).saturating_add(cost_ns));
    }

    pub(crate) fn give_back(&self, cost_ns: u64) {
        self.update(|full_ns| full_ns.saturating_sub(cost_ns));
    }

    fn update(&self, change: impl Fn(u64) -> u64) {
        // It is never refused.
        let (Ok(_) | Err(_)) = self.full_ns.fetch_update(Relaxed, Relaxed, |full_ns| Some(change(full_ns)));
    }
}

//! A sample of the times between one request's beginning and the next one's.

use serde::{Deserialize, Serialize};

/// So many are kept of a thread, more than half of it: enough for a test, and too few for differences that do not matter.
const GAPS_MAX: usize = 1_000;

/// Gaps in the order in which they came: at first each, later every second, every fourth and so on, so that they are
/// spread over the whole time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gaps {
    gaps_ns: Vec<u64>,
    last_ns: Option<u64>,
    seen: u64,
    stride: u64,
}

impl Default for Gaps {
    fn default() -> Gaps {
        Gaps { gaps_ns: Vec::new(), last_ns: None, seen: 0, stride: 1 }
    }
}

impl Gaps {
    /// One begins now.
    #[inline]
    pub(crate) fn saw(&mut self, now_ns: u64) {
        let Some(last_ns) = self.last_ns.replace(now_ns) else { return };
        self.seen += 1;
        if !self.seen.is_multiple_of(self.stride) {
            return;
        }
        if self.gaps_ns.len() >= GAPS_MAX {
            let mut place = 0;
            self.gaps_ns.retain(|_| {
                place += 1;
                place % 2 == 0
            });
            self.stride *= 2;
        }
        self.gaps_ns.push(now_ns.saturating_sub(last_ns));
    }

    /// Another thread's beside these: each has arrivals of its own, at the same rate.
    pub(crate) fn merge(&mut self, other: Gaps) {
        self.gaps_ns.extend(other.gaps_ns);
    }

    /// At most a thousand of them, evenly taken, in nanoseconds.
    pub fn sample(&self) -> Vec<f64> {
        let step = self.gaps_ns.len().div_ceil(GAPS_MAX).max(1);
        self.gaps_ns.iter().step_by(step).map(|gap| *gap as f64).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_spread_over_the_whole_time() {
        let mut gaps = Gaps::default();
        for at in 0..100_000_u64 {
            // Each gap is longer than the one before, so that it says where it comes from.
            gaps.saw(at * (at + 1) / 2);
        }
        let sample = gaps.sample();
        assert!((500..=1_000).contains(&sample.len()), "{}", sample.len());
        assert!(sample.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(sample[0] < 500.0 && sample[sample.len() - 1] > 99_000.0, "{sample:?}");
        gaps.merge(gaps.clone());
        assert!(gaps.sample().len() <= 1_000);
        assert!(Gaps::default().sample().is_empty());
    }
}

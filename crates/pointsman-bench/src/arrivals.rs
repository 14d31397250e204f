//! When requests of an open loop are due.

use crate::clock::SECOND_NS;
use crate::plan::Arrivals;

/// An endless row of times. Those of several threads together are what one thread would have alone.
#[derive(Debug)]
pub(crate) struct Schedule {
    arrivals: Arrivals,
    /// Between two arrivals of this thread, in the mean.
    gap_ns: f64,
    /// In fractions of nanoseconds, so that high rates are kept.
    next_ns: f64,
    /// Nothing is due before it is known.
    begin_ns: u64,
    random: fastrand::Rng,
}

impl Schedule {
    /// The arrivals of thread `index` of so many, at `rate` a second for all of them, from when they begin.
    pub(crate) fn new(
        arrivals: Arrivals,
        rate: f64,
        (index, threads): (usize, usize),
        seed: u64,
    ) -> Schedule {
        let gap_ns = SECOND_NS as f64 * threads as f64 / rate;
        let random = fastrand::Rng::with_seed(seed);
        let mut schedule = Schedule { arrivals, gap_ns, next_ns: 0.0, begin_ns: u64::MAX, random };
        schedule.next_ns = match arrivals {
            // Threads take turns.
            Arrivals::Uniform => gap_ns * index as f64 / threads as f64,
            Arrivals::Poisson => exponential(&mut schedule.random, gap_ns),
        };
        schedule
    }

    /// The first one may be due then.
    pub(crate) fn begin_at(&mut self, begin_ns: u64) {
        self.begin_ns = begin_ns;
    }

    /// When the next one is due.
    pub(crate) fn due_ns(&self) -> u64 {
        self.begin_ns.saturating_add(self.next_ns as u64)
    }

    /// On to the one behind it.
    pub(crate) fn advance(&mut self) {
        self.next_ns += match self.arrivals {
            Arrivals::Uniform => self.gap_ns,
            Arrivals::Poisson => exponential(&mut self.random, self.gap_ns),
        };
    }
}

/// A draw from the exponential distribution with this mean.
pub(crate) fn exponential(random: &mut fastrand::Rng, mean: f64) -> f64 {
    // 1 - x, because x may be 0 and is never 1.
    -(1.0 - random.f64()).ln() * mean
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dues(arrivals: Arrivals, rate: f64, threads: usize, seconds: u64) -> Vec<u64> {
        let mut all = Vec::new();
        for index in 0..threads {
            let mut schedule = Schedule::new(arrivals, rate, (index, threads), index as u64 + 1);
            schedule.begin_at(0);
            while schedule.due_ns() < seconds * SECOND_NS {
                all.push(schedule.due_ns());
                schedule.advance();
            }
        }
        all.sort_unstable();
        all
    }

    #[test]
    fn uniform_arrivals_of_threads_are_evenly_apart() {
        for threads in [1, 4] {
            let dues = dues(Arrivals::Uniform, 4000.0, threads, 2);
            assert_eq!(dues.len(), 8000, "{threads}");
            assert!(dues.windows(2).all(|pair| (249_999..=250_001).contains(&(pair[1] - pair[0]))));
        }
    }

    #[test]
    fn poisson_arrivals_have_the_rate_and_gaps_as_spread_as_their_mean() {
        for threads in [1, 4] {
            let dues = dues(Arrivals::Poisson, 10_000.0, threads, 20);
            let gaps: Vec<f64> = dues.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
            let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
            let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
            // 200,000 draws: both are known to well under 1 %.
            assert!((mean / 100_000.0 - 1.0).abs() < 0.01, "{threads}: {mean}");
            assert!((variance.sqrt() / mean - 1.0).abs() < 0.02, "{threads}: {}", variance.sqrt() / mean);
        }
    }
}

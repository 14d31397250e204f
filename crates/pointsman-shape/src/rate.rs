//! A rate, and a bucket of tokens that fills at it.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering};

/// So many in a time, and so many of them at once.
///
/// It is the generic cell rate algorithm (GCRA, ITU-T I.371): of a bucket one number is kept, when it is full again. One
/// taken puts that off by the time in which one comes. What is taken in a time `t`, wherever it begins, is at most the
/// burst and what comes in `t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// In which one token comes, rounded up: never is more given than was asked for.
    interval_ns: u64,
    /// In which an empty bucket fills.
    fill_ns: u64,
}

/// How long it takes until the next token has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Wait {
    /// At least one.
    pub ns: u64,
}

impl Wait {
    /// In whole seconds, rounded up.
    #[must_use]
    pub fn seconds(self) -> u64 {
        self.ns.div_ceil(1_000_000_000)
    }
}

impl Rate {
    /// `count` in `period_ns`, of which `burst` at once.
    #[must_use]
    pub fn new(count: NonZeroU32, period_ns: u64, burst: NonZeroU32) -> Rate {
        let interval_ns = period_ns.div_ceil(u64::from(count.get()));
        Rate { interval_ns, fill_ns: interval_ns.saturating_mul(u64::from(burst.get())) }
    }

    /// Takes one token at `now_ns` from a bucket that is full again at `full_ns`: when it is then, or how long there
    /// is none.
    ///
    /// # Errors
    /// The bucket is empty.
    #[inline]
    pub fn take(&self, full_ns: u64, now_ns: u64) -> Result<u64, Wait> {
        let full_again_ns = full_ns.max(now_ns).saturating_add(self.interval_ns);
        match (full_again_ns - now_ns).checked_sub(self.fill_ns) {
            None | Some(0) => Ok(full_again_ns),
            Some(ns) => Err(Wait { ns }),
        }
    }
}

/// A bucket that threads share. It is full at first.
#[derive(Debug, Default)]
pub struct Bucket {
    /// When it is full again, in nanoseconds.
    pub(crate) full_ns: AtomicU64,
}

impl Bucket {
    /// Takes a token, or says how long there is none.
    ///
    /// # Errors
    /// The bucket is empty.
    pub fn take(&self, rate: Rate, now_ns: u64) -> Result<(), Wait> {
        let mut full_ns = self.full_ns.load(Ordering::Relaxed);
        loop {
            let taken_ns = rate.take(full_ns, now_ns)?;
            match self.full_ns.compare_exchange_weak(full_ns, taken_ns, Ordering::Relaxed, Ordering::Relaxed)
            {
                Ok(_) => return Ok(()),
                // Another thread was faster.
                Err(now) => full_ns = now,
            }
        }
    }

    /// What [`Bucket::take`] would say, without taking.
    ///
    /// # Errors
    /// The bucket is empty.
    pub fn look(&self, rate: Rate, now_ns: u64) -> Result<(), Wait> {
        rate.take(self.full_ns.load(Ordering::Relaxed), now_ns).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    fn rate(count: u32, period_ns: u64, burst: u32) -> Rate {
        Rate::new(NonZeroU32::new(count).expect("some"), period_ns, NonZeroU32::new(burst).expect("some"))
    }

    /// Tokens as the word says: nanoseconds of filling, so that nothing is rounded.
    struct Tokens {
        held_ns: u64,
        at_ns: u64,
    }

    impl Tokens {
        fn take(&mut self, rate: Rate, now_ns: u64) -> bool {
            self.held_ns = (self.held_ns + (now_ns - self.at_ns)).min(rate.fill_ns);
            self.at_ns = now_ns;
            let has_one = self.held_ns >= rate.interval_ns;
            self.held_ns -= if has_one { rate.interval_ns } else { 0 };
            has_one
        }
    }

    #[test]
    fn a_bucket_gives_its_burst_and_then_its_rate() {
        let (rate, bucket) = (rate(2, SECOND_NS, 3), Bucket::default());
        let start_ns = 5 * SECOND_NS;
        for _ in 0..3 {
            assert_eq!(bucket.take(rate, start_ns), Ok(()));
        }
        assert_eq!(bucket.take(rate, start_ns), Err(Wait { ns: SECOND_NS / 2 }));
        assert_eq!(bucket.look(rate, start_ns + SECOND_NS / 2), Ok(()));
        assert_eq!(bucket.take(rate, start_ns + SECOND_NS / 2), Ok(()));
        assert_eq!(bucket.take(rate, start_ns + SECOND_NS / 2 + 1).map_err(Wait::seconds), Err(1));
        for _ in 0..3 {
            assert_eq!(bucket.take(rate, start_ns + 60 * SECOND_NS), Ok(()), "it is full, and no fuller");
        }
        assert!(bucket.take(rate, start_ns + 60 * SECOND_NS).is_err());
    }

    /// Whatever threads do at once, the burst is the burst.
    #[test]
    fn threads_share_a_bucket() {
        let (rate, bucket) = (rate(1, 60 * SECOND_NS, 1000), Bucket::default());
        let taken = std::thread::scope(|scope| {
            let take = || (0..500).filter(|_| bucket.take(rate, 1).is_ok()).count();
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(take)).collect();
            threads.into_iter().map(|thread| thread.join().expect("it does not panic")).sum::<usize>()
        });
        assert_eq!(taken, 1000);
    }

    fn rates() -> impl Strategy<Value = Rate> {
        (1u32..2000, prop_oneof![Just(SECOND_NS), Just(60 * SECOND_NS), 1u64..5000], 1u32..50)
            .prop_map(|(count, period_ns, burst)| rate(count, period_ns, burst))
    }

    /// When somebody asks: with pauses of all sizes.
    fn pauses() -> impl Strategy<Value = Vec<u64>> {
        vec(
            prop_oneof![3 => Just(0), 3 => 0u64..1000, 3 => 0u64..SECOND_NS, 1 => 0u64..100 * SECOND_NS],
            1..200,
        )
    }

    proptest! {
        /// Never more than burst and rate times time, in any window.
        #[test]
        fn no_window_has_more(rate in rates(), pauses in pauses()) {
            let (bucket, mut now_ns, mut taken) = (Bucket::default(), 0, Vec::new());
            for pause_ns in pauses {
                now_ns += pause_ns;
                if bucket.take(rate, now_ns).is_ok() {
                    taken.push(now_ns);
                }
            }
            let burst = rate.fill_ns / rate.interval_ns;
            for (first, from_ns) in taken.iter().enumerate() {
                for (count, to_ns) in (1..).zip(&taken[first..]) {
                    prop_assert!(count <= burst + (to_ns - from_ns) / rate.interval_ns);
                }
            }
        }

        /// And never less: it is a bucket of tokens.
        #[test]
        fn it_is_a_bucket_of_tokens(rate in rates(), pauses in pauses()) {
            let (bucket, mut now_ns) = (Bucket::default(), 0);
            let mut tokens = Tokens { held_ns: rate.fill_ns, at_ns: 0 };
            for pause_ns in pauses {
                now_ns += pause_ns;
                let seen = bucket.look(rate, now_ns);
                let taken = bucket.take(rate, now_ns);
                prop_assert_eq!(taken, seen);
                prop_assert_eq!(taken.is_ok(), tokens.take(rate, now_ns));
                if let Err(wait) = taken {
                    prop_assert!(bucket.look(rate, now_ns + wait.ns - 1).is_err());
                    prop_assert_eq!(bucket.look(rate, now_ns + wait.ns), Ok(()));
                }
            }
        }

        /// Nothing overflows, whatever was asked for.
        #[test]
        fn extremes(count: u32, period_ns: u64, burst: u32, full_ns: u64, now_ns: u64) {
            let rate = rate(count.max(1), period_ns, burst.max(1));
            match rate.take(full_ns, now_ns) {
                Ok(full_again_ns) => prop_assert!(full_again_ns >= now_ns),
                Err(wait) => prop_assert!(wait.ns > 0),
            }
        }
    }
}

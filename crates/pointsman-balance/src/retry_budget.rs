//! How many further tries the requests of a pool may make: a part of the requests of the last seconds, and a few
//! besides. What fails must not become more work by that.

/// So many seconds are looked back at, the one that runs among them.
pub const RETRY_WINDOW_S: usize = 10;

/// What a pool says of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryBudget {
    /// Further tries, in percent of the requests.
    pub percent_max: u32,
    /// Those that there may be besides, for each second, however few the requests are.
    pub per_second_min: u32,
}

impl RetryBudget {
    /// Whether one more may follow, where there were so many of both in the last [`RETRY_WINDOW_S`] seconds.
    #[must_use]
    pub fn allows(self, requests: u64, retries: u64) -> bool {
        let besides = u128::from(self.per_second_min) * RETRY_WINDOW_S as u128;
        u128::from(retries) < besides + u128::from(requests) * u128::from(self.percent_max) / 100
    }
}

/// How many of something were in one second: one word, which threads can read and exchange without a lock.
///
/// A window of them is [`RETRY_WINDOW_S`] words, of which each serves again when its second has left the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SecondCount(u64);

impl SecondCount {
    /// What [`SecondCount::bits`] gave; 0 is none.
    #[must_use]
    pub const fn from_bits(bits: u64) -> SecondCount {
        SecondCount(bits)
    }

    /// As one word.
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// Which word of a window a second has.
    #[must_use]
    pub const fn place(second: u64) -> usize {
        (second % RETRY_WINDOW_S as u64) as usize
    }

    /// With one more, in the second that runs.
    #[must_use]
    pub fn with_one(self, now_s: u64) -> SecondCount {
        let count = if self.second() == now_s as u32 { (self.0 as u32).saturating_add(1) } else { 1 };
        SecondCount(u64::from(now_s as u32) << 32 | u64::from(count))
    }

    /// How many they were, as long as their second is in the window.
    #[must_use]
    pub fn still(self, now_s: u64) -> u64 {
        // A thread whose clock was read a moment ago may see a second that has not begun.
        let age_s = (now_s as u32).saturating_sub(self.second());
        if (age_s as usize) < RETRY_WINDOW_S { u64::from(self.0 as u32) } else { 0 }
    }

    fn second(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// A window, as threads keep one.
    #[derive(Default)]
    struct Window([SecondCount; RETRY_WINDOW_S]);

    impl Window {
        fn add(&mut self, now_s: u64) {
            let word = &mut self.0[SecondCount::place(now_s)];
            *word = SecondCount::from_bits(word.with_one(now_s).bits());
        }

        fn sum(&self, now_s: u64) -> u64 {
            self.0.iter().map(|word| word.still(now_s)).sum()
        }
    }

    #[test]
    fn a_part_and_a_few_besides() {
        let budget = RetryBudget { percent_max: 20, per_second_min: 1 };
        for (requests, retries, allowed) in
            [(0, 9, true), (0, 10, false), (4, 10, false), (5, 10, true), (5, 11, false), (100, 29, true)]
        {
            assert_eq!(budget.allows(requests, retries), allowed, "{retries} of {requests}");
        }
        let none = RetryBudget { percent_max: 0, per_second_min: 0 };
        assert!(!none.allows(u64::MAX, 0));
        let huge = RetryBudget { percent_max: u32::MAX, per_second_min: u32::MAX };
        assert!(huge.allows(u64::MAX, u64::MAX));
    }

    #[test]
    fn a_second_counts_for_as_long_as_it_is_in_the_window() {
        let count = SecondCount::default().with_one(100).with_one(100);
        let still = [99, 100, 109, 110, 10_000].map(|now_s| count.still(now_s));
        assert_eq!(still, [2, 2, 2, 0, 0]);
        assert_eq!(count.with_one(110).still(110), 1, "it serves another second");
    }

    proptest! {
        /// The definition, of a list of all that ever was: of the last ten seconds there are never more tries than it
        /// says, and no try is kept from anybody that it leaves.
        #[test]
        fn it_is_what_a_list_of_all_says(
            percent_max in 0u32..200,
            per_second_min in 0u32..3,
            steps in vec((0u64..40, any::<bool>()), 1..300),
        ) {
            let budget = RetryBudget { percent_max, per_second_min };
            let (mut requests, mut retries) = (Window::default(), Window::default());
            let (mut all_requests, mut all_retries) = (Vec::new(), Vec::new());
            let mut now_ds = 0;
            for (pause_ds, fails) in steps {
                now_ds += if pause_ds < 30 { pause_ds / 10 } else { pause_ds };
                let now_s = now_ds / 10;
                requests.add(now_s);
                all_requests.push(now_s);
                let of_window = |all: &[u64]| {
                    all.iter().filter(|then| now_s - **then < RETRY_WINDOW_S as u64).count() as u64
                };
                let (asked, again) = (of_window(&all_requests), of_window(&all_retries));
                prop_assert_eq!((requests.sum(now_s), retries.sum(now_s)), (asked, again));
                if !fails {
                    continue;
                }
                let most = asked * u64::from(percent_max) / 100 + u64::from(per_second_min) * 10;
                let allowed = budget.allows(requests.sum(now_s), retries.sum(now_s));
                prop_assert_eq!(allowed, again < most);
                if allowed {
                    retries.add(now_s);
                    all_retries.push(now_s);
                }
            }
        }
    }
}

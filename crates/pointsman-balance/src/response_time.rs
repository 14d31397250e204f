//! How long a server takes to answer: an average that follows a peak at once, and forgets it slowly.

/// After so long without an answer a time counts for 1/e of what it was.
const DECAY_MS: f64 = 10_000.0;

/// What a server is taken for that has requests in flight and has never answered one.
const UNKNOWN_US: u32 = 1_000_000;

/// The peak-sensitive moving average of Finagle, which Linkerd took over. It is one word, so that threads can share it
/// without a lock: its upper half are microseconds, its lower half is when that was, in milliseconds that go round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResponseTime(u64);

impl ResponseTime {
    /// What [`ResponseTime::bits`] gave; 0 is a server that has never answered.
    #[must_use]
    pub const fn from_bits(bits: u64) -> ResponseTime {
        ResponseTime(bits)
    }

    /// As one word.
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// With an answer that took so long. A time above the average becomes the average; one below draws it down the
    /// more, the longer ago the last answer was.
    #[must_use]
    pub fn with(self, took_us: u64, now_ms: u64) -> ResponseTime {
        let took_us = u32::try_from(took_us).unwrap_or(u32::MAX).max(1);
        let average_us = match self.average_us() {
            None => took_us,
            Some(average_us) if took_us >= average_us => took_us,
            Some(average_us) => {
                let kept = self.kept(now_ms);
                let us = f64::from(average_us) * kept + f64::from(took_us) * (1.0 - kept);
                // Up: an average that is rounded down each time would fall below all that it is made of.
                us.ceil() as u32
            }
        };
        ResponseTime(u64::from(average_us) << 32 | u64::from(now_ms as u32))
    }

    /// What one more request there would cost, in microseconds: the average, as far as it still counts, for each
    /// request in flight and for this one. A server that has never answered is tried by one request at once, and is
    /// taken for a slow one while that is on its way.
    #[must_use]
    pub fn cost(self, in_flight: u32, now_ms: u64) -> u64 {
        let expected_us = match self.average_us() {
            Some(average_us) => (f64::from(average_us) * self.kept(now_ms)).ceil() as u32,
            None if in_flight == 0 => 0,
            None => UNKNOWN_US,
        };
        u64::from(expected_us) * (u64::from(in_flight) + 1)
    }

    fn average_us(self) -> Option<u32> {
        Some((self.0 >> 32) as u32).filter(|us| *us > 0)
    }

    /// How much of it still counts. A thread whose clock was read a moment before another's sees no time pass.
    fn kept(self, now_ms: u64) -> f64 {
        let age_ms = (now_ms as u32).wrapping_sub(self.0 as u32).cast_signed().max(0);
        (-f64::from(age_ms) / DECAY_MS).exp()
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_peak_counts_at_once_and_is_forgotten_slowly() {
        let slow = ResponseTime::default().with(1000, 0).with(50_000, 1);
        let costs = [1, 10_001, 20_001, 100_001].map(|now_ms| slow.cost(0, now_ms));
        assert_eq!(costs, [50_000, 18_394, 6767, 3]);
        // An answer as fast as before, ten seconds later.
        assert_eq!(slow.with(1000, 10_001).cost(0, 10_001), 19_027);
    }

    #[test]
    fn who_has_never_answered_is_tried_by_one_request() {
        let unknown = ResponseTime::default();
        assert_eq!([0, 1, 2].map(|in_flight| unknown.cost(in_flight, 5)), [0, 2_000_000, 3_000_000]);
    }

    #[test]
    fn milliseconds_go_round() {
        let before = u64::from(u32::MAX);
        let time = ResponseTime::default().with(1000, before);
        assert_eq!(time.cost(0, before + 10_000), 368);
        assert_eq!(time.cost(0, before - 5), 1000, "a clock that is behind");
    }

    /// The definition, in plain numbers.
    fn defined(answers: &[(u32, u32)]) -> (f64, u32) {
        let mut state: Option<(f64, u32)> = None;
        let mut now_ms = 0;
        for (took_us, later_ms) in answers {
            now_ms += later_ms;
            let took = f64::from(*took_us);
            let average = match state {
                Some((average, _)) if took < average => {
                    let kept = (-f64::from(*later_ms) / 10_000.0).exp();
                    average * kept + took * (1.0 - kept)
                }
                _ => took,
            };
            state = Some((average, now_ms));
        }
        state.expect("there are answers")
    }

    proptest! {
        #[test]
        fn it_is_what_the_definition_says(answers in vec((1u32..10_000_000, 0u32..30_000), 1..30)) {
            let mut now_ms = 0;
            let mut time = ResponseTime::default();
            for (took_us, later_ms) in &answers {
                now_ms += u64::from(*later_ms);
                time = time.with(u64::from(*took_us), now_ms);
            }
            let (average, _) = defined(&answers);
            let cost = time.cost(0, now_ms) as f64;
            // A microsecond for each rounding up.
            prop_assert!(cost >= average - 1e-3 && cost <= average + 30.0, "{cost} is not {average}");
            let longest = answers.iter().map(|(took_us, _)| *took_us).max().unwrap_or_default();
            let shortest = answers.iter().map(|(took_us, _)| *took_us).min().unwrap_or_default();
            prop_assert!((u64::from(shortest)..=u64::from(longest)).contains(&time.cost(0, now_ms)));
            prop_assert_eq!(time.cost(4, now_ms), 5 * time.cost(0, now_ms));
        }

        #[test]
        fn the_cost_falls_while_nobody_answers(took_us in 1u64..1_000_000, ages_ms in vec(0u64..1_000_000, 2..9)) {
            let time = ResponseTime::default().with(took_us, 0);
            let mut ages_ms = ages_ms;
            ages_ms.sort_unstable();
            prop_assert!(ages_ms.is_sorted_by_key(|age_ms| std::cmp::Reverse(time.cost(0, *age_ms))));
        }
    }
}

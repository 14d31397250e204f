//! Whether requests go to a server where others have failed: a circuit breaker, as a value of 64 bits that threads can
//! exchange without a lock.
//!
//! Closed, it counts failures in a row. After too many it opens: the server is ejected for a while. Then it is half open:
//! one request is let through on trial. If that passes it closes, otherwise it opens again, for longer.

/// When a breaker opens, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakerLimits {
    /// Failures in a row that open it.
    pub failures_max: u32,
    /// How long it is open the first time, and by how much longer each time that follows soon.
    pub open_ms: u32,
    /// How long it is open at most.
    pub open_ms_max: u32,
}

/// The breaker of one server. Times are in milliseconds on a clock that begins at 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Breaker {
    /// Open until then; the end of a trial that nobody has told of, or of the last time that it was open.
    until_ms: u64,
    /// How often it has opened in a row.
    times: u8,
    /// Whether what comes next is a trial.
    is_on_trial: bool,
    /// In a row.
    failures: u16,
}

const UNTIL_BITS: u32 = 39;

impl Breaker {
    /// As one number, for an atomic.
    #[must_use]
    pub fn to_bits(self) -> u64 {
        let until_ms = self.until_ms.min((1 << UNTIL_BITS) - 1);
        until_ms << 25
            | u64::from(self.times) << 17
            | u64::from(self.is_on_trial) << 16
            | u64::from(self.failures)
    }

    /// What [`Breaker::to_bits`] gave.
    #[must_use]
    pub fn of_bits(bits: u64) -> Breaker {
        Breaker {
            until_ms: bits >> 25,
            times: (bits >> 17) as u8,
            is_on_trial: bits >> 16 & 1 == 1,
            failures: bits as u16,
        }
    }

    /// Whether everything may pass.
    #[must_use]
    pub fn is_closed(self) -> bool {
        !self.is_on_trial
    }

    /// Whether nothing may pass.
    #[must_use]
    pub fn is_open(self, now_ms: u64) -> bool {
        self.is_on_trial && now_ms < self.until_ms
    }

    /// Whether what passes next is a trial.
    #[must_use]
    pub fn is_half_open(self, now_ms: u64) -> bool {
        self.is_on_trial && now_ms >= self.until_ms
    }

    /// Whether nothing speaks against the server, so that a request that passes changes nothing.
    #[must_use]
    pub fn is_at_rest(self) -> bool {
        self.failures == 0
    }

    /// Begins a trial, for nobody else until it has been told of, or its time is over. `None`: there is none to begin.
    #[must_use]
    pub fn try_out(self, now_ms: u64, limits: BreakerLimits) -> Option<Breaker> {
        let until_ms = now_ms + u64::from(limits.open_ms);
        self.is_half_open(now_ms).then_some(Breaker { until_ms, ..self })
    }

    /// A request has failed, which was a trial or was none. Says whether the breaker opens.
    #[must_use]
    pub fn failed(self, is_trial: bool, now_ms: u64, limits: BreakerLimits) -> (Breaker, bool) {
        if self.is_on_trial {
            return if is_trial { (self.opened(now_ms, limits), true) } else { (self, false) };
        }
        let failures = self.failures.saturating_add(1);
        if u32::from(failures) < limits.failures_max {
            return (Breaker { failures, ..self }, false);
        }
        (self.opened(now_ms, limits), true)
    }

    /// A request has passed, which was a trial or was none. What began before the breaker opened closes it not.
    #[must_use]
    pub fn passed(self, is_trial: bool, now_ms: u64) -> Breaker {
        match (self.is_on_trial, is_trial) {
            (true, true) => {
                Breaker { until_ms: now_ms.min(self.until_ms), is_on_trial: false, failures: 0, ..self }
            }
            (true, false) => self,
            (false, _) => Breaker { failures: 0, ..self },
        }
    }

    /// It opens, for longer where it was open not long ago: less than it was open then.
    fn opened(self, now_ms: u64, limits: BreakerLimits) -> Breaker {
        let open_ms =
            |times: u8| (u64::from(limits.open_ms) * u64::from(times)).min(limits.open_ms_max.into());
        let rest_ms = now_ms.saturating_sub(self.until_ms);
        let is_soon = self.is_on_trial || rest_ms < open_ms(self.times);
        let times = if is_soon { self.times.saturating_add(1) } else { 1 };
        Breaker { until_ms: now_ms + open_ms(times), times, is_on_trial: true, failures: 0 }
    }
}

/// How many of so many servers may be ejected at a time.
#[must_use]
pub fn ejected_max(servers: usize, percent_max: u32) -> usize {
    servers * percent_max.min(100) as usize / 100
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    const LIMITS: BreakerLimits = BreakerLimits { failures_max: 3, open_ms: 100, open_ms_max: 250 };

    fn fail(breaker: &mut Breaker, is_trial: bool, now_ms: u64) -> bool {
        let (next, opens) = breaker.failed(is_trial, now_ms, LIMITS);
        *breaker = next;
        opens
    }

    #[test]
    fn a_life_of_a_breaker() {
        let mut breaker = Breaker::default();
        assert_eq!([1, 2, 3].map(|now| fail(&mut breaker, false, now)), [false, false, true]);
        assert!(breaker.is_open(102) && breaker.is_half_open(103));
        // Stragglers change nothing.
        assert!(!fail(&mut breaker, false, 50));
        assert_eq!(breaker.passed(false, 50), breaker);
        // One trial at a time; one that is never told of gives way.
        let tried = breaker.try_out(103, LIMITS).expect("half open");
        assert_eq!(tried.try_out(104, LIMITS), None);
        assert!(tried.try_out(203, LIMITS).is_some());
        // It fails: open for longer, each time, up to the most.
        let mut failing = tried;
        let mut spans = Vec::new();
        for now in [1000, 2000, 3000] {
            failing = failing.try_out(now, LIMITS).expect("half open");
            assert!(fail(&mut failing, true, now));
            spans.push((now..).find(|ms| failing.is_half_open(*ms)).expect("some time") - now);
        }
        assert_eq!(spans, [200, 250, 250]);
        // It passes: closed, and open again at once only after as many failures, longer because it is soon.
        let mut closed = tried.passed(true, 110);
        assert!(!closed.is_open(110) && !closed.is_half_open(110) && closed.is_at_rest());
        assert_eq!([111, 112, 113].map(|now| fail(&mut closed, false, now)), [false, false, true]);
        assert!(closed.is_open(312) && closed.is_half_open(313));
        // After a long rest it begins anew.
        let mut rested = tried.passed(true, 110);
        for now in [4998, 4999, 5000] {
            fail(&mut rested, false, now);
        }
        assert!(rested.is_open(5099) && rested.is_half_open(5100));
    }

    #[test]
    fn a_lone_server_is_ejected_only_where_all_may_be() {
        let max = |servers, percent| ejected_max(servers, percent);
        assert_eq!(
            [max(1, 50), max(1, 100), max(2, 50), max(3, 50), max(10, 10), max(9, 10)],
            [0, 1, 1, 1, 1, 0]
        );
    }

    /// What happens to a breaker.
    #[derive(Clone, Copy, Debug)]
    enum Heard {
        Passed,
        Failed,
        Trial(bool),
    }

    fn heard() -> impl Strategy<Value = (Heard, u64)> {
        let what = prop_oneof![
            Just(Heard::Passed),
            Just(Heard::Failed),
            Just(Heard::Failed),
            any::<bool>().prop_map(Heard::Trial)
        ];
        (what, 0u64..150)
    }

    proptest! {
        #[test]
        fn it_opens_only_after_failures_in_a_row_or_a_trial(steps in vec(heard(), 0..80)) {
            let (mut breaker, mut now, mut row) = (Breaker::default(), 0, 0);
            for (what, later) in steps {
                now += later;
                let was_closed = !breaker.is_open(now) && !breaker.is_half_open(now);
                match what {
                    Heard::Passed => {
                        breaker = breaker.passed(false, now);
                        row = 0;
                    }
                    Heard::Failed => {
                        row += 1;
                        let (next, opens) = breaker.failed(false, now, LIMITS);
                        prop_assert_eq!(opens, was_closed && row >= LIMITS.failures_max);
                        breaker = next;
                    }
                    Heard::Trial(passes) => {
                        let Some(trial) = breaker.try_out(now, LIMITS) else { continue };
                        prop_assert!(!was_closed && trial.is_open(now), "nobody else gets in");
                        breaker = if passes { trial.passed(true, now) } else { trial.failed(true, now, LIMITS).0 };
                        prop_assert_eq!(breaker.is_open(now), !passes);
                        row = 0;
                    }
                }
                if !was_closed {
                    row = 0;
                }
                prop_assert!(!breaker.is_open(now + u64::from(LIMITS.open_ms_max)), "never for longer");
                prop_assert_eq!(Breaker::of_bits(breaker.to_bits()), breaker);
            }
        }
    }
}

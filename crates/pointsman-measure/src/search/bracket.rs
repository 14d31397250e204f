//! The ramp and the bisection: a good and a bad load close to each other.

use super::found::{Limit, NoResult};
use super::goal::Goal;

/// The ramp's step, and how far is stepped back where a load that seemed good is not.
const STEP: f64 = 1.5;

/// What is to be done next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Next {
    /// A short trial at this rate.
    Coarse(f64),
    /// A fine trial at this rate.
    Fine(f64),
    /// The greatest good load, and what there is above it.
    Bracketed { low: f64, limit: Limit },
    /// There is no good load.
    Nothing(NoResult),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum At {
    Ramp { rate: f64, failed_once: bool },
    Judge(Judged),
    End(Next),
}

/// A load that fine trials judge.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Judged {
    rate: f64,
    role: Role,
    good: u32,
    bad: u32,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Role {
    /// Where the ramp failed.
    High,
    /// The last that it passed.
    Low,
    Middle,
}

#[derive(Clone, Debug)]
pub(super) struct Bracket {
    goal: Goal,
    at: At,
    low: Option<f64>,
    high: Option<(f64, Limit)>,
}

impl Bracket {
    pub(super) fn new(goal: &Goal) -> Self {
        let at = At::Ramp { rate: goal.rate_min, failed_once: false };
        Self { goal: goal.clone(), at, low: None, high: None }
    }

    /// Goes on above a load that was good, at the rate that is the ramp's next, or at this one.
    pub(super) fn onwards(goal: &Goal, low: f64, rate: Option<f64>) -> Self {
        let mut bracket = Self { low: Some(low), ..Self::new(goal) };
        match rate {
            Some(rate) => bracket.at = At::Ramp { rate, failed_once: false },
            None => bracket.ramp_on(low),
        }
        bracket
    }

    pub(super) fn next(&self) -> Next {
        match self.at {
            At::Ramp { rate, .. } => Next::Coarse(rate),
            At::Judge(judged) => Next::Fine(judged.rate),
            At::End(next) => next,
        }
    }

    /// What became of the trial that [`next`](Self::next) named.
    pub(super) fn saw(&mut self, passed: bool) {
        match self.at {
            At::Ramp { rate, .. } if passed => {
                self.low = Some(rate);
                if rate >= self.goal.rate_max {
                    self.judge(rate, Role::High);
                } else {
                    self.ramp_on(rate);
                }
            }
            // One failure may be a stall that does not belong to the load.
            At::Ramp { rate, failed_once: false } => self.at = At::Ramp { rate, failed_once: true },
            At::Ramp { rate, failed_once: true } => self.judge(rate, Role::High),
            At::Judge(mut judged) => {
                if passed {
                    judged.good += 1;
                } else {
                    judged.bad += 1;
                }
                match self.judgement(&judged) {
                    Some(is_good) => self.judged(judged, is_good),
                    None => self.at = At::Judge(judged),
                }
            }
            At::End(_) => {}
        }
    }

    /// The client was not in control at this rate, however often it was tried.
    pub(super) fn cannot_measure(&mut self) {
        let (At::Ramp { rate, .. } | At::Judge(Judged { rate, .. })) = self.at else { return };
        self.high = Some((rate, Limit::Client));
        if self.low.is_some_and(|low| low >= rate) {
            self.low = None;
        }
        match (self.at, self.low) {
            (_, None) if rate <= self.goal.rate_min => {
                self.at = At::End(Next::Nothing(NoResult::ClientNotInControl { rate_per_s: rate }));
            }
            (_, None) => self.step_back(rate),
            (At::Ramp { .. }, Some(low)) => self.judge(low, Role::Low),
            (_, Some(_)) => self.halve(),
        }
    }

    fn ramp_on(&mut self, rate: f64) {
        self.at = At::Ramp { rate: (rate * STEP).min(self.goal.rate_max), failed_once: false };
    }

    fn judge(&mut self, rate: f64, role: Role) {
        self.at = At::Judge(Judged { rate, role, good: 0, bad: 0 });
    }

    /// Good or bad as soon as the trials that are left to the goal's time could not change it.
    fn judgement(&self, judged: &Judged) -> Option<bool> {
        let allowed = f64::from(self.goal.goal_trials) * self.goal.exceed_ratio;
        let left = self.goal.goal_trials.saturating_sub(judged.good + judged.bad);
        if f64::from(judged.bad) > allowed {
            Some(false)
        } else if f64::from(judged.bad + left) <= allowed {
            Some(true)
        } else {
            None
        }
    }

    fn judged(&mut self, judged: Judged, is_good: bool) {
        let rate = judged.rate;
        match (judged.role, is_good) {
            (Role::High, true) if rate >= self.goal.rate_max => {
                self.at = At::End(Next::Bracketed { low: rate, limit: Limit::RateMax });
            }
            (Role::High, true) => {
                self.low = Some(rate);
                self.ramp_on(rate);
            }
            (Role::High, false) => {
                self.high = Some((rate, Limit::Server));
                match self.low.filter(|low| *low < rate) {
                    Some(low) => self.judge(low, Role::Low),
                    None => self.step_back(rate),
                }
            }
            (Role::Low | Role::Middle, true) => {
                self.low = Some(rate);
                self.halve();
            }
            (Role::Low, false) => {
                self.high = Some((rate, Limit::Server));
                self.low = None;
                self.step_back(rate);
            }
            (Role::Middle, false) => {
                self.high = Some((rate, Limit::Server));
                self.halve();
            }
        }
    }

    fn step_back(&mut self, from: f64) {
        if from <= self.goal.rate_min {
            self.at = At::End(Next::Nothing(NoResult::NothingSustained { rate_per_s: from }));
        } else {
            self.judge((from / STEP).max(self.goal.rate_min), Role::Low);
        }
    }

    fn halve(&mut self) {
        let (Some(low), Some((high, limit))) = (self.low, self.high) else { return };
        if high / low <= 1.0 + self.goal.width {
            self.at = At::End(Next::Bracketed { low, limit });
        } else {
            self.judge((low * high).sqrt(), Role::Middle);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a bracket against a server that passes as `passes` says, and an observer that sees up to `sees`.
    fn bracket(goal: &Goal, mut passes: impl FnMut(f64) -> bool, sees: f64) -> (Next, u32) {
        let mut bracket = Bracket::new(goal);
        for trials in 0..400 {
            match bracket.next() {
                Next::Coarse(rate) | Next::Fine(rate) if rate > sees => bracket.cannot_measure(),
                Next::Coarse(rate) | Next::Fine(rate) => bracket.saw(passes(rate)),
                end => return (end, trials),
            }
        }
        panic!("no end in 400 trials");
    }

    #[test]
    fn the_greatest_good_load_is_found_in_few_trials() {
        let goal = Goal::default();
        for capacity in [11.0, 37.0, 500.0, 12_345.0, 900_000.0] {
            let (end, trials) = bracket(&goal, |rate| rate <= capacity, f64::INFINITY);
            let Next::Bracketed { low, limit: Limit::Server } = end else { panic!("{end:?}") };
            assert!(low <= capacity && capacity <= low * 1.02, "{capacity}: {low}");
            assert!(trials <= 60, "{capacity}: {trials}");
        }
    }

    #[test]
    fn one_failure_in_the_ramp_is_no_limit() {
        let mut trials = 0;
        let fails_now_and_then = |rate: f64| {
            trials += 1;
            rate <= 500.0 && trials % 5 != 0
        };
        let (end, _) = bracket(&Goal::default(), fails_now_and_then, f64::INFINITY);
        assert!(matches!(end, Next::Bracketed { low, .. } if (490.0..=500.0).contains(&low)), "{end:?}");
    }

    #[test]
    fn the_ends_of_the_range_and_of_the_client() {
        let goal = Goal { rate_max: 2_000.0, ..Goal::default() };
        let (end, _) = bracket(&goal, |_| true, f64::INFINITY);
        assert_eq!(end, Next::Bracketed { low: 2_000.0, limit: Limit::RateMax });
        let (end, _) = bracket(&goal, |_| false, f64::INFINITY);
        assert_eq!(end, Next::Nothing(NoResult::NothingSustained { rate_per_s: 10.0 }));
        let (end, _) = bracket(&goal, |_| true, 300.0);
        assert!(
            matches!(end, Next::Bracketed { low, limit: Limit::Client } if low > 290.0 && low <= 300.0),
            "{end:?}"
        );
        let (end, _) = bracket(&goal, |_| true, 5.0);
        assert_eq!(end, Next::Nothing(NoResult::ClientNotInControl { rate_per_s: 10.0 }));
        // Good at first and never again.
        let mut trials = 0;
        let (end, _) = bracket(
            &goal,
            |_| {
                trials += 1;
                trials <= 6
            },
            f64::INFINITY,
        );
        assert_eq!(end, Next::Nothing(NoResult::NothingSustained { rate_per_s: 10.0 }));
    }
}

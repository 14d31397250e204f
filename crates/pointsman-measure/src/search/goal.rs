//! What a rate has to meet to be sustained, and how long may be searched.

use std::fmt;

use super::trial::{Seen, Shortfall};

/// What is searched for. [`Goal::default`] has the documented values.
#[derive(Clone, Debug, PartialEq)]
pub struct Goal {
    /// The 99th percentile of the response time, from the intended send time, in µs: 100,000.
    pub p99_us_max: u64,
    /// Failed requests by offered ones: 0.001.
    pub errors_share_max: f64,
    /// Answered by offered requests, of those that fall into the measured time: 0.99.
    pub achieved_share_min: f64,
    /// Where the ramp begins, in requests per second: 10.
    pub rate_min: f64,
    /// Where it ends at the latest: 1,000,000.
    pub rate_max: f64,
    /// What one trial leaves out at its beginning, in ms: 1,000.
    pub warm_up_ms: u64,
    /// The measured time of a trial of the ramp and the sweep, in ms: 3,000.
    pub coarse_ms: u64,
    /// The measured time of all other trials, in ms: 5,000.
    pub fine_ms: u64,
    /// How many fine trials make the time after which a load is good or bad: 3.
    pub goal_trials: u32,
    /// The share of bad trials that a good load may have: 0.5.
    pub exceed_ratio: f64,
    /// How near the greatest good and the least bad load have to come, as a share: 0.02. No interval is narrower.
    pub width: f64,
    /// Trials at most, from 100: 250.
    pub trials_max: u32,
}

impl Default for Goal {
    fn default() -> Self {
        Self {
            p99_us_max: 100_000,
            errors_share_max: 0.001,
            achieved_share_min: 0.99,
            rate_min: 10.0,
            rate_max: 1_000_000.0,
            warm_up_ms: 1_000,
            coarse_ms: 3_000,
            fine_ms: 5_000,
            goal_trials: 3,
            exceed_ratio: 0.5,
            width: 0.02,
            trials_max: 250,
        }
    }
}

/// Which part of a goal cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadGoal {
    /// `rate_min` is not above 0, or `rate_max` not above it.
    Rates,
    /// A share is not from 0 to 1.
    Share,
    /// `width` is not from 0.001 to 0.2.
    Width,
    /// A time is 0.
    Time,
    /// `trials_max` is below 100, or `goal_trials` is not from 1 to 20.
    Trials,
}

impl fmt::Display for BadGoal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Rates => "the least rate has to be above 0, and the greatest above the least",
            Self::Share => "a share has to be from 0 to 1",
            Self::Width => "the width has to be from 0.001 to 0.2",
            Self::Time => "a time has to be more than 0",
            Self::Trials => "a search has 100 trials or more, and a load is judged by 1 to 20 of them",
        })
    }
}

impl std::error::Error for BadGoal {}

impl Goal {
    pub(super) fn check(&self) -> Result<(), BadGoal> {
        let is_share = |share: f64| (0.0..=1.0).contains(&share);
        if !(self.rate_min > 0.0 && self.rate_max > self.rate_min && self.rate_max.is_finite()) {
            return Err(BadGoal::Rates);
        }
        if ![self.errors_share_max, self.achieved_share_min, self.exceed_ratio].into_iter().all(is_share) {
            return Err(BadGoal::Share);
        }
        if !(0.001..=0.2).contains(&self.width) {
            return Err(BadGoal::Width);
        }
        if self.coarse_ms == 0 || self.fine_ms == 0 {
            return Err(BadGoal::Time);
        }
        if self.trials_max < 100 || !(1..=20).contains(&self.goal_trials) {
            return Err(BadGoal::Trials);
        }
        Ok(())
    }

    /// What a trial misses of the goal, if anything. What is no number misses it.
    pub fn shortfall(&self, seen: &Seen) -> Option<Shortfall> {
        let answered = (seen.achieved_per_s + seen.edge_per_s) / seen.offered_per_s;
        if answered.is_nan() || answered < self.achieved_share_min {
            Some(Shortfall::Achieved)
        } else if seen.errors_share.is_nan() || seen.errors_share > self.errors_share_max {
            Some(Shortfall::Errors)
        } else if seen.p99_us > self.p99_us_max {
            Some(Shortfall::Latency)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::Colour;

    #[test]
    fn what_cannot_be_searched_for_is_said() {
        let check = |change: fn(&mut Goal), expected| {
            let mut goal = Goal::default();
            change(&mut goal);
            assert_eq!(goal.check(), expected);
        };
        check(|_| (), Ok(()));
        check(|goal| goal.rate_min = 0.0, Err(BadGoal::Rates));
        check(|goal| goal.rate_max = f64::NAN, Err(BadGoal::Rates));
        check(|goal| goal.exceed_ratio = 1.5, Err(BadGoal::Share));
        check(|goal| goal.width = 0.0, Err(BadGoal::Width));
        check(|goal| goal.fine_ms = 0, Err(BadGoal::Time));
        check(|goal| goal.trials_max = 99, Err(BadGoal::Trials));
    }

    #[test]
    fn what_a_trial_misses() {
        let good = Seen {
            offered_per_s: 100.0,
            achieved_per_s: 99.5,
            edge_per_s: 0.0,
            errors_share: 0.0,
            p50_us: 500,
            p90_us: 900,
            p99_us: 2_000,
            control: Colour::Green,
            is_disturbed: false,
        };
        let goal = Goal::default();
        assert_eq!(goal.shortfall(&good), None);
        assert_eq!(goal.shortfall(&Seen { achieved_per_s: 98.0, ..good }), Some(Shortfall::Achieved));
        assert_eq!(goal.shortfall(&Seen { achieved_per_s: 98.0, edge_per_s: 1.0, ..good }), None);
        assert_eq!(goal.shortfall(&Seen { achieved_per_s: f64::NAN, ..good }), Some(Shortfall::Achieved));
        assert_eq!(goal.shortfall(&Seen { errors_share: 0.01, ..good }), Some(Shortfall::Errors));
        assert_eq!(goal.shortfall(&Seen { p99_us: 100_001, ..good }), Some(Shortfall::Latency));
    }
}

//! What a search ends with.

use std::fmt;

use super::boundary::Boundary;
use super::curve::{self, CurvePoint};
use super::goal::Goal;
use super::trial::{Phase, Record};
use crate::Random;
use crate::statistics::{Interval, Knee, mean_interval};

/// What a rate ends at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Limit {
    /// The server: the figure is its.
    Server,
    /// The client was not in control above it: the server can do at least as much.
    Client,
    /// The search ended there: the server can do at least as much.
    RateMax,
}

/// A rate with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// What was answered, in requests per second.
    pub answered_per_s: Interval,
    /// At which demand, in requests per second.
    pub demanded_per_s: f64,
    /// Whose limit it is.
    pub limit: Limit,
}

/// Why there is no result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NoResult {
    /// Not even this rate meets the goal.
    NothingSustained {
        /// The least that was tried, in requests per second.
        rate_per_s: f64,
    },
    /// The client is not even in control at this rate.
    ClientNotInControl {
        /// The least that was tried, in requests per second.
        rate_per_s: f64,
    },
    /// Loads pass and fail without an order that a boundary could be found in.
    Unsteady,
    /// Loads well above the boundary pass again and again.
    Contradicted {
        /// The last boundary, in requests per second.
        rate_per_s: f64,
    },
    /// The trials were used up before.
    OutOfTrials,
}

/// The result of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct Findings {
    /// R_slo.
    pub sustained: Rate,
    /// R_knee, by Kneedle on the 90th percentile over loads up to the sustained one; None where latency does not bend.
    pub knee: Option<(Knee, Interval)>,
    /// R_peak; None where too few fresh trials counted.
    pub peak: Option<Rate>,
    /// Demanded against achieved.
    pub curve: Vec<CurvePoint>,
    /// The greatest difference between what the same load reached on the way up and down, by the sustained rate; None where no
    /// load was swept both ways.
    pub hysteresis_share: Option<f64>,
}

/// The boundary as a rate. A trial passes that leaves a little of its demand unanswered, so the truth lies between what
/// was answered and what was demanded: the interval goes from the least of the one to the most of the other.
pub(super) fn sustained(boundary: &Boundary) -> Rate {
    let Interval { estimate, low, high } = boundary.demanded;
    let answered = |rate: f64| rate * boundary.answered_share;
    Rate {
        answered_per_s: Interval { estimate: answered(estimate), low: answered(low), high },
        demanded_per_s: estimate,
        limit: Limit::Server,
    }
}

/// The rate of a load above which nothing could be measured: what was answered there is a lower bound.
pub(super) fn at_least(records: &[Record], load: f64, limit: Limit) -> Option<Rate> {
    let fine = |record: &&Record| record.trial.rate_per_s == load && record.trial.phase != Phase::Ramp;
    let at_load: Vec<&Record> = records.iter().filter(|record| record.counts()).filter(fine).collect();
    let answered: Vec<f64> = at_load.iter().map(|record| record.seen.achieved_per_s).collect();
    let mean = mean_interval(&answered)?;
    let one = at_load.iter().map(|record| curve::one_request(record)).fold(0.0, f64::max);
    let answered_per_s = mean.widened((mean.low - one).max(0.0), mean.high + one);
    Some(Rate { answered_per_s, demanded_per_s: load, limit })
}

/// The mean of the fresh trials at the load that was answered most. To its interval comes a quarter of a per cent, or one
/// request of a trial, which is what a queue that is not yet full costs; upwards twice that, by which a better load may
/// have been passed over ([`curve::SAME`]); and it reaches up to what another load was answered in enough trials.
pub(super) fn peak(records: &[Record], curve: &[CurvePoint], limit: Limit, goal: &Goal) -> Option<Rate> {
    const TRIALS_MIN: usize = 4;
    const RESOLUTION: f64 = (1.0 - curve::SAME) / 2.0;
    let of_peak = |record: &&Record| record.trial.phase == Phase::Peak;
    // Those before it were of a boundary that has been given up.
    let load = records.iter().rfind(of_peak)?.trial.rate_per_s;
    let fresh = records.iter().filter(of_peak).filter(|record| record.trial.rate_per_s == load);
    let answered: Vec<f64> =
        fresh.filter(|record| record.counts()).map(|record| record.seen.achieved_per_s).collect();
    if answered.len() < TRIALS_MIN {
        return None;
    }
    let mean = mean_interval(&answered)?;
    let more = (RESOLUTION * mean.estimate).max(1_000.0 / goal.fine_ms as f64);
    let elsewhere = curve.iter().filter(|point| point.trials as usize >= TRIALS_MIN);
    let most = elsewhere.map(|point| point.achieved_per_s.value).fold(mean.estimate, f64::max);
    let answered_per_s = mean.widened(mean.low - more, (mean.high + 2.0 * more).max(most));
    Some(Rate { answered_per_s, demanded_per_s: load, limit })
}

pub(super) fn findings(records: &[Record], goal: &Goal, sustained: Rate, random: &mut Random) -> Findings {
    let curve = curve::curve(records);
    let knee = curve::latency_knee(records, sustained.demanded_per_s, random)
        .map(|(knee, found)| (knee, up_to(found, sustained.answered_per_s)));
    Findings {
        sustained,
        knee,
        peak: peak(records, &curve, sustained.limit, goal),
        curve,
        hysteresis_share: hysteresis(records).map(|rate| rate / sustained.answered_per_s.estimate),
    }
}

/// A knee is found among demands up to that of the sustained rate, of which a little may be unanswered: it is none above what is
/// answered there, beside which it is shown.
fn up_to(found: Interval, sustained: Interval) -> Interval {
    let estimate = found.estimate.min(sustained.estimate);
    Interval { estimate, low: found.low.min(estimate), high: found.high.min(sustained.high).max(estimate) }
}

/// Each load of the sweep comes twice: first on the way up, then on the way down.
fn hysteresis(records: &[Record]) -> Option<f64> {
    let sweep: Vec<&Record> =
        records.iter().filter(|record| record.trial.phase == Phase::Sweep && record.counts()).collect();
    let pairs = sweep.iter().enumerate().filter_map(|(at, up)| {
        let down = sweep[at + 1..].iter().find(|down| down.trial.rate_per_s == up.trial.rate_per_s)?;
        // By their own demand: a Poisson process offers now more, now less.
        let share = |record: &Record| record.seen.achieved_per_s / record.seen.offered_per_s;
        Some((share(up) - share(down)).abs() * up.trial.rate_per_s)
    });
    pairs.reduce(f64::max)
}

impl fmt::Display for NoResult {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NothingSustained { rate_per_s } => write!(out, "not even {rate_per_s:.1}/s meets the goal"),
            Self::ClientNotInControl { rate_per_s } => {
                write!(out, "the client is not in control at {rate_per_s:.1}/s, the least that was tried")
            }
            Self::Unsteady => out.write_str("the same loads pass and fail: no boundary could be found"),
            Self::Contradicted { rate_per_s } => write!(
                out,
                "loads well above {rate_per_s:.1}/s, where most trials failed, pass: the server or the machine is not steady"
            ),
            Self::OutOfTrials => out.write_str("the trials were used up before a boundary was found"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::trial::counted;
    use super::*;

    /// Trials at these demands, each with what was answered of it, behind one another.
    fn swept(trials: &[(f64, f64)]) -> Vec<Record> {
        let record = |&(rate_per_s, achieved_per_s)| counted(Phase::Sweep, rate_per_s, achieved_per_s, 1_000);
        trials.iter().map(record).collect()
    }

    #[test]
    fn whether_a_server_remembers_is_known_of_loads_that_came_twice() {
        for (trials, expected) in [
            (&[][..], None),
            (&[(100.0, 100.0), (200.0, 150.0)], None),
            (&[(100.0, 100.0), (100.0, 100.0)], Some(0.0)),
            (&[(100.0, 100.0), (200.0, 200.0), (200.0, 150.0)], Some(50.0)),
            (&[(100.0, 100.0), (200.0, 200.0), (200.0, 150.0), (100.0, 20.0)], Some(80.0)),
        ] {
            assert_eq!(hysteresis(&swept(trials)), expected, "{trials:?}");
        }
    }

    #[test]
    fn no_knee_is_above_the_sustained_rate() {
        let interval = |low: f64, estimate: f64, high: f64| Interval { estimate, low, high };
        let sustained = interval(480.0, 495.0, 505.0);
        for (found, expected) in [
            (interval(300.0, 400.0, 450.0), interval(300.0, 400.0, 450.0)),
            (interval(450.0, 500.0, 500.0), interval(450.0, 495.0, 500.0)),
            (interval(499.0, 500.0, 510.0), interval(495.0, 495.0, 505.0)),
        ] {
            assert_eq!(up_to(found, sustained), expected);
        }
    }
}

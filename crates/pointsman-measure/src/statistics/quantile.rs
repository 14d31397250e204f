//! Intervals of quantiles from the order of the observations, whatever their distribution.

use super::distributions::normal_quantile;
use super::{CONFIDENCE, Interval};

/// Above this many expected on both sides the binomial is as good as normal.
const NORMAL_FROM: f64 = 1_000.0;

/// Which of the ordered observations a quantile and its interval are. The smallest has rank 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ranks {
    /// Of the quantile.
    pub estimate: u64,
    /// Of the lower bound.
    pub low: u64,
    /// Of the upper bound.
    pub high: u64,
}

/// The ranks of a quantile from 0 to 1 among `count` independent observations (Hahn, Meeker: Statistical intervals,
/// 1991, section 5.2). They can be looked up in a histogram too.
///
/// None where there are too few to bound it from both sides: p99 needs 368.
pub fn quantile_ranks(count: u64, quantile: f64) -> Option<Ranks> {
    if !(quantile > 0.0 && quantile < 1.0) {
        return None;
    }
    let tail = (1.0 - CONFIDENCE) / 2.0;
    let n = count as f64;
    let (low, high) = if n * quantile * (1.0 - quantile) > NORMAL_FROM {
        let reach = normal_quantile(1.0 - tail) * (n * quantile * (1.0 - quantile)).sqrt();
        ((n * quantile - reach).floor() as u64, (n * quantile + reach).ceil() as u64 + 1)
    } else {
        binomial_ranks(count, quantile, tail)?
    };
    let estimate = ((n * quantile).ceil() as u64).max(1);
    (low >= 1 && high <= count).then_some(Ranks { estimate, low, high })
}

/// The greatest rank that at most `tail` of all samples have above the quantile, and the least that at most `tail`
/// have below it, by the sum of the binomial.
fn binomial_ranks(count: u64, quantile: f64, tail: f64) -> Option<(u64, u64)> {
    let odds = (quantile / (1.0 - quantile)).ln();
    let mut log_chance = count as f64 * (1.0 - quantile).ln();
    let (mut below, mut low, mut high) = (0.0, 0, None);
    for successes in 0..=count {
        below += log_chance.exp();
        // P(X <= successes) is the chance that rank `successes` + 1 lies above the quantile.
        if below <= tail {
            low = successes + 1;
        }
        if below >= 1.0 - tail {
            high = Some(successes + 1);
            break;
        }
        log_chance += odds + ((count - successes) as f64 / (successes + 1) as f64).ln();
    }
    Some((low, high?))
}

/// The quantile of independent observations in ascending order, and its interval; None where [`quantile_ranks`] has
/// none. Observations that hang together need [`quantile_bootstrap`](super::quantile_bootstrap).
pub fn quantile_interval(sorted: &[f64], quantile: f64) -> Option<Interval> {
    let ranks = quantile_ranks(sorted.len() as u64, quantile)?;
    let at = |rank: u64| sorted[rank as usize - 1];
    Some(Interval { estimate: at(ranks.estimate), low: at(ranks.low), high: at(ranks.high) })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Random;

    #[test]
    fn nineteen_of_twenty_intervals_hold_the_quantile() {
        for (quantile, count) in [(0.5, 100), (0.9, 300), (0.99, 2_000)] {
            let truth = -(1.0_f64 - quantile).ln();
            let covered = (0..600)
                .filter(|seed| {
                    let mut random = Random::new(*seed);
                    let mut sample: Vec<f64> = (0..count).map(|_| random.exponential(1.0)).collect();
                    sample.sort_unstable_by(f64::total_cmp);
                    quantile_interval(&sample, quantile).is_some_and(|found| found.covers(truth))
                })
                .count();
            // Ranks are whole numbers: the intervals are a little wider than they need be.
            assert!((560..=595).contains(&covered), "{quantile}: {covered} of 600");
        }
    }

    #[test]
    fn too_few_observations_have_no_interval() {
        let least = (1..1_000).find(|count| quantile_ranks(*count, 0.99).is_some());
        assert_eq!(least, Some(368));
        assert_eq!(quantile_ranks(0, 0.5), None);
        assert_eq!(quantile_ranks(100, 1.0), None);
        assert_eq!(quantile_ranks(100, f64::NAN), None);
    }

    proptest! {
        #[test]
        fn ranks_are_in_order_and_in_range(count in 1_u64..3_000_000, quantile in 0.0001_f64..0.9999) {
            if let Some(ranks) = quantile_ranks(count, quantile) {
                prop_assert!(1 <= ranks.low && ranks.low <= ranks.estimate);
                prop_assert!(ranks.estimate <= ranks.high && ranks.high <= count);
            }
        }
    }
}

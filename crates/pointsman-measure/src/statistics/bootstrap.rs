//! Quantiles of observations that hang together with those before them.

use super::{Interval, percentiles};
use crate::Random;

/// How often a row is drawn anew.
const RESAMPLES: usize = 500;
/// Longer rows are not drawn from as a whole: that many say enough, and the work has a bound.
const OBSERVATIONS_MAX: usize = 200_000;

/// The length of a block for a row: its cube root (Hall, Horowitz, Jing: On blocking rules for the bootstrap with
/// dependent data, Biometrika 82, 1995), at least 1.
pub fn block_length(observations: usize) -> usize {
    ((observations as f64).cbrt().round() as usize).max(1)
}

/// A quantile from 0 to 1 of a row in the order of time, with an interval from blocks drawn anew, circularly
/// (Künsch: The jackknife and the bootstrap for general stationary observations, Annals of Statistics 17, 1989;
/// Politis, Romano 1992 for the circle).
///
/// Of more than 200,000 observations the last are taken. None of an empty row or of a quantile out of range.
pub fn quantile_bootstrap(
    series: &[f64],
    quantile: f64,
    block: usize,
    random: &mut Random,
) -> Option<Interval> {
    if series.is_empty() || !(0.0..=1.0).contains(&quantile) {
        return None;
    }
    let rank_of = |length: usize| ((length as f64 * quantile).ceil() as usize).clamp(1, length) - 1;
    bootstrap(series, block, random, |values| {
        let rank = rank_of(values.len());
        *values.select_nth_unstable_by(rank, f64::total_cmp).1
    })
}

/// The same of any figure of a row, such as one of several values that were observed together. `figure` may reorder what
/// it is given.
///
/// Of more than 200,000 observations the last are taken. None of an empty row.
pub fn bootstrap<T: Copy>(
    series: &[T],
    block: usize,
    random: &mut Random,
    mut figure: impl FnMut(&mut [T]) -> f64,
) -> Option<Interval> {
    if series.is_empty() {
        return None;
    }
    let series = &series[series.len().saturating_sub(OBSERVATIONS_MAX)..];
    let block = block.clamp(1, series.len());
    let mut drawn = series.to_vec();
    let estimate = figure(&mut drawn);
    let of_resamples = (0..RESAMPLES).map(|_| {
        drawn.clear();
        while drawn.len() < series.len() {
            let start = random.below(series.len());
            let wanted = block.min(series.len() - drawn.len());
            let (until_end, from_start) =
                (wanted.min(series.len() - start), wanted.saturating_sub(series.len() - start));
            drawn.extend_from_slice(&series[start..start + until_end]);
            drawn.extend_from_slice(&series[..from_start]);
        }
        figure(&mut drawn)
    });
    let (low, high) = percentiles(of_resamples.collect())?;
    Some(Interval { estimate, low: low.min(estimate), high: high.max(estimate) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Waiting times before a server whose queue carries over from one request to the next.
    fn hanging_together(random: &mut Random, length: usize) -> Vec<f64> {
        let mut level = 0.0;
        (0..length)
            .map(|_| {
                level = 0.8 * level + random.normal();
                level
            })
            .collect()
    }

    #[test]
    fn intervals_of_rows_that_hang_together_hold_the_median() {
        let covered = |block: usize| {
            (0..200)
                .filter(|seed| {
                    let mut random = Random::new(*seed);
                    let series = hanging_together(&mut random, 2_000);
                    quantile_bootstrap(&series, 0.5, block, &mut random)
                        .is_some_and(|found| found.covers(0.0))
                })
                .count()
        };
        let by_blocks = covered(40);
        assert!((180..=198).contains(&by_blocks), "{by_blocks} of 200");
        // Without blocks what hangs together is taken to be independent, and the interval is far too narrow.
        assert!(covered(1) < 150);
    }

    #[test]
    fn the_same_seed_gives_the_same_interval() {
        let series = hanging_together(&mut Random::new(1), 500);
        let draw = |seed| quantile_bootstrap(&series, 0.9, 8, &mut Random::new(seed));
        assert_eq!(draw(5), draw(5));
        assert_ne!(draw(5), draw(6));
        assert_eq!(quantile_bootstrap(&[], 0.5, 1, &mut Random::new(1)), None);
        assert_eq!(quantile_bootstrap(&[1.0], 1.5, 1, &mut Random::new(1)), None);
        assert_eq!(block_length(1_000), 10);
    }
}

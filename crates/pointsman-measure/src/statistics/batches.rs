//! The mean of a row whose neighbours hang together.

use super::distributions::student_quantile;
use super::{CONFIDENCE, Estimate, Interval, mean, variance};

/// Batches that are aimed at, at least; with fewer a batch is doubled only to part neighbours.
const BATCHES_WANTED: usize = 20;
/// With fewer than this no interval is given.
const BATCHES_MIN: usize = 10;
/// More than this between neighbouring batches, and they are too short.
const LAG1_MAX: f64 = 0.2;

/// The mean of a row by batches.
#[derive(Clone, Debug, PartialEq)]
pub struct BatchMeans {
    /// The mean and its interval.
    pub mean: Interval,
    /// The means of the batches, in order.
    pub means: Vec<f64>,
    /// Observations in each.
    pub batch: usize,
    /// The autocorrelation of neighbouring batches.
    pub lag1: f64,
    /// Whether the batches are as good as independent. If not, the interval is too narrow and the trial too short.
    pub independent: bool,
}

/// The method of batch means (Schmeiser: Batch size effects in the analysis of simulation output, Operations Research
/// 30, 1982): 20 to 39 batches, doubled in length while neighbours hang together by 0.2 or more.
///
/// The observations are in the order of time; what does not fill the last batch is left out at the beginning. None
/// of fewer than 20 observations.
pub fn batch_means(series: &[f64]) -> Option<BatchMeans> {
    if series.len() < BATCHES_WANTED {
        return None;
    }
    let mut batch = 1;
    while series.len() / (2 * batch) >= BATCHES_WANTED {
        batch *= 2;
    }
    loop {
        let means: Vec<f64> = series.rchunks_exact(batch).rev().map(mean).collect();
        let lag1 = autocorrelation(&means);
        let independent = lag1 < LAG1_MAX;
        if independent || series.len() / (2 * batch) < BATCHES_MIN {
            return Some(BatchMeans { mean: mean_interval(&means)?, means, batch, lag1, independent });
        }
        batch *= 2;
    }
}

/// The mean of independent figures, with Student's interval; None of fewer than two.
pub fn mean_interval(values: &[f64]) -> Option<Interval> {
    let degrees = values.len().checked_sub(1).filter(|degrees| *degrees > 0)?;
    let error = (variance(values) / values.len() as f64).sqrt();
    Some(Interval::around(mean(values), student_quantile(1.0 - CONFIDENCE, degrees as f64) * error))
}

/// The same; of a single figure the figure alone. None of none.
pub fn mean_estimate(values: &[f64]) -> Option<Estimate> {
    let single = || values.first().map(|value| Estimate::plain(*value));
    mean_interval(values).map(Estimate::from).or_else(single)
}

/// How much neighbours hang together, from -1 to 1; 0 of a row that does not change.
fn autocorrelation(values: &[f64]) -> f64 {
    let middle = mean(values);
    let whole: f64 = values.iter().map(|value| (value - middle).powi(2)).sum();
    let between: f64 = values.windows(2).map(|pair| (pair[0] - middle) * (pair[1] - middle)).sum();
    if whole == 0.0 { 0.0 } else { between / whole }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;

    /// How many of 400 intervals hold the mean of a row in which `carried_over` of each value stays in the next.
    fn covered(carried_over: f64, length: usize) -> usize {
        let rows = (0..400).filter(|seed| {
            let mut random = Random::new(*seed);
            let mut noise = 0.0;
            let series: Vec<f64> = (0..length)
                .map(|_| {
                    noise = carried_over * noise + random.normal();
                    50.0 + noise
                })
                .collect();
            batch_means(&series).is_some_and(|found| found.mean.covers(50.0))
        });
        rows.count()
    }

    #[test]
    fn nineteen_of_twenty_intervals_hold_the_mean() {
        let independent = covered(0.0, 300);
        assert!((368..=392).contains(&independent), "{independent} of 400");
        let hanging_together = covered(0.7, 2_000);
        assert!((360..=395).contains(&hanging_together), "{hanging_together} of 400");
    }

    #[test]
    fn a_row_without_independent_batches_is_said_to_have_none() {
        let wave: Vec<f64> = (0..200_u32).map(|at| (f64::from(at) / 60.0).sin()).collect();
        assert!(!batch_means(&wave).expect("long enough").independent);
        assert_eq!(batch_means(&[1.0; 19]), None);
        let flat = batch_means(&[4.0; 100]).expect("long enough");
        assert_eq!((flat.mean.low, flat.mean.high, flat.batch), (4.0, 4.0, 4));
        assert_eq!(mean_interval(&[1.0]), None);
    }
}

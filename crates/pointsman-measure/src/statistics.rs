//! What a row of figures says, and how far it can be trusted. Each file names the paper that it follows.

mod batches;
mod bootstrap;
mod distributions;
mod exponential;
mod interval;
mod isotonic;
mod knee;
mod little;
mod quantile;
mod ratio;
mod scalability;
mod stationarity;
mod warm_up;

pub use batches::{BatchMeans, batch_means, mean_estimate, mean_interval};
pub use bootstrap::{block_length, bootstrap, quantile_bootstrap};
pub use exponential::{Exponentiality, exponentiality};
pub use interval::{CONFIDENCE, Estimate, Interval};
pub use isotonic::{Direction, isotonic};
pub use knee::{Bend, Knee, knee};
pub use little::{LITTLE_GAP_MAX, Little};
pub use quantile::{Ranks, quantile_interval, quantile_ranks};
pub use ratio::{ratio_of_pairs, ratio_of_samples};
pub use scalability::{Scalability, scalability};
pub use stationarity::{Stationarity, Trend, mann_kendall, stationarity};
pub use warm_up::{WarmUp, mser5};

pub(crate) use interval::percentiles;

/// The mean; 0 of nothing.
pub(crate) fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / values.len() as f64 }
}

/// The variance around the mean with one degree of freedom less; 0 of fewer than two.
pub(crate) fn variance(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    let middle = mean(values);
    values.iter().map(|value| (value - middle).powi(2)).sum::<f64>() / (values.len() - 1) as f64
}

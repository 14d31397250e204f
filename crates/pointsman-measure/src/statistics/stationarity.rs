//! Whether a row of figures stays where it is.

use super::distributions::{student_quantile, two_sided_p};
use super::{batch_means, mean, variance};

/// A row is taken to be stationary unless less than this chance speaks for it.
const P_MIN: f64 = 0.01;

/// What the order of a row says about its direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trend {
    /// Pairs that rise less pairs that fall.
    pub s: i64,
    /// How many standard deviations that is.
    pub z: f64,
    /// The chance of as much in a row without a trend.
    pub p: f64,
}

/// What the two tests say of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stationarity {
    /// Mann-Kendall over the batches.
    pub trend: Trend,
    /// The second half's mean less the first's, as a share of the whole's.
    pub halves_gap: f64,
    /// Whether the halves are further apart than chance explains.
    pub halves_differ: bool,
    /// Neither test speaks against it.
    pub stationary: bool,
}

/// The trend test of Mann (Econometrica 13, 1945) and Kendall (Rank correlation methods, 1975, section 4.10), with
/// ties and the correction for continuity. It takes the values to be independent; see [`stationarity`].
///
/// The work is the square of the row's length.
pub fn mann_kendall(series: &[f64]) -> Trend {
    let mut s = 0_i64;
    for (at, value) in series.iter().enumerate() {
        s += series[at + 1..].iter().map(|later| sign(later - value)).sum::<i64>();
    }
    let n = series.len() as f64;
    let mut sorted = series.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let ties: f64 = sorted
        .chunk_by(|left, right| left == right)
        .map(|equal| equal.len() as f64)
        .map(|t| t * (t - 1.0) * (2.0 * t + 5.0))
        .sum();
    let deviation = ((n * (n - 1.0) * (2.0 * n + 5.0) - ties) / 18.0).max(0.0).sqrt();
    let z = if deviation == 0.0 { 0.0 } else { (s - s.signum()) as f64 / deviation };
    Trend { s, z, p: two_sided_p(z) }
}

fn sign(difference: f64) -> i64 {
    i64::from(difference > 0.0) - i64::from(difference < 0.0)
}

/// Both tests over a row in the order of time, after its warm-up. Neighbours that hang together are first put into
/// batches that do not ([`batch_means`]); None where the row is too short for that.
pub fn stationarity(series: &[f64]) -> Option<Stationarity> {
    let batches = batch_means(series)?.means;
    let trend = mann_kendall(&batches);
    let (first, second) = batches.split_at(batches.len() / 2);
    let difference = mean(second) - mean(first);
    let whole = mean(&batches);
    let halves_gap = if whole == 0.0 { 0.0 } else { difference / whole };
    // Welch's test (Biometrika 34, 1947).
    let (of_first, of_second) =
        (variance(first) / first.len() as f64, variance(second) / second.len() as f64);
    let error = of_first + of_second;
    let degrees = error.powi(2)
        / (of_first.powi(2) / (first.len() - 1) as f64 + of_second.powi(2) / (second.len() - 1) as f64);
    let halves_differ = if error == 0.0 {
        difference != 0.0
    } else {
        difference.abs() > student_quantile(P_MIN, degrees) * error.sqrt()
    };
    let stationary = trend.p >= P_MIN && !halves_differ;
    Some(Stationarity { trend, halves_gap, halves_differ, stationary })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;

    /// How many of 200 rows, each around a line that climbs by `rise` from end to end, are called stationary.
    fn called_stationary(rise: f64, carried_over: f64) -> usize {
        let rows = (0..200).filter_map(|seed| {
            let mut random = Random::new(seed);
            let mut noise = 0.0;
            let series: Vec<f64> = (0..400_u32)
                .map(|at| {
                    noise = carried_over * noise + random.normal();
                    100.0 + rise * f64::from(at) / 400.0 + noise
                })
                .collect();
            stationarity(&series)
        });
        rows.filter(|found| found.stationary).count()
    }

    #[test]
    fn steady_rows_pass_and_trends_do_not() {
        assert!(called_stationary(0.0, 0.0) >= 190, "{}", called_stationary(0.0, 0.0));
        assert!(called_stationary(2.0, 0.0) <= 10, "{}", called_stationary(2.0, 0.0));
    }

    #[test]
    fn neighbours_that_hang_together_are_no_trend() {
        assert!(called_stationary(0.0, 0.6) >= 185, "{}", called_stationary(0.0, 0.6));
    }

    #[test]
    fn the_statistic_of_small_rows() {
        let rising = mann_kendall(&[1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(rising.s, 10);
        assert!((rising.z - 2.2045).abs() < 1e-3, "{}", rising.z);
        let tied = mann_kendall(&[1.0, 1.0, 1.0]);
        assert_eq!((tied.s, tied.z), (0, 0.0));
        assert_eq!(mann_kendall(&[]).s, 0);
        assert_eq!(stationarity(&[1.0; 9]), None);
    }
}

//! Where half of all trials pass: a logistic curve through passed and failed trials, and how sure that is.

use super::trial::Record;
use crate::Random;
use crate::statistics::{Interval, percentiles};

/// How often the trials are drawn anew.
const RESAMPLES: usize = 400;
/// Steps of Newton's method.
const STEPS_MAX: usize = 40;
/// The unit of the horizontal axis: 2 % of load.
const UNIT: f64 = 0.02;
/// Loads this near to the boundary say what is answered there.
const NEAR: f64 = 0.025;

/// The boundary, in requests per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Boundary {
    /// What is offered there.
    pub(super) demanded: Interval,
    /// What is answered there, by what is offered; at most 1.
    pub(super) answered_share: f64,
}

/// One trial: the logarithm of what was offered, and whether it passed.
type Point = (f64, bool);

/// The load at which the chance to pass is one half, over the fine trials that count. The interval is that of the
/// trials drawn anew, wider by a quarter of `width` on each side (few trials drawn anew are too sure of themselves:
/// without it 18 of 20 intervals hold the truth of M/M/1), and not narrower than `width` as a share.
///
/// None where all pass or none does, or loads that are greater pass more.
pub(super) fn boundary(records: &[&Record], width: f64, random: &mut Random) -> Option<Boundary> {
    let points: Vec<Point> = records
        .iter()
        .filter(|record| record.seen.offered_per_s > 0.0)
        .map(|record| (record.seen.offered_per_s.ln(), record.passed()))
        .collect();
    let estimate = half_way(&points)?;
    let resampled = (0..RESAMPLES).filter_map(|_| {
        let drawn: Vec<Point> = (0..points.len()).map(|_| points[random.below(points.len())]).collect();
        half_way(&drawn)
    });
    let (low, high) = percentiles(resampled.collect())?;
    let demanded =
        Interval { estimate, low: low.min(estimate) - width / 4.0, high: high.max(estimate) + width / 4.0 }
            .widened(estimate - width / 2.0, estimate + width / 2.0)
            .map(f64::exp);
    let near = records.iter().filter(|record| (record.seen.offered_per_s.ln() - estimate).abs() <= NEAR);
    let shares: Vec<f64> =
        near.map(|record| (record.seen.achieved_per_s / record.seen.offered_per_s).min(1.0)).collect();
    let answered_share = if shares.is_empty() { 1.0 } else { crate::statistics::mean(&shares) };
    Some(Boundary { demanded, answered_share })
}

/// The middle of a falling logistic curve by Firth's penalised likelihood (Bias reduction of maximum likelihood
/// estimates, Biometrika 80, 1993), which has an end also where a load parts all that pass from all that fail.
fn half_way(points: &[Point]) -> Option<f64> {
    let passed = points.iter().filter(|point| point.1).count();
    if passed == 0 || passed == points.len() {
        return None;
    }
    let centre = points.iter().map(|point| point.0).sum::<f64>() / points.len() as f64;
    let rows: Vec<(f64, f64)> =
        points.iter().map(|(x, passed)| ((x - centre) / UNIT, f64::from(u8::from(*passed)))).collect();
    let (mut level, mut slope) = (0.0_f64, 0.0_f64);
    for _ in 0..STEPS_MAX {
        let [by_level, by_slope] = newton_step(&rows, level, slope)?;
        // Short steps: far from the end the curve is flat.
        let shorten = 2.0 / by_level.abs().max(by_slope.abs()).max(2.0);
        level += shorten * by_level;
        slope += shorten * by_slope;
        if by_level.abs().max(by_slope.abs()) < 1e-6 {
            break;
        }
    }
    let (least, most) = points
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), point| (low.min(point.0), high.max(point.0)));
    // Beyond the loads that were tried nothing is known.
    (slope < 0.0).then(|| (centre - UNIT * level / slope).clamp(least - UNIT, most + UNIT))
}

/// The step of Newton's method on Firth's score: passed − chance + leverage × (½ − chance).
fn newton_step(rows: &[(f64, f64)], level: f64, slope: f64) -> Option<[f64; 2]> {
    let chances: Vec<f64> = rows.iter().map(|(x, _)| 1.0 / (1.0 + (-(level + slope * x)).exp())).collect();
    let (mut a, mut b, mut d) = (0.0, 0.0, 0.0);
    for ((x, _), chance) in rows.iter().zip(&chances) {
        let weight = chance * (1.0 - chance);
        a += weight;
        b += weight * x;
        d += weight * x * x;
    }
    let determinant = a * d - b * b;
    if determinant.is_nan() || determinant <= 1e-12 {
        return None;
    }
    let (mut of_level, mut of_slope) = (0.0, 0.0);
    for ((x, passed), chance) in rows.iter().zip(&chances) {
        let leverage = chance * (1.0 - chance) * (d - 2.0 * b * x + a * x * x) / determinant;
        let residual = passed - chance + leverage * (0.5 - chance);
        of_level += residual;
        of_slope += residual * x;
    }
    Some([(d * of_level - b * of_slope) / determinant, (a * of_slope - b * of_level) / determinant])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Five trials at each of four loads around 500, as the confirmation has them, with a noise in what passes.
    fn points(random: &mut Random, noise: f64, centre: f64) -> Vec<Point> {
        [0.90, 0.95, 1.0, 1.05]
            .into_iter()
            .flat_map(|share| std::iter::repeat_n(centre * share, 5))
            .map(|load: f64| {
                let offered = load * (1.0 + 0.01 * random.normal());
                (offered.ln(), offered < 500.0 * (1.0 + noise * random.normal()))
            })
            .collect()
    }

    #[test]
    fn half_of_the_trials_pass_at_the_boundary() {
        for noise in [0.0, 0.01, 0.03] {
            let mut random = Random::new(9);
            let found: Vec<f64> =
                (0..300).filter_map(|_| half_way(&points(&mut random, noise, 500.0))).collect();
            assert!(found.len() >= 295, "{noise}: {}", found.len());
            let mean = found.iter().sum::<f64>() / found.len() as f64;
            assert!((mean - 500.0_f64.ln()).abs() < 0.01, "{noise}: {}", mean.exp());
        }
    }

    #[test]
    fn without_both_kinds_there_is_no_boundary() {
        assert_eq!(half_way(&[(1.0, true), (2.0, true)]), None);
        assert_eq!(half_way(&[(1.0, false)]), None);
        assert_eq!(half_way(&[]), None);
        assert_eq!(half_way(&[(1.0, false), (1.01, false), (1.2, true), (1.21, true)]), None);
    }
}

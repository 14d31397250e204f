//! How many times one thing is another.

use super::distributions::student_quantile;
use super::{CONFIDENCE, Interval, mean, variance};
use crate::Random;

/// How often the figures are drawn anew.
const RESAMPLES: usize = 2_000;
/// With fewer there is no interval.
const FIGURES_MIN: usize = 4;
/// With fewer they are not drawn anew: too many draws are of figures that happen to be nearly alike, whose error is next to
/// nothing, and what is divided by it has no bound (Polansky: Stabilizing bootstrap-t confidence intervals for small
/// samples, Canadian Journal of Statistics 28, 2000).
const DRAWN_MIN: usize = 8;

/// The ratio of pairs that were measured beside each other, second by first: the geometric mean, with an interval
/// from the studentised bootstrap over the logarithms (Efron, Tibshirani: An introduction to the bootstrap, 1993,
/// section 12.5). The plain percentile interval holds the truth in 18 of 20 runs when there are eight pairs; this one,
/// and Student's beside it, of which the wider is taken, in 19. Of fewer than eight pairs it is Student's alone (The
/// probable error of a mean, Biometrika 6, 1908), which needs logarithms that are roughly normal.
///
/// None of fewer than four pairs, and of figures that are not above 0.
pub fn ratio_of_pairs(pairs: &[(f64, f64)], random: &mut Random) -> Option<Interval> {
    let positive = pairs.iter().all(|(first, second)| is_measure(*first) && is_measure(*second));
    if !positive || pairs.len() < FIGURES_MIN {
        return None;
    }
    let logs: Vec<f64> = pairs.iter().map(|(first, second)| (second / first).ln()).collect();
    let (middle, error) = (mean(&logs), (variance(&logs) / logs.len() as f64).sqrt());
    let students = student_quantile(1.0 - CONFIDENCE, (logs.len() - 1) as f64);
    let (below, above) = studentised(&[&logs], error, random)?;
    Some(from_logs(middle, error, (below.min(-students), above.max(students))))
}

/// The same of figures that do not belong together in pairs: the ratio of the geometric means of two samples.
pub fn ratio_of_samples(first: &[f64], second: &[f64], random: &mut Random) -> Option<Interval> {
    let positive = first.iter().chain(second).all(|value| is_measure(*value));
    if !positive || first.len().min(second.len()) < FIGURES_MIN {
        return None;
    }
    let logs = |values: &[f64]| values.iter().map(|value| value.ln()).collect::<Vec<f64>>();
    let (first, second) = (logs(first), logs(second));
    let squares = [&first, &second].map(|logs| variance(logs) / logs.len() as f64);
    let error = (squares[0] + squares[1]).sqrt();
    let degrees = first.len().min(second.len()) - 1;
    let students = student_quantile(1.0 - CONFIDENCE, degrees as f64);
    let (below, above) = studentised(&[&second, &first], error, random)?;
    Some(from_logs(mean(&second) - mean(&first), error, (below.min(-students), above.max(students))))
}

fn is_measure(value: f64) -> bool {
    value > 0.0 && value.is_finite()
}

fn from_logs(middle: f64, error: f64, (below, above): (f64, f64)) -> Interval {
    Interval { estimate: middle, low: middle - above * error, high: middle - below * error }.map(f64::exp)
}

/// The middle part of (drawn mean − mean) / drawn error, where the mean is that of the first sample less that of the
/// second, if there is one.
fn studentised(samples: &[&[f64]], error: f64, random: &mut Random) -> Option<(f64, f64)> {
    if error == 0.0 || samples.iter().any(|sample| sample.len() < DRAWN_MIN) {
        return Some((0.0, 0.0));
    }
    let signs = [1.0, -1.0];
    let middle: f64 = samples.iter().zip(signs).map(|(sample, sign)| sign * mean(sample)).sum();
    let mut drawn = Vec::new();
    let statistics = (0..RESAMPLES).filter_map(|_| {
        let (mut of_drawn, mut square) = (0.0, 0.0);
        for (sample, sign) in samples.iter().zip(signs) {
            drawn.clear();
            drawn.extend((0..sample.len()).map(|_| sample[random.below(sample.len())]));
            of_drawn += sign * mean(&drawn);
            square += variance(&drawn) / drawn.len() as f64;
        }
        // All drawn alike: no error, and nothing to learn.
        (square > 0.0).then(|| (of_drawn - middle) / square.sqrt())
    });
    super::percentiles(statistics.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn covered_of_500(pairs: usize) -> usize {
        (0..500)
            .filter(|seed| {
                let mut random = Random::new(*seed);
                let pairs: Vec<(f64, f64)> = (0..pairs)
                    .map(|_| {
                        // Both have the machine's mood in common.
                        let mood = (0.3 * random.normal()).exp();
                        let noise = |random: &mut Random| (0.05 * random.normal()).exp();
                        (100.0 * mood * noise(&mut random), 120.0 * mood * noise(&mut random))
                    })
                    .collect();
                ratio_of_pairs(&pairs, &mut random).is_some_and(|found| found.covers(1.2))
            })
            .count()
    }

    #[test]
    fn nineteen_of_twenty_intervals_hold_the_ratio() {
        // Each count has a standard error of 5.
        for pairs in [4, 5, 6, 7, 8] {
            let covered = covered_of_500(pairs);
            assert!((462..=495).contains(&covered), "{covered} of 500, with {pairs} pairs");
        }
    }

    #[test]
    fn few_pairs_that_are_nearly_alike_have_bounds() {
        let ratios = [8911.0, 8_911.000_01, 9100.0, 8700.0, 8930.0, 8890.0, 8_911.000_02];
        for count in 4..=ratios.len() {
            let pairs: Vec<(f64, f64)> = ratios[..count].iter().map(|ratio| (1.0, *ratio)).collect();
            for seed in 0..20 {
                let found = ratio_of_pairs(&pairs, &mut Random::new(seed)).expect("pairs");
                assert!(found.covers(8911.0) && found.high / found.low < 1.1, "{count}: {found:?}");
            }
        }
        let (first, second) = ([1.0, 1.000_000_1, 1.02, 0.98], [5.0, 5.000_000_1, 4.9, 5.1]);
        let found = ratio_of_samples(&first, &second, &mut Random::new(1)).expect("samples");
        assert!(found.covers(5.0) && found.high / found.low < 1.2, "{found:?}");
    }

    #[test]
    fn samples_of_different_length_are_compared() {
        let covered = (0..300)
            .filter(|seed| {
                let mut random = Random::new(*seed);
                let mut draw = |count: usize, middle: f64| -> Vec<f64> {
                    (0..count).map(|_| middle * (0.1 * random.normal()).exp()).collect()
                };
                let (first, second) = (draw(12, 50.0), draw(9, 25.0));
                ratio_of_samples(&first, &second, &mut random).is_some_and(|found| found.covers(0.5))
            })
            .count();
        assert!(covered >= 284, "{covered} of 300");
    }

    #[test]
    fn what_cannot_be_compared_is_not() {
        let mut random = Random::new(1);
        assert_eq!(ratio_of_pairs(&[(1.0, 2.0); 3], &mut random), None);
        assert_eq!(ratio_of_pairs(&[(0.0, 2.0); 8], &mut random), None);
        assert_eq!(ratio_of_pairs(&[(1.0, f64::NAN); 8], &mut random), None);
        assert_eq!(ratio_of_samples(&[1.0; 4], &[-1.0; 4], &mut random), None);
        let exact = ratio_of_pairs(&[(1.0, 2.0); 4], &mut random).expect("four pairs");
        assert!((exact.low - 2.0).abs() < 1e-12 && (exact.high - 2.0).abs() < 1e-12);
    }
}

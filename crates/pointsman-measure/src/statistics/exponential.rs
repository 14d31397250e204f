//! Whether gaps between sends are those of a Poisson process.

/// Upper points of the modified statistic when the mean is unknown, with the share of exponential rows above each
/// (D'Agostino, Stephens: Goodness-of-fit techniques, 1986, table 4.14).
const POINTS: [(f64, f64); 6] =
    [(0.736, 0.25), (0.916, 0.15), (1.062, 0.10), (1.321, 0.05), (1.591, 0.025), (1.959, 0.01)];
/// Fewer gaps say nothing.
const GAPS_MIN: usize = 10;

/// What the test says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Exponentiality {
    /// The statistic, modified for the number of gaps: A² (1 + 0.6 / n).
    pub statistic: f64,
    /// A bound on the chance of such gaps from a Poisson process: the least level that speaks against it, of 0.01 to
    /// 0.25; 1 where none does.
    pub p_max: f64,
}

impl Exponentiality {
    /// Whether the gaps may be those of a Poisson process, with the test at a level such as 0.01.
    pub fn passes(&self, level: f64) -> bool {
        self.p_max > level
    }
}

/// The test of Anderson and Darling (JASA 49, 1954) against the exponential distribution with the gaps' own mean.
///
/// None of fewer than ten gaps, and of gaps that are negative or all 0. Of tens of thousands of gaps the
/// test finds differences that do not matter (a clock of one microsecond): give it a sample.
pub fn exponentiality(gaps: &[f64]) -> Option<Exponentiality> {
    let mean = super::mean(gaps);
    let sound = gaps.iter().all(|gap| *gap >= 0.0 && gap.is_finite());
    if gaps.len() < GAPS_MIN || !sound || mean <= 0.0 {
        return None;
    }
    let mut sorted = gaps.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let n = sorted.len() as f64;
    // A gap of 0 would have the logarithm of nothing: it counts as the least that a float can tell from it.
    let log_below = |gap: f64| (-(-gap / mean).exp_m1()).max(f64::MIN_POSITIVE).ln();
    let sum: f64 = sorted
        .iter()
        .zip(sorted.iter().rev())
        .enumerate()
        .map(|(at, (gap, mirrored))| (2.0 * at as f64 + 1.0) * (log_below(*gap) - mirrored / mean))
        .sum();
    let statistic = (-n - sum / n) * (1.0 + 0.6 / n);
    let p_max = POINTS.iter().rev().find(|(point, _)| statistic > *point).map_or(1.0, |(_, share)| *share);
    Some(Exponentiality { statistic, p_max })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;

    fn refused(gap: impl Fn(&mut Random) -> f64) -> usize {
        (0..1_000)
            .filter(|seed| {
                let mut random = Random::new(*seed);
                let gaps: Vec<f64> = (0..200).map(|_| gap(&mut random)).collect();
                exponentiality(&gaps).is_some_and(|found| !found.passes(0.05))
            })
            .count()
    }

    #[test]
    fn exponential_gaps_pass_at_the_level_of_the_test() {
        let wrongly = refused(|random| random.exponential(0.002));
        assert!((30..=70).contains(&wrongly), "{wrongly} of 1,000");
    }

    #[test]
    fn other_gaps_are_refused() {
        assert!(refused(|random| random.unit()) > 990);
        assert!(refused(|random| 1.0 + 0.1 * random.normal()) > 990);
        // Bursts: a sender that was held up sends three at once.
        assert!(refused(|random| if random.below(4) < 3 { 0.0 } else { random.exponential(4.0) }) > 990);
    }

    #[test]
    fn what_are_no_gaps_is_not_judged() {
        assert_eq!(exponentiality(&[1.0; 9]), None);
        assert_eq!(exponentiality(&[0.0; 20]), None);
        assert_eq!(exponentiality(&[-1.0; 20]), None);
        assert_eq!(exponentiality(&[f64::NAN; 20]), None);
    }
}

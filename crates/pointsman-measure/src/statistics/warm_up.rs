//! How much of the beginning of a trial does not belong to its steady state.

/// Observations in a batch.
const BATCH: usize = 5;
/// Fewer batches than this after the cut lie close together by chance and say nothing about the rest.
const BATCHES_MIN: usize = 10;

/// How many times less the error of a cut in the second half must be to count: a few batches lie close together by chance.
const LATER_FACTOR: f64 = 1.5;

/// Where the steady state begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WarmUp {
    /// So many observations at the beginning are to be left out.
    pub cut: usize,
    /// False where a cut in the second half is clearly better, or there were too few observations: the trial was too
    /// short to have a steady state, and [`cut`](Self::cut) is half of it.
    pub settled: bool,
}

/// MSER-5: the cut that makes the standard error of what is left least, over batches of five observations
/// (White, Cobb, Spratt: A comparison of five steady-state truncation heuristics for simulation, WSC 2000, section 2.3).
///
/// The observations are in the order of time, such as the rate of every 100 ms.
pub fn mser5(series: &[f64]) -> WarmUp {
    let batches: Vec<f64> = series.chunks_exact(BATCH).map(super::mean).collect();
    let half = batches.len() / 2;
    let too_short = WarmUp { cut: series.len() / 2, settled: false };
    if batches.len() < 2 * BATCHES_MIN {
        return too_short;
    }
    let error = |cut: usize| {
        let rest = &batches[cut..];
        super::variance(rest) * (rest.len() - 1) as f64 / (rest.len() as f64).powi(2)
    };
    let least = |cuts: std::ops::RangeInclusive<usize>| {
        let errors = cuts.map(|cut| (cut, error(cut)));
        errors.min_by(|left, right| left.1.total_cmp(&right.1)).unwrap_or((half, f64::INFINITY))
    };
    let (cut, found) = least(0..=half);
    let (_, later) = least(half..=batches.len() - BATCHES_MIN);
    if found > LATER_FACTOR * later { too_short } else { WarmUp { cut: cut * BATCH, settled: true } }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;

    #[test]
    fn a_transient_is_cut_and_little_more() {
        let found = (0..200).map(|seed| {
            let mut random = Random::new(seed);
            // 60 observations of a rise from 0 to 100, then 240 around 100.
            let rise = |at: u32| f64::from(at.min(60)) / 60.0 * 100.0;
            mser5(&(0..300).map(|at| rise(at) + 3.0 * random.normal()).collect::<Vec<f64>>())
        });
        let found: Vec<WarmUp> = found.collect();
        assert!(found.iter().all(|warm_up| (40..=150).contains(&warm_up.cut)), "{found:?}");
        let unsettled = found.iter().filter(|warm_up| !warm_up.settled).count();
        assert!(unsettled <= 2, "{unsettled} of 200");
    }

    #[test]
    fn a_steady_row_keeps_most_of_itself() {
        let kept: usize = (0..100)
            .map(|seed| {
                let mut random = Random::new(seed);
                let series: Vec<f64> = (0..300).map(|_| 100.0 + random.normal()).collect();
                300 - mser5(&series).cut
            })
            .sum();
        assert!(kept / 100 > 240, "{}", kept / 100);
    }

    #[test]
    fn a_row_that_never_settles_is_said_to() {
        let rising: Vec<f64> = (0..300).map(f64::from).collect();
        assert!(!mser5(&rising).settled);
        assert!(!mser5(&[1.0; 40]).settled);
        assert_eq!(mser5(&[]), WarmUp { cut: 0, settled: false });
    }
}

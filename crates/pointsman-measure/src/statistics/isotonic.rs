//! The nearest row that only rises, or only falls.

/// Which way a row may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Each value is at least the one before.
    Rising,
    /// Each value is at most the one before.
    Falling,
}

/// Least squares under an order: pool adjacent violators (Ayer, Brunk, Ewing, Reid, Silverman: Annals of Mathematical
/// Statistics 26, 1955). `values` are pairs of a value and its weight; weights of 0 or less count as nothing.
pub fn isotonic(values: &[(f64, f64)], direction: Direction) -> Vec<f64> {
    let sign = if direction == Direction::Rising { 1.0 } else { -1.0 };
    // Blocks of neighbours that share their mean: mean, weight, members.
    let mut blocks: Vec<(f64, f64, usize)> = Vec::new();
    for (value, weight) in values {
        let mut block = (sign * value, weight.max(f64::MIN_POSITIVE), 1);
        while let Some(before) = blocks.pop_if(|before| before.0 > block.0) {
            let weight = before.1 + block.1;
            block = ((before.0 * before.1 + block.0 * block.1) / weight, weight, before.2 + block.2);
        }
        blocks.push(block);
    }
    blocks.into_iter().flat_map(|(mean, _, members)| std::iter::repeat_n(sign * mean, members)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn violators_are_pooled_by_weight() {
        let fitted = isotonic(&[(1.0, 1.0), (3.0, 1.0), (2.0, 3.0), (5.0, 1.0)], Direction::Rising);
        assert_eq!(fitted, [1.0, 2.25, 2.25, 5.0]);
        assert_eq!(isotonic(&[(1.0, 1.0), (0.0, 1.0), (0.5, 1.0)], Direction::Falling), [1.0, 0.25, 0.25]);
        assert!(isotonic(&[], Direction::Rising).is_empty());
    }

    proptest! {
        #[test]
        fn it_rises_keeps_the_sum_and_is_nearer_than_the_running_maximum(
            values in prop::collection::vec(-100.0_f64..100.0, 1..60),
        ) {
            let weighted: Vec<(f64, f64)> = values.iter().map(|value| (*value, 1.0)).collect();
            let fitted = isotonic(&weighted, Direction::Rising);
            prop_assert!(fitted.windows(2).all(|pair| pair[0] <= pair[1] + 1e-9));
            prop_assert!((fitted.iter().sum::<f64>() - values.iter().sum::<f64>()).abs() < 1e-6);
            let far = |row: &[f64]| row.iter().zip(&values).map(|(a, b)| (a - b).powi(2)).sum::<f64>();
            let mut highest = f64::NEG_INFINITY;
            let running: Vec<f64> = values.iter().map(|value| { highest = highest.max(*value); highest }).collect();
            prop_assert!(far(&fitted) <= far(&running) + 1e-6);
        }
    }
}

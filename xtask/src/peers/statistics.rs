//! Middle, least and most of a few numbers.

use serde_json::{Value, json};

/// What a row of rounds comes to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Spread {
    /// Of no numbers there is no middle.
    pub(crate) fn of(numbers: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = numbers.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let even = sorted.len().is_multiple_of(2);
        let median = if even { f64::midpoint(sorted[middle - 1], sorted[middle]) } else { sorted[middle] };
        Some(Self { median, min, max })
    }

    pub(crate) fn json(&self) -> Value {
        json!({"median": self.median, "min": self.min, "max": self.max})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_is_found() {
        assert_eq!(Spread::of([3.0, 1.0, 2.0]), Some(Spread { median: 2.0, min: 1.0, max: 3.0 }));
        assert_eq!(Spread::of([4.0, 1.0]).map(|spread| spread.median), Some(2.5));
        assert_eq!(Spread::of([]), None);
    }
}

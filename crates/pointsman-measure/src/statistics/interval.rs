//! A figure and the range that it lies in.

/// How sure all intervals are: of a hundred, five do not hold the truth.
pub const CONFIDENCE: f64 = 0.95;

/// A figure and the range that it lies in at [`CONFIDENCE`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The figure.
    pub estimate: f64,
    /// The least that it may be.
    pub low: f64,
    /// The most that it may be.
    pub high: f64,
}

impl Interval {
    /// The same on both sides.
    pub fn around(estimate: f64, half_width: f64) -> Self {
        Self { estimate, low: estimate - half_width, high: estimate + half_width }
    }

    /// Whether a value is in the range.
    pub fn covers(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// Half the width as a share of the figure; infinite around 0.
    pub fn half_width_share(&self) -> f64 {
        if self.estimate == 0.0 {
            return f64::INFINITY;
        }
        (self.high - self.low) / 2.0 / self.estimate.abs()
    }

    /// The smallest that holds this one and two bounds more.
    #[must_use]
    pub fn widened(self, low: f64, high: f64) -> Self {
        Self { low: self.low.min(low), high: self.high.max(high), ..self }
    }

    /// The sum with a figure that was measured independently.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let estimate = self.estimate + other.estimate;
        let below = (self.estimate - self.low).hypot(other.estimate - other.low);
        let above = (self.high - self.estimate).hypot(other.high - other.estimate);
        Self { estimate, low: estimate - below, high: estimate + above }
    }

    /// The difference to a figure that was measured independently.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        self.plus(Self { estimate: -other.estimate, low: -other.high, high: -other.low })
    }

    /// Each of the three made another by a function that keeps their order.
    #[must_use]
    pub fn map(self, change: impl Fn(f64) -> f64) -> Self {
        Self { estimate: change(self.estimate), low: change(self.low), high: change(self.high) }
    }
}

/// A figure, and the range that it lies in at [`CONFIDENCE`] where enough was seen to say so.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The figure.
    pub value: f64,
    /// The least and the most that it may be, where that is known.
    pub bounds: Option<(f64, f64)>,
}

impl Estimate {
    /// A figure of which nothing else is known.
    pub fn plain(value: f64) -> Self {
        Self { value, bounds: None }
    }

    /// All of it made another by a function that keeps the order.
    #[must_use]
    pub fn map(self, change: impl Fn(f64) -> f64) -> Self {
        Self { value: change(self.value), bounds: self.bounds.map(|(low, high)| (change(low), change(high))) }
    }
}

impl From<Interval> for Estimate {
    fn from(Interval { estimate, low, high }: Interval) -> Self {
        Self { value: estimate, bounds: Some((low, high)) }
    }
}

/// The range that the middle [`CONFIDENCE`] of the values have, sorted or not; none of no values.
pub(crate) fn percentiles(mut values: Vec<f64>) -> Option<(f64, f64)> {
    values.sort_unstable_by(f64::total_cmp);
    let last = values.len().checked_sub(1)?;
    let tail = (1.0 - CONFIDENCE) / 2.0;
    let at = |share: f64| values[((last as f64 * share).round() as usize).min(last)];
    Some((at(tail), at(1.0 - tail)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_uncertain_in_both_is_uncertain_in_their_difference() {
        let (one, other) = (Interval::around(10.0, 3.0), Interval { estimate: 4.0, low: 0.0, high: 5.0 });
        let difference = Interval { estimate: 6.0, low: 6.0 - 10_f64.sqrt(), high: 11.0 };
        assert_eq!(one.minus(other), difference);
        assert_eq!(one.plus(Interval::around(0.0, 4.0)), Interval::around(10.0, 5.0));
    }
}

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

    /// Each of the three made another by a function that keeps their order.
    #[must_use]
    pub fn map(self, change: impl Fn(f64) -> f64) -> Self {
        Self { estimate: change(self.estimate), low: change(self.low), high: change(self.high) }
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

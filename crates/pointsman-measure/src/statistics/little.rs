//! Whether what was counted and what was timed belong to the same system.

/// A greater gap than this says that something was not counted.
pub const LITTLE_GAP_MAX: f64 = 0.03;

/// The three figures of Little's law (Operations Research 9, 1961): L = λ W, whatever the distributions are, as long as
/// the system ends as full as it began.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Little {
    /// L: how many were on their way on average, counted at moments in time.
    pub in_flight: f64,
    /// λ: how many ended in a second.
    pub rate_per_s: f64,
    /// W: how many seconds each took on average.
    pub time_s: f64,
    /// How far L and λ W may be apart by how they were got: L is known no better, 0 where it is exact.
    pub known_to: f64,
}

impl Little {
    /// |L − λ W| / L, beyond what L is known to; 0 of an idle system, infinite where only one side is.
    pub fn gap(&self) -> f64 {
        let product = self.rate_per_s * self.time_s;
        let difference = (self.in_flight - product).abs() - self.known_to;
        if difference <= 0.0 { 0.0 } else { difference / self.in_flight.abs() }
    }

    /// Whether the gap is at most [`LITTLE_GAP_MAX`].
    pub fn holds(&self) -> bool {
        self.gap() <= LITTLE_GAP_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps() {
        let of = |in_flight, rate_per_s, time_s| Little { in_flight, rate_per_s, time_s, known_to: 0.0 };
        assert!(of(10.0, 1_000.0, 0.0101).holds());
        assert!(!of(10.0, 1_000.0, 0.012).holds());
        assert!(of(0.0, 0.0, 0.0).holds());
        assert!(!of(0.0, 5.0, 1.0).holds());
        assert!(!of(f64::NAN, 5.0, 1.0).holds());
        assert!(Little { known_to: 1.8, ..of(10.0, 1_000.0, 0.012) }.holds());
        assert!(!Little { known_to: 1.6, ..of(10.0, 1_000.0, 0.012) }.holds());
        assert!(!Little { known_to: f64::NAN, ..of(10.0, 1_000.0, 0.010) }.holds());
    }
}

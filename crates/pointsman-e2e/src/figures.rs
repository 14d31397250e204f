//! Figures that a claim stands on: each is checked against its bound, and written down where that is asked for.

use std::fmt;
use std::fs::OpenOptions;
use std::io::Write;

/// The file that figures are appended to, one a line, as `cargo xtask endure` reads them.
const FILE: &str = "POINTSMAN_FIGURES";
/// Set where a test is to show the claim in full, not a small one that takes a moment.
const FULL: &str = "POINTSMAN_FULL_SCALE";

/// What a figure must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// This or less.
    AtMost(u64),
    /// This or more.
    AtLeast(u64),
    /// This.
    Exactly(u64),
}

/// In what a figure is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Things of this name.
    Count(&'static str),
    /// Bytes of this kind.
    Bytes(&'static str),
    /// Per cent of this.
    PerCent(&'static str),
}

impl Bound {
    fn holds(self, figure: u64) -> bool {
        match self {
            Self::AtMost(most) => figure <= most,
            Self::AtLeast(least) => figure >= least,
            Self::Exactly(wanted) => figure == wanted,
        }
    }

    fn shown(self, unit: Unit) -> String {
        let amount = |number| Amount(number, unit).to_string();
        match self {
            Self::AtMost(most) => format!("at most {}", amount(most)),
            Self::AtLeast(least) => format!("at least {}", amount(least)),
            Self::Exactly(wanted) => amount(wanted),
        }
    }
}

/// A number with what it counts, short.
struct Amount(u64, Unit);

impl fmt::Display for Amount {
    #[expect(clippy::cast_precision_loss, reason = "two digits are shown")]
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0, self.1) {
            (number, Unit::Count(_)) => write!(out, "{number}"),
            (number, Unit::PerCent(_)) => write!(out, "{number} %"),
            (bytes, Unit::Bytes(_)) if bytes >= 1024 * 1024 => {
                write!(out, "{:.1} MiB", bytes as f64 / 1024.0 / 1024.0)
            }
            (bytes, Unit::Bytes(_)) => write!(out, "{:.1} KiB", bytes as f64 / 1024.0),
        }
    }
}

/// Checks a figure of a fault that the switch is to bear, and writes it down.
///
/// # Panics
/// When the bound does not hold.
pub fn figure(fault: &str, figure: u64, unit: Unit, bound: Bound) {
    let (Unit::Count(what) | Unit::Bytes(what) | Unit::PerCent(what)) = unit;
    let (seen, wanted) = (Amount(figure, unit).to_string(), bound.shown(unit));
    let verdict = if bound.holds(figure) { "holds" } else { "BROKEN" };
    if let Some(path) = std::env::var_os(FILE) {
        let mut file = OpenOptions::new().append(true).create(true).open(path).expect("a writable file");
        // In one piece, for tests run side by side.
        let line = format!("{fault}\t{what}\t{seen}\t{wanted}\t{verdict}\n");
        file.write_all(line.as_bytes()).expect("a writable file");
    }
    assert!(bound.holds(figure), "{fault}: {what}: {seen} instead of {wanted}");
}

/// The size of a test: a small one where it is one of many, the full one where a figure is asked for.
#[must_use]
pub fn scale<T>(small: T, full: T) -> T {
    if std::env::var_os(FULL).is_some() { full } else { small }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_hold_or_do_not() {
        for (bound, below, at, above) in [
            (Bound::AtMost(7), true, true, false),
            (Bound::AtLeast(7), false, true, true),
            (Bound::Exactly(7), false, true, false),
        ] {
            assert_eq!([6, 7, 8].map(|number| bound.holds(number)), [below, at, above], "{bound:?}");
        }
        assert_eq!(Bound::AtMost(64 << 20).shown(Unit::Bytes("resident")), "at most 64.0 MiB");
        assert_eq!(Bound::Exactly(0).shown(Unit::Count("failed requests")), "0");
    }

    #[test]
    #[should_panic(expected = "heads: each: 2.0 KiB instead of at most 1.0 KiB")]
    fn a_broken_bound_fails_its_test() {
        figure("heads", 2048, Unit::Bytes("each"), Bound::AtMost(1024));
    }
}

//! From values to places, and where the ticks are.

/// What an axis spans.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    /// The least value.
    pub low: f64,
    /// The greatest.
    pub high: f64,
}

impl Range {
    /// The range of values; those that are not finite, or not above 0 on a logarithmic axis, count as nothing.
    pub(super) fn of(values: impl Iterator<Item = f64>, is_log: bool) -> Option<Self> {
        let shown = values.filter(|value| is_shown(*value, is_log));
        shown.fold(None, |range: Option<Self>, value| {
            Some(range.map_or(Self { low: value, high: value }, |range| range.and(value)))
        })
    }

    fn and(self, value: f64) -> Self {
        Self { low: self.low.min(value), high: self.high.max(value) }
    }

    /// The smallest range that holds both.
    #[must_use]
    pub fn joined(self, other: Self) -> Self {
        self.and(other.low).and(other.high)
    }
}

/// What is greater is not shown, nor on a logarithmic axis what is not greater than the least.
const GREATEST: f64 = 1e15;
const LEAST: f64 = 1e-9;
/// The greatest that is.
pub(super) const GREATEST_SHOWN: f64 = GREATEST.next_down();

pub(super) fn is_shown(value: f64, is_log: bool) -> bool {
    value.is_finite() && value.abs() < GREATEST && (!is_log || value > LEAST)
}

/// A range with ticks at round values, which it begins and ends with.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Scale {
    low: f64,
    high: f64,
    is_log: bool,
    pub(super) ticks: Vec<f64>,
}

const TICKS_WANTED: f64 = 6.0;
/// What an axis spans at least, beside its values: they are told from each other by so much.
const SPREAD_MIN: f64 = 1e-9;

impl Scale {
    /// A linear scale begins at 0 where the range is not far from it.
    pub(super) fn new(range: Range, is_log: bool) -> Self {
        if is_log { Self::logarithmic(range) } else { Self::linear(range) }
    }

    fn linear(Range { low, high }: Range) -> Self {
        let low = if low > 0.0 && low < 0.7 * high { 0.0 } else { low };
        let spread = if high > low { high - low } else { high.abs().max(1.0) };
        // Between values that are hardly apart there are no round ones.
        let spread = spread.max(low.abs().max(high.abs()).max(1.0) * SPREAD_MIN);
        let step = round_step(spread / TICKS_WANTED);
        let first = (low / step).floor();
        let last = (high / step).ceil().max(first + 1.0);
        let ticks: Vec<f64> = (0..=(last - first) as u32).map(|at| (first + f64::from(at)) * step).collect();
        Self { low: first * step, high: last * step, is_log: false, ticks }
    }

    fn logarithmic(Range { low, high }: Range) -> Self {
        let power = |value: f64| value.clamp(LEAST, GREATEST).log10();
        let first = power(low).floor() as i32;
        let last = (power(high).ceil() as i32).max(first + 1);
        let steps: &[f64] = if last - first <= 2 { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let end = 10_f64.powi(last);
        let ticks = (first..=last).flat_map(|power| steps.iter().map(move |step| step * 10_f64.powi(power)));
        let ticks = ticks.filter(|tick| *tick <= end * 1.000_001).collect();
        Self { low: 10_f64.powi(first), high: end, is_log: true, ticks }
    }

    /// The value, or where a logarithmic scale begins, which has nothing below.
    pub(super) fn at_least(&self, value: f64) -> f64 {
        if self.is_log { value.max(self.low) } else { value }
    }

    /// Where a value is, from 0 at the beginning to 1 at the end.
    pub(super) fn place(&self, value: f64) -> f64 {
        if self.is_log {
            (value / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        }
    }
}

/// 1, 2 or 5 times a power of ten, not less than what is wanted.
fn round_step(wanted: f64) -> f64 {
    let power = 10_f64.powf(wanted.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().find(|step| step * power >= wanted * 0.999_999);
    step.unwrap_or(10.0) * power
}

/// A number for people: six digits that count at most, thousands apart.
pub(crate) fn number(value: f64) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    let magnitude = if value == 0.0 { 0.0 } else { value.abs().log10().floor() };
    let decimals = (5.0 - magnitude).clamp(0.0, 9.0) as usize;
    let text = format!("{value:.decimals$}");
    let (whole, rest) = text.split_once('.').unwrap_or((&text, ""));
    let (sign, digits) = whole.strip_prefix('-').map_or(("", whole), |digits| ("-", digits));
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    let rest = rest.trim_end_matches('0');
    let point = if rest.is_empty() { "" } else { "." };
    format!("{sign}{grouped}{point}{rest}")
}

/// A number for who looks once: three digits that count, or all before the point.
pub(crate) fn rounded(value: f64) -> String {
    if !value.is_finite() || value == 0.0 {
        return number(value);
    }
    let decimals = (2.0 - value.abs().log10().floor()).clamp(0.0, 9.0) as i32;
    let power = 10_f64.powi(decimals);
    number((value * power).round() / power)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_for_people() {
        let table = [
            (0.0, "0"),
            (1234.5, "1,234.5"),
            (1e6, "1,000,000"),
            (-0.00012, "-0.00012"),
            (99.999_99, "100"),
            (0.1 + 0.2, "0.3"),
            (f64::NAN, "–"),
        ];
        for (value, expected) in table {
            assert_eq!(number(value), expected);
        }
        let table = [
            (499.83, "500"),
            (1234.5, "1,235"),
            (0.012_345, "0.0123"),
            (9.996, "10"),
            (0.0, "0"),
            (f64::NAN, "–"),
        ];
        for (value, expected) in table {
            assert_eq!(rounded(value), expected);
        }
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!(
            Scale::new(Range { low: 10.0, high: 640.0 }, false).ticks,
            [0.0, 200.0, 400.0, 600.0, 800.0]
        );
        assert_eq!(Scale::new(Range { low: 3.0, high: 900.0 }, true).ticks, [1.0, 10.0, 100.0, 1_000.0]);
        assert_eq!(Scale::new(Range { low: 5.0, high: 5.0 }, false).ticks, [5.0, 6.0]);
    }

    /// Whatever a document says.
    #[test]
    fn an_axis_has_an_end() {
        for (low, high) in [
            (0.0, 0.05),
            (-1e14, 5.0),
            (0.0, 0.0),
            (0.0, 5e-324),
            (-5e-324, 5e-324),
            (1e14, 1e14 + 0.02),
            (0.0, 1e-320),
            (-9.9e14, 9.9e14),
            (9e14, 9e14),
        ] {
            for is_log in [false, true] {
                let scale = Scale::new(Range { low, high }, is_log);
                assert!((2..40).contains(&scale.ticks.len()), "{scale:?}");
                assert!(scale.ticks.iter().all(|tick| scale.place(*tick).is_finite()), "{scale:?}");
                assert!(is_log || (0.0..=1.0).contains(&scale.place(f64::midpoint(low, high))), "{scale:?}");
            }
        }
    }

    proptest! {
        #[test]
        fn every_shown_value_is_within_its_scale(values in prop::collection::vec(prop_oneof![-1e14_f64..1e14, prop::num::f64::ANY], 1..20), is_log: bool) {
            if let Some(range) = Range::of(values.iter().copied(), is_log) {
                let scale = Scale::new(range, is_log);
                prop_assert!((2..40).contains(&scale.ticks.len()), "{:?}", scale);
                for value in values.into_iter().filter(|value| is_shown(*value, is_log)) {
                    prop_assert!((-1e-6..=1.000_001).contains(&scale.place(value)), "{} {:?}", value, scale);
                }
            }
        }
    }
}

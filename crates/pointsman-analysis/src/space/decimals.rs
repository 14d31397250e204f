//! Numbers as texts: an automaton for those on one side of a bound.

use std::cmp::Ordering;

use pointsman_rules::{Decimal, Entry, Op, Order};

use super::automata::Table;
use super::numbers::Plain;

/// Bounds that one text is held against.
const BOUNDS_MAX: usize = 64;

/// The numbers without exponent for which a comparison comes to `holds`. Nothing for other comparisons, and for very many
/// bounds or bounds of very many digits.
pub(super) fn automaton(op: &Op, holds: bool) -> Option<Table> {
    let bounds = bounds(op)?;
    let takes = |readings: &Vec<Reading>| {
        let found: Option<Vec<Ordering>> =
            readings.iter().zip(&bounds).map(|(reading, bound)| reading.against(bound)).collect();
        found.is_some_and(|found| is_true(op, &found) == holds)
    };
    let next = |readings: &Vec<Reading>, byte| {
        Some(readings.iter().zip(&bounds).map(|(reading, bound)| reading.next(byte, &bound.digits)).collect())
    };
    let mut classes = [12; 256];
    for (class, byte) in (0..).zip(b"0123456789+-") {
        classes[usize::from(*byte)] = class;
    }
    classes[usize::from(b'.')] = 13;
    Table::explored(classes, vec![Reading::default(); bounds.len()], next, takes)
}

struct Bound {
    is_negative: bool,
    digits: Plain,
}

impl Bound {
    fn of(number: &Decimal) -> Option<Bound> {
        Some(Bound { is_negative: *number < Decimal::from(0), digits: Plain::of(number)? })
    }

    fn is_zero(&self) -> bool {
        self.digits.whole.is_empty() && self.digits.fraction.is_empty()
    }
}

/// In the order in which they stand; one at least.
fn bounds(op: &Op) -> Option<Vec<Bound>> {
    match op {
        Op::NumberEquals(bound) | Op::NumberDiffers(bound) | Op::NumberOrder(_, bound) => {
            Some(vec![Bound::of(bound)?])
        }
        Op::In(entries) => {
            let mut bounds = Vec::new();
            for entry in entries {
                match entry {
                    Entry::Number(number) => bounds.push(Bound::of(number)?),
                    Entry::NumberRange { from, to, .. } => bounds.extend([Bound::of(from)?, Bound::of(to)?]),
                    Entry::Text(_)
                    | Entry::Network(_)
                    | Entry::IpRange { .. }
                    | Entry::TextRange { .. }
                    | Entry::List(_) => return None,
                }
            }
            Some(bounds).filter(|bounds| (1..=BOUNDS_MAX).contains(&bounds.len()))
        }
        _ => None,
    }
}

/// What the comparison comes to for a number that stands to its bounds like this.
fn is_true(op: &Op, found: &[Ordering]) -> bool {
    let mut found = found.iter().copied();
    let mut next = || found.next().unwrap_or(Ordering::Equal);
    match op {
        Op::NumberEquals(_) => next().is_eq(),
        Op::NumberDiffers(_) => next().is_ne(),
        Op::NumberOrder(Order::Less, _) => next().is_lt(),
        Op::NumberOrder(Order::LessOrEqual, _) => next().is_le(),
        Op::NumberOrder(Order::Greater, _) => next().is_gt(),
        Op::NumberOrder(Order::GreaterOrEqual, _) => next().is_ge(),
        Op::In(entries) => entries.iter().fold(false, |is_in, entry| match entry {
            Entry::NumberRange { exclusive, .. } => {
                let (low, high) = (next(), next());
                is_in || if *exclusive { low.is_gt() && high.is_lt() } else { low.is_ge() && high.is_le() }
            }
            _ => next().is_eq() || is_in,
        }),
        _ => false,
    }
}

/// How far a text has been read, and how what was read stands to the bound, both without their signs.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
struct Reading {
    place: Place,
    is_negative: bool,
    /// Of digits before the point without zeros at their head, one more than the bound's at most; then of those behind it.
    digits: usize,
    /// Of the digits so far.
    standing: Standing,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
enum Place {
    #[default]
    Start,
    Sign,
    Whole,
    Point,
    Fraction,
    /// It is no such number.
    Off,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
enum Standing {
    Less,
    #[default]
    Equal,
    Greater,
}

impl From<Ordering> for Standing {
    fn from(ordering: Ordering) -> Standing {
        match ordering {
            Ordering::Less => Standing::Less,
            Ordering::Equal => Standing::Equal,
            Ordering::Greater => Standing::Greater,
        }
    }
}

impl Reading {
    fn next(self, byte: u8, bound: &Plain) -> Reading {
        let off = Reading { place: Place::Off, ..Reading::default() };
        match (self.place, byte) {
            (Place::Start, b'+') => Reading { place: Place::Sign, ..self },
            (Place::Start, b'-') => Reading { place: Place::Sign, is_negative: true, ..self },
            (Place::Start | Place::Sign | Place::Whole, b'0'..=b'9') => self.whole(byte, bound),
            (Place::Whole, b'.') => {
                let standing = self.of_whole(bound);
                Reading { place: Place::Point, digits: 0, standing, ..self }
            }
            (Place::Point | Place::Fraction, b'0'..=b'9') => self.fraction(byte, bound),
            _ => off,
        }
    }

    fn whole(self, digit: u8, bound: &Plain) -> Reading {
        let reading = Reading { place: Place::Whole, ..self };
        if digit == b'0' && self.digits == 0 {
            return reading;
        }
        let standing = match (self.standing, bound.whole.get(self.digits)) {
            (Standing::Equal, Some(other)) => digit.cmp(other).into(),
            (standing, _) => standing,
        };
        Reading { digits: (self.digits + 1).min(bound.whole.len() + 1), standing, ..reading }
    }

    fn fraction(self, digit: u8, bound: &Plain) -> Reading {
        let reading = Reading { place: Place::Fraction, ..self };
        if self.standing != Standing::Equal {
            return reading;
        }
        let other = bound.fraction.get(self.digits).copied().unwrap_or(b'0');
        let digits = (self.digits + 1).min(bound.fraction.len());
        Reading { digits, standing: digit.cmp(&other).into(), ..reading }
    }

    /// By the digits before the point, all of them read: more of them are a greater number.
    fn of_whole(self, bound: &Plain) -> Standing {
        match self.digits.cmp(&bound.whole.len()) {
            Ordering::Equal => self.standing,
            other => other.into(),
        }
    }

    /// How the number stands to the bound, both without their signs; nothing where the text is no number.
    fn magnitude(self, bound: &Plain) -> Option<Ordering> {
        let (standing, digits) = match self.place {
            Place::Whole => (self.of_whole(bound), 0),
            Place::Fraction => (self.standing, self.digits),
            Place::Start | Place::Sign | Place::Point | Place::Off => return None,
        };
        Some(match standing {
            Standing::Less => Ordering::Less,
            Standing::Equal if digits < bound.fraction.len() => Ordering::Less,
            Standing::Equal => Ordering::Equal,
            Standing::Greater => Ordering::Greater,
        })
    }

    /// How the number stands to the bound; nothing where the text is no number.
    fn against(self, bound: &Bound) -> Option<Ordering> {
        let magnitude = self.magnitude(&bound.digits)?;
        Some(match (self.is_negative, bound.is_negative) {
            (true, true) => magnitude.reverse(),
            (true, false) if bound.is_zero() => magnitude.reverse(),
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            (false, false) => magnitude,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn texts_are_taken_as_the_number_they_are(
            text in "[+-]?[019]{1,4}(\\.[019]{1,3})?|[019.+-]{0,4}",
            bound in "-?[019]{1,3}(\\.[019]{1,3})?",
            other in "-?[019]{1,2}(\\.[019])?",
        ) {
            let number = Decimal::parse(text.as_bytes()).ok();
            let bound: Decimal = bound.parse().expect("a number");
            let other: Decimal = other.parse().expect("a number");
            let (from, to) = (bound.clone().min(other.clone()), bound.clone().max(other.clone()));
            let range = |exclusive| Entry::NumberRange { from: from.clone(), to: to.clone(), exclusive };
            for op in [
                Op::NumberEquals(bound.clone()),
                Op::NumberDiffers(bound.clone()),
                Op::NumberOrder(Order::Less, bound.clone()),
                Op::NumberOrder(Order::LessOrEqual, bound.clone()),
                Op::NumberOrder(Order::Greater, bound.clone()),
                Op::NumberOrder(Order::GreaterOrEqual, bound.clone()),
                Op::In(vec![range(true), Entry::Number(9.into())]),
                Op::In(vec![Entry::Number(9.into()), range(false)]),
            ] {
                let expected = number.as_ref().map(|number| {
                    let is_in = |exclusive| match exclusive {
                        true => from < *number && *number < to,
                        false => from <= *number && *number <= to,
                    };
                    match &op {
                        Op::NumberEquals(_) => *number == bound,
                        Op::NumberDiffers(_) => *number != bound,
                        Op::NumberOrder(Order::Less, _) => *number < bound,
                        Op::NumberOrder(Order::LessOrEqual, _) => *number <= bound,
                        Op::NumberOrder(Order::Greater, _) => *number > bound,
                        Op::NumberOrder(Order::GreaterOrEqual, _) => *number >= bound,
                        Op::In(entries) => {
                            *number == Decimal::from(9) || is_in(matches!(entries[..], [Entry::NumberRange { .. }, _]))
                        }
                        other => panic!("{other:?}"),
                    }
                });
                for holds in [true, false] {
                    let table = automaton(&op, holds).expect("it is small");
                    prop_assert_eq!(table.takes(text.as_bytes()), expected == Some(holds), "{:?} {} {}", op, text, holds);
                }
            }
        }
    }
}

//! Numbers as texts: an automaton for those on one side of a bound.

use std::cmp::Ordering;

use pointsman_rules::{Decimal, Op, Order};

use super::automata::Table;
use super::numbers::Plain;

/// The numbers without exponent for which a comparison comes to `holds`. Nothing for other comparisons, and for bounds
/// of very many digits.
pub(super) fn automaton(op: &Op, holds: bool) -> Option<Table> {
    let bound = match op {
        Op::NumberEquals(bound) | Op::NumberDiffers(bound) | Op::NumberOrder(_, bound) => bound,
        _ => return None,
    };
    let is_wanted = |found: Ordering| {
        let truth = match op {
            Op::NumberEquals(_) => found.is_eq(),
            Op::NumberDiffers(_) => found.is_ne(),
            Op::NumberOrder(Order::Less, _) => found.is_lt(),
            Op::NumberOrder(Order::LessOrEqual, _) => found.is_le(),
            Op::NumberOrder(Order::Greater, _) => found.is_gt(),
            _ => found.is_ge(),
        };
        truth == holds
    };
    let digits = Plain::of(bound)?;
    let is_negative = *bound < Decimal::from(0);
    let takes = |reading: &Reading| {
        reading.magnitude(&digits).is_some_and(|found| is_wanted(reading.against(found, is_negative, &digits)))
    };
    let mut classes = [12; 256];
    for (class, byte) in (0..).zip(b"0123456789+-") {
        classes[usize::from(*byte)] = class;
    }
    classes[usize::from(b'.')] = 13;
    Table::explored(classes, Reading::default(), |reading, byte| Some(reading.next(byte, &digits)), takes)
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

    fn against(self, magnitude: Ordering, is_negative: bool, bound: &Plain) -> Ordering {
        let is_zero = bound.whole.is_empty() && bound.fraction.is_empty();
        match (self.is_negative, is_negative) {
            (true, true) => magnitude.reverse(),
            (true, false) if is_zero => magnitude.reverse(),
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            (false, false) => magnitude,
        }
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
        ) {
            let number = Decimal::parse(text.as_bytes()).ok();
            let bound: Decimal = bound.parse().expect("a number");
            for (op, found) in [
                (Op::NumberEquals(bound.clone()), number.as_ref().map(|number| *number == bound)),
                (Op::NumberDiffers(bound.clone()), number.as_ref().map(|number| *number != bound)),
                (Op::NumberOrder(Order::Less, bound.clone()), number.as_ref().map(|number| *number < bound)),
                (Op::NumberOrder(Order::GreaterOrEqual, bound.clone()), number.as_ref().map(|number| *number >= bound)),
            ] {
                for holds in [true, false] {
                    let table = automaton(&op, holds).expect("it is small");
                    prop_assert_eq!(table.takes(text.as_bytes()), found == Some(holds), "{:?} {} {}", op, text, holds);
                }
            }
        }
    }
}

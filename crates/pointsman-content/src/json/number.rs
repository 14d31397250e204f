//! Numbers and literals (RFC 8259 sections 6 and 3), cut anywhere.

use super::scan::{NumberMarks, behind_digits, number_marks};
use crate::Value;

/// The part of a number that was read last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Minus,
    /// A leading zero, behind which no digit may stand.
    Zero,
    Integer,
    Point,
    Fraction,
    /// The `e`.
    Mark,
    /// The sign behind it.
    Sign,
    Exponent,
}

impl Part {
    /// What a number begins with.
    #[inline]
    pub(super) fn first(byte: u8) -> Option<Part> {
        match byte {
            b'1'..=b'9' => Some(Part::Integer),
            b'0' => Some(Part::Zero),
            b'-' => Some(Part::Minus),
            _ => None,
        }
    }

    /// Whether a number may end behind it.
    #[inline]
    pub(super) fn may_end(self) -> bool {
        matches!(self, Part::Zero | Part::Integer | Part::Fraction | Part::Exponent)
    }

    /// Reads on in a number from `at`, up to the first byte that is not its.
    #[inline]
    pub(super) fn read_on(&mut self, bytes: &[u8], mut at: usize) -> usize {
        loop {
            if matches!(self, Part::Integer | Part::Fraction | Part::Exponent) {
                at = behind_digits(bytes, at);
            }
            let Some(&byte) = bytes.get(at) else { return at };
            *self = match (*self, byte) {
                (Part::Zero | Part::Integer, b'.') => Part::Point,
                (Part::Zero | Part::Integer | Part::Fraction, b'e' | b'E') => Part::Mark,
                (Part::Mark, b'+' | b'-') => Part::Sign,
                (Part::Mark | Part::Sign, b'0'..=b'9') => Part::Exponent,
                (Part::Point, b'0'..=b'9') => Part::Fraction,
                (Part::Minus, b'0') => Part::Zero,
                (Part::Minus, b'1'..=b'9') => Part::Integer,
                _ => return at,
            };
            at += 1;
        }
    }
}

/// The end of a number that begins at `at` with a digit or a minus, if it is right and shorter than sixteen bytes, and
/// so many follow.
///
/// Its bytes are looked at all at once, for where its parts end cannot be foretold.
#[inline]
pub(super) fn end_of_short_number(bytes: &[u8], at: usize) -> Option<usize> {
    let NumberMarks { digits, points, marks, signs } = number_marks(bytes, at)?;
    let length = (digits | points | marks | signs).trailing_ones();
    let its = 0xffff_u32.checked_shr(16_u32.checked_sub(length)?)?;
    let (digits, points, marks, signs) = (digits & its, points & its, marks & its, signs & its);
    let minus = signs & 1;
    let (behind_digit, before_digit) = (digits << 1, digits >> 1);
    let wrong = (points | marks) & !behind_digit
        | (points | signs) & !before_digit
        | marks & !(before_digit | signs >> 1)
        | signs & !minus & !(marks << 1)
        | points & points.wrapping_sub(1)
        | marks & marks.wrapping_sub(1);
    let is_in_order = marks == 0 || points < marks;
    let first = at + minus as usize;
    let is_zero_before_a_digit = bytes.get(first) == Some(&b'0') && before_digit >> minus & 1 == 1;
    (wrong == 0 && is_in_order && !is_zero_before_a_digit && length < 16).then_some(at + length as usize)
}

/// A literal, and how much of it has been read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Literal {
    /// What is still to come.
    pub(super) left: &'static [u8],
    pub(super) value: Value<'static>,
}

impl Literal {
    /// The one that stands whole at `at`: where it ends, and what it means.
    #[inline]
    pub(super) fn whole(bytes: &[u8], at: usize) -> Option<(usize, Value<'static>)> {
        match bytes.get(at..)? {
            [b't', b'r', b'u', b'e', ..] => Some((at + 4, Value::Boolean(true))),
            [b'f', b'a', b'l', b's', b'e', ..] => Some((at + 5, Value::Boolean(false))),
            [b'n', b'u', b'l', b'l', ..] => Some((at + 4, Value::Other)),
            _ => None,
        }
    }

    /// The one that begins with this byte.
    pub(super) fn first(byte: u8) -> Option<Literal> {
        match byte {
            b't' => Some(Literal { left: b"rue", value: Value::Boolean(true) }),
            b'f' => Some(Literal { left: b"alse", value: Value::Boolean(false) }),
            b'n' => Some(Literal { left: b"ull", value: Value::Other }),
            _ => None,
        }
    }

    /// Reads on from `at`, up to the first byte that is not its.
    pub(super) fn read_on(&mut self, bytes: &[u8], at: usize) -> usize {
        let rest = bytes.get(at..).unwrap_or_default();
        let read = rest.iter().zip(self.left).take_while(|(one, other)| one == other).count();
        self.left = self.left.get(read..).unwrap_or_default();
        at + read
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All texts of up to six of these bytes, with what may stand behind them.
    #[test]
    fn short_numbers_end_where_others_do() {
        const BYTES: &[u8] = b"01.e-+,";
        let mut short = 0;
        for drawn in 0..BYTES.len().pow(6) {
            let text: Vec<u8> =
                (0..6).map(|place| BYTES[drawn / BYTES.len().pow(place) % BYTES.len()]).collect();
            let Some(mut part) = Part::first(text[0]) else { continue };
            let padded = [&text[..], b"]          "].concat();
            let end = part.read_on(&padded, 1);
            let is_whole = part.may_end() && !b"01.e-+".contains(&padded[end]);
            let found = end_of_short_number(&padded, 0);
            assert_eq!(found, is_whole.then_some(end), "{}", text.escape_ascii());
            short += usize::from(found.is_some());
        }
        assert!(short > 1000);
    }

    #[test]
    fn short_numbers_have_fifteen_bytes() {
        for length in 1..40 {
            let text = format!("[{}]{}", "7".repeat(length), " ".repeat(16));
            let expected = (length < 16).then_some(length + 1);
            assert_eq!(end_of_short_number(text.as_bytes(), 1), expected);
        }
        assert_eq!(end_of_short_number(b"[1]", 1), None);
    }
}

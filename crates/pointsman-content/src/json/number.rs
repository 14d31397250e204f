//! Numbers and literals (RFC 8259 sections 6 and 3), cut anywhere.

use super::scan::behind_digits;
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

/// A literal, and how much of it has been read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Literal {
    /// What is still to come.
    pub(super) left: &'static [u8],
    pub(super) value: Value<'static>,
}

impl Literal {
    /// The one that begins with this byte.
    #[inline]
    pub(super) fn first(byte: u8) -> Option<Literal> {
        match byte {
            b't' => Some(Literal { left: b"rue", value: Value::Boolean(true) }),
            b'f' => Some(Literal { left: b"alse", value: Value::Boolean(false) }),
            b'n' => Some(Literal { left: b"ull", value: Value::Other }),
            _ => None,
        }
    }

    /// Reads on from `at`, up to the first byte that is not its.
    #[inline]
    pub(super) fn read_on(&mut self, bytes: &[u8], at: usize) -> usize {
        let rest = bytes.get(at..).unwrap_or_default();
        if let Some(left) = rest.get(..self.left.len())
            && left == self.left
        {
            self.left = b"";
            return at + left.len();
        }
        let read = rest.iter().zip(self.left).take_while(|(one, other)| one == other).count();
        self.left = self.left.get(read..).unwrap_or_default();
        at + read
    }
}

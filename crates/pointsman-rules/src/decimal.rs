//! Exact decimal numbers: money is never a float.

/// An exact decimal number.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Decimal {
    negative: bool,
    digits: Box<[u8]>,
    exponent: i32,
}

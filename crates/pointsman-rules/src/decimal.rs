//! Exact decimal numbers: money is never a float.

use std::cmp::Ordering;
use std::fmt;

/// Longest text that may be a number, without the white space around it.
pub const DECIMAL_BYTES_MAX: usize = 4096;

/// Largest absolute value of a written exponent.
pub const DECIMAL_EXPONENT_MAX: u32 = 6144;

/// An exact decimal number, kept as `0.DIGITS` times ten to the power of `point`.
///
/// Invariant: `digits` neither starts nor ends with a zero, and zero itself has no digits, a
/// `point` of 0 and no sign. Equal numbers are therefore equal field by field, and two numbers
/// are ordered without a zero ever being written out.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Decimal {
    negative: bool,
    point: i32,
    digits: Box<[u8]>,
}

/// The text is not a number that rules can compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotANumber;

impl fmt::Display for NotANumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a number")
    }
}

impl std::error::Error for NotANumber {}

impl Decimal {
    /// Reads `[+-]?digits[.digits][e±n]`, with white space around it ignored.
    ///
    /// # Errors
    /// [`NotANumber`] for any other text, for more than [`DECIMAL_BYTES_MAX`] bytes, and for an
    /// exponent beyond [`DECIMAL_EXPONENT_MAX`].
    pub fn parse(text: &[u8]) -> Result<Decimal, NotANumber> {
        Ok(Numeral::parse(text)?.to_decimal())
    }

    /// How this number stands to the number that `text` spells, without allocating.
    ///
    /// # Errors
    /// [`NotANumber`] where [`Decimal::parse`] would refuse the text.
    pub(crate) fn cmp_text(&self, text: &[u8]) -> Result<Ordering, NotANumber> {
        Ok(self.as_numeral().cmp(&Numeral::parse(text)?))
    }

    /// How this number stands to a whole number, without allocating.
    #[must_use]
    pub(crate) fn cmp_integer(&self, integer: u64) -> Ordering {
        let mut buffer = [0; 20];
        let digits = integer_digits(integer, &mut buffer);
        self.as_numeral().cmp(&Numeral::new(false, digits, b"", 0))
    }

    pub(crate) fn as_numeral(&self) -> Numeral<'_> {
        Numeral { negative: self.negative, point: self.point, whole: b"", fraction: &self.digits }
    }
}

impl From<u64> for Decimal {
    fn from(integer: u64) -> Decimal {
        let mut buffer = [0; 20];
        Numeral::new(false, integer_digits(integer, &mut buffer), b"", 0).to_decimal()
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Decimal) -> Ordering {
        self.as_numeral().cmp(&other.as_numeral())
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Decimal) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl std::str::FromStr for Decimal {
    type Err = NotANumber;

    fn from_str(text: &str) -> Result<Decimal, NotANumber> {
        Decimal::parse(text.as_bytes())
    }
}

/// Of [`Numeral::head`]: digits, and the bits they take. Points lie between minus and plus the bias.
const HEAD_DIGITS: u32 = 14;
const HEAD_BITS: u32 = 47;
const POINT_BIAS: i64 = 1 << 15;

/// Longest run of zeros that is written out instead of an exponent.
const ZEROS_MAX: u32 = 20;

/// Plain notation while it stays short, otherwise with an exponent. [`Decimal::parse`] reads it
/// as the same number; only one whose digits fill [`DECIMAL_BYTES_MAX`] may come out longer.
impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = std::str::from_utf8(&self.digits).unwrap_or_default();
        if digits.is_empty() {
            return f.write_str("0");
        }
        if self.negative {
            f.write_str("-")?;
        }
        if self.point <= 0 {
            let (zeros, exponent) = zeros_and_exponent(self.point.unsigned_abs());
            write!(f, "0.{:0<zeros$}{digits}", "")?;
            return write_exponent(f, -exponent);
        }
        let point = self.point.unsigned_abs() as usize;
        if point < digits.len() {
            let (whole, fraction) = digits.split_at(point);
            return write!(f, "{whole}.{fraction}");
        }
        let (zeros, exponent) = zeros_and_exponent((self.point - length(&self.digits)).unsigned_abs());
        write!(f, "{digits}{:0<zeros$}", "")?;
        write_exponent(f, exponent)
    }
}

/// How many of the zeros are written out, and what the exponent says of the rest, which may not
/// exceed what parsing allows.
fn zeros_and_exponent(zeros: u32) -> (usize, i32) {
    if zeros <= ZEROS_MAX {
        return (zeros as usize, 0);
    }
    let exponent = zeros.min(DECIMAL_EXPONENT_MAX);
    ((zeros - exponent) as usize, exponent.cast_signed())
}

fn write_exponent(f: &mut fmt::Formatter<'_>, exponent: i32) -> fmt::Result {
    if exponent == 0 {
        return Ok(());
    }
    write!(f, "e{exponent}")
}

/// A number as it is written: borrowed, with the zeros that say nothing cut off.
///
/// Its value is `0.WHOLE FRACTION` (the two strings of digits joined) times ten to the power of
/// `point`; the joined digits neither start nor end with a zero.
pub(crate) struct Numeral<'a> {
    negative: bool,
    point: i32,
    whole: &'a [u8],
    fraction: &'a [u8],
}

impl<'a> Numeral<'a> {
    pub(crate) fn parse(text: &'a [u8]) -> Result<Numeral<'a>, NotANumber> {
        let text = text.trim_ascii();
        if text.len() > DECIMAL_BYTES_MAX {
            return Err(NotANumber);
        }
        let (negative, text) = match text {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            _ => (false, text),
        };
        let (whole, text) = split_digits(text)?;
        let (fraction, text) = match text {
            [b'.', rest @ ..] => split_digits(rest)?,
            _ => (&[][..], text),
        };
        let exponent = match text {
            [] => 0,
            [b'e' | b'E', rest @ ..] => parse_exponent(rest)?,
            _ => return Err(NotANumber),
        };
        Ok(Numeral::new(negative, whole, fraction, exponent))
    }

    /// Cuts off what says nothing. `exponent` and the lengths are bounded by the callers, so the
    /// sums cannot overflow.
    fn new(negative: bool, whole: &'a [u8], fraction: &'a [u8], exponent: i32) -> Numeral<'a> {
        let whole = trim_leading_zeros(whole);
        let mut point = exponent + length(whole);
        let mut fraction = trim_trailing_zeros(fraction);
        let mut trimmed_whole = whole;
        if whole.is_empty() {
            let significant = trim_leading_zeros(fraction);
            point -= length(fraction) - length(significant);
            fraction = significant;
        }
        if fraction.is_empty() {
            trimmed_whole = trim_trailing_zeros(whole);
        }
        let zero = trimmed_whole.is_empty() && fraction.is_empty();
        Numeral {
            negative: negative && !zero,
            point: if zero { 0 } else { point },
            whole: trimmed_whole,
            fraction,
        }
    }

    /// A whole number, spelled in `digits`.
    pub(crate) fn of_integer(integer: u64, digits: &'a mut [u8; 20]) -> Numeral<'a> {
        Numeral::new(false, integer_digits(integer, digits), b"", 0)
    }

    /// A whole number that is never greater for the lesser of two numerals: most can be told apart by it.
    pub(crate) fn head(&self) -> i64 {
        let mut digits = self.digits();
        let first = (0..HEAD_DIGITS)
            .fold(0_i64, |head, _| head * 10 + digits.next().map_or(0, |digit| i64::from(digit - b'0')));
        match self.sign() {
            0 => 0,
            sign => i64::from(sign) * (((i64::from(self.point) + POINT_BIAS) << HEAD_BITS) + first),
        }
    }

    pub(crate) fn cmp(&self, other: &Numeral<'_>) -> Ordering {
        match (self.sign(), other.sign()) {
            (1, 1) => self.cmp_magnitude(other),
            (-1, -1) => other.cmp_magnitude(self),
            (mine, others) => mine.cmp(&others),
        }
    }

    fn sign(&self) -> i8 {
        match (self.whole.is_empty() && self.fraction.is_empty(), self.negative) {
            (true, _) => 0,
            (false, true) => -1,
            (false, false) => 1,
        }
    }

    /// Both are `0.d…` with a first digit that is not zero, so the power of ten decides first;
    /// after it the digits compare as text, where a number that ends early is the smaller one.
    fn cmp_magnitude(&self, other: &Numeral<'_>) -> Ordering {
        self.point.cmp(&other.point).then_with(|| self.digits().cmp(other.digits()))
    }

    fn digits(&self) -> impl Iterator<Item = u8> {
        self.whole.iter().chain(self.fraction).copied()
    }

    fn to_decimal(&self) -> Decimal {
        Decimal { negative: self.negative, point: self.point, digits: self.digits().collect() }
    }
}

/// The digits at the start of `text`, at least one, and what follows them.
fn split_digits(text: &[u8]) -> Result<(&[u8], &[u8]), NotANumber> {
    let end = text.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    if end == 0 {
        return Err(NotANumber);
    }
    Ok(text.split_at(end))
}

fn parse_exponent(text: &[u8]) -> Result<i32, NotANumber> {
    let (negative, text) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    let (digits, rest) = split_digits(text)?;
    if !rest.is_empty() {
        return Err(NotANumber);
    }
    let mut exponent = 0;
    for digit in digits {
        exponent = exponent * 10 + u32::from(digit - b'0');
        if exponent > DECIMAL_EXPONENT_MAX {
            return Err(NotANumber);
        }
    }
    let exponent = exponent.cast_signed();
    Ok(if negative { -exponent } else { exponent })
}

fn trim_leading_zeros(digits: &[u8]) -> &[u8] {
    let zeros = digits.iter().take_while(|digit| **digit == b'0').count();
    &digits[zeros..]
}

fn trim_trailing_zeros(digits: &[u8]) -> &[u8] {
    let zeros = digits.iter().rev().take_while(|digit| **digit == b'0').count();
    &digits[..digits.len() - zeros]
}

/// Lengths here are at most [`DECIMAL_BYTES_MAX`].
fn length(digits: &[u8]) -> i32 {
    i32::try_from(digits.len()).unwrap_or(i32::MAX)
}

pub(crate) fn integer_digits(integer: u64, buffer: &mut [u8; 20]) -> &[u8] {
    let mut rest = integer;
    let mut start = buffer.len();
    loop {
        start -= 1;
        buffer[start] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            return &buffer[start..];
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use proptest::prelude::*;

    use super::{Decimal, NotANumber};

    fn decimal(text: &str) -> Decimal {
        Decimal::parse(text.as_bytes()).unwrap_or_else(|_| panic!("`{text}` is a number"))
    }

    #[test]
    fn spelling_does_not_matter() {
        for same in [
            &["1", "1.0", "1.00", "1e0", "+1", "01", "10e-1", "0.1E1", " 1\n"][..],
            &["0", "-0", "+0.000", "0e6144", "0e-6144", "00"],
            &["52000", "52e3", "5.2e4", "52000.000"],
            &["-0.05", "-5e-2", "-0.5e-1", "-00.050"],
        ] {
            for (a, b) in same.iter().flat_map(|a| same.iter().map(move |b| (a, b))) {
                assert_eq!(decimal(a), decimal(b), "{a} and {b}");
                assert_eq!(decimal(a).cmp_text(b.as_bytes()), Ok(Ordering::Equal), "{a} and {b}");
            }
        }
    }

    #[test]
    fn in_ascending_order() {
        let ascending = [
            "-1e6144",
            "-52000.01",
            "-52000",
            "-1",
            "-0.5",
            "-0.05",
            "-1e-6144",
            "0",
            "1e-6144",
            "0.05",
            "0.5",
            "0.51",
            "1",
            "1.000000000000000000000000000001",
            "9",
            "10",
            "52000",
            "52000.01",
            "1e6144",
        ];
        for pair in ascending.windows(2) {
            assert!(decimal(pair[0]) < decimal(pair[1]), "{} < {}", pair[0], pair[1]);
            assert!(decimal(pair[1]) > decimal(pair[0]), "{} > {}", pair[1], pair[0]);
        }
    }

    #[test]
    fn other_texts_are_not_numbers() {
        for text in [
            "",
            " ",
            "+",
            "-",
            ".5",
            "5.",
            "1 2",
            "--1",
            "+-1",
            "0x10",
            "1e",
            "1e+",
            "1e6145",
            "1e-6145",
            "1e99999999999999999999",
            "1.e5",
            "1.2.3",
            "1,5",
            "NaN",
            "inf",
            "1_000",
            "\u{661}",
            "1\0",
            "e5",
        ] {
            assert_eq!(Decimal::parse(text.as_bytes()), Err(NotANumber), "`{text}`");
        }
        assert!(Decimal::parse(&[b'1'; 4096]).is_ok());
        assert_eq!(Decimal::parse(&[b'1'; 4097]), Err(NotANumber));
    }

    #[test]
    fn printed_for_people() {
        for (text, printed) in [
            ("52000.00", "52000"),
            ("-0.050", "-0.05"),
            ("+99.95", "99.95"),
            ("-0", "0"),
            ("1e20", "100000000000000000000"),
            ("1e21", "1e21"),
            ("12e-3000", "0.12e-2998"),
        ] {
            assert_eq!(decimal(text).to_string(), printed);
        }
    }

    /// The definition: both numbers written out without exponents, padded to one length with
    /// zeros on both sides, and compared as text.
    fn slow_cmp(a: &str, b: &str) -> Ordering {
        const SIDE: usize = 80;
        let written_out = |text: &str| {
            let negative = text.starts_with('-');
            let text = text.trim_start_matches(['+', '-']).to_ascii_lowercase();
            let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
            let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
            let exponent: i64 = exponent.parse().expect("small");
            let mut digits = vec![b'0'; 2 * SIDE];
            let start = SIDE as i64 - exponent - whole.len() as i64;
            for (offset, digit) in whole.bytes().chain(fraction.bytes()).enumerate() {
                digits[usize::try_from(start).expect("small") + offset] = digit;
            }
            (negative, digits)
        };
        let ((a_negative, a), (b_negative, b)) = (written_out(a), written_out(b));
        let zero = vec![b'0'; 2 * SIDE];
        match (a_negative && a != zero, b_negative && b != zero) {
            (false, false) => a.cmp(&b),
            (true, true) => b.cmp(&a),
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
        }
    }

    fn numbers() -> impl Strategy<Value = String> {
        "[+-]?[019]{1,4}(\\.[019]{1,4})?([eE][+-]?[0-9])?"
    }

    proptest! {
        #[test]
        fn order_is_its_definition(a in numbers(), b in numbers()) {
            let expected = slow_cmp(&a, &b);
            prop_assert_eq!(decimal(&a).cmp(&decimal(&b)), expected);
            prop_assert_eq!(decimal(&a).cmp_text(b.as_bytes()), Ok(expected));
            prop_assert_eq!(decimal(&a) == decimal(&b), expected.is_eq());
        }

        #[test]
        fn integers_are_their_digits(a: u64, b: u64) {
            prop_assert_eq!(Decimal::from(a), decimal(&a.to_string()));
            prop_assert_eq!(Decimal::from(a).cmp_integer(b), a.cmp(&b));
            prop_assert_eq!(Decimal::from(a).to_string().parse(), Ok(decimal(&a.to_string())));
        }

        #[test]
        fn printing_is_read_back(text in "-?[0-9]{1,40}(\\.[0-9]{1,40})?(e-?[0-5]?[0-9]{1,3})?") {
            let number = decimal(&text);
            prop_assert_eq!(Decimal::parse(number.to_string().as_bytes()), Ok(number));
        }

        #[test]
        fn any_bytes_are_harmless(text in proptest::collection::vec(any::<u8>(), 0..40)) {
            let parsed = Decimal::parse(&text);
            prop_assert_eq!(parsed.is_ok(), Decimal::from(0).cmp_text(&text).is_ok());
        }
    }
}

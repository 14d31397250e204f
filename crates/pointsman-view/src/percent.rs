//! Percent-codes (RFC 3986 section 2.1).

/// The byte that the percent-code at the start of `text` stands for.
pub(crate) fn code_at_start(text: &[u8]) -> Option<u8> {
    match text {
        [b'%', high, low, ..] => Some(hex_digit(*high)? << 4 | hex_digit(*low)?),
        _ => None,
    }
}

/// The bytes that are left of some text, with percent-codes decoded once. A `%` without two hex digits stays as it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Decoded<'a> {
    pub(crate) rest: &'a [u8],
    /// Whether `+` is a blank, as in a query.
    pub(crate) plus_is_blank: bool,
}

impl Iterator for Decoded<'_> {
    type Item = u8;

    fn next(&mut self) -> Option<u8> {
        let (&byte, after) = self.rest.split_first()?;
        let (meant, after) = match (byte, code_at_start(self.rest)) {
            (_, Some(meant)) => (meant, &self.rest[3..]),
            (b'+', None) if self.plus_is_blank => (b' ', after),
            (_, None) => (byte, after),
        };
        self.rest = after;
        Some(meant)
    }
}

/// The text with its percent-codes decoded once.
pub(crate) fn decoded(text: &[u8]) -> Vec<u8> {
    Decoded { rest: text, plus_is_blank: false }.collect()
}

/// Whether a byte may stand for itself anywhere (RFC 3986 section 2.3).
pub(crate) fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

fn hex_digit(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}

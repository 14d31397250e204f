//! The first byte that means something, looked for sixteen bytes at a time.
//!
//! All but names stop at controls, which XML forbids or changes, and at the first byte of U+FFFE and U+FFFF, which it
//! forbids.

use wide::u8x16;

use crate::sixteen::first;

/// The first byte of U+F000 to U+FFFF.
pub(super) const HIGH: u8 = 0xef;

/// The first byte from `at` on that text may not pass over: `<`, `&`, `]`, the high one, or a control but the tab and
/// the line feed; or the end.
#[inline]
pub(super) fn text(bytes: &[u8], at: usize) -> usize {
    first(bytes, at, |found| is(found, b'<') | is(found, b'&') | is(found, b']') | odd(found))
}

/// The same inside of what ends with `stop`: a comment, an instruction, CDATA.
#[inline]
pub(super) fn up_to(bytes: &[u8], at: usize, stop: u8) -> usize {
    first(bytes, at, |found| is(found, stop) | odd(found))
}

/// The first byte from `at` on that an attribute's value may not pass over: its quote, `<`, `&`, the high one or any
/// control; or the end.
#[inline]
pub(super) fn value(bytes: &[u8], at: usize, quote: u8) -> usize {
    first(bytes, at, |found| {
        is(found, quote) | is(found, b'<') | is(found, b'&') | is(found, HIGH) | low(found)
    })
}

/// The first byte from `at` on that is no part of a name in ASCII, the colon being none; or the end.
#[inline]
pub(super) fn name(bytes: &[u8], at: usize) -> usize {
    first(bytes, at, |found| {
        let letters = among(found | u8x16::splat(0x20), b'a', b'z');
        !(letters | among(found, b'0', b'9') | among(found, b'-', b'.') | is(found, b'_'))
    })
}

/// Whether U+FFFE or U+FFFF stands at `at`, where the high byte is.
#[inline]
pub(super) fn is_noncharacter(bytes: &[u8], at: usize) -> bool {
    matches!(bytes.get(at + 1..at + 3), Some([0xbf, 0xbe | 0xbf]))
}

#[inline]
fn odd(bytes: u8x16) -> u8x16 {
    (low(bytes) & !(is(bytes, b'\t') | is(bytes, b'\n'))) | is(bytes, HIGH)
}

#[inline]
fn low(bytes: u8x16) -> u8x16 {
    bytes.simd_le(u8x16::splat(0x1f))
}

#[inline]
fn is(bytes: u8x16, byte: u8) -> u8x16 {
    bytes.simd_eq(u8x16::splat(byte))
}

#[inline]
fn among(bytes: u8x16, from: u8, to: u8) -> u8x16 {
    (bytes - u8x16::splat(from)).simd_le(u8x16::splat(to - from))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sixteen::check_places;

    fn is_odd(byte: u8) -> bool {
        (byte < b' ' && byte != b'\t' && byte != b'\n') || byte == HIGH
    }

    /// Every byte at every place of short and long pieces, looked for from every place before it.
    #[test]
    fn bytes_are_told_apart_wherever_they_stand() {
        type Kind = (fn(&[u8], usize) -> usize, fn(u8) -> bool);
        let kinds: [Kind; 4] = [
            (text, |byte| b"<&]".contains(&byte) || is_odd(byte)),
            (|bytes, at| up_to(bytes, at, b'-'), |byte| byte == b'-' || is_odd(byte)),
            (|bytes, at| value(bytes, at, b'\''), |byte| b"<&'\xef".contains(&byte) || byte < b' '),
            (name, |byte| !byte.is_ascii_alphanumeric() && !b"-._".contains(&byte)),
        ];
        for (find, is_found) in kinds {
            check_places(find, b"xZ09_", is_found);
        }
    }
}

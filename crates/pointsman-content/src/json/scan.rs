//! Looks for the first byte of a kind.

use wide::u8x16;

use crate::sixteen::first;

/// The first `"`, `\` or control from `at` on, or the end.
#[inline]
pub(super) fn up_to_string_mark(bytes: &[u8], at: usize) -> usize {
    first(bytes, at, |bytes| {
        let quotes = bytes.simd_eq(u8x16::splat(b'"')) | bytes.simd_eq(u8x16::splat(b'\\'));
        quotes | bytes.simd_le(u8x16::splat(0x1f))
    })
}

/// The first byte from `at` on that is no white space (RFC 8259 section 2), or the end.
pub(super) fn behind_white_space(bytes: &[u8], at: usize) -> usize {
    first(bytes, at, |bytes| {
        let one_of = |one, other| bytes.simd_eq(u8x16::splat(one)) | bytes.simd_eq(u8x16::splat(other));
        !(one_of(b' ', b'\n') | one_of(b'\t', b'\r'))
    })
}

/// Sixteen bytes of which some may be a number's, a bit for each of a kind.
pub(super) struct NumberMarks {
    pub(super) digits: u32,
    pub(super) points: u32,
    /// `e` and `E`.
    pub(super) marks: u32,
    pub(super) signs: u32,
}

/// What stands at `at`, if there are sixteen bytes.
#[inline]
pub(super) fn number_marks(bytes: &[u8], at: usize) -> Option<NumberMarks> {
    let bytes = u8x16::new(*bytes.get(at..)?.first_chunk()?);
    let are = |byte| bytes.simd_eq(u8x16::splat(byte));
    Some(NumberMarks {
        digits: (bytes - u8x16::splat(b'0')).simd_le(u8x16::splat(9)).to_bitmask(),
        points: are(b'.').to_bitmask(),
        marks: (are(b'e') | are(b'E')).to_bitmask(),
        signs: (are(b'+') | are(b'-')).to_bitmask(),
    })
}

/// The first byte from `at` on that is no digit, or the end.
#[inline]
pub(super) fn behind_digits(bytes: &[u8], mut at: usize) -> usize {
    while bytes.get(at).is_some_and(u8::is_ascii_digit) {
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sixteen::check_places;

    #[test]
    fn bytes_are_told_apart_wherever_they_stand() {
        type Kind = (fn(&[u8], usize) -> usize, &'static [u8; 4], fn(u8) -> bool);
        let kinds: [Kind; 3] = [
            (up_to_string_mark, b"a~\x7f\xff", |byte| byte < 0x20 || byte == b'"' || byte == b'\\'),
            (behind_white_space, b" \t\r\n", |byte| !b" \t\r\n".contains(&byte)),
            (behind_digits, b"0195", |byte| !byte.is_ascii_digit()),
        ];
        for (find, others, is_found) in kinds {
            check_places(find, others, is_found);
        }
    }
}

//! Looks for the first byte of a kind.

use wide::u8x16;

const WIDTH: usize = 16;

/// The first `"`, `\` or control from `at` on, or the end.
#[inline]
pub(super) fn up_to_string_mark(bytes: &[u8], mut at: usize) -> usize {
    while let Some(chunk) = bytes.get(at..).and_then(<[u8]>::first_chunk) {
        match string_marks(*chunk) {
            0 => at += WIDTH,
            found => return at + found.trailing_zeros() as usize,
        }
    }
    // Fewer are left: some before them are looked at once more, and not told.
    let last = bytes.last_chunk().copied().unwrap_or_else(|| {
        let mut padded = [0; WIDTH];
        padded.iter_mut().zip(bytes).for_each(|(to, byte)| *to = *byte);
        padded
    });
    let found = string_marks(last) >> at.saturating_sub(bytes.len().saturating_sub(WIDTH)).min(WIDTH);
    bytes.len().min(at + found.trailing_zeros() as usize)
}

#[inline]
fn string_marks(bytes: [u8; WIDTH]) -> u32 {
    let bytes = u8x16::new(bytes);
    let quotes = bytes.simd_eq(u8x16::splat(b'"')) | bytes.simd_eq(u8x16::splat(b'\\'));
    (quotes | bytes.simd_le(u8x16::splat(0x1f))).to_bitmask()
}

/// The first byte from `at` on that is no white space (RFC 8259 section 2), or the end.
#[inline]
pub(super) fn behind_white_space(bytes: &[u8], mut at: usize) -> usize {
    while bytes.get(at).is_some_and(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')) {
        at += 1;
    }
    at
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

    /// Every byte at every place of short and long texts, looked for from every place before it.
    #[test]
    fn bytes_are_told_apart_wherever_they_stand() {
        type Kind = (fn(&[u8], usize) -> usize, &'static [u8; 4], fn(u8) -> bool);
        let kinds: [Kind; 3] = [
            (up_to_string_mark, b"a~\x7f\xff", |byte| byte < 0x20 || byte == b'"' || byte == b'\\'),
            (behind_white_space, b" \t\r\n", |byte| !b" \t\r\n".contains(&byte)),
            (behind_digits, b"0195", |byte| !byte.is_ascii_digit()),
        ];
        for (find, others, is_found) in kinds {
            for byte in 0..=u8::MAX {
                for length in [1, 7, 15, 16, 17, 33] {
                    for place in 0..length {
                        let mut bytes: Vec<u8> = others.iter().copied().cycle().take(length).collect();
                        bytes[place] = byte;
                        let expected = if is_found(byte) { place } else { length };
                        for at in 0..=place {
                            assert_eq!(find(&bytes, at), expected, "{byte:#x} at {place} of {length}");
                        }
                        assert_eq!(find(&bytes, place + 1), length);
                    }
                }
            }
            assert_eq!(find(b"", 0), 0);
        }
    }
}

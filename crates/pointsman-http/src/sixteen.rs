//! The first byte of a kind, looked for sixteen bytes at a time.
//!
//! `pointsman-content` has a `first` of its own. The two crates know nothing of each other, and what they have in common is
//! these dozen lines about slices: a crate for them would stand below both for no other reason.

use wide::u8x16;

pub(crate) const WIDTH: usize = 16;

/// The first byte from `at` on that is no letter, digit or `-`, or the end.
#[inline]
pub(crate) fn up_to_unusual(buffer: &[u8], at: usize) -> usize {
    first(buffer, at, |bytes| {
        let letters = among(bytes | u8x16::splat(0x20), b'a', b'z');
        !(letters | among(bytes, b'0', b'9') | bytes.simd_eq(u8x16::splat(b'-')))
    })
}

/// The first control from `at` on, or the end. The tab is none (RFC 9110 section 5.5).
#[inline]
pub(crate) fn up_to_control(buffer: &[u8], at: usize) -> usize {
    first(buffer, at, |bytes| {
        let low = bytes.simd_le(u8x16::splat(0x1f)) & !bytes.simd_eq(u8x16::splat(b'\t'));
        low | bytes.simd_eq(u8x16::splat(0x7f))
    })
}

/// The first space or control from `at` on, or the end.
#[inline]
pub(crate) fn up_to_space_or_control(buffer: &[u8], at: usize) -> usize {
    first(buffer, at, |bytes| bytes.simd_le(u8x16::splat(b' ')) | bytes.simd_eq(u8x16::splat(0x7f)))
}

/// The first byte from `at` on that is not visible in ASCII, or is `#`, or the end.
#[inline]
pub(crate) fn up_to_invisible_or_hash(buffer: &[u8], at: usize) -> usize {
    first(buffer, at, |bytes| !among(bytes, b'!', b'~') | bytes.simd_eq(u8x16::splat(b'#')))
}

/// Which of the first sixteen bytes are of labels (letters, digits, `-`, `_` and `~`), and which are dots: a bit for
/// each, none behind the end.
#[inline]
pub(crate) fn labels_and_dots(bytes: &[u8]) -> (u32, u32) {
    let bytes = u8x16::new(bytes.first_chunk().copied().unwrap_or_else(|| {
        let mut padded = [0; WIDTH];
        padded[..bytes.len()].copy_from_slice(bytes);
        padded
    }));
    let letters_and_digits = among(bytes | u8x16::splat(0x20), b'a', b'z') | among(bytes, b'0', b'9');
    let others = [b'-', b'_', b'~'].map(|byte| bytes.simd_eq(u8x16::splat(byte)));
    let labels = others.into_iter().fold(letters_and_digits, |labels, other| labels | other);
    (labels.to_bitmask(), bytes.simd_eq(u8x16::splat(b'.')).to_bitmask())
}

#[inline]
fn among(bytes: u8x16, from: u8, to: u8) -> u8x16 {
    (bytes - u8x16::splat(from)).simd_le(u8x16::splat(to - from))
}

/// The first byte from `at` on that `marks` sets bits for, or the end.
#[inline]
fn first(buffer: &[u8], mut at: usize, marks: impl Fn(u8x16) -> u8x16) -> usize {
    while let Some(bytes) = buffer[at..].first_chunk() {
        match marks(u8x16::new(*bytes)).to_bitmask() {
            0 => at += WIDTH,
            found => return at + found.trailing_zeros() as usize,
        }
    }
    // Fewer are left: some before them are looked at once more, and not told.
    let bytes = buffer.last_chunk().copied().unwrap_or_else(|| {
        let mut padded = [0; WIDTH];
        padded[..buffer.len()].copy_from_slice(buffer);
        padded
    });
    let found = marks(u8x16::new(bytes)).to_bitmask() >> (at - buffer.len().saturating_sub(WIDTH));
    buffer.len().min(at + found.trailing_zeros() as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every byte at every place of short and long buffers, looked for from every place before it.
    #[test]
    fn bytes_are_told_apart_wherever_they_stand() {
        type Kind = (fn(&[u8], usize) -> usize, fn(u8) -> bool);
        let kinds: [Kind; 4] = [
            (up_to_unusual, |byte| !byte.is_ascii_alphanumeric() && byte != b'-'),
            (up_to_control, |byte| byte.is_ascii_control() && byte != b'\t'),
            (up_to_space_or_control, |byte| byte.is_ascii_control() || byte == b' '),
            (up_to_invisible_or_hash, |byte| !byte.is_ascii_graphic() || byte == b'#'),
        ];
        for (find, is_found) in kinds {
            for byte in 0..=u8::MAX {
                for length in [1, 7, 15, 16, 17, 33] {
                    for place in 0..length {
                        let mut bytes = vec![b"xZ09-"[place % 5]; length];
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

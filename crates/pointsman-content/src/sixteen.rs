//! The first byte of a kind, looked for sixteen bytes at a time.
//!
//! `pointsman-http` has a `first` of its own, and says there why.

use wide::u8x16;

const WIDTH: usize = 16;

/// The first byte from `at` on that `marks` sets bits for, or the end.
#[inline]
pub(crate) fn first(bytes: &[u8], mut at: usize, marks: impl Fn(u8x16) -> u8x16) -> usize {
    while let Some(chunk) = bytes.get(at..).and_then(<[u8]>::first_chunk) {
        match marks(u8x16::new(*chunk)).to_bitmask() {
            0 => at += WIDTH,
            found => return at + found.trailing_zeros() as usize,
        }
    }
    first_of_few(bytes, at, marks)
}

/// The same where fewer than sixteen are left: some before them are looked at once more, and not told.
#[cold]
fn first_of_few(bytes: &[u8], at: usize, marks: impl Fn(u8x16) -> u8x16) -> usize {
    let last = bytes.last_chunk().copied().unwrap_or_else(|| {
        let mut padded = [0; WIDTH];
        padded.iter_mut().zip(bytes).for_each(|(to, byte)| *to = *byte);
        padded
    });
    let seen = at.saturating_sub(bytes.len().saturating_sub(WIDTH)).min(WIDTH);
    let found = marks(u8x16::new(last)).to_bitmask() >> seen;
    bytes.len().min(at + found.trailing_zeros() as usize)
}

/// Every byte at every place of short and long texts, looked for from every place before it.
#[cfg(test)]
#[track_caller]
pub(crate) fn check_places(find: fn(&[u8], usize) -> usize, others: &[u8], is_found: fn(u8) -> bool) {
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

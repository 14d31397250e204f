//! The first byte of a kind, looked for sixteen bytes at a time.

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

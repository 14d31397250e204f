//! Numbers for choices by chance.

use std::cell::Cell;

/// Xorshift64: fast, and nothing secret hangs on it.
pub(crate) struct Chance(Cell<u64>);

impl Chance {
    /// The same seed gives the same numbers.
    pub(crate) fn new(seed: u64) -> Chance {
        Chance(Cell::new(seed | 1))
    }

    /// The next number.
    pub(crate) fn draw(&self) -> u64 {
        let mut number = self.0.get();
        number ^= number << 13;
        number ^= number >> 7;
        number ^= number << 17;
        self.0.set(number);
        number
    }
}

//! Choices by chance that can be made again.

/// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014): small, and the same on each
/// machine.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The same seed gives the same choices.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Another sequence, for somebody else.
    #[must_use]
    pub fn split(&mut self) -> Self {
        Self(self.next())
    }

    /// From 0 on, less than this.
    ///
    /// # Panics
    /// Where nothing is less.
    pub fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).expect("below a usize")
    }

    /// One of these.
    ///
    /// # Panics
    /// Where there are none.
    pub fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

//! Choices that follow from a seed: the same seed makes the same mutants on every machine.

/// A generator of pseudo-random numbers (SplitMix64).
#[derive(Clone, Debug)]
pub(super) struct Dice(u64);

impl Dice {
    /// Choices for one mutant of a run: independent of those for its neighbours.
    pub(super) fn new(seed: u64, index: u64) -> Self {
        let mut dice = Self(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ index.rotate_left(32));
        dice.next();
        dice
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`; 0 where there is none.
    pub(super) fn below(&mut self, end: usize) -> usize {
        match u64::try_from(end) {
            Ok(end @ 1..) => usize::try_from(self.next() % end).unwrap_or_default(),
            _ => 0,
        }
    }

    pub(super) fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// The same of bytes, which differ in length.
    pub(super) fn bytes(&mut self, of: &[&'static [u8]]) -> &'static [u8] {
        of[self.below(of.len())]
    }

    pub(super) fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_follow_from_seed_and_index() {
        let first = |seed, index| Dice::new(seed, index).next();
        assert_eq!(first(1, 7), first(1, 7));
        assert_ne!(first(1, 7), first(1, 8));
        assert_ne!(first(1, 7), first(2, 7));
        let mut dice = Dice::new(1, 0);
        assert!((0..1000).map(|_| dice.below(3)).all(|number| number < 3));
        assert_eq!(dice.below(0), 0);
    }
}

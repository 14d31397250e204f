//! Choices by chance that can be made again.

/// The seed of a run, where another one than usual is asked for.
const SEED: &str = "POINTSMAN_STORM_SEED";

/// A sequence of choices; the same seed gives the same ones.
#[derive(Clone, Debug)]
pub(super) struct Chance(u64);

impl Chance {
    /// The sequence of a run.
    pub(super) fn of_run() -> Self {
        let seed = std::env::var(SEED).ok().map(|text| text.parse().expect("a number"));
        Self(seed.unwrap_or(20_011_122))
    }

    /// Another sequence, for somebody else.
    pub(super) fn split(&mut self) -> Self {
        Self(self.next())
    }

    /// From 0 on, less than this.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound).expect("64 bits");
        usize::try_from(self.next() % bound.max(1)).expect("it is below")
    }

    /// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

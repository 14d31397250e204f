//! Numbers that look random and are the same in every run.

/// SplitMix64: a counter, well stirred. No property depends on its quality.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Numbers that follow from an input, so that the same input is always looked at in the same way.
    pub(crate) fn of(input: &[u8]) -> Self {
        Self(hash(input))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`; 0 where there is none.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        if bound == 0 { 0 } else { (self.next() % bound as u64) as usize }
    }

    /// One of a few.
    pub(crate) fn pick<'t, T>(&mut self, from: &'t [T]) -> Option<&'t T> {
        let at = self.below(from.len());
        from.get(at)
    }
}

/// FNV-1a.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Lengths of a few prefixes of something `bytes` long, ascending, around `border` above all.
pub(crate) fn cuts(input: &[u8], border: usize) -> Vec<usize> {
    const CUTS_MAX: usize = 24;
    let bytes = input.len();
    if bytes <= CUTS_MAX {
        return (0..=bytes).collect();
    }
    let mut random = Random::of(input);
    let around = border.saturating_sub(3)..=(border + 1).min(bytes);
    let mut cuts: Vec<usize> = around.collect();
    while cuts.len() < CUTS_MAX {
        cuts.push(random.below(bytes));
    }
    cuts.sort_unstable();
    cuts
}

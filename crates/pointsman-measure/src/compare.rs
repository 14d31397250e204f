//! Which of two is faster, and whether the machine can tell: interleaved blocks, with one of the two against itself.
//!
//! A machine drifts: caches warm, neighbours come and go. In a block A B B A a steady drift falls on both alike
//! (paired comparisons: Bulej et al., Duet benchmarking, arXiv 2001.05811). The same blocks with A on both sides say what
//! the run calls a difference where there is none: its **noise floor**.

use crate::Random;
use crate::statistics::{Interval, ratio_of_pairs};

/// Blocks at least; with fewer an interval over them says nothing.
pub const BLOCKS_MIN: u32 = 4;
/// Blocks where nothing else is said.
pub const BLOCKS: u32 = 8;
/// Blocks at most.
pub const BLOCKS_MAX: u32 = 1_000;

/// Who a trial measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// The first.
    A,
    /// The second.
    B,
    /// The first again, under another name: for the noise floor.
    AgainA,
}

/// One trial of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Which block it belongs to, from 0; blocks of A against B and of A against itself take turns.
    pub block: u32,
    /// Who is measured.
    pub side: Side,
    /// For the arrivals. The trials of a block have one in common, so that they offer the same.
    pub seed: u64,
}

/// The turns of a comparison in their order: for each of `blocks` (from 4 to 1,000, brought into that range) one block of
/// A against B and one of A against A, in random order; which of the two sides is outside in `x y y x` is random too.
pub fn turns(blocks: u32, random: &mut Random) -> Vec<Turn> {
    let mut turns = Vec::new();
    for round in 0..blocks.clamp(BLOCKS_MIN, BLOCKS_MAX) {
        let mut others = [Side::B, Side::AgainA];
        random.shuffle(&mut others);
        for (at, other) in others.into_iter().enumerate() {
            let mut sides = [Side::A, other];
            random.shuffle(&mut sides);
            let [outer, inner] = sides;
            let (block, seed) = (2 * round + at as u32, random.bits());
            turns.extend([outer, inner, inner, outer].map(|side| Turn { block, side, seed }));
        }
    }
    turns
}

/// What was measured in a turn: a rate, a time, CPU per request; the same in all.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// The turn.
    pub turn: Turn,
    /// The figure, above 0; None where the trial was red. Then its whole block does not count.
    pub figure: Option<f64>,
}

/// What a comparison comes to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// B by A.
    pub ratio: Interval,
    /// A by A: what the same run makes of no difference.
    pub floor: Interval,
    /// Blocks of A against B that counted.
    pub blocks: u32,
    /// What may be said.
    pub difference: Difference,
}

/// What may be said of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Difference {
    /// B has more: the interval lies above 1, and the ratio outside the noise floor.
    More,
    /// B has less.
    Less,
    /// No difference shown, which is not the same as none.
    NotShown,
}

impl Comparison {
    /// How far the noise of this run reaches, as a share: the further end of the interval of A by A.
    pub fn floor_share(&self) -> f64 {
        (self.floor.low.ln().abs().max(self.floor.high.ln().abs())).exp_m1()
    }
}

/// Compares by the geometric mean of each side in each block. None where fewer than [`BLOCKS_MIN`] blocks of either kind
/// are whole.
pub fn compare(measured: &[Measured], random: &mut Random) -> Option<Comparison> {
    let against_b = pairs(measured, Side::B);
    let ratio = ratio_of_pairs(&against_b, random)?;
    let floor = ratio_of_pairs(&pairs(measured, Side::AgainA), random)?;
    let blocks = against_b.len() as u32;
    let mut comparison = Comparison { ratio, floor, blocks, difference: Difference::NotShown };
    let beyond_noise = ratio.estimate.ln().abs().exp_m1() > comparison.floor_share();
    comparison.difference = match (ratio.low > 1.0, ratio.high < 1.0) {
        (true, _) if beyond_noise => Difference::More,
        (_, true) if beyond_noise => Difference::Less,
        _ => Difference::NotShown,
    };
    Some(comparison)
}

/// A and the other of each whole block of that kind, as geometric means of two figures.
fn pairs(measured: &[Measured], other: Side) -> Vec<(f64, f64)> {
    let of_kind = measured.chunk_by(|left, right| left.turn.block == right.turn.block);
    let side = |block: &[Measured], side: Side| -> Option<f64> {
        let figures: Option<Vec<f64>> = block
            .iter()
            .filter(|measured| measured.turn.side == side)
            .map(|measured| measured.figure)
            .collect();
        match figures?.as_slice() {
            [first, second] => Some((first * second).sqrt()),
            _ => None,
        }
    };
    of_kind.filter_map(|block| Some((side(block, Side::A)?, side(block, other)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run on a machine that drifts, whose noise hangs together; B is `factor` times A.
    fn run(seed: u64, factor: f64, noise: f64) -> Comparison {
        let mut random = Random::new(seed);
        let (mut mood, drift) = (0.0, 0.02 * random.normal());
        let turns = turns(BLOCKS, &mut random);
        let measured: Vec<Measured> = turns
            .into_iter()
            .enumerate()
            .map(|(at, turn)| {
                mood = 0.7 * mood + 0.5 * noise * random.normal();
                let level = if turn.side == Side::B { factor } else { 1.0 };
                let log = drift * at as f64 / 16.0 + mood + noise * random.normal();
                Measured { turn, figure: Some(1_000.0 * level * log.exp()) }
            })
            .collect();
        compare(&measured, &mut random).expect("whole blocks")
    }

    #[test]
    fn the_same_is_called_different_in_at_most_one_run_of_twenty() {
        for noise in [0.001, 0.02, 0.1] {
            let called =
                (0..400).filter(|seed| run(*seed, 1.0, noise).difference != Difference::NotShown).count();
            assert!(called <= 20, "{noise}: {called} of 400");
        }
    }

    #[test]
    fn the_interval_of_the_same_holds_one_in_nineteen_of_twenty() {
        let covered = (0..400).filter(|seed| run(*seed, 1.0, 0.02).ratio.covers(1.0)).count();
        // Two standard deviations of such a count around 380.
        assert!((371..=389).contains(&covered), "{covered} of 400");
    }

    #[test]
    fn a_difference_beyond_the_noise_is_shown() {
        let of = |factor: f64| (0..100).map(move |seed| run(seed, factor, 0.01).difference);
        let more = of(1.05).filter(|difference| *difference == Difference::More).count();
        let less = of(0.95).filter(|difference| *difference == Difference::Less).count();
        assert!(more >= 95 && less >= 95, "{more} and {less} of 100");
    }

    #[test]
    fn turns_are_blocks_of_both_kinds() {
        let planned = turns(8, &mut Random::new(5));
        assert_eq!(planned.len(), 64);
        for block in planned.chunks(4) {
            assert!(block.iter().all(|turn| turn.block == block[0].block && turn.seed == block[0].seed));
            assert_eq!((block[0].side, block[1].side), (block[3].side, block[2].side));
            assert!(block.iter().filter(|turn| turn.side == Side::A).count() == 2);
        }
        assert_eq!(planned.iter().filter(|turn| turn.side == Side::B).count(), 16);
        assert_eq!(turns(0, &mut Random::new(5)).len(), 32);
    }

    #[test]
    fn a_red_trial_takes_its_block_along() {
        let mut random = Random::new(1);
        let mut measured: Vec<Measured> =
            turns(4, &mut random).into_iter().map(|turn| Measured { turn, figure: Some(1.0) }).collect();
        assert_eq!(compare(&measured, &mut random).map(|found| found.blocks), Some(4));
        measured[5].figure = None;
        assert_eq!(compare(&measured, &mut random), None);
        assert_eq!(compare(&[], &mut random), None);
    }
}

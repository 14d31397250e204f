//! Runs of cells that a value may lie in, as a tree: each run is a few of its spots, and the runs that a cell lies in
//! stand at the spots on one way up.

use std::collections::BTreeMap;
use std::ops::Range;

use super::asks::offset;
use super::postings::Posting;
use crate::pace;

/// No spot.
const NONE: u32 = u32::MAX;

#[derive(Debug, Default)]
pub(super) struct Stabs {
    /// Where runs begin and end, in ascending order.
    borders: Vec<u32>,
    /// By the place of a cell among the borders: the first spot on the way up that has rules.
    lowest: Vec<u32>,
    /// The same by the cell, from the first border on to the last; empty where there are far more cells than borders.
    direct: Vec<u32>,
    spots: Vec<Spot>,
}

/// What it takes to find a cell among the borders, as [`pace::spend`] counts.
const SEARCH_UNITS: u64 = 4;

/// So many cells for each border are worth their room.
const DIRECT_CELLS: usize = 8;

#[derive(Debug)]
struct Spot {
    posting: Posting,
    /// The next one on the way up.
    above: u32,
}

impl Stabs {
    /// The rules of these runs by the spots of the tree. `post` takes those of one spot, in ascending order.
    pub(super) fn new(runs: &[(Range<u32>, u32)], mut post: impl FnMut(Vec<u32>) -> Posting) -> Stabs {
        let mut borders: Vec<u32> = runs.iter().flat_map(|(cells, _)| [cells.start, cells.end]).collect();
        pace::sort(&mut borders);
        borders.dedup();
        let leaves = borders.len() + 1;
        let place = |border: u32| leaves + borders.partition_point(|other| *other <= border);
        // By the number of the node: 1 is the root, the children of a node have twice its number, and one more.
        let mut rules: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
        for (cells, rule) in pace::each(runs) {
            let (mut start, mut end) = (place(cells.start), place(cells.end));
            while start < end {
                if start % 2 == 1 {
                    add(rules.entry(start).or_default(), *rule);
                    start += 1;
                }
                if end % 2 == 1 {
                    end -= 1;
                    add(rules.entry(end).or_default(), *rule);
                }
                (start, end) = (start / 2, end / 2);
            }
        }
        // Those above come first.
        let mut numbers: BTreeMap<usize, u32> = BTreeMap::new();
        let mut spots = Vec::with_capacity(rules.len());
        for (node, rules) in pace::each(rules) {
            let above = nearest(&numbers, node / 2);
            numbers.insert(node, offset(spots.len()));
            spots.push(Spot { posting: post(rules), above });
        }
        let lowest = pace::each(leaves..2 * leaves).map(|leaf| nearest(&numbers, leaf)).collect();
        let direct = Vec::new();
        let mut stabs = Stabs { borders, lowest, direct, spots };
        if let [first, .., last] = *stabs.borders
            && (last - first) as usize <= DIRECT_CELLS * leaves
        {
            let search = |cell| {
                pace::spend(SEARCH_UNITS);
                stabs.search(cell)
            };
            stabs.direct = (first..last).map(search).collect();
        }
        stabs
    }

    /// The postings of the runs that a cell lies in.
    pub(super) fn of(&self, cell: u32) -> impl Iterator<Item = &Posting> {
        let lowest = match (self.direct.is_empty(), self.borders.first()) {
            (false, Some(first)) => {
                let place = cell.checked_sub(*first);
                place.and_then(|place| self.direct.get(place as usize)).copied().unwrap_or(NONE)
            }
            _ => self.search(cell),
        };
        self.way_up(lowest)
    }

    fn search(&self, cell: u32) -> u32 {
        let place = self.borders.partition_point(|border| *border <= cell);
        self.lowest.get(place).copied().unwrap_or(NONE)
    }

    /// The postings that a cell of each place finds.
    pub(super) fn ways(&self) -> impl Iterator<Item = impl Iterator<Item = &Posting>> {
        self.lowest.iter().map(|lowest| self.way_up(*lowest))
    }

    fn way_up(&self, lowest: u32) -> impl Iterator<Item = &Posting> {
        let mut next = lowest;
        std::iter::from_fn(move || {
            let spot = self.spots.get(next as usize)?;
            next = spot.above;
            Some(&spot.posting)
        })
    }
}

/// Of a node or those above it the nearest that has a number.
fn nearest(numbers: &BTreeMap<usize, u32>, mut node: usize) -> u32 {
    while node > 0 {
        if let Some(number) = numbers.get(&node) {
            return *number;
        }
        node /= 2;
    }
    NONE
}

/// Rules come in order; one may have several runs.
fn add(rules: &mut Vec<u32>, rule: u32) {
    if rules.last() != Some(&rule) {
        rules.push(rule);
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_cell_finds_the_runs_that_it_lies_in(runs in vec((0u32..20, 0u32..20), 0..30)) {
            let runs: Vec<_> = runs.into_iter().zip(0..).map(|((a, b), rule)| (a.min(b)..a.max(b), rule)).collect();
            let mut lists: Vec<Vec<u32>> = Vec::new();
            let stabs = Stabs::new(&runs, |rules| {
                lists.push(rules);
                Posting { least: 0, at: offset(lists.len() - 1), len: 1 }
            });
            for cell in 0..21 {
                let mut found: Vec<u32> =
                    stabs.of(cell).flat_map(|posting| lists[posting.at as usize].clone()).collect();
                found.sort_unstable();
                let expected: Vec<u32> =
                    runs.iter().filter(|(cells, _)| cells.contains(&cell)).map(|(_, rule)| *rule).collect();
                prop_assert_eq!(found, expected);
            }
        }
    }
}

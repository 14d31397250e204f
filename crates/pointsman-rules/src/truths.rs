//! What has become of one subject so far: what its fields show, what tests came to, and which rules are still in play.
//! So nothing is worked out twice.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use crate::{Cause, Truth};

/// Room for one decision at a time, kept for the next: once it has grown to the largest program, a decision
/// allocates nothing for it. Any program and any subject may use it after any other. To begin anew costs as much as
/// was noted, however large the program is.
#[derive(Debug, Default)]
pub struct Truths {
    /// By the slot of the test; nothing where it was not asked yet.
    known: Vec<Option<Truth>>,
    /// Which of them are known.
    learned: Vec<u32>,
    /// By the number of the reading; nothing where it was not made yet.
    pub(crate) seen: Vec<Option<Seen>>,
    /// Which of them were made.
    made: Vec<u32>,
    pub(crate) sight: Sight,
    /// Where there are rules that may have something to say, the least of them on top.
    pub(crate) cursors: BinaryHeap<Reverse<Cursor>>,
    /// Fields of the head that the subject may have, of those that rules know by many names.
    pub(crate) names: Vec<u32>,
    /// Whether they have been looked for.
    pub(crate) has_names: bool,
}

/// What the values of a field have shown, all of them together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    /// How many there are.
    pub(crate) values: u32,
    /// Why what they do not show may hold all the same: one of them is not known, or there may be more of them.
    pub(crate) unknown: Option<Cause>,
    /// The same of what is asked of numbers, where also one that is none makes it unknown.
    pub(crate) unknown_number: Option<Cause>,
    signs: Range<u32>,
    cells: Range<u32>,
}

/// The signs and cells of all readings, one reading's behind another's.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sight {
    signs: Vec<u32>,
    cells: Vec<u32>,
    /// By the number of the sign, while one reading is made.
    marks: Vec<bool>,
}

/// More signs than these are sorted: they are looked for often.
const UNSORTED_MAX: usize = 8;

/// A place among rules in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Cursor {
    /// No rule before this one is there.
    pub(crate) least: u32,
    pub(crate) at: u32,
    pub(crate) end: u32,
}

impl Seen {
    pub(crate) fn cannot_say(&mut self, cause: Cause) {
        self.unknown = self.unknown.max(Some(cause));
        self.cannot_say_of_numbers(cause);
    }

    pub(crate) fn cannot_say_of_numbers(&mut self, cause: Cause) {
        self.unknown_number = self.unknown_number.max(Some(cause));
    }
}

impl Truths {
    /// Forgets everything, and has room for this many slots, readings and signs.
    pub(crate) fn forget(&mut self, slots: usize, readings: usize, signs: usize) {
        for slot in self.learned.drain(..) {
            if let Some(known) = self.known.get_mut(slot as usize) {
                *known = None;
            }
        }
        for reading in self.made.drain(..) {
            if let Some(seen) = self.seen.get_mut(reading as usize) {
                *seen = None;
            }
        }
        if self.known.len() < slots {
            self.known.resize(slots, None);
        }
        if self.seen.len() < readings {
            self.seen.resize(readings, None);
        }
        if self.sight.marks.len() < signs {
            self.sight.marks.resize(signs, false);
        }
        self.sight.signs.clear();
        self.sight.cells.clear();
        self.cursors.clear();
        self.has_names = false;
    }

    #[inline]
    pub(crate) fn of(&self, slot: u32) -> Option<Truth> {
        self.known.get(slot as usize).copied().flatten()
    }

    /// Remembers it, if it is one of those that there is room for.
    pub(crate) fn learn(&mut self, slot: u32, truth: Truth) {
        if let Some(known) = self.known.get_mut(slot as usize) {
            *known = Some(truth);
            self.learned.push(slot);
        }
    }

    #[inline]
    pub(crate) fn seen(&self, reading: u32) -> Option<&Seen> {
        self.seen.get(reading as usize)?.as_ref()
    }

    pub(crate) fn note(&mut self, reading: u32, seen: Seen) {
        if let Some(place) = self.seen.get_mut(reading as usize) {
            *place = Some(seen);
            self.made.push(reading);
        }
    }
}

impl Sight {
    /// Room for readings of so many signs.
    pub(crate) fn with_marks(signs: usize) -> Sight {
        Sight { marks: vec![false; signs], ..Sight::default() }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.marks.len()
    }

    pub(crate) fn clear(&mut self) {
        self.signs.clear();
        self.cells.clear();
    }

    /// A reading that has shown nothing yet.
    pub(crate) fn begin(&self) -> Seen {
        let [signs, cells] = [self.signs.len(), self.cells.len()].map(offset);
        Seen { signs: signs..signs, cells: cells..cells, ..Seen::default() }
    }

    pub(crate) fn sign(&mut self, sign: u32) {
        self.signs.push(sign);
    }

    pub(crate) fn cell(&mut self, cell: u32) {
        self.cells.push(cell);
    }

    pub(crate) fn is_marked(&self, sign: u32) -> bool {
        self.marks.get(sign as usize).copied().unwrap_or(true)
    }

    /// Adds a sign that was not there before.
    pub(crate) fn mark(&mut self, sign: u32) {
        if let Some(mark) = self.marks.get_mut(sign as usize) {
            *mark = true;
        }
        self.signs.push(sign);
    }

    /// What was added since its beginning is that reading's, each sign once.
    pub(crate) fn end(&mut self, seen: &mut Seen) {
        let start = seen.signs.start as usize;
        for sign in &self.signs[start..] {
            if let Some(mark) = self.marks.get_mut(*sign as usize) {
                *mark = false;
            }
        }
        if seen.values > 1 || self.signs.len() - start > UNSORTED_MAX {
            each_once(&mut self.signs, start);
            each_once(&mut self.cells, seen.cells.start as usize);
        }
        seen.signs.end = offset(self.signs.len());
        seen.cells.end = offset(self.cells.len());
    }

    /// Whether a value showed a sign.
    #[inline]
    pub(crate) fn shows(&self, seen: &Seen, sign: u32) -> bool {
        match self.signs(seen) {
            few if few.len() <= UNSORTED_MAX => few.contains(&sign),
            many => many.binary_search(&sign).is_ok(),
        }
    }

    #[inline]
    pub(crate) fn signs(&self, seen: &Seen) -> &[u32] {
        &self.signs[seen.signs.start as usize..seen.signs.end as usize]
    }

    #[inline]
    pub(crate) fn cells(&self, seen: &Seen) -> &[u32] {
        &self.cells[seen.cells.start as usize..seen.cells.end as usize]
    }
}

/// Sorts what stands from `start` on and leaves out what stands there twice.
fn each_once(list: &mut Vec<u32>, start: usize) {
    list[start..].sort_unstable();
    let mut end = start;
    for at in start..list.len() {
        if at == start || list[at] != list[end - 1] {
            list[end] = list[at];
            end += 1;
        }
    }
    list.truncate(end);
}

/// A subject has far fewer bytes than this has numbers.
fn offset(position: usize) -> u32 {
    u32::try_from(position).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decision_knows_nothing_of_the_one_before() {
        let mut truths = Truths::default();
        truths.forget(3, 1, 9);
        truths.learn(1, Truth::Unknown(Cause::Limit));
        assert_eq!([0, 1, 2].map(|slot| truths.of(slot)), [None, Some(Truth::Unknown(Cause::Limit)), None]);
        let mut seen = truths.sight.begin();
        truths.sight.mark(7);
        truths.sight.end(&mut seen);
        truths.note(0, seen);
        assert!(truths.seen(0).is_some_and(|seen| truths.sight.signs(seen) == [7]));
        truths.cursors.push(Reverse(Cursor { least: 0, at: 0, end: 1 }));
        for (slots, readings) in [(2, 0), (3, 1), (5, 4)] {
            truths.forget(slots, readings, 0);
            assert!((0..5).all(|slot| truths.of(slot).is_none()));
            assert!((0..4).all(|reading| truths.seen(reading).is_none()));
            assert!(truths.cursors.is_empty() && !truths.sight.is_marked(7));
        }
    }

    #[test]
    fn what_several_values_show_is_noted_once() {
        let mut truths = Truths::default();
        truths.forget(0, 1, 9);
        truths.sight.sign(3);
        let mut seen = truths.sight.begin();
        [5, 3, 5, 4, 3].into_iter().for_each(|sign| truths.sight.sign(sign));
        [2, 2].into_iter().for_each(|cell| truths.sight.cell(cell));
        seen.values = 2;
        truths.sight.end(&mut seen);
        assert_eq!((truths.sight.signs(&seen), truths.sight.cells(&seen)), (&[3, 4, 5][..], &[2][..]));
    }

    #[test]
    fn what_is_known_of_a_test_fits_a_byte() {
        assert_eq!(size_of::<Option<Truth>>(), 1);
    }
}

//! What the values of one field have shown so far, all of them together.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::engine::Reading;
use crate::truths::{Seen, Sight};
use crate::{Cause, Value};

/// Each sign and each cell once, however many values show it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gathered {
    signs: BTreeSet<u32>,
    cells: BTreeSet<u32>,
    /// As in [`Seen`], without what is not read yet.
    unknown: Option<Cause>,
    unknown_number: Option<Cause>,
}

impl Gathered {
    /// Adds what one more value shows, and says what that is and whether it was not known before. `sight` is room for it.
    pub(crate) fn add(&mut self, reading: &Reading, value: Value<'_>, sight: &mut Sight) -> (Seen, bool) {
        sight.clear();
        let mut seen = sight.begin();
        (seen.unknown, seen.unknown_number) = (self.unknown, self.unknown_number);
        reading.show(value, &mut seen, sight);
        sight.end(&mut seen);
        let mut is_news = (seen.unknown, seen.unknown_number) != (self.unknown, self.unknown_number);
        (self.unknown, self.unknown_number) = (seen.unknown, seen.unknown_number);
        for sign in sight.signs(&seen) {
            is_news |= self.signs.insert(*sign);
        }
        for cell in sight.cells(&seen) {
            is_news |= self.cells.insert(*cell);
        }
        (seen, is_news)
    }

    /// The same as a reading of all values at once says, of which some may not be known.
    pub(crate) fn seen(
        &self,
        reading: &Reading,
        values: u64,
        unknown: Option<Cause>,
        sight: &mut Sight,
    ) -> Seen {
        let mut seen = sight.begin();
        seen.values = u32::try_from(values).unwrap_or(u32::MAX);
        (seen.unknown, seen.unknown_number) = (self.unknown, self.unknown_number);
        if let Some(cause) = unknown {
            seen.cannot_say(cause);
        }
        if values > 0 {
            reading.present.iter().for_each(|sign| sight.sign(*sign));
        }
        self.signs.iter().for_each(|sign| sight.sign(*sign));
        self.cells.iter().for_each(|cell| sight.cell(*cell));
        sight.end(&mut seen);
        seen
    }

    /// Whether a value showed one of these, which are in ascending order.
    pub(crate) fn shows_any(&self, signs: &[u32]) -> bool {
        match signs.len() <= self.signs.len() {
            true => signs.iter().any(|sign| self.signs.contains(sign)),
            false => self.signs.iter().any(|sign| signs.binary_search(sign).is_ok()),
        }
    }

    pub(crate) fn lies_in(&self, cells: &Range<u32>) -> bool {
        self.cells.range(cells.clone()).next().is_some()
    }

    /// Why what was not shown may hold all the same.
    pub(crate) fn unknown(&self, of_numbers: bool) -> Option<Cause> {
        if of_numbers { self.unknown_number } else { self.unknown }
    }
}

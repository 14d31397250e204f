//! Ranges of keys, and tables that say where among them a key is looked for.

use std::ops::{Range, Shr, Sub};

use crate::pace;

/// Ranges in order, none touching another, below tables of slots.
///
/// A table divides the keys between its first and its last one into slots of one size. A slot whose keys are all in, or all
/// out, says so; another one names the few ranges that decide, or, where those are many, a table of its own. So where
/// keys are spread evenly, one slot and one row of ranges are read, however many there are; where they crowd, one table and
/// one slot more for each time that the crowd is divided. A slot has a sixteenth of its table's keys at most, or nearly
/// twice that: for keys of 32 bits there are never more than 7 tables above each other, for those of 128 never more than 31.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ranges<K> {
    /// First and last keys.
    ranges: Box<[(K, K)]>,
    top: Table<K>,
    /// Those below it.
    tables: Box<[Table<K>]>,
    slots: Box<[Slot]>,
}

/// What keys are numbers of.
pub(super) trait Key: Copy + Ord + Into<u128> + Sub<Output = Self> + Shr<u8, Output = Self> {
    /// The key that has this number, which is one of a key.
    fn of(number: u128) -> Self;
}

impl Key for u32 {
    fn of(number: u128) -> u32 {
        number as u32
    }
}

impl Key for u128 {
    fn of(number: u128) -> u128 {
        number
    }
}

/// What is known of the keys from a first to a last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Table<K> {
    /// Keys before it are in none of its ranges, and behind its last one likewise.
    first: K,
    last: K,
    /// The place of its first slot.
    slots: u32,
    /// A slot is for two to the power of this many keys.
    shift: u8,
}

/// What is known of a slot's keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slot {
    /// They are in no range.
    Out,
    /// They are in one range, all of them.
    In,
    /// What ranges they are in, if any, is among so many from a place on.
    Row { len: u8, place: u32 },
    /// Those are too many; they stand below the table at this place.
    Table(u32),
}

/// Ranges that are compared one by one: those of 32 bits are two lines of the cache.
const ROW_MAX: usize = 16;

/// Ranges for a slot, about, where they are spread evenly.
const RANGES_A_SLOT: usize = 4;

/// A table has more than half as many slots, but where each is for a single key.
const SLOTS_MIN: usize = 16;

impl<K: Key> Ranges<K> {
    /// What touches or overlaps becomes one. A pair with the greater key first is none.
    pub(super) fn new(mut ranges: Vec<(K, K)>) -> Ranges<K> {
        ranges.retain(|(first, last)| first <= last);
        pace::sort(&mut ranges);
        ranges.dedup_by(|(first, last), (_, kept)| {
            let (begins, ended): (u128, u128) = ((*first).into(), (*kept).into());
            let touches = begins.saturating_sub(ended) <= 1;
            if touches {
                *kept = (*kept).max(*last);
            }
            touches
        });
        let ranges = ranges.into_boxed_slice();
        let mut builder = Builder { ranges: &ranges, tables: Vec::new(), slots: Vec::new() };
        let top = match (ranges.first(), ranges.last()) {
            (Some(first), Some(last)) => builder.table(0..ranges.len(), first.0.into(), last.1.into()),
            // No key is behind the one and before the other.
            _ => Table { first: K::of(1), last: K::of(0), slots: 0, shift: 0 },
        };
        let (tables, slots) = (builder.tables.into(), builder.slots.into());
        Ranges { ranges, top, tables, slots }
    }

    pub(super) fn has(&self, key: K) -> bool {
        let mut table = &self.top;
        loop {
            if key < table.first || table.last < key {
                return false;
            }
            match self.slots[table.place_of(key)] {
                Slot::Out => return false,
                Slot::In => return true,
                Slot::Row { len, place } => {
                    let row = &self.ranges[place as usize..][..usize::from(len)];
                    // All of it, without a branch that is guessed wrongly every other time.
                    return row
                        .iter()
                        .fold(false, |has, (first, last)| has | ((*first <= key) & (key <= *last)));
                }
                Slot::Table(place) => table = &self.tables[place as usize],
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        self.ranges.len()
    }

    pub(super) fn at(&self, place: usize) -> Option<(K, K)> {
        self.ranges.get(place).copied()
    }

    /// The first range that ends at a key or behind it.
    pub(super) fn at_or_behind(&self, key: K) -> Option<(K, K)> {
        self.at(self.ranges.partition_point(|(_, last)| *last < key))
    }

    pub(super) fn hull(&self) -> Option<(K, K)> {
        Some((self.ranges.first()?.0, self.ranges.last()?.1))
    }

    pub(super) fn memory_bytes(&self) -> usize {
        size_of_val(&*self.ranges) + size_of_val(&*self.tables) + size_of_val(&*self.slots)
    }
}

impl<K: Key> Default for Ranges<K> {
    fn default() -> Self {
        Ranges::new(Vec::new())
    }
}

impl<K: Key> Table<K> {
    /// Where the slot stands of a key between the first one and the last.
    fn place_of(&self, key: K) -> usize {
        let slot: u128 = ((key - self.first) >> self.shift).into();
        self.slots as usize + slot as usize
    }
}

/// Makes tables. Places fit 32 bits: there are fewer ranges than addresses of IPv4, and fewer slots than ranges.
struct Builder<'r, K> {
    ranges: &'r [(K, K)],
    tables: Vec<Table<K>>,
    slots: Vec<Slot>,
}

impl<K: Key> Builder<'_, K> {
    /// The table of the keys from one to another. These ranges are all that have some of them.
    fn table(&mut self, ranges: Range<usize>, first: u128, last: u128) -> Table<K> {
        let wanted = (ranges.len() / RANGES_A_SLOT).next_power_of_two().max(SLOTS_MIN);
        let shift = (u128::BITS - (last - first).leading_zeros()).saturating_sub(wanted.ilog2());
        let (slots, len) = (self.slots.len(), ((last - first) >> shift) as usize + 1);
        self.slots.resize(slots + len, Slot::Out);
        let mut begin = ranges.start;
        for slot in pace::each(0..len) {
            let from = first + ((slot as u128) << shift);
            let to = last.min(from.saturating_add((1 << shift) - 1));
            begin += self.leading(begin..ranges.end, |_, ends| ends < from);
            let end = begin + self.leading(begin..ranges.end, |begins, _| begins <= to);
            self.slots[slots + slot] = self.slot(begin..end, from, to);
        }
        Table { first: K::of(first), last: K::of(last), slots: slots as u32, shift: shift as u8 }
    }

    fn slot(&mut self, ranges: Range<usize>, from: u128, to: u128) -> Slot {
        let row = &self.ranges[ranges.clone()];
        let (Some(first), Some(last)) = (row.first(), row.last()) else { return Slot::Out };
        let (begins, ends) = (first.0.into(), last.1.into());
        match row.len() {
            1 if begins <= from && to <= ends => Slot::In,
            len if len <= ROW_MAX => Slot::Row { len: len as u8, place: ranges.start as u32 },
            _ => {
                let table = self.table(ranges, from.max(begins), to.min(ends));
                self.tables.push(table);
                Slot::Table(self.tables.len() as u32 - 1)
            }
        }
    }

    /// How many ranges at the beginning are such.
    fn leading(&self, ranges: Range<usize>, are_such: impl Fn(u128, u128) -> bool) -> usize {
        let ranges = &self.ranges[ranges];
        let is_other = |(first, last): &(K, K)| !are_such((*first).into(), (*last).into());
        ranges.iter().position(is_other).unwrap_or(ranges.len())
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// Ranges that crowd: as many of one size of numbers as of any other.
    fn crowds() -> impl Strategy<Value = Vec<(u128, u128)>> {
        let number = || (0u32..128, 0u128..100).prop_map(|(bits, more)| (1 << bits) + more);
        let range = (number(), 0u32..128, 0u128..4).prop_map(|(first, bits, more)| {
            let last = first.saturating_add(more << (bits % 16));
            (first, last)
        });
        vec(range, 0..500)
    }

    /// Holds them against a scan of what they are made of, at each of their ends and beside it.
    fn check<K: Key + std::fmt::Debug>(written: &[(u128, u128)]) -> Result<(), TestCaseError> {
        let ranges = Ranges::new(written.iter().map(|(first, last)| (K::of(*first), K::of(*last))).collect());
        let ends = written.iter().flat_map(|(first, last)| [*first, *last]);
        for key in ends.flat_map(|end| [end.wrapping_sub(1), end, end.wrapping_add(1), end ^ end >> 1]) {
            let key = K::of(key);
            let expected = written.iter().any(|(first, last)| K::of(*first) <= key && key <= K::of(*last));
            prop_assert_eq!(ranges.has(key), expected, "{:?}", key);
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn crowds_are_found(ranges in crowds()) {
            check::<u128>(&ranges)?;
            let short = |number: u128| number >> 96 | number & 0xffff;
            let ranges: Vec<_> = ranges.iter().map(|(first, last)| (short(*first), short(*last))).collect();
            check::<u32>(&ranges)?;
        }
    }

    /// How many tables stand above each other.
    fn depth<K: Key>(ranges: &Ranges<K>, table: &Table<K>) -> usize {
        let slots = &ranges.slots[table.slots as usize..=table.place_of(table.last)];
        let below = slots.iter().map(|slot| match slot {
            Slot::Table(place) => depth(ranges, &ranges.tables[*place as usize]),
            _ => 0,
        });
        1 + below.max().unwrap_or_default()
    }

    /// Its tables, and bytes for each range.
    fn cost<K: Key>(ranges: Vec<(K, K)>) -> (usize, usize) {
        let ranges = Ranges::new(ranges);
        (depth(&ranges, &ranges.top), ranges.memory_bytes() / ranges.len())
    }

    #[test]
    fn what_is_spread_evenly_has_one_table_and_what_crowds_has_few() {
        assert_eq!(size_of::<Slot>(), 8);
        // No two of them are neighbours, or near each other.
        let spread = |place: u32| place.wrapping_mul(0x9e37_79b9);
        for count in [1_000, 40_000, 300_000] {
            let (tables, bytes) = cost((0..count).map(|place| (spread(place), spread(place))).collect());
            assert!(tables == 1 && bytes <= 12, "{tables} tables, {bytes} bytes");
        }
        let networks = (0..100_000u32).map(|place| {
            let first = 0x2000 << 112 | u128::from(spread(place)) << 80;
            (first, first | ((1 << 80) - 1))
        });
        let (tables, bytes) = cost(networks.collect());
        assert!(tables == 1 && bytes <= 36, "{tables} tables, {bytes} bytes");
        // All in one network but for two.
        let crowd = |place: u32| 0x0a00_0000 | spread(place) >> 12;
        let crowd = (0..100_000).map(crowd).chain([0, u32::MAX]).map(|key| (key, key));
        let (tables, bytes) = cost(crowd.collect());
        assert!(tables == 2 && bytes <= 14, "{tables} tables, {bytes} bytes");
    }

    /// The worst that can be: each table divides off one key in two, and leaves all others to the next one.
    #[test]
    fn no_crowd_has_more_tables_than_it_is_said() {
        let (tables, bytes) = cost((0..32).map(|bits| (1u32 << bits, 1 << bits)).collect());
        assert!(tables <= 7 && bytes <= 64, "{tables} tables, {bytes} bytes");
        let (tables, bytes) = cost((0..128).map(|bits| (1u128 << bits, 1 << bits)).collect());
        assert!((12..=31).contains(&tables) && bytes <= 128, "{tables} tables, {bytes} bytes");
    }
}

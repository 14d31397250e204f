//! How often each rule decided: each thread has a row of counters, in which a rule has the same number on all of them.
//!
//! A rule set may have tens of thousands of rules, and lines of their own for each of them and each thread would be 128
//! bytes apiece; docs/adr/0054 has the figures.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use crate::slots::{ByThread, Counter, OwnLines};

/// Counters in a line.
const LINE: usize = 16;
/// Blocks of a row. Each has twice as many lines as the one before, so that there is a place for every `u32`.
const BLOCKS: usize = 29;

type Line = OwnLines<[Counter; LINE]>;

/// The rows of all threads.
#[derive(Debug)]
pub(crate) struct Hits {
    rows: ByThread<Row>,
    numbers: Mutex<Numbers>,
}

/// Which numbers are a rule's.
#[derive(Debug, Default)]
struct Numbers {
    /// All below it were given once.
    given: u32,
    free: Vec<u32>,
}

/// The counters of one thread. A block is made when a counter in it is first added to.
#[derive(Debug)]
struct Row([OnceLock<Box<[Line]>>; BLOCKS]);

/// A number that no other rule has.
#[derive(Debug)]
pub(crate) struct Number {
    number: u32,
    /// What stood there of a rule that had it before: only its own thread may write a counter.
    before: u64,
}

impl Hits {
    /// Of so many threads, to begin with.
    pub(crate) fn new(threads: usize) -> Hits {
        Hits { rows: ByThread::new(threads), numbers: Mutex::default() }
    }

    /// A number for a rule, of which nothing is counted.
    pub(crate) fn take(&self) -> Number {
        let mut numbers = self.numbers();
        if let Some(number) = numbers.free.pop() {
            return Number { number, before: self.sum(number) };
        }
        numbers.given += 1;
        Number { number: numbers.given - 1, before: 0 }
    }

    /// It may be another rule's. Nobody may count by it any more.
    pub(crate) fn give_back(&self, number: &Number) {
        self.numbers().free.push(number.number);
    }

    /// Counts one. Only that thread may call it.
    #[inline]
    pub(crate) fn add(&self, thread: usize, number: &Number) {
        self.rows.of(thread).counter(number.number).add(1);
    }

    /// What all threads have counted.
    pub(crate) fn of(&self, number: &Number) -> u64 {
        self.sum(number.number).wrapping_sub(number.before)
    }

    fn sum(&self, number: u32) -> u64 {
        self.rows.iter().fold(0, |sum, row| sum.wrapping_add(row.get(number)))
    }

    fn numbers(&self) -> MutexGuard<'_, Numbers> {
        // No code panics while it holds the lock, and what it guards is whole at any time.
        self.numbers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Row {
    fn default() -> Row {
        Row([const { OnceLock::new() }; BLOCKS])
    }
}

impl Row {
    #[inline]
    fn counter(&self, number: u32) -> &Counter {
        let (block, line, at) = place(number);
        let made = || (0..1_usize << block).map(|_| Line::default()).collect();
        &self.0[block].get_or_init(made)[line][at]
    }

    fn get(&self, number: u32) -> u64 {
        let (block, line, at) = place(number);
        self.0[block].get().map_or(0, |lines| lines[line][at].get())
    }
}

/// The block of a number, the line in it, and the place in that.
#[inline]
fn place(number: u32) -> (usize, usize, usize) {
    let (line, at) = (number as usize / LINE + 1, number as usize % LINE);
    let block = line.ilog2() as usize;
    (block, line - (1 << block), at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_has_a_place_of_its_own() {
        let mut expected = (0, 0, 0);
        for number in 0..100_000 {
            assert_eq!(place(number), expected, "{number}");
            let (block, line, at) = expected;
            expected = match (at + 1 == LINE, line + 1 == 1 << block) {
                (false, _) => (block, line, at + 1),
                (true, false) => (block, line + 1, 0),
                (true, true) => (block + 1, 0, 0),
            };
        }
        let (block, line, _) = place(u32::MAX);
        assert!(block < BLOCKS && line < 1 << block);
    }

    #[test]
    fn threads_count_by_themselves_and_who_comes_later_begins_at_nothing() {
        let hits = Hits::new(2);
        let numbers: Vec<Number> = (0..1000).map(|_| hits.take()).collect();
        for (times, number) in numbers.iter().enumerate() {
            (0..times).for_each(|time| hits.add(time % 4, number));
        }
        let all = |numbers: &[Number]| numbers.iter().map(|number| hits.of(number)).collect::<Vec<_>>();
        assert_eq!(all(&numbers), (0..1000).collect::<Vec<u64>>());
        hits.give_back(&numbers[900]);
        let other = hits.take();
        assert_eq!((other.number, hits.of(&other)), (900, 0));
        hits.add(3, &other);
        assert_eq!((hits.of(&other), hits.of(&numbers[901])), (1, 901));
        assert_eq!(hits.take().number, 1000, "no two have the same");
    }

    /// At most 16 bytes a rule on a thread where each has decided, and next to nothing where none has.
    #[test]
    fn a_rule_takes_few_bytes() {
        const RULES: u32 = 20_000;
        let hits = Hits::new(2);
        let numbers: Vec<Number> = (0..RULES).map(|_| hits.take()).collect();
        let bytes = |thread: usize| {
            let blocks = hits.rows.of(thread).0.iter().filter_map(OnceLock::get);
            blocks.map(|lines| size_of_val(&**lines)).sum::<usize>()
        };
        assert_eq!([bytes(0), bytes(1)], [0, 0]);
        numbers.iter().for_each(|number| hits.add(0, number));
        assert!((8..=16).contains(&(bytes(0) / RULES as usize)), "{} bytes", bytes(0));
        assert_eq!(bytes(1), 0, "of a thread that has decided nothing");
        assert!(size_of::<Row>() < 1024);
    }
}

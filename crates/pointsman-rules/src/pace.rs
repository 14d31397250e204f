//! Pauses of work that takes long, in threads that give way to others.
//!
//! A scheduler takes the processor from a thread at its ticks, which are 4 ms apart on many machines, and whoever waits
//! waits for the next one, however low the thread's priority is. So what reads, compares and drops large rule sets says
//! here how much it does, and the thread pauses in between: docs/adr/0056.
//!
//! Invariant: what the work comes to does not depend on it, and a thread that gives way to nobody never pauses.

use std::cell::Cell;

/// Work between two pauses, in units of about 10 to 40 ns: what it takes to look at one value with one test.
const PAUSE_UNITS: u64 = 4096;

/// The units of a step: about what one loop does with one rule.
const STEP_UNITS: u64 = 32;

thread_local! {
    static PACE: Cell<Pace> = const { Cell::new(Pace { pause: None, left: PAUSE_UNITS }) };
}

/// How a thread pauses, and how much it does before that.
#[derive(Clone, Copy)]
struct Pace {
    pause: Option<fn()>,
    left: u64,
}

/// From now on this thread gives way to others: after about 100 µs of work it calls `pause`, which lets them go first.
pub fn give_way(pause: fn()) {
    PACE.set(Pace { pause: Some(pause), left: PAUSE_UNITS });
}

/// Says that a loop goes on to its next rule, or to something as large.
#[inline]
pub fn step() {
    spend(STEP_UNITS);
}

/// Says that so many units of work are done: a unit is about as much as looking at one value with one test.
#[inline]
pub fn spend(units: u64) {
    let Pace { pause: Some(pause), left } = PACE.get() else { return };
    match left.checked_sub(units) {
        Some(left) => PACE.set(Pace { pause: Some(pause), left }),
        None => {
            PACE.set(Pace { pause: Some(pause), left: PAUSE_UNITS });
            pause();
        }
    }
}

/// The same items, with a [`step`] before each.
pub fn each<I: IntoIterator>(items: I) -> Each<I::IntoIter> {
    Each(items.into_iter())
}

/// Drops items one after another, with a [`step`] before each.
pub fn drop_each(items: impl IntoIterator) {
    each(items).for_each(drop);
}

/// Sorts as [`slice::sort_unstable`] does; each comparison is two units.
pub fn sort<T: Ord>(items: &mut [T]) {
    items.sort_unstable_by(|one, other| {
        spend(2);
        one.cmp(other)
    });
}

/// What [`each`] makes.
#[derive(Clone, Debug)]
#[must_use = "iterators do nothing unless they are asked"]
pub struct Each<I>(I);

impl<I: Iterator> Iterator for Each<I> {
    type Item = I::Item;

    #[inline]
    fn next(&mut self) -> Option<I::Item> {
        step();
        self.0.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl<I: DoubleEndedIterator> DoubleEndedIterator for Each<I> {
    #[inline]
    fn next_back(&mut self) -> Option<I::Item> {
        step();
        self.0.next_back()
    }
}

impl<I: ExactSizeIterator> ExactSizeIterator for Each<I> {}

#[cfg(test)]
mod tests {
    use super::*;

    thread_local! {
        static PAUSES: Cell<u64> = const { Cell::new(0) };
    }

    /// How often work pauses in a thread that gives way.
    fn pauses<T: Send>(work: impl FnOnce() -> T + Send) -> u64 {
        let in_its_thread = || {
            give_way(|| PAUSES.set(PAUSES.get() + 1));
            work();
            PAUSES.get()
        };
        std::thread::scope(|scope| scope.spawn(in_its_thread).join().expect("it ends"))
    }

    #[test]
    fn work_pauses_by_what_it_does() {
        let between = PAUSE_UNITS / STEP_UNITS;
        assert_eq!(pauses(|| each(0..between * 10 + 1).count()), 9);
        assert_eq!(pauses(|| each(0..between * 10 + 1).rev().count()), 9);
        assert_eq!(pauses(|| spend(PAUSE_UNITS)), 0);
        assert_eq!(pauses(|| (spend(PAUSE_UNITS), spend(1))), 1);
        assert_eq!(pauses(|| drop_each(vec![String::new(); 1000])), 1001 / (between + 1));
    }

    #[test]
    fn nobody_pauses_who_gives_way_to_nobody() {
        step();
        PACE.with(|pace| assert!(pace.get().pause.is_none() && pace.get().left == PAUSE_UNITS));
    }

    #[test]
    fn sorting_pauses() {
        let mut numbers: Vec<u32> =
            (0..20_000).map(|number: u32| number.wrapping_mul(2_654_435_761)).collect();
        let pauses = pauses(|| sort(&mut numbers));
        assert!(numbers.is_sorted() && pauses > 20, "{pauses}");
    }
}

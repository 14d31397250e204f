//! Counters that one thread writes and another reads, each thread's on cache lines of its own.

use std::ops::Deref;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// A count with a single writer.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds. Only one thread may ever call it: two writers would lose counts.
    #[inline]
    pub fn add(&self, count: u64) {
        // Not `fetch_add`: with one writer nothing can come between, and a locked instruction costs
        // twenty times as much.
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(count), Ordering::Relaxed);
    }

    /// Takes away what the same thread has added.
    #[inline]
    pub fn subtract(&self, count: u64) {
        debug_assert!(self.get() >= count, "more is taken away than was added");
        self.add(count.wrapping_neg());
    }

    /// What it is now, or was a moment ago where another thread writes it.
    #[inline]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// One `T` for each thread, by its number: made for so many at once, and for others when they come.
#[derive(Debug)]
pub struct ByThread<T> {
    first: Box<[T]>,
    /// Of threads with larger numbers: made by the first of them that asks.
    more: OnceLock<Box<ByThread<T>>>,
}

/// As many are made at least for threads that come later.
const LATER_MIN: usize = 8;

impl<T: Default> ByThread<T> {
    /// For so many threads, to begin with.
    #[must_use]
    pub fn new(threads: usize) -> ByThread<T> {
        ByThread { first: (0..threads).map(|_| T::default()).collect(), more: OnceLock::new() }
    }

    /// What is a thread's own.
    #[inline]
    pub fn of(&self, thread: usize) -> &T {
        match self.first.get(thread) {
            Some(own) => own,
            None => self.later(thread - self.first.len()),
        }
    }

    #[cold]
    fn later(&self, thread: usize) -> &T {
        let threads = (2 * self.first.len()).max(LATER_MIN);
        self.more.get_or_init(|| Box::new(ByThread::new(threads))).of(thread)
    }
}

impl<T> ByThread<T> {
    /// All that there are.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        let parts = std::iter::successors(Some(self), |part| part.more.get().map(|more| &**more));
        parts.flat_map(|part| part.first.iter())
    }
}

/// Counters of each thread.
#[derive(Debug)]
pub(crate) struct Slots<T>(ByThread<OwnLines<T>>);

/// Something that shares no cache line with anything else: what is written beside it slows nobody down who reads
/// it, nor the other way round.
///
/// It has 128 bytes or a multiple: processors fetch lines of 64 bytes by twos.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct OwnLines<T>(pub T);

impl<T> Deref for OwnLines<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Default> Slots<T> {
    pub(crate) fn new(threads: usize) -> Slots<T> {
        Slots(ByThread::new(threads))
    }

    #[inline]
    pub(crate) fn of(&self, thread: usize) -> &T {
        self.0.of(thread)
    }
}

impl<T> Slots<T> {
    /// Those of all threads.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter().map(|own| &own.0)
    }

    /// The sum over all threads of one counter.
    pub(crate) fn sum(&self, counter: impl Fn(&T) -> &Counter) -> u64 {
        self.0.iter().fold(0, |sum, slot| sum.wrapping_add(counter(slot).get()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_that_come_later_have_their_own() {
        let counts: ByThread<OwnLines<Counter>> = ByThread::new(2);
        assert_eq!(counts.iter().count(), 2);
        for thread in 0..40 {
            counts.of(thread).add(thread as u64);
        }
        assert_eq!((0..40).filter(|&thread| counts.of(thread).get() != thread as u64).count(), 0);
        assert_eq!(counts.iter().map(|count| count.get()).sum::<u64>(), 39 * 20);
    }
}

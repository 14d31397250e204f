//! Counters that one thread writes and another reads, each thread's on cache lines of its own.

use std::sync::atomic::{AtomicU64, Ordering};

/// A count with a single writer.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    /// Adds. Only the thread that owns the slot may call it: two writers would lose counts.
    #[inline]
    pub(crate) fn add(&self, count: u64) {
        // Not `fetch_add`: with one writer nothing can come between, and a locked instruction costs
        // twenty times as much.
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(count), Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// One `T` for each thread.
#[derive(Debug)]
pub(crate) struct Slots<T>(Box<[Padded<T>]>);

/// Fills whole cache lines, so that no thread's counts share a line with another's.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Padded<T>(T);

impl<T: Default> Slots<T> {
    pub(crate) fn new(threads: usize) -> Slots<T> {
        Slots((0..threads).map(|_| Padded::default()).collect())
    }
}

impl<T> Slots<T> {
    #[inline]
    pub(crate) fn of(&self, thread: usize) -> &T {
        &self.0[thread].0
    }

    /// The sum over all threads of one counter.
    pub(crate) fn sum(&self, counter: impl Fn(&T) -> &Counter) -> u64 {
        self.0.iter().fold(0, |sum, slot| sum.wrapping_add(counter(&slot.0).get()))
    }
}

//! Counters that one thread writes and another reads, each thread's on cache lines of its own.

use std::ops::Deref;
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

/// One `T` for each thread.
#[derive(Debug)]
pub(crate) struct Slots<T>(Box<[OwnLines<T>]>);

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
        Slots((0..threads).map(|_| OwnLines::default()).collect())
    }
}

impl<T> Slots<T> {
    #[inline]
    pub(crate) fn of(&self, thread: usize) -> &T {
        &self.0[thread]
    }

    /// The sum over all threads of one counter.
    pub(crate) fn sum(&self, counter: impl Fn(&T) -> &Counter) -> u64 {
        self.0.iter().fold(0, |sum, slot| sum.wrapping_add(counter(slot).get()))
    }
}

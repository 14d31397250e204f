//! What becomes of requests: how many there were, by class of status, and how long they took.

use std::sync::OnceLock;

use crate::histogram::{BUCKETS, Histogram, bound_us};
use crate::slots::{Counter, OwnLines};

/// Classes of status, in the order of their counters. The first is "no answer".
pub(crate) const STATUS: [&str; 6] = ["none", "1xx", "2xx", "3xx", "4xx", "5xx"];

/// What became of requests that have something in common, as one thread saw it.
#[derive(Debug, Default)]
pub(crate) struct Outcomes {
    statuses: [Counter; STATUS.len()],
    duration: Histogram,
}

/// Those of something that most threads never see: made when a thread first does.
pub(crate) type LazyOutcomes = OnceLock<Box<OwnLines<Outcomes>>>;

/// What became of one request.
#[derive(Clone, Copy)]
pub(crate) struct Outcome {
    /// Which of [`STATUS`] the client was sent; nothing of what is no request among others.
    pub(crate) class: Option<usize>,
    /// How long it took, where that says something.
    pub(crate) duration_us: Option<u64>,
}

/// Outcomes of all threads together.
#[derive(Debug, Default)]
pub(crate) struct Total {
    pub(crate) statuses: [u64; STATUS.len()],
    pub(crate) buckets: [u64; BUCKETS],
    pub(crate) sum_us: u64,
}

impl Outcomes {
    #[inline]
    pub(crate) fn add(&self, outcome: Outcome) {
        if let Some(class) = outcome.class {
            self.statuses[class].add(1);
        }
        if let Some(duration_us) = outcome.duration_us {
            self.duration.add(duration_us);
        }
    }
}

impl Total {
    pub(crate) fn of<'a>(threads: impl Iterator<Item = &'a Outcomes>) -> Total {
        threads.fold(Total::default(), |mut total, outcomes| {
            for (sum, count) in total.statuses.iter_mut().zip(&outcomes.statuses) {
                *sum += count.get();
            }
            for (sum, count) in total.buckets.iter_mut().zip(&outcomes.duration.buckets) {
                *sum += count.get();
            }
            total.sum_us = total.sum_us.wrapping_add(outcomes.duration.sum_us.get());
            total
        })
    }

    /// How many took no longer than each bound, in microseconds; than none are all whose duration is known.
    pub(crate) fn up_to(&self) -> impl Iterator<Item = (Option<u64>, u64)> {
        let counts = self.buckets.iter().scan(0, |sum, count| {
            *sum += count;
            Some(*sum)
        });
        (0..BUCKETS).map(bound_us).zip(counts)
    }

    /// How many there were.
    pub(crate) fn requests(&self) -> u64 {
        self.statuses.iter().sum()
    }
}

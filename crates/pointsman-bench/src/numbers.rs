//! Which number a request has: no two of a run have the same, whichever trial, machine and thread they are of.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

use crate::run::Place;

/// No trial gives so many.
const A_TRIALS: u64 = 1 << 40;

/// How many numbers have been given to requests. Clones of a plan go on with them: the trials of a run are such.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(from = "u64", into = "u64")]
pub struct Numbers(Arc<AtomicU64>);

impl From<u64> for Numbers {
    fn from(given: u64) -> Numbers {
        Numbers(Arc::new(AtomicU64::new(given)))
    }
}

impl From<Numbers> for u64 {
    fn from(numbers: Numbers) -> u64 {
        numbers.given()
    }
}

impl Numbers {
    /// The greatest that was given.
    pub(crate) fn given(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// All up to this one were. An agent may say anything.
    pub(crate) fn gave(&self, last: u64) {
        self.0.fetch_max(last.min(u64::MAX / 2), Ordering::Relaxed);
    }

    /// A trial has given nobody knows how many, since who gave them has not said.
    pub(crate) fn lost_count(&self) {
        self.gave(self.given() + A_TRIALS);
    }

    /// So many for each of the machines that carry a plan out together, and those of one of them. The machines take turns.
    pub(crate) fn take(&self, count: usize, place: Place) -> impl Iterator<Item = u64> + use<> {
        let (count, of) = (count as u64, place.of as u64);
        let first = self.0.fetch_add(count * of, Ordering::Relaxed) + place.index as u64 + 1;
        (0..count).map(move |at| first + at * of)
    }

    /// The same that go on for themselves: what is sent to another machine.
    pub(crate) fn apart(&self) -> Numbers {
        self.given().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_not_said_how_many_it_gave_gave_less_than_that() {
        let numbers = Numbers::default();
        numbers.gave(3);
        numbers.lost_count();
        assert_eq!(numbers.take(1, Place::ALONE).collect::<Vec<_>>(), [A_TRIALS + 4]);
        numbers.gave(u64::MAX);
        numbers.lost_count();
        assert_eq!(numbers.given(), u64::MAX / 2);
    }

    #[test]
    fn machines_take_turns_and_clones_go_on() {
        let numbers = Numbers::default();
        numbers.gave(3);
        let of = |index| -> Vec<u64> {
            let there: Numbers = serde_json::from_value(serde_json::json!(numbers)).expect("a number");
            let taken = there.take(2, Place { index, of: 3 }).collect();
            assert_eq!((there.given(), numbers.given()), (9, 3));
            taken
        };
        assert_eq!([of(0), of(1), of(2)], [[4, 7], [5, 8], [6, 9]]);
        let (apart, clone) = (numbers.apart(), numbers.clone());
        assert_eq!(numbers.take(1, Place::ALONE).collect::<Vec<_>>(), [4]);
        assert_eq!((apart.given(), clone.given()), (3, 4));
    }
}

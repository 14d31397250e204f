//! What the tests of a program have come to for one subject, so that none is worked out twice.

use crate::Truth;

/// Room for one decision at a time, kept for the next: once it has grown to the largest program, a decision
/// allocates nothing for it. Any program and any subject may use it after any other.
#[derive(Debug, Default)]
pub struct Truths {
    /// By the number of the test; nothing where it was not asked yet. One byte each, so that forgetting them all
    /// is one sweep over little memory.
    known: Vec<Option<Truth>>,
}

impl Truths {
    /// Forgets everything, and has room for this many tests.
    pub(crate) fn forget(&mut self, tests: usize) {
        self.known.clear();
        self.known.resize(tests, None);
    }

    /// By the number of the test.
    pub(crate) fn known(&self) -> &[Option<Truth>] {
        &self.known
    }

    #[inline]
    pub(crate) fn of(&self, test: u32) -> Option<Truth> {
        self.known.get(test as usize).copied().flatten()
    }

    /// Remembers it, if it is one of those that there is room for.
    pub(crate) fn learn(&mut self, test: u32, truth: Truth) {
        if let Some(slot) = self.known.get_mut(test as usize) {
            *slot = Some(truth);
        }
    }

    /// The tests of one group, which are learned together.
    pub(crate) fn group(&mut self, tests: std::ops::Range<u32>) -> &mut [Option<Truth>] {
        self.known.get_mut(tests.start as usize..tests.end as usize).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cause;

    #[test]
    fn a_decision_knows_nothing_of_the_one_before() {
        let mut truths = Truths::default();
        truths.forget(3);
        truths.learn(1, Truth::Unknown(Cause::Limit));
        assert_eq!([0, 1, 2].map(|test| truths.of(test)), [None, Some(Truth::Unknown(Cause::Limit)), None]);
        truths.group(1..3).fill(Some(Truth::False));
        assert_eq!([0, 1, 2].map(|test| truths.of(test)), [None, Some(Truth::False), Some(Truth::False)]);
        for tests in [2, 3, 5] {
            truths.forget(tests);
            assert!((0..5).all(|test| truths.of(test).is_none()));
        }
    }

    #[test]
    fn what_is_known_of_a_test_fits_a_byte() {
        assert_eq!(size_of::<Option<Truth>>(), 1);
    }
}

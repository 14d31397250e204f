//! What is known of tests of one field: which cannot come to this and that together, whatever the request.

use std::collections::{HashMap, HashSet};

use super::states::States;

/// So many are kept of one test; what is forgotten is found again.
const OF_ONE_TEST_MAX: usize = 64;

/// Tests, by number, and what they cannot all come to. In the order of their numbers.
pub(super) type Lemma = Vec<(u32, States)>;

/// All that was found so far, for every later question.
#[derive(Debug, Default)]
pub(super) struct Lemmas {
    list: Vec<Lemma>,
    known: HashSet<Lemma>,
    /// By a test's number, places in the list.
    of_test: HashMap<u32, Vec<usize>>,
}

impl Lemmas {
    /// Keeps one.
    pub(super) fn add(&mut self, lemma: Lemma) {
        let is_full = |(test, _): &(u32, States)| {
            self.of_test.get(test).is_some_and(|places| places.len() >= OF_ONE_TEST_MAX)
        };
        if lemma.iter().all(is_full) || !self.known.insert(lemma.clone()) {
            return;
        }
        for (test, _) in &lemma {
            self.of_test.entry(*test).or_default().push(self.list.len());
        }
        self.list.push(lemma);
    }

    /// Those that speak of a test.
    pub(super) fn of(&self, test: u32) -> impl Iterator<Item = &Lemma> {
        let places = self.of_test.get(&test).map(Vec::as_slice).unwrap_or_default();
        // Of a test that many speak of the first are as good as any.
        places.iter().take(OF_ONE_TEST_MAX).filter_map(|place| self.list.get(*place))
    }
}

//! How often each kind of client got what it should.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

/// How many problems of a kind are kept in words.
const EXAMPLES: usize = 3;

/// Counts by kind.
#[derive(Default)]
pub(super) struct Tally(Mutex<BTreeMap<&'static str, Count>>);

#[derive(Clone, Default)]
struct Count {
    fine: u64,
    wrong: u64,
    examples: Vec<String>,
}

impl Tally {
    /// Counts one thing that a client looked at.
    pub(super) fn note(&self, name: &'static str, outcome: Result<(), String>) {
        self.add(name, outcome.map(|()| 1));
    }

    /// Counts many at once.
    pub(super) fn add(&self, name: &'static str, outcome: Result<u64, String>) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(name).or_default();
        match outcome {
            Ok(number) => count.fine += number,
            Err(problem) => {
                count.wrong += 1;
                if count.examples.len() < EXAMPLES {
                    count.examples.push(problem);
                }
            }
        }
    }

    fn counts(&self) -> BTreeMap<&'static str, Count> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How often these kinds together got what they should; nothing where one of them ever did not.
    pub(super) fn fine_of(&self, names: &[&str]) -> Option<u64> {
        let counts = self.counts();
        let mut named = names.iter().filter_map(|name| counts.get(name));
        named.try_fold(0, |sum, count| (count.wrong == 0).then_some(sum + count.fine))
    }

    pub(super) fn table(&self) -> String {
        let rows = self.counts();
        rows.iter()
            .map(|(name, count)| format!("{name:<34}{:>10} fine{:>7} wrong\n", count.fine, count.wrong))
            .collect()
    }

    /// What went wrong; a kind of client that never got anything done counts as well.
    pub(super) fn complaints(&self) -> Vec<String> {
        let mut complaints = Vec::new();
        for (name, count) in self.counts() {
            if count.wrong > 0 {
                complaints.push(format!("{name}: {} wrong: {}", count.wrong, count.examples.join("; ")));
            } else if count.fine == 0 {
                complaints.push(format!("{name}: nothing came of it"));
            }
        }
        complaints
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = self.counts();
        let (fine, wrong) =
            counts.values().fold((0, 0), |sum, count| (sum.0 + count.fine, sum.1 + count.wrong));
        write!(out, "{fine} fine, {wrong} wrong")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_counted_and_said() {
        let tally = Tally::default();
        tally.note("good", Ok(()));
        tally.add("good", Ok(9));
        assert!(tally.complaints().is_empty());
        for number in 0..5 {
            tally.note("bad", Err(format!("problem {number}")));
        }
        tally.add("idle", Ok(0));
        let complaints = tally.complaints();
        assert_eq!(complaints, ["bad: 5 wrong: problem 0; problem 1; problem 2", "idle: nothing came of it"]);
        assert_eq!(tally.to_string(), "10 fine, 5 wrong");
        assert_eq!(tally.fine_of(&["good", "idle", "never"]), Some(10));
        assert_eq!(tally.fine_of(&["good", "bad"]), None);
    }
}

//! What a replay has counted so far, within bounds whatever the log says.

use std::collections::{BTreeSet, HashMap};

use pointsman_rules::Way;

use super::comparison::Comparison;

/// More kinds of changes are counted, and not told apart.
pub(super) const GROUPS_MAX: usize = 1_000;

/// More reasons why something cannot be told are counted, and not told apart.
const WANTED_MAX: usize = 1_000;

/// So many lines that cannot be read are shown.
const UNREADABLE_SHOWN_MAX: usize = 5;

/// So many listeners of a log are named.
pub(super) const LISTENERS_MAX: usize = 8;

/// Characters of a sample.
const SAMPLE_CHARS_MAX: usize = 200;

/// How many records went which way.
#[derive(Default)]
pub(super) struct Tally {
    samples_max: usize,
    /// Lines of the log that were read, empty ones among them.
    pub(super) lines: u64,
    /// Bytes of them, once they are no longer compressed.
    pub(super) bytes: u64,
    /// Why nothing behind them could be read, where the log is cut off.
    pub(super) cut_off: Option<String>,
    /// Requests and connections that were compared.
    pub(super) compared: u64,
    pub(super) same: u64,
    pub(super) other_rule: u64,
    pub(super) changed: u64,
    pub(super) untold: u64,
    /// The switch refuses them before a rule is asked, then and now.
    pub(super) refused: u64,
    /// No rule was asked when they were recorded.
    pub(super) undecided: u64,
    /// Of another listener than is wanted.
    pub(super) elsewhere: u64,
    pub(super) unreadable: u64,
    pub(super) unreadable_lines: Vec<(u64, &'static str)>,
    /// What the rules before decide otherwise than the log says.
    pub(super) against_log: u64,
    pub(super) listeners: BTreeSet<String>,
    groups: HashMap<(Way, Way), Group>,
    /// Changes beyond [`GROUPS_MAX`].
    pub(super) ungrouped: u64,
    wanted: HashMap<String, u64>,
    /// The first of those that cannot be told.
    pub(super) untold_samples: Vec<Sample>,
}

/// Records that have changed alike.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) is_outcome: bool,
    pub(super) count: u64,
    pub(super) samples: Vec<Sample>,
}

/// A line of the log.
#[derive(Debug)]
pub(super) struct Sample {
    pub(super) line: u64,
    pub(super) request: String,
}

impl Tally {
    /// Nothing yet; so many lines are kept of each kind of change.
    pub(super) fn new(samples_max: usize) -> Tally {
        Tally { samples_max, ..Tally::default() }
    }

    /// Adds what a line came to; `summary` is asked for where it is shown.
    pub(super) fn add(&mut self, comparison: Comparison, line: u64, summary: impl FnOnce() -> String) {
        self.compared += 1;
        let (is_outcome, ways) = match comparison {
            Comparison::Same => {
                self.same += 1;
                return;
            }
            Comparison::Refused => {
                self.refused += 1;
                return;
            }
            Comparison::Untold(wanted) => {
                self.untold += 1;
                wanted.into_iter().for_each(|name| self.want(name));
                sample(&mut self.untold_samples, self.samples_max, line, summary);
                return;
            }
            Comparison::OtherRule(then, now) => {
                self.other_rule += 1;
                (false, (then, now))
            }
            Comparison::Changed(then, now) => {
                self.changed += 1;
                (true, (then, now))
            }
        };
        if self.groups.len() >= GROUPS_MAX && !self.groups.contains_key(&ways) {
            self.ungrouped += 1;
            return;
        }
        let new = || Group { is_outcome, count: 0, samples: Vec::new() };
        let group = self.groups.entry(ways).or_insert_with(new);
        group.count += 1;
        sample(&mut group.samples, self.samples_max, line, summary);
    }

    /// Whether there was nothing that could have changed.
    pub(super) fn is_empty(&self) -> bool {
        self.compared == 0 && self.unreadable == 0
    }

    fn want(&mut self, name: String) {
        let is_full = self.wanted.len() >= WANTED_MAX && !self.wanted.contains_key(&name);
        let name = if is_full { "others".to_owned() } else { name };
        *self.wanted.entry(name).or_default() += 1;
    }

    /// Adds a line that cannot be read.
    pub(super) fn add_unreadable(&mut self, line: u64, reason: &'static str) {
        self.unreadable += 1;
        if self.unreadable_lines.len() < UNREADABLE_SHOWN_MAX {
            self.unreadable_lines.push((line, reason));
        }
    }

    /// Notes where a line was recorded.
    pub(super) fn hear_of(&mut self, listener: &str) {
        if self.listeners.len() <= LISTENERS_MAX && !self.listeners.contains(listener) {
            self.listeners.insert(listener.chars().take(SAMPLE_CHARS_MAX).collect());
        }
    }

    /// The groups, the largest first; those of other outcomes before those of other rules.
    pub(super) fn groups(&self) -> Vec<(&(Way, Way), &Group)> {
        let mut groups: Vec<_> = self.groups.iter().collect();
        groups.sort_by_key(|((then, now), group)| {
            (
                !group.is_outcome,
                std::cmp::Reverse(group.count),
                &then.rule,
                &now.rule,
                &then.outcome,
                &now.outcome,
            )
        });
        groups
    }

    /// What was wanted to tell the rest, most wanted first.
    pub(super) fn wanted(&self) -> Vec<(&str, u64)> {
        let mut wanted: Vec<_> = self.wanted.iter().map(|(name, count)| (&**name, *count)).collect();
        wanted.sort_by_key(|(name, count)| (std::cmp::Reverse(*count), *name));
        wanted
    }
}

/// Keeps a line to show, if there is room.
fn sample(samples: &mut Vec<Sample>, max: usize, line: u64, summary: impl FnOnce() -> String) {
    if samples.len() < max {
        let request = summary().chars().take(SAMPLE_CHARS_MAX).collect();
        samples.push(Sample { line, request });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_counted_is_bounded() {
        let mut tally = Tally::new(2);
        let way = |rule: usize| Way { rule: format!("R{rule}"), outcome: "a".to_owned() };
        for line in 0..10_000_usize {
            let changed = Comparison::Changed(way(line % (2 * GROUPS_MAX)), way(0));
            tally.add(changed, line as u64, || "x".repeat(1_000));
            let untold = Comparison::Untold(vec![format!("f{line}"), "often".to_owned()]);
            tally.add(untold, 0, || "x".repeat(1_000));
            tally.hear_of(&line.to_string());
            tally.add_unreadable(line as u64, "why");
        }
        assert_eq!((tally.groups().len(), tally.ungrouped), (GROUPS_MAX, 5_000));
        assert!(tally.groups().iter().all(|(_, group)| group.count == 5 && group.samples.len() == 2));
        assert!(tally.groups().iter().all(|(_, group)| group.samples[0].request.len() == SAMPLE_CHARS_MAX));
        assert_eq!(tally.untold_samples.len(), 2);
        assert_eq!(tally.wanted()[0], ("often", 10_000));
        assert_eq!(tally.wanted().iter().map(|(_, count)| count).sum::<u64>(), 20_000);
        assert_eq!(tally.wanted().len(), WANTED_MAX + 1);
        assert_eq!(tally.listeners.len(), LISTENERS_MAX + 1);
        assert_eq!((tally.unreadable, tally.unreadable_lines.len()), (10_000, UNREADABLE_SHOWN_MAX));
    }
}

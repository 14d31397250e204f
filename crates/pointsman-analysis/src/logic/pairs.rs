//! Pairs of rules that some request has both: the first decides it, and the second would do something else with it.

use pointsman_rules::{Condition, Exit};

use super::findings::{Code, Finding, Report};
use super::keys::{Index, Keys};
use super::question::{Answer, Question, Way};
use super::states::States;

/// So many groups of conflicts are shown, and so many of exceptions.
const GROUPS_MAX: usize = 100;
/// So many pairs are looked at.
const PAIRS_MAX: u64 = 10_000;

/// The rules that one later rule meets.
#[derive(Default)]
struct Met {
    conflicts: Vec<u32>,
    exceptions: Vec<u32>,
    /// A request that the first of each shows.
    first_conflict: Option<Box<crate::Witness>>,
    first_exception: Option<Box<crate::Witness>>,
}

/// What two rules are to each other.
enum Pair {
    Conflict(Box<crate::Witness>),
    Exception(Box<crate::Witness>),
    Nothing,
    Unknown,
}

impl Report<'_> {
    /// Says which rules conflict, and which are exceptions from others. `live` are those that some request reaches.
    pub(super) fn look_for_pairs(&mut self, live: &[u32], keys: &[Keys<'_>]) {
        let decides = |index: &u32| {
            let rule = self.program.rules.get(*index as usize);
            rule.is_some_and(|rule| {
                matches!(rule.then.exit, Exit::Terminal(_)) && !matches!(rule.condition, Condition::Always)
            })
        };
        let deciding: Vec<u32> = live.iter().copied().filter(decides).collect();
        let index = Index::new(&deciding, keys);
        let (mut unsettled, mut conflicts, mut exceptions) = (0_u64, Vec::new(), Vec::new());
        let mut pairs_left = PAIRS_MAX;
        for (place, second) in deciding.iter().copied().enumerate() {
            let before = index.before(second);
            let before = before.unwrap_or_else(|| deciding.get(..place).unwrap_or_default().to_vec());
            let mut met = Met::default();
            for first in before {
                if self.ends_alike(first, second) || self.allows(first, second) {
                    continue;
                }
                if pairs_left == 0 || self.analyst.is_used_up() {
                    unsettled += 1;
                    continue;
                }
                pairs_left -= 1;
                match self.pair(first, second) {
                    Pair::Conflict(witness) => {
                        met.conflicts.push(first);
                        met.first_conflict.get_or_insert(witness);
                    }
                    Pair::Exception(witness) => {
                        met.exceptions.push(first);
                        met.first_exception.get_or_insert(witness);
                    }
                    Pair::Nothing => {}
                    Pair::Unknown => unsettled += 1,
                }
            }
            conflicts.extend(self.conflict(second, &met.conflicts, met.first_conflict));
            exceptions.extend(self.exception(second, &met.exceptions, met.first_exception));
        }
        self.add_groups(conflicts, "conflicts");
        self.add_groups(exceptions, "exceptions");
        if unsettled > 0 {
            let rules = deciding.len();
            let message = format!(
                "{unsettled} pairs of {rules} rules were not settled: whether they conflict is unknown"
            );
            self.add(Code::Unknown, 0, &[], message, None);
        }
    }

    fn pair(&mut self, first: u32, second: u32) -> Pair {
        let removed = Some((first, States::TRUE));
        let both = Question { rule: second, states: States::TRUE, removed, way: Way::Walk };
        let witness = match self.analyst.ask(both) {
            Answer::Yes(witness) => witness,
            Answer::No(_) => return Pair::Nothing,
            Answer::Unknown => return Pair::Unknown,
        };
        let mut without = |rule: u32, other: u32| {
            let removed = Some((other, States::NOT_TRUE));
            self.analyst.ask(Question { rule, states: States::TRUE, removed, way: Way::Apart })
        };
        match (without(first, second), without(second, first)) {
            (Answer::Yes(_), Answer::Yes(_)) => Pair::Conflict(witness),
            (Answer::No(_), Answer::Yes(_)) => Pair::Exception(witness),
            (Answer::Unknown, _) | (_, Answer::Unknown) => Pair::Unknown,
            (_, Answer::No(_)) => Pair::Nothing,
        }
    }

    fn conflict(
        &mut self,
        second: u32,
        firsts: &[u32],
        witness: Option<Box<crate::Witness>>,
    ) -> Option<Finding> {
        let names = self.names(firsts);
        let message = format!(
            "{} would do something else with some requests that {names} {}",
            self.name(second),
            super::redundant::take(firsts)
        );
        let help = format!(
            "the first of them decides; `allow conflict({})` says that it is meant",
            self.labels(firsts)
        );
        let witness = *witness?;
        let finding = self.finding(Code::Conflict, second, firsts, message, Some(help));
        Some(Finding { witness: Some(witness), ..finding })
    }

    fn exception(
        &mut self,
        second: u32,
        firsts: &[u32],
        witness: Option<Box<crate::Witness>>,
    ) -> Option<Finding> {
        let (names, is_are) =
            (self.names(firsts), if firsts.len() == 1 { "is an exception" } else { "are exceptions" });
        let message = format!("{names} {is_are} from {}", self.name(second));
        let witness = *witness?;
        let finding = self.finding(Code::Exception, second, firsts, message, None);
        Some(Finding { witness: Some(witness), ..finding })
    }

    /// Adds as many as are shown, and says how many there are.
    fn add_groups(&mut self, mut groups: Vec<Finding>, what: &str) {
        let total = groups.len();
        groups.truncate(GROUPS_MAX);
        if let (true, Some(last)) = (total > GROUPS_MAX, groups.last_mut()) {
            last.help = Some(format!("of {total} groups of {what} these are the first {GROUPS_MAX}"));
        }
        self.findings.extend(groups);
    }

    fn ends_alike(&self, first: u32, second: u32) -> bool {
        let end = |index: u32| match &self.program.rules.get(index as usize)?.then.exit {
            Exit::Terminal(terminal) => Some(terminal),
            _ => None,
        };
        end(first) == end(second)
    }

    /// Whether one of two rules says that it may conflict with the other.
    fn allows(&self, first: u32, second: u32) -> bool {
        let allows = |one: u32, other: u32| {
            let rule = self.program.rules.get(one as usize);
            rule.is_some_and(|rule| {
                [&rule.then, &rule.otherwise]
                    .iter()
                    .any(|block| block.allows.iter().any(|allowed| allowed.0 == other))
            })
        };
        allows(first, second) || allows(second, first)
    }

    /// As `allow conflict` takes them, as far as rules have labels.
    fn labels(&self, rules: &[u32]) -> String {
        let labels =
            rules.iter().filter_map(|rule| self.program.rules.get(*rule as usize)).map(|rule| &*rule.label);
        let labels: Vec<_> = labels.filter(|label| !label.starts_with('#')).take(5).collect();
        if labels.is_empty() { "LABEL".to_owned() } else { labels.join(", ") }
    }
}

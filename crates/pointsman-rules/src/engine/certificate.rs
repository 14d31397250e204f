//! What a rule set may cost at most, known before any request comes.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;

use super::asks::Numbers;
use super::planning::{LongList, Planner};
use super::postings::Posting;
use super::reading::Ladder;
use crate::{Field, RuleIndex, Span, pace};

/// How many groups of rules are named.
const GROUPS_MAX: usize = 100;

/// How many rules are asked for one subject at most, and which cannot be told apart.
///
/// It speaks of subjects whose fields have one value each and whose values are all known; a field of many values may
/// find the rules of each of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Certificate {
    /// How many rules there are, the final `else:` among them.
    pub rules: usize,
    /// How many of them are asked for one subject at most.
    pub asked_max: usize,
    /// Groups of more than 32 rules that no field tells apart, the largest first, and at most 100.
    pub unseparated: Vec<Unseparated>,
    /// How many more such groups there are.
    pub unseparated_left_out: usize,
    is_indexed: bool,
}

/// Rules that are asked one by one where the first of them may be reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unseparated {
    /// The first of them.
    pub first: RuleIndex,
    /// The last one.
    pub last: RuleIndex,
    /// How many they are; there may be others in between.
    pub rules: usize,
    /// Where tests of some of them stand: where these are true all of the rules may be.
    pub shared: Vec<Span>,
    /// The fields that these ask.
    pub fields: Vec<Field>,
}

impl Certificate {
    /// Whether rules are looked up at all: few are simply asked one after another.
    #[must_use]
    pub fn is_indexed(&self) -> bool {
        self.is_indexed
    }

    /// Of rules that are all asked.
    pub(super) fn of_all(rules: usize) -> Certificate {
        Certificate { rules, asked_max: rules, ..Certificate::default() }
    }

    pub(super) fn new(planner: &Planner<'_>, numbers: &Numbers<'_>) -> Certificate {
        let rules = planner.rules();
        let asked_max = asked_max(planner).min(rules);
        let mut groups: Vec<_> = planner.long.iter().collect();
        groups.sort_by_key(|group| std::cmp::Reverse(group.rules.len()));
        let unseparated = groups.iter().take(GROUPS_MAX).filter_map(|group| unseparated(group, numbers));
        Certificate {
            rules,
            asked_max,
            unseparated: unseparated.collect(),
            unseparated_left_out: groups.len().saturating_sub(GROUPS_MAX),
            is_indexed: true,
        }
    }
}

fn unseparated(group: &LongList, numbers: &Numbers<'_>) -> Option<Unseparated> {
    let tests = || group.known.tests.iter().filter_map(|test| numbers.test(*test));
    Some(Unseparated {
        first: RuleIndex(*group.rules.first()?),
        last: RuleIndex(*group.rules.last()?),
        rules: group.rules.len(),
        shared: tests().map(|test| test.span).collect(),
        fields: tests().map(|test| test.field.clone()).collect(),
    })
}

/// Nodes lead to nodes behind them only, so that the last ones are counted first.
fn asked_max(planner: &Planner<'_>) -> usize {
    let nodes = &planner.postings.nodes;
    let mut asked = vec![0_usize; nodes.len()];
    let mut ladders: HashMap<u32, Ladder> = HashMap::new();
    for (number, node) in pace::each(nodes.iter().enumerate()).rev() {
        let of = |posting: Posting| match posting.len {
            0 => asked.get(posting.at as usize).copied().unwrap_or_default(),
            _ => planner.asked_of(posting),
        };
        let mut of_branches = |branches: Range<u32>| -> usize {
            branches.map(|branch| of_branch(planner, branch as usize, &mut ladders, &of)).sum()
        };
        let mut all = node.always.map_or(0, of).saturating_add(of_branches(node.branches.clone()));
        for field in node.of_head.clone().chain(node.of_body.clone()) {
            let field = &planner.postings.fields[field as usize];
            all = all.saturating_add(field.list.map_or(0, of) + of_branches(field.branches.clone()));
        }
        asked[number] = all;
    }
    asked.first().copied().unwrap_or_default()
}

fn of_branch(
    planner: &Planner<'_>,
    number: usize,
    ladders: &mut HashMap<u32, Ladder>,
    of: &impl Fn(Posting) -> usize,
) -> usize {
    let branch = &planner.postings.branches[number];
    let by_sign: HashMap<u32, usize> =
        pace::each(&planner.signs[number]).map(|(sign, posting)| (*sign, of(*posting))).collect();
    let ladder = ladders.entry(branch.reading).or_insert_with(|| planner.reading(branch.reading).ladder());
    let by_text = ladder.most_at_once(&by_sign);
    let by_run = pace::each(branch.stabs.ways()).map(|way| way.copied().map(of).sum::<usize>()).max();
    let closed = by_text + by_run.unwrap_or_default();
    let open = if branch.heeds_no_number { of(branch.all) } else { 0 };
    closed.max(open)
}

impl fmt::Display for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Certificate { rules, asked_max, .. } = self;
        write!(f, "one request asks at most {asked_max} of {rules} rules")
    }
}

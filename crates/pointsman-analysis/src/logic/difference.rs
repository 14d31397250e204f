//! Where two rule sets decide differently: every way in which they do, each with a request that shows it.
//!
//! Rules whose conditions ask the same, and which then go on or decide alike, are taken for each other, in their order. A
//! request that such a rule decides in one set is decided by its counterpart in the other, unless a rule without one has a
//! hand in it. So only these are asked about, and those that meet them.

mod alignment;
mod candidates;
mod checking;
mod copies;
mod effects;
mod ends;
mod settling;
#[cfg(test)]
pub(super) mod tests;

use std::collections::HashMap;
use std::mem::{Discriminant, discriminant};
use std::sync::Arc;

use pointsman_rules::{Condition, Place, Program, RuleIndex, Validate, pace};

use self::alignment::Alignment;
use self::candidates::{Candidates, Pair};
use self::ends::{End, Ends};
use self::settling::Verdict;
use super::doubt::Doubt;
use super::odd_names;
use super::question::Analyst;
use super::states::States;
use crate::Effort;
use crate::witness::{Setting, Witness};

/// So many groups are kept, and so many of what is unknown; more are counted.
const KEPT_MAX: usize = 100;

/// Rules, and what takes a request that they do not decide.
#[derive(Clone, Copy, Debug)]
pub struct RuleSide<'p> {
    /// The rules.
    pub program: &'p Arc<Program>,
    /// The default pool, where it is known.
    pub default_pool: Option<&'p str>,
}

/// What the condition of a rule comes to where it decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Holds {
    /// Its first block decides.
    True,
    /// Its else block does.
    False,
    /// What is set for unknown conditions does.
    Unknown,
}

/// Who decides a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Decider {
    /// The rule; the one behind the last, the final `else` among them, where none does.
    pub rule: RuleIndex,
    /// What its condition comes to.
    pub holds: Holds,
}

/// Requests that a rule of the old set decides, and a rule of the new set otherwise.
#[derive(Clone, Debug)]
pub struct Difference {
    /// Who decides them in the old set.
    pub old: Decider,
    /// Who decides them in the new set.
    pub new: Decider,
    /// One of them.
    pub witness: Witness,
}

/// What was not settled: whether a request is decided by this rule of the old set, and otherwise by that of the new one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undecided {
    /// Absent where it may be any.
    pub old: Option<Decider>,
    /// Likewise.
    pub new: Option<Decider>,
    /// Why it was not settled.
    pub doubt: Doubt,
}

/// All ways in which decisions differ.
#[derive(Clone, Debug, Default)]
pub struct Differences {
    /// In the order of the old rules, then of the new ones; the first hundred that were found.
    pub groups: Vec<Difference>,
    /// How many there are.
    pub groups_count: usize,
    /// The first hundred.
    pub undecided: Vec<Undecided>,
    /// How many there are.
    pub undecided_count: usize,
    /// Where bodies are validated otherwise: before, and now.
    pub validate: Option<(Validate, Validate)>,
    /// Whether what stands in a body of no media type that is read is unknown in one of them, and absent in the other. Of
    /// such requests nothing is said here, and nothing is proved to be equal.
    pub reads_otherwise: bool,
    /// Whether a body may be looked into by one of them and not by the other, or not as far, or for other members that may
    /// stand there once: where it is malformed, one of them refuses what both decide alike.
    pub checks_otherwise: bool,
    /// Whether a field with an odd name may be taken away by one of them and not by the other, since it reads like one that
    /// only one of them names.
    pub hides_otherwise: bool,
}

impl Differences {
    /// Whether it is proved that the same becomes of every request.
    #[must_use]
    pub fn are_none(&self) -> bool {
        self.decide_alike() && !self.checks_otherwise
    }

    /// Whether it is proved that every request is decided alike, if its body is well-formed.
    #[must_use]
    pub fn decide_alike(&self) -> bool {
        let is_settled = self.undecided_count == 0 && !self.reads_otherwise && !self.hides_otherwise;
        is_settled && self.groups_count == 0 && self.validate.is_none()
    }

    /// Whether something is decided otherwise.
    #[must_use]
    pub fn are_some(&self) -> bool {
        self.groups_count > 0 || self.validate.is_some()
    }
}

/// Where two rule sets decide differently at a listener of this setting.
///
/// A decision is the action with all that is collected on the way. That a condition ends unknown and is refused for that is
/// one action, whatever the cause.
#[must_use]
pub fn differences(old: RuleSide<'_>, new: RuleSide<'_>, setting: &Setting, effort: Effort) -> Differences {
    let joint = Arc::new(Program::joined(&[old.program, new.program]));
    let copied = copies::copied([old.program, new.program], setting);
    let analyst = Analyst::of_two(&joint, [old.program, new.program], setting, effort);
    let middle = analyst.across.as_ref().map(|across| across.middle());
    let programs = [old.program, new.program].map(|program| &**program);
    let checks_otherwise =
        !middle.is_some_and(|middle| checking::look_alike(&joint, programs, &analyst.walk, middle));
    let copied = copied.as_ref().and_then(|beside| beside.rules.get(joint.rules.len()));
    let copied = copied.map(|rule| &rule.condition);
    let mut found = match Comparison::new(&joint, [old, new], (copied, checks_otherwise), analyst) {
        Some(comparison) => comparison.compare(),
        None => Differences::default(),
    };
    found.checks_otherwise |= checks_otherwise;
    let [before, now] = [old, new].map(|side| side.program.validate);
    let looks_into_bodies = [old, new].iter().any(|side| !side.program.payloads.is_empty());
    found.validate = (before != now && looks_into_bodies).then_some((before, now));
    found.reads_otherwise = reads_otherwise(old.program, new.program);
    let [before, now] = [old, new].map(|side| odd_names::likened(side.program, setting));
    found.hides_otherwise = before != now;
    found
}

/// Whether of one kind of body a rule refuses by a value in one program, and none does in the other: then a body that may
/// be of that kind is no body without such values any more.
fn reads_otherwise(old: &Program, new: &Program) -> bool {
    let kinds = |program: &Program| {
        let refused_by = program.rejecting_payloads();
        let mut kinds: HashMap<Discriminant<Place>, bool> = HashMap::new();
        for payload in program.payloads.iter().filter(|payload| payload.place != Place::Size) {
            *kinds.entry(discriminant(&payload.place)).or_default() |= refused_by.contains(&payload.id);
        }
        kinds
    };
    let (old, new) = (kinds(old), kinds(new));
    old.iter().any(|(kind, refuses)| new.get(kind).is_some_and(|other| other != refuses))
}

/// Two programs, on their way to what differs.
struct Comparison<'p> {
    joint: &'p Program,
    analyst: Analyst<'p>,
    alignment: Alignment,
    ends: Ends<'p>,
    /// What is true of every request that may be copied; nothing where all may, or none is.
    copied: Option<&'p Condition>,
    /// The first rule of the new program, and the one behind its last.
    middle: u32,
    end: u32,
    /// Rules that do something and then let the request go on, in their order.
    carriers: Vec<u32>,
    /// Whether a body may be looked into by one of them and not by the other.
    checks_otherwise: bool,
    found: Differences,
}

impl<'p> Comparison<'p> {
    fn new(
        joint: &'p Arc<Program>,
        sides: [RuleSide<'p>; 2],
        (copied, checks_otherwise): (Option<&'p Condition>, bool),
        analyst: Analyst<'p>,
    ) -> Option<Comparison<'p>> {
        let middle = analyst.across.as_ref()?.middle();
        let end = u32::try_from(joint.rules.len()).unwrap_or(u32::MAX);
        let alignment = Alignment::new(joint, &analyst.walk, middle);
        let carriers = effects::carriers(joint, &analyst.walk);
        let ends = Ends::new(joint, sides, middle);
        let found = Differences::default();
        Some(Comparison {
            joint,
            analyst,
            alignment,
            ends,
            copied,
            middle,
            end,
            carriers,
            checks_otherwise,
            found,
        })
    }

    fn compare(mut self) -> Differences {
        let Candidates { pairs, given_up } = self.candidates();
        for pair in pace::each(pairs) {
            match self.settle(pair) {
                Verdict::Same => {}
                Verdict::Differs(witness) => self.add(pair, *witness),
                Verdict::Unknown(doubt) => self.own_up(Some(pair.old), Some(pair.new), doubt),
            }
        }
        for end in given_up {
            let is_old = end.rule < self.middle;
            self.own_up(is_old.then_some(end), (!is_old).then_some(end), Doubt::Many);
        }
        self.found.groups.sort_by_key(|group| (group.old, group.new));
        self.found
    }

    fn add(&mut self, pair: Pair, witness: Witness) {
        self.found.groups_count += 1;
        if self.found.groups.len() < KEPT_MAX {
            let (old, new) = (self.decider(pair.old), self.decider(pair.new));
            self.found.groups.push(Difference { old, new, witness });
        }
    }

    fn own_up(&mut self, old: Option<End>, new: Option<End>, doubt: Doubt) {
        self.found.undecided_count += 1;
        if self.found.undecided.len() < KEPT_MAX {
            let [old, new] = [old, new].map(|end| end.map(|end| self.decider(end)));
            self.found.undecided.push(Undecided { old, new, doubt });
        }
    }

    /// An end as the rules of its own program are counted.
    fn decider(&self, end: End) -> Decider {
        let first = if end.rule < self.middle { 0 } else { self.middle };
        let holds = match end.on {
            States::FALSE => Holds::False,
            States::UNKNOWN => Holds::Unknown,
            _ => Holds::True,
        };
        Decider { rule: RuleIndex(end.rule - first), holds }
    }
}

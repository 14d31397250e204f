//! The smallest changes of a request with which it would have come to another rule.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use pointsman_rules::{
    Cause, Condition, DecidedBy, Field, OwnedValue, Program, RuleIndex, Subject, Test, Truth, Truths,
};

use super::doubt::{Doubt, InDoubt};
use super::question::{Analyst, Original};
use super::states::States;
use crate::Effort;
use crate::wanted::Values;
use crate::witness::{Setting, Witness};

/// Rules that are tried for each one that is wanted.
const TRIED_PER_MISS: usize = 4;
/// Fields that rules name, and that are to stay as they are.
const FIELDS_MAX: usize = 256;
/// Values of one field that are to stay as they are.
const VALUES_MAX: usize = 1000;

/// How a request misses rules.
#[derive(Clone, Debug, Default)]
pub struct Misses {
    /// Those that were found, the closest first.
    pub found: Vec<Miss>,
    /// The rules that were not looked through, and why; without any it was not looked for which come closest.
    pub unknown: Option<InDoubt>,
}

/// A rule, and how a request would have come to it and made its condition true.
#[derive(Clone, Debug)]
pub struct Miss {
    /// The rule.
    pub rule: RuleIndex,
    /// The fields that would have to have other values, of those that rules name. None where it comes there as it is.
    pub changes: Vec<Change>,
    /// The changed request, which the rules were asked about. What no rule names may be otherwise in it.
    pub witness: Witness,
}

/// A field with other values. Without any it is absent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The field.
    pub field: Field,
    /// Its values in the request.
    pub old: Vec<OwnedValue>,
    /// Why there may be more of them.
    pub old_unsettled: Option<Cause>,
    /// Those that it would have to have.
    pub new: Vec<OwnedValue>,
    /// Why there may be more of these.
    pub new_unsettled: Option<Cause>,
}

/// Of which rules it is asked how a request misses them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missed {
    /// Of those that come closest, at most so many.
    Closest(usize),
    /// Of this one.
    Rule(RuleIndex),
}

/// How a request misses rules where a listener has this setting. Of what was looked through what is not found is left out.
///
/// The body of `subject` is read to its end.
#[must_use]
pub fn misses(
    program: &Arc<Program>,
    setting: &Setting,
    subject: &dyn Subject,
    missed: Missed,
    effort: Effort,
) -> Misses {
    let mut analyst = Analyst::new(program, setting, effort);
    let fields = fields(program);
    let kept: Vec<_> = fields.iter().map(|field| (*field, values(subject, field))).collect();
    let are_many = kept.len() >= FIELDS_MAX || kept.iter().any(|(_, values)| values.known.len() > VALUES_MAX);
    let (candidates, wanted) = match missed {
        Missed::Rule(rule) if program.rule(rule).is_none() => return Misses::default(),
        Missed::Rule(rule) if are_many => return unknown(vec![rule], Doubt::Many),
        Missed::Rule(RuleIndex(rule)) => (vec![rule], 1),
        Missed::Closest(_) if are_many => return unknown(Vec::new(), Doubt::Many),
        Missed::Closest(wanted) => match closest(program, subject, wanted, &mut analyst) {
            Ok(rules) => (rules, wanted),
            Err(doubt) => return unknown(Vec::new(), doubt),
        },
    };
    let (mut found, mut left) = (Vec::new(), None);
    for rule in candidates {
        if found.len() >= wanted {
            break;
        }
        let witness = match analyst.nearest(rule, Original { subject, fields: &kept }) {
            Ok(Some(witness)) => witness,
            Ok(None) => continue,
            Err(doubt) => {
                let left = left.get_or_insert(InDoubt { rules: Vec::new(), doubt });
                left.rules.push(RuleIndex(rule));
                continue;
            }
        };
        let Some(new) = analyst.shown(&witness, &fields) else { continue };
        let pairs = kept.iter().zip(new).filter(|((_, old), new)| old != new);
        let changes = pairs.map(|((field, old), new)| Change {
            field: (*field).clone(),
            old: old.known.clone(),
            old_unsettled: old.rest,
            new: new.known,
            new_unsettled: new.rest,
        });
        found.push(Miss { rule: RuleIndex(rule), changes: changes.collect(), witness });
    }
    found.sort_by_key(|miss| miss.changes.len());
    Misses { found, unknown: left }
}

/// None was found, and it was not looked for any of these.
fn unknown(rules: Vec<RuleIndex>, doubt: Doubt) -> Misses {
    Misses { found: Vec::new(), unknown: Some(InDoubt { rules, doubt }) }
}

/// The rules, but for the one that decided and those that every request fits, of which the fewest tests would have to come
/// to something else; those next to the one that decided first. Or why it is not known which they are.
fn closest(
    program: &Program,
    subject: &dyn Subject,
    wanted: usize,
    analyst: &mut Analyst<'_>,
) -> Result<Vec<u32>, Doubt> {
    let end = u32::try_from(program.rules.len()).unwrap_or(u32::MAX);
    let winner = match program.decide(subject, &mut Truths::default()).by {
        DecidedBy::Rule { index, .. } => index.0,
        DecidedBy::Nothing => end,
    };
    let against_winner = program.rules.get(winner as usize).map_or(0, |rule| {
        let mut distance = Distance { subject, analyst };
        distance.of(&rule.condition, States::FALSE)
    });
    let mut ranked = Vec::new();
    for (index, rule) in (0..).zip(&program.rules) {
        if index == winner || matches!(rule.condition, Condition::Always) {
            continue;
        }
        let behind = if index > winner { against_winner } else { 0 };
        let distance = Distance { subject, analyst }.of(&rule.condition, States::TRUE);
        ranked.push((distance.saturating_add(behind), index.abs_diff(winner), index));
        if analyst.is_used_up() {
            return Err(analyst.used_up());
        }
    }
    ranked.sort_unstable();
    ranked.truncate(wanted.saturating_mul(TRIED_PER_MISS));
    Ok(ranked.into_iter().map(|(_, _, index)| index).collect())
}

/// How many tests stand between a request and what a condition is to come to.
struct Distance<'a, 'p> {
    subject: &'a dyn Subject,
    analyst: &'a mut Analyst<'p>,
}

impl Distance<'_, '_> {
    /// Of a condition, whose depth the parser bounds.
    fn of(&mut self, condition: &Condition, wanted: States) -> u32 {
        match condition {
            Condition::Always if wanted == States::TRUE => 0,
            Condition::Always => u32::MAX,
            Condition::Not(inner) => self.of(inner, wanted.negated()),
            Condition::Test(test) => self.of_test(test, wanted),
            Condition::And(parts) | Condition::Or(parts) => {
                let needs_all = matches!(condition, Condition::And(_)) == (wanted == States::TRUE);
                let distances = parts.iter().map(|part| self.of(part, wanted));
                match needs_all {
                    true => distances.fold(0, u32::saturating_add),
                    false => distances.min().unwrap_or(u32::MAX),
                }
            }
        }
    }

    fn of_test(&mut self, test: &Test, wanted: States) -> u32 {
        self.analyst.take(1);
        let truth: Truth = test.eval(self.subject);
        u32::from(!wanted.covers(States::of(truth)))
    }
}

/// The fields that conditions name, up to so many.
fn fields(program: &Program) -> Vec<&Field> {
    let (mut fields, mut known) = (Vec::new(), HashSet::new());
    for rule in &program.rules {
        rule.condition.each_test(&mut |test| {
            if fields.len() < FIELDS_MAX && known.insert(&test.field) {
                fields.push(&test.field);
            }
        });
    }
    fields
}

/// All values of a field, and why there may be more.
pub(super) fn values<S: Subject + ?Sized>(subject: &S, field: &Field) -> Values {
    let mut known = Vec::new();
    subject.each(field, &mut |value| {
        known.push(value.into());
        if known.len() > VALUES_MAX { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    Values { known, rest: subject.unsettled(field) }
}

#[cfg(test)]
mod tests;

//! Requests as the fields and values that they were made for.

use pointsman_rules::{Condition, DecidedBy, Field, Outcome, OwnedValue, RuleIndex, Truth};
use pointsman_view::RequestView;

use super::{Analyst, Answer, Question, Trial};
use crate::logic::misses::values;
use crate::logic::samples::Why;
use crate::logic::states::States;
use crate::logic::walk::Passage;
use crate::wanted::{Sketch, Values};
use crate::witness::{Witness, realise, with_all_values, with_subject};

/// What the rules saw of a request.
#[derive(Debug, Default)]
pub(crate) struct Seen<'p> {
    /// What the condition of the rule that it came to is; nothing behind the last rule.
    pub(crate) arrival: Option<Truth>,
    /// What came of that which it shows.
    pub(crate) shown: Option<Truth>,
    /// The rule that decides it, as [`Sample`](crate::Sample) has it.
    pub(crate) decided: Option<RuleIndex>,
    /// Some fields with all their values.
    pub(crate) values: Vec<(&'p Field, Values)>,
}

/// A request takes so many steps, as one that answers a question does.
const REQUEST_STEPS: u64 = super::REQUEST_STEPS;

impl<'p> Analyst<'p> {
    /// The answer to a question where other conditions are to come to something, too; where it is a yes, with the values
    /// that the request was made for.
    pub(crate) fn sample(
        &mut self,
        question: Question,
        also: &[(&'p Condition, States)],
    ) -> (Answer, Sketch<'p>) {
        let mut effort = self.effort.part(super::QUESTION_STEPS);
        effort.take(also.len() as u64);
        let sampled = Trial::of(self, question, also, &[]).run(&mut effort);
        self.effort.give_back(effort);
        sampled
    }

    /// The sketch with other values of one field, where a request with them still comes to the rule.
    pub(crate) fn with_values(
        &mut self,
        sketch: &Sketch<'p>,
        field: &'p Field,
        known: Vec<OwnedValue>,
        rule: u32,
    ) -> Option<(Sketch<'p>, Witness)> {
        if !self.effort.take(REQUEST_STEPS) {
            return None;
        }
        let asked = self.same(field);
        let values = Values { known, rest: None };
        if self.setting.fixed(field).is_some_and(|fixed| fixed != values) {
            return None;
        }
        let mut changed = sketch.clone();
        for (other, old) in &mut changed.fields {
            if self.same(other) == asked {
                old.clone_from(&values);
            }
        }
        if !changed.fields.iter().any(|(other, _)| *other == field) {
            changed.fields.push((field, values));
        }
        let witness = realise(&changed, self.setting).ok()?;
        let (program, walk, truths) = (self.program, &self.walk, &mut self.truths);
        let arrives = with_subject(program, &self.paths, &witness, self.setting, |subject| {
            walk.follow(program, subject, rule, None, truths)
        });
        matches!(arrives, Some(Some(Passage::Arrived(_)))).then_some((changed, witness))
    }

    /// What the rules see of some fields of a request that came to a rule, and of what it shows there.
    pub(crate) fn seen(
        &mut self,
        witness: &Witness,
        rule: RuleIndex,
        why: &Why,
        fields: &[&'p Field],
    ) -> Seen<'p> {
        self.effort.take(REQUEST_STEPS + fields.len() as u64);
        let (program, end) = (self.program, RuleIndex(self.walk.len()));
        let truths = &mut self.truths;
        let mut decided = |subject: &RequestView<'_>| {
            let decision = program.decide(subject, truths);
            match (decision.by, decision.outcome) {
                (_, Outcome::Waits) => None,
                (DecidedBy::Rule { index, .. }, _) => Some(index),
                (DecidedBy::Nothing, _) => Some(end),
            }
        };
        let seen = with_all_values(program, &self.paths, witness, self.setting, |subject| Seen {
            arrival: program.rule(rule).map(|rule| rule.truth(subject)),
            shown: why.shown(program, rule, subject),
            decided: decided(subject),
            values: fields.iter().map(|field| (*field, values(subject, field))).collect(),
        });
        seen.unwrap_or_default()
    }

    /// All values of fields of a request.
    pub(crate) fn shown(&mut self, witness: &Witness, fields: &[&'p Field]) -> Option<Vec<Values>> {
        self.effort.take(REQUEST_STEPS + fields.len() as u64);
        with_all_values(self.program, &self.paths, witness, self.setting, |subject| {
            fields.iter().map(|field| values(subject, field)).collect()
        })
    }
}

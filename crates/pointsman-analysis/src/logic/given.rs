//! What every request has to be that is asked for, beside what the rules say.

use std::sync::Arc;

use pointsman_rules::{Assertions, Condition, Program, RuleIndex, Truth};
use pointsman_view::{BodyPaths, RequestView};

use crate::witness::{Setting, Witness, with_subject};

/// A condition that no rule has.
#[derive(Debug)]
pub(super) struct Given<'p> {
    pub(super) condition: &'p Condition,
    /// Which of the rules below has it.
    rule: RuleIndex,
    conditions: Conditions,
}

/// Some conditions as rules of their own: the rules that are asked about read no more of a body than they name.
#[derive(Clone, Debug)]
pub(super) struct Conditions {
    program: Arc<Program>,
    paths: Arc<BodyPaths>,
}

impl Conditions {
    pub(super) fn of(assertions: &Assertions) -> Conditions {
        let program = Arc::new(assertions.program());
        let paths = Arc::new(BodyPaths::new(&program));
        Conditions { program, paths }
    }

    /// One of them, by its place among the assertions.
    pub(super) fn given<'p>(&self, place: u32, condition: &'p Condition) -> Given<'p> {
        Given { condition, rule: RuleIndex(place), conditions: self.clone() }
    }
}

impl Given<'_> {
    /// Whether the condition is true of a witness.
    pub(super) fn holds(&self, witness: &Witness, setting: &Setting) -> bool {
        let Conditions { program, paths } = &self.conditions;
        let truth = |subject: &RequestView<'_>| program.rule(self.rule).map(|rule| rule.truth(subject));
        with_subject(program, paths, witness, setting, truth).flatten() == Some(Truth::True)
    }
}

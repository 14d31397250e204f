//! A decision that waits, and how it goes on where it stopped.

use std::ops::ControlFlow;

use crate::engine::Engine;
use crate::{
    Cause, DecidedBy, Decision, Evidence, Field, Outcome, Program, RuleIndex, Subject, Truths, Value,
};

/// Where a decision stopped that waits for more of a body. However much more is read, what the rules before it came to
/// stays so: it can go on from there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Halt {
    at: RuleIndex,
    /// How much of what the rule asks of the body is not read yet; it never grows.
    unread: usize,
}

impl Halt {
    /// Where this decision stopped, if it waits.
    #[must_use]
    pub fn of(decision: &Decision<'_>) -> Option<Halt> {
        match (decision.outcome, decision.by) {
            (Outcome::Waits, DecidedBy::Rule { index, .. }) => Some(Halt { at: index, unread: usize::MAX }),
            _ => None,
        }
    }

    /// The rule that it waits at.
    #[must_use]
    pub fn at(&self) -> RuleIndex {
        self.at
    }

    /// Whether something has become known that the rule asks of the body since this was asked last. Nothing else ends
    /// the wait. It needs no more than the body, and time for the tests of one rule.
    pub fn may_end(&mut self, program: &Program, evidence: &Evidence) -> bool {
        let unread = program.unread_at(self.at, evidence);
        let was_unread = std::mem::replace(&mut self.unread, unread);
        unread < was_unread
    }
}

impl Program {
    /// Goes on where a decision about the same subject stopped, of whose body more is known now. True: it waits again,
    /// there or further on. Otherwise it is decided, and [`Program::decide`] says what.
    pub fn waits_on<S: Subject + ?Sized>(&self, halt: &mut Halt, subject: &S, truths: &mut Truths) -> bool {
        self.waits_on_by(&self.engine, halt, subject, truths)
    }

    pub(crate) fn waits_on_by<S: Subject + ?Sized>(
        &self,
        engine: &Engine,
        halt: &mut Halt,
        subject: &S,
        truths: &mut Truths,
    ) -> bool {
        let Some(mut next) = Halt::of(&self.decide_from(engine, halt.at, subject, truths)) else {
            return false;
        };
        if let Some(evidence) = subject.evidence() {
            next.unread = self.unread_at(next.at, evidence);
        }
        *halt = next;
        true
    }

    /// How much of what a rule asks of a body is not read yet.
    fn unread_at(&self, at: RuleIndex, evidence: &Evidence) -> usize {
        let Some(rule) = self.rule(at) else { return 0 };
        let mut unread = 0;
        rule.condition.each_test(&mut |test| {
            if let Field::Payload(payload) = &test.field {
                unread += usize::from(evidence.truth(test, payload.id).is_unread());
            }
        });
        let awaited = rule.then.awaits.iter().chain(&rule.otherwise.awaits);
        unread + awaited.filter(|field| is_first_unread(field, evidence)).count()
    }
}

fn is_first_unread(field: &Field, evidence: &Evidence) -> bool {
    let mut first = None;
    let _shown = evidence.each(field, &mut |value| {
        first = Some(value == Value::Unknown(Cause::Unread));
        ControlFlow::Break(())
    });
    first.unwrap_or_else(|| evidence.unsettled(field) == Some(Cause::Unread))
}

//! The rules that left nothing for one question, tried for the next: where many rules are never reached, many are so for
//! the same reason.

use pointsman_rules::Condition;

use super::{Analyst, Answer, Pattern, Question, Trial, Way};
use crate::Effort;
use crate::logic::states::States;

/// The rules of the last proof, for each kind of question.
#[derive(Debug, Default)]
pub(super) struct Barring {
    last: Vec<(Kind, Vec<u32>)>,
}

/// Questions that are asked of one rule after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kind {
    states: States,
    removes: bool,
}

impl Kind {
    fn of(question: Question) -> Kind {
        Kind { states: question.states, removes: question.removed.is_some() }
    }
}

impl Barring {
    /// Keeps the rules of a proof, if there are any.
    pub(super) fn note(&mut self, question: Question, rules: &[u32]) {
        if question.way == Way::Walk && !rules.is_empty() {
            self.take(question);
            self.last.push((Kind::of(question), rules.to_vec()));
        }
    }

    fn take(&mut self, question: Question) -> Option<Vec<u32>> {
        let place = self.last.iter().position(|(kind, _)| *kind == Kind::of(question))?;
        Some(self.last.swap_remove(place).1)
    }
}

impl<'p> Analyst<'p> {
    /// The answer where the rules of the last proof leave nothing for this question, either. Where they do, they are not
    /// tried again before there is another proof.
    pub(super) fn barred_as_before(
        &mut self,
        question: Question,
        also: &[(&'p Condition, States)],
        patterns: &[Pattern],
        effort: &mut Effort,
    ) -> Option<Answer> {
        if question.way != Way::Walk {
            return None;
        }
        let mut rules = self.barring.take(question)?;
        let removed = question.removed.map(|(removed, _)| removed);
        rules.retain(|rule| *rule < question.rule && removed != Some(*rule));
        if rules.is_empty() {
            return None;
        }
        let mut trial = Trial::of(self, question, also, patterns);
        rules.into_iter().for_each(|rule| trial.activate(rule, effort));
        let all: Vec<_> = trial.active.values().copied().collect();
        let proof = trial.falls(&all, effort)?;
        Some(trial.prove(proof, effort))
    }
}

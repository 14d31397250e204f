//! Questions about requests with nothing wrong in their bodies.

use std::collections::HashMap;

use pointsman_rules::Condition;

use super::{Analyst, Answer, Pattern, Question};
use crate::logic::lemmas::{Lemma, Lemmas};
use crate::logic::states::States;
use crate::wanted::Values;

/// Whether only these are asked about, and what was learnt of all others while they are; of these while they are not.
#[derive(Default)]
pub(super) struct WholeBodies {
    pub(super) are_asked: bool,
    lemmas: Lemmas,
    solved: HashMap<Lemma, Values>,
}

impl<'p> Analyst<'p> {
    /// [`Analyst::ask_beside`] of requests whose bodies are what they say.
    pub(in crate::logic) fn ask_of_whole_bodies(
        &mut self,
        question: Question,
        also: &[(&'p Condition, States)],
        patterns: &[Pattern],
    ) -> Answer {
        self.turn();
        let answer = self.ask_beside(question, also, patterns);
        self.turn();
        answer
    }

    fn turn(&mut self) {
        self.whole_bodies.are_asked ^= true;
        std::mem::swap(&mut self.lemmas, &mut self.whole_bodies.lemmas);
        std::mem::swap(&mut self.solved, &mut self.whole_bodies.solved);
    }
}

//! Values of one field, at a listener that does not take all there are.

use std::sync::Arc;

use pointsman_rules::{Field, Program};

use super::of_field::OfField;
use super::related::made_up;
use super::{Analyst, SOLVED_MAX};
use crate::Effort;
use crate::space::{Automata, Solved, of_choices, solve, solve_present};
use crate::wanted::{Asked, Wanted};
use crate::witness::{Narrowed, Setting};

/// As a rule, what is true of every request that a listener lets in; nothing where anybody may send one.
pub(super) fn admits(setting: &Setting) -> Option<Arc<Program>> {
    made_up(&[setting.admits()?.as_str()]).map(Arc::new)
}

/// How values of a field are found.
type Solve = fn(&Field, &[Asked<'_>], &mut Automata, &mut Effort) -> Solved;

impl<'p> Analyst<'p> {
    /// Values for what matters of a field.
    pub(super) fn solve(&mut self, field: &OfField<'p>, effort: &mut Effort) -> Solved {
        effort.take(1);
        if let Some(values) = self.solved.get(&field.states) {
            return Solved::Values(values.clone());
        }
        let solved = match self.setting.narrowed(field.asked) {
            Narrowed::Among(choices) => of_choices(choices, &field.tests),
            Narrowed::Present if *field.asked == Field::SrcIp => {
                self.solve_sender(field, solve_present, effort)
            }
            Narrowed::Present => solve_present(field.asked, &field.tests, &mut self.automata, effort),
            Narrowed::Free if *field.asked == Field::SrcIp => self.solve_sender(field, solve, effort),
            Narrowed::Free => solve(field.asked, &field.tests, &mut self.automata, effort),
        };
        if let (Solved::Values(values), true) = (&solved, self.solved.len() < SOLVED_MAX) {
            self.solved.insert(field.states.clone(), values.clone());
        }
        solved
    }

    /// The same of who sends a request: nobody but those that the listener admits.
    fn solve_sender(&mut self, field: &OfField<'p>, solve: Solve, effort: &mut Effort) -> Solved {
        let admits = self.admits.clone();
        let mut tests = field.tests.clone();
        admits.iter().flat_map(|admits| &admits.rules).for_each(|rule| {
            rule.condition.each_test(&mut |test| tests.push(Asked { test, wanted: Wanted::True }));
        });
        match solve(field.asked, &tests, &mut self.automata, effort) {
            Solved::Nothing { because } => {
                let known = field.tests.len();
                Solved::Nothing { because: because.into_iter().filter(|place| *place < known).collect() }
            }
            solved => solved,
        }
    }
}

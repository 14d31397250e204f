//! Values of one field, at a listener that does not take all there are.

use pointsman_rules::{Field, Program};

use super::Analyst;
use super::SOLVED_MAX;
use super::of_field::OfField;
use super::related::made_up;
use crate::Effort;
use crate::space::{Automata, Solved, of_choices, solve, solve_in_whole_body, solve_present};
use crate::wanted::{Asked, Wanted};
use crate::witness::{Narrowed, Setting};

/// What is known of requests: rules of one test each, and what they come to.
#[derive(Default)]
pub(super) struct Facts(Vec<(Program, Wanted)>);

impl Facts {
    /// Of conditions of one test each; nothing where one of them is none.
    pub(super) fn read(conditions: &[(String, Wanted)]) -> Option<Facts> {
        let known = |(condition, wanted): &(String, Wanted)| Some((made_up(&[condition.as_str()])?, *wanted));
        conditions.iter().map(known).collect::<Option<Vec<_>>>().map(Facts)
    }

    /// What is true of every request that a listener lets in, whoever sends it.
    pub(super) fn always(setting: &Setting) -> Facts {
        let each = setting.always().into_iter().filter_map(|known| Facts::read(&[known]));
        Facts(each.flat_map(|facts| facts.0).collect())
    }

    /// What is known of a field.
    pub(super) fn of_field(&self, field: &Field) -> Vec<Asked<'_>> {
        let mut all = Vec::new();
        for (program, wanted) in &self.0 {
            for rule in &program.rules {
                rule.condition.each_test(&mut |test| {
                    if test.field == *field {
                        all.push(Asked { test, wanted: *wanted });
                    }
                });
            }
        }
        all
    }
}

impl<'p> Analyst<'p> {
    /// Values for what matters of a field.
    pub(super) fn solve(&mut self, field: &OfField<'p>, effort: &mut Effort) -> Solved {
        effort.take(1);
        if let Some(values) = self.solved.get(&field.states) {
            return Solved::Values(values.clone());
        }
        let solved = self.solve_tests(field.asked, &field.tests, effort);
        if let (Solved::Values(values), true) = (&solved, self.solved.len() < SOLVED_MAX) {
            self.solved.insert(field.states.clone(), values.clone());
        }
        solved
    }

    /// Values of a field that satisfy some tests; where there are none, it is said of these why.
    pub(super) fn solve_tests(&mut self, field: &Field, tests: &[Asked<'_>], effort: &mut Effort) -> Solved {
        let solve: fn(&Field, &[Asked<'_>], &mut Automata, &mut Effort) -> Solved =
            match self.setting.narrowed(field) {
                Narrowed::Among(choices) => return of_choices(choices, tests),
                Narrowed::Present => solve_present,
                Narrowed::Free if self.whole_bodies.are_asked => solve_in_whole_body,
                Narrowed::Free => solve,
            };
        let always = self.always.of_field(field);
        if always.is_empty() {
            return solve(field, tests, &mut self.automata, effort);
        }
        let all: Vec<_> = tests.iter().copied().chain(always).collect();
        match solve(field, &all, &mut self.automata, effort) {
            Solved::Nothing { because } => Solved::Nothing {
                because: because.into_iter().filter(|place| *place < tests.len()).collect(),
            },
            solved => solved,
        }
    }
}

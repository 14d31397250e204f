//! Questions about two programs: what becomes of a request in each of them.

use std::sync::Arc;

use pointsman_rules::{Program, Truths};
use pointsman_view::{BodyPaths, RequestView};

use super::came::{Came, Stop};
use super::{Pattern, Question};
use crate::logic::states::States;
use crate::logic::walk::{Passage, Walk, truth};
use crate::witness::{Setting, Witness, with_subject};

/// An old program and a new one, as they stand one behind the other in a joint one.
pub(in crate::logic) struct Across<'p> {
    pub(in crate::logic) old: Part<'p>,
    pub(in crate::logic) new: Part<'p>,
}

/// One of them.
pub(in crate::logic) struct Part<'p> {
    pub(in crate::logic) program: &'p Arc<Program>,
    paths: Arc<BodyPaths>,
    walk: Walk,
    /// Its first rule in the joint program.
    pub(in crate::logic) first: u32,
}

impl<'p> Across<'p> {
    pub(super) fn new([old, new]: [&'p Arc<Program>; 2]) -> Across<'p> {
        let old = Part::new(old, 0);
        let new = Part::new(new, old.end() + 1);
        Across { old, new }
    }

    /// The first rule of the new one.
    pub(in crate::logic) fn middle(&self) -> u32 {
        self.new.first
    }

    /// The program that a rule of the joint one is from.
    pub(in crate::logic) fn part(&self, rule: u32) -> &Part<'p> {
        if rule < self.middle() { &self.old } else { &self.new }
    }

    /// What becomes of a request that was made for a question; nothing where it is not what it was made to be, and where it
    /// fits one of the patterns.
    pub(super) fn came(
        &self,
        question: Question,
        patterns: &[Pattern],
        witness: &Witness,
        setting: &Setting,
        truths: &mut Truths,
    ) -> Option<Came> {
        let Question { rule, states, removed, .. } = question;
        match self.old.came(removed?, witness, setting, truths)? {
            Came::There => match self.new.came((rule, states), witness, setting, truths)? {
                Came::There if patterns.iter().any(|pattern| self.fits(pattern, witness, setting)) => None,
                came => Some(came),
            },
            stopped @ Came::Stopped(_) => Some(stopped),
        }
    }

    /// Whether the rules of a pattern come out as it says.
    fn fits(&self, pattern: &Pattern, witness: &Witness, setting: &Setting) -> bool {
        [&self.old, &self.new].into_iter().all(|part| {
            let own = pattern.iter().filter(|(rule, _)| (part.first..=part.end()).contains(rule));
            let fits = part.see(witness, setting, |subject| {
                own.into_iter()
                    .all(|(rule, states)| truth(part.program, rule - part.first, subject) == *states)
            });
            fits.unwrap_or_default()
        })
    }
}

impl<'p> Part<'p> {
    fn new(program: &'p Arc<Program>, first: u32) -> Part<'p> {
        Part { program, paths: Arc::new(BodyPaths::new(program)), walk: Walk::new(program), first }
    }

    /// What stands in the joint program for what none of its rules decides.
    pub(in crate::logic) fn end(&self) -> u32 {
        self.first.saturating_add(self.walk.len())
    }

    /// Shows a request as its rules see it.
    pub(in crate::logic) fn see<T>(
        &self,
        witness: &Witness,
        setting: &Setting,
        see: impl FnOnce(&RequestView<'_>) -> T,
    ) -> Option<T> {
        with_subject(self.program, &self.paths, witness, setting, see)
    }

    fn came(
        &self,
        (rule, states): (u32, States),
        witness: &Witness,
        setting: &Setting,
        truths: &mut Truths,
    ) -> Option<Came> {
        let target = rule.checked_sub(self.first)?;
        let passage = self
            .see(witness, setting, |subject| self.walk.follow(self.program, subject, target, None, truths));
        match passage.flatten()? {
            Passage::Arrived(state) => states.covers(state).then_some(Came::There),
            Passage::Stopped { by, jumped } => {
                let jumped = jumped.into_iter().map(|rule| rule + self.first).collect();
                Some(Came::Stopped(Stop { by: by + self.first, jumped, ..Stop::default() }))
            }
        }
    }
}

//! The request beside another one that comes to a rule: as few fields as can be have other values.

use pointsman_rules::{Condition, Field, Place, Subject, Test};

use super::came::Stop;
use super::{Question, Said, Trial, Way};
use crate::Effort;
use crate::logic::doubt::Doubt;
use crate::logic::states::States;
use crate::logic::walk::Passage;
use crate::wanted::{Sketch, Values};
use crate::witness::{Witness, realise, with_subject};

/// Rules that are found to stand in the way, one after another.
const ROUNDS_MAX: usize = 32;
/// Fields of which each two are tried.
const PAIRED_MAX: usize = 16;
/// Times that fields which follow from others are left to them.
const LEFT_OUT_MAX: usize = 6;

/// A request that is there.
#[derive(Clone, Copy)]
pub(crate) struct Original<'s, 'p> {
    pub(crate) subject: &'s dyn Subject,
    /// The fields that the rules name.
    pub(crate) fields: &'s [(&'p Field, Values)],
}

/// What became of values for some fields.
enum Tried {
    Found(Witness),
    /// A rule stands in the way that was not taken into account.
    Again,
    Nothing,
}

impl<'p> super::Analyst<'p> {
    /// A request that makes a rule's condition true, beside one that does not; or why it was not looked through where one may
    /// be.
    pub(crate) fn nearest(
        &mut self,
        rule: u32,
        original: Original<'_, 'p>,
    ) -> Result<Option<Witness>, Doubt> {
        let mut effort = self.effort.part(super::QUESTION_STEPS);
        let question = Question { rule, states: States::TRUE, removed: None, way: Way::Walk };
        let found = Trial::of(self, question, &[], &[]).nearest(original, &mut effort);
        let doubt = effort.is_used_up().then(|| Doubt::of_used_up(&effort));
        self.effort.give_back(effort);
        match (found, doubt) {
            (None, Some(doubt)) => Err(doubt),
            (found, _) => Ok(found),
        }
    }
}

impl<'p> Trial<'_, 'p> {
    fn nearest(mut self, original: Original<'_, 'p>, effort: &mut Effort) -> Option<Witness> {
        for _ in 0..ROUNDS_MAX {
            match self.round(original, effort) {
                Tried::Found(witness) => return Some(witness),
                Tried::Again => {}
                Tried::Nothing => return None,
            }
        }
        None
    }

    /// Lets no field change, then one, then two, then as few of all as suffice.
    fn round(&mut self, original: Original<'_, 'p>, effort: &mut Effort) -> Tried {
        let tests = self.tests();
        let mut fields: Vec<&'p Field> = Vec::new();
        for test in &tests {
            let field = self.analyst.same(&test.field);
            if !fields.contains(&field) {
                fields.push(field);
            }
        }
        let paired = fields.get(..PAIRED_MAX.min(fields.len())).unwrap_or_default();
        let singles = fields.iter().map(|field| vec![*field]);
        let pairs = paired
            .iter()
            .enumerate()
            .flat_map(|(at, first)| paired.iter().skip(at + 1).map(move |second| vec![*first, *second]));
        for free in std::iter::once(Vec::new()).chain(singles).chain(pairs) {
            if effort.is_used_up() {
                return Tried::Nothing;
            }
            let Some(sketch) = self.solved(&tests, &free, original, effort) else { continue };
            match self.tried(&sketch, original, effort) {
                Tried::Nothing => {}
                settled => return settled,
            }
        }
        self.fewest(&tests, fields, original, effort)
    }

    /// Lets all fields change, and then takes back one after another.
    fn fewest(
        &mut self,
        tests: &[&'p Test],
        fields: Vec<&'p Field>,
        original: Original<'_, 'p>,
        effort: &mut Effort,
    ) -> Tried {
        let Some(mut sketch) = self.solved(tests, &fields, original, effort) else { return Tried::Nothing };
        let mut free = fields.clone();
        for field in fields {
            let fewer: Vec<_> = free.iter().copied().filter(|other| *other != field).collect();
            if effort.is_used_up() {
                return Tried::Nothing;
            }
            if let Some(solved) = self.solved(tests, &fewer, original, effort) {
                (free, sketch) = (fewer, solved);
            }
        }
        self.tried(&sketch, original, effort)
    }

    /// The tests of the rule and of those that are taken into account.
    fn tests(&self) -> Vec<&'p Test> {
        let mut tests = Vec::new();
        for rule in self.active.keys().copied().chain([self.question.rule]) {
            let condition: Option<&'p Condition> = self.analyst.rule(rule).map(|rule| &rule.condition);
            if let Some(condition) = condition {
                condition.each_test(&mut |test| tests.push(test));
            }
        }
        tests
    }

    /// Values for the fields that may change, where all other tests come to what they do.
    fn solved(
        &mut self,
        tests: &[&'p Test],
        free: &[&'p Field],
        original: Original<'_, 'p>,
        effort: &mut Effort,
    ) -> Option<Sketch<'p>> {
        let mut kept: Vec<_> = self.active.values().copied().collect();
        for test in tests {
            if !free.contains(&self.analyst.same(&test.field)) {
                kept.extend(self.world.stays(test, States::of(test.eval(original.subject))));
            }
        }
        loop {
            if !effort.take(tests.len() as u64) || effort.is_used_up() {
                return None;
            }
            self.world.learn(&self.analyst.lemmas);
            let assumptions: Vec<_> = kept.iter().copied().chain(self.unproved()).collect();
            match self.world.solve(&assumptions, effort) {
                Said::Stands => {}
                Said::Falls(_) => return None,
                // It would give up on other fields, too.
                Said::GaveUp => {
                    effort.use_up();
                    return None;
                }
            }
            let matters = self.matters(&self.active);
            let mut fields = self.fields(&matters);
            fields.retain(|field| free.contains(&field.asked));
            if let Some(sketch) = self.sketch(fields, effort) {
                return Some(sketch);
            }
        }
    }

    /// Asks the rules about the request with these values, and all others as they are.
    fn tried(&mut self, sketch: &Sketch<'p>, original: Original<'_, 'p>, effort: &mut Effort) -> Tried {
        let changed: Vec<_> = sketch.fields.iter().map(|(field, _)| self.analyst.same(field)).collect();
        let mut whole = sketch.clone();
        let kept = original.fields.iter().filter(|(field, _)| !changed.contains(&self.analyst.same(field)));
        whole.fields.extend(kept.cloned());
        for _ in 0..LEFT_OUT_MAX {
            if !effort.take(super::REQUEST_STEPS + whole.fields.len() as u64) {
                return Tried::Nothing;
            }
            let why = match realise(&whole, self.analyst.setting, effort) {
                Ok(witness) => return self.asked(witness, effort),
                Err(why) => why,
            };
            let before = whole.fields.len();
            let is_left = |field: &Field| why.fields.contains(field) && follows(field, &changed);
            whole.fields.retain(|(field, _)| changed.contains(&self.analyst.same(field)) || !is_left(field));
            if whole.fields.len() == before {
                return Tried::Nothing;
            }
        }
        Tried::Nothing
    }

    fn asked(&mut self, witness: Witness, effort: &mut Effort) -> Tried {
        let question = self.question;
        // Nobody believes another proxy because of one request.
        if witness.needs_proxy() {
            return Tried::Nothing;
        }
        let analyst = &mut *self.analyst;
        let (program, walk, truths) = (analyst.program, &analyst.walk, &mut analyst.truths);
        let passage = with_subject(program, &analyst.paths, &witness, analyst.setting, |subject| {
            walk.follow(program, subject, question.rule, None, truths)
        });
        match passage.flatten() {
            Some(Passage::Arrived(state)) if question.states.covers(state) => Tried::Found(witness),
            Some(Passage::Stopped { by, jumped }) => {
                match self.learn_of(Stop { by, jumped, ..Stop::default() }, effort) {
                    true => Tried::Again,
                    false => Tried::Nothing,
                }
            }
            _ => Tried::Nothing,
        }
    }
}

/// Whether a field may follow from others: parts of the target, of the connection, and what the head says of the body. Cookies
/// and parameters do where what holds them has changed.
fn follows(field: &Field, changed: &[&Field]) -> bool {
    let any = |is_it: fn(&Field) -> bool| changed.iter().any(|field| is_it(field));
    match field {
        Field::Payload(payload) => payload.place == Place::Size,
        Field::Cookie(_) => any(|field| matches!(field, Field::Header(name) if &**name == "cookie")),
        Field::QueryParam(_) => any(|field| matches!(field, Field::Url | Field::Query)),
        _ => true,
    }
}

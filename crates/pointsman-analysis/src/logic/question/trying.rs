//! A request is made of values, and the rules are asked about it.

use pointsman_rules::Condition;
use pointsman_view::RequestView;

use super::came::Came;
use super::{
    AT_ONCE_MAX, FURTHER_STEPS, ONE_BY_ONE_MAX, PASSED_STEPS, REQUEST_STEPS, Trial, Try, Way, reading_steps,
};
use crate::Effort;
use crate::logic::states::States;
use crate::wanted::Sketch;
use crate::witness::{Setting, Unrealisable, Witness, realisable, realise, with_subject};

impl<'p> Trial<'_, 'p> {
    /// Makes a request of a sketch, and asks the rules about it. Where it can be none, a field that the others determine
    /// may be left to them.
    pub(super) fn try_out(&mut self, sketch: &Sketch<'p>, effort: &mut Effort) -> Try<'p> {
        let why = match self.realised(sketch, effort) {
            Err(why) => why,
            Ok(Some(tried)) => return tried,
            Ok(None) => return Try::Nowhere(Unrealisable { fields: Vec::new(), are_of_two_kinds: false }),
        };
        if why.are_of_two_kinds {
            return Try::Nowhere(why);
        }
        for left_out in &why.fields {
            if effort.is_used_up() {
                break;
            }
            let rest = sketch.fields.iter().filter(|(field, _)| *field != left_out).cloned().collect();
            if let Some(tried) = self.came_of(&Sketch { fields: rest }, effort) {
                return tried;
            }
        }
        Try::Nowhere(why)
    }

    /// What the rules say of the request that a sketch makes; nothing where that leads no further.
    pub(super) fn realised(
        &mut self,
        sketch: &Sketch<'p>,
        effort: &mut Effort,
    ) -> Result<Option<Try<'p>>, Unrealisable> {
        self.realised_by(realise, sketch, effort)
    }

    /// The same where it makes no difference why there is none.
    pub(super) fn came_of(&mut self, sketch: &Sketch<'p>, effort: &mut Effort) -> Option<Try<'p>> {
        self.realised_by(unexplained, sketch, effort).ok().flatten()
    }

    fn realised_by<W>(
        &mut self,
        make: impl FnOnce(&Sketch<'_>, &Setting, &mut Effort) -> Result<Witness, W>,
        sketch: &Sketch<'p>,
        effort: &mut Effort,
    ) -> Result<Option<Try<'p>>, W> {
        let question = self.question;
        let walk = &self.analyst.walk;
        let target = if question.removed.is_some() { walk.len() } else { question.rule };
        let one_by_one = if walk.jumps_before(target) { u64::from(target) } else { 0 };
        effort.take(REQUEST_STEPS + PASSED_STEPS * one_by_one);
        let analyst = &mut *self.analyst;
        let met = self.active.len();
        let further_max = if met < ONE_BY_ONE_MAX { 0 } else { met.max(analyst.met).min(AT_ONCE_MAX) };
        let witness = make(sketch, analyst.setting, effort)?;
        effort.take(reading_steps(&witness));
        let came = match (&analyst.across, question.way) {
            (Some(across), Way::Across) => {
                across.came(question, self.patterns, &witness, analyst.setting, &mut analyst.truths)
            }
            _ => analyst.came(question, further_max, &witness),
        };
        Ok(match came {
            Some(Came::There) => {
                let given = analyst.given.as_ref();
                let holds = given.is_none_or(|given| given.holds(&witness, analyst.setting));
                analyst.met = met;
                (holds && self.fits_beside(&witness)).then(|| Try::Done(witness, sketch.clone()))
            }
            Some(Came::Stopped(stop)) => {
                effort.take(FURTHER_STEPS * stop.further.len() as u64);
                self.learn_of(stop, effort).then_some(Try::Again)
            }
            None => None,
        })
    }

    /// Whether the conditions beside the question come to what they are to.
    fn fits_beside(&self, witness: &Witness) -> bool {
        let analyst = &*self.analyst;
        let fits = |(condition, states): &(&Condition, States), subject: &RequestView<'_>| {
            states.covers(States::of(condition.eval(subject)))
        };
        let fit = || {
            with_subject(analyst.program, &analyst.paths, witness, analyst.setting, |subject| {
                self.also.iter().all(|also| fits(also, subject))
            })
        };
        self.also.is_empty() || fit().unwrap_or_default()
    }
}

fn unexplained(sketch: &Sketch<'_>, setting: &Setting, _: &mut Effort) -> Result<Witness, ()> {
    realisable(sketch, setting).ok_or(())
}

//! What matters of a request, field by field.

use pointsman_rules::{Field, JsonStep, Over, Place, Test};

use crate::logic::lemmas::Lemma;
use crate::logic::states::States;
use crate::space::{Solved, of_fixed};
use crate::wanted::{Asked, Values, Wanted};

/// What matters of one field.
#[derive(Clone)]
pub(super) struct OfField<'p> {
    /// The field that is asked.
    pub(super) asked: &'p Field,
    /// The fields that have its values, as the rules name them; none where it is only asked what cannot be.
    pub(super) named: Vec<&'p Field>,
    pub(super) tests: Vec<Asked<'p>>,
    /// For each of `tests`.
    pub(super) states: Vec<(u32, States)>,
}

impl<'p> OfField<'p> {
    /// Whether it may have all values of another one.
    pub(super) fn may_have_others(&self) -> bool {
        let Field::Payload(payload) = self.asked else { return false };
        match &payload.place {
            Place::Xml(_) => true,
            Place::Json(steps) => steps.contains(&JsonStep::Each),
            Place::Form(_) | Place::Size => false,
        }
    }

    /// Of a field that has all values of another: the same with what some value of that is to satisfy.
    pub(super) fn with(&self, part: &OfField<'p>) -> Option<OfField<'p>> {
        let (Field::Payload(all), Field::Payload(some)) = (self.asked, part.asked) else { return None };
        if all == some || !all.place.covers(&some.place) {
            return None;
        }
        let mut both = OfField { named: Vec::new(), ..self.clone() };
        for (asked, states) in part.tests.iter().zip(&part.states) {
            if asked.test.over == Over::Any && asked.wanted == Wanted::True {
                both.tests.push(*asked);
                both.states.push(*states);
            }
        }
        (both.tests.len() > self.tests.len()).then_some(both)
    }

    /// Of those at these places, or of all where there are none.
    pub(super) fn lemma(&self, places: &[usize]) -> Lemma {
        let chosen: Lemma = places.iter().filter_map(|place| self.states.get(*place).copied()).collect();
        let mut lemma = if chosen.is_empty() { self.states.clone() } else { chosen };
        lemma.sort_unstable();
        lemma
    }
}

/// Whether the field has a value where a test comes to one of these. One that counts may come to true without.
pub(super) fn needs_value(test: &Test, states: States) -> bool {
    states == States::TRUE && (test.over != Over::Count || fails_without_value(test, states))
}

/// Whether a test does not come to one of these where its field is known to have no value.
pub(super) fn fails_without_value(test: &Test, states: States) -> bool {
    let absent = |wanted| of_fixed(Values::default(), &[Asked { test, wanted }]);
    states.wanted().is_some_and(|wanted| matches!(absent(wanted), Solved::Nothing { .. }))
}

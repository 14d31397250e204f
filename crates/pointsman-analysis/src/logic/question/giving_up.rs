//! What is not tried again, and why nothing is proved by that.

use batsat::Lit;
use pointsman_rules::{Field, OwnedValue, Place, Test};

use super::Trial;
use super::codings::is_coding;
use super::of_field::{fails_without_value, needs_value};
use crate::logic::doubt::{Doubt, doubted};
use crate::logic::lemmas::Lemma;
use crate::logic::states::States;
use crate::logic::world::Matters;
use crate::wanted::Sketch;
use crate::witness::{Unrealisable, WRITTEN_BODY_BYTES_MAX};

/// Doubts of one question that are told apart by their tests; of more only the kinds are.
const DOUBTS_MAX: usize = 32;

impl<'p> Trial<'_, 'p> {
    /// The assumption that what stands in the way for this reason does so: it was only not found.
    pub(super) fn in_doubt(&mut self, doubt: Doubt) -> Lit {
        let doubt = if self.doubts.len() < DOUBTS_MAX { doubt } else { doubt.kind() };
        if let Some((_, assumed)) = self.doubts.iter().find(|(known, _)| *known == doubt) {
            return *assumed;
        }
        let assumed = self.world.variable();
        self.doubts.push((doubt, assumed));
        assumed
    }

    /// The assumptions for all that was not proved but only not found.
    pub(super) fn unproved(&self) -> impl Iterator<Item = Lit> {
        self.doubts.iter().map(|(_, assumed)| *assumed)
    }

    /// The first doubt among some assumptions.
    pub(super) fn doubt_among(&self, assumptions: &[Lit]) -> Option<Doubt> {
        let among = self.doubts.iter().find(|(_, assumed)| assumptions.contains(assumed));
        among.map(|(doubt, _)| doubt.clone())
    }

    /// What matters of some fields is not tried again. Nothing is proved by that.
    pub(super) fn give_up_on(&mut self, sketch: &Sketch<'p>, matters: &Matters<'p>, why: &Unrealisable) {
        let about: Vec<_> = matters.each().filter(|(test, _)| why.fields.contains(&test.field)).collect();
        let mut lemma: Lemma = about.iter().map(|(test, states)| (test.number(), *states)).collect();
        let doubt = if lemma.is_empty() {
            lemma = matters.lemma();
            Doubt::Unconfirmed(doubted(matters.each().map(|(test, _)| test)))
        } else {
            let tests = doubted(about.iter().map(|(test, _)| *test));
            if is_long_and_coded(sketch, why) { Doubt::Coded(tests) } else { Doubt::Request(tests) }
        };
        let assumed = self.in_doubt(doubt);
        self.world.forbid(&lemma, Some(assumed));
    }
}

/// Whether it would have to be a body in codings that is longer than what is written of one.
fn is_long_and_coded(sketch: &Sketch<'_>, why: &Unrealisable) -> bool {
    let is_long = |value: &OwnedValue| {
        let length = match value {
            OwnedValue::Integer(length) => Some(*length),
            OwnedValue::Text(text) => str::from_utf8(text).ok().and_then(|text| text.parse().ok()),
            _ => None,
        };
        length.is_some_and(|length| length > WRITTEN_BODY_BYTES_MAX as u64)
    };
    let found = || sketch.fields.iter().filter(|(field, _)| why.fields.contains(field));
    let is_coded = found().any(|(field, values)| is_coding(field) && !values.known.is_empty());
    is_coded && found().any(|(field, values)| says_length(field) && values.known.iter().any(is_long))
}

fn says_length(field: &Field) -> bool {
    match field {
        Field::ContentLength => true,
        Field::Header(name) => &**name == "content-length",
        Field::Payload(payload) => payload.place == Place::Size,
        _ => false,
    }
}

/// One test needs a value in a body of one kind, and another one fails where its field is known to be absent, as it is
/// then. Nothing where that is not so.
pub(super) fn of_two_kinds(matters: &Matters<'_>, why: &Unrealisable) -> Option<Lemma> {
    if !why.are_of_two_kinds {
        return None;
    }
    let first = |field: &Field, is_it: fn(&Test, States) -> bool| {
        matters.each().find(|(test, states)| test.field == *field && is_it(test, *states))
    };
    let found =
        why.fields.iter().map(|field| first(field, needs_value).or(first(field, fails_without_value)));
    let found: Vec<_> = found.collect::<Option<_>>()?;
    if !found.iter().any(|(test, states)| needs_value(test, *states)) {
        return None;
    }
    let mut lemma: Lemma = found.iter().map(|(test, states)| (test.number(), *states)).collect();
    lemma.sort_unstable();
    Some(lemma)
}

//! Places in a body that have to do with each other.

use pointsman_rules::{JsonStep, Op, Over, OwnedValue, Place};

use super::of_field::needs_value;
use super::related::{Mattering, Related, asked};
use crate::logic::states::States;
use crate::space::{Solved, of_fixed};
use crate::wanted::{Sketch, Values};

/// Whether a place is in what stands at another one.
pub(super) fn stands_in(inner: &Place, outer: &Place) -> bool {
    match (inner, outer) {
        (Place::Xml(inner), Place::Xml(outer)) => {
            inner != outer && outer.attribute.is_none() && inner.steps.starts_with(&outer.steps)
        }
        (Place::Json(inner), Place::Json(outer)) => {
            let is_covered = |(inner, outer): (&JsonStep, &JsonStep)| {
                inner == outer || *outer == JsonStep::Each && !matches!(inner, JsonStep::Member(_))
            };
            inner.len() > outer.len() && inner.iter().zip(outer.iter()).all(is_covered)
        }
        _ => false,
    }
}

/// Whether one place is in an object and the other in a list, where there is one of both.
pub(super) fn are_apart(one: &Place, other: &Place) -> bool {
    let (Place::Json(one), Place::Json(other)) = (one, other) else { return false };
    let ways = one.iter().zip(other.iter()).find(|(one, other)| one != other);
    let is_member = |step: &JsonStep| matches!(step, JsonStep::Member(_));
    let leads = one.iter().zip(other.iter()).take_while(|(one, other)| one == other);
    let is_one = leads.map(|(step, _)| step).all(|step| *step != JsonStep::Each);
    is_one && ways.is_some_and(|(one, other)| is_member(one) != is_member(other))
}

/// What holds something is there, and known to be: it may only end unknown, where the body is at fault.
pub(super) fn needs_holder<'p>(inner: &[Mattering<'p>], outer: &[Mattering<'p>]) -> Option<Related<'p>> {
    let (test, states) = inner.iter().find(|(test, states)| needs_value(test, *states))?;
    let is_without = |(test, states): &&Mattering<'p>| {
        test.op == Op::Exists && test.over == Over::Any && *states == States::FALSE
    };
    let (without, _) = outer.iter().find(is_without)?;
    let lemma = vec![(test.number(), *states), (without.number(), States::FALSE)];
    Some(Related::Never(lemma))
}

/// In the place of values of a list as many that hold others, where nothing more is asked of them.
pub(super) fn holding_values<'p>(
    sketch: &Sketch<'p>,
    inner: &[Mattering<'p>],
    outer: &[Mattering<'p>],
) -> Option<Related<'p>> {
    let of = |tests: &[Mattering<'p>]| {
        let (test, _) = tests.first()?;
        sketch.fields.iter().find(|(field, _)| **field == test.field).cloned()
    };
    let ((inner, kept), (outer_field, old)) = (of(inner)?, of(outer)?);
    let known = vec![OwnedValue::Nothing; old.known.len()];
    let values = Values { known, rest: old.rest };
    let asked: Vec<_> = asked(outer).collect();
    matches!(of_fixed(values.clone(), &asked), Solved::Values(_))
        .then(|| Related::Perhaps(vec![(outer_field, values), (inner, kept)]))
}

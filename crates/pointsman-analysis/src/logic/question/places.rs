//! Places in a body that have to do with each other.

use pointsman_rules::{Field, JsonStep, Op, Over, OwnedValue, Place, XmlPath};

use super::of_field::needs_value;
use super::related::{Mattering, Related, asked, numbers};
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

/// Whether a place is in what stands behind another one: in an item of a list, of which that is the first.
pub(super) fn stands_in_one_behind(inner: &Place, other: &Place) -> bool {
    let holders: Vec<Place> = match inner {
        Place::Json(steps) => (1..steps.len()).map(|end| Place::Json(steps[..end].into())).collect(),
        Place::Xml(XmlPath { steps, attribute }) => {
            let ends = 1..steps.len() + usize::from(attribute.is_some());
            ends.map(|end| Place::Xml(XmlPath { steps: steps[..end].into(), attribute: None })).collect()
        }
        Place::Form(_) | Place::Size => Vec::new(),
    };
    holders.iter().any(|holder| holder.stands_behind(other))
}

/// How many values a place has at least where there is one at another that it covers: all before that in its list.
pub(super) fn values_with(all: &Place, one: &Place) -> Option<u32> {
    let position = match one {
        Place::Json(steps) => match steps.last() {
            Some(JsonStep::Index(index)) => index.checked_add(1)?,
            _ => 1,
        },
        Place::Xml(XmlPath { steps, attribute: None }) => steps.last()?.position.unwrap_or(1),
        Place::Xml(_) | Place::Form(_) | Place::Size => return None,
    };
    (all != one && all.covers(one)).then_some(position)
}

/// Whether no body has a value at both places: a document has one root, and what is in an object is in no list.
pub(super) fn are_apart(one: &Place, other: &Place) -> bool {
    let (one, other) = match (one, other) {
        (Place::Json(one), Place::Json(other)) => (one, other),
        (Place::Xml(one), Place::Xml(other)) => {
            let roots = [one, other].map(|path| path.steps.first().filter(|step| !step.is_any_depth));
            return matches!(roots, [Some(one), Some(other)] if one.name.local != other.name.local);
        }
        _ => return false,
    };
    let ways = one.iter().zip(other.iter()).find(|(one, other)| one != other);
    let is_member = |step: &JsonStep| matches!(step, JsonStep::Member(_));
    let leads = one.iter().zip(other.iter()).take_while(|(one, other)| one == other);
    let is_one = leads.map(|(step, _)| step).all(|step| *step != JsonStep::Each);
    is_one && ways.is_some_and(|(one, other)| is_member(one) != is_member(other))
}

/// What holds something is there, and known to be: an element may only end unknown, where the body is at fault.
pub(super) fn needs_holder<'p>(inner: &[Mattering<'p>], outer: &[Mattering<'p>]) -> Option<Related<'p>> {
    let (test, states) = inner.iter().find(|(test, states)| needs_value(test, *states))?;
    let is_json = matches!(&test.field, Field::Payload(payload) if matches!(payload.place, Place::Json(_)));
    let is_without = |(test, states): &&Mattering<'p>| {
        let fails = if is_json { !states.covers(States::TRUE) } else { *states == States::FALSE };
        test.op == Op::Exists && test.over == Over::Any && fails
    };
    let (without, without_states) = outer.iter().find(is_without)?;
    Some(Related::Never(vec![(test.number(), *states), (without.number(), *without_states)]))
}

/// What holds a value of a JSON document is no value that a rule compares with. Nothing of a place that may hold others.
pub(super) fn only_holds<'p>(inner: &[Mattering<'p>], outer: &[Mattering<'p>]) -> Option<Related<'p>> {
    let (test, states) = inner.iter().find(|(test, states)| needs_value(test, *states))?;
    let Field::Payload(holder) = &outer.first()?.0.field else { return None };
    if !matches!(&holder.place, Place::Json(steps) if !steps.contains(&JsonStep::Each)) {
        return None;
    }
    let held = Values { known: vec![OwnedValue::Nothing], rest: None };
    let asked: Vec<_> = asked(outer).collect();
    let Solved::Nothing { because } = of_fixed(held, &asked) else { return None };
    Some(Related::Never([vec![(test.number(), *states)], numbers(because, outer)].concat()))
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

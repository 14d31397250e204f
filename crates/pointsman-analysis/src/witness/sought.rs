//! The values that a request is to show, looked up by field.

use std::ops::ControlFlow;

use pointsman_rules::{Cause, Field, OwnedValue, Place, Program, Subject};

use crate::wanted::{Sketch, Values};

/// A field and the values that it is to have, as views show them.
#[derive(Debug)]
pub(super) struct Wish<'p> {
    pub(super) field: &'p Field,
    pub(super) values: Values,
}

impl<'p> Wish<'p> {
    pub(super) fn all(sketch: &Sketch<'p>) -> Vec<Wish<'p>> {
        let wish = |(field, values): &(&'p Field, Values)| Wish { field, values: as_shown(field, values) };
        sketch.fields.iter().map(wish).collect()
    }

    /// Whether no body that may be so deep has such a value.
    pub(super) fn is_deeper_than(&self, depth_max: usize) -> bool {
        let steps = match self.place() {
            Some(Place::Xml(path)) => path.steps.len(),
            Some(Place::Json(steps)) => steps.len(),
            _ => 0,
        };
        steps > depth_max && !self.values.known.is_empty()
    }

    pub(super) fn place(&self) -> Option<&'p Place> {
        match self.field {
            Field::Payload(payload) => Some(&payload.place),
            _ => None,
        }
    }
}

/// Whatever is written in a body is shown as text; truth values there are in JSON alone.
pub(crate) fn as_shown(field: &Field, values: &Values) -> Values {
    let Field::Payload(payload) = field else { return values.clone() };
    let text = |text: String| OwnedValue::Text(text.into_bytes().into());
    let shown = |value: &OwnedValue| match (&payload.place, value) {
        (Place::Size, value) => value.clone(),
        (_, OwnedValue::Integer(integer)) => text(integer.to_string()),
        (_, OwnedValue::Ip(ip)) => text(ip.to_canonical().to_string()),
        (Place::Xml(_) | Place::Form(_), OwnedValue::Boolean(truth)) => text(truth.to_string()),
        (_, value) => value.clone(),
    };
    Values { known: values.known.iter().map(shown).collect(), rest: values.rest }
}

/// All of them together.
#[derive(Debug)]
pub(super) struct Sought<'w> {
    wishes: &'w [&'w Wish<'w>],
}

impl<'w> Sought<'w> {
    pub(super) fn new(wishes: &'w [&'w Wish<'w>]) -> Sought<'w> {
        Sought { wishes }
    }

    pub(super) fn wishes(&self) -> impl Iterator<Item = &'w Wish<'w>> {
        self.wishes.iter().copied()
    }

    /// What a field is to show; nothing where that is all the same.
    pub(super) fn of(&self, field: &Field) -> Option<&'w [OwnedValue]> {
        let wish = self.wishes().find(|wish| wish.field == field)?;
        Some(&wish.values.known)
    }

    /// Likewise of the header lines of a name, which is in lower case.
    pub(super) fn header(&self, name: &str) -> Option<&'w [OwnedValue]> {
        let is_it = |wish: &&Wish<'_>| matches!(wish.field, Field::Header(other) if &**other == name);
        self.wishes().find(is_it).map(|wish| &*wish.values.known)
    }

    /// The first value that a field is to show, if that is text.
    pub(super) fn text(&self, field: &Field) -> Option<&'w [u8]> {
        self.of(field)?.first().and_then(text)
    }

    /// Where the fields of the body stand that are sought, in their order.
    pub(super) fn places(&self) -> impl Iterator<Item = Place> {
        self.wishes().filter_map(Wish::place).cloned()
    }

    /// Whether a request shows all that is sought. `program` names [`Self::places`]. Of a body that is too long to be held
    /// further values of a field that has some may end unknown for this cause.
    pub(super) fn is_shown_by(
        &self,
        subject: &dyn Subject,
        program: &Program,
        too_long: Option<Cause>,
    ) -> bool {
        let mut payloads = program.payloads.iter();
        self.wishes().all(|wish| match wish.place() {
            None => is_shown(subject, wish.field, &wish.values, None),
            Some(_) => payloads.next().is_some_and(|payload| {
                is_shown(subject, &Field::Payload(payload.clone()), &wish.values, too_long)
            }),
        })
    }
}

fn is_shown(subject: &dyn Subject, field: &Field, values: &Values, too_long: Option<Cause>) -> bool {
    let mut expected = values.known.iter();
    let mut is_same = true;
    subject.each(field, &mut |value| {
        is_same = expected.next().is_some_and(|expected| expected.as_value() == value);
        if is_same { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    let rest = subject.unsettled(field);
    let is_too_long = rest.is_some() && rest == too_long && values.rest.is_none() && !values.known.is_empty();
    is_same && expected.next().is_none() && (rest == values.rest || is_too_long)
}

/// Whether a body must be there for it.
pub(super) fn has_something(wish: &Wish<'_>) -> bool {
    !wish.values.known.is_empty() || wish.values.rest.is_some()
}

/// The bytes of a text.
pub(super) fn text(value: &OwnedValue) -> Option<&[u8]> {
    match value {
        OwnedValue::Text(text) => Some(text),
        _ => None,
    }
}

/// The same of a value in a body: one that is too long stands for a limit.
pub(super) fn written(value: &OwnedValue, value_bytes_max: u32) -> Option<Vec<u8>> {
    match value {
        OwnedValue::Text(text) => Some(text.to_vec()),
        OwnedValue::Unknown(Cause::Limit) if value_bytes_max < TOO_LONG_BYTES_MAX => {
            Some(vec![b'x'; value_bytes_max as usize + 1])
        }
        _ => None,
    }
}

/// Bytes of the longest value that is written to be too long.
const TOO_LONG_BYTES_MAX: u32 = super::WRITTEN_BODY_BYTES_MAX as u32 / 2;

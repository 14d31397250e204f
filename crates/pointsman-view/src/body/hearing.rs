//! What readers find, as evidence.

use pointsman_content::{PathId, Sink, Value};
use pointsman_rules::{Cause, Evidence};

use super::fault::cause;
use super::others::Others;
use super::paths::NamedField;

/// Hears what a reader finds of the fields of one kind.
pub(super) struct Hearing<'a> {
    pub(super) evidence: &'a mut Evidence,
    pub(super) readings: &'a mut OtherReadings,
    /// By path.
    pub(super) fields: &'a [NamedField],
    /// Whether somebody asks for fields.
    pub(super) is_asked: bool,
}

/// What other readings come to, of a program that refuses or strips.
#[derive(Debug, Default)]
pub(super) struct OtherReadings {
    /// Whether readings matter, by the names that servers take for others and by repeated names.
    pub(super) by_name: bool,
    pub(super) by_repetition: bool,
    /// Once they differ from the literal one.
    pub(super) evidence: Option<Box<Others>>,
    /// Whether they came to differ when nobody asked any more.
    pub(super) came_late: bool,
}

impl Hearing<'_> {
    fn field(&self, path: PathId) -> Option<NamedField> {
        if self.is_asked { self.fields.get(path.0 as usize).copied() } else { None }
    }

    /// The field that other readings have a value of.
    fn other_field(&self, path: PathId) -> Option<NamedField> {
        let path = (path.0 as usize).checked_sub(self.fields.len())?;
        self.fields.get(path).copied().filter(|_| self.readings.by_name)
    }

    /// The other readings, which go on from what is known so far.
    fn others(&mut self) -> &mut Others {
        self.readings.evidence.get_or_insert_with(|| Box::new(Others::new(self.evidence)))
    }
}

impl Sink for Hearing<'_> {
    fn begins(&mut self, path: PathId, number: u32) {
        if let Some(field) = self.field(path) {
            if number > 0 && self.readings.by_repetition && !field.is_list {
                self.others();
            }
            self.evidence.begin(field.id);
        } else if self.other_field(path).is_some() && !self.is_asked {
            self.readings.came_late = true;
        }
    }

    fn value(&mut self, path: PathId, number: u32, value: Value<'_>) {
        let value = match value {
            // JSON's numbers compare by their text where the literal is one.
            Value::Text(text) | Value::Number(text) => pointsman_rules::Value::Text(text.as_bytes()),
            Value::Boolean(truth) => pointsman_rules::Value::Boolean(truth),
            Value::Other => pointsman_rules::Value::Nothing,
            Value::TooLong => pointsman_rules::Value::Unknown(Cause::Limit),
            Value::Undecodable(why) => pointsman_rules::Value::Unknown(cause(why)),
        };
        let Some(field) = self.field(path) else {
            if let Some(field) = self.other_field(path).filter(|_| self.is_asked) {
                self.others().see(field.id, value, field.is_list);
            }
            return;
        };
        if let Some(others) = &mut self.readings.evidence {
            others.see(field.id, value, field.is_list);
        }
        self.evidence.settle(field.id, number.into(), value);
    }

    fn ends_unknown(&mut self, path: PathId, why: pointsman_content::Cause) {
        let cause = cause(why);
        if let Some(field) = self.field(path) {
            self.evidence.end_unknown(field.id, cause);
            if let Some(others) = &mut self.readings.evidence {
                others.end(field.id, Some(cause));
            }
        } else if let Some(field) = self.other_field(path).filter(|_| self.is_asked) {
            self.others().end(field.id, Some(cause));
        }
    }

    fn ends(&mut self, path: PathId) {
        // Other readings may have more values, up to the end of the body.
        if let Some(field) = self.field(path) {
            self.evidence.end(field.id);
        }
    }
}

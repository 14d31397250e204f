//! What readers find, as evidence.

use pointsman_content::{PathId, Sink, Value};
use pointsman_rules::{Cause, Evidence, PayloadId};

use super::fault::cause;

/// Hears what a reader finds of the fields of one kind.
pub(super) struct Hearing<'a> {
    pub(super) evidence: &'a mut Evidence,
    /// By path.
    pub(super) ids: &'a [PayloadId],
    /// Whether somebody asks for fields.
    pub(super) is_asked: bool,
}

impl Hearing<'_> {
    fn field(&self, path: PathId) -> Option<PayloadId> {
        if self.is_asked { self.ids.get(path.0 as usize).copied() } else { None }
    }
}

impl Sink for Hearing<'_> {
    fn begins(&mut self, path: PathId, _number: u32) {
        if let Some(id) = self.field(path) {
            self.evidence.begin(id);
        }
    }

    fn value(&mut self, path: PathId, number: u32, value: Value<'_>) {
        let Some(id) = self.field(path) else { return };
        let value = match value {
            // JSON's numbers compare by their text where the literal is one.
            Value::Text(text) | Value::Number(text) => pointsman_rules::Value::Text(text.as_bytes()),
            Value::Boolean(truth) => pointsman_rules::Value::Boolean(truth),
            Value::Other => pointsman_rules::Value::Nothing,
            Value::TooLong => pointsman_rules::Value::Unknown(Cause::Limit),
            Value::Undecodable(why) => pointsman_rules::Value::Unknown(cause(why)),
        };
        self.evidence.settle(id, number.into(), value);
    }

    fn ends_unknown(&mut self, path: PathId, why: pointsman_content::Cause) {
        if let Some(id) = self.field(path) {
            self.evidence.end_unknown(id, cause(why));
        }
    }

    fn ends(&mut self, path: PathId) {
        if let Some(id) = self.field(path) {
            self.evidence.end(id);
        }
    }
}

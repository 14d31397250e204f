//! What readers find, as evidence.

use pointsman_content::{PathId, Sink, Value};
use pointsman_rules::{Cause, Evidence, PayloadId};

/// Bytes that a value is counted with besides its own: what keeping it takes.
const KEPT_BYTES: u64 = 64;

/// What may still be kept of the values of one body.
#[derive(Debug)]
pub(super) struct Room {
    bytes_max: u64,
    bytes_left: u64,
    is_open: bool,
}

/// Hears what a reader finds of the fields of one kind.
pub(super) struct Hearing<'a> {
    pub(super) evidence: &'a mut Evidence,
    /// By path.
    pub(super) ids: &'a [PayloadId],
    pub(super) room: &'a mut Room,
}

impl Room {
    pub(super) fn new(values_bytes_max: u64) -> Room {
        Room { bytes_max: values_bytes_max, bytes_left: values_bytes_max, is_open: true }
    }

    pub(super) fn bytes_max(&self) -> u64 {
        self.bytes_max
    }

    /// Nothing more is kept.
    pub(super) fn close(&mut self) {
        self.is_open = false;
    }

    pub(super) fn is_open(&self) -> bool {
        self.is_open
    }

    fn take(&mut self, bytes: u64) -> bool {
        let left = self.bytes_left.checked_sub(bytes);
        self.bytes_left = left.unwrap_or(0);
        left.is_some()
    }
}

impl Hearing<'_> {
    /// The field of a path, unless it has ended or nobody asks: then nothing is kept of it.
    fn field(&self, path: PathId) -> Option<PayloadId> {
        if !self.room.is_open {
            return None;
        }
        let id = self.ids.get(path.0 as usize).copied()?;
        (!self.evidence.has_ended(id)).then_some(id)
    }

    /// Makes room for so many bytes of a field; without any it ends.
    fn make_room(&mut self, id: PayloadId, bytes: u64) -> bool {
        let has_room = self.room.take(bytes);
        if !has_room {
            self.evidence.end_unknown(id, Cause::Limit);
        }
        has_room
    }
}

impl Sink for Hearing<'_> {
    fn begins(&mut self, path: PathId, _number: u32) {
        let Some(id) = self.field(path) else { return };
        if self.make_room(id, KEPT_BYTES) {
            self.evidence.begin(id);
        }
    }

    fn value(&mut self, path: PathId, number: u32, value: Value<'_>) {
        let Some(id) = self.field(path) else { return };
        let (bytes, value) = match value {
            Value::Text(text) | Value::Number(text) => {
                (text.len() as u64, pointsman_rules::Value::Text(text.as_bytes()))
            }
            Value::Boolean(truth) => (0, pointsman_rules::Value::Boolean(truth)),
            Value::Other => (0, pointsman_rules::Value::Nothing),
            Value::TooLong => (0, pointsman_rules::Value::Unknown(Cause::Limit)),
        };
        if self.make_room(id, bytes) {
            self.evidence.settle(id, number.into(), value);
        }
    }

    fn ends(&mut self, path: PathId) {
        if let Some(id) = self.field(path) {
            self.evidence.end(id);
        }
    }
}

//! What a body comes to in readings that differ from the literal one.

use pointsman_rules::{Cause, Evidence, PayloadId, Value};

/// Evidence of other readings of one body, for servers that take names in other ways, or one of several values. Of the
/// values of a field, by whichever name a server takes it, the readings count all, the first, and the last.
#[derive(Debug)]
pub(super) struct Others([Evidence; Others::COUNT]);

impl Others {
    /// How many readings there are.
    pub(super) const COUNT: usize = 3;

    /// Of a body that is read literally as `literal` so far.
    pub(super) fn new(literal: &Evidence) -> Others {
        Others(std::array::from_fn(|_| literal.fork()))
    }

    /// One more value of a field. Of a field that `is_list` every reading takes all values.
    pub(super) fn see(&mut self, id: PayloadId, value: Value<'_>, is_list: bool) {
        let Others([all, first, last]) = self;
        all.see(id, value);
        if is_list || !first.has_value(id) {
            first.see(id, value);
        }
        if !is_list {
            last.forget(id);
        }
        last.see(id, value);
    }

    /// The body may be of the kind of these fields, whatever its label says: what they are is not known.
    pub(super) fn mislabelled(&mut self, ids: impl Iterator<Item = PayloadId>) {
        for id in ids {
            self.end(id, Some(Cause::Encoding));
        }
    }

    /// No more values of a field come, or none that could be known, for a cause.
    pub(super) fn end(&mut self, id: PayloadId, unknown: Option<Cause>) {
        for evidence in &mut self.0 {
            match unknown {
                Some(cause) => evidence.end_unknown(id, cause),
                None => evidence.end(id),
            }
        }
    }

    /// The same of all fields that have not ended.
    pub(super) fn end_all(&mut self, unknown: Option<Cause>) {
        self.0.iter_mut().for_each(|evidence| evidence.end_all(unknown));
    }

    /// All values count, the first, or the last.
    pub(super) fn each(&self) -> &[Evidence] {
        &self.0
    }
}

//! What has been read of one body, as far as one program asks for it.

mod gathered;
#[cfg(test)]
mod tests;

use std::net::IpAddr;
use std::ops::ControlFlow;
use std::sync::Arc;

pub(crate) use self::gathered::Gathered;
use crate::engine::{Engine, NONE};
use crate::truths::{Seen, Sight};
use crate::{Cause, Field, Over, PayloadId, Program, Test, Truth, Value};

/// What is known so far of the fields of one body that a program names. It begins with nothing read.
///
/// Values are not kept: of each it is noted what it says of the program's tests, so that the room it takes grows
/// with the program and not with the body.
#[derive(Debug)]
pub struct Evidence {
    engine: Arc<Engine>,
    /// By [`PayloadId`].
    fields: Vec<Known>,
    /// What tests that are asked of each value came to so far.
    truths: Vec<Option<Truth>>,
    /// What values showed, by the reading's place among those of the body.
    gathered: Vec<Gathered>,
    /// Room for what one value shows.
    sight: Sight,
    has_news: bool,
}

/// What is known of one field.
#[derive(Clone, Debug)]
struct Known {
    /// The first values.
    kept: Vec<Kept>,
    kept_max: usize,
    values: u64,
    /// Why there may be more; nothing once there are no more.
    unsettled: Option<Cause>,
}

/// A value that owns itself.
#[derive(Clone, Debug)]
enum Kept {
    Text(Box<[u8]>),
    Integer(u64),
    Ip(IpAddr),
    Boolean(bool),
    Nothing,
    Unknown(Cause),
}

impl Evidence {
    /// Of a body of which nothing has been read. Of each field the first value is kept.
    #[must_use]
    pub fn new(program: &Program) -> Evidence {
        Evidence::keeping(program, 1)
    }

    /// The same; so many values of each field are kept to be shown, at least one.
    #[must_use]
    pub fn keeping(program: &Program, values_max: usize) -> Evidence {
        Evidence::of(program.engine.clone(), program.payloads.len(), values_max.max(1))
    }

    /// For an engine of the program's rules.
    pub(crate) fn of(engine: Arc<Engine>, fields: usize, kept_max: usize) -> Evidence {
        let unread = Known { kept: Vec::new(), kept_max, values: 0, unsettled: Some(Cause::Unread) };
        let questions = &engine.questions;
        Evidence {
            fields: vec![unread; fields],
            truths: vec![None; questions.tests_count],
            gathered: (0..questions.readings_count).map(|_| Gathered::default()).collect(),
            sight: Sight::with_marks(if questions.any_contained { engine.signs_count() } else { 0 }),
            has_news: false,
            engine,
        }
    }

    /// One more value of a field, behind those that were seen before. Of one that has ended nothing is heard.
    pub fn see(&mut self, payload: PayloadId, value: Value<'_>) {
        let Some(known) = unread(&mut self.fields, payload) else { return };
        known.values = known.values.saturating_add(1);
        // A second value is news to `once`.
        self.has_news |= known.values <= 2;
        if known.kept.len() < known.kept_max {
            known.kept.push(Kept::from(value));
        }
        let engine = &self.engine;
        let Some(asked) = engine.questions.of(payload) else { return };
        for (reading, place) in &asked.readings {
            let (Some(reading), Some(gathered)) =
                (engine.reading(*reading), self.gathered.get_mut(*place as usize))
            else {
                continue;
            };
            self.has_news |= gathered.add(reading, value, &mut self.sight);
        }
        for (number, place) in &asked.tests {
            let (Some(test), Some(so_far)) =
                (engine.lone_test(*number), self.truths.get_mut(*place as usize))
            else {
                continue;
            };
            let before = *so_far;
            test.add(value, so_far);
            self.has_news |= *so_far != before;
        }
    }

    /// No more values of a field come.
    pub fn end(&mut self, payload: PayloadId) {
        if let Some(known) = unread(&mut self.fields, payload) {
            known.unsettled = None;
            self.has_news = true;
        }
    }

    /// What has not ended ends: no more values come, or none that could ever be known, for a cause.
    pub fn end_all(&mut self, unknown: Option<Cause>) {
        for known in self.fields.iter_mut().filter(|known| known.is_unread()) {
            known.unsettled = unknown;
            self.has_news = true;
        }
    }

    /// Whether no more values of a field come, or none that could be known.
    #[must_use]
    pub fn has_ended(&self, payload: PayloadId) -> bool {
        self.known(payload).is_none_or(|known| !known.is_unread())
    }

    /// Whether all have ended: more of the body changes nothing.
    #[must_use]
    pub fn has_all(&self) -> bool {
        !self.fields.iter().any(Known::is_unread)
    }

    /// Whether since the last call something was learned that a decision could depend on. There is no more news than
    /// the program has signs, bounds and tests of the body, however long that is.
    pub fn take_news(&mut self) -> bool {
        std::mem::take(&mut self.has_news)
    }

    /// Shows the values of a field that were kept, the first at least, in order; none of a field that is not one of
    /// the body's.
    pub fn each(&self, field: &Field, see: &mut dyn FnMut(Value<'_>) -> ControlFlow<()>) -> ControlFlow<()> {
        let kept = self.named(field).into_iter().flat_map(|known| &known.kept);
        kept.map(Kept::as_value).try_for_each(see)
    }

    /// How many values of a field there were beside those that were kept.
    #[must_use]
    pub fn values_left_out(&self, field: &Field) -> u64 {
        self.named(field).map_or(0, |known| known.values.saturating_sub(known.kept.len() as u64))
    }

    /// Why a field may have values that are not known.
    #[must_use]
    pub fn unsettled(&self, field: &Field) -> Option<Cause> {
        self.named(field)?.unsettled
    }

    /// What a comparison of a field of the body comes to.
    pub(crate) fn truth(&self, test: &Test, payload: PayloadId) -> Truth {
        let Some(known) = self.known(payload) else { return Truth::False };
        let unknown = known.unsettled.map(Truth::Unknown);
        let first = known.kept.first().map(|first| test.holds(first.as_value()));
        match test.over {
            Over::First => first.or(unknown).unwrap_or(Truth::False),
            Over::Once if known.values > 1 => Truth::Unknown(Cause::Duplicate),
            Over::Once => unknown.or(first).unwrap_or(Truth::False),
            Over::Count => unknown.unwrap_or_else(|| test.holds(Value::Integer(known.values))),
            Over::Any => self.so_far(test).unwrap_or(Truth::False).or(unknown.unwrap_or(Truth::False)),
            Over::All => match (self.so_far(test), unknown) {
                (so_far, Some(unknown)) => so_far.unwrap_or(Truth::True).and(unknown),
                (so_far, None) => so_far.unwrap_or(Truth::False),
            },
        }
    }

    /// What the values so far make of a test that asks all of them.
    fn so_far(&self, test: &Test) -> Option<Truth> {
        let questions = &self.engine.questions;
        let place = questions.place(test.number);
        if place != NONE {
            return self.truths.get(place as usize).copied().flatten();
        }
        let gathered = self.gathered.get(questions.gathered(self.engine.read_off(test.number)?) as usize)?;
        Some(self.engine.of_gathered(test.number, gathered))
    }

    /// What the values of a field have shown to a reading of the engine.
    pub(crate) fn seen(&self, reading: u32, field: &Field, sight: &mut Sight) -> Seen {
        let known = self.named(field);
        let (values, unsettled) = known.map_or((0, None), |known| (known.values, known.unsettled));
        match self.gathered.get(self.engine.questions.gathered(reading) as usize) {
            Some(gathered) => gathered.seen(values, unsettled, sight),
            None => Gathered::default().seen(values, unsettled, sight),
        }
    }

    fn named(&self, field: &Field) -> Option<&Known> {
        let Field::Payload(payload) = field else { return None };
        self.known(payload.id)
    }

    fn known(&self, payload: PayloadId) -> Option<&Known> {
        self.fields.get(payload.0 as usize)
    }
}

fn unread(fields: &mut [Known], payload: PayloadId) -> Option<&mut Known> {
    fields.get_mut(payload.0 as usize).filter(|known| known.is_unread())
}

impl Known {
    fn is_unread(&self) -> bool {
        self.unsettled == Some(Cause::Unread)
    }
}

impl From<Value<'_>> for Kept {
    fn from(value: Value<'_>) -> Kept {
        match value {
            Value::Text(text) => Kept::Text(text.into()),
            Value::Integer(integer) => Kept::Integer(integer),
            Value::Ip(ip) => Kept::Ip(ip),
            Value::Boolean(boolean) => Kept::Boolean(boolean),
            Value::Nothing => Kept::Nothing,
            Value::Unknown(cause) => Kept::Unknown(cause),
        }
    }
}

impl Kept {
    fn as_value(&self) -> Value<'_> {
        match self {
            Kept::Text(text) => Value::Text(text),
            Kept::Integer(integer) => Value::Integer(*integer),
            Kept::Ip(ip) => Value::Ip(*ip),
            Kept::Boolean(boolean) => Value::Boolean(*boolean),
            Kept::Nothing => Value::Nothing,
            Kept::Unknown(cause) => Value::Unknown(*cause),
        }
    }
}

//! What has been read of one body, as far as one program asks for it.

mod gathered;
#[cfg(test)]
mod tests;

use std::ops::ControlFlow;
use std::sync::Arc;

pub(crate) use self::gathered::Gathered;
use crate::engine::{Engine, NONE};
use crate::subject::OwnedValue;
use crate::truths::{Seen, Sight};
use crate::{Cause, Field, Op, Over, PayloadId, Program, Test, Truth, Value};

/// What is known so far of the fields of one body that a program names. It begins with nothing read.
///
/// Values are not kept: of each it is noted what it says of the program's tests, so that the room it takes grows
/// with the program and not with the body.
#[derive(Clone, Debug)]
pub struct Evidence {
    engine: Arc<Engine>,
    /// By [`PayloadId`].
    fields: Vec<Known>,
    /// Those of which no value came and none comes any more.
    absent: Vec<bool>,
    /// What tests that are asked of each value came to so far.
    truths: Vec<Option<Truth>>,
    /// What values showed, by the reading's place among those of the body.
    gathered: Vec<Gathered>,
    /// Room for what one value shows.
    sight: Sight,
    /// Room for the tests that one value is asked.
    asked: Vec<(u32, u32)>,
    has_news: bool,
}

/// What is known of one field.
#[derive(Clone, Debug)]
struct Known {
    /// The first values; nothing in the place of one that has begun and is not known yet.
    kept: Vec<Option<OwnedValue>>,
    kept_max: usize,
    begun: u64,
    /// Of those that have begun.
    settled: u64,
    /// Why there may be more; nothing once there are no more.
    unsettled: Option<Cause>,
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
        let unread =
            Known { kept: Vec::new(), kept_max, begun: 0, settled: 0, unsettled: Some(Cause::Unread) };
        let questions = &engine.questions;
        Evidence {
            fields: vec![unread; fields],
            absent: vec![false; fields],
            truths: vec![None; questions.tests_count],
            gathered: (0..questions.readings_count).map(|_| Gathered::default()).collect(),
            sight: Sight::with_marks(if questions.any_contained { engine.signs_count() } else { 0 }),
            asked: Vec::new(),
            has_news: false,
            engine,
        }
    }

    /// One more value of a field, behind those that have begun before. Of a field that has ended nothing is heard.
    pub fn see(&mut self, payload: PayloadId, value: Value<'_>) {
        if let Some(number) = self.begin_numbered(payload) {
            self.settle(payload, number, value);
        }
    }

    /// One more value of a field has begun, behind those before it: it is there, and not known yet.
    pub fn begin(&mut self, payload: PayloadId) {
        self.begin_numbered(payload);
    }

    fn begin_numbered(&mut self, payload: PayloadId) -> Option<u64> {
        let known = unread(&mut self.fields, payload)?;
        let number = known.begun;
        known.begun += 1;
        if known.kept.len() < known.kept_max {
            known.kept.push(None);
        }
        // The first is news to `exists`, and the second one to `once`.
        self.has_news |= number <= 1;
        Some(number)
    }

    /// What the value is that began as this one, counted from 0. Each is said once.
    pub fn settle(&mut self, payload: PayloadId, number: u64, value: Value<'_>) {
        let Some(known) = unread(&mut self.fields, payload) else { return };
        debug_assert!(
            known.settled < known.begun && number < known.begun,
            "{number} has not begun: {known:?}"
        );
        known.settled += 1;
        self.has_news |= number == 0;
        if let Some(kept) = usize::try_from(number).ok().and_then(|number| known.kept.get_mut(number)) {
            *kept = Some(OwnedValue::from(value));
        }
        let engine = &self.engine;
        let Some(asked) = engine.questions.of(payload) else { return };
        self.asked.clear();
        if matches!(value, Value::Unknown(_)) {
            self.asked.extend_from_slice(&asked.all_hinted);
        }
        for (reading, place) in &asked.readings {
            let (Some(reading), Some(gathered)) =
                (engine.reading(*reading), self.gathered.get_mut(*place as usize))
            else {
                continue;
            };
            let (seen, is_news) = gathered.add(reading, value, &mut self.sight);
            self.has_news |= is_news;
            if !asked.hinted.is_empty() {
                let hinted = self.sight.signs(&seen).iter().filter_map(|sign| asked.hinted.get(sign));
                self.asked.extend(hinted.flatten());
            }
        }
        self.asked.sort_unstable();
        self.asked.dedup();
        for (number, place) in self.asked.iter().chain(&asked.tests) {
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

    /// No more values of a field come: all that have begun are known.
    pub fn end(&mut self, payload: PayloadId) {
        if let Some(known) = unread(&mut self.fields, payload) {
            debug_assert!(known.settled == known.begun, "a value has begun that is not known: {known:?}");
            known.unsettled = None;
            if let Some(absent) = self.absent.get_mut(payload.0 as usize) {
                *absent = known.begun == 0;
            }
            self.has_news = true;
        }
    }

    /// What more there is of a field, values that have begun among it, is never to be known, for a cause.
    pub fn end_unknown(&mut self, payload: PayloadId, cause: Cause) {
        if let Some(known) = unread(&mut self.fields, payload) {
            known.unsettled = Some(cause);
            self.has_news = true;
        }
    }

    /// What has not ended ends: no more values come, or none that could ever be known, for a cause.
    pub fn end_all(&mut self, unknown: Option<Cause>) {
        let fields = self.fields.iter_mut().zip(&mut self.absent);
        for (known, absent) in fields.filter(|(known, _)| known.is_unread()) {
            known.unsettled = unknown;
            *absent = unknown.is_none() && known.begun == 0;
            self.has_news = true;
        }
    }

    /// Whether no more values of a field come, or none that could be known.
    #[must_use]
    pub fn has_ended(&self, payload: PayloadId) -> bool {
        self.known(payload).is_none_or(|known| !known.is_unread())
    }

    /// Whether a field has no value, and gets none any more.
    pub(crate) fn is_absent(&self, payload: PayloadId) -> bool {
        self.absent.get(payload.0 as usize).copied().unwrap_or(true)
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

    /// Bytes that it takes before anything is known, and about all that it ever takes beside the values that it keeps.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let fields = self.fields.len() * (size_of::<Known>() + size_of::<bool>());
        // Of each test also the place among those that a value is asked.
        let of_test = size_of::<Option<Truth>>() + size_of::<(u32, u32)>();
        let noted = self.truths.len() * of_test + self.gathered.len() * size_of::<Gathered>();
        (size_of::<Evidence>() + fields + noted + self.sight.bytes()) as u64
    }

    /// What was known before a fault of this cause ended what had not ended, and before `late` was known, which became so
    /// behind it.
    #[must_use]
    pub fn before(&self, cause: Cause, late: Option<PayloadId>) -> Evidence {
        let mut before = self.clone();
        for known in before.fields.iter_mut().filter(|known| known.unsettled == Some(cause)) {
            known.unsettled = Some(Cause::Unread);
        }
        if let Some(late) = late {
            before.forget(late);
        }
        before
    }

    /// A copy in which fields go on: each may get more values, whether or not it has ended here. For another reading of
    /// the same body.
    #[must_use]
    pub fn fork(&self) -> Evidence {
        let mut fork = self.clone();
        for (known, absent) in fork.fields.iter_mut().zip(&mut fork.absent) {
            // Values that have begun are not known in the other reading, and the next one is seen whole.
            known
                .kept
                .iter_mut()
                .filter(|kept| kept.is_none())
                .for_each(|kept| *kept = Some(OwnedValue::Nothing));
            known.settled = known.begun;
            if known.unsettled.is_none() {
                known.unsettled = Some(Cause::Unread);
            }
            *absent = false;
        }
        fork
    }

    /// Forgets the values of a field: nothing of it has been read.
    pub fn forget(&mut self, payload: PayloadId) {
        if let Some(known) = self.fields.get_mut(payload.0 as usize) {
            *known =
                Known { kept: Vec::new(), begun: 0, settled: 0, unsettled: Some(Cause::Unread), ..*known };
        }
        if let Some(absent) = self.absent.get_mut(payload.0 as usize) {
            *absent = false;
        }
        let engine = self.engine.clone();
        let Some(asked) = engine.questions.of(payload) else { return };
        for (_, place) in &asked.readings {
            self.gathered.get_mut(*place as usize).map(std::mem::take);
        }
        for (_, place) in asked.tests.iter().chain(&asked.all_hinted) {
            self.truths.get_mut(*place as usize).map(Option::take);
        }
    }

    /// Whether a field has a value.
    #[must_use]
    pub fn has_value(&self, payload: PayloadId) -> bool {
        self.known(payload).is_some_and(|known| known.begun > 0)
    }

    /// Shows the values of a field that were kept, the first at least, in order; none of a field that is not one of
    /// the body's.
    pub fn each(&self, field: &Field, see: &mut dyn FnMut(Value<'_>) -> ControlFlow<()>) -> ControlFlow<()> {
        let Some(known) = self.named(field) else { return ControlFlow::Continue(()) };
        known.kept.iter().map(|kept| known.shown(kept.as_ref())).try_for_each(see)
    }

    /// How many values of a field there were beside those that were kept.
    #[must_use]
    pub fn values_left_out(&self, field: &Field) -> u64 {
        self.named(field).map_or(0, |known| known.begun.saturating_sub(known.kept.len() as u64))
    }

    /// Why a field may have values that are not known.
    #[must_use]
    pub fn unsettled(&self, field: &Field) -> Option<Cause> {
        self.named(field)?.unsettled
    }

    /// What a comparison of a field of the body comes to.
    pub(crate) fn truth(&self, test: &Test, payload: PayloadId) -> Truth {
        let Some(known) = self.known(payload) else { return Truth::False };
        let unsettled = known.unsettled.map(Truth::Unknown);
        let first = || known.kept.first().map(|first| test.holds(known.shown(first.as_ref())));
        match test.over {
            Over::First => first().or(unsettled).unwrap_or(Truth::False),
            Over::Once if known.begun > 1 => Truth::Unknown(Cause::Duplicate),
            Over::Once => unsettled.or_else(first).unwrap_or(Truth::False),
            Over::Count => unsettled.unwrap_or_else(|| test.holds(Value::Integer(known.begun))),
            Over::Any => {
                let so_far = self.so_far(test, known).unwrap_or(Truth::False);
                so_far.or(known.unknown().map_or(Truth::False, Truth::Unknown))
            }
            Over::All => match (self.so_far(test, known), known.unknown().map(Truth::Unknown)) {
                (so_far, Some(unknown)) => so_far.unwrap_or(Truth::True).and(unknown),
                (so_far, None) => so_far.unwrap_or(Truth::False),
            },
        }
    }

    /// What the values so far make of a test that asks all of them.
    fn so_far(&self, test: &Test, known: &Known) -> Option<Truth> {
        if matches!(test.op, Op::Exists) {
            return (known.begun > 0).then_some(Truth::True);
        }
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
        let (values, unknown) = self.named(field).map_or((0, None), |known| (known.begun, known.unknown()));
        let (Some(made), Some(gathered)) = (
            self.engine.reading(reading),
            self.gathered.get(self.engine.questions.gathered(reading) as usize),
        ) else {
            return sight.begin();
        };
        gathered.seen(made, values, unknown, sight)
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

    /// Why what its values do not say may hold all the same.
    fn unknown(&self) -> Option<Cause> {
        let of_begun = (self.settled < self.begun).then_some(Cause::Unread);
        self.unsettled.or(of_begun)
    }

    fn shown<'k>(&self, kept: Option<&'k OwnedValue>) -> Value<'k> {
        let unknown = Value::Unknown(self.unsettled.unwrap_or(Cause::Unread));
        kept.map_or(unknown, OwnedValue::as_value)
    }
}

//! What has been read of one body, as far as one program asks for it.

use std::net::IpAddr;
use std::ops::ControlFlow;
use std::sync::Arc;

use crate::{Cause, Field, PayloadId, Program, Value};

/// What is known so far of the fields of one body that a program names. It begins with nothing read.
#[derive(Clone, Debug)]
pub struct Evidence {
    /// By [`PayloadId`].
    fields: Vec<Known>,
    has_news: bool,
}

/// What is known of one field.
#[derive(Clone, Debug)]
struct Known {
    values: Vec<Kept>,
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
    /// Of a body of which nothing has been read.
    #[must_use]
    pub fn new(program: Arc<Program>) -> Evidence {
        let unread = Known { values: Vec::new(), unsettled: Some(Cause::Unread) };
        Evidence { fields: vec![unread; program.payloads.len()], has_news: false }
    }

    /// One more value of a field, behind those that were seen before. Of one that has ended nothing is heard.
    pub fn see(&mut self, payload: PayloadId, value: Value<'_>) {
        if let Some(known) = self.unread(payload) {
            known.values.push(Kept::from(value));
            self.has_news = true;
        }
    }

    /// One more value of a field has begun, behind those that were seen before: it is there, and not known yet.
    pub fn begin(&mut self, payload: PayloadId) {
        self.see(payload, Value::Unknown(Cause::Unread));
    }

    /// What the value is that began as this one, counted from 0.
    pub fn settle(&mut self, payload: PayloadId, number: u32, value: Value<'_>) {
        if let Some(known) = self.unread(payload)
            && let Some(kept) = known.values.get_mut(number as usize)
        {
            *kept = Kept::from(value);
            self.has_news = true;
        }
    }

    /// No more values of a field come.
    pub fn end(&mut self, payload: PayloadId) {
        if let Some(known) = self.unread(payload) {
            known.unsettled = None;
            self.has_news = true;
        }
    }

    /// What more there is of a field, the rest of values that have begun among it, is never to be known.
    pub fn end_unknown(&mut self, payload: PayloadId, cause: Cause) {
        if let Some(known) = self.unread(payload) {
            known.end(Some(cause));
            self.has_news = true;
        }
    }

    /// What has not ended ends: no more values come, or none that could ever be known, for a cause.
    pub fn end_all(&mut self, unknown: Option<Cause>) {
        for known in self.fields.iter_mut().filter(|known| known.unsettled == Some(Cause::Unread)) {
            known.end(unknown);
            self.has_news = true;
        }
    }

    /// Whether no more values of a field come, or none that could be known.
    #[must_use]
    pub fn has_ended(&self, payload: PayloadId) -> bool {
        self.known(payload).is_none_or(|known| known.unsettled != Some(Cause::Unread))
    }

    /// Whether all have ended: more of the body changes nothing.
    #[must_use]
    pub fn has_all(&self) -> bool {
        self.fields.iter().all(|known| known.unsettled != Some(Cause::Unread))
    }

    /// Whether since the last call something was learned that a decision could depend on.
    pub fn take_news(&mut self) -> bool {
        std::mem::take(&mut self.has_news)
    }

    /// Shows the values of a field that are kept, in order; none of a field that is not one of the body's.
    pub fn each(&self, field: &Field, see: &mut dyn FnMut(Value<'_>) -> ControlFlow<()>) -> ControlFlow<()> {
        let Field::Payload(payload) = field else { return ControlFlow::Continue(()) };
        let values = self.known(payload.id).into_iter().flat_map(|known| &known.values);
        values.map(Kept::as_value).try_for_each(see)
    }

    /// Why a field may have values that are not shown.
    #[must_use]
    pub fn unsettled(&self, field: &Field) -> Option<Cause> {
        let Field::Payload(payload) = field else { return None };
        self.known(payload.id)?.unsettled
    }

    fn known(&self, payload: PayloadId) -> Option<&Known> {
        self.fields.get(payload.0 as usize)
    }

    fn unread(&mut self, payload: PayloadId) -> Option<&mut Known> {
        let known = self.fields.get_mut(payload.0 as usize)?;
        (known.unsettled == Some(Cause::Unread)).then_some(known)
    }
}

impl Known {
    fn end(&mut self, unknown: Option<Cause>) {
        self.unsettled = unknown;
        let Some(cause) = unknown else { return };
        for kept in self.values.iter_mut().filter(|kept| matches!(kept, Kept::Unknown(Cause::Unread))) {
            *kept = Kept::Unknown(cause);
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Targets, Truth, compile};

    type Step<'a> = (&'a dyn Fn(&mut Evidence, PayloadId), Truth);

    /// What `R` comes to beside what is done to the one field that it names, step by step.
    #[track_caller]
    fn check(condition: &str, steps: &[Step<'_>]) {
        let rules = format!("R: if ({condition}) {{ routeTo(a); }}");
        let program = Arc::new(compile(&rules, &Targets::Any).expect("a rule set").program);
        let mut evidence = Evidence::new(program.clone());
        for (at, (step, expected)) in steps.iter().enumerate() {
            step(&mut evidence, PayloadId(0));
            let truth = program.rules[0].condition.eval(&Body(&evidence));
            assert_eq!(truth, *expected, "{condition}, step {at}");
        }
    }

    struct Body<'a>(&'a Evidence);

    impl crate::Subject for Body<'_> {
        fn each(&self, field: &Field, see: &mut dyn FnMut(Value<'_>) -> ControlFlow<()>) {
            let _seen_enough = self.0.each(field, see);
        }

        fn unsettled(&self, field: &Field) -> Option<Cause> {
            self.0.unsettled(field)
        }
    }

    #[test]
    fn a_value_that_has_begun_is_there_and_unread() {
        let unread = Truth::Unknown(Cause::Unread);
        let nine = |number| move |to: &mut Evidence, id| to.settle(id, number, Value::Text(b"9"));
        check("xml.//a exists", &[(&|_, _| (), unread), (&|to, id| to.begin(id), Truth::True)]);
        check(
            "xml.//a > 5",
            &[(&|to, id| to.begin(id), unread), (&|to, id| to.begin(id), unread), (&nine(1), Truth::True)],
        );
        check(
            "first(xml.//a) > 5",
            &[
                (&|to, id| to.begin(id), unread),
                (&|to, id| to.see(id, Value::Text(b"1")), unread),
                (&nine(0), Truth::True),
            ],
        );
        check(
            "first(xml.//a) > 5",
            &[
                (&|to, id| to.begin(id), unread),
                (&|to, id| to.end_unknown(id, Cause::Malformed), Truth::Unknown(Cause::Malformed)),
                (&nine(0), Truth::Unknown(Cause::Malformed)),
            ],
        );
    }
}

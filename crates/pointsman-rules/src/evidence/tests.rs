//! However far a body is read: what was noted of its values says the same as the values.

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::engine::engines;
use crate::generated::{MadeUpSubject, crowd_subjects, crowds, payload_fields, programs, subjects};
use crate::{Decision, Subject, Targets, Truths, compile};

/// A subject whose body is read: only of its head the values are asked.
struct Read<'s> {
    subject: &'s MadeUpSubject,
    evidence: Evidence,
}

impl Subject for Read<'_> {
    fn each(&self, field: &Field, see: &mut dyn FnMut(Value<'_>) -> ControlFlow<()>) {
        match field {
            Field::Payload(_) => {
                let _seen_enough = self.evidence.each(field, see);
            }
            _ => self.subject.each(field, see),
        }
    }

    fn unsettled(&self, field: &Field) -> Option<Cause> {
        match field {
            Field::Payload(_) => self.evidence.unsettled(field),
            _ => self.subject.unsettled(field),
        }
    }

    fn evidence(&self) -> Option<&Evidence> {
        Some(&self.evidence)
    }
}

/// A body on its way, and beside it a subject that has all values that came.
struct Along<'p> {
    program: &'p Program,
    engine: Arc<Engine>,
    read: Read<'p>,
    known: MadeUpSubject,
    said: String,
    truths: &'p RefCell<Truths>,
}

impl<'p> Along<'p> {
    fn new(
        program: &'p Program,
        engine: Engine,
        subject: &'p MadeUpSubject,
        truths: &'p RefCell<Truths>,
    ) -> Along<'p> {
        let (engine, payloads) = (Arc::new(engine), payload_fields());
        let evidence = Evidence::of(engine.clone(), payloads.len(), 1);
        let mut known = subject.clone();
        known.fields.retain(|(field, _)| !payloads.contains(field));
        known.unsettled.retain(|(field, _)| !payloads.contains(field));
        known.unsettled.extend(payloads.into_iter().map(|field| (field, Cause::Unread)));
        let read = Read { subject, evidence };
        let mut along = Along { program, engine, read, known, said: String::new(), truths };
        along.said = along.compare();
        along
    }

    /// The next value of a field, or its end.
    fn step(&mut self, place: usize) {
        let field = payload_fields().swap_remove(place);
        let id = PayloadId(u32::try_from(place).expect("few fields"));
        if self.read.evidence.has_ended(id) {
            return;
        }
        let came = self.known.values(&field).len();
        match self.read.subject.values(&field).get(came) {
            Some(value) => {
                self.read.evidence.see(id, *value);
                self.known.add(&field, *value);
            }
            None => {
                self.read.evidence.end(id);
                self.known.unsettled.retain(|(unsettled, _)| *unsettled != field);
            }
        }
        self.go_on();
    }

    fn end(&mut self, cause: Option<Cause>) {
        self.read.evidence.end_all(cause);
        self.known.unsettled.retain_mut(|(_, unsettled)| match cause {
            Some(cause) if *unsettled == Cause::Unread => {
                *unsettled = cause;
                true
            }
            _ => *unsettled != Cause::Unread,
        });
        self.go_on();
    }

    fn go_on(&mut self) {
        let has_news = self.read.evidence.take_news();
        let said = self.compare();
        assert!(has_news || said == self.said, "{said} without news, {} before", self.said);
        self.said = said;
    }

    /// What is decided now, which must be the same whoever is asked.
    fn compare(&self) -> String {
        let said = |decision: &Decision<'_>| {
            let effects: Vec<_> = decision.effects.iter().map(|effect| std::ptr::from_ref(*effect)).collect();
            format!("{:?} {:?} {effects:?}", decision.by, decision.outcome)
        };
        let truths = &mut self.truths.borrow_mut();
        let expected = said(&self.program.interpret(&self.known, |_| {}));
        let found = [
            self.program.interpret(&self.read, |_| {}),
            self.program.decide_by(&self.engine, &self.read, truths),
            self.program.decide_by(&self.engine, &self.known, truths),
        ];
        for found in found.iter().map(said) {
            assert_eq!(found, expected, "{:?} of {:?}", self.known, self.program);
        }
        expected
    }
}

fn read_along(program: &Program, subject: &MadeUpSubject, steps: &[usize], end: Option<Option<Cause>>) {
    let truths = RefCell::new(Truths::default());
    for engine in engines(program) {
        let mut along = Along::new(program, engine, subject, &truths);
        steps.iter().for_each(|place| along.step(*place));
        if let Some(cause) = end {
            along.end(cause);
        }
    }
}

fn steps() -> impl Strategy<Value = Vec<usize>> {
    vec(0..payload_fields().len(), 0..16)
}

/// How a body ends, if it does.
fn ends() -> impl Strategy<Value = Option<Option<Cause>>> {
    proptest::option::of(select(vec![None, Some(Cause::Limit), Some(Cause::Malformed)]))
}

proptest! {
    #[test]
    fn evidence_is_the_values(program in programs(), subject in subjects(), steps in steps(), end in ends()) {
        read_along(&program, &subject, &steps, end);
    }

    #[test]
    fn evidence_is_the_values_for_crowds_of_rules(
        program in crowds(),
        subject in crowd_subjects(),
        steps in steps(),
        end in ends(),
    ) {
        read_along(&program, &subject, &steps, end);
    }
}

fn program(source: &str) -> Program {
    compile(source, &Targets::Any).expect("a program").program
}

/// What was decided after each value of the one field that the program names, and after its end.
fn decided(source: &str, values: &[&str]) -> Vec<String> {
    let program = program(source);
    let subject = MadeUpSubject::default();
    let mut read = Read { subject: &subject, evidence: Evidence::new(&program) };
    let said = |read: &Read<'_>| {
        let decision = program.decide(read, &mut Truths::default());
        format!("{} {:?}", decision.by.label().unwrap_or("none"), decision.outcome)
    };
    let mut all = vec![said(&read)];
    for value in values {
        read.evidence.see(PayloadId(0), Value::Text(value.as_bytes()));
        all.push(said(&read));
    }
    read.evidence.end(PayloadId(0));
    all.push(said(&read));
    all
}

#[test]
fn a_value_decides_as_soon_as_it_can() {
    let route = "RouteTo { target: TargetId(0), sticky: None }";
    let routed = format!("R1 Terminal({route})");
    let rules = |condition: &str| format!("R1: if ({condition}) {{ routeTo(a); }}");
    let check = |condition: &str, values: &[&str], expected: &[&str]| {
        let found = decided(&rules(condition), values);
        let found: Vec<_> = found.iter().map(|text| if *text == routed { "routed" } else { text }).collect();
        assert_eq!(found, expected, "{condition}");
    };
    let (waits, none) = ("R1 Waits", "none DefaultPool");
    check("xml.a/b > 5", &["4", "6", "7"], &[waits, waits, "routed", "routed", "routed"]);
    check("!(xml.a/b > 5)", &["4", "6"], &[waits, waits, none, none]);
    check("all(xml.a/b) > 5", &["6", "4", "6"], &[waits, waits, none, none, none]);
    check("all(xml.a/b) > 5", &[], &[waits, none]);
    check("first(xml.a/b) > 5", &["6", "4"], &[waits, "routed", "routed", "routed"]);
    check("once(xml.a/b) > 5", &["6"], &[waits, waits, "routed"]);
    let twice = "R1 Refused(Duplicate)";
    check("once(xml.a/b) > 5", &["6", "6"], &[waits, waits, twice, twice]);
    check("count(xml.a/b) == 2", &["6", "6"], &[waits, waits, waits, "routed"]);
    check("xml.a/b exists", &["6"], &[waits, "routed", "routed"]);
    check("xml.a/b > 5", &["x", "6"], &[waits, waits, "routed", "routed"]);
    check("xml.a/b > 5", &["x"], &[waits, waits, "R1 Refused(NotANumber)"]);
}

/// The room that a body takes does not grow with its values.
#[test]
fn a_million_values_are_little_news() {
    let rules: String =
        (0..100).map(|number| format!("if (json.a[*] > {number}000) {{ routeTo(a); }}\n")).collect();
    let program = program(&rules);
    let mut evidence = Evidence::new(&program);
    let mut news = 0;
    for number in 0..1_000_000_u64 {
        evidence.see(PayloadId(0), Value::Integer(number % 7));
        news += u32::from(evidence.take_news());
    }
    assert_eq!(news, 2, "the first value, and the second one");
    assert_eq!(evidence.values_left_out(&Field::Payload(program.payloads[0].clone())), 999_999);
}

#[test]
fn texts_await_what_they_name() {
    let program = program("R1: { setHeader(\"x\", \"${json.a}\"); } else: routeTo(a, STICKY_ON(json.b));");
    let subject = MadeUpSubject::default();
    let mut read = Read { subject: &subject, evidence: Evidence::new(&program) };
    let said = |read: &Read<'_>| {
        let decision = program.decide(read, &mut Truths::default());
        format!("{} {:?}", decision.by.label().unwrap_or("none"), decision.outcome)
    };
    assert_eq!(said(&read), "R1 Waits");
    read.evidence.see(PayloadId(0), Value::Text(b"x"));
    assert_eq!(said(&read), "else Waits");
    read.evidence.end_all(Some(Cause::Malformed));
    assert_eq!(said(&read), "else Refused(Malformed)");
}

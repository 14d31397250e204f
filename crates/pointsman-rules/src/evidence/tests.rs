//! However far a body is read: what was noted of its values says the same as the values.

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::engine::engines;
use crate::generated::{
    MadeUpSubject, SHARED_PAYLOADS, Telling, crowd_subjects, crowds, payload_fields, programs, subjects,
};
use crate::{Decision, Halt, NameKind, Subject, Targets, Truths, compile};

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

    fn each_name(&self, kind: NameKind, see: &mut dyn FnMut(&[u8])) -> bool {
        Telling(self.subject).each_name(kind, see)
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
    /// By field: which values have begun and are not known.
    pending: Vec<Vec<usize>>,
    said: String,
    /// Where it waits.
    halt: Option<Halt>,
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
        let mut along = Along {
            program,
            engine,
            read,
            known,
            pending: vec![Vec::new(); payload_fields().len()],
            said: String::new(),
            halt: None,
            truths,
        };
        along.said = along.compare();
        along.halt = Halt::of(&program.interpret(&along.known, |_| {}));
        along
    }

    /// The next value of a field begins, or the last that has begun is known, or the field ends.
    fn step(&mut self, (place, is_known): (usize, bool)) {
        let field = payload_fields().swap_remove(place);
        let id = PayloadId(u32::try_from(place).expect("few fields"));
        if self.read.evidence.has_ended(id) {
            return;
        }
        let values = self.read.subject.values(&field);
        let begun = self.known.values(&field).len();
        let pending = self.pending[place].last().copied();
        match (values.get(begun), pending) {
            (Some(_), _) if !is_known || pending.is_none() => {
                self.read.evidence.begin(id);
                self.known.add(&field, Value::Unknown(Cause::Unread));
                self.pending[place].push(begun);
            }
            (_, Some(number)) => {
                self.pending[place].pop();
                self.read.evidence.settle(id, number as u64, values[number]);
                self.known.set(&field, number, values[number]);
            }
            (_, None) => {
                self.read.evidence.end(id);
                self.known.unsettled.retain(|(unsettled, _)| *unsettled != field);
            }
        }
        self.go_on();
    }

    /// What is not known ends so, for a cause.
    fn end(&mut self, cause: Cause) {
        self.read.evidence.end_all(Some(cause));
        for (_, unsettled) in &mut self.known.unsettled {
            if *unsettled == Cause::Unread {
                *unsettled = cause;
            }
        }
        for (field, pending) in payload_fields().iter().zip(std::mem::take(&mut self.pending)) {
            pending.into_iter().for_each(|number| self.known.set(field, number, Value::Unknown(cause)));
        }
        self.go_on();
    }

    fn go_on(&mut self) {
        let has_news = self.read.evidence.take_news();
        let said = self.compare();
        assert!(has_news || said == self.said, "{said} without news, {} before", self.said);
        self.said = said;
        self.wait_on();
    }

    /// A decision that waits goes on where it stopped, and stops where it would if it began anew.
    fn wait_on(&mut self) {
        let Some(mut halt) = self.halt else { return };
        let anew = Halt::of(&self.program.interpret(&self.known, |_| {})).map(|halt| halt.at());
        let may_end = halt.may_end(self.program, &self.read.evidence);
        assert!(may_end || anew == Some(halt.at()), "{anew:?} after {halt:?} of {:?}", self.program);
        if may_end {
            let truths = &mut self.truths.borrow_mut();
            let waits = self.program.waits_on_by(&self.engine, &mut halt, &self.read, truths);
            assert_eq!(waits.then_some(halt.at()), anew, "{:?} of {:?}", self.known, self.program);
            self.halt = waits.then_some(halt);
        }
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

fn read_along(program: &Program, subject: &MadeUpSubject, steps: &[(usize, bool)], end: Option<Cause>) {
    let truths = RefCell::new(Truths::default());
    for engine in engines(program) {
        let mut along = Along::new(program, engine, subject, &truths);
        steps.iter().for_each(|step| along.step(*step));
        if let Some(cause) = end {
            along.end(cause);
        }
    }
}

fn steps() -> impl Strategy<Value = Vec<(usize, bool)>> {
    let place = prop_oneof![2 => 0..SHARED_PAYLOADS, 1 => SHARED_PAYLOADS..payload_fields().len()];
    vec((place, any::<bool>()), 0..24)
}

/// How a body ends, if it does.
fn ends() -> impl Strategy<Value = Option<Cause>> {
    proptest::option::of(select(vec![Cause::Limit, Cause::Malformed]))
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

/// What is decided after each step of one field's values.
#[track_caller]
fn check_steps(condition: &str, steps: &[(Step<'_>, &str)]) {
    let program = program(&format!("R1: if ({condition}) {{ routeTo(a); }}"));
    let subject = MadeUpSubject::default();
    let mut read = Read { subject: &subject, evidence: Evidence::new(&program) };
    for (at, (step, expected)) in steps.iter().enumerate() {
        step(&mut read.evidence, PayloadId(0));
        let outcome = program.decide(&read, &mut Truths::default()).outcome;
        let said = match outcome {
            crate::Outcome::Terminal(_) => "routed".to_owned(),
            outcome => format!("{outcome:?}"),
        };
        assert_eq!(said, *expected, "{condition}, step {at}");
    }
}

type Step<'a> = &'a dyn Fn(&mut Evidence, PayloadId);

/// A value that has begun is there, and may hold others; which one is the first does not change by that.
#[test]
fn values_that_have_begun() {
    let begin: Step<'_> = &|evidence, id| evidence.begin(id);
    let first_is_1: Step<'_> = &|evidence, id| evidence.settle(id, 0, Value::Text(b"1"));
    let second_is_9: Step<'_> = &|evidence, id| evidence.settle(id, 1, Value::Text(b"9"));
    let end: Step<'_> = &|evidence, id| evidence.end(id);
    let fail: Step<'_> = &|evidence, id| evidence.end_unknown(id, Cause::Malformed);
    let (waits, malformed) = ("Waits", "Refused(Malformed)");
    check_steps("xml.//a exists", &[(begin, "routed"), (fail, "routed")]);
    check_steps(
        "xml.//a > 5",
        &[(begin, waits), (begin, waits), (second_is_9, "routed"), (first_is_1, "routed")],
    );
    check_steps(
        "first(xml.//a) > 5",
        &[(begin, waits), (begin, waits), (second_is_9, waits), (first_is_1, "DefaultPool")],
    );
    check_steps(
        "all(xml.//a) > 5",
        &[(begin, waits), (begin, waits), (second_is_9, waits), (first_is_1, "DefaultPool")],
    );
    check_steps("once(xml.//a) > 5", &[(begin, waits), (begin, "Refused(Duplicate)")]);
    check_steps("count(xml.//a) == 1", &[(begin, waits), (first_is_1, waits), (end, "routed")]);
    check_steps("first(xml.//a) > 5", &[(begin, waits), (fail, malformed), (first_is_1, malformed)]);
    check_steps("xml.//a > 5", &[(begin, waits), (begin, waits), (second_is_9, "routed"), (fail, "routed")]);
    check_steps("xml.//a > 5", &[(begin, waits), (first_is_1, waits), (begin, waits), (fail, malformed)]);
}

/// Where it waits after each value of a list or another field, if anything was learned that may end the wait.
#[test]
fn a_wait_ends_by_what_its_rule_asks() {
    let rules = "if (json.a[*] == \"x\" && json.b == \"y\") { routeTo(a); }
        if (json.a[*] in [\"0\", \"1\", \"2\"]) { tag(a); }
        if (json.a[*] == \"z\" || json.b == \"m\") { routeTo(b, STICKY_ON(json.c)); }";
    let program = program(rules);
    let subject = MadeUpSubject::default();
    let mut read = Read { subject: &subject, evidence: Evidence::new(&program) };
    let mut truths = Truths::default();
    let mut halt = Halt::of(&program.decide(&read, &mut truths)).expect("a wait");
    assert!(halt.may_end(&program, &read.evidence), "what was never looked at");
    for (field, value, expected) in [
        (0, "0", None),
        (0, "1", None),
        (0, "x", Some(Some(0))),
        (0, "w", None),
        (1, "n", Some(Some(2))),
        (0, "2", None),
        (0, "z", Some(Some(2))),
        (2, "c", Some(None)),
    ] {
        read.evidence.see(PayloadId(field), Value::Text(value.as_bytes()));
        if field > 0 {
            read.evidence.end(PayloadId(field));
        }
        let waits_at = halt.may_end(&program, &read.evidence).then(|| {
            let waits = program.waits_on(&mut halt, &read, &mut truths);
            waits.then(|| halt.at().0)
        });
        assert_eq!(waits_at, expected, "{value}");
    }
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
    assert_eq!(news, 2, "the first value, and the second one, which lies elsewhere");
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

#[test]
fn truth_values_of_json_are_compared() {
    for (condition, expected) in [
        ("json.a == true", Some("R1")),
        ("json.a != true", None),
        ("json.a == false", None),
        ("json.a in [true]", None),
    ] {
        let Ok(compiled) = compile(&format!("R1: if ({condition}) {{ routeTo(a); }}"), &Targets::Any) else {
            assert!(condition.contains("in"), "{condition} is refused");
            continue;
        };
        let subject = MadeUpSubject::default();
        let mut read = Read { subject: &subject, evidence: Evidence::new(&compiled.program) };
        read.evidence.see(PayloadId(0), Value::Boolean(true));
        read.evidence.end_all(None);
        let decision = compiled.program.decide(&read, &mut Truths::default());
        assert_eq!(decision.by.label(), expected, "{condition}");
    }
}

//! Which rules are visited, how often fields are looked up, and what the certificate says of it.

use std::cell::Cell;
use std::fmt::Write;
use std::ops::ControlFlow;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use super::*;
use crate::generated::{MadeUpSubject, Telling, crowd_subjects, crowds};
use crate::subject::OwnedValue;
use crate::truths::Cursor;
use crate::{Cause, Field, Program, Targets, Value, compile};

/// Counts how often it is asked for a field.
struct Counted {
    subject: MadeUpSubject,
    asked: Cell<usize>,
}

impl Subject for Counted {
    fn each(&self, field: &Field, see: &mut dyn FnMut(Value<'_>) -> ControlFlow<()>) {
        self.asked.set(self.asked.get() + 1);
        self.subject.each(field, see);
    }

    fn unsettled(&self, field: &Field) -> Option<Cause> {
        self.subject.unsettled(field)
    }
}

fn program(source: &str) -> Program {
    compile(source, &Targets::Any).expect("a program").program
}

fn subject(fields: &[(Field, &str)]) -> MadeUpSubject {
    let fields =
        fields.iter().map(|(field, text)| (field.clone(), vec![OwnedValue::Text(text.as_bytes().into())]));
    MadeUpSubject { fields: fields.collect(), unsettled: vec![] }
}

/// The label of the rule that decides, and how often a field was looked up for that.
fn check(source: &str, fields: &[(Field, &str)], label: Option<&str>, asked: usize) {
    let program = program(source);
    let subject = Counted { subject: subject(fields), asked: Cell::new(0) };
    let decision = program.decide(&subject, &mut Truths::default());
    assert_eq!(decision.by.label(), label, "{source}");
    assert_eq!(subject.asked.get(), asked, "{source}");
}

#[test]
fn a_field_of_many_rules_is_looked_up_once() {
    let mut source = String::new();
    for number in 0..100 {
        let (path, tenant) = (number / 10, number % 10);
        writeln!(
            source,
            "if (path startsWith \"/app{path}/\" && header[\"t\"] == \"t{tenant}\") {{ routeTo(a); }}"
        )
        .expect("a string takes all");
    }
    let tenant = Field::Header("t".into());
    check(&source, &[(Field::Path, "/app9/x"), (tenant.clone(), "t9")], Some("#100"), 2);
    check(&source, &[(Field::Path, "/app3/x"), (tenant.clone(), "t0")], Some("#31"), 2);
    check(&source, &[(Field::Path, "/app3/x"), (tenant.clone(), "none")], None, 1);
    check(&source, &[(Field::Path, "/none"), (tenant, "t0")], None, 2);
}

#[test]
fn a_test_of_many_rules_is_asked_once() {
    let shared =
        "if (url matches \"x\" && path == \"/a\") { tag(a); } if (!(url matches \"x\")) { discard(); }\n";
    check(&shared.repeat(20), &[(Field::Url, "x"), (Field::Path, "/a")], None, 2);
    check(&shared.repeat(20), &[(Field::Url, "y"), (Field::Path, "/a")], Some("#2"), 2);
}

/// Each of these would be false if it were taken for the one before it.
#[test]
fn tests_that_differ_in_anything_are_not_shared() {
    let tests = [
        "host == \"a\"",
        "lower(host) == \"a\"",
        "count(host) == 1",
        "url matches \"^b\"",
        "url matches \"^A\"",
    ];
    let rules: String = tests.iter().map(|test| format!("if ({test}) {{ tag(x); }}\n")).collect();
    let program = program(&rules.repeat(2));
    let subject = subject(&[(Field::Host, "A"), (Field::Url, "A")]);
    assert_eq!(program.decide(&subject, &mut Truths::default()).effects.len(), 2 * 3);
}

#[test]
fn what_takes_little_effort_is_asked_first() {
    let source = "if (url matches \"x\" && host contains \"x\" && srcport == 1) { discard(); }\n";
    let engine = program(source).engine;
    let efforts: Vec<u8> = engine.guards.iter().map(|guard| engine.asks.ask(guard.test).effort).collect();
    assert_eq!(efforts, [1, 2, 3]);
}

/// The rules that are visited for a subject, the one that decides being the last.
#[track_caller]
fn visits(rules: &[String], fields: &[(Field, &str)], expected: &[u32]) {
    let program = program(&rules.concat());
    let subject = subject(fields);
    let mut truths = Truths::default();
    program.engine.begin(&mut truths);
    let postings = program.engine.postings.as_ref().expect("an index");
    let walk = Walk { postings, asks: &program.engine.asks, subject: &Telling(&subject) };
    let (mut from, mut visited) = (0, Vec::new());
    while let Some(cursor) = walk.next(from, &mut truths) {
        let again = walk.next(cursor.least, &mut truths);
        assert_eq!(again, Some(cursor), "a walk can be taken up where it stopped");
        visited.push(cursor.least);
        from = cursor.least + 1;
    }
    assert_eq!(visited, expected);
}

fn rules(count: usize, condition: impl Fn(usize) -> String) -> Vec<String> {
    (0..count).map(|number| format!("if ({}) {{ routeTo(a); }}\n", condition(number))).collect()
}

#[test]
fn only_rules_that_may_hold_are_visited() {
    let url = |text| [(Field::Url, text)];
    visits(&rules(99, |n| format!("url == \"/{n}\"")), &url("/7"), &[7]);
    visits(&rules(99, |n| format!("url in [\"/{n}\", \"/{}\"]", n + 1)), &url("/7"), &[6, 7]);
    visits(&rules(99, |n| format!("url startsWith \"/{n}\"")), &url("/77"), &[7, 77]);
    visits(&rules(99, |n| format!("url under \"/{n}\"")), &url("/77/x"), &[77]);
    visits(&rules(99, |n| format!("url endsWith \"{n}.gif\"")), &url("/77.gif"), &[7, 77]);
    visits(&rules(99, |n| format!("url contains \"/{n}/\"")), &url("/x/8/9/y"), &[8, 9]);
    visits(&rules(99, |n| format!("url like \"*/item{n}/*.gif\"")), &url("/item8/9/y.gif"), &[8]);
    visits(&rules(99, |n| format!("url matches \"/{n}/[a-z]+$\"")), &url("/x/8/9/y"), &[8, 9]);
    visits(&rules(99, |n| format!("url matches \"^/{n}(a|b)\"")), &url("/77b/5a"), &[77]);
    visits(&rules(99, |n| format!("url matches \"{n}\\.(gif|jpe?g)$\"")), &url("/x/8.jpeg"), &[8]);
    visits(&rules(99, |n| format!("lower(url) == \"/x{n}\"")), &url("/X7"), &[7]);
    // They have their beginnings and ends in common.
    let inside = |n| format!("url matches \"^/api/v[0-9]+/item{n}/[0-9]+$\"");
    visits(&rules(99, inside), &url("/api/v1/item8/5"), &[8]);
    visits(&rules(99, inside), &url("/api/v1/other/5"), &[]);
    let folded = |n| format!("url matches \"(?i)^/api/v[0-9]+/item{n}/[0-9]+$\"");
    visits(&rules(99, folded), &url("/API/v1/Item8/5"), &[8]);
    let pictures = |n| format!("url matches \"/item{n}/.*\\.(gif|png)$\"");
    visits(&rules(99, pictures), &url("/x/item8/y.png"), &[8]);
    let either = |n| format!("url matches \"^/api/v[0-9]+/(item{n}|other)/\"");
    visits(&rules(99, either), &url("/api/v1/item8/5"), &[8]);
    visits(&rules(99, |n| format!("url like \"/application/*/{n}/*\"")), &url("/application/x/8/y"), &[8]);
}

#[test]
fn numbers_find_the_runs_that_they_lie_in() {
    let number = |text| [(Field::QueryParam(b"n"[..].into()), text)];
    let n = "query[\"n\"]";
    visits(&rules(99, |k| format!("{n} > {k}.5")), &number("3.50"), &[0, 1, 2]);
    visits(&rules(99, |k| format!("{n} < {k}")), &number("95.5"), &[96, 97, 98]);
    visits(&rules(99, |k| format!("{n} == {k}")), &number("7.0"), &[7]);
    visits(&rules(99, |k| format!("{n} in {k}..{}", k + 1)), &number("7"), &[6, 7]);
    visits(&rules(99, |k| format!("{n} in ({k}..{})", k + 1)), &number("7"), &[]);
    visits(&rules(99, |k| format!("{n} in ({k}..{})", k + 1)), &number("7.5"), &[7]);
}

#[test]
fn rules_of_absent_fields_are_not_visited() {
    let header = |name: &str| Field::Header(name.into());
    let fields = [(header("h7"), "x"), (header("h9"), "y"), (header("other"), "x"), (Field::Host, "a")];
    visits(&rules(99, |n| format!("header[\"h{n}\"] == \"x\"")), &fields, &[7, 9]);
    visits(&rules(99, |n| format!("header[\"h{n}\"] != \"x\"")), &fields, &[7, 9]);
    visits(&rules(99, |n| format!("header[\"h{n}\"] == \"x\" && host == \"{}\"", n % 2)), &fields, &[]);
    visits(&rules(99, |n| format!("host == \"a\" && all(header[\"h{n}\"]) == \"x\"")), &fields, &[7, 9]);
    visits(&rules(99, |n| format!("header[\"h{n}\"] in [\"a\", \"b\", \"c\", \"x\"]")), &fields, &[7]);
    visits(&rules(99, |n| format!("header[\"h{n}\"] == \"x\" || cookie[\"c{n}\"] exists")), &fields, &[7, 9]);
    visits(&rules(99, |n| format!("json.p{n} == \"x\" || query[\"n{n}\"] exists")), &fields, &[]);
    visits(&rules(20, |n| format!("count(header[\"h{n}\"]) == {n}")), &fields, &(0..20).collect::<Vec<_>>());
}

#[test]
fn what_shares_a_test_is_told_apart_by_the_next() {
    let shared = |text: &str| format!("host == \"a\" && {text}");
    let fields = [(Field::Host, "a"), (Field::Path, "/7"), (Field::Method, "GET")];
    visits(&rules(99, |n| shared(&format!("path == \"/{n}\""))), &fields, &[7]);
    visits(
        &rules(99, |n| shared(&format!("path == \"/{}\"", n % 9))),
        &fields,
        &[7, 16, 25, 34, 43, 52, 61, 70, 79, 88, 97],
    );
    let either = |n| format!("(host == \"a\" && path == \"/{n}\") || method == \"M{n}\"");
    visits(&rules(99, either), &fields, &[7]);
}

#[test]
fn little_is_left_to_the_interpreter() {
    let three = "if (path == \"/a\" && host == \"x\") { discard(); } if (path == \"/b\") { discard(); }\n";
    assert!(program(three).engine.is_idle());
    assert!(!program(&three.repeat(2)).engine.is_idle());
    let many: String =
        (0..17).map(|number| format!("if (query[\"{number}\"] exists) {{ tag(a); }}\n")).collect();
    assert!(!program(&many).engine.is_idle());
}

/// Otherwise the comparison with the interpreter would show little.
#[test]
fn generated_programs_have_readings_shared_tests_and_nodes() {
    let mut runner = TestRunner::deterministic();
    let (mut read, mut shared, mut nodes, mut named) = (0, 0, 0, 0);
    for _ in 0..100 {
        let program = crowds().new_tree(&mut runner).expect("a program").current();
        let engine = &program.engine;
        read += usize::from(engine.asks.readings.len() > 2);
        shared += usize::from(engine.asks.slots > 0);
        let postings = engine.postings.as_ref();
        nodes += usize::from(postings.is_some_and(|postings| postings.nodes.len() > 3));
        named += usize::from(postings.is_some_and(|postings| postings.fields.len() > 20));
    }
    assert!(read > 40 && shared > 40 && nodes > 10 && named > 10, "{read} {shared} {nodes} {named}");
}

/// How many rules are asked until one decides.
fn asked(program: &Program, subject: &MadeUpSubject) -> usize {
    let mut truths = Truths::default();
    let engine = &program.engine;
    engine.begin(&mut truths);
    let postings = engine.postings.as_ref().expect("an index");
    let walk = Walk { postings, asks: &engine.asks, subject };
    let (mut from, mut asked) = (0, 0);
    while let Some(Cursor { least: at, .. }) = walk.next(from, &mut truths) {
        asked += 1;
        let truth = engine.eval(&engine.lines[at as usize], subject, &mut truths);
        let rule = program.rule(RuleIndex(at)).expect("a rule");
        let decides = |exit: &Exit| matches!(exit, Exit::Terminal(_));
        let is_over = match truth {
            Truth::True => decides(&rule.then.exit),
            Truth::False => decides(&rule.otherwise.exit),
            Truth::Unknown(_) => program.on_unknown != OnUnknown::Skip,
        };
        if is_over {
            break;
        }
        from = at + 1;
    }
    asked
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn no_more_rules_are_asked_than_certified(program in crowds(), subjects in vec(crowd_subjects(), 1..20)) {
        for mut subject in subjects {
            subject.unsettled.clear();
            for (_, values) in &mut subject.fields {
                values.retain(|value| !matches!(value, OwnedValue::Unknown(_)));
                values.truncate(1);
            }
            let (asked, certificate) = (asked(&program, &subject), program.certificate());
            prop_assert!(asked <= certificate.asked_max, "{asked} {certificate:?} {subject:?}");
        }
    }
}

#[test]
fn what_cannot_be_told_apart_is_named() {
    let shared = |n| format!("host == \"a\" && !(path == \"/{n}\")");
    let mut rules = rules(20, |n| format!("host == \"h{n}\""));
    rules.extend(self::rules(40, shared));
    let program = program(&rules.concat());
    let certificate = program.certificate();
    assert_eq!((certificate.rules, certificate.asked_max), (60, 40));
    let [group] = certificate.unseparated.as_slice() else { panic!("{certificate:?}") };
    assert_eq!((group.first, group.last, group.rules), (RuleIndex(20), RuleIndex(59), 40));
    assert_eq!(group.fields, [Field::Host]);
}

#[test]
fn thresholds_of_one_host_are_told_apart() {
    let rules = rules(2000, |n| format!("host == \"a\" && query[\"n\"] > {}", (n * 7919) % 2000));
    let program = program(&rules.concat());
    assert!(program.certificate().asked_max <= 11, "{:?}", program.certificate());
    assert!(program.certificate().unseparated.is_empty());
}

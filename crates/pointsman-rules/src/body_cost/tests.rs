//! What is said of costs holds for every body.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::subsequence;

use super::*;
use crate::generated::{MadeUpSubject, payload_fields, programs, subjects};
use crate::subject::OwnedValue;
use crate::{Cause, DecidedBy, Decision, Outcome, Targets, Value, compile};

/// The costs of a rule set, a line each.
fn lines(rules: &str) -> Vec<String> {
    let program = compile(rules, &Targets::Any).expect("a rule set").program;
    let costs = program.body_costs();
    costs.iter().map(|cost| format!("{}: {}", cost.name(&program), cost.sentence(&program))).collect()
}

#[track_caller]
fn check(rules: &str, expected: &[&str]) {
    assert_eq!(lines(rules), expected, "{rules}");
}

#[test]
fn a_head_costs_nothing() {
    check("R1: if (path == \"/\") { reject(); } else: routeTo(a);", &[]);
}

#[test]
fn what_stands_before_a_rule_is_its_cost_too() {
    check(
        "R1: if (path == \"/\") { routeTo(a); }
         R2: if (xml.a//b == \"x\") { routeTo(a); }
         R3: if (path == \"/c\") { routeTo(a); }
         else: routeTo(a);",
        &[
            "R1: the head",
            "R2: up to a value of `xml.a//b` that fits",
            "R3: the whole body, because R2 is false only when no value of `xml.a//b` fits; `first(xml.a//b)` would not",
            "else: the whole body, because R2 is false only when no value of `xml.a//b` fits; `first(xml.a//b)` would not",
        ],
    );
}

#[test]
fn negation_needs_all_values() {
    let because = "because R0 negates `form[\"a\"]`; `first(form[\"a\"])` would not";
    check(
        "R0: if (!(form[\"a\"] == \"x\")) { tag(t); } R1: if (first(form[\"a\"]) == \"y\") { routeTo(a); }",
        &[
            &format!("R0: up to a value of `form[\"a\"]` that fits; at worst the whole body, {because}"),
            &format!("R1: up to a value of `form[\"a\"]` that fits; at worst the whole body, {because}"),
            &format!("no rule: up to a value of `form[\"a\"]` that fits; at worst the whole body, {because}"),
        ],
    );
}

/// Jumps lead past what others wait for.
#[test]
fn a_way_past_a_rule_does_not_pay_for_it() {
    check(
        "R1: if (path == \"/\") { goto R3; }
         R2: if (count(json.a[*]) > 3) { reject(); }
         R3: if (json.b == \"x\") { routeTo(a); }
         R4: if (json.c exists) { goto R6; } else { goto R6; }
         R5: { discard(); }
         R6: { routeTo(a); }",
        &[
            "R1: the head",
            "R2: up to where `json.a[*]` can have no more values, because R2 counts `json.a[*]`",
            "R3: up to the first value of `json.b`; at worst up to where `json.a[*]` can have no more values, because R2 \
             counts `json.a[*]`",
            "R4: up to the first value of `json.b` and values of other fields; at worst the whole body, because R4 is \
             false only when `json.c` is absent",
            "R6: up to the first value of `json.b` and values of other fields; at worst the whole body, because R4 is \
             false only when `json.c` is absent",
        ],
    );
}

#[test]
fn texts_and_stickiness_wait_for_values() {
    check(
        "R1: if (path == \"/\") { redirect(302, \"/${json.id}\"); }
         R2: { routeTo(a, STICKY_ON(json.id)); }",
        &[
            "R1: up to the first value of `json.id`; at worst the whole body, because R1 waits for `json.id`, also when \
             it is absent",
            "R2: up to the first value of `json.id`; at worst the whole body, because R2 waits for `json.id`, also when \
             it is absent",
        ],
    );
    // A condition that wants a value says that there is one.
    check(
        "R1: if (json.id > 5) { redirect(302, \"/${json.id}\"); }
         R2: if (!(json.ok exists)) { goto R3; } else { routeTo(a, STICKY_ON(json.ok)); }
         R3: { discard(); }",
        &[
            "R1: up to the first value of `json.id`",
            "R2: up to the first value of `json.id` and values of other fields; at worst the whole body, because R1 is \
             false, too, when `json.id` is absent",
            "R3: the whole body, because R2 is true only when `json.ok` is absent",
        ],
    );
    // An unknown value passes over the rule, however early its condition was known.
    check(
        "on_unknown skip;
         R1: if (path == \"/\") { redirect(302, \"/${json.o.id}\"); }
         R2: { routeTo(a); }",
        &[
            "R1: up to the first value of `json.o.id`; at worst up to where `json.o.id` can have no more values, because \
             R1 waits for `json.o.id`, also when it is absent",
            "R2: the head; at worst up to where `json.o.id` can have no more values, because R1 waits for `json.o.id`, \
             also when it is absent",
        ],
    );
}

/// What must be false may be so for want of a value, unless a rule behind it wants one.
#[test]
fn an_absent_field_costs_more_than_its_value() {
    let passed = "the whole body, because R2 is false, too, when `json.b` is absent";
    check(
        "R2: if (json.b > 5) { tag(big); }
         R3: if (json.a == 7) { routeTo(fast); }
         R4: if (json.b == 1) { routeTo(one); }
         else: routeTo(a);",
        &[
            &format!("R2: up to the first value of `json.b`; at worst {passed}"),
            &format!("R3: up to the first value of `json.b` and values of other fields; at worst {passed}"),
            "R4: up to the first value of `json.b` and values of other fields; at worst the whole body, because R3 is \
             false, too, when `json.a` is absent",
            &format!("else: up to the first value of `json.b` and values of other fields; at worst {passed}"),
        ],
    );
    check(
        "R1: if (!(all(json.o.a[*]) < 5)) { routeTo(a); }
         R2: { routeTo(a); }",
        &[
            "R1: up to a value of `json.o.a[*]` that does not fit; at worst up to where `json.o.a[*]` can have no more \
             values, because R1 is true, too, when `json.o.a[*]` is absent",
            "R2: up to where `json.o.a[*]` can have no more values, because R1 is false only when every value of \
             `json.o.a[*]` fits; `first(json.o.a[*])` would not",
        ],
    );
}

/// What is known of very many fields is no more than that one of them may be absent.
#[test]
fn many_fields_may_be_absent() {
    let tags: String = (0..2 * FIELDS_MAX).map(|n| format!("if (json.f{n} == 1) {{ tag(t); }}\n")).collect();
    let rules = format!("{tags}L: if (json.f0 == 2) {{ routeTo(a); }}");
    let latest = lines(&rules).pop().expect("a line");
    assert!(latest.ends_with("is false, too, when `json.f64` is absent"), "{latest}");
    let program = compile(&rules, &Targets::Any).expect("a rule set").program;
    assert!(program.body_costs().iter().all(|cost| cost.latest.reach == Reach::Body));
}

#[test]
fn all_parts_of_a_condition_count() {
    check(
        "R1: if (json.model == \"a\" && json.stream == true) { routeTo(a); }",
        &[
            "R1: up to the first value of `json.model` and values of other fields",
            "no rule: up to the first value of `json.model`; at worst the whole body, because R1 is false, too, when \
             `json.model` is absent",
        ],
    );
}

#[test]
fn each_choice_of_values_has_its_reach() {
    for (condition, when_true, when_false) in [
        ("json.a == 1", Reach::Value, Reach::Body),
        ("json.a exists", Reach::Value, Reach::Body),
        ("json.a.b exists", Reach::Value, Reach::Scope),
        ("json[*] == 1", Reach::Value, Reach::Body),
        ("json.a[*] == 1", Reach::Value, Reach::Scope),
        ("all(json.a[*]) == 1", Reach::Scope, Reach::Scope),
        ("first(json[*]) == 1", Reach::Value, Reach::Body),
        ("first(json[*]) exists", Reach::Value, Reach::Body),
        ("once(json[*]) == 1", Reach::Body, Reach::Body),
        ("once(json.a) == 1", Reach::Value, Reach::Body),
        ("count(json.a) == 1", Reach::Value, Reach::Body),
        ("count(json.a.b) == 0", Reach::Scope, Reach::Value),
        ("count(json.a.b) < 2 && json.a.b == 1", Reach::Value, Reach::Scope),
        ("count(form[\"a\"]) > 1", Reach::Body, Reach::Body),
        ("body.size > 5", Reach::Body, Reach::Body),
        ("xml.a == 1", Reach::Value, Reach::Value),
        ("xml.a exists", Reach::Value, Reach::Scope),
        ("xml.a/@b == 1", Reach::Value, Reach::Value),
        ("xml.a/b == 1", Reach::Value, Reach::Body),
        ("xml.a/b[1] == 1", Reach::Value, Reach::Body),
        ("xml.a/b[1] exists", Reach::Value, Reach::Body),
        ("xml.a/b[1]/c == 1", Reach::Value, Reach::Scope),
        ("xml.a/b[1]/c[2] exists", Reach::Value, Reach::Scope),
        ("xml.a/@b exists", Reach::Value, Reach::Scope),
        ("xml.a//@b exists", Reach::Value, Reach::Body),
        ("xml.a/b/@c exists", Reach::Value, Reach::Body),
        ("!(json[*] == 1)", Reach::Body, Reach::Value),
        ("json[*] == 1 && json.a == 1", Reach::Value, Reach::Body),
        ("json[*] == 1 || count(json[*]) == 1", Reach::Body, Reach::Body),
        ("path == \"/\" || body.size > 1", Reach::Body, Reach::Body),
    ] {
        let rules = format!("R1: if ({condition}) {{ routeTo(a); }} R2: {{ routeTo(a); }}");
        let program = compile(&rules, &Targets::Any).expect("a rule set").program;
        let found: Vec<_> = program.body_costs().iter().map(|cost| cost.latest.reach).collect();
        assert_eq!(found, [when_true, when_false], "{condition}");
    }
}

/// A subject of which the fields of the body have these values, and those that are not ended may have more.
fn read(subject: &MadeUpSubject, values: bool, has_ended: impl Fn(&Field) -> bool) -> MadeUpSubject {
    let payloads = payload_fields();
    let mut read = subject.clone();
    read.unsettled.retain(|(field, _)| !payloads.contains(field));
    if !values {
        read.fields.retain(|(field, _)| !payloads.contains(field));
    }
    read.unsettled
        .extend(payloads.into_iter().filter(|field| !has_ended(field)).map(|field| (field, Cause::Unread)));
    read
}

/// The same without values of some fields of the body; of the others one at least, and one of each that has one place.
fn with_values(mut subject: MadeUpSubject, absent: &[Field]) -> MadeUpSubject {
    for field in payload_fields() {
        if absent.contains(&field) {
            subject.fields.retain(|(name, _)| *name != field);
            continue;
        }
        if subject.values(&field).is_empty() {
            subject.add(&field, Value::Text(b"a"));
        }
        if !field.is_many_valued() {
            let first = subject.fields.iter().position(|(name, values)| *name == field && !values.is_empty());
            let (_, mut values) = subject.fields.swap_remove(first.expect("it has a value"));
            values.truncate(1);
            subject.fields.retain(|(name, _)| *name != field);
            subject.fields.push((field, values));
        }
    }
    subject
}

/// Programs some of whose blocks name fields of the body.
fn programs_that_await() -> impl Strategy<Value = Program> {
    let awaits = vec(proptest::option::weighted(0.2, subsequence(payload_fields(), 1..=2)), 16);
    (programs(), awaits).prop_map(|(mut program, awaits)| {
        let blocks = program.rules.iter_mut().flat_map(|rule| [&mut rule.then, &mut rule.otherwise]);
        for (block, fields) in blocks.zip(awaits) {
            block.awaits = fields.unwrap_or_default().into();
        }
        program
    })
}

fn cost_of<'c, 'p>(
    costs: &'c [BodyCost<'p>],
    program: &Program,
    decision: &Decision<'_>,
) -> &'c BodyCost<'p> {
    let rule = match decision.by {
        DecidedBy::Rule { index, .. } => index,
        DecidedBy::Nothing => RuleIndex(u32::try_from(program.rules.len() + 1).expect("few rules")),
    };
    costs.iter().find(|cost| cost.rule == rule).expect("what decides is asked")
}

proptest! {
    /// Nothing decides before what is said to be the earliest, nor later than the latest.
    #[test]
    fn what_is_said_of_costs_holds(
        program in programs_that_await(),
        subject in subjects(),
        absent in subsequence(payload_fields(), 0..=2),
    ) {
        let is_open = |value: &OwnedValue| matches!(value, OwnedValue::Unknown(Cause::Unread));
        prop_assume!(!subject.fields.iter().any(|(_, values)| values.iter().any(is_open)));
        let costs = program.costs_among(&[Kind::Json]);
        let is_said = |decision: &Decision<'_>| {
            !matches!(decision.outcome, Outcome::Waits | Outcome::Refused(_) | Outcome::RouteUnknown { .. })
        };

        let head = read(&subject, false, |_| false);
        let by_head = program.interpret(&head, |_| {});
        if is_said(&by_head) {
            prop_assert_eq!(cost_of(&costs, &program, &by_head).earliest.reach, Reach::Head);
        }

        let subject = with_values(subject, &absent);
        // A place that has one value has ended with it; of others more may come, and where there is none one may.
        let has_its_value = |field: &Field| !field.is_many_valued() && !absent.contains(field);
        let values = read(&subject, true, has_its_value);
        let by_values = program.interpret(&values, |_| {});
        if is_said(&by_values) {
            prop_assert!(cost_of(&costs, &program, &by_values).earliest.reach <= Reach::Value);
        }
        // The list has ended, the object around it goes on.
        let lists = read(&subject, true, |field| field.is_many_valued() || has_its_value(field));
        let by_lists = program.interpret(&lists, |_| {});
        if is_said(&by_lists) {
            prop_assert!(cost_of(&costs, &program, &by_lists).earliest.reach <= Reach::Scope);
        }
        let whole = read(&subject, true, |_| true);
        let decided = program.interpret(&whole, |_| {});
        if is_said(&decided) {
            let latest = cost_of(&costs, &program, &decided).latest.reach;
            for (reach, so_far) in [
                (Reach::Head, &read(&subject, false, |_| false)),
                (Reach::Value, &values),
                (Reach::Scope, &lists),
            ] {
                if latest <= reach {
                    let by_then = program.interpret(so_far, |_| {});
                    prop_assert_eq!(format!("{by_then:?}"), format!("{decided:?}"), "{:?}", reach);
                }
            }
        }
    }
}

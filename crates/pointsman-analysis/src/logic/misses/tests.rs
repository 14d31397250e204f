//! Whatever is said to reach a rule does.

use std::sync::Arc;

use pointsman_rules::{Truth, compile};
use pointsman_view::BodyPaths;
use proptest::prelude::*;

use super::*;
use crate::logic::question::{Answer, Question, Way};
use crate::logic::tests::{program, sources};
use crate::witness::with_all_values;

/// Some request, which a rule of the program sees.
fn request(program: &Arc<Program>, setting: &Setting, rule: u32, states: States) -> Option<Witness> {
    let mut analyst = Analyst::new(program, setting, Effort::new(100_000_000));
    match analyst.ask(Question { rule, states, removed: None, way: Way::Walk }) {
        Answer::Yes(witness) => Some(*witness),
        Answer::No(_) | Answer::Unknown(_) => None,
    }
}

fn found(program: &Arc<Program>, setting: &Setting, witness: &Witness, missed: Missed) -> Vec<Miss> {
    let paths = Arc::new(BodyPaths::new(program));
    let misses = with_all_values(program, &paths, witness, setting, |view| {
        misses(program, setting, view, missed, Effort::new(100_000_000))
    });
    misses.expect("a request").found
}

/// Whether the rule is asked about the request, and its condition true; and what the request has in a field.
fn check(program: &Arc<Program>, setting: &Setting, before: &Witness, miss: &Miss) {
    let paths = Arc::new(BodyPaths::new(program));
    let values_of = |witness: &Witness| {
        with_all_values(program, &paths, witness, setting, |view| {
            let fields = fields(program).into_iter();
            let values: Vec<_> = fields.map(|field| (field.clone(), values(view, field).known)).collect();
            let visited = program.explain(view).visited;
            let rule = visited.iter().find(|visited| visited.index == miss.rule);
            (values, rule.map(|rule| rule.result))
        })
    };
    let (old, _) = values_of(before).expect("a request");
    let (new, result) = values_of(&miss.witness).expect("a request");
    assert_eq!(result, Some(Truth::True), "{}", miss.witness);
    for ((field, old), (_, new)) in old.iter().zip(&new) {
        let change = miss.changes.iter().find(|change| change.field == *field);
        match change {
            None => assert_eq!(old, new, "{field}"),
            Some(change) => assert_eq!((&change.old, &change.new), (old, new), "{field}"),
        }
        assert!(change.is_none_or(|change| change.old != change.new && change.new_unsettled.is_none()));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases * 3 / 5))]
    #[test]
    fn what_is_said_to_reach_a_rule_does(source in sources(), from in 0_u32..7, to in 0_u32..7) {
        let (program, setting) = (program(&source), Setting::default());
        let Some(before) = request(&program, &setting, from, States::ALL) else { return Ok(()) };
        let closest = found(&program, &setting, &before, Missed::Closest(3));
        prop_assert!(closest.len() <= 3);
        let one = found(&program, &setting, &before, Missed::Rule(RuleIndex(to)));
        for miss in closest.iter().chain(&one) {
            check(&program, &setting, &before, miss);
        }
        // With few fields, whatever some request reaches is reached from any other.
        let is_reached = request(&program, &setting, to, States::TRUE).is_some();
        let is_rule = (to as usize) < program.rules.len();
        prop_assert!(one.is_empty() || is_reached, "{}", source);
        prop_assert!(!is_rule || !is_reached || !one.is_empty(), "{} {}\n{}", to, source, before);
    }
}

#[test]
fn as_few_fields_change_as_can_be() {
    let source = "R1: if (method == \"PUT\" && srcport > 5) { routeTo(a); }
                  R2: if (path == \"/a\" && method == \"POST\" || dstport == 81) { routeTo(b); }
                  R3: if (method != \"HEAD\") { routeTo(c); }
                  R4: if (host == \"x.example\") { routeTo(d); }
                  R5: if (dstport in [1..3, 4]) { routeTo(e); }";
    let compiled = compile(source, &pointsman_rules::Targets::Any).expect("a rule set");
    let (program, setting) = (Arc::new(compiled.program), Setting::default());
    let before = request(&program, &setting, 2, States::TRUE).expect("R3 is reached");
    for (rule, expected) in [
        (0, &["method"][..]),
        (1, &["dstport"]),
        (2, &[]),
        // R3 has to let it pass.
        (3, &["method", "host"]),
        (4, &["method", "dstport"]),
    ] {
        let found = found(&program, &setting, &before, Missed::Rule(RuleIndex(rule)));
        let fields: Vec<_> = found[0].changes.iter().map(|change| change.field.to_string()).collect();
        assert_eq!(fields, expected, "{rule}");
    }
}

/// What is asked of the rules about the request that `R1` takes.
fn asked(source: &str, missed: Missed, effort: Effort) -> (Vec<u32>, Option<InDoubt>) {
    let (program, setting) = (program(source), Setting::default());
    let before = request(&program, &setting, 0, States::TRUE).expect("R1 is reached");
    let paths = Arc::new(BodyPaths::new(&program));
    let misses = with_all_values(&program, &paths, &before, &setting, |view| {
        misses(&program, &setting, view, missed, effort)
    });
    let Misses { found, unknown } = misses.expect("a request");
    (found.iter().map(|miss| miss.rule.0).collect(), unknown)
}

/// A rule to which a request comes whatever the other fields are, and one of so many alternatives.
fn alternatives(count: usize) -> String {
    let part = |at| format!("path == \"/p{at}\" && host == \"h{at}\"");
    let parts: Vec<_> = (0..count).map(part).collect();
    format!(
        "if (srcport == 7) {{ routeTo(a); }}
         if ({}) {{ routeTo(b); }}
         if (path == \"/x\") {{ routeTo(c); }}",
        parts.join(" || ")
    )
}

/// What is not looked through is said to be so, and the other rules are found all the same.
#[test]
fn what_is_not_looked_through_is_said() {
    let left = |rules: &[u32], doubt| {
        let rules = rules.iter().map(|rule| RuleIndex(*rule)).collect();
        Some(InDoubt { rules, doubt })
    };
    let (all, one) = (Missed::Closest(3), Missed::Rule(RuleIndex(1)));
    let few = alternatives(20);
    let plenty = || Effort::new(u64::MAX);
    assert_eq!(asked(&few, all, plenty()), (vec![2, 1], None));
    // Of one rule it is too much, and of none are the fields that come closest known.
    assert_eq!(asked(&few, all, Effort::new(1_000)), (vec![2], left(&[1], Doubt::Steps)));
    assert_eq!(asked(&few, one, Effort::new(50)), (Vec::new(), left(&[1], Doubt::Steps)));
    assert_eq!(asked(&few, all, Effort::new(10)), (Vec::new(), left(&[], Doubt::Steps)));
    let late = plenty().until(|| true);
    assert_eq!(asked(&few, one, late.clone()), (Vec::new(), left(&[1], Doubt::Time)));
    assert_eq!(asked(&few, all, late), (Vec::new(), left(&[], Doubt::Time)));
    // A rule of which nothing can be true is looked through.
    let never = "if (path == \"/x\") { routeTo(a); }\nif (path == \"/a\" && path == \"/b\") { routeTo(b); }";
    assert_eq!(asked(never, all, plenty()), (Vec::new(), None));
    let fields =
        (0..FIELDS_MAX).map(|at| format!("header[\"h{at}\"] == \"1\"")).collect::<Vec<_>>().join(" || ");
    let fields = format!("if ({fields}) {{ routeTo(a); }}\nif (path == \"/x\") {{ routeTo(b); }}");
    assert_eq!(asked(&fields, all, plenty()), (Vec::new(), left(&[], Doubt::Many)));
    assert_eq!(asked(&fields, one, plenty()), (Vec::new(), left(&[1], Doubt::Many)));
}

/// What is made of a field that changes is not kept as it was.
#[test]
fn parts_follow_what_they_are_parts_of() {
    let source = "R1: if (cookie[\"c\"] == \"1\") { routeTo(a); }
                  R2: if (header[\"cookie\"] == \"c=2; c=2\") { routeTo(b); }
                  R3: if (query[\"k\"] == \"1\") { routeTo(c); }
                  R4: if (url == \"/b?k=2\" || query == \"k=3&k=4\") { routeTo(d); }";
    let (program, setting) = (program(source), Setting::default());
    for (from, to) in [(0, 1), (1, 0), (2, 3), (3, 2), (0, 3), (1, 3)] {
        let before = request(&program, &setting, from, States::TRUE).expect("a request");
        let found = found(&program, &setting, &before, Missed::Rule(RuleIndex(to)));
        assert_eq!(found.len(), 1, "from {from} to {to}\n{before}");
        check(&program, &setting, &before, &found[0]);
    }
}

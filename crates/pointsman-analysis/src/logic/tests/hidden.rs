//! Sets in which one question meets many rules, or many questions the same ones.

use std::fmt::Write as _;

use super::super::{Code, findings};
use super::program;
use crate::{Effort, Setting};

/// Far fewer than it takes to meet each rule alone.
const STEPS: u64 = 1_500_000;

/// Rules that take what any value of a body says, but for one value of a further field each: a request passes all of them
/// with all of these fields, and none passes two that name the same one.
fn rules(count: usize, fields: usize) -> String {
    let mut rules = String::new();
    for at in 0..count {
        let condition = format!("json.a[*] > {at} && !(json.b{} == \"x{at}\")", at % fields);
        writeln!(rules, "if ({condition}) {{ routeTo(p{at}); }}").expect("memory");
    }
    rules
}

#[test]
fn many_rules_are_met_at_once() {
    let (count, fields) = (120, 30);
    let program = program(&rules(count, fields));
    let found = findings(&program, &Setting::default(), Effort::new(STEPS));
    let doubts: Vec<_> = found.iter().filter(|finding| finding.code == Code::Unknown).collect();
    assert!(doubts.is_empty(), "{doubts:?}");
    let hidden: Vec<_> = found.iter().filter(|finding| finding.code == Code::Unreachable).collect();
    let rules: Vec<_> = hidden.iter().map(|finding| finding.rule.0 as usize).collect();
    assert_eq!(rules, (fields + 1..count).collect::<Vec<_>>());
    for finding in hidden {
        let others: Vec<_> = finding.others.iter().map(|other| other.0 as usize).collect();
        assert_eq!(others, [0, fields], "{}", finding.message);
    }
}

//! Numbers for the tests of a program: tests that ask the same have the same.

use std::collections::HashMap;

use super::asks::offset;
use crate::{Assertion, Condition, Field, Op, Over, Program, Rule, Test, pace};

/// What makes two tests one, wherever they stand.
#[derive(PartialEq, Eq, Hash)]
struct Identity<'r> {
    field: &'r Field,
    over: Over,
    fold_case: bool,
    op: &'r Op,
}

impl<'r> Identity<'r> {
    fn of(test: &'r Test) -> Identity<'r> {
        let Test { span: _, number: _, field, over, fold_case, op } = test;
        Identity { field, over: *over, fold_case: *fold_case, op }
    }
}

/// Gives each test its number, from 0 in the order in which they stand.
#[expect(clippy::mutable_key_type, reason = "of a regex only its text is compared, never its cache")]
pub(crate) fn number_tests(rules: &mut [Rule], fallback: &mut Option<Rule>) {
    let mut count = 0;
    for rule in pace::each(rules.iter().chain(fallback.iter())) {
        rule.condition.each_test(&mut |_| count += 1);
    }
    // At once as large as it may get: to grow, it would number all over again in one go.
    let mut known = HashMap::with_capacity(count);
    let mut numbers = Vec::with_capacity(count);
    for rule in pace::each(rules.iter().chain(fallback.iter())) {
        rule.condition.each_test(&mut |test| {
            let next = offset(known.len());
            numbers.push(*known.entry(Identity::of(test)).or_insert(next));
        });
    }
    drop(known);
    let mut numbers = numbers.into_iter();
    for rule in pace::each(rules.iter_mut().chain(fallback)) {
        give(&mut rule.condition, &mut numbers);
    }
}

/// The same for conditions beside a program: its tests keep their numbers, and further ones come behind them.
#[expect(clippy::mutable_key_type, reason = "of a regex only its text is compared, never its cache")]
pub(crate) fn number_further(program: &Program, assertions: &mut [Assertion]) {
    if assertions.is_empty() {
        return;
    }
    let mut known = HashMap::new();
    let mut numbers = Vec::new();
    for rule in pace::each(program.rules.iter().chain(&program.fallback)) {
        rule.condition.each_test(&mut |test| {
            known.insert(Identity::of(test), test.number);
        });
    }
    for assertion in assertions.iter() {
        assertion.condition.each_test(&mut |test| {
            let next = offset(known.len());
            numbers.push(*known.entry(Identity::of(test)).or_insert(next));
        });
    }
    drop(known);
    let mut numbers = numbers.into_iter();
    for assertion in assertions {
        give(&mut assertion.condition, &mut numbers);
    }
}

fn give(condition: &mut Condition, numbers: &mut impl Iterator<Item = u32>) {
    match condition {
        Condition::Always => {}
        Condition::Not(inner) => give(inner, numbers),
        Condition::And(parts) | Condition::Or(parts) => parts.iter_mut().for_each(|part| give(part, numbers)),
        Condition::Test(test) => test.number = numbers.next().unwrap_or(test.number),
    }
}

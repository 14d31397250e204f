//! Warnings about compiled rules that say something else than they seem to.

use std::collections::{HashMap, HashSet};

use super::head_of;
use crate::parser::shorten;
use crate::{
    Block, Condition, Diagnostic, Entry, Exit, Field, FieldType, Findings, OnUnknown, Op, Order, Over,
    Program, Rule, Severity, Span, Terminal, Test, pace,
};

/// Looks at one rule.
pub(super) fn rule(rule: &Rule, on_unknown: OnUnknown, findings: &mut Findings) {
    intervals(&rule.condition, findings);
    if on_unknown == OnUnknown::Skip && (refuses(&rule.then) || refuses(&rule.otherwise)) {
        findings.extend(may_end_unknown(&rule.condition).map(skipped_refusal));
    }
    let signs = [(Sign::Plain, &rule.then), (Sign::Denied, &rule.otherwise)];
    for (sign, _) in signs.into_iter().filter(|(_, block)| refuses(block)) {
        let mut asked = HashSet::new();
        asked_for(&rule.condition, &mut asked);
        absent_differs(&rule.condition, sign, &asked, findings);
    }
}

/// Warns where a rule takes every request, and others stand behind it. Jumps over it are the way around it.
pub(super) fn order(rules: &[Rule], source: &str, findings: &mut Findings) {
    let mut furthest = 0;
    for ((index, rule), next) in (0..).zip(pace::each(rules)).zip(rules.iter().skip(1)) {
        for block in [&rule.then, &rule.otherwise] {
            if let Exit::Goto(to) = block.exit {
                furthest = furthest.max(to.0);
            }
        }
        let takes_all = matches!((&rule.condition, &rule.then.exit), (Condition::Always, Exit::Terminal(_)));
        if takes_all && furthest <= index {
            let message = format!("no request gets past `{}`", shorten(&rule.label));
            let help = format!("`{}` and what follows is never asked; move it up", shorten(&next.label));
            findings.add(Diagnostic::warning(head_of(next.span, source), message).help(help));
            return;
        }
    }
}

/// Notes which rules no field tells apart, so that a request may be asked about all of them.
pub(super) fn separation(program: &Program, source: &str, findings: &mut Findings) {
    for group in &program.certificate().unseparated {
        let [first, last] = [group.first, group.last].map(|index| program.rule(index));
        let (Some(first), Some(last)) = (first, last) else { continue };
        let [from, to] = [first, last].map(|rule| shorten(&rule.label));
        let count = group.rules;
        let shared = match group.shared.last() {
            Some(test) => format!("; all may hold where `{}` does", shorten(test.of(source))),
            None => String::new(),
        };
        let message = format!("{count} rules from `{from}` to `{to}` are asked one by one{shared}");
        let help = "add a test to each that few of them share, such as `host == …` or `path under …`";
        let finding = Diagnostic::warning(head_of(first.span, source), message).help(help);
        findings.add(Diagnostic { severity: Severity::Note, ..finding });
    }
}

/// The first test of a condition that a client can keep from being true or false.
fn may_end_unknown(condition: &Condition) -> Option<&Test> {
    match condition {
        Condition::Always => None,
        Condition::Not(inner) => may_end_unknown(inner),
        Condition::And(parts) | Condition::Or(parts) => parts.iter().find_map(may_end_unknown),
        Condition::Test(test) => {
            let repeats = test.over == Over::Once && test.field.is_many_valued();
            let reads_number = test.over != Over::Count && test.field.value_type() == FieldType::Text;
            (repeats || reads_number && test.op.takes_number()).then_some(test)
        }
    }
}

/// `on_unknown skip` lets a request pass that could not be judged.
fn skipped_refusal(test: &Test) -> Diagnostic {
    let field = &test.field;
    let why = match test.op.takes_number() {
        true => format!("`{field}` is no number"),
        false => format!("`{field}` comes twice"),
    };
    let message = format!("where {why} this rule is skipped, and refuses nothing");
    Diagnostic::warning(test.span, message).help("`on_unknown reject;` refuses what cannot be judged")
}

fn refuses(block: &Block) -> bool {
    matches!(block.exit, Exit::Terminal(Terminal::Reject { .. } | Terminal::Reset | Terminal::Discard))
}

impl Op {
    /// Whether a value is read as a number, which a text need not be.
    fn takes_number(&self) -> bool {
        match self {
            Op::NumberEquals(_) | Op::NumberDiffers(_) | Op::NumberOrder(..) => true,
            Op::In(entries) => {
                entries.iter().any(|entry| matches!(entry, Entry::Number(_) | Entry::NumberRange { .. }))
            }
            _ => false,
        }
    }
}

/// Whether the condition itself must hold for the block in question, or its opposite.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sign {
    Plain,
    Denied,
}

/// A refusal that rests on `!=` lets a request pass that lacks the field.
fn absent_differs(condition: &Condition, sign: Sign, asked: &HashSet<&Field>, findings: &mut Findings) {
    match condition {
        Condition::Always => {}
        Condition::Not(inner) => {
            let other = if sign == Sign::Plain { Sign::Denied } else { Sign::Plain };
            absent_differs(inner, other, asked, findings);
        }
        Condition::And(parts) | Condition::Or(parts) => {
            for part in parts {
                absent_differs(part, sign, asked, findings);
            }
        }
        Condition::Test(test) => {
            let differs = matches!(test.op, Op::TextDiffers(_) | Op::NumberDiffers(_) | Op::IpNotIn(_));
            let plain = sign == Sign::Plain && differs && test.over != Over::Count;
            if plain && test.field.may_be_absent() && !asked.contains(&test.field) {
                let field = &test.field;
                let message =
                    format!("`!=` is false where `{field}` is absent: such a request is not refused here");
                let help = format!("write `!({field} == …)`, or say `{field} exists` as well");
                findings.add(Diagnostic::warning(test.span, message).help(help));
            }
        }
    }
}

/// The fields of whose absence a condition thinks.
fn asked_for<'c>(condition: &'c Condition, asked: &mut HashSet<&'c Field>) {
    condition.each_test(&mut |test| {
        if matches!(test.op, Op::Exists) {
            asked.insert(&test.field);
        }
    });
}

/// `f > 3 && f < 5` holds of a field with the values 1 and 9.
fn intervals(condition: &Condition, findings: &mut Findings) {
    match condition {
        Condition::Always | Condition::Test(_) => {}
        Condition::Not(inner) => intervals(inner, findings),
        Condition::Or(parts) => parts.iter().for_each(|part| intervals(part, findings)),
        Condition::And(parts) => {
            parts.iter().for_each(|part| intervals(part, findings));
            let bounds = parts.iter().filter_map(bound);
            let (lower, upper): (Vec<_>, Vec<_>) = bounds.partition(|(_, is_lower)| *is_lower);
            let upper: HashMap<&Field, &Test> =
                upper.into_iter().map(|(test, _)| (&test.field, test)).collect();
            for (test, _) in lower {
                if let Some(other) = upper.get(&test.field) {
                    findings.add(interval(test, other));
                }
            }
        }
    }
}

/// A comparison that bounds a many-valued field, and whether from below.
fn bound(condition: &Condition) -> Option<(&Test, bool)> {
    let Condition::Test(test) = condition else { return None };
    let (Op::NumberOrder(order, _) | Op::TextOrder(order, _) | Op::IpOrder(order, _)) = &test.op else {
        return None;
    };
    if test.over != Over::Any || !test.field.is_many_valued() {
        return None;
    }
    Some((test, matches!(order, Order::Greater | Order::GreaterOrEqual)))
}

fn interval(one: &Test, other: &Test) -> Diagnostic {
    let span = Span { start: one.span.start.min(other.span.start), end: one.span.end.max(other.span.end) };
    let field = &one.field;
    let message =
        format!("`{field}` may have several values, and different ones may satisfy the two comparisons");
    let help = format!("write `{field} in (a..b)`, or `in a..b` with the bounds, if one value is meant");
    Diagnostic::warning(span, message).help(help)
}

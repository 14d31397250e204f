//! Why a subject was decided as it was: the walk of a decision, written down.

use std::ops::ControlFlow;

use crate::decide::{Destination, Step, Visit};
use crate::subject::TextRoom;
use crate::{Cause, Condition, Decision, Field, Program, RuleIndex, Span, Subject, Test, Truth, Value};

/// Longest spelling of a value in an explanation, its escapes counted.
pub const SHOWN_VALUE_BYTES_MAX: usize = 200;

/// Most values of one field in an explanation.
pub const SHOWN_VALUES_MAX: usize = 8;

/// Most tests of one condition in an explanation.
pub const SHOWN_TESTS_MAX: usize = 100;

/// A decision and the way to it.
#[derive(Clone, Debug)]
pub struct Explanation<'r> {
    /// Every rule that was visited, in order; the last is the one that decided, if one did.
    pub visited: Vec<VisitedRule<'r>>,
    /// What [`Program::decide`] says.
    pub decision: Decision<'r>,
}

/// A rule on the way to a decision.
#[derive(Clone, Debug)]
pub struct VisitedRule<'r> {
    /// Its position.
    pub index: RuleIndex,
    /// Its label.
    pub label: &'r str,
    /// Where it stands in the source.
    pub span: Span,
    /// What its condition came to.
    pub result: Truth,
    /// The test that kept it from being true; nothing for a condition that is true.
    pub culprit: Option<Culprit<'r>>,
    /// What happened after it.
    pub exit: VisitedExit,
}

/// A test of a condition, and what it has seen: of a rule the first one that kept its condition from being true.
#[derive(Clone, Debug)]
pub struct Culprit<'r> {
    /// Where it stands in the source.
    pub span: Span,
    /// What it compares.
    pub field: &'r Field,
    /// What it came to: true if the condition negates it, otherwise false or unknown.
    pub result: Truth,
    /// The values the field had, at most [`SHOWN_VALUES_MAX`].
    pub values: Vec<ShownValue>,
    /// How many more values it had.
    pub values_left_out: usize,
    /// Why the field may have values beyond these.
    pub unsettled: Option<Cause>,
}

/// A value of a field, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShownValue {
    /// Its text, escaped and cut.
    Text(String),
    /// It is there, and compares with nothing: JSON's `null`, an object or an array.
    Nothing,
    /// It is there, and what it is cannot be said.
    Unknown(Cause),
}

/// What happened after a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VisitedExit {
    /// The next rule was visited.
    Next,
    /// Its condition ended unknown, and the policy skips such rules.
    Skipped,
    /// A rule further on was visited.
    Goto(RuleIndex),
    /// It was decided.
    Decided,
}

impl Program {
    /// What [`Program::decide`] says about `subject`, and why.
    pub fn explain<S: Subject + ?Sized>(&self, subject: &S) -> Explanation<'_> {
        let mut visited = Vec::new();
        let decision = self.interpret(subject, |visit| visited.push(visited_rule(&visit, subject)));
        Explanation { visited, decision }
    }
}

impl VisitedRule<'_> {
    /// What each test of its condition has seen, in the order of the text, at most [`SHOWN_TESTS_MAX`], and how many more
    /// there are. Tests that made no difference are among them.
    pub fn seen<'r, S: Subject + ?Sized>(
        &self,
        program: &'r Program,
        subject: &S,
    ) -> (Vec<Culprit<'r>>, usize) {
        let (mut seen, mut left_out) = (Vec::new(), 0);
        if let Some(rule) = program.rule(self.index) {
            rule.condition.each_test(&mut |test| match seen.len() {
                0..SHOWN_TESTS_MAX => seen.push(culprit_of(test, test.eval(subject), subject)),
                _ => left_out += 1,
            });
        }
        (seen, left_out)
    }
}

fn visited_rule<'r, S: Subject + ?Sized>(visit: &Visit<'r>, subject: &S) -> VisitedRule<'r> {
    let culprit = match visit.truth {
        Truth::True => None,
        result => blame(&visit.rule.condition, result, subject),
    };
    VisitedRule {
        index: visit.index,
        label: &visit.rule.label,
        span: visit.rule.span,
        result: visit.truth,
        culprit: culprit.map(|(test, result)| culprit_of(test, result, subject)),
        exit: match (visit.step, visit.step.destination()) {
            (Step::Skip, _) => VisitedExit::Skipped,
            (_, Destination::Next) => VisitedExit::Next,
            (_, Destination::Rule(target)) => VisitedExit::Goto(target),
            (_, Destination::Decided(_)) => VisitedExit::Decided,
        },
    }
}

/// The first test that accounts for `result`: the first part of the same result, all the way
/// down. An `&&` is false, and an `||` true, by its first part of that value; for the other
/// values every part agrees or is neutral, so that the first of the same value is as good.
fn blame<'r, S: Subject + ?Sized>(
    condition: &'r Condition,
    result: Truth,
    subject: &S,
) -> Option<(&'r Test, Truth)> {
    match condition {
        Condition::Always => None,
        Condition::Not(inner) => blame(inner, !result, subject),
        Condition::And(parts) | Condition::Or(parts) => parts
            .iter()
            .filter(|part| part.eval(subject) == result)
            .find_map(|part| blame(part, result, subject)),
        Condition::Test(test) => Some((test, result)),
    }
}

fn culprit_of<'r, S: Subject + ?Sized>(test: &'r Test, result: Truth, subject: &S) -> Culprit<'r> {
    let mut values = Vec::new();
    let mut values_left_out = 0_usize;
    subject.each(&test.field, &mut |value| {
        if values.len() < SHOWN_VALUES_MAX {
            values.push(match value {
                Value::Nothing => ShownValue::Nothing,
                Value::Unknown(cause) => ShownValue::Unknown(cause),
                value => ShownValue::Text(shown(value.text(&mut TextRoom::default()))),
            });
        } else {
            values_left_out += 1;
        }
        ControlFlow::Continue(())
    });
    if let Some(evidence) = subject.evidence() {
        let left_out = evidence.values_left_out(&test.field);
        values_left_out = values_left_out.saturating_add(usize::try_from(left_out).unwrap_or(usize::MAX));
    }
    let unsettled = subject.unsettled(&test.field);
    Culprit { span: test.span, field: &test.field, result, values, values_left_out, unsettled }
}

/// Escapes what a terminal could mistake for something else, and cuts what is too long.
fn shown(text: &[u8]) -> String {
    let mut shown = String::new();
    for chunk in text.utf8_chunks() {
        let valid = chunk.valid().chars().map(|c| match c {
            // Quotes are no danger, and read better as they are.
            '"' | '\'' => c.to_string(),
            _ => c.escape_debug().to_string(),
        });
        let invalid = chunk.invalid().iter().map(|byte| format!("\\x{byte:02x}"));
        for piece in valid.chain(invalid) {
            if shown.len() + piece.len() > SHOWN_VALUE_BYTES_MAX {
                shown.push('…');
                return shown;
            }
            shown.push_str(&piece);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::generated::{MadeUpSubject, programs, subjects};
    use crate::subject::OwnedValue;
    use crate::{Block, DecidedBy, OnUnknown, Op, Over, Rule, Targets, Truths, compile};

    fn equals(start: u32, literal: &str) -> Condition {
        Condition::Test(Test {
            number: 0,
            span: Span { start, end: start + 1 },
            field: Field::Host,
            over: Over::Any,
            fold_case: false,
            op: Op::TextEquals(literal.as_bytes().into()),
        })
    }

    /// The start of the span of the test that is blamed, and what it came to.
    fn check(condition: Condition, expected: Option<(u32, Truth)>) {
        let rule = Rule {
            label: "R".into(),
            span: Span::default(),
            condition,
            then: Block::default(),
            otherwise: Block::default(),
        };
        let program = Program::new(vec![rule], None, OnUnknown::Reject, vec![]);
        let subject = MadeUpSubject::of(Field::Host, OwnedValue::Text((*b"a").into()));
        let explanation = program.explain(&subject);
        let culprit = explanation.visited[0].culprit.as_ref();
        assert_eq!(culprit.map(|culprit| (culprit.span.start, culprit.result)), expected);
        assert!(culprit.is_none_or(|culprit| culprit.values == [ShownValue::Text("a".to_owned())]));
    }

    #[test]
    fn the_first_test_that_failed_is_named() {
        let not = |inner| Condition::Not(Box::new(inner));
        check(equals(1, "a"), None);
        check(equals(1, "b"), Some((1, Truth::False)));
        check(Condition::And(vec![equals(1, "a"), equals(2, "b"), equals(3, "c")]), Some((2, Truth::False)));
        check(Condition::Or(vec![equals(1, "x"), equals(2, "b")]), Some((1, Truth::False)));
        check(not(equals(1, "a")), Some((1, Truth::True)));
        check(not(Condition::Or(vec![equals(1, "b"), equals(2, "a")])), Some((2, Truth::True)));
        check(not(Condition::Always), None);
    }

    #[test]
    fn all_tests_are_told_up_to_a_limit() {
        let many = |number: usize| {
            let tests = (0..number)
                .map(|n| if n == 1 { "host == \"a\"".to_owned() } else { format!("host == \"{n}\"") });
            format!("R1: if ({}) {{ reject(); }}", tests.collect::<Vec<_>>().join(" || "))
        };
        let subject = MadeUpSubject::of(Field::Host, OwnedValue::Text((*b"a").into()));
        for (number, left_out) in [(2, 0), (SHOWN_TESTS_MAX, 0), (SHOWN_TESTS_MAX + 7, 7)] {
            let source = many(number);
            let program = compile(&source, &Targets::Any).expect("rules").program;
            let explanation = program.explain(&subject);
            let (seen, more) = explanation.visited[0].seen(&program, &subject);
            assert_eq!((seen.len(), more), (number - left_out, left_out));
            // Behind the one that is true, too.
            let results: Vec<_> = seen.iter().take(3).map(|seen| seen.result == Truth::True).collect();
            assert_eq!(results, [false, true, false][..results.len()]);
            assert_eq!(seen[1].span.of(&source), "host == \"a\"");
            assert!(seen.iter().all(|seen| seen.values == [ShownValue::Text("a".to_owned())]));
        }
    }

    #[test]
    fn values_are_escaped_and_cut() {
        assert_eq!(
            shown(b"a \"b\" \r\n\x1b[0m \xff \xe2\x80\xae \xc3\xa9"),
            "a \"b\" \\r\\n\\u{1b}[0m \\xff \\u{202e} \u{e9}"
        );
        let long = shown(&[b'x'; 500]);
        assert_eq!(long.len(), SHOWN_VALUE_BYTES_MAX + "…".len());
        assert!(long.ends_with("x…"));
        assert!(shown(&[0; 500]).len() <= SHOWN_VALUE_BYTES_MAX + "…".len());
        assert_eq!(shown(&[b'x'; SHOWN_VALUE_BYTES_MAX]).len(), SHOWN_VALUE_BYTES_MAX);
    }

    proptest! {
        #[test]
        fn explain_agrees_with_decide(program in programs(), subject in subjects()) {
            let explanation = program.explain(&subject);
            let decision = program.decide(&subject, &mut Truths::default());
            prop_assert_eq!(format!("{:?}", &explanation.decision), format!("{:?}", &decision));
            let last = explanation.visited.last();
            match decision.by {
                DecidedBy::Rule { index, .. } => prop_assert_eq!(
                    last.map(|last| (last.index, last.exit)),
                    Some((index, VisitedExit::Decided))
                ),
                DecidedBy::Nothing => prop_assert!(last.is_none_or(|last| last.exit != VisitedExit::Decided)),
            }
            prop_assert!(explanation.visited.is_sorted_by(|a, b| a.index < b.index));
            for visited in &explanation.visited {
                prop_assert!(visited.result != Truth::True || visited.culprit.is_none());
            }
        }
    }
}

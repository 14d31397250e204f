//! A condition over a subject, in three-valued logic. Slow and obvious: what it says, holds.

use std::ops::ControlFlow;

use crate::{Cause, Condition, Field, Over, Subject, Test, Truth, Value};

impl Condition {
    /// What the condition comes to: slow and obvious. The nesting was bounded when the text was read.
    pub fn eval<S: Subject + ?Sized>(&self, subject: &S) -> Truth {
        match self {
            Condition::Always => Truth::True,
            Condition::Not(inner) => !inner.eval(subject),
            Condition::And(parts) => {
                let mut result = Truth::True;
                for part in parts {
                    result = result.and(part.eval(subject));
                    if result == Truth::False {
                        break;
                    }
                }
                result
            }
            Condition::Or(parts) => {
                let mut result = Truth::False;
                for part in parts {
                    result = result.or(part.eval(subject));
                    if result == Truth::True {
                        break;
                    }
                }
                result
            }
            Condition::Test(test) => test.eval(subject),
        }
    }
}

impl Test {
    /// What the comparison comes to over the field's values: slow and obvious.
    // Few rules are all tests, and a call for each is a tenth of what deciding takes.
    #[inline(always)]
    pub fn eval<S: Subject + ?Sized>(&self, subject: &S) -> Truth {
        if let Field::Payload(payload) = &self.field
            && let Some(evidence) = subject.evidence()
        {
            return evidence.truth(self, payload.id);
        }
        if let Some(value) = subject.only(&self.field) {
            return self.holds(if self.over == Over::Count { Value::Integer(1) } else { value });
        }
        match self.over {
            Over::Any => self.any(subject),
            Over::All => self.all(subject),
            Over::First => self.first(subject),
            Over::Once => self.once(subject),
            Over::Count => self.count(subject),
        }
    }

    fn any<S: Subject + ?Sized>(&self, subject: &S) -> Truth {
        let mut result = Truth::False;
        subject.each(&self.field, &mut |value| {
            result = result.or(self.holds(value));
            break_if(result == Truth::True)
        });
        match self.unsettled(subject) {
            Some(unknown) if result != Truth::True => result.or(unknown),
            _ => result,
        }
    }

    fn all<S: Subject + ?Sized>(&self, subject: &S) -> Truth {
        let mut result = None;
        subject.each(&self.field, &mut |value| {
            let so_far = result.unwrap_or(Truth::True).and(self.holds(value));
            result = Some(so_far);
            break_if(so_far == Truth::False)
        });
        match self.unsettled(subject) {
            // Without a value the field may yet be absent, which would make it false.
            Some(unknown) => result.unwrap_or(Truth::True).and(unknown),
            None => result.unwrap_or(Truth::False),
        }
    }

    fn first<S: Subject + ?Sized>(&self, subject: &S) -> Truth {
        let mut first = None;
        subject.each(&self.field, &mut |value| {
            first = Some(self.holds(value));
            ControlFlow::Break(())
        });
        first.unwrap_or_else(|| self.unsettled(subject).unwrap_or(Truth::False))
    }

    fn once<S: Subject + ?Sized>(&self, subject: &S) -> Truth {
        let mut seen = 0_u32;
        let mut result = Truth::False;
        subject.each(&self.field, &mut |value| {
            seen += 1;
            result = if seen == 1 { self.holds(value) } else { Truth::Unknown(Cause::Duplicate) };
            break_if(seen == 2)
        });
        match self.unsettled(subject) {
            Some(unknown) if seen < 2 => unknown,
            _ => result,
        }
    }

    fn count<S: Subject + ?Sized>(&self, subject: &S) -> Truth {
        let mut count = 0_u64;
        subject.each(&self.field, &mut |_| {
            count += 1;
            ControlFlow::Continue(())
        });
        self.unsettled(subject).unwrap_or_else(|| self.holds(Value::Integer(count)))
    }

    /// Which test of its program it is, from 0; tests that ask the same are one.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.number
    }

    /// What one more value makes of a test that asks all of them, behind those before it.
    pub(crate) fn add(&self, value: Value<'_>, so_far: &mut Option<Truth>) {
        let settled = if self.over == Over::All { Truth::False } else { Truth::True };
        *so_far = Some(match *so_far {
            Some(truth) if truth == settled => truth,
            None => self.holds(value),
            Some(truth) if self.over == Over::All => truth.and(self.holds(value)),
            Some(truth) => truth.or(self.holds(value)),
        });
    }

    /// What the comparison comes to for one value.
    #[must_use]
    pub fn holds(&self, value: Value<'_>) -> Truth {
        self.op.holds(value, self.fold_case)
    }

    fn unsettled<S: Subject + ?Sized>(&self, subject: &S) -> Option<Truth> {
        subject.unsettled(&self.field).map(Truth::Unknown)
    }
}

fn break_if(done: bool) -> ControlFlow<()> {
    if done { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::generated::{MadeUpSubject, conditions, subjects};
    use crate::subject::OwnedValue;
    use crate::{Field, Op, Span};

    /// The definition of each quantifier, over all values at once.
    fn slow_test(test: &Test, subject: &MadeUpSubject) -> Truth {
        let values = subject.values(&test.field);
        let each = values.iter().map(|value| test.op.holds(*value, test.fold_case));
        let beyond = subject.unsettled(&test.field).map(Truth::Unknown);
        match (test.over, beyond) {
            (Over::Any, beyond) => each.chain(beyond).fold(Truth::False, Truth::or),
            (Over::All, None) if values.is_empty() => Truth::False,
            (Over::All, beyond) => each.chain(beyond).fold(Truth::True, Truth::and),
            (Over::First, beyond) => each.chain(beyond).next().unwrap_or(Truth::False),
            (Over::Once, _) if values.len() > 1 => Truth::Unknown(Cause::Duplicate),
            (Over::Once, beyond) => beyond.or_else(|| each.into_iter().next()).unwrap_or(Truth::False),
            (Over::Count, Some(beyond)) => beyond,
            (Over::Count, None) => test.op.holds(Value::Integer(values.len() as u64), false),
        }
    }

    fn slow_eval(condition: &Condition, subject: &MadeUpSubject) -> Truth {
        let all = |parts: &[Condition]| parts.iter().map(|part| slow_eval(part, subject)).collect::<Vec<_>>();
        match condition {
            Condition::Always => Truth::True,
            Condition::Not(inner) => !slow_eval(inner, subject),
            Condition::And(parts) => all(parts).into_iter().fold(Truth::True, Truth::and),
            Condition::Or(parts) => all(parts).into_iter().fold(Truth::False, Truth::or),
            Condition::Test(test) => slow_test(test, subject),
        }
    }

    fn check(over: Over, values: &[&str], expected: impl Into<Truth>) {
        check_with(over, values, None, expected.into());
    }

    fn check_with(over: Over, values: &[&str], unsettled: Option<Cause>, expected: Truth) {
        let test = Test {
            number: 0,
            span: Span::default(),
            field: Field::Host,
            over,
            fold_case: false,
            op: Op::NumberOrder(crate::Order::Greater, 1.into()),
        };
        let values = values.iter().map(|value| OwnedValue::Text(value.as_bytes().into())).collect();
        let unsettled = unsettled.map(|cause| (Field::Host, cause)).into_iter().collect();
        let subject = MadeUpSubject { fields: vec![(Field::Host, values)], unsettled };
        assert_eq!(test.eval(&subject), expected, "{over:?} {subject:?}");
    }

    #[test]
    fn quantifiers_by_example() {
        const UNKNOWN: Truth = Truth::Unknown(Cause::NotANumber);
        check(Over::Any, &[], false);
        check(Over::Any, &["x", "2"], true);
        check(Over::Any, &["x", "1"], UNKNOWN);
        check(Over::All, &[], false);
        check(Over::All, &["x", "1"], false);
        check(Over::All, &["2", "x"], UNKNOWN);
        check(Over::All, &["2", "3"], true);
        check(Over::First, &["2", "x"], true);
        check(Over::First, &["x", "2"], UNKNOWN);
        check(Over::First, &[], false);
        check(Over::Once, &["2"], true);
        check(Over::Once, &["2", "2"], Truth::Unknown(Cause::Duplicate));
        check(Over::Once, &[], false);
        check(Over::Count, &["x", "y"], true);
        check(Over::Count, &[], false);
    }

    /// What was seen decides where it can; otherwise what could not be seen is the cause.
    #[test]
    fn quantifiers_over_a_field_that_is_unsettled() {
        const LIMIT: Truth = Truth::Unknown(Cause::Limit);
        for (over, values, expected) in [
            (Over::Any, &["2"][..], Truth::True),
            (Over::Any, &["1"], LIMIT),
            (Over::Any, &[], LIMIT),
            (Over::All, &["1"], Truth::False),
            (Over::All, &["2"], LIMIT),
            (Over::All, &[], LIMIT),
            (Over::First, &["1"], Truth::False),
            (Over::First, &[], LIMIT),
            (Over::Once, &["2"], LIMIT),
            (Over::Once, &["2", "2"], Truth::Unknown(Cause::Duplicate)),
            (Over::Count, &["2", "2"], LIMIT),
        ] {
            check_with(over, values, Some(Cause::Limit), expected);
        }
    }

    #[test]
    fn a_comparison_with_an_absent_field_is_false_and_its_negation_true() {
        let differs = Test {
            number: 0,
            span: Span::default(),
            field: Field::Host,
            over: Over::Any,
            fold_case: false,
            op: Op::TextDiffers(b"x"[..].into()),
        };
        let absent = MadeUpSubject::default();
        assert_eq!(differs.eval(&absent), Truth::False);
        assert_eq!(Condition::Not(Box::new(Condition::Test(differs))).eval(&absent), Truth::True);
    }

    proptest! {
        #[test]
        fn stopping_early_changes_nothing(condition in conditions(), subject in subjects()) {
            prop_assert_eq!(condition.eval(&subject), slow_eval(&condition, &subject));
        }

        #[test]
        fn de_morgan(a in conditions(), b in conditions(), subject in subjects()) {
            let not = |inner| Condition::Not(Box::new(inner));
            let parts = (a.eval(&subject), b.eval(&subject));
            let negated_and = not(Condition::And(vec![a, b])).eval(&subject);
            prop_assert_eq!(negated_and, (!parts.0).or(!parts.1));
        }
    }
}

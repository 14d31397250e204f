//! Which fields a rule lacks that waits.

use std::ops::ControlFlow;

use crate::{Condition, Field, Rule, Subject, Truth, Value};

impl Rule {
    /// The fields of which more must become known before the rule can be left, each once, in the order of the text.
    /// None where nothing is left to wait for.
    pub fn wanting<S: Subject + ?Sized>(&self, subject: &S) -> Vec<&Field> {
        let mut fields = Vec::new();
        let block = match self.condition.eval(subject) {
            Truth::True => &self.then,
            Truth::False => &self.otherwise,
            Truth::Unknown(_) => {
                self.condition.wanting(subject, &mut fields);
                return fields;
            }
        };
        for field in &block.awaits {
            let mut is_known = subject.unsettled(field).is_none();
            subject.each(field, &mut |value| {
                is_known = !matches!(value, Value::Unknown(_));
                ControlFlow::Break(())
            });
            if !is_known {
                add(field, &mut fields);
            }
        }
        fields
    }
}

impl Condition {
    /// Parts that are known are neutral where the whole is not, or they would have settled it. The nesting was bounded
    /// when the text was read.
    fn wanting<'c, S: Subject + ?Sized>(&'c self, subject: &S, fields: &mut Vec<&'c Field>) {
        if !self.eval(subject).is_unread() {
            return;
        }
        match self {
            Condition::Always => {}
            Condition::Not(inner) => inner.wanting(subject, fields),
            Condition::And(parts) | Condition::Or(parts) => {
                parts.iter().for_each(|part| part.wanting(subject, fields));
            }
            Condition::Test(test) => add(&test.field, fields),
        }
    }
}

fn add<'c>(field: &'c Field, fields: &mut Vec<&'c Field>) {
    if !fields.contains(&field) {
        fields.push(field);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::generated::{MadeUpSubject, programs, subjects};
    use crate::{Cause, DecidedBy, Outcome, Targets, compile};

    #[test]
    fn what_is_lacking_is_named_once() {
        let subject = MadeUpSubject {
            unsettled: vec![(Field::Path, Cause::Unread), (Field::Method, Cause::Unread)],
            ..MadeUpSubject::default()
        };
        for (condition, expected) in [
            ("path == \"/\"", vec!["path"]),
            ("path == \"/\" || method == \"GET\" || !(path == \"/b\")", vec!["path", "method"]),
            ("host == \"a\" || path == \"/\"", vec!["path"]),
            ("(host == \"a\" && method == \"GET\") || path == \"/\"", vec!["path"]),
            ("host == \"a\" && path == \"/\"", vec![]),
            ("!(host exists) || path == \"/\"", vec![]),
        ] {
            let rules = format!("if ({condition}) {{ reject(); }}");
            let program = compile(&rules, &Targets::Any).expect("a rule set").program;
            let fields: Vec<_> = program.rules[0].wanting(&subject).iter().map(ToString::to_string).collect();
            assert_eq!(fields, expected, "{condition}");
        }
    }

    proptest! {
        /// A rule at which a decision waits lacks something, and all that it lacks is unsettled.
        #[test]
        fn a_decision_that_waits_lacks_something(program in programs(), subject in subjects()) {
            let decision = program.decide_plainly(&subject);
            let DecidedBy::Rule { index, .. } = decision.by else { return Ok(()) };
            if let Outcome::Waits = decision.outcome {
                let fields = program.rule(index).expect("it decided").wanting(&subject);
                prop_assert!(!fields.is_empty());
                for field in fields {
                    prop_assert!(subject.unsettled(field).is_some() || has_unread_value(field, &subject));
                }
            }
        }
    }

    fn has_unread_value(field: &Field, subject: &MadeUpSubject) -> bool {
        let mut found = false;
        subject.each(field, &mut |value| {
            found |= value == crate::Value::Unknown(Cause::Unread);
            ControlFlow::Continue(())
        });
        found
    }
}

//! Which fields of the body a request may be refused by.

use std::collections::BTreeSet;

use crate::{Condition, Exit, Field, PayloadId, Program, Terminal, Validate};

impl Program {
    /// The fields of the body that a rule asks whose block rejects or discards, or jumps to a rule that does.
    #[must_use]
    pub fn rejecting_payloads(&self) -> BTreeSet<PayloadId> {
        let mut rejects = vec![false; self.rules.len()];
        // Jumps go forward, so that what a rule leads to is known before it.
        for (index, rule) in self.rules.iter().enumerate().rev() {
            rejects[index] = [&rule.then, &rule.otherwise].iter().any(|block| match &block.exit {
                Exit::Terminal(terminal) => matches!(terminal, Terminal::Reject { .. } | Terminal::Discard),
                Exit::Goto(target) => rejects.get(target.0 as usize).copied().unwrap_or_default(),
                Exit::Next => false,
            });
        }
        let rejecting = self.rules.iter().zip(rejects).filter(|(_, rejects)| *rejects);
        let mut payloads = BTreeSet::new();
        rejecting.for_each(|(rule, _)| gather(&rule.condition, &mut payloads));
        payloads
    }

    /// As the rules say, or else in full where a request may be refused by what its body says.
    pub(crate) fn validate_by_default(&self) -> Validate {
        if self.rejecting_payloads().is_empty() { Validate::Stream } else { Validate::Full }
    }
}

fn gather(condition: &Condition, payloads: &mut BTreeSet<PayloadId>) {
    match condition {
        Condition::Always => {}
        Condition::Not(inner) => gather(inner, payloads),
        Condition::And(parts) | Condition::Or(parts) => {
            parts.iter().for_each(|part| gather(part, payloads));
        }
        Condition::Test(test) => {
            if let Field::Payload(payload) = &test.field {
                payloads.insert(payload.id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Targets, compile};

    #[track_caller]
    fn check(rules: &str, expected: &[&str], validate: Validate) {
        let program = compile(rules, &Targets::Any).expect("a rule set").program;
        let found = program.rejecting_payloads();
        let found: Vec<_> = found.iter().map(|id| &*program.payloads[id.0 as usize].spelling).collect();
        assert_eq!((found, program.validate), (expected.to_vec(), validate), "{rules}");
    }

    #[test]
    fn what_a_request_may_be_refused_by() {
        let route = "if (json.b == 1) { routeTo(a); }";
        check(route, &[], Validate::Stream);
        check(&format!("{route} else: reject();"), &[], Validate::Stream);
        check(&format!("{route} if (json.a == 1) {{ reject(); }}"), &["json.a"], Validate::Full);
        check("if (!(json.a == 1)) { tag(x); } else { discard(); }", &["json.a"], Validate::Full);
        check(
            "if (json.a == 1) { goto R; } if (json.b == 1) { routeTo(a); } R: if (path == \"/\") { reject(); }",
            &["json.a"],
            Validate::Full,
        );
        check("validate stream; if (json.a == 1) { reject(); }", &["json.a"], Validate::Stream);
        check(&format!("validate full; {route}"), &[], Validate::Full);
    }
}

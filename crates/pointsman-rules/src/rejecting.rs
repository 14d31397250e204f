//! Which fields of the body a request may be refused by.

use std::collections::BTreeSet;

use crate::{Block, Condition, Exit, Field, Over, PayloadId, Program, Validate, pace};

impl Program {
    /// The fields of the body that a rule asks whose block rejects or discards, or jumps to a rule that does; and those
    /// whose absence leads a request past a later rule that rejects or discards.
    #[must_use]
    pub fn rejecting_payloads(&self) -> BTreeSet<PayloadId> {
        let mut payloads = BTreeSet::new();
        let mut refuses_later = self.fallback.as_ref().is_some_and(|rule| rule.then.refuses());
        let mut leads_to_refusal = vec![false; self.rules.len()];
        // Jumps go forward, so that what a rule leads to is known before it.
        for (index, rule) in pace::each(self.rules.iter().enumerate()).rev() {
            let blocks = [&rule.then, &rule.otherwise];
            let leads = blocks.iter().any(|block| match &block.exit {
                Exit::Goto(target) => leads_to_refusal.get(target.0 as usize).copied().unwrap_or_default(),
                Exit::Terminal(_) | Exit::Next => block.refuses(),
            });
            if leads {
                rule.condition.each_payload(true, &mut |id, _| {
                    payloads.insert(id);
                });
            }
            if refuses_later {
                rule.condition.each_payload(true, &mut |id, when_absent| {
                    let (then, otherwise) = (rule.then.leaves(), rule.otherwise.leaves());
                    let is_led_past = match when_absent {
                        Some(true) => then,
                        Some(false) => otherwise,
                        None => then || otherwise,
                    };
                    if is_led_past {
                        payloads.insert(id);
                    }
                });
            }
            leads_to_refusal[index] = leads;
            refuses_later |= blocks.iter().any(|block| block.refuses());
        }
        payloads
    }

    /// As the rules say, or else in full where a request may be refused by what its body says.
    pub(crate) fn validate_by_default(&self) -> Validate {
        if self.rejecting_payloads().is_empty() { Validate::Stream } else { Validate::Full }
    }
}

impl Condition {
    /// Each field of the body that it names, and what the absence of that can make of it; a count of none may be what
    /// is asked for. `holds` is what it counts for if it is true.
    fn each_payload(&self, holds: bool, see: &mut dyn FnMut(PayloadId, Option<bool>)) {
        match self {
            Condition::Always => {}
            Condition::Not(inner) => inner.each_payload(!holds, see),
            Condition::And(parts) | Condition::Or(parts) => {
                parts.iter().for_each(|part| part.each_payload(holds, see));
            }
            Condition::Test(test) => {
                if let Field::Payload(payload) = &test.field {
                    see(payload.id, (test.over != Over::Count).then_some(!holds));
                }
            }
        }
    }
}

impl Block {
    /// Whether it leads past the rules behind it: to a server, or over them.
    fn leaves(&self) -> bool {
        match &self.exit {
            Exit::Terminal(terminal) => terminal.routes(),
            Exit::Goto(_) => true,
            Exit::Next => false,
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

    /// Who is let through first is not let through for want of a field.
    #[test]
    fn what_a_refusal_may_be_dodged_by() {
        for (rules, expected) in [
            ("if (!(json.a > 1)) { routeTo(s); } R: { reject(); }", &["json.a"][..]),
            ("if (!(json.a > 1)) { routeTo(s); } else: discard();", &["json.a"]),
            ("if (!(json.a > 1)) { routeTo(split(50: s, 50: t)); } else: discard();", &["json.a"]),
            ("if (!(json.a > 1)) { routeTo(s); } else: routeTo(t);", &[]),
            ("if (!(json.a > 1)) { routeTo(s); }", &[]),
            ("R: if (path == \"/\") { reject(); } if (!(json.a > 1)) { routeTo(s); }", &[]),
            ("if (json.a == 1) { routeTo(s); } else: reject();", &[]),
            ("if (!(!(json.a == 1))) { routeTo(s); } else: reject();", &[]),
            ("if (json.a == 1) { tag(t); } else { routeTo(s); } R: { reject(); }", &["json.a"]),
            ("if (!(json.a == 1)) { tag(t); } else { routeTo(s); } R: { reject(); }", &[]),
            ("if (!(json.a == 1)) { tag(t); } R: { reject(); }", &[]),
            ("if (!(json.a == 1)) { redirect(302, \"/\"); } R: { reject(); }", &[]),
            ("if (!(json.a > 1)) { goto S; } R: { reject(); } S: { routeTo(s); }", &["json.a"]),
            ("if (json.a > 1) { tag(t); } else { goto S; } R: { reject(); } S: { routeTo(s); }", &["json.a"]),
            ("if (count(json.a[*]) < 3) { routeTo(s); } else: reject();", &["json.a[*]"]),
            ("if (count(json.a[*]) > 3) { tag(t); } else { routeTo(s); } R: { reject(); }", &["json.a[*]"]),
            (
                "if (json.a == 1 && !(json.b == 1 || json.c == 1)) { routeTo(s); } else: reject();",
                &["json.b", "json.c"],
            ),
            (
                "if (!(json.a > 1)) { routeTo(s); } R: if (path == \"/\") { tag(t); } else { reject(); }",
                &["json.a"],
            ),
        ] {
            check(rules, expected, if expected.is_empty() { Validate::Stream } else { Validate::Full });
        }
    }
}

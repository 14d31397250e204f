//! Decisions about several readings of one request.
//!
//! Servers read some spellings of a field in different ways. A program that refuses or strips is asked once for each
//! reading. A reading that would be refused or stripped, where the literal one passes, makes the request ambiguous.

use std::collections::BTreeSet;

use crate::{
    Block, Cause, Decision, Effect, Entry, Exit, HeaderEdit, OnUnknown, Op, Outcome, Program, Side, Terminal,
    Test, pace,
};

impl Program {
    /// Whether a rule refuses requests (`reject`, `discard`, `limitRate`) or replaces or removes a request header. Only
    /// then can a second reading of a request matter.
    #[must_use]
    pub fn guards(&self) -> bool {
        let mut blocks = pace::each(self.rules.iter().chain(&self.fallback))
            .flat_map(|rule| [&rule.then, &rule.otherwise]);
        blocks.any(|block| block.refuses() || block.effects.iter().any(Effect::guards))
    }

    /// Shows the tests of all conditions.
    pub fn each_condition_test<'p>(&'p self, see: &mut impl FnMut(&'p Test)) {
        for rule in pace::each(self.rules.iter().chain(&self.fallback)) {
            rule.condition.each_test(see);
        }
    }

    /// Turns the decision `weighed` into what becomes of a request of which one more reading is decided as `other`.
    ///
    /// Nothing changes unless `other` [guards more](Decision::guards_more_than). Then the condition of the rule that
    /// `other` ended at is unknown, and the policy of the set applies. Its cause is that of `other`, or else
    /// [`Cause::Ambiguous`].
    pub fn weigh_reading<'p>(&self, weighed: &mut Decision<'p>, other: Decision<'p>) {
        if !other.guards_more_than(weighed) {
            return;
        }
        let mut effects = other.effects;
        let cause = other.outcome.unknown_cause().unwrap_or(Cause::Ambiguous);
        let outcome = match self.on_unknown {
            OnUnknown::Skip => return,
            OnUnknown::RouteTo(target) => Outcome::RouteUnknown { target, cause },
            OnUnknown::Reject => {
                effects.retain(|effect| effect.is_committed_with_refusal());
                Outcome::Refused(cause)
            }
        };
        *weighed = Decision { by: other.by, outcome, effects };
    }
}

impl Decision<'_> {
    /// Whether this decision refuses, strips or limits a request that `literal` sends to a server without doing so.
    #[must_use]
    pub fn guards_more_than(&self, literal: &Decision<'_>) -> bool {
        if !literal.outcome.goes_to_a_server() {
            return false;
        }
        match (self.outcome, literal.outcome) {
            (Outcome::Refused(_), _)
            | (Outcome::Terminal(Terminal::Reject { .. } | Terminal::Reset | Terminal::Discard), _) => true,
            (Outcome::RouteUnknown { .. }, Outcome::RouteUnknown { .. }) => false,
            (Outcome::RouteUnknown { .. }, _) => true,
            _ => !self.guarding_effects().is_subset(&literal.guarding_effects()),
        }
    }

    fn guarding_effects(&self) -> BTreeSet<(bool, &str)> {
        self.effects.iter().filter_map(|effect| effect.guarded_name()).collect()
    }
}

impl Op {
    /// Whether it compares with a text of which this holds. Of a list it is not known, so that it does.
    pub fn any_text(&self, mut holds: impl FnMut(&[u8]) -> bool) -> bool {
        match self {
            Op::TextEquals(text)
            | Op::TextDiffers(text)
            | Op::TextOrder(_, text)
            | Op::Contains(text)
            | Op::StartsWith(text)
            | Op::EndsWith(text)
            | Op::Like(text)
            | Op::Under(text) => holds(text),
            Op::Matches(matcher) => holds(matcher.as_str().as_bytes()),
            Op::In(entries) => entries.iter().any(|entry| match entry {
                Entry::Text(text) => holds(text),
                Entry::TextRange { from, to, .. } => holds(from) || holds(to),
                Entry::List(_) => true,
                Entry::Number(_) | Entry::Network(_) | Entry::NumberRange { .. } | Entry::IpRange { .. } => {
                    false
                }
            }),
            Op::Exists
            | Op::IsTrue
            | Op::IsFalse
            | Op::NumberEquals(_)
            | Op::NumberDiffers(_)
            | Op::NumberOrder(..)
            | Op::IpIn(_)
            | Op::IpNotIn(_)
            | Op::IpOrder(..) => false,
        }
    }
}

impl Outcome<'_> {
    fn unknown_cause(&self) -> Option<Cause> {
        match self {
            Outcome::Refused(cause) | Outcome::RouteUnknown { cause, .. } => Some(*cause),
            Outcome::Terminal(_) | Outcome::DefaultPool | Outcome::Waits => None,
        }
    }
}

impl Effect {
    fn guards(&self) -> bool {
        self.guarded_name().is_some()
    }

    /// The class that it limits requests by, or the request header whose lines it takes away.
    fn guarded_name(&self) -> Option<(bool, &str)> {
        match self {
            Effect::LimitRate(class) => Some((true, class)),
            Effect::Header { side: Side::Request, name, edit: HeaderEdit::Set(_) | HeaderEdit::Remove } => {
                Some((false, name))
            }
            _ => None,
        }
    }
}

impl Block {
    /// Whether it ends in a refusal.
    pub(crate) fn refuses(&self) -> bool {
        matches!(self.exit, Exit::Terminal(Terminal::Reject { .. } | Terminal::Reset | Terminal::Discard))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generated::MadeUpSubject;
    use crate::subject::OwnedValue;
    use crate::{Field, Targets, Truths, compile};

    fn program(rules: &str) -> Program {
        compile(rules, &Targets::Any).expect("a rule set").program
    }

    #[test]
    fn programs_that_refuse_strip_or_limit_are_guards() {
        for (rules, expected) in [
            (r#"if (path == "/a") { routeTo(a); } else: routeTo(b);"#, false),
            (r#"if (path == "/a") { reject(); }"#, true),
            (r#"if (path == "/a") { tag(t); } else { discard(); }"#, true),
            (r#"if (path == "/a") { routeTo(a); } else: reject(404);"#, true),
            (r#"if (path == "/a") { removeHeader("x"); }"#, true),
            (r#"if (path == "/a") { setHeader("x", "1"); }"#, true),
            (r#"if (path == "/a") { addHeader("x", "1"); removeResponseHeader("x"); }"#, false),
            (r#"if (path == "/a") { limitRate(c); }"#, true),
            (r#"if (path == "/a") { respond(200, "x"); }"#, false),
        ] {
            assert_eq!(program(rules).guards(), expected, "{rules}");
        }
    }

    fn subject(host: &str) -> MadeUpSubject {
        let value = OwnedValue::Text(host.as_bytes().into());
        MadeUpSubject { fields: vec![(Field::Host, vec![value])], unsettled: Vec::new() }
    }

    /// What becomes of a request whose host is `literal` to us and `other` to a server.
    #[track_caller]
    fn check(rules: &str, literal: &str, other: &str, expected: &str) {
        let program = program(rules);
        let decide = |host: &str| program.decide(&subject(host), &mut Truths::default());
        let mut weighed = decide(literal);
        program.weigh_reading(&mut weighed, decide(other));
        assert_eq!(format!("{:?} {:?}", weighed.by.label(), weighed.outcome), expected, "{rules}");
    }

    #[test]
    fn a_reading_that_is_refused_makes_a_request_ambiguous() {
        let refuses = r#"R: if (host == "bad") { reject(); } S: { routeTo(a); }"#;
        check(refuses, "good", "bad", r#"Some("R") Refused(Ambiguous)"#);
        check(
            &format!("on_unknown routeTo(b); {refuses}"),
            "good",
            "bad",
            r#"Some("R") RouteUnknown { target: TargetId(0), cause: Ambiguous }"#,
        );
        let kept = r#"Some("S") Terminal(RouteTo { target: TargetId(0), sticky: None })"#;
        check(refuses, "good", "fine", kept);
        check(&format!("on_unknown skip; {refuses}"), "good", "bad", kept);
    }

    #[test]
    fn a_refusal_of_the_literal_reading_stands() {
        let refuses = r#"R: if (host == "bad") { reject(); } S: { routeTo(a); }"#;
        let refused = r#"Some("R") Terminal(Reject { status: 403, reason: None })"#;
        check(refuses, "bad", "good", refused);
        let answered = r#"R: if (host == "bad") { reject(); } S: { respond(200, "x"); }"#;
        check(
            answered,
            "good",
            "bad",
            r#"Some("S") Terminal(Respond { status: 200, body: Template([Literal([120])]) })"#,
        );
    }

    #[test]
    fn a_reading_that_is_stripped_or_limited_makes_a_request_ambiguous() {
        for effect in [r#"removeHeader("x")"#, r#"setHeader("x", "1")"#, "limitRate(c)"] {
            let strips = format!(r#"if (host == "bad") {{ {effect}; }} S: {{ routeTo(a); }}"#);
            check(&strips, "good", "bad", r#"Some("S") Refused(Ambiguous)"#);
            check(
                &strips,
                "bad",
                "good",
                r#"Some("S") Terminal(RouteTo { target: TargetId(0), sticky: None })"#,
            );
        }
        let tags = r#"if (host == "bad") { tag(x); } S: { routeTo(a); }"#;
        check(tags, "good", "bad", r#"Some("S") Terminal(RouteTo { target: TargetId(0), sticky: None })"#);
    }
}

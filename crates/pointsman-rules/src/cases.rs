//! Tests of a rule set: requests of which some fields are said, and what is to become of them.

use std::collections::HashMap;

use crate::compile::Idle;
use crate::{
    Assertions, Cause, Committed, DecidedBy, Decision, Evidence, Field, Outcome, OwnedValue, Payload, Place,
    Program, RuleIndex, Scope, Span, Subject, TargetId, TargetName, Terminal,
};

/// The tests and assertions that stand beside rules, and what another file of tests needs to know.
#[derive(Clone, Debug, Default)]
pub struct Tests {
    /// In the order of the text.
    pub cases: Vec<TestCase>,
    /// What is said of all requests.
    pub assertions: Assertions,
    /// The URIs of prefixes.
    pub(crate) namespaces: HashMap<Box<str>, Box<str>>,
    pub(crate) scope: Scope,
    /// What the rules name without sending requests there.
    pub(crate) idle: HashMap<TargetName, Idle>,
}

/// What stands in a file of tests.
#[derive(Clone, Debug, Default)]
pub struct Further {
    /// In the order of the text.
    pub cases: Vec<TestCase>,
    /// What is said of all requests.
    pub assertions: Assertions,
}

/// `test "name" { request … expect R1 -> fast }`
#[derive(Clone, Debug)]
pub struct TestCase {
    /// Unique among the tests of its file.
    pub name: Box<str>,
    /// Where it stands in its source.
    pub span: Span,
    /// What is said of the request.
    pub given: Vec<Given>,
    /// The fields that are said to have no value: `tls.sni absent`.
    pub absent: Vec<Field>,
    /// Why the body's fields are not known beyond what is given: `body unknown(…)`.
    pub rest: Option<Cause>,
    /// What is to become of it.
    pub expected: Expectation,
    /// All that is to be done besides, in order; nothing where the test does not say.
    pub effects: Option<Vec<Committed>>,
}

/// A field with one of its values.
#[derive(Clone, Debug)]
pub struct Given {
    /// Where the field is named.
    pub span: Span,
    /// The field; one of the body that no rule names has an id beyond those of the program.
    pub field: Field,
    /// The value: never an unknown one, and a number of a field that is text as it is written.
    pub value: OwnedValue,
}

/// What is to become of a test's request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expectation {
    /// This rule decides, and this is what it decides.
    Decides(RuleIndex, ExpectedOutcome),
    /// No rule decides: `default`.
    Nothing,
}

/// What a rule is to decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpectedOutcome {
    /// A `routeTo` of this target, with whatever stickiness.
    Target(TargetId),
    /// `split`: a `routeTo` of several targets, with whatever shares and stickiness.
    Split,
    /// `reject`, with this status or any.
    Reject(Option<u16>),
    /// `reject(reset)`
    Reset,
    /// `discard`
    Discard,
    /// `redirect`, with this status or any.
    Redirect(Option<u16>),
    /// `respond`, with this status or any.
    Respond(Option<u16>),
    /// Its condition ends unknown, for this cause or any, and the policy decides.
    Unknown(Option<Cause>),
}

impl TestCase {
    /// The fields of the body as the test gives them, to a program that this is a test of, or to another one: what that
    /// does not name tells it nothing.
    ///
    /// All that the test lists was read, and then the rest of the body, or a fault came. What is known in front of a fault
    /// stays known, as it does of a body: there is one value of `json.total` at most, and a body in which it stands is
    /// JSON, so that fields of other kinds are absent; of fields with several values more may have been to come, unless the
    /// test says that there are none.
    /// `rules_out` says of which places the head shows that nothing stands there.
    pub fn show_body(&self, program: &Program, evidence: &mut Evidence, rules_out: impl Fn(&Place) -> bool) {
        let said = self.given.iter().filter_map(|given| match &given.field {
            Field::Payload(payload) => Some((payload, &given.value)),
            _ => None,
        });
        for (payload, value) in said.clone() {
            if let Some(named) = named_by(program, payload) {
                evidence.see(named.id, value.as_value());
            }
        }
        if self.rest.is_some() {
            let kinds: Vec<_> = said.clone().filter_map(|(payload, _)| payload.kind()).collect();
            let is_of_another = |payload: &Payload| match payload.kind() {
                Some(_) if kinds.is_empty() => rules_out(&payload.place),
                Some(kind) => !kinds.contains(&kind),
                None => false,
            };
            let absent =
                program.payloads.iter().map(|payload| &**payload).filter(|payload| is_of_another(payload));
            let known = said.filter(|(payload, _)| !payload.is_many_valued());
            let known = known.filter_map(|(payload, _)| named_by(program, payload));
            let none = self.absent.iter().filter_map(|field| match field {
                Field::Payload(payload) => named_by(program, payload),
                _ => None,
            });
            absent.chain(known).chain(none).for_each(|payload| evidence.end(payload.id));
        }
        evidence.end_all(self.rest);
    }

    /// Whether what is done besides is what the test says of it, if it says anything.
    pub fn has_effects<S: Subject + ?Sized>(&self, decision: &Decision<'_>, subject: &S) -> bool {
        let Some(expected) = &self.effects else { return true };
        decision.committed(subject).is_ok_and(|committed| committed == *expected)
    }
}

/// A field of a body as a program names it, if it does.
fn named_by<'p>(program: &'p Program, payload: &Payload) -> Option<&'p Payload> {
    let own = program.payloads.get(payload.id.0 as usize).filter(|named| named.place == payload.place);
    own.or_else(|| program.payloads.iter().find(|named| named.place == payload.place)).map(|named| &**named)
}

impl Expectation {
    /// Whether that is what was decided.
    #[must_use]
    pub fn is_met(&self, decision: &Decision<'_>) -> bool {
        match (self, decision.by) {
            (Expectation::Nothing, DecidedBy::Nothing) => true,
            (Expectation::Decides(rule, outcome), DecidedBy::Rule { index, .. }) => {
                *rule == index && outcome.is_met(&decision.outcome)
            }
            _ => false,
        }
    }
}

impl ExpectedOutcome {
    fn is_met(self, outcome: &Outcome<'_>) -> bool {
        let fits = |expected: Option<u16>, status: u16| expected.is_none_or(|expected| expected == status);
        match (self, outcome) {
            (ExpectedOutcome::Target(expected), Outcome::Terminal(Terminal::RouteTo { target, .. })) => {
                expected == *target
            }
            (ExpectedOutcome::Reject(expected), Outcome::Terminal(Terminal::Reject { status, .. }))
            | (ExpectedOutcome::Redirect(expected), Outcome::Terminal(Terminal::Redirect { status, .. }))
            | (ExpectedOutcome::Respond(expected), Outcome::Terminal(Terminal::Respond { status, .. })) => {
                fits(expected, *status)
            }
            (ExpectedOutcome::Discard, Outcome::Terminal(Terminal::Discard))
            | (ExpectedOutcome::Reset | ExpectedOutcome::Reject(None), Outcome::Terminal(Terminal::Reset))
            | (ExpectedOutcome::Split, Outcome::Terminal(Terminal::Split(_))) => true,
            (
                ExpectedOutcome::Unknown(expected),
                Outcome::Refused(cause) | Outcome::RouteUnknown { cause, .. },
            ) => expected.is_none_or(|expected| expected == *cause),
            _ => false,
        }
    }

    /// As a test writes it.
    #[must_use]
    pub fn shown(self, program: &Program) -> String {
        let with = |word: &str, status: Option<u16>| match status {
            Some(status) => format!("{word}({status})"),
            None => word.to_owned(),
        };
        match self {
            ExpectedOutcome::Target(target) => match program.targets.get(target.0 as usize) {
                Some(name) => name.to_string(),
                None => String::new(),
            },
            ExpectedOutcome::Reject(status) => with("reject", status),
            ExpectedOutcome::Reset => "reject(reset)".to_owned(),
            ExpectedOutcome::Discard => "discard".to_owned(),
            ExpectedOutcome::Split => "split".to_owned(),
            ExpectedOutcome::Redirect(status) => with("redirect", status),
            ExpectedOutcome::Respond(status) => with("respond", status),
            ExpectedOutcome::Unknown(None) => "unknown".to_owned(),
            ExpectedOutcome::Unknown(Some(cause)) => format!("unknown({cause})"),
        }
    }

    /// What was decided, as a test that expects it would write it; nothing where no rule decides.
    #[must_use]
    pub fn seen(outcome: &Outcome<'_>) -> Option<ExpectedOutcome> {
        Some(match outcome {
            Outcome::Terminal(Terminal::RouteTo { target, .. }) => ExpectedOutcome::Target(*target),
            Outcome::Terminal(Terminal::Split(_)) => ExpectedOutcome::Split,
            Outcome::Terminal(Terminal::Reject { status, .. }) => ExpectedOutcome::Reject(Some(*status)),
            Outcome::Terminal(Terminal::Reset) => ExpectedOutcome::Reset,
            Outcome::Terminal(Terminal::Discard) => ExpectedOutcome::Discard,
            Outcome::Terminal(Terminal::Redirect { status, .. }) => ExpectedOutcome::Redirect(Some(*status)),
            Outcome::Terminal(Terminal::Respond { status, .. }) => ExpectedOutcome::Respond(Some(*status)),
            Outcome::Refused(cause) | Outcome::RouteUnknown { cause, .. } => {
                ExpectedOutcome::Unknown(Some(*cause))
            }
            Outcome::DefaultPool | Outcome::Waits => return None,
        })
    }
}

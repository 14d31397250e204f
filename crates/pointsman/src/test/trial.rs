//! One test: its request is made, read as any other, and decided.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::ops::ControlFlow;
use std::sync::Arc;

use pointsman_analysis::{Ends, Proxy, Sample};
use pointsman_config::Protocol;
use pointsman_http::Refusal;
use pointsman_rules::{
    Cause, Committed, DecidedBy, Decision, Diagnostic, Evidence, Exit, Expectation, ExpectedOutcome,
    Explanation, Field, NameKind, Outcome, Program, Rule, RuleIndex, SHOWN_VALUES_MAX, Subject, TargetId,
    TestCase, Truth, Truths, Value,
};
use pointsman_view::{ConnectionView, RequestView, TrustedProxies, normal_form};

use super::coverage::Coverage;
use super::said::Said;
use crate::explain::place::Place;
use crate::explain::report::{Step, shown};
use crate::explain::request::{NoRequest, Request};

/// What became of a test.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// What it expects was decided.
    Passed,
    /// Something else was.
    Failed {
        /// `R1 -> fast`
        expected: String,
        /// `else -> standard`
        seen: String,
        /// Why the rule that it expects did not decide; nothing where that needs no words.
        why: Option<String>,
    },
    /// There is no such request, and why.
    Impossible(String),
    /// The same, under what the test says.
    Never(Box<Diagnostic>),
}

impl Verdict {
    /// Why there is no such request.
    pub(super) fn impossible(&self) -> Option<&str> {
        match self {
            Verdict::Passed | Verdict::Failed { .. } => None,
            Verdict::Impossible(sentence) => Some(sentence),
            Verdict::Never(error) => Some(&error.message),
        }
    }
}

/// Runs a test, and notes the rules that it asks.
pub(super) fn run(
    test: &TestCase,
    place: &Place,
    program: &Arc<Program>,
    coverage: &mut Coverage,
) -> Verdict {
    let evidence = body(test, program, SHOWN_VALUES_MAX);
    let judge = |said: Said<'_>, subject: &Asked<'_>| judged(said, subject, program, coverage);
    asked(test, place, evidence, judge).unwrap_or_else(|impossible| impossible)
}

/// Whether a test of a program is met by another one, in which rules may stand elsewhere.
pub(super) fn still_passes(
    test: &TestCase,
    place: &Place,
    program: &Program,
    other: &Program,
    place_of: impl Fn(RuleIndex) -> RuleIndex,
) -> bool {
    let evidence = body(test, other, 1);
    let expected = match test.expected {
        Expectation::Nothing => Expectation::Nothing,
        Expectation::Decides(rule, ExpectedOutcome::Target(target)) => {
            let name = program.targets.get(target.0 as usize);
            let place = other.targets.iter().position(|other| Some(other) == name);
            let Some(target) = place.and_then(|place| u32::try_from(place).ok()) else { return false };
            Expectation::Decides(place_of(rule), ExpectedOutcome::Target(TargetId(target)))
        }
        Expectation::Decides(rule, outcome) => Expectation::Decides(place_of(rule), outcome),
    };
    let is_met = |_: Said<'_>, subject: &Asked<'_>| {
        let decision = other.decide(subject, &mut Truths::default());
        expected.is_met(&decision) && test.has_effects(&decision, subject)
    };
    asked(test, place, evidence, is_met).unwrap_or(false)
}

/// What a test says of the body, to a program that asks for fields of it.
fn body(test: &TestCase, program: &Program, values_max: usize) -> Evidence {
    let mut evidence = Evidence::keeping(program, values_max);
    let media_type = Said(test).media_type();
    test.show_body(program, &mut evidence, |place| media_type.is_some_and(|reads| !reads.has(place)));
    evidence
}

/// What the engine says of a test's request.
pub(super) struct Decided {
    /// Whether it comes to its rule as a sample does, and shows the same there.
    pub(super) is_as_meant: bool,
    /// As a test would expect it.
    pub(super) expectation: Expectation,
    /// What is done besides; nothing where a value cannot be filled in.
    pub(super) effects: Option<Vec<Committed>>,
}

/// What the engine says of a test's request, which is to be like a sample. The error says why there is no such request, or
/// why no test can expect what becomes of it.
pub(super) fn decided(
    test: &TestCase,
    sample: &Sample,
    place: &Place,
    program: &Arc<Program>,
) -> Result<Decided, String> {
    let evidence = body(test, program, SHOWN_VALUES_MAX);
    let decide = |said: Said<'_>, subject: &Asked<'_>| {
        if let Some(impossible) = differing(said, subject) {
            return Err(impossible);
        }
        let decision = program.decide(subject, &mut Truths::default());
        let expectation = match (decision.by, ExpectedOutcome::seen(&decision.outcome)) {
            (DecidedBy::Rule { index, .. }, Some(outcome)) => Expectation::Decides(index, outcome),
            (DecidedBy::Nothing, None) => Expectation::Nothing,
            _ => return Err(Verdict::Impossible("no test can expect what becomes of it".to_owned())),
        };
        let effects = decision.committed(subject).ok();
        let decided_by = match expectation {
            Expectation::Decides(rule, _) => rule,
            Expectation::Nothing => end(program),
        };
        let is_as_meant = arrival(program, expectation, sample.rule, subject) == Some(sample.arrival)
            && sample.decided.is_none_or(|decided| decided == decided_by)
            && sample.why.shown(program, sample.rule, subject) == sample.shown;
        Ok(Decided { is_as_meant, expectation, effects })
    };
    let decided = asked(test, place, evidence, decide).flatten();
    decided.map_err(|verdict| verdict.impossible().unwrap_or_default().to_owned())
}

/// What stands behind the last rule, the final `else:` among them.
fn end(program: &Program) -> RuleIndex {
    RuleIndex(u32::try_from(program.rules.len() + program.fallback.iter().len()).unwrap_or(u32::MAX))
}

/// What a rule's condition comes to, if the rule is asked; the inner nothing behind the last rule.
fn arrival(
    program: &Program,
    expectation: Expectation,
    rule: RuleIndex,
    subject: &Asked<'_>,
) -> Option<Option<Truth>> {
    let Some(asked) = program.rule(rule) else {
        return (expectation == Expectation::Nothing).then_some(None);
    };
    let jumps =
        |rule: &Rule| [&rule.then, &rule.otherwise].iter().any(|block| matches!(block.exit, Exit::Goto(_)));
    if program.rules.iter().any(jumps) {
        let visited = program.explain(subject).visited;
        return visited.iter().find(|visited| visited.index == rule).map(|visited| Some(visited.result));
    }
    let is_asked = match expectation {
        Expectation::Decides(decider, _) => rule <= decider,
        Expectation::Nothing => true,
    };
    is_asked.then(|| Some(asked.truth(subject)))
}

/// Asks about the request that a test describes; the error says why there is none.
fn asked<R>(
    test: &TestCase,
    place: &Place,
    evidence: Evidence,
    ask: impl FnOnce(Said<'_>, &Asked<'_>) -> R,
) -> Result<R, Verdict> {
    let (said, setting) = (Said(test), place.known());
    if place.protocol != Protocol::Http {
        let hello = (place.protocol == Protocol::TlsPassthrough).then(|| said.hello());
        let ends = said.ends(&setting, hello.is_some())?;
        let named = ends.forwarded_for.map(|client| SocketAddr::new(client, 0));
        let connection = said.connection(Ends { proxied: ends.proxied.or(named), ..ends }, None);
        let view = ConnectionView::new(&connection, hello.as_ref());
        return Ok(ask(said, &Asked { head: &view, evidence }));
    }
    let agreed = said.agreed(&setting)?;
    let ends = said.ends(&setting, agreed.tls.is_some())?;
    let connection = said.connection(ends, agreed.tls);
    let mut networks = place.trusted_proxies.clone();
    if let Some(Proxy::Address(proxy)) = ends.proxy {
        networks.push(proxy.into());
    }
    let unix = place.trusts_unix || ends.proxy == Some(Proxy::Unix);
    let trusted = TrustedProxies { networks: &networks, unix };
    let request = match read(said.head(agreed, ends.forwarded_for), place, &connection, trusted) {
        Ok(request) => request,
        Err(refusal) => return Err(refused(refusal.status(), refusal.sentence())),
    };
    let Some(request) = request else {
        return Err(Verdict::Impossible("what it says makes no request".to_owned()));
    };
    let mut scratch = Vec::new();
    let target = request.head.path_and_query(&request.bytes);
    let path = match normal_form(target, place.path_options, &mut scratch) {
        Ok(path) => path,
        Err(refusal) => return Err(refused(refusal.status(), refusal.sentence())),
    };
    let view = RequestView::new(&request.head, &request.bytes, &connection, path, trusted);
    Ok(ask(said, &Asked { head: &view, evidence }))
}

/// The request as the switch reads it; nothing where its head has no end.
fn read(
    head: Vec<u8>,
    place: &Place,
    connection: &pointsman_view::Connection,
    trusted: TrustedProxies<'_>,
) -> Result<Option<Request>, Refusal> {
    let mut notes = Vec::new();
    let mut request = match Request::read(head, &place.limits, place.odd_names(), &mut notes) {
        Ok(request) => request,
        Err(NoRequest::Refused(refusal)) => return Err(refusal),
        Err(NoRequest::Incomplete) => return Ok(None),
    };
    if !connection.is_trusted(trusted) {
        request.take_away_forwarding(&mut notes);
        request.head.check_scheme(&request.bytes, connection.scheme())?;
    }
    request.settle_upgrade(&place.upgrades, &mut notes)?;
    Ok(Some(request))
}

fn refused(status: u16, sentence: &str) -> Verdict {
    Verdict::Impossible(format!(
        "no rule is asked about such a request: it is refused with {status}: {sentence}"
    ))
}

/// A head, or a connection, and what was read of a body.
struct Asked<'a> {
    head: &'a dyn Subject,
    evidence: Evidence,
}

impl Subject for Asked<'_> {
    fn each(&self, field: &Field, see: &mut dyn FnMut(Value<'_>) -> ControlFlow<()>) {
        if let Field::Payload(_) = field {
            let _seen_enough = self.evidence.each(field, see);
            return;
        }
        self.head.each(field, see);
    }

    fn unsettled(&self, field: &Field) -> Option<Cause> {
        self.evidence.unsettled(field).or_else(|| self.head.unsettled(field))
    }

    fn each_name(&self, kind: NameKind, see: &mut dyn FnMut(&[u8])) -> bool {
        self.head.each_name(kind, see)
    }

    fn evidence(&self) -> Option<&Evidence> {
        Some(&self.evidence)
    }
}

fn judged(said: Said<'_>, subject: &Asked<'_>, program: &Program, coverage: &mut Coverage) -> Verdict {
    if let Some(impossible) = differing(said, subject) {
        return impossible;
    }
    let decision = program.decide(subject, &mut Truths::default());
    let explanation = program.explain(subject);
    coverage.add(&explanation);
    let expectation = said.0.expected;
    if expectation.is_met(&decision) && said.0.has_effects(&decision, subject) {
        return Verdict::Passed;
    }
    let effects = said.0.effects.as_deref();
    let (mut expected, mut seen) = (expected_text(program, expectation), seen_text(program, &decision));
    if let Some(effects) = effects {
        expected.push_str(&effects_text(effects));
        seen.push_str(&match decision.committed(subject) {
            Ok(effects) => effects_text(&effects),
            Err(why) => format!(", refused with 400: {why}"),
        });
    }
    Verdict::Failed { expected, seen, why: why(program, expectation, &explanation) }
}

/// The first field that such a request has other values of than the test says: nothing could ever come like that.
fn differing(said: Said<'_>, subject: &Asked<'_>) -> Option<Verdict> {
    said.fields().into_iter().find_map(|(field, values)| {
        let wanted: Vec<String> = values.into_iter().map(|value| text_of(value.as_value())).collect();
        let mut seen = Vec::new();
        subject.each(field, &mut |value| {
            seen.push(text_of(value));
            ControlFlow::Continue(())
        });
        if wanted == seen {
            return None;
        }
        let seen = match seen.as_slice() {
            [] => "none".to_owned(),
            values => listed(values),
        };
        let wanted = if wanted.is_empty() { "absent".to_owned() } else { listed(&wanted) };
        let sentence = format!("`{field}` is never {wanted} here: the switch sees {seen}");
        Some(said.impossible(field, sentence, None))
    })
}

pub(super) fn text_of(value: Value<'_>) -> String {
    match value {
        Value::Text(text) => shown(text),
        Value::Integer(integer) => integer.to_string(),
        Value::Ip(ip) => IpAddr::to_canonical(&ip).to_string(),
        Value::Boolean(boolean) => boolean.to_string(),
        Value::Nothing => "null".to_owned(),
        Value::Unknown(cause) => format!("unknown ({cause})"),
    }
}

pub(super) fn listed(values: &[String]) -> String {
    let quoted: Vec<_> = values.iter().map(|value| format!("`{value}`")).collect();
    quoted.join(", ")
}

fn expected_text(program: &Program, expectation: Expectation) -> String {
    match expectation {
        Expectation::Nothing => "default".to_owned(),
        Expectation::Decides(rule, outcome) => {
            format!("{} -> {}", label(program, rule), outcome.shown(program))
        }
    }
}

fn effects_text(effects: &[Committed]) -> String {
    if effects.is_empty() {
        return " with nothing".to_owned();
    }
    effects.iter().fold(" with".to_owned(), |text, effect| text + " " + &shown(effect.to_string().as_bytes()))
}

/// As a test that expects it would say it.
fn seen_text(program: &Program, decision: &Decision<'_>) -> String {
    let outcome = ExpectedOutcome::seen(&decision.outcome).map(|outcome| outcome.shown(program));
    match (decision.by, outcome) {
        (DecidedBy::Rule { label, .. }, Some(outcome)) => match decision.outcome {
            Outcome::RouteUnknown { target, .. } => {
                let target = ExpectedOutcome::Target(target).shown(program);
                format!("{label} -> {outcome}, which goes to {target}")
            }
            _ => format!("{label} -> {outcome}"),
        },
        _ => "default".to_owned(),
    }
}

/// Why the expected rule did not decide: what its condition came to, or why it was not asked.
fn why(program: &Program, expectation: Expectation, explanation: &Explanation<'_>) -> Option<String> {
    let Expectation::Decides(rule, _) = expectation else { return last_step(program, explanation) };
    let visited: HashMap<RuleIndex, _> = explanation.visited.iter().map(|rule| (rule.index, rule)).collect();
    let expected = label(program, rule);
    let decided = match explanation.decision.by {
        DecidedBy::Rule { index, .. } => Some(index),
        DecidedBy::Nothing => None,
    };
    let Some(asked) = visited.get(&rule) else {
        return Some(match decided {
            Some(index) if index < rule => {
                format!("{expected} is not asked: {} decides before it", label(program, index))
            }
            _ => format!("{expected} is not asked: a jump leads past it"),
        });
    };
    if decided == Some(rule) && asked.result == Truth::True {
        return None;
    }
    let step = Step::new(program, asked);
    Some(match (asked.result, step.why()) {
        (Truth::True, _) => format!("{expected} is true, and goes on: {}", step.exit()),
        (result, Some(why)) => format!("{expected} is {result}: {why}"),
        (result, None) => format!("{expected} is {result}"),
    })
}

/// What the rule that decided had that a test without one did not expect.
fn last_step(program: &Program, explanation: &Explanation<'_>) -> Option<String> {
    let last = explanation.visited.last()?;
    let step = Step::new(program, last);
    let why = step.why().map(|why| format!(": {why}")).unwrap_or_default();
    Some(format!("{} is {}{why}", last.label, last.result))
}

fn label(program: &Program, rule: RuleIndex) -> &str {
    program.rule(rule).map_or("?", |rule| &rule.label)
}

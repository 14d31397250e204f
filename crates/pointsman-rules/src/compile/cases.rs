//! Tests: fields get their values, and rules and targets are found by name. Nothing that a test names is added to the
//! program.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use crate::ast::{self, ActionKind, FieldRef, Item, Literal, LiteralKind, Name, Quoted, Status};
use crate::engine::number_further;
use crate::parser::{parse_into, shorten};
use crate::schema::Resolved;
use crate::{
    Assertions, Cause, Committed, Diagnostic, Expectation, ExpectedOutcome, Field, FieldType, Findings,
    Further, Given, OnUnknown, OwnedValue, Payload, PayloadId, Place, Program, RuleIndex, Scope, Span,
    Targets, TestCase, Tests,
};

use super::conditions::type_name;
use super::{Compiler, head_of};

/// The causes that a test may speak of.
const CAUSES: &[Cause] = &[
    Cause::NotANumber,
    Cause::Duplicate,
    Cause::DuplicateKey,
    Cause::Malformed,
    Cause::Encoding,
    Cause::Limit,
];

/// Those among them that are the fault of a body, and not of one value.
const BODY_CAUSES: &[Cause] = &[Cause::DuplicateKey, Cause::Malformed, Cause::Encoding, Cause::Limit];

/// Whether a test says of a field that it has no value.
#[derive(Clone, Copy)]
struct IsAbsent(bool);

impl Tests {
    /// The tests and assertions of another file, which is about the same rules, with what was probably not meant.
    ///
    /// # Errors
    /// Everything that is wrong with the file, in the order of its text.
    pub fn further(
        &self,
        source: &str,
        program: &Program,
        targets: &Targets,
    ) -> Result<(Further, Vec<Diagnostic>), Vec<Diagnostic>> {
        let (file, findings) = parse_into(source);
        let mut compiler = self.compiler(source, program, targets, findings);
        for item in &file.items {
            if let Item::Setting(_) | Item::Rule(_) | Item::Fallback(_) = item {
                let help = "settings and rules stand in the rule set";
                compiler.error(
                    head_of(item.span(), source),
                    "a file of tests holds tests and assertions alone",
                    help,
                );
            }
        }
        let cases = compiler.cases(&file, program.rules.len());
        let mut list = compiler.assertions(&file);
        let payloads = compiler.sorted_payloads();
        let failed = compiler.findings.any_error();
        let findings = compiler.findings.into_sorted();
        if failed {
            return Err(findings);
        }
        number_further(program, &mut list);
        Ok((Further { cases, assertions: Assertions { list, payloads } }, findings))
    }

    /// For another text about the same rules.
    pub(super) fn compiler<'a>(
        &self,
        source: &'a str,
        program: &'a Program,
        targets: &'a Targets,
        findings: Findings,
    ) -> Compiler<'a> {
        let mut compiler = Compiler::new(source, targets, self.scope, findings);
        compiler.namespaces.clone_from(&self.namespaces);
        compiler.on_unknown = program.on_unknown;
        compiler.has_fallback = program.fallback.is_some();
        compiler.targets.know(&program.targets, &self.idle);
        let payloads = program.payloads.iter().map(|payload| (payload.place.clone(), payload.clone()));
        compiler.payloads = payloads.collect();
        let labels = (0..).zip(&program.rules);
        compiler.labels = labels.map(|(index, rule)| (&*rule.label, (RuleIndex(index), rule.span))).collect();
        compiler
    }
}

impl<'a> Compiler<'a> {
    /// The tests of a file, beside `rules` rules and perhaps an `else:`.
    pub(super) fn cases(&mut self, file: &'a ast::RuleFile, rules: usize) -> Vec<TestCase> {
        let mut names: HashMap<&str, Span> = HashMap::new();
        let mut cases = Vec::new();
        if rules == 0 && !self.has_fallback {
            let first = file.items.iter().find(|item| matches!(item, Item::Test(_)));
            if let Some(test) = first {
                let help = "a file of tests is named behind its rules: `pointsman test RULES TESTS`";
                self.error(head_of(test.span(), self.source), "there are no rules here to test", help);
            }
            return cases;
        }
        for item in &file.items {
            if self.findings.overflowed() {
                break;
            }
            let Item::Test(test) = item else { continue };
            if let Some(first) = names.insert(&test.name.text, test.name.span) {
                let line = self.line(first);
                let message = format!("there are two tests with the name `{}`", shorten(&test.name.text));
                self.error(test.name.span, message, format!("line {line} has it; names of tests are unique"));
            }
            cases.extend(self.case(test, rules));
        }
        cases
    }

    fn case(&mut self, test: &ast::TestCase, rules: usize) -> Option<TestCase> {
        let said = self.said(&test.request);
        let rest = test.rest.as_ref().map(|cause| self.cause(cause, BODY_CAUSES));
        let decider = self.decider(&test.decider, test.outcome.as_ref(), rules);
        let outcome = test.outcome.as_ref().map(|outcome| self.expected(outcome));
        let effects = test.effects.as_ref().map(|effects| self.expected_effects(effects));
        let (given, absent) = said?;
        let expected = match (decider?, outcome) {
            (Some(rule), Some(outcome)) => Expectation::Decides(rule, outcome?),
            _ => Expectation::Nothing,
        };
        let rest = match rest {
            Some(cause) => Some(cause?),
            None => None,
        };
        let effects = match effects {
            Some(effects) => Some(effects?),
            None => None,
        };
        Some(TestCase {
            name: test.name.text.clone(),
            span: test.span,
            given,
            absent,
            rest,
            expected,
            effects,
        })
    }

    /// What is said of a request: values, and fields that have none.
    fn said(&mut self, request: &[ast::Given]) -> Option<(Vec<Given>, Vec<Field>)> {
        let mut seen: HashMap<Field, (Span, IsAbsent)> = HashMap::new();
        let (mut values, mut absent, mut is_whole) = (Vec::new(), Vec::new(), true);
        for given in request {
            match self.given(given, &mut seen) {
                Some((field, Some(value))) => {
                    values.push(Given { span: given.field.span, field, value });
                }
                Some((field, None)) => absent.push(field),
                None => is_whole = false,
            }
        }
        is_whole.then_some((values, absent))
    }

    /// The rule that is to decide; nothing for `default`.
    fn decider(
        &mut self,
        name: &Name,
        outcome: Option<&ast::ExpectedOutcome>,
        rules: usize,
    ) -> Option<Option<RuleIndex>> {
        if outcome.is_none() {
            return Some(None);
        }
        if name.text.eq_ignore_ascii_case("else") {
            if self.has_fallback {
                return Some(u32::try_from(rules).ok().map(RuleIndex));
            }
            let help = "write `expect default` where no rule decides";
            self.error(name.span, "the rule set has no `else:`", help);
            return None;
        }
        if &*name.text == "default" && !self.labels.contains_key("default") {
            let help =
                "write `expect default`: no rule decides, and the rules do not say who takes the request";
            self.error(name.span, "no rule has the label `default`", help);
            return None;
        }
        self.labelled(name).map(Some)
    }

    /// A field with its value; without one it is said to be absent.
    fn given(
        &mut self,
        given: &ast::Given,
        seen: &mut HashMap<Field, (Span, IsAbsent)>,
    ) -> Option<(Field, Option<OwnedValue>)> {
        let field = self.asked(&given.field)?;
        let is_absent = IsAbsent(matches!(given.value, ast::GivenValue::Absent(_)));
        let has_several = field.is_many_valued() || field == Field::TlsAlpn && self.scope == Scope::Hellos;
        match seen.insert(field.clone(), (given.field.span, is_absent)) {
            Some((first, was_absent)) if is_absent.0 || was_absent.0 => {
                let line = self.line(first);
                let message = format!("`{field}` cannot be absent and have a value, or be so twice");
                self.error(given.field.span, message, format!("line {line} speaks of it already"));
                return None;
            }
            Some((first, _)) if !has_several => {
                let line = self.line(first);
                let message = format!("`{field}` has one value at most");
                self.error(given.field.span, message, format!("line {line} gives it one already"));
                return None;
            }
            _ => {}
        }
        let value = match &given.value {
            ast::GivenValue::Absent(_) => None,
            ast::GivenValue::Null(span) => Some(self.null(&field, *span)?),
            ast::GivenValue::Literal(literal) => Some(self.given_value(&field, literal)?),
        };
        Some((field, value))
    }

    /// A field that a test gives a value; no rule need ask for it.
    fn asked(&mut self, named: &FieldRef) -> Option<Field> {
        let field = match self.named(named) {
            Ok(Resolved::Head(field)) => field,
            Ok(Resolved::Payload(spelling, place)) => {
                Field::Payload(self.asked_payload(named, spelling, place))
            }
            Err(finding) => {
                self.findings.add(finding);
                return None;
            }
        };
        self.in_scope(named, field).map_err(|finding| self.findings.add(finding)).ok()
    }

    fn asked_payload(&mut self, named: &FieldRef, spelling: Box<str>, place: Place) -> Arc<Payload> {
        if let Some(known) = self.payloads.get(&place) {
            return known.clone();
        }
        let known = self.payloads.values().map(|payload| &*payload.spelling);
        let help = match self.nearest(&spelling, known) {
            Some(known) => format!("did you mean `{known}`?"),
            None => "what the test says of it changes nothing".to_owned(),
        };
        // Of a broken rule nobody knows what it asks for.
        if !self.findings.any_error() {
            self.warn(named.span, format!("no rule asks for `{}`", shorten(&spelling)), help);
        }
        Arc::new(Payload { id: PayloadId(u32::MAX), spelling, place })
    }

    fn null(&mut self, field: &Field, at: Span) -> Option<OwnedValue> {
        if is_json(field) {
            return Some(OwnedValue::Nothing);
        }
        let help = "only `json.PATH` can be `null`; a field that is absent is left out";
        self.error(at, format!("`{field}` is never `null`"), help);
        None
    }

    fn given_value(&mut self, field: &Field, literal: &Literal) -> Option<OwnedValue> {
        let help = match (field.value_type(), &literal.kind) {
            (FieldType::Text, LiteralKind::Text(text) | LiteralKind::Number(text)) => {
                return Some(OwnedValue::Text(text.as_bytes().into()));
            }
            (FieldType::Text, LiteralKind::Boolean(value)) if is_json(field) => {
                return Some(OwnedValue::Boolean(*value));
            }
            (FieldType::Integer, LiteralKind::Number(number)) => match number.parse::<u64>() {
                Ok(number) if number <= greatest(field) => return Some(OwnedValue::Integer(number)),
                _ => format!("it is a whole number from 0 to {}", greatest(field)),
            },
            (FieldType::Ip, LiteralKind::Address(address)) => return Some(OwnedValue::Ip(*address)),
            (FieldType::Ip, LiteralKind::Text(text)) => match text.trim().parse::<IpAddr>() {
                Ok(address) => return Some(OwnedValue::Ip(address.to_canonical())),
                Err(_) => "write an address: `10.0.0.1`, `2001:db8::1`".to_owned(),
            },
            (FieldType::Boolean, LiteralKind::Boolean(value)) => return Some(OwnedValue::Boolean(*value)),
            (FieldType::Text, _) => format!("write a text: `\"{}\"`", shorten(literal.span.of(self.source))),
            (FieldType::Integer, _) => "write a whole number".to_owned(),
            (FieldType::Ip, _) => "write an address: `10.0.0.1`, `2001:db8::1`".to_owned(),
            (FieldType::Boolean, _) => "write `true` or `false`".to_owned(),
        };
        let value = shorten(literal.span.of(self.source));
        let message = format!("`{field}` is {}, and `{value}` is not", type_name(field.value_type()));
        self.error(literal.span, message, help);
        None
    }

    fn expected(&mut self, outcome: &ast::ExpectedOutcome) -> Option<ExpectedOutcome> {
        Some(match outcome {
            ast::ExpectedOutcome::Target(name) => self.expected_target(name)?,
            ast::ExpectedOutcome::Reject(status) => {
                ExpectedOutcome::Reject(
                    self.expected_status(*status, "reject", |code| (400..=599).contains(&code))?,
                )
            }
            ast::ExpectedOutcome::Reset(_) => ExpectedOutcome::Reset,
            ast::ExpectedOutcome::Discard(_) => ExpectedOutcome::Discard,
            ast::ExpectedOutcome::Split(_) => ExpectedOutcome::Split,
            ast::ExpectedOutcome::Redirect(status) => {
                let fits = |code| matches!(code, 301 | 302 | 303 | 307 | 308);
                ExpectedOutcome::Redirect(self.expected_status(*status, "redirect", fits)?)
            }
            ast::ExpectedOutcome::Respond(status) => {
                ExpectedOutcome::Respond(
                    self.expected_status(*status, "respond", |code| (200..=599).contains(&code))?,
                )
            }
            ast::ExpectedOutcome::Unknown(at, cause) => {
                if self.on_unknown == OnUnknown::Skip {
                    let help = "under `on_unknown skip;` neither block of such a rule runs, and the next one is asked";
                    self.error(*at, "no rule decides by a condition that ends unknown", help);
                    return None;
                }
                match cause {
                    Some(cause) => ExpectedOutcome::Unknown(Some(self.cause(cause, CAUSES)?)),
                    None => ExpectedOutcome::Unknown(None),
                }
            }
        })
    }

    fn expected_effects(&mut self, effects: &[ast::ExpectedEffect]) -> Option<Vec<Committed>> {
        let effects: Vec<_> = effects.iter().map(|effect| self.expected_effect(effect)).collect();
        effects.into_iter().collect()
    }

    /// Its texts are taken as they are: fields are filled in already.
    fn expected_effect(&mut self, effect: &ast::ExpectedEffect) -> Option<Committed> {
        let action = match effect {
            ast::ExpectedEffect::Action(action) => action,
            ast::ExpectedEffect::Path(path) if path.text.starts_with('/') => {
                return Some(Committed::Path(path.text.as_bytes().into()));
            }
            ast::ExpectedEffect::Path(path) => {
                let message = format!("`{}` is no path", shorten(&path.text));
                let help = "a test says the path that comes of the rewrite: `rewritePath(\"/new\")`";
                self.error(path.span, message, help);
                return None;
            }
        };
        let bytes = |value: &Quoted| value.text.as_bytes().into();
        match &action.kind {
            ActionKind::SetHeader(side, name, value) => {
                Some(Committed::Set(*side, self.header_name(name)?, bytes(value)))
            }
            ActionKind::AddHeader(side, name, value) => {
                Some(Committed::Add(*side, self.header_name(name)?, bytes(value)))
            }
            ActionKind::RemoveHeader(side, name) => Some(Committed::Remove(*side, self.header_name(name)?)),
            ActionKind::Tag(name) => Some(Committed::Tag(name.text.clone())),
            ActionKind::LimitRate(class) => {
                self.limit_class(class).map(|_| Committed::Limit(class.text.clone()))
            }
            ActionKind::Bandwidth(class) => {
                self.bandwidth_class(class).map(|_| Committed::Bandwidth(class.text.clone()))
            }
            ActionKind::Mirror(pool) => self.mirror_pool(pool).map(|_| Committed::Mirror(pool.text.clone())),
            // Invariant: the parser lets nothing else stand here.
            _ => None,
        }
    }

    /// A target that some rule names: nothing is ever sent to another one.
    fn expected_target(&mut self, name: &Name) -> Option<ExpectedOutcome> {
        if let Some(target) = self.targets.named(&name.text) {
            return Some(ExpectedOutcome::Target(target));
        }
        if !self.targets.is_target(&name.text) {
            // For what is said of it.
            self.target(name);
            return None;
        }
        let message = format!("no rule sends to `{}`", shorten(&name.text));
        if let Some((how, help)) = self.idle(&name.text) {
            self.error(name.span, format!("{message}: {how}"), help);
            return None;
        }
        let help = match self.nearest(&name.text, self.targets.names_in_rules()) {
            Some(known) => format!("did you mean `{known}`?"),
            None => "a test names a target as the rules do".to_owned(),
        };
        self.error(name.span, message, help);
        None
    }

    fn expected_status(
        &mut self,
        status: Option<Status>,
        action: &str,
        fits: impl Fn(u16) -> bool,
    ) -> Option<Option<u16>> {
        let Some(status) = status else { return Some(None) };
        if fits(status.code) {
            return Some(Some(status.code));
        }
        let shown = shorten(status.span.of(self.source));
        let help = format!("`{action}` by itself takes every status that it can have");
        self.error(status.span, format!("`{action}` has no status `{shown}`"), help);
        None
    }

    fn cause(&mut self, name: &Name, causes: &[Cause]) -> Option<Cause> {
        if let Some(cause) = causes.iter().find(|cause| cause.to_string() == *name.text) {
            return Some(*cause);
        }
        let known: Vec<_> = causes.iter().map(|cause| format!("`{cause}`")).collect();
        let message = format!("`{}` is no cause here", shorten(&name.text));
        self.error(name.span, message, format!("causes are {}", known.join(", ")));
        None
    }
}

fn is_json(field: &Field) -> bool {
    matches!(field, Field::Payload(payload) if matches!(payload.place, Place::Json(_)))
}

fn greatest(field: &Field) -> u64 {
    match field {
        Field::SrcPort | Field::DstPort => u64::from(u16::MAX),
        _ => u64::MAX,
    }
}

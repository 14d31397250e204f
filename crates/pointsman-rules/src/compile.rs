//! Syntax tree to program: names are resolved, types checked, and nothing is looked up later.

mod actions;
mod answers;
mod assertions;
mod batches;
mod cases;
mod classes;
mod conditions;
mod lists;
mod literals;
mod paths;
mod review;
mod scope;
mod shares;
mod targets;
mod texts;
mod twins;
mod values;

use std::cell::OnceCell;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use crate::ast::{self, FieldRef, Item, SettingKind};
use crate::engine::number_further;
use crate::parser::{parse_field, parse_into, shorten};
use crate::schema::{self, NoField, Resolved};
use crate::{
    Assertions, Block, Condition, Diagnostic, Field, Findings, Lines, Matcher, OnUnknown, Payload, PayloadId,
    Place, Program, Rule, RuleIndex, Span, Suggestions, TestCase, Tests, Validate, pace,
};

pub use scope::Scope;
pub(crate) use targets::Idle;
use targets::TargetTable;
pub use targets::Targets;

/// A rule set that can run.
#[derive(Debug)]
pub struct Compiled {
    /// What it means.
    pub program: Program,
    /// What was probably not meant.
    pub warnings: Vec<Diagnostic>,
    /// The tests and assertions that stand beside the rules. They never act.
    pub tests: Tests,
}

/// Compiles a rule set against the targets there are.
///
/// # Errors
/// Everything that is wrong with it, in the order of the text, with the warnings in between.
pub fn compile(source: &str, targets: &Targets) -> Result<Compiled, Vec<Diagnostic>> {
    compile_for(source, targets, Scope::Requests)
}

/// Compiles a rule set that is asked about something else than requests.
///
/// # Errors
/// The same; also what is not known there, or cannot be done.
pub fn compile_for(source: &str, targets: &Targets, scope: Scope) -> Result<Compiled, Vec<Diagnostic>> {
    let (file, findings) = parse_into(source);
    let compiled = compile_file(source, &file, targets, scope, findings);
    pace::drop_each(file.items);
    compiled
}

fn compile_file(
    source: &str,
    file: &ast::RuleFile,
    targets: &Targets,
    scope: Scope,
    findings: Findings,
) -> Result<Compiled, Vec<Diagnostic>> {
    let mut compiler = Compiler::new(source, targets, scope, findings);
    let (program, cases, mut assertions) = compiler.program(file);
    if let Some(program) = &program {
        number_further(program, &mut assertions.list);
    }
    let failed = compiler.findings.any_error();
    let idle = compiler.targets.take_idle();
    let tests = Tests { cases, assertions, namespaces: compiler.namespaces, scope, idle };
    let findings = compiler.findings.into_sorted();
    match program {
        Some(program) if !failed => Ok(Compiled { program, warnings: findings, tests }),
        _ => Err(findings),
    }
}

/// The field that a text names, and nothing else: one of a connection or of a request's head.
///
/// # Errors
/// It names none, or one of a body. Spans are positions in the text.
pub fn head_field(text: &str) -> Result<Field, Diagnostic> {
    let nothing = || Diagnostic::error(Span::default(), "the text names no field".to_owned());
    let named = parse_field(text).map_err(|findings| findings.into_iter().next().unwrap_or_else(nothing))?;
    let key = named.key.as_ref().map(|key| &*key.text);
    match schema::resolve(&named.name, key, |_| None) {
        Ok(Resolved::Head(field)) => Ok(field),
        Ok(Resolved::Payload(..)) | Err(NoField::Path(_)) => {
            let message = format!("`{}` is in the body, which is not read for this", shorten(&named.name));
            Err(Diagnostic::error(named.span, message)
                .help("name a field of the head, such as `cookie[\"sid\"]`"))
        }
        Err(why) => Err(no_field(&named, &why, &Suggestions::default())),
    }
}

struct Compiler<'a> {
    source: &'a str,
    /// Looked up for errors only.
    lines: OnceCell<Lines<'a>>,
    findings: Findings,
    targets: TargetTable<'a>,
    scope: Scope,
    /// Where each label is, and which rule it calls.
    labels: HashMap<&'a str, (RuleIndex, Span)>,
    /// Whether an `else:` stands at the end.
    has_fallback: bool,
    /// The URIs of prefixes that paths into XML use.
    namespaces: HashMap<Box<str>, Box<str>>,
    /// The fields of the body that are named, by where their values stand.
    payloads: HashMap<Place, Arc<Payload>>,
    /// Each regex is built once, however many rules name it; `None` is one that is none.
    regexes: HashMap<Box<str>, Option<Matcher>>,
    on_unknown: OnUnknown,
    /// Fields of answers that rules so far may have collected.
    collected: BTreeSet<&'static str>,
    /// The condition that holds where the actions of a block run.
    holding: Condition,
    /// Where the rules say.
    validate: Option<Validate>,
}

impl<'a> Compiler<'a> {
    fn new(source: &'a str, targets: &'a Targets, scope: Scope, findings: Findings) -> Self {
        Compiler {
            source,
            lines: OnceCell::new(),
            findings,
            targets: TargetTable::new(targets),
            scope,
            labels: HashMap::new(),
            has_fallback: false,
            namespaces: HashMap::new(),
            payloads: HashMap::new(),
            regexes: HashMap::new(),
            on_unknown: OnUnknown::default(),
            collected: BTreeSet::new(),
            holding: Condition::Always,
            validate: None,
        }
    }

    fn program(&mut self, file: &'a ast::RuleFile) -> (Option<Program>, Vec<TestCase>, Assertions) {
        self.gather_labels(file);
        self.check_order(file);
        let on_unknown = self.settings(file);
        self.on_unknown = on_unknown.unwrap_or_default();
        let (mut rules, mut fallback, mut sound) = (Vec::with_capacity(file.items.len()), None, true);
        let mut index = 0;
        for item in pace::each(&file.items) {
            if self.findings.overflowed() {
                break;
            }
            match item {
                Item::Rule(rule) => {
                    let rule = self.rule(RuleIndex(index), rule, None);
                    index += 1;
                    sound &= rule.is_some();
                    rules.extend(rule);
                }
                Item::Fallback(rule) => {
                    self.has_fallback = true;
                    let last = RuleIndex(u32::MAX);
                    let rule = self.rule(last, rule, Some("else"));
                    sound &= rule.is_some();
                    fallback = rule;
                }
                Item::Test(_) | Item::Assert(_) | Item::Setting(_) => {}
            }
        }
        if sound {
            review::order(&rules, self.source, &mut self.findings);
        }
        let cases = self.cases(file, index as usize);
        let payloads = self.sorted_payloads();
        let list = self.assertions(file);
        let assertions = Assertions { list, payloads: self.sorted_payloads() };
        let targets = self.targets.take_named();
        if on_unknown.is_none() || !sound {
            return (None, cases, assertions);
        }
        let program = Program::new(rules, fallback, self.on_unknown, targets);
        let program = program.with_payloads(payloads, self.validate);
        review::separation(&program, self.source, &mut self.findings);
        twins::warn(&program, &mut self.findings);
        batches::note(&program, &mut self.findings);
        (Some(program), cases, assertions)
    }

    fn gather_labels(&mut self, file: &'a ast::RuleFile) {
        let rules = file.items.iter().filter_map(|item| match item {
            Item::Rule(rule) => Some(rule),
            _ => None,
        });
        self.labels.reserve(file.items.len());
        for (index, rule) in (0..).zip(pace::each(rules)) {
            let Some(label) = &rule.label else { continue };
            if let Some((_, first)) = self.labels.get(&*label.text) {
                let line = self.line(*first);
                let message = format!("the label `{}` is taken", shorten(&label.text));
                self.error(label.span, message, format!("line {line} has it; labels are unique"));
                continue;
            }
            self.labels.insert(&label.text, (RuleIndex(index), label.span));
        }
    }

    /// Settings stand first and `else:` last; anything else would read as if order meant nothing.
    fn check_order(&mut self, file: &ast::RuleFile) {
        let (mut any_rule, mut ended) = (false, false);
        for item in &file.items {
            match item {
                Item::Setting(setting) if any_rule => {
                    self.error(
                        setting.span,
                        "a setting stands behind a rule",
                        "settings stand at the top of the file",
                    );
                }
                Item::Setting(_) | Item::Test(_) | Item::Assert(_) => {}
                Item::Rule(_) | Item::Fallback(_) => {
                    any_rule = true;
                    if ended {
                        let at = head_of(item.span(), self.source);
                        self.error(
                            at,
                            "a rule stands behind `else:`",
                            "`else:` is the last rule of a rule set",
                        );
                    }
                    ended |= matches!(item, Item::Fallback(_));
                }
            }
        }
    }

    fn settings(&mut self, file: &'a ast::RuleFile) -> Option<OnUnknown> {
        let mut seen: HashMap<String, Span> = HashMap::new();
        let mut on_unknown = Some(OnUnknown::default());
        for item in &file.items {
            let Item::Setting(setting) = item else { continue };
            let what = match &setting.kind {
                SettingKind::OnUnknownReject => "on_unknown".to_owned(),
                SettingKind::OnUnknownSkip => {
                    on_unknown = Some(OnUnknown::Skip);
                    "on_unknown".to_owned()
                }
                SettingKind::OnUnknownRouteTo(target) => {
                    on_unknown = self.target(target).map(OnUnknown::RouteTo);
                    "on_unknown".to_owned()
                }
                SettingKind::ValidateStream => {
                    self.validate = Some(Validate::Stream);
                    "validate".to_owned()
                }
                SettingKind::ValidateFull => {
                    self.validate = Some(Validate::Full);
                    "validate".to_owned()
                }
                SettingKind::Namespace(prefix, uri) => {
                    self.namespaces.insert((*prefix.text).into(), (*uri.text).into());
                    format!("namespace {}", shorten(&prefix.text))
                }
            };
            if let Some(first) = seen.get(&what) {
                let line = self.line(*first);
                self.error(
                    setting.span,
                    format!("`{what}` is set twice"),
                    format!("line {line} sets it already"),
                );
            } else {
                seen.insert(what, setting.span);
            }
        }
        on_unknown
    }

    fn rule(&mut self, index: RuleIndex, rule: &'a ast::Rule, name: Option<&str>) -> Option<Rule> {
        let condition = match &rule.condition {
            Some(condition) => self.condition(condition),
            None => Some(Condition::Always),
        };
        let sound = condition.is_some();
        self.holding = condition.unwrap_or(Condition::Always);
        let then = self.block(index, &rule.then);
        let condition = sound.then_some(std::mem::replace(&mut self.holding, Condition::Always));
        let otherwise = match &rule.otherwise {
            Some(block) => self.block(index, block),
            None => Some(Block::default()),
        };
        let label = match (&rule.label, name) {
            (Some(label), _) => label.text.clone(),
            (None, Some(name)) => name.into(),
            (None, None) => format!("#{}", index.0 + 1).into(),
        };
        let rule = Rule { label, span: rule.span, condition: condition?, then: then?, otherwise: otherwise? };
        review::rule(&rule, self.on_unknown, &mut self.findings);
        Some(rule)
    }

    /// The rule that a jump from `from` leads to: always one that comes later.
    fn jump(&mut self, from: RuleIndex, label: &ast::Name) -> Option<RuleIndex> {
        let index = self.labelled(label)?;
        if index > from {
            return Some(index);
        }
        let itself = if index == from { "jumps to its own rule" } else { "jumps backward" };
        self.error(
            label.span,
            format!("`goto {}` {itself}", shorten(&label.text)),
            "jumps go forward only, so that every rule set comes to an end",
        );
        None
    }

    fn labelled(&mut self, label: &ast::Name) -> Option<RuleIndex> {
        if let Some((index, _)) = self.labels.get(&*label.text) {
            return Some(*index);
        }
        let help = match self.nearest(&label.text, self.labels.keys().copied()) {
            Some(known) => format!("did you mean `{known}`?"),
            None => "a label stands before a rule: `R1: if (…) { … }`".to_owned(),
        };
        self.error(label.span, format!("no rule has the label `{}`", shorten(&label.text)), help);
        None
    }

    /// The field that a name means.
    fn field(&mut self, named: &FieldRef) -> Option<Field> {
        self.resolved(named).map_err(|finding| self.findings.add(finding)).ok()
    }

    /// The same, or what is wrong with the name.
    fn resolved(&mut self, named: &FieldRef) -> Result<Field, Diagnostic> {
        let field = match self.named(named)? {
            Resolved::Head(field) => field,
            Resolved::Payload(spelling, place) => Field::Payload(self.payload(spelling, place)),
        };
        self.in_scope(named, field)
    }

    /// What a name and its key spell, wherever it is known.
    fn named(&self, named: &FieldRef) -> Result<Resolved, Diagnostic> {
        let key = named.key.as_ref().map(|key| &*key.text);
        let namespace = |prefix: &str| self.namespaces.get(prefix).cloned();
        schema::resolve(&named.name, key, namespace)
            .map_err(|why| no_field(named, &why, self.findings.suggestions()))
    }

    /// The one field of that place, by whatever name it was called first.
    fn payload(&mut self, spelling: Box<str>, place: Place) -> Arc<Payload> {
        let id = PayloadId(u32::try_from(self.payloads.len()).unwrap_or(u32::MAX));
        let payload = self.payloads.entry(place.clone());
        payload.or_insert_with(|| Arc::new(Payload { id, spelling, place })).clone()
    }

    /// All of them, by their ids.
    fn sorted_payloads(&self) -> Vec<Arc<Payload>> {
        let mut payloads: Vec<_> = self.payloads.values().cloned().collect();
        payloads.sort_unstable_by_key(|payload| payload.id);
        payloads
    }

    /// What `word` was probably meant to be.
    fn nearest<'c>(&self, word: &str, known: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
        self.findings.suggestions().nearest(word, known)
    }

    /// The line on which something begins.
    fn line(&self, span: Span) -> usize {
        self.lines.get_or_init(|| Lines::of(self.source)).line(span.start)
    }

    fn error(&mut self, at: Span, message: impl Into<String>, help: impl Into<String>) {
        self.findings.add(Diagnostic::error(at, message).help(help));
    }

    fn warn(&mut self, at: Span, message: impl Into<String>, help: impl Into<String>) {
        self.findings.add(Diagnostic::warning(at, message).help(help));
    }
}

pub(crate) fn no_field(named: &FieldRef, why: &NoField, suggestions: &Suggestions) -> Diagnostic {
    let name = shorten(&named.name);
    let error = |message: String| Diagnostic::error(named.span, message);
    match why {
        NoField::Unknown => {
            if let Some(help) = key_behind_dot(&named.name) {
                return error(format!("unknown field `{name}`")).help(help);
            }
            let known = schema::ENTRIES.iter().map(|entry| entry.name);
            let help = match suggestions.nearest(&named.name, known) {
                Some(known) => format!("did you mean `{known}`?"),
                None if named.name.contains('.') => {
                    "values of the body are named `xml.PATH`, `json.PATH` or `form[\"name\"]`".to_owned()
                }
                None => {
                    "fields are `path`, `host`, `srcip`, `header[\"name\"]` and others; see the reference"
                        .to_owned()
                }
            };
            error(format!("unknown field `{name}`")).help(help)
        }
        NoField::KeyMissing => {
            error(format!("`{name}` needs a key")).help(format!("write `{name}[\"name\"]`"))
        }
        NoField::KeyUnexpected => error(format!("`{name}` has no keys")).help(format!("write `{name}`")),
        NoField::KeyInvalid => {
            let key = named.key.as_ref().map_or("", |key| &*key.text);
            let span = named.key.as_ref().map_or(named.span, |key| key.span);
            Diagnostic::error(span, format!("`{}` cannot be the name of a {name}", shorten(key)))
                .help("names are letters, digits and a few signs such as `-`, without white space")
        }
        NoField::Path(fault) => {
            let (start, end) = (named.span.start + fault.at.0, named.span.start + fault.at.1);
            Diagnostic::error(Span { start, end }, fault.message.clone()).help(fault.help)
        }
        NoField::Mail => error(format!("mail fields are not evaluated yet, and `{name}` is one"))
            .help("a rule set that names one is refused; there are no mail listeners yet"),
    }
}

/// Other languages write `header.host`.
fn key_behind_dot(name: &str) -> Option<String> {
    let (field, key) = name.split_once('.')?;
    let takes_key = schema::ENTRIES.iter().any(|entry| entry.name == field && entry.key != schema::Key::None);
    takes_key.then(|| format!("write `{field}[\"{}\"]`", shorten(key)))
}

/// The first line of a span: enough to point at.
fn head_of(span: Span, source: &str) -> Span {
    let line = span.of(source).lines().next().unwrap_or("").trim_end().len();
    Span { start: span.start, end: span.start + u32::try_from(line).unwrap_or(0) }
}

//! Every part of the language in its modern spelling, on one line.

use crate::ast::{
    Action, ActionKind, Assertion, Block, Comparison, Condition, Destination, Entry, ExpectedEffect,
    ExpectedOutcome, FieldRef, GivenValue, Literal, LiteralKind, Name, Operand, Predicate, Quoted,
    SettingKind, Status, Sticky, StickyKind, Target, TestCase, TextOperator,
};
use crate::lexer::{Kind, Lexer};
use crate::{Ending, Order, Over, Side};

use super::INDENT;
use super::layout::LINE_CHARS_MAX;

/// Words that are no target behind the arrow of a test, unless they stand in quotes.
const OUTCOME_WORDS: &[&str] = &["reject", "discard", "redirect", "respond", "split", "unknown"];

#[derive(Clone, Copy)]
pub(super) struct Spelling<'a> {
    pub(super) source: &'a str,
}

impl Spelling<'_> {
    pub(super) fn setting(&self, kind: &SettingKind) -> String {
        match kind {
            SettingKind::OnUnknownReject => "on_unknown reject;".to_owned(),
            SettingKind::OnUnknownSkip => "on_unknown skip;".to_owned(),
            SettingKind::OnUnknownRouteTo(target) => format!("on_unknown routeTo({});", name(target)),
            SettingKind::ValidateStream => "validate stream;".to_owned(),
            SettingKind::ValidateFull => "validate full;".to_owned(),
            SettingKind::Namespace(prefix, uri) => {
                format!("namespace {} = {};", name(prefix), self.quoted(uri))
            }
        }
    }

    pub(super) fn test(&self, test: &TestCase) -> String {
        let mut given: Vec<_> = test
            .request
            .iter()
            .map(|given| match &given.value {
                GivenValue::Literal(value) => format!("{} {}", self.field(&given.field), self.literal(value)),
                GivenValue::Null(_) => format!("{} null", self.field(&given.field)),
                GivenValue::Absent(_) => format!("{} absent", self.field(&given.field)),
            })
            .collect();
        given.extend(test.rest.iter().map(|cause| format!("body unknown({})", cause.text)));
        let mut request = format!("{INDENT}request {}", given.join(" "));
        if request.chars().count() > LINE_CHARS_MAX {
            request = format!("{INDENT}request");
            for pair in &given {
                request.push_str(&format!("\n{INDENT}{INDENT}{pair}"));
            }
        }
        let request = request.trim_end();
        let decider =
            if test.decider.text.eq_ignore_ascii_case("else") { "else" } else { &test.decider.text };
        let outcome = test.outcome.as_ref().map(|outcome| format!(" -> {}", self.expected(outcome)));
        let mut expect = format!("{INDENT}expect {decider}{}", outcome.unwrap_or_default());
        if let Some(effects) = &test.effects {
            expect.push_str(&self.expected_effects(effects, expect.chars().count()));
        }
        format!("test {} {{\n{request}\n{expect}\n}}", self.quoted(&test.name))
    }

    /// Behind so many characters of a line; each on a line of its own where they have no room there.
    fn expected_effects(&self, effects: &[ExpectedEffect], before_chars: usize) -> String {
        let spelled = effects.iter().map(|effect| match effect {
            ExpectedEffect::Action(action) => self.action(action).trim_end_matches(';').to_owned(),
            ExpectedEffect::Path(path) => format!("rewritePath({})", self.quoted(path)),
        });
        let spelled: Vec<_> = spelled.collect();
        if spelled.is_empty() {
            return " with nothing".to_owned();
        }
        let line = format!(" with {}", spelled.join(" "));
        match before_chars + line.chars().count() > LINE_CHARS_MAX {
            true => format!(" with\n{INDENT}{INDENT}{}", spelled.join(&format!("\n{INDENT}{INDENT}"))),
            false => line,
        }
    }

    fn expected(&self, outcome: &ExpectedOutcome) -> String {
        let with_status = |word: &str, status: &Option<Status>| match status {
            Some(status) => format!("{word}({})", self.status(status)),
            None => word.to_owned(),
        };
        match outcome {
            ExpectedOutcome::Target(target) if OUTCOME_WORDS.contains(&&*target.text) => quote(&target.text),
            ExpectedOutcome::Target(target) => name(target),
            ExpectedOutcome::Reject(status) => with_status("reject", status),
            ExpectedOutcome::Reset(_) => "reject(reset)".to_owned(),
            ExpectedOutcome::Discard(_) => "discard".to_owned(),
            ExpectedOutcome::Split(_) => "split".to_owned(),
            ExpectedOutcome::Redirect(status) => with_status("redirect", status),
            ExpectedOutcome::Respond(status) => with_status("respond", status),
            ExpectedOutcome::Unknown(_, None) => "unknown".to_owned(),
            ExpectedOutcome::Unknown(_, Some(cause)) => format!("unknown({})", cause.text),
        }
    }

    pub(super) fn assertion(&self, assertion: &Assertion) -> String {
        let (title, condition) = (self.quoted(&assertion.name), self.condition(&assertion.condition));
        let destination = match &assertion.destination {
            Destination::Target(target) if Ending::of(&target.text).is_some() => quote(&target.text),
            Destination::Target(target) => name(target),
            Destination::Ending(_, ending) => ending.word().to_owned(),
        };
        format!("assert {title}: {} ({condition}) -> {destination};", assertion.claim.word())
    }

    /// `{ a(); b(); }`
    pub(super) fn block(&self, block: &Block) -> String {
        if block.actions.is_empty() {
            return "{}".to_owned();
        }
        let actions: Vec<_> = block.actions.iter().map(|action| self.action(action)).collect();
        format!("{{ {} }}", actions.join(" "))
    }

    /// With its semicolon.
    pub(super) fn action(&self, action: &Action) -> String {
        match &action.kind {
            ActionKind::RouteTo(target, sticky) => {
                let sticky = sticky.as_ref().map(|sticky| format!(", {}", self.sticky(sticky)));
                format!("routeTo({}{});", self.target(target), sticky.unwrap_or_default())
            }
            ActionKind::Reject(None, _) => "reject();".to_owned(),
            ActionKind::Reject(Some(status), None) => format!("reject({});", self.status(status)),
            ActionKind::Reject(Some(status), Some(reason)) => {
                format!("reject({}, {});", self.status(status), self.quoted(reason))
            }
            ActionKind::Reset => "reject(reset);".to_owned(),
            ActionKind::Discard => "discard();".to_owned(),
            ActionKind::Redirect(status, to) => {
                format!("redirect({}, {});", self.status(status), self.quoted(to))
            }
            ActionKind::Respond(status, body) => {
                format!("respond({}, {});", self.status(status), self.quoted(body))
            }
            ActionKind::Goto(label) => format!("goto {};", label.text),
            ActionKind::SetHeader(side, header, value) => {
                format!("set{}({}, {});", header_word(*side), self.quoted(header), self.quoted(value))
            }
            ActionKind::AddHeader(side, header, value) => {
                format!("add{}({}, {});", header_word(*side), self.quoted(header), self.quoted(value))
            }
            ActionKind::RemoveHeader(side, header) => {
                format!("remove{}({});", header_word(*side), self.quoted(header))
            }
            ActionKind::RewritePath(regex, replacement) => {
                format!("rewritePath({}, {});", self.quoted(regex), self.quoted(replacement))
            }
            ActionKind::Bandwidth(class) => format!("bandwidth({});", name(class)),
            ActionKind::LimitRate(class) => format!("limitRate({});", name(class)),
            ActionKind::Mirror(pool) => format!("mirror({});", name(pool)),
            ActionKind::Tag(word) => format!("tag({});", name(word)),
            ActionKind::AllowConflict(labels) => {
                let labels: Vec<_> = labels.iter().map(|label| &*label.text).collect();
                format!("allow conflict({});", labels.join(", "))
            }
        }
    }

    fn target(&self, target: &Target) -> String {
        match target {
            Target::Named(named) => name(named),
            Target::Split(_, shares) => {
                let shares: Vec<_> = shares
                    .iter()
                    .map(|share| format!("{}: {}", share.percent.text, name(&share.target)))
                    .collect();
                format!("split({})", shares.join(", "))
            }
        }
    }

    fn sticky(&self, sticky: &Sticky) -> String {
        match &sticky.kind {
            StickyKind::None => "NON_STICKY".to_owned(),
            StickyKind::Ip => "STICKY_ON_IP".to_owned(),
            StickyKind::IpPort => "STICKY_ON_IP_PORT".to_owned(),
            StickyKind::Cookie => "STICKY_ON_COOKIE".to_owned(),
            StickyKind::TlsSession => "STICKY_ON_TLS_SESSION".to_owned(),
            StickyKind::Field(field) => format!("STICKY_ON({})", self.field(field)),
        }
    }

    pub(super) fn condition(&self, condition: &Condition) -> String {
        match condition {
            Condition::Not(_, inner) => match &**inner {
                Condition::Group(..) => format!("!{}", self.condition(inner)),
                Condition::Test(Comparison { predicate: Predicate::Bare, .. }) => {
                    format!("!{}", self.condition(inner))
                }
                _ => format!("!({})", self.condition(inner)),
            },
            Condition::And(parts) => self.joined(parts, " && "),
            Condition::Or(parts) => self.joined(parts, " || "),
            Condition::Group(_, inner) => format!("({})", self.condition(inner)),
            Condition::Test(test) => self.comparison(test),
            // Only texts without errors are formatted.
            Condition::Broken(span) => span.of(self.source).to_owned(),
        }
    }

    fn joined(&self, parts: &[Condition], joint: &str) -> String {
        parts.iter().map(|part| self.condition(part)).collect::<Vec<_>>().join(joint)
    }

    fn comparison(&self, test: &Comparison) -> String {
        let left = self.operand(&test.operand);
        match &test.predicate {
            Predicate::Bare => left,
            Predicate::Exists => format!("{left} exists"),
            Predicate::Equals(literal) => format!("{left} == {}", self.literal(literal)),
            Predicate::Differs(literal) => format!("{left} != {}", self.literal(literal)),
            Predicate::Ordered(order, literal) => {
                format!("{left} {} {}", order_sign(*order), self.literal(literal))
            }
            Predicate::Text(operator, text) => {
                format!("{left} {} {}", operator.word(), self.quoted(text))
            }
            Predicate::In { entries, bare, .. } => {
                let entries: Vec<_> = entries.iter().map(|entry| self.entry(entry)).collect();
                let entries = entries.join(", ");
                if *bare { format!("{left} in {entries}") } else { format!("{left} in [{entries}]") }
            }
        }
    }

    pub(super) fn operand(&self, operand: &Operand) -> String {
        let field = self.field(&operand.field);
        let chosen = match operand.over {
            Over::Any => field,
            Over::All => format!("all({field})"),
            Over::First => format!("first({field})"),
            Over::Once => format!("once({field})"),
            Over::Count => format!("count({field})"),
        };
        if operand.fold_case { format!("lower({chosen})") } else { chosen }
    }

    fn field(&self, field: &FieldRef) -> String {
        match &field.key {
            Some(key) => format!("{}[{}]", field.name, self.quoted(key)),
            None => field.name.to_string(),
        }
    }

    pub(super) fn entry(&self, entry: &Entry) -> String {
        match entry {
            Entry::Value(literal) => self.literal(literal),
            Entry::Range { from, to, exclusive, .. } => {
                let range = format!("{}..{}", self.literal(from), self.literal(to));
                if *exclusive { format!("({range})") } else { range }
            }
            Entry::List(list) => format!("@{}", list.text),
        }
    }

    fn literal(&self, literal: &Literal) -> String {
        match &literal.kind {
            LiteralKind::Text(text) => self.quoted(&Quoted { text: text.clone(), span: literal.span }),
            LiteralKind::Number(number) => number.to_string(),
            LiteralKind::Address(address) => address.to_string(),
            LiteralKind::Network(network) => network.to_string(),
            LiteralKind::Boolean(value) => value.to_string(),
        }
    }

    /// As it was written, unless typographic quotes stand around it.
    fn quoted(&self, quoted: &Quoted) -> String {
        let written = quoted.span.of(self.source);
        if written.starts_with('"') { written.to_owned() } else { quote(&quoted.text) }
    }

    fn status(&self, status: &Status) -> String {
        status.span.of(self.source).to_owned()
    }
}

impl TextOperator {
    /// As rules spell it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            TextOperator::Contains => "contains",
            TextOperator::StartsWith => "startsWith",
            TextOperator::EndsWith => "endsWith",
            TextOperator::Like => "like",
            TextOperator::Matches => "matches",
            TextOperator::Under => "under",
        }
    }
}

/// A name by itself where it is a word, otherwise in quotes.
pub(super) fn name(name: &Name) -> String {
    let token = Lexer::new(&name.text).next();
    let whole = token.span.start == 0 && token.span.end as usize == name.text.len();
    if token.kind == Kind::Word && whole { name.text.to_string() } else { quote(&name.text) }
}

/// A text in quotes. A backslash is doubled only where it would be read as an escape.
fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' if matches!(chars.peek(), None | Some('"' | '\\')) => out.push_str("\\\\"),
            other => out.push(other),
        }
    }
    out.push('"');
    out
}

fn header_word(side: Side) -> &'static str {
    match side {
        Side::Request => "Header",
        Side::Response => "ResponseHeader",
    }
}

fn order_sign(order: Order) -> &'static str {
    match order {
        Order::Less => "<",
        Order::LessOrEqual => "<=",
        Order::Greater => ">",
        Order::GreaterOrEqual => ">=",
    }
}

//! Rule text to syntax tree; every error is reported, and reading goes on after it.

mod actions;
mod blocks;
mod cases;
mod conditions;
mod declarations;
mod recovery;
mod tables;
mod values;

pub(crate) use actions::STICKINESSES;
#[cfg(test)]
pub(crate) use conditions::WORD_OPERATORS;
pub(crate) use recovery::shorten;
#[cfg(test)]
pub(crate) use values::WRAPPERS;

use crate::ast::{Action, ActionKind, FieldRef, Item, Question, RuleFile};
use crate::lexer::{Kind, Lexer, Token};
use crate::{Diagnostic, Findings, Span};

/// Longest text that is read: a rule file, or a configuration.
pub const SOURCE_BYTES_MAX: usize = 16 << 20;

/// Most rules in a file.
const RULES_MAX: usize = 1_000_000;

/// Deepest nesting of brackets in a condition.
const DEPTH_MAX: usize = 64;

/// Reads a rule file. The tree holds whatever could be understood; older spellings have become
/// modern ones in it. Where no finding is an error, it is the whole file.
pub fn parse(source: &str) -> (RuleFile, Vec<Diagnostic>) {
    let (file, findings) = parse_into(source);
    (file, findings.into_sorted())
}

/// The same, with findings that can still be added to.
pub(crate) fn parse_into(source: &str) -> (RuleFile, Findings) {
    if source.len() > SOURCE_BYTES_MAX {
        let mut findings = Findings::default();
        let message = format!("the file is longer than {} MiB", SOURCE_BYTES_MAX >> 20);
        findings.add(Diagnostic::error(Span::default(), message).help("split the rule set over listeners"));
        return (RuleFile::default(), findings);
    }
    let mut parser = Parser::new(source, "the end of the file");
    if let Some(finding) = lone_return(source) {
        parser.findings.add(finding);
    }
    let items = parser.items();
    let comments = std::mem::take(&mut parser.lexer.comments);
    (RuleFile { items, comments }, parser.findings)
}

/// A carriage return that no line feed follows. Many editors show a line break there, and the lexer sees none:
/// what looks like a rule below a comment would be the comment's end.
fn lone_return(source: &str) -> Option<Diagnostic> {
    let bytes = source.as_bytes();
    let mut lone = memchr::memchr_iter(b'\r', bytes).filter(|at| bytes.get(at + 1) != Some(&b'\n'));
    let first = u32::try_from(lone.next()?).unwrap_or(u32::MAX);
    let message = match lone.count() {
        0 => "a carriage return without a line feed behind it".to_owned(),
        more => format!("a carriage return without a line feed behind it, and {more} more of them"),
    };
    let help = "lines end in LF or CRLF; a text cannot hold a line break";
    Some(Diagnostic::error(Span { start: first, end: first + 1 }, message).help(help))
}

/// The papers end a rule set as a C function, with `return route_to(…);` for what no rule took.
fn return_is_fallback(item: &mut Item) {
    if let Item::Rule(rule) = item
        && matches!(rule.then.actions[..], [Action { kind: ActionKind::RouteTo(..), .. }])
    {
        *item = Item::Fallback(std::mem::take(rule));
    }
}

/// Reads one field and nothing else, as a template names it.
pub(crate) fn parse_field(text: &str) -> Result<FieldRef, Vec<Diagnostic>> {
    let mut parser = Parser::new(text, "the end of the name");
    let field = parser.field();
    if field.is_ok() && parser.token.kind != Kind::End {
        parser.unexpected("the end of the field's name");
    }
    match field {
        Ok(field) if !parser.findings.any_error() => Ok(field),
        _ => Err(parser.findings.into_sorted()),
    }
}

/// Reads a question about rules.
pub(crate) fn parse_question(text: &str) -> (Option<Question>, Findings) {
    let mut parser = Parser::new(text, "the end of the question");
    let question = parser.question().ok();
    (question, parser.findings)
}

/// Something could not be read, and the error has been reported.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Broken;

pub(crate) type Parsed<T> = Result<T, Broken>;

pub(crate) struct Parser<'a> {
    pub(crate) source: &'a str,
    lexer: Lexer<'a>,
    pub(crate) token: Token,
    pub(crate) ahead: Token,
    /// Where the last token that was taken ended.
    last_end: u32,
    depth: usize,
    /// Round brackets taken that are still open.
    round: usize,
    /// The token at which reading went on after an error: a second error there says nothing new.
    resumed_at: Option<u32>,
    /// What the end of the text is called.
    end: &'static str,
    /// Tables of extracted values that were declared so far.
    tables: Vec<tables::Table>,
    pub(crate) findings: Findings,
}

impl<'a> Parser<'a> {
    fn new(source: &'a str, end: &'static str) -> Self {
        let mut lexer = Lexer::new(source);
        let token = lexer.next();
        let ahead = lexer.next();
        Parser {
            source,
            lexer,
            token,
            ahead,
            last_end: 0,
            depth: 0,
            round: 0,
            resumed_at: None,
            end,
            tables: Vec::new(),
            findings: Findings::default(),
        }
    }

    fn items(&mut self) -> Vec<Item> {
        let mut items = Vec::new();
        let mut rules = 0;
        let mut last_return = None;
        while self.token.kind != Kind::End && !self.findings.overflowed() {
            let start = self.token.span;
            let returns = self.at_word("return");
            if let Some(item) = self.item() {
                rules += usize::from(matches!(item, Item::Rule(_)));
                if rules > RULES_MAX {
                    self.error(start, format!("more than {RULES_MAX} rules"), "split the rule set");
                    break;
                }
                if matches!(item, Item::Rule(_) | Item::Fallback(_)) {
                    last_return = returns.then_some(items.len());
                }
                items.push(item);
            }
        }
        if let Some(item) = last_return.and_then(|at| items.get_mut(at)) {
            return_is_fallback(item);
        }
        items
    }

    fn item(&mut self) -> Option<Item> {
        let labelled = self.ahead.kind == Kind::Colon;
        let word = if self.token.kind == Kind::Word { self.text() } else { "" };
        if labelled && word.eq_ignore_ascii_case("else") {
            return Some(self.fallback());
        }
        if labelled && !word.is_empty() {
            return Some(Item::Rule(Box::new(self.rule())));
        }
        let quoted = matches!(self.ahead.kind, Kind::Text | Kind::OpenText);
        if self.at_table() {
            self.table();
            return None;
        }
        match word {
            "on_unknown" | "validate" | "namespace" => self.setting().map(Item::Setting),
            "test" if quoted => self.test().map(|test| Item::Test(Box::new(test))),
            "assert" if quoted => self.assertion().map(|assertion| Item::Assert(Box::new(assertion))),
            _ if self.at_misspelt_label() => Some(Item::Rule(Box::new(self.rule()))),
            _ if self.at_rule_body() => Some(Item::Rule(Box::new(self.rule()))),
            _ => {
                self.out_of_place();
                None
            }
        }
    }

    /// Takes the token.
    pub(crate) fn bump(&mut self) -> Span {
        let taken = self.token.span;
        match self.token.kind {
            Kind::LeftRound => self.round += 1,
            Kind::RightRound => self.round = self.round.saturating_sub(1),
            _ => {}
        }
        self.last_end = taken.end;
        self.token = self.ahead;
        self.ahead = self.lexer.next();
        taken
    }

    /// The token's text.
    pub(crate) fn text(&self) -> &'a str {
        self.token.span.of(self.source)
    }

    pub(crate) fn at(&self, kind: Kind) -> bool {
        self.token.kind == kind
    }

    /// Whether the token is this word, whatever its case: typesetters and habit write `If`.
    pub(crate) fn at_word(&self, word: &str) -> bool {
        self.at(Kind::Word) && self.text().eq_ignore_ascii_case(word)
    }

    /// Whether the token is one of these function names, with its bracket.
    pub(crate) fn at_call(&self, names: &[&str]) -> bool {
        self.at(Kind::Word) && self.ahead.kind == Kind::LeftRound && names.contains(&self.text())
    }

    pub(crate) fn take(&mut self, kind: Kind) -> Option<Span> {
        self.at(kind).then(|| self.bump())
    }

    pub(crate) fn expect(&mut self, kind: Kind, what: &str) -> Parsed<Span> {
        match self.take(kind) {
            Some(span) => Ok(span),
            None => Err(self.unexpected(what)),
        }
    }

    /// From `start` to the end of what was taken last.
    pub(crate) fn since(&self, start: Span) -> Span {
        Span { start: start.start, end: self.last_end.max(start.start) }
    }

    /// Just behind what was taken last: where something is missing.
    pub(crate) fn behind(&self) -> Span {
        Span { start: self.last_end, end: self.last_end }
    }

    /// Goes one bracket deeper; the caller comes up again with `rise`.
    pub(crate) fn sink(&mut self, at: Span) -> Parsed<()> {
        if self.depth >= DEPTH_MAX {
            let message = format!("brackets are nested more than {DEPTH_MAX} deep");
            self.error(at, message, "split the condition over several rules");
            return Err(Broken);
        }
        self.depth += 1;
        Ok(())
    }

    pub(crate) fn rise(&mut self) {
        self.depth -= 1;
    }

    /// What `word` was probably meant to be.
    pub(crate) fn nearest(&self, word: &str, known: &[&'static str]) -> Option<&'static str> {
        self.findings.suggestions().nearest(word, known.iter().copied())
    }

    pub(crate) fn error(&mut self, at: Span, message: impl Into<String>, help: impl Into<String>) {
        self.findings.add(Diagnostic::error(at, message).help(help));
    }
}

//! What is said about a token that cannot stand where it stands, and where reading goes on.

use super::{Broken, Parser};
use crate::lexer::{Kind, is_quote};
use crate::{Diagnostic, Span};

/// No more than this of the user's text is repeated in a message.
const QUOTED_CHARS_MAX: usize = 40;

/// Characters of a line that are looked at for a missing quote.
const LINE_CHARS_MAX: usize = 4096;

impl Parser<'_> {
    /// Reports that the token is not `what`.
    pub(crate) fn unexpected(&mut self, what: &str) -> Broken {
        let finding = self.surprise(what);
        self.report(finding)
    }

    /// The same with a help line, unless the token itself is at fault.
    pub(crate) fn unexpected_so(&mut self, what: &str, help: impl Into<String>) -> Broken {
        let mut finding = self.surprise(what);
        if finding.help.is_none() {
            finding = finding.help(help);
        }
        self.report(finding)
    }

    fn report(&mut self, finding: Diagnostic) -> Broken {
        if self.resumed_at != Some(self.token.span.start) {
            self.findings.add(finding);
        }
        Broken
    }

    fn resume(&mut self) {
        self.resumed_at = Some(self.token.span.start);
    }

    fn surprise(&self, what: &str) -> Diagnostic {
        let at = self.token.span;
        match self.token.kind {
            Kind::OpenText => Diagnostic::error(at, "this text is not closed").help(
                "a text ends on its line, with the quote it began with; a quote inside it is written `\\\"`",
            ),
            Kind::Stray => Diagnostic::error(at, format!("expected {what}, found `{}`", self.shown()))
                .help("no part of the language begins like that; texts stand in double quotes"),
            Kind::End => Diagnostic::error(self.behind(), format!("expected {what}, found {}", self.end)),
            _ => Diagnostic::error(at, format!("expected {what}, found `{}`", self.shown())),
        }
    }

    /// Whether the quote that closes `text` was meant to open the next one: `match(url, "a)) routeTo("b", …)`. Then a
    /// word is glued to it, and the line ends within a text. The report stands where the missing quote belongs.
    pub(super) fn at_swallowed(&mut self, text: Span) -> bool {
        let glued = self.at(Kind::Word) && self.token.span.start == text.end;
        if !glued {
            return false;
        }
        // A line may be as long as the file: no more of it is looked at for each text.
        let rest = self.source[self.token.span.start as usize..].chars().take(LINE_CHARS_MAX);
        let is_odd = rest.take_while(|c| *c != '\n').filter(|c| is_quote(*c)).count() % 2 == 1;
        let end = text.of(self.source).find([')', ',', ';', '}']).filter(|_| is_odd);
        let Some(end) = end.and_then(|end| u32::try_from(end).ok()) else { return false };
        let at = Span { start: text.start, end: text.start + end };
        let help = format!("add a quote behind `{}`", shorten(at.of(self.source)));
        self.error(at, "this text is not closed", help);
        while !self.at(Kind::End) && !self.token.opens_line {
            self.bump();
        }
        self.resume();
        true
    }

    /// The token's text, short enough for a message.
    pub(crate) fn shown(&self) -> String {
        shorten(self.text())
    }

    /// Reports a token that begins nothing, and goes to the next line.
    pub(super) fn out_of_place(&mut self) {
        if self.at(Kind::RightCurly) {
            let at = self.bump();
            self.error(at, "this `}` closes nothing", "remove it");
            return;
        }
        if self.at_word("else") {
            let at = self.bump();
            self.error(
                at,
                "`else` without an `if` before it",
                "the last line of a rule set is written `else: …`, with a colon",
            );
            // Read for the errors in it.
            self.block();
            return;
        }
        self.unexpected_so(
            "a rule",
            "a rule is written `LABEL: if (condition) { actions }`; a setting stands at the top",
        );
        self.bump();
        while !self.at(Kind::End) && !self.token.opens_line {
            self.bump();
        }
    }

    /// Whether a new rule begins here although something before it is still open.
    pub(super) fn starts_rule(&self) -> bool {
        if !self.at(Kind::Word) || !self.token.opens_line {
            return false;
        }
        self.ahead.kind == Kind::Colon || self.at_margin() && self.at_word("if")
    }

    fn at_margin(&self) -> bool {
        let start = self.token.span.start as usize;
        start == 0 || self.source.as_bytes().get(start - 1) == Some(&b'\n')
    }

    /// Goes to where an operand can follow or the condition ends, out of all round brackets but
    /// the outer `round` ones.
    pub(super) fn skip_in_condition(&mut self, round: usize) {
        loop {
            let inside = self.round > round;
            match self.token.kind {
                Kind::End | Kind::LeftCurly | Kind::RightCurly | Kind::Semicolon => break,
                Kind::RightRound if !inside => break,
                _ if !inside && self.at_joint() => return,
                _ if self.starts_rule() => break,
                _ => {}
            }
            self.bump();
        }
        self.resume();
    }

    /// Goes to the block that a broken condition guards.
    pub(super) fn skip_to_block(&mut self) {
        loop {
            match self.token.kind {
                Kind::End | Kind::LeftCurly | Kind::RightCurly | Kind::Semicolon => break,
                Kind::Word if self.starts_rule() || self.at_action() => break,
                _ => {}
            }
            self.bump();
        }
        self.resume();
    }

    /// Goes behind the semicolon of a broken action, or to the end of its block.
    pub(super) fn skip_action(&mut self) {
        loop {
            match self.token.kind {
                Kind::End | Kind::RightCurly => break,
                Kind::Semicolon => {
                    self.bump();
                    return;
                }
                // A text that is not closed has swallowed its semicolon.
                Kind::OpenText => {
                    self.bump();
                    if self.token.opens_line {
                        return;
                    }
                    continue;
                }
                _ if self.starts_rule() => break,
                Kind::Word if self.token.opens_line && self.at_action() => break,
                _ => {}
            }
            self.bump();
        }
        self.resume();
    }
}

/// `text`, cut where it is too long for a message.
pub(crate) fn shorten(text: &str) -> String {
    match text.char_indices().nth(QUOTED_CHARS_MAX) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text.to_owned(),
    }
}

//! Rules and their blocks.

use super::Parser;
use super::recovery::shorten;
use crate::ast::{Block, Condition, Item, Name, Rule};
use crate::lexer::Kind;

const GUARD_FORM: &str = "a condition stands in round brackets: `if (condition) { … }`";

impl Parser<'_> {
    /// `else: …`
    pub(super) fn fallback(&mut self) -> Item {
        let start = self.bump();
        self.bump();
        let then = self.block();
        let span = self.since(start);
        Item::Fallback(Box::new(Rule { span, label: None, condition: None, then, otherwise: None }))
    }

    /// Whether a rule without a label begins here.
    pub(super) fn at_rule_body(&self) -> bool {
        self.at(Kind::LeftCurly) || self.at_word("if") || self.at_action()
    }

    /// Whether `R4;` or `R4=` stands here in the place of `R4:`, on a line that goes on.
    pub(super) fn at_misspelt_label(&self) -> bool {
        let behind = self.source[self.ahead.span.end as usize..].trim_start_matches([' ', '\t']);
        self.at(Kind::Word)
            && matches!(self.ahead.kind, Kind::Semicolon | Kind::Assign)
            && behind.get(..2).is_some_and(|word| word.eq_ignore_ascii_case("if") || word.starts_with('{'))
    }

    /// `LABEL:`
    fn rule_label(&mut self) -> Option<Name> {
        let misspelt = self.at_misspelt_label();
        if self.ahead.kind != Kind::Colon && !misspelt {
            return None;
        }
        let label = Name { text: self.text().into(), span: self.bump() };
        let sign = self.bump();
        if misspelt {
            let message = format!("expected `:` behind a label, found `{}`", sign.of(self.source));
            self.error(sign, message, format!("write `{}:`", shorten(&label.text)));
        }
        Some(label)
    }

    /// `LABEL: if (…) { … } else { … }`, or a block by itself.
    pub(super) fn rule(&mut self) -> Rule {
        let start = self.token.span;
        let label = self.rule_label();
        if !self.at_word("if") {
            let then = self.block();
            return Rule { span: self.since(start), label, condition: None, then, otherwise: None };
        }
        self.bump();
        let condition = self.guard();
        let then = self.block();
        let otherwise = self.at_else().then(|| {
            self.bump();
            self.otherwise()
        });
        Rule { span: self.since(start), label, condition: Some(condition), then, otherwise }
    }

    /// `(condition)`
    fn guard(&mut self) -> Condition {
        let start = self.token.span;
        if self.take(Kind::LeftRound).is_none() {
            self.unexpected_so("`(`", GUARD_FORM);
            self.skip_to_block();
            return Condition::Broken(self.since(start));
        }
        let condition = self.condition();
        if self.take(Kind::RightRound).is_none() {
            if self.at(Kind::LeftCurly) || self.at_action_or_return() {
                self.error(self.behind(), "expected `)`", "the `(` behind `if` is not closed; add `)` here");
                return condition;
            }
            self.unexpected_so("`&&`, `||` or `)`", GUARD_FORM);
            self.skip_to_block();
        }
        condition
    }

    /// An `else` of this rule; with a colon it is the last line of the rule set.
    fn at_else(&self) -> bool {
        self.at_word("else") && self.ahead.kind != Kind::Colon
    }

    /// What follows `else`. An `else if` is an error, and read for the errors in it.
    fn otherwise(&mut self) -> Block {
        loop {
            if !self.at_word("if") {
                return self.block();
            }
            let at = self.bump();
            self.error(
                at,
                "`else if` is not part of the language",
                "write the second condition as a rule of its own, after this one",
            );
            self.guard();
            let then = self.block();
            if !self.at_else() {
                return then;
            }
            self.bump();
        }
    }

    /// `{ … }`, or a single action.
    pub(super) fn block(&mut self) -> Block {
        if self.at(Kind::LeftCurly) {
            return self.braces();
        }
        let start = self.token.span;
        if self.at(Kind::Word) && !self.starts_rule() && !self.at_word("else") {
            let actions = self.action().into_iter().collect();
            return Block { span: self.since(start), actions };
        }
        self.unexpected_so("`{`", "actions stand in braces: `{ routeTo(pool); }`");
        self.skip_to_block();
        if self.at(Kind::LeftCurly) {
            return self.braces();
        }
        if self.at(Kind::Semicolon) {
            self.bump();
        }
        Block { span: self.since(start), actions: Vec::new() }
    }

    fn braces(&mut self) -> Block {
        let open = self.bump();
        let mut actions = Vec::new();
        loop {
            if self.take(Kind::RightCurly).is_some() {
                break;
            }
            if self.at(Kind::End) || self.starts_rule() {
                self.error(open, "this `{` is not closed", "add `}` behind the last action of the block");
                break;
            }
            if self.findings.overflowed() {
                break;
            }
            actions.extend(self.action());
        }
        Block { span: self.since(open), actions }
    }
}

//! Rules and their blocks.

use super::Parser;
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

    /// `LABEL: if (…) { … } else { … }`, or a block by itself.
    pub(super) fn rule(&mut self) -> Rule {
        let start = self.token.span;
        let label = (self.ahead.kind == Kind::Colon).then(|| {
            let label = Name { text: self.text().into(), span: self.bump() };
            self.bump();
            label
        });
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

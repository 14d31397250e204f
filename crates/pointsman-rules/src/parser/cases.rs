//! Tests: what a request is, and what is to become of it.

use super::{Broken, Parsed, Parser};
use crate::Span;
use crate::ast::{
    Action, ExpectedEffect, ExpectedOutcome, FieldRef, Given, GivenValue, Name, Status, TestCase,
};
use crate::lexer::Kind;

const FORM: &str = "it is written `test \"name\" { request path \"/a.gif\" expect R3 -> images }`";
const REST_FORM: &str = "it is written `body unknown(malformed)`";
const EFFECTS_FORM: &str =
    "it is written `with setHeader(\"x-class\", \"gold\") tag(gold)`, or `with nothing`";
const PATH_FORM: &str = "the path that comes of it stands alone: `rewritePath(\"/new\")`";
const CAUSE_FORM: &str = "it is written `unknown(not a number)`";

impl Parser<'_> {
    /// `test "name" { request … expect R1 -> fast }`
    pub(super) fn test(&mut self) -> Option<TestCase> {
        match self.test_case() {
            Ok(test) => Some(test),
            Err(Broken) => {
                self.skip_braces();
                None
            }
        }
    }

    fn test_case(&mut self) -> Parsed<TestCase> {
        let start = self.bump();
        let name = self.quoted(FORM)?;
        self.expect(Kind::LeftCurly, "`{`")?;
        self.keyword("request", FORM)?;
        let (mut request, mut rest) = (Vec::new(), None);
        while !self.at_word("expect") {
            if self.at(Kind::Word) && self.text() == "body" {
                rest = Some(self.rest_of_body()?);
                break;
            }
            let field = self.field()?;
            let value = self.given(&field)?;
            request.push(Given { field, value });
        }
        self.keyword("expect", FORM)?;
        let (decider, outcome) = self.expectation()?;
        let effects = self.expected_effects()?;
        self.expect(Kind::RightCurly, "`}`")?;
        Ok(TestCase { span: self.since(start), name, request, rest, decider, outcome, effects })
    }

    fn given(&mut self, field: &FieldRef) -> Parsed<GivenValue> {
        match if self.at(Kind::Word) { self.text() } else { "" } {
            "null" => Ok(GivenValue::Null(self.bump())),
            "absent" => Ok(GivenValue::Absent(self.bump())),
            _ => self.literal(field).map(GivenValue::Literal),
        }
    }

    /// `body unknown(malformed)`
    fn rest_of_body(&mut self) -> Parsed<Name> {
        self.bump();
        self.keyword("unknown", REST_FORM)?;
        match self.cause()? {
            Some(cause) => Ok(cause),
            None => Err(self.unexpected_so("`(`", REST_FORM)),
        }
    }

    fn expectation(&mut self) -> Parsed<(Name, Option<ExpectedOutcome>)> {
        let decider = self.label()?;
        if &*decider.text == "default" && !self.at(Kind::Arrow) {
            return Ok((decider, None));
        }
        self.expect(Kind::Arrow, "`->`")?;
        Ok((decider, Some(self.expected_outcome()?)))
    }

    /// `with tag(gold)`, or nothing.
    fn expected_effects(&mut self) -> Parsed<Option<Vec<ExpectedEffect>>> {
        if !self.at(Kind::Word) || self.text() != "with" {
            return Ok(None);
        }
        self.bump();
        let mut effects = Vec::new();
        if self.at(Kind::Word) && self.text() == "nothing" {
            self.bump();
            return Ok(Some(effects));
        }
        loop {
            effects.push(self.expected_effect()?);
            if self.at(Kind::RightCurly) {
                return Ok(Some(effects));
            }
        }
    }

    fn expected_effect(&mut self) -> Parsed<ExpectedEffect> {
        let word = self.token.span;
        match if self.at(Kind::Word) { self.text() } else { "" } {
            "rewritePath" => {
                self.bump();
                self.expect(Kind::LeftRound, "`(`")?;
                let path = self.quoted(PATH_FORM)?;
                if self.at(Kind::Comma) {
                    return Err(self.unexpected_so("`)`", PATH_FORM));
                }
                self.expect(Kind::RightRound, "`)`")?;
                Ok(ExpectedEffect::Path(path))
            }
            "setHeader"
            | "addHeader"
            | "removeHeader"
            | "setResponseHeader"
            | "addResponseHeader"
            | "removeResponseHeader"
            | "tag"
            | "limitRate"
            | "bandwidth"
            | "mirror" => {
                let kind = self.action_kind()?;
                Ok(ExpectedEffect::Action(Action { span: self.since(word), word, kind }))
            }
            _ => Err(self.unexpected_so("an effect", EFFECTS_FORM)),
        }
    }

    /// The words of actions mean the actions. A pool of such a name stands in quotes.
    fn expected_outcome(&mut self) -> Parsed<ExpectedOutcome> {
        let start = self.token.span;
        let word = if self.at(Kind::Word) { self.text() } else { "" };
        match word {
            "reject" => self.rejected(start),
            "redirect" => self.status_behind().map(ExpectedOutcome::Redirect),
            "respond" => self.status_behind().map(ExpectedOutcome::Respond),
            "discard" => {
                self.bump();
                if self.take(Kind::LeftRound).is_some() {
                    self.expect(Kind::RightRound, "`)`")?;
                }
                Ok(ExpectedOutcome::Discard(self.since(start)))
            }
            "split" => Ok(ExpectedOutcome::Split(self.bump())),
            "unknown" => {
                self.bump();
                let cause = self.cause()?;
                Ok(ExpectedOutcome::Unknown(self.since(start), cause))
            }
            _ => self.target().map(ExpectedOutcome::Target),
        }
    }

    /// `reject`, `reject(403)` or `reject(reset)`.
    fn rejected(&mut self, start: Span) -> Parsed<ExpectedOutcome> {
        let word = self.text();
        self.bump();
        if self.take(Kind::LeftRound).is_none() {
            return Ok(ExpectedOutcome::Reject(None));
        }
        if self.at_word("reset") {
            self.bump();
            self.expect(Kind::RightRound, "`)`")?;
            return Ok(ExpectedOutcome::Reset(self.since(start)));
        }
        self.status_in_brackets(word).map(|status| ExpectedOutcome::Reject(Some(status)))
    }

    /// `(403)` behind the word of an action, or nothing.
    fn status_behind(&mut self) -> Parsed<Option<Status>> {
        let word = self.text();
        self.bump();
        if self.take(Kind::LeftRound).is_none() {
            return Ok(None);
        }
        self.status_in_brackets(word).map(Some)
    }

    fn status_in_brackets(&mut self, word: &str) -> Parsed<Status> {
        let form = format!("{word}(403)");
        let status = self.status(&form)?;
        self.expect(Kind::RightRound, "`)`")?;
        Ok(status)
    }

    /// `(not a number)`, or nothing.
    fn cause(&mut self) -> Parsed<Option<Name>> {
        if self.take(Kind::LeftRound).is_none() {
            return Ok(None);
        }
        let start = self.token.span;
        let mut words = Vec::new();
        while self.at(Kind::Word) {
            words.push(self.text());
            self.bump();
        }
        if words.is_empty() {
            return Err(self.unexpected_so("a cause", CAUSE_FORM));
        }
        let span: Span = self.since(start);
        self.expect(Kind::RightRound, "`)`")?;
        Ok(Some(Name { text: words.join(" ").into(), span }))
    }

    fn skip_braces(&mut self) {
        while !self.at(Kind::End) && !self.starts_rule() {
            if self.take(Kind::RightCurly).is_some() {
                return;
            }
            self.bump();
        }
    }
}

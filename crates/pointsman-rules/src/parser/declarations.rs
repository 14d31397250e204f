//! Settings, assertions and questions.

use super::{Broken, Parsed, Parser};
use crate::ast::{Assertion, Destination, Question, Setting, SettingKind};
use crate::lexer::Kind;
use crate::{Claim, Ending};

const ASSERT_FORM: &str = "it is written `assert \"name\": never (condition) -> target;`, or with `always`";
const ENDING_FORM: &str = "`reject`, `discard`, `redirect`, `respond` and `default` stand by themselves";
const QUESTION_FORM: &str = "it is written `can <condition> reach <target>?`";

impl Parser<'_> {
    /// `on_unknown …;`, `validate …;`, `namespace …;`
    pub(super) fn setting(&mut self) -> Option<Setting> {
        let start = self.token.span;
        let kind = self.setting_kind();
        let kind = kind.and_then(|kind| self.expect(Kind::Semicolon, "`;`").map(|_| kind));
        match kind {
            Ok(kind) => Some(Setting { span: self.since(start), kind }),
            Err(Broken) => {
                self.skip_action();
                None
            }
        }
    }

    fn setting_kind(&mut self) -> Parsed<SettingKind> {
        let setting = self.text();
        self.bump();
        match setting {
            "on_unknown" => {
                if self.at_call(&["routeTo", "route_to"]) {
                    self.bump();
                    self.bump();
                    let target = self.target()?;
                    self.expect(Kind::RightRound, "`)`")?;
                    return Ok(SettingKind::OnUnknownRouteTo(target));
                }
                self.choice(&[("reject", SettingKind::OnUnknownReject), ("skip", SettingKind::OnUnknownSkip)])
            }
            "validate" => {
                self.choice(&[("stream", SettingKind::ValidateStream), ("full", SettingKind::ValidateFull)])
            }
            _ => {
                let prefix = self.name("a prefix", "it is written `namespace p = \"uri\";`")?;
                self.expect(Kind::Assign, "`=`")?;
                Ok(SettingKind::Namespace(prefix, self.quoted("it is written `namespace p = \"uri\";`")?))
            }
        }
    }

    fn choice(&mut self, choices: &[(&str, SettingKind)]) -> Parsed<SettingKind> {
        let found = choices.iter().find(|(word, _)| self.at_word(word));
        let Some((_, kind)) = found else {
            let words: Vec<_> = choices.iter().map(|(word, _)| format!("`{word}`")).collect();
            return Err(self.unexpected(&words.join(" or ")));
        };
        self.bump();
        Ok(kind.clone())
    }

    /// `assert "name": never (condition) -> target;`
    pub(super) fn assertion(&mut self) -> Option<Assertion> {
        match self.assertion_parts() {
            Ok(assertion) => Some(assertion),
            Err(Broken) => {
                self.skip_action();
                None
            }
        }
    }

    fn assertion_parts(&mut self) -> Parsed<Assertion> {
        let start = self.bump();
        let name = self.quoted(ASSERT_FORM)?;
        self.expect(Kind::Colon, "`:`")?;
        let claim = match self.token.kind {
            Kind::Word if self.at_word(Claim::Never.word()) => Claim::Never,
            Kind::Word if self.at_word(Claim::Always.word()) => Claim::Always,
            _ => return Err(self.unexpected_so("`never` or `always`", ASSERT_FORM)),
        };
        self.bump();
        if self.take(Kind::LeftRound).is_none() {
            return Err(self.unexpected_so("`(`", ASSERT_FORM));
        }
        let condition = self.condition();
        self.expect(Kind::RightRound, "`)`")?;
        self.expect(Kind::Arrow, "`->`")?;
        let destination = self.destination()?;
        self.expect(Kind::Semicolon, "`;`")?;
        Ok(Assertion { span: self.since(start), name, claim, condition, destination })
    }

    /// The words of actions mean the actions. A pool of such a name stands in quotes.
    fn destination(&mut self) -> Parsed<Destination> {
        let start = self.token.span;
        let word = if self.at(Kind::Word) { self.text() } else { "" };
        let Some(ending) = Ending::of(word) else { return self.target().map(Destination::Target) };
        self.bump();
        if self.take(Kind::LeftRound).is_some() && self.take(Kind::RightRound).is_none() {
            return Err(self.unexpected_so("`)`", ENDING_FORM));
        }
        Ok(Destination::Ending(self.since(start), ending))
    }

    /// `can <condition> reach <target>?`, of which `can` and the question mark may be left out.
    pub(super) fn question(&mut self) -> Parsed<Question> {
        let start = self.token.span;
        if self.at_word("can") {
            self.bump();
        }
        let condition = self.condition();
        self.keyword("reach", QUESTION_FORM)?;
        let destination = self.destination()?;
        if self.at(Kind::Stray) && self.text() == "?" {
            self.bump();
        }
        if !self.at(Kind::End) {
            return Err(self.unexpected_so("the end of the question", QUESTION_FORM));
        }
        Ok(Question { span: self.since(start), condition, destination })
    }

    pub(super) fn keyword(&mut self, word: &str, form: &str) -> Parsed<()> {
        if !self.at_word(word) {
            return Err(self.unexpected_so(&format!("`{word}`"), form));
        }
        self.bump();
        Ok(())
    }
}

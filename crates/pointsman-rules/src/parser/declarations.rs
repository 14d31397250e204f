//! Settings and assertions.

use super::{Broken, Parsed, Parser};
use crate::ast::{Assertion, Condition, Setting, SettingKind};
use crate::lexer::Kind;

const ASSERT_FORM: &str = "it is written `assert \"name\": never (condition) -> target;`";

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
        self.keyword("never", ASSERT_FORM)?;
        self.expect(Kind::LeftRound, "`(`")?;
        let condition: Condition = self.condition();
        self.expect(Kind::RightRound, "`)`")?;
        self.expect(Kind::Arrow, "`->`")?;
        let outcome = self.target()?;
        self.expect(Kind::Semicolon, "`;`")?;
        Ok(Assertion { span: self.since(start), name, condition, outcome })
    }

    pub(super) fn keyword(&mut self, word: &str, form: &str) -> Parsed<()> {
        if !self.at_word(word) {
            return Err(self.unexpected_so(&format!("`{word}`"), form));
        }
        self.bump();
        Ok(())
    }
}

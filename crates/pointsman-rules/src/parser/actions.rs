//! Actions and their arguments.

use super::recovery::shorten;
use super::{Broken, Parsed, Parser};
use crate::ast::{Action, ActionKind, FieldRef, Name, Quoted, Share, Status, Sticky, StickyKind, Target};
use crate::lexer::{Kind, meaning};
use crate::vocabulary::ACTIONS;
use crate::{Side, Span, older};

/// Every stickiness by its modern name, with what it means.
pub(crate) const STICKINESSES: &[(&str, &str)] = &[
    ("NON_STICKY", "Each request is balanced by itself; this is the default."),
    ("STICKY_ON_IP", "A client is known by its address."),
    ("STICKY_ON_IP_PORT", "A client is known by its connection."),
    (
        "STICKY_ON_COOKIE",
        "A client is known by a cookie of the switch, or by one that its server sets: `STICKY_ON_COOKIE(\"sid\")`.",
    ),
    ("STICKY_ON_TLS_SESSION", "A client is known by its TLS session."),
    ("STICKY_ON", "A client is known by the first value of a field: `STICKY_ON(cookie[\"sid\"])`."),
];

impl Parser<'_> {
    /// Whether an action begins here, perhaps a misspelt one behind `return`.
    pub(super) fn at_action_or_return(&self) -> bool {
        self.at_action() || self.at_word("return")
    }

    /// Whether an action begins here.
    pub(super) fn at_action(&self) -> bool {
        if !self.at(Kind::Word) {
            return false;
        }
        match self.text() {
            "return" | "Return" | "goto" | "allow" => self.ahead.kind == Kind::Word,
            "if" | "else" => false,
            word => self.ahead.kind == Kind::LeftRound && signature(older::action_name(word)).is_some(),
        }
    }

    /// One action with its semicolon; `None` where it could not be read.
    pub(super) fn action(&mut self) -> Option<Action> {
        if self.at_word("return") && self.ahead.kind == Kind::Word {
            self.bump();
        }
        let word = self.token.span;
        let Ok(kind) = self.action_kind() else {
            self.skip_action();
            return None;
        };
        if self.take(Kind::Semicolon).is_none() {
            self.missing_semicolon(word);
        }
        Some(Action { span: self.since(word), word, kind })
    }

    fn missing_semicolon(&mut self, word: Span) {
        if self.at(Kind::RightRound) {
            self.error(self.token.span, "this `)` closes nothing", "remove it");
            self.skip_action();
            return;
        }
        let action = shorten(self.since(word).of(self.source));
        self.error(self.behind(), format!("expected `;` after `{action}`"), "every action ends with `;`");
        // What is left on the line would only be a second error about the same slip.
        if !self.token.opens_line && !self.at_action() && !self.at_word("else") {
            self.skip_action();
        }
    }

    pub(super) fn action_kind(&mut self) -> Parsed<ActionKind> {
        if self.at_word("if") {
            self.error(
                self.token.span,
                "a block holds actions, and no `if`",
                "write the inner condition as a rule of its own, and join conditions with `&&`",
            );
            // Read for the errors in it.
            self.nested_rule()?;
            return Err(Broken);
        }
        if !self.at(Kind::Word) {
            let broken = self.unexpected_so("an action", "actions look like `routeTo(pool);`");
            self.bump_brackets();
            return Err(broken);
        }
        let word = self.text();
        let name = older::action_name(word);
        match name {
            "goto" => {
                self.bump();
                return Ok(ActionKind::Goto(self.label()?));
            }
            "allow" => return self.allow_conflict(),
            _ => {}
        }
        let Some(signature) = signature(name) else { return Err(self.unknown_action(word)) };
        self.bump();
        self.expect_in(Kind::LeftRound, "`(`", signature)?;
        let kind = self.arguments(name, signature)?;
        if self.at(Kind::Comma) {
            let message = format!("`{name}` takes no further argument");
            self.error(self.token.span, message, format!("it is written `{signature}`"));
            return Err(Broken);
        }
        self.expect_in(Kind::RightRound, "`)`", signature)?;
        Ok(kind)
    }

    fn nested_rule(&mut self) -> Parsed<()> {
        let at = self.token.span;
        self.sink(at)?;
        self.rule();
        self.rise();
        Ok(())
    }

    /// Takes what stands where an action should, so that reading gets on.
    fn bump_brackets(&mut self) {
        if self.at(Kind::LeftCurly) {
            self.bump();
        }
    }

    fn unknown_action(&mut self, word: &str) -> Broken {
        let known = ACTIONS.iter().map(|action| action.name);
        let help = match self.findings.suggestions().nearest(word, known) {
            Some(name) => format!("did you mean `{name}`?"),
            None => {
                let forms =
                    ACTIONS.iter().map(|action| action.spelling.split('(').next().unwrap_or(action.spelling));
                format!("the actions are {}", forms.collect::<Vec<_>>().join(", "))
            }
        };
        self.error(self.token.span, format!("unknown action `{}`", shorten(word)), help);
        Broken
    }

    fn arguments(&mut self, name: &str, signature: &str) -> Parsed<ActionKind> {
        Ok(match name {
            "routeTo" => self.route_to(signature)?,
            "reject" if self.at_word("reset") => {
                self.bump();
                ActionKind::Reset
            }
            "reject" => {
                let status = if self.at(Kind::RightRound) { None } else { Some(self.status(signature)?) };
                let more = status.is_some() && self.take(Kind::Comma).is_some();
                let reason = if more { Some(self.quoted_in(signature)?) } else { None };
                ActionKind::Reject(status, reason)
            }
            "discard" => ActionKind::Discard,
            "redirect" => ActionKind::Redirect(self.status(signature)?, self.second(signature)?),
            "respond" => ActionKind::Respond(self.status(signature)?, self.second(signature)?),
            "setHeader" | "setResponseHeader" => {
                ActionKind::SetHeader(side(name), self.quoted_in(signature)?, self.second(signature)?)
            }
            "addHeader" | "addResponseHeader" => {
                ActionKind::AddHeader(side(name), self.quoted_in(signature)?, self.second(signature)?)
            }
            "removeHeader" | "removeResponseHeader" => {
                ActionKind::RemoveHeader(side(name), self.quoted_in(signature)?)
            }
            "rewritePath" => ActionKind::RewritePath(self.quoted_in(signature)?, self.second(signature)?),
            "bandwidth" => ActionKind::Bandwidth(self.name_in("a class", signature)?),
            "limitRate" => ActionKind::LimitRate(self.name_in("a class", signature)?),
            "mirror" => ActionKind::Mirror(self.name_in("a pool", signature)?),
            _ => ActionKind::Tag(self.name_in("a name", signature)?),
        })
    }

    fn route_to(&mut self, signature: &str) -> Parsed<ActionKind> {
        let target = if self.at_call(&["split"]) { self.split()? } else { Target::Named(self.target()?) };
        let sticky = match self.take(Kind::Comma) {
            Some(_) => Some(self.stickiness(signature)?),
            None => None,
        };
        self.client_address(sticky.as_ref());
        Ok(ActionKind::RouteTo(target, sticky))
    }

    /// Takes `, saddr` behind a stickiness of the client's address. The papers hand over the key of the sticky table
    /// there; the stickiness names the key already.
    fn client_address(&mut self, sticky: Option<&Sticky>) {
        let keyed_by_address =
            |sticky: &Sticky| matches!(sticky.kind, StickyKind::None | StickyKind::Ip | StickyKind::IpPort);
        let is_address =
            self.ahead.kind == Kind::Word && older::field_name(self.ahead.span.of(self.source)) == "srcip";
        if self.at(Kind::Comma) && is_address && sticky.is_some_and(keyed_by_address) {
            self.bump();
            self.bump();
        }
    }

    fn split(&mut self) -> Parsed<Target> {
        const FORM: &str = "split(90: stable, 10: canary)";
        let start = self.bump();
        self.bump();
        let mut shares = Vec::new();
        loop {
            let percent = Name { text: self.text().into(), span: self.token.span };
            self.expect_in(Kind::Number, "a percentage", FORM)?;
            self.expect_in(Kind::Colon, "`:`", FORM)?;
            shares.push(Share { percent, target: self.target()? });
            if self.take(Kind::Comma).is_none() {
                break;
            }
        }
        self.expect_in(Kind::RightRound, "`,` or `)`", FORM)?;
        Ok(Target::Split(self.since(start), shares))
    }

    fn stickiness(&mut self, signature: &str) -> Parsed<Sticky> {
        let start = self.token.span;
        if !self.at(Kind::Word) {
            return Err(self.unexpected_so("a stickiness", format!("it is written `{signature}`")));
        }
        let kind = match older::stickiness(self.text()) {
            "NON_STICKY" => StickyKind::None,
            "STICKY_ON_IP" => StickyKind::Ip,
            "STICKY_ON_IP_PORT" => StickyKind::IpPort,
            "STICKY_ON_COOKIE" if self.ahead.kind == Kind::LeftRound => {
                self.bump();
                self.bump();
                let key = self.quoted(
                    "without brackets it is a cookie of the switch; a server's is `STICKY_ON_COOKIE(\"sid\")`",
                )?;
                if !self.at(Kind::RightRound) {
                    return Err(self.unexpected("`)`"));
                }
                StickyKind::Field(FieldRef { span: key.span, name: "cookie".into(), key: Some(key) })
            }
            "STICKY_ON_COOKIE" => StickyKind::Cookie,
            "STICKY_ON_TLS_SESSION" => StickyKind::TlsSession,
            "STICKY_ON" => {
                self.bump();
                self.expect_in(Kind::LeftRound, "`(`", "STICKY_ON(cookie[\"sid\"])")?;
                let field = self.field()?;
                if !self.at(Kind::RightRound) {
                    return Err(self.unexpected("`)`"));
                }
                StickyKind::Field(field)
            }
            other => {
                let names: Vec<_> = STICKINESSES.iter().map(|(name, _)| *name).collect();
                let help = match self.nearest(other, &names) {
                    Some(name) => format!("did you mean `{name}`?"),
                    None => format!("there are {}", names.join(", ")),
                };
                self.error(start, format!("unknown stickiness `{}`", shorten(other)), help);
                return Err(Broken);
            }
        };
        self.bump();
        Ok(Sticky { span: self.since(start), kind })
    }

    fn allow_conflict(&mut self) -> Parsed<ActionKind> {
        const FORM: &str = "allow conflict(R1, R2)";
        self.bump();
        if !self.at_word("conflict") {
            return Err(self.unexpected_so("`conflict`", format!("it is written `{FORM};`")));
        }
        self.bump();
        self.expect_in(Kind::LeftRound, "`(`", FORM)?;
        let mut labels = vec![self.label()?];
        while self.take(Kind::Comma).is_some() {
            labels.push(self.label()?);
        }
        self.expect_in(Kind::RightRound, "`,` or `)`", FORM)?;
        Ok(ActionKind::AllowConflict(labels))
    }

    pub(super) fn status(&mut self, signature: &str) -> Parsed<Status> {
        if !self.at(Kind::Number) {
            return Err(self.unexpected_so("a status code", format!("it is written `{signature}`")));
        }
        // 0 is no status and is refused with the others that are none.
        let code = self.text().parse().unwrap_or(0);
        Ok(Status { code, span: self.bump() })
    }

    fn second(&mut self, signature: &str) -> Parsed<Quoted> {
        self.expect_in(Kind::Comma, "`,`", signature)?;
        self.quoted_in(signature)
    }

    fn quoted_in(&mut self, signature: &str) -> Parsed<Quoted> {
        self.quoted(&format!("it is written `{signature}`"))
    }

    /// A text in quotes.
    pub(super) fn quoted(&mut self, help: &str) -> Parsed<Quoted> {
        if !self.at(Kind::Text) {
            return Err(self.unexpected_so("a text in quotes", help));
        }
        Ok(Quoted { text: meaning(self.text()), span: self.bump() })
    }

    fn expect_in(&mut self, kind: Kind, what: &str, form: &str) -> Parsed<Span> {
        match self.take(kind) {
            Some(span) => Ok(span),
            None => Err(self.unexpected_so(what, format!("it is written `{form}`"))),
        }
    }

    fn name_in(&mut self, what: &str, signature: &str) -> Parsed<Name> {
        self.name(what, &format!("it is written `{signature}`"))
    }

    /// A target: a word, or a text in quotes where the name is no word.
    pub(super) fn target(&mut self) -> Parsed<Name> {
        self.name(
            "a target",
            "a target is a pool, `pool.server`, or a server; any other name stands in quotes",
        )
    }

    pub(super) fn label(&mut self) -> Parsed<Name> {
        if !self.at(Kind::Word) {
            return Err(self.unexpected_so("a label", "a label is a word, as `R1` in `R1: if (…) { … }`"));
        }
        Ok(Name { text: self.text().into(), span: self.bump() })
    }

    pub(super) fn name(&mut self, what: &str, help: &str) -> Parsed<Name> {
        let text = match self.token.kind {
            Kind::Word => self.text().into(),
            Kind::Text => meaning(self.text()),
            _ => return Err(self.unexpected_so(what, help)),
        };
        if text.is_empty() {
            self.error(self.token.span, format!("expected {what}, found an empty text"), help);
            return Err(Broken);
        }
        Ok(Name { text, span: self.bump() })
    }
}

fn signature(name: &str) -> Option<&'static str> {
    ACTIONS.iter().find(|action| action.name == name).map(|action| action.spelling)
}

fn side(action: &str) -> Side {
    if action.contains("Response") { Side::Response } else { Side::Request }
}

//! Conditions: comparisons joined by `&&`, `||`, `!` and brackets.

use super::recovery::shorten;
use super::{Broken, Parsed, Parser};
use crate::ast::{Comparison, Condition, Literal, LiteralKind, Operand, Predicate, TextOperator};
use crate::format::spell;
use crate::lexer::Kind;
use crate::{Order, Span, advice};

pub(crate) const WORD_OPERATORS: &[&str] =
    &["exists", "contains", "startsWith", "endsWith", "like", "matches", "under", "in"];

/// `&&` or `||`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Joint {
    And,
    Or,
}

impl Parser<'_> {
    /// A condition; what cannot be read in it is `Broken`, and reported.
    pub(super) fn condition(&mut self) -> Condition {
        let mut parts = vec![self.conjunction()];
        while self.take_joint(Joint::Or) {
            parts.push(self.conjunction());
        }
        one_or(parts, Condition::Or)
    }

    fn conjunction(&mut self) -> Condition {
        let mut parts = vec![self.term()];
        while self.take_joint(Joint::And) {
            parts.push(self.term());
        }
        one_or(parts, Condition::And)
    }

    /// Takes a joint, also one that is misspelt: it is plain what was meant.
    fn take_joint(&mut self, joint: Joint) -> bool {
        let (kind, sign, single, word) = match joint {
            Joint::And => (Kind::And, "&&", "&", "and"),
            Joint::Or => (Kind::Or, "||", "|", "or"),
        };
        if self.take(kind).is_some() {
            return true;
        }
        let misspelt = self.at(Kind::Stray) && self.text() == single || self.at_word(word);
        if misspelt {
            let message = format!("`{}` is not an operator", self.text());
            self.error(self.token.span, message, format!("write `{sign}`"));
            self.bump();
        }
        misspelt
    }

    /// Whether `&&` or `||` stands here, or a misspelling of it.
    pub(super) fn at_joint(&self) -> bool {
        match self.token.kind {
            Kind::And | Kind::Or => true,
            Kind::Stray => matches!(self.text(), "&" | "|"),
            _ => self.at_word("and") || self.at_word("or"),
        }
    }

    fn term(&mut self) -> Condition {
        let (start, round) = (self.token.span, self.round);
        match self.negation() {
            Ok(condition) => condition,
            Err(Broken) => {
                self.skip_in_condition(round);
                Condition::Broken(self.since(start))
            }
        }
    }

    fn negation(&mut self) -> Parsed<Condition> {
        let start = self.token.span;
        if self.at_word("not") && self.ahead.kind != Kind::Colon {
            self.error(start, "`not` is not an operator", "write `!(…)`");
            return Err(Broken);
        }
        if self.take(Kind::Not).is_none() {
            return self.primary();
        }
        if self.at(Kind::Not) {
            self.error(self.since(start).to(self.token.span), "`!!` says nothing", "leave both out");
            return Err(Broken);
        }
        let is_call = self.at_call(&["match", "strstr"]);
        let inner = self.primary()?;
        let plain = match &inner {
            Condition::Group(..) => true,
            Condition::Test(test) => {
                is_call && self.source[..self.last_end as usize].ends_with(')')
                    || matches!(test.predicate, Predicate::Bare)
            }
            _ => false,
        };
        if !plain {
            let inner = shorten(inner.span().of(self.source));
            self.error(
                self.since(start),
                "`!` in front of a comparison does not say what it denies",
                format!("write `!({inner})`"),
            );
            return Err(Broken);
        }
        self.room_for_brackets(&inner)?;
        Ok(Condition::Not(self.since(start), Box::new(inner)))
    }

    /// The formatter writes `!(…)`: what is read must be readable again when it is formatted.
    fn room_for_brackets(&mut self, inner: &Condition) -> Parsed<()> {
        if !matches!(inner, Condition::Group(..)) {
            self.sink(inner.span())?;
            self.rise();
        }
        Ok(())
    }

    fn primary(&mut self) -> Parsed<Condition> {
        let start = self.token.span;
        if self.at(Kind::LeftRound) {
            self.sink(start)?;
            self.bump();
            let inner = self.condition();
            self.rise();
            self.expect(Kind::RightRound, "`&&`, `||` or `)`")?;
            return Ok(Condition::Group(self.since(start), Box::new(inner)));
        }
        if self.at_call(&["match"]) {
            return self.match_call().map(Condition::Test);
        }
        if self.at_call(&["strcmp"]) {
            return self.strcmp_call().map(Condition::Test);
        }
        if self.at_call(&["strstr"]) {
            return self.strstr_call();
        }
        self.comparison().map(Condition::Test)
    }

    fn comparison(&mut self) -> Parsed<Comparison> {
        let operand = self.operand()?;
        let predicate = self.predicate(&operand)?;
        Ok(Comparison { span: self.since(operand.span), operand, predicate })
    }

    fn predicate(&mut self, operand: &Operand) -> Parsed<Predicate> {
        self.refuse_tilde(operand)?;
        if let Some(relation) = self.relation()? {
            let literal = self.literal(&operand.field)?;
            if matches!(literal.kind, LiteralKind::Text(_)) && self.at_swallowed(literal.span) {
                return Err(Broken);
            }
            return Ok(self.related(relation, literal));
        }
        match self.token.kind {
            Kind::RightRound => return Ok(Predicate::Bare),
            _ if self.at_joint() => return Ok(Predicate::Bare),
            Kind::Word => {}
            _ => return Err(self.unexpected_so("an operator", operators_help())),
        }
        let operator = match self.text() {
            "exists" => {
                self.bump();
                return Ok(Predicate::Exists);
            }
            "in" => {
                self.bump();
                return self.list(&operand.field);
            }
            "contains" => TextOperator::Contains,
            "startsWith" => TextOperator::StartsWith,
            "endsWith" => TextOperator::EndsWith,
            "like" => TextOperator::Like,
            "matches" => TextOperator::Matches,
            "under" => TextOperator::Under,
            // In a question a condition need not stand in brackets.
            word if self.round == 0 && word.eq_ignore_ascii_case("reach") => return Ok(Predicate::Bare),
            word => {
                let help = match self.nearest(word, WORD_OPERATORS) {
                    Some(operator) => format!("did you mean `{operator}`?"),
                    None => operators_help(),
                };
                self.error(self.token.span, format!("unknown operator `{}`", shorten(word)), help);
                return Err(Broken);
            }
        };
        let spelled = self.text();
        self.bump();
        let text = self.quoted(&format!("`{spelled}` compares with a text"))?;
        if self.at_swallowed(text.span) {
            return Err(Broken);
        }
        Ok(Predicate::Text(operator, text))
    }

    /// `~`, `=~` and `!~` are how other languages spell `matches`.
    fn refuse_tilde(&mut self, operand: &Operand) -> Parsed<()> {
        let is_pair = matches!(self.token.kind, Kind::Assign | Kind::Not)
            && self.ahead.kind == Kind::Stray
            && self.ahead.span.of(self.source) == "~";
        let is_single = self.at(Kind::Stray) && self.text() == "~";
        if !is_pair && !is_single {
            return Ok(());
        }
        let field = shorten(&spell(operand, self.source));
        let help = match self.token.kind {
            Kind::Not => format!("write `!({field} matches \"…\")`"),
            _ => format!("write `{field} matches \"…\"`"),
        };
        let at = if is_pair { self.token.span.to(self.ahead.span) } else { self.token.span };
        self.error(at, format!("`{}` is not an operator", at.of(self.source)), help);
        Err(Broken)
    }

    /// A value in a relation; a text that looks like a pattern is hardly meant to be equal.
    fn related(&mut self, relation: Relation, literal: Literal) -> Predicate {
        if !matches!(relation, Relation::Ordered(_)) {
            self.findings.extend(advice::pattern_compared(&literal));
        }
        match relation {
            Relation::Equal => Predicate::Equals(literal),
            Relation::Differ => Predicate::Differs(literal),
            Relation::Ordered(order) => Predicate::Ordered(order, literal),
        }
    }

    /// `==`, `!=`, `<` and so on, if one stands here. Typesetters pull them apart: `= =`.
    pub(super) fn relation(&mut self) -> Parsed<Option<Relation>> {
        let apart = self.ahead.kind == Kind::Assign;
        let relation = match self.token.kind {
            Kind::Equal => Relation::Equal,
            Kind::NotEqual => Relation::Differ,
            Kind::LessOrEqual => Relation::Ordered(Order::LessOrEqual),
            Kind::GreaterOrEqual => Relation::Ordered(Order::GreaterOrEqual),
            Kind::Assign if apart => Relation::Equal,
            Kind::Not if apart => Relation::Differ,
            Kind::Less if apart => Relation::Ordered(Order::LessOrEqual),
            Kind::Greater if apart => Relation::Ordered(Order::GreaterOrEqual),
            Kind::Less => Relation::Ordered(Order::Less),
            Kind::Greater => Relation::Ordered(Order::Greater),
            Kind::Assign => {
                self.error(self.token.span, "`=` does not compare", "write `==`");
                self.bump();
                return Ok(Some(Relation::Equal));
            }
            _ => return Ok(None),
        };
        if apart {
            self.bump();
        }
        self.bump();
        Ok(Some(relation))
    }

    /// `match(field, "regex")`, and `match(field, "regex") == 0`, which the papers use for a match as `regexec` does.
    fn match_call(&mut self) -> Parsed<Comparison> {
        let start = self.token.span;
        let (operand, text) = self.call_arguments("it is written `field matches \"regex\"`")?;
        let relation = self.relation()?;
        if let Some(relation) = relation {
            let is_zero = self.at(Kind::Number) && self.text() == "0";
            if relation != Relation::Equal || !is_zero {
                let at = self.since(start).to(self.token.span);
                let field = shorten(&spell(&operand, self.source));
                let help = format!(
                    "`match` is true for a match, and `match(…) == 0` is a match as well: \
                     write `{field} matches \"…\"` or `!({field} matches \"…\")`"
                );
                self.error(at, "`match` is compared with `== 0` only", help);
                return Err(Broken);
            }
            self.bump();
        }
        let predicate = Predicate::Text(TextOperator::Matches, text);
        Ok(Comparison { span: self.since(start), operand, predicate })
    }

    /// `strcmp(field, "text") == 0`, and the other five relations to 0.
    fn strcmp_call(&mut self) -> Parsed<Comparison> {
        let start = self.token.span;
        let (operand, text) = self.call_arguments("it is written `field == \"text\"`")?;
        let Some(relation) = self.relation()? else {
            self.error(
                self.since(start),
                "`strcmp` by itself is true where the texts differ",
                "write `field == \"text\"` or `field != \"text\"`",
            );
            return Err(Broken);
        };
        if !(self.at(Kind::Number) && self.text() == "0") {
            return Err(
                self.unexpected_so("`0`", "`strcmp` is compared with 0; better write `field == \"text\"`")
            );
        }
        self.bump();
        // The field in that relation to the text is what `strcmp` in that relation to 0 says.
        let literal = Literal { span: text.span, kind: LiteralKind::Text(text.text) };
        let predicate = self.related(relation, literal);
        Ok(Comparison { span: self.since(start), operand, predicate })
    }

    /// `strstr(field, "text") != NULL`
    fn strstr_call(&mut self) -> Parsed<Condition> {
        let start = self.token.span;
        let (operand, text) = self.call_arguments("it is written `field contains \"text\"`")?;
        let called = self.since(start);
        let predicate = Predicate::Text(TextOperator::Contains, text);
        let relation = self.relation()?;
        if relation.is_some() {
            let null = self.at_word("null") || self.at(Kind::Number) && self.text() == "0";
            if !null {
                return Err(self.unexpected_so("`NULL`", "better write `field contains \"text\"`"));
            }
            self.bump();
        }
        let whole = self.since(start);
        match relation {
            None | Some(Relation::Differ) => {
                Ok(Condition::Test(Comparison { span: whole, operand, predicate }))
            }
            Some(Relation::Equal) => {
                let inner = Condition::Test(Comparison { span: called, operand, predicate });
                self.room_for_brackets(&inner)?;
                Ok(Condition::Not(whole, Box::new(inner)))
            }
            Some(Relation::Ordered(_)) => {
                self.error(
                    whole,
                    "`strstr` is only equal to `NULL` or not",
                    "write `field contains \"text\"`",
                );
                Err(Broken)
            }
        }
    }

    fn call_arguments(&mut self, help: &str) -> Parsed<(Operand, crate::ast::Quoted)> {
        self.bump();
        self.bump();
        let operand = self.operand()?;
        if self.take(Kind::Comma).is_none() {
            return Err(self.unexpected_so("`,`", help));
        }
        let text = self.quoted(help)?;
        if self.at_swallowed(text.span) {
            return Err(Broken);
        }
        self.expect(Kind::RightRound, "`)`")?;
        Ok((operand, text))
    }
}

/// How two values stand to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Relation {
    Equal,
    Differ,
    Ordered(Order),
}

fn operators_help() -> String {
    format!("the operators are ==, !=, <, <=, >, >=, {}", WORD_OPERATORS.join(", "))
}

fn one_or(mut parts: Vec<Condition>, join: impl Fn(Vec<Condition>) -> Condition) -> Condition {
    match parts.pop() {
        Some(only) if parts.is_empty() => only,
        Some(last) => {
            parts.push(last);
            join(parts)
        }
        None => Condition::Broken(Span::default()),
    }
}

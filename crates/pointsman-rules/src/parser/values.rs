//! Fields, what is said about their values, and the values they are compared with.

use std::net::{IpAddr, Ipv4Addr};

use super::recovery::shorten;
use super::{Broken, Parsed, Parser};
use crate::ast::{Entry, FieldRef, Literal, LiteralKind, Name, Operand, Predicate, Quoted};
use crate::lexer::{Kind, meaning};
use crate::{Over, advice, older, payload, schema};

pub(crate) const WRAPPERS: &[&str] = &["all", "count", "first", "once", "lower", "atoi"];

impl Parser<'_> {
    /// A field, perhaps in `all(…)`, `lower(…)` and the like.
    pub(super) fn operand(&mut self) -> Parsed<Operand> {
        let start = self.token.span;
        if !self.at_call(WRAPPERS) {
            if matches!(
                self.token.kind,
                Kind::Text | Kind::Number | Kind::Hex | Kind::Address | Kind::Network
            ) {
                let message = format!("a comparison begins with a field, not with `{}`", self.shown());
                self.error(start, message, "write the field on the left");
                return Err(Broken);
            }
            let field = self.field()?;
            return Ok(Operand { span: field.span, field, over: Over::Any, fold_case: false });
        }
        let wrapper = self.text();
        self.sink(start)?;
        self.bump();
        self.bump();
        let inner = self.operand();
        self.rise();
        let mut operand = inner?;
        self.expect(Kind::RightRound, "`)`")?;
        operand.span = self.since(start);
        let over = match wrapper {
            "all" => Over::All,
            "count" => Over::Count,
            "first" => Over::First,
            "once" => Over::Once,
            "lower" => {
                operand.fold_case = true;
                return Ok(operand);
            }
            // `atoi` says what the literal says already.
            _ => return Ok(operand),
        };
        if operand.over != Over::Any {
            let help = "`all`, `first`, `once` and `count` exclude each other";
            self.error(operand.span, format!("`{wrapper}` around another choice of values"), help);
            return Err(Broken);
        }
        operand.over = over;
        Ok(operand)
    }

    /// A field's name with its key.
    pub(super) fn field(&mut self) -> Parsed<FieldRef> {
        let start = self.token.span;
        let text = self.text();
        match self.token.kind {
            Kind::Path => {
                if let Err(fault) = payload::check(text) {
                    let at = crate::Span { start: start.start + fault.at.0, end: start.start + fault.at.1 };
                    self.error(at, fault.message, fault.help);
                    return Err(Broken);
                }
                self.bump();
                Ok(FieldRef { span: start, name: text.into(), key: None })
            }
            Kind::OldPath => {
                let name = older::path(text);
                if let Err(fault) = payload::check(&name) {
                    self.error(start, fault.message, fault.help);
                    return Err(Broken);
                }
                self.bump();
                Ok(FieldRef { span: start, name: name.into(), key: None })
            }
            Kind::Word => {
                if let Some(place) = self.table_place() {
                    return place;
                }
                self.bump();
                let key = if self.at(Kind::LeftSquare) { Some(self.key(text)?) } else { None };
                Ok(FieldRef { span: self.since(start), name: older::field_name(text).into(), key })
            }
            _ => Err(self.unexpected_so(
                "a field",
                "fields are `path`, `host`, `srcip`, `header[\"name\"]` and others",
            )),
        }
    }

    fn key(&mut self, name: &str) -> Parsed<Quoted> {
        self.bump();
        if !self.at(Kind::Text) {
            let key = shorten(self.text());
            return Err(
                self.unexpected_so("a text in quotes", format!("write `{}[\"{key}\"]`", shorten(name)))
            );
        }
        let key = Quoted { text: meaning(self.text()), span: self.bump() };
        self.expect(Kind::RightSquare, "`]`")?;
        Ok(key)
    }

    /// A value; which one an older spelling means depends on the field.
    pub(super) fn literal(&mut self, field: &FieldRef) -> Parsed<Literal> {
        let span = self.token.span;
        let text = self.text();
        let kind = match self.token.kind {
            Kind::Text => LiteralKind::Text(meaning(text)),
            Kind::Number => LiteralKind::Number(text.into()),
            Kind::Hex => self.hex(field)?,
            Kind::Address => LiteralKind::Address(self.address(text)?),
            Kind::Network => self.network(text)?,
            Kind::Word if text == "true" => LiteralKind::Boolean(true),
            Kind::Word if text == "false" => LiteralKind::Boolean(false),
            Kind::Word if self.at_word("null") => {
                return Err(self.unexpected_so("a value", "whether there is a value is asked with `exists`"));
            }
            Kind::Word => {
                let help = format!("a text stands in quotes: `\"{}\"`", shorten(text));
                return Err(self.unexpected_so("a value", help));
            }
            _ => {
                return Err(
                    self.unexpected_so("a value", "values are `\"text\"`, `99.95`, `10.0.0.1`, `true`")
                );
            }
        };
        self.bump();
        Ok(Literal { span, kind })
    }

    /// `0x80c6a2d9`: an address where the field is one, otherwise a number.
    fn hex(&mut self, field: &FieldRef) -> Parsed<LiteralKind> {
        let digits = &self.text()[2..];
        if schema::is_address(&field.name) {
            if let (Ok(bits), true) = (u32::from_str_radix(digits, 16), digits.len() == 8) {
                return Ok(LiteralKind::Address(IpAddr::V4(Ipv4Addr::from_bits(bits))));
            }
            let message = format!("`{}` is not an IPv4 address in hex", self.shown());
            self.error(
                self.token.span,
                message,
                "such an address has eight hex digits; better write `10.0.0.1`",
            );
            return Err(Broken);
        }
        if let Ok(number) = u64::from_str_radix(digits, 16) {
            return Ok(LiteralKind::Number(number.to_string().into()));
        }
        let message = format!("`{}` is not a number", self.shown());
        self.error(self.token.span, message, "write it in decimal digits");
        Err(Broken)
    }

    fn address(&mut self, text: &str) -> Parsed<IpAddr> {
        // The lexer calls it an address because it is one.
        text.parse::<IpAddr>().map(|ip| ip.to_canonical()).map_err(|_| self.unexpected("an address"))
    }

    fn network(&mut self, text: &str) -> Parsed<LiteralKind> {
        match text.parse() {
            Ok(network) => Ok(LiteralKind::Network(network)),
            Err(_) => {
                let message = format!("`{}` is not a network", shorten(text));
                let help =
                    "a network is `10.0.0.0/8`, with at most 32 bits, or `2001:db8::/32`, with at most 128";
                self.error(self.token.span, message, help);
                Err(Broken)
            }
        }
    }

    /// What follows `in`.
    pub(super) fn list(&mut self, field: &FieldRef) -> Parsed<Predicate> {
        let start = self.token.span;
        if self.take(Kind::LeftSquare).is_none() {
            let entry = self.entry(field)?;
            let bare = matches!(entry, Entry::Range { .. } | Entry::List(_));
            if self.at(Kind::Comma) {
                return Err(self
                    .unexpected_so("the end of the list", "a list stands in square brackets: `in [1, 2]`"));
            }
            return Ok(Predicate::In { span: self.since(start), entries: vec![entry], bare });
        }
        let mut entries = Vec::new();
        while !self.at(Kind::RightSquare) {
            entries.push(self.entry(field)?);
            if self.take(Kind::Comma).is_none() {
                break;
            }
        }
        if self.take(Kind::RightSquare).is_none() {
            return Err(
                self.unexpected_so("`,` or `]`", "a list is written `in [1, 2]`, with a comma between two")
            );
        }
        Ok(Predicate::In { span: self.since(start), entries, bare: false })
    }

    fn entry(&mut self, field: &FieldRef) -> Parsed<Entry> {
        let start = self.token.span;
        if self.at(Kind::List) {
            let text = self.text().trim_start_matches('@').into();
            self.bump();
            return Ok(Entry::List(Name { text, span: start }));
        }
        let exclusive = self.take(Kind::LeftRound).is_some();
        let from = self.literal(field)?;
        if !exclusive && !self.at(Kind::DotDot) {
            self.findings.extend(advice::pattern_compared(&from));
            return Ok(Entry::Value(from));
        }
        if self.take(Kind::DotDot).is_none() {
            return Err(self.unexpected_so(
                "`..`",
                "round brackets hold a range without its bounds, `(3..5)`; a list stands in square brackets",
            ));
        }
        let to = self.literal(field)?;
        if exclusive {
            self.expect(Kind::RightRound, "`)`")?;
        }
        Ok(Entry::Range { span: self.since(start), from, to, exclusive })
    }
}

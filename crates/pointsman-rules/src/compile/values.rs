//! Texts that a field never is: those of few values, and those that the switch refuses before a rule is asked.

use crate::ast::TextOperator;
use crate::parser::shorten;
use crate::{Decimal, Field, Over, Span};

use super::Compiler;
use super::conditions::Left;
use super::scope::Scope;

/// Which part of a value a text is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Share {
    Whole,
    Start,
    End,
    Inside,
}

impl Share {
    /// Nothing for patterns, and for operators of paths.
    pub(super) fn of(operator: TextOperator) -> Option<Share> {
        match operator {
            TextOperator::StartsWith => Some(Share::Start),
            TextOperator::EndsWith => Some(Share::End),
            TextOperator::Contains => Some(Share::Inside),
            TextOperator::Like | TextOperator::Matches | TextOperator::Under => None,
        }
    }

    fn is_in(self, value: &str, text: &str) -> bool {
        match self {
            Share::Whole => value == text,
            Share::Start => value.starts_with(text),
            Share::End => value.ends_with(text),
            Share::Inside => value.contains(text),
        }
    }

    fn never(self) -> &'static str {
        match self {
            Share::Whole => "is never",
            Share::Start => "never begins with",
            Share::End => "never ends with",
            Share::Inside => "never contains",
        }
    }
}

impl Compiler<'_> {
    /// Warns where a field is never like a text, and says whether it did. What only the case of letters keeps apart
    /// is said elsewhere.
    pub(super) fn check_value(&mut self, left: &Left<'_>, at: Span, text: &[u8], share: Share) -> bool {
        let Ok(text) = std::str::from_utf8(text) else { return false };
        let folded = text.to_ascii_lowercase();
        let help = match left.field {
            Field::Method => method_help(text, share, left.operand.fold_case),
            Field::Host | Field::TlsSni => dot_help(&folded, share),
            _ => self.values(&left.field).and_then(|values| {
                let is_one = values.iter().any(|value| share.is_in(value, &folded));
                (!is_one).then(|| values_help(values))
            }),
        };
        let Some(help) = help else { return false };
        self.warn(at, format!("`{}` {} `{}`", left.field, share.never(), shorten(text)), help);
        true
    }

    /// The same of a number.
    pub(super) fn check_number(&mut self, left: &Left<'_>, at: Span, number: &Decimal) {
        if self.is_never_number(left, at) || left.operand.over == Over::Count {
            return;
        }
        let Some(values) = self.values(&left.field) else { return };
        let mut numbers = values.iter().filter_map(|value| Decimal::parse(value.as_bytes()).ok()).peekable();
        // A word is no number, and the condition cannot be decided.
        if numbers.peek().is_none() || numbers.any(|value| value == *number) {
            return;
        }
        let shown = shorten(at.of(self.source));
        self.warn(at, format!("`{}` is never `{shown}`", left.field), values_help(values));
    }

    /// Warns of a number beside a field whose values all begin or go on with something else.
    pub(super) fn is_never_number(&mut self, left: &Left<'_>, at: Span) -> bool {
        let is_word = matches!(
            left.field,
            Field::Path | Field::Url | Field::ContentType | Field::Scheme | Field::Proto | Field::TlsCipher
        );
        let is_never = is_word && left.operand.over != Over::Count;
        if is_never {
            let message = format!("`{}` is never a number, so what this comes to is never known", left.field);
            self.warn(at, message, format!("compare it with a text: `\"{}\"`", shorten(at.of(self.source))));
        }
        is_never
    }

    /// Warns of an order of texts where numbers seem to be meant. Versions are texts, and stand in the right order.
    pub(super) fn check_text_order(&mut self, left: &Left<'_>, at: Span, text: &[u8]) {
        if matches!(left.field, Field::Version | Field::TlsVersion) || Decimal::parse(text).is_err() {
            return;
        }
        let shown = String::from_utf8_lossy(text);
        let help = format!("write `{}`, without quotes, to compare numbers", shorten(shown.trim()));
        self.warn(at, "texts are compared byte by byte, so `\"9\"` is above `\"10\"`", help);
    }

    /// All values of a field that has few. Rules without a configuration may be those of any listener.
    fn values(&self, field: &Field) -> Option<&'static [&'static str]> {
        let is_known = !self.targets.are_any();
        Some(match (field, self.scope) {
            (Field::Version, _) => &["1.0", "1.1", "2"],
            (Field::Scheme, _) => &["http", "https"],
            (Field::Proto, Scope::Connections) => &["tcp"],
            (Field::Proto, Scope::Hellos) => &["tls"],
            (Field::Proto, Scope::Requests) if is_known => &["http", "https"],
            (Field::Proto, Scope::Requests) => &["http", "https", "tcp", "tls"],
            (Field::TlsVersion, Scope::Requests) if is_known => &["1.2", "1.3"],
            (Field::TlsVersion, _) => &["1.0", "1.1", "1.2", "1.3"],
            (Field::TlsAlpn, Scope::Requests) if is_known => &["h2", "http/1.1"],
            _ => return None,
        })
    }

    /// A field that is hidden where it means something.
    pub(super) fn check_hidden(&mut self, left: &Left<'_>) {
        if matches!(&left.field, Field::Header(name) if **name == *"upgrade") {
            let message = "`header[\"upgrade\"]` is never there in a request that asks for another protocol";
            self.warn(left.operand.span, message, "compare `upgrade`, as in `upgrade == \"websocket\"`");
        }
    }
}

fn values_help(values: &[&str]) -> String {
    let quoted: Vec<_> = values.iter().map(|value| format!("`{value}`")).collect();
    match quoted.as_slice() {
        [rest @ .., last] if !rest.is_empty() => format!("its values are {} and {last}", rest.join(", ")),
        all => format!("its only value is {}", all.concat()),
    }
}

/// Methods with small letters are refused, and so is CONNECT, unless it asks for a protocol as GET does.
fn method_help(text: &str, share: Share, is_folded: bool) -> Option<String> {
    let name = if is_folded { text.to_ascii_uppercase() } else { text.to_owned() };
    if name.bytes().any(|byte| byte.is_ascii_lowercase()) {
        let upper = name.to_ascii_uppercase();
        return Some(format!("write `\"{}\"`: a method with small letters is refused", shorten(&upper)));
    }
    let help = "it is refused before a rule is asked; over HTTP/2 one with `:protocol` is `GET` here";
    (share == Share::Whole && name == "CONNECT").then(|| help.to_owned())
}

/// A host, and a name that TLS asks for, are there without a dot at their end.
fn dot_help(text: &str, share: Share) -> Option<String> {
    let name = text.strip_suffix('.')?;
    match share {
        Share::Whole | Share::End if name.is_empty() => Some("leave it out".to_owned()),
        Share::Whole | Share::End => Some(format!("write `\"{}\"`", shorten(name))),
        Share::Start | Share::Inside => None,
    }
}

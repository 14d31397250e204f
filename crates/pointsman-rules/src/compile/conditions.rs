//! Conditions: every comparison gets the one meaning that its field and its value allow.

use ipnet::IpNet;

use crate::ast::{self, Comparison, Operand, Predicate, TextOperator};
use crate::format::spell;
use crate::parser::shorten;
use crate::{Condition, Entry, Field, FieldType, Op, Order, Over, Span, Test, pace};

use super::Compiler;
use super::literals::Typed;
use super::paths::Part;
use super::values::Share;

/// The left side of a comparison, resolved.
pub(super) struct Left<'o> {
    pub(super) operand: &'o Operand,
    pub(super) field: Field,
}

impl Left<'_> {
    /// What is compared: the type of the field, or of what is said about it.
    pub(super) fn value_type(&self) -> FieldType {
        match self.operand.over {
            Over::Count => FieldType::Integer,
            _ => self.field.value_type(),
        }
    }

    pub(super) fn is_lower_case(&self) -> bool {
        self.operand.fold_case || self.field.is_lower_case()
    }
}

impl Compiler<'_> {
    pub(super) fn condition(&mut self, condition: &ast::Condition) -> Option<Condition> {
        pace::step();
        match condition {
            ast::Condition::Not(_, inner) => Some(Condition::Not(Box::new(self.condition(inner)?))),
            ast::Condition::Group(_, inner) => self.condition(inner),
            ast::Condition::And(parts) => {
                let mut all = Vec::with_capacity(parts.len());
                for part in self.conditions(parts)? {
                    match part {
                        Condition::And(inner) => all.extend(inner),
                        other => all.push(other),
                    }
                }
                Some(Condition::And(all))
            }
            ast::Condition::Or(parts) => {
                let mut any = Vec::with_capacity(parts.len());
                for part in self.conditions(parts)? {
                    match part {
                        Condition::Or(inner) => any.extend(inner),
                        other => any.push(other),
                    }
                }
                Some(Condition::Or(any))
            }
            ast::Condition::Test(comparison) => self.comparison(comparison).map(Condition::Test),
            ast::Condition::Broken(_) => None,
        }
    }

    /// All parts are looked at, so that the errors of all are reported.
    fn conditions(&mut self, parts: &[ast::Condition]) -> Option<Vec<Condition>> {
        let parts: Vec<_> = parts.iter().map(|part| self.condition(part)).collect();
        parts.into_iter().collect()
    }

    fn comparison(&mut self, comparison: &Comparison) -> Option<Test> {
        let operand = &comparison.operand;
        let field = self.field(&operand.field)?;
        let left = Left { operand, field };
        self.check_fold(&left)?;
        self.check_hidden(&left);
        let op = self.predicate(&left, comparison)?;
        Some(Test {
            number: 0,
            span: comparison.span,
            field: left.field,
            over: operand.over,
            fold_case: operand.fold_case,
            op,
        })
    }

    fn check_fold(&mut self, left: &Left<'_>) -> Option<()> {
        if !left.operand.fold_case || left.value_type() == FieldType::Text {
            return Some(());
        }
        let message =
            format!("`lower` takes a text, and `{}` is {}", left.field, type_name(left.value_type()));
        self.error(left.operand.span, message, "leave `lower` out");
        None
    }

    fn predicate(&mut self, left: &Left<'_>, comparison: &Comparison) -> Option<Op> {
        match &comparison.predicate {
            Predicate::Bare => self.bare(left),
            Predicate::Exists if left.operand.over == Over::Count => {
                let help = format!("write `{} exists`, or compare the count with a number", left.field);
                self.error(comparison.span, "a count always exists", help);
                None
            }
            Predicate::Exists => Some(Op::Exists),
            Predicate::Equals(literal) => {
                let value = self.typed(left, literal)?;
                Some(match value {
                    Typed::Text(text) => {
                        self.check_whole(left, literal.span, &text);
                        Op::TextEquals(text)
                    }
                    Typed::Number(number) => {
                        self.check_number(left, literal.span, &number);
                        Op::NumberEquals(number)
                    }
                    Typed::Network(network) => Op::IpIn(network),
                    Typed::Boolean(true) => Op::IsTrue,
                    Typed::Boolean(false) => Op::IsFalse,
                })
            }
            Predicate::Differs(literal) => Some(match self.typed(left, literal)? {
                Typed::Text(text) => {
                    self.check_value(left, literal.span, &text, Share::Whole);
                    self.check_network(left, literal.span, &text);
                    self.check_path(left, literal.span, &text, Part::Whole);
                    Op::TextDiffers(text)
                }
                Typed::Number(number) => {
                    self.check_number(left, literal.span, &number);
                    Op::NumberDiffers(number)
                }
                Typed::Network(network) => Op::IpNotIn(network),
                Typed::Boolean(true) => Op::IsFalse,
                Typed::Boolean(false) => Op::IsTrue,
            }),
            Predicate::Ordered(order, literal) => self.ordered(left, *order, literal),
            Predicate::Text(operator, text) => self.text_test(left, *operator, text),
            Predicate::In { span, entries, .. } => self.list(left, *span, entries),
        }
    }

    fn bare(&mut self, left: &Left<'_>) -> Option<Op> {
        let shown = shorten(&spell(left.operand, self.source));
        if left.value_type() == FieldType::Boolean {
            return Some(Op::IsTrue);
        }
        let message = format!("`{shown}` is {}, and no condition by itself", type_name(left.value_type()));
        self.error(left.operand.span, message, format!("compare it, or write `{} exists`", left.field));
        None
    }

    fn ordered(&mut self, left: &Left<'_>, order: Order, literal: &ast::Literal) -> Option<Op> {
        match self.typed(left, literal)? {
            Typed::Text(text) => {
                self.check_text_order(left, literal.span, &text);
                Some(Op::TextOrder(order, text))
            }
            Typed::Number(number) => {
                self.is_never_number(left, literal.span);
                Some(Op::NumberOrder(order, number))
            }
            Typed::Network(network) if network.prefix_len() == network.max_prefix_len() => {
                Some(Op::IpOrder(order, network.addr()))
            }
            Typed::Network(_) => {
                self.error(
                    literal.span,
                    "a network is neither above nor below an address",
                    "write `in [10.0.0.0/8]`",
                );
                None
            }
            Typed::Boolean(_) => {
                self.error(literal.span, "true and false have no order", "compare with `==`");
                None
            }
        }
    }

    fn text_test(&mut self, left: &Left<'_>, operator: TextOperator, text: &ast::Quoted) -> Option<Op> {
        if left.value_type() != FieldType::Text {
            let shown = shorten(&spell(left.operand, self.source));
            let message = format!(
                "`{}` takes a text, and `{shown}` is {}",
                operator.word(),
                type_name(left.value_type())
            );
            self.error(left.operand.span, message, "compare it with `==`, `<` or `in`");
            return None;
        }
        let bytes: Box<[u8]> = text.text.as_bytes().into();
        let is_never =
            Share::of(operator).is_some_and(|share| self.check_value(left, text.span, &bytes, share));
        if operator != TextOperator::Matches && !is_never {
            self.check_case(left, text.span, &bytes, Share::of(operator));
        }
        // What is no path to be under is an error, below.
        if let Some(part) = Part::of(operator).filter(|part| *part == Part::Start || bytes.starts_with(b"/"))
        {
            self.check_path(left, text.span, &bytes, part);
        }
        match operator {
            TextOperator::Contains => Some(Op::Contains(bytes)),
            TextOperator::StartsWith => Some(Op::StartsWith(bytes)),
            TextOperator::EndsWith => Some(Op::EndsWith(bytes)),
            TextOperator::Like => Some(Op::Like(bytes)),
            TextOperator::Matches => self.regex(text).map(Op::Matches),
            TextOperator::Under => self.under(text, bytes),
        }
    }

    fn under(&mut self, text: &ast::Quoted, prefix: Box<[u8]>) -> Option<Op> {
        if prefix.starts_with(b"/") {
            return Some(Op::Under(prefix));
        }
        let shown = shorten(&text.text);
        let message = format!("`{shown}` is no path to be under");
        self.error(text.span, message, format!("paths begin with a slash: `\"/{shown}\"`"));
        None
    }

    fn list(&mut self, left: &Left<'_>, span: Span, entries: &[ast::Entry]) -> Option<Op> {
        if entries.is_empty() {
            self.warn(span, "an empty list takes no value", "this comparison is never true");
        }
        let entries: Vec<_> = entries.iter().map(|entry| self.entry(left, entry)).collect();
        entries.into_iter().collect::<Option<Vec<_>>>().map(Op::In)
    }

    fn entry(&mut self, left: &Left<'_>, entry: &ast::Entry) -> Option<Entry> {
        match entry {
            ast::Entry::Value(literal) => match self.typed(left, literal)? {
                Typed::Text(text) => {
                    self.check_whole(left, literal.span, &text);
                    Some(Entry::Text(text))
                }
                Typed::Number(number) => {
                    self.check_number(left, literal.span, &number);
                    Some(Entry::Number(number))
                }
                Typed::Network(network) => Some(Entry::Network(network)),
                Typed::Boolean(_) => {
                    self.error(literal.span, "true and false do not stand in lists", "compare with `==`");
                    None
                }
            },
            ast::Entry::Range { span, from, to, exclusive } => {
                let (low, high) = (self.typed(left, from), self.typed(left, to));
                self.range(*span, low?, high?, *exclusive)
            }
            ast::Entry::List(name) => self.named_list(left, name).map(Entry::List),
        }
    }

    /// Looks at a text that a whole value is compared with.
    fn check_whole(&mut self, left: &Left<'_>, at: Span, text: &[u8]) {
        if !self.check_value(left, at, text, Share::Whole) {
            self.check_case(left, at, text, Some(Share::Whole));
        }
        self.check_network(left, at, text);
        self.check_path(left, at, text, Part::Whole);
    }

    /// An address in a field of text lies in no network: the two are compared byte by byte.
    fn check_network(&mut self, left: &Left<'_>, at: Span, text: &[u8]) {
        let may_name_a_client = matches!(left.field, Field::Header(_) | Field::Host | Field::TlsSni);
        let network = std::str::from_utf8(text).ok().and_then(|text| text.parse::<IpNet>().ok());
        if let Some(network) = network.filter(|_| may_name_a_client) {
            let shown = shorten(&spell(left.operand, self.source));
            let message = format!("`{shown}` is a text, and equals only the text `{network}`");
            let help = format!("networks are for addresses: `clientip in [{network}]`");
            self.warn(at, message, help);
        }
    }

    /// Folded and lower-case values never equal a text with capitals, nor a host one with a port. Without a share it is a
    /// pattern.
    fn check_case(&mut self, left: &Left<'_>, at: Span, text: &[u8], share: Option<Share>) {
        if left.field == Field::Host
            && let Some((name, port)) = at_port(text)
            && !may_be_in_address(name, port, share)
        {
            let name = shorten(&String::from_utf8_lossy(name).to_ascii_lowercase());
            let help = match name.trim_matches(['*', ']']) {
                "" => "compare `dstport` with the port".to_owned(),
                _ => format!("write `\"{name}\"`"),
            };
            self.warn(at, "`host` is in lower case and has no port, so this is never true", help);
            return;
        }
        if !left.is_lower_case() || !text.iter().any(u8::is_ascii_uppercase) {
            return;
        }
        let shown = shorten(&spell(left.operand, self.source));
        let lower = shorten(&String::from_utf8_lossy(text).to_ascii_lowercase());
        let message = format!("`{shown}` is always in lower case, so this is never true");
        self.warn(at, message, format!("write `\"{lower}\"`"));
    }
}

/// What stands before the port, if there is one, and the port: `a:80`, `[::1]:80`.
fn at_port(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = text.iter().rposition(|byte| *byte == b':')?;
    let (name, port) = (&text[..colon], &text[colon + 1..]);
    let is_port = port.iter().all(|byte| byte.is_ascii_digit() || *byte == b'*');
    // `[::1` is cut out of an address, and `::1` is one.
    let is_name = name.ends_with(b"]") || !name.iter().any(|byte| b"[:".contains(byte));
    (is_port && is_name).then_some((name, port))
}

/// Whether what reads like a name with a port may stand within an address of IPv6: `a:80` does in `[a:80::]`.
fn may_be_in_address(name: &[u8], port: &[u8], share: Option<Share>) -> bool {
    let is_wild = |byte: &u8| share.is_none() && b"*?".contains(byte);
    let digits = port.iter().filter(|byte| byte.is_ascii_digit()).count();
    let is_inside = match share {
        Some(share) => share == Share::Inside && digits == port.len(),
        // The bracket is behind it.
        None => port.ends_with(b"*"),
    };
    is_inside && digits <= 4 && name.iter().all(|byte| byte.is_ascii_hexdigit() || is_wild(byte))
}

/// A type in words.
pub(super) fn type_name(value_type: FieldType) -> &'static str {
    match value_type {
        FieldType::Text => "a text",
        FieldType::Integer => "a whole number",
        FieldType::Ip => "an address",
        FieldType::Boolean => "true or false",
    }
}

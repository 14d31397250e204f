//! Values: which type a literal has beside its field.

use std::net::IpAddr;

use ipnet::IpNet;

use crate::ast::{Literal, LiteralKind};
use crate::format::spell;
use crate::parser::shorten;
use crate::{Decimal, Entry, FieldType, Span, unmapped};

use super::Compiler;
use super::conditions::{Left, type_name};

/// A value with the type that the comparison has.
pub(super) enum Typed {
    Text(Box<[u8]>),
    Number(Decimal),
    Network(IpNet),
    Boolean(bool),
}

impl Compiler<'_> {
    /// The value of a literal beside `left`; an error where the two do not go together.
    pub(super) fn typed(&mut self, left: &Left<'_>, literal: &Literal) -> Option<Typed> {
        let wanted = left.value_type();
        let help = match (wanted, &literal.kind) {
            (FieldType::Text, LiteralKind::Text(text)) => return Some(Typed::Text(text.as_bytes().into())),
            (FieldType::Text, LiteralKind::Number(_)) if left.operand.fold_case => {
                "`lower` compares texts; leave it out, or write the number in quotes".to_owned()
            }
            (FieldType::Text | FieldType::Integer, LiteralKind::Number(number)) => {
                return self.number(literal.span, number).map(Typed::Number);
            }
            (FieldType::Ip, LiteralKind::Address(address)) => return Some(Typed::Network((*address).into())),
            (FieldType::Ip, LiteralKind::Network(network)) => {
                return self.network(literal.span, *network);
            }
            (FieldType::Ip, LiteralKind::Text(text)) => match address_text(text) {
                Some(network) => {
                    if text.contains('/') {
                        let message = "a network in quotes is read as the network, and not as a text";
                        self.warn(literal.span, message, format!("write `{}`, without quotes", text.trim()));
                    }
                    return self.network(literal.span, network);
                }
                None => "write an address or a network: `10.0.0.1`, `10.0.0.0/8`, `2001:db8::/32`".to_owned(),
            },
            (FieldType::Boolean, LiteralKind::Boolean(value)) => return Some(Typed::Boolean(*value)),
            (FieldType::Text, LiteralKind::Boolean(value)) if left.field.may_be_boolean() => {
                return Some(Typed::Boolean(*value));
            }
            (FieldType::Text, _) => format!("write a text: `\"{}\"`", shorten(literal.span.of(self.source))),
            (FieldType::Integer, LiteralKind::Text(text)) if Decimal::parse(text.as_bytes()).is_ok() => {
                format!("write `{}`, without quotes", shorten(text.trim()))
            }
            (FieldType::Integer, _) => "compare it with a number".to_owned(),
            (FieldType::Ip, _) => "write an address or a network: `10.0.0.1`, `10.0.0.0/8`".to_owned(),
            (FieldType::Boolean, _) => "write `true` or `false`".to_owned(),
        };
        let shown = shorten(&spell(left.operand, self.source));
        let value = shorten(literal.span.of(self.source));
        let message = format!("`{shown}` is {}, and `{value}` is not", type_name(wanted));
        self.error(literal.span, message, help);
        None
    }

    fn number(&mut self, at: Span, text: &str) -> Option<Decimal> {
        if let Ok(number) = Decimal::parse(text.as_bytes()) {
            return Some(number);
        }
        let help = "numbers look like `5`, `-99.95` or `1e6`, with an exponent of at most 6144";
        self.error(at, format!("`{}` is not a number", shorten(text)), help);
        None
    }

    fn network(&mut self, at: Span, network: IpNet) -> Option<Typed> {
        let Ok(network) = unmapped(network) else {
            let help = "write the IPv4 network, or one of at least 96 bits";
            self.error(at, format!("`{network}` is wider than the IPv4-mapped addresses"), help);
            return None;
        };
        let whole = network.trunc();
        if whole != network {
            self.warn(at, format!("`{network}` has bits behind its prefix"), format!("it means `{whole}`"));
        }
        Some(Typed::Network(whole))
    }

    /// `from..to`, in one type and in this order.
    pub(super) fn range(&mut self, at: Span, from: Typed, to: Typed, exclusive: bool) -> Option<Entry> {
        let (reversed, entry) = match (from, to) {
            (Typed::Text(from), Typed::Text(to)) => (from > to, Entry::TextRange { from, to, exclusive }),
            (Typed::Number(from), Typed::Number(to)) => {
                (from > to, Entry::NumberRange { from, to, exclusive })
            }
            (Typed::Network(from), Typed::Network(to)) => {
                let (from, to) = (self.single(at, from)?, self.single(at, to)?);
                if from.is_ipv4() != to.is_ipv4() {
                    self.error(
                        at,
                        "the bounds are addresses of two families",
                        "write a range for each family",
                    );
                    return None;
                }
                (from > to, Entry::IpRange { from, to, exclusive })
            }
            (Typed::Boolean(_), _) | (_, Typed::Boolean(_)) => {
                self.error(at, "true and false have no order", "compare with `==`");
                return None;
            }
            _ => {
                self.error(at, "the bounds of a range are of two types", "write two texts, or two numbers");
                return None;
            }
        };
        if reversed {
            self.error(at, "the range is empty: its first bound is above its second", "exchange the bounds");
            return None;
        }
        Some(entry)
    }

    fn single(&mut self, at: Span, network: IpNet) -> Option<IpAddr> {
        if network.prefix_len() == network.max_prefix_len() {
            return Some(network.addr());
        }
        self.error(at, "a network is no bound of a range", "a network stands by itself: `in [10.0.0.0/8]`");
        None
    }
}

fn address_text(text: &str) -> Option<IpNet> {
    let text = text.trim();
    match text.parse::<IpAddr>() {
        Ok(address) => Some(address.to_canonical().into()),
        Err(_) => text.parse().ok(),
    }
}

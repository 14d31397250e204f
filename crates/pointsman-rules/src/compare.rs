//! One value against one comparison. The literal's type decides how the value is read.

use std::cmp::Ordering;
use std::net::IpAddr;

use ipnet::IpNet;
use memchr::memmem;

use crate::pattern::{like, under};
use crate::subject::TextRoom;
use crate::{Cause, Decimal, Entry, Members, Op, Order, Truth, Value};

impl Op {
    /// Whether the comparison holds for `value`, its text in lower case first if `fold_case`.
    pub(crate) fn holds(&self, value: Value<'_>, fold_case: bool) -> Truth {
        match self {
            Op::Exists => Truth::True,
            Op::IsTrue => text(value, fold_case, |text| text == b"true"),
            Op::IsFalse => text(value, fold_case, |text| text == b"false"),
            Op::TextEquals(literal) => text(value, fold_case, |text| text == &**literal),
            Op::TextDiffers(literal) => text(value, fold_case, |text| text != &**literal),
            Op::TextOrder(order, literal) => text(value, fold_case, |text| order.takes(text.cmp(literal))),
            Op::Contains(part) => text(value, fold_case, |text| memmem::find(text, part).is_some()),
            Op::StartsWith(start) => text(value, fold_case, |text| text.starts_with(start)),
            Op::EndsWith(end) => text(value, fold_case, |text| text.ends_with(end)),
            Op::Like(pattern) => text(value, fold_case, |text| like(pattern, text)),
            Op::Matches(regex) => text(value, fold_case, |text| regex.is_match(text)),
            Op::Under(prefix) => text(value, fold_case, |text| under(prefix, text)),
            Op::NumberEquals(literal) => number(value, literal, Ordering::is_eq),
            Op::NumberDiffers(literal) => number(value, literal, Ordering::is_ne),
            Op::NumberOrder(order, literal) => number(value, literal, |found| order.takes(found)),
            Op::IpIn(network) => address(value, |ip| in_network(network, ip)),
            Op::IpNotIn(network) => address(value, |ip| !in_network(network, ip)),
            Op::IpOrder(order, literal) => {
                address(value, |ip| same_family(ip, *literal).is_some_and(|found| order.takes(found)))
            }
            Op::In(entries) => in_list(entries, value, fold_case),
        }
    }
}

/// Kleene's or over the entries.
fn in_list(entries: &[Entry], value: Value<'_>, fold_case: bool) -> Truth {
    // Not even of an empty list.
    if let Value::Unknown(cause) = value {
        return Truth::Unknown(cause);
    }
    let mut result = Truth::False;
    for entry in entries {
        result = result.or(entry.takes(value, fold_case));
        if result == Truth::True {
            break;
        }
    }
    result
}

impl Entry {
    fn takes(&self, value: Value<'_>, fold_case: bool) -> Truth {
        match self {
            Entry::Text(literal) => text(value, fold_case, |text| text == &**literal),
            Entry::Number(literal) => number(value, literal, Ordering::is_eq),
            Entry::Network(network) => address(value, |ip| in_network(network, ip)),
            Entry::NumberRange { from, to, exclusive } => {
                let above = number(value, from, |found| lower_bound(*exclusive).takes(found));
                above.and(number(value, to, |found| upper_bound(*exclusive).takes(found)))
            }
            Entry::IpRange { from, to, exclusive } => address(value, |ip| {
                let (above, below) = (same_family(ip, *from), same_family(ip, *to));
                above.is_some_and(|found| lower_bound(*exclusive).takes(found))
                    && below.is_some_and(|found| upper_bound(*exclusive).takes(found))
            }),
            Entry::TextRange { from, to, exclusive } => text(value, fold_case, |text| {
                lower_bound(*exclusive).takes(text.cmp(from)) && upper_bound(*exclusive).takes(text.cmp(to))
            }),
            Entry::List(list) => match &list.members {
                Members::Networks(networks) => address(value, |ip| networks.has(ip)),
                Members::Texts(texts) => text(value, fold_case, |text| texts.has(text)),
            },
        }
    }
}

impl Order {
    /// Whether a value that stands to the literal as `found` satisfies the comparison.
    fn takes(self, found: Ordering) -> bool {
        match self {
            Order::Less => found.is_lt(),
            Order::LessOrEqual => found.is_le(),
            Order::Greater => found.is_gt(),
            Order::GreaterOrEqual => found.is_ge(),
        }
    }
}

fn lower_bound(exclusive: bool) -> Order {
    if exclusive { Order::Greater } else { Order::GreaterOrEqual }
}

fn upper_bound(exclusive: bool) -> Order {
    if exclusive { Order::Less } else { Order::LessOrEqual }
}

fn text(value: Value<'_>, fold_case: bool, holds: impl FnOnce(&[u8]) -> bool) -> Truth {
    // The usual case needs no room, and room costs time to set up.
    if let (Value::Text(text), false) = (value, fold_case) {
        return holds(text).into();
    }
    match value {
        Value::Nothing => return Truth::False,
        Value::Unknown(cause) => return Truth::Unknown(cause),
        _ => {}
    }
    let mut room = TextRoom::default();
    let text = if fold_case { value.folded_text(&mut room) } else { value.text(&mut room) };
    holds(text).into()
}

/// How the value stands to the literal decides; what is not a number cannot be compared.
fn number(value: Value<'_>, literal: &Decimal, holds: impl FnOnce(Ordering) -> bool) -> Truth {
    let found = match value {
        Value::Integer(integer) => Ok(literal.cmp_integer(integer)),
        Value::Text(text) => literal.cmp_text(text),
        Value::Ip(_) | Value::Boolean(_) => return Truth::Unknown(Cause::NotANumber),
        Value::Nothing => return Truth::False,
        Value::Unknown(cause) => return Truth::Unknown(cause),
    };
    match found {
        Ok(literal_to_value) => holds(literal_to_value.reverse()).into(),
        Err(_) => Truth::Unknown(Cause::NotANumber),
    }
}

/// The compiler lets only address fields stand beside addresses, and their values are of no other type.
fn address(value: Value<'_>, holds: impl FnOnce(IpAddr) -> bool) -> Truth {
    let Value::Ip(ip) = value else {
        debug_assert!(false, "{value:?} beside an address");
        return Truth::False;
    };
    holds(ip.to_canonical()).into()
}

/// `ip` is canonical, and so is the network: a mapped one was compiled to the IPv4 network.
fn in_network(network: &IpNet, ip: IpAddr) -> bool {
    match (network, ip) {
        (IpNet::V4(network), IpAddr::V4(ip)) => network.contains(&ip),
        (IpNet::V6(network), IpAddr::V6(ip)) => network.contains(&ip),
        (IpNet::V6(_), IpAddr::V4(_)) | (IpNet::V4(_), IpAddr::V6(_)) => false,
    }
}

/// How `ip` stands to `literal`; addresses of different families have no order.
fn same_family(ip: IpAddr, literal: IpAddr) -> Option<Ordering> {
    match (ip, literal.to_canonical()) {
        (IpAddr::V4(ip), IpAddr::V4(literal)) => Some(ip.cmp(&literal)),
        (IpAddr::V6(ip), IpAddr::V6(literal)) => Some(ip.cmp(&literal)),
        (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use regex::bytes::Regex;

    use super::*;

    const NOT_A_NUMBER: Truth = Truth::Unknown(Cause::NotANumber);

    fn check(op: &Op, value: Value<'_>, expected: impl Into<Truth>) {
        assert_eq!(op.holds(value, false), expected.into(), "{op:?} on {value:?}");
    }

    fn text(text: &str) -> Value<'_> {
        Value::Text(text.as_bytes())
    }

    fn ip(text: &str) -> Value<'static> {
        Value::Ip(text.parse().expect("an address"))
    }

    fn bytes(text: &str) -> Box<[u8]> {
        text.as_bytes().into()
    }

    fn decimal(text: &str) -> Decimal {
        text.parse().expect("a number")
    }

    fn network(text: &str) -> IpNet {
        text.parse().expect("a network")
    }

    #[test]
    fn text_by_bytes() {
        check(&Op::TextEquals(bytes("CCL")), text("CCL"), true);
        check(&Op::TextEquals(bytes("CCL")), text("ccl"), false);
        check(&Op::TextEquals(bytes("CCL")), text(" CCL"), false);
        check(&Op::TextDiffers(bytes("CCL")), text("ccl"), true);
        check(&Op::TextOrder(Order::Less, bytes("b")), text("aa"), true);
        check(&Op::TextOrder(Order::GreaterOrEqual, bytes("b")), text("b"), true);
        check(&Op::TextOrder(Order::Greater, bytes("9")), text("10"), false);
        check(&Op::Contains(bytes("xmlprocess.pl")), text("/cgi/xmlprocess.pl?x"), true);
        check(&Op::Contains(bytes("")), text(""), true);
        check(&Op::StartsWith(bytes("/a")), text("/ab"), true);
        check(&Op::EndsWith(bytes(".gif")), text("/a.GIF"), false);
        check(&Op::Like(bytes("*.gif")), text("/a.gif"), true);
        check(&Op::Under(bytes("/api")), text("/apix"), false);
        let regex = Regex::new(r"\.(gif|jpe?g|png)$").expect("a regex");
        check(&Op::Matches(regex.into()), text("/a.jpeg"), true);
    }

    #[test]
    fn lower_folds_the_value_and_not_the_literal() {
        assert_eq!(Op::TextEquals(bytes("abc")).holds(text("aBC"), true), Truth::True);
        assert_eq!(Op::TextEquals(bytes("ABC")).holds(text("ABC"), true), Truth::False);
        assert_eq!(Op::TextEquals(bytes("\u{c4}")).holds(text("\u{c4}"), true), Truth::True);
        let long = "X".repeat(1000);
        assert_eq!(Op::EndsWith(bytes("xx")).holds(text(&long), true), Truth::True);
        assert_eq!(Op::In(vec![Entry::Text(bytes("abc"))]).holds(text("ABC"), true), Truth::True);
    }

    #[test]
    fn numbers_exactly() {
        check(&Op::NumberOrder(Order::Greater, decimal("52000")), text(" 52000.01 "), true);
        check(&Op::NumberOrder(Order::Greater, decimal("52000")), text("52000.00"), false);
        check(&Op::NumberOrder(Order::GreaterOrEqual, decimal("99.95")), text("9.995e1"), true);
        check(&Op::NumberEquals(decimal("80.0")), Value::Integer(80), true);
        check(&Op::NumberOrder(Order::Less, decimal("80.5")), Value::Integer(80), true);
        check(&Op::NumberDiffers(decimal("5")), text("5.00"), false);
        check(&Op::NumberDiffers(decimal("5")), text("five"), NOT_A_NUMBER);
        check(&Op::NumberEquals(decimal("5")), text(""), NOT_A_NUMBER);
        check(&Op::NumberEquals(decimal("1")), Value::Boolean(true), NOT_A_NUMBER);
        check(&Op::NumberEquals(decimal("1")), ip("1.1.1.1"), NOT_A_NUMBER);
    }

    #[test]
    fn addresses_by_family() {
        check(&Op::IpIn(network("10.0.0.0/8")), ip("10.1.2.3"), true);
        check(&Op::IpIn(network("10.0.0.0/8")), ip("::ffff:10.1.2.3"), true);
        check(&Op::IpIn(network("::/0")), ip("10.1.2.3"), false);
        check(&Op::IpNotIn(network("::/0")), ip("10.1.2.3"), true);
        let literal = "10.0.0.5".parse().expect("an address");
        check(&Op::IpOrder(Order::Less, literal), ip("9.255.255.255"), true);
        check(&Op::IpOrder(Order::Less, literal), ip("::1"), false);
        check(&Op::IpOrder(Order::Greater, literal), ip("::1"), false);
    }

    #[test]
    fn other_types_against_text_are_their_canonical_text() {
        check(&Op::TextEquals(bytes("10.0.0.1")), ip("::ffff:10.0.0.1"), true);
        check(&Op::StartsWith(bytes("2001:db8::")), ip("2001:0DB8:0::1"), true);
        check(&Op::Like(bytes("80*")), Value::Integer(8080), true);
        check(&Op::TextEquals(bytes("true")), Value::Boolean(true), true);
        check(&Op::IsTrue, Value::Boolean(true), true);
        check(&Op::IsFalse, Value::Boolean(true), false);
        check(&Op::IsFalse, text("false"), true);
        check(&Op::IsTrue, Value::Integer(1), false);
        check(&Op::Exists, Value::Boolean(false), true);
    }

    #[test]
    fn one_entry_of_a_list_suffices() {
        let list = Op::In(vec![Entry::Number(decimal("5")), Entry::Text(bytes("five"))]);
        check(&list, text("five"), true);
        check(&list, text("5.0"), true);
        check(&list, text("6"), false);
        check(&list, text("six"), NOT_A_NUMBER);
        check(&Op::In(vec![]), text("x"), false);
        let ports =
            Op::In(vec![Entry::NumberRange { from: decimal("3"), to: decimal("5"), exclusive: true }]);
        for (port, expected) in [(3, false), (4, true), (5, false)] {
            check(&ports, Value::Integer(port), expected);
        }
        let (from, to) = ("10.0.0.1".parse().expect("ip"), "10.0.0.9".parse().expect("ip"));
        let addresses = Op::In(vec![Entry::IpRange { from, to, exclusive: false }]);
        check(&addresses, ip("10.0.0.9"), true);
        check(&addresses, ip("10.0.0.10"), false);
        check(&addresses, ip("::a00:5"), false);
    }

    #[test]
    fn what_cannot_be_compared_is_there() {
        let text_ops =
            [Op::TextEquals(bytes("")), Op::TextDiffers(bytes("x")), Op::Contains(bytes("")), Op::IsFalse];
        let numbers = [Op::NumberDiffers(decimal("5")), Op::NumberOrder(Order::Less, decimal("5"))];
        let list = Op::In(vec![Entry::Text(bytes("")), Entry::Number(decimal("0"))]);
        for op in text_ops.iter().chain(&numbers).chain([&list]) {
            check(op, Value::Nothing, false);
            check(op, Value::Unknown(Cause::Unread), Truth::Unknown(Cause::Unread));
        }
        check(&Op::Exists, Value::Nothing, true);
        check(&Op::Exists, Value::Unknown(Cause::Limit), true);
    }

    proptest! {
        #[test]
        fn ranges_are_two_comparisons(value in 0u64..30, from in 0u64..30, to in 0u64..30, exclusive: bool) {
            let numbers = Entry::NumberRange { from: from.into(), to: to.into(), exclusive };
            let inside = if exclusive { from < value && value < to } else { from <= value && value <= to };
            prop_assert_eq!(numbers.takes(Value::Integer(value), false), inside.into());

            let letter = |position: u64| vec![b'a' + u8::try_from(position).expect("small")];
            let texts = Entry::TextRange { from: letter(from).into(), to: letter(to).into(), exclusive };
            prop_assert_eq!(texts.takes(Value::Text(&letter(value)), false), inside.into());

            let address = |position: u64| IpAddr::from([10, 0, 0, u8::try_from(position).expect("small")]);
            let addresses = Entry::IpRange { from: address(from), to: address(to), exclusive };
            prop_assert_eq!(addresses.takes(Value::Ip(address(value)), false), inside.into());
        }
    }
}

//! Values a little further on.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

use crate::ast::{Literal, LiteralKind};

/// A border a little below and a little above: a number by one unit of its last digit, an address by one. Texts have
/// no neighbours.
pub(super) fn moved(literal: &Literal) -> Vec<Literal> {
    let kinds = match &literal.kind {
        LiteralKind::Number(number) => {
            let steps = [-1, 1].into_iter().filter_map(|step| moved_number(number, step));
            steps.map(|number| LiteralKind::Number(number.into())).collect::<Vec<_>>()
        }
        LiteralKind::Address(address) => {
            let steps = [moved_address(*address, false), moved_address(*address, true)];
            steps.into_iter().flatten().map(LiteralKind::Address).collect()
        }
        LiteralKind::Text(_) | LiteralKind::Network(_) | LiteralKind::Boolean(_) => Vec::new(),
    };
    kinds.into_iter().map(|kind| Literal { span: literal.span, kind }).collect()
}

/// A network of twice the size.
pub(super) fn wider(literal: &Literal) -> Option<Literal> {
    let LiteralKind::Network(network) = &literal.kind else { return None };
    Some(Literal { span: literal.span, kind: LiteralKind::Network(network.supernet()?) })
}

/// The first half of a network.
pub(super) fn narrower(literal: &Literal) -> Option<Literal> {
    let LiteralKind::Network(network) = &literal.kind else { return None };
    let longer = network.prefix_len().checked_add(1)?;
    let half = IpNet::new(network.network(), longer).ok()?;
    Some(Literal { span: literal.span, kind: LiteralKind::Network(half) })
}

/// `99.95` and one step up: `99.96`. Nothing where it has more digits than fit, or is not written in digits.
fn moved_number(number: &str, step: i128) -> Option<String> {
    let (mantissa, exponent) = match number.find(['e', 'E']) {
        Some(at) => number.split_at(at),
        None => (number, ""),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let unscaled = format!("{whole}{fraction}").parse::<i128>().ok()?.checked_add(step)?;
    let sign = if unscaled < 0 { "-" } else { "" };
    let digits = format!("{:0width$}", unscaled.unsigned_abs(), width = fraction.len() + 1);
    let (whole, fraction) = digits.split_at(digits.len().checked_sub(fraction.len())?);
    let point = if fraction.is_empty() { "" } else { "." };
    Some(format!("{sign}{whole}{point}{fraction}{exponent}"))
}

fn moved_address(address: IpAddr, is_up: bool) -> Option<IpAddr> {
    Some(match address {
        IpAddr::V4(address) => {
            let bits = address.to_bits();
            let bits = if is_up { bits.checked_add(1) } else { bits.checked_sub(1) };
            IpAddr::V4(Ipv4Addr::from_bits(bits?))
        }
        IpAddr::V6(address) => {
            let bits = address.to_bits();
            let bits = if is_up { bits.checked_add(1) } else { bits.checked_sub(1) };
            IpAddr::V6(Ipv6Addr::from_bits(bits?))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_move_by_their_last_digit() {
        for (number, below, above) in [
            ("5", "4", "6"),
            ("0", "-1", "1"),
            ("-1", "-2", "0"),
            ("+7", "6", "8"),
            ("99.95", "99.94", "99.96"),
            ("0.00", "-0.01", "0.01"),
            ("-0.01", "-0.02", "0.00"),
            ("9.9", "9.8", "10.0"),
            ("1e3", "0e3", "2e3"),
            ("1.5E-2", "1.4E-2", "1.6E-2"),
        ] {
            assert_eq!(moved_number(number, -1).as_deref(), Some(below), "{number}");
            assert_eq!(moved_number(number, 1).as_deref(), Some(above), "{number}");
        }
        assert_eq!(moved_number(&"9".repeat(60), 1), None);
        assert_eq!(moved_number("0x1F", 1), None);
    }

    #[test]
    fn addresses_end_where_they_end() {
        let address = |text: &str| text.parse::<IpAddr>().expect("an address");
        assert_eq!(moved_address(address("10.0.0.255"), true), Some(address("10.0.1.0")));
        assert_eq!(moved_address(address("::1"), false), Some(address("::")));
        assert_eq!(moved_address(address("255.255.255.255"), true), None);
        assert_eq!(moved_address(address("::"), false), None);
    }
}

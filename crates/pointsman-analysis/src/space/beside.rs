//! Values on both sides of each border of a test.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use pointsman_rules::{Decimal, Entry, Field, Members, Op, Over, OwnedValue, Test};

use super::domain::{Domain, Kind};
use super::numbers::Plain;

/// Values of a field that are counted.
const COUNTED_MAX: u64 = 8;
/// Entries of a list, named or written out, whose borders are looked at.
const ENTRIES_MAX: usize = 256;
/// Digits of a number that has neighbours.
const DIGITS_MAX: usize = 30;
/// Money has cents.
const CENT_PLACES: usize = 2;

/// Whether a test has more borders than [`beside`] looks at.
pub(crate) fn has_more_borders(test: &Test) -> bool {
    let Op::In(entries) = &test.op else { return false };
    let is_long = |entry: &Entry| match entry {
        Entry::List(list) => match &list.members {
            Members::Networks(networks) => networks.ranges().nth(ENTRIES_MAX).is_some(),
            Members::Texts(texts) => texts.iter().nth(ENTRIES_MAX).is_some(),
        },
        _ => false,
    };
    entries.len() > ENTRIES_MAX || entries.iter().any(is_long)
}

/// All values of the test's field, once for each side of each of its borders: what is compared with, and what is just
/// beyond it. A request with them need not be possible. None where a border has no value, as that of a regex.
pub(crate) fn beside(test: &Test) -> Vec<Vec<OwnedValue>> {
    let kind = Domain::of(&test.field).kind;
    let mut found = Beside { field: &test.field, kind, values: Vec::new() };
    if test.over == Over::Count {
        return counts(test);
    }
    match &test.op {
        Op::Exists | Op::IsTrue | Op::IsFalse | Op::Matches(_) => {}
        Op::TextEquals(text) | Op::TextDiffers(text) => found.around_text(text, b"", b""),
        Op::TextOrder(_, text) => found.around_order(text),
        Op::Contains(text) => found.around_text(text, found.lead(), b"x"),
        Op::StartsWith(text) => {
            found.text(text);
            found.around_text(text, b"", b"x");
        }
        Op::EndsWith(text) => found.around_text(text, found.lead(), b""),
        Op::Like(pattern) => found.like(pattern),
        Op::Under(prefix) => {
            for behind in [&b""[..], b"/x", b"x"] {
                found.text(&[prefix, behind].concat());
            }
            found.text(&missed(prefix));
        }
        Op::NumberEquals(number) | Op::NumberDiffers(number) | Op::NumberOrder(_, number) => {
            found.number(number);
        }
        Op::IpIn(network) | Op::IpNotIn(network) => found.network(network),
        Op::IpOrder(_, address) => found.addresses(*address, *address),
        Op::In(entries) => entries.iter().take(ENTRIES_MAX).for_each(|entry| found.entry(entry)),
    }
    let single = found.values.into_iter().map(|value| vec![value]);
    single.collect()
}

/// Values as they are found.
struct Beside<'p> {
    field: &'p Field,
    kind: Kind,
    values: Vec<OwnedValue>,
}

impl Beside<'_> {
    fn add(&mut self, value: OwnedValue) {
        if !self.values.contains(&value) {
            self.values.push(value);
        }
    }

    fn text(&mut self, text: &[u8]) {
        match self.kind {
            Kind::Text(_) | Kind::Choice(_) => self.add(OwnedValue::Text(text.into())),
            Kind::Integer { .. } | Kind::Address | Kind::Boolean => {}
        }
    }

    /// With what a text of the field may begin whose end is said.
    fn lead(&self) -> &'static [u8] {
        if matches!(self.field, Field::Path | Field::Url) { b"/x" } else { b"x" }
    }

    fn around_text(&mut self, text: &[u8], before: &[u8], behind: &[u8]) {
        self.text(&[before, text, behind].concat());
        self.text(&[before, &missed(text), behind].concat());
    }

    fn around_order(&mut self, text: &[u8]) {
        self.text(text);
        self.text(&[text, b"0"].concat());
        if let Some((_, shorter)) = text.split_last().filter(|(_, shorter)| !shorter.is_empty()) {
            self.text(shorter);
        }
    }

    /// With nothing and with something in the place of each `*`.
    fn like(&mut self, pattern: &[u8]) {
        for stands_for in [&b""[..], b"x"] {
            let parts = pattern.iter().map(|byte| match byte {
                b'*' => stands_for,
                b'?' => b"x",
                byte => std::slice::from_ref(byte),
            });
            let text = parts.collect::<Vec<_>>().concat();
            self.text(&text);
            self.text(&missed(&text));
        }
    }

    fn number(&mut self, number: &Decimal) {
        let places = if matches!(self.kind, Kind::Integer { .. }) { 0 } else { CENT_PLACES };
        for text in neighbours(number, places) {
            match self.kind {
                Kind::Integer { min, max } => {
                    let whole = text.split('.').next().and_then(|whole| whole.parse().ok());
                    if let Some(whole) = whole.filter(|whole| (min..=max).contains(whole)) {
                        self.add(OwnedValue::Integer(whole));
                    }
                }
                _ => self.text(text.as_bytes()),
            }
        }
    }

    fn network(&mut self, network: &IpNet) {
        self.addresses(network.network(), network.broadcast());
    }

    /// Both ends, the one before and the one behind.
    fn addresses(&mut self, first: IpAddr, last: IpAddr) {
        let ends = [stepped(first, false), Some(first), Some(last), stepped(last, true)];
        for address in ends.into_iter().flatten() {
            match self.kind {
                Kind::Address => self.add(OwnedValue::Ip(address)),
                _ => self.text(address.to_string().as_bytes()),
            }
        }
    }

    fn entry(&mut self, entry: &Entry) {
        match entry {
            Entry::Text(text) => self.around_text(text, b"", b""),
            Entry::Number(number) => self.number(number),
            Entry::Network(network) => self.network(network),
            Entry::NumberRange { from, to, .. } => {
                self.number(from);
                self.number(to);
            }
            Entry::IpRange { from, to, .. } => {
                self.addresses(*from, *from);
                self.addresses(*to, *to);
            }
            Entry::TextRange { from, to, .. } => {
                self.around_order(from);
                self.around_order(to);
            }
            Entry::List(list) => match &list.members {
                Members::Networks(networks) => {
                    networks.ranges().take(ENTRIES_MAX).for_each(|(first, last)| self.addresses(first, last));
                }
                Members::Texts(texts) => {
                    texts.iter().take(ENTRIES_MAX).for_each(|text| self.around_text(text, b"", b""));
                }
            },
        }
    }
}

/// As many values as are compared with, one fewer and one more.
fn counts(test: &Test) -> Vec<Vec<OwnedValue>> {
    let numbers: Vec<&Decimal> = match &test.op {
        Op::NumberEquals(number) | Op::NumberDiffers(number) | Op::NumberOrder(_, number) => vec![number],
        Op::In(entries) => entries
            .iter()
            .take(ENTRIES_MAX)
            .flat_map(|entry| match entry {
                Entry::Number(number) => vec![number],
                Entry::NumberRange { from, to, .. } => vec![from, to],
                _ => Vec::new(),
            })
            .collect(),
        _ => Vec::new(),
    };
    let counts = numbers.into_iter().flat_map(|number| neighbours(number, 0));
    let mut known: Vec<u64> = counts.filter_map(|text| text.parse().ok()).collect();
    known.retain(|count| *count <= COUNTED_MAX);
    known.sort_unstable();
    known.dedup();
    let values = |count: u64| (0..count).map(|_| OwnedValue::Text((*b"a").into())).collect();
    known.into_iter().map(values).collect()
}

/// A text with another last character: all of its bytes, where it is UTF-8.
fn missed(text: &[u8]) -> Vec<u8> {
    let last = std::str::from_utf8(text).ok().and_then(|text| text.chars().next_back());
    let last_bytes = last.map_or(1, char::len_utf8);
    let kept = text.get(..text.len().saturating_sub(last_bytes)).unwrap_or_default();
    [kept, if text.last() == Some(&b'x') { b"y" } else { b"x" }].concat()
}

/// The number, and those one unit of its last digit below and above, of which it has so many behind the point at least.
fn neighbours(number: &Decimal, places_min: usize) -> Vec<String> {
    let Some(plain) = Plain::of(number) else { return Vec::new() };
    let places = plain.fraction.len().max(places_min);
    if plain.whole.len() + places > DIGITS_MAX {
        return Vec::new();
    }
    let fraction = (0..places).map(|place| plain.fraction.get(place).copied().unwrap_or(b'0'));
    let digits = plain.whole.iter().copied().chain(fraction);
    let magnitude = digits.fold(0_i128, |value, digit| value * 10 + i128::from(digit.saturating_sub(b'0')));
    let value = if *number < Decimal::from(0) { -magnitude } else { magnitude };
    [value - 1, value, value + 1].into_iter().map(|value| spelled(value, places)).collect()
}

/// Without zeros at the end of the places behind the point.
fn spelled(value: i128, places: usize) -> String {
    let digits = format!("{:0>width$}", value.unsigned_abs(), width = places + 1);
    let (whole, fraction) = digits.split_at_checked(digits.len() - places).unwrap_or((&digits, ""));
    let sign = if value < 0 { "-" } else { "" };
    match fraction.trim_end_matches('0') {
        "" => format!("{sign}{whole}"),
        fraction => format!("{sign}{whole}.{fraction}"),
    }
}

/// The next address, or the one before.
fn stepped(address: IpAddr, up: bool) -> Option<IpAddr> {
    Some(match address {
        IpAddr::V4(address) => {
            let bits = u32::from(address);
            Ipv4Addr::from(if up { bits.checked_add(1)? } else { bits.checked_sub(1)? }).into()
        }
        IpAddr::V6(address) => {
            let bits = u128::from(address);
            Ipv6Addr::from(if up { bits.checked_add(1)? } else { bits.checked_sub(1)? }).into()
        }
    })
}

#[cfg(test)]
mod tests {
    use pointsman_rules::{Targets, compile};

    use super::*;

    /// The values beside the borders of a condition's only test, as text.
    fn check(condition: &str, expected: &[&str]) {
        let source = format!("R1: if ({condition}) {{ routeTo(a); }}");
        let program = compile(&source, &Targets::Any).expect("a rule set").program;
        let mut found = Vec::new();
        program.rules[0].condition.each_test(&mut |test| {
            let text = |value: &OwnedValue| match value {
                OwnedValue::Text(text) => String::from_utf8_lossy(text).into_owned(),
                OwnedValue::Integer(integer) => integer.to_string(),
                OwnedValue::Ip(ip) => ip.to_string(),
                value => format!("{value:?}"),
            };
            let all = beside(test).into_iter();
            found.extend(all.map(|values| values.iter().map(text).collect::<Vec<_>>().join(",")));
        });
        assert_eq!(found, expected, "{condition}");
    }

    #[test]
    fn both_sides_of_every_border_are_found() {
        for (condition, expected) in [
            ("json.amount > 52000", &["51999.99", "52000", "52000.01"][..]),
            ("json.amount <= -0.005", &["-0.006", "-0.005", "-0.004"]),
            ("json.amount == 0", &["-0.01", "0", "0.01"]),
            ("dstport >= 65535", &["65534", "65535"]),
            ("dstport < 0.5", &["0"]),
            ("srcip in [10.0.0.0/8]", &["9.255.255.255", "10.0.0.0", "10.255.255.255", "11.0.0.0"]),
            ("srcip == 0.0.0.0/0", &["0.0.0.0", "255.255.255.255"]),
            ("srcip > ::1", &["::", "::1", "::2"]),
            (r#"path startsWith "/a/""#, &["/a/", "/a/x", "/axx"]),
            (r#"path under "/a""#, &["/a", "/a/x", "/ax", "/x"]),
            (r#"path endsWith ".gif""#, &["/x.gif", "/x.gix"]),
            (r#"host like "*.x""#, &[".x", ".y", "x.x", "x.y"]),
            (r#"header["a"] contains "é""#, &["xéx", "xxx"]),
            (r#"host in ["a", "b"]"#, &["a", "x", "b"]),
            (r#"count(header["a"]) > 1"#, &["", "a", "a,a"]),
            (r#"path matches "^/a""#, &[]),
        ] {
            check(condition, expected);
        }
    }
}

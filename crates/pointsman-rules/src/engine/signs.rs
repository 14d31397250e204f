//! What a value must show for a test to hold: what an index can look up.

use super::scale::Bounds;
use crate::list::INDEXED_MAX;
use crate::{Decimal, Entry, Members, Op, Over, Test};

/// One thing that a value may show.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Sign {
    /// That it is there.
    Present,
    Equals(Box<[u8]>),
    StartsWith(Box<[u8]>),
    Under(Box<[u8]>),
    EndsWith(Box<[u8]>),
    Contains(Box<[u8]>),
    Within(Bounds),
}

/// The signs of a test: where no value shows one of them, it is not true.
#[derive(Debug)]
pub(super) struct Signs {
    pub(super) list: Vec<Sign>,
    /// It is true where a value shows one.
    pub(super) is_exact: bool,
    /// A value that is no number makes it unknown.
    pub(super) is_numeric: bool,
}

impl Sign {
    /// Whether it stands at the beginning of a value, or at its end.
    pub(super) fn is_at_an_end(&self) -> bool {
        matches!(self, Sign::StartsWith(_) | Sign::EndsWith(_))
    }

    /// What is looked for, as far as that is a text.
    pub(super) fn text(&self) -> &[u8] {
        match self {
            Sign::Equals(text)
            | Sign::StartsWith(text)
            | Sign::Under(text)
            | Sign::EndsWith(text)
            | Sign::Contains(text) => text,
            Sign::Present | Sign::Within(_) => b"",
        }
    }
}

impl Signs {
    /// Nothing for a test that no index can help with, and for one that has several to [choose](super::rarest) from.
    pub(super) fn of(test: &Test) -> Option<Signs> {
        if test.over == Over::Count {
            return None;
        }
        let exactly = |list| Some(Signs { list, is_exact: true, is_numeric: false });
        let number =
            |bounds| Some(Signs { list: vec![Sign::Within(bounds)], is_exact: true, is_numeric: true });
        let within = |all_bounds: Vec<Bounds>| exactly(all_bounds.into_iter().map(Sign::Within).collect());
        match &test.op {
            Op::Exists => exactly(vec![Sign::Present]),
            Op::IsTrue => exactly(vec![Sign::Equals(b"true"[..].into())]),
            Op::IsFalse => exactly(vec![Sign::Equals(b"false"[..].into())]),
            Op::TextEquals(text) => exactly(vec![Sign::Equals(text.clone())]),
            Op::Contains(text) if text.is_empty() => exactly(vec![Sign::StartsWith(text.clone())]),
            Op::Contains(text) => exactly(vec![Sign::Contains(text.clone())]),
            Op::StartsWith(text) => exactly(vec![Sign::StartsWith(text.clone())]),
            Op::EndsWith(text) => exactly(vec![Sign::EndsWith(text.clone())]),
            Op::Under(text) => exactly(vec![Sign::Under(text.clone())]),
            Op::Like(pattern) if !pattern.iter().any(|byte| matches!(byte, b'*' | b'?')) => {
                exactly(vec![Sign::Equals(pattern.clone())])
            }
            Op::NumberEquals(literal) => number(Bounds::number(literal)),
            Op::NumberOrder(order, literal) => number(Bounds::number_order(*order, literal)),
            Op::IpIn(network) => within(Bounds::network(network)),
            Op::IpOrder(order, address) => within(Bounds::address_order(*order, *address)),
            Op::In(entries) => Signs::of_list(entries),
            Op::Like(_)
            | Op::Matches(_)
            | Op::TextDiffers(_)
            | Op::TextOrder(..)
            | Op::NumberDiffers(_)
            | Op::IpNotIn(_) => None,
        }
    }

    /// Whether they are whole texts or their beginnings, as they stand.
    pub(super) fn are_plain(&self, test: &Test) -> bool {
        let is_plain = |sign: &Sign| matches!(sign, Sign::Equals(_) | Sign::StartsWith(_) | Sign::Under(_));
        self.is_exact && !test.fold_case && self.list.iter().all(is_plain)
    }

    fn of_list(entries: &[Entry]) -> Option<Signs> {
        let mut signs = Signs { list: Vec::new(), is_exact: true, is_numeric: false };
        for entry in entries {
            match entry {
                Entry::Text(text) => signs.list.push(Sign::Equals(text.clone())),
                Entry::Number(number) => signs.list.push(Sign::Within(Bounds::number(number))),
                Entry::NumberRange { from, to, exclusive } => {
                    signs.list.push(Sign::Within(between(from, to, *exclusive)));
                }
                Entry::Network(network) => {
                    signs.list.extend(Bounds::network(network).into_iter().map(Sign::Within));
                }
                Entry::IpRange { from, to, exclusive } => {
                    let all_bounds = Bounds::addresses(*from, *to, *exclusive);
                    signs.list.extend(all_bounds.into_iter().map(Sign::Within));
                }
                Entry::List(list) => signs.list.extend(of_members(&list.members)?),
                Entry::TextRange { .. } => return None,
            }
            signs.is_numeric |= matches!(entry, Entry::Number(_) | Entry::NumberRange { .. });
        }
        Some(signs)
    }
}

/// Of a list with few members; one with more is looked up by itself.
fn of_members(members: &Members) -> Option<Vec<Sign>> {
    match members {
        Members::Networks(networks) if networks.len() <= INDEXED_MAX => {
            let bounds = networks.ranges().flat_map(|(from, to)| Bounds::addresses(from, to, false));
            Some(bounds.map(Sign::Within).collect())
        }
        Members::Texts(texts) if texts.len() <= INDEXED_MAX => {
            Some(texts.iter().map(|text| Sign::Equals(text.into())).collect())
        }
        Members::Networks(_) | Members::Texts(_) => None,
    }
}

/// From one number to another.
fn between(from: &Decimal, to: &Decimal, exclusive: bool) -> Bounds {
    Bounds::Numbers { from: Some((from.clone(), !exclusive)), to: Some((to.clone(), !exclusive)) }
}

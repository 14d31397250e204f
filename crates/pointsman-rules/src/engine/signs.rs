//! What a value must show for a test to hold: what an index can look up.

use regex_syntax::ParserBuilder;
use regex_syntax::hir::literal::{ExtractKind, Extractor, Seq};
use regex_syntax::hir::{Hir, HirKind, Look};

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

/// Of a regex: literals of more bytes say no more, and more literals are no faster than the regex itself.
const LITERAL_BYTES_MAX: usize = 32;
const LITERALS_MAX: usize = 16;
/// Classes of more members are no literals: `[aA]` is, as `(?i)` makes it, and `[0-9]` is not.
const CLASS_MAX: usize = 3;

impl Signs {
    /// Nothing for a test that no index can help with.
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
            Op::Like(pattern) => Some(Signs::of_pattern(pattern)),
            Op::Matches(regex) => Signs::of_regex(regex.as_str()),
            Op::NumberEquals(literal) => number(Bounds::number(literal)),
            Op::NumberOrder(order, literal) => number(Bounds::number_order(*order, literal)),
            Op::IpIn(network) => within(Bounds::network(network)),
            Op::IpOrder(order, address) => within(Bounds::address_order(*order, *address)),
            Op::In(entries) => Signs::of_list(entries),
            Op::TextDiffers(_) | Op::TextOrder(..) | Op::NumberDiffers(_) | Op::IpNotIn(_) => None,
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

    /// Of a `like`: what stands before its first wildcard, or behind its last, or the longest text between two.
    fn of_pattern(pattern: &[u8]) -> Signs {
        let is_wildcard = |byte: &u8| matches!(byte, b'*' | b'?');
        let mut parts: Vec<&[u8]> = pattern.split(is_wildcard).collect();
        let (first, last) = (parts[0], parts[parts.len() - 1]);
        if parts.len() == 1 {
            return Signs { list: vec![Sign::Equals(first.into())], is_exact: true, is_numeric: false };
        }
        parts.sort_by_key(|part| part.len());
        let longest = parts.pop().unwrap_or_default();
        let sign = match (first, last) {
            _ if longest.is_empty() => Sign::Present,
            (first, _) if first.len() == longest.len() => Sign::StartsWith(first.into()),
            (_, last) if last.len() == longest.len() => Sign::EndsWith(last.into()),
            _ => Sign::Contains(longest.into()),
        };
        Signs { list: vec![sign], is_exact: false, is_numeric: false }
    }

    /// Of a regex: literals of which each match has one.
    fn of_regex(text: &str) -> Option<Signs> {
        let parser = ParserBuilder::new().utf8(false).unicode(false).dot_matches_new_line(true).build();
        let hir = parser.clone().parse(text).ok()?;
        let looks = hir.properties();
        let begins = literals(&hir, ExtractKind::Prefix);
        let ends = literals(&hir, ExtractKind::Suffix);
        if looks.look_set_prefix().contains(Look::Start)
            && let Some(found) = &begins
        {
            return Some(Signs::hints(found, Sign::StartsWith));
        }
        if looks.look_set_suffix().contains(Look::End)
            && let Some(found) = &ends
        {
            return Some(Signs::hints(found, Sign::EndsWith));
        }
        let inner = parts(&hir).iter().filter_map(|part| literals(part, ExtractKind::Prefix));
        let found = inner.chain(begins).chain(ends).max_by_key(|found| {
            let shortest = found.iter().map(Vec::len).min().unwrap_or_default();
            (shortest, std::cmp::Reverse(found.len()))
        })?;
        Some(Signs::hints(&found, Sign::Contains))
    }

    fn hints(literals: &[Vec<u8>], sign: impl Fn(Box<[u8]>) -> Sign) -> Signs {
        let list = literals.iter().map(|literal| sign(literal.as_slice().into())).collect();
        Signs { list, is_exact: false, is_numeric: false }
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

/// The parts of a regex, each of which every match has.
fn parts(hir: &Hir) -> &[Hir] {
    let mut at = hir;
    loop {
        match at.kind() {
            HirKind::Capture(capture) => at = &capture.sub,
            HirKind::Concat(parts) => return parts,
            _ => return std::slice::from_ref(at),
        }
    }
}

/// What each match begins or ends with, if these are few texts and none is empty.
fn literals(hir: &Hir, kind: ExtractKind) -> Option<Vec<Vec<u8>>> {
    let mut extractor = Extractor::new();
    extractor
        .kind(kind)
        .limit_class(CLASS_MAX)
        .limit_literal_len(LITERAL_BYTES_MAX)
        .limit_total(LITERALS_MAX);
    let found: Seq = extractor.extract(hir);
    let found: Vec<_> = found.literals()?.iter().map(|literal| literal.as_bytes().to_vec()).collect();
    (!found.iter().any(Vec::is_empty)).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(regex: &str, expected: Option<&[Sign]>) {
        assert_eq!(Signs::of_regex(regex).map(|signs| signs.list).as_deref(), expected, "{regex}");
    }

    fn text(text: &str) -> Box<[u8]> {
        text.as_bytes().into()
    }

    #[test]
    fn regexes_have_literals() {
        check("xml", Some(&[Sign::Contains(text("xml"))]));
        check("^/api/", Some(&[Sign::StartsWith(text("/api/"))]));
        check("^/(a|b)x", Some(&[Sign::StartsWith(text("/ax")), Sign::StartsWith(text("/bx"))]));
        check("\\.(gif|png)$", Some(&[Sign::EndsWith(text(".gif")), Sign::EndsWith(text(".png"))]));
        check("[0-9]+/long/[a-z]*", Some(&[Sign::Contains(text("/long/"))]));
        check("(?i)aB", Some(&["AB", "Ab", "aB", "ab"].map(|both| Sign::Contains(text(both)))));
        check("[0-9]+", None);
        check("a?", None);
        check("", None);
    }

    #[test]
    fn patterns_have_a_longest_part() {
        for (pattern, expected) in [
            ("/shop/*.gif", Sign::StartsWith(text("/shop/"))),
            ("/a/*.gif", Sign::EndsWith(text(".gif"))),
            ("a*long?b", Sign::Contains(text("long"))),
            ("*?*", Sign::Present),
            ("/a", Sign::Equals(text("/a"))),
        ] {
            assert_eq!(Signs::of_pattern(pattern.as_bytes()).list, [expected], "{pattern}");
        }
    }
}

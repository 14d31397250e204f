//! What a condition leaves of the values that a field can have: it tells at once that two rules do not meet.
//!
//! Where a test speaks of one value, it leaves intervals: of numbers, of addresses, of texts in the order of their bytes,
//! of texts read backwards, and of paths piece by piece. What it leaves may be more than it says, never less. Capitals count as small letters.

mod gathered;
#[cfg(test)]
mod tests;

use std::net::IpAddr;

use ipnet::IpNet;
use pointsman_rules::{Condition, Decimal, Entry, Field, Members, Op, Order, Over, Program, RuleIndex, Test};

use self::gathered::Gathered;
use super::question::Analyst;
use super::world::may_end_unknown;
use crate::space::{Outline, PIECES_MAX, Piece, has_one_value};

/// Of two lists with more pairs of intervals than these one is as good as what is in both.
const CROSSED_MAX: usize = 1024;

/// Members of a named list that have an interval each.
const LISTED_MAX: usize = 256;

/// Looking at one test takes about so many steps.
const TEST_STEPS: usize = 4;

/// So many pairs of intervals are looked at in a step.
const PAIRS_A_STEP: usize = 4;

/// In what order the intervals are, and of what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Axis<'p> {
    /// Of its first value, or its only one.
    field: &'p Field,
    along: Along,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Along {
    Text,
    /// Texts from their last byte to their first.
    Backwards,
    /// Of a path, what stands behind its first slash, its second, and so on, up to the next.
    Piece(u8),
    Number,
    Address,
    /// How many values there are.
    Count,
}

/// A place in the order of an axis. No axis has places of two kinds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Least,
    Text(Box<[u8]>),
    Number(Decimal),
    /// IPv4 before IPv6.
    Address(u8, u128),
    Greatest,
}

/// Just before a place, at it, or just behind it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Edge(Place, i8);

/// All from one edge to another, both with it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Interval {
    pub(super) low: Edge,
    pub(super) high: Edge,
}

impl Interval {
    fn at(place: Place) -> Interval {
        Interval { low: Edge(place.clone(), 0), high: Edge(place, 0) }
    }

    fn between(from: Place, to: Place, exclusive: bool) -> Interval {
        let side = i8::from(exclusive);
        Interval { low: Edge(from, side), high: Edge(to, -side) }
    }

    fn ordered(order: Order, least: Place, bound: Place, greatest: Place) -> Interval {
        let (low, high) = match order {
            Order::Less => (Edge(least, 0), Edge(bound, -1)),
            Order::LessOrEqual => (Edge(least, 0), Edge(bound, 0)),
            Order::Greater => (Edge(bound, 1), Edge(greatest, 0)),
            Order::GreaterOrEqual => (Edge(bound, 0), Edge(greatest, 0)),
        };
        Interval { low, high }
    }

    /// All texts that begin so.
    fn beginning(text: &[u8]) -> Interval {
        let last = text.iter().rposition(|byte| *byte != u8::MAX);
        let mut next = text.iter().copied().take(last.map_or(0, |last| last + 1)).collect::<Box<[u8]>>();
        let high = match next.last_mut() {
            Some(byte) => {
                *byte += 1;
                Edge(Place::Text(next), -1)
            }
            None => Edge(Place::Greatest, 0),
        };
        Interval { low: Edge(Place::Text(text.into()), 0), high }
    }

    /// All texts that begin with one of the two, or with what lies between them.
    fn beginning_between(first: &[u8], last: &[u8]) -> Interval {
        Interval { low: Interval::beginning(first).low, high: Interval::beginning(last).high }
    }

    fn of_network(network: &IpNet) -> Interval {
        let (first, last) = match (of_address(network.network()), of_address(network.broadcast())) {
            // `::/80` ends with an IPv4-mapped address, and is of IPv6 all the same.
            (first @ Place::Address(6, _), Place::Address(4, bits)) => {
                (first, Place::Address(6, bits | MAPPED))
            }
            both => both,
        };
        Interval::between(first, last, false)
    }
}

/// What stands before an IPv4 address that is written as one of IPv6 (RFC 4291, section 2.5.5.2).
const MAPPED: u128 = 0xffff << 32;

fn of_address(address: IpAddr) -> Place {
    match address.to_canonical() {
        IpAddr::V4(address) => Place::Address(4, address.to_bits().into()),
        IpAddr::V6(address) => Place::Address(6, address.to_bits()),
    }
}

/// In their order, none touching another.
type Room = Vec<Interval>;

fn sorted(mut room: Room) -> Room {
    room.sort_unstable();
    let mut merged: Room = Vec::with_capacity(room.len());
    for interval in room {
        match merged.last_mut() {
            Some(last) if interval.low <= last.high => {
                if last.high < interval.high {
                    last.high = interval.high;
                }
            }
            _ => merged.push(interval),
        }
    }
    merged
}

fn touch(one: &Room, other: &Room) -> bool {
    let (mut ones, mut others) = (one.iter().peekable(), other.iter().peekable());
    while let (Some(one), Some(other)) = (ones.peek(), others.peek()) {
        if one.high < other.low {
            ones.next();
        } else if other.high < one.low {
            others.next();
        } else {
            return true;
        }
    }
    false
}

fn crossed(one: &Room, other: &Room) -> Room {
    if one.len().saturating_mul(other.len()) > CROSSED_MAX {
        return if one.len() < other.len() { one.clone() } else { other.clone() };
    }
    let both = one.iter().flat_map(|one| other.iter().map(move |other| (one, other)));
    let both = both.map(|(one, other)| Interval {
        low: one.low.clone().max(other.low.clone()),
        high: one.high.clone().min(other.high.clone()),
    });
    sorted(both.filter(|interval| interval.low <= interval.high).collect())
}

/// What a condition is known not to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// Neither false nor unknown.
    True,
    /// Not false.
    NotFalse,
}

/// What is left where a condition stands so, by axis.
#[derive(Clone, Debug, Default)]
pub(super) struct Rooms<'p>(Vec<(Axis<'p>, Room)>);

impl<'p> Rooms<'p> {
    /// Where there is no effort left for more, less is known: everything may be left.
    pub(super) fn of(condition: &'p Condition, standing: Standing, analyst: &mut Analyst<'p>) -> Rooms<'p> {
        match condition {
            Condition::Test(test) if standing == Standing::NotFalse && may_end_unknown(test) => {
                Rooms::default()
            }
            Condition::Test(_) if !analyst.take(TEST_STEPS) => Rooms::default(),
            Condition::Test(test) => Rooms::of_test(test, analyst),
            Condition::And(parts) => {
                let mut all = Gathered::default();
                for part in parts {
                    if analyst.is_used_up() {
                        break;
                    }
                    let part = Rooms::of(part, standing, analyst);
                    let pairs = all.narrow(part);
                    analyst.take(pairs / PAIRS_A_STEP);
                }
                all.whole()
            }
            // One of the parts is true, unless the whole may be unknown.
            Condition::Or(parts) if standing == Standing::True || !may_end_unknown_in(condition) => {
                let mut any = Gathered::default();
                for part in parts {
                    any.widen(Rooms::of(part, standing, analyst));
                    if analyst.is_used_up() || any.knows_nothing() {
                        return Rooms::default();
                    }
                }
                any.merged()
            }
            Condition::Always | Condition::Not(_) | Condition::Or(_) => Rooms::default(),
        }
    }

    fn of_test(test: &'p Test, analyst: &mut Analyst<'p>) -> Rooms<'p> {
        if test.over == Over::Any && !has_one_value(&test.field) {
            return Rooms::default();
        }
        let field = analyst.same(&test.field);
        let mut left = left_by(test, analyst);
        if matches!(field, Field::Path | Field::Url) {
            left.extend(in_pieces(test));
        } else {
            left.retain(|(along, _)| !matches!(along, Along::Piece(_)));
        }
        let rooms = left.into_iter().map(|(along, room)| {
            let along = if test.over == Over::Count { Along::Count } else { along };
            (Axis { field, along }, sorted(room))
        });
        Rooms(rooms.collect())
    }

    pub(super) fn each(&self) -> impl Iterator<Item = (Axis<'p>, &[Interval])> {
        self.0.iter().map(|(axis, room)| (*axis, room.as_slice()))
    }

    /// Whether one request may be in both, as far as that is seen here.
    pub(super) fn may_meet(&self, other: &Rooms<'_>) -> bool {
        self.0.iter().all(|(axis, room)| {
            other.0.iter().filter(|(known, _)| known == axis).all(|(_, other)| touch(room, other))
        })
    }
}

/// Whether a condition may come to neither true nor false; it may be said of one that cannot.
pub(super) fn may_end_unknown_in(condition: &Condition) -> bool {
    condition.any_test(&may_end_unknown)
}

/// The same of a rule's condition, with what its blocks need.
pub(super) fn rule_may_end_unknown(program: &Program, rule: u32) -> bool {
    program.rule(RuleIndex(rule)).is_none_or(|rule| {
        let awaits = [&rule.then, &rule.otherwise].iter().any(|block| !block.awaits.is_empty());
        awaits || may_end_unknown_in(&rule.condition)
    })
}

/// What a test leaves of one value, where it holds.
fn left_by(test: &Test, analyst: &mut Analyst<'_>) -> Vec<(Along, Room)> {
    let numbers = |interval| vec![(Along::Number, vec![interval])];
    match &test.op {
        Op::TextEquals(text) => of_texts([&**text]),
        Op::IsTrue => of_texts([&b"true"[..]]),
        Op::IsFalse => of_texts([&b"false"[..]]),
        Op::StartsWith(start) => of_beginning(start),
        Op::Matches(_) => of_outline(analyst.outline(&test.op)),
        Op::EndsWith(end) => of_ending(end),
        Op::Under(prefix) if prefix.ends_with(b"/") => of_beginning(prefix),
        Op::Under(prefix) => {
            let below = Interval::beginning(&folded(prefix.iter().chain(b"/")));
            vec![(Along::Text, vec![Interval::at(Place::Text(folded(prefix.iter()))), below])]
        }
        Op::Like(pattern) => {
            let is_plain = |byte: &&u8| !matches!(byte, b'*' | b'?');
            let start: Vec<u8> = pattern.iter().take_while(is_plain).copied().collect();
            if start.len() == pattern.len() {
                return of_texts([&**pattern]);
            }
            let mut end: Vec<u8> = pattern.iter().rev().take_while(is_plain).copied().collect();
            end.reverse();
            [of_beginning(&start), of_ending(&end)].concat()
        }
        Op::In(entries) => of_list(entries),
        Op::NumberEquals(number) => numbers(Interval::at(Place::Number(number.clone()))),
        Op::NumberOrder(order, number) => {
            let bound = Place::Number(number.clone());
            numbers(Interval::ordered(*order, Place::Least, bound, Place::Greatest))
        }
        Op::IpIn(network) => vec![(Along::Address, vec![Interval::of_network(network)])],
        Op::IpOrder(order, address) => {
            let bound = of_address(*address);
            let family = if matches!(bound, Place::Address(4, _)) { 4 } else { 6 };
            let ends = [0, u128::MAX].map(|bits| Place::Address(family, bits));
            let [least, greatest] = ends;
            vec![(Along::Address, vec![Interval::ordered(*order, least, bound, greatest)])]
        }
        Op::Exists
        | Op::TextDiffers(_)
        | Op::TextOrder(..)
        | Op::Contains(_)
        | Op::NumberDiffers(_)
        | Op::IpNotIn(_) => Vec::new(),
    }
}

/// Of what an automaton takes.
fn of_outline(outline: Outline) -> Vec<(Along, Room)> {
    let mut left = of_beginning(&outline.beginning);
    left.extend((0..).zip(&outline.pieces).filter_map(|(place, ways)| of_pieces(place, ways)));
    let ending = |(first, last): &(Vec<u8>, Vec<u8>)| Interval::beginning_between(first, last);
    if !outline.endings.is_empty() {
        left.push((Along::Backwards, outline.endings.iter().map(ending).collect()));
    }
    left
}

fn of_pieces(place: u8, ways: &[Piece]) -> Option<(Along, Room)> {
    let interval = |piece: &Piece| match piece {
        Piece::Whole(text) => Some(Interval::at(Place::Text(text.as_slice().into()))),
        Piece::Beginning(first, last) => (!last.is_empty()).then(|| Interval::beginning_between(first, last)),
    };
    Some((Along::Piece(place), ways.iter().map(interval).collect::<Option<Room>>()?))
}

/// What a comparison with one text leaves of the pieces of a path.
fn in_pieces(test: &Test) -> Vec<(Along, Room)> {
    let is_gap = |byte: &u8| matches!(byte, b'*' | b'?');
    let (text, is_whole): (&[u8], bool) = match &test.op {
        Op::TextEquals(text) => (text, true),
        Op::Under(text) => (text.strip_suffix(b"/").unwrap_or(text), true),
        Op::StartsWith(text) => (text, false),
        Op::Like(pattern) => match pattern.iter().position(is_gap) {
            Some(gap) => (&pattern[..gap], false),
            None => (pattern, true),
        },
        _ => return Vec::new(),
    };
    let pieces: Vec<Box<[u8]>> = text.split(|byte| *byte == b'/').map(|piece| folded(piece.iter())).collect();
    let last = pieces.len() - 1;
    let behind_slashes = (0..).zip(pieces.into_iter().enumerate().skip(1)).take(PIECES_MAX);
    let rooms = behind_slashes.filter_map(|(place, (number, piece))| {
        let is_cut = number == last && !is_whole;
        let piece = piece.into_vec();
        let piece = if is_cut { Piece::Beginning(piece.clone(), piece) } else { Piece::Whole(piece) };
        of_pieces(place, &[piece])
    });
    rooms.collect()
}

/// Nothing of a list with entries of several kinds, or with texts from one to another.
fn of_list(entries: &[Entry]) -> Vec<(Along, Room)> {
    if let [Entry::List(list)] = entries {
        return of_named_list(&list.members);
    }
    let texts: Option<Vec<&[u8]>> = entries
        .iter()
        .map(|entry| if let Entry::Text(text) = entry { Some(&**text) } else { None })
        .collect();
    if let Some(texts) = texts {
        return of_texts(texts);
    }
    let number = |number: &Decimal| Place::Number(number.clone());
    let numbers = entries.iter().map(|entry| match entry {
        Entry::Number(only) => Some(Interval::at(number(only))),
        Entry::NumberRange { from, to, exclusive } => {
            Some(Interval::between(number(from), number(to), *exclusive))
        }
        _ => None,
    });
    if let Some(room) = numbers.collect() {
        return vec![(Along::Number, not_empty(room))];
    }
    let addresses = entries.iter().map(|entry| match entry {
        Entry::Network(network) => Some(Interval::of_network(network)),
        Entry::IpRange { from, to, exclusive } => {
            Some(Interval::between(of_address(*from), of_address(*to), *exclusive))
        }
        _ => None,
    });
    addresses.collect::<Option<Room>>().map(|room| (Along::Address, not_empty(room))).into_iter().collect()
}

/// Of a long list all between its first and its last address, and nothing of texts.
fn of_named_list(members: &Members) -> Vec<(Along, Room)> {
    let between = |(first, last)| Interval::between(of_address(first), of_address(last), false);
    match members {
        Members::Networks(networks) if networks.len() <= LISTED_MAX => {
            vec![(Along::Address, networks.ranges().map(between).collect())]
        }
        Members::Networks(networks) => vec![(Along::Address, networks.hulls().map(between).collect())],
        Members::Texts(texts) if texts.len() <= LISTED_MAX => of_texts(texts.iter().collect::<Vec<_>>()),
        Members::Texts(_) => Vec::new(),
    }
}

fn not_empty(mut room: Room) -> Room {
    room.retain(|interval| interval.low <= interval.high);
    room
}

fn of_texts<'t>(texts: impl IntoIterator<Item = &'t [u8]> + Clone) -> Vec<(Along, Room)> {
    let at = |text| Interval::at(Place::Text(text));
    let forwards = texts.clone().into_iter().map(|text| at(folded(text.iter())));
    let backwards = texts.into_iter().map(|text| at(folded(text.iter().rev())));
    vec![(Along::Text, forwards.collect()), (Along::Backwards, backwards.collect())]
}

fn of_beginning(start: &[u8]) -> Vec<(Along, Room)> {
    if start.is_empty() {
        return Vec::new();
    }
    vec![(Along::Text, vec![Interval::beginning(&folded(start.iter()))])]
}

fn of_ending(end: &[u8]) -> Vec<(Along, Room)> {
    if end.is_empty() {
        return Vec::new();
    }
    vec![(Along::Backwards, vec![Interval::beginning(&folded(end.iter().rev()))])]
}

fn folded<'b>(bytes: impl Iterator<Item = &'b u8>) -> Box<[u8]> {
    bytes.map(u8::to_ascii_lowercase).collect()
}

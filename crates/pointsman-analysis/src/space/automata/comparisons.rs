//! Comparisons of texts as automata.

use std::cell::{Cell, RefCell};
use std::fmt::Write as _;
use std::sync::Arc;

use pointsman_rules::{Entry, Members, Op, Order};
use regex_automata::hybrid::LazyStateID;
use regex_automata::{Anchored, Input};

use super::lazy::Lazy;
use super::{Machine, STATES_MAX, Table, Words};

/// Bytes of what an automaton is made of.
const BUILT_BYTES_MAX: usize = 4 << 20;

/// Bytes of its states, and of what they are made of: what has more is given up before it takes seconds.
const TABLE_BYTES_MAX: usize = 2 << 20;

/// Texts of a named list that has an automaton.
const LISTED_MAX: usize = 1024;

/// The texts that satisfy a comparison with texts, or for `!=` those that do not. Nothing for another comparison, and
/// where it would be too large.
pub(super) fn of_op(op: &Op) -> Option<Machine> {
    // Each byte of them is a state at least.
    if let Op::Contains(text) | Op::StartsWith(text) | Op::EndsWith(text) | Op::Under(text) | Op::Like(text) =
        op
        && text.len() > STATES_MAX
    {
        return None;
    }
    let regex = match op {
        Op::IsTrue => return Some(words([b"true"])),
        Op::IsFalse => return Some(words([b"false"])),
        Op::TextEquals(text) | Op::TextDiffers(text) => return Some(words([text])),
        Op::TextOrder(order, text) => return ordered(text, *order),
        Op::In(entries) => return list(entries),
        Op::Contains(part) => quoted(part),
        Op::StartsWith(start) => format!(r"\A{}", quoted(start)),
        Op::EndsWith(end) => format!(r"{}\z", quoted(end)),
        Op::Under(prefix) if prefix.ends_with(b"/") => format!(r"\A{}", quoted(prefix)),
        Op::Under(prefix) => format!(r"\A{}(?:/|\z)", quoted(prefix)),
        Op::Like(pattern) => like(pattern),
        Op::Matches(regex) => regex.as_str().to_owned(),
        Op::Exists
        | Op::NumberEquals(_)
        | Op::NumberDiffers(_)
        | Op::NumberOrder(..)
        | Op::IpIn(_)
        | Op::IpNotIn(_)
        | Op::IpOrder(..) => return None,
    };
    let table = of_regex(&regex).map(|table| Machine::Table(Arc::new(table)));
    table.or_else(|| Lazy::new(&regex, BUILT_BYTES_MAX).map(|lazy| Machine::Lazy(Arc::new(lazy))))
}

fn words(words: impl IntoIterator<Item = impl AsRef<[u8]>>) -> Machine {
    Machine::Words(Arc::new(Words::of(words)))
}

/// Nothing for a list with something else than texts.
fn list(entries: &[Entry]) -> Option<Machine> {
    let (mut single, mut machines) = (Vec::new(), Vec::new());
    for entry in entries {
        match entry {
            Entry::Text(text) => single.push(text),
            Entry::TextRange { from, to, exclusive } => machines.push(range(from, to, *exclusive)?),
            Entry::List(list) => match &list.members {
                Members::Texts(texts) if texts.len() <= LISTED_MAX => machines.push(words(texts.iter())),
                Members::Texts(_) | Members::Networks(_) => return None,
            },
            Entry::Number(_) | Entry::Network(_) | Entry::NumberRange { .. } | Entry::IpRange { .. } => {
                return None;
            }
        }
    }
    let single = words(single);
    if machines.is_empty() {
        return Some(single);
    }
    machines.push(single);
    Machine::any_of(&machines)
}

/// How a text stands to another: equal so far, or settled.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Standing {
    Equal(usize),
    Less,
    Greater,
}

impl Standing {
    fn next(self, bound: &[u8], byte: u8) -> Standing {
        let Standing::Equal(length) = self else { return self };
        match bound.get(length) {
            Some(other) if byte < *other => Standing::Less,
            Some(other) if byte == *other => Standing::Equal(length + 1),
            _ => Standing::Greater,
        }
    }

    fn order(self, bound: &[u8]) -> std::cmp::Ordering {
        match self {
            Standing::Equal(length) => length.cmp(&bound.len()),
            Standing::Less => std::cmp::Ordering::Less,
            Standing::Greater => std::cmp::Ordering::Greater,
        }
    }
}

fn ordered(bound: &[u8], order: Order) -> Option<Machine> {
    let takes = |standing: &Standing| {
        let found = standing.order(bound);
        match order {
            Order::Less => found.is_lt(),
            Order::LessOrEqual => found.is_le(),
            Order::Greater => found.is_gt(),
            Order::GreaterOrEqual => found.is_ge(),
        }
    };
    let next = |standing: &Standing, byte| Some(standing.next(bound, byte));
    let table = Table::explored(classes_beside(&[bound])?, Standing::Equal(0), next, takes)?;
    Some(Machine::Table(Arc::new(table)))
}

fn range(from: &[u8], to: &[u8], exclusive: bool) -> Option<Machine> {
    let takes = |(low, high): &(Standing, Standing)| {
        let (low, high) = (low.order(from), high.order(to));
        if exclusive { low.is_gt() && high.is_lt() } else { low.is_ge() && high.is_le() }
    };
    let first = (Standing::Equal(0), Standing::Equal(0));
    let next = |(low, high): &(Standing, Standing), byte| Some((low.next(from, byte), high.next(to, byte)));
    let table = Table::explored(classes_beside(&[from, to])?, first, next, takes)?;
    Some(Machine::Table(Arc::new(table)))
}

/// A class for each byte of the texts, and for what lies between two of them. Nothing if all bytes are there.
fn classes_beside(texts: &[&[u8]]) -> Option<[u8; 256]> {
    let mut classes = [0; 256];
    let mut class = 0_u8;
    let mut was_bound = false;
    for byte in 0..=u8::MAX {
        let is_bound = texts.iter().any(|text| text.contains(&byte));
        if byte > 0 && (is_bound || was_bound) {
            class = class.checked_add(1)?;
        }
        was_bound = is_bound;
        classes[usize::from(byte)] = class;
    }
    Some(classes)
}

/// A regex for just these bytes.
fn quoted(text: &[u8]) -> String {
    text.iter().fold(String::new(), |mut regex, byte| {
        push(&mut regex, *byte);
        regex
    })
}

fn push(regex: &mut String, byte: u8) {
    if byte.is_ascii_alphanumeric() {
        regex.push(char::from(byte));
    } else {
        // Writing to memory does not fail.
        write!(regex, r"\x{byte:02X}").unwrap_or_default();
    }
}

/// `*` is any run of bytes, `?` any one byte.
fn like(pattern: &[u8]) -> String {
    let mut regex = r"\A".to_owned();
    for byte in pattern {
        match byte {
            b'*' if regex.ends_with(".*") => {}
            b'*' => regex.push_str(".*"),
            b'?' => regex.push('.'),
            _ => push(&mut regex, *byte),
        }
    }
    regex.push_str(r"\z");
    regex
}

/// Where a search stands: what the searcher knows, or that it has found a match.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Search {
    At(LazyStateID),
    Found,
}

/// The texts in which a regex of rules, with their options, matches somewhere.
///
/// All states of an automaton that makes them one by one, and not one that is made whole: the crate has that only with a feature
/// with which matching goes wrong (docs/adr/0064).
pub(super) fn of_regex(pattern: &str) -> Option<Table> {
    let dfa = super::lazy::searcher(pattern, BUILT_BYTES_MAX, TABLE_BYTES_MAX)?;
    let mut cache = dfa.create_cache();
    let first = dfa.start_state_forward(&mut cache, &Input::new("").anchored(Anchored::No)).ok()?;
    let cache = RefCell::new(cache);
    let mut classes = [0; 256];
    for byte in 0..=u8::MAX {
        classes[usize::from(byte)] = dfa.byte_classes().get(byte);
    }
    // The searcher says one byte later that it has found a match.
    let next = |search: &Search, byte| match search {
        Search::Found => Some(Search::Found),
        Search::At(state) => match dfa.next_state(&mut cache.borrow_mut(), *state, byte).ok()? {
            next if next.is_quit() => None,
            next if next.is_match() => Some(Search::Found),
            next => Some(Search::At(next)),
        },
    };
    let has_room = Cell::new(true);
    let takes = |search: &Search| match search {
        Search::Found => true,
        Search::At(state) => {
            let end = dfa.next_eoi_state(&mut cache.borrow_mut(), *state);
            has_room.set(has_room.get() && end.is_ok());
            end.is_ok_and(|end| end.is_match())
        }
    };
    Table::explored(classes, Search::At(first), next, takes).filter(|_| has_room.get())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn takes(machine: &Machine, text: &[u8]) -> bool {
        let state = text.iter().fold(machine.start(), |state, byte| machine.step(state, *byte));
        machine.takes(state) == Some(true)
    }

    #[test]
    fn automata_take_what_texts_say() {
        let text = |text: &str| text.as_bytes().into();
        let entries = || {
            vec![
                Entry::Text(text("q")),
                Entry::TextRange { from: text("ab"), to: text("b"), exclusive: true },
            ]
        };
        for (op, taken, refused) in [
            (Op::Contains(text("a.")), &["a.", "xa.y"][..], &["ab", ""][..]),
            (Op::StartsWith(text("a")), &["a", "ab"], &["ba", ""]),
            (Op::EndsWith(text("a\n")), &["a\n", "ba\n"], &["a", "a\n\n"]),
            (Op::Under(text("/a")), &["/a", "/a/b"], &["/ab", "/"]),
            (Op::Under(text("/a/")), &["/a/", "/a/b"], &["/a"]),
            (Op::Like(text("a?*c")), &["abc", "a\nc", "axyc"], &["ac", "abcd"]),
            (Op::TextOrder(Order::Less, text("b")), &["", "a", "azz"], &["b", "ba", "c"]),
            (Op::TextOrder(Order::GreaterOrEqual, text("b")), &["b", "ba", "c"], &["", "a"]),
            (Op::In(entries()), &["q", "aba", "az"], &["ab", "b", "a", "qq"]),
            (Op::In(vec![]), &[], &["", "a"]),
            (Op::IsTrue, &["true"], &["false", "tru", "trued"]),
        ] {
            let machine = of_op(&op).expect("it is small");
            for (texts, expected) in [(taken, true), (refused, false)] {
                for text in texts {
                    assert_eq!(takes(&machine, text.as_bytes()), expected, "{op:?} {text}");
                }
            }
        }
    }

    /// What would take seconds is given up, and what is merely long is not.
    #[test]
    fn what_is_too_large_is_given_up() {
        let text = |bytes: usize| vec![b'a'; bytes].into();
        for (bytes, fits) in [(500, true), (100_000, false), (10_000_000, false)] {
            for op in [Op::StartsWith(text(bytes)), Op::EndsWith(text(bytes)), Op::Like(text(bytes))] {
                assert_eq!(of_op(&op).is_some(), fits, "{bytes}");
            }
        }
        let stars: String = "*a".repeat(40);
        assert!(of_op(&Op::Like(stars.into_bytes().into())).is_some());
        assert!(of_regex("(a|b|c)*d.{30}e").is_none());
        assert!(of_regex("^([a-z]{1,8}[0-9]{1,8}){1,4}$").is_some());
    }

    /// The delayed match, the end of the text and what is around a place.
    #[test]
    fn regexes_match_as_those_of_rules() {
        for pattern in
            ["", "a", "a$", "^a", "(?m)^a$", r"\bab\b", "(a|ab)(c|)", "[^a]", "(?i)AB", "a.b", r"a\z"]
        {
            let table = of_regex(pattern).expect("it is small");
            let lazy = Machine::Lazy(Arc::new(Lazy::new(pattern, BUILT_BYTES_MAX).expect("it is small")));
            let matcher = pointsman_rules::compile(
                &format!("if (host matches \"{pattern}\") {{ reject(); }}"),
                &pointsman_rules::Targets::Any,
            );
            let program = matcher.expect("it is a regex").program;
            let Some(pointsman_rules::Condition::Test(test)) =
                program.rules.first().map(|rule| &rule.condition)
            else {
                panic!("it is one test");
            };
            for text in
                ["", "a", "b", "ab", "ba", "a\n", "b\na", "b\na\nb", "xab y", "aab", "a\nb", "AB", "abc"]
            {
                let expected = test.holds(pointsman_rules::Value::Text(text.as_bytes()));
                assert_eq!(takes(&lazy, text.as_bytes()), table.takes(text.as_bytes()), "{pattern} {text:?}");
                assert_eq!(
                    pointsman_rules::Truth::from(table.takes(text.as_bytes())),
                    expected,
                    "{pattern} {text:?}"
                );
            }
        }
    }
}

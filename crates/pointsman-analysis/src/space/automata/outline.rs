//! What the texts that an automaton takes look like from outside: so that many of them are told apart without being
//! walked side by side.

use std::collections::{BTreeMap, VecDeque};

use super::Table;

/// Of automata with more states nothing is said.
const STATES_MAX: usize = 512;
/// So many pieces between slashes are looked at.
pub(crate) const PIECES_MAX: usize = 4;
/// So many ways to end, and to begin a piece, are told apart.
const WAYS_MAX: usize = 8;
/// So many bytes of each.
const BYTES_MAX: usize = 64;

/// How all texts of an automaton look. Capitals count as small letters.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Outline {
    /// With what they begin.
    pub(crate) beginning: Vec<u8>,
    /// One of these stands behind their first slash, and up to the next or the end; behind their second; and so on.
    pub(crate) pieces: Vec<Vec<Piece>>,
    /// With one of these they end, or with what lies between the two; read backwards. Without any that is not known.
    pub(crate) endings: Vec<(Vec<u8>, Vec<u8>)>,
}

/// A part of a text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    Whole(Vec<u8>),
    Beginning(Vec<u8>),
}

impl Table {
    pub(super) fn outline(&self) -> Outline {
        let beginning = self.beginning();
        if self.states.len() > STATES_MAX {
            return Outline { beginning, ..Outline::default() };
        }
        let members = self.members();
        let pieces = self.pieces(&members);
        let endings = self.endings(&members);
        Outline { beginning, pieces, endings }
    }

    /// By class: its bytes, as small letters.
    fn members(&self) -> Vec<Vec<u8>> {
        let mut members = vec![Vec::new(); self.stride];
        for byte in 0..=u8::MAX {
            let class = usize::from(self.classes[usize::from(byte)]);
            let small = byte.to_ascii_lowercase();
            if let Some(of_class) = members.get_mut(class).filter(|known| !known.contains(&small)) {
                of_class.push(small);
            }
        }
        members
    }

    /// Where the texts that have led to a state may go on, by class.
    fn onward(&self, state: u32) -> impl Iterator<Item = (usize, u32)> {
        let start = state as usize * self.stride;
        let successors = self.next.get(start..start + self.stride).unwrap_or_default();
        successors.iter().copied().enumerate().filter(|(_, to)| self.state(*to).may_take)
    }

    fn pieces(&self, members: &[Vec<u8>]) -> Vec<Vec<Piece>> {
        let slash = usize::from(self.classes[usize::from(b'/')]);
        let mut pieces = Vec::new();
        if members.get(slash).is_none_or(|bytes| bytes.len() > 1) {
            return pieces;
        }
        let mut states = vec![Table::START];
        for _ in 0..PIECES_MAX {
            let within = self.reached(&states, slash);
            // Not all texts have a further slash.
            if within.iter().any(|state| self.state(*state).takes) {
                break;
            }
            let behind = within.iter().flat_map(|state| self.onward(*state));
            states = behind.filter(|(class, _)| *class == slash).map(|(_, to)| to).collect();
            states.sort_unstable();
            states.dedup();
            pieces.push(self.piece(states.clone(), slash, members));
        }
        pieces
    }

    /// All states that are come to without a byte of a class.
    fn reached(&self, from: &[u32], but: usize) -> Vec<u32> {
        let mut is_reached = vec![false; self.states.len()];
        let mut reached = Vec::new();
        let mut open = from.to_vec();
        while let Some(state) = open.pop() {
            let Some(is_known) = is_reached.get_mut(state as usize).filter(|known| !**known) else {
                continue;
            };
            *is_known = true;
            reached.push(state);
            open.extend(self.onward(state).filter(|(class, _)| *class != but).map(|(_, to)| to));
        }
        reached
    }

    /// What may follow where a text has led to one of these states, up to a slash or its end.
    fn piece(&self, from: Vec<u32>, slash: usize, members: &[Vec<u8>]) -> Vec<Piece> {
        let mut done = Vec::new();
        let mut open = VecDeque::from([(Vec::new(), from)]);
        while let Some((text, states)) = open.pop_front() {
            let mut may_end = states.iter().any(|state| self.state(*state).takes);
            let mut by_byte: BTreeMap<u8, Vec<u32>> = BTreeMap::new();
            for (class, to) in states.iter().flat_map(|state| self.onward(*state)) {
                if class == slash {
                    may_end = true;
                    continue;
                }
                for byte in members.get(class).into_iter().flatten() {
                    by_byte.entry(*byte).or_default().push(to);
                }
            }
            if by_byte.is_empty() {
                done.push(Piece::Whole(text));
                continue;
            }
            let is_one_of_many = by_byte.len() + done.len() + open.len() > WAYS_MAX;
            if may_end || is_one_of_many || text.len() == BYTES_MAX {
                done.push(Piece::Beginning(text));
                continue;
            }
            open.extend(by_byte.into_iter().map(|(byte, mut states)| {
                states.sort_unstable();
                states.dedup();
                ([text.as_slice(), &[byte]].concat(), states)
            }));
        }
        done
    }

    fn endings(&self, members: &[Vec<u8>]) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut before: Vec<Vec<(usize, u32)>> = vec![Vec::new(); self.states.len()];
        for (place, to) in self.next.iter().enumerate() {
            if let (Some(before), Ok(from)) =
                (before.get_mut(*to as usize), u32::try_from(place / self.stride))
            {
                before.push((place % self.stride, from));
            }
        }
        let taking: Vec<u32> =
            (0..).zip(&self.states).filter(|(_, state)| state.takes).map(|(at, _)| at).collect();
        let mut done: Vec<Vec<u8>> = Vec::new();
        let mut open = VecDeque::from([(Vec::new(), taking)]);
        while let Some((text, states)) = open.pop_front() {
            if states.contains(&Table::START) || text.len() == BYTES_MAX {
                done.push(text);
                continue;
            }
            let mut by_byte: BTreeMap<u8, Vec<u32>> = BTreeMap::new();
            for (class, from) in states.iter().filter_map(|state| before.get(*state as usize)).flatten() {
                for byte in members.get(*class).into_iter().flatten() {
                    by_byte.entry(*byte).or_default().push(*from);
                }
            }
            if by_byte.len() + done.len() + open.len() > WAYS_MAX {
                if text.is_empty() {
                    return runs(by_byte.keys().copied());
                }
                done.push(text);
                continue;
            }
            open.extend(by_byte.into_iter().map(|(byte, mut states)| {
                states.sort_unstable();
                states.dedup();
                ([text.as_slice(), &[byte]].concat(), states)
            }));
        }
        if done.iter().any(Vec::is_empty) {
            return Vec::new();
        }
        done.into_iter().map(|text| (text.clone(), text)).collect()
    }
}

/// Bytes that follow each other, from the first to the last; nothing where these are many.
fn runs(bytes: impl Iterator<Item = u8>) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut runs: Vec<(u8, u8)> = Vec::new();
    for byte in bytes {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == byte => *last = byte,
            _ => runs.push((byte, byte)),
        }
    }
    // No byte of UTF-8 is the last one: what ends with any byte at all has nothing to tell.
    if runs.len() > WAYS_MAX || runs.iter().any(|(_, last)| *last == u8::MAX) {
        return Vec::new();
    }
    runs.into_iter().map(|(first, last)| (vec![first], vec![last])).collect()
}

#[cfg(test)]
mod tests {
    use super::super::of_regex;
    use super::*;

    /// The pieces and the endings of a regex, in one text.
    #[track_caller]
    fn check(regex: &str, expected: &str) {
        let outline = of_regex(regex).expect("it is small").outline();
        let text = |text: &[u8]| String::from_utf8_lossy(text).into_owned();
        let piece = |piece: &Piece| match piece {
            Piece::Whole(whole) => text(whole),
            Piece::Beginning(beginning) => text(beginning) + "~",
        };
        let ending = |(first, last): &(Vec<u8>, Vec<u8>)| match first == last {
            true => text(first),
            false => format!("{}-{}", text(first), text(last)),
        };
        let ways = |ways: &Vec<Piece>| ways.iter().map(piece).collect::<Vec<_>>().join("+");
        let pieces: Vec<_> = outline.pieces.iter().map(ways).collect();
        let endings: Vec<_> = outline.endings.iter().map(ending).collect();
        assert_eq!(format!("{} | {}", pieces.join("/"), endings.join(" ")), expected, "{regex}");
    }

    #[test]
    fn texts_have_pieces_and_endings() {
        check("^/api/v[0-9]+/users/[0-9]+$", "api/v~/users/~ | 0-9");
        check("^/API/Users$", "api/users | sresu/ipa/");
        check("(?i)^/api/Users/", "api/users/~ | ");
        check("/users/.*\\.(gif|png)$", "~/~ | fig. gnp.");
        check("^/(a|b)/x$", "a+b/x | x/a/ x/b/");
        check("^/(ab|cd|abc)(/.*)?$", "ab~+cd | ");
        check("^/[0-9]+/x", "~/x~ | ");
        check("^/a(/x)?$", "a | a/ x/a/");
        check("^/a(/x|/xy)$", "a/x~ | x/a/ yx/a/");
        check("^/[a-z]*$", "~ | / a-z");
        check("^/ab.c", "ab~ | ");
        check("", " | ");
    }

    /// What is said holds for every text that is taken.
    #[test]
    fn outlines_hold() {
        let regexes = [
            "^/a/b$",
            "^/[ab]+/b",
            "a$",
            "^(/a|/b/a)/?$",
            "/b/",
            "^/a?/?b?$",
            "(?i)^/A",
            "[^/]/a$",
            "^(/|a)*b$",
            "^/a/?",
            "^/(a|b|ab)(/.*)?$",
            "^/(a|ba?)/(b|ab)$",
        ];
        for regex in regexes {
            let table = of_regex(regex).expect("it is small");
            let outline = table.outline();
            let mut texts: Vec<Vec<u8>> = vec![Vec::new()];
            let mut at = 0;
            while let Some(text) = texts.get(at).cloned() {
                at += 1;
                if text.len() < 6 {
                    texts.extend(b"/abA".iter().map(|byte| [text.as_slice(), &[*byte]].concat()));
                }
                if table.takes(&text) {
                    holds(&outline, &text.to_ascii_lowercase(), regex);
                }
            }
        }
    }

    fn holds(outline: &Outline, text: &[u8], regex: &str) {
        let mut pieces = text.split(|byte| *byte == b'/').skip(1);
        for expected in &outline.pieces {
            let piece = pieces.next().unwrap_or_else(|| panic!("{regex} {text:?} has too few pieces"));
            let fits = |way: &Piece| match way {
                Piece::Whole(whole) => piece == whole,
                Piece::Beginning(beginning) => piece.starts_with(beginning),
            };
            assert!(expected.iter().any(fits), "{regex} {text:?} {expected:?}");
        }
        let backwards: Vec<u8> = text.iter().rev().copied().collect();
        let fits = |(first, last): &(Vec<u8>, Vec<u8>)| {
            backwards >= *first && (backwards < *last || backwards.starts_with(last))
        };
        assert!(outline.endings.is_empty() || outline.endings.iter().any(fits), "{regex} {text:?}");
    }
}

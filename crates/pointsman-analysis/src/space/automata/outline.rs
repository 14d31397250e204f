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
    /// It begins with one of these two, or with what lies between them.
    Beginning(Vec<u8>, Vec<u8>),
}

/// Bytes that follow each other and lead to the same states.
struct Run {
    first: u8,
    last: u8,
    states: Vec<u32>,
}

impl Run {
    /// A text with the first and with the last of them behind it.
    fn behind(&self, text: &[u8]) -> [Vec<u8>; 2] {
        [self.first, self.last].map(|byte| [text, &[byte]].concat())
    }
}

impl Table {
    pub(super) fn outline(&self) -> Outline {
        let beginning = self.beginning();
        if self.states.len() > STATES_MAX {
            return Outline { beginning, ..Outline::default() };
        }
        let letters = self.letters();
        Outline { beginning, pieces: self.pieces(&letters), endings: self.endings(&letters) }
    }

    /// By class: its bytes, as small letters.
    fn letters(&self) -> Vec<Vec<u8>> {
        let mut letters = vec![Vec::new(); self.stride];
        for byte in 0..=u8::MAX {
            let small = byte.to_ascii_lowercase();
            if let Some(of_class) = letters.get_mut(self.class(byte)).filter(|known| !known.contains(&small))
            {
                of_class.push(small);
            }
        }
        letters
    }

    /// Where the texts that have led to a state may go on, by class.
    fn onward(&self, state: u32) -> impl Iterator<Item = (usize, u32)> {
        let start = state as usize * self.stride;
        let successors = self.next.get(start..start + self.stride).unwrap_or_default();
        let successors = successors.iter().map(|to| u32::from(*to)).enumerate();
        successors.filter(|(_, to)| self.state(*to).may_take)
    }

    fn pieces(&self, letters: &[Vec<u8>]) -> Vec<Vec<Piece>> {
        let slash = self.class(b'/');
        let mut pieces = Vec::new();
        if letters.get(slash).is_none_or(|bytes| bytes.len() > 1) {
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
            pieces.push(self.piece(states.clone(), slash, letters));
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
    fn piece(&self, from: Vec<u32>, slash: usize, letters: &[Vec<u8>]) -> Vec<Piece> {
        let mut done = Vec::new();
        let mut open = VecDeque::from([(Vec::new(), from)]);
        while let Some((text, states)) = open.pop_front() {
            let onward = || states.iter().flat_map(|state| self.onward(*state));
            let may_end = states.iter().any(|state| self.state(*state).takes)
                || onward().any(|(class, _)| class == slash);
            let runs = runs(onward().filter(|(class, _)| *class != slash), letters);
            let is_one_of_many = runs.len() + done.len() + open.len() > WAYS_MAX;
            if runs.is_empty() {
                done.push(Piece::Whole(text));
            } else if may_end || is_one_of_many || text.len() == BYTES_MAX {
                done.push(Piece::Beginning(text.clone(), text));
            } else {
                for run in runs {
                    match run.behind(&text) {
                        [one, last] if one == last => open.push_back((one, run.states)),
                        [first, last] => done.push(Piece::Beginning(first, last)),
                    }
                }
            }
        }
        done
    }

    fn endings(&self, letters: &[Vec<u8>]) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut before: Vec<Vec<(usize, u32)>> = vec![Vec::new(); self.states.len()];
        for (place, to) in self.next.iter().enumerate() {
            if let (Some(before), Ok(from)) =
                (before.get_mut(usize::from(*to)), u32::try_from(place / self.stride))
            {
                before.push((place % self.stride, from));
            }
        }
        let taking: Vec<u32> =
            (0..).zip(&self.states).filter(|(_, state)| state.takes).map(|(at, _)| at).collect();
        let mut done: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
        let mut open = VecDeque::from([(Vec::new(), taking)]);
        while let Some((text, states)) = open.pop_front() {
            let into = states.iter().filter_map(|state| before.get(*state as usize)).flatten().copied();
            let runs = runs(into, letters);
            // What stands before the last bytes tells most where it is one of few.
            let is_one_of_many = runs.len() + done.len() + open.len() > WAYS_MAX
                || !text.is_empty() && runs.iter().any(|run| run.first != run.last);
            if states.contains(&Table::START) || is_one_of_many || text.len() == BYTES_MAX {
                done.push((text.clone(), text));
            } else {
                for run in runs {
                    match run.behind(&text) {
                        [one, last] if one == last => open.push_back((one, run.states)),
                        [first, last] => done.push((first, last)),
                    }
                }
            }
            // What may be empty, or end with any byte at all, has nothing to tell; no byte of UTF-8 is the last one.
            if done.iter().any(|(_, last)| last.is_empty() || *last == [u8::MAX]) {
                return Vec::new();
            }
        }
        done
    }
}

/// The bytes of some moves, as small letters and in their order, with the states at their other end. Where they are few each
/// is by itself.
fn runs(moves: impl Iterator<Item = (usize, u32)>, letters: &[Vec<u8>]) -> Vec<Run> {
    let mut by_class: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
    moves.for_each(|(class, state)| by_class.entry(class).or_default().push(state));
    // Bytes that are not alike in other states may be in these: they have the number of the same list.
    let mut lists: Vec<Vec<u32>> = Vec::new();
    let mut by_byte: Vec<(u8, usize)> = Vec::new();
    for (class, mut states) in by_class {
        states.sort_unstable();
        states.dedup();
        let list = lists.iter().position(|known| *known == states).unwrap_or_else(|| {
            lists.push(states);
            lists.len() - 1
        });
        by_byte.extend(letters.get(class).into_iter().flatten().map(|byte| (*byte, list)));
    }
    by_byte.sort_unstable();
    by_byte.dedup();
    let bytes: Vec<&[(u8, usize)]> = by_byte.chunk_by(|(one, _), (other, _)| one == other).collect();
    let is_next = |before: &[(u8, usize)], behind: &[(u8, usize)]| {
        let follows = matches!((before, behind), ([(before, _), ..], [(byte, _), ..]) if before + 1 == *byte);
        follows && before.iter().map(|(_, list)| list).eq(behind.iter().map(|(_, list)| list))
    };
    let are_few = bytes.len() <= WAYS_MAX;
    let runs = bytes.chunk_by(|before, behind| !are_few && is_next(before, behind));
    let run = |run: &[&[(u8, usize)]]| {
        let (first, last) = (run.first()?, run.last()?);
        let lists = first.iter().filter_map(|(_, list)| lists.get(*list));
        let mut states: Vec<u32> = lists.flatten().copied().collect();
        states.sort_unstable();
        states.dedup();
        Some(Run { first: first.first()?.0, last: last.first()?.0, states })
    };
    runs.filter_map(run).collect()
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
        let between = |first: &[u8], last: &[u8]| match first == last {
            true => text(first),
            false => format!("{}-{}", text(first), text(last)),
        };
        let piece = |piece: &Piece| match piece {
            Piece::Whole(whole) => text(whole),
            Piece::Beginning(first, last) => between(first, last) + "~",
        };
        let ending = |(first, last): &(Vec<u8>, Vec<u8>)| between(first, last);
        let ways = |ways: &Vec<Piece>| ways.iter().map(piece).collect::<Vec<_>>().join("+");
        let pieces: Vec<_> = outline.pieces.iter().map(ways).collect();
        let endings: Vec<_> = outline.endings.iter().map(ending).collect();
        assert_eq!(format!("{} | {}", pieces.join("/"), endings.join(" ")), expected, "{regex}");
    }

    #[test]
    fn texts_have_pieces_and_endings() {
        check("^/api/v[0-9]+/users/[0-9]+$", "api/v0-v9~/users/0-9~ | 0-9");
        check("^/API/Users$", "api/users | sresu/ipa/");
        check("(?i)^/api/Users/", "api/users/~ | ");
        check("/users/.*\\.(gif|png)$", "~/~ | fig. gnp.");
        check("^/(a|b)/x$", "a+b/x | x/a/ x/b/");
        check("^/(ab|cd|abc)(/.*)?$", "ab~+cd | ");
        check("^/[0-9]+/x", "0-9~/x~ | ");
        check("^/(new|edit|[0-9]+)$", "0-9~+new+edit | 0-9 wen/ tide/");
        check("(?i)^/[a-k]x", "a-k~ | ");
        check("^/([a-f]|[g-k]x)$", "a-f~+g-k~ | x a/ b/ c/ d/ e/ f/");
        check("^/a(/x)?$", "a | a/ x/a/");
        check("^/a(/x|/xy)$", "a/x~ | x/a/ yx/a/");
        check("^/[a-z]*$", "~ | a-z /");
        check("^/ab.c", "ab~ | ");
        check("^/[a-z]{2}(-[A-Z]{2})?/name/?$", "a-z~/name | eman/ /eman/");
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
                Piece::Beginning(first, last) => is_between(piece, first, last),
            };
            assert!(expected.iter().any(fits), "{regex} {text:?} {expected:?}");
        }
        let backwards: Vec<u8> = text.iter().rev().copied().collect();
        let fits = |(first, last): &(Vec<u8>, Vec<u8>)| is_between(&backwards, first, last);
        assert!(outline.endings.is_empty() || outline.endings.iter().any(fits), "{regex} {text:?}");
    }

    fn is_between(text: &[u8], first: &[u8], last: &[u8]) -> bool {
        text >= first && (text < last || text.starts_with(last))
    }
}

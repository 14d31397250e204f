//! The shortest text that several automata agree on.

use std::sync::LazyLock;

use super::automata::Machine;
use super::tuples::Tuples;
use crate::Effort;

/// Places that are looked at in one search.
const PLACES_MAX: usize = 60_000;

/// An automaton, and what it is wanted to say.
pub(super) struct Member {
    pub(super) machine: Machine,
    /// Whether it is asked about small letters in the place of capitals.
    pub(super) fold_case: bool,
    pub(super) taken: bool,
}

impl Member {
    fn read(&self, byte: u8) -> u8 {
        if self.fold_case { byte.to_ascii_lowercase() } else { byte }
    }
}

pub(super) enum Found {
    Word(Vec<u8>),
    /// There is none.
    Nothing,
    Unknown,
}

/// The shortest text on which all come to what is wanted of them; of several, one that can be read.
pub(super) fn shortest(members: &[Member], effort: &mut Effort) -> Found {
    let first: Vec<u32> = members.iter().map(|member| member.machine.start()).collect();
    match is_wanted(members, &first) {
        Some(true) => return Found::Word(Vec::new()),
        Some(false) => {}
        None => return Found::Unknown,
    }
    let bytes = samples(members);
    let cost: u64 = members.iter().map(|member| member.machine.cost()).sum();
    let mut places = Tuples::of_width(members.len());
    places.insert(&first);
    // By place: the one that it was reached from, and by which byte.
    let mut ways: Vec<(usize, u8)> = vec![(0, 0)];
    let (mut states, mut next, mut at) = (first, Vec::new(), 0);
    while let Some(place) = places.get(at) {
        states.clear();
        states.extend_from_slice(place);
        if !effort.take(bytes.len() as u64 * cost) {
            return Found::Unknown;
        }
        for byte in &bytes {
            if !step(members, &states, *byte, &mut next) {
                continue;
            }
            match is_wanted(members, &next) {
                Some(true) => return Found::Word(word(&ways, at, *byte)),
                Some(false) => {}
                None => return Found::Unknown,
            }
            if places.insert(&next) {
                ways.push((at, *byte));
            }
        }
        if ways.len() > PLACES_MAX {
            return Found::Unknown;
        }
        at += 1;
    }
    Found::Nothing
}

/// Where a byte leads to; false where one of them cannot come to what is wanted any more.
fn step(members: &[Member], states: &[u32], byte: u8, next: &mut Vec<u32>) -> bool {
    next.clear();
    members.iter().zip(states).all(|(member, state)| {
        let state = member.machine.step(*state, member.read(byte));
        next.push(state);
        member.machine.may_come_to(state, member.taken)
    })
}

/// Nothing where it is not known, or not known any more where the text has led.
fn is_wanted(members: &[Member], states: &[u32]) -> Option<bool> {
    let mut all = true;
    for (member, state) in members.iter().zip(states) {
        if member.machine.is_lost(*state) {
            return None;
        }
        all &= member.machine.takes(*state)? == member.taken;
    }
    Some(all)
}

/// The way to a place, and one byte more.
fn word(ways: &[(usize, u8)], mut at: usize, last: u8) -> Vec<u8> {
    let mut word = vec![last];
    while at > 0
        && let Some((from, byte)) = ways.get(at)
    {
        word.push(*byte);
        at = *from;
    }
    word.reverse();
    word
}

/// One byte, the most readable, of those that are alike to all.
fn samples(members: &[Member]) -> Vec<u8> {
    static BY_READABILITY: LazyLock<Vec<u8>> = LazyLock::new(|| {
        let mut bytes: Vec<u8> = (0..=u8::MAX).collect();
        bytes.sort_by_key(|byte| readability(*byte));
        bytes
    });
    let (mut known, mut classes) = (Tuples::of_width(members.len()), Vec::with_capacity(members.len()));
    let is_new = |byte: &u8| {
        classes.clear();
        classes.extend(members.iter().map(|member| u32::from(member.machine.class(member.read(*byte)))));
        known.insert(&classes)
    };
    BY_READABILITY.iter().copied().filter(is_new).collect()
}

fn readability(byte: u8) -> u8 {
    match byte {
        b'a'..=b'z' => 0,
        b'0'..=b'9' => 1,
        b'-' => 2,
        b'/' => 3,
        b'.' | b'_' => 4,
        b'A'..=b'Z' => 5,
        b'!'..=b'~' => 6,
        b' ' => 7,
        _ => 8,
    }
}

//! Texts that tests take, as automata that can be walked side by side.

use std::collections::{HashMap, VecDeque};
use std::fmt::Write as _;
use std::sync::Arc;

use pointsman_rules::{Entry, Op, Order};
use regex_automata::dfa::{Automaton as _, StartKind, dense};
use regex_automata::nfa::thompson;
use regex_automata::util::primitives::StateID;
use regex_automata::util::syntax;
use regex_automata::{Anchored, Input};

/// States of one automaton.
const STATES_MAX: usize = 1 << 14;

/// Bytes of one automaton while it is built.
const BUILT_BYTES_MAX: usize = 4 << 20;

/// An automaton over bytes, with a state for each that follows from each.
#[derive(Debug)]
pub(super) struct Table {
    /// Bytes that are alike have one class.
    classes: [u8; 256],
    stride: usize,
    /// By state and class.
    next: Vec<u32>,
    states: Vec<State>,
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    takes: bool,
    /// Whether some text that begins so is taken, and whether one is not.
    may_take: bool,
    may_refuse: bool,
}

/// The states of a [`Table`] that are found one after the other; `S` is what a state is where it comes from.
struct Exploration<S> {
    numbers: HashMap<S, u32>,
    found: Vec<S>,
}

impl<S: Clone + Eq + std::hash::Hash> Exploration<S> {
    fn number(&mut self, state: S) -> Option<u32> {
        if let Some(number) = self.numbers.get(&state) {
            return Some(*number);
        }
        let number = u32::try_from(self.found.len()).ok().filter(|_| self.found.len() < STATES_MAX)?;
        self.numbers.insert(state.clone(), number);
        self.found.push(state);
        Some(number)
    }
}

impl Table {
    pub(super) const START: u32 = 0;

    /// All states that are reached from the first one; nothing if there are too many, or one has no successor.
    pub(super) fn explored<S: Clone + Eq + std::hash::Hash>(
        classes: [u8; 256],
        first: S,
        next: impl Fn(&S, u8) -> Option<S>,
        takes: impl Fn(&S) -> bool,
    ) -> Option<Table> {
        let mut samples: Vec<(u8, u8)> = Vec::new();
        for byte in 0..=u8::MAX {
            let class = classes[usize::from(byte)];
            if samples.iter().all(|(known, _)| *known != class) {
                samples.push((class, byte));
            }
        }
        samples.sort_unstable();
        let mut exploration = Exploration { numbers: HashMap::new(), found: Vec::new() };
        exploration.number(first)?;
        let (mut at, mut successors) = (0, Vec::new());
        while let Some(state) = exploration.found.get(at).cloned() {
            for (_, byte) in &samples {
                successors.push(exploration.number(next(&state, *byte)?)?);
            }
            at += 1;
        }
        let states = exploration.found.iter().map(|state| State { takes: takes(state), ..State::default() });
        let mut table = Table { classes, stride: samples.len(), next: successors, states: states.collect() };
        table.look_ahead();
        Some(table)
    }

    /// Finds out from which states a text can still be taken, and refused.
    fn look_ahead(&mut self) {
        let mut before: Vec<Vec<u32>> = vec![Vec::new(); self.states.len()];
        for (place, to) in self.next.iter().enumerate() {
            if let (Ok(from), Some(before)) =
                (u32::try_from(place / self.stride), before.get_mut(*to as usize))
                && before.last() != Some(&from)
            {
                before.push(from);
            }
        }
        for wanted in [true, false] {
            let all = self.states.iter().zip(0..);
            let mut queue: VecDeque<u32> =
                all.filter(|(state, _)| state.takes == wanted).map(|(_, at)| at).collect();
            while let Some(at) = queue.pop_front() {
                let Some(state) = self.states.get_mut(at as usize) else { continue };
                let mark = if wanted { &mut state.may_take } else { &mut state.may_refuse };
                if !std::mem::replace(mark, true) {
                    queue.extend(before.get(at as usize).into_iter().flatten());
                }
            }
        }
    }

    fn state(&self, state: u32) -> State {
        self.states.get(state as usize).copied().unwrap_or_default()
    }

    fn step(&self, state: u32, byte: u8) -> u32 {
        let class = usize::from(self.classes[usize::from(byte)]);
        self.next.get(state as usize * self.stride + class).copied().unwrap_or(u32::MAX)
    }

    /// Whether a whole text is taken.
    pub(super) fn takes(&self, text: &[u8]) -> bool {
        self.state(text.iter().fold(Table::START, |state, byte| self.step(state, *byte))).takes
    }
}

/// Some texts, as a tree of their beginnings.
#[derive(Clone, Debug, Default)]
pub(super) struct Words {
    /// By node and byte; the root is 0.
    next: HashMap<(u32, u8), u32>,
    /// By node.
    ends: Vec<bool>,
    any_byte: Vec<u8>,
}

/// Where no text of the tree goes on.
const OFF: u32 = u32::MAX;

impl Words {
    pub(super) fn insert(&mut self, word: &[u8]) {
        if self.ends.is_empty() {
            self.ends.push(false);
        }
        let mut node = 0;
        for byte in word {
            node = *self.next.entry((node, *byte)).or_insert_with(|| {
                let fresh = u32::try_from(self.ends.len()).unwrap_or(OFF);
                self.ends.push(false);
                fresh
            });
            if !self.any_byte.contains(byte) {
                self.any_byte.push(*byte);
            }
        }
        if let Some(end) = self.ends.get_mut(node as usize) {
            *end = true;
        }
    }

    fn of(words: impl IntoIterator<Item = impl AsRef<[u8]>>) -> Words {
        let mut all = Words::default();
        words.into_iter().for_each(|word| all.insert(word.as_ref()));
        all
    }

    fn ends(&self, node: u32) -> bool {
        self.ends.get(node as usize).copied().unwrap_or_default()
    }
}

/// What takes some texts and refuses the others.
#[derive(Clone, Debug)]
pub(super) enum Machine {
    Table(Arc<Table>),
    Words(Arc<Words>),
}

impl Machine {
    pub(super) fn start(&self) -> u32 {
        match self {
            Machine::Table(_) => Table::START,
            Machine::Words(words) => if words.ends.is_empty() { OFF } else { 0 },
        }
    }

    pub(super) fn step(&self, state: u32, byte: u8) -> u32 {
        match self {
            Machine::Table(table) => table.step(state, byte),
            Machine::Words(words) => words.next.get(&(state, byte)).copied().unwrap_or(OFF),
        }
    }

    pub(super) fn takes(&self, state: u32) -> bool {
        match self {
            Machine::Table(table) => table.state(state).takes,
            Machine::Words(words) => words.ends(state),
        }
    }

    /// Whether a text that has led here can still be taken, or refused.
    pub(super) fn may_come_to(&self, state: u32, taken: bool) -> bool {
        match self {
            Machine::Table(table) if taken => table.state(state).may_take,
            Machine::Table(table) => table.state(state).may_refuse,
            Machine::Words(_) => !taken || state != OFF,
        }
    }

    /// Bytes of the same class are alike in every state.
    pub(super) fn class(&self, byte: u8) -> u16 {
        match self {
            Machine::Table(table) => u16::from(table.classes[usize::from(byte)]),
            Machine::Words(words) if words.any_byte.contains(&byte) => u16::from(byte),
            Machine::Words(_) => 256,
        }
    }

    /// The texts that one of several takes.
    fn any_of(machines: &[Machine]) -> Option<Machine> {
        let mut classes = [0; 256];
        let mut known: Vec<Vec<u16>> = Vec::new();
        for byte in 0..=u8::MAX {
            let signature: Vec<u16> = machines.iter().map(|machine| machine.class(byte)).collect();
            let class = known.iter().position(|known| *known == signature).unwrap_or_else(|| {
                known.push(signature);
                known.len() - 1
            });
            classes[usize::from(byte)] = u8::try_from(class).ok()?;
        }
        let first: Vec<u32> = machines.iter().map(Machine::start).collect();
        let next = |states: &Vec<u32>, byte: u8| {
            Some(machines.iter().zip(states).map(|(machine, state)| machine.step(*state, byte)).collect())
        };
        let takes =
            |states: &Vec<u32>| machines.iter().zip(states).any(|(machine, state)| machine.takes(*state));
        Table::explored(classes, first, next, takes).map(|table| Machine::Table(Arc::new(table)))
    }
}

/// The automata that were built so far, each once.
#[derive(Debug, Default)]
pub(crate) struct Automata {
    /// Nothing where an automaton would be too large.
    tests: HashMap<Op, Option<Machine>>,
    /// Of regexes that take a text as a whole.
    languages: HashMap<&'static str, Option<Arc<Table>>>,
}

impl Automata {
    /// The texts that a regex takes as a whole.
    pub(super) fn language(&mut self, pattern: &'static str) -> Option<Arc<Table>> {
        let build = || of_regex(&format!(r"\A(?:{pattern})\z")).map(Arc::new);
        self.languages.entry(pattern).or_insert_with(build).clone()
    }

    /// The texts that satisfy a comparison with texts; nothing for one with something else.
    pub(super) fn of(&mut self, op: &Op) -> Option<Machine> {
        if let Some(known) = self.tests.get(op) {
            return known.clone();
        }
        let built = build(op);
        self.tests.insert(op.clone(), built.clone());
        built
    }
}

fn build(op: &Op) -> Option<Machine> {
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
    of_regex(&regex).map(|table| Machine::Table(Arc::new(table)))
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
    let next =
        |(low, high): &(Standing, Standing), byte| Some((low.next(from, byte), high.next(to, byte)));
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
    At(StateID),
    Found,
}

/// The texts in which a regex of rules, with their options, matches somewhere.
fn of_regex(pattern: &str) -> Option<Table> {
    let config = dense::Config::new()
        .start_kind(StartKind::Unanchored)
        .accelerate(false)
        .dfa_size_limit(Some(BUILT_BYTES_MAX))
        .determinize_size_limit(Some(BUILT_BYTES_MAX));
    let dfa = dense::Builder::new()
        .configure(config)
        .syntax(syntax::Config::new().unicode(false).utf8(false).dot_matches_new_line(true))
        .thompson(thompson::Config::new().utf8(false).nfa_size_limit(Some(BUILT_BYTES_MAX)))
        .build(pattern)
        .ok()?;
    let first = dfa.start_state_forward(&Input::new("").anchored(Anchored::No)).ok()?;
    let mut classes = [0; 256];
    for byte in 0..=u8::MAX {
        classes[usize::from(byte)] = dfa.byte_classes().get(byte);
    }
    // The searcher says one byte later that it has found a match.
    let next = |search: &Search, byte| match search {
        Search::Found => Some(Search::Found),
        Search::At(state) => {
            let next = dfa.next_state(*state, byte);
            match () {
                () if dfa.is_quit_state(next) => None,
                () if dfa.is_match_state(next) => Some(Search::Found),
                () => Some(Search::At(next)),
            }
        }
    };
    let takes = |search: &Search| match search {
        Search::Found => true,
        Search::At(state) => dfa.is_match_state(dfa.next_eoi_state(*state)),
    };
    Table::explored(classes, Search::At(first), next, takes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn takes(machine: &Machine, text: &[u8]) -> bool {
        machine.takes(text.iter().fold(machine.start(), |state, byte| machine.step(state, *byte)))
    }

    #[test]
    fn automata_take_what_texts_say() {
        let text = |text: &str| text.as_bytes().into();
        let entries = || {
            vec![Entry::Text(text("q")), Entry::TextRange { from: text("ab"), to: text("b"), exclusive: true }]
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
            let machine = build(&op).expect("it is small");
            for (texts, expected) in [(taken, true), (refused, false)] {
                for text in texts {
                    assert_eq!(takes(&machine, text.as_bytes()), expected, "{op:?} {text}");
                }
            }
        }
    }

    /// The delayed match, the end of the text and what is around a place.
    #[test]
    fn regexes_match_as_those_of_rules() {
        for pattern in ["", "a", "a$", "^a", "(?m)^a$", r"\bab\b", "(a|ab)(c|)", "[^a]", "(?i)AB", "a.b", r"a\z"] {
            let table = of_regex(pattern).expect("it is small");
            let matcher = pointsman_rules::compile(
                &format!("if (host matches \"{pattern}\") {{ reject(); }}"),
                &pointsman_rules::Targets::Any,
            );
            let program = matcher.expect("it is a regex").program;
            let Some(pointsman_rules::Condition::Test(test)) = program.rules.first().map(|rule| &rule.condition)
            else {
                panic!("it is one test");
            };
            for text in ["", "a", "b", "ab", "ba", "a\n", "b\na", "b\na\nb", "xab y", "aab", "a\nb", "AB", "abc"] {
                let expected = test.holds(pointsman_rules::Value::Text(text.as_bytes()));
                assert_eq!(pointsman_rules::Truth::from(table.takes(text.as_bytes())), expected, "{pattern} {text:?}");
            }
        }
    }
}

//! Texts that tests take, as automata that can be walked side by side.

mod both;
mod comparisons;
mod lazy;
mod outline;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use pointsman_rules::Op;

use self::comparisons::{of_op, of_regex};
use self::lazy::Lazy;
pub(crate) use self::outline::{Outline, PIECES_MAX, Piece};
use crate::Effort;

/// States of one automaton.
const STATES_MAX: usize = 1 << 14;

/// Cells of the tables of one analysis, all together; each takes two bytes. Where they are used up no more are built, as
/// if each were too large: of thousands of patterns with thousands of states some are unknown.
const CELLS_MAX: usize = 1 << 24;

/// What is taken of them for a table that is given up as too large: about as much was tried.
const CELLS_OF_TOO_LARGE: usize = 1 << 17;

/// So many cells are built in the time of a step.
const CELLS_OF_A_STEP: u64 = 4;

/// Looks at a table that take as long as one step here: many are made of states that are there already.
const LAZY_COST: u64 = 4;

/// Bytes that all taken texts begin with.
const BEGINNING_BYTES_MAX: usize = 256;

/// An automaton over bytes, with a state for each that follows from each.
#[derive(Debug)]
pub(super) struct Table {
    /// Bytes that are alike have one class.
    classes: [u8; 256],
    stride: usize,
    /// By state and class; no state has a greater number than there is room for.
    next: Vec<u16>,
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
                successors.push(u16::try_from(exploration.number(next(&state, *byte)?)?).ok()?);
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
                (u32::try_from(place / self.stride), before.get_mut(usize::from(*to)))
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
        self.behind(state, self.class(byte))
    }

    fn class(&self, byte: u8) -> usize {
        usize::from(self.classes[usize::from(byte)])
    }

    fn behind(&self, state: u32, class: usize) -> u32 {
        self.next.get(state as usize * self.stride + class).map_or(u32::MAX, |to| u32::from(*to))
    }

    /// With what every text begins that is taken, up to [`BEGINNING_BYTES_MAX`].
    fn beginning(&self) -> Vec<u8> {
        let (mut beginning, mut state) = (Vec::new(), Table::START);
        while !self.state(state).takes && beginning.len() < BEGINNING_BYTES_MAX {
            let leads_on = |byte: &u8| self.state(self.step(state, *byte)).may_take;
            let mut bytes = (0..=u8::MAX).filter(leads_on);
            let (Some(byte), None) = (bytes.next(), bytes.next()) else { break };
            beginning.push(byte);
            state = self.step(state, byte);
        }
        beginning
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

    /// Whether there is no text.
    pub(super) fn is_empty(&self) -> bool {
        self.ends.is_empty()
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
    /// What has too many states for a table.
    Lazy(Arc<Lazy>),
}

impl Machine {
    pub(super) fn start(&self) -> u32 {
        match self {
            Machine::Table(_) | Machine::Lazy(_) => Table::START,
            Machine::Words(words) => {
                if words.is_empty() {
                    OFF
                } else {
                    0
                }
            }
        }
    }

    pub(super) fn step(&self, state: u32, byte: u8) -> u32 {
        match self {
            Machine::Table(table) => table.step(state, byte),
            Machine::Words(words) => words.next.get(&(state, byte)).copied().unwrap_or(OFF),
            Machine::Lazy(lazy) => lazy.step(state, byte),
        }
    }

    /// Nothing where it is not known: there was no room for what would say it.
    pub(super) fn takes(&self, state: u32) -> Option<bool> {
        match self {
            Machine::Table(table) => Some(table.state(state).takes),
            Machine::Words(words) => Some(words.ends(state)),
            Machine::Lazy(lazy) => lazy.takes(state),
        }
    }

    /// Whether it is not known any more where a text has led.
    pub(super) fn is_lost(&self, state: u32) -> bool {
        matches!(self, Machine::Lazy(_)) && state == lazy::LOST
    }

    /// What one byte costs, in looks at a table.
    pub(super) fn cost(&self) -> u64 {
        if matches!(self, Machine::Lazy(_)) { LAZY_COST } else { 1 }
    }

    /// Whether a text that has led here can still be taken, or refused.
    pub(super) fn may_come_to(&self, state: u32, taken: bool) -> bool {
        match self {
            Machine::Table(table) if taken => table.state(state).may_take,
            Machine::Table(table) => table.state(state).may_refuse,
            Machine::Words(_) => !taken || state != OFF,
            Machine::Lazy(lazy) => lazy.may_come_to(state, taken),
        }
    }

    /// Bytes of the same class are alike in every state.
    pub(super) fn class(&self, byte: u8) -> u16 {
        match self {
            Machine::Table(table) => u16::from(table.classes[usize::from(byte)]),
            Machine::Words(words) if words.any_byte.contains(&byte) => u16::from(byte),
            Machine::Words(_) => 256,
            Machine::Lazy(lazy) => u16::from(lazy.class(byte)),
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
        let takes = |states: &Vec<u32>| {
            machines.iter().zip(states).any(|(machine, state)| machine.takes(*state) == Some(true))
        };
        Table::explored(classes, first, next, takes).map(|table| Machine::Table(Arc::new(table)))
    }
}

/// The automata that were built so far, each once.
#[derive(Debug)]
pub(crate) struct Automata {
    /// Nothing where an automaton would be too large.
    tests: HashMap<Op, Option<Machine>>,
    /// That tests may still take.
    cells_left: usize,
    /// Of regexes that take a text as a whole.
    languages: HashMap<&'static str, Option<Arc<Table>>>,
}

impl Default for Automata {
    fn default() -> Automata {
        Automata { tests: HashMap::new(), cells_left: CELLS_MAX, languages: HashMap::new() }
    }
}

impl Automata {
    /// The texts that a regex takes as a whole.
    pub(super) fn language(&mut self, pattern: &'static str) -> Option<Arc<Table>> {
        let build = || of_regex(&format!(r"\A(?:{pattern})\z")).map(Arc::new);
        self.languages.entry(pattern).or_insert_with(build).clone()
    }

    /// The texts that satisfy a comparison with texts, or for `!=` those that do not; nothing for one with something else,
    /// and where there is no room or no time for it.
    pub(super) fn of(&mut self, op: &Op, effort: &mut Effort) -> Option<Machine> {
        if let Some(known) = self.tests.get(op) {
            return known.clone();
        }
        if self.cells_left == 0 || effort.is_used_up() {
            return None;
        }
        let built = of_op(op);
        let cells = match &built {
            Some(Machine::Table(table)) => table.next.len(),
            Some(Machine::Words(words)) => words.ends.len(),
            Some(Machine::Lazy(_)) => lazy::CELLS,
            None if matches!(op, Op::Matches(_) | Op::Like(_)) => CELLS_OF_TOO_LARGE,
            None => 1,
        };
        self.cells_left = self.cells_left.saturating_sub(cells);
        effort.take(cells as u64 / CELLS_OF_A_STEP);
        self.tests.insert(op.clone(), built.clone());
        built
    }

    /// Whether some text satisfies both comparisons; nothing where that is not known.
    pub(crate) fn meet(&mut self, ops: [&Op; 2], effort: &mut Effort) -> Option<bool> {
        let [one, other] = ops.map(|op| match self.of(op, effort) {
            // What leaves out a text is an automaton of that text.
            Some(Machine::Table(table)) if !matches!(op, Op::TextDiffers(_)) => Some(table),
            _ => None,
        });
        one?.meets(&*other?, effort)
    }

    /// How all texts look that satisfy a comparison.
    pub(crate) fn outline(&mut self, op: &Op, effort: &mut Effort) -> Outline {
        match self.of(op, effort) {
            Some(Machine::Table(table)) => table.outline(),
            Some(Machine::Words(_) | Machine::Lazy(_)) | None => Outline::default(),
        }
    }
}

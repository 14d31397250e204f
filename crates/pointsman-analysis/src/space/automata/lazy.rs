//! Automata whose states are made only as they are come to: of regexes with too many for a table.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use regex_automata::hybrid::LazyStateID;
use regex_automata::hybrid::dfa::{Cache, Config, DFA};
use regex_automata::nfa::thompson;
use regex_automata::util::syntax;
use regex_automata::{Anchored, Input};

/// Bytes of the states that are made. With more, it is lost where a text has led.
const STATES_BYTES_MAX: usize = 8 << 20;

/// As many cells of tables as one takes as much memory as.
pub(super) const CELLS: usize = STATES_BYTES_MAX / size_of::<u16>();

/// A place that is not known.
pub(super) const LOST: u32 = u32::MAX;
/// Behind a match.
const FOUND: u32 = u32::MAX - 1;

/// What searches for a regex of rules, with their options. It gives up where its states take more memory.
pub(super) fn searcher(pattern: &str, nfa_bytes_max: usize, states_bytes_max: usize) -> Option<DFA> {
    let config = Config::new().cache_capacity(states_bytes_max).minimum_cache_clear_count(Some(0));
    DFA::builder()
        .configure(config)
        .syntax(syntax::Config::new().unicode(false).utf8(false).dot_matches_new_line(true))
        .thompson(thompson::Config::new().utf8(false).nfa_size_limit(Some(nfa_bytes_max)))
        .build(pattern)
        .ok()
}

/// The texts in which a regex matches somewhere.
pub(in crate::space) struct Lazy {
    dfa: DFA,
    classes: [u8; 256],
    made: Mutex<Made>,
}

struct Made {
    cache: Cache,
    /// By number, the state that it is, and whether a text may end there.
    states: Vec<LazyStateID>,
    numbers: HashMap<LazyStateID, u32>,
}

impl Lazy {
    /// Nothing where even what its states are made of is too large.
    pub(super) fn new(pattern: &str, nfa_bytes_max: usize) -> Option<Lazy> {
        let dfa = searcher(pattern, nfa_bytes_max, STATES_BYTES_MAX)?;
        let mut cache = dfa.create_cache();
        let first = dfa.start_state_forward(&mut cache, &Input::new("").anchored(Anchored::No)).ok()?;
        let mut classes = [0; 256];
        for byte in 0..=u8::MAX {
            classes[usize::from(byte)] = dfa.byte_classes().get(byte);
        }
        let made = Made { cache, states: vec![first], numbers: HashMap::from([(first, 0)]) };
        Some(Lazy { dfa, classes, made: Mutex::new(made) })
    }

    pub(super) fn class(&self, byte: u8) -> u8 {
        self.classes[usize::from(byte)]
    }

    pub(super) fn step(&self, state: u32, byte: u8) -> u32 {
        if state >= FOUND {
            return state;
        }
        let made = &mut *self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(from) = made.states.get(state as usize).copied() else { return LOST };
        match self.dfa.next_state(&mut made.cache, from, byte) {
            Ok(next) if next.is_quit() => LOST,
            // The searcher says one byte later that it has found a match.
            Ok(next) if next.is_match() => FOUND,
            Ok(next) => {
                let Ok(fresh) = u32::try_from(made.states.len()) else { return LOST };
                *made.numbers.entry(next).or_insert_with(|| {
                    made.states.push(next);
                    fresh
                })
            }
            Err(_) => LOST,
        }
    }

    /// Nothing where it is not known.
    pub(super) fn takes(&self, state: u32) -> Option<bool> {
        if state >= FOUND {
            return (state == FOUND).then_some(true);
        }
        let made = &mut *self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let from = made.states.get(state as usize).copied()?;
        self.dfa.next_eoi_state(&mut made.cache, from).ok().map(|end| end.is_match())
    }

    /// Whether a text that has led here can still be taken, or refused; where that is not seen, it is said that it can.
    pub(super) fn may_come_to(&self, state: u32, taken: bool) -> bool {
        if state >= FOUND {
            return taken || state == LOST;
        }
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        !taken || made.states.get(state as usize).is_none_or(|state| !state.is_dead())
    }
}

impl fmt::Debug for Lazy {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("Lazy")
    }
}

//! What the values of a field show, of all that rules ask of it: the field is looked up once, and so is each value.

use std::collections::HashMap;
use std::ops::ControlFlow;

use aho_corasick::automaton::Automaton;
use aho_corasick::nfa::contiguous::NFA;
use aho_corasick::{Anchored, MatchKind};
use foldhash::fast::FixedState;
use memchr::memmem;
use smallvec::SmallVec;

use super::scale::{Bounds, Scale, address_number};
use super::signs::Sign;
use super::trie::{Trie, Way};
use crate::decimal::Numeral;
use crate::subject::TextRoom;
use crate::truths::{Seen, Sight};
use crate::{Cause, Field, Over, Subject, Test, Value, pace};

/// More than any number of rules costs.
pub(super) const PAYLOAD_COST: u64 = 1 << 40;

/// What the values of one field show.
#[derive(Debug)]
pub(crate) struct Reading {
    pub(super) field: Field,
    fold_case: bool,
    /// Of tests that a second value makes unknown.
    pub(super) is_once: bool,
    pub(crate) present: Option<u32>,
    /// The hash is a fixed one: values only look for texts, and no value adds any.
    equal: HashMap<Inline, u32, FixedState>,
    beginnings: Option<Beginnings>,
    endings: Option<Endings>,
    contained: Option<Contained>,
    is_of_texts: bool,
    pub(super) scale: Option<Scale>,
}

/// A text beside what it leads to, and not elsewhere: most are that short.
type Inline = SmallVec<[u8; 24]>;

/// Which signs of a reading come together; a sign that has no step excludes the others like it.
pub(super) struct Ladder {
    steps: HashMap<u32, Step>,
}

enum Step {
    /// It may come with any other.
    Beside,
    /// It comes with the sign of a shorter beginning.
    Above(Option<u32>),
    /// The same of endings.
    AtEnd(Option<u32>),
}

/// What makes two tests ask the same reading.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Identity<'r> {
    field: &'r Field,
    fold_case: bool,
    is_once: bool,
}

#[derive(Debug)]
struct Beginnings {
    trie: Trie,
    /// By the position of a text: the signs "starts with" and "under".
    signs: Vec<[Option<u32>; 2]>,
}

#[derive(Debug)]
struct Endings {
    trie: Trie,
    signs: Vec<u32>,
}

#[derive(Debug)]
struct Contained {
    /// Nothing where it would be too large: then the texts are looked for one by one.
    automaton: Option<NFA>,
    texts: Vec<Box<[u8]>>,
    signs: Vec<u32>,
}

impl Ladder {
    /// What the signs of one value come to together at most, where each counts for so much.
    pub(super) fn most_at_once(&self, counts: &HashMap<u32, usize>) -> usize {
        let (mut beside, mut equal, mut beginning, mut ending) = (0, 0, 0, 0);
        for (sign, count) in pace::each(counts) {
            match self.steps.get(sign) {
                None => equal = equal.max(*count),
                Some(Step::Beside) => beside += count,
                Some(Step::Above(_)) => beginning = beginning.max(self.sum(*sign, counts)),
                Some(Step::AtEnd(_)) => ending = ending.max(self.sum(*sign, counts)),
            }
        }
        beside + equal + beginning + ending
    }

    /// Of a sign and those below it.
    fn sum(&self, sign: u32, counts: &HashMap<u32, usize>) -> usize {
        let mut sum = 0;
        let mut next = Some(sign);
        while let Some(sign) = next {
            sum += counts.get(&sign).copied().unwrap_or_default();
            next = match self.steps.get(&sign) {
                Some(Step::Above(below) | Step::AtEnd(below)) => *below,
                _ => None,
            };
        }
        sum
    }
}

impl<'r> Identity<'r> {
    pub(super) fn of(test: &'r Test) -> Identity<'r> {
        Identity { field: &test.field, fold_case: test.fold_case, is_once: test.over == Over::Once }
    }
}

impl Reading {
    /// A reading of these signs, each with its number.
    pub(super) fn new<'s>(
        identity: Identity<'_>,
        signs: impl Iterator<Item = (&'s Sign, u32)> + Clone,
        all_bounds: &[&Bounds],
    ) -> Reading {
        let equals = signs.clone().filter(|(sign, _)| matches!(sign, Sign::Equals(_))).count();
        let mut equal = HashMap::with_capacity_and_hasher(equals, FixedState::default());
        let mut present = None;
        for (sign, number) in pace::each(signs.clone()) {
            match sign {
                Sign::Present => present = Some(number),
                Sign::Equals(text) => {
                    equal.insert(Inline::from_slice(text), number);
                }
                _ => {}
            }
        }
        let (beginnings, endings) = (Beginnings::new(signs.clone()), Endings::new(signs.clone()));
        let contained = Contained::new(signs);
        Reading {
            field: identity.field.clone(),
            fold_case: identity.fold_case,
            is_once: identity.is_once,
            present,
            is_of_texts: !equal.is_empty()
                || beginnings.is_some()
                || endings.is_some()
                || contained.is_some(),
            equal,
            beginnings,
            endings,
            contained,
            scale: (!all_bounds.is_empty()).then(|| Scale::new(all_bounds.iter().copied())),
        }
    }

    /// What it takes, roughly, beside one look at a value. What lies in a body is looked at last.
    pub(super) fn cost(&self) -> u64 {
        let of_payload = if matches!(self.field, Field::Payload(_)) { PAYLOAD_COST } else { 0 };
        let parts = [
            (self.beginnings.is_some(), 1),
            (self.endings.is_some(), 1),
            (self.scale.is_some(), 2),
            (self.contained.is_some(), 4),
        ];
        of_payload + parts.iter().filter(|(is_there, _)| *is_there).map(|(_, cost)| cost).sum::<u64>()
    }

    /// What of its signs one value may show together.
    pub(super) fn ladder(&self) -> Ladder {
        let mut steps = HashMap::with_capacity(self.signs_count());
        steps.extend(self.present.map(|sign| (sign, Step::Beside)));
        let contained = self.contained.iter().flat_map(|contained| &contained.signs);
        steps.extend(contained.map(|sign| (*sign, Step::Beside)));
        if let Some(Beginnings { trie, signs }) = &self.beginnings {
            for (shorter, both) in pace::each(trie.shorter().into_iter().zip(signs)) {
                // Of one text both may be shown, and of a shorter one too.
                let below = shorter.and_then(|text| signs[text as usize].iter().flatten().last().copied());
                let mut below = below;
                for sign in both.iter().flatten() {
                    steps.insert(*sign, Step::Above(below));
                    below = Some(*sign);
                }
            }
        }
        if let Some(Endings { trie, signs }) = &self.endings {
            for (shorter, sign) in pace::each(trie.shorter().into_iter().zip(signs)) {
                steps.insert(*sign, Step::AtEnd(shorter.map(|text| signs[text as usize])));
            }
        }
        Ladder { steps }
    }

    /// How many of its signs may come with others.
    fn signs_count(&self) -> usize {
        let of_beginnings = self.beginnings.as_ref().map_or(0, |beginnings| beginnings.signs.len());
        let of_endings = self.endings.as_ref().map_or(0, |endings| endings.signs.len());
        let contained = self.contained.as_ref().map_or(0, |contained| contained.signs.len());
        of_beginnings + of_endings + contained + usize::from(self.present.is_some())
    }

    /// Looks at all values of a subject.
    pub(super) fn read<S: Subject + ?Sized>(&self, subject: &S, sight: &mut Sight) -> Seen {
        let mut seen = sight.begin();
        subject.each(&self.field, &mut |value| {
            self.show(value, &mut seen, sight);
            ControlFlow::Continue(())
        });
        if let Some(cause) = subject.unsettled(&self.field) {
            seen.cannot_say(cause);
        }
        if seen.values > 0
            && let Some(sign) = self.present
        {
            sight.sign(sign);
        }
        sight.end(&mut seen);
        seen
    }

    /// Looks at one value.
    pub(crate) fn show(&self, value: Value<'_>, seen: &mut Seen, sight: &mut Sight) {
        seen.values = seen.values.saturating_add(1);
        if self.is_of_texts {
            match value {
                Value::Text(text) if !self.fold_case => self.see_text(text, sight),
                Value::Nothing | Value::Unknown(_) => {}
                Value::Text(_) | Value::Integer(_) | Value::Ip(_) | Value::Boolean(_) => {
                    let mut room = TextRoom::default();
                    let text = match self.fold_case {
                        true => value.folded_text(&mut room),
                        false => value.text(&mut room),
                    };
                    self.see_text(text, sight);
                }
            }
        }
        match (value, &self.scale) {
            (Value::Unknown(cause), _) => seen.cannot_say(cause),
            (_, Some(scale)) if !see_number(scale, value, sight) => {
                seen.cannot_say_of_numbers(Cause::NotANumber);
            }
            _ => {}
        }
    }

    /// Whether it looks for texts anywhere in a value.
    pub(super) fn looks_anywhere(&self) -> bool {
        self.contained.is_some()
    }

    fn see_text(&self, text: &[u8], sight: &mut Sight) {
        if let Some(sign) = self.equal.get(text) {
            sight.sign(*sign);
        }
        if let Some(Beginnings { trie, signs }) = &self.beginnings {
            trie.walk(text, |found, used| {
                let [starts, under] = signs[found as usize];
                if let Some(sign) = starts {
                    sight.sign(sign);
                }
                if let Some(sign) = under
                    && is_border(text, used)
                {
                    sight.sign(sign);
                }
            });
        }
        if let Some(Endings { trie, signs }) = &self.endings {
            trie.walk(text, |found, _| sight.sign(signs[found as usize]));
        }
        if let Some(contained) = &self.contained {
            contained.see(text, sight);
        }
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        pace::step();
        pace::drop_each(self.equal.drain());
    }
}

/// Whether a value that begins with so many bytes of a path is that path or lies below it.
fn is_border(value: &[u8], used: usize) -> bool {
    let (above, below) = value.split_at(used);
    matches!(below, [] | [b'/', ..]) || above.ends_with(b"/")
}

/// Whether it is a number, or nothing; an address is none and beside none.
fn see_number(scale: &Scale, value: Value<'_>, sight: &mut Sight) -> bool {
    let mut digits = [0; 20];
    let numeral = match value {
        Value::Integer(integer) => Ok(Numeral::of_integer(integer, &mut digits)),
        Value::Text(text) => Numeral::parse(text),
        Value::Ip(address) => {
            sight.cell(scale.address(address_number(address)));
            return false;
        }
        Value::Boolean(_) => return false,
        Value::Nothing | Value::Unknown(_) => return true,
    };
    if let Ok(numeral) = &numeral {
        sight.cell(scale.number(numeral));
    }
    numeral.is_ok()
}

impl Beginnings {
    fn new<'s>(signs: impl Iterator<Item = (&'s Sign, u32)>) -> Option<Beginnings> {
        let mut texts: Vec<(&[u8], usize, u32)> = Vec::new();
        for (sign, number) in pace::each(signs) {
            match sign {
                Sign::StartsWith(text) => texts.push((text, 0, number)),
                Sign::Under(text) => texts.push((text, 1, number)),
                _ => {}
            }
        }
        if texts.is_empty() {
            return None;
        }
        pace::sort(&mut texts);
        let (mut unique, mut signs): (Vec<&[u8]>, Vec<[Option<u32>; 2]>) = (Vec::new(), Vec::new());
        for (text, kind, number) in pace::each(texts) {
            if unique.last() != Some(&text) {
                unique.push(text);
                signs.push([None; 2]);
            }
            if let Some(last) = signs.last_mut() {
                last[kind] = Some(number);
            }
        }
        Some(Beginnings { trie: Trie::new(Way::Forwards, &unique), signs })
    }
}

impl Endings {
    fn new<'s>(signs: impl Iterator<Item = (&'s Sign, u32)>) -> Option<Endings> {
        let (texts, signs): (Vec<&[u8]>, Vec<u32>) = pace::each(signs)
            .filter_map(|(sign, number)| match sign {
                Sign::EndsWith(text) => Some((&**text, number)),
                _ => None,
            })
            .unzip();
        (!texts.is_empty()).then(|| Endings { trie: Trie::new(Way::Backwards, &texts), signs })
    }
}

impl Contained {
    fn new<'s>(signs: impl Iterator<Item = (&'s Sign, u32)>) -> Option<Contained> {
        let (texts, signs): (Vec<Box<[u8]>>, Vec<u32>) = pace::each(signs)
            .filter_map(|(sign, number)| match sign {
                Sign::Contains(text) => Some((text.clone(), number)),
                _ => None,
            })
            .unzip();
        if texts.is_empty() {
            return None;
        }
        let automaton = NFA::builder().match_kind(MatchKind::Standard).build(&texts).ok();
        Some(Contained { automaton, texts, signs })
    }

    /// Texts that end at the same place come with the longest of them first. Where that was found before, so were
    /// the others: however often texts overlap, each is counted about once.
    fn see(&self, value: &[u8], sight: &mut Sight) {
        let walk = self.automaton.as_ref().and_then(|automaton| {
            let start = automaton.start_state(Anchored::No).ok()?;
            Some((automaton, start))
        });
        let Some((automaton, mut state)) = walk else {
            for (text, sign) in self.texts.iter().zip(&self.signs) {
                if memmem::find(value, text).is_some() {
                    sight.sign(*sign);
                }
            }
            return;
        };
        for byte in value {
            state = automaton.next_state(Anchored::No, state, *byte);
            if !automaton.is_special(state) || !automaton.is_match(state) {
                continue;
            }
            for place in 0..automaton.match_len(state) {
                let sign = self.signs[automaton.match_pattern(state, place).as_usize()];
                if sight.is_marked(sign) {
                    break;
                }
                sight.mark(sign);
            }
        }
    }
}

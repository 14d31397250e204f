//! One text that fulfils several claims at once.

use std::sync::Arc;

use pointsman_rules::{Entry, Members, Op, Truth, Value};

use super::automata::{Automata, Machine, Words};
use super::claim::{Claim, Truths};
use super::product::{Found, Member, shortest};
use super::single::{Single, of_text};
use super::{decimals, numbers};
use crate::Effort;

/// What texts a field can have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Language {
    /// A regex of whole texts.
    pub(super) pattern: &'static str,
    /// What is tried first.
    pub(super) nice: &'static [&'static str],
    /// What the regex takes and the field never is.
    pub(super) never: &'static [&'static str],
    /// What tells more than the regex.
    pub(super) exact: Option<Exact>,
    /// Bytes of the longest text, where that is known.
    pub(super) bytes_max: Option<usize>,
}

impl Language {
    pub(super) const fn of(pattern: &'static str, nice: &'static [&'static str]) -> Language {
        Language { pattern, nice, never: &[], exact: None, bytes_max: None }
    }
}

/// Just the texts of a language, where its regex takes more: that is small, and mostly enough.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exact {
    /// A regex of whole texts. It is large.
    pub(super) pattern: fn() -> &'static str,
    /// Whether it takes a text.
    pub(super) takes: fn(&[u8]) -> bool,
}

/// Automata that are walked side by side.
const MEMBERS_MAX: usize = 48;

/// Texts that are left out one by one before all that are excluded are left out at once.
const SINGLY_LEFT_OUT_MAX: usize = 32;

/// Texts that are left out because they fail a claim that has no automaton.
const TRIED_MAX: usize = 64;

/// Texts longer than a head or a value of a body may be.
const TEXT_BYTES_MAX: usize = 4096;

/// Of all that a number can be spelled as, and more.
const NUMBER_LIKE: &str = r"[\t-\r ]*[+-]?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?[\t-\r ]*";

/// A text of a language that fulfils all claims.
pub(super) fn solve(
    language: Language,
    claims: &[Claim<'_>],
    automata: &mut Automata,
    effort: &mut Effort,
) -> Single {
    let Some(whole) = automata.language(language.pattern) else { return Single::Unknown };
    let mut sorted = Vec::with_capacity(claims.len());
    for claim in claims {
        match Sorted::of(claim) {
            Ok(claim) => sorted.push(claim),
            Err(index) => return Single::Nothing(vec![index]),
        }
    }
    sorted.sort_by_key(Sorted::rank);
    let mut search = Search { language, whole: Machine::Table(whole), claims: sorted, automata, effort };
    search.solve()
}

/// A claim with what is known of its test.
struct Sorted<'p> {
    claim: Claim<'p>,
    /// What a test of texts must come to.
    must: Option<bool>,
    compares: Compares,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Compares {
    Texts,
    Numbers,
    Both,
}

impl<'p> Sorted<'p> {
    /// The claim's place, where no text fulfils it.
    fn of(claim: &Claim<'p>) -> Result<Sorted<'p>, usize> {
        let compares = compares(&claim.test.op);
        let must = match compares {
            Compares::Texts if matches!(claim.test.op, Op::Exists) => match claim.truths.has(Truth::True) {
                true => None,
                false => return Err(claim.index),
            },
            Compares::Texts => match (claim.truths.has(Truth::True), claim.truths.has(Truth::False)) {
                (false, false) => return Err(claim.index),
                (true, true) => None,
                (holds, _) => Some(holds),
            },
            Compares::Numbers | Compares::Both => None,
        };
        Ok(Sorted { claim: *claim, must, compares })
    }

    /// What must hold is rarer than what must not, and tells more; what only leaves one text out says little, and numbers
    /// have no automaton.
    fn rank(&self) -> u8 {
        match self.must {
            _ if self.compares != Compares::Texts => 3,
            _ if self.left_out().is_some() => 2,
            Some(true) => 0,
            _ => 1,
        }
    }

    fn takes(&self, text: &[u8]) -> bool {
        self.claim.takes(Value::Text(text))
    }

    /// The one text that it allows.
    fn only(&self) -> Option<&'p [u8]> {
        let (word, taken) = word(&self.claim.test.op)?;
        (self.must == Some(taken) && !self.claim.test.fold_case).then_some(word)
    }

    /// The one text that it excludes.
    fn left_out(&self) -> Option<&'p [u8]> {
        let (word, taken) = word(&self.claim.test.op)?;
        (self.must == Some(!taken)).then_some(word)
    }

    /// Whether only a number can fulfil it.
    fn needs_number(&self) -> bool {
        self.compares == Compares::Numbers && !self.claim.truths.has_unknown()
            || self.compares == Compares::Both && self.claim.truths == Truths::FALSE
    }
}

/// The text of a comparison with one text as a whole, and whether it takes just that or all others.
fn word(op: &Op) -> Option<(&[u8], bool)> {
    match op {
        Op::TextEquals(text) => Some((text, true)),
        Op::TextDiffers(text) => Some((text, false)),
        Op::IsTrue => Some((b"true", true)),
        Op::IsFalse => Some((b"false", true)),
        _ => None,
    }
}

/// The texts among the entries of a list, and in lists that they name.
fn texts_in(entries: &[Entry]) -> impl Iterator<Item = &[u8]> {
    entries.iter().flat_map(|entry| {
        let (one, several) = match entry {
            Entry::Text(text) => (Some(&**text), None),
            Entry::List(list) => match &list.members {
                Members::Texts(texts) => (None, Some(texts.iter())),
                Members::Networks(_) => (None, None),
            },
            _ => (None, None),
        };
        one.into_iter().chain(several.into_iter().flatten())
    })
}

/// How many they are.
fn texts_len(entries: &[Entry]) -> usize {
    let len = |entry: &Entry| match entry {
        Entry::Text(_) => 1,
        Entry::List(list) => match &list.members {
            Members::Texts(texts) => texts.len(),
            Members::Networks(_) => 0,
        },
        _ => 0,
    };
    entries.iter().map(len).sum()
}

fn compares(op: &Op) -> Compares {
    match op {
        Op::NumberEquals(_) | Op::NumberDiffers(_) | Op::NumberOrder(..) => Compares::Numbers,
        Op::In(entries) => {
            let is_number = |entry: &Entry| matches!(entry, Entry::Number(_) | Entry::NumberRange { .. });
            match (entries.iter().any(is_number), entries.iter().all(is_number)) {
                (true, true) => Compares::Numbers,
                (true, false) => Compares::Both,
                (false, _) => Compares::Texts,
            }
        }
        _ => Compares::Texts,
    }
}

struct Search<'s, 'p> {
    language: Language,
    whole: Machine,
    claims: Vec<Sorted<'p>>,
    automata: &'s mut Automata,
    effort: &'s mut Effort,
}

/// What became of a text.
enum Tried {
    Fits,
    /// The claim of this place is not fulfilled.
    Fails(usize),
    /// The claims are, but the field is never so.
    Never,
    OutOfEffort,
}

impl<'p> Search<'_, 'p> {
    fn solve(&mut self) -> Single {
        if let Some(text) = self.language.nice.iter().copied().map(str::as_bytes).find(|text| self.fits(text))
        {
            return Single::Value(of_text(text));
        }
        if let Some(only) = self.claims.iter().find_map(|claim| Some((claim.claim.index, claim.only()?))) {
            return self.only(only);
        }
        let compares_numbers = self.claims.iter().any(|claim| claim.compares != Compares::Texts);
        if compares_numbers && let Some(settled) = self.number() {
            return settled;
        }
        if let Some(settled) = self.listed() {
            return settled;
        }
        match self.walk(Guide::ByProof) {
            Single::Unknown if compares_numbers => self.walk(Guide::ByNumbers),
            settled => settled,
        }
    }

    fn fits(&mut self, text: &[u8]) -> bool {
        matches!(self.try_out(text), Tried::Fits)
    }

    fn try_out(&mut self, text: &[u8]) -> Tried {
        let place = self.claims.iter().position(|claim| !claim.takes(text));
        if !self.effort.take(1 + place.unwrap_or(self.claims.len()) as u64) {
            return Tried::OutOfEffort;
        }
        match place {
            Some(place) => Tried::Fails(place),
            None if !self.is_in_language(text) => Tried::Never,
            None => Tried::Fits,
        }
    }

    fn is_in_language(&self, text: &[u8]) -> bool {
        let Machine::Table(whole) = &self.whole else { return false };
        let is_exact = self.language.exact.is_none_or(|exact| (exact.takes)(text));
        is_exact && whole.takes(text) && !self.language.never.iter().any(|never| never.as_bytes() == text)
    }

    fn index(&self, place: usize) -> Option<usize> {
        self.claims.get(place).map(|claim| claim.claim.index)
    }

    /// Where a claim allows one text only.
    fn only(&mut self, (index, text): (usize, &[u8])) -> Single {
        match self.try_out(text) {
            Tried::Fits => Single::Value(of_text(text)),
            Tried::Fails(place) => Single::Nothing([index].into_iter().chain(self.index(place)).collect()),
            Tried::Never => Single::Nothing(vec![index]),
            Tried::OutOfEffort => Single::Unknown,
        }
    }

    /// Tries a number from each side of each bound. It is settled where one fits, or none would fit even if the claims
    /// about texts were not.
    fn number(&mut self) -> Option<Single> {
        let of_numbers = self.only_numbers();
        // Lists of both have numbers to try, and prove nothing.
        let of_both = self.claims.iter().filter(|claim| claim.compares == Compares::Both);
        let of_both: Vec<Claim<'p>> = of_both.map(|claim| claim.claim).collect();
        let tried = [&of_numbers[..], &of_both].concat();
        let mut failed = numbers::narrowest(&of_numbers);
        let mut may_be = false;
        for text in numbers::texts(&tried).into_iter().chain([Some("a".to_owned())]) {
            let Some(text) = text else {
                may_be = true;
                continue;
            };
            let value = Value::Text(text.as_bytes());
            if !self.effort.take(1 + failed.len() as u64) {
                return Some(Single::Unknown);
            }
            if failed.iter().any(|claim| !claim.takes(value)) {
                continue;
            }
            let place = of_numbers.iter().position(|claim| !claim.takes(value));
            if !self.effort.take(place.unwrap_or(of_numbers.len()) as u64) {
                return Some(Single::Unknown);
            }
            if let Some(claim) = place.and_then(|place| of_numbers.get(place)) {
                failed.push(*claim);
                continue;
            }
            may_be = true;
            match self.try_out(text.as_bytes()) {
                Tried::Fits => return Some(Single::Value(of_text(text.as_bytes()))),
                Tried::OutOfEffort => return Some(Single::Unknown),
                Tried::Fails(_) | Tried::Never => {}
            }
        }
        (!may_be).then(|| Single::Nothing(failed.iter().map(|claim| claim.index).collect()))
    }

    fn only_numbers(&self) -> Vec<Claim<'p>> {
        let numbers = self.claims.iter().filter(|claim| claim.compares == Compares::Numbers);
        numbers.map(|claim| claim.claim).collect()
    }

    /// Tries the texts of the shortest list that the value must be in. Where these are all that it can be, none is a
    /// proof.
    fn listed(&mut self) -> Option<Single> {
        let lists = self.claims.iter().filter(|claim| claim.claim.truths.has(Truth::True));
        let lists = lists.filter_map(|claim| match &claim.claim.test.op {
            Op::In(entries) if !claim.claim.truths.has(Truth::False) => Some((claim.claim, entries)),
            _ => None,
        });
        let (claim, entries) = lists.min_by_key(|(_, entries)| texts_len(entries))?;
        let mut because = vec![claim.index];
        for text in texts_in(entries) {
            match self.try_out(text) {
                Tried::Fits => return Some(Single::Value(of_text(text))),
                Tried::Fails(place) => {
                    because.extend(self.index(place).filter(|index| !because.contains(index)))
                }
                Tried::Never => {}
                Tried::OutOfEffort => return Some(Single::Unknown),
            }
        }
        let are_all = entries.iter().all(|entry| matches!(entry, Entry::Text(_) | Entry::List(_)));
        let is_long = entries.iter().any(|entry| matches!(entry, Entry::List(_)));
        // What is written out is walked: that needs fewer claims for its proof.
        (are_all && is_long && !claim.test.fold_case).then_some(Single::Nothing(because))
    }

    /// Takes the shortest text that some of the claims allow; as long as it fails one of the others, that one is added.
    fn walk(&mut self, guide: Guide) -> Single {
        let Some(mut walk) = Walk::new(self, guide) else { return Single::Unknown };
        loop {
            let word = match shortest(&walk.members(), self.effort) {
                // None is shorter.
                Found::Word(word) if self.language.bytes_max.is_some_and(|max| word.len() > max) => {
                    return if walk.is_proof { Single::Nothing(walk.because) } else { Single::Unknown };
                }
                Found::Word(word) if word.len() <= TEXT_BYTES_MAX => word,
                Found::Nothing if walk.is_proof => return Single::Nothing(walk.because),
                Found::Word(_) | Found::Nothing | Found::Unknown => return Single::Unknown,
            };
            let place = match self.try_out(&word) {
                Tried::Fits => return Single::Value(of_text(&word)),
                Tried::Never if walk.add_exact(self) => continue,
                Tried::OutOfEffort | Tried::Never => return Single::Unknown,
                Tried::Fails(place) => place,
            };
            if !walk.add(self, place, &word) {
                return Single::Unknown;
            }
        }
    }
}

/// Which texts are looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Guide {
    /// All, so that there is no value where there is none among them.
    ByProof,
    /// Of numbers those without exponent, and only on the right side of each bound.
    ByNumbers,
}

/// The automata that are walked side by side, more and more of them.
struct Walk {
    whole: Vec<(Machine, bool)>,
    added: Vec<(Machine, bool, bool)>,
    /// Texts that are left out: as they are, and in small letters.
    left_out: [Arc<Words>; 2],
    left_out_count: usize,
    tried_count: usize,
    /// The claims that this comes from.
    because: Vec<usize>,
    /// Whether nothing is left out but what must be.
    is_proof: bool,
    is_exact: bool,
}

impl Walk {
    fn new(search: &mut Search<'_, '_>, guide: Guide) -> Option<Walk> {
        let mut whole = vec![(search.whole.clone(), true)];
        let mut because = Vec::new();
        if let Some(claim) = search.claims.iter().find(|claim| claim.needs_number()) {
            because.push(claim.claim.index);
            whole.push((Machine::Table(search.automata.language(NUMBER_LIKE)?), true));
        }
        if guide == Guide::ByNumbers {
            for claim in search.claims.iter().filter(|claim| claim.compares == Compares::Numbers) {
                let truths = claim.claim.truths;
                let table = match () {
                    () if truths == Truths::UNKNOWN => {
                        whole.push((Machine::Table(search.automata.language(NUMBER_LIKE)?), false));
                        None
                    }
                    () if truths.has_unknown() => None,
                    () => decimals::automaton(&claim.claim.test.op, truths.has(Truth::True)),
                };
                whole.extend(table.map(|table| (Machine::Table(Arc::new(table)), true)));
            }
        }
        let mut never = Words::default();
        search.language.never.iter().for_each(|word| never.insert(word.as_bytes()));
        Some(Walk {
            whole,
            added: Vec::new(),
            left_out: [Arc::new(never), Arc::default()],
            left_out_count: 0,
            tried_count: 0,
            because,
            is_proof: guide == Guide::ByProof,
            is_exact: false,
        })
    }

    fn members(&self) -> Vec<Member> {
        let whole = self.whole.iter().map(|(machine, taken)| (machine, false, *taken));
        let added = self.added.iter().map(|(machine, fold_case, taken)| (machine, *fold_case, *taken));
        let member = |(machine, fold_case, taken): (&Machine, _, _)| Member {
            machine: machine.clone(),
            fold_case,
            taken,
        };
        let left_out = self.left_out.iter().zip([false, true]).filter(|(words, _)| !words.is_empty());
        let left_out = left_out.map(|(words, fold_case)| {
            let machine = Machine::Words(words.clone());
            Member { machine, fold_case, taken: false }
        });
        whole.chain(added).map(member).chain(left_out).collect()
    }

    /// Adds what the language is exactly; false where it is there, or nothing more is known.
    fn add_exact(&mut self, search: &mut Search<'_, '_>) -> bool {
        let exact = search.language.exact.filter(|_| !std::mem::replace(&mut self.is_exact, true));
        let table = exact.and_then(|exact| search.automata.language((exact.pattern)()));
        self.whole.extend(table.clone().map(|table| (Machine::Table(table), true)));
        table.is_some()
    }

    /// Adds the claim of this place, which the text fails; false where that cannot be.
    fn add(&mut self, search: &mut Search<'_, '_>, place: usize, text: &[u8]) -> bool {
        let Some(failed) = search.claims.get(place) else { return false };
        let claim = failed.claim;
        if let Some(word) = failed.left_out() {
            self.leave_out(word, claim.test.fold_case);
            self.because.push(claim.index);
            self.left_out_count += 1;
            if self.left_out_count == SINGLY_LEFT_OUT_MAX {
                for claim in &search.claims {
                    if let Some(word) = claim.left_out() {
                        self.leave_out(word, claim.claim.test.fold_case);
                        self.because.push(claim.claim.index);
                    }
                }
            }
            return self.left_out_count <= SINGLY_LEFT_OUT_MAX;
        }
        if let Some(taken) = failed.must
            && let Some(machine) = search.automata.of(&claim.test.op, search.effort)
        {
            self.because.push(claim.index);
            // The automaton is that of the text from which all others differ.
            let taken = taken != matches!(claim.test.op, Op::TextDiffers(_));
            self.added.push((machine, claim.test.fold_case, taken));
            return self.added.len() <= MEMBERS_MAX;
        }
        self.because.push(claim.index);
        self.leave_out(text, false);
        self.tried_count += 1;
        self.tried_count <= TRIED_MAX
    }

    fn leave_out(&mut self, word: &[u8], fold_case: bool) {
        let [plain, folded] = &mut self.left_out;
        Arc::make_mut(if fold_case { folded } else { plain }).insert(word);
    }
}

//! How many values a field has, and which of them fulfil what.

use pointsman_rules::{Cause, Over, OwnedValue, Truth, Value};

use super::automata::Automata;
use super::claim::{Claim, Truths};
use super::domain::{Absence, Domain};
use super::single::{self, Single};
use super::{Solved, numbers};
use crate::Effort;
use crate::wanted::Values;

/// Values of one field that are made up.
const VALUES_MAX: usize = 1000;

/// Values of which each is left out to see whether the others are enough.
const SHRUNK_MAX: usize = 32;

/// Choices that are made where several obligations must share few values.
const PACKED_MAX: usize = 200;

/// The cause of faults behind the values that are known.
const FAULT: Cause = Cause::Malformed;

/// All of a field's values that fulfil the claims.
pub(super) fn solve(
    domain: &Domain,
    claims: &[Claim<'_>],
    automata: &mut Automata,
    effort: &mut Effort,
) -> Solved {
    let mut search = Search { domain, claims, automata, effort };
    let mut because = Vec::new();
    let mut is_unknown = false;
    let orders: &[Length] = match domain.absence {
        Absence::Never => &[Length::One, Length::Many],
        Absence::Odd => &[Length::One, Length::Many, Length::None],
        Absence::Usual => &[Length::None, Length::One, Length::Many],
    };
    let rests: &[Option<Cause>] = if domain.may_be_at_fault { &[None, Some(FAULT)] } else { &[None] };
    for rest in rests {
        for length in orders {
            let shape = match length {
                Length::None => search.none(*rest, &because),
                Length::One => search.one(*rest),
                Length::Many if domain.is_many => search.many(*rest),
                Length::Many => continue,
            };
            match shape {
                Shape::Values(known) => {
                    let values = Values { known, rest: *rest };
                    debug_assert!(fulfil(claims, &values), "{values:?} {claims:?}");
                    if fulfil(claims, &values) {
                        return Solved::Values(search.without_needless(values));
                    }
                    is_unknown = true;
                }
                Shape::Nothing(more) => because.extend(more),
                Shape::Unknown => is_unknown = true,
            }
        }
    }
    if is_unknown || search.effort.is_used_up() {
        return Solved::Unknown;
    }
    because.sort_unstable();
    because.dedup();
    Solved::Nothing { because }
}

fn fulfil(claims: &[Claim<'_>], values: &Values) -> bool {
    claims.iter().all(|claim| claim.takes_all(values))
}

#[derive(Clone, Copy)]
enum Length {
    None,
    One,
    Many,
}

enum Shape {
    Values(Vec<OwnedValue>),
    /// None of this shape, because of the claims of these places.
    Nothing(Vec<usize>),
    Unknown,
}

/// What the claims ask of single values.
#[derive(Default)]
struct Duties<'p> {
    /// Of every value.
    every: Vec<Claim<'p>>,
    /// Of the first one, too.
    first: Vec<Claim<'p>>,
    /// Each of some value.
    some: Vec<Claim<'p>>,
}

impl<'p> Duties<'p> {
    /// What claims ask of several values, or of one where `is_one`; the place of a claim that fails whatever they are.
    /// Counts are left out, unless a fault makes them unknown.
    fn of(claims: &[Claim<'p>], is_one: bool, rest: Option<Cause>) -> Result<Duties<'p>, usize> {
        let mut duties = Duties::default();
        for claim in claims {
            let failed = Err(claim.index);
            let is_open = rest.is_some();
            let may_be_unknown = claim.truths.has_unknown();
            match claim.test.over {
                Over::Count if is_open && !may_be_unknown => return failed,
                Over::Count => {}
                Over::First => duties.first.push(*claim),
                Over::Once if is_one && !is_open => duties.first.push(*claim),
                Over::Once if !may_be_unknown => return failed,
                Over::Once => {}
                Over::Any => duties.fold(*claim, Truth::True, is_open)?,
                Over::All => duties.fold(*claim, Truth::False, is_open)?,
            }
        }
        Ok(duties)
    }

    /// Of Kleene's or over the values, or of his and: `strong` is what one value settles.
    fn fold(&mut self, claim: Claim<'p>, strong: Truth, is_open: bool) -> Result<(), usize> {
        let (strong, weak) = match strong {
            Truth::True => (Truths::TRUE, Truths::FALSE),
            _ => (Truths::FALSE, Truths::TRUE),
        };
        let has = |truths: Truths| claim.truths.and(truths) != Truths::NONE;
        match (has(strong), has(weak), has(Truths::UNKNOWN)) {
            (false, false, false) => return Err(claim.index),
            (true, _, true) if is_open => {}
            (true, true, _) => {}
            (true, false, _) => self.some.push(claim),
            (false, true, false) if is_open => return Err(claim.index),
            (false, true, _) => self.every.push(claim),
            (false, false, true) => {
                self.every.push(Claim { truths: weak.or(Truths::UNKNOWN), ..claim });
                if !is_open {
                    self.some.push(claim);
                }
            }
        }
        Ok(())
    }

    fn of_first(&self) -> Vec<Claim<'p>> {
        [&self.every[..], &self.first].concat()
    }
}

struct Search<'s, 'p> {
    domain: &'s Domain,
    claims: &'s [Claim<'p>],
    automata: &'s mut Automata,
    effort: &'s mut Effort,
}

impl<'p> Search<'_, 'p> {
    /// The field is absent, or at fault before its first value.
    fn none(&mut self, rest: Option<Cause>, because: &[usize]) -> Shape {
        let values = Values { known: Vec::new(), rest };
        if !self.effort.take(self.claims.len() as u64) {
            return Shape::Unknown;
        }
        let mut failed =
            self.claims.iter().filter(|claim| !claim.takes_all(&values)).map(|claim| claim.index);
        let Some(first) = failed.next() else { return Shape::Values(Vec::new()) };
        // One that is known to be at fault already is no further reason.
        let known = [first].into_iter().chain(failed).find(|index| because.contains(index));
        Shape::Nothing(vec![known.unwrap_or(first)])
    }

    /// Without those that nothing asks for, if there are few.
    fn without_needless(&mut self, mut values: Values) -> Values {
        let mut at = 0;
        while values.known.len() <= SHRUNK_MAX && at < values.known.len() && values.known.len() > 1 {
            if !self.effort.take(self.claims.len() as u64) {
                break;
            }
            let mut fewer = values.clone();
            fewer.known.remove(at);
            if fulfil(self.claims, &fewer) {
                values = fewer;
            } else {
                at += 1;
            }
        }
        values
    }

    fn one(&mut self, rest: Option<Cause>) -> Shape {
        if rest.is_none()
            && let Some(failed) = self.counts().find(|claim| !claim.takes(Value::Integer(1)))
        {
            return Shape::Nothing(vec![failed.index]);
        }
        if let Some(cause) = rest.filter(|_| !self.domain.is_many) {
            return self.broken_off(cause);
        }
        let duties = match Duties::of(self.claims, true, rest) {
            Ok(duties) => duties,
            Err(index) => return Shape::Nothing(vec![index]),
        };
        match self.single(&[&duties.every[..], &duties.first, &duties.some].concat()) {
            Single::Value(value) => Shape::Values(vec![value]),
            Single::Nothing(because) => Shape::Nothing(because),
            Single::Unknown => Shape::Unknown,
        }
    }

    /// The only value of a field that can have no more, where a fault comes before the field is settled. Such a field is
    /// settled by its value: so the fault stands in the value, of which it is known alone that it is there.
    fn broken_off(&mut self, cause: Cause) -> Shape {
        let values = Values { known: vec![OwnedValue::Unknown(cause)], rest: Some(cause) };
        if !self.effort.take(self.claims.len() as u64) {
            return Shape::Unknown;
        }
        match self.claims.iter().find(|claim| !claim.takes_all(&values)) {
            Some(failed) => Shape::Nothing(vec![failed.index]),
            None => Shape::Values(values.known),
        }
    }

    fn counts(&self) -> impl Iterator<Item = &Claim<'p>> {
        self.claims.iter().filter(|claim| claim.test.over == Over::Count)
    }

    fn single(&mut self, claims: &[Claim<'_>]) -> Single {
        single::solve(self.domain, claims, self.automata, self.effort)
    }

    /// Two values or more. Each obligation may have a value of its own if there may be so many.
    fn many(&mut self, rest: Option<Cause>) -> Shape {
        let duties = match Duties::of(self.claims, false, rest) {
            Ok(duties) => duties,
            Err(index) => return Shape::Nothing(vec![index]),
        };
        let mut values = match self.single(&duties.of_first()) {
            Single::Value(value) => vec![value],
            Single::Nothing(because) => return Shape::Nothing(because),
            Single::Unknown => return Shape::Unknown,
        };
        for claim in &duties.some {
            if !self.effort.take(values.len() as u64) {
                return Shape::Unknown;
            }
            if values.iter().any(|value| claim.takes(value.as_value())) {
                continue;
            }
            match self.single(&[&duties.every[..], &[*claim]].concat()) {
                Single::Value(value) => values.push(value),
                Single::Nothing(because) => return Shape::Nothing(because),
                Single::Unknown => return Shape::Unknown,
            }
        }
        self.of_right_length(&duties, values, rest)
    }

    /// As many of them as the counts allow: some of them twice, or those that can be shared shared.
    fn of_right_length(
        &mut self,
        duties: &Duties<'p>,
        mut values: Vec<OwnedValue>,
        rest: Option<Cause>,
    ) -> Shape {
        let counts: Vec<Claim<'p>> = self.counts().copied().collect();
        let least = values.len().max(2) as u64;
        let mut lengths = numbers::integers(&counts, 0..=u64::from(u32::MAX));
        lengths.extend([least, least - 1]);
        lengths.retain(|length| *length >= 2);
        lengths.sort_unstable();
        if !self.effort.take((lengths.len() * counts.len()) as u64) {
            return Shape::Unknown;
        }
        if rest.is_none() {
            let candidates = lengths.iter().copied().map(OwnedValue::Integer);
            let failed = single::pick(candidates, numbers::narrowest(&counts), &counts, self.effort);
            if let Single::Nothing(because) = failed {
                return Shape::Nothing(because);
            }
            lengths.retain(|length| counts.iter().all(|claim| claim.takes(Value::Integer(*length))));
        }
        let Some(length) = lengths.iter().find(|length| **length >= least) else {
            return match lengths.last() {
                Some(length) => self.packed(duties, usize::try_from(*length).unwrap_or(usize::MAX)),
                None => Shape::Unknown,
            };
        };
        match (usize::try_from(*length), values.last().cloned()) {
            (Ok(length), Some(last)) if length <= VALUES_MAX => {
                values.resize(length, last);
                Shape::Values(values)
            }
            _ => Shape::Unknown,
        }
    }

    /// So many values, fewer than there are obligations: looks for obligations that one value fulfils.
    fn packed(&mut self, duties: &Duties<'p>, length: usize) -> Shape {
        // By obligation: the place of the value that is to fulfil it.
        let mut chosen: Vec<usize> = Vec::new();
        let mut tried = 0;
        loop {
            match self.of_choice(duties, &chosen, length) {
                Choice::Values(values) if chosen.len() == duties.some.len() => return Shape::Values(values),
                Choice::Values(_) => {
                    chosen.push(0);
                    continue;
                }
                Choice::Unknown => return Shape::Unknown,
                Choice::Nothing => {}
            }
            tried += 1;
            if tried > PACKED_MAX {
                return Shape::Unknown;
            }
            // The next choice: of values that are not used yet, one is as good as another.
            while let Some(last) = chosen.pop() {
                let used = chosen.iter().copied().max().map_or(1, |most| most + 1).max(1);
                if last < used && last + 1 < length {
                    chosen.push(last + 1);
                    break;
                }
            }
            if chosen.is_empty() {
                let all = [&duties.every[..], &duties.first, &duties.some].concat();
                let because = all.iter().chain(self.counts()).map(|claim| claim.index);
                return Shape::Nothing(because.collect());
            }
        }
    }

    /// Values for the obligations that have been given a place.
    fn of_choice(&mut self, duties: &Duties<'p>, chosen: &[usize], length: usize) -> Choice {
        let mut values = Vec::with_capacity(length);
        for place in 0..length {
            let mut claims = if place == 0 { duties.of_first() } else { duties.every.clone() };
            let given = duties.some.iter().zip(chosen).filter(|(_, chosen)| **chosen == place);
            claims.extend(given.map(|(claim, _)| *claim));
            match self.single(&claims) {
                Single::Value(value) => values.push(value),
                Single::Nothing(_) => return Choice::Nothing,
                Single::Unknown => return Choice::Unknown,
            }
        }
        Choice::Values(values)
    }
}

enum Choice {
    Values(Vec<OwnedValue>),
    Nothing,
    Unknown,
}

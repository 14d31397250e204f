//! Which rules of two programs are taken for each other.

use std::collections::HashMap;

use pointsman_rules::{Condition, Field, Program, Rule, pace};

use crate::logic::rooms::may_end_unknown_in;
use crate::logic::states::States;
use crate::logic::walk::{Step, Walk};

/// So often rules are parted whose jumps do not lead to the same place; then all that jump are.
const ROUNDS_MAX: usize = 16;

/// The rules of two programs that ask the same and then go on or decide alike, in their order.
pub(super) struct Alignment {
    /// Of each rule, that of the other program.
    counterparts: Vec<Option<u32>>,
    /// Of each rule without a counterpart, the one that stands in its place, if any does.
    in_place: Vec<Option<u32>>,
    /// Of each rule, whether a jump leads over it.
    jumped_over: Vec<bool>,
    has_strays: bool,
}

impl Alignment {
    pub(super) fn new(joint: &Program, walk: &Walk, middle: u32) -> Alignment {
        let likenesses = likenesses(joint, walk);
        let (old, new) = likenesses.split_at_checked(middle as usize).unwrap_or_default();
        let mut counterparts = vec![None; likenesses.len()];
        for (one, other) in matched(old, new) {
            pair_up(&mut counterparts, one, other.saturating_add(middle));
        }
        part_jumpers(&mut counterparts, walk, middle);
        let strays = (0..).zip(&counterparts).filter(|(_, other)| other.is_none());
        let has_strays = strays.into_iter().any(|(rule, _)| walk.jumps_of(rule).next().is_some());
        let in_place = in_place(joint, &counterparts, middle);
        Alignment { jumped_over: jumped_over(walk, likenesses.len()), in_place, has_strays, counterparts }
    }

    pub(super) fn counterpart(&self, rule: u32) -> Option<u32> {
        self.counterparts.get(rule as usize).copied().flatten()
    }

    /// The rule that stands in the place of one without a counterpart: between the same counterparts.
    pub(super) fn in_place(&self, rule: u32) -> Option<u32> {
        self.in_place.get(rule as usize).copied().flatten()
    }

    /// Whether rules without a counterpart jump: then two counterparts need not be visited by the same requests.
    pub(super) fn has_strays(&self) -> bool {
        self.has_strays
    }

    pub(super) fn is_jumped_over(&self, rule: u32) -> bool {
        self.jumped_over.get(rule as usize).copied().unwrap_or(true)
    }
}

/// Whether the condition of a rule, with what its blocks need, may come to one of [`States::EACH`]; it may be said of one
/// that cannot.
pub(super) fn may_come_to(rule: &Rule, on: States) -> bool {
    let is_always = matches!(rule.condition, Condition::Always);
    let awaits = |block: &pointsman_rules::Block| !block.awaits.is_empty();
    match on {
        States::FALSE => !is_always,
        States::UNKNOWN => {
            may_end_unknown_in(&rule.condition) || awaits(&rule.then) || awaits(&rule.otherwise)
        }
        _ => true,
    }
}

fn pair_up(pairs: &mut [Option<u32>], one: u32, other: u32) {
    for (one, other) in [(one, other), (other, one)] {
        if let Some(place) = pairs.get_mut(one as usize) {
            *place = Some(other);
        }
    }
}

/// One number for all rules that ask the same, wait for the same and then go on or decide alike.
fn likenesses(joint: &Program, walk: &Walk) -> Vec<u32> {
    let mut known: HashMap<Vec<u32>, u32> = HashMap::with_capacity(joint.rules.len());
    let mut fields: HashMap<&Field, u32> = HashMap::new();
    let mut numbers = Vec::with_capacity(joint.rules.len());
    for (index, rule) in (0..).zip(pace::each(&joint.rules)) {
        let mut likeness = shape(&rule.condition);
        likeness.extend(States::EACH.map(|on| match walk.step(index, on) {
            _ if !may_come_to(rule, on) => 3,
            Step::Next => 0,
            Step::Goto(_) => 1,
            Step::Decides => 2,
        }));
        for block in [&rule.then, &rule.otherwise] {
            likeness.push(block.awaits.len() as u32);
            for field in &block.awaits {
                let next = fields.len() as u32;
                likeness.push(*fields.entry(field).or_insert(next));
            }
        }
        let next = known.len() as u32;
        numbers.push(*known.entry(likeness).or_insert(next));
    }
    pace::drop_each(known);
    numbers
}

/// A condition by the numbers of its tests; the order in which an `and` and an `or` have their parts is all the same.
pub(super) fn shape(condition: &Condition) -> Vec<u32> {
    match condition {
        Condition::Always => vec![0],
        Condition::Test(test) => vec![1, test.number()],
        Condition::Not(inner) => [vec![2], shape(inner)].concat(),
        Condition::And(parts) | Condition::Or(parts) => {
            let mut shapes: Vec<_> = parts.iter().map(shape).collect();
            shapes.sort_unstable();
            shapes.dedup();
            let kind = if matches!(condition, Condition::And(_)) { 3 } else { 4 };
            [vec![kind, shapes.len() as u32], shapes.concat()].concat()
        }
    }
}

/// Places of equal numbers, in the order of both lists: those at their beginnings and ends, and between them as many as
/// there are of numbers that are counted alike.
fn matched(old: &[u32], new: &[u32]) -> Vec<(u32, u32)> {
    let before = old.iter().zip(new).take_while(|(one, other)| one == other).count();
    let (old_rest, new_rest) = (old.get(before..).unwrap_or_default(), new.get(before..).unwrap_or_default());
    let behind =
        old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(|(one, other)| one == other).count();
    let (old_end, new_end) = (old.len() - behind, new.len() - behind);
    let mut counted: HashMap<u32, u32> = HashMap::new();
    let mut places: HashMap<(u32, u32), u32> = HashMap::new();
    for (place, number) in (0..).zip(pace::each(new)).take(new_end).skip(before) {
        let count = counted.entry(*number).or_default();
        places.insert((*number, *count), place);
        *count += 1;
    }
    counted.clear();
    let mut pairs = Vec::new();
    for (place, number) in (0..).zip(pace::each(old)).take(old_end).skip(before) {
        let count = counted.entry(*number).or_default();
        pairs.extend(places.get(&(*number, *count)).map(|other| (place, *other)));
        *count += 1;
    }
    let same = |place: usize| place as u32;
    let first = (0..before).map(|place| (same(place), same(place)));
    let last = (0..behind).map(|place| (same(old_end + place), same(new_end + place)));
    first.chain(rising(&pairs)).chain(last).collect()
}

/// The longest part of some pairs whose second places rise, as the first do.
fn rising(pairs: &[(u32, u32)]) -> Vec<(u32, u32)> {
    // Of each length, the pair that a part of it ends with at the least place; and of each pair the one before it.
    let mut tails: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = Vec::with_capacity(pairs.len());
    let second = |at: usize| pairs.get(at).map_or(0, |(_, second)| *second);
    for at in pace::each(0..pairs.len()) {
        let length = tails.partition_point(|tail| second(*tail) < second(at));
        before.push(length.checked_sub(1).and_then(|last| tails.get(last).copied()));
        match tails.get_mut(length) {
            Some(tail) => *tail = at,
            None => tails.push(at),
        }
    }
    let mut part = Vec::with_capacity(tails.len());
    let mut last = tails.last().copied();
    while let Some(at) = last {
        part.extend(pairs.get(at));
        last = before.get(at).copied().flatten();
    }
    part.reverse();
    part
}

/// Parts counterparts whose jumps lead to rules behind which the next counterparts are others.
fn part_jumpers(counterparts: &mut [Option<u32>], walk: &Walk, middle: u32) {
    let jumpers: Vec<u32> =
        pace::each(0..middle).filter(|rule| walk.jumps_of(*rule).next().is_some()).collect();
    for round in 0..=ROUNDS_MAX {
        let next = next_matched(counterparts);
        let landing = |to: u32| next.get(to as usize).copied().flatten();
        let land_alike = |one: u32, other: u32| {
            let others: Vec<_> = walk.jumps_of(other).map(|(_, jump)| jump).collect();
            walk.jumps_of(one).all(|(_, jump)| {
                let other = others.iter().find(|other| other.on == jump.on);
                let alike = other.and_then(|other| Some((landing(jump.to)?, landing(other.to)?)));
                alike.is_some_and(|(one, other)| {
                    counterparts.get(one as usize).copied().flatten() == Some(other)
                })
            })
        };
        let apart: Vec<(u32, u32)> = jumpers
            .iter()
            .filter_map(|rule| Some((*rule, counterparts.get(*rule as usize).copied().flatten()?)))
            .filter(|(one, other)| round == ROUNDS_MAX || !land_alike(*one, *other))
            .collect();
        if apart.is_empty() {
            return;
        }
        for rule in apart.into_iter().flat_map(|(one, other)| [one, other]) {
            if let Some(counterpart) = counterparts.get_mut(rule as usize) {
                *counterpart = None;
            }
        }
    }
}

/// Of each rule, the first from it on that has a counterpart.
fn next_matched(counterparts: &[Option<u32>]) -> Vec<Option<u32>> {
    let mut next = vec![None; counterparts.len()];
    let mut last = None;
    for (at, (place, counterpart)) in next.iter_mut().zip(counterparts).enumerate().rev() {
        if counterpart.is_some() {
            last = Some(at as u32);
        }
        *place = last;
    }
    next
}

fn jumped_over(walk: &Walk, rules: usize) -> Vec<bool> {
    let mut reach = 0;
    let mut over = Vec::with_capacity(rules);
    for rule in pace::each((0..).take(rules)) {
        over.push(reach > rule);
        reach = walk.jumps_of(rule).map(|(_, jump)| jump.to).fold(reach, u32::max);
    }
    over
}

/// Between the same counterparts, rules of the same label stand for each other, and else those at the same distance.
fn in_place(joint: &Program, counterparts: &[Option<u32>], middle: u32) -> Vec<Option<u32>> {
    let next = next_matched(counterparts);
    let label = |rule: u32| joint.rules.get(rule as usize).map_or("", |rule| &*rule.label);
    let named: HashMap<&str, u32> = (0..)
        .zip(pace::each(counterparts))
        .skip(middle as usize)
        .filter(|(rule, counterpart)| counterpart.is_none() && !label(*rule).starts_with('#'))
        .map(|(rule, _)| (label(rule), rule))
        .collect();
    let mut places = vec![None; counterparts.len()];
    // Where the rules between two counterparts begin in both programs.
    let (mut old_start, mut new_start) = (0, middle);
    for (rule, counterpart) in pace::each((0..middle).zip(counterparts)) {
        if let Some(other) = counterpart {
            (old_start, new_start) = (rule + 1, other + 1);
            continue;
        }
        let new_end = next.get(new_start as usize).copied().flatten().unwrap_or(new_start);
        let is_between = |other: &u32| (new_start..new_end).contains(other);
        let of_label = named.get(label(rule)).copied().filter(is_between);
        let at_distance = Some(new_start + (rule - old_start)).filter(is_between);
        if let Some(other) = of_label.or(at_distance) {
            pair_up(&mut places, rule, other);
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::{matched, rising};

    #[test]
    fn the_longest_part_rises() {
        let rows: &[(&[u32], usize)] =
            &[(&[], 0), (&[3], 1), (&[3, 2, 1], 1), (&[1, 5, 2, 3, 9, 4], 4), (&[4, 5, 6, 1, 2], 3)];
        for (seconds, length) in rows {
            let pairs: Vec<_> = (0..).zip(seconds.iter().copied()).collect();
            let part = rising(&pairs);
            assert_eq!(part.len(), *length, "{seconds:?}");
            assert!(part.is_sorted_by(|one, other| one.0 < other.0 && one.1 < other.1), "{part:?}");
        }
    }

    #[test]
    fn equal_numbers_are_matched_in_order() {
        type Row = (&'static [u32], &'static [u32], &'static [(u32, u32)]);
        let rows: &[Row] = &[
            (&[1, 2, 3], &[1, 2, 3], &[(0, 0), (1, 1), (2, 2)]),
            (&[1, 2, 3], &[1, 9, 3], &[(0, 0), (2, 2)]),
            (&[1, 2, 3, 4], &[1, 3, 2, 4], &[(0, 0), (2, 1), (3, 3)]),
            (&[1, 1, 4], &[1, 5, 1, 4], &[(0, 0), (1, 2), (2, 3)]),
            (&[1, 1], &[1], &[(0, 0)]),
            (&[], &[1], &[]),
        ];
        for (old, new, expected) in rows {
            let found = matched(old, new);
            assert!(found.len() == expected.len(), "{old:?} {new:?} {found:?}");
            assert!(found.iter().all(|(one, other)| old[*one as usize] == new[*other as usize]));
        }
    }
}

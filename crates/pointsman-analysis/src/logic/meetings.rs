//! Rules by the room that their conditions leave: which of them may meet one.

use std::collections::HashMap;
use std::ops::Range;

use pointsman_rules::pace;

use super::rooms::{Axis, Edge, Interval, Rooms};

/// So many rules are looked at in one analysis to find those that meet.
pub(super) const LOOKED_AT_MAX: usize = 4_000_000;
/// So many rules are looked at along an axis before another axis is tried.
const LOOKED_AT_FIRST: usize = 64;
/// What it takes to look at one, as [`pace::spend`] counts.
const LOOK_UNITS: u64 = 4;
/// So many times as many are looked at the next time.
const PATIENCE_GROWTH: usize = 4;

/// Rules, each with the room that it leaves.
pub(super) struct Meetings<'k, 'p> {
    /// By a rule's index.
    rooms: &'k [Rooms<'p>],
    crowds: Vec<Crowd<'k, 'p>>,
}

/// Rules that leave room along the same axes, in one piece each or in several: such are mostly written in one manner, and what
/// tells one of them from the others is along the same axis.
#[derive(Default)]
struct Crowd<'k, 'p> {
    /// In their order.
    rules: Vec<u32>,
    axes: HashMap<Axis<'p>, Lines<'k>>,
}

impl<'k, 'p> Meetings<'k, 'p> {
    /// Of these rules, which are in their order.
    pub(super) fn new(rules: Vec<u32>, rooms: &'k [Rooms<'p>]) -> Meetings<'k, 'p> {
        let mut places: HashMap<Vec<(Axis<'p>, bool)>, usize> = HashMap::new();
        let mut crowds: Vec<Crowd<'k, 'p>> = Vec::new();
        for rule in pace::each(rules) {
            let Some(own) = rooms.get(rule as usize) else { continue };
            let axes = own.each().map(|(axis, room)| (axis, room.len() > 1)).collect();
            let place = *places.entry(axes).or_insert_with(|| {
                crowds.push(Crowd::default());
                crowds.len() - 1
            });
            let Some(crowd) = crowds.get_mut(place) else { continue };
            crowd.rules.push(rule);
            for (axis, room) in own.each() {
                let lines = crowd.axes.entry(axis).or_default();
                lines.drawn.extend(room.iter().map(|interval| (interval, rule)));
            }
        }
        crowds.iter_mut().flat_map(|crowd| crowd.axes.values_mut()).for_each(Lines::sort);
        Meetings { rooms, crowds }
    }

    /// Those of them within `range` that may meet a rule which leaves so much, in their order. Nothing where more than
    /// `looks` rules had to be looked at; those that were are taken from it.
    pub(super) fn of(&self, own: &Rooms<'p>, range: Range<u32>, looks: &mut usize) -> Option<Vec<u32>> {
        let mut found = Vec::new();
        for crowd in &self.crowds {
            found.extend(crowd.of(own, &range, looks)?);
        }
        let may_meet = |rule: &u32| self.rooms.get(*rule as usize).is_some_and(|rooms| rooms.may_meet(own));
        found.retain(|rule| range.contains(rule) && may_meet(rule));
        found.sort_unstable();
        found.dedup();
        Some(found)
    }
}

impl<'p> Crowd<'_, 'p> {
    /// All that touch along one axis, some more than once.
    fn of(&self, own: &Rooms<'p>, range: &Range<u32>, looks: &mut usize) -> Option<Vec<u32>> {
        let first = self.rules.partition_point(|rule| *rule < range.start);
        let end = self.rules.partition_point(|rule| *rule < range.end);
        let within = self.rules.get(first..end).unwrap_or_default();
        if within.is_empty() {
            return Some(Vec::new());
        }
        let mut patience = LOOKED_AT_FIRST;
        loop {
            let most = patience.min(*looks);
            let found = if within.len() <= most { Some(within.to_vec()) } else { self.along_one(own, most) };
            if let Some(found) = found {
                *looks = looks.saturating_sub(found.len().max(1));
                return Some(found);
            }
            if patience >= *looks {
                return None;
            }
            patience = patience.saturating_mul(PATIENCE_GROWTH);
        }
    }

    /// What is found along the first axis that has few enough.
    fn along_one(&self, own: &Rooms<'p>, most: usize) -> Option<Vec<u32>> {
        own.each().find_map(|(axis, room)| self.axes.get(&axis)?.touching(room, most))
    }
}

/// Intervals along one axis.
#[derive(Default)]
struct Lines<'k> {
    /// In the order of their lower edges, each with its rule.
    drawn: Vec<(&'k Interval, u32)>,
    /// A tree over them, its root at 1: below each node the place of the one that reaches furthest.
    furthest: Vec<usize>,
    leaves: usize,
}

impl Lines<'_> {
    fn sort(&mut self) {
        pace::sort(&mut self.drawn);
        self.leaves = self.drawn.len().next_power_of_two();
        self.furthest = (0..2 * self.leaves).map(|node| node.saturating_sub(self.leaves)).collect();
        let reach = |place: usize| self.drawn.get(place).map(|(interval, _)| &interval.high);
        for node in pace::each(1..self.leaves).rev() {
            let (left, right) = (self.furthest.get(2 * node), self.furthest.get(2 * node + 1));
            let further = left.into_iter().chain(right).copied().max_by_key(|place| reach(*place));
            if let (Some(further), Some(own)) = (further, self.furthest.get_mut(node)) {
                *own = further;
            }
        }
    }

    /// The rules of all that touch one of some intervals; nothing where they are more than `most`.
    fn touching(&self, room: &[Interval], most: usize) -> Option<Vec<u32>> {
        let mut found = Vec::new();
        for interval in room {
            let before = self.drawn.partition_point(|(other, _)| other.low <= interval.high);
            // Nodes, each with the first place below it and how many there are.
            let mut left = vec![(1, 0, self.leaves)];
            while let Some((node, first, count)) = left.pop() {
                pace::spend(LOOK_UNITS);
                if first >= before || !self.reaches(node, &interval.low) {
                    continue;
                }
                if count == 1 {
                    found.extend(self.drawn.get(first).map(|(_, rule)| *rule));
                    if found.len() > most {
                        return None;
                    }
                    continue;
                }
                let half = count / 2;
                left.extend([(2 * node, first, half), (2 * node + 1, first + half, half)]);
            }
        }
        Some(found)
    }

    fn reaches(&self, node: usize, low: &Edge) -> bool {
        let furthest = self.furthest.get(node).and_then(|place| self.drawn.get(*place));
        furthest.is_some_and(|(interval, _)| interval.high >= *low)
    }
}

#[cfg(test)]
mod tests;

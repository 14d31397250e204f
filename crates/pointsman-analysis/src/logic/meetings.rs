//! Rules by the room that their conditions leave: which of them may meet one.

use std::collections::HashMap;
use std::ops::Range;

use super::rooms::{Axis, Edge, Interval, Rooms};

/// So many rules are looked at along an axis before another axis is tried.
const LOOKED_AT_FIRST: usize = 64;
/// So many times as many are looked at the next time.
const PATIENCE_GROWTH: usize = 4;
/// Rules without room along an axis are listed where they are so few.
const LISTED_FREE_MAX: usize = 1024;

/// Rules, each with the room that it leaves.
pub(super) struct Meetings<'k, 'p> {
    /// By a rule's index.
    rooms: &'k [Rooms<'p>],
    /// In their order.
    rules: Vec<u32>,
    axes: HashMap<Axis<'p>, Lines<'k>>,
}

impl<'k, 'p> Meetings<'k, 'p> {
    /// Of these rules, which are in their order.
    pub(super) fn new(rules: Vec<u32>, rooms: &'k [Rooms<'p>]) -> Meetings<'k, 'p> {
        let mut drawn: HashMap<Axis<'p>, Vec<(&'k Interval, u32)>> = HashMap::new();
        let mut having: HashMap<Axis<'p>, Vec<u32>> = HashMap::new();
        for rule in &rules {
            let Some(own) = rooms.get(*rule as usize) else { continue };
            for (axis, room) in own.each() {
                having.entry(axis).or_default().push(*rule);
                drawn.entry(axis).or_default().extend(room.iter().map(|interval| (interval, *rule)));
            }
        }
        let free = |having: &Vec<u32>| {
            let count = rules.len() - having.len();
            let is_free = |rule: &u32| having.binary_search(rule).is_err();
            let listed = count <= LISTED_FREE_MAX;
            (count, listed.then(|| rules.iter().copied().filter(is_free).collect()))
        };
        let axes = drawn.into_iter().map(|(axis, drawn)| {
            let (free_count, free) = having.get(&axis).map_or((0, None), free);
            (axis, Lines::new(drawn, free_count, free))
        });
        Meetings { rooms, axes: axes.collect(), rules }
    }

    /// Those of them within `range` that may meet a rule which leaves so much, in their order. Nothing where more than
    /// `most` had to be looked at.
    pub(super) fn of(&self, own: &Rooms<'p>, range: Range<u32>, most: usize) -> Option<Vec<u32>> {
        let first = self.rules.partition_point(|rule| *rule < range.start);
        let end = self.rules.partition_point(|rule| *rule < range.end);
        let within = self.rules.get(first..end).unwrap_or_default();
        let mut patience = LOOKED_AT_FIRST;
        let mut found = loop {
            if within.len() <= patience {
                break within.to_vec();
            }
            if let Some(found) = self.along_one(own, patience.min(most)) {
                break found;
            }
            if patience > most {
                return None;
            }
            patience = patience.saturating_mul(PATIENCE_GROWTH);
        };
        let may_meet = |rule: &u32| self.rooms.get(*rule as usize).is_some_and(|rooms| rooms.may_meet(own));
        found.retain(|rule| range.contains(rule) && may_meet(rule));
        found.sort_unstable();
        found.dedup();
        Some(found)
    }

    /// What is found along the first axis that has few enough.
    fn along_one(&self, own: &Rooms<'p>, most: usize) -> Option<Vec<u32>> {
        own.each().find_map(|(axis, room)| {
            let lines = self.axes.get(&axis)?;
            let room_left = most.checked_sub(lines.free_count)?;
            let free = lines.free.as_ref()?;
            let mut found = lines.touching(room, room_left)?;
            found.extend(free);
            Some(found)
        })
    }
}

/// Intervals along one axis.
struct Lines<'k> {
    /// In the order of their lower edges, each with its rule.
    drawn: Vec<(&'k Interval, u32)>,
    /// A tree over them, its root at 1: below each node the place of the one that reaches furthest.
    furthest: Vec<usize>,
    leaves: usize,
    /// How many rules have no room here, and which where they are few.
    free_count: usize,
    free: Option<Vec<u32>>,
}

impl<'k> Lines<'k> {
    fn new(mut drawn: Vec<(&'k Interval, u32)>, free_count: usize, free: Option<Vec<u32>>) -> Lines<'k> {
        drawn.sort_unstable();
        let leaves = drawn.len().next_power_of_two();
        let mut furthest: Vec<usize> = (0..2 * leaves).map(|node| node.saturating_sub(leaves)).collect();
        let reach = |place: usize| drawn.get(place).map(|(interval, _)| &interval.high);
        for node in (1..leaves).rev() {
            let (left, right) = (furthest.get(2 * node), furthest.get(2 * node + 1));
            let further = left.into_iter().chain(right).copied().max_by_key(|place| reach(*place));
            if let (Some(further), Some(own)) = (further, furthest.get_mut(node)) {
                *own = further;
            }
        }
        Lines { drawn, furthest, leaves, free_count, free }
    }

    /// The rules of all that touch one of some intervals; nothing where they are more than `most`.
    fn touching(&self, room: &[Interval], most: usize) -> Option<Vec<u32>> {
        let mut found = Vec::new();
        for interval in room {
            let before = self.drawn.partition_point(|(other, _)| other.low <= interval.high);
            // Nodes, each with the first place below it and how many there are.
            let mut left = vec![(1, 0, self.leaves)];
            while let Some((node, first, count)) = left.pop() {
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

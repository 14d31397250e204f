//! What many parts of a condition leave together.

use std::collections::HashMap;

use super::{Axis, CROSSED_MAX, Room, Rooms, crossed, sorted};

/// What the parts of a condition leave, axis by axis.
#[derive(Default)]
pub(super) struct Gathered<'p> {
    rooms: Vec<(Axis<'p>, Room)>,
    /// Of how many parts each is.
    counts: Vec<usize>,
    places: HashMap<Axis<'p>, usize>,
    parts: usize,
    /// How many of them all parts have.
    of_all: usize,
}

impl<'p> Gathered<'p> {
    /// There is one part more, and all are to be true. How many pairs of intervals were looked at.
    pub(super) fn narrow(&mut self, part: Rooms<'p>) -> usize {
        let mut pairs = 0;
        for (axis, room) in part.0 {
            match self.places.get(&axis).and_then(|place| self.rooms.get_mut(*place)) {
                Some((_, known)) => {
                    pairs += known.len().saturating_mul(room.len()).min(CROSSED_MAX);
                    *known = crossed(known, &room);
                }
                None => self.add(axis, room),
            }
        }
        pairs
    }

    /// There is one part more, and one of them is to be true. What they leave is put in order behind the last.
    pub(super) fn widen(&mut self, part: Rooms<'p>) {
        self.of_all = 0;
        for (axis, mut room) in part.0 {
            let place = self.places.get(&axis).copied();
            let known =
                place.and_then(|place| Some((self.rooms.get_mut(place)?, self.counts.get_mut(place)?)));
            match known {
                Some(((_, known), count)) if *count == self.parts => {
                    known.append(&mut room);
                    *count += 1;
                    self.of_all += 1;
                }
                None if self.parts == 0 => {
                    self.add(axis, room);
                    self.of_all += 1;
                }
                Some(_) | None => {}
            }
        }
        self.parts += 1;
    }

    fn add(&mut self, axis: Axis<'p>, room: Room) {
        self.places.insert(axis, self.rooms.len());
        self.rooms.push((axis, room));
        self.counts.push(1);
    }

    /// Whether no axis is in all parts that there have been.
    pub(super) fn knows_nothing(&self) -> bool {
        self.of_all == 0
    }

    pub(super) fn whole(self) -> Rooms<'p> {
        Rooms(self.rooms)
    }

    /// Of the axes that all parts have, all that one of them leaves.
    pub(super) fn merged(self) -> Rooms<'p> {
        let of_all = self.rooms.into_iter().zip(self.counts).filter(|(_, count)| *count == self.parts);
        Rooms(of_all.map(|((axis, room), _)| (axis, sorted(room))).collect())
    }
}

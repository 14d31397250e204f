//! Tuples of numbers, each once: a search looks up many, and an allocation for each would take longer than the search.

/// Tuples of one width, in the order in which they came.
#[derive(Debug)]
pub(super) struct Tuples {
    width: usize,
    len: usize,
    /// One behind another.
    numbers: Vec<u32>,
    /// Places of tuples, counted from 1, where their hashes lead to, or next to that; 0 where there is none. At least half
    /// of them are free, and their number is a power of two.
    slots: Vec<u32>,
}

/// Slots that there are at first.
const SLOTS_MIN: usize = 64;

impl Tuples {
    pub(super) fn of_width(width: usize) -> Tuples {
        Tuples { width, len: 0, numbers: Vec::new(), slots: vec![0; SLOTS_MIN] }
    }

    /// Adds a tuple of this width; false where it is there.
    pub(super) fn insert(&mut self, tuple: &[u32]) -> bool {
        debug_assert_eq!(tuple.len(), self.width);
        if (self.len + 1) * 2 > self.slots.len() {
            self.grow();
        }
        let Some(slot) = self.free_slot(tuple) else { return false };
        self.numbers.extend_from_slice(tuple);
        self.len += 1;
        self.fill(slot, self.len);
        true
    }

    pub(super) fn get(&self, place: usize) -> Option<&[u32]> {
        let start = place * self.width;
        (place < self.len).then(|| self.numbers.get(start..start + self.width)).flatten()
    }

    /// The slot for a tuple that is not there.
    fn free_slot(&self, tuple: &[u32]) -> Option<usize> {
        let last = self.slots.len() - 1;
        let mut slot = hash(tuple) & last;
        loop {
            match self.slots.get(slot) {
                None | Some(0) => return Some(slot),
                Some(place) if self.get(*place as usize - 1) == Some(tuple) => return None,
                Some(_) => slot = (slot + 1) & last,
            }
        }
    }

    fn fill(&mut self, slot: usize, place: usize) {
        if let (Some(slot), Ok(place)) = (self.slots.get_mut(slot), u32::try_from(place)) {
            *slot = place;
        }
    }

    fn grow(&mut self) {
        self.slots = vec![0; self.slots.len() * 2];
        for place in 0..self.len {
            if let Some(slot) = self.get(place).and_then(|tuple| self.free_slot(tuple)) {
                self.fill(slot, place + 1);
            }
        }
    }
}

/// The numbers mixed by a multiplication each (as FxHash does), the best mixed bits of it.
fn hash(tuple: &[u32]) -> usize {
    let mix = |hash: u64, number: &u32| {
        (hash.rotate_left(5) ^ u64::from(*number)).wrapping_mul(0x517c_c1b7_2722_0a95)
    };
    (tuple.iter().fold(0, mix) >> 32) as usize
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::Tuples;

    proptest! {
        #[test]
        fn each_is_there_once(all in vec(vec(0_u32..9, 3..4), 0..400)) {
            let (mut tuples, mut known, mut order) = (Tuples::of_width(3), HashSet::new(), Vec::new());
            for tuple in &all {
                let is_new = known.insert(tuple);
                prop_assert_eq!(tuples.insert(tuple), is_new);
                order.extend(is_new.then_some(tuple));
            }
            for (place, tuple) in order.iter().enumerate() {
                prop_assert_eq!(tuples.get(place), Some(tuple.as_slice()));
            }
            prop_assert_eq!(tuples.get(order.len()), None);
        }
    }

    #[test]
    fn of_no_width_there_is_one() {
        let mut tuples = Tuples::of_width(0);
        assert!(tuples.insert(&[]) && !tuples.insert(&[]));
        assert_eq!((tuples.get(0), tuples.get(1)), (Some(&[][..]), None));
    }
}

//! What pairs of decisions came to when they were seen first.

use std::collections::HashMap;

use super::findings::Class;

/// Pairs of decisions of which a thread keeps in mind what they come to. What comes of more is worked out each time.
const PAIRS_MAX: usize = 16_384;
/// Words that tell those apart: rules that only add effects may come together by the thousand, in ever new ways.
const WORDS_MAX: usize = 16 * PAIRS_MAX;

/// Pairs of decisions that a thread has seen.
#[derive(Default)]
pub(super) struct Known {
    classes: HashMap<Box<[usize]>, Class>,
    /// Of all pairs.
    words: usize,
}

impl Known {
    /// What a pair came to, as far as that is kept in mind.
    pub(super) fn class(&self, pair: &[usize]) -> Option<Class> {
        self.classes.get(pair).copied()
    }

    /// Keeps it in mind, if there is room.
    pub(super) fn keep(&mut self, pair: &[usize], class: Class) {
        if self.classes.len() < PAIRS_MAX && self.words + pair.len() <= WORDS_MAX {
            self.words += pair.len();
            self.classes.insert(pair.into(), class);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_room_for_many_short_pairs_and_for_few_long_ones() {
        for (words, kept) in [(9, PAIRS_MAX), (16, PAIRS_MAX), (1_000, WORDS_MAX / 1_000), (WORDS_MAX + 1, 0)]
        {
            let mut known = Known::default();
            let mut pair = vec![0; words];
            for number in 0..PAIRS_MAX + 2 {
                pair[0] = number;
                known.keep(&pair, Class::Same);
            }
            assert_eq!(known.classes.len(), kept, "of {words} words");
            pair[0] = 0;
            assert_eq!(known.class(&pair), (kept > 0).then_some(Class::Same));
            assert!(known.words <= WORDS_MAX);
        }
    }
}

//! Texts by their hash.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;

use crate::pace;

/// Bytes that all texts of a list have together at most, so that places among them fit 32 bits.
pub const LIST_TEXT_BYTES_MAX: usize = 1 << 30;

/// A set of whole texts.
///
/// It takes the bytes of each and about 8 more. A look-up finds one place by a hash, where one or two texts stand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextList {
    /// All texts, one behind the other, in the order of their hashes.
    bytes: Box<[u8]>,
    /// Where each ends.
    ends: Box<[u32]>,
    /// For each value of the leading bits of a hash, the first text that has it, or a greater one; the end behind them.
    places: Box<[u32]>,
}

impl TextList {
    /// Of these texts, each once. What is beyond [`LIST_TEXT_BYTES_MAX`] bytes is left out.
    #[must_use]
    pub fn new<'t>(texts: impl IntoIterator<Item = &'t [u8]>) -> TextList {
        let mut room = LIST_TEXT_BYTES_MAX;
        let fits = |text: &&[u8]| {
            // An empty text takes room, too: there may be no more texts than places.
            room = room.saturating_sub(text.len().max(1));
            room > 0
        };
        let mut hashed: Vec<(u64, &[u8])> =
            pace::each(texts).take_while(fits).map(|text| (hash(text), text)).collect();
        pace::sort(&mut hashed);
        hashed.dedup();
        let (mut bytes, mut ends) = (Vec::new(), Vec::with_capacity(hashed.len()));
        for (_, text) in pace::each(&hashed) {
            bytes.extend_from_slice(text);
            ends.push(len32(bytes.len()));
        }
        let bits = hashed.len().next_power_of_two().trailing_zeros();
        let mut places = Vec::with_capacity((1 << bits) + 1);
        for (place, (hash, _)) in (0..).zip(&hashed) {
            while places.len() <= leading(*hash, bits) {
                places.push(place);
            }
        }
        places.resize((1 << bits) + 1, len32(hashed.len()));
        TextList { bytes: bytes.into(), ends: ends.into(), places: places.into() }
    }

    /// Whether a text is in it.
    #[must_use]
    pub fn has(&self, text: &[u8]) -> bool {
        let Some(buckets) = self.places.len().checked_sub(1) else { return false };
        let bucket = leading(hash(text), buckets.trailing_zeros());
        match (self.places.get(bucket), self.places.get(bucket + 1)) {
            (Some(first), Some(end)) => (*first..*end).any(|place| self.at(place as usize) == Some(text)),
            _ => false,
        }
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// All of them, in no order that means anything.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).filter_map(|place| self.at(place))
    }

    /// Bytes of memory that it takes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.bytes.len() + 4 * (self.ends.len() + self.places.len())
    }

    fn at(&self, place: usize) -> Option<&[u8]> {
        let start = place.checked_sub(1).map_or(Some(0), |before| self.ends.get(before).copied())?;
        self.bytes.get(start as usize..*self.ends.get(place)? as usize)
    }
}

/// The hash is a fixed one: values only look for texts, and no value adds any.
fn hash(text: &[u8]) -> u64 {
    FixedState::default().hash_one(text)
}

fn leading(hash: u64, bits: u32) -> usize {
    // Shifting by all 64 bits is no number.
    usize::try_from(hash.checked_shr(u64::BITS - bits).unwrap_or_default()).unwrap_or_default()
}

/// Lengths fit: there are fewer bytes than this has numbers.
fn len32(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_has_what_was_put_in(
            texts in vec("[ab]{0,4}|[a-z]{1,12}", 0..300),
            asked in vec("[ab]{0,4}|[a-z]{1,3}", 1..60),
        ) {
            let expected: BTreeSet<&[u8]> = texts.iter().map(String::as_bytes).collect();
            let list = TextList::new(texts.iter().map(String::as_bytes));
            prop_assert_eq!(list.len(), expected.len());
            prop_assert_eq!(&list.iter().collect::<BTreeSet<_>>(), &expected);
            for text in asked.iter().chain(&texts) {
                prop_assert_eq!(list.has(text.as_bytes()), expected.contains(text.as_bytes()), "{}", text);
            }
            prop_assert_eq!(TextList::new(texts.iter().rev().map(String::as_bytes)), list);
        }
    }

    #[test]
    fn an_empty_list_has_nothing() {
        for list in [TextList::default(), TextList::new([])] {
            assert!(!list.has(b"") && list.is_empty());
        }
        assert!(TextList::new([&b""[..]]).has(b""));
    }
}

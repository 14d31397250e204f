//! "Did you mean …?": the name that somebody who misspelled one may have wanted.

use std::cell::Cell;

/// Finds names that are spelled alike, for the findings about one text.
///
/// The first findings get their suggestions. A text with thousands of unknown names beside thousands of
/// known ones gets none for the rest: comparing all with all would take minutes.
#[derive(Debug)]
pub struct Suggestions {
    /// How many pairs of letters may still be compared.
    pairs_left: Cell<usize>,
}

/// A hundred unknown names of ten letters beside two hundred known ones.
const PAIRS_MAX: usize = 2_000_000;

/// Longer words are no slips of the finger, and a comparison costs the product of the lengths.
const WORD_BYTES_MAX: usize = 64;

impl Default for Suggestions {
    fn default() -> Self {
        Suggestions { pairs_left: Cell::new(PAIRS_MAX) }
    }
}

impl Suggestions {
    /// The candidate that `word` was probably meant to be.
    pub fn nearest<'c>(&self, word: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
        if word.is_empty() || word.len() > WORD_BYTES_MAX {
            return None;
        }
        let folded = folded(word);
        let mut best: Option<(usize, &str)> = None;
        for candidate in candidates {
            let near = candidate.len().max(word.len()) / 3;
            // A word is at least as far away as it is longer or shorter in letters; in bytes this is only
            // nearly so, and names are ASCII.
            let is_close = candidate.len().abs_diff(word.len()) <= near && candidate.len() <= WORD_BYTES_MAX;
            self.take(if is_close { candidate.len() * word.len() } else { 1 })?;
            if !is_close {
                continue;
            }
            let distance = strsim::damerau_levenshtein(&folded, &self::folded(candidate));
            if distance <= near && best.is_none_or(|(least, _)| distance < least) {
                best = Some((distance, candidate));
            }
        }
        best.map(|(_, candidate)| candidate)
    }

    /// Nothing once the budget is used up.
    fn take(&self, pairs: usize) -> Option<()> {
        let left = self.pairs_left.get().checked_sub(pairs);
        self.pairs_left.set(left.unwrap_or(0));
        left.map(|_| ())
    }
}

/// Case and the kind of dash are what people remember least.
fn folded(word: &str) -> String {
    word.to_lowercase().replace('-', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggestions_are_close_or_absent() {
        let keys = ["head_ms_max", "head_bytes_max", "idle_ms_max"];
        let nearest = |word| Suggestions::default().nearest(word, keys);
        assert_eq!(nearest("head_ms_mx"), Some("head_ms_max"));
        assert_eq!(nearest("head-ms-max"), Some("head_ms_max"));
        assert_eq!(nearest("Head_Bytes_Max"), Some("head_bytes_max"));
        assert_eq!(nearest("colour"), None);
        assert_eq!(nearest(""), None);
        assert_eq!(nearest(&"a".repeat(WORD_BYTES_MAX + 1)), None);
    }

    #[test]
    fn the_work_is_bounded() {
        let known: Vec<String> = (0..5000).map(|number| format!("label{number}")).collect();
        let suggestions = Suggestions::default();
        let suggested = (0..5000).filter(|number| {
            let word = format!("lebel{number}");
            suggestions.nearest(&word, known.iter().map(String::as_str)).is_some()
        });
        let suggested = suggested.count();
        assert!((1..100).contains(&suggested), "{suggested}");
        assert_eq!(suggestions.pairs_left.get(), 0);
    }
}

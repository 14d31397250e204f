//! Each Rust file opens with a sentence that says what it is for.

use super::{Finding, tree::Tree};

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let without = tree.with_ending(".rs").filter(|file| {
        let sentence =
            file.text.strip_prefix("//! ").and_then(|text| text.lines().next()).unwrap_or_default();
        !sentence.contains(' ')
    });
    without.map(|file| Finding::line(&file.path, 1, "does not open with a `//!` sentence")).collect()
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::check;

    #[test]
    fn a_sentence_opens_the_file() {
        assert_eq!(found(check, &[("a.rs", "//! What this is for.\nfn a() {}\n")]).len(), 0);
        for text in ["fn a() {}\n", "//! Word\n", "// A comment here.\n", "\n//! Too late here.\n", ""] {
            assert_eq!(found(check, &[("a.rs", text)]).len(), 1, "{text:?}");
        }
    }
}

//! The reference of the configuration lists the keys there are.

use std::collections::BTreeSet;

use super::{Finding, tree::Tree};

const REFERENCE: &str = "docs/reference/configuration.md";
const KEYS: &str = "crates/pointsman-config/src/keys.rs";
const LIMITS: &str = "crates/pointsman-config/src/limits.rs";

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let lines = |path: &str| tree.get(path).map(|file| file.text.lines()).into_iter().flatten();
    let keys = lines(KEYS).filter_map(|line| line.trim().strip_prefix("name: \"")?.strip_suffix("\","));
    let defined: BTreeSet<&str> = keys.chain(lines(LIMITS).filter_map(limit)).collect();
    let documented: BTreeSet<&str> = lines(REFERENCE)
        // The tables of keys have four columns.
        .filter(|line| line.split(" | ").count() >= 4)
        .filter_map(|line| line.strip_prefix("| `")?.split_once('`').map(|(name, _)| name))
        .collect();
    let missing = defined.difference(&documented).map(|key| format!("does not list the key `{key}`"));
    let extra =
        documented.difference(&defined).map(|key| format!("lists the key `{key}`, which is not there"));
    missing.chain(extra).map(|message| Finding::file(REFERENCE, message)).collect()
}

/// A limit is defined in a line such as `head_ms_max: u32 = 10_000, 1..DAY_MS, "ms",`.
fn limit(line: &str) -> Option<&str> {
    let (name, rest) = line.trim().split_once(": u")?;
    (name.ends_with("_max") && rest.contains(" = ")).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::{KEYS, LIMITS, REFERENCE, check};

    #[test]
    fn keys_without_a_line_and_lines_without_a_key_are_found() {
        let keys = (KEYS, "    name: \"bind\",\n");
        let limits = (LIMITS, "    head_ms_max: u32 = 10_000, 1..DAY_MS, \"ms\",\n");
        let row = |key: &str| format!("| `{key}` | number | `1` | what it does |\n");
        let both = row("bind") + &row("head_ms_max");
        assert_eq!(found(check, &[keys, limits, (REFERENCE, &both)]).len(), 0);
        assert_eq!(found(check, &[keys, limits, (REFERENCE, &row("bind"))]).len(), 1);
        assert_eq!(found(check, &[keys, (REFERENCE, &both)]).len(), 1);
        assert_eq!(found(check, &[keys, limits]).len(), 2);
    }
}

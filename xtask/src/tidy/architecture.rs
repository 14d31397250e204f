//! ARCHITECTURE.md lists the crates there are, no more and no fewer.

use std::collections::BTreeSet;

use super::{Finding, tree::Tree};

const MAP: &str = "ARCHITECTURE.md";

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let Some(map) = tree.get(MAP) else { return vec![Finding::file(MAP, "is not there")] };
    let listed: BTreeSet<&str> = map.lines().filter_map(|(_, text)| listed_crate(text)).collect();
    let there = tree.crates();
    let missing = there.difference(&listed).map(|name| format!("does not list the crate `{name}`"));
    let extra = listed.difference(&there).map(|name| format!("lists the crate `{name}`, which is not there"));
    missing.chain(extra).map(|message| Finding::file(MAP, message)).collect()
}

/// A row of the crate table starts with the crate's name in backticks.
fn listed_crate(line: &str) -> Option<&str> {
    let (name, _) = line.strip_prefix("| `")?.split_once('`')?;
    (name == "pointsman" || name.starts_with("pointsman-")).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::{MAP, check};

    #[test]
    fn the_table_is_the_folder() {
        let manifest = ("crates/pointsman-net/Cargo.toml", "");
        let row = |name: &str| format!("| `{name}` | listens |\n");
        assert_eq!(found(check, &[manifest, (MAP, &row("pointsman-net"))]).len(), 0);
        assert_eq!(found(check, &[manifest]).len(), 1);
        assert_eq!(found(check, &[manifest, (MAP, "")]).len(), 1);
        assert_eq!(found(check, &[(MAP, &row("pointsman-net"))]).len(), 1);
    }
}

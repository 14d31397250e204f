//! ARCHITECTURE.md lists the crates there are, no more and no fewer, and what each stands on.

use std::collections::{BTreeMap, BTreeSet};

use super::dependencies::lines_of;
use super::{Finding, tree::Tree};

const MAP: &str = "ARCHITECTURE.md";
/// The column of the crate table that names the other crates of ours; the crate's name is in the first.
const USES_COLUMN: usize = 3;
/// What stands there where there are none.
const NONE: &str = "–";

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let Some(map) = tree.get(MAP) else { return vec![Finding::file(MAP, "is not there")] };
    let rows: BTreeMap<&str, (usize, &str)> =
        map.lines().filter_map(|(line, text)| row(text).map(|(name, uses)| (name, (line, uses)))).collect();
    let (there, listed) = (tree.crates(), rows.keys().copied().collect::<BTreeSet<_>>());
    let missing = there.difference(&listed).map(|name| format!("does not list the crate `{name}`"));
    let extra = listed.difference(&there).map(|name| format!("lists the crate `{name}`, which is not there"));
    let mut findings: Vec<Finding> =
        missing.chain(extra).map(|message| Finding::file(MAP, message)).collect();
    for name in there.intersection(&listed) {
        let (line, uses) = rows[name];
        let (said, true_uses) = (said(uses, name, &there), uses_of(tree, name, &there));
        let differ: Vec<_> = said.symmetric_difference(&true_uses).map(String::as_str).collect();
        if !differ.is_empty() {
            let message =
                format!("what `{name}` stands on is not what its Cargo.toml says: {}", differ.join(", "));
            findings.push(Finding::line(MAP, line, message));
        }
    }
    findings
}

/// A row of the crate table starts with the crate's name in backticks.
fn row(line: &str) -> Option<(&str, &str)> {
    let (name, _) = line.strip_prefix("| `")?.split_once('`')?;
    let uses = line.split('|').nth(USES_COLUMN)?.trim();
    (name == "pointsman" || name.starts_with("pointsman-")).then_some((name, uses))
}

/// The crates that a cell names, without their `pointsman-`: a list, `all but` a list, or none.
fn said(cell: &str, of: &str, there: &BTreeSet<&str>) -> BTreeSet<String> {
    let listed =
        |list: &str| -> BTreeSet<String> { list.split(',').map(|name| whole_name(name.trim())).collect() };
    match cell.strip_prefix("all but ") {
        _ if cell == NONE => BTreeSet::new(),
        None => listed(cell),
        Some(others) => {
            let others = listed(others);
            let all = there.iter().filter(|name| **name != of).map(|name| (*name).to_owned());
            all.filter(|name| !others.contains(name)).collect()
        }
    }
}

fn whole_name(name: &str) -> String {
    if name == "pointsman" { name.to_owned() } else { format!("pointsman-{name}") }
}

/// The crates of ours among a crate's dependencies; those of its tests are nobody's business.
fn uses_of(tree: &Tree, name: &str, there: &BTreeSet<&str>) -> BTreeSet<String> {
    let Some(manifest) = tree.get(&format!("crates/{name}/Cargo.toml")) else { return BTreeSet::new() };
    let names = lines_of(manifest, "[dependencies]").map(|(_, _, name)| name);
    names.filter(|name| there.contains(name)).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::{MAP, check};

    fn row(name: &str, uses: &str) -> String {
        format!("| `{name}` | listens | {uses} | sockets |\n")
    }

    #[test]
    fn the_table_is_the_folder() {
        let manifest = ("crates/pointsman-net/Cargo.toml", "");
        let row = row("pointsman-net", "–");
        assert_eq!(found(check, &[manifest, (MAP, &row)]).len(), 0);
        assert_eq!(found(check, &[manifest]).len(), 1);
        assert_eq!(found(check, &[manifest, (MAP, "")]).len(), 1);
        assert_eq!(found(check, &[(MAP, &row)]).len(), 1);
    }

    #[test]
    fn what_a_crate_stands_on_is_what_its_manifest_says() {
        let uses = "[dependencies]\nserde.workspace = true\npointsman-a.workspace = true\n\n\
                    [dev-dependencies]\npointsman-c.workspace = true\n";
        let of = |row_of_b: &str| {
            let map =
                [row("pointsman-a", "–"), row("pointsman-b", row_of_b), row("pointsman-c", "–")].concat();
            let files = [
                ("crates/pointsman-a/Cargo.toml", ""),
                ("crates/pointsman-b/Cargo.toml", uses),
                ("crates/pointsman-c/Cargo.toml", ""),
                (MAP, map.as_str()),
            ];
            found(check, &files)
        };
        for right in ["a", "all but c"] {
            assert_eq!(of(right).len(), 0, "{right}");
        }
        for wrong in ["–", "a, c", "c", "all but a", "all but pointsman", "", "d, a"] {
            let findings = of(wrong);
            assert_eq!(findings.len(), 1, "{wrong}: {findings:?}");
            assert!(
                findings[0].starts_with("ARCHITECTURE.md:2: what `pointsman-b` stands on"),
                "{findings:?}"
            );
        }
    }
}

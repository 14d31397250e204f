//! README.md is one screen with exactly the two commands of a fresh machine.

use std::collections::BTreeSet;

use super::{Finding, tree::Tree};

const README: &str = "README.md";
const LINES_MAX: usize = 80;
const COMMANDS: [&str; 2] = ["check", "demo"];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let Some(readme) = tree.get(README) else { return vec![Finding::file(README, "is not there")] };
    let mut findings = Vec::new();
    let lines = readme.text.lines().count();
    if lines > LINES_MAX {
        findings.push(Finding::file(README, format!("{lines} lines; a screen has {LINES_MAX}")));
    }
    let named: BTreeSet<&str> = readme
        .text
        .split("cargo xtask ")
        .skip(1)
        .map(|rest| rest.split(|c: char| !(c.is_alphanumeric() || c == '-')).next().unwrap_or_default())
        .collect();
    if named != BTreeSet::from(COMMANDS) {
        findings.push(Finding::file(README, format!("names the commands {named:?}, not {COMMANDS:?}")));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::{README, check};

    #[test]
    fn two_commands_on_one_screen() {
        let good = "    cargo xtask demo\n    cargo xtask check\n";
        assert_eq!(found(check, &[(README, good)]).len(), 0);
        assert_eq!(found(check, &[]).len(), 1);
        assert_eq!(found(check, &[(README, &format!("{good}{}", "\n".repeat(79)))]).len(), 1);
        assert_eq!(found(check, &[(README, &format!("{good}cargo xtask tidy"))]).len(), 1);
        assert_eq!(found(check, &[(README, "cargo xtask demo")]).len(), 1);
    }
}

//! Files stay short: 500 lines wanted, 800 at the very most, exceptions on a list that only shrinks.

use std::collections::BTreeMap;

use super::{Finding, tree::Tree};

const LINES_WANTED: usize = 500;
const LINES_MAX: usize = 800;
const RATCHET: &str = "xtask/tidy-ratchet.txt";

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let (mut listed, mut findings) = read_ratchet(tree);
    for file in tree.with_ending(".rs") {
        let lines = file.text.lines().count();
        let allowed = listed.remove(file.path.as_str());
        let message = match allowed {
            _ if lines > LINES_MAX => format!("{lines} lines; {LINES_MAX} is the limit without exceptions"),
            None if lines > LINES_WANTED => format!("{lines} lines; {LINES_WANTED} are wanted"),
            Some(allowed) if lines > allowed => format!("grew to {lines} lines; {RATCHET} says {allowed}"),
            Some(_) if lines <= LINES_WANTED => format!("no longer too long; take it off {RATCHET}"),
            Some(allowed) if lines < allowed => format!("shrank; lower {RATCHET} to {lines}"),
            _ => continue,
        };
        findings.push(Finding::file(&file.path, message));
    }
    let gone =
        listed.keys().map(|path| Finding::file(RATCHET, format!("lists `{path}`, which is not there")));
    findings.extend(gone);
    findings
}

/// Lines of `path count`; `#` starts a comment.
fn read_ratchet(tree: &Tree) -> (BTreeMap<&str, usize>, Vec<Finding>) {
    let (mut listed, mut findings) = (BTreeMap::new(), Vec::new());
    let Some(file) = tree.get(RATCHET) else { return (listed, findings) };
    for (line, text) in file.lines().filter(|(_, text)| !text.is_empty() && !text.starts_with('#')) {
        match text.split_once(' ').and_then(|(path, lines)| Some((path, lines.trim().parse().ok()?))) {
            Some((path, lines)) => drop(listed.insert(path, lines)),
            None => findings.push(Finding::line(RATCHET, line, "expected a path and a number of lines")),
        }
    }
    (listed, findings)
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::{RATCHET, check};

    #[test]
    fn length_is_a_ratchet() {
        let long = "//! x\n".repeat(600);
        let far_too_long = "//! x\n".repeat(801);
        let file = |text| ("crates/a/src/long.rs", text);
        assert_eq!(found(check, &[file("//! x\n")]).len(), 0);
        assert_eq!(found(check, &[file(&long)]), ["crates/a/src/long.rs: 600 lines; 500 are wanted"]);
        assert_eq!(found(check, &[file(&long), (RATCHET, "crates/a/src/long.rs 600")]).len(), 0);
        for (text, listed, word) in [
            (long.as_str(), "crates/a/src/long.rs 599", "grew"),
            (&long, "crates/a/src/long.rs 700", "shrank"),
            ("//! x\n", "crates/a/src/long.rs 700", "no longer"),
            (&far_too_long, "crates/a/src/long.rs 900", "without exceptions"),
            ("//! x\n", "crates/a/src/gone.rs 600", "not there"),
            ("//! x\n", "nonsense", "expected"),
        ] {
            let findings = found(check, &[file(text), (RATCHET, listed)]);
            assert!(findings.iter().any(|finding| finding.contains(word)), "{word}: {findings:?}");
        }
    }
}

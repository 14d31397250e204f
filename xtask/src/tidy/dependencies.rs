//! Each dependency of the workspace says why it is there, in a comment directly above.

use super::Finding;
use super::tree::{SourceFile, Tree};

const MANIFEST: &str = "Cargo.toml";

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let Some(manifest) = tree.get(MANIFEST) else { return vec![Finding::file(MANIFEST, "is not there")] };
    let lines: Vec<&str> = manifest.text.lines().collect();
    lines_of(manifest, "[workspace.dependencies]")
        .filter(|(_, text, _)| !text.contains("path = "))
        // Lines are counted from 1, so the one above has index `line - 2`.
        .filter(|(line, _, _)| !lines[line.saturating_sub(2)].starts_with("# "))
        .map(|(line, _, name)| {
            Finding::line(MANIFEST, line, format!("why `{name}`? say so in a comment above"))
        })
        .collect()
}

/// The lines of a section that name a dependency: number, text and name.
pub(super) fn lines_of<'a>(
    manifest: &'a SourceFile,
    section: &str,
) -> impl Iterator<Item = (usize, &'a str, &'a str)> {
    let body = manifest.lines().skip_while(move |(_, text)| *text != section).skip(1);
    body.take_while(|(_, text)| !text.starts_with('[')).filter_map(|(line, text)| {
        let starts_a_name = text.starts_with(|c: char| c.is_ascii_alphanumeric());
        let name = text.split(['.', ' ', '=']).next()?;
        starts_a_name.then_some((line, text, name))
    })
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::{MANIFEST, check};

    #[test]
    fn a_dependency_without_a_reason_is_found() {
        let good = "[workspace.dependencies]\nours = { path = \"x\" }\n# Why.\nlexopt = \"0.3\"\n[profile.dev]\na = 1\n";
        assert_eq!(found(check, &[(MANIFEST, good)]).len(), 0);
        let bad = "[workspace.dependencies]\n# Why.\nlexopt = \"0.3\"\nmio = \"1\"\n";
        assert_eq!(found(check, &[(MANIFEST, bad)]), ["Cargo.toml:4: why `mio`? say so in a comment above"]);
    }
}

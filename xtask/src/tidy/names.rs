//! Names say what is inside; some words say nothing.

use super::{Finding, tree::Tree};

const BANNED: &[&str] =
    &["util", "utils", "common", "helper", "helpers", "manager", "handler", "processor", "misc", "types"];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.with_ending(".rs") {
        let names = file.path.split('/').map(|name| name.trim_end_matches(".rs"));
        if let Some(name) = names.into_iter().find(|name| says_nothing(name)) {
            findings.push(Finding::file(&file.path, format!("the name `{name}` says nothing")));
        }
        // A module in a file of its own is found by its path.
        for (line, text) in file.lines() {
            let inline = module(text).filter(|name| says_nothing(name));
            findings.extend(
                inline.map(|name| Finding::line(&file.path, line, format!("the name `{name}` says nothing"))),
            );
        }
    }
    findings
}

/// `types` alone is empty, `media_types` is not; a `request_handler` is as empty as a `handler`.
fn says_nothing(name: &str) -> bool {
    let last = name.rsplit(['_', '-']).next().unwrap_or(name);
    BANNED.contains(&name) || (last != "types" && last != "common" && BANNED.contains(&last))
}

/// The name of a module with its body on the spot.
fn module(line: &str) -> Option<&str> {
    let rest = line.trim_start();
    let rest = rest.strip_prefix("pub(crate) ").or_else(|| rest.strip_prefix("pub ")).unwrap_or(rest);
    rest.strip_prefix("mod ")?.strip_suffix(" {")
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::check;

    #[test]
    fn empty_names_are_found() {
        assert_eq!(found(check, &[("crates/a/src/media_types.rs", "mod tests {\n}\n")]).len(), 0);
        for (path, text) in [
            ("crates/a/src/utils.rs", ""),
            ("crates/a/src/types.rs", ""),
            ("crates/a/src/request_handler.rs", ""),
            ("crates/a/src/common/pool.rs", ""),
            ("crates/a-util/src/pool.rs", ""),
            ("crates/a/src/pool.rs", "pub(crate) mod helpers {\n}\n"),
        ] {
            assert_eq!(found(check, &[(path, text)]).len(), 1, "{path} {text}");
        }
    }
}

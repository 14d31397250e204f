//! No path of somebody's machine stands in the tree.

use super::{Finding, tree::Tree};

/// Folders under which people keep their own things.
const HOMES: &[&str] = &["home", "Users", "root", "work", "mnt"];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.texts().filter(|file| !file.path.starts_with("testdata/")) {
        for (line, text) in file.lines() {
            if let Some(path) = machine_path(text) {
                findings.push(Finding::line(&file.path, line, format!("`{path}` is a path of one machine")));
            }
        }
    }
    findings
}

/// A path of two names or more below such a folder, at the start of a word or after a quote.
fn machine_path(line: &str) -> Option<&str> {
    let words = line.split(|c: char| c.is_whitespace() || "\"'`()=,;:<>".contains(c));
    words.into_iter().find(|word| {
        let mut names = word.split('/');
        let (rooted, home) = (names.next() == Some(""), names.next().unwrap_or_default());
        let below =
            names.take_while(|name| name.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '.'));
        rooted && HOMES.contains(&home) && below.count() >= 1 && word.matches('/').count() >= 2
    })
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::check;

    #[test]
    fn paths_of_a_machine_are_found() {
        for folder in ["home/me/project", "root/.cargo", "Users/me"] {
            let line = format!("let path = \"/{folder}\";");
            assert_eq!(found(check, &[("crates/a/src/lib.rs", &line)]).len(), 1, "{line}");
            assert_eq!(found(check, &[("docs/a.md", &format!("see `/{folder}`"))]).len(), 1);
        }
        for line in ["GET /home HTTP/1.1", "docs/home/me", "/proc/self/status", "http://a/home/me"] {
            assert_eq!(found(check, &[("docs/a.md", line)]).len(), 0, "{line}");
        }
    }
}

//! Links between the documents lead somewhere.

use super::{Finding, tree::Tree};

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.with_ending(".md") {
        for (line, text) in file.lines() {
            for target in text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(to, _)| to) {
                let path = target.split('#').next().unwrap_or_default();
                let elsewhere = path.is_empty() || target.contains("://") || target.starts_with("mailto:");
                if !elsewhere && !tree.holds(&resolved(&file.path, path)) {
                    let message = format!("links to `{target}`, which is not there");
                    findings.push(Finding::line(&file.path, line, message));
                }
            }
        }
    }
    findings
}

/// A link's path as seen from the workspace's folder.
fn resolved(from: &str, to: &str) -> String {
    let folder = from.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut names: Vec<&str> = folder.split('/').filter(|name| !name.is_empty()).collect();
    for name in to.split('/') {
        match name {
            "" | "." => {}
            ".." => drop(names.pop()),
            name => names.push(name),
        }
    }
    names.join("/")
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::check;

    #[test]
    fn dead_links_are_found() {
        let there = ("docs/reference/metrics.md", "");
        let good = "[a](reference/metrics.md#b) [c](../docs/) [d](https://example.org/x) [e](#f)";
        assert_eq!(found(check, &[there, ("docs/a.md", good)]).len(), 0);
        let findings = found(check, &[there, ("docs/a.md", "x\n[a](metrics.md)")]);
        assert_eq!(findings, ["docs/a.md:2: links to `metrics.md`, which is not there"]);
    }
}

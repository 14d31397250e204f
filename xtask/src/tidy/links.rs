//! Links between the documents lead somewhere: to a file that is there, and to a heading in it.

use std::collections::{HashMap, HashSet};

use super::{Finding, tree::Tree};

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let pages = tree.with_ending(".md").map(|file| (file.path.as_str(), anchors(&file.text)));
    let pages: HashMap<&str, HashSet<String>> = pages.collect();
    let mut findings = Vec::new();
    for file in tree.with_ending(".md") {
        for (line, text) in file.lines() {
            for target in text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(to, _)| to) {
                if target.contains("://") || target.starts_with("mailto:") {
                    continue;
                }
                let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
                let page = if path.is_empty() { file.path.clone() } else { resolved(&file.path, path) };
                let leads_nowhere = pages.get(page.as_str()).is_some_and(|anchors| !anchors.contains(anchor));
                if !path.is_empty() && !tree.holds(&page) {
                    let message = format!("links to `{target}`, which is not there");
                    findings.push(Finding::line(&file.path, line, message));
                } else if !anchor.is_empty() && leads_nowhere {
                    let message = format!("links to `{target}`, and there is no such heading");
                    findings.push(Finding::line(&file.path, line, message));
                }
            }
        }
    }
    findings
}

/// What links call the headings of a page, as GitHub makes it of them; of headings that read alike the second one ends in `-1`.
fn anchors(page: &str) -> HashSet<String> {
    let (mut anchors, mut is_code) = (HashSet::new(), false);
    for line in page.lines() {
        if line.starts_with("```") {
            is_code = !is_code;
        }
        let heading = line.trim_start_matches('#');
        if is_code || heading.len() == line.len() || !heading.starts_with(' ') {
            continue;
        }
        let anchor = anchor(heading);
        let again = (1..).map(|count| format!("{anchor}-{count}"));
        let mut names = std::iter::once(anchor.clone()).chain(again);
        anchors.extend(names.find(|name| !anchors.contains(name)));
    }
    anchors
}

fn anchor(heading: &str) -> String {
    // Of a link in a heading its text counts.
    let text: String = match heading.split_once("](") {
        Some((before, rest)) => [before, rest.split_once(')').map_or("", |(_, behind)| behind)].concat(),
        None => heading.to_owned(),
    };
    let kept = text.trim().chars().filter(|sign| sign.is_alphanumeric() || " -_".contains(*sign));
    kept.flat_map(char::to_lowercase).map(|sign| if sign == ' ' { '-' } else { sign }).collect()
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
        let there = (
            "docs/reference/metrics.md",
            "# Metrics\n## What is `B`?\n```sh\n# no heading\n```\n## Of [it](metrics.md)\n",
        );
        let good = "# F\n# F\n[a](reference/metrics.md#what-is-b) [c](../docs/) [d](https://example.org/x) [e](#f-1)";
        assert_eq!(found(check, &[there, ("docs/a.md", good)]).len(), 0);
        let findings = found(check, &[there, ("docs/a.md", "x\n[a](metrics.md)")]);
        assert_eq!(findings, ["docs/a.md:2: links to `metrics.md`, which is not there"]);
        let bad = "# F\n[a](reference/metrics.md#no-heading) [b](reference/metrics.md#of-it) [e](#f-1)";
        let findings = found(check, &[there, ("docs/a.md", bad)]);
        let says = |target: &str| format!("docs/a.md:2: links to `{target}`, and there is no such heading");
        assert_eq!(findings, [says("reference/metrics.md#no-heading"), says("#f-1")]);
    }
}

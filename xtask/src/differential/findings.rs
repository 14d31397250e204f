//! Failures in groups, and the files that keep one of each.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::request::{escaped, unescaped};
use crate::failure::{Because, Failure, Result};

/// A request that passed though its reader read what the rule forbids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) rule: &'static str,
    pub(super) reader: &'static str,
    /// Mutations that it takes.
    pub(super) kinds: String,
    /// `field = value`
    pub(super) read: String,
    /// Empty where the group has an example already.
    pub(super) request: Vec<u8>,
    /// Whether it was sent alone on its connection, with nothing behind it.
    pub(super) has_own_connection: bool,
}

/// Findings by rule, reader and mutations, with how many there are of each and the shortest.
#[derive(Default)]
pub(super) struct Findings(BTreeMap<(&'static str, &'static str, String), (u64, Finding)>);

impl Findings {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn knows(&self, finding: &Finding) -> bool {
        self.0.contains_key(&(finding.rule, finding.reader, finding.kinds.clone()))
    }

    pub(super) fn add(&mut self, finding: Finding) {
        let key = (finding.rule, finding.reader, finding.kinds.clone());
        let (count, known) = self.0.entry(key).or_insert_with(|| (0, finding.clone()));
        *count += 1;
        if known.request.is_empty()
            || (!finding.request.is_empty() && finding.request.len() < known.request.len())
        {
            *known = finding;
        }
    }

    /// A list for people, the most frequent groups of each rule first.
    pub(super) fn text(&self, conditions: impl Fn(&str) -> &'static str) -> String {
        let mut groups: Vec<&(u64, Finding)> = self.0.values().collect();
        groups.sort_by_key(|(count, finding)| (finding.rule, finding.reader, std::cmp::Reverse(*count)));
        let one = |(count, finding): &&(u64, Finding)| {
            let Finding { rule, reader, kinds, read, request, .. } = finding;
            let condition = conditions(rule);
            let request = escaped(request);
            format!(
                "## {rule}, {reader}: {kinds} ({count})\nrule: {condition}\nread: {read}\n```\n{}\n```\n\n",
                request.trim_end()
            )
        };
        groups.iter().map(one).collect()
    }

    /// A file for each group that has an example.
    pub(super) fn keep(&self, folder: &Path) -> Result<Vec<PathBuf>> {
        let mut files = Vec::new();
        for (_, finding) in self.0.values().filter(|(_, finding)| !finding.request.is_empty()) {
            let name: String = finding
                .kinds
                .chars()
                .map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' })
                .collect();
            let name: String = name.chars().take(80).collect();
            let file = folder.join(format!("{}-{}-{name}.txt", finding.rule, finding.reader));
            std::fs::write(&file, finding.vector())
                .because(|| format!("cannot write `{}`", file.display()))?;
            files.push(file);
        }
        Ok(files)
    }
}

impl Finding {
    fn vector(&self) -> String {
        let Self { rule, reader, kinds, read, request, has_own_connection } = self;
        let connection = if *has_own_connection { "own" } else { "kept" };
        format!(
            "# {kinds}\n# read: {}\nrule {rule}\norigin {reader}\nconnection {connection}\nrequest\n{}\n",
            read.escape_debug(),
            escaped(request)
        )
    }
}

/// A request that is sent again.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Vector {
    pub(super) rule: String,
    pub(super) reader: String,
    pub(super) has_own_connection: bool,
    pub(super) request: Vec<u8>,
}

impl Vector {
    pub(super) fn read(file: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(file).because(|| format!("cannot read `{}`", file.display()))?;
        Self::of(&text)
            .ok_or_else(|| Failure::usage(format!("`{}` is no vector of a differential run", file.display())))
    }

    fn of(text: &str) -> Option<Self> {
        let (head, request) = text.split_once("\nrequest\n")?;
        let field = |name: &str| head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        Some(Self {
            rule: field("rule")?.to_owned(),
            reader: field("origin")?.to_owned(),
            has_own_connection: match field("connection")? {
                "own" => true,
                "kept" => false,
                _ => return None,
            },
            request: unescaped(request)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(request: &[u8]) -> Finding {
        Finding {
            rule: "path",
            reader: "go",
            kinds: "bytes".into(),
            read: "path = \"\n\"".into(),
            request: request.into(),
            has_own_connection: true,
        }
    }

    #[test]
    fn a_vector_is_read_again() {
        let request = b"GET /\\\x00 HTTP/1.1\r\nHost: a\r\n\r\n\xff";
        let vector = Vector::of(&finding(request).vector()).expect("a vector");
        assert_eq!(
            vector,
            Vector {
                rule: "path".into(),
                reader: "go".into(),
                has_own_connection: true,
                request: request.to_vec()
            }
        );
        assert_eq!(Vector::of("rule path\n"), None);
    }

    #[test]
    fn a_group_keeps_its_shortest_example() {
        let mut findings = Findings::default();
        for request in [&b"long"[..], b"", b"s"] {
            findings.add(finding(request));
        }
        assert_eq!(findings.len(), 1);
        let text = findings.text(|_| "x");
        assert!(text.contains("(3)") && text.contains("```\ns\n```"), "{text}");
    }
}

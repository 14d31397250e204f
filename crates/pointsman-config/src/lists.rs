//! Lists that rules name: networks or texts, from a file and from the configuration itself.

use std::collections::HashSet;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use pointsman_rules::{
    Diagnostic, LIST_TEXT_BYTES_MAX, List, Members, NetworkList, Program, Span, TextList, pace,
};

use crate::findings::{Findings, Spanned};
use crate::keys::TEXTS;
use crate::lower::Outside;
use crate::notation::{self, Refusal};
use crate::reading::{LIST_BYTES_MAX, reason, text};
use crate::section::Section;
use crate::{Listener, Problems, WatchedFile};

/// What a list is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Networks,
    Texts,
}

/// A list as written.
pub(crate) struct ListSpec {
    name: Spanned<String>,
    kind: Kind,
    /// Relative to the configuration file.
    file: Option<Spanned<String>>,
    entries: Vec<Spanned<String>>,
}

impl ListSpec {
    pub(crate) fn read((name, section): (Spanned<String>, Section<'_>)) -> Self {
        if let Err(refusal) = notation::name(&name.value) {
            section.findings().error(name.span, refusal.message, refusal.help);
        }
        if !section.has("file") && !section.has("entries") {
            section
                .missing("a list needs `file` or `entries`", "say what is in it, one entry a line of a file");
        }
        let anything = |text: &str| Ok::<_, Refusal>(text.to_owned());
        Self {
            kind: if section.word("kind") == TEXTS { Kind::Texts } else { Kind::Networks },
            file: section.parsed("file", notation::path),
            entries: section.parsed_list("entries", anything),
            name,
        }
    }
}

/// A list, and what it was made of: where that is as it was, the list need not be made again.
#[derive(Clone, Debug)]
pub(crate) struct ReadList {
    pub(crate) list: Arc<List>,
    kind: Kind,
    entries: Vec<String>,
    file: Option<WatchedFile>,
}

impl ReadList {
    /// Whether it was written like this, whatever is in its file.
    fn is_of(&self, spec: &ListSpec, path: Option<&Path>) -> bool {
        *self.list.name == *spec.name.value
            && self.kind == spec.kind
            && self.entries.iter().eq(spec.entries.iter().map(|entry| &entry.value))
            && self.file.as_ref().map(WatchedFile::path) == path
    }
}

/// The lists of a configuration; those of a plan before are taken over where nothing about them has changed. What is wrong
/// with its own entries goes to the findings, with files to the problems.
pub(crate) fn read(
    specs: &[ListSpec],
    before: &[ReadList],
    folder: &Path,
    outside: Outside<'_>,
    files: &mut Vec<WatchedFile>,
    findings: &Findings<'_>,
    problems: &mut Problems,
) -> Arc<[ReadList]> {
    let read = |spec: &ListSpec| {
        let path = spec.file.as_ref().map(|file| folder.join(&file.value));
        let before = before.iter().find(|before| before.is_of(spec, path.as_deref()));
        let (file, content) = match (&spec.file, &path) {
            (Some(file), Some(path)) => {
                let before = before.and_then(|before| before.file.as_ref());
                content((file, path), before, outside, findings)
            }
            _ => (None, before.is_none().then(String::new)),
        };
        files.extend(file.clone());
        match (content, before) {
            (None, Some(before)) => ReadList { file, ..before.clone() },
            (content, _) => {
                let list = made(spec, &content.unwrap_or_default(), findings, &mut |wrong| {
                    problems.add(path.as_deref().unwrap_or(folder), wrong.0, wrong.1);
                });
                let entries = spec.entries.iter().map(|entry| entry.value.clone()).collect();
                ReadList { list: Arc::new(list), kind: spec.kind, entries, file }
            }
        }
    };
    specs.iter().map(read).collect()
}

fn made(spec: &ListSpec, content: &str, findings: &Findings<'_>, report: &mut impl FnMut(Wrong)) -> List {
    let members = match spec.kind {
        Kind::Networks => networks(spec, content, findings, report),
        Kind::Texts => texts(spec, content, findings),
    };
    List { name: spec.name.value.as_str().into(), members }
}

/// Says which lists no rule names.
pub(crate) fn note_idle(specs: &[ListSpec], listeners: &[Listener], findings: &Findings<'_>) {
    let programs = listeners.iter().filter_map(|listener| listener.program.as_deref());
    let named: HashSet<&str> = programs.flat_map(Program::lists).map(|list| &*list.name).collect();
    for ListSpec { name, .. } in specs.iter().filter(|spec| !named.contains(spec.name.value.as_str())) {
        let message = format!("no rule looks into the list `{}`", name.value);
        findings.note(name.span, message, format!("a rule does with `in @{}`", name.value));
    }
}

/// A list's file, as far as there is one, and its text; none where it is the same as `before`. What cannot be had is said, and
/// empty.
fn content(
    (file, path): (&Spanned<String>, &Path),
    before: Option<&WatchedFile>,
    outside: Outside<'_>,
    findings: &Findings<'_>,
) -> (Option<WatchedFile>, Option<String>) {
    if let Outside::Texts { .. } = outside {
        findings.error(file.span, "a list needs its file", "and there are none");
        return (None, Some(String::new()));
    }
    if let Some(before) = before.filter(|before| before.is_untouched()) {
        return (Some(before.clone()), None);
    }
    let (watched, content) = WatchedFile::read_within(path, LIST_BYTES_MAX);
    if watched.digest().is_some() && watched.digest() == before.and_then(WatchedFile::digest) {
        return (Some(watched), None);
    }
    let content = content.and_then(text).unwrap_or_else(|error| {
        let message = format!("cannot read `{}`: {}", path.display(), reason(&error));
        findings.error(file.span, message, "paths are relative to the configuration file");
        String::new()
    });
    (Some(watched), Some(content))
}

/// A file's text with what is wrong with it.
type Wrong = (Arc<str>, Vec<Diagnostic>);

fn networks(
    spec: &ListSpec,
    content: &str,
    findings: &Findings<'_>,
    report: &mut impl FnMut(Wrong),
) -> Members {
    let mut ranges = Vec::new();
    for entry in &spec.entries {
        match range(&entry.value) {
            Ok(range) => ranges.push(range),
            Err(refusal) => findings.error(entry.span, refusal.message, refusal.help),
        }
    }
    let mut wrong = pointsman_rules::Findings::default();
    for (start, line) in pace::each(lines(content)) {
        let written = line.split(['#', ';']).next().unwrap_or_default();
        let entry = written.trim();
        if entry.is_empty() {
            continue;
        }
        match range(entry) {
            Ok(range) => ranges.push(range),
            Err(_) if wrong.overflowed() => break,
            Err(refusal) => {
                let start = start + (written.len() - written.trim_start().len());
                let span = Span { start: offset(start), end: offset(start + entry.len()) };
                wrong.add(Diagnostic::error(span, refusal.message).help(refusal.help));
            }
        }
    }
    let wrong = wrong.into_sorted();
    if !wrong.is_empty() {
        report((Arc::from(content), wrong));
    }
    Members::Networks(NetworkList::new(ranges))
}

fn texts(spec: &ListSpec, content: &str, findings: &Findings<'_>) -> Members {
    let of_file =
        lines(content).map(|(_, line)| line.trim()).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let entries = spec.entries.iter().map(|entry| entry.value.as_str());
    let all = || entries.clone().chain(of_file.clone()).map(str::as_bytes);
    let bytes: usize = pace::each(all()).map(|text| text.len().max(1)).sum();
    if bytes >= LIST_TEXT_BYTES_MAX {
        let message = format!("the texts of the list `{}` are too long together", spec.name.value);
        let help = format!("a list has less than {} MiB of texts", LIST_TEXT_BYTES_MAX >> 20);
        findings.error(spec.name.span, message, help);
    }
    Members::Texts(TextList::new(all()))
}

/// An address, a network, or a range of addresses: `10.0.0.1-10.0.0.9`, or as rules write it, `10.0.0.1..10.0.0.9`.
fn range(text: &str) -> Result<(IpAddr, IpAddr), Refusal> {
    let Some((from, to)) = text.split_once("..").or_else(|| text.split_once('-')) else {
        let network = notation::network(text)?;
        return Ok((network.network(), network.broadcast()));
    };
    let address = |text: &str| text.trim().parse().map(|address: IpAddr| address.to_canonical());
    let refusal = |message: &str, help: &str| {
        Err(Refusal { message: format!("`{text}` {message}"), help: help.to_owned() })
    };
    match (address(from), address(to)) {
        (Ok(from), Ok(to)) if from.is_ipv4() != to.is_ipv4() => {
            refusal("begins with one family of addresses and ends with another", "write a range of each")
        }
        (Ok(from), Ok(to)) if from > to => refusal("ends before it begins", "the lower address stands first"),
        (Ok(from), Ok(to)) => Ok((from, to)),
        _ => refusal(
            "is no range of addresses",
            "write a network, an address, or two addresses with `-` between them",
        ),
    }
}

/// The lines of a text, each with where it begins.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> + Clone {
    let text_without_mark = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut start = text.len() - text_without_mark.len();
    text_without_mark.split('\n').map(move |line| {
        let begins = start;
        start += line.len() + 1;
        (begins, line)
    })
}

/// Files are smaller than this has numbers.
fn offset(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_networks_addresses_and_ranges() {
        for (written, expected) in [
            ("10.0.0.0/8", Some(("10.0.0.0", "10.255.255.255"))),
            ("10.0.0.1", Some(("10.0.0.1", "10.0.0.1"))),
            ("10.0.0.1-10.0.0.9", Some(("10.0.0.1", "10.0.0.9"))),
            ("10.0.0.1 - 10.0.0.9", Some(("10.0.0.1", "10.0.0.9"))),
            ("::1..::9", Some(("::1", "::9"))),
            ("::ffff:10.0.0.1-10.0.0.2", Some(("10.0.0.1", "10.0.0.2"))),
            ("2001:db8::/32", Some(("2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff"))),
            ("10.0.0.9-10.0.0.1", None),
            ("10.0.0.9-::1", None),
            ("10.0.0.1/8", None),
            ("10.0.0.0-8", None),
            ("example.com", None),
        ] {
            let found = range(written).ok().map(|(from, to)| (from.to_string(), to.to_string()));
            let expected = expected.map(|(from, to)| (from.to_owned(), to.to_owned()));
            assert_eq!(found, expected, "{written}");
        }
    }

    #[test]
    fn lines_know_where_they_begin() {
        let found: Vec<_> = lines("\u{feff}a\r\n\nbc").collect();
        assert_eq!(found, [(3, "a\r"), (6, ""), (7, "bc")]);
    }
}

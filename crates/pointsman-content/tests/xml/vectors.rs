//! The vector files, row by row; each document is also read character by character, and cut in two anywhere.

use std::sync::Arc;

use pointsman_content::{Cause, Limits, XmlPaths};

use super::reading::{Heard, path, read, read_cut_anyhow};

const VALID: &str = include_str!("../../../../testdata/content/xml/valid.txt");
const MALFORMED: &str = include_str!("../../../../testdata/content/xml/malformed.txt");
const LIMITS: &str = include_str!("../../../../testdata/content/xml/limits.txt");
const EVENTS: &str = include_str!("../../../../testdata/content/xml/events.txt");

/// The columns of each row.
fn rows(file: &str) -> impl Iterator<Item = Vec<&str>> {
    let rows = file.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    rows.map(|line| line.split('|').map(str::trim).collect())
}

/// Resolves `\\`, `\n`, `\r`, `\t`, `\s` (a space), `\p` (a vertical bar), `\u{N}`, and `\(N:text)`, which is N times
/// the text.
pub(crate) fn unescaped(text: &str) -> String {
    let mut written = String::new();
    let mut rest = text;
    while let Some((before, escape)) = rest.split_once('\\') {
        written.push_str(before);
        let mut letters = escape.chars();
        match letters.next().expect("an escape") {
            'n' => written.push('\n'),
            'r' => written.push('\r'),
            't' => written.push('\t'),
            's' => written.push(' '),
            'p' => written.push('|'),
            '\\' => written.push('\\'),
            'u' => {
                let (digits, _) = escape[2..].split_once('}').expect("a number");
                let number = u32::from_str_radix(digits, 16).expect("hexadecimal digits");
                written.push(char::from_u32(number).expect("a character"));
                letters = escape[3 + digits.len()..].chars();
            }
            '(' => {
                let (count, text) = escape[1..].split_once(':').expect("a count");
                let (text, behind) = text.split_once(')').expect("a text");
                written.push_str(&unescaped(text).repeat(count.parse().expect("a count")));
                letters = behind.chars();
            }
            other => panic!("what is \\{other}?"),
        }
        rest = letters.as_str();
    }
    written + rest
}

/// A document with `\!` where something is wrong, and where that is.
fn marked(text: &str) -> (String, u64) {
    let (before, behind) = text.split_once("\\!").unwrap_or_else(|| panic!("nothing is marked: {text}"));
    let before = unescaped(before);
    let at = before.len() as u64;
    (before + &unescaped(behind), at)
}

#[test]
fn well_formed_documents_have_these_values() {
    let mut wrong = Vec::new();
    for row in rows(VALID) {
        let [section, what, document, expected @ ..] = row.as_slice() else { panic!("{row:?}") };
        let document = unescaped(document);
        let mut paths: Vec<(&str, Vec<Option<String>>)> = Vec::new();
        for expected in expected {
            let (name, value) = expected.split_once('=').unwrap_or((expected, ""));
            let name = name.trim();
            if paths.last().is_none_or(|(last, _)| *last != name) {
                paths.push((name, Vec::new()));
            }
            if expected.contains('=') {
                paths.last_mut().expect("a path").1.push(Some(unescaped(value.trim())));
            }
        }
        let compiled: Vec<_> = paths.iter().map(|(name, _)| path(name)).collect();
        let outcome = read_cut_anyhow(&compiled, Limits::default(), &document);
        if let Some(fault) = outcome.fault {
            wrong.push(format!("{section}: {what}: {document:?}: {fault}"));
        }
        for ((name, values), id) in paths.iter().zip(0..) {
            let found = outcome.values(id);
            if found != *values {
                wrong.push(format!("{section}: {what}: {name} of {document:?} is {found:?}"));
            }
        }
    }
    nothing(&wrong);
}

#[test]
fn malformed_documents_are_refused_where_they_are_wrong() {
    let mut wrong = Vec::new();
    for row in rows(MALFORMED) {
        let [section, what, document] = row.as_slice() else { panic!("{row:?}") };
        let (document, at) = marked(document);
        let paths = [path("//a"), path("//@a"), path("{n}a/b[1]")];
        let fault = read_cut_anyhow(&paths, Limits::default(), &document).fault;
        if fault.map(|fault| (fault.cause, fault.at)) != Some((Cause::Malformed, at)) {
            wrong.push(format!("{section}: {what}: {document:?}: {at} but {fault:?}"));
        }
    }
    nothing(&wrong);
}

/// What other readers take is refused on purpose: these rows, and no others.
#[test]
fn what_roxmltree_takes_is_known() {
    let takes = |document: &str| roxmltree::Document::parse(document).is_ok();
    let mut taken = Vec::new();
    for row in rows(MALFORMED) {
        let [section, what, document] = row.as_slice() else { panic!("{row:?}") };
        if takes(&marked(document).0) {
            taken.push(format!("{section}: {what}"));
        }
    }
    assert_eq!(taken, TAKEN_BY_ROXMLTREE);
    for row in rows(VALID) {
        let document = unescaped(row[2]);
        assert!(takes(&document), "{row:?}: {:?}", roxmltree::Document::parse(&document).err());
    }
}

const TAKEN_BY_ROXMLTREE: &[&str] = &[
    "[1] document: a byte order mark, which whoever makes text takes off",
    "[23] XMLDecl: without a version",
    "[23] XMLDecl: in capitals",
    "[26] VersionNum: version 2",
    "[26] VersionNum: version 1",
    "[26] VersionNum: a space in it",
    "[26] VersionNum: no version",
    "[26] VersionNum: letters",
    "[32] SDDecl: neither yes nor no",
    "[32] SDDecl: in capitals",
    "[81] EncName: begins with a digit",
    "[81] EncName: empty",
    "[81] EncName: a space in it",
    "[81] EncName: another script",
    "3.1: the default namespace twice",
    "[66] CharRef: a surrogate",
    "[66] CharRef: two surrogates",
    "[66] CharRef: beyond the last character",
    "[16] PI: two question marks behind the name",
    "[17] PITarget: xml",
    "[17] PITarget: xml in other letters",
    "NS 7: a colon in an instruction's name",
    "NS 4: a colon first",
    "NS 4: a colon first in an end tag",
    "NS 4: a colon last in an instruction's name",
    "NS 4: a colon first in an attribute",
    "NS 3: a prefix declared as nothing",
    "NS 3: the prefix xmlns, declared",
];

#[test]
fn limits_hold() {
    let mut wrong = Vec::new();
    for row in rows(LIMITS) {
        let [setting, what, document, expected @ ..] = row.as_slice() else { panic!("{row:?}") };
        let mut limits = Limits::default();
        if let Some((name, value)) = setting.split_once(' ') {
            let limit = match name {
                "depth" => &mut limits.depth_max,
                "attributes" => &mut limits.attributes_max,
                "name" => &mut limits.name_bytes_max,
                "value" => &mut limits.value_bytes_max,
                name => panic!("what is the limit {name}?"),
            };
            *limit = value.parse().expect("a number");
        }
        if expected.is_empty() {
            let (document, at) = marked(document);
            let fault = read_cut_anyhow(&[path("//a/@a")], limits, &document).fault;
            if fault.map(|fault| (fault.cause, fault.at)) != Some((Cause::Limit, at)) {
                wrong.push(format!("{setting}: {what}: {at} but {fault:?}"));
            }
        }
        for expected in expected {
            let (name, value) = expected.split_once('=').expect("a path and a value");
            let value = (value.trim() != "too long").then(|| unescaped(value.trim()));
            let outcome = read_cut_anyhow(&[path(&unescaped(name.trim()))], limits, &unescaped(document));
            if outcome.fault.is_some() || outcome.values(0) != [value] {
                wrong.push(format!("{setting}: {what}: {:?} {:?}", outcome.fault, outcome.values(0)));
            }
        }
    }
    nothing(&wrong);
}

fn nothing(wrong: &[String]) {
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What is heard of a document's first bytes, one more each time, stands in the rows behind the last byte that it takes.
#[test]
fn all_is_told_as_soon_as_it_is_settled() {
    let mut wrong = Vec::new();
    for row in rows(EVENTS) {
        let [what, names, columns @ ..] = row.as_slice() else { panic!("{row:?}") };
        let names: Vec<&str> = names.split_whitespace().collect();
        let paths: Vec<_> = names.iter().map(|name| path(name)).collect();
        let compiled = Arc::new(XmlPaths::new(&paths));
        let (mut so_far, mut expected) = (String::new(), Vec::new());
        for column in columns.chunks(2) {
            let [piece, events] = column else { panic!("{what}: a piece and what is heard of it") };
            for character in unescaped(piece).chars() {
                let found = heard(&compiled, &names, &so_far);
                if found != expected {
                    wrong.push(format!("{what}: behind {so_far:?}: {found:?}"));
                }
                so_far.push(character);
            }
            expected.extend(events.split(',').map(|event| event.trim().to_owned()));
        }
        let found = heard(&compiled, &names, &so_far);
        if found != expected {
            wrong.push(format!("{what}: behind {so_far:?}: {found:?}"));
        }
        if expected.iter().filter(|event| event.ends_with(" ends")).count() != names.len() {
            wrong.push(format!("{what}: not all paths have ended"));
        }
    }
    nothing(&wrong);
}

/// What is heard of the beginning of a document, in the words of the vectors.
fn heard(paths: &Arc<XmlPaths>, names: &[&str], beginning: &str) -> Vec<String> {
    let name = |path: &u32| names[*path as usize];
    let outcome = read(paths, names.len(), Limits::default(), [beginning]);
    let words = outcome.heard.iter().map(|heard| match heard {
        Heard::Begins(path, number) => format!("{} {number}", name(path)),
        Heard::Value(path, number, Some(value)) => {
            format!("{} {number} = {value}", name(path)).trim_end().to_owned()
        }
        Heard::Value(path, number, None) => format!("{} {number} is too long", name(path)),
        Heard::Ends(path) => format!("{} ends", name(path)),
    });
    words.collect()
}

#[test]
fn there_are_vectors_enough() {
    let count: usize = [VALID, MALFORMED, LIMITS, EVENTS].map(|file| rows(file).count()).iter().sum();
    assert!(count >= 170, "{count}");
}

//! Vector files: a line is a case.

use pointsman_content::{Cause, Fault, JsonPath, Limits};

use crate::paths::path;
use crate::reading::{Found, Heard, Told, characters, pieces, read};

/// One line of a vector file.
struct Case<'a> {
    title: String,
    /// As they are written, and what they mean.
    names: Vec<&'a str>,
    paths: Vec<JsonPath>,
    document: String,
    expected: &'a str,
}

fn cases(file: &str) -> Vec<Case<'_>> {
    let lines = file.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let columns: Vec<&str> = line.split(" | ").map(str::trim).collect();
            let &[section, title, paths, document, expected] = &columns[..] else {
                panic!("five columns: {line}")
            };
            assert!(section.starts_with(|c: char| c.is_ascii_digit()), "a section of RFC 8259: {line}");
            let names: Vec<&str> = paths.split_whitespace().collect();
            let paths = names.iter().map(|name| path(&resolved(name))).collect();
            Case {
                title: format!("{section}, {title}"),
                names,
                paths,
                document: resolved(document),
                expected,
            }
        })
        .collect()
}

/// `<U+000A>` is the character, `<3*ab>` is `ababab`; the innermost come first.
fn resolved(text: &str) -> String {
    let mut resolved = text.to_owned();
    while let Some(end) = resolved.find('>') {
        let start = resolved[..end].rfind('<').expect("`<` before `>`");
        let inside = &resolved[start + 1..end];
        let meant = if let Some(digits) = inside.strip_prefix("U+") {
            let number = u32::from_str_radix(digits, 16).expect("hex digits");
            char::from_u32(number).expect("a character").to_string()
        } else {
            let (times, repeated) = inside.split_once('*').expect("`N*text`");
            repeated.repeat(times.parse().expect("a number"))
        };
        resolved.replace_range(start..=end, &meant);
    }
    resolved
}

fn value(found: &Found) -> String {
    match found {
        Found::Text(text) => format!("{text:?}"),
        Found::Number(text) => text.clone(),
        Found::Boolean(is_true) => is_true.to_string(),
        Found::Other => "other".to_owned(),
        Found::TooLong => "too long".to_owned(),
        Found::Undecodable(cause) => format!("unknown ({})", name_of(*cause)),
    }
}

fn fault(fault: Fault) -> String {
    assert!(!fault.what.is_empty() && fault.to_string().starts_with(fault.what));
    format!("{} at {}", name_of(fault.cause), fault.at)
}

fn name_of(cause: Cause) -> &'static str {
    match cause {
        Cause::Malformed => "malformed",
        Cause::Encoding => "encoding",
        Cause::Limit => "limit",
        Cause::DuplicateKey => "duplicate",
        Cause::Ambiguous => "ambiguous",
    }
}

/// The values, and the fault if there is one.
fn values_and_fault(case: &Case<'_>, heard: &Heard) -> String {
    let values = heard.told.iter().filter_map(|(_, told)| match told {
        Told::Value(path, _, found) => Some(format!("{} = {}", case.names[path.0 as usize], value(found))),
        Told::Begins(..) | Told::Ends(..) => None,
    });
    let fault = heard.outcome.expect("an outcome").err().map(fault);
    let said = values.chain(fault).collect::<Vec<_>>().join("; ");
    if said.is_empty() { "nothing".to_owned() } else { said }
}

/// What is told, by the bytes that had been fed.
fn dialogue(case: &Case<'_>, heard: &Heard) -> String {
    let mut steps: Vec<(usize, Vec<String>)> = Vec::new();
    for (fed, told) in &heard.told {
        let name = |path: &pointsman_content::PathId| case.names[path.0 as usize];
        let said = match told {
            Told::Begins(path, 0) => format!("{} begins", name(path)),
            Told::Begins(path, number) => format!("{} begins, {number}", name(path)),
            Told::Value(path, _, found) => format!("{} = {}", name(path), value(found)),
            Told::Ends(path) => format!("{} ends", name(path)),
        };
        match steps.last_mut() {
            Some((before, said_there)) if before == fed => said_there.push(said),
            _ => steps.push((*fed, vec![said])),
        }
    }
    let steps = steps.into_iter().map(|(fed, said)| format!("{fed}: {}", said.join(", ")));
    let fault = heard.outcome.expect("an outcome").err().map(fault);
    steps.chain(fault).collect::<Vec<_>>().join("; ")
}

/// One character at a time it is what is expected; and all at once, in other cuts and with white space behind it, it is
/// the same.
fn check(file: &str, limits: Limits, says: fn(&Case<'_>, &Heard) -> String) -> usize {
    let cases = cases(file);
    for case in &cases {
        let one_by_one = read(&case.paths, limits, characters(&case.document));
        assert_eq!(says(case, &one_by_one), case.expected, "{}: {}", case.title, case.document);
        for lengths in [&[usize::MAX][..], &[2], &[3, 1], &[0, 5], &[17]] {
            let in_pieces = read(&case.paths, limits, pieces(&case.document, lengths));
            assert_eq!(in_pieces.calls(), one_by_one.calls(), "{}, in pieces of {lengths:?}", case.title);
        }
        // What is looked at sixteen bytes at a time needs so many; where the end is no fault, white space is none either.
        let is_cut_short = |fault: Fault| fault.at == case.document.len() as u64;
        if !one_by_one.outcome.expect("an outcome").is_err_and(is_cut_short) {
            let padded = case.document.clone() + &" ".repeat(40);
            let padded = read(&case.paths, limits, [padded.as_str()]);
            assert_eq!(padded.calls(), one_by_one.calls(), "{}, with white space behind it", case.title);
        }
    }
    cases.len()
}

#[test]
fn values() {
    let cases = check(
        include_str!("../../../../testdata/content/json/values.txt"),
        Limits::default(),
        values_and_fault,
    );
    assert!(cases >= 80);
}

#[test]
fn faults() {
    let cases = check(
        include_str!("../../../../testdata/content/json/faults.txt"),
        Limits::default(),
        values_and_fault,
    );
    assert!(cases >= 120);
}

#[test]
fn limits() {
    let limits = Limits { depth_max: 3, value_bytes_max: 5, ..Limits::default() };
    let cases = check(include_str!("../../../../testdata/content/json/limits.txt"), limits, values_and_fault);
    assert!(cases >= 15);
}

#[test]
fn when_it_is_told() {
    let cases =
        check(include_str!("../../../../testdata/content/json/moments.txt"), Limits::default(), dialogue);
    assert!(cases >= 25);
}

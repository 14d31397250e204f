//! What is said about a text is bounded, and so is the work for it: a rule set may be written by a program, or
//! by somebody who means harm. Nothing here takes a time, but without the bounds this would take minutes.

use pointsman_rules::{Colour, Severity, Targets, compile, draw, format, parse};

/// Kept of errors and of warnings, with a line for the others.
const FINDINGS_MAX: usize = 2 * 1_000 + 2;

/// A finding with the piece of its line, its help and its frame.
const DRAWING_BYTES_MAX: usize = 1_000;

/// About this much of each kind.
const BYTES: usize = 1 << 18;

/// Compiles, draws and formats a text; returns the number of findings.
fn check(text: &str) -> usize {
    let targets = Targets::known((0..2_000).map(|number| (format!("pool{number}"), vec!["server"])));
    let findings = match compile(text, &targets) {
        Ok(compiled) => compiled.warnings,
        Err(findings) => findings,
    };
    assert!(findings.len() <= FINDINGS_MAX, "{}", findings.len());
    let drawn = draw(&findings, "bounds.rules", text, Colour::Never);
    assert!(drawn.len() <= findings.len() * DRAWING_BYTES_MAX, "{} of {}", drawn.len(), findings.len());
    if let Err(findings) = format(text) {
        assert!(findings.len() <= FINDINGS_MAX, "{}", findings.len());
    }
    findings.len()
}

/// As many of the pieces as fit, with what stands around them.
fn many(head: &str, piece: impl Fn(usize) -> String, tail: &str) -> String {
    let mut text = head.to_owned();
    let mut number = 0;
    while text.len() < BYTES {
        text.push_str(&piece(number));
        number += 1;
    }
    text + tail
}

#[test]
fn unknown_names_beside_known_ones() {
    assert_eq!(check(&many("", |number| format!("L{number}: {{ goto M{number}; }}\n"), "")), 1_001);
    assert_eq!(check(&many("", |number| format!("{{ routeTo(pol{number}); }}\n"), "")), 1_001);
    assert_eq!(check(&many("", |_| "{ routTo(pool1); }\n".to_owned(), "")), 1_001);
    assert_eq!(check(&many("", |_| "if (pth == \"/\") { discard(); }\n".to_owned(), "")), 1_001);
}

#[test]
fn names_and_settings_that_stand_twice() {
    assert_eq!(check(&many("", |_| "L: { tag(x); }\n".to_owned(), "")), 1_001);
    assert_eq!(check(&many("", |_| "on_unknown skip;\n".to_owned(), "")), 1_001);
}

#[test]
fn fields_in_one_text() {
    let whole = |piece: &str| many("R1: { respond(200, \"\\\"", |_| piece.to_owned(), "\"); }\n");
    assert_eq!(check(&whole("${query[\"k\"]}")), 0);
    assert_eq!(check(&whole("${path}")), 0);
    assert_eq!(check(&whole("\\\\${pth}")), 1_001);
    assert_eq!(check(&whole("${")), 1);
    assert_eq!(check(&many("{ rewritePath(\"a\", \"", |_| "$1".to_owned(), "\"); }")), 1_001);
}

#[test]
fn one_long_line() {
    let list = many("if (url in [", |_| "\"*a\", ".to_owned(), "\"/\"]) { tag(x); }");
    assert_eq!(check(&list), 1_001);
    assert!(check(&many("", |_| "if (path == \"/\") { ".to_owned(), "")) > 64);
    let else_ifs = many("if (path == \"/\") {}", |_| " else if (path == \"/\") {}".to_owned(), "");
    assert_eq!(check(&else_ifs), 1_001);
    assert!(check(&many("if (", |_| "(".to_owned(), "")) > 0);
    assert!(check(&many("if (", |_| "!(path == \"/\") && ".to_owned(), "")) > 0);
    assert!(check(&many("", |_| "% ; ".to_owned(), "")) > 0);
    assert!(check(&many("", |_| "\" ".to_owned(), "")) > 0);
    assert_eq!(check(&many("# ", |_| "\r".to_owned(), "")), 1);
}

#[test]
fn many_lines() {
    let warnings = many("", |_| "if (url == \"*a\") { tag(x); }\n".to_owned(), "");
    assert_eq!(check(&warnings), 1_001);
    let (_, findings) = parse(&warnings);
    let last = findings.last().expect("a finding");
    assert_eq!(last.severity, Severity::Warning);
    assert!(
        last.message.starts_with("and at least ") && last.message.ends_with(" more warnings"),
        "{last:?}"
    );
}

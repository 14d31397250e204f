//! TOML's own syntax: a table with spans, and what could not be read.

use pointsman_rules::{Diagnostic, Lines};
use toml::de::DeTable;

use crate::findings::span;

/// Reads as much of a text as can be read.
pub(crate) fn parse(source: &str) -> (toml::Spanned<DeTable<'_>>, Vec<Diagnostic>) {
    let (table, errors) = DeTable::parse_recoverable(source);
    let mut diagnostics: Vec<Diagnostic> = errors.iter().map(|error| diagnostic(source, error)).collect();
    diagnostics.sort_by_key(|error| error.span.start);
    // The parser goes on inside a torn line, and says more about the same tear.
    let lines = Lines::of(source);
    diagnostics.dedup_by_key(|error| lines.line(error.span.start));
    (table, diagnostics)
}

fn diagnostic(source: &str, error: &toml::de::Error) -> Diagnostic {
    let place = error.span().unwrap_or(source.len()..source.len());
    let written = source.get(place.clone()).unwrap_or_default();
    let (said, expected) = error.message().split_once(", expected ").unwrap_or((error.message(), "nothing"));
    let (message, help) = match (said, written) {
        ("duplicate key", key) => {
            (format!("`{key}` stands here a second time"), "keep one of them".to_owned())
        }
        ("string values must be quoted", "") => ("a value is missing".to_owned(), String::new()),
        ("string values must be quoted", value) => {
            (format!("`{value}` is no value"), "text stands in quotation marks".to_owned())
        }
        (said, _) if expected == "nothing" => (said.to_owned(), String::new()),
        (said, _) => (said.to_owned(), format!("expected {expected}")),
    };
    let error = Diagnostic::error(span(place), message);
    if help.is_empty() { error } else { error.help(help) }
}

//! Warnings about text that means something else than it looks.

use crate::Diagnostic;
use crate::ast::{Literal, LiteralKind, Quoted};
use crate::parser::Relation;

/// `url == "*jpg"` compares with a star.
pub(crate) fn pattern_compared(relation: Relation, literal: &Literal) -> Option<Diagnostic> {
    let LiteralKind::Text(text) = &literal.kind else { return None };
    // `*` is a request target, and `*/*` stands in Accept headers.
    let plain_star = &**text == "*" || text.contains("*/*");
    if matches!(relation, Relation::Ordered(_)) || plain_star || !text.contains('*') {
        return None;
    }
    let meant = if is_regex_like(text) { "matches" } else { "like" };
    Some(
        Diagnostic::warning(literal.span, format!("`\"{text}\"` is compared literally, with its `*`"))
            .help(format!("did you mean `{meant}`?")),
    )
}

/// `strcmp(url, "^/a.*") == 0` was probably meant to be `match`.
pub(crate) fn pattern_in_strcmp(text: &Quoted) -> Option<Diagnostic> {
    let message = format!("`\"{}\"` is compared literally, and looks like a regex", text.text);
    if is_regex_like(&text.text) {
        return Some(Diagnostic::warning(text.span, message).help("did you mean match()?"));
    }
    let literal = Literal { span: text.span, kind: LiteralKind::Text(text.text.clone()) };
    pattern_compared(Relation::Equal, &literal)
}

/// Signs that hardly ever stand in a literal text.
fn is_regex_like(text: &str) -> bool {
    const SIGNS: &[&str] = &[".*", ".+", "\\.", "\\d", "\\w", "[^", "(?", ")$"];
    SIGNS.iter().any(|sign| text.contains(sign))
        || text.starts_with('^')
        || text.ends_with('$')
        || text.contains('[') && text.contains(']')
        || text.contains('(') && text.contains('|')
}

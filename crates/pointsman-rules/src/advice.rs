//! Warnings about text that means something else than it looks.

use std::net::Ipv6Addr;

use crate::Diagnostic;
use crate::ast::{Literal, LiteralKind};
use crate::parser::shorten;

/// `url == "*jpg"` and `strcmp(url, "^/a.*") == 0` compare with a star, a caret and so on. However an equality
/// is spelled, and in a list too, the advice is the same, so that formatting takes none away.
pub(crate) fn pattern_compared(literal: &Literal) -> Option<Diagnostic> {
    let LiteralKind::Text(text) = &literal.kind else { return None };
    let shown = shorten(text);
    if is_regex_like(text) {
        let message = format!("`\"{shown}\"` is compared literally, and looks like a regex");
        return Some(Diagnostic::warning(literal.span, message).help("did you mean `matches`?"));
    }
    // `*` is a request target, and `*/*` stands in Accept headers.
    if &**text == "*" || text.contains("*/*") || !text.contains('*') {
        return None;
    }
    let message = format!("`\"{shown}\"` is compared literally, with its `*`");
    Some(Diagnostic::warning(literal.span, message).help("did you mean `like`?"))
}

/// Signs that hardly ever stand in a literal text.
fn is_regex_like(text: &str) -> bool {
    const SIGNS: &[&str] = &[".*", ".+", "\\.", "\\d", "\\w", "[^", "(?", ")$"];
    SIGNS.iter().any(|sign| text.contains(sign))
        || text.starts_with('^')
        || text.ends_with('$')
        || text.contains('[') && text.contains(']') && !is_address(text)
        || text.contains('(') && text.contains('|')
}

/// Whether it is an address of IPv6 as hosts have it, in brackets: `[::1]`, `[::1]:80`.
fn is_address(text: &str) -> bool {
    let inside = text.strip_prefix('[').and_then(|text| text.split_once(']'));
    inside.is_some_and(|(address, behind)| {
        let port = behind.strip_prefix(':').unwrap_or(behind);
        address.parse::<Ipv6Addr>().is_ok() && port.bytes().all(|byte| byte.is_ascii_digit())
    })
}

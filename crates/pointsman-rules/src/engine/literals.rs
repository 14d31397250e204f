//! Literals that regexes and patterns cannot hold without: which of them each is looked up by.
//!
//! Where thousands of rules say `^/api/v[0-9]+/NAME/[0-9]+$`, all have the beginning in common; each has a name of its own.

use regex_syntax::ParserBuilder;
use regex_syntax::hir::literal::{ExtractKind, Extractor, Seq};
use regex_syntax::hir::{Hir, HirKind, Look};

use super::signs::{Sign, Signs};
use crate::{Op, Over, Test};

/// Literals of more bytes say no more, and more literals are no faster than the regex itself.
const BYTES_MAX: usize = 32;
const LITERALS_MAX: usize = 16;
/// Classes of more members are no literals: `[aA]` is, as `(?i)` makes it, and `[0-9]` is not.
const CLASS_MAX: usize = 3;
/// All choices of one test have so many literals at most; the longest are kept.
const OF_TEST_MAX: usize = 48;

/// Each of them by itself says of a test where it may hold.
pub(super) fn choices(test: &Test) -> Vec<Signs> {
    match &test.op {
        _ if test.over == Over::Count => Vec::new(),
        Op::Like(pattern) => of_pattern(pattern),
        Op::Matches(regex) => of_regex(regex.as_str()),
        _ => Vec::new(),
    }
}

/// Of a `like`: what stands before its first wildcard, behind its last, and between two.
fn of_pattern(pattern: &[u8]) -> Vec<Signs> {
    let parts: Vec<&[u8]> = pattern.split(|byte| matches!(byte, b'*' | b'?')).collect();
    let last = parts.len() - 1;
    let mut choices = Vec::new();
    for (place, part) in parts.iter().enumerate().filter(|(_, part)| !part.is_empty()) {
        let sign = match place {
            0 => Sign::StartsWith((*part).into()),
            place if place == last => Sign::EndsWith((*part).into()),
            _ => Sign::Contains((*part).into()),
        };
        choices.push(vec![sign]);
    }
    if choices.is_empty() {
        choices.push(vec![Sign::Present]);
    }
    hints(choices)
}

/// Of a regex: literals of which each match has one.
fn of_regex(text: &str) -> Vec<Signs> {
    let parser = ParserBuilder::new().utf8(false).unicode(false).dot_matches_new_line(true).build();
    let Ok(hir) = parser.clone().parse(text) else { return Vec::new() };
    let looks = hir.properties();
    let begins = extracted(&hir, ExtractKind::Prefix);
    let ends = extracted(&hir, ExtractKind::Suffix);
    let all = |literals: &[Vec<u8>], sign: fn(Box<[u8]>) -> Sign| -> Vec<Sign> {
        literals.iter().map(|literal| sign(literal.as_slice().into())).collect()
    };
    let mut choices = Vec::new();
    if looks.look_set_prefix().contains(Look::Start) {
        choices.extend(begins.as_deref().map(|found| all(found, Sign::StartsWith)));
    }
    if looks.look_set_suffix().contains(Look::End) {
        choices.extend(ends.as_deref().map(|found| all(found, Sign::EndsWith)));
    }
    let inside = within(&hir).into_iter().chain(begins).chain(ends);
    choices.extend(inside.map(|found| all(&found, Sign::Contains)));
    hints(choices)
}

/// The longest of them, each once.
fn hints(mut choices: Vec<Vec<Sign>>) -> Vec<Signs> {
    choices.sort_by_key(|list| (!list.iter().all(Sign::is_at_an_end), std::cmp::Reverse(shortest(list))));
    let mut left = OF_TEST_MAX;
    let mut kept: Vec<Signs> = Vec::new();
    for mut list in choices {
        list.sort_unstable_by(|one, other| one.text().cmp(other.text()));
        list.dedup();
        if list.len() <= left && kept.iter().all(|signs| signs.list != list) {
            left -= list.len();
            kept.push(Signs { list, is_exact: false, is_numeric: false });
        }
    }
    kept
}

/// How long its shortest literal is.
pub(super) fn shortest(list: &[Sign]) -> usize {
    list.iter().map(|sign| sign.text().len()).min().unwrap_or_default()
}

/// What each match has somewhere, in several ways.
fn within(hir: &Hir) -> Vec<Vec<Vec<u8>>> {
    let mut parts = Vec::new();
    flatten(hir, &mut parts);
    let mut found = windows(&parts);
    for part in parts {
        match part.kind() {
            HirKind::Repetition(repetition) if repetition.min > 0 => found.extend(within(&repetition.sub)),
            HirKind::Alternation(branches) => found.extend(of_branches(branches)),
            _ => {}
        }
    }
    found
}

/// The longest of each branch, all together.
fn of_branches(branches: &[Hir]) -> Option<Vec<Vec<u8>>> {
    let longest = |branch| within(branch).into_iter().max_by_key(|all| all.iter().map(Vec::len).min());
    let mut all = Vec::new();
    for branch in branches {
        all.extend(longest(branch)?);
        if all.len() > LITERALS_MAX {
            return None;
        }
    }
    Some(all)
}

/// What follows one after the other in each match.
fn flatten<'h>(hir: &'h Hir, parts: &mut Vec<&'h Hir>) {
    match hir.kind() {
        HirKind::Capture(capture) => flatten(&capture.sub, parts),
        HirKind::Concat(inner) => inner.iter().for_each(|part| flatten(part, parts)),
        _ => parts.push(hir),
    }
}

/// The literals of neighbouring parts, as far as they go, and then of those behind them.
fn windows(parts: &[&Hir]) -> Vec<Vec<Vec<u8>>> {
    let extractor = extractor(ExtractKind::Prefix);
    let mut found = Vec::new();
    let mut first = 0;
    while first < parts.len() {
        let mut window = Seq::singleton(regex_syntax::hir::literal::Literal::exact(Vec::new()));
        let mut next = first;
        while let Some(part) = parts.get(next) {
            let mut seq = extractor.extract(part);
            let fits = window.max_cross_len(&seq).is_some_and(|count| count <= LITERALS_MAX);
            if !fits {
                break;
            }
            window.cross_forward(&mut seq);
            window.keep_first_bytes(BYTES_MAX);
            next += 1;
            if window.is_inexact() {
                break;
            }
        }
        found.extend(texts(&window));
        first = next.max(first + 1);
    }
    found
}

/// What each match begins or ends with.
fn extracted(hir: &Hir, kind: ExtractKind) -> Option<Vec<Vec<u8>>> {
    texts(&extractor(kind).extract(hir))
}

fn extractor(kind: ExtractKind) -> Extractor {
    let mut extractor = Extractor::new();
    extractor.kind(kind).limit_class(CLASS_MAX).limit_literal_len(BYTES_MAX).limit_total(LITERALS_MAX);
    extractor
}

/// If these are few and none is empty.
fn texts(found: &Seq) -> Option<Vec<Vec<u8>>> {
    let found: Vec<_> = found.literals()?.iter().map(|literal| literal.as_bytes().to_vec()).collect();
    (!found.iter().any(Vec::is_empty)).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All choices of a regex, in one text: `^`, `$` and `~` say where the literals stand.
    #[track_caller]
    fn check(regex: &str, expected: &str) {
        assert_eq!(shown(&of_regex(regex)), expected, "{regex}");
    }

    fn shown(choices: &[Signs]) -> String {
        let sign = |sign: &Sign| {
            let text = String::from_utf8_lossy(sign.text());
            match sign {
                Sign::StartsWith(_) => format!("^{text}"),
                Sign::EndsWith(_) => format!("{text}$"),
                Sign::Contains(_) => format!("~{text}"),
                other => format!("{other:?}"),
            }
        };
        let choice = |signs: &Signs| signs.list.iter().map(sign).collect::<Vec<_>>().join(" ");
        choices.iter().map(choice).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn regexes_have_literals() {
        check("xml", "~xml");
        check("^/api/", "^/api/, ~/api/");
        check("^/(a|b)x", "^/ax ^/bx, ~/ax ~/bx");
        check("\\.(gif|png)$", ".gif$ .png$, ~.gif ~.png, ~gif ~png");
        check("[0-9]+/long/[a-z]*", "~/long/");
        check("(?i)aB", "~AB ~Ab ~aB ~ab");
        check("[0-9]+", "");
        check("a?", "");
        check("", "");
    }

    #[test]
    fn what_stands_inside_is_found_too() {
        check("^/api/v[0-9]+/users/[0-9]+$", "^/api/v, ~/users/, ~/api/v");
        check("^(/api/(v[0-9]+)/users)$", "^/api/v, /users$, ~/api/v, ~/users");
        check("/users/.*\\.(gif|png)$", ".gif$ .png$, ~/users/, ~.gif ~.png, ~gif ~png");
        check("^/x(/[0-9]+/inner)+$", "/inner$, ^/x/, ~/inner, ~/x/, ~/");
        check("[0-9](a/[0-9]+/left|[0-9]+/right)", "~/left ~/right");
        check("[0-9](a/[0-9]+/left|[0-9]+)", "");
        check("(?m)^a$", "~a");
        check("(a|)b", "~ab ~b");
    }

    #[test]
    fn what_has_too_many_literals_has_those_of_its_parts() {
        let choices = shown(&of_regex("[ab][ab][ab][ab]-[ab]/x"));
        assert!(choices.starts_with("~aaa-a/x ~aaa-b/x "), "{choices}");
        assert!(choices.contains(", ~aaaa- ~aaab- "), "{choices}");
        assert!(choices.ends_with(", ~a/x ~b/x"), "{choices}");
    }

    #[test]
    fn patterns_have_parts() {
        for (pattern, expected) in [
            ("/shop/*.gif", "^/shop/, .gif$"),
            ("/a/*.gif", ".gif$, ^/a/"),
            ("a*long?b", "^a, b$, ~long"),
            ("*?*", "Present"),
        ] {
            assert_eq!(shown(&of_pattern(pattern.as_bytes())), expected, "{pattern}");
        }
    }

    #[test]
    fn long_literals_and_many_are_cut() {
        let long = "x".repeat(1000);
        assert_eq!(shortest(&of_regex(&long)[0].list), BYTES_MAX);
        let many: Vec<String> = (0..100).map(|number| format!("[0-9]+/part{number}/")).collect();
        let choices = of_regex(&many.concat());
        assert_eq!(choices.iter().map(|signs| signs.list.len()).sum::<usize>(), OF_TEST_MAX);
    }
}

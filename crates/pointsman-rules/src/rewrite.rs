//! `rewritePath`: a path with every match of a regex replaced, if what comes out is still a path.

use std::fmt;

use regex::bytes::{Captures, Regex};

use crate::template::is_percent_code;

/// Longest path that a rewrite may produce: a pattern that matches everywhere multiplies.
pub const REWRITTEN_PATH_BYTES_MAX: usize = 65_536;

/// A rewrite came out as something that may not be forwarded as a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadPath {
    /// It does not start with `/`.
    NotAbsolute,
    /// It holds a byte that may not stand in the path of a request target.
    ForbiddenByte(u8),
    /// It holds `%00`, or `%` without two hex digits after it.
    BadEscape,
    /// It holds a `.` or `..` segment, by which it would leave the place it names.
    DotSegment,
    /// It is longer than [`REWRITTEN_PATH_BYTES_MAX`].
    TooLong,
}

impl fmt::Display for BadPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadPath::NotAbsolute => f.write_str("the rewritten path does not start with `/`"),
            BadPath::ForbiddenByte(byte) => write!(f, "the rewritten path holds the byte {byte:#04x}"),
            BadPath::BadEscape => f.write_str("the rewritten path holds a bad percent-code"),
            BadPath::DotSegment => f.write_str("the rewritten path holds a dot segment"),
            BadPath::TooLong => write!(f, "the rewritten path exceeds {REWRITTEN_PATH_BYTES_MAX} bytes"),
        }
    }
}

impl std::error::Error for BadPath {}

/// Appends `path` to `out` with every match of `regex` replaced: the action of
/// [`crate::Effect::RewritePath`]. In `replacement`, `$1` and `${name}` stand for what a group
/// matched and `$$` for a dollar sign.
///
/// # Errors
/// [`BadPath`] when the result may not be forwarded; `out` is then as it was.
pub fn rewrite_path(
    regex: &Regex,
    replacement: &[u8],
    path: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), BadPath> {
    let start = out.len();
    let result = replace_all(regex, replacement, path, out).and_then(|()| check_path(&out[start..]));
    if result.is_err() {
        out.truncate(start);
    }
    result
}

fn replace_all(regex: &Regex, replacement: &[u8], path: &[u8], out: &mut Vec<u8>) -> Result<(), BadPath> {
    let start = out.len();
    let mut copied = 0;
    for captures in regex.captures_iter(path) {
        let Some(whole) = captures.get(0) else {
            continue;
        };
        out.extend_from_slice(&path[copied..whole.start()]);
        expand(replacement, &captures, out);
        copied = whole.end();
        if out.len() - start > REWRITTEN_PATH_BYTES_MAX {
            return Err(BadPath::TooLong);
        }
    }
    out.extend_from_slice(&path[copied..]);
    if out.len() - start > REWRITTEN_PATH_BYTES_MAX {
        return Err(BadPath::TooLong);
    }
    Ok(())
}

/// The digits after a dollar sign end the group's number, so that `$1x` is group 1 and an `x`. A
/// group that did not take part stands for nothing.
fn expand(replacement: &[u8], captures: &Captures<'_>, out: &mut Vec<u8>) {
    let mut rest = replacement;
    while let Some(dollar) = memchr::memchr(b'$', rest) {
        out.extend_from_slice(&rest[..dollar]);
        let after = &rest[dollar + 1..];
        let (reference, length) = reference(after);
        match reference {
            Reference::Number(number) => {
                out.extend_from_slice(captures.get(number).map_or(b"", |group| group.as_bytes()));
            }
            Reference::Name(name) => {
                out.extend_from_slice(captures.name(name).map_or(b"", |group| group.as_bytes()));
            }
            Reference::None => out.push(b'$'),
        }
        rest = &after[length..];
    }
    out.extend_from_slice(rest);
}

pub(crate) enum Reference<'t> {
    Number(usize),
    Name(&'t str),
    None,
}

/// What a dollar sign before `text` refers to, and how many bytes of `text` say so.
pub(crate) fn reference(text: &[u8]) -> (Reference<'_>, usize) {
    if text.starts_with(b"$") {
        return (Reference::None, 1);
    }
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if let Some(number) = number(&text[..digits]) {
        return (Reference::Number(number), digits);
    }
    let name = text
        .strip_prefix(b"{")
        .and_then(|text| memchr::memchr(b'}', text).map(|end| &text[..end]))
        .and_then(|name| std::str::from_utf8(name).ok());
    match name {
        Some(name) => {
            let reference = number(name.as_bytes()).map_or(Reference::Name(name), Reference::Number);
            (reference, name.len() + 2)
        }
        None => (Reference::None, 0),
    }
}

fn number(digits: &[u8]) -> Option<usize> {
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}

fn check_path(path: &[u8]) -> Result<(), BadPath> {
    if !path.starts_with(b"/") {
        return Err(BadPath::NotAbsolute);
    }
    for (position, &byte) in path.iter().enumerate() {
        if !byte.is_ascii_graphic() || matches!(byte, b'#' | b'?' | b'\\') {
            return Err(BadPath::ForbiddenByte(byte));
        }
        let rest = &path[position..];
        if byte == b'%' && (!is_percent_code(rest) || rest.starts_with(b"%00")) {
            return Err(BadPath::BadEscape);
        }
    }
    if path.split(|byte| *byte == b'/').any(is_dot_segment) {
        return Err(BadPath::DotSegment);
    }
    Ok(())
}

/// `.` or `..`, now or after a server has decoded it once too often.
fn is_dot_segment(segment: &[u8]) -> bool {
    let mut rest = segment;
    let mut dots = 0;
    while !rest.is_empty() {
        let Some(after) = strip_dot(rest) else {
            return false;
        };
        rest = after;
        dots += 1;
    }
    dots == 1 || dots == 2
}

/// A dot is `.`, `%2E`, `%252E` and so on.
fn strip_dot(text: &[u8]) -> Option<&[u8]> {
    let Some(mut code) = text.strip_prefix(b"%") else {
        return text.strip_prefix(b".");
    };
    while let Some(rest) = code.strip_prefix(b"25") {
        code = rest;
    }
    code.strip_prefix(b"2E").or_else(|| code.strip_prefix(b"2e"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use regex::bytes::Regex;

    use super::{BadPath, check_path, rewrite_path};

    fn check(regex: &str, replacement: &str, path: &str, expected: Result<&str, BadPath>) {
        let regex = Regex::new(regex).expect("a regex");
        let mut out = b"kept".to_vec();
        let result = rewrite_path(&regex, replacement.as_bytes(), path.as_bytes(), &mut out);
        let written = std::str::from_utf8(&out).expect("text");
        let written = written.strip_prefix("kept").expect("what stood there before");
        assert_eq!(result.map(|()| written), expected, "{regex} {replacement} {path}");
        assert!(result.is_ok() || written.is_empty());
    }

    #[test]
    fn every_match_is_replaced() {
        check("^/old", "/new", "/old/x", Ok("/new/x"));
        check("^/old", "/new", "/other", Ok("/other"));
        check("a", "bb", "/a/a", Ok("/bb/bb"));
        check("x*", "-", "/ab", Err(BadPath::NotAbsolute));
    }

    #[test]
    fn groups_stand_for_what_they_matched() {
        check("^/v(\\d+)/(.*)$", "/$2/$1", "/v2/a/b", Ok("/a/b/2"));
        check("^/v(?P<n>\\d+)", "/api${n}x$1x${1}0", "/v2/a", Ok("/api2x2x20/a"));
        check("^/a", "/$$1$", "/a", Ok("/$1$"));
        check("^/(a)|(b)", "/[$2$9${no}]", "/a", Ok("/[]"));
        check("^/a", "/${", "/a", Ok("/${"));
    }

    #[test]
    fn what_is_no_path_is_refused() {
        check("^/a", "", "/a", Err(BadPath::NotAbsolute));
        check("^/a", "http://x/", "/a", Err(BadPath::NotAbsolute));
        check("_", "?", "/a_b", Err(BadPath::ForbiddenByte(b'?')));
        check("_", " ", "/a_b", Err(BadPath::ForbiddenByte(b' ')));
        check("_", "\r\n", "/a_b", Err(BadPath::ForbiddenByte(b'\r')));
        check("_", "\u{e9}", "/a_b", Err(BadPath::ForbiddenByte(0xc3)));
        check("2F", "", "/a%2Fxb", Err(BadPath::BadEscape));
        check("_", "%", "/_00", Err(BadPath::BadEscape));
        check("x", "", "/.x./etc", Err(BadPath::DotSegment));
        check("x", "", "/%252x52ex./etc", Err(BadPath::DotSegment));
        check("x", "", "/x.../x.well", Ok("/.../.well"));
        let long = "a".repeat(3000);
        check("a", &long, &format!("/{long}"), Err(BadPath::TooLong));
    }

    proptest! {
        #[test]
        fn what_comes_out_is_a_path(replacement in "[$1a./%? ]{0,6}", path in "/[ab./%25e]{0,12}") {
            let regex = Regex::new("(a)|b").expect("a regex");
            let mut out = Vec::new();
            match rewrite_path(&regex, replacement.as_bytes(), path.as_bytes(), &mut out) {
                Ok(()) => prop_assert_eq!(check_path(&out), Ok(())),
                Err(_) => prop_assert!(out.is_empty()),
            }
        }
    }
}

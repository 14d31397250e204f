//! Paths: the normal form is stable, hides no dot segment, and is what the RFC's own algorithm makes.

use pointsman_view::{EncodedSlash, PathOptions, normal_form};

pub(crate) const TOKENS: &[&str] = &[
    "/", "//", ".", "..", "/./", "/../", "%2e", "%2E", "%252e", "%25", "%2f", "%5c", "%5C", "%00", "%c0%ae",
    "%c0%af", ";", "?", "#", "\\", "%", "%4", "%zz", "%41", "%7e", "*", " ", "\0", "é", "a",
];

/// Panics where a property does not hold.
///
/// # Panics
/// With the property.
pub fn check(input: &[u8]) {
    for encoded_slash in [EncodedSlash::Keep, EncodedSlash::Refuse] {
        for merge_slashes in [false, true] {
            one(input, PathOptions { encoded_slash, merge_slashes });
        }
    }
}

fn one(input: &[u8], options: PathOptions) {
    // What is in there must not matter.
    let mut scratch = b"/left/over?x".to_vec();
    let Ok(normal) = normal_form(input, options, &mut scratch) else { return };
    assert_eq!(normal.is_rewritten(), normal.target() != input);
    let mut second = Vec::new();
    let again = normal_form(normal.target(), options, &mut second).expect("a normal form has one");
    assert_eq!(again.target(), normal.target(), "the normal form of a normal form is itself");
    assert!(!again.is_rewritten());
    let path = normal.path();
    if input == b"*" {
        return;
    }
    let (raw, query) = match input.iter().position(|byte| *byte == b'?') {
        Some(at) => (&input[..at], Some(&input[at + 1..])),
        None => (input, None),
    };
    assert_eq!(normal.query(), query, "the query is left as it is");
    assert!(path.starts_with(b"/"));
    let raw = if raw.is_empty() { b"/" } else { raw };
    assert_eq!(path, slow(raw, options.merge_slashes), "as RFC 3986 section 5.2.4 says");
    assert!(path.iter().all(|byte| byte.is_ascii_graphic() && !b"#?\\".contains(byte)));
    if options.encoded_slash == EncodedSlash::Refuse {
        assert!(!path.windows(3).any(|code| code == b"%2F" || code == b"%5C"));
    }
    for rounds in 0..4 {
        let decoded = (0..rounds).fold(path.to_vec(), |path, _| decoded(&path, |_| true));
        let mut segments = decoded.split(|byte| matches!(byte, b'/' | b'\\'));
        assert!(
            !segments.any(|segment| matches!(segment, b"." | b"..")),
            "a dot segment after {rounds} rounds"
        );
    }
}

/// Decodes what may be decoded, once, and removes dot segments as the RFC tells it, piece by piece.
fn slow(raw: &[u8], merge_slashes: bool) -> Vec<u8> {
    let is_unreserved = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let mut input = decoded(raw, is_unreserved);
    if merge_slashes {
        input.dedup_by(|byte, before| *byte == b'/' && *before == b'/');
    }
    let mut output: Vec<u8> = Vec::new();
    while !input.is_empty() {
        if input.starts_with(b"/./") {
            input.drain(..2);
        } else if input == b"/." {
            input.truncate(1);
        } else if input.starts_with(b"/../") || input == b"/.." {
            let rest = input.split_off(input.len().min(4));
            input = [b"/", &rest[..]].concat();
            output.truncate(output.iter().rposition(|byte| *byte == b'/').unwrap_or(0));
        } else {
            let end = input[1..].iter().position(|byte| *byte == b'/').map_or(input.len(), |at| at + 1);
            output.extend(input.drain(..end));
        }
    }
    output
}

/// One round: the codes whose byte `may` stand for itself are decoded, the others get capitals.
fn decoded(text: &[u8], may: impl Fn(u8) -> bool) -> Vec<u8> {
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        let digits = text.get(at + 1..at + 3).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        let code = digits.filter(|_| *byte == b'%').and_then(|digits| std::str::from_utf8(digits).ok());
        match code.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(meant) if may(meant) => out.push(meant),
            Some(_) => out.extend(text[at..at + 3].to_ascii_uppercase()),
            None => out.push(*byte),
        }
        at += if code.is_some() { 3 } else { 1 };
    }
    out
}

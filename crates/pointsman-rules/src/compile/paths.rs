//! Texts that no path can be: rules see paths in their normal form only.

use std::ops::Range;

use crate::ast::TextOperator;
use crate::parser::shorten;
use crate::template::is_percent_code;
use crate::{Field, Span};

use super::Compiler;
use super::conditions::Left;

/// What a path is said to be.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// All of it, or whole segments of it.
    Whole,
    /// How its text begins.
    Start,
}

impl Part {
    /// Nothing for operators that speak of another part.
    pub(super) fn of(operator: TextOperator) -> Option<Part> {
        match operator {
            TextOperator::Under => Some(Part::Whole),
            TextOperator::StartsWith => Some(Part::Start),
            TextOperator::Contains | TextOperator::EndsWith | TextOperator::Like | TextOperator::Matches => {
                None
            }
        }
    }
}

impl Compiler<'_> {
    /// Warns where `path` is compared with what is no path in its normal form.
    pub(super) fn check_path(&mut self, left: &Left<'_>, at: Span, text: &[u8], part: Part) {
        if left.field != Field::Path {
            return;
        }
        let shown = |range: Range<usize>| shorten(&String::from_utf8_lossy(&text[range]));
        let (message, help) = match fault(text, part, left.operand.fold_case) {
            None => return,
            Some(Fault::NoSlash) => {
                let text = shown(0..text.len());
                (format!("a path begins with `/`, and never with `{text}`"), format!("write `\"/{text}\"`"))
            }
            Some(Fault::Ended(sign)) => {
                let sign = char::from(sign);
                let help = "the query is a field of its own, and `url` is the target as it was received";
                (format!("a path has no `{sign}` in it"), help.to_owned())
            }
            Some(Fault::LowerHex(at)) => {
                let code = shown(at..at + 3);
                let help = format!("write `{}`", code.to_ascii_uppercase());
                (format!("the digits of a percent code are in upper case in a path, not `{code}`"), help)
            }
            Some(Fault::Unreserved(at, meant)) => {
                let help = format!("write `{}`", char::from(meant));
                (format!("`{}` is decoded in a path", shown(at..at + 3)), help)
            }
            Some(Fault::DotSegment) => {
                let help = "they are resolved before a rule is asked".to_owned();
                ("a path has no segments `.` and `..`".to_owned(), help)
            }
        };
        self.warn(at, message, help);
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Fault {
    NoSlash,
    /// `?` or `#`
    Ended(u8),
    LowerHex(usize),
    Unreserved(usize, u8),
    DotSegment,
}

/// Why no path is like that, whatever a client sends.
fn fault(text: &[u8], part: Part, is_folded: bool) -> Option<Fault> {
    if text == b"*" || text.is_empty() && part == Part::Start {
        return None;
    }
    if !text.starts_with(b"/") {
        return Some(Fault::NoSlash);
    }
    if let Some(sign) = text.iter().find(|byte| matches!(byte, b'?' | b'#')) {
        return Some(Fault::Ended(*sign));
    }
    let codes = (0..text.len()).filter(|at| is_percent_code(&text[*at..]));
    let wrong_code = codes.into_iter().find_map(|at| {
        let meant = decoded(text[at + 1], text[at + 2]);
        if meant.is_ascii_alphanumeric() || b"-._~".contains(&meant) {
            return Some(Fault::Unreserved(at, meant));
        }
        let is_lower = text[at + 1..at + 3].iter().any(u8::is_ascii_lowercase);
        (is_lower && !is_folded).then_some(Fault::LowerHex(at))
    });
    wrong_code.or_else(|| {
        let mut segments: Vec<_> = text.split(|byte| *byte == b'/').collect();
        if part == Part::Start {
            // The last segment may go on.
            segments.pop();
        }
        let is_dots = |segment: &&[u8]| matches!(*segment, b"." | b"..");
        segments.iter().any(is_dots).then_some(Fault::DotSegment)
    })
}

/// The byte that two hex digits stand for.
fn decoded(high: u8, low: u8) -> u8 {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => byte - b'0',
        letter => (letter | 0x20) - b'a' + 10,
    };
    digit(high) << 4 | digit(low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_path_is() {
        for (text, whole, start) in [
            ("/", None, None),
            ("*", None, None),
            ("/a/.well-known/..a", None, None),
            ("/caf%C3%A9/100%25", None, None),
            ("/a%", None, None),
            ("", Some(Fault::NoSlash), None),
            ("x", Some(Fault::NoSlash), Some(Fault::NoSlash)),
            ("/a?b", Some(Fault::Ended(b'?')), Some(Fault::Ended(b'?'))),
            ("/a#", Some(Fault::Ended(b'#')), Some(Fault::Ended(b'#'))),
            ("/caf%c3", Some(Fault::LowerHex(4)), Some(Fault::LowerHex(4))),
            ("/%7E", Some(Fault::Unreserved(1, b'~')), Some(Fault::Unreserved(1, b'~'))),
            ("/a/./b", Some(Fault::DotSegment), Some(Fault::DotSegment)),
            ("/a/../", Some(Fault::DotSegment), Some(Fault::DotSegment)),
            ("/a/..", Some(Fault::DotSegment), None),
        ] {
            assert_eq!(fault(text.as_bytes(), Part::Whole, false), whole, "{text}");
            assert_eq!(fault(text.as_bytes(), Part::Start, false), start, "{text}");
        }
        assert_eq!(fault(b"/caf%c3", Part::Whole, true), None, "`lower(path)` has lower-case digits");
    }
}

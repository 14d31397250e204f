//! Names with and without a prefix (Namespaces in XML 1.0, productions 4 and 7; XML 1.0, productions 4 and 4a).

use super::scan;
use crate::Cause;

/// A name as far as it has been read: its bytes are written behind others, which it does not move.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Name {
    /// Bytes of the text before it.
    pub(super) at: u64,
    /// Where it begins in what it is written to.
    pub(super) start: usize,
    /// Bytes before its colon, or 0.
    pub(super) prefix_bytes: usize,
}

/// What is wrong with a name, and where in the piece.
pub(super) type NameFault = (Cause, usize, &'static str);

pub(super) const TOO_LONG: &str = "a name that is too long";
const COLON: &str = "a colon that does not stand between two names";
const NO_START: &str = "a character that no name begins with";

impl Name {
    /// Its prefix.
    pub(super) fn prefix<'a>(&self, name: &'a [u8]) -> &'a [u8] {
        name.get(..self.prefix_bytes).unwrap_or_default()
    }

    /// What stands behind its prefix, if it has one.
    pub(super) fn local<'a>(&self, name: &'a [u8]) -> &'a [u8] {
        let from = if self.prefix_bytes == 0 { 0 } else { self.prefix_bytes + 1 };
        name.get(from..).unwrap_or_default()
    }

    /// Writes what there is of it from `at` on. Returns where it ends, or nothing where it may go on behind the piece.
    pub(super) fn go_on(
        &mut self,
        written: &mut Vec<u8>,
        text: &str,
        at: usize,
        bytes_max: usize,
    ) -> Result<Option<usize>, NameFault> {
        let mut end = at;
        for character in text.get(at..).unwrap_or_default().chars() {
            let bytes = written.len() - self.start;
            let is_first = bytes == 0 || (self.prefix_bytes != 0 && bytes == self.prefix_bytes + 1);
            if character == ':' {
                if is_first || self.prefix_bytes != 0 {
                    return Err((Cause::Malformed, end, COLON));
                }
                self.prefix_bytes = bytes;
            } else if !is_in_name(character) || (is_first && !is_name_start(character)) {
                return match (is_first, bytes) {
                    (false, _) => Ok(Some(end)),
                    (true, 0) => Err((Cause::Malformed, end, NO_START)),
                    (true, _) => Err((Cause::Malformed, end, COLON)),
                };
            }
            if bytes + character.len_utf8() > bytes_max {
                return Err((Cause::Limit, end, TOO_LONG));
            }
            written.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            end += character.len_utf8();
        }
        Ok(None)
    }
}

/// Where a name ends that begins at `at`, and its bytes before the colon, if it is an easy one: in ASCII, within the
/// limit, and what ends it is there.
#[inline]
pub(super) fn easy(bytes: &[u8], at: usize, bytes_max: usize) -> Option<(usize, usize)> {
    let start = |at: usize| bytes.get(at).is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_');
    if !start(at) {
        return None;
    }
    let mut end = scan::name(bytes, at);
    let mut prefix_bytes = 0;
    if bytes.get(end) == Some(&b':') {
        if !start(end + 1) {
            return None;
        }
        prefix_bytes = end - at;
        end = scan::name(bytes, end + 1);
    }
    let is_over = bytes.get(end).is_some_and(|byte| byte.is_ascii() && *byte != b':');
    (is_over && end - at <= bytes_max).then_some((end, prefix_bytes))
}

/// [4] NameStartChar, without the colon.
fn is_name_start(character: char) -> bool {
    matches!(character, 'a'..='z' | 'A'..='Z' | '_'
        | '\u{c0}'..='\u{d6}' | '\u{d8}'..='\u{f6}' | '\u{f8}'..='\u{2ff}' | '\u{370}'..='\u{37d}'
        | '\u{37f}'..='\u{1fff}' | '\u{200c}'..='\u{200d}' | '\u{2070}'..='\u{218f}' | '\u{2c00}'..='\u{2fef}'
        | '\u{3001}'..='\u{d7ff}' | '\u{f900}'..='\u{fdcf}' | '\u{fdf0}'..='\u{fffd}' | '\u{10000}'..='\u{effff}')
}

/// [4a] NameChar, without the colon.
fn is_in_name(character: char) -> bool {
    is_name_start(character)
        || matches!(character, '-' | '.' | '0'..='9' | '\u{b7}' | '\u{300}'..='\u{36f}' | '\u{203f}'..='\u{2040}')
}

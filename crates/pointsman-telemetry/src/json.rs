//! JSON strings and numbers, written into a byte buffer.

/// A string of bytes that a client may have chosen.
///
/// Bytes that are not UTF-8 are written as Latin-1 (`\u00e9` for the byte 0xE9), so that nothing is lost that
/// a reader could need. Control characters are escaped, those above ASCII and those that turn the direction
/// of text included: a line must not act on the terminal that shows it.
#[inline]
pub(crate) fn push_string(out: &mut Vec<u8>, bytes: &[u8]) {
    let (plain, rest) = bytes.split_at(plain_bytes(bytes));
    out.push(b'"');
    out.extend_from_slice(plain);
    if !rest.is_empty() {
        push_escaped(out, rest);
    }
    out.push(b'"');
}

/// The same, for what is written often.
pub(crate) fn quoted(text: &str) -> Box<[u8]> {
    let mut out = Vec::new();
    push_string(&mut out, text.as_bytes());
    out.into()
}

/// A decimal number.
pub(crate) fn push_number(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Bytes at the start that stand for themselves: visible ASCII and blanks, without quotes and backslashes.
fn plain_bytes(bytes: &[u8]) -> usize {
    let (eights, rest) = bytes.as_chunks();
    for (index, eight) in eights.iter().enumerate() {
        let found = other_than_plain(u64::from_le_bytes(*eight));
        if found != 0 {
            return index * 8 + found.trailing_zeros() as usize / 8;
        }
    }
    let add = |sum, byte: &u8| sum << 8 | u64::from(*byte);
    let found = other_than_plain(rest.iter().rev().fold(0, add));
    // Behind the end there are zeros, which are not plain; there is room for one at least.
    bytes.len() - rest.len() + found.trailing_zeros() as usize / 8
}

/// A one in each of eight bytes.
const EACH: u64 = u64::from_le_bytes([1; 8]);
/// The highest bit of each.
const HIGHEST: u64 = EACH * 0x80;

/// Sets the highest bit of the first of eight bytes that is not plain, and perhaps of some behind it, to which a
/// borrow went. The first is the lowest.
fn other_than_plain(eight: u64) -> u64 {
    let equal = |byte: u8| (eight ^ (EACH * u64::from(byte))).wrapping_sub(EACH);
    let less_than_blank = eight.wrapping_sub(EACH * u64::from(b' '));
    // Where a byte has the highest bit itself, what the others say of it does not matter.
    (eight | less_than_blank | equal(b'"') | equal(b'\\') | equal(0x7f)) & HIGHEST
}

#[cold]
fn push_escaped(out: &mut Vec<u8>, bytes: &[u8]) {
    for chunk in bytes.utf8_chunks() {
        push_text(out, chunk.valid());
        for &byte in chunk.invalid() {
            push_escape(out, u32::from(byte));
        }
    }
}

fn push_text(out: &mut Vec<u8>, text: &str) {
    let mut written = 0;
    for (at, character) in text.char_indices() {
        if !is_escaped(character) {
            continue;
        }
        out.extend_from_slice(&text.as_bytes()[written..at]);
        written = at + character.len_utf8();
        match character {
            '"' => out.extend_from_slice(b"\\\""),
            '\\' => out.extend_from_slice(b"\\\\"),
            '\n' => out.extend_from_slice(b"\\n"),
            '\r' => out.extend_from_slice(b"\\r"),
            '\t' => out.extend_from_slice(b"\\t"),
            other => push_escape(out, u32::from(other)),
        }
    }
    out.extend_from_slice(&text.as_bytes()[written..]);
}

fn is_escaped(character: char) -> bool {
    match character {
        '"' | '\\' => true,
        ' '..='~' => false,
        '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        other => other.is_control(),
    }
}

/// `\uXXXX`; all that is escaped has a number that fits.
fn push_escape(out: &mut Vec<u8>, number: u32) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.extend_from_slice(b"\\u");
    for shift in [12, 8, 4, 0] {
        out.push(DIGITS[(number >> shift & 15) as usize]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(input: &[u8], expected: &str) {
        let mut out = Vec::new();
        push_string(&mut out, input);
        let written = String::from_utf8(out).expect("escaped text is UTF-8");
        assert_eq!(written, expected);
        let read: String = serde_json::from_str(&written).expect("escaped text is JSON");
        if let Ok(text) = std::str::from_utf8(input) {
            assert_eq!(read, text);
        }
    }

    #[test]
    fn escapes() {
        check(b"", r#""""#);
        check(b"/plain?x=1", r#""/plain?x=1""#);
        check(br#"say "hi" \o/"#, r#""say \"hi\" \\o/""#);
        check(b"a\r\nb\tc\0\x1b[2J\x7f", r#""a\r\nb\tc\u0000\u001b[2J\u007f""#);
        check("grün €😀".as_bytes(), "\"grün €😀\"");
        check("\u{9b}31m".as_bytes(), r#""\u009b31m""#);
        check("\u{2028}\u{202e}\u{2066}".as_bytes(), r#""\u2028\u202e\u2066""#);
        check(b"caf\xe9!", r#""caf\u00e9!""#);
        check(b"\xff\xfe", r#""\u00ff\u00fe""#);
        check(b"\xe2\x82", r#""\u00e2\u0082""#);
        check(b"\xed\xa0\x80", r#""\u00ed\u00a0\u0080""#);
    }

    /// To look at each character says the same of every byte, wherever it stands.
    #[test]
    fn plain_text_is_passed_over() {
        let places = (1..=17).flat_map(|length| (0..length).map(move |at| (length, at)));
        for (length, at) in places {
            for byte in 0..=u8::MAX {
                for around in *b"x ~!#[]" {
                    let mut bytes = vec![around; length];
                    bytes[at] = byte;
                    let is_plain = matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\');
                    let plain = if is_plain { length } else { at };
                    assert_eq!(plain_bytes(&bytes), plain, "{byte:#x} at {at} of {length}");
                    let (mut quick, mut slow) = (Vec::new(), vec![b'"']);
                    push_string(&mut quick, &bytes);
                    push_escaped(&mut slow, &bytes);
                    slow.push(b'"');
                    assert_eq!(quick, slow, "{byte:#x} at {at} of {length}");
                }
            }
        }
    }

    #[test]
    fn every_byte_alone_is_valid_json() {
        for byte in 0..=255 {
            let mut out = Vec::new();
            push_string(&mut out, &[byte]);
            let read: String = serde_json::from_slice(&out).unwrap();
            assert_eq!(read, char::from(byte).to_string());
        }
    }
}

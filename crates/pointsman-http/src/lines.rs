//! The field lines of a head, from the line behind its first one to the empty line that ends it.
//!
//! Each line has one form only (RFC 9112 section 5): a token, a colon, blanks, a value, blanks, CRLF. There
//! are no folds, no blanks before the colon, and no line ends in anything but CRLF. A line is refused at its
//! first byte that cannot stand there, and what is said of a head does not depend on how its bytes arrive.
//!
//! Bytes are looked at eight at a time, as one number.

use crate::Refusal;
use crate::header::{HeaderKind, HeaderLine, is_token_byte};

/// Reads the lines from `first` on. Returns where the head ends, or nothing while it is not whole.
pub(crate) fn read(
    lines: &mut Vec<HeaderLine>,
    buffer: &[u8],
    first: usize,
    headers_max: usize,
) -> Result<Option<usize>, Refusal> {
    lines.clear();
    let mut start = first;
    loop {
        let mut name_end = up_to_unusual(buffer, start);
        let mut is_odd = false;
        if buffer.get(name_end) != Some(&b':') || name_end == start {
            match other_than_usual(buffer, start)? {
                Other::Name(end) => (name_end, is_odd) = (end, true),
                Other::End(end) => return Ok(end),
            }
        }
        if lines.len() >= headers_max {
            return Err(Refusal::TooManyHeaders);
        }
        let value_start = behind_blanks(buffer, name_end + 1);
        let value_end = up_to_control(buffer, value_start);
        if buffer[value_end..].first_chunk() != Some(b"\r\n") {
            return no_line_end(&buffer[value_end..]);
        }
        let end = value_end + b"\r\n".len();
        let value = without_blanks(&buffer[value_start..value_end]);
        let name = &buffer[start..name_end];
        let kind = HeaderKind::of(name, is_odd);
        let is_tight =
            || buffer[name_end + 1..value_start] == *b" " && value_start + value.len() == value_end;
        // Offsets fit: a head is never longer than `head_bytes_max`, far below 4 GiB.
        lines.push(HeaderLine {
            start: start as u32,
            name_bytes: u16::try_from(name.len()).map_err(|_| Refusal::HeadTooLarge)?,
            value_start: value_start as u32,
            value_bytes: value.len() as u32,
            end: end as u32,
            kind,
            dropped: false,
            hidden: false,
            respelled: kind.is_acted_on() && !(is_tight() && kind.plain_value(value) == value),
        });
        start = end;
    }
}

/// What is said of a line whose value is not followed by CRLF.
#[cold]
fn no_line_end(rest: &[u8]) -> Result<Option<usize>, Refusal> {
    match rest {
        [] | [b'\r'] => Ok(None),
        [b'\n', ..] => Err(Refusal::BareLineFeed),
        _ => Err(Refusal::Syntax),
    }
}

/// A value without the blanks behind it.
#[inline]
fn without_blanks(mut value: &[u8]) -> &[u8] {
    while let [before @ .., b' ' | b'\t'] = value {
        value = before;
    }
    value
}

/// What stands where a name of letters, digits and `-` does not.
enum Other {
    /// A name with other bytes in it; the colon is there.
    Name(usize),
    /// The head's end behind the empty line, or nothing where it is unfinished.
    End(Option<usize>),
}

#[cold]
fn other_than_usual(buffer: &[u8], start: usize) -> Result<Other, Refusal> {
    let line = &buffer[start..];
    match line {
        [b'\r', b'\n', ..] => return Ok(Other::End(Some(start + b"\r\n".len()))),
        [] | [b'\r'] => return Ok(Other::End(None)),
        [b'\n', ..] => return Err(Refusal::BareLineFeed),
        _ => {}
    }
    let name_bytes = token(line);
    match line.get(name_bytes) {
        None => Ok(Other::End(None)),
        Some(b':') if name_bytes > 0 => Ok(Other::Name(start + name_bytes)),
        Some(_) => Err(Refusal::Syntax),
    }
}

/// Bytes of the token at the start.
pub(crate) fn token(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|byte| is_token_byte(**byte)).count()
}

#[inline]
fn behind_blanks(buffer: &[u8], mut at: usize) -> usize {
    while matches!(buffer.get(at), Some(b' ' | b'\t')) {
        at += 1;
    }
    at
}

/// The first byte from `at` on that is no letter, digit or `-`, or the end.
#[inline]
fn up_to_unusual(buffer: &[u8], mut at: usize) -> usize {
    loop {
        let found = !usual(eight(buffer, at)) & HIGHEST;
        if found != 0 {
            return at + found.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
}

/// The first control from `at` on, or the end. The tab is none (RFC 9110 section 5.5).
#[inline]
pub(crate) fn up_to_control(buffer: &[u8], mut at: usize) -> usize {
    loop {
        let found = controls(eight(buffer, at)) & HIGHEST;
        if found == 0 {
            at += 8;
            continue;
        }
        at += found.trailing_zeros() as usize / 8;
        if buffer.get(at) != Some(&b'\t') {
            return at;
        }
        at += 1;
    }
}

/// A one in each of eight bytes.
const EACH: u64 = u64::from_le_bytes([1; 8]);
/// The highest bit of each.
const HIGHEST: u64 = EACH * 0x80;

/// Eight bytes from `at` on, the first one lowest. Behind the buffer's end there are zeros, which are controls.
#[inline]
fn eight(buffer: &[u8], at: usize) -> u64 {
    match buffer[at..].first_chunk() {
        Some(eight) => u64::from_le_bytes(*eight),
        None => {
            let add = |sum, byte: &u8| sum << 8 | u64::from(*byte);
            buffer[at..].iter().rev().fold(0, add)
        }
    }
}

/// Sets the highest bit of each byte that is a letter, a digit or `-`. Sums of seven bits stay in their byte.
#[inline]
fn usual(eight: u64) -> u64 {
    let low = eight & !HIGHEST;
    let from_to = |bytes: u64, from: u8, to: u8| {
        (bytes + EACH * u64::from(0x80 - from)) & !(bytes + EACH * u64::from(0x7f - to))
    };
    let letters = from_to(low | (EACH * 0x20), b'a', b'z');
    let digits = from_to(low, b'0', b'9');
    let dashes = from_to(low, b'-', b'-');
    (letters | digits | dashes) & !eight
}

/// Sets the highest bit of each byte that is less than 0x20, or is 0x7f. A borrow may set more of them, behind
/// the first.
#[inline]
fn controls(eight: u64) -> u64 {
    let delete = eight ^ (EACH * 0x7f);
    (eight.wrapping_sub(EACH * 0x20) & !eight) | (delete.wrapping_sub(EACH) & !delete)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_told_apart_wherever_they_stand() {
        for byte in 0..=u8::MAX {
            for at in 0..20 {
                for around in *b"xZ09-" {
                    let mut bytes = [around; 20];
                    bytes[at] = byte;
                    let is_usual = byte.is_ascii_alphanumeric() || byte == b'-';
                    let is_control = byte.is_ascii_control() && byte != b'\t';
                    let of = |is_found: bool| if is_found { at } else { bytes.len() };
                    assert_eq!(up_to_unusual(&bytes, 0), of(!is_usual), "{byte:#x} among {around:#x}");
                    assert_eq!(up_to_control(&bytes, 0), of(is_control), "{byte:#x} among {around:#x}");
                }
            }
        }
        assert_eq!(up_to_control(&[0xff; 33], 0), 33);
    }

    type Pair<'a> = (&'a [u8], &'a [u8]);

    fn outcome(head: &[u8]) -> Result<Option<Vec<Pair<'_>>>, Refusal> {
        let mut lines = Vec::new();
        let end = read(&mut lines, head, 0, 3)?;
        assert!(end.is_none_or(|end| end == head.len()));
        Ok(end.map(|_| lines.iter().map(|line| (line.name(head), line.value(head))).collect()))
    }

    #[test]
    fn lines_have_one_form() {
        let whole = |lines: &[(&'static [u8], &'static [u8])]| Ok(Some(lines.to_vec()));
        for (head, expected) in [
            (&b"\r\n"[..], whole(&[])),
            (b"A:b\r\nC: \t d e \t\r\n\r\n", whole(&[(b"A", b"b"), (b"C", b"d e")])),
            (b"A:\r\nB: \r\n\r\n", whole(&[(b"A", b""), (b"B", b"")])),
            (b"A: b\tc\r\n\r\n", whole(&[(b"A", b"b\tc")])),
            (b"A: \xff\x80\r\n\r\n", whole(&[(b"A", b"\xff\x80")])),
            (
                b"A: long enough for two \tof eight\r\n\r\n",
                whole(&[(b"A", b"long enough for two \tof eight")]),
            ),
            (b"\n", Err(Refusal::BareLineFeed)),
            (b"A: b\n\r\n", Err(Refusal::BareLineFeed)),
            (b"A: b\r\r\n", Err(Refusal::Syntax)),
            (b"A: b\r\n\rx", Err(Refusal::Syntax)),
            (b"A : b\r\n\r\n", Err(Refusal::Syntax)),
            (b": b\r\n\r\n", Err(Refusal::Syntax)),
            (b" A: b\r\n\r\n", Err(Refusal::Syntax)),
            (b"A: b\r\n c\r\n\r\n", Err(Refusal::Syntax)),
            (b"A b\r\n\r\n", Err(Refusal::Syntax)),
            (b"A: b\0\r\n\r\n", Err(Refusal::Syntax)),
            (b"A: b\x7f\r\n\r\n", Err(Refusal::Syntax)),
            (b"A\xe9: b\r\n\r\n", Err(Refusal::Syntax)),
            (b"A:1\r\nA:2\r\nA:3\r\nA:4\r\n\r\n", Err(Refusal::TooManyHeaders)),
        ] {
            assert_eq!(outcome(head), expected, "{}", head.escape_ascii());
            // Cut anywhere it is unfinished, or already refused for the same.
            for cut in 0..head.len() {
                let is_refused =
                    outcome(&head[..cut]).map_or_else(|why| Err(why) == expected, |end| end.is_none());
                assert!(is_refused, "{} at {cut}", head.escape_ascii());
            }
        }
    }
}

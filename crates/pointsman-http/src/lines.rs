//! The field lines of a head, from the line behind its first one to the empty line that ends it.
//!
//! Each line has one form only (RFC 9112 section 5): a token, a colon, blanks, a value, blanks, CRLF. There
//! are no folds, no blanks before the colon, and no line ends in anything but CRLF. A line is refused at its
//! first byte that cannot stand there, and what is said of a head does not depend on how its bytes arrive.

use crate::Refusal;
use crate::header::{HeaderKind, HeaderLine, is_token_byte};

/// What a byte is in a field name: usual, [`ODD`] or [`WRONG`].
const NAME: [u8; 256] = {
    let mut table = [0; 256];
    let mut byte: u8 = 0;
    loop {
        let is_usual = byte.is_ascii_alphanumeric() || byte == b'-';
        table[byte as usize] = if is_usual {
            0
        } else if is_token_byte(byte) {
            ODD
        } else {
            WRONG
        };
        match byte {
            u8::MAX => break table,
            _ => byte += 1,
        }
    }
};
/// A byte of a token that is no letter, digit or `-`.
const ODD: u8 = 1;
/// No byte of a token.
const WRONG: u8 = 2;

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
        let line = &buffer[start..];
        match line {
            [b'\r', b'\n', ..] => return Ok(Some(start + b"\r\n".len())),
            [] | [b'\r'] => return Ok(None),
            [b'\n', ..] => return Err(Refusal::BareLineFeed),
            _ => {}
        }
        let name_bytes = up_to_colon(line);
        let name = &line[..name_bytes];
        let met = name.iter().fold(0, |met, byte| met | NAME[usize::from(*byte)]);
        if met & WRONG != 0 || name_bytes == 0 {
            return Err(Refusal::Syntax);
        }
        let Some((_, behind)) = line[name_bytes..].split_first() else { return Ok(None) };
        if lines.len() >= headers_max {
            return Err(Refusal::TooManyHeaders);
        }
        let value_start = name_bytes + 1 + blanks(behind.iter());
        let end = value_start + value(&line[value_start..]);
        match &line[end..] {
            [b'\r', b'\n', ..] => {}
            [] | [b'\r'] => return Ok(None),
            [b'\n', ..] => return Err(Refusal::BareLineFeed),
            _ => return Err(Refusal::Syntax),
        }
        let value_bytes = end - value_start - blanks(line[value_start..end].iter().rev());
        // Offsets fit: a head is never longer than `head_bytes_max`, far below 4 GiB.
        lines.push(HeaderLine {
            start: start as u32,
            name_bytes: u16::try_from(name_bytes).map_err(|_| Refusal::HeadTooLarge)?,
            value_start: (start + value_start) as u32,
            value_bytes: value_bytes as u32,
            end: (start + end + b"\r\n".len()) as u32,
            kind: HeaderKind::of(name, met & ODD != 0),
            dropped: false,
            hidden: false,
        });
        start += end + b"\r\n".len();
    }
}

/// Spaces and tabs before anything else.
#[inline]
fn blanks<'b>(bytes: impl Iterator<Item = &'b u8>) -> usize {
    bytes.take_while(|byte| matches!(byte, b' ' | b'\t')).count()
}

/// Bytes of the token at the start.
pub(crate) fn token(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|byte| NAME[usize::from(**byte)] != WRONG).count()
}

/// Bytes before the first colon, or all.
#[inline]
fn up_to_colon(bytes: &[u8]) -> usize {
    up_to(bytes, |eight| zeros(eight ^ (EACH * u64::from(b':'))), |byte| byte == b':')
}

/// Bytes that may stand in a value, from the start up to the first one that may not: all but controls, of
/// which the tab may (RFC 9110 section 5.5).
#[inline]
pub(crate) fn value(bytes: &[u8]) -> usize {
    let mut at = 0;
    loop {
        at += up_to_control(&bytes[at..]);
        match bytes.get(at) {
            Some(b'\t') => at += 1,
            _ => return at,
        }
    }
}

/// Bytes before the first control, or all.
#[inline]
fn up_to_control(bytes: &[u8]) -> usize {
    let controls = |eight: u64| (eight.wrapping_sub(EACH * 0x20) & !eight) | zeros(eight ^ (EACH * 0x7f));
    up_to(bytes, controls, |byte| byte.is_ascii_control())
}

/// A one in each of eight bytes.
const EACH: u64 = u64::from_le_bytes([1; 8]);

/// Sets the highest bit of each byte that is zero. A borrow may set more of them, behind the first.
#[inline]
fn zeros(eight: u64) -> u64 {
    eight.wrapping_sub(EACH) & !eight
}

/// Bytes before the first one that is wanted, or all. `in_eight` sets the highest bit of that one, and of none
/// before it.
#[inline]
fn up_to(bytes: &[u8], in_eight: impl Fn(u64) -> u64, is_it: impl Fn(u8) -> bool) -> usize {
    let (eights, rest) = bytes.as_chunks::<8>();
    for (at, eight) in eights.iter().enumerate() {
        let found = in_eight(u64::from_le_bytes(*eight)) & (EACH * 0x80);
        if found != 0 {
            return at * 8 + found.trailing_zeros() as usize / 8;
        }
    }
    eights.len() * 8 + rest.iter().take_while(|byte| !is_it(**byte)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controls_are_found_wherever_they_stand() {
        for control in (0..0x20).chain([0x7f]) {
            for at in 0..20 {
                for around in [b'x', b' ', b'~', 0x80, 0xff, 0xa0] {
                    let mut bytes = [around; 20];
                    bytes[at] = control;
                    assert_eq!(up_to_control(&bytes), at, "{control:#x} among {around:#x}");
                }
            }
        }
        assert_eq!(up_to_control(&[0xff; 33]), 33);
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

//! The field lines of a head, from the line behind its first one to the empty line that ends it.
//!
//! Each line has one form only (RFC 9112 section 5): a token, a colon, blanks, a value, blanks, CRLF. There
//! are no folds, no blanks before the colon, and no line ends in anything but CRLF. A line is refused at its
//! first byte that cannot stand there, and what is said of a head does not depend on how its bytes arrive.

use crate::Refusal;
use crate::header::{HeaderKind, HeaderLine, is_token_byte};

/// Bytes that make a field name, looked up.
const TOKEN: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < table.len() {
        table[byte] = is_token_byte(byte as u8);
        byte += 1;
    }
    table
};

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
        let name_bytes = token(line);
        match line.get(name_bytes) {
            None => return Ok(None),
            Some(b':') if name_bytes > 0 && lines.len() < headers_max => {}
            Some(b':') if name_bytes > 0 => return Err(Refusal::TooManyHeaders),
            Some(_) => return Err(Refusal::Syntax),
        }
        let blanks = line[name_bytes + 1..].iter().take_while(|byte| is_blank(**byte)).count();
        let value_start = name_bytes + 1 + blanks;
        let end = value_start + value(&line[value_start..]);
        match &line[end..] {
            [b'\r', b'\n', ..] => {}
            [] | [b'\r'] => return Ok(None),
            [b'\n', ..] => return Err(Refusal::BareLineFeed),
            _ => return Err(Refusal::Syntax),
        }
        let blanks = line[value_start..end].iter().rev().take_while(|byte| is_blank(**byte)).count();
        // Offsets fit: a head is never longer than `head_bytes_max`, far below 4 GiB.
        lines.push(HeaderLine {
            start: start as u32,
            name_bytes: u16::try_from(name_bytes).map_err(|_| Refusal::HeadTooLarge)?,
            value_start: (start + value_start) as u32,
            value_bytes: (end - blanks - value_start) as u32,
            end: (start + end + b"\r\n".len()) as u32,
            kind: HeaderKind::of(&line[..name_bytes]),
            dropped: false,
            hidden: false,
        });
        start += end + b"\r\n".len();
    }
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// Bytes of the token at the start.
#[inline]
pub(crate) fn token(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|byte| TOKEN[usize::from(**byte)]).count()
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

/// Bytes before the first control, eight at a time.
#[inline]
fn up_to_control(bytes: &[u8]) -> usize {
    const EACH: u64 = u64::from_le_bytes([1; 8]);
    let mut at = 0;
    let (eights, rest) = bytes.as_chunks::<8>();
    for eight in eights {
        let eight = u64::from_le_bytes(*eight);
        // A byte's highest bit is set where it is less than 0x20, or is 0x7f. What a borrow sets beyond it lies
        // behind, and only the first one counts.
        let below = eight.wrapping_sub(EACH * 0x20) & !eight;
        let delete = eight ^ (EACH * 0x7f);
        let delete = delete.wrapping_sub(EACH) & !delete;
        let controls = (below | delete) & (EACH * 0x80);
        if controls != 0 {
            return at + controls.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    at + rest.iter().take_while(|byte| !byte.is_ascii_control()).count()
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

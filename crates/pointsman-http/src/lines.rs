//! The field lines of a head, from the line behind its first one to the empty line that ends it.
//!
//! Each line has one form only (RFC 9112 section 5): a token, a colon, blanks, a value, blanks, CRLF. There
//! are no folds, no blanks before the colon of a request's field, and no line ends in anything but CRLF. A line is refused at its
//! first byte that cannot stand there, and what is said of a head does not depend on how its bytes arrive.

use crate::Refusal;
use crate::header::{HeaderKind, HeaderLine, is_token_byte};
use crate::odd_name;
use crate::sixteen::{up_to_control, up_to_unusual};

/// Which head lines stand in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Head {
    Request,
    /// Blanks before a colon are taken away (RFC 9112 section 5.1), but not of a field that the switch acts on.
    Response,
}

/// Reads the lines from `first` on. Returns where the head ends, or nothing while it is not whole.
pub(crate) fn read(
    lines: &mut Vec<HeaderLine>,
    buffer: &[u8],
    first: usize,
    (of, headers_max): (Head, usize),
) -> Result<Option<usize>, Refusal> {
    lines.clear();
    let mut start = first;
    loop {
        let mut name_end = up_to_unusual(buffer, start);
        let mut is_odd = false;
        let mut colon = name_end;
        if buffer.get(name_end) != Some(&b':') || name_end == start {
            match other_than_usual(buffer, start, of)? {
                Other::Name { end, colon_at } => {
                    is_odd = odd_name::is_odd(&buffer[start..end]);
                    (name_end, colon) = (end, colon_at);
                }
                Other::End(end) => return Ok(end),
            }
        }
        if lines.len() >= headers_max {
            return Err(Refusal::TooManyHeaders);
        }
        let value_end = up_to_control(buffer, colon + 1);
        let Some(end) = line_feed(buffer, value_end)? else { return Ok(None) };
        let name = &buffer[start..name_end];
        let (blanks, value) = value(&buffer[colon + 1..value_end]);
        let value_start = colon + 1 + blanks;
        let kind = HeaderKind::of(name, is_odd);
        let is_spaced = colon > name_end;
        if is_spaced && (kind.is_acted_on() || kind == HeaderKind::Odd) {
            return Err(Refusal::BlankBeforeColon);
        }
        let is_tight = || buffer[colon + 1] == b' ' && blanks == 1 && value_start + value.len() == value_end;
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
            respelled: is_spaced || kind.is_acted_on() && !(is_tight() && kind.plain_value(value) == value),
        });
        start = end;
    }
}

/// Where the line goes on behind its end, which must be CRLF, or nothing where that has not come.
#[inline]
pub(crate) fn line_feed(bytes: &[u8], at: usize) -> Result<Option<usize>, Refusal> {
    match &bytes[at..] {
        [b'\r', b'\n', ..] => Ok(Some(at + b"\r\n".len())),
        [] | [b'\r'] => Ok(None),
        [b'\n', ..] => Err(Refusal::BareLineFeed),
        _ => Err(Refusal::Syntax),
    }
}

/// The blanks behind a colon, and the value up to those at the line's end. Nearly always there is one space, and
/// none.
#[inline]
fn value(bytes: &[u8]) -> (usize, &[u8]) {
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    match bytes {
        [b' ', value @ ..] if !value.first().is_some_and(is_blank) && !value.last().is_some_and(is_blank) => {
            (1, value)
        }
        _ => {
            let before = bytes.iter().take_while(|byte| is_blank(byte)).count();
            let behind = bytes[before..].iter().rev().take_while(|byte| is_blank(byte)).count();
            (before, &bytes[before..bytes.len() - behind])
        }
    }
}

/// What stands where a name of letters, digits and `-` does not.
enum Other {
    /// A name with other bytes in it, or with blanks behind it; the colon is there.
    Name { end: usize, colon_at: usize },
    /// The head's end behind the empty line, or nothing where it is unfinished.
    End(Option<usize>),
}

#[cold]
fn other_than_usual(buffer: &[u8], start: usize, of: Head) -> Result<Other, Refusal> {
    let line = &buffer[start..];
    match line {
        [b'\r', b'\n', ..] => return Ok(Other::End(Some(start + b"\r\n".len()))),
        [] | [b'\r'] => return Ok(Other::End(None)),
        [b'\n', ..] => return Err(Refusal::BareLineFeed),
        _ => {}
    }
    let name_bytes = token(line);
    let blanks = match of {
        Head::Response if name_bytes > 0 => {
            line[name_bytes..].iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count()
        }
        Head::Request | Head::Response => 0,
    };
    let end = start + name_bytes;
    match line.get(name_bytes + blanks) {
        None => Ok(Other::End(None)),
        Some(b':') if name_bytes > 0 => Ok(Other::Name { end, colon_at: end + blanks }),
        Some(_) => Err(Refusal::Syntax),
    }
}

/// Bytes of the token at the start.
pub(crate) fn token(bytes: &[u8]) -> usize {
    let usual = up_to_unusual(bytes, 0);
    usual + bytes[usual..].iter().take_while(|byte| is_token_byte(**byte)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    type Pair<'a> = (&'a [u8], &'a [u8]);

    fn outcome(head: &[u8]) -> Result<Option<Vec<Pair<'_>>>, Refusal> {
        let mut lines = Vec::new();
        let end = read(&mut lines, head, 0, (Head::Request, 3))?;
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

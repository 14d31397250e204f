//! Strings and their escapes (RFC 8259 section 7), cut anywhere.

use super::malformed;
use super::scan::up_to_string_mark;
use crate::Fault;

/// Where in an escape a string was cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Escape {
    /// In none.
    #[default]
    None,
    /// Behind its `\`.
    Begun,
    /// Among the four digits behind `\u`.
    Digits { count: u8, unit: u16, high: Option<u16> },
    /// Behind the first of two surrogates.
    High(u16),
    /// Behind the `\` of what must be the second.
    HighBegun(u16),
}

/// A piece of a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decoded<'a> {
    Text(&'a str),
    /// The escape of a surrogate without its other half, with the offset of its `\`. Parsers keep it, replace it,
    /// or refuse the document, and all of them find the end of the string in the same place.
    LoneSurrogate(u64),
}

/// What a byte of an escape leads to.
enum Step {
    /// More bytes belong to the escape.
    More,
    Character(char),
    LoneSurrogate(u64),
    /// The same, and the byte is none of that escape's.
    LoneSurrogateBefore(u64),
}

/// Reads on in a string from `at`. Gives what it decodes, and where it goes on behind the closing quote, or nothing if
/// it does not end here. `before` bytes of the document stand before `text`.
pub(super) fn read_string(
    escape: &mut Escape,
    text: &str,
    mut at: usize,
    before: u64,
    mut take: impl FnMut(Decoded<'_>),
) -> Result<Option<usize>, Fault> {
    loop {
        while *escape != Escape::None {
            let Some(&byte) = text.as_bytes().get(at) else { return Ok(None) };
            match escape.step(byte, before + at as u64)? {
                Step::More => {}
                Step::Character(decoded) => take(Decoded::Text(decoded.encode_utf8(&mut [0; 4]))),
                Step::LoneSurrogate(high_at) => take(Decoded::LoneSurrogate(high_at)),
                Step::LoneSurrogateBefore(high_at) => {
                    take(Decoded::LoneSurrogate(high_at));
                    continue;
                }
            }
            at += 1;
        }
        // Escapes often stand side by side.
        let is_escape = text.as_bytes().get(at) == Some(&b'\\');
        let end = if is_escape { at } else { up_to_string_mark(text.as_bytes(), at) };
        if end > at {
            take(Decoded::Text(text.get(at..end).unwrap_or_default()));
        }
        match text.as_bytes().get(end) {
            None => return Ok(None),
            Some(b'"') => return Ok(Some(end + 1)),
            Some(b'\\') => {
                let behind = text.as_bytes().get(end + 1..).unwrap_or_default();
                if let Some((decoded, bytes)) = whole(behind) {
                    take(Decoded::Text(decoded.encode_utf8(&mut [0; 4])));
                    at = end + 1 + bytes;
                    continue;
                }
                *escape = Escape::Begun;
            }
            Some(_) => return Err(malformed(before + end as u64, "a control character in a string")),
        }
        at = end + 1;
    }
}

/// The character of an escape whose `\` stands before these bytes, and how many of them are its, if it is all there and
/// right.
#[inline]
fn whole(behind: &[u8]) -> Option<(char, usize)> {
    let [letter, behind @ ..] = behind else { return None };
    if *letter != b'u' {
        return Some((plain(*letter)?, 1));
    }
    let first = unit(behind)?;
    if let Some(decoded) = char::from_u32(u32::from(first)) {
        return Some((decoded, r"u0000".len()));
    }
    let second = unit(behind.get(4..)?.strip_prefix(br"\u")?)?;
    let decoded = char::decode_utf16([first, second]).next()?.ok()?;
    Some((decoded, r"uD800\uDC00".len()))
}

/// Four digits.
#[inline]
fn unit(digits: &[u8]) -> Option<u16> {
    let digits: &[u8; 4] = digits.first_chunk()?;
    let digit = |unit: u32, byte: &u8| Some(unit << 4 | (*byte as char).to_digit(16)?);
    digits.iter().try_fold(0, digit).map(|unit| unit as u16)
}

impl Escape {
    /// Takes the next byte of an escape, which stands `at` there.
    fn step(&mut self, byte: u8, at: u64) -> Result<Step, Fault> {
        // Where a first surrogate's escape begins, if so many bytes of what follows it stand before this one.
        let high_at = |behind: u64| at.saturating_sub(r"\uD800".len() as u64 + behind);
        *self = match *self {
            Escape::None => return Ok(Step::More),
            Escape::Begun if byte == b'u' => Escape::Digits { count: 0, unit: 0, high: None },
            Escape::Begun => {
                let Some(decoded) = plain(byte) else { return Err(malformed(at, "an unknown escape")) };
                *self = Escape::None;
                return Ok(Step::Character(decoded));
            }
            Escape::Digits { count, unit, high } => {
                let Some(digit) = (byte as char).to_digit(16) else {
                    return Err(malformed(at, "an escape without its four digits"));
                };
                let unit = unit << 4 | digit as u16;
                if count < 3 {
                    Escape::Digits { count: count + 1, unit, high }
                } else {
                    return Ok(self.unit(unit, high, high_at));
                }
            }
            Escape::High(high) if byte == b'\\' => Escape::HighBegun(high),
            Escape::HighBegun(high) if byte == b'u' => Escape::Digits { count: 0, unit: 0, high: Some(high) },
            Escape::High(_) => {
                *self = Escape::None;
                return Ok(Step::LoneSurrogateBefore(high_at(0)));
            }
            Escape::HighBegun(_) => {
                *self = Escape::Begun;
                return Ok(Step::LoneSurrogateBefore(high_at(1)));
            }
        };
        Ok(Step::More)
    }

    /// Takes a whole unit of UTF-16, whose last digit is at hand, perhaps behind a first surrogate.
    fn unit(&mut self, unit: u16, high: Option<u16>, high_at: impl Fn(u64) -> u64) -> Step {
        let is_high = matches!(unit, 0xd800..=0xdbff);
        // The last digit stands five bytes behind the `\`.
        let lone = Step::LoneSurrogate(if high.is_some() { high_at(5) } else { high_at(0) + 1 });
        let units = [high.unwrap_or(unit), unit];
        let units = units.get(usize::from(high.is_none())..).unwrap_or_default();
        *self = if is_high { Escape::High(unit) } else { Escape::None };
        match char::decode_utf16(units.iter().copied()).next() {
            Some(Ok(decoded)) => Step::Character(decoded),
            _ if is_high && high.is_none() => Step::More,
            // What follows a lone first surrogate is not told: the string is undecodable anyway.
            _ => lone,
        }
    }
}

fn plain(byte: u8) -> Option<char> {
    Some(match byte {
        b'"' | b'\\' | b'/' => byte as char,
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        _ => return None,
    })
}

//! The start of a text, which says how the rest is encoded.

use super::charset::{Charset, Encoding};
use super::declaration::{self, CHARACTERS_MAX, Declared};
use super::{Stop, TextKind};
use crate::Cause;

/// Collects the start of a text until it says how it is encoded.
#[derive(Debug)]
pub(super) struct Head {
    kind: TextKind,
    charset: Option<Charset>,
    bytes: Vec<u8>,
    mark_bytes: usize,
    encoding: Encoding,
    /// Whether only the first bytes say that it is UTF-16: then its declaration must say so, too.
    is_guessed: bool,
}

/// From here on a text says more about its encoding only with the `>` of its XML declaration.
const FIRST_BYTES: usize = 2 * "\u{feff}<?xml ".len();

const CONTRADICTION: Stop =
    Stop::Found(Cause::Encoding, "byte order mark, declaration and charset contradict each other");

const ANOTHER: Stop = Stop::Found(Cause::Encoding, "it begins as text in another encoding does");

impl Head {
    /// Bytes that are collected, at most.
    pub(super) const BYTES_MAX: usize = 2 * ("\u{feff}".len() + CHARACTERS_MAX);

    pub(super) fn new(kind: TextKind, charset: Option<Charset>) -> Head {
        Head { kind, charset, bytes: Vec::new(), mark_bytes: 0, encoding: Encoding::Utf8, is_guessed: false }
    }

    /// How it is encoded, once it is settled.
    pub(super) fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// What was collected, without the byte order mark.
    pub(super) fn text(&self) -> &[u8] {
        &self.bytes[self.mark_bytes..]
    }

    /// Collects bytes up to where the encoding is settled: how many of them, if it is.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Result<Option<usize>, Stop> {
        for (at, &byte) in bytes.iter().enumerate() {
            self.bytes.push(byte);
            // In UTF-16LE a zero stands behind the `>`.
            let may_say_more = self.bytes.len() <= FIRST_BYTES
                || self.bytes.ends_with(b">")
                || self.bytes.ends_with(b">\0")
                || self.bytes.len() >= Head::BYTES_MAX;
            if may_say_more && self.is_settled(false)? {
                return Ok(Some(at + 1));
            }
        }
        Ok(None)
    }

    /// There is no more text.
    pub(super) fn finish(&mut self) -> Result<(), Stop> {
        self.is_settled(true).map(drop)
    }

    fn is_settled(&mut self, is_whole: bool) -> Result<bool, Stop> {
        if self.bytes.len() < 4 && !is_whole {
            return Ok(false);
        }
        let mark = mark(&self.bytes)?;
        self.mark_bytes = mark.map_or(0, |(bytes, _)| bytes);
        let guessed = match (self.kind, mark, self.charset) {
            (TextKind::Xml, None, None | Some(Charset::Utf16)) => declared_utf16(&self.bytes),
            _ => None,
        };
        self.is_guessed = guessed.is_some();
        self.encoding = match (mark, self.charset) {
            (None, None | Some(Charset::Utf16)) if guessed.is_some() => guessed.unwrap_or(Encoding::Utf8),
            (None, None) => Encoding::Utf8,
            (None, Some(charset)) => charset.without_mark(),
            (Some((_, encoding)), None) => encoding,
            (Some((_, encoding)), Some(charset)) if charset.is(encoding) => encoding,
            (Some(_), Some(_)) => return Err(CONTRADICTION),
        };
        check_first(self.text(), self.encoding)?;
        match self.kind {
            TextKind::Json => {
                if matches!(self.encoding, Encoding::Latin1 | Encoding::Latin9 | Encoding::Windows1252) {
                    self.encoding = Encoding::Ascii;
                }
                Ok(true)
            }
            TextKind::Xml => self.is_declared(mark.is_some(), is_whole),
        }
    }

    /// Looks for what the XML declaration says.
    fn is_declared(&mut self, has_mark: bool, is_whole: bool) -> Result<bool, Stop> {
        let characters = characters(self.text(), self.encoding);
        match declaration::declared(&characters) {
            Declared::TooLong => Err(Stop::Found(Cause::Limit, "a long XML declaration")),
            Declared::Unfinished if !is_whole => Ok(false),
            Declared::Unfinished | Declared::Nothing if self.is_guessed => Err(ANOTHER),
            Declared::Unfinished | Declared::Nothing => Ok(true),
            Declared::Malformed => Err(Stop::Found(Cause::Malformed, "a malformed XML declaration")),
            Declared::Encoding(name) => {
                let declared = Charset::of(name)
                    .ok_or(Stop::Found(Cause::Encoding, "a declared encoding that is not supported"))?;
                if self.charset.is_none() && !has_mark && !self.is_guessed {
                    // UTF-16 could not have been read up to here.
                    if declared.without_mark().is_utf16() {
                        return Err(CONTRADICTION);
                    }
                    self.encoding = declared.without_mark();
                } else if !declared.is(self.encoding) {
                    return Err(CONTRADICTION);
                }
                Ok(true)
            }
        }
    }
}

/// The byte order mark, how long it is and what it says.
fn mark(bytes: &[u8]) -> Result<Option<(usize, Encoding)>, Stop> {
    match bytes {
        [0xff, 0xfe, 0, 0, ..] | [0, 0, 0xfe, 0xff, ..] => Err(Stop::Found(Cause::Encoding, "UTF-32")),
        [0xef, 0xbb, 0xbf, ..] => Ok(Some((3, Encoding::Utf8))),
        [0xff, 0xfe, ..] => Ok(Some((2, Encoding::Utf16Le))),
        [0xfe, 0xff, ..] => Ok(Some((2, Encoding::Utf16Be))),
        _ => Ok(None),
    }
}

/// UTF-16 without a byte order mark, by the first characters of an XML declaration (XML 1.0 appendix F.1).
fn declared_utf16(bytes: &[u8]) -> Option<Encoding> {
    match bytes {
        [b'<', 0, b'?', 0, ..] => Some(Encoding::Utf16Le),
        [0, b'<', 0, b'?', ..] => Some(Encoding::Utf16Be),
        _ => None,
    }
}

/// All XML and JSON begins with an ASCII character that is not NUL: what does not is in another encoding.
fn check_first(text: &[u8], encoding: Encoding) -> Result<(), Stop> {
    let is_other = match (encoding, text) {
        (Encoding::Utf16Le, &[low, high, ..]) => high != 0 || !matches!(low, 1..0x80),
        (Encoding::Utf16Be, &[high, low, ..]) => high != 0 || !matches!(low, 1..0x80),
        (Encoding::Utf16Le | Encoding::Utf16Be, _) => false,
        // `<?xm` in EBCDIC; what stands in UTF-16 or UTF-32, and does not say so, has a zero (XML 1.0 appendix F).
        (_, [0x4c, 0x6f, 0xa7, 0x94, ..] | [0, ..] | [_, 0, ..]) => true,
        _ => false,
    };
    if is_other {
        return Err(ANOTHER);
    }
    Ok(())
}

/// The text's characters, where what is not ASCII is 0xFF.
fn characters(text: &[u8], encoding: Encoding) -> Vec<u8> {
    let narrow = |unit: u16| u8::try_from(unit).ok().filter(u8::is_ascii).unwrap_or(0xff);
    match encoding {
        Encoding::Utf16Le => {
            text.as_chunks().0.iter().map(|unit| narrow(u16::from_le_bytes(*unit))).collect()
        }
        Encoding::Utf16Be => {
            text.as_chunks().0.iter().map(|unit| narrow(u16::from_be_bytes(*unit))).collect()
        }
        _ => text.to_vec(),
    }
}

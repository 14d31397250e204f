//! From bytes in a known encoding to UTF-8.

use super::charset::Encoding;
use crate::utf8::{Utf8, Utf8Piece};

/// Bytes of a piece of text that is not handed on as it came.
pub(super) const PIECE_BYTES_MAX: usize = 4096;

/// What bytes are in their encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Piece<'a> {
    Text(&'a str),
    /// Bytes that are no text, and why.
    Undecodable(&'static str),
}

/// Decodes text cut anywhere.
#[derive(Debug)]
pub(crate) enum Decoder {
    Utf8(Utf8),
    /// An encoding of a byte for each character, with room for the text.
    SingleByte(Encoding, String),
    Utf16(Utf16),
}

impl Decoder {
    pub(crate) fn new(encoding: Encoding) -> Decoder {
        match encoding {
            Encoding::Utf8 => Decoder::Utf8(Utf8::default()),
            Encoding::Utf16Le => Decoder::Utf16(Utf16::new(u16::from_le_bytes)),
            Encoding::Utf16Be => Decoder::Utf16(Utf16::new(u16::from_be_bytes)),
            Encoding::Ascii | Encoding::Latin1 | Encoding::Latin9 | Encoding::Windows1252 => {
                Decoder::SingleByte(encoding, String::new())
            }
        }
    }

    pub(crate) fn feed<E>(
        &mut self,
        bytes: &[u8],
        each: &mut dyn FnMut(Piece<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        match self {
            Decoder::Utf8(utf8) => utf8.feed(bytes, &mut |piece| each(Piece::from(piece))),
            Decoder::SingleByte(encoding, piece) => single_bytes(*encoding, bytes, piece, each),
            Decoder::Utf16(utf16) => utf16.feed(bytes, each),
        }
    }

    pub(crate) fn finish<E>(&mut self, each: &mut dyn FnMut(Piece<'_>) -> Result<(), E>) -> Result<(), E> {
        match self {
            Decoder::Utf8(utf8) => utf8.finish(&mut |piece| each(Piece::from(piece))),
            Decoder::SingleByte(..) => Ok(()),
            Decoder::Utf16(utf16) => utf16.finish(each),
        }
    }
}

impl<'a> From<Utf8Piece<'a>> for Piece<'a> {
    fn from(piece: Utf8Piece<'a>) -> Piece<'a> {
        match piece {
            Utf8Piece::Text(text) => Piece::Text(text),
            Utf8Piece::NotUtf8 => Piece::Undecodable("not UTF-8"),
        }
    }
}

fn single_bytes<E>(
    encoding: Encoding,
    bytes: &[u8],
    piece: &mut String,
    each: &mut dyn FnMut(Piece<'_>) -> Result<(), E>,
) -> Result<(), E> {
    if bytes.is_ascii() {
        return hand_on(std::str::from_utf8(bytes).unwrap_or_default(), each);
    }
    for bytes in bytes.chunks(PIECE_BYTES_MAX / char::MAX_LEN_UTF8) {
        piece.clear();
        for &byte in bytes {
            if let Some(character) = encoding.character(byte) {
                piece.push(character);
                continue;
            }
            hand_on(piece, each)?;
            piece.clear();
            each(Piece::Undecodable(match encoding {
                Encoding::Latin1 | Encoding::Latin9 => {
                    "a control of ISO-8859 that is a letter in windows-1252"
                }
                Encoding::Windows1252 => "a byte that is nothing in windows-1252",
                _ => "not US-ASCII",
            }))?;
        }
        hand_on(piece, each)?;
    }
    Ok(())
}

fn hand_on<E>(text: &str, each: &mut dyn FnMut(Piece<'_>) -> Result<(), E>) -> Result<(), E> {
    if text.is_empty() { Ok(()) } else { each(Piece::Text(text)) }
}

/// UTF-16 (RFC 2781 section 2.2).
#[derive(Debug)]
pub(crate) struct Utf16 {
    unit: fn([u8; 2]) -> u16,
    /// The first byte of a unit that was cut.
    half: Option<u8>,
    /// A high surrogate whose low one has not come.
    high: Option<u16>,
    piece: String,
}

impl Utf16 {
    fn new(unit: fn([u8; 2]) -> u16) -> Utf16 {
        Utf16 { unit, half: None, high: None, piece: String::new() }
    }

    fn feed<E>(&mut self, bytes: &[u8], each: &mut dyn FnMut(Piece<'_>) -> Result<(), E>) -> Result<(), E> {
        let mut rest = bytes;
        if let (Some(first), Some((&second, after))) = (self.half, rest.split_first()) {
            self.half = None;
            rest = after;
            self.take((self.unit)([first, second]), each)?;
        }
        let (units, half) = rest.as_chunks();
        for unit in units {
            self.take((self.unit)(*unit), each)?;
        }
        self.half = half.first().copied().or(self.half);
        self.hand_on(each)
    }

    fn take<E>(&mut self, unit: u16, each: &mut dyn FnMut(Piece<'_>) -> Result<(), E>) -> Result<(), E> {
        const LONE: Piece<'static> = Piece::Undecodable("a surrogate alone in UTF-16");
        let units = match (self.high.take(), unit) {
            (Some(high), 0xdc00..=0xdfff) => [high, unit],
            (high, _) => {
                if high.is_some() {
                    self.hand_on(each)?;
                    each(LONE)?;
                }
                if matches!(unit, 0xd800..=0xdbff) {
                    self.high = Some(unit);
                    return Ok(());
                }
                [unit, 0]
            }
        };
        match char::decode_utf16(units).next() {
            Some(Ok(character)) => self.piece.push(character),
            _ => {
                self.hand_on(each)?;
                each(LONE)?;
            }
        }
        if self.piece.len() > PIECE_BYTES_MAX - char::MAX_LEN_UTF8 { self.hand_on(each) } else { Ok(()) }
    }

    fn hand_on<E>(&mut self, each: &mut dyn FnMut(Piece<'_>) -> Result<(), E>) -> Result<(), E> {
        let handed_on = hand_on(&self.piece, each);
        self.piece.clear();
        handed_on
    }

    fn finish<E>(&mut self, each: &mut dyn FnMut(Piece<'_>) -> Result<(), E>) -> Result<(), E> {
        match (self.half.take(), self.high.take()) {
            (None, None) => Ok(()),
            _ => each(Piece::Undecodable("an end within a character of UTF-16")),
        }
    }
}

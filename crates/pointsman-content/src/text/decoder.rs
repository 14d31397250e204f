//! From bytes in a known encoding to UTF-8.

use super::Stop;
use super::charset::Encoding;
use crate::Cause;
use crate::utf8::Utf8;

/// Bytes of a piece of text that is not handed on as it came.
pub(super) const PIECE_BYTES_MAX: usize = 4096;

/// Decodes text cut anywhere.
#[derive(Debug)]
pub(super) enum Decoder {
    Utf8(Utf8),
    Ascii,
    Latin1(String),
    Utf16(Utf16),
}

impl Decoder {
    pub(super) fn new(encoding: Encoding) -> Decoder {
        match encoding {
            Encoding::Utf8 => Decoder::Utf8(Utf8::default()),
            Encoding::Ascii => Decoder::Ascii,
            Encoding::Latin1 => Decoder::Latin1(String::new()),
            Encoding::Utf16Le => Decoder::Utf16(Utf16::new(u16::from_le_bytes)),
            Encoding::Utf16Be => Decoder::Utf16(Utf16::new(u16::from_be_bytes)),
        }
    }

    pub(super) fn feed(
        &mut self,
        bytes: &[u8],
        mut each: &mut dyn FnMut(&str) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        match self {
            Decoder::Utf8(utf8) => utf8.feed(bytes, &mut each),
            Decoder::Ascii => ascii(bytes, each),
            Decoder::Latin1(piece) => latin1(bytes, piece, each),
            Decoder::Utf16(utf16) => utf16.feed(bytes, each),
        }
    }

    pub(super) fn finish(&mut self) -> Result<(), Stop> {
        match self {
            Decoder::Utf8(utf8) => Ok(utf8.finish()?),
            Decoder::Ascii | Decoder::Latin1(_) => Ok(()),
            Decoder::Utf16(utf16) => utf16.finish(),
        }
    }
}

fn ascii(bytes: &[u8], each: &mut dyn FnMut(&str) -> Result<(), Stop>) -> Result<(), Stop> {
    let good = match bytes.is_ascii() {
        true => bytes.len(),
        false => bytes.iter().take_while(|byte| byte.is_ascii()).count(),
    };
    hand_on(std::str::from_utf8(&bytes[..good]).unwrap_or_default(), each)?;
    if good == bytes.len() { Ok(()) } else { Err(Stop::Found(Cause::Encoding, "not US-ASCII")) }
}

fn latin1(
    bytes: &[u8],
    piece: &mut String,
    each: &mut dyn FnMut(&str) -> Result<(), Stop>,
) -> Result<(), Stop> {
    for bytes in bytes.chunks(PIECE_BYTES_MAX / 2) {
        let good = bytes.iter().take_while(|byte| !matches!(byte, 0x80..=0x9f)).count();
        piece.clear();
        piece.extend(bytes[..good].iter().map(|&byte| char::from(byte)));
        hand_on(piece, each)?;
        if good < bytes.len() {
            return Err(Stop::Found(
                Cause::Encoding,
                "a control of ISO-8859-1 that is a letter in windows-1252",
            ));
        }
    }
    Ok(())
}

fn hand_on(text: &str, each: &mut dyn FnMut(&str) -> Result<(), Stop>) -> Result<(), Stop> {
    if text.is_empty() { Ok(()) } else { each(text) }
}

/// UTF-16 (RFC 2781 section 2.2).
#[derive(Debug)]
pub(super) struct Utf16 {
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

    fn feed(&mut self, bytes: &[u8], each: &mut dyn FnMut(&str) -> Result<(), Stop>) -> Result<(), Stop> {
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

    fn take(&mut self, unit: u16, each: &mut dyn FnMut(&str) -> Result<(), Stop>) -> Result<(), Stop> {
        let read = match (self.high.take(), unit) {
            (None, 0xd800..=0xdbff) => {
                self.high = Some(unit);
                return Ok(());
            }
            (Some(high), 0xdc00..=0xdfff) => char::decode_utf16([high, unit]).next(),
            (None, _) => char::decode_utf16([unit]).next(),
            (Some(_), _) => None,
        };
        let Some(Ok(character)) = read else {
            self.hand_on(each)?;
            return Err(Stop::Found(Cause::Encoding, "a surrogate alone in UTF-16"));
        };
        self.piece.push(character);
        if self.piece.len() > PIECE_BYTES_MAX - char::MAX_LEN_UTF8 { self.hand_on(each) } else { Ok(()) }
    }

    fn hand_on(&mut self, each: &mut dyn FnMut(&str) -> Result<(), Stop>) -> Result<(), Stop> {
        let handed_on = hand_on(&self.piece, each);
        self.piece.clear();
        handed_on
    }

    fn finish(&mut self) -> Result<(), Stop> {
        match (self.half, self.high) {
            (None, None) => Ok(()),
            _ => Err(Stop::Found(Cause::Encoding, "an end within a character of UTF-16")),
        }
    }
}

//! Bytes of a body as text: which encoding it is in, and its characters in valid UTF-8.

mod charset;
mod declaration;
mod decoder;
mod head;

use crate::{Cause, Fault};
use charset::Charset;
pub(crate) use charset::{Encoding, form_encoding, is_charset};
pub(crate) use decoder::{Decoder, Piece};
use head::Head;

/// What the text is, which says how its encoding is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TextKind {
    /// XML: the media type's charset, a byte order mark and the encoding declaration each say it, and none may
    /// contradict another (XML 1.0 section 4.3.3, RFC 7303 section 3). UTF-8 if none of them says anything. Without a
    /// byte order mark UTF-16 is found by the first bytes of its declaration (XML 1.0 appendix F.1).
    Xml,
    /// JSON: UTF-8 (RFC 8259 section 8.1), or UTF-16 if a byte order mark or the media type says so. A charset has no
    /// effect on many readers (RFC 8259 section 11): of an encoding other than UTF-8 and UTF-16, only ASCII is read.
    Json,
}

/// Turns the bytes of a body into pieces of valid UTF-8, without a byte order mark.
///
/// It reads UTF-8, UTF-16, ISO-8859-1, ISO-8859-15, windows-1252 and US-ASCII; anything else is [`Cause::Encoding`].
/// UTF-8 passes without a copy. Bytes that are no text in the encoding are handed on as [`TextPiece::Undecodable`]: XML
/// with them is not well-formed, and JSON may have them in its strings.
///
/// Decisions: `utf-16` without a byte order mark is big endian (RFC 2781 section 4.3); text in UTF-16 begins with an
/// ASCII character, as all XML and JSON does; a byte order mark that says what `utf-16le` or `utf-16be` says is taken
/// away; the bytes 0x80 to 0x9F, which are controls in ISO-8859 and letters to parsers that take it for windows-1252, are
/// undecodable in it.
///
/// It holds at most [`TextReader::HELD_BYTES_MAX`].
#[derive(Debug)]
pub struct TextReader {
    state: State,
    /// Bytes of UTF-8 that were handed on.
    given: u64,
    fault: Option<Fault>,
}

#[derive(Debug)]
enum State {
    /// What stands at the start does not yet say which encoding it is in.
    Head(Head),
    Body(Decoder),
}

/// What a text says next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextPiece<'a> {
    /// Characters; never none.
    Text(&'a str),
    /// Bytes that are no text in the encoding of the text, as a fault that a reader may return. Behind them the text
    /// goes on where its next character may begin.
    Undecodable(Fault),
}

/// What a decoder stops at: its own finding, or a fault that the reader of the text has returned.
#[derive(Debug)]
pub(crate) enum Stop {
    Found(Cause, &'static str),
    Heard(Fault),
}

impl TextReader {
    /// Bytes that it may hold at a time: the start of a text up to its encoding declaration, or decoded text on its way.
    pub const HELD_BYTES_MAX: usize = Head::BYTES_MAX + decoder::PIECE_BYTES_MAX;

    /// A reader for a text whose media type has this `charset` parameter, without the quotes it may stand in.
    pub fn new(kind: TextKind, charset: Option<&[u8]>) -> Result<TextReader, Fault> {
        let charset = match charset {
            None => None,
            Some(name) if kind == TextKind::Json && charset::extends_ascii(name) => Some(Charset::Ascii),
            Some(name) => Some(Charset::of(name).ok_or(Fault {
                cause: Cause::Encoding,
                at: 0,
                what: "a charset that is not supported",
            })?),
        };
        Ok(TextReader { state: State::Head(Head::new(kind, charset)), given: 0, fault: None })
    }

    /// Takes more bytes; `each` hears of the text in them, in pieces that are never empty.
    pub fn feed(
        &mut self,
        bytes: &[u8],
        each: &mut impl FnMut(TextPiece<'_>) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        self.following(each, |state, each| state.feed(bytes, each))
    }

    /// No more bytes come. A text that was too short to say which encoding it is in is heard of only now.
    pub fn finish(&mut self, each: &mut impl FnMut(TextPiece<'_>) -> Result<(), Fault>) -> Result<(), Fault> {
        self.following(each, |state, each| state.finish(each))
    }

    fn following(
        &mut self,
        each: &mut impl FnMut(TextPiece<'_>) -> Result<(), Fault>,
        go_on: impl FnOnce(&mut State, &mut dyn FnMut(Piece<'_>) -> Result<(), Stop>) -> Result<(), Stop>,
    ) -> Result<(), Fault> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        let TextReader { state, given, fault } = self;
        let gone = go_on(state, &mut |piece| match piece {
            Piece::Text(text) => {
                each(TextPiece::Text(text)).map_err(Stop::Heard)?;
                *given += text.len() as u64;
                Ok(())
            }
            Piece::Undecodable(what) => {
                let fault = Fault { cause: Cause::Encoding, at: *given, what };
                each(TextPiece::Undecodable(fault)).map_err(Stop::Heard)
            }
        });
        gone.map_err(|stop| {
            let found = match stop {
                Stop::Found(cause, what) => Fault { cause, at: *given, what },
                Stop::Heard(found) => found,
            };
            *fault.insert(found)
        })
    }
}

impl State {
    fn feed(
        &mut self,
        bytes: &[u8],
        each: &mut dyn FnMut(Piece<'_>) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        let rest = match self {
            State::Body(decoder) => return decoder.feed(bytes, each),
            State::Head(head) => {
                let Some(used) = head.feed(bytes)? else { return Ok(()) };
                &bytes[used..]
            }
        };
        self.settle(each)?.feed(rest, each)
    }

    fn finish(&mut self, each: &mut dyn FnMut(Piece<'_>) -> Result<(), Stop>) -> Result<(), Stop> {
        if let State::Head(head) = self {
            head.finish()?;
        }
        self.settle(each)?.finish(each)
    }

    /// The decoder, which has heard of what stood at the start.
    fn settle(&mut self, each: &mut dyn FnMut(Piece<'_>) -> Result<(), Stop>) -> Result<&mut Decoder, Stop> {
        if let State::Head(head) = self {
            let mut decoder = Decoder::new(head.encoding());
            decoder.feed(head.text(), each)?;
            *self = State::Body(decoder);
        }
        match self {
            State::Body(decoder) => Ok(decoder),
            State::Head(_) => Err(Stop::Found(Cause::Encoding, "no encoding")),
        }
    }
}

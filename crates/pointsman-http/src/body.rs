//! Where a body ends: it is followed as it goes by, and forwarded as the bytes it came in.

use std::ops::Range;

use crate::header::{is_token_byte, is_value_byte};
use crate::trailer::{Cut, SetAside, TrailerReader, Trailers};

/// How a body is delimited (RFC 9112 section 6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Framing {
    /// There is none.
    #[default]
    None,
    /// By Content-Length; never 0.
    Length(u64),
    /// By `Transfer-Encoding: chunked`.
    Chunked,
    /// By the end of the connection; answers only.
    UntilClose,
}

/// What is wrong with a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyFault {
    /// A chunk's size line, its extensions included (RFC 9112 section 7.1).
    ChunkSize,
    /// More chunk extensions than anybody needs.
    ChunkExtensions,
    /// No CRLF after a chunk's data.
    ChunkEnd,
    /// A trailer line, or a name that may not stand in trailers (RFC 9110 section 6.5.1).
    Trailer,
}

impl BodyFault {
    /// What was wrong, for the answer's body and the access log.
    pub fn sentence(self) -> &'static str {
        match self {
            BodyFault::ChunkSize => "malformed chunk size",
            BodyFault::ChunkExtensions => "too many chunk extensions",
            BodyFault::ChunkEnd => "chunk data without CRLF at its end",
            BodyFault::Trailer => "malformed or forbidden trailer",
        }
    }
}

/// What a reader made of the bytes it was fed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fed {
    /// How many of the bytes belong to the body; the rest belong to the next message.
    pub used: usize,
    /// Whether the body has ended.
    pub done: bool,
}

/// Follows one body from its first byte to its last.
#[derive(Debug)]
pub struct BodyReader(State);

#[derive(Debug)]
enum State {
    /// With what is cut out of the last bytes.
    Done(Option<Box<SetAside>>),
    Length(u64),
    UntilClose,
    Chunked(ChunkReader),
}

impl BodyReader {
    /// A reader for a body with this framing.
    pub fn new(framing: Framing) -> BodyReader {
        BodyReader(match framing {
            Framing::None => State::Done(None),
            Framing::Length(bytes) => State::Length(bytes),
            Framing::UntilClose => State::UntilClose,
            Framing::Chunked => State::Chunked(ChunkReader::default()),
        })
    }

    /// Sets the treatment of trailers. Feeding without framing hands them over in any case.
    #[must_use]
    pub fn with_trailers(mut self, treatment: Trailers) -> BodyReader {
        if let State::Chunked(reader) = &mut self.0 {
            reader.trailers.treat(treatment);
        }
        self
    }

    /// Takes what is cut out of the bytes fed last.
    pub fn take_cut(&mut self) -> Option<Cut> {
        match &mut self.0 {
            State::Chunked(reader) => reader.trailers.take_cut(),
            State::Done(set_aside) => set_aside.as_mut()?.cut.take(),
            State::Length(_) | State::UntilClose => None,
        }
    }

    /// A reader for the body of an answer. Its trailers may have names that no request's may have: what reads alike
    /// fools servers, and gRPC's metadata has underscores and dots.
    pub fn of_answer(framing: Framing) -> BodyReader {
        match framing {
            Framing::Chunked => BodyReader(State::Chunked(ChunkReader::of_answer())),
            _ => BodyReader::new(framing),
        }
    }

    /// Whether the body has ended.
    pub fn is_done(&self) -> bool {
        matches!(self.0, State::Done(_))
    }

    /// Whether the end of the connection ends the body, rather than cutting it short.
    pub fn ends_at_close(&self) -> bool {
        matches!(self.0, State::UntilClose)
    }

    /// How much of the body may pass unseen: what is left of one with a length, and nothing where framing
    /// has to be followed.
    pub fn unseen_bytes_max(&self) -> u64 {
        match &self.0 {
            State::Length(left) => *left,
            State::Done(_) | State::UntilClose | State::Chunked(_) => 0,
        }
    }

    /// Counts `bytes` of the body that passed unseen, at most [`BodyReader::unseen_bytes_max`].
    pub fn pass(&mut self, bytes: u64) {
        if let State::Length(left) = &mut self.0 {
            *left = left.saturating_sub(bytes);
            if *left == 0 {
                self.0 = State::Done(None);
            }
        }
    }

    /// Follows `bytes`, which are to be forwarded as they are.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<Fed, BodyFault> {
        self.follow(bytes, usize::MAX, &mut |_, _| {})
    }

    /// The same, and shows where in `bytes` the body's data stands, piece by piece.
    pub fn feed_showing(
        &mut self,
        bytes: &[u8],
        mut show: impl FnMut(Range<usize>),
    ) -> Result<Fed, BodyFault> {
        self.follow(bytes, usize::MAX, &mut |part, place| {
            if part == Part::Data {
                show(place);
            }
        })
    }

    /// Follows `bytes` and appends the body's data without its chunk framing to `data`, and the lines behind it, up
    /// to the empty one, to `trailers`.
    pub fn feed_unchunked(
        &mut self,
        bytes: &[u8],
        data: &mut Vec<u8>,
        trailers: &mut Vec<u8>,
    ) -> Result<Fed, BodyFault> {
        self.feed_unchunked_within(bytes, usize::MAX, data, trailers)
    }

    /// The same, up to where there would be more than `data_bytes_max` of data. What frames it is followed in any case.
    pub fn feed_unchunked_within(
        &mut self,
        bytes: &[u8],
        data_bytes_max: usize,
        data: &mut Vec<u8>,
        trailers: &mut Vec<u8>,
    ) -> Result<Fed, BodyFault> {
        let mut has_trailers = false;
        let fed = self.follow(bytes, data_bytes_max, &mut |part, place| match part {
            Part::Data => data.extend_from_slice(&bytes[place]),
            Part::Trailers => {
                has_trailers = true;
                trailers.extend_from_slice(&bytes[place]);
            }
        })?;
        if fed.done && has_trailers {
            let end = trailers.len().saturating_sub(b"\r\n".len());
            trailers.truncate(end);
        }
        Ok(fed)
    }

    fn follow(
        &mut self,
        bytes: &[u8],
        data_bytes_max: usize,
        each: &mut impl FnMut(Part, Range<usize>),
    ) -> Result<Fed, BodyFault> {
        let data_bytes = bytes.len().min(data_bytes_max);
        self.take_cut();
        let fed = match &mut self.0 {
            State::Done(_) => Fed { used: 0, done: true },
            State::UntilClose => {
                each(Part::Data, 0..data_bytes);
                Fed { used: data_bytes, done: false }
            }
            State::Length(left) => {
                let used = (data_bytes as u64).min(*left) as usize;
                each(Part::Data, 0..used);
                *left -= used as u64;
                Fed { used, done: *left == 0 }
            }
            State::Chunked(reader) => reader.follow(bytes, data_bytes_max, each)?,
        };
        if fed.done {
            let set_aside = match &mut self.0 {
                State::Chunked(reader) => reader.trailers.take_set_aside(),
                State::Done(set_aside) => set_aside.take(),
                State::Length(_) | State::UntilClose => None,
            };
            self.0 = State::Done(set_aside);
        }
        Ok(fed)
    }
}

/// What a piece of a body without its framing is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Data,
    Trailers,
}

/// Chunked framing, strictly: CRLF only, no white space in the size, extensions and trailers bounded.
#[derive(Debug, Default)]
struct ChunkReader {
    place: Place,
    left: u64,
    digits: u8,
    extensions_bytes: u16,
    trailers: TrailerReader,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    #[default]
    Size,
    /// Before the first byte of an extension's name.
    NameStart,
    Name,
    /// Before the first byte of its value.
    ValueStart,
    Value,
    Quoted,
    /// Behind a backslash in quotes.
    Escaped,
    /// Behind the closing quote.
    QuotedEnd,
    SizeLineFeed,
    Data,
    DataReturn,
    DataLineFeed,
    Trailers,
}

/// 15 hex digits keep the sum below 2^60.
const SIZE_DIGITS_MAX: u8 = 15;
/// Extensions of all chunks of a body together (RFC 9112 section 7.1.1 asks for a limit on the sum).
const EXTENSIONS_BYTES_MAX: u16 = 4096;

impl ChunkReader {
    fn of_answer() -> ChunkReader {
        ChunkReader { trailers: TrailerReader::of_answer(), ..ChunkReader::default() }
    }

    fn follow(
        &mut self,
        bytes: &[u8],
        mut data_bytes_max: usize,
        each: &mut impl FnMut(Part, Range<usize>),
    ) -> Result<Fed, BodyFault> {
        let mut at = 0;
        while at < bytes.len() {
            match self.place {
                Place::Data if data_bytes_max == 0 => break,
                Place::Data => {
                    let piece = (self.left).min((bytes.len() - at).min(data_bytes_max) as u64) as usize;
                    data_bytes_max -= piece;
                    each(Part::Data, at..at + piece);
                    self.left -= piece as u64;
                    at += piece;
                    if self.left == 0 {
                        self.place = Place::DataReturn;
                    }
                }
                Place::Trailers => {
                    let fed = self.trailers.follow(&bytes[at..], at)?;
                    each(Part::Trailers, at..at + fed.used);
                    return Ok(Fed { used: at + fed.used, done: fed.done });
                }
                _ => {
                    self.step(bytes[at])?;
                    at += 1;
                }
            }
        }
        Ok(Fed { used: at, done: false })
    }

    fn step(&mut self, byte: u8) -> Result<(), BodyFault> {
        self.place = match (self.place, byte) {
            (Place::Size, b'\r') if self.digits > 0 => Place::SizeLineFeed,
            (Place::Size, b';') if self.digits > 0 => Place::NameStart,
            (Place::Size, _) => {
                let digit = (byte as char).to_digit(16).ok_or(BodyFault::ChunkSize)?;
                self.digits += 1;
                if self.digits > SIZE_DIGITS_MAX {
                    return Err(BodyFault::ChunkSize);
                }
                self.left = self.left * 16 + u64::from(digit);
                Place::Size
            }
            (
                Place::NameStart
                | Place::Name
                | Place::ValueStart
                | Place::Value
                | Place::Quoted
                | Place::Escaped
                | Place::QuotedEnd,
                _,
            ) => {
                self.extensions_bytes += u16::from(byte != b'\r');
                if self.extensions_bytes > EXTENSIONS_BYTES_MAX {
                    return Err(BodyFault::ChunkExtensions);
                }
                extension_step(self.place, byte).ok_or(BodyFault::ChunkSize)?
            }
            (Place::SizeLineFeed, b'\n') => {
                self.digits = 0;
                if self.left == 0 { Place::Trailers } else { Place::Data }
            }
            (Place::SizeLineFeed, _) => return Err(BodyFault::ChunkSize),
            (Place::DataReturn, b'\r') => Place::DataLineFeed,
            (Place::DataLineFeed, b'\n') => Place::Size,
            _ => return Err(BodyFault::ChunkEnd),
        };
        Ok(())
    }
}

/// A step through `;name`, `;name=value` or `;name="value"` (RFC 9112 section 7.1.1). White space, which the
/// grammar only tolerates, is where parsers part ways: there is none.
fn extension_step(place: Place, byte: u8) -> Option<Place> {
    match (place, byte) {
        (Place::NameStart | Place::Name, _) if is_token_byte(byte) => Some(Place::Name),
        (Place::ValueStart | Place::Value, _) if is_token_byte(byte) => Some(Place::Value),
        (Place::Name, b'=') => Some(Place::ValueStart),
        (Place::ValueStart, b'"') => Some(Place::Quoted),
        (Place::Quoted, b'"') => Some(Place::QuotedEnd),
        (Place::Quoted, b'\\') => Some(Place::Escaped),
        (Place::Quoted | Place::Escaped, _) if is_value_byte(byte) => Some(Place::Quoted),
        (Place::Name | Place::Value | Place::QuotedEnd, b';') => Some(Place::NameStart),
        (Place::Name | Place::Value | Place::QuotedEnd, b'\r') => Some(Place::SizeLineFeed),
        _ => None,
    }
}

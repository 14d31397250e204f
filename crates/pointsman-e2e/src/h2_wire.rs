//! HTTP/2 frames by hand (RFC 9113): a client that can send what no library would.
//!
//! Nothing is checked before it is sent. What comes is read strictly.

use std::collections::HashMap;
use std::io::{Error, ErrorKind, Result};

use crate::h2_windows::Windows;
use crate::hpack::{Decoder, Field, literal};
use crate::{Client, is_closed, read_some};

/// What a client sends before its first frame (RFC 9113 section 3.4).
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// The longest payload that needs no leave (RFC 9113 section 4.2).
pub const PAYLOAD_BYTES_MAX: usize = 16_384;

/// Kinds of frames (RFC 9113 section 6).
pub mod kind {
    /// Content.
    pub const DATA: u8 = 0;
    /// The start of a field block.
    pub const HEADERS: u8 = 1;
    /// An order between streams, which is of no use any more.
    pub const PRIORITY: u8 = 2;
    /// The end of a stream by force.
    pub const RST_STREAM: u8 = 3;
    /// What the sender takes.
    pub const SETTINGS: u8 = 4;
    /// A promise; no client may send it.
    pub const PUSH_PROMISE: u8 = 5;
    /// To be sent back.
    pub const PING: u8 = 6;
    /// The end of the connection.
    pub const GOAWAY: u8 = 7;
    /// Room for content.
    pub const WINDOW_UPDATE: u8 = 8;
    /// More of a field block.
    pub const CONTINUATION: u8 = 9;
}

/// Flags of frames.
pub mod flag {
    /// The last of the stream (DATA, HEADERS).
    pub const END_STREAM: u8 = 0x1;
    /// An answer (SETTINGS, PING).
    pub const ACK: u8 = 0x1;
    /// The last of the field block (HEADERS, CONTINUATION).
    pub const END_HEADERS: u8 = 0x4;
    /// A byte says how much of the end is padding (DATA, HEADERS).
    pub const PADDED: u8 = 0x8;
}

/// Settings (RFC 9113 section 6.5.2).
pub mod setting {
    /// How much the dynamic table may hold.
    pub const HEADER_TABLE_SIZE: u16 = 1;
    /// Whether the server may promise.
    pub const ENABLE_PUSH: u16 = 2;
    /// How many streams the other side may open.
    pub const MAX_CONCURRENT_STREAMS: u16 = 3;
    /// The first window of each stream.
    pub const INITIAL_WINDOW_SIZE: u16 = 4;
    /// The longest payload.
    pub const MAX_FRAME_SIZE: u16 = 5;
    /// How long a field section may be.
    pub const MAX_HEADER_LIST_SIZE: u16 = 6;
    /// Whether a stream may change to another protocol (RFC 8441 section 3).
    pub const ENABLE_CONNECT_PROTOCOL: u16 = 8;
}

/// A frame as it stands on the wire.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// One of [`kind`], or any other.
    pub kind: u8,
    /// Those of [`flag`], or any other.
    pub flags: u8,
    /// The number of the stream.
    pub stream: u32,
    /// What it carries.
    pub payload: Vec<u8>,
}

impl Frame {
    /// Any frame.
    #[must_use]
    pub fn new(kind: u8, flags: u8, stream: u32, payload: impl Into<Vec<u8>>) -> Self {
        Self { kind, flags, stream, payload: payload.into() }
    }

    /// Content; `flags` may be [`flag::END_STREAM`].
    #[must_use]
    pub fn data(stream: u32, flags: u8, content: impl Into<Vec<u8>>) -> Self {
        Self::new(kind::DATA, flags, stream, content)
    }

    /// A whole field block in one frame of HEADERS, however long it is.
    #[must_use]
    pub fn headers(stream: u32, flags: u8, fields: &[Field]) -> Self {
        Self::new(kind::HEADERS, flags | flag::END_HEADERS, stream, literal(fields))
    }

    /// Settings and their values.
    #[must_use]
    pub fn settings(settings: &[(u16, u32)]) -> Self {
        let pair = |(name, value): &(u16, u32)| [&name.to_be_bytes()[..], &value.to_be_bytes()].concat();
        Self::new(kind::SETTINGS, 0, 0, settings.iter().flat_map(pair).collect::<Vec<_>>())
    }

    /// Asks for these bytes to be sent back.
    #[must_use]
    pub fn ping(bytes: [u8; 8]) -> Self {
        Self::new(kind::PING, 0, 0, bytes)
    }

    /// Room for so many bytes more; of the connection when `stream` is 0.
    #[must_use]
    pub fn window_update(stream: u32, bytes: u32) -> Self {
        Self::new(kind::WINDOW_UPDATE, 0, stream, bytes.to_be_bytes())
    }

    /// Ends a stream by force.
    #[must_use]
    pub fn rst_stream(stream: u32, code: u32) -> Self {
        Self::new(kind::RST_STREAM, 0, stream, code.to_be_bytes())
    }

    /// Its bytes.
    ///
    /// # Panics
    /// When the payload is longer than 24 bits tell.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        self.bytes_claiming(self.payload.len())
    }

    /// The same with another length in its head than its payload has.
    ///
    /// # Panics
    /// When the length is more than 24 bits tell.
    #[must_use]
    pub fn bytes_claiming(&self, length: usize) -> Vec<u8> {
        let length = u32::try_from(length).ok().filter(|length| *length < 1 << 24).expect("24 bits");
        let head =
            [&length.to_be_bytes()[1..], &[self.kind, self.flags], &self.stream.to_be_bytes()].concat();
        [head.as_slice(), &self.payload].concat()
    }

    /// The first frame of what came, once it is whole.
    pub(crate) fn take_from(came: &mut Vec<u8>) -> Option<Self> {
        let head = came.get(..9)?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let end = 9 + usize::try_from(length).expect("24 bits");
        let stream = u32::from_be_bytes([head[5] & 0x7f, head[6], head[7], head[8]]);
        let payload = came.get(9..end)?.to_vec();
        let frame = Self { kind: head[3], flags: head[4], stream, payload };
        came.drain(..end);
        Some(frame)
    }

    pub(crate) fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// The number at a place of the payload.
    pub(crate) fn number(&self, at: usize) -> Result<u32> {
        let four = self.payload.get(at..at + 4).ok_or_else(|| invalid(format!("{self:?} is too short")))?;
        Ok(u32::from_be_bytes(four.try_into().expect("four bytes")))
    }
}

/// An answer, as far as it came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct H2Answer {
    /// The blocks of 1xx.
    pub interim: Vec<Vec<Field>>,
    /// The fields of the final block, `:status` among them.
    pub fields: Vec<Field>,
    /// The content.
    pub body: Vec<u8>,
    /// The fields behind it.
    pub trailers: Vec<Field>,
    /// Whether the stream was ended.
    pub is_whole: bool,
    /// With which code it was reset.
    pub reset: Option<u32>,
}

impl H2Answer {
    /// The first value of a field.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<String> {
        let (_, value) = self.fields.iter().find(|(other, _)| other == name.as_bytes())?;
        Some(String::from_utf8_lossy(value).into_owned())
    }

    /// The status; 0 where there is none yet.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.field(":status").and_then(|status| status.parse().ok()).unwrap_or_default()
    }

    /// The content as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// What became of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A whole answer.
    Answer(H2Answer),
    /// It was reset with this code (RFC 9113 section 7).
    Reset(u32),
    /// The connection is ended with this code before the stream had its end.
    GoAway(u32),
    /// The connection ended without a word.
    Closed,
}

/// A connection to the switch.
pub struct H2Client {
    client: Client,
    came: Vec<u8>,
    decoder: Decoder,
    answers: HashMap<u32, H2Answer>,
    /// A block whose end is to come: its stream, whether it ends the stream, its bytes.
    block: Option<(u32, bool, Vec<u8>)>,
    goaway: Option<(u32, u32)>,
    pub(crate) windows: Windows,
    /// Streams of which nothing is taken.
    held: Vec<u32>,
}

impl H2Client {
    /// Over a connection on which nothing was sent; sends nothing itself.
    #[must_use]
    pub fn silent(client: Client) -> Self {
        let (came, decoder, answers) = (Vec::new(), Decoder::default(), HashMap::new());
        let (windows, held) = (Windows::default(), Vec::new());
        Self { client, came, decoder, answers, block: None, goaway: None, windows, held }
    }

    /// The same, and sends the preface and its settings: no push, and windows that nothing of a test fills.
    ///
    /// # Panics
    /// When it cannot be sent.
    #[must_use]
    pub fn begin(client: Client) -> Self {
        Self::begin_with_window(client, (1 << 24) - 1)
    }

    /// The same with so many bytes of each stream that may come before there is room for more.
    ///
    /// # Panics
    /// When it cannot be sent.
    #[must_use]
    pub fn begin_with_window(client: Client, stream_bytes: u32) -> Self {
        let mut client = Self::silent(client);
        let window = (1 << 24) - 1;
        let settings = [(setting::ENABLE_PUSH, 0), (setting::INITIAL_WINDOW_SIZE, stream_bytes)];
        let start = [Frame::settings(&settings).bytes(), Frame::window_update(0, window).bytes()].concat();
        client.try_send(&[PREFACE, &start].concat()).expect("the switch reads");
        client
    }

    /// Sends bytes, which the switch may be too annoyed to take.
    ///
    /// # Errors
    /// When the switch closed.
    pub fn try_send(&mut self, bytes: &[u8]) -> Result<()> {
        self.client.try_send(bytes)
    }

    /// Sends a frame.
    ///
    /// # Errors
    /// When the switch closed.
    pub fn send(&mut self, frame: &Frame) -> Result<()> {
        self.try_send(&frame.bytes())
    }

    /// Sends fields as a request, or as trailers, in so many frames as they need.
    ///
    /// # Errors
    /// When the switch closed.
    pub fn send_fields(&mut self, stream: u32, flags: u8, fields: &[Field]) -> Result<()> {
        self.try_send(&section(stream, flags, fields))
    }

    /// Takes nothing more of a stream than what there is room for already.
    pub fn hold(&mut self, stream: u32) {
        self.held.push(stream);
    }

    /// What has come of a stream by now.
    #[must_use]
    pub fn seen(&self, stream: u32) -> H2Answer {
        self.answers.get(&stream).cloned().unwrap_or_default()
    }

    /// Under which scheme it asks.
    #[must_use]
    pub fn scheme(&self) -> &'static str {
        if self.client.is_tls() { "https" } else { "http" }
    }

    /// The next frame, to which nothing is said; nothing at the end of the connection.
    ///
    /// # Errors
    /// When nothing comes in time, or the connection ends inside a frame.
    pub fn frame(&mut self) -> Result<Option<Frame>> {
        loop {
            if let Some(frame) = Frame::take_from(&mut self.came) {
                return Ok(Some(frame));
            }
            let mut space = [0; 64 * 1024];
            let count = match read_some(self.client.stream(), &mut space) {
                Err(error) if is_closed(&error) => 0,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    return Err(Error::new(ErrorKind::TimedOut, "nothing came in time"));
                }
                outcome => outcome?,
            };
            if count == 0 && !self.came.is_empty() {
                return Err(invalid("the connection ended inside a frame".to_owned()));
            }
            if count == 0 {
                return Ok(None);
            }
            self.came.extend_from_slice(&space[..count]);
        }
    }

    /// Reads until a stream is at its end, or the connection. Settings and pings are answered, and content makes
    /// room for more.
    ///
    /// # Errors
    /// When nothing comes in time, or what comes is no HTTP/2.
    pub fn outcome(&mut self, stream: u32) -> Result<Outcome> {
        loop {
            let seen = self.answers.get(&stream);
            if let Some(answer) = seen.filter(|answer| answer.is_whole) {
                return Ok(Outcome::Answer(answer.clone()));
            }
            if let Some(code) = seen.and_then(|answer| answer.reset) {
                return Ok(Outcome::Reset(code));
            }
            match self.frame()? {
                Some(frame) => self.take(frame)?,
                None => return Ok(self.goaway.map_or(Outcome::Closed, |(_, code)| Outcome::GoAway(code))),
            }
        }
    }

    /// The last stream and the code of a GOAWAY that came.
    #[must_use]
    pub fn goaway(&self) -> Option<(u32, u32)> {
        self.goaway
    }

    /// Makes of a frame what a client makes of it.
    ///
    /// # Errors
    /// When it is none that may come here.
    pub fn take(&mut self, frame: Frame) -> Result<()> {
        if self.block.is_some() && frame.kind != kind::CONTINUATION {
            return Err(invalid(format!("{frame:?} inside a field block")));
        }
        self.windows.hear(&frame)?;
        // What is said to a connection that was closed is lost; reading shows it.
        match frame.kind {
            kind::SETTINGS if !frame.has(flag::ACK) => {
                drop(self.send(&Frame::new(kind::SETTINGS, flag::ACK, 0, [])));
            }
            kind::PING if !frame.has(flag::ACK) => {
                drop(self.send(&Frame::new(kind::PING, flag::ACK, 0, frame.payload)));
            }
            kind::GOAWAY => self.goaway = Some((frame.number(0)? & (u32::MAX >> 1), frame.number(4)?)),
            kind::RST_STREAM => {
                let code = frame.number(0)?;
                self.answers.entry(frame.stream).or_default().reset = Some(code);
            }
            kind::DATA => self.take_data(&frame),
            kind::HEADERS | kind::CONTINUATION => self.take_block(&frame)?,
            kind::PUSH_PROMISE => return Err(invalid("a promise, which was forbidden".to_owned())),
            _ => {}
        }
        Ok(())
    }

    fn take_data(&mut self, frame: &Frame) {
        if let Ok(length @ 1..) = u32::try_from(frame.payload.len()) {
            for stream in [0, frame.stream] {
                if !self.held.contains(&stream) {
                    drop(self.send(&Frame::window_update(stream, length)));
                }
            }
        }
        let answer = self.answers.entry(frame.stream).or_default();
        answer.body.extend_from_slice(unpadded(frame));
        answer.is_whole = frame.has(flag::END_STREAM);
    }

    fn take_block(&mut self, frame: &Frame) -> Result<()> {
        let is_start = frame.kind == kind::HEADERS;
        let (stream, ends, mut block) = match self.block.take() {
            Some(open) if open.0 == frame.stream && !is_start => open,
            None if is_start => (frame.stream, frame.has(flag::END_STREAM), Vec::new()),
            _ => return Err(invalid(format!("{frame:?} does not belong here"))),
        };
        block.extend_from_slice(if is_start { unpadded(frame) } else { &frame.payload });
        if !frame.has(flag::END_HEADERS) {
            self.block = Some((stream, ends, block));
            return Ok(());
        }
        let fields =
            self.decoder.read(&block).ok_or_else(|| invalid(format!("no field block: {block:?}")))?;
        let answer = self.answers.entry(stream).or_default();
        let is_interim = fields.iter().any(|(name, value)| name == b":status" && value.starts_with(b"1"));
        if is_interim {
            answer.interim.push(fields);
        } else if answer.fields.is_empty() {
            answer.fields = fields;
        } else {
            answer.trailers = fields;
        }
        answer.is_whole = ends;
        Ok(())
    }
}

/// Fields from text.
#[must_use]
pub fn fields(pairs: &[(&str, &str)]) -> Vec<Field> {
    pairs.iter().map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec())).collect()
}

/// The fields of a plain request to the tests' usual host.
#[must_use]
pub fn request(method: &str, path: &str) -> Vec<Field> {
    fields(&[(":method", method), (":scheme", "http"), (":authority", "shop.example"), (":path", path)])
}

/// Fields in so many frames as they need.
pub(crate) fn section(stream: u32, flags: u8, fields: &[Field]) -> Vec<u8> {
    let block = literal(fields);
    let mut pieces = block.chunks(PAYLOAD_BYTES_MAX).peekable();
    let mut bytes = Vec::new();
    let (mut kind, mut flags) = (kind::HEADERS, flags);
    while let Some(piece) = pieces.next() {
        let last = if pieces.peek().is_none() { flag::END_HEADERS } else { 0 };
        bytes.extend(Frame::new(kind, flags | last, stream, piece).bytes());
        (kind, flags) = (kind::CONTINUATION, 0);
    }
    bytes
}

/// What a frame of DATA or HEADERS carries, without what fills it up.
pub(crate) fn unpadded(frame: &Frame) -> &[u8] {
    match frame.payload.split_first() {
        Some((padding, rest)) if frame.has(flag::PADDED) => {
            &rest[..rest.len().saturating_sub(usize::from(*padding))]
        }
        _ => &frame.payload,
    }
}

fn invalid(what: String) -> Error {
    Error::new(ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_have_a_head_of_nine_bytes() {
        let frame = Frame::data(5, flag::END_STREAM, "abc");
        assert_eq!(frame.bytes(), b"\0\0\x03\0\x01\0\0\0\x05abc");
        assert_eq!(frame.bytes_claiming(0x01_0203)[..3], [1, 2, 3]);
        let settings = Frame::settings(&[(setting::ENABLE_PUSH, 0), (setting::MAX_FRAME_SIZE, 0x4001)]);
        assert_eq!(settings.bytes(), b"\0\0\x0c\x04\0\0\0\0\0\0\x02\0\0\0\0\0\x05\0\0\x40\x01");
        assert_eq!(Frame::ping(*b"12345678").bytes(), b"\0\0\x08\x06\0\0\0\0\x0012345678");
    }

    #[test]
    fn padding_is_no_content() {
        let padded = |payload: &[u8]| unpadded(&Frame::data(1, flag::PADDED, payload)).to_vec();
        assert_eq!(padded(b"\x02abc\0\0"), b"abc");
        assert_eq!(padded(b"\x09abc"), b"");
        assert_eq!(unpadded(&Frame::data(1, 0, "\u{2}abc")), b"\x02abc");
    }
}

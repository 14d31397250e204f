//! One stream: reading gives its request as HTTP/1.1, writing takes the answer.

use std::io;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use http::request::Parts;
use http::{HeaderMap, Request, uri::Scheme};

use crate::answer;
use crate::request::{self, Framed, Oddity};

/// What a chunk has beside its data, at most.
const CHUNK_OVERHEAD_BYTES: usize = "ffffffffffffffff\r\n\r\n".len();
/// Trailers larger than this are not passed on.
const TRAILER_BYTES_MAX: usize = 8 * 1024;
/// Data that is handed over at a time.
const PIECE_BYTES_MAX: usize = 64 * 1024;

/// A client's request and the way of its answer.
#[derive(Debug)]
pub struct Stream {
    input: Input,
    body: RecvStream,
    scheme: Option<Scheme>,
    oddity: Option<Oddity>,
    output: Output,
    /// Whether what is written next is the last.
    is_ending: bool,
    trailers: Option<Box<HeaderMap>>,
}

/// How far the request has been read.
#[derive(Debug)]
enum Input {
    Head(Box<Parts>),
    Data {
        framed: Framed,
        piece: Bytes,
    },
    Trailers,
    /// Framing that found no room.
    Last(Vec<u8>),
    Over,
}

/// How far the answer has been written.
#[derive(Debug)]
enum Output {
    Head(SendResponse<Bytes>),
    Data(SendStream<Bytes>),
    /// It is whole, as far as the switch has to do with it.
    Over(SendStream<Bytes>),
    Broken,
}

impl Stream {
    pub(crate) fn new(request: Request<RecvStream>, respond: SendResponse<Bytes>) -> Stream {
        let (parts, body) = request.into_parts();
        Stream {
            scheme: parts.uri.scheme().cloned(),
            input: Input::Head(Box::new(parts)),
            body,
            oddity: None,
            output: Output::Head(respond),
            is_ending: false,
            trailers: None,
        }
    }

    /// The scheme that the client named beside an authority (RFC 9113 section 8.3.1).
    pub fn scheme(&self) -> Option<&str> {
        self.scheme.as_ref().map(Scheme::as_str)
    }

    /// Whether the request has a body, though it may be empty.
    pub fn has_body(&self) -> bool {
        !self.body.is_end_stream()
    }

    /// What is odd about the request that an HTTP/1.1 head cannot show. Known once the head was read.
    pub fn oddity(&self) -> Option<Oddity> {
        self.oddity
    }

    /// Room that the next read needs at least, where it does not go on with less.
    pub fn room_bytes_min(&self) -> usize {
        match &self.input {
            Input::Head(parts) => request::bytes_max(parts),
            _ => CHUNK_OVERHEAD_BYTES + 1,
        }
    }

    /// Appends what has come of the request to `out`, within its room; 0 is the end.
    ///
    /// # Errors
    /// The stream was reset, or its connection has ended.
    pub fn poll_read(&mut self, context: &mut Context<'_>, out: &mut Vec<u8>) -> Poll<io::Result<usize>> {
        let before = out.len();
        loop {
            match &mut self.input {
                Input::Head(parts) => {
                    let has_body = !self.body.is_end_stream();
                    let (framed, oddity) = request::write_head(parts, has_body, out);
                    self.oddity = oddity;
                    self.input = match framed {
                        Framed::Not => Input::Over,
                        framed => Input::Data { framed, piece: Bytes::new() },
                    };
                    // What is here of the body goes with the head, where there is room.
                    if framed == Framed::Not || out.capacity() - out.len() < PIECE_BYTES_MAX / 8 {
                        break;
                    }
                }
                Input::Data { framed, piece } => {
                    if piece.is_empty() {
                        match self.body.poll_data(context) {
                            Poll::Ready(Some(Ok(data))) => *piece = data,
                            Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(broken(error))),
                            Poll::Ready(None) if *framed == Framed::ByLength => self.input = Input::Over,
                            Poll::Ready(None) => self.input = Input::Trailers,
                            Poll::Pending if out.len() > before => break,
                            Poll::Pending => return Poll::Pending,
                        }
                        continue;
                    }
                    let room = out.capacity() - out.len();
                    let taken = take_piece(*framed, piece, room, out);
                    if taken == 0 {
                        break;
                    }
                    self.body.flow_control().release_capacity(taken).map_err(broken)?;
                }
                Input::Trailers => {
                    let trailers = match self.body.poll_trailers(context) {
                        Poll::Ready(trailers) => trailers.map_err(broken)?,
                        Poll::Pending if out.len() > before => break,
                        Poll::Pending => return Poll::Pending,
                    };
                    self.input = Input::Last(last_chunk(trailers)?);
                }
                Input::Last(bytes) => {
                    if bytes.len() > out.capacity() - out.len() {
                        break;
                    }
                    out.extend_from_slice(bytes);
                    self.input = Input::Over;
                }
                Input::Over => break,
            }
        }
        Poll::Ready(Ok(out.len() - before))
    }

    /// Says that what is written next is the last, and that `trailers`, whole lines, follow it.
    pub fn ends_with(&mut self, trailers: &[u8]) {
        self.is_ending = true;
        if !trailers.is_empty() {
            self.trailers = answer::fields(trailers).map(Box::new);
        }
    }

    /// Takes some of `bytes`: first the head of an answer, which is whole, then data. Waits while the client gives no
    /// leave to send.
    pub fn poll_write(&mut self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let mut taken = 0;
        if let Output::Head(_) = self.output {
            taken = self.send_head(bytes)?;
            if taken == bytes.len() || !matches!(self.output, Output::Data(_)) {
                return Poll::Ready(Ok(taken));
            }
        }
        match self.poll_data(context, &bytes[taken..]) {
            Poll::Ready(Ok(data)) => Poll::Ready(Ok(taken + data)),
            Poll::Pending if taken > 0 => Poll::Ready(Ok(taken)),
            other => other,
        }
    }

    fn send_head(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let (answer, used) = answer::read_head(bytes).ok_or(io::ErrorKind::InvalidData)?;
        let Output::Head(respond) = &mut self.output else { return Err(io::ErrorKind::BrokenPipe.into()) };
        if answer.status().is_informational() {
            respond.send_informational(answer).map_err(broken)?;
            return Ok(used);
        }
        let is_end = self.is_ending && used == bytes.len() && self.trailers.is_none();
        let stream = respond.send_response(answer, is_end).map_err(broken)?;
        self.output = if is_end { Output::Over(stream) } else { Output::Data(stream) };
        Ok(used)
    }

    fn poll_data(&mut self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let Output::Data(stream) = &mut self.output else {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        };
        let wanted = bytes.len().min(PIECE_BYTES_MAX);
        stream.reserve_capacity(wanted);
        let mut room = stream.capacity();
        while room == 0 {
            room = match ready!(stream.poll_capacity(context)) {
                Some(room) => room.map_err(broken)?,
                None => return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
            };
        }
        let taken = wanted.min(room);
        let is_end = self.is_ending && taken == bytes.len();
        let has_trailers = self.trailers.is_some();
        stream.send_data(Bytes::copy_from_slice(&bytes[..taken]), is_end && !has_trailers).map_err(broken)?;
        if is_end {
            self.end()?;
        }
        Poll::Ready(Ok(taken))
    }

    /// Ends the answer where its end was announced and nothing of it is left to be written.
    pub fn finish(&mut self) -> io::Result<()> {
        match &mut self.output {
            Output::Data(stream) if self.is_ending => {
                if self.trailers.is_none() {
                    stream.send_data(Bytes::new(), true).map_err(broken)?;
                }
                self.end()
            }
            _ => Ok(()),
        }
    }

    /// Behind the last data: sends the trailers, if there are any.
    fn end(&mut self) -> io::Result<()> {
        let Output::Data(mut stream) = std::mem::replace(&mut self.output, Output::Broken) else {
            return Ok(());
        };
        if let Some(trailers) = self.trailers.take() {
            stream.send_trailers(*trailers).map_err(broken)?;
        }
        self.output = Output::Over(stream);
        Ok(())
    }

    /// Ready when the client has reset the stream, or its connection has ended.
    pub fn poll_reset(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let reset = match &mut self.output {
            Output::Head(respond) => respond.poll_reset(context),
            Output::Data(stream) | Output::Over(stream) => stream.poll_reset(context),
            Output::Broken => return Poll::Ready(()),
        };
        reset.map(drop)
    }

    /// Whether the answer is whole.
    pub fn is_answered(&self) -> bool {
        matches!(self.output, Output::Over(_))
    }

    /// Breaks the stream off, so that the client does not take what it has for the whole answer.
    pub fn break_off(&mut self) {
        let reason = Reason::INTERNAL_ERROR;
        match &mut self.output {
            Output::Head(respond) => respond.send_reset(reason),
            Output::Data(stream) => stream.send_reset(reason),
            Output::Over(_) | Output::Broken => return,
        }
        self.output = Output::Broken;
    }
}

/// Moves as much of `piece` to `out` as there is room for, framed. Returns how many bytes of it.
fn take_piece(framed: Framed, piece: &mut Bytes, room: usize, out: &mut Vec<u8>) -> usize {
    let overhead = if framed == Framed::InChunks { CHUNK_OVERHEAD_BYTES } else { 0 };
    let taken = piece.len().min(room.saturating_sub(overhead));
    if taken == 0 {
        return 0;
    }
    let data = piece.split_to(taken);
    if framed == Framed::InChunks {
        out.extend_from_slice(format!("{taken:x}\r\n").as_bytes());
    }
    out.extend_from_slice(&data);
    if framed == Framed::InChunks {
        out.extend_from_slice(b"\r\n");
    }
    taken
}

/// The last chunk, and the trailers behind it.
fn last_chunk(trailers: Option<HeaderMap>) -> io::Result<Vec<u8>> {
    let mut bytes = b"0\r\n".to_vec();
    if let Some(trailers) = trailers {
        if request::trailer_bytes(&trailers) > TRAILER_BYTES_MAX {
            return Err(io::ErrorKind::InvalidData.into());
        }
        request::write_trailers(&trailers, &mut bytes).ok_or(io::ErrorKind::InvalidData)?;
    }
    bytes.extend_from_slice(b"\r\n");
    Ok(bytes)
}

fn broken(error: h2::Error) -> io::Error {
    if error.is_io() {
        return error.into_io().unwrap_or_else(|| io::ErrorKind::BrokenPipe.into());
    }
    io::Error::new(io::ErrorKind::ConnectionReset, error)
}

//! One stream: reading gives its request as HTTP/1.1, writing takes the answer.

use std::any::Any;
use std::cell::Cell;
use std::fmt;
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use http::header::SEC_WEBSOCKET_ACCEPT;
use http::request::Parts;
use http::{HeaderMap, Request, Response, StatusCode, uri::Scheme};

use crate::answer;
use crate::fields::{broken, read_lines};
use crate::held::{Held, Piece};
use crate::incoming::{CHUNK_OVERHEAD_BYTES, Incoming, Rest, RestCame, poll_rest};
use crate::outgoing::{poll_leave, with_head};
use crate::request::{self, Oddity};

/// A client's request and the way of its answer.
pub struct Stream {
    input: Input,
    has_body: bool,
    scheme: Option<Scheme>,
    oddity: Option<Oddity>,
    tunnel: Tunnel,
    output: Output,
    /// Whether what is written next is the last.
    is_ending: bool,
    trailers: Option<Box<HeaderMap>>,
    held: Rc<Held>,
}

/// Whether the stream is to change to another protocol (RFC 8441).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tunnel {
    Not,
    /// The client asks for it.
    Asked,
    /// It has changed.
    Open,
}

/// How far the request has been read.
#[derive(Debug)]
enum Input {
    Head(Box<Parts>, Option<RecvStream>),
    Body(Incoming),
}

/// How far the answer has been written.
enum Output {
    Head(SendResponse<Piece>),
    Data(SendStream<Piece>),
    /// It is whole, but for what is held of it.
    Over(SendStream<Piece>),
    Broken,
}

impl Stream {
    /// Of a connection whose streams have sent `sent_bytes` together.
    pub(crate) fn new(
        request: Request<RecvStream>,
        respond: SendResponse<Piece>,
        sent_bytes: Rc<Cell<u64>>,
    ) -> Stream {
        let (parts, body) = request.into_parts();
        let has_body = !body.is_end_stream();
        let asks = request::protocol(&parts).is_some();
        Stream {
            scheme: parts.uri.scheme().cloned(),
            input: Input::Head(Box::new(parts), Some(body)),
            has_body,
            oddity: None,
            tunnel: if asks { Tunnel::Asked } else { Tunnel::Not },
            output: Output::Head(respond),
            is_ending: false,
            trailers: None,
            held: Held::new(sent_bytes),
        }
    }

    /// The scheme that the client named beside an authority (RFC 9113 section 8.3.1).
    pub fn scheme(&self) -> Option<&str> {
        self.scheme.as_ref().map(Scheme::as_str)
    }

    /// Whether the request has a body, though it may be empty.
    pub fn has_body(&self) -> bool {
        self.has_body
    }

    /// What is odd about the request that an HTTP/1.1 head cannot show. Known once the head was read.
    pub fn oddity(&self) -> Option<Oddity> {
        self.oddity
    }

    /// Whether the client asks for another protocol, by what reads as a GET with Upgrade.
    pub fn asks_for_protocol(&self) -> bool {
        self.tunnel != Tunnel::Not
    }

    /// Whether it has changed to another protocol: what is read and written is that.
    pub fn is_tunnel(&self) -> bool {
        self.tunnel == Tunnel::Open
    }

    /// Room that the next read needs at least, where it does not go on with less.
    pub fn room_bytes_min(&self) -> usize {
        match &self.input {
            Input::Head(parts, _) => request::bytes_max(parts),
            _ => CHUNK_OVERHEAD_BYTES + 1,
        }
    }

    /// Appends what has come of the request to `out`, within its room; 0 is the end.
    ///
    /// # Errors
    /// The stream was reset, or its connection has ended.
    pub fn poll_read(&mut self, context: &mut Context<'_>, out: &mut Vec<u8>) -> Poll<io::Result<usize>> {
        let before = out.len();
        if let Input::Head(..) = self.input
            && self.poll_reset(context).is_ready()
        {
            // Whether it has a body is not known any more.
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        if let Input::Head(parts, body) = &mut self.input {
            if let Some(body) = body
                && request::announces_nothing(parts)
            {
                ready!(poll_nothing(context, body))?;
            }
            let Some(body) = body.take() else { return Poll::Ready(Ok(0)) };
            let (framing, oddity) = request::write_head(parts, !body.is_end_stream(), out);
            self.oddity = oddity;
            self.input = Input::Body(Incoming::new(body, framing));
        }
        let Input::Body(body) = &mut self.input else { return Poll::Ready(Ok(0)) };
        body.poll_read_behind(out.len() - before, context, out)
    }

    /// Says that what is written next is the last, and that `trailers`, whole lines, follow it.
    pub fn ends_with(&mut self, trailers: &[u8]) {
        self.is_ending = true;
        if !trailers.is_empty() {
            self.trailers = read_lines(trailers).map(Box::new);
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
        with_head(taken, self.poll_data(context, &bytes[taken..]))
    }

    fn send_head(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let (mut answer, used) = answer::read_head(bytes).ok_or(io::ErrorKind::InvalidData)?;
        let Output::Head(respond) = &mut self.output else { return Err(io::ErrorKind::BrokenPipe.into()) };
        if answer.status() == StatusCode::SWITCHING_PROTOCOLS {
            let Input::Body(incoming) = &mut self.input else {
                return Err(io::ErrorKind::InvalidData.into());
            };
            incoming.becomes_tunnel();
            self.tunnel = Tunnel::Open;
            grant(&mut answer);
        } else if answer.status().is_informational() {
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
        let taken = ready!(poll_leave(stream, context, bytes.len()))?;
        let is_end = self.is_ending && taken == bytes.len();
        let has_trailers = self.trailers.is_some();
        let piece = Piece::new(&bytes[..taken], &self.held);
        stream.send_data(piece, is_end && !has_trailers).map_err(broken)?;
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
                    stream.send_data(Piece::new(b"", &self.held), true).map_err(broken)?;
                }
                self.end()
            }
            _ => Ok(()),
        }
    }

    /// The same, and waits until nothing of it is held any more: it has left, or nobody wants it. A tunnel's end
    /// needs no announcement.
    pub fn poll_finish(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.is_ending |= self.is_tunnel();
        self.finish()?;
        self.held.poll_empty(context).map(Ok)
    }

    /// Ends the answer as [`Stream::finish`] does, and the stream with it where the answer is whole: what is held of it
    /// leaves with later turns of the connection, and `companion` is dropped behind it. Else `companion` comes back.
    pub fn finish_with<C: Any>(&mut self, companion: C) -> Result<(), C> {
        if self.finish().is_err() || !self.is_answered() {
            return Err(companion);
        }
        self.held.keep(companion);
        Ok(())
    }

    /// Throws away what still comes of the request: a client that reads of the stream's end before it has sent all may
    /// take a whole answer for none.
    pub fn poll_rest(&mut self, context: &mut Context<'_>, rest: Rest) -> Poll<RestCame> {
        match &mut self.input {
            _ if self.tunnel == Tunnel::Open => Poll::Ready(RestCame::End),
            Input::Head(_, None) => Poll::Ready(RestCame::End),
            Input::Head(_, Some(body)) => poll_rest(body, context, rest),
            Input::Body(incoming) => incoming.poll_rest(context, rest),
        }
    }

    /// Bytes of content that it has sent.
    pub fn sent_bytes(&self) -> u64 {
        self.held.sent_bytes()
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

    /// Whether the answer is whole, but for what the connection holds of it.
    pub fn is_answered(&self) -> bool {
        matches!(self.output, Output::Over(_))
    }

    /// Breaks the stream off, so that the client does not take what it has for the whole answer.
    /// Of a tunnel it is the connection behind it that was broken off (RFC 8441 section 5).
    pub fn break_off(&mut self) {
        let reason = if self.is_tunnel() { Reason::CANCEL } else { Reason::INTERNAL_ERROR };
        match &mut self.output {
            Output::Head(respond) => respond.send_reset(reason),
            Output::Data(stream) => stream.send_reset(reason),
            Output::Over(stream) if !self.held.is_empty() => stream.send_reset(reason),
            Output::Over(_) | Output::Broken => return,
        }
        self.output = Output::Broken;
    }
}

/// A change of protocol as HTTP/2 says it: there is no key that was taken (RFC 8441 section 5.1).
fn grant(answer: &mut Response<()>) {
    *answer.status_mut() = StatusCode::OK;
    answer.headers_mut().remove(SEC_WEBSOCKET_ACCEPT);
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").finish_non_exhaustive()
    }
}

/// Waits until a body has come to its end without a byte, as was announced.
fn poll_nothing(context: &mut Context<'_>, body: &mut RecvStream) -> Poll<io::Result<()>> {
    while !body.is_end_stream() {
        match ready!(body.poll_data(context)) {
            None => break,
            Some(Ok(data)) if data.is_empty() => {}
            Some(Ok(_)) => return Poll::Ready(Err(io::ErrorKind::InvalidData.into())),
            Some(Err(error)) => return Poll::Ready(Err(broken(error))),
        }
    }
    Poll::Ready(Ok(()))
}

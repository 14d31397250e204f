//! A stream to a server: writing takes a request as HTTP/1.1, reading gives the answer.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest};
use h2::{RecvStream, SendStream};
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HOST, TE};
use http::response::Parts;
use http::uri::{self, Authority, PathAndQuery, Scheme};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Uri};
use pointsman_http::{BodyReader, Framing as Http1Framing};

use crate::fields::{broken, is_padded, lines_bytes, read_lines, write_line};
use crate::incoming::{CHUNK_OVERHEAD_BYTES, Framing, Incoming};
use crate::outgoing::{poll_leave, with_head};

/// What a head has beside its fields, at most.
const FIRST_AND_LAST_LINES_BYTES: usize = 128;

/// One request and its answer.
pub struct ServerStream {
    output: Output,
    input: Input,
    /// The head of an answer that was not read yet.
    waiting: Vec<u8>,
    is_https: bool,
    to_head: bool,
}

enum Output {
    Head(SendRequest<Bytes>),
    Body {
        stream: SendStream<Bytes>,
        body: BodyReader,
        trailers: Vec<u8>,
    },
    /// All of it is on its way.
    Over,
    Broken,
}

enum Input {
    /// No request was sent yet.
    Nothing,
    Awaited(ResponseFuture),
    Body(Incoming),
}

impl ServerStream {
    pub(crate) fn new(begin: SendRequest<Bytes>, is_https: bool) -> ServerStream {
        ServerStream {
            output: Output::Head(begin),
            input: Input::Nothing,
            waiting: Vec::new(),
            is_https,
            to_head: false,
        }
    }

    /// Takes some of `bytes`: first the head of a request, which is whole, then its body, framed as the head says.
    /// Waits while the server gives no leave to send.
    ///
    /// # Errors
    /// Those of [`ServerStream::poll_room`]; [`io::ErrorKind::BrokenPipe`]: the server wants no more, and has answered.
    pub fn poll_write(&mut self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let mut taken = 0;
        if let Output::Head(_) = self.output {
            taken = self.send_head(bytes)?;
            if taken == bytes.len() {
                return Poll::Ready(Ok(taken));
            }
        }
        with_head(taken, self.poll_body(context, &bytes[taken..]))
    }

    fn send_head(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Output::Head(mut begin) = std::mem::replace(&mut self.output, Output::Broken) else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        let (request, framing, used) = read_head(bytes, self.is_https).ok_or(io::ErrorKind::InvalidData)?;
        self.to_head = request.method() == Method::HEAD;
        let body = BodyReader::new(framing);
        let (answer, stream) = begin.send_request(request, body.is_done()).map_err(broken)?;
        self.input = Input::Awaited(answer);
        self.output = match body.is_done() {
            true => Output::Over,
            false => Output::Body { stream, body, trailers: Vec::new() },
        };
        Ok(used)
    }

    fn poll_body(&mut self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let Output::Body { stream, body, trailers } = &mut self.output else {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        };
        let room = match poll_leave(stream, context, bytes.len()) {
            Poll::Ready(Ok(room)) => room,
            Poll::Ready(Err(_)) => return Poll::Ready(Err(self.why_it_ended(context))),
            // What frames data takes none, and with it the body may end.
            Poll::Pending => 0,
        };
        let mut data = Vec::with_capacity(room.min(bytes.len()));
        let fed = body.feed_unchunked_within(bytes, room, &mut data, trailers);
        let fed = fed.map_err(|_| io::ErrorKind::InvalidData)?;
        if fed.used == 0 {
            return Poll::Pending;
        }
        if !data.is_empty() || fed.done && trailers.is_empty() {
            stream.send_data(Bytes::from(data), fed.done && trailers.is_empty()).map_err(broken)?;
        }
        if fed.done && !trailers.is_empty() {
            let fields = read_lines(trailers).ok_or(io::ErrorKind::InvalidData)?;
            stream.send_trailers(fields).map_err(broken)?;
        }
        if fed.done {
            self.output = Output::Over;
        }
        Poll::Ready(Ok(fed.used))
    }

    /// Why no more can be written. [`io::ErrorKind::BrokenPipe`]: the server has answered.
    fn why_it_ended(&mut self, context: &mut Context<'_>) -> io::Error {
        match self.poll_room(context) {
            Poll::Ready(Err(error)) => error,
            Poll::Ready(Ok(_)) | Poll::Pending => io::ErrorKind::BrokenPipe.into(),
        }
    }

    /// Waits for something to read, and says how much room that needs at least.
    ///
    /// # Errors
    /// The server reset the stream, or its connection has ended. [`io::ErrorKind::ConnectionRefused`]: it has not
    /// looked at the request.
    pub fn poll_room(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if self.waiting.is_empty()
            && let Input::Awaited(answer) = &mut self.input
        {
            match answer.poll_informational(context) {
                Poll::Ready(Some(interim)) => {
                    let (head, ()) = interim.map_err(broken)?.into_parts();
                    write_head(head.status, &head.headers, Framing::Not, &mut self.waiting)?;
                }
                Poll::Ready(None) | Poll::Pending => {
                    let (head, body) = ready!(Pin::new(answer).poll(context)).map_err(broken)?.into_parts();
                    let framing = self.framing(&head, &body);
                    write_head(head.status, &head.headers, framing, &mut self.waiting)?;
                    self.input = Input::Body(Incoming::new(body, framing));
                }
            }
        }
        Poll::Ready(Ok(self.waiting.len().max(CHUNK_OVERHEAD_BYTES + 1)))
    }

    /// How the answer's body is framed for those who read it.
    fn framing(&self, head: &Parts, body: &RecvStream) -> Framing {
        let status = head.status;
        let has_none = self.to_head || status == StatusCode::NO_CONTENT || status == StatusCode::NOT_MODIFIED;
        match head.headers.get(CONTENT_LENGTH).map(|length| length.to_str().ok()?.parse().ok()) {
            _ if has_none => Framing::Not,
            // What is no number is refused when the head is parsed.
            Some(length) => Framing::Length(length.unwrap_or_default()),
            // In chunks it would be one with a body, which a client may wait for in vain.
            None if status == StatusCode::RESET_CONTENT && body.is_end_stream() => Framing::Length(0),
            // Also where it has ended already: a length that the server did not announce is not made up.
            None => Framing::Chunks,
        }
    }

    /// Appends what has come of the answer to `out`, within its room; 0 is the end.
    ///
    /// # Errors
    /// Those of [`ServerStream::poll_room`].
    pub fn poll_read(&mut self, context: &mut Context<'_>, out: &mut Vec<u8>) -> Poll<io::Result<usize>> {
        ready!(self.poll_room(context))?;
        let before = out.len();
        if !self.waiting.is_empty() {
            if self.waiting.len() > out.capacity() - before {
                return Poll::Ready(Err(io::ErrorKind::OutOfMemory.into()));
            }
            out.append(&mut self.waiting);
            self.waiting = Vec::new();
        }
        let head_bytes = out.len() - before;
        let Input::Body(body) = &mut self.input else { return Poll::Ready(Ok(head_bytes)) };
        body.poll_read_behind(head_bytes, context, out)
    }
}

impl fmt::Debug for ServerStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerStream").finish_non_exhaustive()
    }
}

/// A request's head, read from the start of `bytes`, how its body is framed, and how many bytes the head is. It is
/// whole and well-formed, or it would not have come here.
pub(crate) fn read_head(bytes: &[u8], is_https: bool) -> Option<(Request<()>, Http1Framing, usize)> {
    let end = memchr::memmem::find(bytes, b"\r\n\r\n")? + b"\r\n\r\n".len();
    let first_line = memchr::memchr(b'\n', bytes)? + 1;
    let mut words = bytes[..first_line].split(|byte| *byte == b' ');
    let method = Method::from_bytes(words.next()?).ok()?;
    let target = PathAndQuery::try_from(words.next()?).ok()?;
    let lines = &bytes[first_line..end - b"\r\n".len()];
    let mut fields = read_lines(lines)?;
    let host = fields.remove(HOST)?;
    let framing = match fields.get(CONTENT_LENGTH) {
        Some(length) => match length.to_str().ok()?.parse().ok()? {
            0 => Http1Framing::None,
            bytes => Http1Framing::Length(bytes),
        },
        None if is_chunked(lines) => Http1Framing::Chunked,
        None => Http1Framing::None,
    };
    if let Some(kind) = fields.get(CONTENT_TYPE)
        && kind.as_bytes().starts_with(b"application/grpc")
    {
        // Servers of gRPC ask for it as a sign that trailers will arrive.
        fields.insert(TE, HeaderValue::from_static("trailers"));
    }
    let mut parts = uri::Parts::default();
    parts.scheme = Some(if is_https { Scheme::HTTPS } else { Scheme::HTTP });
    parts.authority = Some(Authority::try_from(host.as_bytes()).ok()?);
    parts.path_and_query = Some(target);
    let mut request = Request::new(());
    *request.method_mut() = method;
    *request.uri_mut() = Uri::from_parts(parts).ok()?;
    *request.headers_mut() = fields;
    Some((request, framing, end))
}

fn is_chunked(lines: &[u8]) -> bool {
    const NAME: &[u8] = b"transfer-encoding:";
    lines
        .split(|byte| *byte == b'\n')
        .any(|line| line.get(..NAME.len()).is_some_and(|name| name.eq_ignore_ascii_case(NAME)))
}

/// Writes an answer's head, unless it is malformed in what `h2` does not look at.
pub(crate) fn write_head(
    status: StatusCode,
    fields: &HeaderMap,
    framing: Framing,
    out: &mut Vec<u8>,
) -> io::Result<()> {
    if fields.values().any(|value| is_padded(value.as_bytes())) {
        return Err(io::ErrorKind::InvalidData.into());
    }
    out.reserve(lines_bytes(fields) + FIRST_AND_LAST_LINES_BYTES);
    out.extend_from_slice(b"HTTP/1.1 ");
    out.extend_from_slice(status.as_str().as_bytes());
    out.push(b' ');
    out.extend_from_slice(pointsman_http::reason_phrase(status.as_u16()).as_bytes());
    out.extend_from_slice(b"\r\n");
    for (name, value) in fields {
        write_line(name.as_str().as_bytes(), value.as_bytes(), out);
    }
    match framing {
        Framing::Chunks => out.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
        Framing::Length(0) if !fields.contains_key(CONTENT_LENGTH) => {
            out.extend_from_slice(b"Content-Length: 0\r\n");
        }
        Framing::Not | Framing::Length(_) | Framing::Raw => {}
    }
    out.extend_from_slice(b"\r\n");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(head: &str, expected: &str, framing: Http1Framing) {
        let (request, found, used) = read_head(head.as_bytes(), true).expect("a head");
        let fields = request
            .headers()
            .iter()
            .map(|(name, value)| format!(" {name}={}", value.to_str().expect("text")));
        let fields: String = fields.collect();
        assert_eq!(format!("{} {}{fields}", request.method(), request.uri()), expected);
        assert_eq!((found, used), (framing, head.len()));
    }

    #[test]
    fn a_head_is_a_request() {
        check(
            "GET /a?b HTTP/1.1\r\nHost: a.test:81\r\nX: y\r\nConnection: x\r\n\r\n",
            "GET https://a.test:81/a?b x=y",
            Http1Framing::None,
        );
        check(
            "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\n",
            "POST https://a/ content-length=5",
            Http1Framing::Length(5),
        );
        check(
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nhost: a\r\nContent-Type: application/grpc+proto\r\n\r\n",
            "POST https://a/ content-type=application/grpc+proto te=trailers",
            Http1Framing::Chunked,
        );
        for bytes in ["", "GET / HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\n"] {
            assert!(read_head(bytes.as_bytes(), true).is_none(), "{bytes:?}");
        }
    }

    #[test]
    fn an_answer_is_a_head() {
        let mut fields = HeaderMap::new();
        fields.append("x", HeaderValue::from_static("1"));
        let mut out = Vec::new();
        write_head(StatusCode::OK, &fields, Framing::Chunks, &mut out).expect("well-formed");
        assert_eq!(out, b"HTTP/1.1 200 OK\r\nx: 1\r\nTransfer-Encoding: chunked\r\n\r\n");
        fields.append("x", HeaderValue::from_static("2 "));
        assert!(write_head(StatusCode::OK, &fields, Framing::Chunks, &mut out).is_err());
    }
}

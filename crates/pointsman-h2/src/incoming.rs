//! What comes in on a stream behind its head, as HTTP/1.1 would frame it.

use std::io;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::RecvStream;
use http::HeaderMap;

use crate::fields::{self, broken};

/// What a chunk has beside its data, at most.
pub(crate) const CHUNK_OVERHEAD_BYTES: usize = "ffffffffffffffff\r\n\r\n".len();
/// Trailers larger than this are not passed on.
const TRAILER_BYTES_MAX: usize = 8 * 1024;

/// How a body is framed in the HTTP/1.1 message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// There is none.
    Not,
    /// By Content-Length. So many bytes are still to come, as far as was said.
    Length(u64),
    /// In chunks: it was not said how long it is.
    Chunks,
    /// It is no body, but what comes through a tunnel.
    Raw,
}

/// A body and its trailers.
#[derive(Debug)]
pub(crate) struct Incoming {
    body: RecvStream,
    /// Data that has come and found no room.
    piece: Bytes,
    framing: Framing,
    state: State,
}

#[derive(Debug)]
enum State {
    Data,
    Trailers,
    /// Framing that found no room.
    Last(Vec<u8>),
    Over,
    /// It never comes to its end.
    Broken,
}

/// How much may still come of a body that nobody wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// What the window lets through. A client that has filled it reads the response while it waits.
    Window,
    /// All of it: some clients wait until they have sent the body of a request that succeeded.
    All,
}

/// What came of the rest of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestCame {
    /// Some of it, with [`Rest::All`]. More may follow.
    Some,
    /// Its end.
    End,
}

/// Throws away what still comes of a body.
pub(crate) fn poll_rest(body: &mut RecvStream, context: &mut Context<'_>, rest: Rest) -> Poll<RestCame> {
    while !body.is_end_stream() {
        match ready!(body.poll_data(context)) {
            Some(Ok(_)) if rest == Rest::Window => {}
            Some(Ok(_)) => {
                let used = body.flow_control().used_capacity();
                return Poll::Ready(match body.flow_control().release_capacity(used) {
                    Ok(()) => RestCame::Some,
                    Err(_) => RestCame::End,
                });
            }
            Some(Err(_)) => break,
            // Behind the last of it there may be trailers.
            None => {
                let (Ok(_) | Err(_)) = ready!(body.poll_trailers(context));
                break;
            }
        }
    }
    Poll::Ready(RestCame::End)
}

impl Incoming {
    pub(crate) fn new(body: RecvStream, framing: Framing) -> Incoming {
        let state = if framing == Framing::Not { State::Over } else { State::Data };
        Incoming { body, piece: Bytes::new(), framing, state }
    }

    /// What comes is no body from here on, and not framed.
    pub(crate) fn becomes_tunnel(&mut self) {
        (self.framing, self.state) = (Framing::Raw, State::Data);
    }

    /// Throws away what still comes. Ready at its end.
    pub(crate) fn poll_rest(&mut self, context: &mut Context<'_>, rest: Rest) -> Poll<RestCame> {
        poll_rest(&mut self.body, context, rest)
    }

    /// Appends what has come to `out`, within its room; 0 is the end.
    pub(crate) fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        out: &mut Vec<u8>,
    ) -> Poll<io::Result<usize>> {
        let before = out.len();
        loop {
            let step = match &mut self.state {
                State::Data => self.poll_data(context, out),
                State::Trailers => self.poll_trailers(context),
                State::Last(bytes) => {
                    if bytes.len() > out.capacity() - out.len() {
                        break;
                    }
                    out.extend_from_slice(bytes);
                    self.state = State::Over;
                    break;
                }
                State::Over => break,
                State::Broken => Poll::Ready(Err(io::ErrorKind::InvalidData.into())),
            };
            match step {
                Poll::Ready(Ok(true)) => {}
                Poll::Ready(Ok(false)) => break,
                Poll::Ready(Err(error)) => {
                    self.state = State::Broken;
                    return Poll::Ready(Err(error));
                }
                Poll::Pending if out.len() > before => break,
                Poll::Pending => return Poll::Pending,
            }
        }
        Poll::Ready(Ok(out.len() - before))
    }

    /// The same behind a head of so many bytes: what is here of the body goes with it.
    pub(crate) fn poll_read_behind(
        &mut self,
        head_bytes: usize,
        context: &mut Context<'_>,
        out: &mut Vec<u8>,
    ) -> Poll<io::Result<usize>> {
        match self.poll_read(context, out) {
            Poll::Ready(Ok(bytes)) => Poll::Ready(Ok(head_bytes + bytes)),
            // What is wrong is so at the next read, too.
            _ if head_bytes > 0 => Poll::Ready(Ok(head_bytes)),
            nothing => nothing,
        }
    }

    /// Moves a piece. Says whether there may be more for the room that is left.
    fn poll_data(&mut self, context: &mut Context<'_>, out: &mut Vec<u8>) -> Poll<io::Result<bool>> {
        if self.piece.is_empty() {
            match ready!(self.body.poll_data(context)) {
                Some(data) => {
                    self.piece = data.map_err(broken)?;
                    if self.piece.is_empty() {
                        return Poll::Ready(Ok(true));
                    }
                }
                None if self.framing == Framing::Chunks => {
                    self.state = State::Trailers;
                    return Poll::Ready(Ok(true));
                }
                None => {
                    self.state = State::Over;
                    return Poll::Ready(Ok(false));
                }
            }
        }
        if self.is_held() {
            return self.poll_end(context, out);
        }
        let taken = self.take_piece(out);
        self.body.flow_control().release_capacity(taken).map_err(broken)?;
        Poll::Ready(Ok(taken > 0))
    }

    /// Whether the piece is the last byte that was announced, and its sender has not said that it is the last: what
    /// it says next may be that the message is another one than it announced (RFC 9113 section 8.1.1).
    fn is_held(&self) -> bool {
        self.framing == Framing::Length(1) && self.piece.len() == 1 && !self.body.is_end_stream()
    }

    /// Lets the last byte go once the sender has said that it was.
    fn poll_end(&mut self, context: &mut Context<'_>, out: &mut Vec<u8>) -> Poll<io::Result<bool>> {
        match ready!(self.body.poll_data(context)) {
            None if out.capacity() > out.len() => {
                self.take_piece(out);
                self.state = State::Over;
                Poll::Ready(Ok(false))
            }
            None => Poll::Ready(Ok(false)),
            Some(Ok(more)) if more.is_empty() => Poll::Ready(Ok(true)),
            Some(Ok(_)) => Poll::Ready(Err(io::ErrorKind::InvalidData.into())),
            Some(Err(error)) => Poll::Ready(Err(broken(error))),
        }
    }

    /// Moves as much of the piece to `out` as there is room for, framed. Returns how many bytes of it.
    fn take_piece(&mut self, out: &mut Vec<u8>) -> usize {
        let room = out.capacity() - out.len();
        let is_chunk = self.framing == Framing::Chunks;
        let overhead = if is_chunk { CHUNK_OVERHEAD_BYTES } else { 0 };
        let mut taken = self.piece.len().min(room.saturating_sub(overhead));
        if let Framing::Length(left) = &mut self.framing {
            // All but the last byte, which waits for the sender's word.
            if taken as u64 == *left && taken > 1 && !self.body.is_end_stream() {
                taken -= 1;
            }
            *left = left.saturating_sub(taken as u64);
        }
        if taken == 0 {
            return 0;
        }
        let data = self.piece.split_to(taken);
        if is_chunk {
            write_hex(taken, out);
            out.extend_from_slice(b"\r\n");
        }
        out.extend_from_slice(&data);
        if is_chunk {
            out.extend_from_slice(b"\r\n");
        }
        taken
    }

    fn poll_trailers(&mut self, context: &mut Context<'_>) -> Poll<io::Result<bool>> {
        let trailers = ready!(self.body.poll_trailers(context)).map_err(broken)?;
        self.state = State::Last(last_chunk(trailers)?);
        Poll::Ready(Ok(true))
    }
}

fn write_hex(mut number: usize, out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut digits = [0; 2 * size_of::<usize>()];
    let mut at = digits.len();
    while number > 0 {
        at -= 1;
        digits[at] = DIGITS[number % 16];
        number /= 16;
    }
    out.extend_from_slice(&digits[at..]);
}

/// The last chunk, and the trailers behind it.
fn last_chunk(trailers: Option<HeaderMap>) -> io::Result<Vec<u8>> {
    let mut bytes = b"0\r\n".to_vec();
    if let Some(trailers) = trailers {
        if fields::lines_bytes(&trailers) > TRAILER_BYTES_MAX {
            return Err(io::ErrorKind::InvalidData.into());
        }
        for (name, value) in &trailers {
            if fields::is_padded(value.as_bytes()) {
                return Err(io::ErrorKind::InvalidData.into());
            }
            fields::write_line(name.as_str().as_bytes(), value.as_bytes(), &mut bytes);
        }
    }
    bytes.extend_from_slice(b"\r\n");
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_chunks() {
        for number in [1, 9, 10, 15, 16, 255, 4096, 65_535, usize::MAX] {
            let mut out = Vec::new();
            write_hex(number, &mut out);
            assert_eq!(String::from_utf8(out), Ok(format!("{number:x}")));
        }
    }

    #[test]
    fn trailers_are_lines_behind_the_last_chunk() {
        let mut trailers = HeaderMap::new();
        trailers.append("grpc-status", "0".parse().expect("a value"));
        assert_eq!(last_chunk(Some(trailers.clone())).expect("short"), b"0\r\ngrpc-status: 0\r\n\r\n");
        assert_eq!(last_chunk(None).expect("short"), b"0\r\n\r\n");
        trailers.append("x", " 1".parse().expect("a value"));
        assert!(last_chunk(Some(trailers.clone())).is_err());
        trailers.clear();
        trailers.append("x", "y".repeat(TRAILER_BYTES_MAX).parse().expect("a value"));
        assert!(last_chunk(Some(trailers)).is_err());
    }
}

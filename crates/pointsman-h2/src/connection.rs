//! A client's HTTP/2 connection: it is driven, and hands out streams.

use std::cell::Cell;
use std::fmt;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use h2::Reason;
use h2::server;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::Stream;
use crate::gather::Gathered;
use crate::held::Piece;

/// What an HTTP/2 client says first (RFC 9113 section 3.4).
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// No window is larger (RFC 9113 section 6.9.1).
const WINDOW_BYTES_MAX: u32 = (1 << 31) - 1;

/// What a client may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Streams that may be open at a time.
    pub streams_max: u32,
    /// Bytes of a head, as HTTP/2 counts them (RFC 9113 section 10.5.1).
    pub head_bytes_max: u32,
    /// Bytes of a request's body that may come before they are read.
    pub stream_window_bytes: u32,
    /// The same for all streams together, until [`Connection::set_window_bytes`] says otherwise.
    pub connection_window_bytes: u32,
    /// Bytes of an answer that a stream holds while the client does not take them.
    pub unsent_bytes_max: usize,
    /// Whether a stream may change to another protocol (RFC 8441).
    pub allows_tunnels: bool,
}

/// Why a connection ends.
#[derive(Debug)]
pub enum Fault {
    /// The client is gone.
    Io(io::Error),
    /// The client said that it ends it, or broke the protocol.
    Protocol(h2::Error),
    /// The client was told to be calm.
    Excess,
}

impl Fault {
    pub(crate) fn of(error: h2::Error) -> Fault {
        match error.is_io() {
            true => Fault::Io(error.into_io().unwrap_or_else(|| io::ErrorKind::BrokenPipe.into())),
            false => Fault::Protocol(error),
        }
    }

    /// Whether the client broke the protocol, or too many limits.
    pub fn is_clients(&self) -> bool {
        match self {
            Fault::Io(_) => false,
            Fault::Protocol(error) => !error.is_remote(),
            Fault::Excess => true,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Io(error) => error.fmt(f),
            Fault::Protocol(error) => match error.reason() {
                Some(reason) => write!(f, "{reason:?}: {}", reason.description()),
                None => error.fmt(f),
            },
            Fault::Excess => {
                f.write_str("ENHANCE_YOUR_CALM: too many frames that are about no request, or resets")
            }
        }
    }
}

impl std::error::Error for Fault {}

/// A client's connection.
pub struct Connection<T> {
    io: Gathered<T>,
    state: State<T>,
    sent_bytes: Rc<Cell<u64>>,
}

enum State<T> {
    Shaking(Pin<Box<server::Handshake<Gathered<T>, Piece>>>),
    Open(Box<server::Connection<Gathered<T>, Piece>>),
}

impl<T: AsyncRead + AsyncWrite + Unpin> Connection<T> {
    /// A connection over `io`, from which nothing has been read yet.
    pub fn new(io: T, limits: &Limits) -> Connection<T> {
        let io = Gathered::new(io);
        let mut builder = server::Builder::new();
        if limits.allows_tunnels {
            builder.enable_connect_protocol();
        }
        let shaking = builder
            .max_concurrent_streams(limits.streams_max)
            .max_header_list_size(limits.head_bytes_max)
            .initial_window_size(limits.stream_window_bytes)
            .initial_connection_window_size(limits.connection_window_bytes)
            .max_send_buffer_size(limits.unsent_bytes_max)
            .handshake(io.clone());
        Connection { io, state: State::Shaking(Box::pin(shaking)), sent_bytes: Rc::default() }
    }

    /// Drives the connection, and says which stream is the next. `None`: it has ended. What is to be sent has left,
    /// or leaves with a later turn.
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Stream, Fault>>> {
        let next = self.poll_streams(context);
        match self.io.poll_send(context) {
            Poll::Ready(Err(error)) => Poll::Ready(Some(Err(Fault::Io(error)))),
            Poll::Ready(Ok(())) | Poll::Pending => next,
        }
    }

    fn poll_streams(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Stream, Fault>>> {
        loop {
            match &mut self.state {
                State::Shaking(shaking) => match ready!(shaking.as_mut().poll(context)) {
                    Ok(open) => self.state = State::Open(Box::new(open)),
                    Err(error) => return Poll::Ready(Some(Err(Fault::of(error)))),
                },
                State::Open(open) => {
                    let next = ready!(open.poll_accept(context));
                    return Poll::Ready(next.map(|next| {
                        let (request, respond) = next.map_err(Fault::of)?;
                        Ok(Stream::new(request, respond, self.sent_bytes.clone()))
                    }));
                }
            }
        }
    }

    /// Sets how many bytes of content may come, for all streams together, before they are read. What the client has leave
    /// for already it keeps.
    pub fn set_window_bytes(&mut self, bytes: u32) {
        if let State::Open(open) = &mut self.state {
            open.set_target_window_size(bytes.min(WINDOW_BYTES_MAX));
        }
    }

    /// Says that no new streams are taken. Those that are open go on, and with the last of them the connection ends.
    pub fn end(&mut self) {
        if let State::Open(open) = &mut self.state {
            open.graceful_shutdown();
        }
    }

    /// Ends it because the client asks for too much (RFC 9113 section 7, `ENHANCE_YOUR_CALM`).
    pub fn calm(&mut self) {
        if let State::Open(open) = &mut self.state {
            open.abrupt_shutdown(Reason::ENHANCE_YOUR_CALM);
        }
    }

    /// Whether the client has said what HTTP/2 clients say first.
    pub fn is_open(&self) -> bool {
        matches!(self.state, State::Open(_))
    }

    /// Whether a stream is open, or something of one is still to be sent.
    pub fn has_streams(&self) -> bool {
        match &self.state {
            State::Shaking(_) => false,
            State::Open(open) => open.has_streams(),
        }
    }

    /// Whether something waits for the client to take what was sent before.
    pub fn is_held_up(&self) -> bool {
        self.io.holds_some()
    }

    /// Bytes of content that its streams have sent.
    pub fn sent_bytes(&self) -> u64 {
        self.sent_bytes.get()
    }

    /// Uses what the connection talks through.
    pub fn with_io<R>(&self, use_it: impl FnOnce(&mut T) -> R) -> R {
        self.io.with(use_it)
    }
}

impl<T> fmt::Debug for Connection<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").finish_non_exhaustive()
    }
}

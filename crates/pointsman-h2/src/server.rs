//! HTTP/2 to a server: a connection that many requests share.

use std::fmt;
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use h2::client;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::connection::Fault;
use crate::gather::Gathered;
use crate::server_stream::ServerStream;

/// What `h2` takes for the number of streams that a server allows, until it has said how many.
const NOT_HEARD: usize = usize::MAX - 1;

/// What a server may take.
#[derive(Clone, Copy, Debug)]
pub struct ServerLimits {
    /// Bytes of an answer's head, as HTTP/2 counts them (RFC 9113 section 10.5.1).
    pub head_bytes_max: u32,
    /// Bytes of an answer's body that may come before they are read.
    pub stream_window_bytes: u32,
    /// The same for all answers together.
    pub connection_window_bytes: u32,
    /// Bytes of a request that a stream holds while the server does not take them.
    pub unsent_bytes_max: usize,
}

/// Drives a connection to a server.
pub struct ServerConnection<T> {
    io: Gathered<T>,
    h2: client::Connection<Gathered<T>, Bytes>,
}

/// By which requests begin on a connection. When it is gone and no stream is open, the connection ends.
pub struct Requests {
    begin: client::SendRequest<Bytes>,
    is_https: bool,
}

/// Begins HTTP/2 over `io`, which is connected to a server that speaks it.
pub async fn open<T: AsyncRead + AsyncWrite + Unpin>(
    io: T,
    is_https: bool,
    limits: &ServerLimits,
) -> Result<(Requests, ServerConnection<T>), Fault> {
    let io = Gathered::new(io);
    let opened = client::Builder::new()
        .enable_push(false)
        .max_header_list_size(limits.head_bytes_max)
        .initial_window_size(limits.stream_window_bytes)
        .initial_connection_window_size(limits.connection_window_bytes)
        .max_send_buffer_size(limits.unsent_bytes_max)
        .initial_max_send_streams(NOT_HEARD)
        .handshake(io.clone());
    let (begin, h2) = opened.await.map_err(Fault::of)?;
    Ok((Requests { begin, is_https }, ServerConnection { io, h2 }))
}

impl<T: AsyncRead + AsyncWrite + Unpin> ServerConnection<T> {
    /// Drives the connection. Ready when it has ended.
    pub fn poll_run(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        let ended = std::pin::Pin::new(&mut self.h2).poll(context);
        if let Poll::Ready(Err(error)) = self.io.poll_send(context) {
            return Poll::Ready(Err(Fault::Io(error)));
        }
        Poll::Ready(ready!(ended).map_err(Fault::of))
    }
}

impl<T> fmt::Debug for ServerConnection<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerConnection").finish_non_exhaustive()
    }
}

impl Requests {
    /// A stream for one request. `None`: the connection takes no more of them, now or at all.
    pub fn begin(&mut self) -> Option<ServerStream> {
        // Readiness is asked for, not waited for: who finds none takes another connection.
        let mut context = Context::from_waker(Waker::noop());
        match self.begin.poll_ready(&mut context) {
            Poll::Ready(Ok(())) => Some(ServerStream::new(self.begin.clone(), self.is_https)),
            Poll::Ready(Err(_)) | Poll::Pending => None,
        }
    }

    /// Whether the server has not said that it takes no more, and is there.
    pub fn is_open(&mut self) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        !matches!(self.begin.poll_ready(&mut context), Poll::Ready(Err(_)))
    }

    /// How many streams the server takes at a time. Until it has said that, it is one.
    pub fn streams_max(&self) -> usize {
        match self.begin.current_max_send_streams() {
            NOT_HEARD => 1,
            heard => heard,
        }
    }

    /// Whether the server has said what it takes.
    pub fn has_settings(&self) -> bool {
        self.begin.current_max_send_streams() != NOT_HEARD
    }
}

impl fmt::Debug for Requests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Requests").finish_non_exhaustive()
    }
}

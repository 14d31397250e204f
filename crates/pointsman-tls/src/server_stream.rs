//! A connection to a server after its handshake: bytes in the clear.

use std::io::{self, Write};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::fault::library_error;
use crate::stream::HELD_BYTES_MAX;
use crate::words::worded;

/// The clear side of a TLS connection to a server.
///
/// Reading reports [`io::ErrorKind::UnexpectedEof`] when the server closed without saying so. Shutting down sends
/// `close_notify`. An alert of the server is an error that
/// [`ServerHandshakeFault::of`](crate::ServerHandshakeFault::of) understands: with TLS 1.3 what it has against our
/// certificate comes behind the handshake.
#[derive(Debug)]
pub struct ServerStream<S> {
    inner: tokio_rustls::client::TlsStream<S>,
    /// Whether the server broke the protocol: then no `close_notify` says that all is well (RFC 8446 section 6.2).
    is_broken: bool,
}

impl<S> ServerStream<S> {
    pub(crate) fn new(inner: tokio_rustls::client::TlsStream<S>) -> ServerStream<S> {
        ServerStream { inner, is_broken: false }
    }

    /// Whether this application protocol was agreed on.
    pub fn agrees_on(&self, protocol: &[u8]) -> bool {
        self.inner.get_ref().1.alpn_protocol() == Some(protocol)
    }

    /// Whether what was received holds something that is still to be read: bytes, the server's farewell, or what is
    /// wrong. Tickets are not.
    pub fn holds_news(&mut self) -> bool {
        let state = self.inner.get_mut().1.process_new_packets();
        state.map_or(true, |state| state.plaintext_bytes_to_read() > 0 || state.peer_has_closed())
    }

    /// Takes all of `bytes`, to go out in one piece with whatever is sent next. False where there is no room
    /// for them: then none was taken.
    pub fn hold(&mut self, bytes: &[u8]) -> bool {
        let connection = self.inner.get_mut().1;
        let fits = bytes.len() <= HELD_BYTES_MAX && !connection.wants_write();
        fits && connection.writer().write_all(bytes).is_ok()
    }

    /// Sets how many bytes it may hold that the server has not yet taken.
    pub fn set_unsent_bytes_max(&mut self, bytes_max: usize) {
        self.inner.get_mut().1.set_buffer_limit(Some(bytes_max));
    }

    /// The stream underneath.
    pub fn get_ref(&self) -> &S {
        self.inner.get_ref().0
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for ServerStream<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let read = Pin::new(&mut this.inner).poll_read(cx, buffer);
        read.map_err(|error| {
            this.is_broken |= library_error(&error).is_some();
            worded(error)
        })
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for ServerStream<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().inner).poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if !this.is_broken {
            return Pin::new(&mut this.inner).poll_shutdown(cx);
        }
        // The alert may still be on its way. The library repeats what was wrong, which was told.
        let (Ok(()) | Err(_)) = ready!(Pin::new(&mut this.inner).poll_flush(cx));
        Pin::new(this.inner.get_mut().0).poll_shutdown(cx)
    }
}

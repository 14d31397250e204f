//! A connection to a server: plain, or TLS over it.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use pointsman_net::{Booking, PooledBuffer, Tcp};
use pointsman_tls::ServerStream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A connection to a server.
#[derive(Debug)]
pub enum Connection {
    /// Bytes go over it as they are.
    Plain(Tcp),
    /// On the heap: most servers are plain, and whoever holds a connection has no room to spare.
    Tls(Box<Secured>),
}

/// A connection under TLS, with what it takes of the memory.
#[derive(Debug)]
pub struct Secured {
    stream: ServerStream<Tcp>,
    /// What it is at rest.
    _at_rest: Booking,
    /// What it may come to while it serves a request.
    in_use: Option<Booking>,
}

impl Connection {
    /// A connection under TLS. `at_rest` is given back when it closes.
    pub(crate) fn secured(stream: ServerStream<Tcp>, at_rest: Booking) -> Connection {
        Connection::Tls(Box::new(Secured { stream, _at_rest: at_rest, in_use: None }))
    }

    /// The connection underneath.
    pub fn tcp(&self) -> &Tcp {
        match self {
            Connection::Plain(tcp) => tcp,
            Connection::Tls(secured) => secured.stream.get_ref(),
        }
    }

    /// The connection, where bytes go over it as they are.
    pub fn plain(&self) -> Option<&Tcp> {
        match self {
            Connection::Plain(tcp) => Some(tcp),
            Connection::Tls(_) => None,
        }
    }

    /// Whether an earlier TLS session was resumed; `None` where it is plain.
    pub fn is_resumed(&self) -> Option<bool> {
        match self {
            Connection::Plain(_) => None,
            Connection::Tls(secured) => Some(secured.stream.is_resumed()),
        }
    }

    /// Whether it holds memory that is booked.
    pub(crate) fn is_booked(&self) -> bool {
        matches!(self, Connection::Tls(_))
    }

    /// Begins to serve a request: `book` is asked for the memory that this takes, where it takes any. Says whether
    /// there is so much.
    pub fn begin_use(&mut self, book: impl FnOnce() -> Option<Booking>) -> bool {
        if let Connection::Tls(secured) = self {
            secured.in_use = book();
            return secured.in_use.is_some();
        }
        true
    }

    /// Its request is over.
    pub(crate) fn end_use(&mut self) {
        if let Connection::Tls(secured) = self {
            secured.in_use = None;
        }
    }

    /// Whether there may be something to read, be it the end. Costs no system call.
    pub fn has_news(&mut self) -> bool {
        match self {
            Connection::Plain(tcp) => tcp.has_news(),
            Connection::Tls(secured) => secured.stream.get_ref().has_news() || secured.stream.holds_news(),
        }
    }

    /// Whether a connection that nothing is expected on is still open and silent, as far as the event loop has
    /// heard. Costs no system call unless it has heard something.
    pub fn sounds_quiet(&mut self) -> bool {
        match self {
            Connection::Plain(tcp) => tcp.sounds_quiet(),
            Connection::Tls(secured) => secured.sounds_quiet(),
        }
    }

    /// The same, as the socket itself says now.
    pub fn is_quiet(&mut self) -> bool {
        match self {
            Connection::Plain(tcp) => tcp.is_quiet(),
            Connection::Tls(secured) => secured.is_quiet(),
        }
    }

    /// Takes all of `bytes`, to go out with whatever is sent next; false where it takes none.
    pub fn hold(&mut self, bytes: &[u8]) -> bool {
        match self {
            Connection::Plain(_) => false,
            Connection::Tls(secured) => secured.stream.hold(bytes),
        }
    }

    /// Sets how much it may hold that the server has not yet taken, where it holds anything.
    pub fn set_unsent_bytes_max(&mut self, bytes_max: usize) {
        if let Connection::Tls(secured) = self {
            secured.stream.set_unsent_bytes_max(bytes_max);
        }
    }

    /// Appends what can be read to `buffer`; 0 is the end. An empty buffer holds no room while it waits. Where
    /// something came and there is no memory for it, the error is [`io::ErrorKind::OutOfMemory`], and part of it
    /// is lost.
    #[inline]
    pub fn poll_read_into(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut PooledBuffer,
    ) -> Poll<io::Result<usize>> {
        match self {
            Connection::Plain(tcp) => tcp.poll_read_into(context, buffer),
            Connection::Tls(secured) => pointsman_net::poll_read_into(&mut secured.stream, context, buffer),
        }
    }
}

impl Secured {
    fn sounds_quiet(&mut self) -> bool {
        let tcp = self.stream.get_ref();
        let is_still = !tcp.has_news() && !tcp.had_urgent_data();
        (is_still && !self.stream.holds_news()) || self.is_quiet()
    }

    /// A ticket may come at any time and says nothing about the connection: it is read, and so is all that is no
    /// news.
    fn is_quiet(&mut self) -> bool {
        if self.stream.get_ref().had_urgent_data() {
            return false;
        }
        if self.stream.get_ref().is_quiet() {
            return !self.stream.holds_news();
        }
        let (mut byte, mut context) = ([0], Context::from_waker(Waker::noop()));
        let read = Pin::new(&mut self.stream).poll_read(&mut context, &mut ReadBuf::new(&mut byte));
        // Where the turn was over before all was read, nobody knows what else there is.
        read.is_pending() && !self.stream.get_ref().has_news()
    }
}

/// A server is told that the connection ends, where there is room to say so (RFC 8446 section 6.1).
impl Drop for Secured {
    fn drop(&mut self) {
        let mut context = Context::from_waker(Waker::noop());
        // One that is gone takes no farewell.
        let (Poll::Ready(_) | Poll::Pending) = Pin::new(&mut self.stream).poll_shutdown(&mut context);
    }
}

impl AsyncWrite for Connection {
    #[inline]
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Connection::Plain(tcp) => Pin::new(tcp).poll_write(context, bytes),
            Connection::Tls(secured) => Pin::new(&mut secured.stream).poll_write(context, bytes),
        }
    }

    #[inline]
    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Connection::Plain(tcp) => Pin::new(tcp).poll_flush(context),
            Connection::Tls(secured) => Pin::new(&mut secured.stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Connection::Plain(tcp) => Pin::new(tcp).poll_shutdown(context),
            Connection::Tls(secured) => Pin::new(&mut secured.stream).poll_shutdown(context),
        }
    }
}

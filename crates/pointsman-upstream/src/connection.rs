//! A connection to a server: plain, TLS over it, or a stream of a connection that others share.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use pointsman_net::{Booking, PooledBuffer, Presence, Tcp};
use pointsman_tls::ServerStream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::multiplexed::OnStream;

/// A connection to a server.
#[derive(Debug)]
pub enum Connection {
    /// Bytes go over it as they are.
    Plain(Tcp),
    /// On the heap: most servers are plain, and whoever holds a connection has no room to spare.
    Tls(Box<Secured>),
    /// One request of HTTP/2.
    Stream(Box<OnStream>),
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

    /// The connection underneath, where it is its own.
    pub fn tcp(&self) -> Option<&Tcp> {
        match self {
            Connection::Plain(tcp) => Some(tcp),
            Connection::Tls(secured) => Some(secured.stream.get_ref()),
            Connection::Stream(_) => None,
        }
    }

    /// How the server stands, as far as has been heard.
    pub fn presence(&self, context: &Context<'_>) -> Presence {
        self.tcp().map_or(Presence::Open, |tcp| tcp.presence(context))
    }

    /// Bytes that the server has taken, where that is known: of a stream only what it gives leave to send is.
    pub fn taken_bytes(&self) -> Option<u64> {
        self.tcp()?.taken_bytes()
    }

    /// Whether the server has ever sent urgent data.
    pub fn had_urgent_data(&self) -> bool {
        self.tcp().is_some_and(Tcp::had_urgent_data)
    }

    /// Makes closing break the connection off.
    pub fn reset_on_close(&self) {
        if let Some(tcp) = self.tcp() {
            tcp.reset_on_close();
        }
    }

    /// Whether it is a stream, which serves one request.
    pub fn is_stream(&self) -> bool {
        matches!(self, Connection::Stream(_))
    }

    /// Says that a request has waited for as long as it may.
    pub fn is_given_up(&self) {
        if let Connection::Stream(stream) = self {
            stream.is_given_up();
        }
    }

    /// Whether HTTP/2 was agreed on in the TLS handshake; `None` where it is plain.
    pub fn agrees_on_http2(&self) -> Option<bool> {
        match self {
            Connection::Tls(secured) => Some(secured.stream.agrees_on(b"h2")),
            Connection::Plain(_) | Connection::Stream(_) => None,
        }
    }

    /// The connection, where bytes go over it as they are.
    pub fn plain(&self) -> Option<&Tcp> {
        match self {
            Connection::Plain(tcp) => Some(tcp),
            Connection::Tls(_) | Connection::Stream(_) => None,
        }
    }

    /// Whether it holds memory that is booked.
    pub(crate) fn is_booked(&self) -> bool {
        matches!(self, Connection::Tls(_))
    }

    /// Begins to serve a request: `book` is asked for the memory that this takes, where it takes any. Says whether
    /// there is so much.
    pub fn begin_use(&mut self, book: impl FnOnce() -> Option<Booking>) -> bool {
        let in_use = match self {
            Connection::Plain(_) => return true,
            Connection::Tls(secured) => &mut secured.in_use,
            Connection::Stream(on) => &mut on.in_use,
        };
        *in_use = book();
        in_use.is_some()
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
            Connection::Stream(_) => false,
        }
    }

    /// Whether a connection that nothing is expected on is still open and silent, as far as the event loop has
    /// heard. Costs no system call unless it has heard something.
    pub fn sounds_quiet(&mut self) -> bool {
        match self {
            Connection::Plain(tcp) => tcp.sounds_quiet(),
            Connection::Tls(secured) => secured.sounds_quiet(),
            // It is never kept.
            Connection::Stream(_) => false,
        }
    }

    /// The same, as the socket itself says now.
    pub fn is_quiet(&mut self) -> bool {
        match self {
            Connection::Plain(tcp) => tcp.is_quiet(),
            Connection::Tls(secured) => secured.is_quiet(),
            Connection::Stream(_) => false,
        }
    }

    /// Takes all of `bytes`, to go out with whatever is sent next; false where it takes none.
    pub fn hold(&mut self, bytes: &[u8]) -> bool {
        match self {
            Connection::Plain(_) | Connection::Stream(_) => false,
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
            Connection::Stream(on) => on.poll_read_into(context, buffer),
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

/// For HTTP/2, which is spoken over a connection of its own.
impl AsyncRead for Connection {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Connection::Plain(tcp) => Pin::new(tcp).poll_read(context, buffer),
            Connection::Tls(secured) => Pin::new(&mut secured.stream).poll_read(context, buffer),
            Connection::Stream(_) => Poll::Ready(Err(io::ErrorKind::Unsupported.into())),
        }
    }
}

impl AsyncWrite for Connection {
    #[inline]
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Connection::Plain(tcp) => Pin::new(tcp).poll_write(context, bytes),
            Connection::Tls(secured) => Pin::new(&mut secured.stream).poll_write(context, bytes),
            Connection::Stream(on) => on.poll_write(context, bytes),
        }
    }

    #[inline]
    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Connection::Plain(tcp) => Pin::new(tcp).poll_flush(context),
            Connection::Tls(secured) => Pin::new(&mut secured.stream).poll_flush(context),
            // Its connection sends it with its next turn.
            Connection::Stream(_) => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Connection::Plain(tcp) => Pin::new(tcp).poll_shutdown(context),
            Connection::Tls(secured) => Pin::new(&mut secured.stream).poll_shutdown(context),
            Connection::Stream(_) => Poll::Ready(Ok(())),
        }
    }
}

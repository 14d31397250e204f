//! What a session talks through, and how it ends.

use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll};

use pointsman_h2::{Oddity, Rest, RestCame};
use pointsman_net::{Booking, PooledBuffer, Presence, Stall, Tcp};
use pointsman_tls::TlsStream;
use pointsman_upstream::Connection;
use tokio::io::{AsyncWrite, AsyncWriteExt};

use crate::fault::Fault;
use crate::session::{After, Session};

/// How long a closing connection is listened to, so that the last answer is not lost to a reset.
const LINGER_MS: u32 = 2000;
/// How much is read of what it still says. Behind that it waits for the end of its time.
const LINGER_BYTES_MAX: usize = 256 * 1024;

/// How long a closing connection is listened to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    /// Behind an answer: for its time, whatever the client sends.
    ForTime,
    /// Also no longer than until so many bytes came: the client is cut off, or no answer is on its way.
    ForBytes,
}

/// TCP, or TLS over it.
pub(crate) trait Transport: AsyncWrite + Unpin {
    /// The connection, where bytes go over it as they are.
    fn plain(&self) -> Option<&Tcp>;

    /// How the client stands, whatever lies before its end unread. Costs no system call. The task is woken when that
    /// changes.
    fn presence(&mut self, context: &mut Context<'_>) -> Presence;

    /// Bytes that the client has taken, where that is known.
    fn taken_bytes(&self) -> Option<u64>;

    /// Makes its end break off what is on its way, so that nobody takes half an answer for a whole one.
    fn break_off(&mut self);

    /// Whether there may be something to read, be it the end. Costs no system call.
    fn has_news(&mut self) -> bool;

    /// Whether nothing follows what is on its way now, so that the connection may end behind it.
    fn is_last(&self) -> bool {
        true
    }

    /// Why the answer is wanted no more, although the client is there.
    fn cut(&self) -> Option<Fault> {
        None
    }

    /// Takes back what was written, if the client was sent none of it.
    fn take_back(&mut self) -> bool {
        false
    }

    /// Takes all of these bytes, to go out with the farewell; false where it takes none.
    fn hold(&mut self, _: &[u8]) -> bool {
        false
    }

    /// What is known of it as a stream of HTTP/2, if it is one.
    fn of_http2(&self) -> Option<OfHttp2<'_>> {
        None
    }

    /// Whether it is one of several that a connection carries at a time.
    fn is_part(&self) -> bool {
        self.of_http2().is_some()
    }

    /// Says that what is written next is the end of its message, and that trailers, whole lines, follow it.
    fn ends_with(&mut self, _: &[u8]) {}

    /// Throws away what still comes of a request that is answered. Over at once where the connection is listened to
    /// behind its end instead.
    fn poll_rest(&mut self, _: &mut Context<'_>, _: Rest) -> Poll<RestCame> {
        Poll::Ready(RestCame::End)
    }

    /// Sets how much it may hold that the peer has not yet taken, where it holds anything.
    fn set_unsent_bytes_max(&mut self, _: usize) {}

    /// Appends what can be read to `buffer`; 0 is the end. An empty buffer holds no room while it waits. Where
    /// something came and there is no memory for it, the error is [`io::ErrorKind::OutOfMemory`], and part of it
    /// is lost.
    fn poll_read_into(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut PooledBuffer,
    ) -> Poll<io::Result<usize>>;
}

/// What a stream of HTTP/2 says of its request beside the head.
pub(crate) struct OfHttp2<'a> {
    pub(crate) scheme: Option<&'a str>,
    pub(crate) oddity: Option<Oddity>,
    /// Whether the client asks for another protocol, and takes every success for a change to it (RFC 8441).
    pub(crate) asks_for_protocol: bool,
    /// Bytes of the body that may come before they are read.
    pub(crate) window_bytes: u32,
}

impl Transport for Tcp {
    fn plain(&self) -> Option<&Tcp> {
        Some(self)
    }

    fn presence(&mut self, context: &mut Context<'_>) -> Presence {
        Tcp::presence(self, context)
    }

    fn taken_bytes(&self) -> Option<u64> {
        Tcp::taken_bytes(self)
    }

    fn break_off(&mut self) {
        self.reset_on_close();
    }

    fn has_news(&mut self) -> bool {
        Tcp::has_news(self)
    }

    #[inline]
    fn poll_read_into(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut PooledBuffer,
    ) -> Poll<io::Result<usize>> {
        Tcp::poll_read_into(self, context, buffer)
    }
}

impl Transport for TlsStream<Tcp> {
    fn plain(&self) -> Option<&Tcp> {
        None
    }

    fn presence(&mut self, context: &mut Context<'_>) -> Presence {
        self.get_ref().presence(context)
    }

    fn taken_bytes(&self) -> Option<u64> {
        self.get_ref().taken_bytes()
    }

    fn break_off(&mut self) {
        self.get_ref().reset_on_close();
    }

    fn has_news(&mut self) -> bool {
        self.get_ref().has_news() || self.holds_news()
    }

    fn hold(&mut self, bytes: &[u8]) -> bool {
        TlsStream::hold(self, bytes)
    }

    fn set_unsent_bytes_max(&mut self, bytes_max: usize) {
        TlsStream::set_unsent_bytes_max(self, bytes_max);
    }

    fn poll_read_into(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut PooledBuffer,
    ) -> Poll<io::Result<usize>> {
        pointsman_net::poll_read_into(self, context, buffer)
    }
}

impl Transport for Connection {
    fn plain(&self) -> Option<&Tcp> {
        Connection::plain(self)
    }

    fn presence(&mut self, context: &mut Context<'_>) -> Presence {
        Connection::presence(self, context)
    }

    fn taken_bytes(&self) -> Option<u64> {
        Connection::taken_bytes(self)
    }

    fn break_off(&mut self) {
        self.reset_on_close();
    }

    fn has_news(&mut self) -> bool {
        Connection::has_news(self)
    }

    fn hold(&mut self, bytes: &[u8]) -> bool {
        Connection::hold(self, bytes)
    }

    fn set_unsent_bytes_max(&mut self, bytes_max: usize) {
        Connection::set_unsent_bytes_max(self, bytes_max);
    }

    #[inline]
    fn poll_read_into(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut PooledBuffer,
    ) -> Poll<io::Result<usize>> {
        Connection::poll_read_into(self, context, buffer)
    }
}

/// Waits for bytes and appends them to `buffer`; 0 is the end.
pub(crate) async fn read_into(from: &mut impl Transport, buffer: &mut PooledBuffer) -> io::Result<usize> {
    std::future::poll_fn(|context| from.poll_read_into(context, buffer)).await
}

impl<C: Transport> Session<C> {
    /// Ends a connection that serves no more requests, as the last one says. `booked` is what that one has booked.
    pub(crate) async fn finish(&mut self, after: After, booked: Option<Booking>) {
        match after {
            After::Close => self.linger(booked, Patience::ForTime).await,
            // What is broken off is closed by a reset.
            After::Reset => self.is_amid_answer = true,
            After::Leave if self.has_lost_its_listener() => self.linger(None, Patience::ForTime).await,
            _ => self.leave().await,
        }
    }

    /// Ends a connection on which nothing is on its way.
    pub(crate) async fn leave(&mut self) {
        if self.is_amid_answer {
            return;
        }
        // A peer that is gone takes no farewell.
        let (Ok(_) | Err(_)) = self.deadline.within(LINGER_MS, self.io.shutdown()).await;
    }

    /// Says that nothing more follows; with that goes what TLS still holds of the answer. Says whether all of it
    /// went.
    pub(crate) async fn end_our_side(&mut self) -> bool {
        let mut stall = Stall::new(self.limits.write_ms_max);
        loop {
            match self.deadline.within(stall.look_ms(), self.io.shutdown()).await {
                Ok(ended) => return ended.is_ok(),
                Err(_) if stall.goes_on(self.io.taken_bytes()) => {}
                Err(_) => return false,
            }
        }
    }

    /// Closes our side behind an answer and lets the client finish, within bounds: what it says to a
    /// closed socket would be met with a reset, which takes the answer with it. What the exchange has booked is
    /// given back when all of the answer is on its way.
    pub(crate) async fn linger(&mut self, booked: Option<Booking>, patience: Patience) {
        if !self.end_our_side().await {
            return;
        }
        self.is_amid_answer = false;
        drop(booked);
        let Session { io, shard, deadline, .. } = self;
        let drain = async {
            let mut rest = shard.buffers.last_word();
            let mut bytes = 0;
            loop {
                rest.clear();
                match read_into(io, &mut rest).await.ok()? {
                    0 => return Some(()),
                    more => bytes += more,
                }
                if bytes >= LINGER_BYTES_MAX {
                    if patience == Patience::ForBytes {
                        return Some(());
                    }
                    // A client that cannot send on reads the answer while it waits.
                    poll_fn(|context| match io.presence(context) {
                        Presence::Open => Poll::Pending,
                        Presence::Ended | Presence::Broken => Poll::Ready(()),
                    })
                    .await;
                }
            }
        };
        // However it ends: the connection is over.
        let (Ok(_) | Err(_)) = deadline.within(LINGER_MS, drain).await;
    }
}

/// However a session ends, by a fault or because the switch stops: half an answer is never followed by an
/// orderly close, which some clients take for its end. What was kept for this client alone closes too.
impl<C: Transport> Drop for Session<C> {
    fn drop(&mut self) {
        if self.is_amid_answer {
            self.io.break_off();
        }
        // Otherwise its connection is still there.
        if !self.io.is_part() {
            self.shard.idle.close_owned(self.owner);
            self.shard.multiplexed.close_owned(self.owner);
        }
    }
}

//! Whether the client is still there while its server is waited for.
//!
//! A reset says that it is not. An orderly end says only that it sends nothing more: it may have left, or wait for
//! its answer. Such a client gets `half_closed_ms_max` of the server's silence.

use std::io::ErrorKind;
use std::task::{Context, Poll};

use pointsman_net::{Elapsed, PooledBuffer, Presence};

use crate::fault::{ClientFault, Fault};
use crate::session::Session;
use crate::transport::Transport;

/// What may be read from the client while it waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ahead {
    /// What comes is its next request.
    Request,
    /// What comes is still its body: somebody else reads it.
    Body,
}

/// What came of one look at both sides.
enum Seen<T> {
    Ready(T),
    /// The client sends nothing more.
    Ended,
    Left,
}

impl<C: Transport> Session<C> {
    /// Waits until `poll` is ready with something of the server, at most `ms`, as long as the client is there.
    ///
    /// # Errors
    /// The client has left.
    pub(crate) async fn while_present<T>(
        &mut self,
        ms: u32,
        ahead: Ahead,
        mut poll: impl FnMut(&mut Context<'_>, &mut C) -> Poll<T>,
    ) -> Result<Result<T, Elapsed>, Fault> {
        let until_us = self.shard.after_ms(ms);
        let left = Fault::Client(ClientFault::Closed);
        loop {
            let ms = self.shard.ms_until(until_us);
            let half_closed_ms = self.limits.half_closed_ms_max;
            let is_shortened = self.has_ended && half_closed_ms < ms;
            let Session { io, deadline, early, shard, has_ended, .. } = &mut *self;
            let both = std::future::poll_fn(|context| {
                if let Poll::Ready(ready) = poll(context, io) {
                    return Poll::Ready(Seen::Ready(ready));
                }
                match presence(context, io, (ahead, early), || shard.buffers.request()) {
                    Presence::Broken => Poll::Ready(Seen::Left),
                    Presence::Ended if !*has_ended => Poll::Ready(Seen::Ended),
                    Presence::Ended | Presence::Open => Poll::Pending,
                }
            });
            match deadline.within(if is_shortened { half_closed_ms } else { ms }, both).await {
                Ok(Seen::Ready(ready)) => return Ok(Ok(ready)),
                Ok(Seen::Ended) => self.has_ended = true,
                Ok(Seen::Left) => return Err(left),
                Err(_) if is_shortened => return Err(left),
                Err(elapsed) => return Ok(Err(elapsed)),
            }
        }
    }
}

/// How the client stands, as far as it has been heard. TLS says its end in a record of its own, so of a TLS client
/// one buffer of its next request is read to find that.
fn presence<C: Transport>(
    context: &mut Context<'_>,
    io: &mut C,
    (ahead, early): (Ahead, &mut Option<PooledBuffer>),
    buffer: impl FnOnce() -> PooledBuffer,
) -> Presence {
    let heard = io.presence(context);
    if heard != Presence::Open || io.plain().is_some() || ahead == Ahead::Body || early.is_some() {
        return heard;
    }
    if !io.has_news() {
        return heard;
    }
    let mut received = buffer();
    // Without memory for it, what comes stays where it is until the answer has gone.
    if !received.make_room() {
        return heard;
    }
    match io.poll_read_into(context, &mut received) {
        Poll::Pending => Presence::Open,
        Poll::Ready(Ok(0)) => Presence::Ended,
        Poll::Ready(Ok(_)) => {
            *early = Some(received);
            Presence::Open
        }
        // Without the record it may have been cut off, but it has ended.
        Poll::Ready(Err(error)) if error.kind() == ErrorKind::UnexpectedEof => Presence::Ended,
        Poll::Ready(Err(_)) => Presence::Broken,
    }
}

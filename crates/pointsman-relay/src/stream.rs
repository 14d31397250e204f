//! A stream of an HTTP/2 connection as what a session talks through.

use std::cell::Cell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use pointsman_h2::{Rest, RestCame, Stream};
use pointsman_net::{Booking, PooledBuffer, Presence, Tcp};
use pointsman_telemetry::{Event, Refusal};
use tokio::io::AsyncWrite;

use crate::exchange::Exchange;
use crate::fault::{ClientFault, Fault};
use crate::session::{After, Session};
use crate::shard::Shard;
use crate::transport::{OfHttp2, Transport};

/// A stream, and its place on its connection.
pub(crate) struct ClientStream {
    stream: Stream,
    place: Place,
}

/// Who takes back what it asked for makes more work than it may have at a time. Behind so many microseconds it has
/// waited: a deadline of its own is over.
const RESET_AT_ONCE_US: u64 = 50_000;

/// What the streams of a connection are counted by.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    pub(crate) open: Cell<u32>,
    pub(crate) begun: Cell<u64>,
    /// The windows of those that are open and have a body.
    pub(crate) windows_bytes: Cell<u64>,
    /// Those that the client reset before they were answered, at once.
    pub(crate) reset: Cell<u64>,
    /// Bytes of requests and answers.
    pub(crate) useful_bytes: Cell<u64>,
    /// Those that are over and of whose answers something is held.
    pub(crate) unsent: Cell<u32>,
    /// Bytes that the client had taken at the last look, where more was waiting for it.
    pub(crate) taken_bytes: Cell<u64>,
    /// The connection ended because the client took nothing in time.
    pub(crate) has_stalled: Cell<bool>,
}

/// Counts a stream for as long as it lives.
struct Place {
    streams: Rc<Streams>,
    shard: Rc<Shard>,
    began_us: u64,
    is_reset: bool,
    window_bytes: u32,
}

impl Place {
    fn take(streams: Rc<Streams>, shard: Rc<Shard>, window_bytes: u32) -> Place {
        streams.windows_bytes.set(streams.windows_bytes.get() + u64::from(window_bytes));
        streams.open.set(streams.open.get() + 1);
        streams.begun.set(streams.begun.get() + 1);
        shard.shared.streams.begun(shard.thread);
        let began_us = shard.clock.round_us();
        Place { streams, shard, began_us, is_reset: false, window_bytes }
    }

    fn count(&self, bytes: usize) {
        self.streams.useful_bytes.set(self.streams.useful_bytes.get() + bytes as u64);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let Streams { open, windows_bytes, .. } = &*self.streams;
        open.set(open.get() - 1);
        windows_bytes.set(windows_bytes.get() - u64::from(self.window_bytes));
        self.shard.shared.streams.ended(self.shard.thread);
    }
}

/// What an answer has booked, for as long as something of it is held.
struct Unsent {
    streams: Rc<Streams>,
    booked: Option<Booking>,
}

impl Unsent {
    fn begin(streams: Rc<Streams>, booked: Option<Booking>) -> Unsent {
        streams.unsent.set(streams.unsent.get() + 1);
        Unsent { streams, booked }
    }

    fn end(mut self) -> Option<Booking> {
        self.booked.take()
    }
}

impl Drop for Unsent {
    fn drop(&mut self) {
        self.streams.unsent.set(self.streams.unsent.get() - 1);
    }
}

impl ClientStream {
    /// `window_bytes` may come of the request's body before they are read.
    pub(crate) fn new(
        stream: Stream,
        streams: Rc<Streams>,
        shard: Rc<Shard>,
        window_bytes: u32,
    ) -> ClientStream {
        let window_bytes = if stream.has_body() { window_bytes } else { 0 };
        ClientStream { stream, place: Place::take(streams, shard, window_bytes) }
    }

    fn has_ended(&mut self, context: &mut Context<'_>) -> bool {
        if self.stream.poll_reset(context).is_pending() {
            return false;
        }
        let is_answered = self.stream.is_answered() || self.stream.is_tunnel();
        if !is_answered && !std::mem::replace(&mut self.place.is_reset, true) {
            let Place { streams, shard, began_us, .. } = &self.place;
            let is_at_once = shard.clock.round_us() - began_us < RESET_AT_ONCE_US;
            streams.reset.set(streams.reset.get() + u64::from(is_at_once));
        }
        true
    }
}

impl Transport for ClientStream {
    fn plain(&self) -> Option<&Tcp> {
        None
    }

    /// That the client sends nothing more is no sign that it has left: it says so.
    fn presence(&mut self, context: &mut Context<'_>) -> Presence {
        if self.has_ended(context) { Presence::Broken } else { Presence::Open }
    }

    /// Its own content that has left; where nothing leaves because the client reads too little, what that reads.
    fn taken_bytes(&self) -> Option<u64> {
        Some(self.stream.sent_bytes() + self.place.streams.taken_bytes.get())
    }

    fn break_off(&mut self) {
        self.stream.break_off();
    }

    /// Nothing follows a request on its stream.
    fn has_news(&mut self) -> bool {
        false
    }

    fn cut(&self) -> Option<Fault> {
        self.place.streams.has_stalled.get().then_some(Fault::Client(ClientFault::Stalled))
    }

    fn of_http2(&self) -> Option<OfHttp2<'_>> {
        Some(OfHttp2 {
            scheme: self.stream.scheme(),
            oddity: self.stream.oddity(),
            asks_for_protocol: self.stream.asks_for_protocol(),
            window_bytes: self.place.window_bytes,
        })
    }

    fn ends_with(&mut self, trailers: &[u8]) {
        self.stream.ends_with(trailers);
    }

    fn poll_rest(&mut self, context: &mut Context<'_>, rest: Rest) -> Poll<RestCame> {
        self.stream.poll_rest(context, rest)
    }

    fn poll_read_into(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut PooledBuffer,
    ) -> Poll<io::Result<usize>> {
        if !buffer.make_room() || !buffer.reserve(self.stream.room_bytes_min()) {
            return Poll::Ready(Err(io::ErrorKind::OutOfMemory.into()));
        }
        let read = self.stream.poll_read(context, buffer);
        match &read {
            Poll::Pending => buffer.release_if_empty(),
            Poll::Ready(Ok(bytes)) => self.place.count(*bytes),
            // The client reset it, which is noticed once.
            Poll::Ready(Err(_)) => {
                self.has_ended(context);
            }
        }
        read
    }
}

impl AsyncWrite for ClientStream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let own = self.get_mut();
        let written = own.stream.poll_write(context, bytes);
        match &written {
            Poll::Ready(Ok(bytes)) => own.place.count(*bytes),
            Poll::Ready(Err(_)) => drop(own.has_ended(context)),
            Poll::Pending => {}
        }
        written
    }

    /// The connection sends it with its next turn.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.get_mut().stream.finish())
    }

    /// Waits until the connection holds nothing of it any more.
    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().stream.poll_finish(context)
    }
}

/// Serves the one exchange that a stream is, and the tunnel that it may become. What it has booked is given back when
/// nothing of its answer is held.
pub(crate) async fn serve_stream(mut session: Session<ClientStream>) {
    let mut exchange = Exchange::default();
    let after = session.whole_exchange(&mut exchange).await;
    match after {
        After::Leave if session.io.stream.is_tunnel() => return session.leave().await,
        After::Leave => return,
        // What is broken off ends by RST_STREAM.
        After::Reset => return session.is_amid_answer = true,
        After::Next | After::Close | After::Http2 => {}
    }
    let booked = exchange.booked.take();
    // What came too late is not waited for once more.
    let is_late = matches!(exchange.fault, Some(Fault::BodyTimeout | Fault::HeadTimeout));
    let status = exchange.status;
    drop(exchange);
    // All of the answer is within the client's windows, or it would not have been taken: whether the client reads is
    // looked at for the connection as a whole.
    let unsent = Unsent::begin(session.io.place.streams.clone(), booked);
    let Err(unsent) = session.io.stream.finish_with(unsent) else {
        session.is_amid_answer = false;
        if !is_late {
            session.rest_of_request(status).await;
        }
        return;
    };
    let booked = unsent.end();
    if session.end_our_side().await {
        // Its end was announced with its last bytes.
        session.is_amid_answer = !session.io.stream.is_answered();
        session.rest_of_request(status).await;
    } else {
        let shard = &session.shard;
        shard.recorder.hear(&Event::Refused(&session.listener.metrics, Refusal::WriteTimeout));
        session.is_amid_answer = true;
    }
    drop(session);
    drop(booked);
}

//! A client's HTTP/2 connection: it hands out streams, and each is served by a session of its own.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use pointsman_config::ListenerLimits;
use pointsman_h2::{Connection, Fault, Frames, Limits, Stream, overhead_bytes_max};
use pointsman_net::{Deadline, Elapsed, PooledBuffer, Stall, spawn};
use pointsman_telemetry::{Event, Refusal};
use pointsman_upstream::Owner;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::failed_handshake::log_no_request;
use crate::live::{ListenerId, ListenerState};
use crate::memory::STREAM_UNSENT_BYTES_MAX;
use crate::session::Session;
use crate::shard::Shard;
use crate::stream::{ClientStream, Streams, serve_stream};
use crate::transport::{Patience, Transport};

/// How long a connection without streams waits for anything, once it is to end.
const LAST_WORDS_MS: u32 = 2000;
/// Streams that a client may reset unanswered before it is looked at whether these are most of them.
const RESETS_MIN: u64 = 100;
/// What a connection waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waiting {
    /// What HTTP/2 begins with.
    Preface,
    /// A request.
    Request,
    /// Its streams, which have deadlines of their own; it is looked at what the client takes meanwhile.
    Streams,
    /// That the client takes the rest of what its streams were answered.
    Room,
    /// The client's end, after ours.
    End,
}

/// The next look at what the client takes.
struct Look {
    stall: Stall,
    /// When it is, once something may wait for that.
    at_us: Option<u64>,
}

/// Something that the client has begun to say, and by when it has to be whole.
#[derive(Clone, Copy, Debug)]
struct Begun {
    number: u64,
    until_us: u64,
}

/// What came of a wait.
enum Heard {
    Stream(Stream),
    /// The connection has ended, by a fault or without.
    Ended(Option<Fault>),
    /// It is something else that is waited for now.
    Other,
}

/// Serves a connection that speaks HTTP/2, to its end.
pub(crate) async fn serve_http2<C: Transport + AsyncRead>(session: &mut Session<C>) {
    let shard = session.shard.clone();
    let Some(booked) = shard.buffers.http2() else {
        shard.recorder.hear(&Event::Refused(&session.listener.metrics, Refusal::Memory));
        return session.leave().await;
    };
    session.look_at_plan();
    let local = shard.local();
    let allows_tunnels =
        local.live.listener(session.listener_id).is_some_and(|(listener, _)| !listener.upgrades.is_empty());
    drop(local);
    let Session { io, listener_id, listener, connection, owner, deadline, early, limits, .. } = &mut *session;
    let wire = Wire { early: early.take(), frames: Frames::default(), read_bytes: 0, written_bytes: 0, io };
    let client = Client {
        shard,
        id: *listener_id,
        listener: listener.clone(),
        connection: connection.clone(),
        owner: *owner,
    };
    let h2_limits = h2_limits(limits, allows_tunnels);
    let mut serving = Serving {
        h2: Connection::new(wire, &h2_limits),
        begun: None,
        began_us: client.shard.clock.round_us(),
        client,
        limits: *limits,
        streams: Rc::default(),
        window_bytes: h2_limits.connection_window_bytes,
        is_ending: false,
        is_calmed: false,
    };
    let fault = serving.run(deadline).await.or(serving.is_calmed.then_some(Fault::Excess));
    serving.tell(fault.as_ref());
    drop(serving);
    drop(booked);
    session.linger(None, Patience::ForBytes).await;
}

fn h2_limits(limits: &ListenerLimits, allows_tunnels: bool) -> Limits {
    Limits {
        streams_max: limits.http2_streams_max,
        head_bytes_max: limits.head_bytes_max,
        stream_window_bytes: limits.http2_stream_window_bytes,
        connection_window_bytes: connection_window_bytes(limits),
        unsent_bytes_max: STREAM_UNSENT_BYTES_MAX,
        allows_tunnels,
    }
}

/// What may come for all streams together, beside the windows of those that are open.
fn connection_window_bytes(limits: &ListenerLimits) -> u32 {
    limits.http2_window_bytes.max(limits.http2_stream_window_bytes)
}

/// Whose connection it is.
struct Client {
    shard: Rc<Shard>,
    id: ListenerId,
    listener: Arc<ListenerState>,
    connection: pointsman_view::Connection,
    owner: Owner,
}

struct Serving<'a, C> {
    h2: Connection<Wire<'a, C>>,
    client: Client,
    limits: ListenerLimits,
    streams: Rc<Streams>,
    /// What may come for all of them together.
    window_bytes: u32,
    /// The client was told that no new streams are taken.
    is_ending: bool,
    /// Because it asks for too much.
    is_calmed: bool,
    begun: Option<Begun>,
    began_us: u64,
}

impl<C: Transport + AsyncRead> Serving<'_, C> {
    /// Drives the connection until it ends. Returns what went wrong, if it was that.
    async fn run(&mut self, deadline: &mut Deadline) -> Option<Fault> {
        let mut look = Look { stall: Stall::new(self.limits.write_ms_max), at_us: None };
        loop {
            let waiting = self.waiting();
            let ms = self.ms(waiting, &mut look);
            let is_idle = !self.is_ending;
            let heard = poll_fn(|context| self.poll(context, waiting));
            // Once it is ending nobody needs to tell it.
            let heard = match is_idle {
                true => deadline.idle_within(ms, heard).await,
                false => deadline.within(ms, heard).await,
            };
            match heard {
                Ok(Heard::Stream(stream)) => self.begin(stream),
                Ok(Heard::Ended(fault)) => return fault,
                Ok(Heard::Other) => {}
                Err(Elapsed::Ended) if self.client.is_ending() => self.end(),
                // Some other listener was removed.
                Err(Elapsed::Ended) => {}
                Err(Elapsed::Time) if self.is_begun_too_long() => {
                    self.is_too_slow();
                    return None;
                }
                Err(Elapsed::Time) => match waiting {
                    Waiting::Preface => {}
                    Waiting::Request => self.end(),
                    Waiting::Streams | Waiting::Room if self.takes_some(waiting, &mut look) => {}
                    Waiting::Streams | Waiting::Room => {
                        self.has_stalled();
                        return None;
                    }
                    Waiting::End => return None,
                },
            }
        }
    }

    fn poll(&mut self, context: &mut Context<'_>, waiting: Waiting) -> Poll<Heard> {
        if self.client.shard.is_stopping() {
            return Poll::Ready(Heard::Ended(None));
        }
        // Nobody ends its wait then, and what it serves goes on.
        if !self.is_ending && self.client.shard.is_draining() && self.client.shard.lingers() {
            self.end();
            return Poll::Ready(Heard::Other);
        }
        self.set_window();
        match self.h2.poll_next(context) {
            Poll::Ready(Some(Ok(stream))) => Poll::Ready(Heard::Stream(stream)),
            Poll::Ready(Some(Err(fault))) => Poll::Ready(Heard::Ended(Some(fault))),
            Poll::Ready(None) => Poll::Ready(Heard::Ended(None)),
            Poll::Pending if !self.is_ending && self.is_abused() => {
                (self.is_ending, self.is_calmed) = (true, true);
                self.h2.calm();
                context.waker().wake_by_ref();
                Poll::Pending
            }
            Poll::Pending if self.look_at_begun() || self.waiting() != waiting => Poll::Ready(Heard::Other),
            Poll::Pending => Poll::Pending,
        }
    }

    /// Leaves as much room for what comes as there would be without those streams that nobody reads: each may fill its
    /// own window, which it has booked, and takes nothing of the others' room.
    fn set_window(&mut self) {
        let bytes = self.streams.windows_bytes.get() + u64::from(connection_window_bytes(&self.limits));
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        if bytes != std::mem::replace(&mut self.window_bytes, bytes) {
            self.h2.set_window_bytes(bytes);
        }
    }

    fn waiting(&self) -> Waiting {
        let holds_some = self.h2.has_streams() || self.h2.is_held_up();
        match (self.h2.is_open(), holds_some, self.streams.open.get()) {
            (false, _, _) => Waiting::Preface,
            (true, _, 1..) => Waiting::Streams,
            (true, true, 0) => Waiting::Room,
            (true, false, 0) if self.is_ending => Waiting::End,
            (true, false, 0) => Waiting::Request,
        }
    }

    fn ms(&self, waiting: Waiting, look: &mut Look) -> u32 {
        let shard = &self.client.shard;
        if !matches!(waiting, Waiting::Streams | Waiting::Room) {
            look.at_us = None;
        }
        let ms = match waiting {
            Waiting::Preface => u32::MAX,
            Waiting::Request => self.limits.idle_ms_max,
            // Whatever is heard meanwhile: a client that asks for more takes no more by that.
            Waiting::Streams | Waiting::Room => {
                let ms = look.stall.look_ms();
                shard.ms_until(*look.at_us.get_or_insert_with(|| shard.after_ms(ms)))
            }
            Waiting::End => LAST_WORDS_MS,
        };
        self.begun.map_or(ms, |begun| ms.min(shard.ms_until(begun.until_us)))
    }

    /// Notes what the client has begun to say. Whether that is something new, or nothing any more.
    fn look_at_begun(&mut self) -> bool {
        let open = self.h2.with_io(|wire| wire.frames.open());
        if open == self.begun.map(|begun| begun.number) {
            return false;
        }
        let until_us = self.client.shard.after_ms(self.limits.head_ms_max);
        self.begun = open.map(|number| Begun { number, until_us });
        true
    }

    fn is_begun_too_long(&self) -> bool {
        self.begun.is_some_and(|begun| self.client.shard.ms_until(begun.until_us) == 0)
    }

    /// The client does not go on with what it has begun. One that never said a word is not worth one.
    fn is_too_slow(&self) {
        let Client { shard, listener, connection, .. } = &self.client;
        if self.h2.with_io(|wire| wire.read_bytes) == 0 {
            return;
        }
        shard.recorder.hear(&Event::Refused(&listener.metrics, Refusal::HeadTimeout));
        if shard.recorder.is_logging() {
            let error = "HTTP/2: the head did not arrive in time";
            log_no_request(shard, (&listener.metrics, connection, self.began_us), 0, error);
        }
    }

    /// Whether the client takes something, where something waits for that. Streams hear of it, which wait for it, too.
    fn takes_some(&self, waiting: Waiting, look: &mut Look) -> bool {
        look.at_us = None;
        if !self.h2.is_held_up() {
            if waiting == Waiting::Streams && self.streams.unsent.get() == 0 {
                look.stall = Stall::new(self.limits.write_ms_max);
                return true;
            }
            // It is its windows that hold answers back: what else it takes is no sign that it wants any.
            return look.stall.goes_on(Some(self.h2.sent_bytes()));
        }
        // Where the system does not say what it has taken, what was written tells at least that there was room.
        let (taken_bytes, written_bytes) =
            self.h2.with_io(|wire| (wire.io.taken_bytes(), wire.written_bytes));
        if let Some(bytes) = taken_bytes {
            self.streams.taken_bytes.set(bytes);
        }
        look.stall.goes_on(taken_bytes.or(Some(written_bytes)))
    }

    /// Its open streams are told why it ends, and say so; where there are none it is said here.
    fn has_stalled(&self) {
        let Client { shard, listener, .. } = &self.client;
        self.streams.has_stalled.set(true);
        if self.streams.open.get() == 0 {
            shard.recorder.hear(&Event::Refused(&listener.metrics, Refusal::WriteTimeout));
        }
    }

    /// Lets a session serve a stream.
    fn begin(&mut self, stream: Stream) {
        let Client { shard, id, listener, connection, owner } = &self.client;
        let window_bytes = self.limits.http2_stream_window_bytes;
        let stream = ClientStream::new(stream, self.streams.clone(), shard.clone(), window_bytes);
        let deadline = shard.timers.deadline();
        let mut session =
            Session::new(stream, shard.clone(), *id, listener.clone(), connection.clone(), deadline);
        session.owner = *owner;
        spawn(serve_stream(session));
        let max = self.limits.requests_max;
        if max != 0 && self.streams.begun.get() >= u64::from(max) {
            self.end();
        }
    }

    /// Says that no new streams are taken; what is open goes on.
    fn end(&mut self) {
        if !std::mem::replace(&mut self.is_ending, true) {
            self.h2.end();
        }
    }

    /// Whether the client makes work beyond what it asks for: frames that are about no request, or requests that it
    /// takes back (CVE-2023-44487).
    fn is_abused(&self) -> bool {
        let Streams { begun, reset, useful_bytes, .. } = &*self.streams;
        if reset.get() > RESETS_MIN && reset.get() > begun.get() / 2 {
            return true;
        }
        let seconds = (self.client.shard.clock.round_us() - self.began_us) / 1_000_000;
        // Content that nobody reads is within the windows that were given for it, and may come.
        let beside_bytes = self.h2.with_io(|wire| wire.read_bytes - wire.frames.content_bytes());
        beside_bytes > overhead_bytes_max(useful_bytes.get(), seconds)
    }

    /// Tells what the client did wrong, if it did.
    fn tell(&self, fault: Option<&Fault>) {
        let Client { shard, listener, connection, .. } = &self.client;
        let Some(fault) = fault.filter(|fault| fault.is_clients()) else { return };
        shard.recorder.hear(&Event::Refused(&listener.metrics, Refusal::Http2));
        if shard.recorder.is_logging() {
            let error = match self.h2.with_io(|wire| wire.frames.has_other_preface()) {
                true => "HTTP/2: it does not begin with the preface".to_owned(),
                false => format!("HTTP/2: {fault}"),
            };
            log_no_request(shard, (&listener.metrics, connection, self.began_us), 0, &error);
        }
    }
}

impl Client {
    /// Whether its connection is to take no more requests: the switch drains, or the listener is gone.
    fn is_ending(&self) -> bool {
        self.shard.is_draining() || self.shard.local().live.listener(self.id).is_none()
    }
}

/// What the connection talks through, what was read ahead first.
struct Wire<'a, C> {
    early: Option<PooledBuffer>,
    frames: Frames,
    read_bytes: u64,
    written_bytes: u64,
    io: &'a mut C,
}

impl<C: Transport + AsyncRead> AsyncRead for Wire<'_, C> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Wire { early, frames, read_bytes, io, .. } = self.get_mut();
        let before = buffer.filled().len();
        let read = match early {
            None => Pin::new(&mut **io).poll_read(context, buffer),
            Some(bytes) => {
                let taken = bytes.len().min(buffer.remaining());
                buffer.put_slice(&bytes[..taken]);
                bytes.drain(..taken);
                early.take_if(|bytes| bytes.is_empty());
                Poll::Ready(Ok(()))
            }
        };
        let came = &buffer.filled()[before..];
        frames.see(came);
        *read_bytes += came.len() as u64;
        read
    }
}

impl<C: Transport> AsyncWrite for Wire<'_, C> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let Wire { io, written_bytes, .. } = self.get_mut();
        let written = Pin::new(&mut **io).poll_write(context, bytes);
        if let Poll::Ready(Ok(bytes)) = written {
            *written_bytes += bytes as u64;
        }
        written
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.get_mut().io).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.get_mut().io).poll_shutdown(context)
    }
}

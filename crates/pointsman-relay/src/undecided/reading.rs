//! How a body is read on that decides: into what is left of the head's buffer, and then into what is held.

use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use pointsman_http::Version;
use pointsman_net::{PooledBuffer, Presence};
use pointsman_rules::Cause;
use pointsman_telemetry::ListenerMetrics;

use super::Undecided;
use crate::exchange::Exchange;
use crate::fault::{ClientFault, Fault};
use crate::hold::Found;
use crate::pump::Excess;
use crate::session::Session;
use crate::shard::Shard;
use crate::transport::{Transport, read_into};
use crate::verdict::Verdict;

/// How long a body that finds no room waits until it looks again, and whoever has the turn until it is looked whether
/// that is over.
const LOOK_MS: u32 = 50;
/// Where the head's buffer has less room than this the body goes on in pieces of its own.
const ROOM_BYTES_MIN: usize = 1024;

/// What came of a read.
enum Came {
    Read(io::Result<usize>),
    /// Something may have come, and there is no room for it.
    NoRoom,
    NoMemory,
}

impl Undecided {
    /// Reads on until the rules have decided.
    pub(super) async fn read_on<C: Transport>(
        &mut self,
        session: &mut Session<C>,
        received: &mut PooledBuffer,
        exchange: &mut Exchange,
    ) -> Result<Verdict, Fault> {
        self.say_continue(session, exchange).await?;
        loop {
            self.read(session, received, exchange).await?;
            exchange.request_bytes = self.request_bytes();
            if self.is_to_ask(session)
                && let Some(verdict) = self.ask(session, received, exchange)?
            {
                return Ok(verdict);
            }
            if self.body.is_done() {
                debug_assert!(false, "what has ended leaves nothing to wait for");
                return Err(Fault::Unknown(Cause::Unread));
            }
        }
    }

    /// Lets a client send its body that waits to be asked for it (RFC 9110 section 10.1.1).
    async fn say_continue<C: Transport>(
        &mut self,
        session: &mut Session<C>,
        exchange: &Exchange,
    ) -> Result<(), Fault> {
        let is_waited_for = self.head.expects_continue() && self.pace.read_bytes == 0;
        if !is_waited_for || exchange.version == Version::Http10 {
            return Ok(());
        }
        self.has_said_continue = true;
        session.send(b"HTTP/1.1 100 Continue\r\n\r\n").await
    }

    /// Reads more of the body, and looks into it. The exchange has booked the head's buffer: a small body takes nothing
    /// of what all that are held may take.
    async fn read<C: Transport>(
        &mut self,
        session: &mut Session<C>,
        received: &mut PooledBuffer,
        exchange: &mut Exchange,
    ) -> Result<(), Fault> {
        if self.hold.is_empty() && received.capacity() - received.len() >= ROOM_BYTES_MIN {
            let before = received.len();
            let (ms, began_us) = (session.body_ms(self.pace), session.shard.clock.round_us());
            let read = session.deadline.within(ms, read_into(&mut session.io, received)).await;
            self.pace.waited_us += session.shard.clock.round_us() - began_us;
            came(&read.map_err(|_| Fault::BodyTimeout)?)?;
            let used = self.take_in(received, before)?;
            self.arrived_bytes += used;
            keep_excess(received, before + used, session, exchange);
            return Ok(());
        }
        self.read_held(session).await?;
        let Some(piece) = self.hold.last() else { return Err(Fault::Memory) };
        let mut bytes = piece.take();
        let used = self.looked_bytes + self.take_in(&mut bytes, self.looked_bytes)?;
        keep_excess(&mut bytes, used, session, exchange);
        self.looked_bytes = used;
        if let Some(piece) = self.hold.last() {
            *piece = bytes;
        }
        Ok(())
    }

    /// Reads into what is held. Room is taken when something has come for it: who sends nothing takes none.
    async fn read_held<C: Transport>(&mut self, session: &mut Session<C>) -> Result<(), Fault> {
        let mut until_us = session.shard.after_ms(session.body_ms(self.pace));
        loop {
            let Session { io, shard, listener, deadline, .. } = &mut *session;
            if self.lets_others_wait(shard) {
                return Err(Fault::Hold);
            }
            let left_ms = shard.ms_until(until_us);
            let ms = if self.turn.is_some() { left_ms.min(LOOK_MS) } else { left_ms };
            let began_us = shard.clock.round_us();
            let read = poll_fn(|context| self.poll_read(context, io, shard, &listener.metrics));
            let read = deadline.within(ms, read).await;
            self.pace.waited_us += shard.clock.round_us() - began_us;
            match read {
                Ok(Came::Read(read)) => return came(&read),
                Ok(Came::NoMemory) => return Err(Fault::Memory),
                Ok(Came::NoRoom) => {
                    self.wait_for_room(session).await?;
                    until_us = session.shard.after_ms(session.body_ms(self.pace));
                }
                Err(_) if shard.ms_until(until_us) == 0 => return Err(Fault::BodyTimeout),
                Err(_) => {}
            }
        }
    }

    fn poll_read<C: Transport>(
        &mut self,
        context: &mut Context<'_>,
        io: &mut C,
        shard: &Shard,
        listener: &Arc<ListenerMetrics>,
    ) -> Poll<Came> {
        match self.find_room(shard, listener) {
            Found::Room => {}
            Found::Later => return Poll::Ready(Came::NoRoom),
            Found::NoMemory => return Poll::Ready(Came::NoMemory),
        }
        let Some(piece) = self.hold.last() else { return Poll::Ready(Came::NoMemory) };
        self.looked_bytes = piece.len();
        let read = io.poll_read_into(context, piece);
        if read.is_pending() {
            self.hold.give_back_unused();
            if self.turn.take_if(|turn| turn.is_unused()).is_some() {
                // Who has nothing to bring when it may waits anew.
                self.number = None;
            }
        }
        read.map(Came::Read)
    }

    fn find_room(&mut self, shard: &Shard, listener: &Arc<ListenerMetrics>) -> Found {
        let turn = self.turn.as_ref().map(|in_turn| &in_turn.turn);
        self.hold.make_room(turn, &shard.buffers, &shard.recorder, listener)
    }

    /// Waits for room to read into, or for the turn to take more than there is, as long as the client is there.
    async fn wait_for_room<C: Transport>(&mut self, session: &mut Session<C>) -> Result<(), Fault> {
        let queue = &session.shard.hold_queue;
        let place = queue.wait(*self.number.get_or_insert_with(|| queue.number()));
        let until_us = session.shard.after_ms(session.limits.body_ms_max);
        loop {
            let Session { io, shard, listener, deadline, .. } = &mut *session;
            match self.find_room(shard, &listener.metrics) {
                Found::Room => return Ok(()),
                Found::NoMemory => return Err(Fault::Memory),
                Found::Later => {}
            }
            self.turn = place.take_turn(self.pace);
            if self.turn.is_some() {
                continue;
            }
            let ms = shard.ms_until(until_us).min(LOOK_MS);
            if ms == 0 {
                return Err(Fault::Hold);
            }
            let next = poll_fn(|context| match io.presence(context) {
                Presence::Broken => Poll::Ready(Err(Fault::Client(ClientFault::Closed))),
                Presence::Ended | Presence::Open => place.poll_turn(context).map(Ok),
            });
            if let Ok(next) = deadline.within(ms, next).await {
                next?;
            }
        }
    }

    /// Whether it has the turn, and uses it so slowly that it is the others' now.
    fn lets_others_wait(&self, shard: &Rc<Shard>) -> bool {
        let others = shard.hold_queue.waiting();
        others > 0 && self.turn.as_ref().is_some_and(|turn| turn.is_slow(self.pace, others))
    }
}

fn came(read: &io::Result<usize>) -> Result<(), Fault> {
    match read {
        Ok(1..) => Ok(()),
        read => Err(Fault::of_client(read)),
    }
}

/// Keeps what came behind the `used` bytes that are the request's.
fn keep_excess<C: Transport>(
    bytes: &mut PooledBuffer,
    used: usize,
    session: &mut Session<C>,
    exchange: &mut Exchange,
) {
    if used == bytes.len() {
        return;
    }
    let mut next = session.shard.buffers.request();
    let excess = match next.reserve(bytes.len() - used) {
        true => {
            next.extend_from_slice(&bytes[used..]);
            Excess::Kept(next)
        }
        false => Excess::Lost,
    };
    session.keep_excess(excess, exchange);
    bytes.truncate(used);
}

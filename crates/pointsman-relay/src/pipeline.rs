//! Several requests of one connection on their way at a time (RFC 9112 section 9.3.2).
//!
//! Each is a session of its own in a slot of its own ([`slot`]); this task reads their heads, lets them go on, and sends
//! their answers in order. What may not overlap, a request with a body for one, is served by the connection's own
//! session, as everywhere else, when all before it are answered.

pub(crate) mod intake;
pub(crate) mod slot;
pub(crate) mod slots;

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll};

use pointsman_config::Pipeline;
use pointsman_net::{Deadline, Presence, Stall};

use crate::exchange::Exchange;
use crate::fault::{ClientFault, Fault};
use crate::pipeline::intake::{Came, Intake, Next};
use crate::pipeline::slot::Line;
use crate::pipeline::slots::Slots;
use crate::session::{After, Session};
use crate::shard::Shard;
use crate::transport::Transport;

/// While nothing of the client is waited for, its servers have deadlines of their own.
const NO_DEADLINE_MS: u32 = 60 * 60 * 1000;

/// A connection whose requests may overlap.
struct Pipelined {
    mode: Pipeline,
    intake: Intake,
    line: Rc<Line>,
    slots: Slots,
}

/// What came of one turn.
enum Turn {
    /// The client took something.
    Sent,
    /// What is waited for has changed.
    Changed,
    /// No request is on its way, or none is to be answered any more.
    Over(After),
}

/// Serves a client connection in `mode` until it ends, or goes over to HTTP/2, which it says.
pub(crate) async fn serve<C: Transport>(session: &mut Session<C>, mode: Pipeline) -> bool {
    let line = Rc::new(Line::new());
    let intake = Intake::new(&session.shard.buffers);
    let slots = Slots::new(line.clone());
    let mut all = Pipelined { mode, intake, line, slots };
    let mut deadline = session.shard.timers.deadline();
    loop {
        let mut exchange = Exchange::default();
        match all.serve_next(session, &mut deadline, &mut exchange).await {
            After::Next => {}
            After::Http2 => return true,
            after => {
                let booked = exchange.booked.take();
                drop((exchange, all));
                Box::pin(session.finish(after, booked)).await;
                return false;
            }
        }
    }
}

/// Awaits `future`, unless the switch stops.
async fn unless_stopped<T>(
    shard: &Shard,
    future: impl Future<Output = Result<T, Fault>>,
) -> Result<T, Fault> {
    let mut future = pin!(future);
    let outcome = poll_fn(|context| shard.poll_unless_stopping(future.as_mut(), context)).await;
    outcome.unwrap_or(Err(Fault::Drained))
}

impl Pipelined {
    /// Waits for a request where none is on its way, and serves it, and others beside it, if it may overlap. `exchange`
    /// is that of a request that is served alone.
    async fn serve_next<C: Transport>(
        &mut self,
        home: &mut Session<C>,
        deadline: &mut Deadline,
        exchange: &mut Exchange,
    ) -> After {
        self.intake.is_over = false;
        let shard = home.shard.clone();
        match unless_stopped(&shard, self.first_head(home, exchange)).await {
            // The answer to the last request of a connection that ends says so.
            Ok(Next::Beside { bytes, is_last }) if !home.is_ending() && self.take(home, bytes, is_last) => {
                self.overlap(home, deadline).await
            }
            Ok(_) => self.serve_alone(home, exchange).await,
            Err(fault) => {
                let after = home.refuse(fault, exchange).await;
                exchange.tell(home);
                after
            }
        }
    }

    /// The next request's head, as far as it is wanted.
    async fn first_head<C: Transport>(
        &mut self,
        home: &mut Session<C>,
        exchange: &mut Exchange,
    ) -> Result<Next, Fault> {
        let is_idle = self.intake.received.is_empty() && self.intake.fault.is_none();
        let awaited = match is_idle {
            true => {
                self.slots.rest();
                Some(home.wait_for_bytes().await)
            }
            false => None,
        };
        exchange.started_us = home.shard.clock.round_us();
        if let Some(received) = awaited {
            self.intake.set(received?, true);
        }
        loop {
            exchange.request_bytes = self.intake.received.len() as u64;
            if let Some(fault) = self.intake.fault.take() {
                return Err(fault);
            }
            match self.intake.next(home) {
                Next::More => {
                    home.more_of_head(&mut self.intake.received, exchange).await?;
                    self.intake.grew();
                }
                next => return Ok(next),
            }
        }
    }

    /// One request on the connection itself.
    async fn serve_alone<C: Transport>(&mut self, home: &mut Session<C>, exchange: &mut Exchange) -> After {
        home.early = Some(self.intake.received.take());
        home.was_awaited = self.intake.was_awaited;
        let after = home.whole_exchange(exchange).await;
        if after == After::Http2 {
            return after;
        }
        let rest = home.early.take().unwrap_or_else(|| home.shard.buffers.request());
        self.intake.set(rest, false);
        after
    }

    /// Serves requests beside each other until none is on its way and the next one is not to be taken yet.
    async fn overlap<C: Transport>(&mut self, home: &mut Session<C>, deadline: &mut Deadline) -> After {
        let mut stall = Stall::new(home.limits.write_ms_max);
        loop {
            let is_sending = self.is_sending();
            let ms = if is_sending { stall.look_ms() } else { NO_DEADLINE_MS };
            let turn = poll_fn(|context| self.poll(context, home, is_sending));
            match deadline.within(ms, turn).await {
                Ok(Turn::Sent) => stall = Stall::new(home.limits.write_ms_max),
                Ok(Turn::Changed) => {}
                Ok(Turn::Over(after)) => return after,
                Err(_) if !is_sending || stall.goes_on(home.io.taken_bytes()) => {}
                Err(_) => self.line.end(Fault::Client(ClientFault::Stalled)),
            }
        }
    }

    /// Does what can be done now.
    fn poll<C: Transport>(
        &mut self,
        context: &mut Context<'_>,
        home: &mut Session<C>,
        was_sending: bool,
    ) -> Poll<Turn> {
        loop {
            self.look_at_client(context, home);
            let mut has_taken = false;
            // All of them, before any goes on: the newest may be the only one that is wanted.
            while self.take_more(context, home) {
                has_taken = true;
            }
            match self.slots.poll(context) {
                Poll::Ready(After::Next) => continue,
                Poll::Ready(after) => {
                    // Behind the last answer it is the farewell that ends it.
                    home.is_amid_answer = after == After::Close || self.has_sent_some();
                    return Poll::Ready(Turn::Over(after));
                }
                Poll::Pending => {}
            }
            if self.send(context, home) {
                return Poll::Ready(Turn::Sent);
            }
            if has_taken {
                continue;
            }
            if self.slots.len() == 0 {
                return Poll::Ready(Turn::Over(After::Next));
            }
            let has_changed = self.is_sending() != was_sending;
            return if has_changed { Poll::Ready(Turn::Changed) } else { Poll::Pending };
        }
    }

    fn look_at_client<C: Transport>(&self, context: &mut Context<'_>, home: &mut Session<C>) {
        if home.shard.is_stopping() {
            self.line.end(Fault::Drained);
        }
        let heard = home.io.presence(context);
        if heard == Presence::Broken {
            self.line.end(Fault::Client(ClientFault::Closed));
        }
        self.line.presence.set(if self.intake.has_ended { Presence::Ended } else { heard });
    }

    /// Whether something of an answer waits for the client to take it.
    fn is_sending(&self) -> bool {
        !self.line.is_flushed.get() || self.slots.first().is_some_and(|place| place.held_bytes() > 0)
    }

    fn has_sent_some(&self) -> bool {
        self.slots.first().is_some_and(|place| place.sent_bytes() > 0)
    }

    /// Sends what there is of the answer whose turn it is. Says whether the client took something, or has left.
    fn send<C: Transport>(&self, context: &mut Context<'_>, home: &mut Session<C>) -> bool {
        let Some(place) = self.slots.first() else { return false };
        let mut has_sent = false;
        let is_open = loop {
            match place.poll_send(|bytes| Pin::new(&mut home.io).poll_write(context, bytes)) {
                Some(Poll::Ready(Ok(1..))) => {
                    has_sent = true;
                    self.line.is_flushed.set(false);
                }
                Some(Poll::Ready(_)) => break false,
                Some(Poll::Pending) => return has_sent,
                None if self.line.is_flushed.get() => break true,
                None => match Pin::new(&mut home.io).poll_flush(context) {
                    Poll::Ready(Ok(())) => {
                        has_sent = true;
                        self.line.is_flushed.set(true);
                    }
                    Poll::Ready(Err(_)) => break false,
                    Poll::Pending => return has_sent,
                },
            }
        };
        if !is_open {
            self.line.end(Fault::Client(ClientFault::Closed));
        }
        has_sent || !is_open
    }

    /// Takes the next request, or reads more of it. Says whether there was something.
    fn take_more<C: Transport>(&mut self, context: &mut Context<'_>, home: &mut Session<C>) -> bool {
        if self.intake.is_over || self.line.has_ended() || home.is_ending() {
            return false;
        }
        let has_slot = self.slots.len() < home.limits.pipeline_requests_max as usize;
        match self.intake.next(home) {
            Next::More if self.intake.has_ended => false,
            Next::More => match self.intake.poll_read(context, home) {
                Came::Nothing => false,
                Came::Something => true,
                Came::Broken => {
                    self.line.end(Fault::Client(ClientFault::Closed));
                    true
                }
            },
            Next::Beside { bytes, is_last } if has_slot => {
                let has_overtaken = self.overtake();
                self.take(home, bytes, is_last) || has_overtaken
            }
            Next::Alone { is_request: true } => self.overtake(),
            Next::Beside { .. } | Next::Alone { .. } => false,
        }
    }

    /// A newer request has come, which may mean that nobody waits for those before it. Says whether one of them ends by
    /// that.
    fn overtake(&mut self) -> bool {
        self.mode == Pipeline::Latest && self.slots.overtake()
    }

    /// Sends the next request on, beside those before it. False where there is no memory for that.
    fn take<C: Transport>(&mut self, home: &mut Session<C>, bytes: usize, is_last: bool) -> bool {
        let is_tls = home.connection.tls.is_some();
        let Some(booked) = home.shard.buffers.beside(bytes, is_tls) else { return false };
        let Some(request) = self.intake.cut_off(bytes, &home.shard.buffers) else { return false };
        let was_awaited = std::mem::take(&mut self.intake.was_awaited);
        self.slots.push(home, request, (was_awaited, booked));
        self.intake.is_over |= is_last;
        self.line.waiting_bytes_max.set(home.limits.pipeline_bytes_max as usize);
        true
    }
}

//! A tunnel: bytes both ways between two connections, as they come, until both sides have said their last.
//!
//! What a side says last is passed on, and the other direction goes on. No buffer, and no pipe, is held by a
//! direction in which nothing is on its way; what cannot be passed on is not read.

use std::rc::Rc;
use std::task::{Context, Poll};

use pointsman_net::{Booking, Deadline, PooledBuffer, Presence};

use crate::bandwidth::{ClassId, Toward};
use crate::flow::{Farewell, Flow, FlowFault, Now};
use crate::local::LocalServer;
use crate::session_learning::Listening;
use crate::shard::Shard;
use crate::transport::Transport;

/// How long a tunnel waits that found no memory to read with.
const MEMORY_MS: u32 = 100;

/// How long the sides of a WebSocket have for their Close frames, when the switch has said one.
const CLOSING_MS: u32 = 2000;

/// What a tunnel may take, in milliseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TunnelLimits {
    /// Nothing came in either direction.
    pub(crate) idle_ms_max: u32,
    /// The same once one side sends nothing more.
    pub(crate) half_closed_ms_max: u32,
    /// The client took nothing.
    pub(crate) client_write_ms_max: u32,
    /// The server took nothing.
    pub(crate) server_write_ms_max: u32,
}

/// What came before the tunnel began, and is passed on first.
#[derive(Default)]
pub(crate) struct FirstBytes {
    pub(crate) of_client: Option<PooledBuffer>,
    pub(crate) of_server: Option<PooledBuffer>,
}

/// What is known of a tunnel at any time: it may be cut off.
pub(crate) struct Carried<'a> {
    /// Bytes that came from the client are added here.
    pub(crate) client_bytes: &'a mut u64,
    /// Bytes that came from the server are added here.
    pub(crate) server_bytes: &'a mut u64,
    /// Whether something is on its way to the client: who closes now breaks it off.
    pub(crate) is_amid: &'a mut bool,
}

/// Why a tunnel ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TunnelEnd {
    /// Both sides have said their last, and were told.
    Closed,
    /// A side broke off.
    Broken(Side),
    /// A side took nothing in its time.
    Stalled(Side),
    /// Nothing came in either direction in its time.
    Idle,
    /// The switch drains, and nothing is on its way.
    Drained,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Client,
    Server,
}

/// A tunnel. Large: it belongs on the heap.
pub(crate) struct Tunnel<'s> {
    shard: &'s Shard,
    limits: TunnelLimits,
    /// From the client to the server.
    up: Flow,
    /// From the server to the client.
    down: Flow,
    /// What TLS may hold of what is on its way.
    tls: Option<Booking>,
    /// How long the sides have to answer the switch's own last word, once it was said.
    closing_until_us: Option<u64>,
    /// When something last moved, on the shard's clock.
    moved_us: u64,
}

/// What a turn came to.
enum Turn {
    /// Something else is waited for now, for another time.
    Changed,
    Ended(TunnelEnd),
}

impl<'s> Tunnel<'s> {
    pub(crate) fn new(
        shard: &'s Shard,
        limits: TunnelLimits,
        first: FirstBytes,
        class: Option<ClassId>,
    ) -> Tunnel<'s> {
        Tunnel {
            shard,
            limits,
            up: Flow::new(shard, first.of_client, limits.server_write_ms_max, (class, Toward::Server)),
            down: Flow::new(shard, first.of_server, limits.client_write_ms_max, (class, Toward::Client)),
            tls: None,
            closing_until_us: None,
            moved_us: shard.clock.round_us(),
        }
    }

    /// Says that its bytes are WebSocket frames: a client is told of a drain by one (RFC 6455 section 7.4.1). What
    /// it answers goes to the server, which so is told, too.
    pub(crate) fn carries_frames(&mut self) {
        self.down.follow_frames();
    }

    /// Says that this server's bytes are TLS, and who listens until it has named its session.
    pub(crate) fn listens_to_server(&mut self, listening: Box<Listening>, server: Rc<LocalServer>) {
        self.down.listen(listening, server);
    }

    /// Carries bytes until the tunnel ends. Where a side broke off or is given up, `is_amid` says that the
    /// client is to be reset, too, and the server is. Else nothing is on its way: both are the caller's to close.
    pub(crate) async fn carry<C: Transport, S: Transport>(
        &mut self,
        client: &mut C,
        server: &mut S,
        deadline: &mut Deadline,
        mut carried: Carried<'_>,
    ) -> TunnelEnd {
        *carried.client_bytes += self.up.buffer.len() as u64;
        *carried.server_bytes += self.down.buffer.len() as u64;
        let end = loop {
            let ms = self.wait_ms();
            let turn = std::future::poll_fn(|context| self.poll_turn(context, client, server, &mut carried));
            let end = match deadline.within(ms, turn).await {
                Ok(Turn::Ended(end)) => Some(end),
                Ok(Turn::Changed) => None,
                Err(_) => self.look(client, server),
            };
            if let Some(end) = end {
                break end;
            }
        };
        // What was broken off at one side must not look whole to the other.
        let breaks_off = matches!(end, TunnelEnd::Broken(_) | TunnelEnd::Stalled(_));
        *carried.is_amid |= breaks_off;
        if breaks_off || self.up.is_amid() {
            server.break_off();
        }
        end
    }

    /// Moves what can be moved.
    fn poll_turn<C: Transport, S: Transport>(
        &mut self,
        context: &mut Context<'_>,
        client: &mut C,
        server: &mut S,
        carried: &mut Carried<'_>,
    ) -> Poll<Turn> {
        let before = self.state();
        let bytes = *carried.client_bytes + *carried.server_bytes;
        let tls_sides = u8::from(client.plain().is_none()) + u8::from(server.plain().is_none());
        let may_read = self.tls.is_some() || tls_sides == 0 || {
            self.tls = self.shard.buffers.tunnel_tls(tls_sides);
            self.tls.is_some()
        };
        // What a server said before it broke off is heard first.
        let downwards =
            self.down.poll_move(context, (self.shard, may_read), server, client, carried.server_bytes);
        let upwards =
            self.up.poll_move(context, (self.shard, may_read), client, server, carried.client_bytes);
        *carried.is_amid = self.down.is_amid();
        let has_changed = before != self.state();
        if has_changed || *carried.client_bytes + *carried.server_bytes > bytes {
            self.moved_us = self.shard.clock.round_us();
        }
        if let Some(side) = broken_source(downwards, upwards) {
            return Poll::Ready(Turn::Ended(TunnelEnd::Broken(side)));
        }
        if self.up.now == Now::Over && self.down.now == Now::Over {
            return Poll::Ready(Turn::Ended(self.end()));
        }
        if let Some(side) = self.has_left(context, client, server) {
            return Poll::Ready(Turn::Ended(TunnelEnd::Broken(side)));
        }
        if !self.up.is_amid() && !self.down.is_amid() {
            self.tls = None;
            if self.shard.ends_tunnels() && self.closing_until_us.is_none() {
                match self.down.say_going_away() {
                    Farewell::Said => {
                        self.closing_until_us = Some(self.shard.after_ms(CLOSING_MS));
                        return Poll::Ready(Turn::Changed);
                    }
                    Farewell::Later => {}
                    Farewell::Never => return Poll::Ready(Turn::Ended(TunnelEnd::Drained)),
                }
            }
        }
        if has_changed { Poll::Ready(Turn::Changed) } else { Poll::Pending }
    }

    fn state(&self) -> (Now, Now, bool) {
        (self.up.now, self.down.now, self.has_half_closed())
    }

    /// How a tunnel ended that carries nothing more. Who takes nothing more has only closed, where it has said its
    /// last before.
    fn end(&self) -> TunnelEnd {
        match (&self.up, &self.down) {
            _ if self.closing_until_us.is_some() => TunnelEnd::Drained,
            (up, down) if up.has_lost_sink && !down.has_ended => TunnelEnd::Broken(Side::Server),
            (up, down) if down.has_lost_sink && !up.has_ended => TunnelEnd::Broken(Side::Client),
            _ => TunnelEnd::Closed,
        }
    }

    /// A side that broke off while nothing is read from it. Where we have said our last it only closed.
    fn has_left<C: Transport, S: Transport>(
        &self,
        context: &mut Context<'_>,
        client: &mut C,
        server: &mut S,
    ) -> Option<Side> {
        let (up, down) = (self.up.now, self.down.now);
        let is_unheard =
            |from: Now, back: Now| matches!(from, Now::Writes | Now::Throttled) && back != Now::Over;
        if is_unheard(up, down) && client.presence(context) == Presence::Broken {
            return Some(Side::Client);
        }
        let is_gone = is_unheard(down, up) && server.presence(context) == Presence::Broken;
        is_gone.then_some(Side::Server)
    }

    /// The directions that wait for bandwidth.
    fn throttled(&self) -> impl Iterator<Item = &Flow> {
        [&self.up, &self.down].into_iter().filter(|flow| flow.now == Now::Throttled)
    }

    fn has_half_closed(&self) -> bool {
        self.up.has_ended || self.down.has_ended
    }

    fn idle_until_us(&self) -> u64 {
        let TunnelLimits { idle_ms_max, half_closed_ms_max, .. } = self.limits;
        let ms = if self.has_half_closed() { idle_ms_max.min(half_closed_ms_max) } else { idle_ms_max };
        self.moved_us + u64::from(ms) * 1000
    }

    /// How long nothing may happen before the tunnel is looked at.
    fn wait_ms(&self) -> u32 {
        let looks = [&self.up, &self.down].into_iter().filter(|flow| flow.now == Now::Writes);
        let until_us = looks.map(|flow| flow.look_us).min().unwrap_or_else(|| self.idle_until_us());
        let until_us = self.closing_until_us.map_or(until_us, |closing_us| closing_us.min(until_us));
        let ms = self.shard.ms_until(until_us).max(1);
        let class_ms = self.throttled().filter_map(|flow| flow.shaping.waits_ms(self.shard)).min();
        let ms = class_ms.map_or(ms, |class_ms| class_ms.min(ms));
        let starves = self.up.now == Now::Starves || self.down.now == Now::Starves;
        if starves { ms.min(MEMORY_MS) } else { ms }
    }

    /// Looks at a tunnel in which nothing happened.
    fn look<C: Transport, S: Transport>(&mut self, client: &C, server: &S) -> Option<TunnelEnd> {
        let now_us = self.shard.clock.round_us();
        if self.up.has_stalled(now_us, server) {
            return Some(TunnelEnd::Stalled(Side::Server));
        }
        if self.down.has_stalled(now_us, client) {
            return Some(TunnelEnd::Stalled(Side::Client));
        }
        if self.closing_until_us.is_some_and(|until_us| now_us >= until_us) {
            return Some(TunnelEnd::Drained);
        }
        let writes = self.up.now == Now::Writes || self.down.now == Now::Writes;
        if writes || self.throttled().next().is_some() {
            self.moved_us = now_us;
        }
        (now_us >= self.idle_until_us()).then_some(TunnelEnd::Idle)
    }
}

fn broken_source(downwards: Result<(), FlowFault>, upwards: Result<(), FlowFault>) -> Option<Side> {
    match (downwards, upwards) {
        (Err(FlowFault::Source), _) => Some(Side::Server),
        (_, Err(FlowFault::Source)) => Some(Side::Client),
        _ => None,
    }
}

//! The way of a request, top to bottom.
//!
//! Read a head; decide by the rules; answer, or reach a server and relay its answer; again.

use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;

use pointsman_config::{Http2, Listener, ListenerLimits};
use pointsman_h2::PREFACE;
use pointsman_http::{Answer, push_grpc_lines, retain_lines};
use pointsman_net::{Deadline, Elapsed, PooledBuffer, Stall, write_all};
use pointsman_upstream::Owner;
use pointsman_view::{AddressText, Connection};

use crate::decide::decide;
use crate::exchange::Exchange;
use crate::fault::{ClientFault, Fault};
use crate::live::{ListenerId, ListenerState};
use crate::pump::Excess;
use crate::shard::Shard;
use crate::transport::{Transport, read_into};
use crate::verdict::{OwnAnswer, Verdict};

/// What a client reads whose answer there is no memory for.
const NO_MEMORY: &[u8] = b"no memory left\n";

/// How long a connection that is to end waits for a request that may be on its way; in a drain, to the next tick.
const LAST_REQUEST_MS: u32 = 1000;

/// One client connection.
pub(crate) struct Session<C: Transport> {
    pub(crate) io: C,
    pub(crate) shard: Rc<Shard>,
    pub(crate) listener_id: ListenerId,
    pub(crate) listener: Arc<ListenerState>,
    pub(crate) connection: Connection,
    pub(crate) deadline: Deadline,
    /// The address of the connection's sender; nothing on a Unix socket.
    pub(crate) sender_text: Option<AddressText>,
    /// What connections to servers are kept by that are for this client alone.
    pub(crate) owner: Owner,
    /// What this connection may take: as the configuration said when its request began.
    pub(crate) limits: ListenerLimits,
    pub(crate) requests: u32,
    /// How often what threads go by had changed when `limits` were taken from it; `u64::MAX`: they were not yet.
    swaps: u64,
    /// Bytes of the next request that came with the last one.
    pub(crate) early: Option<PooledBuffer>,
    /// Whether no answer was due when those bytes came.
    pub(crate) was_awaited: bool,
    /// Whether the client has said that it sends nothing more.
    pub(crate) has_ended: bool,
    /// Whether an answer has begun and is not over: whoever ends the connection now breaks it off.
    pub(crate) is_amid_answer: bool,
}

/// What becomes of the connection after an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// It waits for the next request.
    Next,
    /// It closes behind an answer, which must arrive whole although the client may still be sending.
    Close,
    /// It closes, and nothing that was sent is on its way.
    Leave,
    /// It is reset.
    Reset,
    /// It goes over to HTTP/2.
    Http2,
}

/// Serves a client connection until it ends, or goes over to HTTP/2, which it says.
pub(crate) async fn serve<C: Transport>(session: &mut Session<C>) -> bool {
    loop {
        let mut exchange = Exchange::default();
        match session.whole_exchange(&mut exchange).await {
            After::Next => {}
            After::Http2 => return true,
            after => {
                let booked = exchange.booked.take();
                drop(exchange);
                Box::pin(session.finish(after, booked)).await;
                return false;
            }
        }
    }
}

impl<C: Transport> Session<C> {
    pub(crate) fn new(
        io: C,
        shard: Rc<Shard>,
        listener_id: ListenerId,
        listener: Arc<ListenerState>,
        connection: Connection,
        deadline: Deadline,
    ) -> Session<C> {
        let sender_text = connection.sender().map(|sender| AddressText::new(sender.ip()));
        let mut session = Session {
            io,
            owner: shard.next_owner(),
            shard,
            listener_id,
            listener,
            connection,
            deadline,
            sender_text,
            limits: ListenerLimits::default(),
            swaps: u64::MAX,
            requests: 0,
            early: None,
            was_awaited: false,
            has_ended: false,
            is_amid_answer: false,
        };
        session.look_at_plan();
        session
    }

    /// One exchange to its end, whatever that is, told to telemetry. A switch that stops ends it.
    pub(crate) async fn whole_exchange(&mut self, exchange: &mut Exchange) -> After {
        let shard = self.shard.clone();
        let after = {
            let mut whole = pin!(async {
                match self.exchange(exchange).await {
                    Ok(after) => after,
                    Err(fault) => self.refuse(fault, exchange).await,
                }
            });
            poll_fn(|context| shard.poll_unless_stopping(whole.as_mut(), context)).await
        };
        let after = after.unwrap_or_else(|| exchange.is_cut());
        // What HTTP/2 begins with is no request.
        if after != After::Http2 {
            exchange.tell(self);
        }
        after
    }

    /// The way of one request, and of its answer back.
    pub(crate) async fn exchange(&mut self, exchange: &mut Exchange) -> Result<After, Fault> {
        // In a block: what was borrowed keeps its room to the end of its scope, also when it has moved on.
        let mut verdict = {
            let mut received = self.first_bytes(exchange).await?;
            loop {
                exchange.request_bytes = received.len() as u64;
                if let Some(verdict) = decide(self, &mut received, exchange)? {
                    self.keep_rest(&verdict, received, exchange);
                    break verdict;
                }
                self.more_of_head(&mut received, exchange).await?;
            }
        };
        if let Verdict::Waits(undecided) = &mut verdict
            && let Some(undecided) = undecided.take()
        {
            // On the heap: most requests are decided by what comes at once.
            verdict = Box::pin(self.wait_for_body(undecided, exchange)).await?;
        }
        if let Some(mirror) = self.shard.next_mirror.take() {
            self.begin_mirror(mirror, &mut verdict, exchange);
        }
        if exchange.bandwidth.is_some() {
            // On the heap: few have a class.
            Box::pin(self.wait_for_class_of(&verdict, exchange)).await?;
        }
        match &mut verdict {
            Verdict::Forward(forward) => {
                if let Some(fault) = self.io.cut() {
                    return Err(fault);
                }
                loop {
                    let mut reached = self.reach(forward, exchange).await?;
                    let is_whole = forward.is_sent();
                    let after = match is_whole {
                        true => self.relay_answer(Some(&mut *forward), &mut reached, exchange).await,
                        // On the heap: most requests come in one piece, and an idle connection has no room to
                        // spare.
                        false => Box::pin(self.upload_and_answer(forward, &mut reached, exchange)).await,
                    };
                    match after.inspect_err(|fault| reached.hear_of(*fault)) {
                        Err(fault) if is_whole && self.tries_another(fault, &reached, forward, exchange) => {}
                        Err(fault) => return Err(fault),
                        Ok(after) => {
                            reached.settle(&self.shard, exchange, self.owner);
                            return Ok(after);
                        }
                    }
                }
            }
            Verdict::Answer(answer) => Ok(self.answer(answer, exchange).await),
            Verdict::Http2 => Ok(After::Http2),
            // Nothing waits any more.
            Verdict::Discard | Verdict::Waits(_) => Ok(After::Leave),
            Verdict::Reset => Ok(After::Reset),
        }
    }

    /// Keeps what was read behind the request.
    pub(crate) fn keep_rest(&mut self, verdict: &Verdict, received: PooledBuffer, exchange: &mut Exchange) {
        let used = match verdict {
            Verdict::Forward(forward) => forward.body.is_done().then_some(forward.used as usize),
            Verdict::Answer(answer) => answer.used,
            Verdict::Discard | Verdict::Reset | Verdict::Waits(_) => None,
            Verdict::Http2 => return self.early = Some(received),
        };
        exchange.has_whole_request = used.is_some();
        self.keep_early(received, used.unwrap_or_default(), exchange.has_whole_request);
    }

    /// Waits for a request: its first bytes, or those that came with the request before it.
    async fn first_bytes(&mut self, exchange: &mut Exchange) -> Result<PooledBuffer, Fault> {
        let was_awaited = std::mem::take(&mut self.was_awaited);
        exchange.came_early = self.early.is_some() && !was_awaited;
        let received = match self.early.take() {
            Some(early) => Ok(early),
            // Its head has come, and what it is to wait for is no new request.
            None if self.io.of_http2().is_some() => self.head_of_stream(exchange).await,
            None => self.wait_for_bytes().await,
        };
        exchange.started_us = self.shard.clock.round_us();
        let received = received?;
        self.requests = self.requests.saturating_add(1);
        self.look_at_plan();
        Ok(received)
    }

    /// No buffer is held while nothing comes. Where the connection is to end, a request may be on its way all the
    /// same, and is waited for a little.
    pub(crate) async fn wait_for_bytes(&mut self) -> Result<PooledBuffer, Fault> {
        let mut received = self.shard.buffers.request();
        loop {
            let idle_ms = self.limits.idle_ms_max;
            let is_hurried = self.is_ending() && !self.shard.lingers();
            let ms = if is_hurried { idle_ms.min(LAST_REQUEST_MS) } else { idle_ms };
            let read = read_into(&mut self.io, &mut received);
            match self.deadline.idle_within(ms, read).await {
                Ok(Ok(1..)) => return Ok(received),
                // Some listener was removed, and it is not this one: the wait begins anew.
                Err(Elapsed::Ended) if !self.is_ending() => {}
                Ok(read) => return Err(Fault::of_client(&read)),
                Err(_) => return Err(Fault::Client(ClientFault::Closed)),
            }
        }
    }

    async fn head_of_stream(&mut self, exchange: &mut Exchange) -> Result<PooledBuffer, Fault> {
        let mut received = self.shard.buffers.request();
        exchange.started_us = self.shard.clock.round_us();
        self.more_of_head(&mut received, exchange).await.map(|()| received)
    }

    /// Waits for more of a head that is not whole.
    pub(crate) async fn more_of_head(
        &mut self,
        received: &mut PooledBuffer,
        exchange: &Exchange,
    ) -> Result<(), Fault> {
        let ms = self.shard.ms_until(exchange.started_us + u64::from(self.limits.head_ms_max) * 1000);
        match self.deadline.within(ms, read_into(&mut self.io, received)).await {
            Ok(Ok(1..)) => Ok(()),
            Ok(read) => Err(Fault::of_client(&read)),
            Err(_) => Err(Fault::HeadTimeout),
        }
    }

    /// Sends an answer that a rule gave.
    async fn answer(&mut self, answer: &OwnAnswer, exchange: &mut Exchange) -> After {
        exchange.keeps_client &= exchange.has_whole_request;
        self.send_own(answer.status, &answer.lines, &answer.body, exchange).await
    }

    /// Tells the client what went wrong, where that can still be told.
    pub(crate) async fn refuse(&mut self, fault: Fault, exchange: &mut Exchange) -> After {
        exchange.fault = Some(fault);
        // A client that has seen the start of an answer must not see another one in it.
        let status = fault.status().filter(|_| exchange.status == 0 || self.io.take_back());
        let Some(status) = status else { return After::Leave };
        // What is wrong with a server leaves the client's own message whole.
        exchange.keeps_client &= exchange.has_whole_request;
        let body = format!("{}\n", fault.sentence());
        let mut lines = self.shard.text_lines();
        lines.extend_from_slice(fault.lines());
        self.send_own(status, &lines, body.as_bytes(), exchange).await
    }

    async fn send_own(&mut self, status: u16, lines: &[u8], body: &[u8], exchange: &mut Exchange) -> After {
        if self.io.of_http2().is_some() {
            // On the heap: most requests are whole.
            Box::pin(self.rest_before_success(status, exchange)).await;
        }
        let keeps = exchange.keeps_client && !self.is_ending();
        let out = self.write_own((status, lines, body), keeps, exchange);
        exchange.response_bytes = out.len() as u64;
        self.is_amid_answer = true;
        self.io.ends_with(b"");
        // The last answer goes out together with the farewell, where that is possible.
        let is_held = !keeps && self.io.hold(&out);
        if !is_held && self.send(&out).await.is_err() {
            return After::Leave;
        }
        // Behind the last answer it is the farewell that ends it.
        self.is_amid_answer = !keeps;
        if keeps { After::Next } else { After::Close }
    }

    /// Writes a response of the switch. What it is made of takes no room in a task that waits to send it.
    fn write_own(
        &self,
        (status, lines, body): (u16, &[u8], &[u8]),
        keeps: bool,
        exchange: &mut Exchange,
    ) -> PooledBuffer {
        // Clients of gRPC read a status of HTTP as that of a proxy in between. Log and metrics show what it was.
        let of_grpc = (exchange.is_grpc && status >= 300).then(|| of_grpc(status, lines, body));
        let (sent, lines, body) = match &of_grpc {
            Some(lines) => (200, lines.as_slice(), &b""[..]),
            None => (status, lines, body),
        };
        let mut out = match exchange.booked {
            Some(_) => self.shard.buffers.head(),
            None => self.shard.buffers.last_word(),
        };
        let answer = Answer {
            status: sent,
            lines,
            body,
            closes: !keeps,
            version: exchange.version,
            to_head: exchange.to == pointsman_http::AnswerTo::Head,
        };
        exchange.status = match out.reserve(answer.bytes_max()) {
            true => {
                answer.write(&mut out);
                status
            }
            // That much is there for whoever is connected.
            false => {
                exchange.fault = Some(Fault::Memory);
                let lines = &self.shard.text_lines();
                Answer { status: 503, lines, body: NO_MEMORY, ..answer }.write(&mut out);
                503
            }
        };
        out
    }

    /// Sends bytes to the client.
    pub(crate) async fn send(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        let mut sent = 0;
        let mut stall = Stall::new(self.limits.write_ms_max);
        loop {
            let write = write_all(&mut self.io, bytes, &mut sent);
            match self.deadline.within(stall.look_ms(), write).await {
                Ok(Ok(())) => return Ok(()),
                Ok(Err(_)) => return Err(Fault::Client(ClientFault::Closed)),
                // The limit is on taking nothing: a slow reader that reads has another turn.
                Err(_) if stall.goes_on(self.io.taken_bytes()) => {}
                Err(_) => return Err(Fault::Client(ClientFault::Stalled)),
            }
        }
    }

    /// Keeps what came after the request for when its answer is sent.
    fn keep_early(&mut self, mut received: PooledBuffer, used: usize, is_whole: bool) {
        if is_whole && used < received.len() {
            received.drain(..used);
            self.early = Some(received);
        }
    }

    /// Keeps what was read behind the end of a body.
    pub(crate) fn keep_excess(&mut self, excess: Excess, exchange: &mut Exchange) {
        match excess {
            Excess::Nothing => {}
            Excess::Kept(early) => self.early = Some(early),
            // The next request has lost its beginning.
            Excess::Lost => exchange.keeps_client = false,
        }
    }
}

impl<C: Transport> Session<C> {
    /// Whether the connection closes after this request.
    pub(crate) fn is_last_request(&self, listener: &Listener) -> bool {
        let max = listener.limits.requests_max;
        max != 0 && self.requests >= max
    }

    /// Whether it closes after the request behind this one.
    pub(crate) fn is_last_but_one(&self, listener: &Listener) -> bool {
        let max = listener.limits.requests_max;
        max != 0 && self.requests.saturating_add(1) >= max
    }

    /// Another session for a request of the same connection.
    pub(crate) fn beside<D: Transport>(&self, io: D) -> Session<D> {
        let Session { shard, listener_id, listener, connection, .. } = self;
        let deadline = shard.timers.deadline();
        let mut session =
            Session::new(io, shard.clone(), *listener_id, listener.clone(), connection.clone(), deadline);
        session.owner = self.owner;
        session
    }

    /// Begins with a whole request, the next one of the connection whose own session is `home`.
    pub(crate) fn begin_beside<D: Transport>(
        &mut self,
        home: &mut Session<D>,
        request: PooledBuffer,
        was_awaited: bool,
    ) {
        self.early = Some(request);
        self.was_awaited = was_awaited;
        self.has_ended = false;
        self.requests = home.requests;
        home.requests = home.requests.saturating_add(1);
        home.look_at_plan();
    }

    /// Takes over what a reload changed about the listener.
    pub(crate) fn look_at_plan(&mut self) {
        let swaps = self.shard.shared.swaps();
        if swaps != self.swaps
            && let Some((listener, _)) = self.shard.local().live.listener(self.listener_id)
        {
            // A listener that is gone is looked for again each time.
            self.swaps = swaps;
            self.limits = listener.limits;
        }
    }

    /// Whether the connection closes behind what it is doing now: the switch drains, or its listener is gone.
    pub(crate) fn is_ending(&self) -> bool {
        self.io.is_last() && (self.shard.is_draining() || self.is_unlisted())
    }

    /// Whether HTTP/2 was agreed on in the handshake (RFC 9113 section 3.2), or is all there is.
    pub(crate) fn begins_with_http2(&self) -> bool {
        match self.connection.tls.as_ref().and_then(|tls| tls.alpn.as_deref()) {
            Some(protocol) => protocol == b"h2",
            None => {
                let local = self.shard.local();
                local
                    .live
                    .listener(self.listener_id)
                    .is_some_and(|(listener, _)| listener.http2 == Http2::Only)
            }
        }
    }

    /// Whether these bytes, which are no request, begin HTTP/2: with prior knowledge, as the first ones (RFC 9113
    /// section 3.3). Over TLS it is agreed on before.
    #[cold]
    pub(crate) fn may_go_over(&self, listener: &Listener, received: &[u8]) -> bool {
        let is_first = self.requests == 1 && self.io.plain().is_some() && listener.http2 == Http2::On;
        // The rest of it, which may still come, has no part in what a request is.
        is_first && received.starts_with(&PREFACE[..b"PRI * HTTP/2.0\r".len()])
    }

    fn is_unlisted(&self) -> bool {
        let is_listed = || self.shard.local().live.listener(self.listener_id).is_some();
        self.swaps != self.shard.shared.swaps() && !is_listed()
    }

    /// Whether it ends unasked behind an answer that did not say so: what the client says meanwhile must not take
    /// that answer's end with it.
    pub(crate) fn has_lost_its_listener(&self) -> bool {
        self.requests > 0 && !self.is_amid_answer && !self.shard.is_draining() && self.is_unlisted()
    }
}

/// Field lines of the response to a gRPC call in the place of `status`, `lines` and `body`.
fn of_grpc(status: u16, lines: &[u8], body: &[u8]) -> Vec<u8> {
    const CONTENT_TYPE: &[u8] = b"content-type";
    let mut lines = lines.to_vec();
    retain_lines(&mut lines, |name| !name.eq_ignore_ascii_case(CONTENT_TYPE));
    push_grpc_lines(status, body.trim_ascii_end(), &mut lines);
    lines
}

//! The answer of a server on its way to the client.

use std::rc::Rc;
use std::task::{Context, Poll};

use pointsman_http::{BodyReader, Fed, Framing, HeaderKind, ResponseHead, Version};
use pointsman_net::{PooledBuffer, Stall};
use pointsman_tls::UNSENT_BYTES_MAX;

use crate::bandwidth::Toward;
use crate::ejection::Heard;
use crate::exchange::Exchange;
use crate::fault::{ClientFault, Fault, ServerFault};
use crate::local::LocalServer;
use crate::memory::UNSENT_BODY_BYTES_MAX;
use crate::onward::other_bytes;
use crate::presence::Ahead;
use crate::pump::{BodyForm, Pump, PumpFault, Step, Waiting};
use crate::reach::{Reached, ServerConnection};
use crate::response_fault::{ResponseFault, body_refused, head_refused};
use crate::session::{After, Session};
use crate::shard::Scratch;
use crate::trailers::TrailerFilter;
use crate::transport::Transport;
use crate::upgrade::say_upgrade;
use crate::verdict::Forward;

/// Interim answers that one request may get; more is a server gone wrong.
const INTERIM_MAX: u8 = 16;

/// A final answer whose head has been read.
pub(crate) struct FinalHead {
    /// The edited head, and what had arrived of the body.
    pub(crate) message: PooledBuffer,
    body: BodyReader,
    /// Lines behind the body, where it is passed on without its framing.
    trailers: Vec<u8>,
    filter: TrailerFilter,
    form: BodyForm,
    /// Whether the server's connection can serve again after this answer.
    server_keeps: bool,
    /// Whether it is a 101 to WebSocket.
    pub(crate) is_websocket: bool,
}

/// What stands at the start of what a server has sent.
enum Found {
    More,
    Interim(PooledBuffer, usize),
    Final(FinalHead),
}

/// How the request's body stands while its answer is relayed.
pub(crate) enum Upload<'a> {
    /// The server has it.
    Over,
    /// It is still being sent.
    Running(&'a mut Pump),
    /// It will never be whole: the server's connection is of no more use.
    Broken,
}

impl Upload<'_> {
    fn running(&self) -> Option<&Pump> {
        match self {
            Upload::Running(up) => Some(up),
            Upload::Over | Upload::Broken => None,
        }
    }
}

impl<C: Transport> Session<C> {
    /// Relays the answer to a request that the server has, or as much of it as it will get. `held`: the request, where it
    /// can be sent again.
    pub(crate) async fn relay_answer(
        &mut self,
        mut held: Option<&mut Forward>,
        reached: &mut Reached,
        exchange: &mut Exchange,
    ) -> Result<After, Fault> {
        let mut has_begun = !reached.answer.is_empty();
        let mut head = loop {
            if let Some(head) = self.final_head(reached, held.as_deref_mut(), exchange).await? {
                break head;
            }
            let ms = self.shard.ms_until(reached.answer_until_us);
            let Reached { server, answer, .. } = &mut *reached;
            let read = |context: &mut Context<'_>, _: &mut C| server.io.poll_read_into(context, answer);
            match self.while_present(ms, ahead(exchange.has_whole_request), read).await? {
                Ok(Ok(1..)) => {
                    if !std::mem::replace(&mut has_begun, true) {
                        exchange.has_first_byte(self);
                    }
                }
                Ok(read) => return Err(Fault::of_server(&read)),
                Err(_) => return Err(Fault::Server(ServerFault::ResponseTimeout)),
            }
        };
        let mut upload = if exchange.has_whole_request { Upload::Over } else { Upload::Broken };
        self.relay(&mut head, reached, &mut upload, exchange).await
    }

    /// The final answer's head, once it has arrived. Interim answers before it are passed on.
    pub(crate) async fn final_head(
        &mut self,
        reached: &mut Reached,
        mut held: Option<&mut Forward>,
        exchange: &mut Exchange,
    ) -> Result<Option<FinalHead>, Fault> {
        while !reached.answer.is_empty() {
            let held = held.as_deref_mut();
            let found = self.find_head(reached.server.server(), &mut reached.answer, held, exchange)?;
            // Sent behind the match, which would keep room for all that can be found while it waits.
            let (message, used) = match found {
                Found::More => break,
                Found::Final(head) => return Ok(Some(head)),
                Found::Interim(message, used) => (message, used),
            };
            exchange.interims += 1;
            reached.answer.drain(..used);
            self.send(&message).await?;
        }
        Ok(None)
    }

    fn find_head(
        &self,
        server: &Rc<LocalServer>,
        received: &mut PooledBuffer,
        held: Option<&mut Forward>,
        exchange: &mut Exchange,
    ) -> Result<Found, Fault> {
        let Scratch { response: head, lines, .. } = &mut *self.shard.scratch.borrow_mut();
        let limits = server.head_limits();
        let complete = head.parse_on(received, &mut exchange.unfinished, exchange.to, &limits);
        let complete = complete.map_err(|refusal| {
            let came = (received.as_slice(), exchange.to, &limits);
            head_refused(refusal, came, (&self.shard, server), exchange)
        })?;
        if !complete {
            return Ok(Found::More);
        }
        let granted = exchange.upgrade.as_deref().and_then(|upgrade| head.grants(received, upgrade));
        if head.is_interim() && granted.is_none() {
            may_pass(head, exchange)?;
            // It is not sent again: what it holds serves for the answer.
            held.into_iter().for_each(Forward::let_go_sent);
            let mut message = self.shard.buffers.head();
            if exchange.version != Version::Http10 {
                room_for(&mut message, head, received, b"")?;
                head.forward(received, b"", &mut message);
            }
            return Ok(Found::Interim(message, head.head_bytes()));
        }
        // A client that asked so over HTTP/2 takes every success for a change (RFC 8441 section 5).
        let is_mistaken = exchange.upgrade.is_some() && exchange.version == Version::Http2;
        if is_mistaken && granted.is_none() && matches!(head.status(), 200..300) {
            return Err(Fault::Server(ServerFault::Response(ResponseFault::NoUpgrade)));
        }
        if let Some(forward) = held {
            self.takes(head.status(), server, forward, exchange)?;
        }
        let form = match (head.framing(), exchange.version) {
            (Framing::Chunked, Version::Http10 | Version::Http2) => BodyForm::Unchunked,
            _ => BodyForm::AsItCame,
        };
        exchange.keeps_client &= keeps_client(head, exchange.version) && !self.is_ending();
        exchange.keeps_client &= granted.is_none();
        let is_websocket = granted.is_some_and(|granted| granted.is_websocket);
        drop_codings(head, exchange.version);
        lines.clear();
        // Whoever passes an answer without it on says when it came (RFC 9110 section 6.6.1).
        if !has_date(head) && granted.is_none() {
            lines.extend_from_slice(&self.shard.date.line());
        }
        if let Some(of_answer) = &exchange.of_answer {
            of_answer.apply((head, received), lines, server, &self.shard);
        }
        match (exchange.keeps_client, exchange.version) {
            _ if let Some(granted) = granted => say_upgrade(granted.protocol, lines),
            (_, Version::Http2) => {}
            (false, _) => lines.extend_from_slice(b"Connection: close\r\n"),
            (true, Version::Http10) => lines.extend_from_slice(b"Connection: keep-alive\r\n"),
            (true, Version::Http11) => {}
        }
        // Behind this nothing else asks for it.
        let filter = TrailerFilter::Response(exchange.of_answer.take());
        let mut body = BodyReader::of_answer(head.framing());
        if form == BodyForm::AsItCame {
            body = body.with_trailers(filter.treatment());
        }
        let mut trailers = Vec::new();
        let came_bytes = received.len() - head.head_bytes();
        let whole = (&*head, &mut *received, lines.as_slice());
        let behind = (&mut body, &mut trailers, form, &filter);
        let (message, fed) = message(whole, behind, || self.shard.buffers.head())?;
        exchange.status = head.status();
        server.hear(Heard::of_status(head.status()), exchange.is_trial, self.shard.clock);
        if head.status() == 101 {
            received.drain(..head.head_bytes());
        }
        // A server that says more than its answer is out of step with us.
        let server_keeps = head.keeps_alive() && fed.used == came_bytes;
        Ok(Found::Final(FinalHead { message, body, trailers, filter, form, server_keeps, is_websocket }))
    }

    /// Sends a final answer to its end.
    pub(crate) async fn relay(
        &mut self,
        head: &mut FinalHead,
        reached: &mut Reached,
        upload: &mut Upload<'_>,
        exchange: &mut Exchange,
    ) -> Result<After, Fault> {
        if exchange.status == 101 {
            // On the heap: an idle connection has no room to spare.
            return Box::pin(self.switch_protocols(head, reached, exchange)).await;
        }
        exchange.response_bytes += head.message.len() as u64;
        if head.body.is_done() && self.io.of_http2().is_some() {
            // On the heap: most requests are whole.
            Box::pin(self.rest_before_success(exchange.status, exchange)).await;
        }
        self.is_amid_answer = true;
        if head.body.is_done() {
            self.io.ends_with(&head.trailers);
        }
        let is_last = head.body.is_done() && !exchange.keeps_client && matches!(upload, Upload::Over);
        // The last bytes go out together with the farewell, where that is possible.
        if exchange.bandwidth.is_some() {
            // Nothing of the answer has gone: who ends now breaks off nothing.
            let bytes = head.message.len();
            Box::pin(self.wait_for_bandwidth(Toward::Client, bytes, exchange)).await?;
        }
        let is_held = is_last && self.io.hold(&head.message);
        if !is_held {
            self.send(&head.message).await?;
        }
        head.message.release();
        reached.is_reusable = head.server_keeps;
        if !head.body.is_done() {
            // On the heap: most answers come in one piece, and an idle connection has no room to spare.
            Box::pin(self.relay_body(head, reached, upload, exchange)).await?;
        }
        // Behind the last answer it is the farewell that ends it.
        self.is_amid_answer = is_last;
        match upload {
            Upload::Over => Ok(if exchange.keeps_client { After::Next } else { After::Close }),
            Upload::Running(up) => {
                reached.is_reusable = false;
                // A stream's end says that no more is wanted (RFC 9113 section 8.1).
                if self.io.of_http2().is_none() {
                    exchange.fault = self.finish_upload(up, &mut reached.server).await.or(exchange.fault);
                }
                Ok(After::Close)
            }
            Upload::Broken => {
                reached.is_reusable = false;
                Ok(After::Close)
            }
        }
    }

    /// Sends what is still to come of an answer's body.
    async fn relay_body(
        &mut self,
        head: &mut FinalHead,
        reached: &mut Reached,
        upload: &mut Upload<'_>,
        exchange: &mut Exchange,
    ) -> Result<(), Fault> {
        reached.answer.release();
        let body = std::mem::replace(&mut head.body, BodyReader::new(Framing::None));
        let filter = std::mem::take(&mut head.filter);
        let mut down = Pump::new(
            &self.shard.buffers,
            (body, head.form, filter),
            u64::MAX,
            (exchange.bandwidth, Toward::Client),
        );
        down.trailers = std::mem::take(&mut head.trailers);
        down.through_pipe(&self.shard, &reached.server.io, &self.io);
        let unsent = self.connection.tls.as_ref().and_then(|_| self.shard.buffers.unsent_body());
        self.io.set_unsent_bytes_max(unsent.as_ref().map_or(UNSENT_BYTES_MAX, |_| UNSENT_BODY_BYTES_MAX));
        let relayed = self.pump_down(&mut down, &mut reached.server, upload).await;
        if let Err(Fault::Server(ServerFault::Response(ResponseFault::Body(fault)))) = relayed {
            let server = (&*self.shard, &**reached.server.server());
            body_refused(fault, down.read_bytes, server, exchange);
        }
        self.io.set_unsent_bytes_max(UNSENT_BYTES_MAX);
        exchange.response_bytes += down.read_bytes;
        reached.is_reusable &= relayed.is_ok() && !down.has_excess();
        relayed
    }

    async fn pump_down(
        &mut self,
        down: &mut Pump,
        server: &mut ServerConnection,
        upload: &mut Upload<'_>,
    ) -> Result<(), Fault> {
        let server_ms = server.server().limits.body_ms_max;
        let mut stall = Stall::new(self.limits.write_ms_max);
        let shard = self.shard.clone();
        let mut read_until_us = shard.after_ms(server_ms);
        loop {
            let waiting = down.waiting();
            // Whoever of both waits for bandwidth is to be woken for it.
            let class_ms = [Some(&*down), upload.running()].into_iter().flatten();
            let class_ms = class_ms.filter_map(|pump| pump.shaping.waits_ms(&shard)).min();
            let ms = match waiting {
                Waiting::Read => shard.ms_until(read_until_us),
                Waiting::Write => stall.look_ms(),
                Waiting::Class => u32::MAX,
            };
            let naps = class_ms.is_some_and(|class_ms| class_ms < ms);
            let ms = class_ms.map_or(ms, |class_ms| class_ms.min(ms));
            let ahead = ahead(matches!(upload, Upload::Over));
            let step = |context: &mut Context<'_>, io: &mut C| {
                if let Poll::Ready(step) = down.poll_step(context, &shard, &mut server.io, io) {
                    return Poll::Ready(step);
                }
                // However the upload goes on, it is the answer that is waited for, and its time runs.
                while let Upload::Running(up) = upload
                    && let Poll::Ready(step) = up.poll_step(context, &shard, io, &mut server.io)
                {
                    match step {
                        Ok(Step::Moved) => {}
                        // The deadline is set anew by it.
                        Ok(Step::Throttled) => return Poll::Ready(Ok(Step::Throttled)),
                        Ok(Step::Done) => *upload = Upload::Over,
                        // What answers a request that is refused is no answer.
                        Err(fault @ (PumpFault::Content(_) | PumpFault::Memory)) => {
                            return Poll::Ready(Err(fault));
                        }
                        Err(_) => *upload = Upload::Broken,
                    }
                }
                Poll::Pending
            };
            let moved = match waiting {
                Waiting::Read | Waiting::Class => self.while_present(ms, ahead, step).await?,
                // It is the client that is waited for: where it has left, writing fails.
                Waiting::Write => {
                    let Session { io, deadline, .. } = &mut *self;
                    let mut step = step;
                    deadline.within(ms, std::future::poll_fn(|context| step(context, io))).await
                }
            };
            match (moved, waiting) {
                (Ok(Ok(Step::Moved)), _) => {
                    stall = Stall::new(self.limits.write_ms_max);
                    read_until_us = shard.after_ms(server_ms);
                }
                (Ok(Ok(Step::Throttled)), _) => {}
                (Ok(Ok(Step::Done)), _) => return Ok(()),
                (Ok(Err(fault)), _) => return Err(fault_of(&fault)),
                (Err(_), Waiting::Class) => read_until_us = shard.after_ms(server_ms),
                (Err(_), _) if naps => {}
                (Err(_), Waiting::Read) => return Err(Fault::Server(ServerFault::BodyTimeout)),
                // Slowly, but the client takes it.
                (Err(_), Waiting::Write) if stall.goes_on(self.io.taken_bytes()) => {}
                (Err(_), Waiting::Write) => return Err(Fault::Client(ClientFault::Stalled)),
            }
        }
    }
}

fn ahead(has_whole_request: bool) -> Ahead {
    if has_whole_request { Ahead::Request } else { Ahead::Body }
}

/// The head with its added lines and what came of the body, as the client is sent them: in the buffer that they
/// were read into, where nothing in it changes.
fn message(
    (head, received, lines): (&ResponseHead, &mut PooledBuffer, &[u8]),
    (body, trailers, form, filter): (&mut BodyReader, &mut Vec<u8>, BodyForm, &TrailerFilter),
    buffer: impl FnOnce() -> PooledBuffer,
) -> Result<(PooledBuffer, Fed), Fault> {
    let broken = |fault| Fault::Server(ServerFault::Response(ResponseFault::Body(fault)));
    let came = &received[head.head_bytes()..];
    if form == BodyForm::AsItCame && lines.is_empty() && head.passes_as_it_came() {
        let fed = body.feed(came).map_err(broken)?;
        received.truncate(head.head_bytes() + fed.used);
        if let Some(mut cut) = body.take_cut() {
            filter.apply(&mut cut);
            let start = head.head_bytes();
            received.splice(start + cut.place.start..start + cut.place.end, cut.lines);
        }
        return Ok((received.take(), fed));
    }
    let mut message = buffer();
    room_for(&mut message, head, received, lines)?;
    head.forward(received, lines, &mut message);
    let fed = match form {
        BodyForm::AsItCame => body.feed(came),
        BodyForm::Unchunked => body.feed_unchunked(came, &mut message, trailers),
    };
    let fed = fed.map_err(broken)?;
    match (form, body.take_cut()) {
        (BodyForm::Unchunked, _) if fed.done => filter.retain(trailers),
        (BodyForm::Unchunked, _) => {}
        (BodyForm::AsItCame, None) => message.extend_from_slice(&came[..fed.used]),
        (BodyForm::AsItCame, Some(mut cut)) => {
            filter.apply(&mut cut);
            message.extend_from_slice(&came[..cut.place.start]);
            message.extend_from_slice(&cut.lines);
            message.extend_from_slice(&came[cut.place.end..fed.used]);
        }
    }
    Ok((message, fed))
}

/// HTTP/1.0 and HTTP/2 know no transfer codings, not even in an answer to HEAD.
fn drop_codings(head: &mut ResponseHead, version: Version) {
    if version != Version::Http11 {
        let codings = head.lines_mut().iter_mut().filter(|line| line.kind == HeaderKind::TransferEncoding);
        codings.for_each(|line| line.dropped = true);
    }
}

/// Whether an interim response is passed on. A server may change only to a protocol that it was asked for.
fn may_pass(head: &ResponseHead, exchange: &Exchange) -> Result<(), Fault> {
    let fault = match head.status() {
        101 => ResponseFault::UnaskedUpgrade,
        _ if exchange.interims >= INTERIM_MAX => ResponseFault::Interims,
        _ => return Ok(()),
    };
    Err(Fault::Server(ServerFault::Response(fault)))
}

/// Whether the connection of a client that speaks `version` can go on behind the response.
fn keeps_client(head: &ResponseHead, version: Version) -> bool {
    let ends_at_close = match head.framing() {
        Framing::UntilClose => true,
        Framing::Chunked => version == Version::Http10,
        Framing::None | Framing::Length(_) => false,
    };
    // It should have none; some clients read none, and would take it for the next answer (RFC 9110 15.3.6).
    let is_reset_with_content = head.status() == 205 && head.framing() != Framing::None;
    !ends_at_close && !is_reset_with_content
}

/// Whether the answer goes on with the `Date` that it came with.
fn has_date(head: &ResponseHead) -> bool {
    head.lines().iter().any(|line| line.kind == HeaderKind::Date && !line.dropped)
}

/// Room for an answer's head, with what it gets, and for what came behind it.
fn room_for(
    message: &mut PooledBuffer,
    head: &ResponseHead,
    received: &[u8],
    lines: &[u8],
) -> Result<(), Fault> {
    let has_room = message.reserve(received.len() + lines.len() + other_bytes(head.lines()));
    if has_room { Ok(()) } else { Err(Fault::Memory) }
}

fn fault_of(fault: &PumpFault) -> Fault {
    match fault {
        PumpFault::Source => Fault::Server(ServerFault::Closed),
        PumpFault::Sink => Fault::Client(ClientFault::Closed),
        // It is the request's, which was on its way at the same time.
        PumpFault::Content(cause) => Fault::Content(*cause),
        PumpFault::Memory => Fault::Memory,
        // There is no limit on a response's length.
        PumpFault::Body(fault) => Fault::Server(ServerFault::Response(ResponseFault::Body(*fault))),
        PumpFault::TooLarge => Fault::Server(ServerFault::Closed),
    }
}

//! What the rules say about a request, and what is to be done with it then.

use pointsman_config::{Listener, ListenerLimits};
use pointsman_http::{BodyReader, Framing, Method, PLAIN_TEXT_LINE, RequestHead, Upgrade};
use pointsman_net::PooledBuffer;
use pointsman_rules::{Cause, Decision, Outcome, Stickiness, Terminal, Truths};
use pointsman_telemetry::{self as telemetry, Event};
use pointsman_view::RequestView;

use crate::ahead::Ahead;
use crate::beside::{Asked, Here};
use crate::choice::Choice;
use crate::commit::Committed;
use crate::decide::{default_target, path_options};
use crate::exchange::Exchange;
use crate::facts::{Facts, Text};
use crate::fault::Fault;
use crate::learned::{Learning, OfAnswer};
use crate::live::{ListenerId, LiveListener};
use crate::local::Local;
use crate::onward::{Arrived, Request, grow};
use crate::pick::{Fork, Route};
use crate::shard::Shard;
use crate::trailers::TrailerFilter;
use crate::undecided::Undecided;

/// What is to be done with a request.
pub(crate) enum Verdict {
    /// It goes to a server.
    Forward(Forward),
    /// The switch answers it.
    Answer(Box<OwnAnswer>),
    /// The connection closes without an answer.
    Discard,
    /// The connection, or the stream, is reset.
    Reset,
    /// What its body says decides: it is taken from here to be waited for.
    Waits(Option<Box<Undecided>>),
    /// It is no request: the client speaks HTTP/2 from here on.
    Http2,
}

/// A request on its way to a server.
pub(crate) struct Forward {
    /// The edited head, and what had arrived of the body.
    pub(crate) message: PooledBuffer,
    /// Where the body goes on.
    pub(crate) body: BodyReader,
    /// Filter of its trailers, where any pass.
    pub(crate) trailers: Option<Box<TrailerFilter>>,
    /// Bytes of the received buffer that are in `message`; the rest is the next request. A buffer is far below 4 GiB.
    pub(crate) used: u32,
    pub(crate) choice: Choice,
    pub(crate) expects_continue: bool,
    /// Bytes of body that may still come; `u64::MAX` where there is no limit.
    pub(crate) body_left: u64,
    /// What was read ahead of the body, where that is not all in `message`, and what looks into the rest.
    pub(crate) ahead: Option<Box<Ahead>>,
}

impl Forward {
    /// Whether all of the request has been sent, once the message has.
    pub(crate) fn is_sent(&self) -> bool {
        self.body.is_done() && self.ahead.as_ref().is_none_or(|ahead| ahead.hold.borrow().is_sent())
    }

    /// One that is all in its message.
    pub(crate) fn whole(message: PooledBuffer, choice: Choice) -> Forward {
        let body = BodyReader::new(Framing::None);
        Forward {
            message,
            body,
            trailers: None,
            used: 0,
            choice,
            expects_continue: false,
            body_left: 0,
            ahead: None,
        }
    }

    /// Whether all of it is there, with so many bytes at most beyond its message.
    pub(crate) fn is_whole_within(&self, bytes_max: usize) -> bool {
        self.body.is_done() && self.ahead.as_ref().is_none_or(|ahead| ahead.is_whole_within(bytes_max))
    }

    /// All of it was sent, by somebody who had a copy.
    pub(crate) fn was_sent(&mut self) {
        if let Some(ahead) = &mut self.ahead {
            ahead.hold.get_mut().was_sent();
        }
    }

    /// Whether it can no longer be sent from its beginning.
    pub(crate) fn is_partly_gone(&self) -> bool {
        self.ahead.as_ref().is_some_and(|ahead| ahead.hold.borrow().is_partly_gone())
    }

    /// It is not sent again.
    pub(crate) fn let_go_sent(&mut self) {
        self.message.release();
        if let Some(ahead) = &mut self.ahead {
            ahead.hold.get_mut().let_go_sent();
        }
    }
}

/// An answer that a rule gives.
pub(crate) struct OwnAnswer {
    pub(crate) status: u16,
    /// Whole header lines.
    pub(crate) lines: Vec<u8>,
    pub(crate) body: Vec<u8>,
    /// Bytes of the received buffer that belong to the request; `None` while its body is not whole.
    pub(crate) used: Option<usize>,
}

/// Where a decision is made.
pub(crate) struct Place<'a> {
    pub(crate) shard: &'a Shard,
    pub(crate) local: &'a Local,
    pub(crate) listener: &'a Listener,
    pub(crate) live: &'a LiveListener,
}

/// What the rules say, with everything that they ask of it rendered.
pub(crate) enum Decided<'r> {
    Forward(Committed<'r>, Choice),
    Answer(OwnAnswer),
    Discard,
    Reset,
}

impl Decided<'_> {
    /// What is done where nothing more of the request is looked at.
    pub(crate) fn ended(&self) -> Option<Verdict> {
        match self {
            Decided::Discard => Some(Verdict::Discard),
            Decided::Reset => Some(Verdict::Reset),
            Decided::Forward(..) | Decided::Answer(_) => None,
        }
    }
}

impl<'a> Place<'a> {
    /// Compares what the live rules have said with what a candidate says, where one is asked beside them.
    #[inline]
    pub(crate) fn compare(
        &self,
        id: ListenerId,
        asked: Asked<'_>,
        decision: &Decision<'_>,
        truths: &mut Truths,
    ) {
        if let Some(beside) = &self.local.beside {
            let here = Here::now(self.shard, id, &self.local.live, self.listener);
            beside.hear_request(here, asked, decision, truths);
        }
    }

    /// Commits a decision about a request. One that waits is none.
    pub(crate) fn commit(
        &self,
        decision: &Decision<'a>,
        view: &RequestView<'_>,
        exchange: &mut Exchange,
    ) -> Result<Decided<'a>, Fault> {
        let rule = self.local.rule(self.live, decision.by);
        self.shard.recorder.hear(&Event::Decided(&rule.metrics));
        if let Some(facts) = exchange.facts_mut() {
            facts.note(Text::Rule, rule.metrics.label().as_bytes());
            note_unknown(facts, &decision.outcome);
        }
        exchange.rule = Some(rule);
        let mut committed = match decision.effects.is_empty() {
            true => Committed::default(),
            false => Committed::render(&decision.effects, view, path_options(self.listener))?,
        };
        if let Some(facts) = exchange.facts_mut() {
            facts.tags.extend(committed.tags.iter().map(|&tag| Box::from(tag)));
        }
        if let Some(answer) = self.over_limit(&decision.effects, view, exchange) {
            return Ok(Decided::Answer(answer));
        }
        exchange.bandwidth = self.local.live.bandwidth.of_effects(&decision.effects);
        let keeps = &*self.live.keeps;
        let (route, sticky, keeps) = match decision.outcome {
            Outcome::Refused(cause) => return Err(Fault::Unknown(cause)),
            Outcome::Waits => return Err(Fault::Unknown(Cause::Unread)),
            Outcome::DefaultPool => (Route::To(default_target(self.listener)?), &Stickiness::None, keeps),
            Outcome::RouteUnknown { target, .. } => {
                (Route::To(self.listener.target(target)), &Stickiness::None, &[][..])
            }
            Outcome::Terminal(Terminal::RouteTo { target, sticky }) => {
                (Route::To(self.listener.target(*target)), sticky, keeps)
            }
            Outcome::Terminal(Terminal::Split(split)) => (Route::Split(&split.shares), &split.sticky, keeps),
            Outcome::Terminal(own) => {
                if matches!(own, Terminal::Reject { .. } | Terminal::Reset | Terminal::Discard) {
                    self.shard
                        .recorder
                        .hear(&Event::Refused(&self.live.state.metrics, telemetry::Refusal::Rule));
                }
                return match own {
                    Terminal::Discard => Ok(Decided::Discard),
                    Terminal::Reset => Ok(Decided::Reset),
                    _ => own_answer(self.shard, own, &committed, view).map(Decided::Answer),
                };
            }
        };
        let fork = Fork { shard: self.shard, local: self.local, listener: self.listener, route, keeps };
        let choice = fork.of_request(sticky, view, &mut committed.response);
        let learning = Learning::of(sticky, &choice, &fork);
        if !committed.response.is_empty() || learning.is_some() {
            let edits = std::mem::take(&mut committed.response).into_owned();
            exchange.of_answer = Some(Box::new(OfAnswer { edits, learning }));
        }
        if let Some(facts) = exchange.facts_mut() {
            facts.note(Text::Pool, choice.pool_name().as_bytes());
        }
        if !self.listener.mirrors.is_empty() {
            self.shard.next_mirror.set(self.mirror_of(&decision.effects));
        }
        Ok(Decided::Forward(committed, choice))
    }

    /// The filter for the trailers of the request with this head.
    pub(crate) fn trailers_of(&self, head: &RequestHead, exchange: &Exchange) -> TrailerFilter {
        TrailerFilter::of_request(self.local.trailers(self.live), head.framing(), exchange.is_grpc)
    }

    /// Makes ready what is to be done.
    pub(crate) fn settle(
        &self,
        mut request: Request<'_>,
        decided: Decided<'_>,
        arrived: Arrived,
        exchange: &mut Exchange,
    ) -> Result<Verdict, Fault> {
        let is_last_hop = request.head.max_forwards(request.received) == Some(0);
        let answered = |mut answer: OwnAnswer| {
            answer.used = arrived.body.is_done().then_some(arrived.used);
            Ok(Verdict::Answer(Box::new(answer)))
        };
        match decided {
            Decided::Forward(..) if is_last_hop => {
                if let Some(facts) = exchange.facts_mut() {
                    facts.forget(Text::Pool);
                }
                answered(last_hop(self.shard, exchange))
            }
            Decided::Answer(answer) => answered(answer),
            Decided::Discard => Ok(Verdict::Discard),
            Decided::Reset => Ok(Verdict::Reset),
            Decided::Forward(committed, choice) => {
                exchange.request_bytes = arrived.used as u64;
                self.forward(&mut request, &committed, (choice, exchange), arrived).map(Verdict::Forward)
            }
        }
    }

    /// Writes the head that the server is sent, and what has arrived of the body, for which there is room, too.
    /// Nothing is written where only lines are to be added, for which there is room behind the head.
    fn forward(
        &self,
        request: &mut Request<'_>,
        committed: &Committed<'_>,
        (choice, exchange): (Choice, &Exchange),
        arrived: Arrived,
    ) -> Result<Forward, Fault> {
        let expects_continue = request.head.expects_continue();
        let body_bytes_max = body_bytes_max(request.head, &self.listener.limits)?;
        let mut message = self.shard.buffers.head();
        arrived.filter.drop_announcements(request.head, request.received);
        request.edit_head(self.listener, self.local.live.uses_route_cookie, exchange.trace(), committed);
        request.lines.extend_from_slice(exchange.upgrade.as_deref().map_or(b"", Upgrade::lines));
        if !request.passes_in_its_buffer(committed) {
            request.write_head(committed, &mut message)?;
            arrived.write_from(request.head.head_bytes(), request.received, &mut message);
        }
        let Arrived { body, used, filter, .. } = arrived;
        let arrived_bytes = (used - request.head.head_bytes()) as u64;
        let (trailers, used) = (filter.boxed(), used as u32);
        let body_left = body_bytes_max.checked_sub(arrived_bytes).ok_or(Fault::BodyTooLarge)?;
        Ok(Forward { message, body, trailers, used, choice, expects_continue, body_left, ahead: None })
    }
}

/// Notes why the deciding rule's condition ended unknown, if it did: `on_unknown` has said then what becomes of it.
pub(crate) fn note_unknown(facts: &mut Facts, outcome: &Outcome<'_>) {
    if let Outcome::Refused(cause) | Outcome::RouteUnknown { cause, .. } = outcome {
        facts.note(Text::Unknown, cause.to_string().as_bytes());
    }
}

/// A message that goes on in the buffer that its head came in.
pub(crate) fn take_over(verdict: &mut Verdict, buffer: &mut PooledBuffer, lines: &[u8]) {
    if let Verdict::Forward(forward) = verdict
        && forward.message.is_empty()
    {
        grow(buffer, lines);
        forward.message = buffer.take();
    }
}

/// How long the body may be; `u64::MAX` where there is no limit.
///
/// # Errors
/// It is announced to be longer.
pub(crate) fn body_bytes_max(head: &RequestHead, limits: &ListenerLimits) -> Result<u64, Fault> {
    let bytes_max = match limits.body_bytes_max {
        0 => u64::MAX,
        bytes => bytes,
    };
    match head.framing() {
        Framing::Length(bytes) if bytes > bytes_max => Err(Fault::BodyTooLarge),
        _ => Ok(bytes_max),
    }
}

fn own_answer(
    shard: &Shard,
    terminal: &Terminal,
    committed: &Committed<'_>,
    view: &RequestView<'_>,
) -> Result<OwnAnswer, Fault> {
    let date = shard.date.line();
    let mut lines = shard.text_lines();
    let mut body = Vec::new();
    let status = match terminal {
        Terminal::Reject { status, reason } => {
            let phrase = pointsman_http::reason_phrase(*status);
            body.extend_from_slice(reason.as_deref().unwrap_or(phrase).as_bytes());
            body.push(b'\n');
            *status
        }
        Terminal::Redirect { status, location } => {
            lines.truncate(date.len());
            lines.extend_from_slice(b"Location: ");
            location.render_location(view, &mut lines);
            lines.extend_from_slice(b"\r\n");
            *status
        }
        Terminal::Respond { status, body: template } => {
            template.render(view, &mut body).map_err(Fault::Substitution)?;
            *status
        }
        Terminal::RouteTo { .. } | Terminal::Split(_) | Terminal::Reset | Terminal::Discard => {
            debug_assert!(false, "routed and discarded requests are not answered here");
            500
        }
    };
    if matches!(status, 204 | 304) {
        // Without a body there is no type of one, and a cache would merge it into what it has stored.
        lines.truncate(date.len());
    }
    committed.response.strip(&mut lines);
    committed.response.write(&mut lines);
    Ok(OwnAnswer { status, lines, body, used: None })
}

/// The answer to a TRACE or OPTIONS that may go no further: the switch is its last recipient (RFC 9110 section
/// 7.6.2). A TRACE is not reflected, for what it would show is not for scripts.
fn last_hop(shard: &Shard, exchange: &mut Exchange) -> OwnAnswer {
    let mut lines = shard.date.line().to_vec();
    lines.extend_from_slice(b"Allow: GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS\r\n");
    let (status, body) = match exchange.method {
        Method::Trace => (405, "TRACE ends here\n"),
        _ => (200, ""),
    };
    if !body.is_empty() {
        lines.extend_from_slice(PLAIN_TEXT_LINE);
    }
    if let Some(of_answer) = exchange.of_answer.take() {
        of_answer.edits.strip(&mut lines);
        of_answer.edits.write(&mut lines);
    }
    OwnAnswer { status, lines, body: body.into(), used: None }
}

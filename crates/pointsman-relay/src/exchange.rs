//! The record of one exchange, told to telemetry when it is over.

use std::rc::Rc;

use pointsman_config::RetryPolicy;
use pointsman_http::{AnswerTo, Method, Unfinished, Upgrade, Version};
use pointsman_net::Booking;
use pointsman_telemetry::{Counts, Event, Query, TraceContext};
use pointsman_upstream::Check;
use pointsman_view::{AddressText, Connection};

use crate::bandwidth::ClassId;
use crate::ejection::Heard;
use crate::facts::{Facts, Step, Text};
use crate::fault::{ClientFault, Fault, ServerFault};
use crate::learned::OfAnswer;
use crate::local::{LocalRule, LocalServer};
use crate::session::{After, Session};
use crate::shard::Shard;
use crate::transport::Transport;

/// What a server may have seen of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// Not a byte of it was sent.
    Nothing,
    Something,
}

/// What an exchange is and what came of it.
#[derive(Debug, Default)]
pub(crate) struct Exchange {
    pub(crate) method: Method,
    pub(crate) version: Version,
    /// Whether the request is a gRPC call: over HTTP/2, by its media type.
    pub(crate) is_grpc: bool,
    pub(crate) to: AnswerTo,
    /// What is known of a head that is still coming: the request's, then each answer's.
    pub(crate) unfinished: Unfinished,
    /// Whether the client's connection is to be kept after it, as far as is known yet.
    pub(crate) keeps_client: bool,
    /// Whether the request has been read to its end: only then does the next one follow.
    pub(crate) has_whole_request: bool,
    /// Whether its bytes were there before the answer before it was sent.
    pub(crate) came_early: bool,
    /// Whether a server has taken it: what fails from then on is told here, not by each try.
    pub(crate) is_reached: bool,
    /// Whether it is a connection as a whole, of which no request is read.
    pub(crate) is_connection: bool,
    /// A change of protocol that the server is asked for.
    pub(crate) upgrade: Option<Box<Upgrade>>,
    /// What is to be done with the answer's head, where rules or stickiness ask for any of it.
    pub(crate) of_answer: Option<Box<OfAnswer>>,
    /// The class whose bandwidth it has.
    pub(crate) bandwidth: Option<ClassId>,
    pub(crate) server: Option<Rc<LocalServer>>,
    /// The rule that decided.
    pub(crate) rule: Option<Rc<LocalRule>>,
    pub(crate) status: u16,
    pub(crate) request_bytes: u64,
    pub(crate) response_bytes: u64,
    /// At most 16, as `tries_max`.
    pub(crate) tries: u8,
    /// When its try is over, on the shard's clock; 0: when it comes to an end.
    pub(crate) try_until_us: u64,
    /// Whether its try is to show that a server can be used again.
    pub(crate) is_trial: bool,
    /// Whether another server was asked besides, or must not be.
    pub(crate) is_hedged: bool,
    /// Interim answers passed so far.
    pub(crate) interims: u8,
    pub(crate) reused: Option<bool>,
    pub(crate) fault: Option<Fault>,
    pub(crate) started_us: u64,
    /// Absent while there is neither a log nor a trace, and nobody looks.
    facts: Option<Box<Facts>>,
    /// What it may take of the memory, from when its head is whole.
    pub(crate) booked: Option<Booking>,
}

impl Exchange {
    /// That of a connection as a whole.
    pub(crate) fn of_connection(started_us: u64) -> Exchange {
        Exchange { is_connection: true, started_us, ..Exchange::default() }
    }

    /// That of a copy of its request, all of which is there.
    pub(crate) fn of_copy(&self, started_us: u64, booked: Option<Booking>) -> Exchange {
        let Exchange { method, to, .. } = *self;
        let has_whole_request = true;
        // Nobody waits for its answer.
        let is_hedged = true;
        Exchange { method, to, has_whole_request, is_hedged, started_us, booked, ..Exchange::default() }
    }

    /// That of another try at the same time, at another server.
    pub(crate) fn of_hedge(&self) -> Exchange {
        self.of_copy(self.started_us, None)
    }

    /// It goes on with this other try.
    pub(crate) fn goes_on_with(&mut self, hedge: &mut Exchange) {
        self.server = hedge.server.take();
        Exchange { try_until_us: self.try_until_us, is_trial: self.is_trial, reused: self.reused, .. } =
            *hedge;
        if let (Some(own), Some(facts)) = (self.facts_mut(), &hedge.facts) {
            for step in [Step::Connected, Step::FirstByte] {
                own.steps_us[step as usize] = facts.steps_us[step as usize];
            }
        }
    }

    /// Says that the switch has stopped before it was over.
    pub(crate) fn is_cut(&mut self) -> After {
        self.fault.get_or_insert(Fault::Drained);
        After::Leave
    }

    pub(crate) fn keep(&mut self, facts: Box<Facts>) {
        self.facts = Some(facts);
    }

    pub(crate) fn take_facts(&mut self) -> Option<Box<Facts>> {
        self.facts.take()
    }

    /// Where it stands in a trace, if it is traced.
    pub(crate) fn trace(&self) -> Option<&TraceContext> {
        self.facts.as_ref().and_then(|facts| facts.trace.as_ref())
    }

    /// The facts, where a log or a trace will show them.
    pub(crate) fn facts_mut(&mut self) -> Option<&mut Facts> {
        self.facts.as_deref_mut()
    }

    /// Whether it may be sent again where nobody knows what became of it (RFC 9110 section 9.2.2).
    pub(crate) fn may_repeat(&self) -> bool {
        self.retry_policy().repeats(self.method) && self.upgrade.is_none()
    }

    /// Whether another server may be asked behind this fault.
    pub(crate) fn may_try_again(&self, fault: ServerFault, seen: Seen) -> bool {
        let is_harmless = seen == Seen::Nothing || fault.is_unread() || self.may_repeat();
        is_harmless && fault.retry_cause().is_some_and(|cause| self.retry_policy().is_on(cause))
    }

    /// How long its server may be waited for, which has this time otherwise.
    pub(crate) fn try_ms(&self, shard: &Shard, ms: u32) -> u32 {
        if self.try_until_us == 0 { ms } else { ms.min(shard.ms_until(self.try_until_us)) }
    }

    pub(crate) fn is_try_over(&self, shard: &Shard) -> bool {
        self.try_until_us != 0 && shard.ms_until(self.try_until_us) == 0
    }

    /// What the pool of its server says of further tries.
    fn retry_policy(&self) -> RetryPolicy {
        self.server.as_ref().map_or_else(RetryPolicy::default, |server| server.retry_policy)
    }

    /// When all its tries are over; 0: when they come to an end.
    pub(crate) fn request_until_us(&self) -> u64 {
        let ms = self.server.as_ref().map_or(0, |server| server.limits.request_ms_max);
        if ms == 0 { 0 } else { self.started_us + u64::from(ms) * 1000 }
    }

    /// Whether there is no time for another try.
    pub(crate) fn is_over(&self, shard: &Shard) -> bool {
        let until_us = self.request_until_us();
        until_us != 0 && shard.ms_until(until_us) == 0
    }

    /// How closely a kept connection is looked at before it gets this request; `None` wants a new one.
    ///
    /// A request that cannot be sent again asks the socket itself. If it also follows the one before it at
    /// once, even the socket cannot know yet whether the server closes behind that answer.
    pub(crate) fn check(&self) -> Option<Check> {
        match (self.may_try_again(ServerFault::Closed, Seen::Something), self.came_early) {
            (true, false) => Some(Check::Heard),
            (true, true) | (false, false) => Some(Check::Socket),
            (false, true) => None,
        }
    }

    /// Times of steps are taken only for the access log: each is a look at the clock.
    fn note_step<C: Transport>(&mut self, session: &Session<C>, step: Step) {
        if let Some(facts) = self.facts.as_deref_mut() {
            let us = session.shard.clock.now_us().saturating_sub(self.started_us);
            facts.steps_us[step as usize] = Some(us);
        }
    }

    pub(crate) fn is_decided<C: Transport>(&mut self, session: &Session<C>) {
        self.note_step(session, Step::Decided);
    }

    pub(crate) fn is_connected<C: Transport>(&mut self, session: &Session<C>) {
        self.note_step(session, Step::Connected);
    }

    pub(crate) fn has_first_byte<C: Transport>(&mut self, session: &Session<C>) {
        self.note_step(session, Step::FirstByte);
    }

    /// Tells telemetry that it is over.
    pub(crate) fn tell<C: Transport>(&mut self, session: &Session<C>) {
        let shard = &session.shard;
        let listener = &*session.listener.metrics;
        if self.fault == Some(Fault::Client(ClientFault::Closed)) {
            self.fault = session.io.cut().or(self.fault);
        }
        if let Some(reason) = self.fault.and_then(Fault::refusal) {
            shard.recorder.hear(&Event::Refused(listener, reason));
        }
        if let (Some(Fault::Server(fault)), Some(server), true) = (self.fault, &self.server, self.is_reached)
        {
            shard.recorder.hear(&Event::ServerFailed(&server.metrics, fault.kind()));
            server.hear(Heard::Failed, self.is_trial, shard.clock);
        }
        if !self.is_connection && self.is_empty_connection() {
            return;
        }
        // For the log the time is looked at anew: lines are read one by one.
        let now_us = if shard.recorder.wants_facts() { shard.clock.now_us() } else { shard.clock.round_us() };
        let counts = Counts {
            listener,
            server: self.server.as_ref().map(|server| &*server.metrics),
            rule: self.rule.as_ref().map(|rule| &*rule.metrics),
            is_connection: self.is_connection,
            is_failed: self.status >= 500 || self.fault.is_some_and(Fault::is_failure),
            status: self.status,
            request_bytes: self.request_bytes,
            response_bytes: self.response_bytes,
            total_us: now_us.saturating_sub(self.started_us),
        };
        match shard.recorder.wants_exchange(&counts) {
            false => shard.recorder.hear(&Event::Counted(&counts)),
            true => self.tell_all(session, counts, now_us),
        }
        if let Some(facts) = self.facts.take() {
            shard.spare_facts.give_back(facts);
        }
    }

    /// Tells all of it, for a line of the log, or because it stands out.
    fn tell_all<C: Transport>(&self, session: &Session<C>, counts: Counts<'_>, now_us: u64) {
        let Connection { src, proxied, tls, .. } = &session.connection;
        let peer_text = match proxied {
            None => session.sender_text,
            Some(_) => src.map(|src| AddressText::new(src.ip())),
        };
        let facts = self.facts.as_deref();
        let text = |which| facts.and_then(|facts| facts.text(which));
        let sni = text(Text::Sni).and_then(|name| std::str::from_utf8(name).ok());
        let step_us = |step| facts.and_then(|facts| facts.steps_us[step as usize]);
        // What is wrong with a body is worth more than that something is.
        let is_content = matches!(
            self.fault,
            Some(Fault::Content(_) | Fault::Unknown(_) | Fault::Server(ServerFault::Response(_)))
        );
        let content = text(Text::Content).filter(|_| is_content);
        let content = content.and_then(|sentence| std::str::from_utf8(sentence).ok());
        let client_ip = facts.and_then(|facts| facts.client_ip).map(AddressText::new).or(session.sender_text);
        session.shard.recorder.hear(&Event::Done(&pointsman_telemetry::Exchange {
            counts,
            now_us,
            peer: peer_text.as_ref().zip(*src).map(|(text, src)| (text.as_bytes(), src.port())),
            client_ip: client_ip.as_ref().map(AddressText::as_bytes),
            tls: tls.as_ref().map(|tls| tls.version),
            sni: tls.as_ref().and_then(|tls| tls.sni.as_deref()).or(sni),
            method: text(Text::Method),
            host: text(Text::Host),
            path: text(Text::Path),
            query: match (facts.is_some_and(|facts| facts.logs_query), text(Text::Query)) {
                (false, _) => Query::Unlogged,
                (true, None) => Query::Absent,
                (true, Some(query)) => Query::Text(query),
            },
            version: facts.filter(|_| !self.is_connection).map(|_| version_text(self.version)),
            referer: text(Text::Referer),
            user_agent: text(Text::UserAgent),
            content_type: text(Text::ContentType),
            content_length: facts.and_then(|facts| facts.content_length),
            has_body: facts.and_then(|facts| facts.has_body),
            rule: text(Text::Rule),
            unknown: text(Text::Unknown),
            limit: text(Text::Limit),
            mirror: text(Text::Mirror),
            pool: text(Text::Pool),
            decided_us: step_us(Step::Decided),
            connected_us: step_us(Step::Connected),
            first_byte_us: step_us(Step::FirstByte),
            tries: self.tries.into(),
            reused: self.reused,
            queued_us: facts.and_then(|facts| facts.queued_us),
            hedge: facts.and_then(|facts| facts.hedge),
            other_server: text(Text::OtherServer),
            over_budget: facts.is_some_and(|facts| facts.is_over_budget),
            tags: facts.map_or(&[], |facts| &facts.tags),
            error: content.or_else(|| self.fault.map(Fault::sentence)),
            trace: self.trace(),
        }));
    }

    /// A client that came and went without a word is a closed connection, not an exchange.
    fn is_empty_connection(&self) -> bool {
        let is_end = matches!(self.fault, Some(Fault::Client(ClientFault::Closed) | Fault::Drained));
        is_end && self.request_bytes == 0
    }
}

fn version_text(version: Version) -> &'static str {
    match version {
        Version::Http10 => "1.0",
        Version::Http11 => "1.1",
        Version::Http2 => "2",
    }
}

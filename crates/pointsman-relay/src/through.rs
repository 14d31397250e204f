//! Connections that go through as they are, to a server that rules over the connection choose: of `tcp` listeners
//! nothing is read, of `tls-passthrough` ones the ClientHello that they begin with.

use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;

use pointsman_config::Protocol;
use pointsman_http::{Answer, Version, begins_request};
use pointsman_net::{Elapsed, Tcp, spawn};
use pointsman_rules::{Cause, Effect, Outcome, Stickiness, Terminal};
use pointsman_telemetry::{Event, HandshakeFailure, Refusal};
use pointsman_tls::{Alert, ClientHello, HelloFault, client_hello, hello_bytes_needed};
use pointsman_view::{ConnectionView, HelloFacts};

use crate::accept::{Incoming, first_word};
use crate::beside::Here;
use crate::choice::Choice;
use crate::decide::{decision, default_target};
use crate::exchange::Exchange;
use crate::facts::Text;
use crate::failed_handshake::Shaking;
use crate::fault::Fault;
use crate::memory::is_out_of_memory;
use crate::pick::{Fork, Route};
use crate::plain_request;
use crate::session::{After, Session};
use crate::session_learning::Listening;
use crate::shard::{Scratch, Shard};
use crate::transport::{Patience, read_into};
use crate::upgrade::Carries;
use crate::verdict::note_unknown;

/// Begins a connection of a listener that reads no requests.
pub(crate) fn begin_through(shard: &Rc<Shard>, protocol: Protocol, incoming: Incoming) {
    let Incoming { id, state, tcp, connection, counted, deadline } = incoming;
    let mut session = Session::new(tcp, shard.clone(), id, state, connection, deadline);
    spawn(async move {
        session.serve_through(protocol).await;
        drop((session, counted));
    });
}

/// Why there is no hello.
enum NoHello {
    Fault(HelloFault),
    /// It begins with a plain HTTP request.
    PlainRequest,
    /// The connection ended before it was whole.
    Closed,
    /// It did not come in time.
    Timeout {
        has_spoken: bool,
    },
    Memory,
}

/// What was decided of a connection that goes on to a server.
struct Through {
    choice: Choice,
    /// Who listens to that server.
    listening: Option<Box<Listening>>,
}

impl Session<Tcp> {
    async fn serve_through(&mut self, protocol: Protocol) {
        let mut exchange = Exchange::of_connection(self.shard.clock.round_us());
        // Until bytes pass in order, an end is no orderly one: who waits for an answer must not take it for that.
        self.is_amid_answer = true;
        let mut hello = match protocol {
            Protocol::Http | Protocol::Tcp => None,
            Protocol::TlsPassthrough => match self.hello(exchange.started_us).await {
                Some(hello) => Some(hello),
                None => return,
            },
        };
        let after = self.whole_connection(&mut hello, &mut exchange).await;
        let booked = exchange.booked.take();
        drop(exchange);
        self.finish(after, booked).await;
    }

    /// A connection to its end, told to telemetry. A switch that stops ends it.
    async fn whole_connection(&mut self, hello: &mut Option<HelloFacts>, exchange: &mut Exchange) -> After {
        let shard = self.shard.clone();
        let after = {
            let mut whole = pin!(async {
                match self.pass_through(hello, exchange).await {
                    Ok(after) => after,
                    Err(fault) => self.refuse_connection(fault, hello.is_some(), exchange).await,
                }
            });
            poll_fn(|context| shard.poll_unless_stopping(whole.as_mut(), context)).await
        };
        let after = after.unwrap_or_else(|| exchange.is_cut());
        exchange.tell(self);
        after
    }

    /// The way of a connection: decide, connect, carry.
    async fn pass_through(
        &mut self,
        hello: &mut Option<HelloFacts>,
        exchange: &mut Exchange,
    ) -> Result<After, Fault> {
        let Some(Through { choice, listening }) = self.decide_through(hello.as_ref(), exchange)? else {
            self.is_amid_answer = false;
            return Ok(After::Leave);
        };
        exchange.is_decided(self);
        exchange.booked = self.shard.buffers.tunnel_at_rest();
        if exchange.booked.is_none() {
            return Err(Fault::Memory);
        }
        let mut server = self.reach_for_connection(choice, hello.as_ref(), exchange).await?;
        // A tunnel may go on for days, and nobody asks what it began with.
        *hello = None;
        let carries = listening.map_or(Carries::Bytes, Carries::Tls);
        self.carry(&mut server, None, carries, exchange).await
    }

    /// Where the connection goes. Nothing where a rule discards it.
    fn decide_through(
        &self,
        hello: Option<&HelloFacts>,
        exchange: &mut Exchange,
    ) -> Result<Option<Through>, Fault> {
        let shard = &*self.shard;
        if shard.recorder.wants_facts() {
            let mut facts = shard.spare_facts.take();
            if let Some(name) = hello.and_then(|hello| hello.sni.as_deref()) {
                facts.note(Text::Sni, name.as_bytes());
            }
            exchange.keep(facts);
        }
        let local = shard.local();
        let Some((listener, live)) = local.live.listener(self.listener_id) else {
            return Err(Fault::NoListener);
        };
        let view = ConnectionView::new(&self.connection, hello);
        let Scratch { truths, .. } = &mut *shard.scratch.borrow_mut();
        let decision = decision(listener, &view, truths);
        if let Some(beside) = &local.beside {
            let here = Here::now(shard, self.listener_id, &local.live, listener);
            beside.hear_connection(here, &view, &self.connection, &decision, truths);
        }
        let rule = local.rule(live, decision.by);
        shard.recorder.hear(&Event::Decided(&rule.metrics));
        if let Some(facts) = exchange.facts_mut() {
            facts.note(Text::Rule, rule.metrics.label().as_bytes());
            note_unknown(facts, &decision.outcome);
            let tags = decision.effects.iter().filter_map(|effect| match effect {
                Effect::Tag(tag) => Some(Box::<str>::from(&**tag)),
                Effect::Header { .. }
                | Effect::RewritePath { .. }
                | Effect::LimitRate(_)
                | Effect::Bandwidth(_)
                | Effect::Mirror(_) => None,
            });
            facts.tags.extend(tags);
        }
        exchange.rule = Some(rule);
        exchange.bandwidth = local.live.bandwidth.of_effects(&decision.effects);
        let keeps = &*live.keeps;
        let (route, sticky, keeps) = match decision.outcome {
            Outcome::Refused(cause) => return Err(Fault::Unknown(cause)),
            Outcome::Waits => return Err(Fault::Unknown(Cause::Unread)),
            Outcome::DefaultPool => (Route::To(default_target(listener)?), &Stickiness::None, keeps),
            Outcome::RouteUnknown { target, .. } => {
                (Route::To(listener.target(target)), &Stickiness::None, &[][..])
            }
            Outcome::Terminal(Terminal::RouteTo { target, sticky }) => {
                (Route::To(listener.target(*target)), sticky, keeps)
            }
            Outcome::Terminal(Terminal::Split(split)) => (Route::Split(&split.shares), &split.sticky, keeps),
            Outcome::Terminal(Terminal::Discard) => {
                shard.recorder.hear(&Event::Refused(&self.listener.metrics, Refusal::Rule));
                return Ok(None);
            }
            // What answers a request has none to answer: before a reload the listener read some.
            Outcome::Terminal(
                Terminal::Reject { .. } | Terminal::Redirect { .. } | Terminal::Respond { .. },
            ) => return Err(Fault::Rejected),
            Outcome::Terminal(Terminal::Reset) => return Err(Fault::Reset),
        };
        let fork = Fork { shard, local: &local, listener, route, keeps };
        let shown = fork.session_shown(sticky, self.early.as_ref().map(|early| &early[..]));
        let choice = fork.of_connection(sticky, &view, &shown);
        let listening = fork.listening(sticky, &choice, shown);
        if let Some(facts) = exchange.facts_mut() {
            facts.note(Text::Pool, choice.pool_name().as_bytes());
        }
        Ok(Some(Through { choice, listening }))
    }

    /// Tells a client of TLS by an alert why nothing comes of its connection, where none of its server's bytes may
    /// have reached it. Any other hears it by a reset.
    async fn refuse_connection(&mut self, fault: Fault, speaks_tls: bool, exchange: &mut Exchange) -> After {
        exchange.fault = Some(fault);
        if exchange.is_reached || !speaks_tls {
            return After::Leave;
        }
        match fault {
            Fault::Client(_) | Fault::Reset => After::Leave,
            Fault::Rejected | Fault::Unknown(_) => self.alert(Alert::AccessDenied.record()).await,
            _ => self.alert(Alert::InternalError.record()).await,
        }
    }

    async fn alert(&mut self, record: [u8; 7]) -> After {
        self.after_sending(&record).await
    }

    async fn after_sending(&mut self, bytes: &[u8]) -> After {
        match self.send(bytes).await {
            Ok(()) => After::Close,
            Err(_) => After::Leave,
        }
    }

    async fn answer_plain_request(&mut self) -> After {
        let (lines, body) = (&*self.shard.text_lines(), plain_request::SENTENCE.as_bytes());
        let mut answer = Vec::with_capacity(256);
        let (status, version) = (plain_request::STATUS, Version::Http11);
        Answer { status, lines, body, closes: true, version, to_head: false }.write(&mut answer);
        self.after_sending(&answer).await
    }

    /// Reads the hello, and keeps its bytes for the server. Nothing where there is none, which has been told.
    async fn hello(&mut self, since_us: u64) -> Option<HelloFacts> {
        let until_us = self.shard.after_ms(self.limits.handshake_ms_max);
        let first = first_word(&self.shard, self.listener_id, &mut self.deadline, until_us, &self.io).await;
        let why = match first {
            Ok(()) => match self.hello_until(until_us).await {
                Ok(hello) => return Some(hello),
                Err(why) => why,
            },
            Err(Elapsed::Ended) => {
                self.is_amid_answer = false;
                return None;
            }
            Err(Elapsed::Time) => NoHello::Timeout { has_spoken: false },
        };
        let Session { shard, connection, listener, .. } = self;
        let metrics = &listener.metrics;
        let shaking = Shaking { listener: metrics, connection, since_us };
        match why {
            NoHello::Fault(fault) => {
                shaking.no_hello(shard, fault);
                if self.alert(fault.alert()).await == After::Close {
                    self.linger(None, Patience::ForBytes).await;
                }
            }
            NoHello::PlainRequest => {
                shaking.plain_request(shard);
                if self.answer_plain_request().await == After::Close {
                    self.linger(None, Patience::ForBytes).await;
                }
            }
            NoHello::Closed => shaking.count(shard, HandshakeFailure::Closed),
            NoHello::Timeout { has_spoken } => {
                shard.recorder.hear(&Event::Refused(metrics, Refusal::HandshakeTimeout));
                shaking.timed_out(shard, has_spoken);
            }
            NoHello::Memory => {
                shard.recorder.hear(&Event::Refused(metrics, Refusal::Memory));
                shaking.count(shard, HandshakeFailure::Memory);
            }
        }
        None
    }

    async fn hello_until(&mut self, until_us: u64) -> Result<HelloFacts, NoHello> {
        let mut received = self.shard.buffers.request();
        let mut needed = 1;
        loop {
            let ms = self.shard.ms_until(until_us);
            match self.deadline.within(ms, read_into(&mut self.io, &mut received)).await {
                Ok(Ok(1..)) if received.len() < needed => continue,
                Ok(Ok(1..)) => {}
                Ok(read) if is_out_of_memory(&read) => return Err(NoHello::Memory),
                Ok(_) => return Err(NoHello::Closed),
                Err(_) => return Err(NoHello::Timeout { has_spoken: true }),
            }
            match client_hello(&received) {
                Ok(Some(hello)) => {
                    self.early = Some(received);
                    let ClientHello { sni, alpn, version } = hello;
                    return Ok(HelloFacts { sni, alpn, version });
                }
                Ok(None) => needed = hello_bytes_needed(&received),
                Err(HelloFault::NotTls) if begins_request(&received) == Some(true) => {
                    return Err(NoHello::PlainRequest);
                }
                Err(fault) => return Err(NoHello::Fault(fault)),
            }
        }
    }
}

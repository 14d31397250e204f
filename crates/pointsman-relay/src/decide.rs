//! From the bytes of a head to what is to be done: parse, view, rules, effects, the edited head.
//!
//! All of it happens between two waits: the thread's scratch space serves every connection.

use pointsman_config::{EncodedSlash, Listener, Target};
use pointsman_h2::Oddity;
use pointsman_http::{
    AnswerTo, BodyReader, Framing, HeadLimits, Method, OddNames, PLAIN_TEXT_LINE, Refusal, RequestHead,
    Upgrade,
};
use pointsman_net::PooledBuffer;
use pointsman_rules::{Cause, DecidedBy, Decision, Outcome, Stickiness, Subject, Terminal, Truths};
use pointsman_telemetry::{self as telemetry, Event};
use pointsman_view::{
    Connection, HOST_BYTES_MAX, PathOptions, Peer, RequestView, TrustedProxies, normal_form, normal_host,
    take_away_forwarding,
};

use crate::commit::Committed;
use crate::exchange::Exchange;
use crate::facts::Text;
use crate::fault::Fault;
use crate::live::LiveListener;
use crate::local::Local;
use crate::onward::{Request, grow};
use crate::pick::{Choice, sticky_key};
use crate::session::Session;
use crate::shard::{Scratch, Shard};
use crate::transport::{OfHttp2, Transport};

/// What is to be done with a request.
pub(crate) enum Verdict {
    /// It goes to a server.
    Forward(Forward),
    /// The switch answers it.
    Answer(Box<OwnAnswer>),
    /// The connection closes without an answer.
    Discard,
    /// It is no request: the client speaks HTTP/2 from here on.
    Http2,
}

/// A request on its way to a server.
pub(crate) struct Forward {
    /// The edited head, and what had arrived of the body.
    pub(crate) message: PooledBuffer,
    /// Where the body goes on.
    pub(crate) body: BodyReader,
    /// Bytes of the received buffer that are in `message`; the rest is the next request.
    pub(crate) used: usize,
    pub(crate) choice: Choice,
    pub(crate) expects_continue: bool,
    /// Bytes of body that may still come; `u64::MAX` where there is no limit.
    pub(crate) body_left: u64,
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

/// Decides about the request whose bytes so far are in `buffer`, and takes them where they can be sent on as they
/// lie. `None` asks for more of the head.
pub(crate) fn decide<C: Transport>(
    session: &Session<C>,
    buffer: &mut PooledBuffer,
    exchange: &mut Exchange,
) -> Result<Option<Verdict>, Fault> {
    let received = buffer.as_slice();
    let shard = &*session.shard;
    let local = shard.local();
    let Some((listener, live)) = local.live.listener(session.listener_id) else {
        return Err(Fault::NoListener);
    };
    let Scratch { request: head, path, target, lines, truths, .. } = &mut *shard.scratch.borrow_mut();
    let limits = head_limits(listener);
    match head.parse_on(received, &mut exchange.unfinished, &limits) {
        Ok(true) => {}
        Ok(false) => return Ok(None),
        Err(_) if session.may_go_over(listener, received) => return Ok(Some(Verdict::Http2)),
        Err(refusal) => return Err(Fault::Head(refusal)),
    }
    let of_http2 = session.io.of_http2();
    if of_http2.is_some() {
        head.is_of_http2().map_err(Fault::Head)?;
    }
    exchange.method = head.method();
    exchange.version = head.version();
    exchange.to = if head.method() == Method::Head { AnswerTo::Head } else { AnswerTo::Other };
    exchange.booked = match &of_http2 {
        Some(stream) => shard.buffers.stream(received.len(), stream.window_bytes),
        None => shard.buffers.exchange(received.len(), session.connection.tls.is_some()),
    };
    if exchange.booked.is_none() {
        return Err(Fault::Memory);
    }
    exchange.keeps_client = head.keeps_alive() && !session.is_last_request(listener);
    let peer = session.peer(listener);
    let of_stream = of_http2.as_ref().map(|stream| (stream, &session.connection));
    let normal = fits((head, received), of_stream, listener, &peer).and_then(|()| {
        normal_form(head.path_and_query(received), path_options(listener), path).map_err(Fault::Path)
    });
    let normal = normal.inspect_err(|_| note_facts(shard, head, received, &peer, None, exchange))?;
    let place = Place { shard, local: &local, listener, live };
    let view = RequestView::new(head, received, &session.connection, normal, trusted_proxies(listener));
    note_facts(shard, head, received, &peer, Some(&view), exchange);
    exchange.upgrade = head.upgrade(received, &listener.upgrades).map_err(Fault::Head)?.map(Box::new);
    let asks_for_protocol = of_http2.is_some_and(|stream| stream.asks_for_protocol);
    if asks_for_protocol && exchange.upgrade.is_none() {
        return Err(Fault::Head(Refusal::Protocol));
    }
    let decided = place.ask_rules(&view, truths, exchange)?;
    if asks_for_protocol && matches!(&decided, Decided::Answer(answer) if matches!(answer.status, 200..300)) {
        // The client would take it for the change, and the body for what comes through the tunnel.
        return Err(Fault::Head(Refusal::Protocol));
    }
    exchange.is_decided(session);
    let arrived_at = session.connection.dst;
    let room_bytes = buffer.capacity() - received.len();
    let mut request = Request { head, received, room_bytes, target, lines, peer, arrived_at, normal };
    match decided {
        Decided::Forward(..) if request.head.max_forwards(received) == Some(0) => {
            if let Some(facts) = exchange.facts_mut() {
                facts.forget(Text::Pool);
            }
            answered(&request, last_hop(shard, exchange)).map(Some)
        }
        Decided::Answer(answer) => answered(&request, answer).map(Some),
        Decided::Discard => Ok(Some(Verdict::Discard)),
        Decided::Forward(committed, choice) => {
            let mut forward =
                place.forward(&mut request, &committed, (choice, exchange.upgrade.as_deref()))?;
            if forward.message.is_empty() {
                grow(buffer, lines);
                forward.message = buffer.take();
            }
            Ok(Some(Verdict::Forward(forward)))
        }
    }
}

/// Where a decision is made.
struct Place<'a> {
    shard: &'a Shard,
    local: &'a Local,
    listener: &'a Listener,
    live: &'a LiveListener,
}

enum Decided<'r> {
    Forward(Committed<'r>, Choice),
    Answer(OwnAnswer),
    Discard,
}

impl<'a> Place<'a> {
    fn ask_rules(
        &self,
        view: &RequestView<'_>,
        truths: &mut Truths,
        exchange: &mut Exchange,
    ) -> Result<Decided<'a>, Fault> {
        let decision = decision(self.listener, view, truths);
        let rule = self.live.rule(decision.by);
        self.shard.recorder.hear(&Event::Decided(rule));
        if let Some(facts) = exchange.facts_mut() {
            facts.note(Text::Rule, rule.label().as_bytes());
        }
        let mut committed = match decision.effects.is_empty() {
            true => Committed::default(),
            false => Committed::render(&decision.effects, view, path_options(self.listener))?,
        };
        if let Some(facts) = exchange.facts_mut() {
            facts.tags.extend(committed.tags.iter().map(|&tag| Box::from(tag)));
        }
        let (target, sticky) = match decision.outcome {
            Outcome::Refused(cause) => return Err(Fault::Unknown(cause)),
            Outcome::Waits => return Err(Fault::Unknown(Cause::Unread)),
            Outcome::DefaultPool => (default_target(self.listener)?, &Stickiness::None),
            Outcome::RouteUnknown { target, .. } => (self.listener.target(target), &Stickiness::None),
            Outcome::Terminal(Terminal::RouteTo { target, sticky }) => {
                (self.listener.target(*target), sticky)
            }
            Outcome::Terminal(own) => {
                if matches!(own, Terminal::Reject { .. } | Terminal::Discard) {
                    self.shard
                        .recorder
                        .hear(&Event::Refused(&self.live.state.metrics, telemetry::Refusal::Rule));
                }
                return match own {
                    Terminal::Discard => Ok(Decided::Discard),
                    _ => own_answer(self.shard, own, &committed, view).map(Decided::Answer),
                };
            }
        };
        let pool = self.local.pool(target.pool);
        let live = &self.local.live;
        let key = sticky_key(self.shard, live, pool.name(), sticky, view, &mut committed.response);
        if !committed.response.is_empty() {
            exchange.response_edits = Some(Box::new(std::mem::take(&mut committed.response).into_owned()));
        }
        if let Some(facts) = exchange.facts_mut() {
            facts.note(Text::Pool, pool.name().as_bytes());
        }
        Ok(Decided::Forward(committed, Choice::new(self.local, target, key)))
    }

    /// Writes the head that the server is sent, and what has arrived of the body, for which there is room, too.
    /// Nothing is written where only lines are to be added, for which there is room behind the head.
    fn forward(
        &self,
        request: &mut Request<'_>,
        committed: &Committed<'_>,
        (choice, upgrade): (Choice, Option<&Upgrade>),
    ) -> Result<Forward, Fault> {
        let expects_continue = request.head.expects_continue();
        let body_bytes_max = match self.listener.limits.body_bytes_max {
            0 => u64::MAX,
            bytes => bytes,
        };
        if matches!(request.head.framing(), Framing::Length(bytes) if bytes > body_bytes_max) {
            return Err(Fault::BodyTooLarge);
        }
        let mut message = self.shard.buffers.head();
        let (body, used) = request.follow_body()?;
        let arrived = &request.received[request.head.head_bytes()..used];
        request.edit_head(self.listener, self.local.live.uses_route_cookie, committed);
        request.lines.extend_from_slice(upgrade.map_or(b"", Upgrade::lines));
        if !request.passes_in_its_buffer(committed) {
            request.write_head(committed, &mut message)?;
            message.extend_from_slice(arrived);
        }
        let body_left = body_bytes_max.checked_sub(arrived.len() as u64).ok_or(Fault::BodyTooLarge)?;
        Ok(Forward { message, body, used, choice, expects_continue, body_left })
    }
}

/// What the rules of a listener say about a subject.
pub(crate) fn decision<'l>(
    listener: &'l Listener,
    subject: &impl Subject,
    truths: &mut Truths,
) -> Decision<'l> {
    match &listener.program {
        Some(program) => program.decide(subject, truths),
        None => {
            Decision { by: DecidedBy::Nothing, outcome: Outcome::DefaultPool, effects: Default::default() }
        }
    }
}

/// What takes what no rule decided.
pub(crate) fn default_target(listener: &Listener) -> Result<Target, Fault> {
    let pool = listener.default_pool.ok_or(Fault::NoServer)?;
    Ok(Target { pool, server: None })
}

/// An answer keeps the connection only where the request's body is here, and needs no skipping.
fn answered(request: &Request<'_>, mut answer: OwnAnswer) -> Result<Verdict, Fault> {
    let (body, used) = request.follow_body()?;
    answer.used = body.is_done().then_some(used);
    Ok(Verdict::Answer(Box::new(answer)))
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
        Terminal::RouteTo { .. } | Terminal::Discard => {
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
    if let Some(edits) = exchange.response_edits.take() {
        edits.strip(&mut lines);
        edits.write(&mut lines);
    }
    OwnAnswer { status, lines, body: body.into(), used: None }
}

fn note_facts(
    shard: &Shard,
    head: &RequestHead,
    received: &[u8],
    peer: &Peer,
    view: Option<&RequestView<'_>>,
    exchange: &mut Exchange,
) {
    if !shard.recorder.is_logging() {
        return;
    }
    let mut facts = shard.spare_facts.take();
    facts.client_ip = view.filter(|_| peer.is_trusted).and_then(RequestView::client_ip);
    facts.note(Text::Method, head.method_name(received));
    let mut scratch = [0; HOST_BYTES_MAX];
    if let Some(host) = normal_host(head.authority(received), &mut scratch) {
        facts.note(Text::Host, host);
    }
    facts.note(Text::Path, view.map_or(head.path_and_query(received), |view| view.path().path()));
    exchange.keep(facts);
}

pub(crate) fn head_limits(listener: &Listener) -> HeadLimits {
    HeadLimits {
        head_bytes_max: listener.limits.head_bytes_max as usize,
        headers_max: listener.limits.headers_max as usize,
        target_bytes_max: listener.limits.target_bytes_max as usize,
    }
}

/// Whether the request may be asked of this listener. A proxy in front may have ended TLS; nobody else speaks
/// for another scheme than its own.
fn fits(
    (head, received): (&mut RequestHead, &[u8]),
    of_stream: Option<(&OfHttp2<'_>, &Connection)>,
    listener: &Listener,
    peer: &Peer,
) -> Result<(), Fault> {
    let odd = of_stream.and_then(|(stream, _)| stream.oddity).map(|oddity| match oddity {
        Oddity::WhiteSpace => Refusal::FieldWhiteSpace,
        Oddity::HostConflict => Refusal::HostConflict,
        Oddity::Protocol => Refusal::Protocol,
    });
    odd.map_or(Ok(()), Err).map_err(Fault::Head)?;
    head.settle_odd_names(received, odd_names(listener)).map_err(Fault::Head)?;
    if peer.is_trusted {
        return Ok(());
    }
    take_away_forwarding(head);
    if let Some((stream, connection)) = of_stream {
        check_stream((head, received), stream, connection, listener, peer).map_err(Fault::Head)?;
    }
    head.check_scheme(received, peer.scheme).map_err(Fault::Head)
}

/// Whom the listener believes.
pub(crate) fn trusted_proxies(listener: &Listener) -> TrustedProxies<'_> {
    TrustedProxies { networks: &listener.trusted_proxies, unix: listener.trusts_unix }
}

/// What a stream says of its scheme and its host must be true of its connection (RFC 9113 sections 8.3.1 and 9.1.2).
fn check_stream(
    (head, received): (&RequestHead, &[u8]),
    stream: &OfHttp2<'_>,
    connection: &Connection,
    listener: &Listener,
    peer: &Peer,
) -> Result<(), Refusal> {
    if stream.scheme.is_some_and(|scheme| scheme != peer.scheme) {
        return Err(Refusal::Scheme);
    }
    let (Some(tls), Some(acceptor)) = (&connection.tls, &listener.tls) else { return Ok(()) };
    let mut scratch = [0; HOST_BYTES_MAX];
    let host = normal_host(head.authority(received), &mut scratch);
    let host = host.and_then(|host| std::str::from_utf8(host).ok()).unwrap_or_default();
    match acceptor.serves(tls.sni.as_deref(), host) {
        true => Ok(()),
        false => Err(Refusal::Misdirected),
    }
}

fn odd_names(listener: &Listener) -> OddNames<'_> {
    match listener.odd_names {
        pointsman_config::OddNames::Drop => OddNames::Drop,
        pointsman_config::OddNames::Refuse => OddNames::Refuse,
        pointsman_config::OddNames::Keep => OddNames::Keep(&listener.named_fields),
    }
}

fn path_options(listener: &Listener) -> PathOptions {
    PathOptions {
        encoded_slash: match listener.encoded_slash {
            EncodedSlash::Keep => pointsman_view::EncodedSlash::Keep,
            EncodedSlash::Refuse => pointsman_view::EncodedSlash::Refuse,
        },
        merge_slashes: listener.merge_slashes,
    }
}

impl<C: Transport> Session<C> {
    fn peer(&self, listener: &Listener) -> Peer {
        Peer {
            address: self.sender_text,
            is_trusted: self.connection.is_trusted(trusted_proxies(listener)),
            scheme: self.connection.scheme(),
        }
    }
}

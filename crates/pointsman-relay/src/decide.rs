//! From the bytes of a head to what is to be done: parse, view, rules, effects, the edited head.
//!
//! All of it happens between two waits: the thread's scratch space serves every connection.

use std::ops::ControlFlow;

use pointsman_config::{EncodedSlash, Listener, Misdirected, Target};
use pointsman_h2::Oddity;
use pointsman_http::{AnswerTo, Framing, HeadLimits, Method, OddNames, Refusal, RequestHead};
use pointsman_net::PooledBuffer;
use pointsman_rules::{DecidedBy, Decision, Evidence, Field, Halt, Outcome, Subject, Truths, Value};
use pointsman_view::{
    Connection, HOST_BYTES_MAX, PathOptions, Peer, RequestView, TrustedProxies, normal_form, normal_host,
    take_away_forwarding,
};

use crate::beside::Asked;
use crate::exchange::Exchange;
use crate::facts::{Facts, Text};
use crate::fault::Fault;
use crate::onward::{Request, TRACE_PARENT};
use crate::session::Session;
use crate::shard::{Scratch, Shard};
use crate::transport::{OfHttp2, Transport};
use crate::undecided::Undecided;
use crate::verdict::{Decided, Place, Verdict, take_over};

/// Decides about the request whose bytes so far are in `buffer`, and takes them where they can be sent on as they
/// lie. `None` asks for more of the head.
pub(crate) fn decide<C: Transport>(
    session: &Session<C>,
    buffer: &mut PooledBuffer,
    exchange: &mut Exchange,
) -> Result<Option<Verdict>, Fault> {
    match decide_by_head(session, buffer, exchange)? {
        Some(Verdict::Waits(Some(undecided))) => undecided.begin(session, buffer, exchange).map(Some),
        verdict => Ok(verdict),
    }
}

fn decide_by_head<C: Transport>(
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
    exchange.is_grpc = of_http2.is_some() && head.is_grpc(received);
    exchange.to = if head.method() == Method::Head { AnswerTo::Head } else { AnswerTo::Other };
    let booked = match &of_http2 {
        Some(stream) => shard.buffers.stream(received.len(), stream.window_bytes),
        None => shard.buffers.exchange(received.len(), session.connection.tls.is_some()),
    };
    exchange.booked = Some(booked.ok_or(Fault::Memory)?);
    exchange.keeps_client = head.keeps_alive() && !session.is_last_request(listener);
    let peer = session.peer(listener);
    let asked = AskedOver { connection: &session.connection, stream: of_http2.as_ref() };
    let normal = fits((head, received), Some(asked), listener, &peer).and_then(|()| {
        normal_form(head.path_and_query(received), path_options(listener), path).map_err(Fault::Path)
    });
    let normal =
        normal.inspect_err(|_| note_facts(shard, listener, head, received, &peer, None, exchange))?;
    let place = Place { shard, local: &local, listener, live };
    let view = RequestView::new(head, received, &session.connection, normal, trusted_proxies(listener));
    note_facts(shard, listener, head, received, &peer, Some(&view), exchange);
    exchange.upgrade = head.upgrade(received, &listener.upgrades).map_err(Fault::Head)?.map(Box::new);
    let asks_for_protocol = of_http2.is_some_and(|stream| stream.asks_for_protocol);
    if asks_for_protocol && exchange.upgrade.is_none() {
        return Err(Fault::Head(Refusal::Protocol));
    }
    let view = match (&live.unread, head.framing()) {
        (None, _) | (_, Framing::None) => view,
        (Some(unread), _) => view.with_body(unread),
    };
    let decision = request_decision(listener, &view, &[], truths);
    if matches!(decision.outcome, Outcome::Waits) {
        let kind = (Halt::of(&decision), exchange.is_grpc);
        let undecided = Undecided::new(session, std::mem::take(head), received, local.clone(), kind)?;
        return Ok(Some(Verdict::Waits(Some(undecided))));
    }
    place.compare(session.listener_id, Asked { head, received, view: &view, body: None }, &decision, truths);
    let decided = place.commit(&decision, &view, exchange)?;
    if asks_for_protocol && matches!(&decided, Decided::Answer(answer) if matches!(answer.status, 200..300)) {
        // The client would take it for the change, and the body for what comes through the tunnel.
        return Err(Fault::Head(Refusal::Protocol));
    }
    exchange.is_decided(session);
    if let Some(verdict) = decided.ended() {
        return Ok(Some(verdict));
    }
    let arrived_at = session.connection.dst;
    let room_bytes = buffer.capacity() - received.len();
    let request = Request { head, received, room_bytes, target, lines, peer, arrived_at, normal };
    let arrived = request.follow_body(place.trailers_of(request.head, exchange))?;
    let mut verdict = place.settle(request, decided, arrived, exchange)?;
    take_over(&mut verdict, buffer, lines);
    Ok(Some(verdict))
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

/// What the rules of a listener say about a request, in all readings that count. `bodies` are readings of its body
/// beside that of the view.
pub(crate) fn request_decision<'l>(
    listener: &'l Listener,
    view: &RequestView<'_>,
    bodies: &[Evidence],
    truths: &mut Truths,
) -> Decision<'l> {
    match (&listener.program, &listener.readings) {
        (Some(program), Some(readings)) => readings.decide(program, view, bodies, truths),
        _ => decision(listener, view, truths),
    }
}

/// What takes what no rule decided.
pub(crate) fn default_target(listener: &Listener) -> Result<Target, Fault> {
    let pool = listener.default_pool.ok_or(Fault::NoServer)?;
    Ok(Target { pool, server: None })
}

fn note_facts(
    shard: &Shard,
    listener: &Listener,
    head: &RequestHead,
    received: &[u8],
    peer: &Peer,
    view: Option<&RequestView<'_>>,
    exchange: &mut Exchange,
) {
    if !shard.recorder.wants_facts() {
        return;
    }
    let mut facts = shard.spare_facts.take();
    facts.client_ip = view.filter(|_| peer.is_trusted).and_then(RequestView::client_ip);
    facts.note(Text::Method, head.method_name(received));
    let mut scratch = [0; HOST_BYTES_MAX];
    if let Some(host) = normal_host(head.authority(received), &mut scratch) {
        facts.note(Text::Host, host);
    }
    match view {
        Some(view) => {
            facts.note(Text::Path, view.path().path());
            note_content(&mut facts, head, view);
        }
        None => facts.note(Text::Path, without_query(head.path_and_query(received))),
    }
    facts.logs_query = listener.logs_query && view.is_some();
    if let Some(query) = view.and_then(|view| view.path().query()).filter(|_| facts.logs_query) {
        facts.note(Text::Query, query);
    }
    if shard.recorder.logs_agent() {
        note_agent(&mut facts, head, received);
    }
    if shard.recorder.is_tracing() {
        facts.trace = shard.recorder.begin_trace(traceparent(head, received), peer.is_trusted);
    }
    exchange.keep(facts);
}

/// What the request says of a trace; two lines say nothing.
fn traceparent<'r>(head: &RequestHead, received: &'r [u8]) -> Option<&'r [u8]> {
    let mut lines = head.lines().iter().filter(|line| line.is_named(TRACE_PARENT, received));
    let first = lines.next()?;
    lines.next().is_none().then(|| first.value(received))
}

/// Who asks, and from where, as the first line of each name says.
fn note_agent(facts: &mut Facts, head: &RequestHead, received: &[u8]) {
    for (name, text) in [(&b"referer"[..], Text::Referer), (b"user-agent", Text::UserAgent)] {
        if let Some(line) = head.lines().iter().find(|line| line.is_named(name, received)) {
            facts.note(text, line.value(received));
        }
    }
}

/// What a head says of the body; nothing where it says two things.
fn note_content(facts: &mut Facts, head: &RequestHead, view: &RequestView<'_>) {
    let mut types = 0;
    view.each(&Field::ContentType, &mut |value| {
        if let (0, Value::Text(media_type)) = (types, value) {
            facts.note(Text::ContentType, media_type);
        }
        types += 1;
        ControlFlow::Continue(())
    });
    if types > 1 {
        return facts.forget(Text::ContentType);
    }
    facts.has_body = Some(head.framing() != Framing::None);
    view.each(&Field::ContentLength, &mut |value| {
        if let Value::Integer(bytes) = value {
            facts.content_length = Some(bytes);
        }
        ControlFlow::Continue(())
    });
}

/// A target that is refused stands in the log as it came; what may be secret does not.
fn without_query(target: &[u8]) -> &[u8] {
    target.split(|byte| *byte == b'?').next().unwrap_or_default()
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
pub(crate) fn fits(
    (head, received): (&mut RequestHead, &[u8]),
    asked: Option<AskedOver<'_>>,
    listener: &Listener,
    peer: &Peer,
) -> Result<(), Fault> {
    let odd = asked.and_then(|asked| asked.stream?.oddity).map(|oddity| match oddity {
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
    if let Some(asked) = asked {
        check_host((head, received), asked, listener, peer).map_err(Fault::Head)?;
    }
    head.check_scheme(received, peer.scheme).map_err(Fault::Head)
}

/// Whom the listener believes.
pub(crate) fn trusted_proxies(listener: &Listener) -> TrustedProxies<'_> {
    TrustedProxies { networks: &listener.trusted_proxies, unix: listener.trusts_unix }
}

/// What a request came over.
#[derive(Clone, Copy)]
pub(crate) struct AskedOver<'a> {
    pub(crate) connection: &'a Connection,
    /// Absent over HTTP/1.
    pub(crate) stream: Option<&'a OfHttp2<'a>>,
}

/// What a stream says of its scheme must be true of its connection (RFC 9113 section 8.3.1), and so must be what a request
/// says of its host, as far as the listener looks (RFC 9113 section 9.1.2, RFC 9110 section 7.4).
fn check_host(
    (head, received): (&RequestHead, &[u8]),
    AskedOver { connection, stream }: AskedOver<'_>,
    listener: &Listener,
    peer: &Peer,
) -> Result<(), Refusal> {
    if stream.and_then(|stream| stream.scheme).is_some_and(|scheme| scheme != peer.scheme) {
        return Err(Refusal::Scheme);
    }
    let is_looked_at = stream.is_some() || listener.misdirected != Misdirected::Http2;
    let (true, Some(tls), Some(acceptor)) = (is_looked_at, &connection.tls, &listener.tls) else {
        return Ok(());
    };
    let authority = head.authority(received);
    // A client of HTTP/1.0 need not name one.
    if stream.is_none() && authority.is_empty() {
        return Ok(());
    }
    let mut scratch = [0; HOST_BYTES_MAX];
    let host = normal_host(authority, &mut scratch);
    let host = host.and_then(|host| std::str::from_utf8(host).ok()).unwrap_or_default();
    let is_named = |name: &str| name.eq_ignore_ascii_case(host);
    if listener.misdirected == Misdirected::Name && !tls.sni.as_deref().is_none_or(is_named) {
        return Err(Refusal::Misdirected);
    }
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

pub(crate) fn path_options(listener: &Listener) -> PathOptions {
    PathOptions {
        encoded_slash: match listener.encoded_slash {
            EncodedSlash::Keep => pointsman_view::EncodedSlash::Keep,
            EncodedSlash::Refuse => pointsman_view::EncodedSlash::Refuse,
        },
        merge_slashes: listener.merge_slashes,
    }
}

impl<C: Transport> Session<C> {
    pub(crate) fn peer(&self, listener: &Listener) -> Peer {
        Peer {
            address: self.sender_text,
            is_trusted: self.connection.is_trusted(trusted_proxies(listener)),
            scheme: self.connection.scheme(),
        }
    }
}

//! A request that its head does not decide: its body is read, held and looked into until the rules know.

mod reading;

use std::rc::Rc;
use std::sync::Arc;

use pointsman_config::Listener;
use pointsman_http::{BodyReader, Framing, HeaderKind, RequestHead};
use pointsman_net::PooledBuffer;
use pointsman_rules::{self as rules, Cause, Decision, Evidence, Halt, Outcome, PayloadId, Truths, Validate};
use pointsman_telemetry::{Event, ListenerMetrics, Recorder};
use pointsman_view::{Inspection, RequestView, normal_form};

use crate::ahead::{Ahead, Judge, Pace};
use crate::beside::{Asked, BodyBeside};
use crate::decide::{decision, path_options, request_decision, trusted_proxies};
use crate::exchange::Exchange;
use crate::facts::Text;
use crate::fault::Fault;
use crate::hold::Hold;
use crate::local::Local;
use crate::onward::{Arrived, Request};
use crate::session::Session;
use crate::shard::Scratch;
use crate::trailers::TrailerFilter;
use crate::transport::Transport;
use crate::turn::InTurn;
use crate::verdict::{Place, Verdict, body_bytes_max, take_over};

/// A request that waits for its body.
pub(crate) struct Undecided {
    head: RequestHead,
    /// Its bytes, and what came with it, while it is waited for.
    received: PooledBuffer,
    /// The plan that it began with, whatever is published meanwhile.
    local: Rc<Local>,
    judge: Judge,
    /// Looks into the same for a candidate, where one is asked beside the plan and wants to know.
    beside: Option<Box<BodyBeside>>,
    body: BodyReader,
    trailers: TrailerFilter,
    /// Where the rules wait.
    halt: Option<Halt>,
    /// Bytes of what came last that no server is sent yet.
    kept_back: usize,
    /// Bytes of the body that lie behind the head: what came with it, and what there was room for.
    arrived_bytes: usize,
    hold: Hold,
    /// Bytes of its last piece that were looked into.
    looked_bytes: usize,
    /// By what it waits for room, once it has had to.
    number: Option<u64>,
    /// While it holds more than there is room for.
    turn: Option<InTurn>,
    hold_bytes_max: u64,
    /// Bytes of body that may still come.
    body_left: u64,
    pace: Pace,
    /// Whether more came than may be held before it was decided, or anything was found wrong with it.
    has_given_up: bool,
    /// Whether it is decided, and held on until it has proved well-formed.
    is_held_on: bool,
    /// Whether it is decided, and judged on its way to its server.
    is_judged: bool,
    /// What is kept back then.
    tail: Vec<u8>,
    has_said_continue: bool,
}

/// Counts a request that waits.
struct Waiting {
    recorder: Rc<Recorder>,
    listener: Arc<ListenerMetrics>,
}

impl Waiting {
    fn begin(recorder: Rc<Recorder>, listener: Arc<ListenerMetrics>) -> Waiting {
        recorder.hear(&Event::WaitBegan(&listener));
        Waiting { recorder, listener }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.recorder.hear(&Event::WaitEnded(&self.listener));
    }
}

impl Undecided {
    /// A request with this head, which was parsed from `received`, its odd lines settled. None of its body has been
    /// looked at.
    pub(crate) fn new<C: Transport>(
        session: &Session<C>,
        head: RequestHead,
        received: &[u8],
        local: Rc<Local>,
        (halt, is_grpc): (Option<Halt>, bool),
    ) -> Result<Box<Undecided>, Fault> {
        let (listener, live) = local.live.listener(session.listener_id).ok_or(Fault::NoListener)?;
        let (Some(program), Some(paths)) = (&listener.program, &listener.body_paths) else {
            debug_assert!(false, "rules that name nothing of the body wait for nothing of it");
            return Err(Fault::Unknown(Cause::Unread));
        };
        let body_left = body_bytes_max(&head, &listener.limits)?;
        let trailers = TrailerFilter::of_request(local.trailers(live), head.framing(), is_grpc);
        let inspection =
            Inspection::new(Evidence::new(program), paths.clone(), &head, received, &listener.body_options);
        let booked = session.shard.buffers.inspection().ok_or(Fault::Memory)?;
        let judge = Judge::new(inspection, booked).ok_or(Fault::Memory)?;
        let hold_bytes_max = listener.body_limits.hold_bytes_max.into();
        let buffers = &session.shard.buffers;
        let beside = local.beside.as_ref();
        let beside = beside.and_then(|beside| beside.body(session.listener_id, &head, received, buffers));
        Ok(Box::new(Undecided {
            beside,
            body: BodyReader::new(head.framing()).with_trailers(trailers.treatment()),
            trailers,
            head,
            received: session.shard.buffers.request(),
            local,
            judge,
            halt,
            kept_back: 0,
            arrived_bytes: 0,
            hold: Hold::default(),
            looked_bytes: 0,
            number: None,
            turn: None,
            hold_bytes_max,
            body_left,
            pace: Pace::default(),
            has_given_up: false,
            is_held_on: false,
            is_judged: false,
            tail: Vec::new(),
            has_said_continue: false,
        }))
    }

    /// Looks into what came with the head, and asks the rules.
    pub(crate) fn begin<C: Transport>(
        mut self: Box<Self>,
        session: &Session<C>,
        received: &mut PooledBuffer,
        exchange: &mut Exchange,
    ) -> Result<Verdict, Fault> {
        // What the head settles may decide before anything is read; where it settles nothing, it has been asked.
        let mut decided = match self.is_to_ask(session) {
            true => self.ask(session, received, exchange)?,
            false => None,
        };
        if decided.is_none() {
            self.arrived_bytes = self.take_in(received, self.head.head_bytes())?;
            if self.is_to_ask(session) {
                decided = self.ask(session, received, exchange)?;
            }
        }
        Ok(match decided {
            Some(mut verdict) => {
                self.hand_over(&mut verdict);
                verdict
            }
            None => {
                self.received = received.take();
                Verdict::Waits(Some(self))
            }
        })
    }

    /// Bytes of the request that came.
    fn request_bytes(&self) -> u64 {
        self.head.head_bytes() as u64 + self.pace.read_bytes
    }

    /// Looks into the bytes of `buffer` from `start` on, which have just come. Returns how many bytes there are the
    /// body's, without the trailers that do not pass. What comes beyond what may be held decides nothing.
    fn take_in(&mut self, buffer: &mut PooledBuffer, start: usize) -> Result<usize, Fault> {
        let left = self.hold_bytes_max.saturating_sub(self.pace.read_bytes);
        let within = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len() - start);
        let behind = buffer.len() - start - within;
        let mut used = self.look(buffer, start, start + within)?;
        if self.is_over_limit() {
            self.has_given_up |= self.judge.inspection.fault().is_none();
            self.judge.inspection.give_up(Cause::Limit);
            used += self.look(buffer, start + used, start + used + behind)?;
        }
        Ok(used)
    }

    fn look(&mut self, buffer: &mut PooledBuffer, start: usize, end: usize) -> Result<usize, Fault> {
        let bytes = &buffer[start..end];
        let fed = self.judge.follow(&mut self.body, bytes, &mut self.kept_back).map_err(Fault::from)?;
        if let Some(beside) = &mut self.beside {
            beside.look(&bytes[..fed.used]);
        }
        self.pace.read_bytes += fed.used as u64;
        self.body_left = self.body_left.checked_sub(fed.used as u64).ok_or(Fault::BodyTooLarge)?;
        let Some(mut cut) = self.body.take_cut() else { return Ok(fed.used) };
        self.trailers.apply(&mut cut);
        let (cut_bytes, added_bytes) = (cut.place.len(), cut.lines.len());
        if !buffer.reserve(added_bytes) {
            return Err(Fault::Memory);
        }
        buffer.splice(start + cut.place.start..start + cut.place.end, cut.lines);
        if !fed.done {
            // Trailers are behind the content, and kept back with its last byte.
            self.kept_back = (self.kept_back + added_bytes).saturating_sub(cut_bytes);
        }
        Ok(fed.used - cut_bytes + added_bytes)
    }

    /// Whether as much is held as may be, and that is not all.
    fn is_over_limit(&self) -> bool {
        !self.body.is_done() && self.pace.read_bytes >= self.hold_bytes_max
    }

    /// Whether the rules may say something new.
    fn is_to_ask<C: Transport>(&mut self, session: &Session<C>) -> bool {
        let is_last = self.body.is_done() || self.is_over_limit() || self.judge.inspection.fault().is_some();
        // Behind its label there may be nothing more to look at.
        let is_held_for_nothing = self.is_held_on && !self.judge.inspection.is_reading();
        is_last
            || is_held_for_nothing
            || (!self.is_held_on && self.judge.inspection.take_news() && self.may_end_wait(session))
    }

    /// Whether what was learned may end the wait.
    fn may_end_wait<C: Transport>(&mut self, session: &Session<C>) -> bool {
        let listener = self.local.live.listener(session.listener_id);
        match (listener.and_then(|(listener, _)| listener.program.as_ref()), &mut self.halt) {
            (Some(program), Some(halt)) => halt.may_end(program, self.judge.inspection.evidence()),
            _ => true,
        }
    }

    /// Asks the rules. Nothing: more of the body must be read.
    fn ask<C: Transport>(
        &mut self,
        session: &Session<C>,
        received: &mut PooledBuffer,
        exchange: &mut Exchange,
    ) -> Result<Option<Verdict>, Fault> {
        let (shard, local) = (&*session.shard, self.local.clone());
        let (listener, live) = local.live.listener(session.listener_id).ok_or(Fault::NoListener)?;
        let place = Place { shard, local: &local, listener, live };
        let Scratch { path, target, lines, truths, .. } = &mut *shard.scratch.borrow_mut();
        let normal = normal_form(self.head.path_and_query(received), path_options(listener), path);
        let normal = normal.map_err(Fault::Path)?;
        let trusted = trusted_proxies(listener);
        let view = RequestView::new(&self.head, received, &session.connection, normal, trusted);
        let (decision, passes) = match self.weigh(listener, &view, truths) {
            Weighed::Waits(halt) => {
                self.halt = halt;
                return Ok(None);
            }
            Weighed::HoldsOn => {
                self.is_held_on = true;
                return Ok(None);
            }
            Weighed::Decided(decision, passes) => (decision, passes),
        };
        if let (Some(facts), Some(fault)) = (exchange.facts_mut(), self.judge.inspection.fault()) {
            facts.note(Text::Content, fault.to_string().as_bytes());
        }
        let asked = Asked { head: &self.head, received, view: &view, body: self.beside.as_deref() };
        place.compare(session.listener_id, asked, &decision, truths);
        exchange.request_bytes = self.request_bytes();
        // What follows it, if it is refused, can be read.
        exchange.has_whole_request =
            self.body.is_done() && self.head.head_bytes() + self.arrived_bytes == received.len();
        let decided = place.commit(&decision, &view.with_body(self.judge.inspection.evidence()), exchange)?;
        exchange.is_decided(session);
        if let Passes::Never(cause) = passes {
            return Err(Fault::Content(cause));
        }
        self.is_judged = passes == Passes::Judged;
        let has_read = self.has_read();
        if has_read {
            // The switch has seen to it.
            let lines = self.head.lines_mut().iter_mut();
            lines.filter(|line| line.kind == HeaderKind::Expect).for_each(|line| line.dropped = true);
        }
        let used = self.head.head_bytes() + self.cut_off_tail(received);
        let room_bytes = received.capacity() - received.len();
        let (peer, arrived_at) = (session.peer(listener), session.connection.dst);
        let head = &mut self.head;
        let request = Request { head, received, room_bytes, target, lines, peer, arrived_at, normal };
        let filter = std::mem::take(&mut self.trailers);
        let arrived = match has_read {
            true => {
                let body = std::mem::replace(&mut self.body, BodyReader::new(Framing::None));
                Arrived::whole(body, used, filter)
            }
            false => request.follow_body(filter)?,
        };
        let mut verdict = place.settle(request, decided, arrived, exchange)?;
        take_over(&mut verdict, received, lines);
        if let (Verdict::Forward(forward), true) = (&mut verdict, has_read) {
            exchange.request_bytes = self.request_bytes();
            forward.expects_continue = false;
            forward.body_left = self.body_left;
        }
        Ok(Some(verdict))
    }

    /// What the rules say as far as the body has been read, and what that means for the rest of it.
    fn weigh<'l>(&self, listener: &'l Listener, view: &RequestView<'_>, truths: &mut Truths) -> Weighed<'l> {
        let evidence = self.judge.inspection.evidence();
        if let (Some(program), Some(mut halt)) = (&listener.program, self.halt)
            && !self.body.is_done()
            && program.waits_on(&mut halt, &view.with_body(evidence), truths)
        {
            return Weighed::Waits(Some(halt));
        }
        let others = self.judge.inspection.other_readings();
        let decided = request_decision(listener, &view.with_body(evidence), others, truths);
        if matches!(decided.outcome, Outcome::Waits) {
            return Weighed::Waits(Halt::of(&decided));
        }
        let is_unread = !self.has_read() && !self.judge.inspection.checks_label();
        if !decided.outcome.goes_to_a_server() || is_unread {
            return Weighed::Decided(decided, Passes::Unjudged);
        }
        if let Some(fault) = self.judge.inspection.fault() {
            if self.has_given_up {
                // That it is over the limit has decided, and nothing behind that.
                return Weighed::Decided(decided, Passes::Never(fault.cause()));
            }
            // Who decides without the fault has decided before it: what became known since is no part of that.
            let before = evidence.before(fault.cause(), self.late_field(listener));
            let before = decision(listener, &view.with_body(&before), truths);
            let rests_on_fault = matches!(before.outcome, Outcome::Waits);
            let passes = if rests_on_fault { Passes::Unjudged } else { Passes::Never(fault.cause()) };
            return Weighed::Decided(decided, passes);
        }
        let is_full = listener.program.as_ref().is_some_and(|program| program.validate == Validate::Full);
        if !self.judge.inspection.is_reading() || self.body.is_done() {
            return Weighed::Decided(decided, Passes::Unjudged);
        }
        match is_full && !self.is_over_limit() {
            true => Weighed::HoldsOn,
            false => Weighed::Decided(decided, Passes::Judged),
        }
    }

    /// The one field that is known only behind whatever is wrong with a body: its size, where it was not announced.
    fn late_field(&self, listener: &Listener) -> Option<PayloadId> {
        let program = listener.program.as_ref().filter(|_| self.head.framing() == Framing::Chunked)?;
        let sized = program.payloads.iter().position(|payload| payload.place == rules::Place::Size)?;
        Some(program.payloads[sized].id)
    }

    /// Whether some of the body was looked at, or asked for.
    fn has_read(&self) -> bool {
        self.pace.read_bytes > 0 || self.has_said_continue
    }

    /// Takes away what is kept back of a body that goes on being judged. Returns how many of the bytes that came with
    /// the head are left.
    fn cut_off_tail(&mut self, received: &[u8]) -> usize {
        if !self.is_judged {
            return self.arrived_bytes;
        }
        self.hold.cut_off(self.kept_back, &mut self.tail);
        let missing = self.kept_back - self.tail.len();
        let arrived = &received[self.head.head_bytes()..][..self.arrived_bytes];
        let (goes, stays) = arrived.split_at(arrived.len().saturating_sub(missing));
        self.tail.splice(..0, stays.iter().copied());
        goes.len()
    }

    /// What was read ahead goes with the request.
    fn hand_over(self, verdict: &mut Verdict) {
        let Undecided { mut judge, mut hold, tail, pace, is_judged, .. } = self;
        hold.close();
        if let Verdict::Forward(forward) = verdict
            && (is_judged || !hold.is_sent())
        {
            judge.inspection.conclude();
            let judge = is_judged.then_some(judge);
            forward.ahead = Some(Box::new(Ahead { hold: hold.into(), tail, judge, pace, mirror: None }));
        }
    }
}

/// What the rules say of a body as far as it has been read.
enum Weighed<'l> {
    /// More of it must be read.
    Waits(Option<Halt>),
    /// They have decided, and nothing goes to a server before it has proved well-formed.
    HoldsOn,
    Decided(Decision<'l>, Passes),
}

/// How a body that is decided goes to its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Passes {
    /// Its last byte when it has proved well-formed.
    Judged,
    /// As it is: there is nothing more to be found, or the rules take it although something was.
    Unjudged,
    /// Not at all: what is wrong with it was found behind what decided.
    Never(Cause),
}

impl<C: Transport> Session<C> {
    /// Reads on until the rules have decided.
    pub(crate) async fn wait_for_body(
        &mut self,
        mut undecided: Box<Undecided>,
        exchange: &mut Exchange,
    ) -> Result<Verdict, Fault> {
        let _waiting = Waiting::begin(self.shard.recorder.clone(), self.listener.metrics.clone());
        let mut received = undecided.received.take();
        let mut verdict = undecided.read_on(self, &mut received, exchange).await?;
        self.keep_rest(&verdict, received, exchange);
        undecided.hand_over(&mut verdict);
        Ok(verdict)
    }
}

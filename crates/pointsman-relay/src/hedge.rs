//! A second try beside one that is slow: the first answer of the two is taken, and the other server is given up.
//!
//! The second try is made by a session of its own, whose client is nobody, and is polled by the task of the request. So both
//! end with that, whatever ends it.

use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll};

use pointsman_http::Unfinished;
use pointsman_telemetry::{Event, Hedge};

use crate::choice::{Choice, Cost, Picked};
use crate::exchange::{Exchange, Seen};
use crate::facts::Text;
use crate::fault::{Fault, ServerFault};
use crate::in_flight::InFlight;
use crate::local::LocalServer;
use crate::memory::BODY_BYTES;
use crate::mirror::Nobody;
use crate::presence::Ahead;
use crate::reach::{Reached, Tried, failed};
use crate::response_fault::ResponseFault;
use crate::retry::says_nothing;
use crate::session::Session;
use crate::shard::Shard;
use crate::transport::Transport;
use crate::verdict::Forward;

/// A request with a longer body that was held is not sent to two: it is copied beforehand.
const COPY_BYTES_MAX: usize = BODY_BYTES;

/// More than any try may take.
const FOREVER_MS: u32 = 86_400_000;

/// What a try came to.
type Come = Result<Answered, Tried>;

/// A server whose answer's head is there.
struct Answered {
    reached: Reached,
    /// What speaks against taking it, as long as the other server may still answer.
    fault: Option<ServerFault>,
}

/// One of the two servers, and since when it has been asked.
struct Side {
    server: Rc<LocalServer>,
    since_us: u64,
}

/// A second try, which may begin.
struct Beside {
    session: Session<Nobody>,
    exchange: Exchange,
    choice: Choice,
    /// The request, where it is not all in its message.
    copy: Option<Box<Forward>>,
}

/// Whether a second try begins.
enum Begun {
    At(InFlight),
    OverBudget,
    No,
}

/// What came of the first try, where there was no other.
type Alone = (Come, Begun);

/// Where two tries have got to.
enum Stage<F> {
    /// The first of two has come to something, and the second to nothing yet.
    First(Come, Pin<Box<F>>),
    /// The second of two is taken.
    Second(Come),
    /// The second of two was not taken, and then the first has come to something.
    Behind(Come, Come),
}

/// Which of two tries the request goes on with, and what came of the other one, if anything did.
enum Settled {
    First(Come, Option<Come>),
    Second(Option<Come>, Come),
    /// The client has left behind the first.
    Left(Come, Fault),
}

impl<C: Transport> Session<C> {
    /// How long the try that begins now is alone before another server is asked besides; `None`: it stays alone.
    #[inline]
    pub(crate) fn hedge_ms(
        &self,
        server: &LocalServer,
        forward: &Forward,
        exchange: &Exchange,
    ) -> Option<u32> {
        let hedge_ms = server.limits.hedge_ms;
        let may = hedge_ms > 0
            && !exchange.is_hedged
            && exchange.may_repeat()
            && !forward.choice.waits_for_its_own()
            && forward.is_whole_within(COPY_BYTES_MAX)
            && self.has_another_try(server, forward, exchange);
        may.then_some(hedge_ms)
    }

    /// Tries a server, and a second one besides when that has not answered after `hedge_ms`. Where both fail, the exchange is
    /// that of the one that failed last, and nobody has been told of its failure yet. Large: it belongs on the heap.
    pub(crate) async fn try_hedged(
        &mut self,
        hedge_ms: u32,
        in_flight: InFlight,
        forward: &mut Forward,
        exchange: &mut Exchange,
    ) -> Result<Reached, Tried> {
        let shard = self.shard.clone();
        let slow = Side::new(&in_flight, &shard);
        let mut beside = Beside::new(self, forward, exchange);
        let both = {
            let mut first = pin!(self.try_to_head(in_flight, forward, exchange));
            match beside.session.deadline.within(hedge_ms, first.as_mut()).await {
                Ok(come) => Err((come, Begun::No)),
                Err(_) => match beside.begin(&slow.server) {
                    Begun::At(in_flight) => {
                        let side = Side::new(&in_flight, &shard);
                        let mut second = Box::pin(beside.ask(forward, in_flight));
                        let stage = match race(first.as_mut(), second.as_mut()).await {
                            Raced::First(come) => Stage::First(come, second),
                            Raced::Second(come) if is_taken(&come) => Stage::Second(come),
                            Raced::Second(come) => {
                                drop(second);
                                side.tell_failed(&come, &beside.exchange, &shard);
                                Stage::Behind(come, first.await)
                            }
                        };
                        Ok((stage, side))
                    }
                    not => Err((first.await, not)),
                },
            }
        };
        match self.settled(both, &slow, exchange).await {
            Ok((settled, side)) => {
                self.settle_hedge(settled, (slow, side), (forward, exchange), beside.exchange)
            }
            Err((come, begun)) => {
                if matches!(begun, Begun::OverBudget) {
                    exchange.is_hedged = true;
                    self.tell_hedge(Hedge::OverBudget, &slow.server, None, exchange);
                }
                come.map(|answered| answered.reached)
            }
        }
    }

    /// Goes on with whichever is left, if that is needed.
    async fn settled<F: Future<Output = Come>>(
        &mut self,
        both: Result<(Stage<F>, Side), Alone>,
        slow: &Side,
        exchange: &Exchange,
    ) -> Result<(Settled, Side), Alone> {
        let (stage, side) = both?;
        let settled = match stage {
            Stage::Second(come) => Settled::Second(None, come),
            Stage::First(come, mut second) if !is_last_word(&come) => {
                slow.tell_failed(&come, exchange, &self.shard);
                match self.alone(second.as_mut()).await {
                    Ok(answered @ Ok(_)) => Settled::Second(Some(come), answered),
                    Ok(failed) if come.is_err() => Settled::Second(Some(come), failed),
                    // An answer is better than none.
                    Ok(failed) => Settled::First(come, Some(failed)),
                    Err(fault) => Settled::Left(come, fault),
                }
            }
            Stage::First(come, _) => Settled::First(come, None),
            Stage::Behind(answered @ Ok(_), come @ Err(Tried::Failed { .. })) => {
                slow.tell_failed(&come, exchange, &self.shard);
                Settled::Second(Some(come), answered)
            }
            Stage::Behind(failed, come) => Settled::First(come, Some(failed)),
        };
        Ok((settled, side))
    }

    /// A second try goes on alone, as long as the client is there.
    async fn alone(&mut self, mut second: Pin<&mut impl Future<Output = Come>>) -> Result<Come, Fault> {
        loop {
            let poll = |context: &mut Context<'_>, _: &mut C| second.as_mut().poll(context);
            if let Ok(come) = self.while_present(FOREVER_MS, Ahead::Request, poll).await? {
                return Ok(come);
            }
        }
    }

    /// A try that goes on to the end of the answer's head.
    async fn try_to_head(&mut self, in_flight: InFlight, forward: &Forward, exchange: &mut Exchange) -> Come {
        let mut reached = self.try_server(in_flight, forward, exchange).await?;
        let mut unfinished = Unfinished::default();
        loop {
            if let Some(fault) = self.judge(&reached, &mut unfinished, exchange)? {
                return Ok(Answered { reached, fault });
            }
            let has_begun = !reached.answer.is_empty();
            let ms = self.shard.ms_until(reached.answer_until_us);
            let Reached { server, answer, .. } = &mut reached;
            let read = |context: &mut Context<'_>, _: &mut C| server.io.poll_read_into(context, answer);
            match self.while_present(ms, Ahead::Request, read).await.map_err(Tried::GivenUp)? {
                Ok(Ok(1..)) if has_begun => {}
                Ok(Ok(1..)) => exchange.has_first_byte(self),
                Ok(read) => {
                    return Err(match Fault::of_server(&read) {
                        Fault::Server(fault) => failed(fault, Seen::Something),
                        fault => Tried::GivenUp(fault),
                    });
                }
                Err(_) => {
                    reached.server.io.is_given_up();
                    return Err(failed(ServerFault::ResponseTimeout, Seen::Something));
                }
            }
        }
    }

    /// What speaks against an answer whose head is there; nothing while it is not. An interim one is on its way to the
    /// client, and taken.
    fn judge(
        &self,
        reached: &Reached,
        unfinished: &mut Unfinished,
        exchange: &Exchange,
    ) -> Result<Option<Option<ServerFault>>, Tried> {
        if reached.answer.is_empty() {
            return Ok(None);
        }
        let head = &mut self.shard.scratch.borrow_mut().response;
        let limits = reached.server.server().head_limits();
        let is_whole = head.parse_on(&reached.answer, unfinished, exchange.to, &limits);
        if !is_whole
            .map_err(|refusal| failed(ServerFault::Response(ResponseFault::Head(refusal)), Seen::Something))?
        {
            return Ok(None);
        }
        let fault = ServerFault::Status(head.status());
        Ok(Some(exchange.may_try_again(fault, Seen::Something).then_some(fault)))
    }

    /// Says what became of both, and goes on with one.
    fn settle_hedge(
        &self,
        settled: Settled,
        (slow, side): (Side, Side),
        (forward, exchange): (&mut Forward, &mut Exchange),
        hedge: Exchange,
    ) -> Result<Reached, Tried> {
        exchange.is_hedged = true;
        exchange.tries += 1;
        let mut put_aside = |come: &Come, side: &Side, exchange: &Exchange| {
            // What has failed was told when it did. An answer that might have been taken in the end is told of now.
            if let (Ok(_), Some(fault)) = (come, fault_of(come, exchange)) {
                self.shard.has_failed(&side.server, (fault, exchange.is_trial, side.since_us));
            }
            if fault_of(come, exchange).is_some() {
                forward.choice.exclude(&side.server);
            }
        };
        match settled {
            Settled::First(come, second) => {
                second.iter().for_each(|second| put_aside(second, &side, &hedge));
                let what = if second.is_some() { Hedge::Failed } else { Hedge::Lost };
                self.tell_hedge(what, &side.server, Some(&side.server), exchange);
                come.map(|answered| answered.reached)
            }
            Settled::Left(first, fault) => {
                put_aside(&first, &slow, exchange);
                self.tell_hedge(Hedge::Lost, &side.server, Some(&side.server), exchange);
                Err(Tried::GivenUp(fault))
            }
            Settled::Second(first, come) => {
                let is_unseen = matches!(first, Some(Err(Tried::Failed { seen: Seen::Nothing, .. })));
                match (&first, &slow.server.response_time) {
                    (Some(first), _) => put_aside(first, &slow, exchange),
                    // As long as that, at the least.
                    (None, Some(time)) => time.answered(slow.since_us, self.shard.clock),
                    (None, None) => {}
                }
                if let (Ok(_), Some(time)) = (&come, &side.server.response_time) {
                    time.answered(side.since_us, self.shard.clock);
                }
                let what = if come.is_ok() { Hedge::Won } else { Hedge::Failed };
                self.tell_hedge(what, &side.server, Some(&slow.server), exchange);
                forward.was_sent();
                self.goes_on_with(hedge, exchange);
                match come {
                    Err(Tried::Failed { fault, .. }) if !is_unseen => Err(failed(fault, Seen::Something)),
                    come => come.map(|answered| answered.reached),
                }
            }
        }
    }

    fn tell_hedge(
        &self,
        what: Hedge,
        server: &LocalServer,
        other: Option<&LocalServer>,
        exchange: &mut Exchange,
    ) {
        self.shard.recorder.hear(&Event::Hedged(&server.metrics, what));
        if let Some(facts) = exchange.facts_mut() {
            facts.hedge = Some(what);
            if let Some(other) = other {
                facts.note(Text::OtherServer, other.metrics.name().as_bytes());
            }
        }
    }

    /// An exchange goes on with its second try.
    fn goes_on_with(&self, mut hedge: Exchange, exchange: &mut Exchange) {
        exchange.goes_on_with(&mut hedge);
        if let Some(facts) = hedge.take_facts() {
            self.shard.spare_facts.give_back(facts);
        }
    }
}

impl Beside {
    fn new<C: Transport>(session: &Session<C>, forward: &Forward, exchange: &Exchange) -> Beside {
        let copy = forward.ahead.as_ref().map(|ahead| {
            let mut message = session.shard.buffers.waiting();
            let hold = ahead.hold.borrow();
            let pieces = || [forward.message.as_slice()].into_iter().chain(hold.pieces());
            // Without memory for it it stays empty.
            if message.reserve(pieces().map(<[u8]>::len).sum()) {
                pieces().for_each(|piece| message.extend_from_slice(piece));
            }
            Box::new(Forward::whole(message, forward.choice.beside()))
        });
        let mut beside = session.beside(Nobody);
        beside.owner = session.owner;
        let (exchange, choice) = (exchange.of_hedge(), forward.choice.beside());
        Beside { session: beside, exchange, choice, copy }
    }

    /// Takes a place at another server than the slow one, if there is a healthy one that has room, and a try left.
    fn begin(&mut self, slow: &LocalServer) -> Begun {
        let Beside { session, exchange, choice, copy } = self;
        let shard = session.shard.clone();
        choice.pass_over(slow);
        exchange.booked = shard.buffers.exchange(0, false);
        let is_copied = copy.as_ref().is_none_or(|copy| !copy.message.is_empty());
        if exchange.booked.is_none() || !is_copied || !choice.has_any(&shard) {
            return Begun::No;
        }
        let in_flight = match choice.pick(Cost::One, &shard) {
            Picked::Server(in_flight) => in_flight,
            Picked::OverBudget => return Begun::OverBudget,
            Picked::Full | Picked::Nobody => return Begun::No,
        };
        exchange.is_trial = choice.is_trial;
        session.begin_at(in_flight.server(), exchange);
        if shard.recorder.wants_facts() {
            exchange.keep(shard.spare_facts.take());
        }
        Begun::At(in_flight)
    }

    /// The second try.
    async fn ask(&mut self, forward: &Forward, in_flight: InFlight) -> Come {
        let Beside { session, exchange, copy, .. } = self;
        let forward = copy.as_deref().unwrap_or(forward);
        session.try_to_head(in_flight, forward, exchange).await
    }
}

impl Side {
    fn new(in_flight: &InFlight, shard: &Shard) -> Side {
        Side { server: in_flight.server().clone(), since_us: shard.clock.now_us() }
    }

    /// Tells of a failure, if it was one; `exchange` is what the try was made with.
    fn tell_failed(&self, come: &Come, exchange: &Exchange, shard: &Shard) {
        if let (Err(_), Some(fault)) = (come, fault_of(come, exchange)) {
            shard.has_failed(&self.server, (fault, exchange.is_trial, self.since_us));
        }
    }
}

/// What a try says against its server, if anything.
fn fault_of(come: &Come, exchange: &Exchange) -> Option<ServerFault> {
    let fault = match come {
        Ok(Answered { fault, .. }) => *fault,
        Err(Tried::Failed { fault, .. }) => Some(*fault),
        Err(Tried::GivenUp(_)) => None,
    };
    fault.filter(|fault| !says_nothing(*fault, exchange.reused))
}

/// Whether an answer is taken whatever another server may say.
fn is_taken(come: &Come) -> bool {
    matches!(come, Ok(Answered { fault: None, .. }))
}

/// Whether another server cannot bring anything better.
fn is_last_word(come: &Come) -> bool {
    is_taken(come) || matches!(come, Err(Tried::GivenUp(_)))
}

/// Which of two has come to something.
enum Raced {
    First(Come),
    Second(Come),
}

/// Both at a time, until one of them has come to something.
async fn race(
    mut first: Pin<&mut impl Future<Output = Come>>,
    mut second: Pin<&mut impl Future<Output = Come>>,
) -> Raced {
    std::future::poll_fn(|context| {
        if let Poll::Ready(come) = first.as_mut().poll(context) {
            return Poll::Ready(Raced::First(come));
        }
        second.as_mut().poll(context).map(Raced::Second)
    })
    .await
}

//! The requests of a connection that are on their way, in the order of their answers.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll};

use pointsman_net::{Booking, PooledBuffer};

use crate::exchange::Exchange;
use crate::fault::Fault;
use crate::pipeline::slot::{Line, Place, Slot};
use crate::session::{After, Session};
use crate::transport::Transport;

/// Requests on their way.
pub(crate) struct Slots {
    entries: VecDeque<Entry>,
    line: Rc<Line>,
    /// Sessions of requests that were answered. To make one writes what other threads read.
    spare: Vec<Session<Slot>>,
}

struct Entry {
    place: Rc<Place>,
    way: Pin<Box<dyn Future<Output = (After, Session<Slot>)>>>,
    /// What it came to, where it ended before its turn.
    ended: Option<After>,
}

impl Slots {
    pub(crate) fn new(line: Rc<Line>) -> Slots {
        Slots { entries: VecDeque::new(), line, spare: Vec::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The one whose turn it is.
    pub(crate) fn first(&self) -> Option<&Place> {
        self.entries.front().map(|entry| &*entry.place)
    }

    /// Keeps no more than one request in turn needs.
    pub(crate) fn rest(&mut self) {
        self.spare.truncate(1);
        self.spare.shrink_to(1);
        self.entries.shrink_to(1);
    }

    /// Sends a request on, behind all others. `home` is the connection's own session.
    pub(crate) fn push<C: Transport>(
        &mut self,
        home: &mut Session<C>,
        request: PooledBuffer,
        (was_awaited, booked): (bool, (Booking, Booking)),
    ) {
        let place = Rc::new(Place::new(self.line.clone()));
        match self.entries.back() {
            Some(before) => before.place.is_last.set(false),
            None => place.begin_turn(),
        }
        let slot = Slot::new(place.clone(), home.shard.clone());
        let mut session = match self.spare.pop() {
            Some(mut session) => {
                session.io = slot;
                session
            }
            None => home.beside(slot),
        };
        session.begin_beside(home, request, was_awaited);
        let way = Box::pin(way(session, place.clone(), booked));
        self.entries.push_back(Entry { place, way, ended: None });
    }

    /// Nobody waits any more for answers that have not come whole. Says whether that is new for one of them.
    pub(crate) fn overtake(&mut self) -> bool {
        let ended = |entry: &&Entry| entry.ended.is_none();
        self.entries.iter().filter(ended).fold(false, |is_new, entry| entry.place.overtake() | is_new)
    }

    /// Lets each go on. Ready when the first is over, with what becomes of the connection; where that ends, so do all.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> Poll<After> {
        let mut at = 0;
        while let Some(entry) = self.entries.get_mut(at) {
            if entry.ended.is_none()
                && let Poll::Ready((after, session)) = entry.way.as_mut().poll(context)
            {
                entry.ended = Some(after);
                if after == After::Next {
                    self.spare.push(session);
                }
            }
            if at == 0
                && let Some(after) = entry.ended
            {
                if after != After::Next {
                    self.end(context);
                    return Poll::Ready(after);
                }
                self.entries.pop_front();
                if let Some(next) = self.entries.front() {
                    next.place.begin_turn();
                }
                return Poll::Ready(After::Next);
            }
            at += 1;
        }
        Poll::Pending
    }

    /// Ends those behind the first one: each has a last turn, to say so.
    fn end(&mut self, context: &mut Context<'_>) {
        self.line.end(Fault::Dropped);
        for entry in self.entries.iter_mut().skip(1).filter(|entry| entry.ended.is_none()) {
            entry.ended = match entry.way.as_mut().poll(context) {
                Poll::Ready((after, _)) => Some(after),
                Poll::Pending => None,
            };
            debug_assert!(entry.ended.is_some(), "it waits for something that does not hear of the end");
        }
    }
}

/// The way of one request, until its answer has gone to the client or cannot any more.
async fn way(
    mut session: Session<Slot>,
    place: Rc<Place>,
    (of_slot, of_exchange): (Booking, Booking),
) -> (After, Session<Slot>) {
    // The exchange books it for itself before anybody else has a turn.
    drop(of_exchange);
    let mut exchange = Exchange::default();
    let ended = {
        let mut way = pin!(session.exchange(&mut exchange));
        let mut is_known = false;
        poll_fn(|context| {
            // What the log says of a request is known when its exchange has begun.
            if std::mem::replace(&mut is_known, true)
                && let Some(fault) = place.cut()
            {
                return Poll::Ready(Err(fault));
            }
            way.as_mut().poll(context)
        })
        .await
    };
    let mut after = match ended {
        Ok(after) => after,
        Err(fault) => session.refuse(fault, &mut exchange).await,
    };
    // What waits for its turn has booked its own room.
    exchange.booked = None;
    if !matches!(after, After::Leave | After::Reset)
        && let Err(fault) = place.sent().await
    {
        exchange.fault.get_or_insert(fault);
        after = After::Leave;
    }
    if place.sent_bytes() == 0 {
        exchange.status = 0;
        exchange.response_bytes = 0;
    }
    exchange.tell(&session);
    session.is_amid_answer = false;
    session.early = None;
    drop(of_slot);
    (after, session)
}

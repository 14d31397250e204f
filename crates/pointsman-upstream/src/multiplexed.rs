//! HTTP/2 connections to servers, each shared by many requests.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use pointsman_h2::{Requests, ServerLimits, ServerStream};
use pointsman_net::{Booking, spawn};

use crate::{Connection, Owner, Place, ServerId};

/// The HTTP/2 connections of one thread.
#[derive(Debug, Default)]
pub struct Multiplexed {
    open: RefCell<HashMap<Place, Vec<Rc<Shared>>>>,
    /// Places to which a connection is being opened, and who waits for it.
    opening: RefCell<HashMap<Place, Vec<Waker>>>,
}

/// A connection that requests share.
#[derive(Debug)]
struct Shared {
    requests: RefCell<Requests>,
    streams: Cell<u32>,
    streams_max: u32,
    idle_since_ms: Cell<u64>,
    /// What the connection takes of the memory.
    _booked: Booking,
}

/// How a connection is shared.
#[derive(Clone, Copy, Debug)]
pub struct Sharing {
    /// Requests at a time, if the server takes so many.
    pub streams_max: u32,
    /// What its server may take.
    pub limits: ServerLimits,
}

/// A request's stream on a shared connection.
#[derive(Debug)]
pub struct OnStream {
    stream: ServerStream,
    shared: Rc<Shared>,
    /// What the request takes of the memory.
    pub(crate) in_use: Option<Booking>,
}

/// Whoever opens a connection holds this until it is open, or cannot be.
#[derive(Debug)]
pub struct Opening<'a> {
    all: &'a Multiplexed,
    place: Place,
}

impl Multiplexed {
    /// A stream on an open connection that has room for one more.
    pub fn take(&self, place: Place) -> Option<Connection> {
        let mut open = self.open.borrow_mut();
        let shared = open.get_mut(&place)?;
        shared.retain(|shared| shared.requests.borrow_mut().is_open());
        // The fullest that has room, so that the others can become idle and go.
        let fullest =
            shared.iter().filter(|shared| shared.has_room()).max_by_key(|shared| shared.streams.get());
        let stream = fullest.and_then(Shared::begin);
        if shared.is_empty() {
            open.remove(&place);
        }
        stream
    }

    /// Lets the caller open a connection, unless somebody does so already.
    pub fn begin_opening(&self, place: Place) -> Option<Opening<'_>> {
        let mut opening = self.opening.borrow_mut();
        if opening.contains_key(&place) {
            return None;
        }
        opening.insert(place, Vec::new());
        Some(Opening { all: self, place })
    }

    /// Waits until nobody opens a connection there.
    pub fn poll_opened(&self, place: Place, context: &Context<'_>) -> Poll<()> {
        match self.opening.borrow_mut().get_mut(&place) {
            None => Poll::Ready(()),
            Some(waiting) => {
                if !waiting.iter().any(|waker| waker.will_wake(context.waker())) {
                    waiting.push(context.waker().clone());
                }
                Poll::Pending
            }
        }
    }

    /// Shares a connection from now on, and gives the first stream on it. `booked` is given back when it closes.
    ///
    /// # Errors
    /// It broke at once.
    pub async fn share(
        &self,
        place: Place,
        connection: Connection,
        sharing: Sharing,
        booked: Booking,
    ) -> io::Result<Connection> {
        let is_https = connection.plain().is_none();
        let opened = pointsman_h2::open(connection, is_https, &sharing.limits).await;
        let (requests, mut driven) = opened.map_err(io::Error::other)?;
        spawn(async move {
            // However it ends, its streams say so.
            let (Ok(()) | Err(_)) = poll_fn(|context| driven.poll_run(context)).await;
        });
        let shared = Rc::new(Shared {
            requests: RefCell::new(requests),
            streams: Cell::new(0),
            streams_max: sharing.streams_max,
            idle_since_ms: Cell::new(0),
            _booked: booked,
        });
        let first = Shared::begin(&shared).ok_or(io::ErrorKind::ConnectionReset)?;
        self.open.borrow_mut().entry(place).or_default().push(shared);
        Ok(first)
    }

    /// Closes what has had no request for as long as `idle_ms_max` says for its server, and what belongs to servers
    /// for which it says nothing.
    pub fn sweep(&self, now_ms: u64, idle_ms_max: impl Fn(ServerId) -> Option<u32>) {
        self.open.borrow_mut().retain(|place, shared| {
            let max = idle_ms_max(place.server);
            shared.retain(|shared| max.is_some_and(|max| !shared.is_idle_at(now_ms, max)));
            !shared.is_empty()
        });
    }

    /// Closes what is for that client alone, behind the requests that are on it.
    pub fn close_owned(&self, owner: Owner) {
        if !self.open.borrow().is_empty() {
            self.open.borrow_mut().retain(|place, _| place.owner != Some(owner));
        }
    }
}

impl Shared {
    fn has_room(&self) -> bool {
        let max = (self.streams_max as usize).min(self.requests.borrow().streams_max());
        (self.streams.get() as usize) < max
    }

    fn begin(shared: &Rc<Shared>) -> Option<Connection> {
        let stream = shared.requests.borrow_mut().begin()?;
        shared.streams.set(shared.streams.get() + 1);
        shared.idle_since_ms.set(0);
        let on = OnStream { stream, shared: shared.clone(), in_use: None };
        Some(Connection::Stream(Box::new(on)))
    }

    /// Whether nothing has been on it for so long. The time begins when it is first found idle.
    fn is_idle_at(&self, now_ms: u64, idle_ms_max: u32) -> bool {
        if self.streams.get() > 0 {
            return false;
        }
        match self.idle_since_ms.get() {
            0 => {
                self.idle_since_ms.set(now_ms.max(1));
                false
            }
            since_ms => now_ms.saturating_sub(since_ms) >= u64::from(idle_ms_max),
        }
    }
}

impl OnStream {
    pub(crate) fn stream(&mut self) -> &mut ServerStream {
        &mut self.stream
    }
}

impl Drop for OnStream {
    fn drop(&mut self) {
        self.shared.streams.set(self.shared.streams.get() - 1);
    }
}

impl Drop for Opening<'_> {
    fn drop(&mut self) {
        let waiting = self.all.opening.borrow_mut().remove(&self.place);
        waiting.into_iter().flatten().for_each(Waker::wake);
    }
}

/// Reads from a stream into room that is made for it.
pub(crate) fn poll_read_stream(
    stream: &mut ServerStream,
    context: &mut Context<'_>,
    buffer: &mut pointsman_net::PooledBuffer,
) -> Poll<io::Result<usize>> {
    let room = match stream.poll_room(context) {
        Poll::Ready(room) => room?,
        Poll::Pending => {
            buffer.release_if_empty();
            return Poll::Pending;
        }
    };
    if !buffer.make_room() || !buffer.reserve(room) {
        return Poll::Ready(Err(io::ErrorKind::OutOfMemory.into()));
    }
    let read = stream.poll_read(context, buffer);
    if read.is_pending() {
        buffer.release_if_empty();
    }
    read
}

//! HTTP/2 connections to servers, each shared by many requests.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker};

use pointsman_h2::{Requests, ServerConnection, ServerLimits, ServerStream};
use pointsman_net::{Booking, PooledBuffer, Task, spawn};

use crate::traffic::{Metered, Traffic};
use crate::{Connection, Owner, Place, ServerId};

/// How long a connection that nobody shares any more has for what is still to be sent.
const LAST_WORDS_MS: u64 = 2000;

/// The HTTP/2 connections of one thread.
#[derive(Debug, Default)]
pub struct Multiplexed {
    open: Rc<Open>,
    /// Places to which a connection is being opened, and who waits for it.
    opening: Rc<RefCell<HashMap<Place, Vec<Waker>>>>,
}

#[derive(Debug, Default)]
struct Open {
    places: RefCell<HashMap<Place, Vec<Rc<Shared>>>>,
    /// Connections that have not ended, also where no more requests are to begin on them.
    driven: RefCell<HashMap<u64, Driven>>,
    /// How many there have been, to tell them apart.
    begun: Cell<u64>,
}

/// A connection that has not ended.
#[derive(Debug)]
struct Driven {
    task: Task,
    shared: Weak<Shared>,
    /// Since when nobody shares it any more; 0: it is shared.
    left_since_ms: u64,
}

/// A connection that requests share.
struct Shared {
    requests: RefCell<Requests>,
    streams: Cell<u32>,
    streams_max: u32,
    keeps_idle: bool,
    stream_window_bytes: u32,
    idle_since_ms: Cell<u64>,
    traffic: Rc<Traffic>,
    on_rest: Box<dyn Fn(Rest)>,
    /// Whether no more requests begin on it: its server has kept silent for longer than one may take, and may be gone;
    /// or it has none and is not kept.
    is_leaving: Cell<bool>,
}

/// That no request is on a connection, for whoever counts those.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// The last request is over.
    Begins,
    /// Another one begins, or the connection closes.
    Ends,
}

/// How a connection is shared.
#[derive(Clone, Copy, Debug)]
pub struct Sharing {
    /// Requests at a time, if the server takes so many.
    pub streams_max: u32,
    /// Whether it stays open without a request.
    pub keeps_idle: bool,
    /// What its server may take.
    pub limits: ServerLimits,
}

/// A request's stream on a shared connection.
#[derive(Debug)]
pub struct OnStream {
    stream: ServerStream,
    shared: Rc<Shared>,
    /// What had come on the connection when the request began.
    heard_bytes: u64,
    /// What the request takes of the memory.
    pub(crate) in_use: Option<Booking>,
}

/// Whoever opens a connection holds this until it is open, or cannot be.
#[derive(Debug)]
pub struct Opening {
    open: Rc<Open>,
    all: Rc<RefCell<HashMap<Place, Vec<Waker>>>>,
    place: Place,
}

impl Multiplexed {
    /// A stream on an open connection that has room for one more.
    pub fn take(&self, place: Place) -> Option<Connection> {
        let mut open = self.open.places.borrow_mut();
        let shared = open.get_mut(&place)?;
        shared.retain(|shared| shared.is_open() && !shared.is_leaving.get());
        // The fullest that has room, so that the others can become idle and go.
        let fullest =
            shared.iter().filter(|shared| shared.has_room()).max_by_key(|shared| shared.streams.get());
        let stream = fullest.and_then(Shared::begin);
        if shared.is_empty() {
            open.remove(&place);
        }
        stream
    }

    /// Whether the server has said, on a connection that is open, that it takes no requests at all for now (RFC 9113
    /// section 6.5.2). Another connection would hear the same.
    pub fn takes_none(&self, place: Place) -> bool {
        let open = self.open.places.borrow();
        open.get(&place).is_some_and(|shared| shared.iter().any(|shared| shared.takes_none()))
    }

    /// Lets the caller open a connection, unless somebody does so already.
    pub fn begin_opening(&self, place: Place) -> Option<Opening> {
        let mut opening = self.opening.borrow_mut();
        if opening.contains_key(&place) {
            return None;
        }
        opening.insert(place, Vec::new());
        Some(Opening { open: self.open.clone(), all: self.opening.clone(), place })
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

    /// Closes what has had no request for as long as `idle_ms_max` says for its server, what belongs to servers for
    /// which it says nothing, and what has ended. To be called once a second.
    pub fn sweep(&self, now_ms: u64, idle_ms_max: impl Fn(ServerId) -> Option<u32>) {
        self.open.places.borrow_mut().retain(|place, shared| {
            let max = idle_ms_max(place.server);
            shared.retain(|shared| {
                shared.traffic.is_older();
                shared.is_open()
                    && !shared.is_leaving.get()
                    && max.is_some_and(|max| !shared.is_idle_at(now_ms, max))
            });
            !shared.is_empty()
        });
        // A server that does not read takes no farewell either.
        let silent: Vec<_> =
            self.open.driven.borrow_mut().extract_if(|_, driven| driven.has_left(now_ms)).collect();
        silent.into_iter().for_each(|(_, driven)| driven.task.abort());
    }

    /// Closes what is for that client alone, behind the requests that are on it.
    pub fn close_owned(&self, owner: Owner) {
        if !self.open.places.borrow().is_empty() {
            self.open.places.borrow_mut().retain(|place, _| place.owner != Some(owner));
        }
    }

    /// Closes all, behind the requests that are on them. Says how many have not ended yet.
    pub fn close_all(&self) -> usize {
        self.open.places.borrow_mut().clear();
        self.open.driven.borrow().len()
    }
}

impl Opening {
    /// Shares a connection from now on, and gives the first stream on it. Others get theirs when the server has said
    /// how many it takes. `on_rest` hears when no request is on it; `booked` is given back when it closes.
    ///
    /// # Errors
    /// It broke at once.
    pub async fn share(
        self,
        connection: Connection,
        sharing: Sharing,
        booked: Booking,
        on_rest: Box<dyn Fn(Rest)>,
    ) -> io::Result<Connection> {
        let is_https = connection.plain().is_none();
        let traffic = Rc::new(Traffic::default());
        let metered = Metered { connection, traffic: traffic.clone() };
        let opened = pointsman_h2::open(metered, is_https, &sharing.limits).await;
        let (mut requests, driven) = opened.map_err(io::Error::other)?;
        let stream = requests.begin().ok_or(io::ErrorKind::ConnectionReset)?;
        let shared = Rc::new(Shared {
            requests: RefCell::new(requests),
            streams: Cell::new(0),
            streams_max: sharing.streams_max,
            keeps_idle: sharing.keeps_idle,
            stream_window_bytes: sharing.limits.stream_window_bytes,
            idle_since_ms: Cell::new(0),
            traffic,
            on_rest,
            is_leaving: Cell::new(false),
        });
        let first = Shared::on(&shared, stream);
        let open = self.open.clone();
        open.places.borrow_mut().entry(self.place).or_default().push(shared.clone());
        let number = open.begun.get();
        open.begun.set(number + 1);
        let shared = Rc::downgrade(&shared);
        let task = spawn(drive(driven, shared.clone(), self, (number, booked)));
        open.driven.borrow_mut().insert(number, Driven { task, shared, left_since_ms: 0 });
        Ok(first)
    }
}

impl Driven {
    /// Whether nobody has shared it for as long as its last words may take.
    fn has_left(&mut self, now_ms: u64) -> bool {
        if self.shared.strong_count() > 0 {
            return false;
        }
        if self.left_since_ms == 0 {
            self.left_since_ms = now_ms.max(1);
        }
        now_ms.saturating_sub(self.left_since_ms) >= LAST_WORDS_MS
    }
}

/// Drives a connection to its end. Who waits for it goes on when its server has said how many streams it takes. What it
/// has booked is given back then.
async fn drive(
    mut driven: ServerConnection<Metered>,
    shared: Weak<Shared>,
    opening: Opening,
    (number, _booked): (u64, Booking),
) {
    let open = opening.open.clone();
    let mut opening = Some(opening);
    // However it ends, its streams say so.
    let (Ok(()) | Err(_)) = poll_fn(|context| {
        let ended = driven.poll_run(context);
        if shared.upgrade().is_none_or(|shared| shared.requests.borrow().has_settings()) {
            opening = None;
        }
        ended
    })
    .await;
    open.driven.borrow_mut().remove(&number);
}

impl Shared {
    fn has_room(&self) -> bool {
        let max = (self.streams_max as usize).min(self.requests.borrow().streams_max());
        (self.streams.get() as usize) < max
    }

    fn takes_none(&self) -> bool {
        self.requests.borrow().streams_max() == 0
    }

    fn is_open(&self) -> bool {
        self.requests.borrow_mut().is_open()
    }

    fn begin(shared: &Rc<Shared>) -> Option<Connection> {
        let stream = shared.requests.borrow_mut().begin()?;
        if shared.streams.get() == 0 {
            (shared.on_rest)(Rest::Ends);
        }
        Some(Shared::on(shared, stream))
    }

    fn on(shared: &Rc<Shared>, stream: ServerStream) -> Connection {
        shared.streams.set(shared.streams.get() + 1);
        shared.idle_since_ms.set(0);
        // So much of its answer may come that nobody has read, or wants any more.
        shared.traffic.allow(u64::from(shared.stream_window_bytes));
        let heard_bytes = shared.traffic.read_bytes();
        let on = OnStream { stream, shared: shared.clone(), heard_bytes, in_use: None };
        Connection::Stream(Box::new(on))
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

/// It closes only when no request is on it.
impl Drop for Shared {
    fn drop(&mut self) {
        (self.on_rest)(Rest::Ends);
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("streams", &self.streams).finish_non_exhaustive()
    }
}

impl OnStream {
    /// Says that the request has waited for as long as it may. Where nothing at all has come meanwhile, no more requests
    /// begin on the connection.
    pub(crate) fn is_given_up(&self) {
        let Shared { traffic, is_leaving, .. } = &*self.shared;
        is_leaving.set(is_leaving.get() || traffic.read_bytes() == self.heard_bytes);
    }

    /// Reads some of the answer.
    pub(crate) fn poll_read_into(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut PooledBuffer,
    ) -> Poll<io::Result<usize>> {
        let read = poll_read_stream(&mut self.stream, context, buffer);
        if let Poll::Ready(Ok(bytes)) = read {
            self.shared.traffic.is_useful(bytes);
        }
        read
    }

    /// Writes some of the request.
    pub(crate) fn poll_write(&mut self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = self.stream.poll_write(context, bytes);
        if let Poll::Ready(Ok(bytes)) = written {
            self.shared.traffic.is_useful(bytes);
        }
        written
    }
}

impl Drop for OnStream {
    fn drop(&mut self) {
        let Shared { streams, on_rest, keeps_idle, is_leaving, .. } = &*self.shared;
        streams.set(streams.get() - 1);
        if streams.get() == 0 {
            on_rest(Rest::Begins);
            is_leaving.set(is_leaving.get() || !keeps_idle);
        }
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        let waiting = self.all.borrow_mut().remove(&self.place);
        waiting.into_iter().flatten().for_each(Waker::wake);
    }
}

/// Reads from a stream into room that is made for it.
fn poll_read_stream(
    stream: &mut ServerStream,
    context: &mut Context<'_>,
    buffer: &mut PooledBuffer,
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

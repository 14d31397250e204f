//! Places for connections: when all are taken, whoever has been silent longest gives way.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use pointsman_net::PooledBuffer;

use crate::stream::Stream;

/// Places for so many connections at a time.
pub(crate) struct Places(Rc<Shared>);

struct Shared {
    max: usize,
    taken: RefCell<Vec<Rc<State>>>,
    /// Counts what was heard, to tell who has been silent longest.
    heard: Cell<u64>,
    /// Who waits for a place.
    waiting: Cell<Option<Waker>>,
}

/// How a connection that has a place stands.
struct State {
    heard_last: Cell<u64>,
    is_answered: Cell<bool>,
    must_go: Cell<bool>,
    task: Cell<Option<Waker>>,
}

/// The place of one connection, which is free again when this is dropped.
pub(crate) struct Place {
    shared: Rc<Shared>,
    state: Rc<State>,
}

impl Places {
    pub(crate) fn new(max: usize) -> Places {
        let (taken, heard) = (RefCell::default(), Cell::new(0));
        Places(Rc::new(Shared { max, taken, heard, waiting: Cell::new(None) }))
    }

    /// Waits for a place. Where there is none, the connection that has been silent longest is told to go; one
    /// that is being answered is not silent. Only one task may wait at a time.
    pub(crate) async fn take(&self) -> Place {
        std::future::poll_fn(|context| self.0.poll_take(context)).await
    }
}

impl Shared {
    fn poll_take(self: &Rc<Self>, context: &Context<'_>) -> Poll<Place> {
        let mut taken = self.taken.borrow_mut();
        if taken.len() < self.max {
            let state = Rc::new(State {
                heard_last: Cell::new(self.next()),
                is_answered: Cell::new(false),
                must_go: Cell::new(false),
                task: Cell::new(None),
            });
            taken.push(state.clone());
            return Poll::Ready(Place { shared: self.clone(), state });
        }
        self.waiting.set(Some(context.waker().clone()));
        let silent = taken.iter().filter(|state| !state.is_answered.get());
        if !taken.iter().any(|state| state.must_go.get())
            && let Some(first) = silent.min_by_key(|state| state.heard_last.get())
        {
            first.must_go.set(true);
            // One that has had no turn yet sees it at its first.
            first.task.take().into_iter().for_each(Waker::wake);
        }
        Poll::Pending
    }

    fn next(&self) -> u64 {
        self.heard.set(self.heard.get() + 1);
        self.heard.get()
    }

    fn look_again(&self) {
        self.waiting.take().into_iter().for_each(Waker::wake);
    }
}

impl Place {
    /// Appends what can be read to `received`; 0 is the end. The error is [`io::ErrorKind::ConnectionAborted`]
    /// where the connection must go.
    pub(crate) async fn read(&self, stream: &mut Stream, received: &mut PooledBuffer) -> io::Result<usize> {
        std::future::poll_fn(|context| {
            let read = stream.poll_read_into(context, received);
            let tcp = stream.tcp();
            // What it has said may be here and not heard of yet. Urgent data says nothing, and hides whether
            // there is more.
            let says_nothing = || !self.state.must_go.get() || tcp.had_urgent_data() || tcp.is_quiet();
            let is_silent = read.is_pending() && says_nothing();
            if is_silent && self.state.must_go.get() {
                return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
            }
            if !is_silent {
                self.is_heard();
            }
            self.state.task.set(Some(context.waker().clone()));
            read
        })
        .await
    }

    /// Does the work of a handshake, which counts as silence until it is done. The error is as of [`Place::read`].
    pub(crate) async fn shake<T>(&self, handshake: impl Future<Output = io::Result<T>>) -> io::Result<T> {
        let shaken = self.wait(handshake).await?;
        self.is_heard();
        Ok(shaken)
    }

    /// The same of what is no news of the client however it ends.
    pub(crate) async fn wait<T>(&self, handshake: impl Future<Output = io::Result<T>>) -> io::Result<T> {
        let mut handshake = Box::pin(handshake);
        let shaken = std::future::poll_fn(|context| {
            let shaken = handshake.as_mut().poll(context);
            if shaken.is_pending() && self.state.must_go.get() {
                return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
            }
            self.state.task.set(Some(context.waker().clone()));
            shaken
        });
        shaken.await
    }

    /// From now on it is being answered.
    pub(crate) fn is_answered(&self) {
        self.state.is_answered.set(true);
        self.is_heard();
    }

    /// Another one has been silent for longer.
    fn is_heard(&self) {
        self.state.heard_last.set(self.shared.next());
        if self.state.must_go.replace(false) {
            self.shared.look_again();
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.shared.taken.borrow_mut().retain(|state| !Rc::ptr_eq(state, &self.state));
        self.shared.look_again();
    }
}

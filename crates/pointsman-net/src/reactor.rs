//! Which sockets of a thread are ready: edge-triggered epoll, and what each socket was last heard to be.
//!
//! A socket is registered once, for everything, and stays registered for as long as it lives. An edge sets
//! a flag; reading and writing clear it when the kernel has nothing left or no room. So a request costs its
//! reads and writes and no other system call.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use rustix::event::epoll;
use rustix::time::Timespec;
use slab::Slab;

/// Events fetched from the kernel at a time.
const EVENTS_MAX: usize = 512;

/// Operations on sockets in one turn of a task. One that always finds more to do makes room for the others
/// then, and goes on in the next round.
const OPERATIONS_A_TURN: u32 = 128;

/// Bytes that they may move, those that are read and those that are written. One operation of a pipe can be as much as half
/// of it, so that bounds how long a turn is where operations alone do not: this is 1 MiB of a body.
const BYTES_A_TURN: usize = 2 << 20;

/// What every socket is registered for.
const INCOMING: epoll::EventFlags = epoll::EventFlags::IN
    .union(epoll::EventFlags::PRI)
    .union(epoll::EventFlags::RDHUP)
    .union(epoll::EventFlags::ET);

/// Whether a new socket takes bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Writing {
    /// It is connected, and nothing was written yet.
    HasRoom,
    /// It is connecting: the kernel says when.
    Unknown,
}

/// The sockets of one thread.
pub(crate) struct Reactor {
    epoll: OwnedFd,
    sources: RefCell<Slab<Rc<Readiness>>>,
    /// The turn of the next one.
    next_turn: Cell<u16>,
    operations_left: Cell<u32>,
    bytes_left: Cell<usize>,
}

/// What was heard of one socket.
#[derive(Default)]
struct Readiness {
    readable: Cell<bool>,
    writable: Cell<bool>,
    /// Whether the kernel was asked to tell when there is room again.
    hears_room: Cell<bool>,
    /// The peer has closed, or the socket broke: there is always something to read, if only the end.
    hung_up: Cell<bool>,
    /// The socket broke, or both sides have closed.
    broken: Cell<bool>,
    /// Urgent data came (RFC 6093). Reading leaves its byte out and stops short of it, so a short read does not
    /// mean that the kernel has no more.
    urgent: Cell<bool>,
    reader: Cell<Option<Waker>>,
    writer: Cell<Option<Waker>>,
    /// Which of those that have had its number it is.
    turn: u16,
}

/// Bits of an event's data that are the number of a socket; the others are its turn.
const NUMBER_BITS: u32 = 48;

/// How the other end of a connection stands, as far as the event loop has heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It may still send.
    Open,
    /// It sends nothing more behind what is here, and may still read.
    Ended,
    /// It is gone, or both sides have closed.
    Broken,
}

/// A registered socket's place. It must live as long as the socket is used and no longer.
pub(crate) struct Source {
    reactor: Rc<Reactor>,
    readiness: Rc<Readiness>,
    number: usize,
}

impl Reactor {
    pub(crate) fn new() -> io::Result<Reactor> {
        Ok(Reactor {
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            sources: RefCell::default(),
            next_turn: Cell::default(),
            operations_left: Cell::new(OPERATIONS_A_TURN),
            bytes_left: Cell::new(BYTES_A_TURN),
        })
    }

    /// Registers a socket. `writing` says whether there is room to write in it, which the kernel is asked to
    /// tell only when that ends: few sockets are ever full.
    pub(crate) fn register(self: &Rc<Reactor>, fd: impl AsFd, writing: Writing) -> io::Result<Source> {
        let flags = match writing {
            Writing::HasRoom => INCOMING,
            Writing::Unknown => INCOMING | epoll::EventFlags::OUT,
        };
        self.add(fd, writing, flags)
    }

    /// Registers a listening socket that is in the event loops of other threads too.
    pub(crate) fn register_shared(self: &Rc<Reactor>, fd: impl AsFd) -> io::Result<Source> {
        use epoll::EventFlags as Flags;
        self.add(fd, Writing::HasRoom, Flags::IN | Flags::ET | Flags::EXCLUSIVE)
    }

    /// Registers what ends a wait and is nothing to read: the edge is all that is heard of it.
    pub(crate) fn register_bell(&self, fd: impl AsFd) -> io::Result<()> {
        let nobody = epoll::EventData::new_u64(u64::MAX);
        Ok(epoll::add(&self.epoll, fd, nobody, epoll::EventFlags::IN | epoll::EventFlags::ET)?)
    }

    fn add(
        self: &Rc<Reactor>,
        fd: impl AsFd,
        writing: Writing,
        flags: epoll::EventFlags,
    ) -> io::Result<Source> {
        let turn = self.next_turn.get();
        self.next_turn.set(turn.wrapping_add(1));
        let readiness = Rc::new(Readiness { turn, ..Readiness::default() });
        readiness.writable.set(writing == Writing::HasRoom);
        readiness.hears_room.set(writing == Writing::Unknown);
        let number = self.sources.borrow_mut().insert(readiness.clone());
        let source = Source { reactor: self.clone(), readiness, number };
        epoll::add(&self.epoll, fd, source.data(), flags)?;
        Ok(source)
    }

    /// Waits for events, at most that long, and wakes who waited for them.
    pub(crate) fn wait(&self, timeout: &Timespec) -> io::Result<()> {
        let mut room = [const { MaybeUninit::<epoll::Event>::uninit() }; EVENTS_MAX];
        let events = match epoll::wait(&self.epoll, &mut room, Some(timeout)) {
            Ok((events, _)) => events,
            Err(rustix::io::Errno::INTR) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        for event in events {
            self.hear(event.data.u64(), event.flags);
        }
        Ok(())
    }

    /// The socket may be gone by now, and another one have its number. Closing it ends what is heard of it only where
    /// nobody else has it, and a process has all of them that was forked and has not begun a program of its own: that the
    /// peer of one that is gone hangs up must not end another connection. So it is heard by its turn; of 65,536 in such a
    /// moment one would be mistaken.
    fn hear(&self, data: u64, flags: epoll::EventFlags) {
        use epoll::EventFlags as Flags;
        let (number, turn) = (data & ((1 << NUMBER_BITS) - 1), data >> NUMBER_BITS);
        let sources = self.sources.borrow();
        let heard = sources.get(number as usize).filter(|readiness| u64::from(readiness.turn) == turn);
        let Some(readiness) = heard else { return };
        let broken = flags.intersects(Flags::HUP | Flags::ERR);
        if broken || flags.intersects(Flags::RDHUP) {
            readiness.hung_up.set(true);
        }
        if broken {
            readiness.broken.set(true);
        }
        if flags.intersects(Flags::PRI) {
            readiness.urgent.set(true);
        }
        if broken || flags.intersects(Flags::IN | Flags::PRI | Flags::RDHUP) {
            readiness.readable.set(true);
            wake(&readiness.reader);
        }
        if broken || flags.intersects(Flags::OUT) {
            readiness.writable.set(true);
            wake(&readiness.writer);
        }
    }

    /// A task's turn begins.
    pub(crate) fn begin_turn(&self) {
        self.operations_left.set(OPERATIONS_A_TURN);
        self.bytes_left.set(BYTES_A_TURN);
    }

    fn spend(&self, context: &Context<'_>) -> bool {
        let left = self.operations_left.get();
        if left == 0 || self.bytes_left.get() == 0 {
            context.waker().wake_by_ref();
            return false;
        }
        self.operations_left.set(left - 1);
        true
    }
}

/// Whoever waits stays known: the next wait of the same task costs nothing then, and a wake that nobody
/// waits for does no harm.
fn wake(waiting: &Cell<Option<Waker>>) {
    let waker = waiting.take();
    if let Some(waker) = &waker {
        waker.wake_by_ref();
    }
    waiting.set(waker);
}

fn wait(waiting: &Cell<Option<Waker>>, context: &Context<'_>) {
    let known = waiting.take().filter(|waker| waker.will_wake(context.waker()));
    waiting.set(Some(known.unwrap_or_else(|| context.waker().clone())));
}

impl Source {
    /// Reads by `read`, which says how many bytes came, when there is something to read. `room` is how many
    /// could have come: fewer mean that the kernel has no more, which the next edge will change.
    #[inline]
    pub(crate) fn poll_read(
        &self,
        context: &Context<'_>,
        room: usize,
        mut read: impl FnMut() -> rustix::io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        let readiness = &*self.readiness;
        self.attempt(context, &readiness.readable, room, &mut read).unwrap_or_else(|| {
            wait(&readiness.reader, context);
            Poll::Pending
        })
    }

    /// The same for writing `length` bytes.
    #[inline]
    pub(crate) fn poll_write(
        &self,
        fd: impl AsFd,
        context: &Context<'_>,
        length: usize,
        mut write: impl FnMut() -> rustix::io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        let readiness = &*self.readiness;
        if let Some(outcome) = self.attempt(context, &readiness.writable, length, &mut write) {
            return outcome;
        }
        if !readiness.hears_room.replace(true) {
            // Room that came meanwhile is told at once.
            epoll::modify(&self.reactor.epoll, fd, self.data(), INCOMING | epoll::EventFlags::OUT)?;
        }
        wait(&readiness.writer, context);
        Poll::Pending
    }

    /// Operates for as long as the socket is `ready`. Fewer bytes than `whole` end that, unless the peer has
    /// hung up or sent urgent data. `None`: the kernel has to say when it is ready again.
    #[inline]
    fn attempt(
        &self,
        context: &Context<'_>,
        ready: &Cell<bool>,
        whole: usize,
        operate: &mut impl FnMut() -> rustix::io::Result<usize>,
    ) -> Option<Poll<io::Result<usize>>> {
        while ready.get() {
            if !self.reactor.spend(context) {
                return Some(Poll::Pending);
            }
            match operate() {
                Ok(bytes) => {
                    let left = &self.reactor.bytes_left;
                    left.set(left.get().saturating_sub(bytes));
                    if bytes < whole && !self.readiness.hung_up.get() && !self.readiness.urgent.get() {
                        ready.set(false);
                    }
                    return Some(Poll::Ready(Ok(bytes)));
                }
                Err(rustix::io::Errno::AGAIN) => ready.set(false),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Some(Poll::Ready(Err(error.into()))),
            }
        }
        None
    }

    /// What its events are known by.
    fn data(&self) -> epoll::EventData {
        epoll::EventData::new_u64(self.number as u64 | u64::from(self.readiness.turn) << NUMBER_BITS)
    }

    /// Takes one of the turn's operations. Where none is left the task goes on in the next round.
    pub(crate) fn poll_turn(&self, context: &Context<'_>) -> Poll<()> {
        if self.reactor.spend(context) { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Whether an edge was heard that no read has used up.
    pub(crate) fn is_readable(&self) -> bool {
        self.readiness.readable.get()
    }

    /// How the other end stands. The task is woken when that changes.
    pub(crate) fn presence(&self, context: &Context<'_>) -> Presence {
        wait(&self.readiness.reader, context);
        match (self.readiness.broken.get(), self.readiness.hung_up.get()) {
            (true, _) => Presence::Broken,
            (false, true) => Presence::Ended,
            (false, false) => Presence::Open,
        }
    }

    /// Whether urgent data has ever come.
    pub(crate) fn had_urgent_data(&self) -> bool {
        self.readiness.urgent.get()
    }

    /// Waits until there may be something to read.
    pub(crate) fn poll_readable(&self, context: &Context<'_>) -> Poll<()> {
        if self.readiness.readable.get() {
            return Poll::Ready(());
        }
        wait(&self.readiness.reader, context);
        Poll::Pending
    }

    /// Waits until there may be room to write.
    pub(crate) fn poll_writable(&self, context: &Context<'_>) -> Poll<()> {
        if self.readiness.writable.get() {
            return Poll::Ready(());
        }
        wait(&self.readiness.writer, context);
        Poll::Pending
    }

    /// Hears no more of the socket, which others have, too: closing it here would not end that.
    pub(crate) fn deregister(&self, fd: impl AsFd) {
        // It was registered, and what could fail is that.
        let (Ok(()) | Err(_)) = epoll::delete(&self.reactor.epoll, fd);
    }

    /// Something is there to read, whether or not it was heard yet.
    pub(crate) fn is_filled(&self) {
        self.readiness.readable.set(true);
    }

    /// Nothing was there to read: the next edge says when there is.
    pub(crate) fn is_drained(&self) {
        self.readiness.readable.set(self.readiness.hung_up.get());
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        self.reactor.sources.borrow_mut().remove(self.number);
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source").field("number", &self.number).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;

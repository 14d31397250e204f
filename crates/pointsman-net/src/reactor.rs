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
    }

    fn spend(&self, context: &Context<'_>) -> bool {
        let left = self.operations_left.get();
        if left == 0 {
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
mod tests {
    use std::io::{Read, Write};
    use std::net::{Shutdown, TcpListener, TcpStream};
    use std::os::unix::net::UnixStream;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::task::Wake;

    use super::*;

    #[test]
    fn what_a_forked_process_still_has_is_not_heard_of_in_place_of_another_socket() {
        let reactor = Rc::new(Reactor::new().expect("an event loop"));
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let [(gone, its_peer), (here, _peer)] = [(); 2].map(|()| UnixStream::pair().expect("sockets"));
        let source = reactor.register(&gone, Writing::HasRoom).expect("registered");
        let (number, forked) = (source.number, gone.try_clone().expect("a descriptor"));
        drop((source, gone));
        let source = reactor.register(&here, Writing::HasRoom).expect("registered");
        assert_eq!(source.number, number, "it takes its place");
        drop(its_peer);
        reactor.wait(&now).expect("heard");
        assert!(!source.readiness.hung_up.get() && !source.is_readable());
        drop((forked, here));
    }

    /// What happens at either end of a connection.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Step {
        /// The peer sends more than is read at a time, and less than the kernel takes for whom nothing reads.
        Sends,
        Ends,
        Register,
        /// The kernel is asked, and nobody waits.
        Hear,
        Read,
        Look,
    }

    /// All orders of both, each of which keeps its own.
    fn interleaved(theirs: &[Step], ours: &[Step]) -> Vec<Vec<Step>> {
        let begun_with = |first: Step, theirs: &[Step], ours: &[Step]| {
            interleaved(theirs, ours).into_iter().map(move |rest| [vec![first], rest].concat())
        };
        match (theirs, ours) {
            ([], rest) | (rest, []) => vec![rest.to_vec()],
            ([their, after @ ..], [our, behind @ ..]) => {
                let all = begun_with(*their, after, ours).chain(begun_with(*our, theirs, behind));
                all.collect()
            }
        }
    }

    #[derive(Default)]
    struct Woken(AtomicBool);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    /// Goes that way, and then waits for the end.
    fn walk(way: &[Step]) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
        let mut peer = TcpStream::connect(listener.local_addr().expect("bound")).expect("it listens");
        let (mut socket, _) = listener.accept().expect("connected");
        socket.set_nonblocking(true).expect("a socket");
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(woken.clone());
        let context = Context::from_waker(&waker);
        let reactor = Rc::new(Reactor::new().expect("an event loop"));
        let mut registered = None;
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        for step in way {
            let source = || registered.as_ref().expect("registered first");
            match step {
                Step::Sends => peer.write_all(&[b'x'; 30_000]).expect("open"),
                Step::Ends => peer.shutdown(Shutdown::Write).expect("open"),
                Step::Register => {
                    registered = Some(reactor.register(&socket, Writing::HasRoom).expect("registered"));
                }
                Step::Hear => reactor.wait(&at_once).expect("heard"),
                Step::Read => {
                    let mut room = [0; 16 * 1024];
                    let length = room.len();
                    let read = || {
                        let read = socket.read(&mut room);
                        read.map_err(|error| rustix::io::Errno::from_io_error(&error).expect("of the kernel"))
                    };
                    reactor.begin_turn();
                    // Whatever comes of it, also nothing.
                    let (Poll::Ready(_) | Poll::Pending) = source().poll_read(&context, length, read);
                }
                Step::Look => assert_ne!(source().presence(&context), Presence::Broken),
            }
        }
        let patience = Timespec { tv_sec: 10, tv_nsec: 0 };
        let source = registered.expect("on each way");
        while source.presence(&context) == Presence::Open {
            woken.0.store(false, Ordering::Relaxed);
            reactor.wait(&patience).expect("heard");
            assert!(woken.0.load(Ordering::Relaxed), "who waits is not told: {way:?}");
        }
        assert_eq!(source.presence(&context), Presence::Ended, "{way:?}");
        assert!(source.is_readable(), "{way:?}");
    }

    /// Whatever was read of what stands before it, and whatever was heard, or waited for, when it came.
    #[test]
    fn an_end_is_heard_whenever_it_comes() {
        use Step::{Ends, Hear, Look, Read, Register, Sends};
        for theirs in [&[Ends][..], &[Sends, Ends], &[Sends, Sends, Ends]] {
            for ours in [&[Register, Hear, Read, Look][..], &[Register, Look, Hear, Read, Hear, Read, Look]] {
                interleaved(theirs, ours).iter().for_each(|way| walk(way));
            }
        }
    }
}

//! The event loop under each thread: its tasks, taken in turns.
//!
//! Small on purpose. A thread serves many connections and does one thing at a time; a connection's task is
//! woken by its sockets or its deadline. All that is ready runs before the kernel is asked again, so a busy
//! thread asks it once for each batch of work.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use rustix::event::{EventfdFlags, eventfd};
use rustix::time::Timespec;
use slab::Slab;

use crate::clock::process_us;
use crate::reactor::{Reactor, Source, Writing};

/// Turns of tasks between two looks at the sockets, where there is always something to do.
const TURNS_A_ROUND: usize = 1000;

/// How long a round may be. Deadlines are kept to what the last tick said of the time: it must not be old.
const ROUND_US_MAX: u64 = 5000;
/// Turns between two looks at the clock.
const TURNS_A_LOOK: usize = 4;

/// The longest wait for sockets: how late a wake by another thread may be heard where there is no bell for it.
const WAIT_US_MAX: u64 = 25_000;

/// The number of the future that [`EventLoop::run`] runs; it has no place among the tasks.
const MAIN: usize = usize::MAX;

/// One thread's event loop. It stays on the thread that made it.
#[derive(Debug)]
pub struct EventLoop {
    core: Rc<Core>,
}

struct Core {
    reactor: Rc<Reactor>,
    tasks: RefCell<Slab<TaskEntry>>,
    queue: RefCell<VecDeque<usize>>,
    is_main_woken: Cell<bool>,
    main: Waker,
    remote: Arc<Remote>,
    /// When this round began: when the kernel last said what is ready.
    round_us: Cell<u64>,
    tick: RefCell<Option<Tick>>,
    serial: Cell<u64>,
}

struct TaskEntry {
    /// Away while it takes its turn.
    runnable: Option<Runnable>,
    is_queued: bool,
    serial: u64,
}

struct Runnable {
    future: Pin<Box<dyn Future<Output = ()>>>,
    waker: Waker,
}

/// When the ticking task is to be woken.
struct Tick {
    due_us: u64,
    waker: Waker,
}

/// How other threads wake tasks of this one.
struct Remote {
    id: u64,
    is_woken: AtomicBool,
    woken: Mutex<Vec<usize>>,
    /// Ends its wait for sockets.
    bell: Option<Bell>,
}

/// By which other threads end a thread's wait for sockets.
///
/// A descriptor is right in a table of its own, too, where the thread left the common one after this was made: it is open
/// there under the same number ([`crate::own_descriptor_table`]).
#[derive(Clone, Debug)]
pub struct Bell(Arc<OwnedFd>);

impl Bell {
    /// A bell for a thread that is to begin.
    ///
    /// # Errors
    /// When there is no descriptor left.
    pub fn new() -> io::Result<Bell> {
        Ok(Bell(Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)))
    }

    fn ring(&self) {
        // It cannot be full: each time is one of 2^64. What ends a wait is its edge, so nobody reads it.
        let (Ok(_) | Err(_)) = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }
}

/// What a task is woken by.
struct TaskWaker {
    number: usize,
    remote: Arc<Remote>,
}

thread_local! {
    /// The event loop of this thread, while it runs.
    static CURRENT: RefCell<Option<Rc<Core>>> = const { RefCell::new(None) };
}

impl EventLoop {
    /// A new event loop for this thread. It hears of wakes by other threads when it next looks.
    pub fn new() -> io::Result<EventLoop> {
        EventLoop::with(None)
    }

    /// The same, and it hears of wakes by other threads at once.
    pub fn with_bell(bell: Bell) -> io::Result<EventLoop> {
        EventLoop::with(Some(bell))
    }

    fn with(bell: Option<Bell>) -> io::Result<EventLoop> {
        static IDS: AtomicU64 = AtomicU64::new(0);
        let reactor = Rc::new(Reactor::new()?);
        if let Some(bell) = &bell {
            reactor.register_bell(&bell.0)?;
        }
        let id = IDS.fetch_add(1, Ordering::Relaxed);
        let remote = Arc::new(Remote { id, is_woken: AtomicBool::new(false), woken: Mutex::default(), bell });
        let main = Waker::from(Arc::new(TaskWaker { number: MAIN, remote: remote.clone() }));
        let core = Core {
            reactor,
            tasks: RefCell::default(),
            queue: RefCell::default(),
            is_main_woken: Cell::new(true),
            main,
            remote,
            round_us: Cell::new(process_us()),
            tick: RefCell::default(),
            serial: Cell::new(0),
        };
        Ok(EventLoop { core: Rc::new(core) })
    }

    /// Runs `future` and everything it spawns until it ends. What it spawned stays, and goes on with the
    /// next run.
    pub fn run<F: Future>(&self, future: F) -> F::Output {
        let _entered = Entered::enter(&self.core);
        let mut future = pin!(future);
        self.core.is_main_woken.set(true);
        loop {
            if self.core.is_main_woken.take() {
                self.core.reactor.begin_turn();
                if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&self.core.main)) {
                    return output;
                }
            }
            self.core.run_tasks();
            self.core.wait();
        }
    }
}

/// While it lives, this is the thread's event loop.
struct Entered {
    before: Option<Rc<Core>>,
}

impl Entered {
    fn enter(core: &Rc<Core>) -> Entered {
        Entered { before: CURRENT.replace(Some(core.clone())) }
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        CURRENT.set(self.before.take());
    }
}

/// What tasks hold may want the event loop when it is dropped: it is there for them a last time.
impl Drop for EventLoop {
    fn drop(&mut self) {
        let _entered = Entered::enter(&self.core);
        loop {
            let tasks = std::mem::take(&mut *self.core.tasks.borrow_mut());
            if tasks.is_empty() {
                break;
            }
            drop(tasks);
        }
    }
}

impl Core {
    /// Gives every task its turn that is woken, and those that these wake, within bounds.
    fn run_tasks(&self) {
        for turn in 1..=TURNS_A_ROUND {
            let is_long = || process_us() - self.round_us.get() > ROUND_US_MAX;
            if turn % TURNS_A_LOOK == 0 && is_long() {
                break;
            }
            let Some(number) = self.queue.borrow_mut().pop_front() else { break };
            self.take_turn(number);
        }
    }

    fn take_turn(&self, number: usize) {
        let Some((mut runnable, serial)) = self.begin_turn(number) else { return };
        self.reactor.begin_turn();
        let outcome = runnable.future.as_mut().poll(&mut Context::from_waker(&runnable.waker));
        let mut tasks = self.tasks.borrow_mut();
        // Aborted in its own turn, it has no place any more; another may have its number.
        let own = tasks.get_mut(number).filter(|entry| entry.serial == serial);
        let ended = match (outcome, own) {
            (Poll::Pending, Some(entry)) => {
                entry.runnable = Some(runnable);
                return;
            }
            (Poll::Ready(()), Some(_)) => Some(tasks.remove(number)),
            (_, None) => None,
        };
        // What it holds may look for the tasks when it is dropped.
        drop(tasks);
        drop((ended, runnable));
    }

    fn begin_turn(&self, number: usize) -> Option<(Runnable, u64)> {
        let mut tasks = self.tasks.borrow_mut();
        let entry = tasks.get_mut(number)?;
        entry.is_queued = false;
        Some((entry.runnable.take()?, entry.serial))
    }

    /// Asks the kernel what is ready, and waits for it where there is nothing else to do. A round begins.
    fn wait(&self) {
        let idle = self.queue.borrow().is_empty() && !self.is_main_woken.get();
        let tick_us = self.tick.borrow().as_ref().map_or(u64::MAX, |tick| tick.due_us);
        // From the round's beginning: this is late by what the thread did in it, and saves a look at the clock.
        let left_us = if idle { tick_us.saturating_sub(self.round_us.get()).min(WAIT_US_MAX) } else { 0 };
        // An event loop whose epoll fails has lost every socket.
        if let Err(error) = self.reactor.wait(&whole_ms(left_us)) {
            panic!("epoll failed: {error}");
        }
        self.round_us.set(process_us());
        if self.remote.is_woken.load(Ordering::Acquire) {
            self.take_remote();
        }
        let due = self.tick.borrow_mut().take_if(|tick| tick.due_us <= self.round_us.get());
        if let Some(tick) = due {
            tick.waker.wake();
        }
    }

    fn take_remote(&self) {
        // Before the list is taken: who is too late for it rings again.
        self.remote.is_woken.swap(false, Ordering::AcqRel);
        let woken = std::mem::take(&mut *self.remote.woken.lock().unwrap_or_else(PoisonError::into_inner));
        woken.into_iter().for_each(|number| self.queue(number));
    }

    fn queue(&self, number: usize) {
        if number == MAIN {
            self.is_main_woken.set(true);
        } else if let Some(entry) = self.tasks.borrow_mut().get_mut(number)
            && !std::mem::replace(&mut entry.is_queued, true)
        {
            self.queue.borrow_mut().push_back(number);
        }
    }

    fn spawn(self: &Rc<Core>, future: Pin<Box<dyn Future<Output = ()>>>) -> Task {
        let serial = self.serial.get();
        self.serial.set(serial + 1);
        let mut tasks = self.tasks.borrow_mut();
        let place = tasks.vacant_entry();
        let number = place.key();
        let waker = Waker::from(Arc::new(TaskWaker { number, remote: self.remote.clone() }));
        place.insert(TaskEntry { runnable: Some(Runnable { future, waker }), is_queued: true, serial });
        self.queue.borrow_mut().push_back(number);
        Task { core: self.clone(), number, serial }
    }
}

/// The kernel counts in milliseconds: rounded up, or a wait would end too early and be repeated.
fn whole_ms(timeout_us: u64) -> Timespec {
    let ms = timeout_us.div_ceil(1000) as i64;
    Timespec { tv_sec: ms / 1000, tv_nsec: ms % 1000 * 1_000_000 }
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let is_here = CURRENT.try_with(|current| match &*current.borrow() {
            Some(core) if core.remote.id == self.remote.id => {
                core.queue(self.number);
                true
            }
            _ => false,
        });
        if is_here != Ok(true) {
            self.remote.woken.lock().unwrap_or_else(PoisonError::into_inner).push(self.number);
            // Whoever was first has rung, or is about to, and the list is looked at behind that.
            let is_first = !self.remote.is_woken.swap(true, Ordering::AcqRel);
            self.remote.bell.iter().filter(|_| is_first).for_each(Bell::ring);
        }
    }
}

/// Something that runs beside its spawner on the same thread.
pub struct Task {
    core: Rc<Core>,
    number: usize,
    serial: u64,
}

impl Task {
    /// Ends it where it waits.
    pub fn abort(&self) {
        let mut tasks = self.core.tasks.borrow_mut();
        if tasks.get(self.number).is_some_and(|entry| entry.serial == self.serial) {
            let entry = tasks.remove(self.number);
            drop(tasks);
            drop(entry);
        }
    }
}

impl fmt::Debug for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Task").field("number", &self.number).finish_non_exhaustive()
    }
}

impl fmt::Debug for Core {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Core").field("tasks", &self.tasks.borrow().len()).finish_non_exhaustive()
    }
}

/// Runs `future` beside the caller on this thread's event loop.
///
/// # Panics
/// Where no event loop runs on this thread.
pub fn spawn(future: impl Future<Output = ()> + 'static) -> Task {
    with_current(|core| core.spawn(Box::pin(future)))
}

/// Registers a socket with this thread's event loop.
pub(crate) fn register(fd: impl AsFd, writing: Writing) -> io::Result<Source> {
    with_current(|core| core.reactor.register(fd, writing))
}

/// The same for a listening socket that other threads have too: a connection wakes one of those that wait.
pub(crate) fn register_shared(fd: impl AsFd) -> io::Result<Source> {
    with_current(|core| core.reactor.register_shared(fd))
}

/// When this round of the thread's event loop began: a look at the clock that costs nothing.
pub(crate) fn round_us() -> u64 {
    with_current(|core| core.round_us.get())
}

/// Waits for `due_us`, on the scale of [`process_us`]. A thread has one such wait at a time: its tick.
pub(crate) async fn tick_at(due_us: u64) {
    std::future::poll_fn(|context| {
        if process_us() >= due_us {
            return Poll::Ready(());
        }
        let tick = Tick { due_us, waker: context.waker().clone() };
        with_current(|core| core.tick.replace(Some(tick)));
        Poll::Pending
    })
    .await;
}

/// Gives tasks a turn that have been woken, as many as a round has room for.
pub(crate) async fn let_others_run() {
    let mut has_waited = false;
    std::future::poll_fn(|context| {
        if std::mem::replace(&mut has_waited, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Whether tasks of this thread have been woken and not had their turn.
///
/// # Panics
/// When no event loop runs on this thread.
pub fn has_woken_tasks() -> bool {
    with_current(|core| !core.queue.borrow().is_empty())
}

fn with_current<T>(use_it: impl FnOnce(&Rc<Core>) -> T) -> T {
    CURRENT.with_borrow(|current| match current {
        Some(core) => use_it(core),
        None => panic!("no event loop runs on this thread"),
    })
}

#[cfg(test)]
mod tests;

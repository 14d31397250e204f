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
use std::os::fd::AsFd;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

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

/// The longest wait for sockets: how late a wake by another thread may be heard.
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

/// How other threads wake tasks of this one. No descriptor is in it: theirs may be of another table.
struct Remote {
    id: u64,
    is_woken: AtomicBool,
    woken: Mutex<Vec<usize>>,
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
    /// A new event loop for this thread.
    pub fn new() -> io::Result<EventLoop> {
        static IDS: AtomicU64 = AtomicU64::new(0);
        let reactor = Rc::new(Reactor::new()?);
        let id = IDS.fetch_add(1, Ordering::Relaxed);
        let remote = Arc::new(Remote { id, is_woken: AtomicBool::new(false), woken: Mutex::default() });
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
        self.remote.is_woken.store(false, Ordering::Relaxed);
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
            self.remote.is_woken.store(true, Ordering::Release);
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

fn with_current<T>(use_it: impl FnOnce(&Rc<Core>) -> T) -> T {
    CURRENT.with_borrow(|current| match current {
        Some(core) => use_it(core),
        None => panic!("no event loop runs on this thread"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event_loop() -> EventLoop {
        EventLoop::new().expect("descriptors")
    }

    /// Lets the others go first, so many times.
    async fn step_back(times: usize) {
        let mut left = times;
        std::future::poll_fn(|context| {
            if left == 0 {
                return Poll::Ready(());
            }
            left -= 1;
            context.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }

    #[test]
    fn tasks_take_turns_and_an_aborted_one_ends() {
        let order = Rc::new(RefCell::new(Vec::new()));
        event_loop().run(async {
            let say = |what: &'static str, turns| {
                let order = order.clone();
                spawn(async move {
                    for _ in 0..turns {
                        order.borrow_mut().push(what);
                        step_back(1).await;
                    }
                })
            };
            let endless = say("endless", usize::MAX);
            let two = say("two", 2);
            while order.borrow().len() < 5 {
                step_back(1).await;
            }
            endless.abort();
            // It has ended by itself; another task may have its place.
            let other = say("other", 1);
            two.abort();
            step_back(2).await;
            drop(other);
        });
        let order = order.borrow();
        assert_eq!(order[..4], ["endless", "two", "endless", "two"]);
        assert_eq!(order.last(), Some(&"other"));
    }

    #[test]
    fn a_task_that_aborts_itself_takes_nobody_elses_place() {
        for ends in [false, true] {
            let ran = Rc::new(Cell::new(false));
            let own = Rc::new(RefCell::new(None::<Task>));
            event_loop().run(async {
                let (itself, after) = (own.clone(), ran.clone());
                let task = spawn(async move {
                    if let Some(task) = itself.take() {
                        task.abort();
                    }
                    spawn(async move { after.set(true) });
                    if !ends {
                        std::future::pending::<()>().await;
                    }
                });
                own.replace(Some(task));
                while !ran.get() {
                    step_back(1).await;
                }
            });
        }
    }

    #[test]
    fn another_thread_wakes_a_task() {
        let shared = Arc::new(Mutex::new((false, None::<Waker>)));
        let theirs = shared.clone();
        let thread = std::thread::spawn(move || {
            loop {
                let mut state = theirs.lock().expect("whole");
                if let Some(waker) = state.1.take() {
                    state.0 = true;
                    waker.wake();
                    return;
                }
                drop(state);
                std::thread::yield_now();
            }
        });
        event_loop().run(std::future::poll_fn(|context| {
            let mut state = shared.lock().expect("whole");
            if state.0 {
                return Poll::Ready(());
            }
            state.1 = Some(context.waker().clone());
            Poll::Pending
        }));
        thread.join().expect("it ended");
    }

    #[test]
    fn what_tasks_hold_is_dropped_with_the_loop_and_may_spawn() {
        struct Spawns(Rc<Cell<u32>>);
        impl Drop for Spawns {
            fn drop(&mut self) {
                self.0.set(self.0.get() + 1);
                if self.0.get() < 3 {
                    let next = Spawns(self.0.clone());
                    spawn(async move { drop(next) });
                }
            }
        }
        let dropped = Rc::new(Cell::new(0));
        let event_loop = event_loop();
        event_loop.run(async {
            let held = Spawns(dropped.clone());
            spawn(async move {
                std::future::pending::<()>().await;
                drop(held);
            });
        });
        assert_eq!(dropped.get(), 0);
        drop(event_loop);
        assert_eq!(dropped.get(), 3);
    }
}

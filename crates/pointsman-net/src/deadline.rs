//! Deadlines for what a connection waits for.

use std::cell::RefCell;
use std::future::Future;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use crate::clock::process_us;
use crate::event_loop::{let_others_run, tick_at};
use crate::wheel::Wheel;

/// Deadlines are kept to this many milliseconds: never early, at most twice so much late.
const TICK_MS: u32 = 25;

/// The deadlines of one thread.
#[derive(Clone, Debug)]
pub struct Timers {
    wheel: Rc<RefCell<Wheel>>,
}

/// Why a wait ended without what it waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Elapsed {
    /// Its time is over.
    Time,
    /// It was idle, and [`Timers::end_idle_waits`] ended it.
    Ended,
}

/// One connection's deadline. It can wait for one thing at a time.
#[derive(Debug)]
pub struct Deadline {
    wheel: Rc<RefCell<Wheel>>,
    slot: usize,
}

impl Default for Timers {
    fn default() -> Self {
        Timers { wheel: Rc::new(RefCell::new(Wheel::new())) }
    }
}

impl Timers {
    /// A deadline of this thread.
    pub fn deadline(&self) -> Deadline {
        let slot = self.wheel.borrow_mut().insert();
        Deadline { wheel: self.wheel.clone(), slot }
    }

    /// Lets every idle wait end now.
    pub fn end_idle_waits(&self) {
        let woken = self.wheel.borrow_mut().expire_idle();
        woken.into_iter().for_each(std::task::Waker::wake);
    }

    /// Wakes whoever waits with a deadline, which stays as it is.
    pub fn wake_all(&self) {
        self.wheel.borrow().waiting().for_each(std::task::Waker::wake_by_ref);
    }

    /// Moves time on and calls `at_tick` each time, until it breaks. A thread runs one of these at a time: one
    /// that serves as what its event loop runs, since a task waits for its turn behind all others, and
    /// deadlines would begin with an old time.
    pub async fn run(&self, mut at_tick: impl FnMut() -> ControlFlow<()>) {
        const TICK_US: u64 = TICK_MS as u64 * 1000;
        let start_us = process_us();
        let mut tick = 0;
        loop {
            tick_at(start_us + (tick + 1) * TICK_US).await;
            // Ticks in which the thread did not run are made up for at once, but not for waits that may have
            // begun in them.
            let now = (process_us() - start_us) / TICK_US;
            let woken = {
                let mut wheel = self.wheel.borrow_mut();
                wheel.forgive(now.saturating_sub(tick + 1));
                wheel.advance(now)
            };
            tick = now;
            woken.into_iter().for_each(std::task::Waker::wake);
            if at_tick().is_break() {
                return;
            }
            // A thread that was held up is late for the next tick, too. What this one woke comes first all the same.
            let_others_run().await;
        }
    }
}

impl Deadline {
    /// Waits for `future`, at most `ms` milliseconds; with 0 it must be ready. Costs nothing where it is ready
    /// at once.
    pub fn within<F: Future>(&mut self, ms: u32, future: F) -> Within<'_, F> {
        Within { deadline: self, future, ms, wait: Wait::Busy, armed: false }
    }

    /// The same for a wait that [`Timers::end_idle_waits`] may end.
    pub fn idle_within<F: Future>(&mut self, ms: u32, future: F) -> Within<'_, F> {
        Within { deadline: self, future, ms, wait: Wait::Idle, armed: false }
    }
}

pin_project_lite::pin_project! {
    /// A future with a deadline. Written by hand, since an async function would keep the future
    /// twice, and every idle connection pays for the room.
    #[derive(Debug)]
    #[must_use = "futures do nothing until they are awaited"]
    pub struct Within<'d, F> {
        deadline: &'d mut Deadline,
        #[pin]
        future: F,
        ms: u32,
        wait: Wait,
        armed: bool,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    Idle,
    Busy,
}

impl<F: Future> Future for Within<'_, F> {
    type Output = Result<F::Output, Elapsed>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let within = self.project();
        let Deadline { wheel, slot } = &**within.deadline;
        match within.future.poll(context) {
            Poll::Ready(output) => {
                if *within.armed {
                    wheel.borrow_mut().disarm(*slot);
                }
                Poll::Ready(Ok(output))
            }
            // What is left of a time that several waits share is nothing: a peer that sends a byte now and
            // then must not begin it anew each time.
            Poll::Pending if *within.ms == 0 => Poll::Ready(Err(Elapsed::Time)),
            Poll::Pending if !*within.armed => {
                *within.armed = true;
                let ticks = u64::from(within.ms.div_ceil(TICK_MS));
                wheel.borrow_mut().arm(*slot, ticks, *within.wait == Wait::Idle, context.waker());
                Poll::Pending
            }
            Poll::Pending => {
                let mut wheel = wheel.borrow_mut();
                match wheel.expired(*slot) {
                    Some(why) => Poll::Ready(Err(why)),
                    None => {
                        wheel.refresh(*slot, context.waker());
                        Poll::Pending
                    }
                }
            }
        }
    }
}

impl Drop for Deadline {
    fn drop(&mut self) {
        self.wheel.borrow_mut().remove(self.slot);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::time::{Duration, Instant};

    use super::*;
    use crate::{EventLoop, spawn};

    /// Runs `waits` with time moving on.
    fn run(waits: impl AsyncFnOnce(Timers) + 'static) {
        let timers = Timers::default();
        let done = Rc::new(Cell::new(false));
        EventLoop::new().expect("descriptors").run(async {
            let (theirs, is_done) = (timers.clone(), done.clone());
            spawn(async move {
                waits(theirs).await;
                is_done.set(true);
            });
            timers.run(|| if done.get() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }).await;
        });
    }

    /// A thread that gets no processor for a while is late for several ticks.
    #[test]
    fn tasks_have_a_turn_between_two_ticks() {
        let timers = Timers::default();
        let bell = Rc::new(Cell::new(0));
        EventLoop::new().expect("descriptors").run(async {
            let (mut deadline, rung) = (timers.deadline(), bell.clone());
            spawn(async move {
                let turns = std::future::poll_fn(|_| {
                    rung.set(rung.get() + 1);
                    Poll::<()>::Pending
                });
                assert!(deadline.within(60_000, turns).await.is_err());
            });
            let mut before = None;
            timers
                .run(|| {
                    let turns = bell.get();
                    assert!(
                        before.is_none_or(|before| turns > before),
                        "two ticks without a turn between them"
                    );
                    timers.wake_all();
                    let held_up_us = process_us() + 2 * u64::from(TICK_MS) * 1000;
                    while process_us() < held_up_us {
                        std::hint::spin_loop();
                    }
                    let is_first = before.replace(turns).is_none();
                    if is_first || turns < 4 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
                })
                .await;
        });
    }

    #[test]
    fn a_wait_ends_in_time_and_a_ready_future_wins() {
        run(async |timers| {
            let started = Instant::now();
            let mut deadline = timers.deadline();
            assert_eq!(deadline.within(50, std::future::ready(7)).await, Ok(7));
            assert_eq!(deadline.within(50, std::future::pending::<()>()).await, Err(Elapsed::Time));
            assert!(started.elapsed() >= Duration::from_millis(50), "never early");
            let mut other = timers.deadline();
            let short = other.within(30, std::future::pending::<()>());
            assert_eq!(deadline.within(60_000, short).await, Ok(Err(Elapsed::Time)));
        });
    }

    #[test]
    fn a_busy_thread_makes_no_wait_shorter() {
        run(async |timers| {
            for number in 0..300 {
                let mut deadline = timers.deadline();
                spawn(async move {
                    let busy = Instant::now();
                    while busy.elapsed() < Duration::from_millis(1) {}
                    let started = Instant::now();
                    let waited = deadline.within(100, std::future::pending::<()>()).await;
                    assert_eq!(waited, Err(Elapsed::Time));
                    assert!(started.elapsed() >= Duration::from_millis(100), "{number}: early");
                });
            }
            assert_eq!(timers.deadline().within(700, std::future::pending::<()>()).await, Err(Elapsed::Time));
        });
    }

    #[test]
    fn draining_ends_an_idle_wait() {
        run(async |timers| {
            let mut idle = timers.deadline();
            let mut busy = timers.deadline();
            let ending = timers.clone();
            spawn(async move {
                let mut soon = ending.deadline();
                let waited = soon.within(30, std::future::pending::<()>()).await;
                assert_eq!(waited, Err(Elapsed::Time));
                ending.end_idle_waits();
            });
            let end = idle.idle_within(60_000, busy.within(60_000, std::future::pending::<()>())).await;
            assert_eq!(end, Err(Elapsed::Ended));
        });
    }
}

//! Deadlines for what a connection waits for.

use std::cell::RefCell;
use std::future::Future;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::wheel::Wheel;

/// Deadlines are kept to this many milliseconds: never early, at most so much late.
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

    /// Moves time on and calls `at_tick` each time, until it breaks.
    pub async fn run(&self, mut at_tick: impl FnMut() -> ControlFlow<()>) {
        let mut ticks = tokio::time::interval(Duration::from_millis(u64::from(TICK_MS)));
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
        let start = ticks.tick().await;
        loop {
            let now = ticks.tick().await.duration_since(start).as_millis() / u128::from(TICK_MS);
            let woken = self.wheel.borrow_mut().advance(now as u64);
            woken.into_iter().for_each(std::task::Waker::wake);
            if at_tick().is_break() {
                return;
            }
        }
    }
}

impl Deadline {
    /// Waits for `future`, at most `ms` milliseconds. Costs nothing where it is ready at once.
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
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_wait_ends_in_time_and_a_ready_future_wins() {
        let timers = Timers::default();
        let mut deadline = timers.deadline();
        let waits = async {
            assert_eq!(deadline.within(50, std::future::ready(7)).await, Ok(7));
            assert_eq!(deadline.within(50, std::future::pending::<()>()).await, Err(Elapsed::Time));
            let short = tokio::time::sleep(Duration::from_millis(60));
            assert_eq!(deadline.within(200, short).await, Ok(()));
        };
        tokio::select! {
            () = waits => {}
            () = timers.run(|| ControlFlow::Continue(())) => unreachable!("time runs for ever"),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn draining_ends_an_idle_wait() {
        let timers = Timers::default();
        let mut idle = timers.deadline();
        let mut ticks = 0;
        tokio::select! {
            end = idle.idle_within(60_000, std::future::pending::<()>()) => assert_eq!(end, Err(Elapsed::Ended)),
            () = timers.run(|| { ticks += 1; if ticks == 3 { timers.end_idle_waits() } ControlFlow::Continue(()) }) => unreachable!(),
        }
    }
}

//! Deadlines for what a connection waits for.

use std::cell::RefCell;
use std::future::Future;
use std::ops::ControlFlow;
use std::pin::pin;
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

/// The time is over, or the wait was idle and the thread drains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elapsed;

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

    /// Lets every idle wait end now: the thread drains.
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
    pub async fn within<F: Future>(&mut self, ms: u32, future: F) -> Result<F::Output, Elapsed> {
        self.wait(ms, Wait::Busy, future).await
    }

    /// The same for a wait that may also be ended by draining.
    pub async fn idle_within<F: Future>(&mut self, ms: u32, future: F) -> Result<F::Output, Elapsed> {
        self.wait(ms, Wait::Idle, future).await
    }

    async fn wait<F: Future>(&mut self, ms: u32, wait: Wait, future: F) -> Result<F::Output, Elapsed> {
        let mut future = pin!(future);
        let mut armed = false;
        std::future::poll_fn(|context| match future.as_mut().poll(context) {
            Poll::Ready(output) => {
                if armed {
                    self.wheel.borrow_mut().disarm(self.slot);
                }
                Poll::Ready(Ok(output))
            }
            Poll::Pending => self.expire_or_wait(&mut armed, ms, wait, context),
        })
        .await
    }

    fn expire_or_wait<T>(
        &self,
        armed: &mut bool,
        ms: u32,
        wait: Wait,
        context: &Context<'_>,
    ) -> Poll<Result<T, Elapsed>> {
        let mut wheel = self.wheel.borrow_mut();
        if !*armed {
            *armed = true;
            let ticks = u64::from(ms.div_ceil(TICK_MS));
            wheel.arm(self.slot, ticks, wait == Wait::Idle, context.waker());
            return Poll::Pending;
        }
        if wheel.is_expired(self.slot) {
            return Poll::Ready(Err(Elapsed));
        }
        wheel.refresh(self.slot, context.waker());
        Poll::Pending
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Wait {
    Idle,
    Busy,
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
            assert_eq!(deadline.within(50, std::future::pending::<()>()).await, Err(Elapsed));
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
            end = idle.idle_within(60_000, std::future::pending::<()>()) => assert_eq!(end, Err(Elapsed)),
            () = timers.run(|| { ticks += 1; if ticks == 3 { timers.end_idle_waits() } ControlFlow::Continue(()) }) => unreachable!(),
        }
    }
}

//! Work of seconds, done in threads that give way to those which serve.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};
use std::thread;

use rustix::process::setpriority_process;
use rustix::thread::gettid;

/// One piece of work at a time.
#[derive(Clone, Default)]
pub(super) struct Aside(Arc<AtomicBool>);

/// Why it is not done.
#[derive(Debug)]
pub(super) enum Undone {
    /// Other work is going on.
    Busy,
    /// The system has no thread for it.
    NoThread(io::Error),
    /// It broke off.
    BrokeOff,
}

/// What a thread has made, for one who waits for it.
struct Slot<T>(Mutex<State<T>>);

struct State<T> {
    made: Option<T>,
    has_ended: bool,
    waiting: Option<Waker>,
}

impl Aside {
    /// Does `work` in a thread. Where nobody waits for it any more it goes on to its end, and is the one piece of
    /// work until then.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Undone> {
        if self.0.swap(true, Ordering::AcqRel) {
            return Err(Undone::Busy);
        }
        let state = State { made: None, has_ended: false, waiting: None };
        let slot = Arc::new(Slot(Mutex::new(state)));
        let end = End { busy: self.0.clone(), slot: slot.clone(), made: None };
        let started = thread::Builder::new().name("aside".to_owned()).spawn(move || {
            // All of it: its end is that of the thread.
            let mut end = end;
            give_way();
            end.made = Some(work());
        });
        started.map_err(Undone::NoThread)?;
        std::future::poll_fn(|context| {
            slot.with(|state| match (state.made.take(), state.has_ended) {
                (Some(made), _) => Poll::Ready(Ok(made)),
                (None, true) => Poll::Ready(Err(Undone::BrokeOff)),
                (None, false) => {
                    state.waiting = Some(context.waker().clone());
                    Poll::Pending
                }
            })
        })
        .await
    }
}

/// Does `work` in a thread that gives way, and waits for it.
pub(super) fn giving_way<T: Send>(work: impl Fn() -> T + Send + Sync) -> T {
    thread::scope(|scope| {
        let in_its_thread = || {
            give_way();
            work()
        };
        let started = thread::Builder::new().name("giving way".to_owned()).spawn_scoped(scope, in_its_thread);
        match started.map(|thread| thread.join()) {
            Ok(made) => made.unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            // Better beside the requests than not at all.
            Err(_) => work(),
        }
    })
}

/// Drops what takes milliseconds to drop, in a thread that gives way.
pub(super) fn let_go<T: Send + 'static>(what: T) {
    let ends = || {
        give_way();
        drop(what);
    };
    // Where there is no thread for it, it is dropped with the closure: here.
    let (Ok(_) | Err(_)) = thread::Builder::new().name("giving way".to_owned()).spawn(ends);
}

/// Lets every other thread of the machine go first where there are more than processors: this one gets about a tenth of
/// what each of them does. It cannot be taken back, so it is for threads that end with their work.
pub(super) fn give_way() {
    const NICE: i32 = 10;
    // A system that refuses loses the courtesy and nothing else.
    let (Ok(()) | Err(_)) = setpriority_process(Some(gettid()), NICE);
}

impl<T> Slot<T> {
    fn with<R>(&self, see: impl FnOnce(&mut State<T>) -> R) -> R {
        // Whoever held it left it whole.
        see(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The end of the work, however it comes. Who waits hears of it when other work may begin.
struct End<T> {
    busy: Arc<AtomicBool>,
    slot: Arc<Slot<T>>,
    made: Option<T>,
}

impl<T> Drop for End<T> {
    fn drop(&mut self) {
        self.busy.store(false, Ordering::Release);
        let made = self.made.take();
        let waiting = self.slot.with(|state| {
            (state.made, state.has_ended) = (made, true);
            state.waiting.take()
        });
        waiting.into_iter().for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use pointsman_net::EventLoop;

    use super::*;

    #[test]
    fn one_piece_of_work_at_a_time() {
        let aside = Aside::default();
        EventLoop::new().expect("descriptors").run(async {
            assert_eq!(aside.run(|| 7).await.expect("done"), 7);
            let (go, may_go) = channel::<()>();
            let mut first = Box::pin(aside.run(move || may_go.recv()));
            let mut context = std::task::Context::from_waker(Waker::noop());
            assert!(first.as_mut().poll(&mut context).is_pending());
            assert!(matches!(aside.run(|| 8).await, Err(Undone::Busy)));
            go.send(()).expect("it waits");
            assert!(first.await.expect("done").is_ok());
            assert_eq!(aside.run(|| 9).await.expect("done"), 9);
        });
    }
}

//! Work of seconds, done in threads that give way to those which serve.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};
use std::thread;

use pointsman_rules::pace;
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
        in_a_thread(work, Busy(self.0.clone())).await
    }
}

/// It does something, until this is dropped.
struct Busy(Arc<AtomicBool>);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// Does `work` in a thread that gives way, and holds `held` until it is over, also where nobody waits for it any more. A
/// system that has no thread for it has it done here: better beside the requests than not at all.
pub(super) async fn beside<T: Send + 'static>(
    work: impl Fn() -> T + Send + Sync + 'static,
    held: impl Send + 'static,
) -> Result<T, Undone> {
    let work = Arc::new(work);
    let theirs = work.clone();
    match in_a_thread(move || theirs(), held).await {
        Err(Undone::NoThread(_)) => Ok(work()),
        done => done,
    }
}

/// Does `work` in a thread that gives way, and holds `held` until it is over, also where nobody waits for it any more.
pub(super) async fn in_a_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
    held: impl Send + 'static,
) -> Result<T, Undone> {
    let state = State { made: None, has_ended: false, waiting: None };
    let slot = Arc::new(Slot(Mutex::new(state)));
    let end = End { held: Some(held), slot: slot.clone(), made: None };
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
/// what each of them does, and [`pauses`]. It cannot be taken back, so it is for threads that end with their work.
pub(super) fn give_way() {
    const NICE: i32 = 10;
    // A system that refuses loses the courtesy and nothing else.
    let (Ok(()) | Err(_)) = setpriority_process(Some(gettid()), NICE);
    pauses();
}

/// From now on this thread lets others go first, after each 100 µs or so, in what it does with many rules: whoever waits for
/// its processor waits no longer than that, and not for the next tick of the scheduler. docs/adr/0056 says why.
pub(super) fn pauses() {
    pace::give_way(thread::yield_now);
}

impl<T> Slot<T> {
    fn with<R>(&self, see: impl FnOnce(&mut State<T>) -> R) -> R {
        // Whoever held it left it whole.
        see(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The end of the work, however it comes. Who waits hears of it when what was held is free.
struct End<T, H> {
    held: Option<H>,
    slot: Arc<Slot<T>>,
    made: Option<T>,
}

impl<T, H> Drop for End<T, H> {
    fn drop(&mut self) {
        self.held.take();
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
    use std::cell::Cell;
    use std::sync::mpsc::channel;

    use pointsman_analysis::{Effort, RuleSide, differences};
    use pointsman_bench::clock::thread_cpu_ns;
    use pointsman_config::Plan;
    use pointsman_net::EventLoop;

    use super::*;
    use crate::check::setting;

    /// As many rules as a large rule set has.
    const RULES: usize = 20_000;

    /// CPU time between the pauses of a thread.
    #[derive(Clone, Copy, Default)]
    struct Stretches {
        begun_ns: u64,
        longest_ns: u64,
        all_ns: u64,
        count: u64,
    }

    thread_local! {
        static STRETCHES: Cell<Stretches> = const {
            Cell::new(Stretches { begun_ns: 0, longest_ns: 0, all_ns: 0, count: 0 })
        };
    }

    /// Ends a stretch.
    fn look() {
        let Stretches { begun_ns, longest_ns, all_ns, count } = STRETCHES.get();
        let ns = thread_cpu_ns() - begun_ns;
        let (longest_ns, all_ns) = (longest_ns.max(ns), all_ns + ns);
        STRETCHES.set(Stretches { begun_ns: thread_cpu_ns(), longest_ns, all_ns, count: count + 1 });
    }

    /// What `work` makes, and whether it was done in so many stretches at least, none of which was longer than a tenth of it:
    /// where whole passes over all rules do not pause, that is seen, on however slow a machine.
    fn in_stretches<T>(what: &str, at_least: u64, long: &mut Vec<String>, work: impl FnOnce() -> T) -> T {
        pace::give_way(look);
        STRETCHES.set(Stretches { begun_ns: thread_cpu_ns(), ..Stretches::default() });
        let made = work();
        look();
        let Stretches { longest_ns, all_ns, count, .. } = STRETCHES.get();
        assert!(count >= at_least, "{what}: {count} stretches");
        if longest_ns * 10 >= all_ns {
            long.push(format!("{what}: {longest_ns} ns of {all_ns} ns in {count} stretches"));
        }
        made
    }

    /// A rule for each number, and the last of them to this pool.
    fn plan(condition: impl Fn(usize) -> String, pool: &str, long: &mut Vec<String>) -> Plan {
        let rule = |number| {
            let pool = if number + 1 == RULES { pool } else { "a" };
            format!("R{number}: if ({}) {{ routeTo({pool}); }}\n", condition(number))
        };
        let rules: String = (0..RULES).map(rule).collect();
        let pools: String =
            ["a", "b"].map(|pool| format!("[pool.{pool}]\nservers = [\"127.0.0.1:1\"]\n")).concat();
        let listener = "[[listener]]\nname = \"l\"\nbind = \"127.0.0.1:0\"\nrules = \"r\"\npool = \"a\"\n";
        let loaded =
            in_stretches("reading", 5_000, long, || Plan::from_texts(&format!("{listener}{pools}"), &rules));
        loaded.unwrap_or_else(|problems| panic!("{}", problems.render(pointsman_config::Colour::Never))).plan
    }

    /// Reads two large sets of rules, says where they differ, and drops them. What does not pause is long each time; what
    /// the kernel did in the thread's name for once is not.
    fn check(condition: impl Fn(usize) -> String) {
        let mut tries = (0..3).map(|_| long_stretches(&condition));
        let first = tries.next().expect("three");
        assert!(first.is_empty() || tries.any(|long| long.is_empty()), "{first:?}");
    }

    /// What was not done in short stretches.
    fn long_stretches(condition: impl Fn(usize) -> String) -> Vec<String> {
        let mut long = Vec::new();
        let [old, new] = ["a", "b"].map(|pool| plan(&condition, pool, &mut long));
        let [old_side, new_side] = [&old, &new].map(|plan| RuleSide {
            program: plan.listeners[0].program.as_ref().expect("rules"),
            default_pool: Some("a"),
        });
        let setting = setting(&new.listeners[0], &new);
        let compare = || differences(old_side, new_side, &setting, Effort::new(100_000_000));
        let found = in_stretches("comparing", 5_000, &mut long, compare);
        assert!(found.are_some());
        in_stretches("dropping", 500, &mut long, || drop((old, new)));
        long
    }

    #[test]
    fn work_on_many_rules_is_done_in_short_stretches() {
        check(|number| format!("path startsWith \"/{number}/\""));
        check(|number| format!("host == \"h{number}.test\" && method == \"GET\""));
        check(|number| format!("srcip in [10.{}.{}.0/24]", number / 256, number % 256));
        check(|number| format!("query[\"p{number}\"] == \"x\""));
        check(|number| format!("json.amount > {number} && json.amount < {}", number + 3));
    }

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

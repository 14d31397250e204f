//! One round: a provider does one operation for a while, on so many threads, and two clocks run.
//!
//! Wall-clock time says how many there are in a second. CPU time says what this machine spent on them: of the threads
//! that asked, and of the whole process, so that what a provider does on threads of its own is seen as well.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Barrier;
use std::time::Duration;

use hdrhistogram::Histogram;
use pointsman_bench::clock::{now_ns, process_cpu_ns, thread_cpu_ns};
use pointsman_bench::{ThreadAccount, ThreadWatch};

use crate::work::{Trouble, Work};

/// Operations shorter than this are timed several together, so that the clock is not what is measured.
const TIMED_NS_MIN: u64 = 5_000;
/// Up to this share of its time, a thread that neither ran nor waited for a core says nothing of where the work is done.
const IDLE_SHARE_MIN: f64 = 0.1;
/// The longest time that histograms hold: an hour.
const LATENCY_NS_MAX: u64 = 3_600_000_000_000;

/// What came of a round.
#[derive(Clone, Debug)]
pub struct Round {
    /// Operations done, of all threads.
    pub operations: u64,
    /// Operations a second by the wall clock: the sum over threads.
    pub rate: f64,
    /// CPU time of the threads that asked, in ns.
    pub asking_cpu_ns: u64,
    /// CPU time that the process spent besides, on threads of the provider's own, in ns.
    pub other_cpu_ns: u64,
    /// The sum over threads of the time in which they asked, in ns.
    pub thread_ns: u64,
    /// How much of that the threads could have run and had no core, in ns; nothing where that could not be read.
    pub waited_ns: Option<u64>,
    /// How often the threads were put off their cores for somebody else; nothing where that is not seen.
    pub switched: Option<u64>,
    /// Times of single operations, in ns; nothing where only their sum can be seen.
    pub latency: Option<Histogram<u64>>,
}

impl Round {
    /// CPU time of an operation on this machine, in µs.
    pub fn cpu_us(&self) -> f64 {
        (self.asking_cpu_ns + self.other_cpu_ns) as f64 / 1e3 / self.operations.max(1) as f64
    }

    /// The share of the threads' time in which they could have run and had no core, from 0 to 1; nothing where that could
    /// not be read.
    pub fn waited_share(&self) -> Option<f64> {
        self.waited_ns.map(|waited_ns| (waited_ns as f64 / self.thread_ns.max(1) as f64).min(1.0))
    }

    /// The share of the time of an operation in which a core of this machine worked on it, waiting for a core left out:
    /// near 1 where it is done here, near 0 where something else does it.
    pub fn cpu_share(&self) -> f64 {
        let had_core = self.thread_ns.saturating_sub(self.waited_ns.unwrap_or(0));
        // Who computed had a core for it, whatever two clocks of the kernel say.
        let had_core = had_core.max(self.asking_cpu_ns).max(1);
        let share = (self.asking_cpu_ns + self.other_cpu_ns) as f64 / had_core as f64;
        // Where nearly all of the time was waited for a core, the rest is as small as what these clocks are apart.
        let idle = had_core.saturating_sub(self.asking_cpu_ns) as f64 / self.thread_ns.max(1) as f64;
        if idle <= IDLE_SHARE_MIN { share.max(1.0 - idle) } else { share }
    }
}

/// What one thread saw.
struct Seen {
    operations: u64,
    thread_ns: u64,
    asking_cpu_ns: u64,
    /// CPU time of the whole stay between the two barriers, preparations included.
    all_cpu_ns: u64,
    /// In the time in which it asked; nothing where it could not be read.
    waited: Option<Waited>,
    latency: Histogram<u64>,
}

/// How long a thread had no core, and how often it was put off one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Waited {
    ns: u64,
    switched: u64,
}

impl Waited {
    /// Between two looks around a stretch of so much time, in which the thread ran for so long: what is more than that is
    /// from the moments of looking.
    fn between(
        before: Option<ThreadAccount>,
        after: Option<ThreadAccount>,
        (wall_ns, cpu_ns): (u64, u64),
    ) -> Option<Waited> {
        let (before, after) = (before?, after?);
        let ns = after.waited_ns?.saturating_sub(before.waited_ns?).min(wall_ns.saturating_sub(cpu_ns));
        Some(Waited { ns, switched: after.switched.saturating_sub(before.switched) })
    }

    fn and(self, other: Waited) -> Waited {
        Waited { ns: self.ns + other.ns, switched: self.switched + other.switched }
    }
}

/// Does an operation on `depth` threads for `time`. `work` makes each thread's own; what it needs is not measured.
pub(crate) fn round<'a>(
    depth: usize,
    time: Duration,
    work: &(dyn Fn() -> Result<Box<dyn Work + 'a>, Trouble> + Sync),
) -> Result<Round, Trouble> {
    let begin = Barrier::new(depth + 1);
    let end = Barrier::new(depth + 1);
    let (seen, process_ns) = std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..depth).map(|_| scope.spawn(|| on_thread(time, work, &begin, &end))).collect();
        begin.wait();
        let before = process_cpu_ns();
        end.wait();
        let process_ns = process_cpu_ns() - before;
        let seen: Vec<_> =
            threads.into_iter().map(|thread| thread.join().map_err(|_| panicked()).flatten()).collect();
        (seen, process_ns)
    });
    let seen = seen.into_iter().collect::<Result<Vec<Seen>, Trouble>>()?;
    let sum = |of: fn(&Seen) -> u64| seen.iter().map(of).sum::<u64>();
    let waited: Option<Vec<Waited>> = seen.iter().map(|seen| seen.waited).collect();
    let waited = waited.map(|all| all.into_iter().fold(Waited::default(), Waited::and));
    let mut latency = empty();
    for thread in &seen {
        latency.add(&thread.latency).map_err(|_| Trouble::new("times cannot be added up"))?;
    }
    Ok(Round {
        operations: sum(|seen| seen.operations),
        rate: seen.iter().map(|seen| seen.operations as f64 * 1e9 / seen.thread_ns.max(1) as f64).sum(),
        asking_cpu_ns: sum(|seen| seen.asking_cpu_ns),
        other_cpu_ns: elsewhere(process_ns, sum(|seen| seen.all_cpu_ns)),
        thread_ns: sum(|seen| seen.thread_ns),
        waited_ns: waited.map(|waited| waited.ns),
        switched: waited.map(|waited| waited.switched),
        latency: Some(latency),
    })
}

/// What the process spent and the asking threads did not. The two clocks are not read in one moment, and this thread
/// wakes up twice: what is less than a hundredth is that.
fn elsewhere(process_ns: u64, threads_ns: u64) -> u64 {
    let rest = process_ns.saturating_sub(threads_ns);
    if rest * 100 < process_ns { 0 } else { rest }
}

fn on_thread<'a>(
    time: Duration,
    work: &(dyn Fn() -> Result<Box<dyn Work + 'a>, Trouble> + Sync),
    begin: &Barrier,
    end: &Barrier,
) -> Result<Seen, Trouble> {
    // Whoever fails still comes to both barriers: others wait there.
    let ready = unless_it_panics(|| {
        let mut work = work()?;
        let group = at_once(work.as_mut())?;
        Ok((work, group))
    });
    begin.wait();
    // Looking costs time of the processor, too, which is nobody else's.
    let cpu = thread_cpu_ns();
    let seen =
        ready.and_then(|(mut work, group)| unless_it_panics(move || turns(work.as_mut(), group, time)));
    let cpu = thread_cpu_ns() - cpu;
    end.wait();
    seen.map(|seen| Seen { all_cpu_ns: cpu, ..seen })
}

/// What it gives; trouble where a provider panics. Nothing of what it was about is used behind that.
fn unless_it_panics<T>(work: impl FnOnce() -> Result<T, Trouble>) -> Result<T, Trouble> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err(panicked()))
}

fn panicked() -> Trouble {
    Trouble::new("a thread of the measurement has panicked")
}

/// How many turns are timed together, from how long they take when warm.
fn at_once(work: &mut dyn Work) -> Result<usize, Trouble> {
    const TURNS: u64 = 4;
    work.prepare(TURNS as usize + 1)?;
    work.turn()?;
    let begun = now_ns();
    for _ in 0..TURNS {
        work.turn()?;
    }
    let one_ns = ((now_ns() - begun) / TURNS).max(1);
    Ok(TIMED_NS_MIN.div_ceil(one_ns) as usize)
}

fn turns(work: &mut dyn Work, group: usize, time: Duration) -> Result<Seen, Trouble> {
    let mut seen = Seen {
        operations: 0,
        thread_ns: 0,
        asking_cpu_ns: 0,
        all_cpu_ns: 0,
        waited: Some(Waited::default()),
        latency: empty(),
    };
    let account = ThreadWatch::own();
    let group = group.min(work.turns_at_once());
    let stretch = work.turns_at_once() / group * group;
    let time_ns = time.as_nanos() as u64;
    while seen.thread_ns < time_ns {
        work.prepare(stretch)?;
        // Of the time that is counted and no other: preparing may take longer than what is prepared for.
        let before = account.account();
        let (cpu, begun) = (thread_cpu_ns(), now_ns());
        let (mut last, mut done) = (begun, 0);
        while done < stretch && seen.thread_ns + (last - begun) < time_ns {
            for _ in 0..group {
                work.turn()?;
            }
            let now = now_ns();
            seen.latency.saturating_record_n((now - last) / group as u64, group as u64);
            (last, done) = (now, done + group);
        }
        let cpu_ns = thread_cpu_ns() - cpu;
        let waited = Waited::between(before, account.account(), (last - begun, cpu_ns));
        seen.waited = seen.waited.zip(waited).map(|(all, now)| all.and(now));
        seen.asking_cpu_ns += cpu_ns;
        seen.thread_ns += last - begun;
        seen.operations += done as u64;
    }
    Ok(seen)
}

/// Three digits, from nanoseconds up to an hour.
pub(crate) fn empty() -> Histogram<u64> {
    let made = Histogram::new_with_bounds(1, LATENCY_NS_MAX, 3);
    made.unwrap_or_else(|_| unreachable!("bounds and digits are constants that the library takes"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::work::Plain;

    #[test]
    fn what_threads_do_is_added_up() {
        let work = || -> Result<Box<dyn Work>, Trouble> {
            Ok(Box::new(Plain(|| {
                std::hint::black_box((0..1000_u64).map(std::hint::black_box).sum::<u64>());
                Ok(())
            })))
        };
        let round = round(2, Duration::from_millis(10), &work).expect("arithmetic");
        assert!(round.operations > 0 && round.rate > 0.0 && round.cpu_us() > 0.0, "{round:?}");
        assert_eq!(round.latency.expect("timed one by one").len(), round.operations);
    }

    struct Prepared {
        left: usize,
    }

    impl Work for Prepared {
        fn prepare(&mut self, turns: usize) -> Result<(), Trouble> {
            self.left = turns;
            Ok(())
        }

        fn turns_at_once(&self) -> usize {
            7
        }

        fn turn(&mut self) -> Result<(), Trouble> {
            self.left = self.left.checked_sub(1).ok_or_else(|| Trouble::new("unprepared"))?;
            Ok(())
        }
    }

    #[test]
    fn nothing_turns_unprepared_and_trouble_stops_all_threads() {
        let work = || -> Result<Box<dyn Work>, Trouble> { Ok(Box::new(Prepared { left: 0 })) };
        assert!(round(3, Duration::from_millis(2), &work).is_ok());
        let troubled = || -> Result<Box<dyn Work>, Trouble> {
            Ok(Box::new(Plain(|| Err(Trouble::new("the card was pulled")))))
        };
        let trouble = round(3, Duration::from_millis(2), &troubled).expect_err("every turn fails");
        assert_eq!(trouble.to_string(), "the card was pulled");
    }

    /// Getting ready waits for a core as long as it likes; here it sleeps, and lets others go first.
    struct SlowToPrepare;

    impl Work for SlowToPrepare {
        fn prepare(&mut self, _turns: usize) -> Result<(), Trouble> {
            let until_ns = thread_cpu_ns() + 3_000_000;
            while thread_cpu_ns() < until_ns {
                std::thread::yield_now();
            }
            Ok(())
        }

        fn turns_at_once(&self) -> usize {
            1
        }

        fn turn(&mut self) -> Result<(), Trouble> {
            let until_ns = thread_cpu_ns() + 50_000;
            while thread_cpu_ns() < until_ns {}
            Ok(())
        }
    }

    #[test]
    fn waiting_for_a_core_while_it_gets_ready_is_not_counted() {
        // So many threads that nearly each of them has to wait, and nearly only while it gets ready.
        let threads = 4 * std::thread::available_parallelism().map_or(1, usize::from);
        let work = || -> Result<Box<dyn Work>, Trouble> { Ok(Box::new(SlowToPrepare)) };
        let round = round(threads, Duration::from_millis(2), &work).expect("it only waits");
        let waited_ns = round.waited_ns.expect("an account");
        // Its clocks are not read in one moment.
        assert!(10 * (waited_ns + round.asking_cpu_ns) <= 11 * round.thread_ns, "{round:?}");
    }

    #[test]
    fn a_panic_ends_the_round_and_hangs_nobody() {
        // The first turns find out how long one takes; those behind them are in between the barriers.
        for after in [0, 20] {
            let work = || -> Result<Box<dyn Work>, Trouble> {
                let mut turns = 0;
                Ok(Box::new(Plain(move || {
                    turns += 1;
                    assert!(turns <= after, "the library has a bug");
                    Ok(())
                })))
            };
            let trouble = round(2, Duration::from_millis(5), &work).expect_err("it panics");
            assert_eq!(trouble, panicked());
        }
    }

    #[test]
    fn shares_leave_waiting_for_a_core_out() {
        let round = Round {
            operations: 100,
            rate: 1.0,
            asking_cpu_ns: 50_000,
            other_cpu_ns: 0,
            thread_ns: 100_000,
            waited_ns: Some(50_000),
            switched: Some(3),
            latency: None,
        };
        assert!((round.cpu_share() - 1.0).abs() < 1e-9 && (round.cpu_us() - 0.5).abs() < 1e-9);
        // More than was not computed cannot have been waited.
        let torn = Round { waited_ns: Some(99_000), ..round };
        assert!((torn.cpu_share() - 1.0).abs() < 1e-9, "{}", torn.cpu_share());
        // A machine so busy that it hardly ran: what is left between two clocks is no accelerator.
        let busy = Round { asking_cpu_ns: 5_000, waited_ns: Some(91_000), ..torn.clone() };
        assert!(busy.cpu_share() > 0.95, "{}", busy.cpu_share());
        let engaged = Round { asking_cpu_ns: 5_000, waited_ns: Some(50_000), ..torn.clone() };
        assert!(engaged.cpu_share() < 0.11, "{}", engaged.cpu_share());
        let unknown = Round { waited_ns: None, ..torn };
        assert_eq!(unknown.waited_share(), None);
        let account = |ns| Some(ThreadAccount { ran_ns: 0, waited_ns: Some(ns), switched: ns / 10 });
        let waited = |ns, switched| Some(Waited { ns, switched });
        assert_eq!(Waited::between(account(10), account(40), (100, 30)), waited(30, 3));
        assert_eq!(Waited::between(account(10), account(90), (100, 30)), waited(70, 8));
        assert_eq!(Waited::between(None, account(40), (100, 30)), None);
        assert_eq!((elsewhere(1000, 995), elsewhere(1000, 400), elsewhere(5, 9)), (0, 600, 0));
    }
}

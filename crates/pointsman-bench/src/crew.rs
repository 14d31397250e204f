//! The threads of a run: they are started, watched until its end or until it is ended, and their records added up.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::bell::Bell;
use crate::clock::{SECOND_NS, now_ns};
use crate::plan::share_of_thread;
use crate::record::{BATCH_NS, Record};
use crate::request::Requests;
use crate::run::Place;
use crate::self_watch::{Look, SelfWatch, ThreadWatch};
use crate::server_watch::{Looked, SEARCH_LEAD_NS, ServerWatch};
use crate::users::Setup;
use crate::worker::{Assignment, Gauges, Timeline, Worker, batches};
use crate::{Fault, Interrupt, Plan, Progress};

/// How soon it is heard that somebody wants no more of it.
const INTERRUPT_LOOK_NS: u64 = SECOND_NS / 10;
/// How long before load ends all threads are told, who look twenty times a second.
const END_LEAD_NS: u64 = SECOND_NS / 5;

/// The threads of a run.
pub(crate) struct Crew {
    threads: Vec<JoinHandle<io::Result<Record>>>,
    /// The kernel's accounts of them and of the machine, opened before there are connections.
    accounts: SelfWatch,
    gauges: Vec<Arc<Gauges>>,
    /// Tell threads when they begin, and then keep them from ending, and the kernel's accounts of them with them.
    leashes: Vec<Sender<Timeline>>,
}

impl Crew {
    /// All threads, with the connections that are to be open first. `accounts` are those of the machine.
    pub(crate) fn start(
        plan: &Arc<Plan>,
        requests: &Arc<Requests>,
        setups: Vec<Setup>,
        (place, bell): (Place, &Arc<Bell>),
        accounts: SelfWatch,
    ) -> Result<Crew, Fault> {
        let (say, said) = channel();
        let (threads, gauges, leashes) = (Vec::new(), Vec::new(), Vec::new());
        let mut crew = Crew { threads, accounts, gauges, leashes };
        let threads = setups.len() * place.of;
        let numbered = plan.numbers.given();
        for (at, setup) in setups.into_iter().enumerate() {
            let gauges = Arc::new(Gauges::default());
            let index = at * place.of + place.index;
            let opened_first = share_of_thread(plan.opened_first, (index, threads));
            let assignment = Assignment {
                plan: plan.clone(),
                requests: requests.clone(),
                setup,
                timeline: Timeline::TO_COME,
                gauges: gauges.clone(),
                bell: bell.clone(),
                index,
                threads,
                numbered,
            };
            let say = say.clone();
            let (leash, held) = channel();
            let name = format!("bench-{at}");
            let thread = std::thread::Builder::new().name(name).spawn(move || {
                let account = ThreadWatch::own();
                let mut worker = Worker::new(assignment)?;
                worker.open_first(opened_first)?;
                // Nobody waits for it where starting another thread has failed.
                let (Ok(()) | Err(_)) = say.send((at, account));
                // Who waits for all of them waits until the last has let go.
                drop(say);
                let timeline = held.recv().map_err(|_| io::Error::other("nobody let it begin"))?;
                let record = worker.run(timeline);
                // Nothing more is sent: what ends the wait is that the leash is gone.
                let (Ok(_) | Err(_)) = held.recv();
                record
            });
            crew.leashes.push(leash);
            crew.threads.push(thread.map_err(|error| Fault::io("cannot start a thread", &error))?);
            crew.gauges.push(gauges);
        }
        drop(say);
        let mut threads: Vec<(usize, ThreadWatch)> = said.iter().collect();
        threads.sort_unstable_by_key(|(at, _)| *at);
        crew.accounts.add(threads.into_iter().map(|(_, account)| account));
        Ok(crew)
    }

    pub(crate) fn begin(&self, timeline: Timeline) {
        for leash in &self.leashes {
            // Who has given up by now says why when it is joined.
            let (Ok(()) | Err(_)) = leash.send(timeline);
        }
    }

    /// Looks at everybody until the measured time is over, or the bell rings.
    pub(crate) fn watch(
        &self,
        (plan, mut server): (&Plan, Option<ServerWatch>),
        timeline: Timeline,
        bell: &Bell,
        observe: &mut dyn FnMut(&Progress),
    ) -> Watched {
        let mut sums = Sums { at_ns: timeline.begin_ns, time_waits: Some(0), ..Sums::default() };
        if let Some(server) = &mut server {
            let search_ns = timeline.from_ns.saturating_sub(SEARCH_LEAD_NS);
            self.pass_time(search_ns, (timeline, bell, &plan.interrupt), &mut sums, observe);
            server.search();
        }
        self.pass_time(timeline.from_ns, (timeline, bell, &plan.interrupt), &mut sums, observe);
        let began = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let server_before = server.as_ref().map(ServerWatch::look);
        let before = self.accounts.look();
        self.pass_time(timeline.to_ns, (timeline, bell, &plan.interrupt), &mut sums, observe);
        // Only a bell rings before it.
        let ends_ns = timeline.to_ns.min(bell.ends_ns()).max(timeline.from_ns);
        let until_ns = now_ns().clamp(timeline.from_ns, ends_ns);
        let after = self.accounts.look();
        let server_after = server.as_ref().map(ServerWatch::last_look);
        Watched {
            before,
            after,
            server: server_before.zip(server_after),
            began_unix_s: began.as_secs(),
            time_waits: sums.time_waits,
            batches: ((until_ns - timeline.from_ns) / BATCH_NS) as usize,
        }
    }

    /// Until then, until load is to end, or until the bell rings. Where somebody wants no more of it, load ends soon, and in
    /// the warm-up at once.
    fn pass_time(
        &self,
        until_ns: u64,
        (timeline, bell, interrupt): (Timeline, &Bell, &Interrupt),
        sums: &mut Sums,
        observe: &mut dyn FnMut(&Progress),
    ) {
        loop {
            let until_ns = until_ns.min(bell.ends_ns());
            let next_ns = (sums.at_ns + SECOND_NS).min(until_ns);
            let looked_ns = next_ns.min(now_ns() + INTERRUPT_LOOK_NS);
            if bell.wait_until(looked_ns) {
                return;
            }
            if interrupt.has_come() && bell.ends_ns() == u64::MAX {
                match timeline.ends_soon_ns(now_ns(), END_LEAD_NS) {
                    Some(ends_ns) => bell.end_at(ends_ns),
                    None => bell.ring(),
                }
                continue;
            }
            if looked_ns < next_ns {
                continue;
            }
            let seen = self.accounts.time_waits().zip(sums.time_waits);
            sums.time_waits = seen.map(|(now, most)| now.max(most));
            if next_ns == sums.at_ns + SECOND_NS {
                observe(&self.progress(next_ns, timeline, sums));
            }
            if next_ns == until_ns {
                return;
            }
        }
    }

    fn progress(&self, at_ns: u64, timeline: Timeline, last: &mut Sums) -> Progress {
        let sum = |of: fn(&Gauges) -> u64| self.gauges.iter().map(|gauges| of(gauges)).sum::<u64>();
        let now = Sums {
            at_ns,
            answered: sum(|gauges| gauges.answered.load(Ordering::Relaxed)),
            failed: sum(|gauges| gauges.failed.load(Ordering::Relaxed)),
            bytes: sum(|gauges| gauges.bytes.load(Ordering::Relaxed)),
            time_waits: last.time_waits,
        };
        let seconds = (at_ns - last.at_ns) as f64 / SECOND_NS as f64;
        let rate = |now: u64, then: u64| now.saturating_sub(then) as f64 / seconds;
        let since = |time_ns: u64| (time_ns - timeline.begin_ns) as f64 / SECOND_NS as f64;
        let lags = self.gauges.iter().map(|gauges| gauges.lag_ns.swap(0, Ordering::Relaxed));
        let progress = Progress {
            at_seconds: since(at_ns),
            of_seconds: since(timeline.to_ns),
            is_measured: at_ns > timeline.from_ns,
            rate: rate(now.answered, last.answered),
            failed_rate: rate(now.failed, last.failed),
            bytes_rate: rate(now.bytes, last.bytes),
            under_way: sum(|gauges| gauges.under_way.load(Ordering::Relaxed)),
            connections: sum(|gauges| gauges.connections.load(Ordering::Relaxed)),
            lag_ns: lags.max().unwrap_or_default(),
        };
        *last = now;
        progress
    }

    /// What all wrote down, and how long each of them spun.
    pub(crate) fn join(self, plan: &Plan) -> Result<(Record, Vec<u64>), Fault> {
        drop(self.leashes);
        let mut all = Record::new(batches(plan));
        let mut spun_ns = Vec::with_capacity(self.threads.len());
        for thread in self.threads {
            let ended = thread.join().map_err(|_| Fault::new("a thread of the generator broke off"))?;
            let record = ended.map_err(|error| Fault::io("a thread of the generator gave up", &error))?;
            spun_ns.push(record.spun_ns);
            all.merge(record);
        }
        Ok((all, spun_ns))
    }
}

/// Counts of all threads at a moment.
#[derive(Default)]
struct Sums {
    at_ns: u64,
    answered: u64,
    failed: u64,
    bytes: u64,
    /// Ports taken behind the ends of connections, at most so far; nothing where that could not be read.
    time_waits: Option<u64>,
}

/// What was seen at the two ends of the measured time, or of what there was of it.
pub(crate) struct Watched {
    pub(crate) before: Look,
    pub(crate) after: Look,
    pub(crate) server: Option<(Looked, Looked)>,
    pub(crate) began_unix_s: u64,
    /// Ports that were taken behind the ends of connections, at most; nothing where that could not be read.
    pub(crate) time_waits: Option<u64>,
    /// Whole tenths of a second that were measured: fewer than the plan has where the bell rang.
    pub(crate) batches: usize,
}

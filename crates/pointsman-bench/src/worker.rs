//! One thread of the generator: what is due is begun, what comes is taken, and both are written down.

mod account;
mod again;
mod clients;
mod connections;
mod timeline;
mod turns;
mod visit;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use slab::Slab;

pub(crate) use self::timeline::{Timeline, batches};
use crate::arrivals::Schedule;
use crate::bell::Bell;
use crate::classes::ClassRecord;
use crate::clock::now_ns;
use crate::connection::{Connection, End, Job, Parts, Turn};
use crate::plan::{Load, share_of_thread};
use crate::poller::{Poller, Ready, spins};
use crate::record::{ErrorKind, Record};
use crate::request::Requests;
use crate::session_record::SessionRecord;
use crate::shares::Mix;
use crate::users::{Setup, Users};
use crate::{Close, Plan};

/// Requests that may wait for a connection; what comes beside them is unsent.
const BACKLOG_MAX: usize = 1 << 20;

/// Arrivals that are begun before sockets are looked at again.
const ARRIVALS_A_ROUND: usize = 32;

/// What a thread shows of itself while it runs.
#[derive(Debug, Default)]
pub(crate) struct Gauges {
    pub(crate) answered: AtomicU64,
    pub(crate) failed: AtomicU64,
    pub(crate) bytes: AtomicU64,
    pub(crate) under_way: AtomicU64,
    pub(crate) connections: AtomicU64,
    /// The worst lag since somebody looked.
    pub(crate) lag_ns: AtomicU64,
}

/// What a thread is started with.
#[derive(Debug)]
pub(crate) struct Assignment {
    pub(crate) plan: Arc<Plan>,
    pub(crate) requests: Arc<Requests>,
    /// What handshakes are done with.
    pub(crate) setup: Setup,
    /// To come, until [`Worker::run`] is told of it.
    pub(crate) timeline: Timeline,
    pub(crate) gauges: Arc<Gauges>,
    /// Ends it before its time.
    pub(crate) bell: Arc<Bell>,
    /// Which thread it is of all that carry the plan out, on this machine and others.
    pub(crate) index: usize,
    /// How many those are.
    pub(crate) threads: usize,
    /// How many numbers had been given when the load began.
    pub(crate) numbered: u64,
}

/// One thread's state.
pub(crate) struct Worker {
    given: Assignment,
    poller: Poller,
    connections: Slab<Connection>,
    connections_max: usize,
    /// Users at a time, where a session begins whether others have ended or not.
    users_max: usize,
    /// Open connections without a request, by origin; the one that was used last is used next.
    idle: Vec<Vec<usize>>,
    /// Of each client of a closed loop, by origin. With streams, as many clients share one.
    own: Vec<Option<usize>>,
    backlog: VecDeque<Job>,
    /// What is to be sent once more, and waits for a connection: it is under way, and goes before the backlog.
    to_send_again: VecDeque<Job>,
    spare: Vec<Parts>,
    schedule: Option<Schedule>,
    mix: Mix,
    /// Clients of a closed loop.
    clients: usize,
    /// Those that will ask again, by when.
    resting: BinaryHeap<Reverse<(u64, u32)>>,
    /// The measured time has not begun.
    warms_up: bool,
    /// Connections that were not read to the end in their turn, each once; who waits for longest is first.
    unread: VecDeque<Ready>,
    /// Requests of a connection that fails: empty between.
    failing: Vec<Job>,
    /// What is begun at once: empty between.
    beginning: Vec<Job>,
    random: fastrand::Rng,
    record: Record,
    turn: Turn,
    begun: u64,
    opened: u64,
    under_way: u64,
    /// How much of the measured time it was looked how many requests are under way.
    looked: usize,
    /// When it is looked. Of its own: what is asked for does not hang on how time goes by.
    moments: fastrand::Rng,
    failed: u64,
    answered: u64,
    bytes: u64,
    lag_ns: u64,
}

impl Worker {
    pub(crate) fn new(given: Assignment) -> io::Result<Worker> {
        let plan = &*given.plan;
        let origins = given.requests.origins.len();
        let seed = plan.seed.wrapping_mul(1_000_003).wrapping_add(given.index as u64);
        let mut random = fastrand::Rng::with_seed(seed);
        let mix = Mix::of(plan);
        let (schedule, clients) = asks(&given, &mix, &mut random);
        let connections_max = share_of_thread(plan.connections_max, (given.index, given.threads)).max(1);
        let capacity = connections_max.min(clients.max(1024));
        let mut turn = Turn::new(given.requests.clone(), random.fork());
        let mut record = Record::new(batches(plan));
        record.classes = plan.classes.iter().map(|_| ClassRecord::new(batches(plan))).collect();
        let mut users = clients;
        if let Some(script) = &plan.session {
            let all = turn.users.insert(Users::new());
            for _ in 0..clients {
                all.add();
            }
            users = users.max(connections_max);
            record.sessions = Some(Box::new(SessionRecord::new(script.steps.len(), batches(plan))));
        }
        Ok(Worker {
            poller: Poller::new()?,
            connections: Slab::with_capacity(capacity),
            // Each client may have one to each place, and one for a request that wants it to itself.
            connections_max: connections_max.max(users.saturating_mul(origins + 1)),
            users_max: connections_max,
            idle: vec![Vec::with_capacity(capacity); origins],
            own: vec![None; clients.div_ceil(plan.streams as usize) * origins],
            backlog: VecDeque::new(),
            to_send_again: VecDeque::new(),
            spare: Vec::new(),
            unread: VecDeque::new(),
            failing: Vec::new(),
            beginning: Vec::new(),
            schedule,
            mix,
            clients,
            resting: BinaryHeap::new(),
            warms_up: false,
            record,
            turn,
            random,
            begun: 0,
            opened: 0,
            under_way: 0,
            looked: 0,
            moments: fastrand::Rng::with_seed(!seed),
            failed: 0,
            answered: 0,
            bytes: 0,
            lag_ns: 0,
            given,
        })
    }

    /// Runs until nothing is left to do, or the bell rings.
    pub(crate) fn run(mut self, timeline: Timeline) -> io::Result<Record> {
        self.given.timeline = timeline;
        self.warms_up = timeline.begin_ns < timeline.from_ns;
        self.schedule.iter_mut().for_each(|schedule| schedule.begin_at(timeline.begin_ns));
        self.resting = clients::to_come(&self.given, self.clients);
        self.keep_open(timeline.begin_ns)?;
        let mut ready: Vec<Ready> = Vec::with_capacity(64);
        let mut sweep_ns = self.next_look_ns(now_ns());
        loop {
            let now = now_ns();
            self.begin_due(now);
            if now >= sweep_ns {
                if self.given.bell.has_rung() {
                    // What is due behind it was never to be.
                    let timeline = &mut self.given.timeline;
                    timeline.to_ns = timeline.to_ns.min(now);
                    return Ok(self.end());
                }
                self.sweep(now);
                self.serve_waiting(now);
                sweep_ns = self.next_look_ns(now);
            }
            if now >= self.given.timeline.to_ns && self.under_way == 0 {
                return Ok(self.end());
            }
            // What was done since `now` is work, whatever is waited for behind it.
            let idle_ns = now_ns();
            let due_ns = self.wait(idle_ns, self.next_due_ns().min(sweep_ns), &mut ready)?;
            if ready.is_empty() && spins(idle_ns, due_ns) && self.given.timeline.measures(idle_ns) {
                self.record.spun_ns += now_ns().saturating_sub(idle_ns);
            }
            for ready in ready.drain(..) {
                let now = now_ns();
                self.on_ready(ready, now);
                self.serve_waiting(now);
                self.begin_due(now);
            }
        }
    }

    fn next_due_ns(&self) -> u64 {
        let arrival = self.schedule.as_ref().map_or(u64::MAX, Schedule::due_ns);
        let client = self.resting.peek().map_or(u64::MAX, |Reverse((at_ns, _))| *at_ns);
        let next_ns = arrival.min(client);
        if next_ns < self.given.timeline.to_ns { next_ns } else { u64::MAX }
    }

    /// Begins what is due.
    #[inline]
    fn begin_due(&mut self, now: u64) {
        // Whoever says so says it before that time: nothing of a later one is taken, however late this thread is.
        self.given.timeline.to_ns = self.given.timeline.to_ns.min(self.given.bell.ends_ns());
        if self.warms_up && now >= self.given.timeline.from_ns {
            self.end_warm_up();
        }
        for _ in 0..ARRIVALS_A_ROUND {
            let due_ns = self.next_due_ns();
            if due_ns > now {
                return;
            }
            let Some(job) = self.take_due(due_ns) else { continue };
            if let Some(job) = self.assign(job) {
                if self.backlog.len() < BACKLOG_MAX {
                    self.hold_back(job);
                } else {
                    self.record.unsent += job.counted();
                    self.step_ended(&job, false, due_ns, 0);
                }
            }
        }
    }

    /// What is due then, counted as due. Nothing: there is no room for another user.
    fn take_due(&mut self, due_ns: u64) -> Option<Job> {
        let client = match &mut self.schedule {
            Some(schedule) if schedule.due_ns() == due_ns => {
                schedule.advance();
                None
            }
            _ => self.resting.pop().map(|Reverse((_, client))| client),
        };
        let drawn = self.mix.draw(&mut self.random);
        let (client, request) = match &self.given.plan.session {
            None => (client, self.given.requests.draw(&mut self.random, drawn.tls) as u32),
            Some(_) => {
                let (user, step) = self.visit(due_ns, client)?;
                (Some(user), step)
            }
        };
        let job = Job {
            due_ns,
            client,
            pipeline: drawn.requests,
            is_counted: self.given.timeline.measures(due_ns),
            is_kept: drawn.is_kept,
            ..Job::new(request)
        };
        self.count_due(&job);
        Some(job)
    }

    /// Sends a request, or a pipeline of them, on a connection that is free, or on a new one. Given back: there are as
    /// many as there may be.
    fn assign(&mut self, mut job: Job) -> Option<Job> {
        let origin = self.given.requests.get(job.request as usize).origin;
        let free = if job.is_kept { self.free(origin, job.client, job.pipeline) } else { None };
        if free.is_none() && self.connections.len() >= self.connections_max && !self.close_another(origin) {
            return Some(job);
        }
        let now = now_ns();
        let mut jobs = std::mem::take(&mut self.beginning);
        if job.is_again {
            // It was begun before.
            jobs.push(job);
        } else {
            job.begun_ns = now;
            self.count_begun(&job);
            self.line_up(job, origin, &mut jobs);
        }
        match free {
            Some(number) => self.ask(number, &jobs, now),
            None => self.open(origin, &jobs, now),
        }
        jobs.clear();
        self.beginning = jobs;
        None
    }

    /// A job for each request of what is begun at once; the others of a pipeline go where its first goes.
    fn line_up(&mut self, first: Job, origin: usize, jobs: &mut Vec<Job>) {
        for left in (0..first.pipeline).rev() {
            self.begun += 1;
            let request = match jobs.is_empty() {
                true => first.request,
                false => self.given.requests.draw_at(origin, &mut self.random) as u32,
            };
            // Threads count in turns: no number is given twice, wherever they run.
            let turn = (self.begun - 1) * self.given.threads as u64 + self.given.index as u64;
            let number = self.given.numbered + turn + 1;
            self.record.last_number = number;
            jobs.push(Job { request, number, is_last: left == 0, ..first });
        }
    }

    fn ask(&mut self, number: usize, jobs: &[Job], now: u64) {
        let asked = self.connections[number].ask(jobs, now, &mut self.turn);
        self.write_down(now);
        match asked {
            Ok(()) => self.list(number),
            Err(kind) => self.fail_connection(number, kind, now),
        }
    }

    fn on_ready(&mut self, ready: Ready, now: u64) {
        let number = ready.number;
        // It may have been closed since: an edge of a socket that is gone.
        if !self.poller.is_of_now(&ready) {
            return;
        }
        let Some(connection) = self.connections.get_mut(number) else { return };
        let end = connection.on_ready(ready, now, &mut self.turn);
        self.write_down(now);
        let kind = match end {
            End::Goes => return self.settle(number, now),
            End::Unread => {
                self.turn_again(ready);
                return self.settle(number, now);
            }
            End::Ended => {
                let had_none = self.connections[number].is_quiet() && self.turn.done.is_empty();
                self.record.closed_idle += u64::from(had_none);
                ErrorKind::Closed
            }
            End::Failed(kind, words) => {
                self.record.tls_fault = self.record.tls_fault.take().or(words);
                kind
            }
        };
        self.fail_connection(number, kind, now);
    }

    /// Deals with what came on a connection that goes on.
    fn settle(&mut self, number: usize, now: u64) {
        let connection = &self.connections[number];
        if !connection.goes_on() && (connection.is_quiet() || connection.has_had_last()) {
            self.fail_connection(number, ErrorKind::Closed, now);
        } else {
            self.list(number);
            self.finish_all(now);
        }
    }

    /// Deals with the requests that had their turn.
    fn finish_all(&mut self, now: u64) {
        let mut done = std::mem::take(&mut self.turn.done);
        done.drain(..).for_each(|(job, status)| self.finish(job, status, now));
        self.turn.done = done;
        if !self.turn.failed.is_empty() {
            let mut failed = std::mem::take(&mut self.turn.failed);
            failed.drain(..).for_each(|(job, kind)| self.fail(job, kind, now));
            self.turn.failed = failed;
        }
        if !self.turn.refused.is_empty() {
            let mut refused = std::mem::take(&mut self.turn.refused);
            refused.drain(..).for_each(|job| self.send_refused(job, now));
            self.turn.refused = refused;
        }
    }

    /// A connection is of no use any more, and so are the requests on it that have no answer, unless the server said that it
    /// leaves them to another one.
    fn fail_connection(&mut self, number: usize, kind: ErrorKind, now: u64) {
        let mut failed = std::mem::take(&mut self.failing);
        self.connections[number].give_up(&mut failed);
        let how = if kind == ErrorKind::Timeout { Close::Reset } else { self.given.plan.close };
        let (is_left, origin) = (self.connections[number].has_had_last(), self.connections[number].origin);
        self.close_as(number, how);
        self.finish_all(now);
        if is_left && !failed.is_empty() {
            self.send_again(origin, &mut failed, now);
        }
        let begun_by_ns = self.begun_by_ns(now);
        for job in failed.drain(..) {
            // Nobody has waited for it until it was late.
            let is_early = kind == ErrorKind::Timeout && job.begun_ns > begun_by_ns;
            self.fail(job, if is_early { ErrorKind::Closed } else { kind }, now);
        }
        self.failing = failed;
    }

    /// Begins what waits for a connection, where there is room by now.
    #[inline]
    fn serve_waiting(&mut self, now: u64) {
        if !self.to_send_again.is_empty() && !self.serve_again() {
            return;
        }
        if self.backlog.is_empty() || self.given.timeline.to_ns <= now {
            return;
        }
        while let Some(job) = self.backlog.pop_front() {
            if let Some(job) = self.assign(job) {
                self.backlog.push_front(job);
                return;
            }
        }
    }

    /// What was begun by then is late.
    fn begun_by_ns(&self, now: u64) -> u64 {
        now.saturating_sub(self.given.plan.timeout.as_nanos() as u64)
    }

    /// Looks what is under way, ends what has taken too long, and shows how things are.
    fn sweep(&mut self, now: u64) {
        self.look(now);
        let begun_by_ns = self.begun_by_ns(now);
        self.end_late_again(begun_by_ns, now);
        let is_late = |(_, connection): &(usize, &Connection)| connection.is_late(begun_by_ns);
        let late: Vec<usize> = self.connections.iter().filter(is_late).map(|(number, _)| number).collect();
        for number in late {
            // What was late may have ended what was looked at before.
            let Some(connection) = self.connections.get_mut(number) else { continue };
            if connection.cut_late(begun_by_ns, &mut self.turn) {
                self.write_down(now);
                self.settle(number, now);
            } else {
                self.fail_connection(number, ErrorKind::Timeout, now);
            }
        }
        self.show();
    }

    fn end(mut self) -> Record {
        self.record.unsent += self.backlog.iter().map(Job::counted).sum::<u64>();
        // Where all fails at once nothing is under way, however much the thread is behind: what fell due in time and had
        // no turn is unsent. A session that it belongs to is cut by the end.
        loop {
            let due_ns = self.next_due_ns();
            if due_ns == u64::MAX {
                break;
            }
            if let Some(job) = self.take_due(due_ns) {
                self.record.unsent += job.counted();
            }
        }
        let numbers: Vec<usize> = self.connections.iter().map(|(number, _)| number).collect();
        for number in numbers {
            self.connections.remove(number).close(self.given.plan.close);
        }
        self.record
    }
}

/// When an open loop asks, and how many clients a closed one has here.
fn asks(given: &Assignment, mix: &Mix, random: &mut fastrand::Rng) -> (Option<Schedule>, usize) {
    let (plan, place) = (&given.plan, (given.index, given.threads));
    match plan.load {
        Load::Open { rate, arrivals } => {
            let rate = rate / mix.requests_each();
            let schedule = Schedule::new(arrivals, rate, place, random.u64(..));
            (Some(schedule), 0)
        }
        Load::Closed { clients } => {
            (None, clients::of_thread(clients as usize, plan.streams as usize, place))
        }
    }
}

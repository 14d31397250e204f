//! The whole switch: its threads, the plan they share, and the sockets they accept on.

use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pointsman_config::{Bind, Plan, Pool, PoolIndex};
use pointsman_net::{Budget, Clock, Line};
use pointsman_telemetry::{Metrics, Notes, Sinks};

use crate::beside::{Candidate, DryRun, DryRunEnd};
use crate::crew::{Crew, Kit, seed};
use crate::live::{Live, Registry};
use crate::prober::{HealthChange, HealthNews, Prober};
use crate::servers::ByHand;
use crate::shared::{Capacity, Shared};
use crate::shortage::Lack;
use crate::sockets::{BindFault, Inherited, SocketLabel, Sockets};
use crate::sticky_clients::look_again;
use crate::sticky_passing::take_sticky_clients;
use crate::threads::Threads;

/// What a switch needs beside its plan.
pub struct Start {
    /// What it runs on.
    pub threads: Threads,
    /// Where threads count.
    pub metrics: Arc<Metrics>,
    /// Where they write what they hear.
    pub sinks: Sinks,
    /// Keys stickiness where the plan names no key.
    pub sticky_key: [u8; 16],
    /// Keys the ids of clients; never the same twice.
    pub client_id_key: [u8; 16],
    /// How many descriptors a table of them may have; `None`: no limit.
    pub descriptors_max: Option<u64>,
    /// What those threads may take.
    pub capacity: Capacity,
    /// Listening sockets that are open already. What no listener takes of them is closed.
    pub inherited: Inherited,
    /// What holds of servers from the first request on.
    pub by_hand: Vec<ByHand>,
    /// What the process before this one gives of its sticky clients.
    pub sticky_clients: Option<Line>,
    /// Where threads note why something failed.
    pub notes: Arc<Notes>,
}

/// A running switch.
pub struct Switch {
    pub(crate) shared: Arc<Shared>,
    clock: Clock,
    prober: Prober,
    /// The live generation. To look at it where it is shared would write to what requests read.
    pub(crate) live: Arc<Live>,
    pub(crate) registry: Registry,
    crew: Crew,
    sockets: Sockets,
    /// Generations that some thread may still hold. They are never freed on a thread that serves.
    retired: Vec<Arc<Live>>,
    /// Whether what has been freed since the last look may have been the last to name something.
    are_freed: Arc<AtomicBool>,
    pub(crate) dry_run: DryRun,
}

/// Generations, and candidates of dry-runs, that nobody holds any more. They end when this is dropped.
pub struct Unheld {
    generations: Vec<Arc<Live>>,
    candidates: Vec<Arc<Candidate>>,
    are_freed: Arc<AtomicBool>,
}

impl Unheld {
    /// Whether there is nothing to end.
    pub fn is_empty(&self) -> bool {
        self.generations.is_empty() && self.candidates.is_empty()
    }
}

impl Drop for Unheld {
    fn drop(&mut self) {
        if !self.generations.is_empty() {
            self.generations.clear();
            self.are_freed.store(true, Ordering::Release);
        }
    }
}

/// An address that is listened on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// The listener's name.
    pub listener: Arc<str>,
    /// The address, its port resolved, or the path.
    pub address: Bind,
    /// Whether clients speak TLS there.
    pub tls: bool,
}

/// Why a switch cannot start.
#[derive(Debug)]
pub enum StartFault {
    /// An address cannot be listened on.
    Bind(BindFault),
    /// A thread cannot begin.
    Thread(io::Error),
}

impl fmt::Display for StartFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartFault::Bind(fault) => fault.fmt(f),
            StartFault::Thread(error) => write!(f, "a thread cannot begin: {error}"),
        }
    }
}

impl std::error::Error for StartFault {}

/// How often somebody got none, since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shortages {
    /// Of the descriptors of the process, or of a thread's own table.
    pub descriptors: u64,
    /// Of the descriptors or the memory for sockets of the whole system.
    pub system: u64,
    /// Of the memory that `buffer_bytes_max` allows.
    pub buffer_bytes: u64,
}

impl Switch {
    /// Binds every listener and sets the threads to work.
    ///
    /// # Errors
    /// The first address that cannot be listened on, or what the system refuses; nothing is left behind.
    pub fn start(plan: Plan, mut start: Start) -> Result<Switch, StartFault> {
        let clock = Clock::start();
        let threads = start.capacity.threads;
        let mut registry = Registry::new(start.metrics.clone(), start.sticky_key, threads);
        let mut live = registry.attach(plan, 0);
        start.by_hand.iter().for_each(|set| set.set(&live));
        let mut sockets = Sockets::default();
        sockets.open(&live, threads, &mut start.inherited).map_err(StartFault::Bind)?;
        live.sockets = sockets.listeners();
        live.bound_servers();
        let live = Arc::new(live);
        let shared =
            Arc::new(Shared::new(live.clone(), start.descriptors_max, start.capacity, start.notes.clone()));
        let (waiting, nursery) = start.threads.into_parts();
        let kit = Kit {
            shared: shared.clone(),
            metrics: start.metrics,
            sinks: start.sinks,
            clock,
            client_id_key: start.client_id_key,
            nursery,
        };
        let mut switch = Switch {
            shared,
            clock,
            prober: Prober::new(clock, seed(start.client_id_key, u64::MAX - 1), start.notes),
            live,
            registry,
            crew: Crew::new(kit),
            sockets,
            retired: Vec::new(),
            are_freed: Arc::default(),
            dry_run: DryRun::default(),
        };
        switch.crew.set_to_work(waiting).map_err(StartFault::Thread)?;
        switch.prober.watch(&switch.live);
        switch.prober.begin().map_err(StartFault::Thread)?;
        if let Some(line) = start.sticky_clients {
            take_sticky_clients(line, &switch.shared, clock).map_err(StartFault::Thread)?;
        }
        // Last of all: what is accepted is served.
        switch.share_out();
        Ok(switch)
    }

    /// Puts a new plan in the place of the live one, and serves with so many threads. Open connections go on, also those
    /// of threads that are too many: such a thread leaves its sockets to others, with whoever waits there, and ends with
    /// its last connection.
    ///
    /// # Errors
    /// The first new address that cannot be listened on, or a thread that is not to be had; nothing has changed then.
    pub fn publish(&mut self, plan: Plan, capacity: Capacity) -> Result<u64, StartFault> {
        let waiting = self.crew.start_missing(capacity.threads).map_err(StartFault::Thread)?;
        let mut live = self.registry.attach(plan, self.now_us());
        let before = self.crew.team().len();
        let begun = self.crew.set_to_work(waiting).map_err(StartFault::Thread);
        let mut open = |()| self.sockets.open(&live, capacity.threads, &mut Inherited::default());
        begun.and_then(|begun| open(begun).map_err(StartFault::Bind)).inspect_err(|_| {
            self.crew.dismiss_all_but(before);
        })?;
        let gone = self.sockets.close(&live);
        live.sockets = self.sockets.listeners();
        self.shared.prepare(&live.plan, capacity);
        live.bound_servers();
        self.live = Arc::new(live);
        let beside = self.dry_run.beside(&self.live, self.clock.now_us());
        let previous = self.shared.publish(self.live.clone(), beside);
        if let Some(clients) = self.shared.sticky_clients.get() {
            look_again(clients, &previous, &self.live, self.now_us());
        }
        self.retired.push(previous);
        self.prober.watch(&self.live);
        self.crew.dismiss_all_but(capacity.threads);
        self.share_out();
        self.crew.close(&gone);
        Ok(self.shared.generation())
    }

    /// Lets the threads accept on what is theirs.
    fn share_out(&mut self) {
        let moves = self.sockets.share_out(&self.crew.team());
        self.crew.obey(&moves, &self.sockets);
    }

    /// How many threads serve.
    pub fn threads(&self) -> usize {
        self.shared.threads()
    }

    /// Sends what could not be sent before. Call it now and then.
    ///
    /// Gives the generations that no thread holds any more: to free one of many rules takes milliseconds, so do it
    /// where nobody waits.
    #[must_use = "who drops them takes the time"]
    pub fn clear_up(&mut self) -> Unheld {
        self.crew.send_sockets(&self.sockets);
        self.crew.forget_ended();
        // What cannot begin now may at the next call.
        let (Ok(()) | Err(_)) = self.prober.begin();
        let unheld: Vec<_> = self.retired.extract_if(.., |live| Arc::strong_count(live) == 1).collect();
        if self.are_freed.swap(false, Ordering::Acquire) {
            self.registry.forget_unused();
        }
        let candidates = self.clear_up_dry_run();
        Unheld { generations: unheld, candidates, are_freed: self.are_freed.clone() }
    }

    /// Every address that is listened on, in the order of the configuration.
    pub fn addresses(&self) -> Vec<Address> {
        let mut addresses = Vec::new();
        for (listener, state) in self.live.listeners() {
            let bound = self.sockets.of(state.id).into_iter().map(|address| Address {
                listener: listener.name.clone(),
                address,
                tls: listener.is_tls(),
            });
            addresses.extend(bound);
        }
        addresses
    }

    /// Shows the live plan.
    pub fn with_plan<T>(&self, see: impl FnOnce(&Plan) -> T) -> T {
        see(&self.live.plan)
    }

    /// The number of the live plan: how many there have been.
    pub fn generation(&self) -> u64 {
        self.shared.generation()
    }

    /// How often files are looked at for changes; 0: never.
    pub fn watch_ms(&self) -> u64 {
        self.with_plan(|plan| plan.watch_ms)
    }

    /// How long a drain may take.
    pub fn drain_ms_max(&self) -> u64 {
        self.with_plan(|plan| plan.drain_ms_max)
    }

    /// What probes and failures have changed since this was last asked.
    pub fn take_health_changes(&self) -> Vec<HealthChange> {
        let mut changes = self.prober.take_changes();
        for (pool, servers) in self.live.pools() {
            for (server, live) in
                pool.servers.iter().zip(servers).filter(|(_, live)| live.standing.takes_ejections())
            {
                debug_assert!(live.standing.ejections() > 0);
                let news = HealthNews::Ejected;
                changes.push(HealthChange { pool: pool.name.clone(), server: server.name.clone(), news });
            }
        }
        changes
    }

    /// The time that standings speak of: microseconds since the switch began.
    pub fn now_us(&self) -> u64 {
        self.clock.now_us()
    }

    pub(crate) fn clock(&self) -> Clock {
        self.clock
    }

    /// How many requests wait for a place at a server, by pool: of each pool with a server that may have only so many.
    pub fn queued(&self) -> impl Iterator<Item = (&str, usize)> {
        let is_bounded = |pool: &Pool| pool.servers.iter().any(|server| server.connections_max > 0);
        let pools = self.live.plan.pools.iter().enumerate().filter(move |(_, pool)| is_bounded(pool));
        pools.map(|(index, pool)| (&*pool.name, self.live.pool_state(PoolIndex(index as u32)).queue.len()))
    }

    /// Open client connections.
    pub fn open_connections(&self) -> usize {
        self.shared.open.load(Ordering::Relaxed)
    }

    /// How often something was not to be had.
    pub fn shortages(&self) -> Shortages {
        Shortages {
            descriptors: self.shared.shortages.of(Lack::Table),
            system: self.shared.shortages.of(Lack::System),
            buffer_bytes: self.shared.budget.shortages(),
        }
    }

    /// The memory that clients may take, and what is booked of it.
    pub fn budget(&self) -> &Budget {
        &self.shared.budget
    }

    /// Stops accepting; connections end after what they are doing now. A dry-run ends.
    pub fn drain(&mut self) {
        self.end_dry_run_for(DryRunEnd::Drained);
        self.sockets.close_ours();
        self.shared.draining.store(true, Ordering::Relaxed);
    }

    /// Each socket that is listened on, for another process to accept on.
    pub fn listening_sockets(&self) -> Vec<(SocketLabel, Vec<&OwnedFd>)> {
        self.sockets.labelled(&self.live)
    }

    /// Leaves the sockets to another process, which accepts on them by now. [`Switch::drain`] then lets connections ask
    /// once more before they end, since they are in nobody's way. Call it once [`Switch::has_left`]: who is told to
    /// connect anew is not to come here again.
    pub fn hand_on(&mut self) {
        self.sockets.leave_ours();
        self.shared.handed_on.store(true, Ordering::Release);
    }

    /// Whether no thread accepts any more after [`Switch::hand_on`].
    pub fn has_left(&self) -> bool {
        self.crew.has_left()
    }

    /// Ends what is still open.
    pub fn stop(&mut self) {
        self.drain();
        self.shared.stopping.store(true, Ordering::Relaxed);
    }

    /// Whether every thread has ended, which is so once nothing is open after [`Switch::drain`].
    pub fn has_ended(&self) -> bool {
        self.crew.has_ended()
    }
}

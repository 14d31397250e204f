//! The whole switch: its threads, the plan they share, and the sockets they accept on.

use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

use pointsman_balance::ClientIds;
use pointsman_config::{Bind, Plan};
use pointsman_net::{Budget, Clock, SocketSender};
use pointsman_telemetry::{Metrics, Sinks, WallBase};

use crate::live::{Live, Registry, SocketId};
use crate::prober::{HealthChange, HealthNews, Prober};
use crate::servers::ByHand;
use crate::shard::{Inbox, ShardStart, Shared};
use crate::shortage::Lack;
use crate::sockets::{BindFault, Inherited, SocketLabel, Sockets};
use crate::sticky_clients::look_again;
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
    /// How many connections of clients they are enough for: as many there may be where the plan names no
    /// limit.
    pub connections_max: u32,
    /// How many bytes of memory clients may take where the plan does not say.
    pub buffer_bytes_max: u64,
    /// Listening sockets that are open already. What no listener takes of them is closed.
    pub inherited: Inherited,
    /// What holds of servers from the first request on.
    pub by_hand: Vec<ByHand>,
}

/// A running switch.
pub struct Switch {
    pub(crate) shared: Arc<Shared>,
    clock: Clock,
    prober: Prober,
    /// The live generation. To look at it where it is shared would write to what requests read.
    pub(crate) live: Arc<Live>,
    pub(crate) registry: Registry,
    threads: Vec<Thread>,
    sockets: Sockets,
    /// Sockets that a thread is still to be sent.
    unsent: Vec<(usize, SocketId)>,
    /// Generations that some thread may still hold. They are freed here, never on a thread.
    retired: Vec<Arc<Live>>,
    /// The budget where the plan does not say.
    buffer_bytes_max: u64,
}

/// A thread, and the ways to it.
struct Thread {
    handle: JoinHandle<()>,
    inbox: Arc<Inbox>,
    sockets: SocketSender,
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
        let mut registry = Registry::new(start.metrics.clone(), start.sticky_key, start.threads.count());
        let mut live = registry.attach(plan, 0);
        start.by_hand.iter().for_each(|set| set.set(&live));
        let mut sockets = Sockets::default();
        let threads = start.threads.count();
        let opened = sockets.open(&live, threads, &mut start.inherited).map_err(StartFault::Bind)?;
        live.sockets = sockets.listeners();
        let buffer_bytes_max = live.plan.buffer_bytes_max.unwrap_or(start.buffer_bytes_max);
        let budget = Budget::new(buffer_bytes_max, start.threads.count());
        let live = Arc::new(live);
        let shared = Shared::new(live.clone(), start.connections_max, budget, start.threads.count());
        let mut switch = Switch {
            shared: Arc::new(shared),
            clock,
            prober: Prober::new(clock, seed(start.client_id_key, u64::MAX - 1)),
            live,
            registry,
            threads: Vec::new(),
            sockets,
            unsent: Vec::new(),
            retired: Vec::new(),
            buffer_bytes_max: start.buffer_bytes_max,
        };
        switch.set_to_work(start).map_err(StartFault::Thread)?;
        switch.prober.watch(&switch.live);
        switch.prober.begin().map_err(StartFault::Thread)?;
        // Last of all: what is accepted is served.
        switch.accept_on(&opened);
        Ok(switch)
    }

    fn set_to_work(&mut self, start: Start) -> io::Result<()> {
        let clock = self.clock;
        let base = WallBase { unix_us: clock.unix_us(), monotonic_us: clock.now_us() };
        let threads = start.threads.count();
        let idle_connections_max = self.with_plan(|plan| plan.upstream_idle_connections_max) / threads as u32;
        let pipes_max = self.with_plan(|plan| plan.splice_pipes_max);
        for (thread, waiting) in start.threads.into_waiting().into_iter().enumerate() {
            let inbox = Arc::new(Inbox::default());
            let Some(recorder) = start.metrics.recorder(&start.sinks, base) else {
                return Err(io::Error::other("the metrics were made for fewer threads"));
            };
            let shard = ShardStart {
                shared: self.shared.clone(),
                inbox: inbox.clone(),
                thread,
                threads,
                descriptors_max: start.descriptors_max,
                recorder,
                clock,
                client_ids: ClientIds::new(start.client_id_key, thread as u64),
                idle_connections_max,
                splice_pipes_max: share(pipes_max, threads, thread),
                seed: seed(start.client_id_key, thread as u64),
            };
            waiting.work.send(shard).map_err(|_| io::Error::other("it has ended"))?;
            self.threads.push(Thread { handle: waiting.thread, inbox, sockets: waiting.sockets });
        }
        Ok(())
    }

    /// Puts a new plan in the place of the live one. Open connections go on.
    ///
    /// # Errors
    /// The first new address that cannot be listened on; nothing has changed then.
    pub fn publish(&mut self, plan: Plan) -> Result<u64, BindFault> {
        let mut live = self.registry.attach(plan, self.now_us());
        let opened = self.sockets.open(&live, self.threads.len(), &mut Inherited::default())?;
        let gone = self.sockets.close(&live);
        live.sockets = self.sockets.listeners();
        self.shared.prepare(&live.plan);
        self.shared.budget.set_bytes_max(live.plan.buffer_bytes_max.unwrap_or(self.buffer_bytes_max));
        self.shared.holds.set_bytes_max(live.plan.hold_total_bytes_max);
        self.live = Arc::new(live);
        let previous = self.shared.publish(self.live.clone());
        if let Some(clients) = self.shared.sticky_clients.get() {
            look_again(clients, &previous, &self.live, self.now_us());
        }
        self.retired.push(previous);
        self.prober.watch(&self.live);
        self.accept_on(&opened);
        for socket in gone {
            self.threads.iter().for_each(|thread| thread.inbox.close(socket));
        }
        Ok(self.shared.generation())
    }

    fn accept_on(&mut self, opened: &[SocketId]) {
        let threads = 0..self.threads.len();
        self.unsent
            .extend(opened.iter().flat_map(|&socket| threads.clone().map(move |thread| (thread, socket))));
        self.send_sockets();
    }

    /// Sends the threads what they are to accept on. Meanwhile clients wait in the kernel's queue.
    fn send_sockets(&mut self) {
        let Switch { threads, sockets, unsent, .. } = self;
        for (number, thread) in threads.iter().enumerate() {
            unsent.extend(thread.inbox.take_missed().into_iter().map(|socket| (number, socket)));
        }
        unsent.retain(|&(number, socket)| {
            // Closed meanwhile.
            let Some(ours) = sockets.of_thread(socket, number) else { return false };
            let thread = &threads[number];
            let is_sent = thread.sockets.send(socket.0, ours).is_ok();
            if is_sent {
                thread.inbox.sockets_sent();
            }
            !is_sent
        });
    }

    /// Frees the generations that no thread holds any more, and sends what could not be sent before. Call it now
    /// and then.
    pub fn clear_up(&mut self) {
        self.send_sockets();
        // What cannot begin now may at the next call.
        let (Ok(()) | Err(_)) = self.prober.begin();
        let before = self.retired.len();
        self.retired.retain(|live| Arc::strong_count(live) > 1);
        if self.retired.len() < before {
            self.registry.forget_unused();
        }
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

    /// Stops accepting; connections end after what they are doing now.
    pub fn drain(&mut self) {
        self.sockets.close_ours();
        self.shared.draining.store(true, Ordering::Relaxed);
    }

    /// Each socket that is listened on, for another process to accept on.
    pub fn listening_sockets(&self) -> Vec<(SocketLabel, &[OwnedFd])> {
        self.sockets.labelled(&self.live)
    }

    /// The same as [`Switch::drain`] where another process accepts on the sockets by now. Connections are not in its way:
    /// they may ask once more before they end.
    pub fn hand_on(&mut self) {
        self.sockets.leave_ours();
        self.shared.handed_on.store(true, Ordering::Relaxed);
        self.shared.draining.store(true, Ordering::Release);
    }

    /// Ends what is still open.
    pub fn stop(&mut self) {
        self.drain();
        self.shared.stopping.store(true, Ordering::Relaxed);
    }

    /// Whether every thread has ended, which is so once nothing is open after [`Switch::drain`].
    pub fn has_ended(&self) -> bool {
        self.threads.iter().all(|thread| thread.handle.is_finished())
    }
}

/// A thread's share of what the process may have.
fn share(all: u32, threads: usize, thread: usize) -> u32 {
    let (each, over) = (all as usize / threads, all as usize % threads);
    (each + usize::from(thread < over)) as u32
}

/// Where a thread's choices by chance begin.
fn seed(key: [u8; 16], thread: u64) -> u64 {
    let [low @ .., _, _, _, _, _, _, _, _] = key;
    u64::from_le_bytes(low).wrapping_add(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(thread + 1))
}

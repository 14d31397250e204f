//! One thread of the switch: its own connections, buffers, deadlines and idle connections.

use std::cell::{Cell, RefCell};
use std::ops::ControlFlow;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll};

use pointsman_balance::{ClientIds, StickyTable};
use pointsman_config::Plan;
use pointsman_http::{PLAIN_TEXT_LINE, RequestHead, ResponseHead};
use pointsman_net::{Budget, Clock, EventLoop, Pipes, SocketReceiver, Timers};
use pointsman_rules::Truths;
use pointsman_telemetry::{DateLine, OwnLines, Recorder, WallBase};
use pointsman_upstream::{IdleConnections, Multiplexed, Owner};

use crate::accept::Accepting;
use crate::chance::Chance;
use crate::facts::SpareFacts;
use crate::hand_over::{HandOver, StreamCounts};
use crate::live::{Live, SocketId};
use crate::local::Local;
use crate::memory::Buffers;
use crate::reach::CountedIdle;
use crate::shortage::{Lack, LastDescriptors, ShortageCounts, Use};
use crate::sticky_clients::make_room;
use crate::turn::{HoldQueue, Turns};

/// Ticks of 25 ms between two sweeps of idle connections.
const TICKS_BETWEEN_SWEEPS: u32 = 40;
/// Ticks that servers have at the end to take the last word of HTTP/2.
const TICKS_LEAVING_MAX: u32 = 8;

/// What all threads share: the live plan, and what the control thread asks of each.
///
/// Every request reads some of it, and none writes here. What connections write has lines of its own.
pub(crate) struct Shared {
    generation: AtomicU64,
    live: Mutex<Arc<Live>>,
    pub(crate) draining: AtomicBool,
    /// Another process accepts on the sockets: set before the switch drains.
    pub(crate) handed_on: AtomicBool,
    /// The drain is over, whatever is still open.
    pub(crate) stopping: AtomicBool,
    /// Open client connections.
    pub(crate) open: OwnLines<AtomicUsize>,
    /// How many there may be where the plan does not say.
    pub(crate) connections_max: u32,
    pub(crate) shortages: OwnLines<ShortageCounts>,
    /// The memory that clients may take.
    pub(crate) budget: Arc<Budget>,
    /// What bodies that are held may take of it.
    pub(crate) holds: Arc<Budget>,
    /// And which of them goes on where that is used up.
    turns: Arc<Turns>,
    /// Open streams of HTTP/2.
    pub(crate) streams: StreamCounts,
    /// Where sticky clients are; made once some rule is sticky.
    pub(crate) sticky_clients: OnceLock<StickyTable>,
    /// The targets of clients that stay with them; made once some listener keeps clients so.
    pub(crate) sticky_targets: OnceLock<StickyTable>,
}

impl Shared {
    pub(crate) fn new(live: Arc<Live>, connections_max: u32, budget: Budget, threads: usize) -> Shared {
        let holds = Budget::new(live.plan.hold_total_bytes_max, threads);
        let sticky_clients = OnceLock::new();
        let sticky_targets = OnceLock::new();
        make_room(&sticky_clients, &sticky_targets, &live.plan);
        Shared {
            generation: AtomicU64::new(1),
            live: Mutex::new(live),
            draining: AtomicBool::new(false),
            handed_on: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
            open: OwnLines::default(),
            connections_max,
            shortages: OwnLines::default(),
            budget: Arc::new(budget),
            holds: Arc::new(holds),
            turns: Arc::default(),
            streams: StreamCounts::new(threads),
            sticky_clients,
            sticky_targets,
        }
    }

    /// Readies what is beside the plans for one that is to come.
    pub(crate) fn prepare(&self, plan: &Plan) {
        make_room(&self.sticky_clients, &self.sticky_targets, plan);
    }

    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    pub(crate) fn live(&self) -> Arc<Live> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Puts `live` in the place of the last generation, which is handed back.
    pub(crate) fn publish(&self, live: Arc<Live>) -> Arc<Live> {
        let mut current = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        let previous = std::mem::replace(&mut *current, live);
        self.generation.fetch_add(1, Ordering::Release);
        previous
    }
}

/// What the control thread asks of one thread, which looks once a tick. Sockets to accept on come by a channel of
/// their own; here it says that some are there.
#[derive(Default)]
pub(crate) struct Inbox {
    waiting: AtomicBool,
    closes: Mutex<Vec<SocketId>>,
    missed: Mutex<Vec<SocketId>>,
}

impl Inbox {
    /// Sockets were sent: accept on them.
    pub(crate) fn sockets_sent(&self) {
        self.waiting.store(true, Ordering::Release);
    }

    /// Close that socket, which was sent before this or never; its connections go on.
    pub(crate) fn close(&self, socket: SocketId) {
        self.closes.lock().unwrap_or_else(PoisonError::into_inner).push(socket);
        self.waiting.store(true, Ordering::Release);
    }

    /// Sockets that the thread had no room for. They are to be sent again.
    pub(crate) fn take_missed(&self) -> Vec<SocketId> {
        std::mem::take(&mut *self.missed.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn miss(&self, socket: SocketId) {
        self.missed.lock().unwrap_or_else(PoisonError::into_inner).push(socket);
    }

    /// What is to be closed, once whatever was sent has been received.
    fn take(&self) -> Option<Vec<SocketId>> {
        if !self.waiting.swap(false, Ordering::Acquire) {
            return None;
        }
        Some(std::mem::take(&mut *self.closes.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}

/// One thread of the switch.
pub(crate) struct Shard {
    pub(crate) shared: Arc<Shared>,
    pub(crate) thread: usize,
    pub(crate) timers: Timers,
    pub(crate) clock: Clock,
    /// What answers say of the time.
    pub(crate) date: DateLine,
    pub(crate) buffers: Buffers,
    /// Bodies that wait for room to be held in.
    pub(crate) hold_queue: Rc<HoldQueue>,
    pub(crate) pipes: Pipes,
    pub(crate) idle: IdleConnections<CountedIdle>,
    /// HTTP/2 connections to servers.
    pub(crate) multiplexed: Multiplexed,
    pub(crate) recorder: Rc<Recorder>,
    pub(crate) spare_facts: SpareFacts,
    pub(crate) client_ids: RefCell<ClientIds>,
    pub(crate) scratch: RefCell<Scratch>,
    /// Connections that were turned away and are listened to until they have heard it.
    pub(crate) turned_away: Cell<u32>,
    pub(crate) last_descriptors: LastDescriptors,
    /// Whether no other thread uses its descriptors.
    pub(crate) has_own_table: bool,
    /// None where there are too few threads for it.
    pub(crate) hand_over: Option<HandOver>,
    /// The shortages that it could help in, as far as it has.
    pub(crate) shortages_heard: Cell<u64>,
    local: RefCell<Rc<Local>>,
    seen: Cell<u64>,
    chance: Chance,
    /// Clients' connections so far, to tell them apart.
    owners: Cell<u64>,
    accepting: RefCell<Vec<(SocketId, Accepting)>>,
    ticks: Cell<u32>,
    /// Ticks since nothing but connections to servers was left.
    ticks_leaving: Cell<u32>,
    /// What is open has been told that the drain is over.
    has_cut: Cell<bool>,
    /// When connections that are silent are to end, on the thread's clock, once another process accepts.
    idle_until_us: Cell<Option<u64>>,
    /// They are to end now.
    ends_idle: Cell<bool>,
    /// When tunnels are to end, on the thread's clock, once it drains.
    tunnels_until_us: Cell<Option<u64>>,
    /// They are to end now.
    ends_tunnels: Cell<bool>,
    /// A listener has left the plan, and its idle connections are to end.
    listener_left: Cell<bool>,
}

/// Reused by every head that this thread parses; nobody holds it across a wait.
#[derive(Default)]
pub(crate) struct Scratch {
    pub(crate) request: RequestHead,
    pub(crate) response: ResponseHead,
    pub(crate) path: Vec<u8>,
    pub(crate) target: Vec<u8>,
    pub(crate) lines: Vec<u8>,
    pub(crate) truths: Truths,
}

/// What a thread is given at its start.
pub(crate) struct ShardStart {
    pub(crate) shared: Arc<Shared>,
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) thread: usize,
    /// How many there are.
    pub(crate) threads: usize,
    /// How many descriptors a table may have; `None`: no limit.
    pub(crate) descriptors_max: Option<u64>,
    pub(crate) recorder: Recorder,
    pub(crate) clock: Clock,
    pub(crate) client_ids: ClientIds,
    pub(crate) idle_connections_max: u32,
    pub(crate) splice_pipes_max: u32,
    pub(crate) seed: u64,
}

/// What a thread brings with it: opened in its own descriptor table, if it has one.
pub(crate) struct Equipment {
    pub(crate) event_loop: EventLoop,
    /// Where sockets to accept on come from.
    pub(crate) sockets: SocketReceiver,
    pub(crate) hand_over: Option<HandOver>,
    pub(crate) has_own_table: bool,
}

/// Runs a thread until it is drained.
pub(crate) fn run(equipment: Equipment, start: ShardStart) {
    let Equipment { event_loop, sockets, hand_over, has_own_table } = equipment;
    let inbox = start.inbox.clone();
    let shard = Rc::new(Shard::new(start, hand_over, has_own_table));
    let timers = shard.timers.clone();
    event_loop.run(async {
        if let Some(hand_over) = &shard.hand_over {
            hand_over.begin(&shard);
        }
        timers.run(|| shard.tick(&inbox, &sockets)).await
    });
    shard.recorder.flush();
}

impl Shard {
    fn new(start: ShardStart, hand_over: Option<HandOver>, has_own_table: bool) -> Shard {
        let seen = start.shared.generation();
        let sharers = if has_own_table { 1 } else { start.threads };
        let last_descriptors =
            LastDescriptors::new(start.descriptors_max, start.shared.connections_max, sharers);
        let local = Local::new(start.shared.live(), start.thread, None);
        let buffers = Buffers::new(start.shared.budget.clone(), start.shared.holds.clone());
        let hold_queue = HoldQueue::new(start.shared.turns.clone());
        Shard {
            shared: start.shared,
            thread: start.thread,
            timers: Timers::default(),
            clock: start.clock,
            date: DateLine::at(start.clock.unix_us()),
            buffers,
            hold_queue,
            pipes: Pipes::new(start.splice_pipes_max),
            idle: IdleConnections::new(start.idle_connections_max),
            multiplexed: Multiplexed::default(),
            recorder: Rc::new(start.recorder),
            spare_facts: SpareFacts::default(),
            client_ids: RefCell::new(start.client_ids),
            scratch: RefCell::default(),
            turned_away: Cell::new(0),
            last_descriptors,
            hand_over,
            has_own_table,
            shortages_heard: Cell::new(0),
            local: RefCell::new(Rc::new(local)),
            seen: Cell::new(seen),
            chance: Chance::new(start.seed),
            owners: Cell::new(0),
            accepting: RefCell::default(),
            ticks: Cell::new(0),
            ticks_leaving: Cell::new(0),
            has_cut: Cell::new(false),
            idle_until_us: Cell::new(None),
            ends_idle: Cell::new(false),
            tunnels_until_us: Cell::new(None),
            ends_tunnels: Cell::new(false),
            listener_left: Cell::new(false),
        }
    }

    /// The live plan, refreshed when its generation has moved.
    pub(crate) fn local(&self) -> Rc<Local> {
        let generation = self.shared.generation();
        if generation != self.seen.get() {
            self.seen.set(generation);
            let fresh = Rc::new(Local::new(self.shared.live(), self.thread, Some(&self.local.borrow())));
            let previous = self.local.replace(fresh.clone());
            if previous.live.listeners().any(|(_, listener)| fresh.live.listener(listener.id).is_none()) {
                self.listener_left.set(true);
            }
        }
        self.local.borrow().clone()
    }

    /// Whether connections are to end after what they are doing now.
    pub(crate) fn is_draining(&self) -> bool {
        self.shared.draining.load(Ordering::Relaxed)
    }

    /// Whether a connection that is to end may still ask once, as long as it does: the sockets are another process'
    /// now, and nobody waits for this one to be gone.
    pub(crate) fn lingers(&self) -> bool {
        self.shared.handed_on.load(Ordering::Relaxed) && !self.ends_idle.get()
    }

    /// Whether the drain is over, and what is still open is cut.
    pub(crate) fn is_stopping(&self) -> bool {
        self.shared.stopping.load(Ordering::Relaxed)
    }

    /// Goes on with `future`, unless the switch stops: then there is nothing more of it.
    pub(crate) fn poll_unless_stopping<F: Future>(
        &self,
        future: Pin<&mut F>,
        context: &mut Context<'_>,
    ) -> Poll<Option<F::Output>> {
        match self.is_stopping() {
            true => Poll::Ready(None),
            false => future.poll(context).map(Some),
        }
    }

    /// Whether tunnels end as soon as nothing is on its way in them.
    pub(crate) fn ends_tunnels(&self) -> bool {
        self.ends_tunnels.get()
    }

    /// Lets silent connections end: at once, or when they have had their time.
    fn end_idle(&self, idle_ms: u64) {
        if self.shared.handed_on.load(Ordering::Relaxed) {
            let now_us = self.clock.now_us();
            let until_us = self.idle_until_us.get().unwrap_or_else(|| {
                // Those of HTTP/2 tell their clients now that they end.
                self.timers.wake_all();
                now_us + idle_ms * 1000
            });
            self.idle_until_us.set(Some(until_us));
            self.ends_idle.set(now_us >= until_us);
        }
        if !self.lingers() {
            self.timers.end_idle_waits();
        }
    }

    /// Lets tunnels end when they have had their time of the drain.
    fn end_tunnels_in_time(&self, tunnel_drain_ms: u64) {
        let now_us = self.clock.now_us();
        let until_us = self.tunnels_until_us.get().unwrap_or(now_us + tunnel_drain_ms * 1000);
        self.tunnels_until_us.set(Some(until_us));
        if now_us >= until_us && !self.ends_tunnels.replace(true) {
            self.timers.wake_all();
        }
    }

    /// The thread's clock, so many milliseconds from when this round began.
    pub(crate) fn after_ms(&self, ms: u32) -> u64 {
        self.clock.round_us() + u64::from(ms) * 1000
    }

    /// Milliseconds from when this round began until then.
    pub(crate) fn ms_until(&self, until_us: u64) -> u32 {
        (until_us.saturating_sub(self.clock.round_us()) / 1000) as u32
    }

    /// The header lines of a sentence that the switch says itself.
    pub(crate) fn text_lines(&self) -> Vec<u8> {
        [&self.date.line()[..], PLAIN_TEXT_LINE].concat()
    }

    /// A number for choices by chance.
    pub(crate) fn random(&self) -> u64 {
        self.chance.draw()
    }

    /// Another number for a client's connection.
    pub(crate) fn next_owner(&self) -> Owner {
        let next = self.owners.get() + 1;
        self.owners.set(next);
        Owner(next)
    }

    fn tick(self: &Rc<Self>, inbox: &Inbox, sockets: &SocketReceiver) -> ControlFlow<()> {
        let local = self.local();
        self.obey(inbox, sockets);
        self.date.set_time(self.clock.unix_us());
        self.recorder.flush();
        self.help_in_shortage();
        self.help_in_lack_of_memory();
        self.buffers.help_holds();
        self.ticks.set(self.ticks.get().wrapping_add(1));
        if self.ticks.get().is_multiple_of(TICKS_BETWEEN_SWEEPS) {
            let now_us = self.clock.now_us();
            self.pipes.close_unused();
            self.buffers.let_go_unused();
            self.idle.sweep(now_us / 1000, |server| local.names(server));
            self.multiplexed.sweep(now_us / 1000, |server| local.idle_ms_max(server));
            // The wall's clock may be set, and drifts from ours.
            self.recorder.set_wall_base(WallBase { unix_us: self.clock.unix_us(), monotonic_us: now_us });
        }
        if self.listener_left.replace(false) {
            self.timers.end_idle_waits();
        }
        // Whatever was said before it is heard with it.
        if !self.shared.draining.load(Ordering::Acquire) {
            return ControlFlow::Continue(());
        }
        let leave = if self.lingers() { Accepting::leave } else { Accepting::close };
        self.accepting.borrow_mut().drain(..).for_each(|(_, accepting)| leave(accepting, self));
        let has_all = self.hand_over.as_ref().is_none_or(|hand_over| hand_over.end(self));
        self.end_idle(local.live.plan.upgrade_idle_ms());
        self.end_tunnels_in_time(local.live.plan.tunnel_drain_ms());
        // What is cut has a turn to say so in the log.
        let has_cut = self.is_stopping() && self.has_cut.replace(true);
        if self.is_stopping() {
            self.timers.wake_all();
        }
        if has_cut || (has_all && Rc::strong_count(self) == 1) {
            self.leave_servers()
        } else {
            ControlFlow::Continue(())
        }
    }

    /// Ends connections of HTTP/2 to servers, which are told so before the thread ends, as far as they listen.
    fn leave_servers(&self) -> ControlFlow<()> {
        let ticks = self.ticks_leaving.get();
        self.ticks_leaving.set(ticks + 1);
        if self.multiplexed.close_all() == 0 || ticks >= TICKS_LEAVING_MAX {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    fn obey(self: &Rc<Self>, inbox: &Inbox, sockets: &SocketReceiver) {
        let Some(closes) = inbox.take() else { return };
        let mut all = self.accepting.borrow_mut();
        while let Some(received) = sockets.next() {
            let number = SocketId(received.number);
            match received.socket.and_then(|socket| Accepting::start(self, number, socket)) {
                Ok(accepting) => all.push((number, accepting)),
                // Whoever connects to it waits in the kernel's queue until it has come.
                Err(error) => {
                    if let Some(lack) = Lack::of(&error) {
                        self.makes_room(Use::Server, lack);
                    }
                    inbox.miss(number);
                }
            }
        }
        for socket in closes {
            while let Some(at) = all.iter().position(|(number, _)| *number == socket) {
                all.swap_remove(at).1.close(self);
            }
        }
    }
}

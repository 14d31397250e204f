//! One thread of the switch: its own connections, buffers, deadlines and idle connections.

use std::cell::{Cell, RefCell};
use std::ops::ControlFlow;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use pointsman_balance::ClientIds;
use pointsman_http::{PLAIN_TEXT_LINE, RequestHead, ResponseHead};
use pointsman_net::{Clock, EventLoop, Pipes, SocketReceiver, Timers, has_woken_tasks};
use pointsman_rules::Truths;
use pointsman_telemetry::{DateLine, Recorder, WallBase};
use pointsman_upstream::{IdleConnections, Multiplexed, Owner};

use crate::accept::Accepting;
use crate::chance::Chance;
use crate::facts::SpareFacts;
use crate::hand_over::HandOver;
use crate::live::SocketId;
use crate::local::Local;
use crate::memory::Buffers;
use crate::mirror::Mirror;
use crate::reach::CountedIdle;
use crate::shared::{Ending, Inbox, Shared};
use crate::shortage::{Lack, LastDescriptors, Use};
use crate::turn::HoldQueue;

/// Ticks of 25 ms between two sweeps of idle connections.
const TICKS_BETWEEN_SWEEPS: u32 = 40;
/// Ticks that servers have at the end to take the last word of HTTP/2.
const TICKS_LEAVING_MAX: u32 = 8;
/// Ticks that connections which are cut have at most to write their log lines: 1.5 s, and the process waits for 2 s.
const TICKS_CUTTING_MAX: u32 = 60;
/// How long copies of requests go on in a drain behind the last client.
const LAST_COPIES_US: u64 = 1_000_000;

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
    /// The copy that the rules have just asked for, until the session takes it, without anything between: there is no room
    /// for it in what an idle connection takes.
    pub(crate) next_mirror: Cell<Option<Box<Mirror>>>,
    /// Copies of requests on their way.
    pub(crate) mirrors: Cell<u32>,
    pub(crate) scratch: RefCell<Scratch>,
    /// Connections that were turned away and are listened to until they have heard it.
    pub(crate) turned_away: Cell<u32>,
    /// Whether no other thread uses its descriptors.
    pub(crate) has_own_table: bool,
    /// None where other threads cannot reach it.
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
    /// Ticks since the drain was over and what is open was cut.
    ticks_cutting: Cell<u32>,
    /// When connections that are silent are to end, on the thread's clock, once another process accepts.
    idle_until_us: Cell<Option<u64>>,
    /// They are to end now.
    ends_idle: Cell<bool>,
    /// When tunnels are to end, on the thread's clock, once it drains.
    tunnels_until_us: Cell<Option<u64>>,
    /// They are to end now.
    ends_tunnels: Cell<bool>,
    /// When copies of requests have had their time behind the last client, once that has left in a drain.
    copies_until_us: Cell<Option<u64>>,
    /// They are to end now.
    ends_copies: Cell<bool>,
    /// A listener has left the plan, and its idle connections are to end.
    listener_left: Cell<bool>,
    /// Other threads are to serve, and this one ends with its last connection.
    is_dismissed: Cell<bool>,
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
    pub(crate) recorder: Recorder,
    pub(crate) clock: Clock,
    pub(crate) client_ids: ClientIds,
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
        let seen = start.shared.swaps();
        let local = Local::new(start.shared.current(), start.thread, None);
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
            // The first tick says how many.
            pipes: Pipes::new(0),
            idle: IdleConnections::new(0),
            multiplexed: Multiplexed::default(),
            recorder: Rc::new(start.recorder),
            spare_facts: SpareFacts::default(),
            client_ids: RefCell::new(start.client_ids),
            next_mirror: Cell::default(),
            mirrors: Cell::new(0),
            scratch: RefCell::default(),
            turned_away: Cell::new(0),
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
            ticks_cutting: Cell::new(0),
            idle_until_us: Cell::new(None),
            ends_idle: Cell::new(false),
            tunnels_until_us: Cell::new(None),
            ends_tunnels: Cell::new(false),
            copies_until_us: Cell::new(None),
            ends_copies: Cell::new(false),
            listener_left: Cell::new(false),
            is_dismissed: Cell::new(false),
        }
    }

    /// Takes this thread's share of what the process may have.
    fn share(&self, local: &Local) {
        let threads = self.shared.threads();
        let plan = &local.live.plan;
        self.idle.set_count_max(plan.upstream_idle_connections_max / threads as u32);
        self.pipes.set_open_max(share(plan.splice_pipes_max, threads, self.thread));
    }

    /// What is kept of the descriptors of this thread's table.
    pub(crate) fn last_descriptors(&self) -> LastDescriptors {
        let sharers = if self.has_own_table { 1 } else { self.shared.threads() };
        LastDescriptors::new(self.shared.descriptors_max, self.shared.connections_max(), sharers)
    }

    /// The live plan, refreshed when it has moved, or what is beside it.
    pub(crate) fn local(&self) -> Rc<Local> {
        let swaps = self.shared.swaps();
        if swaps != self.seen.get() {
            self.seen.set(swaps);
            let fresh = Rc::new(Local::new(self.shared.current(), self.thread, Some(&self.local.borrow())));
            let previous = self.local.replace(fresh.clone());
            if previous.live.listeners().any(|(_, listener)| fresh.live.listener(listener.id).is_none()) {
                self.listener_left.set(true);
            }
        }
        self.local.borrow().clone()
    }

    /// Whether connections are to end after what they are doing now.
    pub(crate) fn is_draining(&self) -> bool {
        self.shared.draining.load(Ordering::Relaxed) || self.is_dismissed.get()
    }

    /// Whether a connection that is to end may still ask once, as long as it does: the sockets are another process'
    /// now, or other threads', and nobody waits for this one to be gone.
    pub(crate) fn lingers(&self) -> bool {
        self.is_handed_on() && !self.ends_idle.get()
    }

    fn is_handed_on(&self) -> bool {
        let is_draining = self.shared.draining.load(Ordering::Acquire);
        self.shared.handed_on.load(Ordering::Acquire) || !is_draining && self.is_dismissed.get()
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

    /// Whether copies of requests end whatever has come of them.
    pub(crate) fn ends_copies(&self) -> bool {
        self.ends_copies.get()
    }

    /// Lets copies end a little after the last client has: nobody waits for what comes of them, but for the process to end.
    fn end_copies_in_time(&self) {
        if self.shared.open.load(Ordering::Relaxed) > 0 || self.is_handed_on() {
            return;
        }
        let now_us = self.clock.now_us();
        let until_us = self.copies_until_us.get().unwrap_or(now_us + LAST_COPIES_US);
        self.copies_until_us.set(Some(until_us));
        if now_us >= until_us && !self.ends_copies.replace(true) {
            self.timers.wake_all();
        }
    }

    /// Lets silent connections end: at once, or when they have had their time.
    fn end_idle(&self, idle_ms: u64) {
        if self.is_handed_on() {
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
        self.share(&local);
        self.obey(inbox, sockets);
        self.date.set_time(self.clock.unix_us());
        self.recorder.flush();
        self.recorder.tick(self.clock.now_us());
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
        let is_over = self.shared.draining.load(Ordering::Acquire);
        self.is_dismissed.set(inbox.is_dismissed());
        let is_ending = is_over || self.is_dismissed.get();
        if is_ending || self.is_handed_on() {
            let leave = if self.lingers() { Accepting::leave } else { Accepting::close };
            self.accepting.borrow_mut().drain(..).for_each(|(_, accepting)| leave(accepting, self));
            inbox.leave();
        }
        if !is_ending {
            return ControlFlow::Continue(());
        }
        self.hand_over.iter().for_each(|hand_over| hand_over.end(self));
        self.end_idle(local.live.plan.upgrade_idle_ms());
        // Nobody waits for a thread that is dismissed.
        if is_over {
            self.end_tunnels_in_time(local.live.plan.tunnel_drain_ms());
            self.end_copies_in_time();
        }
        if self.has_cut() || Rc::strong_count(self) == 1 {
            self.leave_servers()
        } else {
            ControlFlow::Continue(())
        }
    }

    /// Whether the drain is over, and each connection that is cut has had a turn to write its log line.
    fn has_cut(&self) -> bool {
        if !self.is_stopping() {
            return false;
        }
        let ticks = self.ticks_cutting.get();
        self.ticks_cutting.set(ticks + 1);
        // One round of the event loop has room for some of them only.
        let are_done = ticks > 0 && !has_woken_tasks() || ticks >= TICKS_CUTTING_MAX;
        self.timers.wake_all();
        are_done
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
        for (socket, ending) in closes {
            while let Some(at) = all.iter().position(|(number, _)| *number == socket) {
                let (_, accepting) = all.swap_remove(at);
                match ending {
                    Ending::Closed => accepting.close(self),
                    Ending::Left => accepting.leave(self),
                }
            }
        }
    }
}

/// A thread's share of what the process may have.
fn share(all: u32, threads: usize, thread: usize) -> u32 {
    let (each, over) = (all as usize / threads, all as usize % threads);
    (each + usize::from(thread < over)) as u32
}

//! One thread of the switch: its own connections, buffers, deadlines and idle connections.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::net::TcpListener;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};

use pointsman_balance::ClientIds;
use pointsman_http::{RequestHead, ResponseHead};
use pointsman_net::{Budget, Clock, EventLoop, Pipes, Timers};
use pointsman_rules::Truths;
use pointsman_telemetry::{Recorder, WallBase};
use pointsman_upstream::IdleConnections;

use crate::accept::Accepting;
use crate::live::{Live, SocketId};
use crate::local::Local;
use crate::memory::Buffers;
use crate::reach::CountedIdle;
use crate::shortage::LastDescriptors;

/// Ticks of 25 ms between two sweeps of idle connections.
const TICKS_BETWEEN_SWEEPS: u32 = 40;

/// What all threads share: the live plan, and what the control thread asks of each.
pub(crate) struct Shared {
    generation: AtomicU64,
    live: Mutex<Arc<Live>>,
    pub(crate) draining: AtomicBool,
    /// The drain is over, whatever is still open.
    pub(crate) stopping: AtomicBool,
    /// Open client connections.
    pub(crate) open: AtomicUsize,
    /// How many there may be where the plan does not say.
    pub(crate) connections_max: u32,
    pub(crate) last_descriptors: LastDescriptors,
    /// How often descriptors, or the system's memory for sockets, were not to be had.
    pub(crate) shortages: AtomicU64,
    /// The memory that clients may take.
    pub(crate) budget: Arc<Budget>,
}

impl Shared {
    pub(crate) fn new(
        live: Arc<Live>,
        connections_max: u32,
        last_descriptors: LastDescriptors,
        budget: Budget,
    ) -> Shared {
        Shared {
            generation: AtomicU64::new(1),
            live: Mutex::new(live),
            draining: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
            open: AtomicUsize::new(0),
            connections_max,
            last_descriptors,
            shortages: AtomicU64::new(0),
            budget: Arc::new(budget),
        }
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

/// What the control thread asks of a thread.
pub(crate) enum Command {
    /// Accept on this socket.
    Listen { socket: SocketId, accepts: TcpListener },
    /// Close that socket; its connections go on.
    Close { socket: SocketId },
}

/// Commands on their way to one thread; looked at once a tick.
#[derive(Default)]
pub(crate) struct Inbox {
    waiting: AtomicBool,
    commands: Mutex<VecDeque<Command>>,
}

impl Inbox {
    pub(crate) fn put(&self, command: Command) {
        self.commands.lock().unwrap_or_else(PoisonError::into_inner).push_back(command);
        self.waiting.store(true, Ordering::Release);
    }

    fn take(&self) -> VecDeque<Command> {
        if !self.waiting.swap(false, Ordering::Acquire) {
            return VecDeque::new();
        }
        std::mem::take(&mut *self.commands.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// One thread of the switch.
pub(crate) struct Shard {
    pub(crate) shared: Arc<Shared>,
    pub(crate) thread: usize,
    pub(crate) timers: Timers,
    pub(crate) clock: Clock,
    pub(crate) buffers: Buffers,
    pub(crate) pipes: Pipes,
    pub(crate) idle: IdleConnections<CountedIdle>,
    pub(crate) recorder: Rc<Recorder>,
    pub(crate) client_ids: RefCell<ClientIds>,
    pub(crate) scratch: RefCell<Scratch>,
    /// Connections that were turned away and are listened to until they have heard it.
    pub(crate) turned_away: Cell<u32>,
    pub(crate) shortages_seen: Cell<u64>,
    local: RefCell<Rc<Local>>,
    seen: Cell<u64>,
    random: Cell<u64>,
    accepting: RefCell<Vec<(SocketId, Accepting)>>,
    ticks: Cell<u32>,
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
    pub(crate) recorder: Recorder,
    pub(crate) clock: Clock,
    pub(crate) client_ids: ClientIds,
    pub(crate) idle_connections_max: u32,
    pub(crate) splice_pipes_max: u32,
    pub(crate) seed: u64,
}

/// Runs a thread until it is drained. `started` hears whether it could start.
pub(crate) fn run(start: ShardStart, started: &mpsc::Sender<std::io::Result<()>>) {
    let event_loop = match EventLoop::new() {
        Ok(event_loop) => event_loop,
        Err(error) => return tell(started, Err(error)),
    };
    tell(started, Ok(()));
    let inbox = start.inbox.clone();
    let shard = Rc::new(Shard::new(start));
    let timers = shard.timers.clone();
    event_loop.run(timers.run(|| shard.tick(&inbox)));
    shard.recorder.flush();
}

fn tell(started: &mpsc::Sender<std::io::Result<()>>, result: std::io::Result<()>) {
    // Whoever started the thread waits for this, or has given up and ends the process.
    let (Ok(()) | Err(_)) = started.send(result);
}

impl Shard {
    fn new(start: ShardStart) -> Shard {
        let seen = start.shared.generation();
        let local = Local::new(start.shared.live(), start.thread, None);
        let buffers = Buffers::new(start.shared.budget.clone());
        Shard {
            shared: start.shared,
            thread: start.thread,
            timers: Timers::default(),
            clock: start.clock,
            buffers,
            pipes: Pipes::new(start.splice_pipes_max),
            idle: IdleConnections::new(start.idle_connections_max),
            recorder: Rc::new(start.recorder),
            client_ids: RefCell::new(start.client_ids),
            scratch: RefCell::default(),
            turned_away: Cell::new(0),
            shortages_seen: Cell::new(0),
            local: RefCell::new(Rc::new(local)),
            seen: Cell::new(seen),
            random: Cell::new(start.seed | 1),
            accepting: RefCell::default(),
            ticks: Cell::new(0),
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

    /// A number for choices by chance (xorshift64: fast, and nothing secret hangs on it).
    pub(crate) fn random(&self) -> u64 {
        let mut number = self.random.get();
        number ^= number << 13;
        number ^= number >> 7;
        number ^= number << 17;
        self.random.set(number);
        number
    }

    fn tick(self: &Rc<Self>, inbox: &Inbox) -> ControlFlow<()> {
        let local = self.local();
        for command in inbox.take() {
            self.obey(command);
        }
        self.recorder.flush();
        self.help_in_shortage();
        self.buffers.help_in_shortage();
        self.ticks.set(self.ticks.get().wrapping_add(1));
        if self.ticks.get().is_multiple_of(TICKS_BETWEEN_SWEEPS) {
            let now_us = self.clock.now_us();
            self.pipes.close_unused();
            self.buffers.let_go_unused();
            self.idle.sweep(now_us / 1000, |server| local.names(server));
            // The wall's clock may be set, and drifts from ours.
            self.recorder.set_wall_base(WallBase { unix_us: self.clock.unix_us(), monotonic_us: now_us });
        }
        if self.listener_left.replace(false) {
            self.timers.end_idle_waits();
        }
        if !self.is_draining() {
            return ControlFlow::Continue(());
        }
        self.accepting.borrow_mut().drain(..).for_each(|(_, accepting)| accepting.close(self));
        self.timers.end_idle_waits();
        let over = self.shared.stopping.load(Ordering::Relaxed) || Rc::strong_count(self) == 1;
        if over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn obey(self: &Rc<Self>, command: Command) {
        match command {
            Command::Listen { socket, accepts } => {
                let accepting = Accepting::start(self, socket, accepts);
                self.accepting.borrow_mut().push((socket, accepting));
            }
            Command::Close { socket } => {
                let mut all = self.accepting.borrow_mut();
                if let Some(at) = all.iter().position(|(number, _)| *number == socket) {
                    all.swap_remove(at).1.close(self);
                }
            }
        }
    }
}

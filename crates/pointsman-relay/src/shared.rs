//! What the threads of a switch share, and what the control thread asks of each.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use pointsman_balance::StickyTable;
use pointsman_config::Plan;
use pointsman_net::Budget;
use pointsman_telemetry::{Notes, OwnLines};

use crate::beside::Candidate;
use crate::hand_over::StreamCounts;
use crate::live::{Live, SocketId};
use crate::shortage::ShortageCounts;
use crate::sticky_clients::make_room;
use crate::turn::Turns;

/// How much the process serves with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// Event-loop threads.
    pub threads: usize,
    /// How many connections of clients there are descriptors for: as many there may be where the plan names no limit.
    pub connections_max: u32,
    /// How many bytes of memory clients may take where the plan does not say.
    pub buffer_bytes_max: u64,
}

/// What all threads share: the live plan, and what the control thread asks of each.
///
/// Every request reads some of it, and none writes here. What connections write has lines of its own.
pub(crate) struct Shared {
    generation: AtomicU64,
    /// How often what threads go by has changed: the generation, or what is beside it.
    swaps: AtomicU64,
    current: Mutex<Current>,
    pub(crate) draining: AtomicBool,
    /// Another process accepts on the sockets: threads leave theirs. Set a while before the switch drains.
    pub(crate) handed_on: AtomicBool,
    /// The drain is over, whatever is still open.
    pub(crate) stopping: AtomicBool,
    /// Open client connections.
    pub(crate) open: OwnLines<AtomicUsize>,
    /// How many there may be where the plan does not say.
    connections_max: AtomicU32,
    /// How many threads serve.
    threads: AtomicUsize,
    /// How many descriptors a table of them may have; `None`: no limit.
    pub(crate) descriptors_max: Option<u64>,
    pub(crate) shortages: OwnLines<ShortageCounts>,
    /// The memory that clients may take.
    pub(crate) budget: Arc<Budget>,
    /// What bodies that are held may take of it.
    pub(crate) holds: Arc<Budget>,
    /// And which of them goes on where that is used up.
    pub(crate) turns: Arc<Turns>,
    /// Open streams of HTTP/2.
    pub(crate) streams: StreamCounts,
    /// Where sticky clients are; made once some rule is sticky.
    pub(crate) sticky_clients: OnceLock<StickyTable>,
    /// The targets of clients that stay with them; made once some listener keeps clients so.
    pub(crate) sticky_targets: OnceLock<StickyTable>,
    /// Why something failed, for who looks for the cause.
    pub(crate) notes: Arc<Notes>,
}

impl Shared {
    pub(crate) fn new(
        live: Arc<Live>,
        descriptors_max: Option<u64>,
        Capacity { threads, connections_max, buffer_bytes_max }: Capacity,
        notes: Arc<Notes>,
    ) -> Shared {
        let budget = Budget::new(live.plan.buffer_bytes_max.unwrap_or(buffer_bytes_max), threads);
        let holds = Budget::new(live.plan.hold_total_bytes_max, threads);
        let sticky_clients = OnceLock::new();
        let sticky_targets = OnceLock::new();
        make_room(&sticky_clients, &sticky_targets, &live.plan);
        Shared {
            generation: AtomicU64::new(1),
            swaps: AtomicU64::new(0),
            current: Mutex::new(Current { live, beside: None }),
            draining: AtomicBool::new(false),
            handed_on: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
            open: OwnLines::default(),
            connections_max: AtomicU32::new(connections_max),
            threads: AtomicUsize::new(threads),
            descriptors_max,
            shortages: OwnLines::default(),
            budget: Arc::new(budget),
            holds: Arc::new(holds),
            turns: Arc::default(),
            streams: StreamCounts::new(threads),
            sticky_clients,
            sticky_targets,
            notes,
        }
    }

    /// How many connections of clients there may be where the plan does not say.
    pub(crate) fn connections_max(&self) -> u32 {
        self.connections_max.load(Ordering::Relaxed)
    }

    /// How many threads serve.
    pub(crate) fn threads(&self) -> usize {
        self.threads.load(Ordering::Relaxed)
    }

    /// Readies what is beside the plans for one that is to come.
    pub(crate) fn prepare(&self, plan: &Plan, capacity: Capacity) {
        make_room(&self.sticky_clients, &self.sticky_targets, plan);
        self.budget.set_bytes_max(plan.buffer_bytes_max.unwrap_or(capacity.buffer_bytes_max));
        self.holds.set_bytes_max(plan.hold_total_bytes_max);
        self.budget.set_threads(capacity.threads);
        self.holds.set_threads(capacity.threads);
        self.connections_max.store(capacity.connections_max, Ordering::Relaxed);
        self.threads.store(capacity.threads, Ordering::Relaxed);
    }

    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Every request reads it: where it has moved there is something new to go by.
    pub(crate) fn swaps(&self) -> u64 {
        self.swaps.load(Ordering::Acquire)
    }

    pub(crate) fn live(&self) -> Arc<Live> {
        self.current().live
    }

    /// What threads go by.
    pub(crate) fn current(&self) -> Current {
        self.current.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Puts `live` in the place of the last generation, which is handed back, and a candidate beside it.
    pub(crate) fn publish(&self, live: Arc<Live>, beside: Option<Arc<Candidate>>) -> Arc<Live> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let previous = std::mem::replace(&mut *current, Current { live, beside });
        self.generation.fetch_add(1, Ordering::Release);
        self.swaps.fetch_add(1, Ordering::Release);
        previous.live
    }

    /// Puts a candidate beside what serves, or takes it away.
    pub(crate) fn put_beside(&self, beside: Option<Arc<Candidate>>) {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        current.beside = beside;
        self.swaps.fetch_add(1, Ordering::Release);
    }
}

/// What threads go by.
#[derive(Clone)]
pub(crate) struct Current {
    pub(crate) live: Arc<Live>,
    /// What is asked beside it.
    pub(crate) beside: Option<Arc<Candidate>>,
}

/// What becomes of a socket that a thread accepts on no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Nobody does.
    Closed,
    /// Another thread does.
    Left,
}

/// What the control thread asks of one thread, which looks once a tick. Sockets to accept on come by a channel of
/// their own; here it says that some are there.
#[derive(Default)]
pub(crate) struct Inbox {
    waiting: AtomicBool,
    is_dismissed: AtomicBool,
    has_left: AtomicBool,
    closes: Mutex<Vec<(SocketId, Ending)>>,
    missed: Mutex<Vec<SocketId>>,
}

impl Inbox {
    /// Sockets were sent: accept on them.
    pub(crate) fn sockets_sent(&self) {
        self.waiting.store(true, Ordering::Release);
    }

    /// Accept no more on that socket, which was sent before this or never; its connections go on.
    pub(crate) fn close(&self, socket: SocketId, ending: Ending) {
        self.closes.lock().unwrap_or_else(PoisonError::into_inner).push((socket, ending));
        self.waiting.store(true, Ordering::Release);
    }

    /// Leave all sockets to other threads, and end with the last connection.
    pub(crate) fn dismiss(&self) {
        self.is_dismissed.store(true, Ordering::Release);
    }

    pub(crate) fn is_dismissed(&self) -> bool {
        self.is_dismissed.load(Ordering::Acquire)
    }

    /// The thread accepts no more: all its sockets are another process'.
    pub(crate) fn leave(&self) {
        self.has_left.store(true, Ordering::Release);
    }

    pub(crate) fn has_left(&self) -> bool {
        self.has_left.load(Ordering::Acquire)
    }

    /// Sockets that the thread had no room for. They are to be sent again.
    pub(crate) fn take_missed(&self) -> Vec<SocketId> {
        std::mem::take(&mut *self.missed.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn miss(&self, socket: SocketId) {
        self.missed.lock().unwrap_or_else(PoisonError::into_inner).push(socket);
    }

    /// What is to be closed, once whatever was sent has been received.
    pub(crate) fn take(&self) -> Option<Vec<(SocketId, Ending)>> {
        if !self.waiting.swap(false, Ordering::Acquire) {
            return None;
        }
        Some(std::mem::take(&mut *self.closes.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}

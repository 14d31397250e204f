//! The threads of a switch: those that serve, those that end with their last connection, and the ways to them.

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

use pointsman_balance::ClientIds;
use pointsman_net::{Clock, SocketSender};
use pointsman_telemetry::{Metrics, Sinks, WallBase};

use crate::live::SocketId;
use crate::nursery::Nursery;
use crate::shard::ShardStart;
use crate::shared::{Ending, Inbox, Shared};
use crate::sockets::{Move, Sockets};
use crate::threads::{Threads, Waiting};

/// So many there may be, with those that are about to end.
const THREADS_MAX: usize = 1024;

/// What each thread is given.
pub(crate) struct Kit {
    pub(crate) shared: Arc<Shared>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) sinks: Sinks,
    pub(crate) clock: Clock,
    /// Keys the ids of clients; never the same twice.
    pub(crate) client_id_key: [u8; 16],
    /// What starts threads, where they have descriptor tables of their own.
    pub(crate) nursery: Option<Nursery>,
}

/// All threads.
pub(crate) struct Crew {
    threads: Vec<Thread>,
    kit: Kit,
    /// How many have ever begun: none has the number here of another one before it, since clients' ids hang on it.
    begun: u64,
    /// Sockets that a thread is still to be sent.
    unsent: Vec<(usize, SocketId)>,
}

/// A thread, and the ways to it.
struct Thread {
    /// No other one that lives has it.
    number: usize,
    handle: JoinHandle<()>,
    inbox: Arc<Inbox>,
    sockets: SocketSender,
    is_dismissed: bool,
}

impl Crew {
    pub(crate) fn new(kit: Kit) -> Crew {
        Crew { threads: Vec::new(), kit, begun: 0, unsent: Vec::new() }
    }

    /// Those that serve, by number.
    pub(crate) fn team(&self) -> Vec<usize> {
        self.threads.iter().filter(|thread| !thread.is_dismissed).map(|thread| thread.number).collect()
    }

    /// Starts as many as are missing where so many are to serve. They wait, and end when they are dropped.
    ///
    /// # Errors
    /// When the system gives none, or too many others have not ended yet.
    pub(crate) fn start_missing(&self, count: usize) -> io::Result<Vec<Waiting>> {
        let missing = count.saturating_sub(self.team().len());
        if self.threads.len() + missing > THREADS_MAX {
            return Err(io::Error::other("too many of those before still have connections"));
        }
        let is_free = |number: &usize| self.threads.iter().all(|thread| thread.number != *number);
        Threads::start_more((0..).filter(is_free).take(missing).collect(), self.kit.nursery.as_ref())
    }

    /// Sets threads to work that wait for it.
    ///
    /// # Errors
    /// When one has ended before.
    pub(crate) fn set_to_work(&mut self, waiting: Vec<Waiting>) -> io::Result<()> {
        let Kit { shared, metrics, sinks, clock, client_id_key, .. } = &self.kit;
        let base = WallBase { unix_us: clock.unix_us(), monotonic_us: clock.now_us() };
        for waiting in waiting {
            let inbox = Arc::new(Inbox::default());
            let shard = ShardStart {
                shared: shared.clone(),
                inbox: inbox.clone(),
                thread: waiting.number,
                recorder: metrics.recorder(sinks, base),
                clock: *clock,
                client_ids: ClientIds::new(*client_id_key, self.begun),
                seed: seed(*client_id_key, self.begun),
            };
            self.begun += 1;
            waiting.work.send(shard).map_err(|_| io::Error::other("it has ended"))?;
            let number = waiting.number;
            waiting.way.into_iter().for_each(|way| shared.streams.may_take(number, way));
            let sockets = waiting.sockets;
            self.threads.push(Thread { number, handle: waiting.thread, inbox, sockets, is_dismissed: false });
        }
        Ok(())
    }

    /// Lets those go that are not to serve any more: the last ones. They end with their last connection.
    pub(crate) fn dismiss_all_but(&mut self, count: usize) {
        let serving = self.threads.iter_mut().filter(|thread| !thread.is_dismissed);
        for thread in serving.skip(count) {
            thread.is_dismissed = true;
            // First nobody sends it anything, then it hears of it.
            self.kit.shared.streams.takes_no_more(thread.number);
            thread.inbox.dismiss();
        }
    }

    /// Lets threads accept on what is theirs now, and those before them no more.
    pub(crate) fn obey(&mut self, moves: &[Move], sockets: &Sockets) {
        self.unsent.extend(moves.iter().map(|moved| (moved.to, moved.socket)));
        self.send_sockets(sockets);
        for moved in moves {
            let before = self.threads.iter().filter(|thread| Some(thread.number) == moved.from);
            before.for_each(|thread| thread.inbox.close(moved.socket, Ending::Left));
        }
    }

    /// Nobody is to accept on these any more.
    pub(crate) fn close(&self, gone: &[SocketId]) {
        for thread in &self.threads {
            gone.iter().for_each(|&socket| thread.inbox.close(socket, Ending::Closed));
        }
    }

    /// Sends the threads what they are to accept on. Meanwhile clients wait in the kernel's queue.
    pub(crate) fn send_sockets(&mut self, sockets: &Sockets) {
        let Crew { threads, unsent, .. } = self;
        for thread in threads.iter() {
            unsent.extend(thread.inbox.take_missed().into_iter().map(|socket| (thread.number, socket)));
        }
        unsent.retain(|&(number, socket)| {
            // Closed meanwhile, or another one's.
            let Some(ours) = sockets.of_thread(socket, number) else { return false };
            let Some(thread) = threads.iter().find(|thread| thread.number == number) else { return false };
            let is_sent = thread.sockets.send(socket.0, ours).is_ok();
            if is_sent {
                thread.inbox.sockets_sent();
            }
            !is_sent
        });
    }

    /// Forgets those that have ended since they were dismissed.
    pub(crate) fn forget_ended(&mut self) {
        self.threads.retain(|thread| !thread.is_dismissed || !thread.handle.is_finished());
    }

    /// Whether none of them accepts any more.
    pub(crate) fn has_left(&self) -> bool {
        self.threads.iter().all(|thread| thread.inbox.has_left() || thread.handle.is_finished())
    }

    /// Whether all have ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.threads.iter().all(|thread| thread.handle.is_finished())
    }
}

/// Where choices by chance begin.
pub(crate) fn seed(key: [u8; 16], number: u64) -> u64 {
    let [low @ .., _, _, _, _, _, _, _, _] = key;
    u64::from_le_bytes(low).wrapping_add(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(number + 1))
}

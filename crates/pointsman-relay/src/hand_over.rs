//! From the thread that took a connection to another one that serves it.
//!
//! The kernel shares connections out by number. One of HTTP/2 brings as many requests as its client likes, so a
//! thread can have a multiple of the others' work. Such a thread hands new connections to those with less.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use pointsman_net::{Accepted, Arrivals, Received, SocketSender, Task, Tcp, spawn};
use pointsman_telemetry::{ByThread, Event, OwnLines, Refusal};

use crate::accept::open;
use crate::live::SocketId;
use crate::shard::Shard;
use crate::shortage::{Lack, Use};

/// Streams that are no load to speak of, however few the others have.
const STREAMS_MIN: u32 = 64;

/// The open HTTP/2 streams of each thread, which alone writes there, and who takes connections over.
pub(crate) struct StreamCounts {
    by_thread: ByThread<OwnLines<AtomicU32>>,
    /// The ways to those threads, each under the thread's number.
    takers: Mutex<Vec<(usize, SocketSender)>>,
}

impl StreamCounts {
    /// For so many threads, to begin with.
    pub(crate) fn new(threads: usize) -> StreamCounts {
        StreamCounts { by_thread: ByThread::new(threads), takers: Mutex::default() }
    }

    /// From now on this thread takes connections over.
    pub(crate) fn may_take(&self, thread: usize, way: SocketSender) {
        self.takers().push((thread, way));
    }

    /// From now on it does not: nothing is on its way to it but what it has to receive.
    pub(crate) fn takes_no_more(&self, thread: usize) {
        self.takers().retain(|(taker, _)| *taker != thread);
    }

    /// Whoever held it left it whole.
    fn takers(&self) -> MutexGuard<'_, Vec<(usize, SocketSender)>> {
        self.takers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One more is open on a thread, which calls this.
    pub(crate) fn begun(&self, thread: usize) {
        self.by_thread.of(thread).store(self.of(thread) + 1, Ordering::Relaxed);
    }

    /// One has ended on a thread, which calls this.
    pub(crate) fn ended(&self, thread: usize) {
        self.by_thread.of(thread).store(self.of(thread) - 1, Ordering::Relaxed);
    }

    fn of(&self, thread: usize) -> u32 {
        self.by_thread.of(thread).load(Ordering::Relaxed)
    }

    /// Whether others may have fewer. Without that look a connection would cost one at each thread's lines.
    fn are_many(&self, thread: usize) -> bool {
        self.of(thread) >= STREAMS_MIN
    }

    /// Which of `takers` is to serve a new connection in place of a thread that has more than twice the mean of streams:
    /// by `chance` one of those with no more than the mean, so that not all go to the same one before it has counted
    /// any.
    fn instead_of<W>(&self, thread: usize, chance: u64, takers: &[(usize, W)]) -> Option<usize> {
        let count = takers.len();
        let scaled = |thread: usize| u64::from(self.of(thread)) * count as u64;
        let sum = takers.iter().map(|(taker, _)| u64::from(self.of(*taker))).sum::<u64>();
        if scaled(thread) <= 2 * sum {
            return None;
        }
        let first = (chance % count.max(1) as u64) as usize;
        let mut others = (0..count).map(|step| (first + step) % count);
        others.find(|&at| takers[at].0 != thread && scaled(takers[at].0) <= sum)
    }

    /// Hands a connection over where there is somebody for it. Nobody who holds the ways meanwhile is told that a thread
    /// takes no more, and who drains does not begin.
    fn hands_over(&self, shard: &Shard, socket: SocketId, accepted: &Accepted) -> bool {
        let takers = self.takers();
        let other = self.instead_of(shard.thread, shard.random(), &takers);
        // Where too many are under way it stays.
        other.is_some_and(|at| !shard.is_draining() && takers[at].1.send(socket.0, accepted).is_ok())
    }
}

/// How other threads' connections come to a thread.
pub(crate) struct HandOver {
    arrivals: Rc<Arrivals>,
    /// What takes what arrives, until the thread drains.
    taking: RefCell<Option<Task>>,
}

impl HandOver {
    /// `arrivals` on the event loop of this thread.
    pub(crate) fn new(arrivals: Arrivals) -> HandOver {
        HandOver { arrivals: Rc::new(arrivals), taking: RefCell::default() }
    }

    /// Takes what other threads hand over from now on, as soon as it comes.
    pub(crate) fn begin(&self, shard: &Rc<Shard>) {
        let (shard, arrivals) = (shard.clone(), self.arrivals.clone());
        let taking = spawn(async move {
            loop {
                let received = arrivals.next().await;
                take(&shard, received);
            }
        });
        self.taking.replace(Some(taking));
    }

    /// Takes what is here, and from now on nothing without being asked: the shard is not held any more. For a thread that
    /// drains: nothing more comes.
    pub(crate) fn end(&self, shard: &Rc<Shard>) {
        // Who has begun is done, and who begins behind it sees that the switch drains, or this thread no more.
        drop(shard.shared.streams.takers());
        if let Some(taking) = self.taking.take() {
            taking.abort();
        }
        while let Some(received) = self.arrivals.take_waiting() {
            take(shard, received);
        }
    }
}

/// Keeps a connection that a socket has brought, or hands it over.
///
/// # Errors
/// When it cannot be kept: the system is out of memory for it.
pub(crate) fn keep(shard: &Shard, socket: SocketId, accepted: Accepted) -> io::Result<Option<Tcp>> {
    let streams = &shard.shared.streams;
    if streams.are_many(shard.thread) && streams.hands_over(shard, socket, &accepted) {
        if let Some((_, _, live)) = shard.local().live.listener_of(socket) {
            shard.recorder.hear(&Event::HandedOver(&live.state.metrics));
        }
        return Ok(None);
    }
    accepted.register().map(Some)
}

/// Serves a connection that another thread took.
fn take(shard: &Rc<Shard>, Received { number, socket }: Received) {
    let number = SocketId(number);
    let error = match socket.map(Accepted::from).and_then(Accepted::register) {
        Ok(tcp) => return open(shard, number, tcp),
        Err(error) => error,
    };
    if let Some(lack) = Lack::of(&error) {
        shard.makes_room(Use::Client, lack);
    }
    if let Some((_, _, live)) = shard.local().live.listener_of(number) {
        shard.recorder.hear(&Event::Refused(&live.state.metrics, Refusal::Descriptors));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(streams: &[u32]) -> StreamCounts {
        // Some of the threads were not reckoned with.
        let counts = StreamCounts::new(2);
        for (thread, &streams) in streams.iter().enumerate() {
            (0..streams).for_each(|_| counts.begun(thread));
        }
        counts
    }

    fn instead_of(counts: &StreamCounts, threads: usize, thread: usize, chance: u64) -> Option<usize> {
        let takers: Vec<_> = (0..threads).map(|thread| (thread, ())).collect();
        counts.are_many(thread).then(|| counts.instead_of(thread, chance, &takers)).flatten()
    }

    #[test]
    fn whoever_has_more_than_twice_the_mean_hands_over() {
        let twice = counts(&[100, 30, 40, 30]);
        assert_eq!(
            (0..9).find_map(|chance| instead_of(&twice, 4, 0, chance)),
            None,
            "twice the mean is not more"
        );
        let more = counts(&[101, 30, 40, 30]);
        let to: Vec<_> = (0..4).map(|chance| instead_of(&more, 4, 0, chance)).collect();
        assert_eq!(to, [Some(1), Some(1), Some(2), Some(3)]);
        assert_eq!(instead_of(&more, 4, 1, 0), None);
        // Not to one that has more than the mean itself.
        let uneven = counts(&[300, 150, 0, 0]);
        assert_eq!((instead_of(&uneven, 4, 0, 1), instead_of(&uneven, 4, 1, 1)), (Some(2), None));
    }

    #[test]
    fn few_streams_are_no_load_and_two_threads_keep_theirs() {
        assert_eq!(instead_of(&counts(&[STREAMS_MIN - 1, 0, 0]), 3, 0, 0), None);
        assert_eq!(instead_of(&counts(&[STREAMS_MIN, 0, 0]), 3, 0, 0), Some(1));
        assert_eq!(instead_of(&counts(&[10 * STREAMS_MIN, 0]), 2, 0, 0), None);
        let ended = counts(&[STREAMS_MIN, 0, 0]);
        ended.ended(0);
        assert_eq!(instead_of(&ended, 3, 0, 0), None);
    }
}

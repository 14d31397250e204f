//! From the thread that took a connection to another one that serves it.
//!
//! The kernel shares connections out by number. One of HTTP/2 brings as many requests as its client likes, so a
//! thread can have a multiple of the others' work. Such a thread hands new connections to those with less.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering, fence};

use pointsman_net::{Accepted, Arrivals, Received, SocketSender, Task, Tcp, spawn};
use pointsman_telemetry::{Event, OwnLines, Refusal};

use crate::accept::open;
use crate::live::SocketId;
use crate::shard::Shard;
use crate::shortage::{Lack, Use};

/// Streams that are no load to speak of, however few the others have.
const STREAMS_MIN: u32 = 64;

/// Of so many threads one can have more than twice the mean.
pub(crate) const HANDS_OVER_MIN: usize = 3;

/// The open HTTP/2 streams of each thread, which alone writes there.
pub(crate) struct StreamCounts {
    by_thread: Box<[OwnLines<AtomicU32>]>,
    /// Threads that are handing a connection over.
    sending: AtomicU32,
}

/// A thread is handing a connection over.
struct Sending<'a>(&'a AtomicU32);

impl StreamCounts {
    pub(crate) fn new(threads: usize) -> StreamCounts {
        let by_thread = (0..threads).map(|_| OwnLines::default()).collect();
        StreamCounts { by_thread, sending: AtomicU32::new(0) }
    }

    /// One more is open on a thread, which calls this.
    pub(crate) fn begun(&self, thread: usize) {
        self.by_thread[thread].store(self.of(thread) + 1, Ordering::Relaxed);
    }

    /// One has ended on a thread, which calls this.
    pub(crate) fn ended(&self, thread: usize) {
        self.by_thread[thread].store(self.of(thread) - 1, Ordering::Relaxed);
    }

    fn of(&self, thread: usize) -> u32 {
        self.by_thread[thread].load(Ordering::Relaxed)
    }

    /// Whoever is to hand a connection over says so first, and then looks whether the switch drains.
    fn begin_sending(&self) -> Sending<'_> {
        self.sending.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        Sending(&self.sending)
    }

    /// Whether nobody is handing a connection over. For a thread that has seen that the switch drains: from then on
    /// nobody begins with it either.
    fn is_nobody_sending(&self) -> bool {
        fence(Ordering::SeqCst);
        self.sending.load(Ordering::Acquire) == 0
    }

    /// Who is to serve a new connection in place of a thread that has more than twice the mean of streams: by
    /// `chance` one of those with no more than the mean, so that not all go to the same one before it has counted
    /// any.
    fn instead_of(&self, thread: usize, chance: u64) -> Option<usize> {
        let own = self.of(thread);
        // Without that look a connection would cost one at each thread's lines.
        if own < STREAMS_MIN {
            return None;
        }
        let threads = self.by_thread.len();
        let scaled = |streams: u32| u64::from(streams) * threads as u64;
        let sum = (0..threads).map(|thread| u64::from(self.of(thread))).sum::<u64>();
        if scaled(own) <= 2 * sum {
            return None;
        }
        let first = (chance % threads as u64) as usize;
        let mut others = (0..threads).map(|step| (first + step) % threads).filter(|&other| other != thread);
        others.find(|&other| scaled(self.of(other)) <= sum)
    }
}

impl Drop for Sending<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Release);
    }
}

/// A thread's ways to the others, and theirs to it.
pub(crate) struct HandOver {
    /// By thread.
    peers: Arc<Vec<SocketSender>>,
    arrivals: Rc<Arrivals>,
    /// What takes what arrives, until the switch drains.
    taking: RefCell<Option<Task>>,
}

impl HandOver {
    /// `peers` by thread, `arrivals` on the event loop of this one.
    pub(crate) fn new(peers: Arc<Vec<SocketSender>>, arrivals: Arrivals) -> HandOver {
        HandOver { peers, arrivals: Rc::new(arrivals), taking: RefCell::default() }
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

    /// Takes what is here, and from now on nothing without being asked: the shard is not held any more. False while more
    /// may be on its way.
    pub(crate) fn end(&self, shard: &Rc<Shard>) -> bool {
        let is_all = shard.shared.streams.is_nobody_sending();
        if let Some(taking) = self.taking.take() {
            taking.abort();
        }
        while let Some(received) = self.arrivals.take_waiting() {
            take(shard, received);
        }
        is_all
    }
}

/// Keeps a connection that a socket has brought, or hands it over.
///
/// # Errors
/// When it cannot be kept: the system is out of memory for it.
pub(crate) fn keep(shard: &Shard, socket: SocketId, accepted: Accepted) -> io::Result<Option<Tcp>> {
    let streams = &shard.shared.streams;
    let other = streams.instead_of(shard.thread, shard.random());
    let _sending = other.map(|_| streams.begin_sending());
    let peer = other.filter(|_| !shard.is_draining());
    let peer = peer.and_then(|other| shard.hand_over.as_ref()?.peers.get(other));
    // Where too many are under way it stays.
    if let Some(peer) = peer
        && peer.send(socket.0, &accepted).is_ok()
    {
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
        let counts = StreamCounts::new(streams.len());
        for (thread, &streams) in streams.iter().enumerate() {
            (0..streams).for_each(|_| counts.begun(thread));
        }
        counts
    }

    #[test]
    fn whoever_has_more_than_twice_the_mean_hands_over() {
        let twice = counts(&[100, 30, 40, 30]);
        assert_eq!((0..9).find_map(|chance| twice.instead_of(0, chance)), None, "twice the mean is not more");
        let more = counts(&[101, 30, 40, 30]);
        let to: Vec<_> = (0..4).map(|chance| more.instead_of(0, chance)).collect();
        assert_eq!(to, [Some(1), Some(1), Some(2), Some(3)]);
        assert_eq!(more.instead_of(1, 0), None);
        // Not to one that has more than the mean itself.
        let uneven = counts(&[300, 150, 0, 0]);
        assert_eq!((uneven.instead_of(0, 1), uneven.instead_of(1, 1)), (Some(2), None));
    }

    #[test]
    fn few_streams_are_no_load_and_two_threads_keep_theirs() {
        assert_eq!(counts(&[STREAMS_MIN - 1, 0, 0]).instead_of(0, 0), None);
        assert_eq!(counts(&[STREAMS_MIN, 0, 0]).instead_of(0, 0), Some(1));
        assert_eq!(counts(&[10 * STREAMS_MIN, 0]).instead_of(0, 0), None);
        let ended = counts(&[STREAMS_MIN, 0, 0]);
        ended.ended(0);
        assert_eq!(ended.instead_of(0, 0), None);
    }
}

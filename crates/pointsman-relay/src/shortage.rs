//! Out of descriptors or memory: what is kept for that hour, and what is given up then.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixDatagram;
use std::sync::atomic::Ordering;

use pointsman_net::{Deadline, Tcp};
use pointsman_upstream::ConnectFault;
use rustix::io::Errno;

use crate::shard::Shard;

/// Idle connections to servers that are closed at a time.
const GIVEN_UP: usize = 8;
/// Idle connections that a thread keeps for the clients it has: a new one is not worth theirs.
const KEPT_FOR_CLIENTS: u32 = 8;

/// The last descriptors, which are kept from clients and servers: to turn clients away with an answer, to read
/// a new configuration, to show the metrics.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LastDescriptors {
    /// How many the process may have; `None`: no limit.
    max: Option<u64>,
    /// So many connections of clients are fine, with one to a server each: nobody looks before that.
    looked_at_from: usize,
    threads: u64,
}

/// Whom a descriptor is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// A pipe for a body, which can go through a buffer as well.
    Pipe,
    /// Another client.
    Client,
    /// A connection to a server, for a client that is here already.
    Server,
}

impl LastDescriptors {
    pub(crate) fn new(max: Option<u64>, connections_max: u32, threads: usize) -> LastDescriptors {
        LastDescriptors { max, looked_at_from: connections_max as usize, threads: threads as u64 }
    }

    fn kept_from(&self, whom: Use) -> u64 {
        match whom {
            Use::Pipe => 32 + 16 * self.threads,
            Use::Client => 16 + 8 * self.threads,
            Use::Server => 8 + 4 * self.threads,
        }
    }

    /// Whether only those are left that are kept from this use, when this many clients are connected.
    pub(crate) fn are_reached(&self, clients: usize, whom: Use) -> bool {
        // A pipe has not been reckoned with, however few the clients are.
        let may_be = whom == Use::Pipe || clients > self.looked_at_from;
        let Some(max) = self.max.filter(|_| may_be) else { return false };
        // The system gives the lowest number that is free: everything below it is taken. A socket that is bound
        // to nothing is the least of what has a number.
        let lowest_free = UnixDatagram::unbound().map(|socket| socket.as_raw_fd());
        !lowest_free.is_ok_and(|number| u64::from(number.unsigned_abs()) + self.kept_from(whom) < max)
    }
}

/// Whether the process, or the whole system, has run out of descriptors or memory for sockets.
pub(crate) fn is_shortage(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    matches!(errno, Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM | Errno::NOSPC))
}

/// Connects to a server; where there is no descriptor for it, idle connections make room first.
pub(crate) async fn connect(
    shard: &Shard,
    address: SocketAddr,
    deadline: &mut Deadline,
    ms: u32,
) -> Result<Tcp, ConnectFault> {
    loop {
        if !shard.is_short(Use::Server) {
            match pointsman_upstream::connect(address, deadline, ms).await {
                Err(ConnectFault::Io(error)) if is_shortage(&error) => {}
                outcome => return outcome,
            }
        }
        if !shard.makes_room(Use::Server) {
            return Err(ConnectFault::Io(Errno::MFILE.into()));
        }
    }
}

impl Shard {
    /// Whether there is no descriptor left for this.
    pub(crate) fn is_short(&self, whom: Use) -> bool {
        self.shared.last_descriptors.are_reached(self.shared.open.load(Ordering::Relaxed), whom)
    }

    /// Takes note of a shortage and closes kept pipes and the connections to servers that have been idle longest:
    /// here at once, on the other threads at their next tick. Says whether any could be closed here.
    pub(crate) fn makes_room(&self, whom: Use) -> bool {
        self.shared.shortages.fetch_add(1, Ordering::Relaxed);
        let kept_min = if whom == Use::Client { KEPT_FOR_CLIENTS } else { 0 };
        let pipes = self.pipes.close_kept();
        self.idle.close_oldest(GIVEN_UP, kept_min) + pipes > 0
    }

    /// Joins in where another thread has run short.
    pub(crate) fn help_in_shortage(&self) {
        let shortages = self.shared.shortages.load(Ordering::Relaxed);
        if self.shortages_seen.replace(shortages) != shortages {
            self.pipes.close_kept();
            self.idle.close_oldest(GIVEN_UP, KEPT_FOR_CLIENTS);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_shortage_is() {
        for errno in [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::NOBUFS] {
            assert!(is_shortage(&errno.into()), "{errno}");
        }
        for errno in [Errno::CONNREFUSED, Errno::CONNABORTED, Errno::TIMEDOUT] {
            assert!(!is_shortage(&errno.into()), "{errno}");
        }
        assert!(!is_shortage(&io::Error::other("not of the system")));
    }

    #[test]
    fn the_last_descriptors_are_kept_from_clients_first() {
        // Whatever this process has open: less than a million, more than none.
        let reached = |max, whom| LastDescriptors::new(max, 10, 1).are_reached(11, whom);
        assert!(!reached(Some(1_000_000), Use::Client) && !reached(None, Use::Client));
        assert!(reached(Some(24), Use::Client), "all but 24 of 24");
        assert!(reached(Some(12), Use::Server), "all but 12 of 12");
        assert!(reached(Some(48), Use::Pipe), "all but 48 of 48");
        assert!(!LastDescriptors::new(Some(12), 10, 1).are_reached(10, Use::Client), "nobody looks yet");
    }
}

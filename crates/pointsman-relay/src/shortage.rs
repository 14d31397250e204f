//! Out of descriptors or memory: what is kept for that hour, and what is given up then.

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixDatagram;
use std::sync::atomic::{AtomicU64, Ordering};

use pointsman_net::{Booking, Deadline};
use pointsman_upstream::{ConnectFault, Connection, Securing};
use rustix::io::Errno;

use crate::local::LocalServer;
use crate::shard::Shard;

/// Idle connections to servers that are closed at a time.
const GIVEN_UP: usize = 8;
/// Idle connections that a thread keeps for the clients it has: a new one is not worth theirs.
const KEPT_FOR_CLIENTS: u32 = 8;

/// The last descriptors, which are kept from clients and servers: to turn clients away with an answer, to read
/// a new configuration, to show the metrics.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LastDescriptors {
    /// How many a table may have; `None`: no limit.
    max: Option<u64>,
    /// So many connections of clients are fine, with one to a server each: nobody looks before that.
    looked_at_from: usize,
    /// Threads that share this table.
    sharers: u64,
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
    pub(crate) fn new(max: Option<u64>, connections_max: u32, sharers: usize) -> LastDescriptors {
        LastDescriptors { max, looked_at_from: connections_max as usize, sharers: sharers as u64 }
    }

    fn kept_from(&self, whom: Use) -> u64 {
        match whom {
            Use::Pipe => 32 + 16 * self.sharers,
            Use::Client => 16 + 8 * self.sharers,
            Use::Server => 8 + 4 * self.sharers,
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

/// What has run out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lack {
    /// Descriptors of this thread's table.
    Table,
    /// Descriptors or memory for sockets of the whole system.
    System,
}

impl Lack {
    /// What an operation failed for the lack of, if that was it.
    pub(crate) fn of(error: &io::Error) -> Option<Lack> {
        match Errno::from_io_error(error)? {
            Errno::MFILE => Some(Lack::Table),
            Errno::NFILE | Errno::NOBUFS | Errno::NOMEM | Errno::NOSPC => Some(Lack::System),
            _ => None,
        }
    }
}

/// How often something has run out, on all threads.
#[derive(Debug, Default)]
pub(crate) struct ShortageCounts {
    of_tables: AtomicU64,
    of_system: AtomicU64,
}

impl ShortageCounts {
    /// How often that was lacking.
    pub(crate) fn of(&self, lack: Lack) -> u64 {
        self.count(lack).load(Ordering::Relaxed)
    }

    fn add(&self, lack: Lack) {
        self.count(lack).fetch_add(1, Ordering::Relaxed);
    }

    /// How often a thread could have helped: who has a table of its own cannot help another table.
    fn within_reach(&self, has_own_table: bool) -> u64 {
        let of_tables = if has_own_table { 0 } else { self.of(Lack::Table) };
        self.of(Lack::System).wrapping_add(of_tables)
    }

    fn count(&self, lack: Lack) -> &AtomicU64 {
        match lack {
            Lack::Table => &self.of_tables,
            Lack::System => &self.of_system,
        }
    }
}

/// Connects to a server; where there is no descriptor for it, idle connections make room first. `None`: there is no
/// memory for the TLS of it.
pub(crate) async fn connect(
    shard: &Shard,
    server: &LocalServer,
    preface: &[u8],
    (deadline, ms): (&mut Deadline, u32),
) -> Result<Option<Connection>, ConnectFault> {
    // Nobody picks a server that is nowhere, but its name may have been taken away meanwhile.
    let address = server.address.ok_or_else(|| ConnectFault::Io(Errno::ADDRNOTAVAIL.into()))?;
    loop {
        let mut lack = Lack::Table;
        if !shard.is_short(Use::Server) {
            let Some((securing, _handshake)) = shard.secures(server) else { return Ok(None) };
            let outcome = pointsman_upstream::connect(address, preface, securing, deadline, ms).await;
            match outcome {
                Err(ConnectFault::Io(error)) if let Some(lacking) = Lack::of(&error) => lack = lacking,
                outcome => return outcome.map(Some),
            }
        }
        if !shard.makes_room(Use::Server, lack) {
            return Err(ConnectFault::Io(Errno::MFILE.into()));
        }
    }
}

impl Shard {
    /// What the TLS of a connection to a server takes, and its handshake, booked; where there is not so much left,
    /// idle connections make room. `None`: there is still too little.
    fn secures<'s>(&self, server: &'s LocalServer) -> Option<(Option<Securing<'s>>, Option<Booking>)> {
        let Some(connector) = &server.tls else { return Some((None, None)) };
        let (at_rest, handshake) = self.with_room(|| self.buffers.tls().zip(self.buffers.handshake()))?;
        Some((Some(Securing { connector, at_rest }), Some(handshake)))
    }

    /// Books something; where there is too little memory left, idle connections that hold some make room.
    pub(crate) fn with_room<T>(&self, book: impl Fn() -> Option<T>) -> Option<T> {
        loop {
            let booked = book();
            if booked.is_some() || self.idle.close_booked(GIVEN_UP) == 0 {
                return booked;
            }
        }
    }

    /// Whether there is no descriptor left for this.
    pub(crate) fn is_short(&self, whom: Use) -> bool {
        self.last_descriptors().are_reached(self.shared.open.load(Ordering::Relaxed), whom)
    }

    /// Takes note of a shortage and closes kept pipes and the connections to servers that have been idle longest:
    /// here at once, on the other threads at their next tick where that helps. Says whether any could be closed here.
    pub(crate) fn makes_room(&self, whom: Use, lack: Lack) -> bool {
        self.shared.shortages.add(lack);
        let kept_min = if whom == Use::Client { KEPT_FOR_CLIENTS } else { 0 };
        let pipes = self.pipes.close_kept();
        self.idle.close_oldest(GIVEN_UP, kept_min) + pipes > 0
    }

    /// Gives memory back where somebody has found none.
    pub(crate) fn help_in_lack_of_memory(&self) {
        if self.buffers.is_short() {
            self.idle.close_booked(GIVEN_UP);
            self.buffers.help_in_shortage();
        }
    }

    /// Joins in where another thread has run short of what all share.
    pub(crate) fn help_in_shortage(&self) {
        let shortages = self.shared.shortages.within_reach(self.has_own_table);
        if self.shortages_heard.replace(shortages) != shortages {
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
        assert_eq!(Lack::of(&Errno::MFILE.into()), Some(Lack::Table));
        for errno in [Errno::NFILE, Errno::NOMEM, Errno::NOBUFS] {
            assert_eq!(Lack::of(&errno.into()), Some(Lack::System), "{errno}");
        }
        for errno in [Errno::CONNREFUSED, Errno::CONNABORTED, Errno::TIMEDOUT] {
            assert_eq!(Lack::of(&errno.into()), None, "{errno}");
        }
        assert_eq!(Lack::of(&io::Error::other("not of the system")), None);
    }

    #[test]
    fn a_table_of_ones_own_is_nobody_elses_lack() {
        let counts = ShortageCounts::default();
        counts.add(Lack::Table);
        counts.add(Lack::Table);
        assert_eq!([false, true].map(|own| counts.within_reach(own)), [2, 0]);
        counts.add(Lack::System);
        assert_eq!([false, true].map(|own| counts.within_reach(own)), [3, 1]);
        assert_eq!([Lack::Table, Lack::System].map(|lack| counts.of(lack)), [2, 1]);
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

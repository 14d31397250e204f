//! Out of descriptors or memory: what is given up then, and what is kept for that hour.

use std::cell::RefCell;
use std::io;
use std::os::unix::net::UnixDatagram;
use std::sync::atomic::Ordering;

use pointsman_upstream::ConnectFault;
use rustix::io::Errno;

use crate::shard::Shard;

/// Idle connections to servers that are closed at a time.
const GIVEN_UP: usize = 8;

/// Whether the process, or the whole system, has run out of descriptors or memory for sockets.
pub(crate) fn is_shortage(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    matches!(errno, Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM | Errno::NOSPC))
}

/// A descriptor that is kept so that somebody can be told that there are no more.
#[derive(Debug, Default)]
pub(crate) struct Spare(RefCell<Option<UnixDatagram>>);

impl Spare {
    /// Sets one aside, if there is none yet and the system gives one.
    pub(crate) fn keep(&self) {
        let mut kept = self.0.borrow_mut();
        if kept.is_none() {
            // A socket that is bound to nothing: the least of what has a descriptor.
            *kept = UnixDatagram::unbound().ok();
        }
    }

    /// Frees it for another use. False where there was none.
    pub(crate) fn free(&self) -> bool {
        self.0.borrow_mut().take().is_some()
    }
}

impl Shard {
    /// Takes note of a shortage and closes the connections to servers that have been idle longest: here at
    /// once, on the other threads at their next tick. Says whether any could be closed here.
    pub(crate) fn makes_room(&self) -> bool {
        self.shared.shortages.fetch_add(1, Ordering::Relaxed);
        self.idle.close_oldest(GIVEN_UP) > 0
    }

    /// Whether a connection to a server failed for a shortage, and may succeed now that there is room.
    pub(crate) fn makes_room_after<T>(&self, outcome: &Result<T, ConnectFault>) -> bool {
        matches!(outcome, Err(ConnectFault::Io(error)) if is_shortage(error)) && self.makes_room()
    }

    /// Joins in where another thread has run short.
    pub(crate) fn help_in_shortage(&self) {
        let shortages = self.shared.shortages.load(Ordering::Relaxed);
        if self.shortages_seen.replace(shortages) != shortages {
            self.idle.close_oldest(GIVEN_UP);
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
    fn the_spare_descriptor_is_there_once() {
        let spare = Spare::default();
        assert!(!spare.free());
        spare.keep();
        spare.keep();
        assert!(spare.free());
        assert!(!spare.free());
    }
}

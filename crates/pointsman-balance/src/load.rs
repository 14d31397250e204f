//! What a server is doing right now, as all threads see it.

use std::sync::atomic::{AtomicU32, Ordering};

/// The load of one server. A cache line of its own, so that threads that use different servers
/// do not slow each other down.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct ServerLoad {
    in_flight: AtomicU32,
}

impl ServerLoad {
    /// Counts a request in.
    pub fn begin(&self) {
        // The count is a hint to other threads; no other memory depends on it.
        self.in_flight.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a request out that [`ServerLoad::begin`] counted in.
    pub fn end(&self) {
        let before = self.in_flight.fetch_sub(1, Ordering::Relaxed);
        debug_assert!(before > 0, "a request ended that never began");
    }

    /// How many requests are in flight.
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        self.in_flight.load(Ordering::Relaxed)
    }
}

impl AsRef<ServerLoad> for ServerLoad {
    fn as_ref(&self) -> &ServerLoad {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_in_and_out() {
        let load = ServerLoad::default();
        load.begin();
        load.begin();
        assert_eq!(load.in_flight(), 2);
        load.end();
        assert_eq!(load.in_flight(), 1);
        load.end();
        assert_eq!(load.in_flight(), 0);
    }
}

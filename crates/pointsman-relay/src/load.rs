//! How many requests are on their way to each server: each thread counts its own, and who wants to know adds up.

use std::sync::Arc;

use pointsman_telemetry::{Counter, Slots};

/// So many counters fill the lines of a thread.
const PLACES: usize = 16;

/// The counts of some servers, side by side for each thread: who compares servers reads as few lines of other
/// threads as can be.
type Counts = Slots<[Counter; PLACES]>;

/// The load of one server, as all threads together make it.
#[derive(Debug)]
pub(crate) struct ServerLoad {
    counts: Arc<Counts>,
    place: usize,
}

impl ServerLoad {
    /// How many requests are on their way. Those of other threads may be those of a moment ago.
    pub(crate) fn in_flight(&self) -> u32 {
        let sum = self.counts.sum(|of_thread| &of_thread[self.place]);
        u32::try_from(sum).unwrap_or(u32::MAX)
    }
}

/// What one thread adds to it.
#[derive(Debug)]
pub(crate) struct OwnLoad {
    load: Arc<ServerLoad>,
    thread: usize,
}

impl OwnLoad {
    /// For the thread of that number, and for no other: each has one writer.
    pub(crate) fn new(load: Arc<ServerLoad>, thread: usize) -> OwnLoad {
        OwnLoad { load, thread }
    }

    /// How many requests are on their way, those of the other threads among them.
    pub(crate) fn in_flight(&self) -> u32 {
        self.load.in_flight()
    }

    /// Counts a request in.
    #[inline]
    pub(crate) fn begin(&self) {
        self.count().add(1);
    }

    /// Counts a request out that [`OwnLoad::begin`] counted in.
    #[inline]
    pub(crate) fn end(&self) {
        self.count().subtract(1);
    }

    #[inline]
    fn count(&self) -> &Counter {
        &self.load.counts.of(self.thread)[self.load.place]
    }
}

/// Gives servers their places.
#[derive(Debug)]
pub(crate) struct Places {
    threads: usize,
    counts: Arc<Counts>,
    taken: usize,
}

impl Places {
    pub(crate) fn new(threads: usize) -> Places {
        Places { threads, counts: Arc::new(Counts::new(threads)), taken: 0 }
    }

    /// The load of a server that has none yet. No place is given twice: some request may still hold it.
    pub(crate) fn next(&mut self) -> ServerLoad {
        if self.taken == PLACES {
            *self = Places::new(self.threads);
        }
        let place = self.taken;
        self.taken += 1;
        ServerLoad { counts: self.counts.clone(), place }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_server_has_what_all_threads_have_begun_and_not_ended() {
        let mut places = Places::new(3);
        let loads: Vec<_> = (0..PLACES * 2 + 1).map(|_| Arc::new(places.next())).collect();
        std::thread::scope(|scope| {
            for thread in 0..3 {
                let loads = &loads;
                scope.spawn(move || {
                    for (server, load) in loads.iter().enumerate() {
                        let own = OwnLoad::new(load.clone(), thread);
                        (0..1000 + server).for_each(|_| own.begin());
                        (0..1000 - thread).for_each(|_| own.end());
                    }
                });
            }
        });
        for (server, load) in loads.iter().enumerate() {
            // Thread 0 leaves as many as the server's number, each other thread its own number more.
            assert_eq!(load.in_flight() as usize, 3 * server + 1 + 2);
        }
    }
}

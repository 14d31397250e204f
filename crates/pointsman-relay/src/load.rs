//! How many requests are on their way to each server: each thread counts its own, and who wants to know adds up.

use std::sync::Arc;

use pointsman_telemetry::{ByThread, Counter, OwnLines};

/// So many counters fill the lines of a thread.
const PLACES: usize = 16;

/// What one thread counts of some servers, side by side: who compares servers reads as few lines of other threads as
/// can be.
type Row = OwnLines<[Counter; PLACES]>;

/// The load of one server, as all threads together make it.
#[derive(Debug)]
pub(crate) struct ServerLoad {
    rows: Arc<ByThread<Arc<Row>>>,
    place: usize,
}

/// What one thread adds to it.
#[derive(Debug)]
pub(crate) struct OwnLoad {
    load: Arc<ServerLoad>,
    row: Arc<Row>,
    place: usize,
}

impl OwnLoad {
    /// For the thread of that number, and for no other: each row has one writer.
    pub(crate) fn new(load: Arc<ServerLoad>, thread: usize) -> OwnLoad {
        let (row, place) = (load.rows.of(thread).clone(), load.place);
        OwnLoad { load, row, place }
    }

    /// Counts a request in.
    #[inline]
    pub(crate) fn begin(&self) {
        self.row[self.place].add(1);
    }

    /// Counts a request out that [`OwnLoad::begin`] counted in.
    #[inline]
    pub(crate) fn end(&self) {
        self.row[self.place].subtract(1);
    }

    /// How many requests are on their way, those of the other threads among them.
    pub(crate) fn in_flight(&self) -> u32 {
        self.load.in_flight()
    }
}

impl ServerLoad {
    /// How many requests are on their way. Those of other threads may be those of a moment ago.
    pub(crate) fn in_flight(&self) -> u32 {
        let sum: u64 = self.rows.iter().map(|row| row[self.place].get()).sum();
        u32::try_from(sum).unwrap_or(u32::MAX)
    }
}

/// Gives servers their places.
#[derive(Debug)]
pub(crate) struct Places {
    rows: Arc<ByThread<Arc<Row>>>,
    threads: usize,
    taken: usize,
}

impl Places {
    /// For so many threads, to begin with.
    pub(crate) fn new(threads: usize) -> Places {
        Places { rows: Arc::new(ByThread::new(threads)), threads, taken: 0 }
    }

    /// The load of a server that has none yet. No place is given twice: some request may still hold it.
    pub(crate) fn next(&mut self) -> ServerLoad {
        if self.taken == PLACES {
            *self = Places::new(self.threads);
        }
        let place = self.taken;
        self.taken += 1;
        ServerLoad { rows: self.rows.clone(), place }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_server_has_what_all_threads_have_begun_and_not_ended() {
        // One of the threads was not reckoned with.
        let mut places = Places::new(2);
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

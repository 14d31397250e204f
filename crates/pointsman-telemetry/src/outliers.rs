//! Requests that stand out: the slowest of the last minutes, and the latest that failed.
//!
//! Each thread copies what stands out into a list of its own, which most requests do not touch: they pay one comparison. On
//! the thread's tick the list goes to its [`Shelf`], where a reader finds it; only there is a lock, and the thread does not
//! wait for it.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError, TryLockError};

use crate::event::{Counts, Exchange, Query};

/// How long the slowest are remembered, in whole minutes before this one.
pub const OUTLIER_MINUTES: u64 = 5;
/// How long those are remembered that failed, at most.
pub const FAILED_MINUTES: u64 = 60;
/// How many of the slowest are kept of a minute, and shown.
const SLOWEST_MAX: usize = 20;
/// How many are kept that failed, and shown.
const FAILED_MAX: usize = 50;
/// So many of the slow are copied between two ticks; then only such as take twice as long as all of these.
const SLOW_A_TICK: usize = 16;
/// So many that failed are copied between two ticks.
const FAILED_A_TICK: usize = 8;
/// Bytes of each text that are kept.
const TEXT_BYTES_MAX: usize = 200;
/// Bytes of all texts of one together that there is room for from the start: a request that nobody looks at has a few names. Where
/// more are noted the room grows, and stays.
const TEXTS_BYTES: usize = 128;
/// As many as one thread has of this minute and those before, of failed ones, and between two ticks.
const COPIES: usize =
    (OUTLIER_MINUTES as usize + 1) * SLOWEST_MAX + FAILED_MAX + 2 * SLOW_A_TICK + FAILED_A_TICK;
const MINUTE_US: u64 = 60_000_000;

/// A request that stands out, or a connection of which none is read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outlier {
    /// When it was over, on the clock of the event loops.
    pub at_us: u64,
    /// Where it came in.
    pub listener: Box<str>,
    /// The label of the rule that decided.
    pub rule: Option<Box<str>>,
    /// The pool that it was for.
    pub pool: Option<Box<str>>,
    /// The server that was tried last.
    pub server: Option<Box<str>>,
    /// The status that was sent, or 0.
    pub status: u16,
    /// From the first byte of the request to the end.
    pub total_us: u64,
    /// To the decision; this and what follows is absent where nobody has looked at the clock.
    pub decided_us: Option<u64>,
    /// How long it waited for a place at a server.
    pub queued_us: Option<u64>,
    /// To a connection with the server.
    pub connected_us: Option<u64>,
    /// To the first byte of the server's answer.
    pub first_byte_us: Option<u64>,
    /// Servers tried, counting repetitions.
    pub tries: u32,
    /// Bytes of the request.
    pub request_bytes: u64,
    /// Bytes of the answer.
    pub response_bytes: u64,
    /// What went wrong.
    pub error: Option<Box<str>>,
    /// The address of the client.
    pub client: Option<Box<str>>,
    /// The method.
    pub method: Option<Box<str>>,
    /// The host as the request names it.
    pub host: Option<Box<str>>,
    /// The path.
    pub path: Option<Box<str>>,
    /// The query, where the access log has it.
    pub query: Option<Box<str>>,
}

/// What all threads have.
#[derive(Clone, Debug, Default)]
pub struct Outliers {
    /// The slowest first.
    pub slowest: Vec<Outlier>,
    /// The latest first.
    pub failed: Vec<Outlier>,
}

/// What one thread looks at, and has copied since its last tick.
#[derive(Debug)]
pub(crate) struct Lookout {
    /// What takes longer is copied.
    floor_us: Cell<u64>,
    minute: Cell<u64>,
    fresh: RefCell<Fresh>,
    shelf: Arc<Shelf>,
}

/// Copies that go round: what is over serves again, so that none takes memory once the thread has begun.
#[derive(Debug)]
struct Fresh {
    slowest: Vec<Copied>,
    failed: Vec<Copied>,
    spare: Vec<Copied>,
}

/// One that stands out, with all of its texts in one piece of memory.
#[derive(Debug, Default)]
struct Copied {
    /// Without its texts.
    facts: Outlier,
    text: String,
    /// Where each of them stands in it: [`Copied::told`] has their order.
    places: [Option<Range<usize>>; 10],
}

/// Where one thread puts what others read.
#[derive(Debug, Default)]
pub(crate) struct Shelf(Mutex<Kept>);

#[derive(Debug)]
struct Kept {
    /// By minute, in a ring: each with the minute that it is of.
    slowest: [(u64, Vec<Copied>); OUTLIER_MINUTES as usize + 1],
    /// The oldest first.
    failed: VecDeque<Copied>,
}

impl Lookout {
    pub(crate) fn new(shelf: Arc<Shelf>) -> Lookout {
        Lookout { floor_us: Cell::new(0), minute: Cell::new(0), fresh: RefCell::new(Fresh::new()), shelf }
    }

    /// Whether an exchange stands out.
    #[inline]
    pub(crate) fn sees(&self, counts: &Counts<'_>) -> bool {
        let rank = if counts.is_failed { u64::MAX } else { counts.duration_us().unwrap_or_default() };
        rank > self.floor_us.get() && self.has_room(rank == u64::MAX)
    }

    #[cold]
    fn has_room(&self, is_failed: bool) -> bool {
        !is_failed || self.fresh.borrow().failed.len() < FAILED_A_TICK
    }

    /// Copies one that does.
    #[cold]
    pub(crate) fn keep(&self, exchange: &Exchange<'_>) {
        let fresh = &mut *self.fresh.borrow_mut();
        let mut copy = fresh.spare.pop().unwrap_or_default();
        copy.fill(exchange);
        if exchange.counts.is_failed {
            fresh.failed.push(copy);
            return;
        }
        fresh.slowest.push(copy);
        if fresh.slowest.len() >= SLOW_A_TICK {
            // Where each takes longer than the one before, as when all of them queue, few are copied nevertheless.
            let longest = fresh.slowest.iter().map(|slow| slow.facts.total_us).max().unwrap_or_default();
            self.floor_us.set(longest.saturating_mul(2));
        }
    }

    /// Puts what was copied where others find it. On the thread's tick.
    pub(crate) fn tick(&self, now_us: u64) {
        let (minute, mut fresh) = (now_us / MINUTE_US, self.fresh.borrow_mut());
        if fresh.slowest.is_empty() && fresh.failed.is_empty() && minute == self.minute.get() {
            return;
        }
        let mut kept = match self.shelf.0.try_lock() {
            Ok(kept) => kept,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            // Somebody reads: there is another tick.
            Err(TryLockError::WouldBlock) => return,
        };
        self.minute.set(minute);
        self.floor_us.set(kept.add(minute, &mut fresh));
    }
}

impl Shelf {
    /// Adds what is there to what others have.
    pub(crate) fn read(&self, now_us: u64, all: &mut Outliers) {
        // What it guards is whole at any time.
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let this_minute = now_us / MINUTE_US;
        let slowest = kept.slowest.iter().filter(|(minute, _)| minute + OUTLIER_MINUTES >= this_minute);
        all.slowest.extend(slowest.flat_map(|(_, slow)| slow).map(Copied::told));
        let since_us = now_us.saturating_sub(FAILED_MINUTES * MINUTE_US);
        all.failed
            .extend(kept.failed.iter().filter(|failed| failed.facts.at_us >= since_us).map(Copied::told));
    }
}

impl Default for Kept {
    fn default() -> Kept {
        let slowest = std::array::from_fn(|_| (0, Vec::with_capacity(SLOWEST_MAX + 2 * SLOW_A_TICK)));
        Kept { slowest, failed: VecDeque::with_capacity(FAILED_MAX + FAILED_A_TICK) }
    }
}

impl Kept {
    /// Takes what was copied in a minute, and gives back what is over. The answer is how long a request must take to be copied
    /// after these.
    fn add(&mut self, minute: u64, fresh: &mut Fresh) -> u64 {
        let place = (minute % self.slowest.len() as u64) as usize;
        let (of, slowest) = &mut self.slowest[place];
        if std::mem::replace(of, minute) != minute {
            fresh.spare.append(slowest);
        }
        slowest.append(&mut fresh.slowest);
        slowest.sort_unstable_by_key(|slow| std::cmp::Reverse(slow.facts.total_us));
        fresh.spare.extend(slowest.drain(SLOWEST_MAX.min(slowest.len())..));
        let room = FAILED_MAX.saturating_sub(fresh.failed.len());
        fresh.spare.extend(self.failed.drain(..self.failed.len().saturating_sub(room)));
        self.failed.extend(fresh.failed.drain(..));
        slowest.get(SLOWEST_MAX - 1).map_or(0, |last| last.facts.total_us)
    }
}

impl Fresh {
    fn new() -> Fresh {
        let mut spare = Vec::with_capacity(2 * COPIES);
        spare.extend(
            (0..COPIES).map(|_| Copied { text: String::with_capacity(TEXTS_BYTES), ..Copied::default() }),
        );
        Fresh {
            slowest: Vec::with_capacity(2 * SLOW_A_TICK),
            failed: Vec::with_capacity(FAILED_A_TICK),
            spare,
        }
    }
}

impl Outliers {
    /// As many as are shown, in order.
    pub(crate) fn sort(&mut self) {
        self.slowest.sort_by_key(|slow| std::cmp::Reverse(slow.total_us));
        self.slowest.truncate(SLOWEST_MAX);
        self.failed.sort_by_key(|failed| std::cmp::Reverse(failed.at_us));
        self.failed.truncate(FAILED_MAX);
    }
}

impl Copied {
    /// Takes one in the place of what it was.
    fn fill(&mut self, exchange: &Exchange<'_>) {
        let Counts { listener, server, rule, status, request_bytes, response_bytes, total_us, .. } =
            exchange.counts;
        let Exchange { decided_us, queued_us, connected_us, first_byte_us, tries, .. } = *exchange;
        let query = match exchange.query {
            Query::Unlogged | Query::Absent => None,
            Query::Text(query) => Some(query),
        };
        let texts = [
            Some(listener.name().as_bytes()),
            rule.map(|rule| rule.label().as_bytes()),
            server.map(|server| server.pool().as_bytes()).or(exchange.pool),
            server.map(|server| server.name().as_bytes()),
            exchange.error.map(str::as_bytes),
            exchange.client_ip,
            exchange.method,
            exchange.host,
            exchange.path,
            query,
        ];
        self.text.clear();
        self.places = texts.map(|text| text.map(|text| write(&mut self.text, text)));
        self.facts = Outlier {
            at_us: exchange.now_us,
            status,
            total_us,
            decided_us,
            queued_us,
            connected_us,
            first_byte_us,
            tries,
            request_bytes,
            response_bytes,
            ..Outlier::default()
        };
    }

    /// With its texts, for who reads.
    fn told(&self) -> Outlier {
        let texts = self.places.each_ref().map(|place| {
            let place = place.clone()?;
            Some(Box::from(self.text.get(place)?))
        });
        let [listener, rule, pool, server, error, client, method, host, path, query] = texts;
        let listener = listener.unwrap_or_default();
        Outlier {
            listener,
            rule,
            pool,
            server,
            error,
            client,
            method,
            host,
            path,
            query,
            ..self.facts.clone()
        }
    }
}

/// Writes the beginning of a text behind others: as far as it is kept.
fn write(all: &mut String, text: &[u8]) -> Range<usize> {
    let start = all.len();
    for chunk in text[..text.len().min(TEXT_BYTES_MAX)].utf8_chunks() {
        all.push_str(chunk.valid());
        if !chunk.invalid().is_empty() {
            all.push(char::REPLACEMENT_CHARACTER);
        }
    }
    start..all.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::family::ListenerMetrics;

    fn hear(lookout: &Lookout, counts: Counts<'_>, now_us: u64) -> bool {
        let sees = lookout.sees(&counts);
        if sees {
            let long = [b'x'; 10_000];
            lookout.keep(&Exchange { now_us, path: Some(&long), ..Exchange::new(counts) });
        }
        sees
    }

    fn read(shelf: &Shelf, now_us: u64) -> Outliers {
        let mut all = Outliers::default();
        shelf.read(now_us, &mut all);
        all.sort();
        all
    }

    #[test]
    fn the_slowest_of_the_last_minutes_are_kept_and_few_are_copied() {
        let (listener, shelf) = (ListenerMetrics::new("shop", 1), Arc::new(Shelf::default()));
        let lookout = Lookout::new(shelf.clone());
        let slow = |total_us| Counts { total_us, ..Counts::new(&listener) };
        let mut copied = 0;
        for minute in 0..8 {
            for request in 0..10_000_u64 {
                let (now_us, total_us) = (minute * MINUTE_US + request, 1 + request * 7919 % 10_007);
                copied += u64::from(hear(&lookout, slow(total_us * (minute + 1)), now_us));
                if request % 100 == 0 {
                    lookout.tick(now_us);
                }
            }
            lookout.tick(minute * MINUTE_US + 20_000);
        }
        assert!(copied < 8 * 400, "{copied}");
        let found = read(&shelf, 7 * MINUTE_US + 30_000);
        let durations: Vec<u64> = found.slowest.iter().map(|slow| slow.total_us).collect();
        assert_eq!(durations.len(), SLOWEST_MAX);
        assert!(durations.is_sorted_by(|one, next| one >= next) && durations[0] > 8 * 9_900, "{durations:?}");
        assert_eq!(found.slowest[0].path.as_ref().map(|path| path.len()), Some(TEXT_BYTES_MAX));
        // Of those before, the minutes that are not over remain, one after the other.
        assert!(read(&shelf, 12 * MINUTE_US).slowest.iter().all(|slow| slow.at_us >= 7 * MINUTE_US));
        assert!(read(&shelf, 13 * MINUTE_US).slowest.is_empty());
    }

    /// Each takes longer than all before: what is copied between two ticks grows with the logarithm.
    #[test]
    fn a_queue_that_grows_is_not_copied_whole() {
        let (listener, shelf) = (ListenerMetrics::new("shop", 1), Arc::new(Shelf::default()));
        let lookout = Lookout::new(shelf.clone());
        let slow = |total_us| Counts { total_us, ..Counts::new(&listener) };
        let copied = (1..1_000_000).filter(|total_us| hear(&lookout, slow(*total_us), 0)).count();
        assert!((SLOW_A_TICK..SLOW_A_TICK + 20).contains(&copied), "{copied}");
        lookout.tick(0);
        assert!(read(&shelf, 0).slowest[0].total_us >= 500_000);
        assert!(hear(&lookout, slow(1_000_000), 0), "the next tick begins anew");
    }

    #[test]
    fn the_latest_that_failed_are_kept() {
        let (listener, shelf) = (ListenerMetrics::new("shop", 1), Arc::new(Shelf::default()));
        let lookout = Lookout::new(shelf.clone());
        let failed = Counts { is_failed: true, status: 502, ..Counts::new(&listener) };
        for tick in 0..20 {
            let copied = (0..100).filter(|_| hear(&lookout, failed, tick)).count();
            assert_eq!(copied, FAILED_A_TICK);
            lookout.tick(tick);
        }
        let found = read(&shelf, 20);
        assert_eq!((found.failed.len(), found.slowest.len()), (FAILED_MAX, 0));
        assert!(found.failed.is_sorted_by(|one, next| one.at_us >= next.at_us));
        assert_eq!((found.failed[0].at_us, found.failed[0].status), (19, 502));
        assert!(read(&shelf, FAILED_MINUTES * MINUTE_US + 20).failed.is_empty());
    }

    #[test]
    fn what_lasts_as_long_as_its_two_sides_like_is_not_slow() {
        let (listener, shelf) = (ListenerMetrics::new("shop", 1), Arc::new(Shelf::default()));
        let lookout = Lookout::new(shelf);
        let tunnel = Counts { status: 101, total_us: 1 << 40, ..Counts::new(&listener) };
        assert!(!lookout.sees(&tunnel));
        assert!(!lookout.sees(&Counts { status: 200, is_connection: true, ..tunnel }));
    }

    /// A thread does not wait for who reads: what it has stays until its next tick, and is no more than it may be.
    #[test]
    fn a_reader_holds_nobody_up() {
        let (listener, shelf) = (ListenerMetrics::new("shop", 1), Arc::new(Shelf::default()));
        let lookout = Lookout::new(shelf.clone());
        let failed = Counts { is_failed: true, ..Counts::new(&listener) };
        {
            let _reads = shelf.0.lock().expect("nobody has it");
            for _ in 0..100 {
                hear(&lookout, failed, 1);
                lookout.tick(1);
            }
        }
        assert_eq!(lookout.fresh.borrow().failed.len(), FAILED_A_TICK);
        lookout.tick(2);
        assert_eq!(read(&shelf, 2).failed.len(), FAILED_A_TICK);
    }
}

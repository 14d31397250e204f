//! What threads of event loops hand over to one that writes: whole lines, in a bounded queue.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::exposition::Exposition;

/// Buffers that may wait to be written: about 2 MiB of lines.
const QUEUED_BUFFERS_MAX: usize = 64;

/// Room in a new buffer: what is handed over, and a line more.
const BUFFER_BYTES: usize = 40 * 1024;

/// Written buffers that are kept for reuse.
const SPARE_BUFFERS_MAX: usize = 16;

/// Buffers that one long line made larger than this are not kept.
const SPARE_BYTES_MAX: usize = 128 * 1024;

/// How often who waits for the end of the thread asks whether it still should.
const CLOSE_LOOK: Duration = Duration::from_millis(25);

/// What became of lines.
#[derive(Debug, Default)]
pub(crate) struct LogCounters {
    pub(crate) written_lines: AtomicU64,
    pub(crate) dropped_lines: AtomicU64,
    pub(crate) write_errors: AtomicU64,
}

/// What waits to be written.
#[derive(Debug)]
pub(crate) struct Queue {
    waiting: Mutex<Waiting>,
    work: Condvar,
    /// The thread has ended.
    end: Condvar,
    pub(crate) counters: Arc<LogCounters>,
}

#[derive(Debug, Default)]
struct Waiting {
    full: VecDeque<Lines>,
    spare: Vec<Vec<u8>>,
    /// Lines that were handed over and are not written.
    unwritten_lines: u64,
    /// The file is to be opened anew behind so many of the full buffers.
    reopen_behind: Option<usize>,
    closed: bool,
    ended: bool,
}

/// Whole lines.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    pub(crate) bytes: Vec<u8>,
    pub(crate) count: u64,
}

/// Names of families and what they are: what was written, what was lost, and what failed.
type Families = [(&'static str, &'static str); 3];

pub(crate) static ACCESS_LOG_FAMILIES: Families = [
    ("pointsman_access_log_lines_total", "Lines of the access log that were written."),
    ("pointsman_access_log_dropped_lines_total", "Lines of the access log that were lost."),
    ("pointsman_access_log_write_errors_total", "Failures to open or write the access log."),
];

pub(crate) static SPAN_FAMILIES: Families = [
    ("pointsman_spans_total", "Spans that the collector took."),
    ("pointsman_spans_dropped_total", "Spans that were lost."),
    ("pointsman_span_export_errors_total", "Failures to send spans to the collector."),
];

impl LogCounters {
    pub(crate) fn render(&self, page: &mut Exposition<'_>, families: &Families) {
        let counts = [&self.written_lines, &self.dropped_lines, &self.write_errors];
        for ((name, help), count) in families.iter().zip(counts) {
            page.counter(name, help, count.load(Ordering::Relaxed));
        }
    }
}

impl Queue {
    pub(crate) fn new(counters: Arc<LogCounters>) -> Queue {
        Queue { waiting: Mutex::default(), work: Condvar::new(), end: Condvar::new(), counters }
    }

    /// Takes the lines, and leaves an empty buffer. Drops them if too many wait.
    pub(crate) fn hand_over(&self, lines: &mut Lines) {
        let mut waiting = self.lock();
        if waiting.closed || waiting.full.len() >= QUEUED_BUFFERS_MAX {
            drop(waiting);
            self.counters.dropped_lines.fetch_add(lines.count, Ordering::Relaxed);
            lines.bytes.clear();
            lines.count = 0;
            return;
        }
        let empty = Lines { bytes: waiting.spare.pop().unwrap_or_default(), count: 0 };
        waiting.unwritten_lines += lines.count;
        waiting.full.push_back(std::mem::replace(lines, empty));
        drop(waiting);
        self.work.notify_one();
        // Once, outside of the lock, and not by doubling while lines come in.
        lines.bytes.reserve(BUFFER_BYTES);
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // No code panics while it holds the lock, and if it did, the queue would still be whole.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for something to do, until that time if there is one. Takes everything that waits, with the wishes that
    /// came meanwhile.
    pub(crate) fn take(&self, until: Option<Instant>) -> Work {
        let mut waiting = self.lock();
        while waiting.full.is_empty() && waiting.reopen_behind.is_none() && !waiting.closed {
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            waiting = match left {
                Some(Duration::ZERO) => break,
                Some(left) => self.work.wait_timeout(waiting, left).unwrap_or_else(PoisonError::into_inner).0,
                None => self.work.wait(waiting).unwrap_or_else(PoisonError::into_inner),
            };
        }
        Work {
            full: std::mem::take(&mut waiting.full),
            reopen_behind: waiting.reopen_behind.take(),
            closed: waiting.closed,
        }
    }

    /// These lines were written or lost.
    pub(crate) fn give_back(&self, lines: Lines) {
        let mut buffer = lines.bytes;
        buffer.clear();
        let mut waiting = self.lock();
        waiting.unwritten_lines -= lines.count;
        if waiting.spare.len() < SPARE_BUFFERS_MAX && buffer.capacity() <= SPARE_BYTES_MAX {
            waiting.spare.push(buffer);
        }
    }

    pub(crate) fn reopen(&self) {
        let mut waiting = self.lock();
        let behind = waiting.full.len();
        // What came behind an earlier wish is not for the old file either.
        waiting.reopen_behind.get_or_insert(behind);
        drop(waiting);
        self.work.notify_one();
    }

    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.work.notify_one();
    }

    /// The writer has ended.
    pub(crate) fn has_ended(&self) {
        self.lock().ended = true;
        self.end.notify_all();
    }

    /// Whether it was closed, within that time.
    pub(crate) fn closes_within(&self, max: Duration) -> bool {
        let until = Instant::now() + max;
        let mut waiting = self.lock();
        while !waiting.closed && Instant::now() < until {
            let left = until.saturating_duration_since(Instant::now());
            waiting = self.work.wait_timeout(waiting, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        waiting.closed
    }

    /// Waits for the end of the thread, with [`crate::AccessLog::close`]'s limits. Returns the lines that are not written.
    pub(crate) fn wait_for_end(&self, max: Duration, mut cut: impl FnMut() -> bool) -> u64 {
        let started = Instant::now();
        let mut waiting = self.lock();
        while !waiting.ended && started.elapsed() < max && !cut() {
            let look = CLOSE_LOOK.min(max.saturating_sub(started.elapsed()));
            waiting = self.end.wait_timeout(waiting, look).unwrap_or_else(PoisonError::into_inner).0;
        }
        waiting.unwritten_lines
    }
}

/// What a writer is to do.
pub(crate) struct Work {
    pub(crate) full: VecDeque<Lines>,
    /// The target is to be opened anew behind so many of them.
    pub(crate) reopen_behind: Option<usize>,
    /// Nothing more comes.
    pub(crate) closed: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Lines {
        Lines { bytes: text.as_bytes().to_vec(), count: text.lines().count() as u64 }
    }

    #[test]
    fn a_full_queue_drops_and_counts() {
        let counters = Arc::new(LogCounters::default());
        let queue = Queue::new(counters.clone());
        for _ in 0..QUEUED_BUFFERS_MAX + 2 {
            let mut two = lines("a\nb\n");
            queue.hand_over(&mut two);
            assert!(two.bytes.is_empty() && two.count == 0);
        }
        assert_eq!(counters.dropped_lines.load(Ordering::Relaxed), 4);
        assert_eq!(queue.take(None).full.len(), QUEUED_BUFFERS_MAX);
    }

    #[test]
    fn a_writer_that_never_ends_holds_nobody_up() {
        // Nobody writes.
        let queue = Queue::new(Arc::default());
        queue.hand_over(&mut lines("a\nb\n"));
        queue.hand_over(&mut lines("c\n"));
        queue.close();
        let mut looks = 0;
        let told = || {
            looks += 1;
            looks == 3
        };
        assert_eq!(queue.wait_for_end(Duration::MAX, told), 3);
        assert_eq!(looks, 3);
        assert_eq!(queue.wait_for_end(Duration::from_millis(1), || false), 3);
    }
}

//! What the switch says of itself, on standard error.
//!
//! A thread writes it, so that a standard error which nobody reads holds up nothing else: what does not fit into the
//! bounded queue before it is dropped, and said to be as soon as there is room again.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use pointsman_config::{Colour, Loaded, LogLevel};
use pointsman_relay::Switch;
use pointsman_telemetry::LineFile;

/// Bytes that may wait to be written. One notice may wait whatever its length.
const QUEUED_BYTES_MAX: usize = 256 * 1024;

/// How often who waits for the last write asks whether it still should.
const FLUSH_LOOK: Duration = Duration::from_millis(25);

/// One queue, as there is one standard error.
static QUEUE: Queue = Queue::new();

/// What is said: a [`LogLevel`].
static LEVEL: AtomicU8 = AtomicU8::new(LogLevel::Info as u8);

/// From now on what is less grave is not said.
pub(super) fn set_level(level: LogLevel) {
    LEVEL.store(level as u8, Ordering::Relaxed);
}

/// Says what the switch does.
pub(super) fn notice(line: &str) {
    at(LogLevel::Info, line);
}

/// Says what may cost requests, or is probably not meant.
pub(super) fn warn(line: &str) {
    at(LogLevel::Warn, line);
}

/// Says what was to be done and was not.
pub(super) fn error(line: &str) {
    at(LogLevel::Error, line);
}

/// Says why something single failed.
pub(super) fn debug(line: &str) {
    at(LogLevel::Debug, &format!("debug: {line}"));
}

/// Says which dry-runs have ended since this was last done, and what they have counted.
pub(super) fn ended_dry_runs(switch: &RefCell<Switch>) {
    let ended = switch.borrow_mut().take_ended_dry_runs();
    ended.iter().for_each(|ended| notice(&ended.to_string()));
}

fn at(level: LogLevel, line: &str) {
    if level as u8 <= LEVEL.load(Ordering::Relaxed) {
        always(line);
    }
}

/// Says a line, whatever the level is. Never waits for who reads it.
pub(super) fn always(line: &str) {
    static WRITES: OnceLock<bool> = OnceLock::new();
    let line = format!("{}\n", line.trim_end());
    let started = || thread::Builder::new().name("notices".to_owned()).spawn(|| QUEUE.write_all()).is_ok();
    if *WRITES.get_or_init(started) {
        QUEUE.push(line);
    } else {
        write(&line);
    }
}

/// Waits until everything is written: at most `max`, and no longer than until `cut` says so.
pub(super) fn flush(max: Duration, cut: impl FnMut() -> bool) {
    QUEUE.flush(max, cut);
}

fn write(line: &str) {
    // Nobody listens to what cannot be said; the switch goes on.
    if std::io::stderr().write_all(line.as_bytes()).is_err() {}
}

/// What waits to be said.
struct Queue {
    waiting: Mutex<Waiting>,
    work: Condvar,
    /// All is written.
    idle: Condvar,
}

struct Waiting {
    lines: VecDeque<String>,
    /// Bytes of `lines`.
    bytes: usize,
    /// Notices that found no room since it was last said.
    dropped: u64,
    /// A line was taken and is not written.
    is_writing: bool,
}

impl Queue {
    const fn new() -> Queue {
        let waiting = Waiting { lines: VecDeque::new(), bytes: 0, dropped: 0, is_writing: false };
        Queue { waiting: Mutex::new(waiting), work: Condvar::new(), idle: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // No code panics while it holds the lock, and if it did, the queue would still be whole.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, line: String) {
        let mut waiting = self.lock();
        if !waiting.lines.is_empty() && waiting.bytes + line.len() > QUEUED_BYTES_MAX {
            waiting.dropped += 1;
            return;
        }
        // In its place: before what is said now.
        let dropped = waiting.say_dropped();
        waiting.bytes += dropped.as_ref().map_or(0, String::len) + line.len();
        waiting.lines.extend(dropped);
        waiting.lines.push_back(line);
        drop(waiting);
        self.work.notify_one();
    }

    /// The next line, if there is one, which is then being written.
    fn pop(waiting: &mut Waiting) -> Option<String> {
        let line = match waiting.lines.pop_front() {
            Some(line) => {
                waiting.bytes -= line.len();
                Some(line)
            }
            None => waiting.say_dropped(),
        };
        waiting.is_writing = line.is_some();
        line
    }

    /// The thread.
    fn write_all(&self) {
        let mut output = LineFile::shared(std::io::stderr()).ok();
        let mut waiting = self.lock();
        loop {
            if let Some(line) = Self::pop(&mut waiting) {
                drop(waiting);
                // A line that a full disk cuts is completed before the next one; one that is lost stays lost.
                match &mut output {
                    Some(output) => drop(output.write(line.as_bytes())),
                    None => write(&line),
                }
                waiting = self.lock();
            } else {
                self.idle.notify_all();
                waiting = self.work.wait(waiting).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }

    fn flush(&self, max: Duration, mut cut: impl FnMut() -> bool) {
        let started = Instant::now();
        let mut waiting = self.lock();
        while waiting.is_writing || !waiting.lines.is_empty() || waiting.dropped > 0 {
            // One look at least, also for who was told before.
            let look = FLUSH_LOOK.min(max.saturating_sub(started.elapsed()));
            waiting = self.idle.wait_timeout(waiting, look).unwrap_or_else(PoisonError::into_inner).0;
            if started.elapsed() >= max || cut() {
                return;
            }
        }
    }
}

impl Waiting {
    fn say_dropped(&mut self) -> Option<String> {
        let dropped = std::mem::take(&mut self.dropped);
        (dropped > 0).then(|| format!("standard error was not read dropped={dropped}\n"))
    }
}

/// Warns where there is something to warn of.
pub(super) fn maybe(warning: Option<String>) {
    if let Some(warning) = warning {
        warn(&warning);
    }
}

/// Colours are for terminals.
pub(super) fn colour() -> Colour {
    if std::io::stderr().is_terminal() { Colour::Ansi } else { Colour::Never }
}

/// What is odd about a configuration that is used all the same.
pub(super) fn warnings(loaded: &Loaded) {
    if !loaded.warnings.is_empty() {
        warn(&loaded.warnings.render(colour()));
    }
}

/// Where clients can connect.
pub(super) fn listening(switch: &Switch) {
    for address in switch.addresses() {
        notice(&format!(
            "listening name={} address={} tls={}",
            address.listener, address.address, address.tls
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All that waits, with nobody writing.
    fn drain(queue: &Queue) -> Vec<String> {
        std::iter::from_fn(|| Queue::pop(&mut queue.lock())).collect()
    }

    #[test]
    fn what_has_no_room_is_dropped_and_said_to_be_in_its_place() {
        let queue = Queue::new();
        let long = "x".repeat(QUEUED_BYTES_MAX + 1);
        queue.push(long.clone());
        queue.push("lost\n".to_owned());
        queue.push("lost\n".to_owned());
        assert_eq!(Queue::pop(&mut queue.lock()), Some(long));
        queue.push("later\n".to_owned());
        assert_eq!(drain(&queue), ["standard error was not read dropped=2\n", "later\n"]);
        assert_eq!(queue.lock().bytes, 0);
    }

    #[test]
    fn drops_are_said_also_where_nothing_follows() {
        let queue = Queue::new();
        queue.push("x".repeat(QUEUED_BYTES_MAX));
        queue.push("lost\n".to_owned());
        assert_eq!(drain(&queue)[1..], ["standard error was not read dropped=1\n"]);
        assert!(drain(&queue).is_empty());
    }

    #[test]
    fn a_flush_ends_when_it_is_told_to() {
        let queue = Queue::new();
        queue.flush(Duration::MAX, || panic!("nothing to wait for"));
        queue.push("line\n".to_owned());
        queue.flush(Duration::MAX, || true);
        queue.flush(Duration::from_millis(1), || false);
        assert_eq!(drain(&queue), ["line\n"]);
    }
}

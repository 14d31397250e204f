//! How far a long replay has come, for somebody who watches it.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

/// The time is looked at behind so many lines.
const LINES: u64 = 1_024;

/// Between two that are shown.
const PAUSE: Duration = Duration::from_millis(250);

/// A line of standard error that is written over and over, on a terminal alone.
pub(super) struct Progress {
    last: Option<Instant>,
    is_shown: bool,
}

impl Progress {
    pub(super) fn new() -> Progress {
        Progress { last: io::stderr().is_terminal().then(Instant::now), is_shown: false }
    }

    /// Shows how far it has come, if it is time.
    pub(super) fn tell(&mut self, lines: u64, bytes: u64, changed: u64) {
        let Some(last) = self.last else { return };
        if !lines.is_multiple_of(LINES) || last.elapsed() < PAUSE {
            return;
        }
        (self.last, self.is_shown) = (Some(Instant::now()), true);
        self.write(&format!("\r\x1b[K{lines} lines, {} MiB, {changed} decided otherwise", bytes >> 20));
    }

    /// Takes it away.
    pub(super) fn end(&mut self) {
        if std::mem::take(&mut self.is_shown) {
            self.write("\r\x1b[K");
        }
    }

    /// A terminal that has gone away needs no progress.
    fn write(&mut self, text: &str) {
        if io::stderr().write_all(text.as_bytes()).is_err() {
            self.last = None;
        }
    }
}

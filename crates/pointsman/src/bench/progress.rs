//! One line a second on a terminal while a run goes on, and nothing elsewhere.

use std::io::{self, IsTerminal, Write};

use pointsman_bench::Progress;

use crate::units;

/// Cells of the bar.
const BAR: usize = 20;

/// Standard error, if somebody watches it.
pub(super) struct ProgressLine {
    is_watched: bool,
}

impl ProgressLine {
    pub(super) fn new() -> ProgressLine {
        ProgressLine { is_watched: io::stderr().is_terminal() }
    }

    pub(super) fn tell(&mut self, progress: &Progress) {
        if self.is_watched {
            self.write(&format!("\r\x1b[K{}", line(progress)));
        }
    }

    /// The same of a command that has a line of its own, which is made only where somebody sees it.
    pub(super) fn say(&mut self, line: impl FnOnce() -> String) {
        if self.is_watched {
            self.write(&format!("\r\x1b[K{}", line()));
        }
    }

    /// What stood there last goes away.
    pub(super) fn end(&mut self) {
        if self.is_watched {
            self.write("\r\x1b[K");
        }
    }

    /// A terminal that has gone away needs no progress.
    fn write(&mut self, text: &str) {
        self.is_watched = io::stderr().write_all(text.as_bytes()).is_ok();
    }
}

/// The same for what goes on in steps.
pub(super) struct StepLine(ProgressLine);

impl StepLine {
    pub(super) fn new() -> StepLine {
        StepLine(ProgressLine::new())
    }

    /// How far it is, from 0 to 1, and what is done now.
    pub(super) fn tell(&mut self, share: f64, what: &str) {
        if self.0.is_watched {
            self.0.write(&format!("\r\x1b[K{} {:.0} %  {what}", bar(share), share * 100.0));
        }
    }

    pub(super) fn end(&mut self) {
        self.0.end();
    }
}

fn line(progress: &Progress) -> String {
    let share = progress.at_seconds / progress.of_seconds.max(f64::EPSILON);
    let failed = match progress.failed_rate {
        0.0 => String::new(),
        rate => format!(", {} failed/s", units::rate(rate)),
    };
    format!(
        "{} {:.0}/{:.0} s{}  {}/s{failed}  {}  {} under way  {} connections  lag {}",
        bar(share),
        progress.at_seconds,
        progress.of_seconds,
        if progress.is_measured { "" } else { " warm-up" },
        units::rate(progress.rate),
        units::bytes_per_s(progress.bytes_rate),
        progress.under_way,
        progress.connections,
        units::duration(Some(progress.lag_ns as f64 / 1e9)),
    )
}

/// How much of it is done, from 0 to 1.
pub(super) fn bar(share: f64) -> String {
    let full = (share.clamp(0.0, 1.0) * BAR as f64).round() as usize;
    format!("[{}{}]", "#".repeat(full), ".".repeat(BAR - full))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_how_things_are() {
        let mut progress = Progress {
            at_seconds: 3.0,
            of_seconds: 12.0,
            rate: 1000.0,
            bytes_rate: 2e6,
            under_way: 7,
            connections: 64,
            lag_ns: 40_000,
            ..Progress::default()
        };
        assert_eq!(
            line(&progress),
            "[#####...............] 3/12 s warm-up  1000/s  2.0 MB/s  7 under way  64 connections  lag 40 us"
        );
        (progress.is_measured, progress.failed_rate) = (true, 2.0);
        assert!(line(&progress).contains("12 s  1000/s, 2.0 failed/s  2.0 MB/s"), "{}", line(&progress));
    }
}

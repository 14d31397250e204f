//! Says when the access log cannot be written, why, and when it can again: a line at the begin of a failure, at most one a minute
//! while it lasts, and one at its end.

use std::io;
use std::time::{Duration, Instant};

use pointsman_config::reason;
use pointsman_telemetry::LogTrouble;

/// How often a failure that lasts is said.
const SAID_AGAIN: Duration = Duration::from_secs(60);

/// How long writes must go well before that is said: a disk that is full lets a line through now and then.
const QUIET: Duration = Duration::from_secs(5);

/// What was said of the log.
#[derive(Debug, Default)]
pub(super) struct LogWatch {
    /// Failures that were there at the last look.
    seen: u64,
    /// Failures, and lines lost, of those that are over.
    over: (u64, u64),
    present: Option<Failure>,
}

/// A failure that is not over.
#[derive(Debug)]
struct Failure {
    /// Failures, and lines lost, that were there before it.
    before: (u64, u64),
    said: Instant,
    /// How many there were then.
    said_of: u64,
    /// Since when nothing has failed.
    quiet_since: Option<Instant>,
}

/// A line that is due.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    Fails(String),
    Again(String),
}

impl LogWatch {
    /// Looks at how it stands with the log.
    pub(super) fn look(&mut self, trouble: &LogTrouble, now: Instant) -> Option<Line> {
        let LogTrouble { is_failing, failures, lost_lines, ref why, .. } = *trouble;
        let has_news = std::mem::replace(&mut self.seen, failures) != failures;
        let why = || reason(&io::Error::other(why.as_str()));
        let Some(present) = &mut self.present else {
            return has_news.then(|| {
                let before = self.over;
                self.present = Some(Failure { before, said: now, said_of: failures, quiet_since: None });
                Line::Fails(format!("access log not written: {}; lines are lost until it can be", why()))
            });
        };
        let (failures_before, lost_before) = present.before;
        let counts = || {
            let (failures, lost_lines) = (failures - failures_before, lost_lines - lost_before);
            format!("failures={failures} lost_lines={lost_lines}")
        };
        if is_failing || has_news {
            present.quiet_since = None;
            let is_due = failures != present.said_of && now - present.said >= SAID_AGAIN;
            return is_due.then(|| {
                (present.said, present.said_of) = (now, failures);
                Line::Fails(format!("access log still not written {}: {}", counts(), why()))
            });
        }
        let since = *present.quiet_since.get_or_insert(now);
        (now - since >= QUIET).then(|| {
            let line = format!("access log written again {}", counts());
            (self.present, self.over) = (None, (failures, lost_lines));
            Line::Again(line)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trouble(is_failing: bool, failures: u64) -> LogTrouble {
        let why = "No space left on device (os error 28)".to_owned();
        LogTrouble { is_failing, failures, lost_lines: 10 * failures, why, unopened: None }
    }

    #[test]
    fn a_line_at_its_begin_one_a_minute_and_one_at_its_end() {
        let (mut watch, began) = (LogWatch::default(), Instant::now());
        let mut at = |s, is_failing, failures| {
            watch.look(&trouble(is_failing, failures), began + Duration::from_secs(s))
        };
        let fails = |line: &str| Some(Line::Fails(line.to_owned()));
        let begins =
            || fails("access log not written: no space left on device; lines are lost until it can be");
        assert_eq!(at(0, false, 0), None);
        assert_eq!(at(1, true, 2), begins());
        assert_eq!(at(2, true, 50), None);
        // A line that gets through is no end yet.
        assert_eq!((at(3, false, 50), at(4, true, 51), at(60, true, 52)), (None, None, None));
        let still = fails("access log still not written failures=60 lost_lines=600: no space left on device");
        assert_eq!((at(61, true, 60), at(62, true, 61)), (still, None));
        // Nobody writes, and nobody is told the same again.
        assert_eq!(
            (at(150, true, 61), at(151, false, 61), at(155, false, 61)),
            (
                fails("access log still not written failures=61 lost_lines=610: no space left on device"),
                None,
                None
            )
        );
        let again = "access log written again failures=61 lost_lines=610".to_owned();
        assert_eq!((at(156, false, 61), at(157, false, 61)), (Some(Line::Again(again)), None));
        // The next one counts from there, also where it is over by the time of the look.
        assert_eq!((at(200, false, 62), at(201, false, 62)), (begins(), None));
        let again = "access log written again failures=1 lost_lines=10".to_owned();
        assert_eq!(at(206, false, 62), Some(Line::Again(again)));
    }
}

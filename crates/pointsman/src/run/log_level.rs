//! How much the switch says of itself: as configured, or as somebody has set it for a while.

use std::cell::Cell;
use std::sync::Arc;

use pointsman_config::LogLevel;
use pointsman_telemetry::Notes;

use super::notice;

/// The level that holds.
pub(super) struct LogLevels {
    configured: Cell<LogLevel>,
    now: Cell<LogLevel>,
    /// Threads note what only the last level says.
    pub(super) notes: Arc<Notes>,
}

impl LogLevels {
    pub(super) fn new(configured: LogLevel) -> LogLevels {
        let levels = LogLevels {
            configured: Cell::new(configured),
            now: Cell::new(configured),
            notes: Arc::default(),
        };
        levels.set(configured);
        levels
    }

    /// What holds now.
    pub(super) fn now(&self) -> LogLevel {
        self.now.get()
    }

    /// What the configuration says.
    pub(super) fn configured(&self) -> LogLevel {
        self.configured.get()
    }

    /// This holds until another one is set, or the configuration says another one than it does now.
    pub(super) fn set(&self, level: LogLevel) {
        self.now.set(level);
        notice::set_level(level);
        self.notes.want(level == LogLevel::Debug);
    }

    /// Another configuration serves. Where it says what the last one said, what was set by hand still holds.
    pub(super) fn follow(&self, configured: LogLevel) {
        let before = self.now();
        if self.configured.replace(configured) == configured {
            return;
        }
        self.set(configured);
        if before != configured {
            notice::always(&format!("log level={} was={}", configured.name(), before.name()));
        }
    }

    /// Says what threads have noted.
    pub(super) fn tell(&self) {
        self.notes.take().iter().for_each(|line| notice::debug(line));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_set_holds_until_the_configuration_says_another_one() {
        let levels = LogLevels::new(LogLevel::Info);
        let is_noted = || {
            levels.notes.note(pointsman_telemetry::Topic::Probes, || "a probe".to_owned());
            !levels.notes.take().is_empty()
        };
        assert!(!is_noted());
        levels.set(LogLevel::Debug);
        assert!(is_noted());
        levels.follow(LogLevel::Info);
        assert_eq!((levels.now(), levels.configured()), (LogLevel::Debug, LogLevel::Info));
        levels.follow(LogLevel::Warn);
        assert_eq!((levels.now(), levels.configured()), (LogLevel::Warn, LogLevel::Warn));
        assert!(!is_noted());
        levels.set(LogLevel::Info);
    }
}

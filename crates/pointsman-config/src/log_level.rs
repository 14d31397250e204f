//! How much the switch says of itself.

/// What is said on standard error: what is at least as grave as this.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LogLevel {
    /// What was to be done and was not.
    Error,
    /// What may cost requests, or is probably not meant.
    Warn,
    /// What the switch does.
    #[default]
    Info,
    /// Why single probes, connections and handshakes fail.
    Debug,
}

impl LogLevel {
    /// All of them, the gravest first.
    pub const ALL: [LogLevel; 4] = [LogLevel::Error, LogLevel::Warn, LogLevel::Info, LogLevel::Debug];

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            LogLevel::Error => "error",
            LogLevel::Warn => "warn",
            LogLevel::Info => "info",
            LogLevel::Debug => "debug",
        }
    }

    /// The level of a name, if it is one.
    pub fn named(name: &str) -> Option<LogLevel> {
        LogLevel::ALL.into_iter().find(|level| level.name() == name)
    }
}

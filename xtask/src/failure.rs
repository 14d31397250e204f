//! Why a command did not do what it was asked to.

use std::fmt;
use std::process::ExitCode;

pub(crate) type Result<T> = std::result::Result<T, Failure>;

/// A message for the caller and the exit status that goes with it.
#[derive(Debug)]
pub(crate) struct Failure {
    message: String,
    status: u8,
}

impl Failure {
    /// Something went wrong or was found wrong.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), status: 1 }
    }

    /// The command line cannot be understood.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { message: message.into(), status: 2 }
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.status)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.message)
    }
}

impl From<lexopt::Error> for Failure {
    fn from(error: lexopt::Error) -> Self {
        Self::usage(error.to_string())
    }
}

/// Says what was being done when an error came up.
pub(crate) trait Because<T> {
    fn because(self, doing: impl FnOnce() -> String) -> Result<T>;
}

impl<T, E: fmt::Display> Because<T> for std::result::Result<T, E> {
    fn because(self, doing: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|error| Failure::new(format!("{}: {error}", doing())))
    }
}

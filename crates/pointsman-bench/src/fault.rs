//! Why there is no run.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Why a plan could not be carried out, in words for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    message: String,
    help: Option<String>,
}

impl Fault {
    /// A sentence that says what was wrong.
    pub fn new(message: impl Into<String>) -> Fault {
        Fault { message: message.into(), help: None }
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Fault {
        self.help = Some(help.into());
        self
    }

    pub(crate) fn io(what: &str, error: &std::io::Error) -> Fault {
        Fault::new(format!("{what}: {error}"))
    }

    /// What can be done about it, where that is known.
    pub fn advice(&self) -> Option<&str> {
        self.help.as_deref()
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Fault {}

//! Why there is no run.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Why a plan could not be carried out, in words for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    message: String,
    help: Option<String>,
    #[serde(skip)]
    is_of_agents: bool,
}

impl Fault {
    /// A sentence that says what was wrong.
    pub fn new(message: impl Into<String>) -> Fault {
        Fault { message: message.into(), help: None, is_of_agents: false }
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Fault {
        self.help = Some(help.into());
        self
    }

    pub(crate) fn io(what: &str, error: &std::io::Error) -> Fault {
        Fault::new(format!("{what}: {error}"))
    }

    /// An agent is gone, or was never there.
    pub(crate) fn of_agents(mut self) -> Fault {
        self.is_of_agents = true;
        self
    }

    /// Whether an agent is the reason: what is asked for next cannot be carried out either.
    pub(crate) fn is_of_agents(&self) -> bool {
        self.is_of_agents
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

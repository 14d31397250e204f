//! How long the turns of a measurement are, and how many there are: what everything has that is measured beside peers.

use lexopt::{Parser, ValueExt};

use crate::failure::{Failure, Result};

/// The options that say so.
pub(crate) struct Turns {
    pub(crate) seconds: u32,
    pub(crate) rounds: usize,
    pub(crate) build: bool,
    /// A bar that is missed is a failure.
    pub(crate) strict: bool,
}

impl Default for Turns {
    fn default() -> Self {
        Self { seconds: 4, rounds: 5, build: true, strict: false }
    }
}

impl Turns {
    /// Takes an option, if it is one of these.
    pub(crate) fn take(&mut self, option: &str, arguments: &mut Parser) -> Result<bool> {
        match option {
            "seconds" => self.seconds = arguments.value()?.parse()?,
            "rounds" => self.rounds = arguments.value()?.parse()?,
            "no-build" => self.build = false,
            "strict" => self.strict = true,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// What cannot be.
    pub(crate) fn check(&self) -> Result<()> {
        match (1..=600).contains(&self.seconds) && (1..=100).contains(&self.rounds) {
            true => Ok(()),
            false => Err(Failure::usage("seconds go from 1 to 600, rounds from 1 to 100")),
        }
    }
}

//! What the server's processes spend in the measured time, where the plan names one.
//!
//! A look in the middle of a load must be short: whose it is stands fixed before the load begins, so that just those are
//! looked at when the measured time begins. At its end it does no harm to search for those that have come since.

use std::collections::HashSet;

use crate::fault::Fault;
use crate::outcome::ServerUse;
use crate::plan::Plan;
use crate::process::{self, Time, ticks_per_second};
use crate::record::Record;

/// The process that a plan names, and all its descendants.
#[derive(Debug)]
pub(crate) struct ServerWatch {
    root: u32,
    known: HashSet<u32>,
}

impl ServerWatch {
    /// Who they are, before the load; nothing where the plan names none.
    pub(crate) fn find(plan: &Plan) -> Result<Option<ServerWatch>, Fault> {
        let watch = |root| Ok(ServerWatch { root, known: process::trees(&[root])? });
        plan.server_process.map(watch).transpose().map_err(|error| fault(&error))
    }

    /// What they have spent by now.
    pub(crate) fn look(&self) -> Result<Time, Fault> {
        Time::of_processes(&self.known).map_err(|error| fault(&error))
    }

    /// What they and those that have come since have spent by now.
    pub(crate) fn last_look(&self) -> Result<Time, Fault> {
        // The clocks of those that are known first: the search takes a while, and the load is over.
        let mut time = self.look()?;
        let all = process::trees(&[self.root]).map_err(|error| fault(&error))?;
        let came: HashSet<u32> = all.difference(&self.known).copied().collect();
        time.add(Time::of_processes(&came).map_err(|error| fault(&error))?);
        Ok(time)
    }
}

fn fault(error: &std::io::Error) -> Fault {
    Fault::io("cannot look at the server's process", error)
}

impl ServerUse {
    /// What the server spent between two looks at its processes, beside what it was asked in that time.
    pub(crate) fn between((before, after): &(Time, Time), record: &Record) -> ServerUse {
        let spent = after.since(before, ticks_per_second());
        let us = (spent.user + spent.system) * 1e6;
        let per = |count: u64| (count > 0).then(|| us / count as f64);
        ServerUse {
            spent,
            us_per_request: per(record.completed_in_time()),
            us_per_handshake: per(record.handshakes.iter().sum()),
        }
    }
}

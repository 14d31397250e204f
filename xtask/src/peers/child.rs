//! A process of the benchmark: on cores of its own.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use crate::failure::{Because, Failure, Result};
use crate::process::{Process, Start};
use crate::project::written;

/// Open files that a process may have. 2,000 connections need two each; HAProxy asks for 10,014, with pipes.
const OPEN_FILES: u32 = 16_384;

/// Where a process runs.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) cores: &'a [usize],
    pub(crate) precedence: Precedence,
}

/// Who goes first of those that want a core.
#[derive(Clone, Copy)]
pub(crate) enum Precedence {
    /// As the kernel usually has it.
    Usual,
    /// It waits for whoever is on the core to have had a turn, also when work has just come.
    Waits,
    /// It gets the core before all others but those that take it. Only root may.
    Preferred,
    /// It takes the core whenever it wants it. Only root may.
    First,
}

impl<'a> Place<'a> {
    pub(crate) fn on(cores: &'a [usize]) -> Self {
        Self { cores, precedence: Precedence::Usual }
    }

    /// What hands over to a program in this place.
    pub(crate) fn through(self) -> Vec<OsString> {
        let files = format!("--nofile={OPEN_FILES}");
        let cores = list(self.cores);
        let mut words = vec!["prlimit", &files, "taskset", "--cpu-list", &cores];
        match self.precedence {
            Precedence::Usual => {}
            // The kernel lets no batch process take the core from another that has it.
            Precedence::Waits => words.extend(["chrt", "--batch", "0"]),
            Precedence::Preferred => words.extend(["nice", "-n", "-20"]),
            Precedence::First => words.extend(["chrt", "--fifo", "10"]),
        }
        words.into_iter().map(OsString::from).collect()
    }
}

/// A running process; dropping it kills it.
pub(crate) struct Child(Process);

impl Child {
    /// Starts `program`; all its output goes to `log`.
    pub(crate) fn start(
        name: &str,
        place: Place<'_>,
        program: &Path,
        arguments: &[OsString],
        log: &Path,
    ) -> Result<Self> {
        Process::start_through(&Start { name, program, arguments, log }, &place.through()).map(Self)
    }

    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }

    /// Waits until it listens on a port of the loopback.
    pub(crate) fn wait_for_port(&mut self, port: u16) -> Result<()> {
        self.0.wait_for_port(port)
    }

    /// Waits until its output says something.
    pub(crate) fn wait_for_log<T>(&mut self, said: impl Fn(&str) -> Option<T>) -> Result<T> {
        self.0.wait_for(said)
    }

    pub(crate) fn expect_running(&mut self) -> Result<()> {
        self.0.expect_running()
    }

    /// Gives each of its threads whose name begins so a core of its own.
    pub(crate) fn spread_threads(&self, prefix: &str, cores: &[usize]) -> Result<()> {
        let folder = Path::new("/proc").join(self.id().to_string()).join("task");
        let doing = || format!("cannot list the threads in `{}`", folder.display());
        let mut cores = cores.iter();
        for thread in std::fs::read_dir(&folder).because(doing)?.flatten() {
            let name = std::fs::read_to_string(thread.path().join("comm")).unwrap_or_default();
            let Some(core) = name.starts_with(prefix).then(|| cores.next()).flatten() else { continue };
            let id = thread.file_name();
            written(Command::new("taskset").args(["--cpu-list", "--pid", &core.to_string()]).arg(id))?;
        }
        match cores.next() {
            None => Ok(()),
            Some(_) => Err(Failure::new(format!("there are fewer threads `{prefix}…` than cores"))),
        }
    }
}

/// `0,1`, as taskset wants it.
fn list(cores: &[usize]) -> String {
    cores.iter().map(usize::to_string).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_programs_that_hand_over() {
        let words = |place: Place<'_>| {
            place
                .through()
                .iter()
                .map(|word| word.to_string_lossy().into_owned())
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(words(Place::on(&[0])), "prlimit --nofile=16384 taskset --cpu-list 0");
        let waits = Place { cores: &[0, 1], precedence: Precedence::Waits };
        assert_eq!(words(waits), "prlimit --nofile=16384 taskset --cpu-list 0,1 chrt --batch 0");
        let preferred = Place { cores: &[0], precedence: Precedence::Preferred };
        assert_eq!(words(preferred), "prlimit --nofile=16384 taskset --cpu-list 0 nice -n -20");
        let first = Place { cores: &[0], precedence: Precedence::First };
        assert_eq!(words(first), "prlimit --nofile=16384 taskset --cpu-list 0 chrt --fifo 10");
    }
}

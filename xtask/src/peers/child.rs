//! A process of the benchmark: on cores of its own, with a log, and gone when we are.

use std::ffi::OsString;
use std::fs::File;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::failure::{Because, Failure, Result};
use crate::packages;
use crate::project::written;

/// How long a process may take until it serves.
const READY_MAX: Duration = Duration::from_secs(30);
/// How often we look whether it does.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Open files that a process may have. 2,000 connections need two each; HAProxy asks for 10,014, with pipes.
const OPEN_FILES: u32 = 16_384;

/// Where a process runs.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) cores: &'a [usize],
    /// Whether it waits for whoever is on the core to have had a turn, also when work has just come.
    pub(super) waits: bool,
}

impl<'a> Place<'a> {
    pub(super) fn on(cores: &'a [usize]) -> Self {
        Self { cores, waits: false }
    }
}

/// A running process; dropping it kills it.
pub(super) struct Child {
    name: String,
    process: std::process::Child,
    log: PathBuf,
}

impl Child {
    /// Starts `program`; all its output goes to `log`.
    pub(super) fn start(
        name: &str,
        place: Place<'_>,
        program: &Path,
        arguments: &[OsString],
        log: &Path,
    ) -> Result<Self> {
        let doing = || format!("cannot write `{}`", log.display());
        let output = File::create(log).because(doing)?;
        let errors = output.try_clone().because(doing)?;
        // The kernel kills it when this thread ends, however that comes about.
        let mut command = Command::new(packages::located("setpriv")?);
        command.args(["--pdeathsig", "KILL", "prlimit", &format!("--nofile={OPEN_FILES}")]);
        command.args(["taskset", "--cpu-list", &list(place.cores)]);
        if place.waits {
            // The kernel lets no batch process take the core from another that has it.
            command.args(["chrt", "--batch", "0"]);
        }
        command.arg(program).args(arguments).stdin(Stdio::null()).stdout(output).stderr(errors);
        let process = command.spawn().because(|| format!("cannot start {name}"))?;
        Ok(Self { name: name.to_owned(), process, log: log.to_path_buf() })
    }

    /// The process that becomes the program: setpriv, prlimit, taskset and chrt only hand over.
    pub(super) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Waits until it listens on a port of the loopback.
    pub(super) fn wait_for_port(&mut self, port: u16) -> Result<()> {
        let address = ([127, 0, 0, 1], port).into();
        self.wait_until(|_| TcpStream::connect_timeout(&address, LOOK_EVERY).ok().map(drop))
    }

    /// Waits until its output says something.
    pub(super) fn wait_for_log<T>(&mut self, said: impl Fn(&str) -> Option<T>) -> Result<T> {
        self.wait_until(|child| {
            child.logged().split_inclusive('\n').next_back().and_then(|_| said(&child.logged()))
        })
    }

    /// Gives each of its threads whose name begins so a core of its own.
    pub(super) fn spread_threads(&self, prefix: &str, cores: &[usize]) -> Result<()> {
        let folder = Path::new("/proc").join(self.id().to_string()).join("task");
        let doing = || format!("cannot list the threads of {}", self.name);
        let mut cores = cores.iter();
        for thread in std::fs::read_dir(folder).because(doing)?.flatten() {
            let name = std::fs::read_to_string(thread.path().join("comm")).unwrap_or_default();
            let Some(core) = name.starts_with(prefix).then(|| cores.next()).flatten() else { continue };
            let id = thread.file_name();
            written(Command::new("taskset").args(["--cpu-list", "--pid", &core.to_string()]).arg(id))?;
        }
        match cores.next() {
            None => Ok(()),
            Some(_) => Err(Failure::new(format!("{} has fewer threads `{prefix}…` than cores", self.name))),
        }
    }

    pub(super) fn expect_running(&mut self) -> Result<()> {
        match self.process.try_wait() {
            Ok(None) => Ok(()),
            _ => Err(Failure::new(format!("{} ended:\n{}", self.name, self.logged()))),
        }
    }

    fn wait_until<T>(&mut self, look: impl Fn(&Self) -> Option<T>) -> Result<T> {
        let started = Instant::now();
        while started.elapsed() < READY_MAX {
            if let Some(seen) = look(self) {
                return Ok(seen);
            }
            if let Ok(Some(status)) = self.process.try_wait() {
                return Err(Failure::new(format!("{} ended: {status}\n{}", self.name, self.logged())));
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Err(Failure::new(format!("{} is not ready after {READY_MAX:?}\n{}", self.name, self.logged())))
    }

    fn logged(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // An error means that it has ended already; waiting takes it off the process table either way.
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// `0,1`, as taskset wants it.
fn list(cores: &[usize]) -> String {
    cores.iter().map(usize::to_string).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::list;

    #[test]
    fn cores_are_written_as_a_list() {
        assert_eq!(list(&[0]), "0");
        assert_eq!(list(&[0, 1]), "0,1");
    }
}

//! A process of the benchmark: on one core, with a log, and gone when we are.

use std::ffi::OsString;
use std::fs::File;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::failure::{Because, Failure, Result};
use crate::packages;

/// How long a process may take until it serves.
const READY_MAX: Duration = Duration::from_secs(10);
/// How often we look whether it does.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A running process; dropping it kills it.
pub(super) struct Child {
    name: &'static str,
    process: std::process::Child,
    log: PathBuf,
}

impl Child {
    /// Starts `program` on one core; all its output goes to `log`.
    pub(super) fn start(
        name: &'static str,
        core: usize,
        program: &Path,
        arguments: &[OsString],
        log: &Path,
    ) -> Result<Self> {
        let doing = || format!("cannot write `{}`", log.display());
        let output = File::create(log).because(doing)?;
        let errors = output.try_clone().because(doing)?;
        // The kernel kills it when this thread ends, however that comes about.
        let mut command = Command::new(packages::located("setpriv")?);
        command.args(["--pdeathsig", "KILL", "taskset", "--cpu-list", &core.to_string()]);
        command.arg(program).args(arguments).stdin(Stdio::null()).stdout(output).stderr(errors);
        let process = command.spawn().because(|| format!("cannot start {name}"))?;
        Ok(Self { name, process, log: log.to_path_buf() })
    }

    /// The process that becomes the program: setpriv and taskset only hand over.
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
        Err(Failure::new(format!("{} does not serve after {READY_MAX:?}\n{}", self.name, self.logged())))
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

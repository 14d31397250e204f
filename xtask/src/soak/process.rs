//! A process of the soak: with a log, told by signals, and gone when we are.

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::failure::{Because, Failure, Result};
use crate::packages::located;
use crate::project::succeed;

const LOOK_EVERY: Duration = Duration::from_millis(20);
const READY_MAX: Duration = Duration::from_secs(30);

/// A running process; dropping it kills it.
pub(super) struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts a program; all its output goes to `log`. The kernel kills it when this thread ends.
    pub(super) fn start(program: &Path, arguments: &[OsString], log: PathBuf) -> Result<Self> {
        let doing = || format!("cannot write `{}`", log.display());
        let output = File::create(&log).because(doing)?;
        let errors = output.try_clone().because(doing)?;
        let mut command = Command::new(located("setpriv")?);
        command.args(["--pdeathsig", "KILL"]).arg(program).args(arguments);
        command.stdin(Stdio::null()).stdout(output).stderr(errors);
        let child = command.spawn().because(|| format!("cannot start `{}`", program.display()))?;
        Ok(Self { child, log })
    }

    /// setpriv becomes the program, so this is the program's own.
    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(super) fn said(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// The end of what it said: there may be warnings without end.
    pub(super) fn last_lines(&self) -> String {
        const LINES: usize = 20;
        let said = self.said();
        let lines: Vec<&str> = said.lines().collect();
        lines[lines.len().saturating_sub(LINES)..].join("\n")
    }

    /// Waits until `seen` finds in its output what it looks for.
    pub(super) fn wait_for<T>(&mut self, seen: impl Fn(&str) -> Option<T>) -> Result<T> {
        let started = Instant::now();
        while started.elapsed() < READY_MAX {
            if let Some(found) = seen(&self.said()) {
                return Ok(found);
            }
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(Failure::new(format!("a process ended with {status}:\n{}", self.said())));
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Err(Failure::new(format!("a process is not ready after {READY_MAX:?}:\n{}", self.said())))
    }

    pub(super) fn signal(&self, name: &str) -> std::result::Result<(), String> {
        let id = self.id().to_string();
        succeed(Command::new("kill").args(["-s", name, &id])).map_err(|failure| failure.to_string())
    }

    pub(super) fn wait_for_exit(&mut self, longest: Duration) -> Option<ExitStatus> {
        let started = Instant::now();
        while started.elapsed() < longest {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Some(status);
            }
            std::thread::sleep(LOOK_EVERY);
        }
        None
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // An error means that it has ended already; waiting takes it off the process table either way.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

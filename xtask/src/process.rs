//! A process that a command starts: with a log, told by signals, and gone when we are.

mod ending;

use std::ffi::OsString;
use std::fs::File;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::failure::{Because, Failure, Result};
use crate::packages::located;
use crate::project::succeed;

/// How long a process may take until it serves.
const READY_MAX: Duration = Duration::from_secs(30);
/// How often we look whether it does.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A running process; dropping it kills it.
pub(crate) struct Process {
    name: String,
    child: Child,
    log: PathBuf,
}

/// What a process is to be, before it is started.
pub(crate) struct Start<'a> {
    /// How messages call it.
    pub(crate) name: &'a str,
    pub(crate) program: &'a Path,
    pub(crate) arguments: &'a [OsString],
    /// Where its output goes.
    pub(crate) log: &'a Path,
}

impl Process {
    /// Starts a program; all its output goes to the log.
    pub(crate) fn start(start: &Start<'_>) -> Result<Self> {
        Self::start_through(start, &[])
    }

    /// The same through programs that only hand over to the next one, as `taskset` does.
    pub(crate) fn start_through(start: &Start<'_>, through: &[OsString]) -> Result<Self> {
        let output = start.output()?;
        start.spawn(through, Stdio::null(), output.into())
    }

    /// Starts a program and another one that reads its standard output; its errors go to its log.
    pub(crate) fn start_read_by(start: &Start<'_>, reader: &Start<'_>) -> Result<(Self, Self)> {
        let mut writing = start.spawn(&[], Stdio::null(), Stdio::piped())?;
        let output = writing.child.stdout.take().ok_or_else(|| Failure::new("there is no pipe"))?;
        let reading = reader.spawn(&[], output.into(), reader.output()?.into())?;
        Ok((writing, reading))
    }

    /// The process that becomes the program: what it was started through only hands over.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// What it wrote up to now.
    pub(crate) fn said(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// The end of what it said: there may be warnings without end.
    pub(crate) fn last_lines(&self) -> String {
        const LINES: usize = 20;
        let said = self.said();
        let lines: Vec<&str> = said.lines().collect();
        lines[lines.len().saturating_sub(LINES)..].join("\n")
    }

    /// Waits until `seen` finds in its output what it looks for.
    pub(crate) fn wait_for<T>(&mut self, seen: impl Fn(&str) -> Option<T>) -> Result<T> {
        self.wait_until(|process| seen(&process.said()))
    }

    /// Waits until it listens on a port of the loopback.
    pub(crate) fn wait_for_port(&mut self, port: u16) -> Result<()> {
        let address = ([127, 0, 0, 1], port).into();
        self.wait_until(|_| TcpStream::connect_timeout(&address, LOOK_EVERY).ok().map(drop))
    }

    pub(crate) fn expect_running(&mut self) -> Result<()> {
        match self.ended() {
            None => Ok(()),
            Some(_) => Err(Failure::new(format!("{} ended:\n{}", self.name, self.said()))),
        }
    }

    pub(crate) fn signal(&self, name: &str) -> std::result::Result<(), String> {
        let id = self.id().to_string();
        succeed(Command::new("kill").args(["-s", name, &id])).map_err(|failure| failure.to_string())
    }

    pub(crate) fn wait_for_exit(&mut self, longest: Duration) -> Option<ExitStatus> {
        let started = Instant::now();
        while started.elapsed() < longest {
            if let Some(status) = self.ended() {
                return Some(status);
            }
            std::thread::sleep(LOOK_EVERY);
        }
        None
    }

    /// How it ended, if it has. Its number may be another's then.
    fn ended(&mut self) -> Option<ExitStatus> {
        let mut running = ending::running();
        let status = self.child.try_wait().ok().flatten()?;
        running.remove(&self.child.id());
        Some(status)
    }

    fn wait_until<T>(&mut self, look: impl Fn(&Self) -> Option<T>) -> Result<T> {
        let started = Instant::now();
        while started.elapsed() < READY_MAX {
            if let Some(seen) = look(self) {
                return Ok(seen);
            }
            if let Some(status) = self.ended() {
                return Err(Failure::new(format!("{} ended: {status}\n{}", self.name, self.said())));
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Err(Failure::new(format!("{} is not ready after {READY_MAX:?}\n{}", self.name, self.said())))
    }
}

impl Start<'_> {
    fn output(&self) -> Result<File> {
        File::create(self.log).because(|| format!("cannot write `{}`", self.log.display()))
    }

    /// Errors go to the end of the log. The kernel kills the process when this thread ends, however that comes about; what it
    /// forgets that of, a signal to us ends as well.
    fn spawn(&self, through: &[OsString], input: Stdio, output: Stdio) -> Result<Process> {
        let errors = File::options().append(true).create(true).open(self.log);
        let errors = errors.because(|| format!("cannot write `{}`", self.log.display()))?;
        let mut command = Command::new(located("setpriv")?);
        command.args(["--pdeathsig", "KILL"]).args(through).arg(self.program).args(self.arguments);
        ending::hear_signals()?;
        let mut running = ending::running();
        let child = command.stdin(input).stdout(output).stderr(errors).spawn();
        let child = child.because(|| format!("cannot start {}", self.name))?;
        running.insert(child.id());
        Ok(Process { name: self.name.to_owned(), child, log: self.log.to_path_buf() })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let mut running = ending::running();
        // An error means that it has ended already; waiting takes it off the process table either way.
        drop(self.child.kill());
        running.remove(&self.id());
        drop(running);
        drop(self.child.wait());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A shell line with its output in a file of its own.
    fn shell(name: &str, line: &str) -> (PathBuf, Vec<OsString>) {
        let log = std::env::temp_dir().join(format!("xtask-{}-{name}.log", std::process::id()));
        (log, vec!["-c".into(), line.into()])
    }

    #[test]
    fn what_it_says_is_waited_for_and_its_end_is_told() {
        let sh = Path::new("/bin/sh");
        let (log, arguments) = shell("says", "echo out; echo err >&2; exec cat /dev/zero >/dev/null");
        let start = Start { name: "a shell", program: sh, arguments: &arguments, log: &log };
        let mut running = Process::start(&start).expect("a shell");
        let both = |said: &str| (said.contains("out") && said.contains("err")).then_some(());
        running.wait_for(both).expect("both lines");
        running.expect_running().expect("it goes on");
        running.signal("TERM").expect("it runs");
        let status = running.wait_for_exit(READY_MAX).expect("it ends");
        assert!(!status.success());
        let failure =
            running.wait_for(|said| said.contains("more").then_some(())).expect_err("no more comes");
        assert!(failure.to_string().starts_with("a shell ended: signal: 15"), "{failure}");
        drop(std::fs::remove_file(log));
    }

    /// What is started by the test below, in a process of its own: it starts one that the kernel does not kill with it.
    #[test]
    #[ignore = "it waits for the signal that another test sends"]
    fn it_waits_for_its_end() {
        let line = "exec setpriv --pdeathsig clear sh -c 'echo pid $$; exec sleep 600'";
        let (log, arguments) = shell("lasts", line);
        let start =
            Start { name: "a shell", program: Path::new("/bin/sh"), arguments: &arguments, log: &log };
        let mut running = Process::start(&start).expect("a shell");
        let id = running.wait_for(|said| said.contains("pid ").then(|| said.to_owned())).expect("it says so");
        drop(std::fs::remove_file(log));
        println!("{id}");
        running.wait_for_exit(Duration::from_secs(60));
        panic!("nobody has ended us");
    }

    #[test]
    fn a_signal_ends_what_the_kernel_does_not() {
        use std::io::{BufRead, BufReader};
        use std::os::unix::process::ExitStatusExt;
        for (name, number) in [("TERM", 15), ("INT", 2), ("HUP", 1)] {
            let mut own = Command::new(std::env::current_exe().expect("our own binary"));
            own.args(["--exact", "process::tests::it_waits_for_its_end", "--ignored", "--nocapture"]);
            let mut ours = own.stdout(Stdio::piped()).spawn().expect("our own binary");
            let mut lines = BufReader::new(ours.stdout.take().expect("a pipe")).lines();
            let id =
                lines.find_map(|line| line.expect("text").split_once("pid ").map(|(_, id)| id.to_owned()));
            let id = id.expect("it says which it is");
            succeed(Command::new("kill").args(["-s", name, &ours.id().to_string()])).expect("it runs");
            assert_eq!(ours.wait().expect("it ends").signal(), Some(number));
            let state = std::fs::read_to_string(format!("/proc/{id}/stat"));
            assert!(state.is_err(), "{name}: {state:?}");
        }
    }

    #[test]
    fn one_reads_what_the_other_writes() {
        let sh = Path::new("/bin/sh");
        let (writes, writing) = shell("writes", "echo to the reader; echo aside >&2");
        let (reads, reading) = shell("reads", "cat");
        let start = Start { name: "the writer", program: sh, arguments: &writing, log: &writes };
        let reader = Start { name: "the reader", program: sh, arguments: &reading, log: &reads };
        let (mut writer, mut reader) = Process::start_read_by(&start, &reader).expect("shells");
        assert!(writer.wait_for_exit(READY_MAX).is_some_and(|status| status.success()));
        assert!(reader.wait_for_exit(READY_MAX).is_some_and(|status| status.success()));
        assert_eq!((writer.said().as_str(), reader.said().as_str()), ("aside\n", "to the reader\n"));
        drop((std::fs::remove_file(writes), std::fs::remove_file(reads)));
    }
}

//! A running switch.

use std::io::{ErrorKind, Result};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::{ADMIN_TOKEN, Client, Lines, Setup, TlsClient, binary, until};

/// A running `pointsman run`. It is killed when it is dropped.
pub struct Switch {
    folder: TempDir,
    child: Child,
    /// Processes that took its place, one after the other.
    successors: Vec<u32>,
    stdout: Lines,
    stderr: Lines,
}

impl Switch {
    /// Writes `setup` into a new folder, starts the switch there and waits until it is ready.
    ///
    /// # Panics
    /// When it does not become ready; prints what it said.
    #[must_use]
    pub fn start(setup: &Setup) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        setup.write(folder.path());
        Self::run_after(folder, setup.program_or_built(), setup.shell_line(), setup.input())
    }

    /// Starts the switch in a folder that holds a `pointsman.toml`, and waits until it is ready.
    ///
    /// # Panics
    /// When it does not become ready; prints what it said.
    #[must_use]
    pub fn run(folder: TempDir) -> Self {
        Self::run_after(folder, binary::program(), None, Stdio::null())
    }

    /// The same, in a shell that has run a line before it becomes the switch.
    fn run_after(folder: TempDir, program: &Path, line: Option<&str>, input: Stdio) -> Self {
        let mut command = match line {
            None => Command::new(program),
            Some(line) => {
                let mut shell = Command::new("sh");
                shell.args(["-c", &format!("{line} && exec \"$0\" \"$@\"")]).arg(program);
                shell
            }
        };
        // From another folder, so that every path must be taken relative to the configuration.
        command.arg("run").arg("--config").arg(folder.path().join("pointsman.toml")).current_dir("/");
        command.stdin(input).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary starts");
        let stdout = Lines::of(child.stdout.take().expect("piped"));
        let stderr = Lines::of(child.stderr.take().expect("piped"));
        let switch = Self { folder, child, successors: Vec::new(), stdout, stderr };
        switch.wait_for_line("ready threads=");
        switch
    }

    /// Where the listener `name` listens.
    ///
    /// # Panics
    /// When it does not.
    #[must_use]
    pub fn address(&self, name: &str) -> SocketAddr {
        let start = format!("listening name={name} address=");
        self.address_after(&start)
    }

    /// Where the admin listener listens.
    #[must_use]
    pub fn admin(&self) -> SocketAddr {
        self.address_after("admin address=")
    }

    /// A new plain connection to the listener `shop`.
    #[must_use]
    pub fn client(&self) -> Client {
        Client::plain(self.address("shop"))
    }

    /// A new TLS connection to the listener `shop`.
    ///
    /// # Errors
    /// When the handshake fails.
    pub fn tls_client(&self, config: &TlsClient, name: &str) -> Result<Client> {
        Client::tls(self.address("shop"), config, name)
    }

    /// One request on a connection of its own.
    #[must_use]
    pub fn get(&self, target: &str) -> crate::Response {
        self.client().get(target)
    }

    /// The number of its process.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.successors.last().copied().unwrap_or_else(|| self.child.id())
    }

    /// Another process has taken its place.
    pub(crate) fn follow(&mut self, successor: u32) {
        self.successors.push(successor);
    }

    /// Its folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Waits for a line on standard error that begins so, and returns it.
    pub fn wait_for_line(&self, start: &str) -> String {
        self.stderr.wait_for(&format!("`{start}`"), |line| line.starts_with(start).then(|| line.to_owned()))
    }

    /// Its standard output, where the access log goes.
    #[must_use]
    pub fn output(&self) -> &Lines {
        &self.stdout
    }

    /// Its standard error.
    #[must_use]
    pub fn errors(&self) -> &Lines {
        &self.stderr
    }

    /// Everything it said on standard error.
    #[must_use]
    pub fn said(&self) -> String {
        self.stderr.text()
    }

    /// Writes other files, asks for a reload and waits until generation `generation` runs.
    pub fn reload(&self, setup: &Setup, generation: u32) {
        // A process that was replaced may have said the same.
        let said = self.stderr.all().len();
        setup.write(self.folder());
        self.signal("HUP");
        let start = format!("reloaded generation={generation}");
        self.stderr.wait_after(said, &format!("`{start}`"), |line| line.starts_with(&start).then_some(()));
    }

    /// Sends a signal to the process: `HUP`, `TERM`.
    ///
    /// # Panics
    /// When it is gone.
    pub fn signal(&self, name: &str) {
        self.signal_at(name, self.id());
    }

    /// The same at one of its threads, which is the first that the kernel then thinks of.
    ///
    /// # Panics
    /// When it is gone.
    pub fn signal_at(&self, name: &str, thread: u32) {
        kill(name, thread).expect("it is there");
    }

    /// Waits for the end of the process and returns its exit status.
    ///
    /// # Panics
    /// When it goes on.
    pub fn wait_for_exit(&mut self) -> Option<i32> {
        assert!(self.stderr.wait_for_end(), "it goes on:\n{}", self.said());
        self.child.wait().expect("it is ours").code()
    }

    /// The same for one whose standard error is held.
    ///
    /// # Panics
    /// When it goes on.
    pub fn wait_for_exit_unheard(&mut self) -> Option<i32> {
        until("the end of the process", || self.child.try_wait().expect("it is ours")).code()
    }

    /// The first access-log entry of which this holds.
    pub fn log_entry(&self, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        self.log_entry_after(0, what, holds)
    }

    /// The same behind the first `skip` entries: an address may come back.
    pub fn log_entry_after(&self, skip: usize, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        self.stdout.wait_after(skip, what, |line| {
            let entry: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
            holds(&entry).then_some(entry)
        })
    }

    /// The access-log entry of the request with this path.
    #[must_use]
    pub fn log_of(&self, path: &str) -> Value {
        self.log_entry(&format!("an entry of {path}"), |entry| entry["path"] == path)
    }

    /// Waits for as many access-log entries; there are no more.
    ///
    /// # Panics
    /// When there are more, or fewer come.
    pub fn expect_log_lines(&self, count: usize) {
        until("access-log entries", || (self.log_lines() >= count).then_some(()));
        assert_eq!(self.log_lines(), count, "{}", self.stdout.text());
    }

    /// How many access-log entries there are by now.
    #[must_use]
    pub fn log_lines(&self) -> usize {
        self.stdout.all().len()
    }

    /// One request to the admin listener, by its own address: it looks at the Host.
    #[must_use]
    pub fn admin_get(&self, path: &str) -> crate::Response {
        let mut client = Client::plain(self.admin());
        client.send(format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", self.admin()));
        let answer = client.response();
        assert_eq!(answer.head.check_date(), Ok(()), "{:?}", answer.head);
        answer
    }

    /// A request to the admin listener with the token of [`Setup::with_token`] and these header lines, each with its
    /// line end; its answer, and what it says in JSON.
    ///
    /// # Panics
    /// When the answer is no JSON.
    #[must_use]
    pub fn admin_ask(&self, method: &str, target: &str, lines: &str, body: &str) -> (crate::Response, Value) {
        let mut client = Client::plain(self.admin());
        let length = body.len();
        client.send(format!(
            "{method} {target} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {ADMIN_TOKEN}\r\n{lines}\
             Content-Length: {length}\r\n\r\n{body}"
        ));
        let answer = client.response();
        let said = serde_json::from_str(&answer.text()).unwrap_or_else(|error| panic!("{error}: {answer:?}"));
        (answer, said)
    }

    /// What the admin API shows at a target.
    ///
    /// # Panics
    /// When it shows nothing there, or no JSON.
    #[must_use]
    pub fn admin_shows(&self, target: &str) -> Value {
        let (answer, said) = self.admin_ask("GET", target, "", "");
        assert_eq!(answer.status(), 200, "{said}");
        said
    }

    /// What `/metrics` says.
    #[must_use]
    pub fn metrics(&self) -> String {
        let answer = self.admin_get("/metrics");
        assert_eq!(answer.status(), 200);
        answer.text()
    }

    /// The sum of all samples of the metric `name` that have all these labels.
    #[must_use]
    pub fn metric(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let text = self.metrics();
        let of_name = text.lines().filter(|line| {
            let rest = line.strip_prefix(name).unwrap_or_default();
            rest.starts_with(['{', ' '])
                && labels.iter().all(|(label, value)| rest.contains(&format!("{label}=\"{value}\"")))
        });
        of_name.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
    }

    fn address_after(&self, start: &str) -> SocketAddr {
        let line = self.wait_for_line(start);
        let rest = &line[start.len()..];
        let word = rest.split(' ').next().unwrap_or(rest);
        word.parse().unwrap_or_else(|error| panic!("{error} in `{line}`"))
    }
}

/// Sends a signal to a process, or to the process of a thread: `HUP`, `TERM`.
///
/// # Errors
/// When it is gone.
pub fn kill(name: &str, id: u32) -> Result<()> {
    let signal = match name {
        "HUP" => Signal::HUP,
        "INT" => Signal::INT,
        "TERM" => Signal::TERM,
        "KILL" => Signal::KILL,
        "STOP" => Signal::STOP,
        "CONT" => Signal::CONT,
        "USR1" => Signal::USR1,
        "USR2" => Signal::USR2,
        "XCPU" => Signal::XCPU,
        _ => return Err(ErrorKind::InvalidInput.into()),
    };
    let id = id.try_into().ok().and_then(Pid::from_raw).ok_or(ErrorKind::InvalidInput)?;
    Ok(kill_process(id, signal)?)
}

impl Drop for Switch {
    fn drop(&mut self) {
        // It may have ended by itself, which the test has then looked at.
        drop(self.child.kill());
        drop(self.child.wait());
        for successor in &self.successors {
            drop(kill("KILL", *successor));
        }
        if std::thread::panicking() {
            let said = self.said();
            eprint_block(&said);
        }
    }
}

#[expect(clippy::print_stderr, reason = "a failed test shows what the switch said; the harness captures it")]
fn eprint_block(said: &str) {
    eprintln!("--- the switch said:\n{said}\n---");
}

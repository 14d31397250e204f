//! Clients and servers of others, as scripts in `peers/`.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::{Lines, skipped, until};

/// How long a client may take for all of its cases, each of which has a limit of its own.
const RUN_MAX: Duration = Duration::from_secs(120);

/// A server of others, running. It is killed when it is dropped.
pub struct Peer {
    child: Child,
    stdout: Lines,
    stderr: Lines,
    address: SocketAddr,
}

impl Peer {
    /// Starts a script that is a server, and waits for the port that it prints.
    ///
    /// # Panics
    /// When it prints none.
    #[must_use]
    pub fn serving(script: &str) -> Self {
        let mut command = command(script);
        let (child, stdout, stderr) = spawn(&mut command);
        let mut peer = Self { child, stdout, stderr, address: SocketAddr::from(([127, 0, 0, 1], 0)) };
        let port = until(&format!("the port of {script}"), || {
            let ended = peer.child.try_wait().expect("it is ours").is_some();
            assert!(!ended, "{script} ended:\n{}", peer.stderr.text());
            peer.stdout.all().iter().find_map(|line| line.strip_prefix("port ")?.parse().ok())
        });
        peer.address.set_port(port);
        peer
    }

    /// Where it serves.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What it complained about.
    #[must_use]
    pub fn said(&self) -> String {
        self.stderr.text()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Runs a script that is a client of `address`, under TLS where it is told whom to trust. How many cases it tried.
///
/// # Errors
/// What it said, when a case failed or it does not end.
///
/// # Panics
/// When it leaves processes of its own behind.
pub fn run_peer(script: &str, address: SocketAddr, authority: Option<&Path>) -> Result<usize, String> {
    let mut command = command(script);
    command.arg(address.to_string()).args(authority);
    let said = finished(&mut command, script)?;
    Ok(said.iter().filter(|line| line.starts_with("ok ")).count())
}

/// Lets schemathesis hold an API to its own description. `document` is where that is; `config` its settings; it works in
/// `folder`. What it said, in lines.
///
/// # Errors
/// The same, when something was not as described or it does not end.
///
/// # Panics
/// When it leaves processes of its own behind.
pub fn run_schemathesis(
    document: &str,
    authorization: &str,
    config: &str,
    folder: &Path,
) -> Result<Vec<String>, String> {
    let settings = folder.join("schemathesis.toml");
    std::fs::write(&settings, config).map_err(|error| error.to_string())?;
    let mut command = Command::new(python().with_file_name("schemathesis"));
    command.arg("--no-color").arg("--config-file").arg(&settings).args(["run", document]);
    command.args(["--header", &format!("Authorization: {authorization}")]);
    // The same cases each time.
    command.args(["--generation-deterministic", "--max-examples", "20"]);
    command.current_dir(folder).env("HOME", folder);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    finished(&mut command, "schemathesis")
}

/// What a command says that ends well in time.
fn finished(command: &mut Command, name: &str) -> Result<Vec<String>, String> {
    let (mut child, stdout, stderr) = spawn(command);
    let end = Instant::now() + RUN_MAX;
    let status = loop {
        if let Some(status) = child.try_wait().expect("it is ours") {
            break status;
        }
        if Instant::now() > end {
            child.kill().expect("it is ours");
            return Err(format!("{name} does not end:\n{}\n{}", stdout.text(), stderr.text()));
        }
        std::thread::yield_now();
    };
    assert!(stdout.wait_for_end() && stderr.wait_for_end(), "{name} left somebody behind");
    if status.success() { Ok(stdout.all()) } else { Err(format!("{}\n{}", stdout.text(), stderr.text())) }
}

/// Whether what the scripts stand on is installed; says so when it is not.
///
/// # Panics
/// In CI, where everything is to be there.
#[must_use]
pub fn peers_installed() -> bool {
    let found = folder().join("node/node_modules/ws").is_dir()
        && python().is_file()
        && python().with_file_name("schemathesis").is_file();
    if !found {
        assert!(std::env::var_os("CI").is_none(), "the peers are not installed, and CI skips nothing");
        skipped("the peers are not installed, which `cargo xtask check` does");
    }
    found
}

/// The script by which axe-core judges whether everybody can use a page; nothing where it is not installed.
///
/// # Panics
/// In CI, where everything is to be there.
#[must_use]
pub fn axe_script() -> Option<String> {
    let found = std::fs::read_to_string(folder().join("node/node_modules/axe-core/axe.min.js")).ok();
    if found.is_none() {
        assert!(std::env::var_os("CI").is_none(), "axe-core is not installed, and CI skips nothing");
        skipped("axe-core is not installed, which `cargo xtask check` does");
    }
    found
}

/// A line of shell that begins the switch in a sandbox without netlink sockets, for [`Setup::after`](crate::Setup::after).
#[must_use]
pub fn without_netlink() -> String {
    let script = script("without_netlink.py");
    format!("exec '{}' '{}' \"$0\" \"$@\"", python().display(), script.display())
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("peers").join(name)
}

fn command(script_name: &str) -> Command {
    let is_node = script_name.ends_with(".js");
    let mut command = if is_node { Command::new("node") } else { Command::new(python()) };
    command.arg(script(script_name));
    command.env("NODE_PATH", folder().join("node/node_modules"));
    // Nothing of a run stays in the sources.
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn spawn(command: &mut Command) -> (Child, Lines, Lines) {
    let mut child = command.spawn().unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
    let stdout = Lines::of(child.stdout.take().expect("piped"));
    let stderr = Lines::of(child.stderr.take().expect("piped"));
    (child, stdout, stderr)
}

fn python() -> PathBuf {
    folder().join("python/bin/python")
}

/// Where `cargo xtask check` installs what the scripts stand on: beside this test's profile.
fn folder() -> PathBuf {
    let exe = std::env::current_exe().expect("a test has a path");
    // target/<profile>/deps/e2e-<hash>
    exe.ancestors().nth(3).expect("tests stand in a target folder").join("peers")
}

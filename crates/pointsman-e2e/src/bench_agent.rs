//! `pointsman bench agent`: a machine of its own that makes load, on this one.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::{Lines, program};

/// A running one. It is killed when it is dropped.
pub struct BenchAgent {
    child: Child,
    address: SocketAddr,
    said: Lines,
}

impl Drop for BenchAgent {
    fn drop(&mut self) {
        self.kill();
    }
}

impl BenchAgent {
    /// Starts it on the loopback, in a folder with its files: `agent-127.0.0.1.crt`, its key, and `ca.crt`.
    ///
    /// # Panics
    /// When it does not start.
    #[must_use]
    pub fn start(folder: &Path, words: &[&str]) -> Self {
        let mut command = Command::new(program());
        command.args(["bench", "agent", "--listen", "127.0.0.1:0", "--ca", "ca.crt"]);
        command.args(["--cert", "agent-127.0.0.1.crt", "--key", "agent-127.0.0.1.key"]).args(words);
        command.current_dir(folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary starts");
        let said = Lines::of(child.stderr.take().expect("piped"));
        let address = |line: &str| line.strip_prefix("listening on ")?.parse().ok();
        let address = said.wait_for("its address", address);
        Self { child, address, said }
    }

    /// Where it waits for controllers.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What it says, a line for each controller that comes, and for each load.
    #[must_use]
    pub fn said(&self) -> &Lines {
        &self.said
    }

    /// Its number in the system.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Ends it without a word.
    pub fn kill(&mut self) {
        // It may have ended by itself.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

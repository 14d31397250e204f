//! `pointsman bench null`: a server of known behaviour for whoever measures one.

use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use crate::{Lines, program};

/// A running one. It is killed when it is dropped.
pub struct NullServer {
    child: Child,
    address: SocketAddr,
}

impl Drop for NullServer {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl NullServer {
    /// Starts it on the loopback with these options of its command.
    ///
    /// # Panics
    /// When it does not start.
    #[must_use]
    pub fn start(words: &[&str]) -> Self {
        let mut command = Command::new(program());
        command.args(["bench", "null", "--listen", "127.0.0.1:0"]).args(words);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary starts");
        let said = Lines::of(child.stderr.take().expect("piped"));
        let address = |line: &str| line.strip_prefix("listening on ")?.parse().ok();
        let address = said.wait_for("its address", address);
        Self { child, address }
    }

    /// Where it answers.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// All of it, by `http` or `https`.
    #[must_use]
    pub fn url(&self, scheme: &str) -> String {
        format!("{scheme}://{}/", self.address)
    }
}

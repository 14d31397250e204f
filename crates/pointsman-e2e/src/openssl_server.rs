//! `openssl s_server`: a server of TLS that nobody here wrote.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::Pair;

/// A running one, which serves the file `/name` with its name in it. It is killed when it is dropped.
pub struct OpensslServer {
    child: Child,
    address: SocketAddr,
    _folder: TempDir,
}

impl Drop for OpensslServer {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl OpensslServer {
    /// Starts it with these options of s_server(1ssl).
    ///
    /// # Panics
    /// When it does not start.
    #[must_use]
    pub fn start(name: &str, pair: &Pair, options: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for (file, text) in
            [("name", &*format!("Name: {name}\n")), ("cert.pem", &pair.certificate), ("key.pem", &pair.key)]
        {
            std::fs::write(folder.path().join(file), text).expect("a writable folder");
        }
        let mut command = Command::new("openssl");
        command.args(["s_server", "-accept", "127.0.0.1:0", "-cert", "cert.pem", "-key", "key.pem", "-WWW"]);
        command.args(options).current_dir(folder.path()).stdin(Stdio::null()).stderr(Stdio::null());
        let mut child = command.stdout(Stdio::piped()).spawn().expect("it is installed");
        let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let mut addresses =
            lines.map_while(Result::ok).filter_map(|line| line.strip_prefix("ACCEPT ")?.parse().ok());
        let address = addresses.next().expect("it says where it accepts");
        Self { child, address, _folder: folder }
    }

    /// Where it accepts.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

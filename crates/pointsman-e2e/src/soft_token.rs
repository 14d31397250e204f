//! SoftHSM2: a token of PKCS#11 in software, that nobody here wrote.

use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::binary::{installed, installed_file};

/// Debian's `softhsm2` brings it.
const MODULE: &str = "/usr/lib/softhsm/libsofthsm2.so";
const PIN: &str = "1234";

/// A token called `bench` in a folder of its own.
pub struct SoftToken {
    folder: TempDir,
}

impl SoftToken {
    /// Makes it. A process finds it by `SOFTHSM2_CONF` ([`SoftToken::configuration`]). Nothing where the software is not installed, which is said.
    ///
    /// # Panics
    /// When it is installed and makes no token; in CI, where everything is to be there, when it is not.
    #[must_use]
    pub fn made() -> Option<Self> {
        if !(installed("softhsm2-util") && installed_file(MODULE)) {
            return None;
        }
        let folder = tempfile::tempdir().expect("a temporary folder");
        let tokens = folder.path().join("tokens");
        std::fs::create_dir(&tokens).expect("a writable folder");
        let text = format!("directories.tokendir = {}\nobjectstore.backend = file\n", tokens.display());
        std::fs::write(folder.path().join("softhsm2.conf"), text).expect("a writable folder");
        let token = Self { folder };
        let mut command = Command::new("softhsm2-util");
        command.args(["--init-token", "--free", "--label", "bench", "--pin", PIN, "--so-pin", "5678"]);
        let made = command.env("SOFTHSM2_CONF", token.configuration()).output().expect("it is installed");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        Some(token)
    }

    /// What `SOFTHSM2_CONF` says in a process that uses it.
    #[must_use]
    pub fn configuration(&self) -> std::path::PathBuf {
        self.folder.path().join("softhsm2.conf")
    }

    /// The module.
    #[must_use]
    pub fn module() -> &'static Path {
        Path::new(MODULE)
    }

    /// What a user logs in with.
    #[must_use]
    pub fn pin() -> &'static str {
        PIN
    }
}

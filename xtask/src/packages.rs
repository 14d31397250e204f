//! Programs that a command needs beyond cargo, and the Debian packages they come from.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::Command;

use crate::failure::{Failure, Result};
use crate::project::succeed;

/// A program and the Debian package that brings it.
#[derive(Clone, Copy)]
pub(crate) struct Tool {
    pub(crate) program: &'static str,
    pub(crate) package: &'static str,
}

/// Installs what is missing; without the rights to do so, says what that is.
pub(crate) fn ensure(tools: &[Tool]) -> Result<()> {
    let missing = missing(tools, |program| locate(program).is_some());
    if missing.is_empty() {
        return Ok(());
    }
    let packages = missing.iter().map(|tool| tool.package).collect::<Vec<_>>().join(" ");
    if !is_root() || locate("apt-get").is_none() {
        let programs = missing.iter().map(|tool| tool.program).collect::<Vec<_>>().join(", ");
        return Err(Failure::new(format!(
            "missing: {programs}\nhelp: on Debian, as root: apt-get install {packages}"
        )));
    }
    println!("== installing {packages}");
    succeed(&mut apt(&["update", "--quiet"]))?;
    let words = ["install", "--quiet", "--yes", "--no-install-recommends"];
    succeed(apt(&words).args(missing.iter().map(|tool| tool.package)))
}

/// Where a program stands. Servers are in `sbin`, which is not on everybody's path.
pub(crate) fn locate(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let sbin = ["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from);
    std::env::split_paths(&path).chain(sbin).map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// The same, for a program that has to be there.
pub(crate) fn located(program: &str) -> Result<PathBuf> {
    locate(program).ok_or_else(|| Failure::new(format!("missing: {program}")))
}

fn missing(tools: &[Tool], is_there: impl Fn(&str) -> bool) -> Vec<Tool> {
    tools.iter().copied().filter(|tool| !is_there(tool.program)).collect()
}

/// `apt-get`, asking nothing and ending even when a mirror does not answer.
fn apt(words: &[&str]) -> Command {
    let mut command = Command::new("timeout");
    command.args(["--foreground", "600", "apt-get"]).args(words).env("DEBIAN_FRONTEND", "noninteractive");
    command
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_not_there_is_missing() {
        let tools =
            [Tool { program: "curl", package: "curl" }, Tool { program: "openssl", package: "openssl" }];
        let missing: Vec<_> =
            missing(&tools, |program| program == "curl").iter().map(|t| t.package).collect();
        assert_eq!(missing, ["openssl"]);
    }
}

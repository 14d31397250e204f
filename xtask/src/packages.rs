//! Programs that a command needs beyond cargo, and the Debian packages they come from.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::{Failure, Result};
use crate::project::succeed;

/// What Debian's maintainer scripts ask before they start a service.
const SERVICE_POLICY: &str = "/usr/sbin/policy-rc.d";

/// Runs a command while the policy, its first argument, forbids to start services. A policy that is there
/// is the machine's own, and stays; ours goes again however the command ends.
const WITHOUT_SERVICES: &str = r#"
policy=$1; shift
if ! [ -e "$policy" ]; then
    trap 'rm -f "$policy"' EXIT
    trap 'exit 130' HUP INT TERM
    printf '#!/bin/sh\nexit 101\n' > "$policy" && chmod 755 "$policy" || exit 1
fi
"$@"
"#;

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
    let mut install = apt(&["install", "--quiet", "--yes", "--no-install-recommends"]);
    install.args(missing.iter().map(|tool| tool.package));
    succeed(&mut without_services(Path::new(SERVICE_POLICY), &install))
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

/// The same command, under a policy by which no package starts a service: a web server is installed here
/// to be started by a test on a port of its own.
fn without_services(policy: &Path, command: &Command) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", WITHOUT_SERVICES, "sh"]).arg(policy).arg(command.get_program());
    shell.args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    shell
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// While the command runs services are forbidden (101, as Debian defines it), and then nothing is left.
    #[test]
    fn no_service_starts_and_no_policy_stays() {
        let policy = std::env::temp_dir().join(format!("policy-rc.d.{}", std::process::id()));
        for (ends_with, is_fine) in [("exit 0", true), ("exit 3", false)] {
            let mut command = Command::new("sh");
            let script = format!("\"$POLICY\"; test $? = 101 || exit 0; {ends_with}");
            command.args(["-c", &script]).env("POLICY", &policy);
            let status = without_services(&policy, &command).status().expect("a shell");
            assert_eq!(status.success(), is_fine, "{ends_with}");
            assert!(!policy.exists());
        }
        std::fs::write(&policy, "the machine's own").expect("a temporary folder");
        assert!(without_services(&policy, &Command::new("true")).status().expect("a shell").success());
        assert_eq!(std::fs::read_to_string(&policy).expect("still there"), "the machine's own");
        std::fs::remove_file(&policy).expect("still there");
    }

    #[test]
    fn only_what_is_not_there_is_missing() {
        let tools =
            [Tool { program: "curl", package: "curl" }, Tool { program: "openssl", package: "openssl" }];
        let missing: Vec<_> =
            missing(&tools, |program| program == "curl").iter().map(|t| t.package).collect();
        assert_eq!(missing, ["openssl"]);
    }
}

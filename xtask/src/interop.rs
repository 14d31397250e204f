//! What the clients and servers of others in `crates/pointsman-e2e/peers` stand on, installed into the target folder.

use std::path::Path;
use std::process::Command;

use crate::failure::{Because, Result};
use crate::packages::{self, Tool};
use crate::project::{Project, succeed};

const TOOLS: &[Tool] = &[
    Tool { program: "python3", package: "python3" },
    Tool { program: "node", package: "nodejs" },
    Tool { program: "npm", package: "npm" },
    Tool { program: "h2load", package: "nghttp2-client" },
    Tool { program: "timeout", package: "coreutils" },
];
/// How long a registry may take.
const SECONDS_MAX: &str = "600";

/// Installs what is missing, or another version than is wanted.
pub(crate) fn ensure(project: &Project) -> Result<()> {
    packages::ensure(TOOLS)?;
    let sources = project.root().join("crates/pointsman-e2e/peers");
    let folder = project.target().join("peers");
    python(&sources.join("requirements.txt"), &folder.join("python"))?;
    node(&sources, &folder.join("node"))
}

/// What a `requirements.txt` names, into an environment of its own.
pub(crate) fn python(wanted: &Path, folder: &Path) -> Result<()> {
    let is_made = |file: &str| folder.join(file).is_file();
    if !is_made("bin/pip") {
        // Debian keeps it apart from python3, which cannot be seen by a program's name.
        let has_venv = Command::new("python3").args(["-c", "import ensurepip, venv"]).output();
        if !has_venv.is_ok_and(|output| output.status.success()) {
            packages::ensure(&[Tool { program: "(python3 -m venv)", package: "python3-venv" }])?;
        }
        succeed(Command::new("python3").args(["-m", "venv"]).arg(folder))?;
    }
    if is_current(wanted, &folder.join("installed.txt")) {
        return Ok(());
    }
    let mut pip = Command::new("timeout");
    pip.args(["--foreground", SECONDS_MAX]).arg(folder.join("bin/pip"));
    pip.args(["install", "--quiet", "--disable-pip-version-check", "--only-binary", ":all:"]);
    succeed(pip.arg("--requirement").arg(wanted))?;
    copy(wanted, &folder.join("installed.txt"))
}

/// What a `package-lock.json` names, into a folder of its own.
pub(crate) fn node(sources: &Path, folder: &Path) -> Result<()> {
    let (wanted, installed) = (sources.join("package-lock.json"), folder.join("installed.json"));
    if is_current(&wanted, &installed) {
        return Ok(());
    }
    std::fs::create_dir_all(folder).because(|| format!("cannot make `{}`", folder.display()))?;
    for file in ["package.json", "package-lock.json"] {
        copy(&sources.join(file), &folder.join(file))?;
    }
    let mut npm = Command::new("timeout");
    npm.args(["--foreground", SECONDS_MAX, "npm", "ci", "--silent", "--no-audit", "--no-fund"]);
    succeed(npm.arg("--ignore-scripts").current_dir(folder))?;
    copy(&wanted, &installed)
}

/// Whether what was installed is what is wanted: a copy of the list stands beside it.
fn is_current(wanted: &Path, installed: &Path) -> bool {
    let read = |path: &Path| std::fs::read(path).ok();
    read(wanted).is_some() && read(wanted) == read(installed)
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    std::fs::copy(from, to).map(drop).because(|| format!("cannot write `{}`", to.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_version_is_not_current() {
        let file = |name: &str| std::env::temp_dir().join(format!("peers-{}-{name}", std::process::id()));
        let (wanted, installed) = (file("wanted"), file("installed"));
        assert!(!is_current(&wanted, &installed));
        std::fs::write(&wanted, "ws 2").expect("a temporary folder");
        assert!(!is_current(&wanted, &installed));
        copy(&wanted, &installed).expect("a temporary folder");
        assert!(is_current(&wanted, &installed));
        std::fs::write(&wanted, "ws 3").expect("a temporary folder");
        assert!(!is_current(&wanted, &installed));
        drop((std::fs::remove_file(wanted), std::fs::remove_file(installed)));
    }
}

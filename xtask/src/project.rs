//! Where the workspace stands and how its cargo is called.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::{Because, Failure, Result};

/// The workspace this command was built from.
pub(crate) struct Project {
    root: PathBuf,
    target: PathBuf,
}

impl Project {
    pub(crate) fn find() -> Result<Self> {
        // Cargo names the folder at run time; the built-in one serves a binary that is started by hand.
        let manifest = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or(env!("CARGO_MANIFEST_DIR").into());
        let root = PathBuf::from(manifest).parent().map(Path::to_path_buf);
        let root = root.ok_or_else(|| Failure::new("xtask does not stand inside a workspace"))?;
        // target/debug/xtask: wherever the target folder was put, this binary stands in it.
        let own = std::env::current_exe().because(|| "cannot find my own binary".into())?;
        let target = own.ancestors().nth(2).map_or_else(|| root.join("target"), Path::to_path_buf);
        Ok(Self { root, target })
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn target(&self) -> &Path {
        &self.target
    }

    /// The cargo that runs us, in the workspace's folder.
    pub(crate) fn cargo(&self) -> Command {
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
        cargo.current_dir(&self.root);
        cargo
    }

    pub(crate) fn build_release(&self, package: &str) -> Result<()> {
        succeed(self.cargo().args(["build", "--release", "--package", package]))
    }

    pub(crate) fn release_binary(&self, name: &str) -> Result<PathBuf> {
        let binary = self.target.join("release").join(name);
        if binary.is_file() {
            Ok(binary)
        } else {
            Err(Failure::new(format!("`{}` is not there", binary.display())))
        }
    }
}

/// Runs a command to its end; anything but success is a failure.
pub(crate) fn succeed(command: &mut Command) -> Result<()> {
    let status = command.status().because(|| format!("cannot run `{}`", shown(command)))?;
    if status.success() { Ok(()) } else { Err(Failure::new(format!("`{}`: {status}", shown(command)))) }
}

/// Runs a command to its end and gives what it wrote on standard output and standard error.
pub(crate) fn written(command: &mut Command) -> Result<String> {
    written_with(command, &[0])
}

/// The same, where other statuses are answers, too.
pub(crate) fn written_with(command: &mut Command, statuses: &[i32]) -> Result<String> {
    let output = command.output().because(|| format!("cannot run `{}`", shown(command)))?;
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    if output.status.code().is_some_and(|code| statuses.contains(&code)) {
        Ok(text)
    } else {
        Err(Failure::new(format!("`{}`: {}\n{}", shown(command), output.status, text.trim_end())))
    }
}

pub(crate) fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

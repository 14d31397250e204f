//! `cargo xtask package`: what is installed elsewhere, made of the release binary.

use std::process::Command;

use lexopt::Arg;

use crate::failure::{Because, Failure, Result};
use crate::packages::{self, Tool};
use crate::project::{Project, succeed};

/// What the package of Debian is made with.
const TOOLS: &[Tool] = &[
    Tool { program: "dpkg-shlibdeps", package: "dpkg-dev" },
    Tool { program: "strip", package: "binutils" },
];

/// Builds the switch and packs it; says where the package is.
pub(crate) fn run(project: &Project, mut arguments: lexopt::Parser) -> Result<()> {
    let (mut kind, mut builds) = (None, true);
    while let Some(argument) = arguments.next()? {
        match argument {
            Arg::Value(value) if kind.is_none() => kind = Some(value),
            Arg::Long("no-build") => builds = false,
            other => return Err(other.unexpected().into()),
        }
    }
    match kind.as_deref().and_then(|kind| kind.to_str()) {
        Some("deb") => {}
        Some(other) => return Err(Failure::usage(format!("no such package: `{other}`; there is `deb`"))),
        None => return Err(Failure::usage("which package? there is `deb`".to_owned())),
    }
    packages::ensure(TOOLS)?;
    if builds {
        project.build_release("pointsman")?;
    }
    let binary = project.release_binary("pointsman")?;
    let folder = project.target().join("package");
    std::fs::create_dir_all(&folder).because(|| format!("cannot make `{}`", folder.display()))?;
    succeed(Command::new(project.root().join("packaging/debian/build")).arg(binary).arg(folder))
}

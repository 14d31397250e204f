//! `cargo xtask console`: builds the console with Node, and keeps what it built where the switch takes it from.
//!
//! The switch itself is built without Node: what stands in `dist` is committed, and `check` builds it again.

use std::fs;
use std::path::Path;
use std::process::Command;

use lexopt::Arg;

use crate::failure::{Because, Failure, Result};
use crate::interop;
use crate::packages::{self, Tool};
use crate::project::{Project, succeed, written};

const TOOLS: &[Tool] =
    &[Tool { program: "node", package: "nodejs" }, Tool { program: "npm", package: "npm" }];
const SOURCES: &str = "crates/pointsman-admin/console";
/// What is built from them.
const BUILT: &str = "dist";
/// What npm keeps in the folder that is built in.
const KEPT: &[&str] = &["node_modules", "package.json", "package-lock.json", "installed.json"];

/// The first Node that Vite runs on.
const NODE_MIN: (u32, u32) = (20, 19);

/// What is done with what was built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    /// It is kept.
    Keep,
    /// It must be what is kept.
    Compare,
}

impl Then {
    pub(crate) fn read(mut arguments: lexopt::Parser) -> Result<Then> {
        let then = match arguments.next()? {
            None => return Ok(Then::Keep),
            Some(Arg::Long("check")) => Then::Compare,
            Some(other) => return Err(other.unexpected().into()),
        };
        arguments.next()?.map_or(Ok(then), |more| Err(more.unexpected().into()))
    }
}

/// What `check` asks. Debian 12 has a Node that is too old: there it is skipped, except where `CI` is set.
pub(crate) fn check(project: &Project) -> Result<()> {
    packages::ensure(TOOLS)?;
    match check_node() {
        Err(failure) if std::env::var_os("CI").is_none() => {
            println!("skipped: the console is not built again: {failure}");
            Ok(())
        }
        outcome => outcome.and_then(|()| run(project, Then::Compare)),
    }
}

fn check_node() -> Result<()> {
    let version = written(Command::new("node").arg("--version"))?;
    if is_new_enough(version.trim()) {
        return Ok(());
    }
    let (major, minor) = NODE_MIN;
    Err(Failure::new(format!("Node {} is too old\nhelp: install {major}.{minor} or later", version.trim())))
}

/// Of what Node says of itself, `v20.19.2`.
fn is_new_enough(version: &str) -> bool {
    let mut numbers = version.trim_start_matches('v').split('.').map(str::parse::<u32>);
    let (major, minor) = (numbers.next(), numbers.next());
    matches!((major, minor), (Some(Ok(major)), Some(Ok(minor))) if (major, minor) >= NODE_MIN)
}

pub(crate) fn run(project: &Project, then: Then) -> Result<()> {
    packages::ensure(TOOLS)?;
    check_node()?;
    let (sources, folder) = (project.root().join(SOURCES), project.target().join("console"));
    interop::node(&sources, &folder)?;
    // What was built before is not of these sources.
    for name in names(&folder)?.iter().filter(|name| !KEPT.contains(&name.as_str())) {
        remove(&folder.join(name))?;
    }
    for name in names(&sources)?.iter().filter(|name| !KEPT.contains(&name.as_str()) && *name != BUILT) {
        copy_all(&sources.join(name), &folder.join(name))?;
    }
    succeed(Command::new("npm").args(["run", "--silent", "build"]).current_dir(&folder))?;
    let (built, kept) = (folder.join(BUILT), sources.join(BUILT));
    match then {
        Then::Keep => {
            if kept.exists() {
                remove(&kept)?;
            }
            copy_all(&built, &kept)
        }
        Then::Compare => {
            let mut differing = differing(&built, &kept, "")?;
            differing.retain(|name| !is_compressed(name));
            if !differing.is_empty() {
                return Err(Failure::new(format!(
                    "`{SOURCES}/{BUILT}` is not what its sources build: {}\nhelp: cargo xtask console",
                    differing.join(", ")
                )));
            }
            // Compressors of other versions write other bytes: they are judged by what comes out.
            succeed(Command::new("node").args(["embed.js", "--check"]).arg(&kept).current_dir(&folder))
        }
    }
}

fn is_compressed(name: &str) -> bool {
    [".gz", ".br"].iter().any(|ending| name.ends_with(ending))
}

/// The files, by their path in the folders, that are not alike in both.
fn differing(one: &Path, other: &Path, below: &str) -> Result<Vec<String>> {
    let mut all = names(&one.join(below))?;
    if other.join(below).is_dir() {
        all.extend(names(&other.join(below))?);
    }
    all.sort();
    all.dedup();
    let mut found = Vec::new();
    for name in all {
        let path = if below.is_empty() { name } else { format!("{below}/{name}") };
        let (here, there) = (one.join(&path), other.join(&path));
        if here.is_dir() {
            found.extend(differing(one, other, &path)?);
        } else if fs::read(&here).ok() != fs::read(&there).ok() {
            found.push(path);
        }
    }
    Ok(found)
}

fn names(folder: &Path) -> Result<Vec<String>> {
    let because = || format!("cannot read the folder `{}`", folder.display());
    let entries = fs::read_dir(folder).because(because)?;
    entries.map(|entry| Ok(entry.because(because)?.file_name().to_string_lossy().into_owned())).collect()
}

fn copy_all(from: &Path, to: &Path) -> Result<()> {
    if !from.is_dir() {
        return fs::copy(from, to).map(drop).because(|| format!("cannot write `{}`", to.display()));
    }
    fs::create_dir_all(to).because(|| format!("cannot make `{}`", to.display()))?;
    names(from)?.iter().try_for_each(|name| copy_all(&from.join(name), &to.join(name)))
}

fn remove(path: &Path) -> Result<()> {
    let removed = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    removed.because(|| format!("cannot remove `{}`", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_told_apart() {
        assert!(["v20.19.0", "v20.20.2", "v22.1.0"].into_iter().all(is_new_enough));
        assert!(!["v18.20.4", "v20.18.9", "v9.99.0", "node", ""].into_iter().any(is_new_enough));
    }

    #[test]
    fn what_differs_is_named() {
        let folder = std::env::temp_dir().join(format!("console-{}", std::process::id()));
        let (one, other) = (folder.join("one"), folder.join("other"));
        fs::create_dir_all(one.join("assets")).expect("a temporary folder");
        for name in ["same", "changed", "assets/new", "page.gz"] {
            fs::write(one.join(name), name).expect("a temporary folder");
        }
        copy_all(&one, &other).expect("a temporary folder");
        assert_eq!(differing(&one, &other, "").expect("folders"), [""; 0]);
        fs::write(other.join("changed"), "by hand").expect("a temporary folder");
        fs::write(other.join("more"), "").expect("a temporary folder");
        remove(&other.join("assets")).expect("it is there");
        assert_eq!(differing(&one, &other, "").expect("folders"), ["assets/new", "changed", "more"]);
        assert!(is_compressed("page.gz") && !is_compressed("page.js"));
        remove(&folder).expect("it is there");
    }
}

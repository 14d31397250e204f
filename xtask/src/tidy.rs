//! `cargo xtask tidy`: the rules about the code itself, each as a check that can fail.

mod architecture;
mod dependencies;
mod heads;
mod lengths;
mod links;
mod machine_paths;
mod names;
mod purity;
mod readme;
mod sleeps;
mod tree;

use std::fmt;

use crate::failure::{Failure, Result};
use crate::project::Project;
use tree::Tree;

/// A check looks at the whole tree and says what it does not like.
type Check = fn(&Tree) -> Vec<Finding>;

const CHECKS: &[Check] = &[
    lengths::check,
    heads::check,
    names::check,
    architecture::check,
    purity::check,
    dependencies::check,
    readme::check,
    sleeps::check,
    machine_paths::check,
    links::check,
];

/// Something to mend.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Finding {
    path: String,
    /// From 1; 0 is the file as a whole.
    line: usize,
    message: String,
}

impl Finding {
    fn file(path: &str, message: impl Into<String>) -> Self {
        Self::line(path, 0, message)
    }

    fn line(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, message: message.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(out, "{}: {}", self.path, self.message),
            line => write!(out, "{}:{line}: {}", self.path, self.message),
        }
    }
}

pub(crate) fn run(project: &Project) -> Result<()> {
    let tree = Tree::load(project.root())?;
    let mut findings: Vec<Finding> = CHECKS.iter().flat_map(|check| check(&tree)).collect();
    findings.sort();
    for finding in &findings {
        println!("{finding}");
    }
    match findings.len() {
        0 => Ok(()),
        1 => Err(Failure::new("1 thing to tidy")),
        many => Err(Failure::new(format!("{many} things to tidy"))),
    }
}

/// The findings of one check over files that exist only in the test.
#[cfg(test)]
fn found(check: Check, files: &[(&str, &str)]) -> Vec<String> {
    check(&Tree::of(files)).iter().map(Finding::to_string).collect()
}

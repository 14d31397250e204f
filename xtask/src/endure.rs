//! `cargo xtask endure` and `cargo xtask storm`: end-to-end tests in full, against the release binary, and the table of
//! what they measured.

mod names;

use std::path::Path;

use lexopt::Arg;

use crate::failure::{Because, Failure, Result};
use crate::project::{Project, succeed};

/// A group of tests that are small in `check`: a module of the end-to-end tests, and the command that runs it in full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Group {
    /// What clients, servers and operators may do to the switch.
    Endure,
    /// Servers, rules and the binary change under load.
    Storm,
}

impl Group {
    fn name(self) -> &'static str {
        match self {
            Group::Endure => "endure",
            Group::Storm => "storm",
        }
    }
}

/// Builds, runs every test even when one fails, and prints the table last.
pub(crate) fn run(project: &Project, group: Group, arguments: lexopt::Parser) -> Result<()> {
    let name = name(arguments)?;
    let filters = names::filters(project, group.name(), name.as_deref())?;
    project.build_release("pointsman")?;
    let binary = project.release_binary("pointsman")?;
    let path = project.target().join(format!("{}-figures.tsv", group.name()));
    std::fs::write(&path, "").because(|| format!("cannot write `{}`", path.display()))?;
    let mut tests = project.cargo();
    tests
        .args(["test", "--package", "pointsman-e2e", "--test", "e2e", "--", "--test-threads=1"])
        .args(&filters);
    tests.env("POINTSMAN_BIN", binary).env("POINTSMAN_FIGURES", &path).env("POINTSMAN_FULL_SCALE", "1");
    let outcome = succeed(&mut tests);
    let figures = read(&path)?;
    print!("{}", table(&figures));
    let broken = figures.iter().filter(|figure| !figure.holds()).count();
    println!("{} figures, {broken} broken", figures.len());
    if figures.is_empty() {
        missing(name.as_deref())?;
    }
    outcome
}

/// Some tests only pass or fail; all of them together give figures.
fn missing(name: Option<&str>) -> Result<()> {
    let Some(name) = name else { return Err(Failure::new("no test gave a figure")) };
    println!("the tests of `{name}` give none: they pass or fail");
    Ok(())
}

fn name(mut arguments: lexopt::Parser) -> Result<Option<String>> {
    let mut name = None;
    while let Some(argument) = arguments.next()? {
        match argument {
            Arg::Value(value) if name.is_none() => name = Some(value.to_string_lossy().into_owned()),
            other => return Err(other.unexpected().into()),
        }
    }
    Ok(name)
}

/// One line that a test wrote: fault, what is counted, what was seen, what must be, and whether it is so.
#[derive(Debug, PartialEq, Eq)]
struct Figure([String; 5]);

impl Figure {
    fn read(line: &str) -> Option<Self> {
        let columns: Vec<String> = line.split('\t').map(str::to_owned).collect();
        columns.try_into().ok().map(Self)
    }

    fn holds(&self) -> bool {
        self.0[4] == "holds"
    }
}

fn read(path: &Path) -> Result<Vec<Figure>> {
    let text = std::fs::read_to_string(path).because(|| format!("cannot read `{}`", path.display()))?;
    let figure = |line| Figure::read(line).ok_or_else(|| Failure::new(format!("no figure: `{line}`")));
    text.lines().map(figure).collect()
}

/// The figures as a table whose columns stand below each other.
fn table(figures: &[Figure]) -> String {
    let head = ["fault", "what", "figure", "bound", "verdict"].map(str::to_owned);
    let rows: Vec<&[String; 5]> =
        std::iter::once(&head).chain(figures.iter().map(|figure| &figure.0)).collect();
    let widths: [usize; 5] = std::array::from_fn(|column| {
        rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default()
    });
    let line = |row: &&[String; 5]| {
        let cells: Vec<_> = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        format!("{}\n", cells.join("  ").trim_end())
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_that_was_asked_for_may_have_no_figure_but_not_all_of_them() {
        assert!(missing(Some("reloads::rules")).is_ok());
        assert!(missing(None).is_err());
    }

    #[test]
    fn figures_become_a_table() {
        let lines = ["10 heads\teach\t2.0 KiB\tat most 4.0 KiB\tholds", "a\tfailed\t1\t0\tBROKEN"];
        let figures: Vec<_> = lines.iter().filter_map(|line| Figure::read(line)).collect();
        assert_eq!(figures.iter().map(Figure::holds).collect::<Vec<_>>(), [true, false]);
        assert_eq!(
            table(&figures),
            "fault     what    figure   bound            verdict\n\
             10 heads  each    2.0 KiB  at most 4.0 KiB  holds\n\
             a         failed  1        0                BROKEN\n"
        );
        assert_eq!(Figure::read("too\tfew"), None);
    }
}

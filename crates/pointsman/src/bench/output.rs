//! Where a result goes: to the terminal, into a file that `bench report` reads, and onto a page.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use lexopt::{Parser, ValueExt};
use pointsman_measure::report::{Document, Run, page};
use pointsman_measure::table::{Table, xlsx};
use pointsman_telemetry::rfc3339;

use crate::{WRONG_USE, say};

pub(super) const HELP: &str = "
result
    --json                   everything as JSON, in place of the summary
    --save FILE              the same into a file; `bench report` puts several side by side
    --report FILE            a page with charts, for a browser
    --name NAME              what the run is called on it
";

/// What was said about it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Output {
    json: bool,
    save: Option<PathBuf>,
    report: Option<PathBuf>,
    name: Option<String>,
}

impl Output {
    /// Reads the value of an option. False: it is none of these.
    pub(super) fn take(&mut self, name: &str, parser: &mut Parser) -> Result<bool, lexopt::Error> {
        match name {
            "json" => self.json = true,
            "save" => self.save = Some(parser.value()?.into()),
            "report" => self.report = Some(parser.value()?.into()),
            "name" => self.name = Some(parser.value()?.string()?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// What a run is called, if nobody said, by what it is of.
    pub(super) fn name<'a>(&'a self, usual: &'a str) -> &'a str {
        self.name.as_deref().unwrap_or(usual)
    }

    /// Writes what is to be written, and prints the summary, or the JSON in its place. `status` is the exit status where
    /// all of that succeeds.
    pub(super) fn give(&self, document: &Document, summary: &str, status: u8) -> ExitCode {
        let json = match self.json || self.save.is_some() {
            true => format!("{}\n", document.to_json()),
            false => String::new(),
        };
        let written = self.save.iter().try_for_each(|path| write(path, json.as_bytes()));
        let written = written
            .and_then(|()| self.report.iter().try_for_each(|path| write(path, page(document).as_bytes())));
        match written {
            Ok(()) => say(&mut io::stdout(), if self.json { &json } else { summary }, status),
            Err(words) => say(&mut io::stderr(), &format!("error: {words}\n"), WRONG_USE),
        }
    }
}

/// Where tables go, beside the result.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct TableFiles {
    csv: Option<PathBuf>,
    xlsx: Option<PathBuf>,
}

impl TableFiles {
    /// Reads the value of an option. False: it is none of these.
    pub(super) fn take(&mut self, name: &str, parser: &mut Parser) -> Result<bool, lexopt::Error> {
        match name {
            "csv" => self.csv = Some(parser.value()?.into()),
            "xlsx" => self.xlsx = Some(parser.value()?.into()),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Writes what is to be written: `csv`, and a workbook of all tables.
    pub(super) fn give(&self, csv: &str, tables: &[Table]) -> Result<(), String> {
        self.csv.iter().try_for_each(|path| write(path, csv.as_bytes()))?;
        self.xlsx.iter().try_for_each(|path| {
            let bytes = xlsx(tables).map_err(|error| format!("cannot make a workbook: {error}"))?;
            write(path, &bytes)
        })
    }
}

/// When a run began, for its report.
pub(super) fn began(run: Run, unix_s: u64) -> Run {
    Run { started: rfc3339(unix_s.saturating_mul(1_000_000)), ..run }
}

/// Writes a file whole.
pub(super) fn write(path: &Path, bytes: &[u8]) -> Result<(), String> {
    std::fs::write(path, bytes).map_err(|error| format!("cannot write `{}`: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_goes_where_it_is_to() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (save, report) = (folder.path().join("a.json"), folder.path().join("a.html"));
        let words = ["--save", &save.to_string_lossy(), "--report", &report.to_string_lossy(), "--name", "b"];
        let mut parser = Parser::from_args(words);
        let mut output = Output::default();
        while let Some(argument) = parser.next().expect("words") {
            let lexopt::Arg::Long(name) = argument else { panic!("an option") };
            let name = name.to_owned();
            assert!(output.take(&name, &mut parser).expect("a value"), "{name}");
        }
        assert_eq!((output.name("a"), Output::default().name("a")), ("b", "a"));
        let run = began(Run::named("b"), 1_763_854_202);
        assert_eq!(run.started, "2025-11-22T23:30:02.000Z");
        let document = Document { title: "c".to_owned(), runs: vec![run] };
        output.give(&document, "", 0);
        for path in [save, report] {
            let text = std::fs::read_to_string(path).expect("it is written");
            assert_eq!(Document::read(&text), Ok(document.clone()));
        }
    }
}

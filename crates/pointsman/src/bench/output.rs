//! Where a result goes: to the terminal, into a file that `bench report` reads, and onto a page.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use lexopt::{Parser, ValueExt};
use pointsman_measure::report::{Document, Run, page};
use pointsman_measure::table::{Table, xlsx};
use pointsman_telemetry::rfc3339;
use rustix::fs::{Access, access};

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
            "save" => self.save = Some(writable(parser)?),
            "report" => self.report = Some(writable(parser)?),
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
        self.give_beside(Vec::new(), document, summary, status)
    }

    /// The same where other files could not be written, or could: what was measured is told all the same.
    pub(super) fn give_beside(
        &self,
        mut troubles: Vec<String>,
        document: &Document,
        summary: &str,
        status: u8,
    ) -> ExitCode {
        let json = match self.json || self.save.is_some() {
            true => format!("{}\n", document.to_json()),
            false => String::new(),
        };
        let saved = self.save.as_ref().map(|path| write(path, json.as_bytes()));
        let drawn = self.report.as_ref().map(|path| write(path, page(document).as_bytes()));
        troubles.extend([saved, drawn].into_iter().flatten().filter_map(Result::err));
        let told = say(&mut io::stdout(), if self.json { &json } else { summary }, status);
        if troubles.is_empty() {
            return told;
        }
        let words: String = troubles.iter().map(|words| format!("error: {words}\n")).collect();
        say(&mut io::stderr(), &words, WRONG_USE)
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
            "csv" => self.csv = Some(writable(parser)?),
            "xlsx" => self.xlsx = Some(writable(parser)?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Writes what is to be written: `csv`, and a workbook of all tables. What of it could not be.
    pub(super) fn give(&self, csv: &str, tables: &[Table]) -> Vec<String> {
        let text = self.csv.as_ref().map(|path| write(path, csv.as_bytes()));
        let workbook = self.xlsx.as_ref().map(|path| {
            let bytes = xlsx(tables).map_err(|error| format!("cannot make a workbook: {error}"))?;
            write(path, &bytes)
        });
        [text, workbook].into_iter().flatten().filter_map(Result::err).collect()
    }
}

/// A path that a result goes to, behind an option: one that cannot be is told before anything is measured.
fn writable(parser: &mut Parser) -> Result<PathBuf, lexopt::Error> {
    let path = PathBuf::from(parser.value()?);
    match may_be_written(&path) {
        Ok(()) => Ok(path),
        Err(error) => Err(format!("cannot write `{}`: {error}", path.display()).into()),
    }
}

/// Whether a file can be there, as far as that is seen without touching one.
fn may_be_written(path: &Path) -> io::Result<()> {
    match std::fs::metadata(path) {
        Ok(there) if there.is_dir() => Err(io::Error::from(io::ErrorKind::IsADirectory)),
        // Whoever opens a FIFO waits for its reader.
        Ok(there) if there.is_file() => std::fs::OpenOptions::new().append(true).open(path).map(drop),
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            let folder = folder.unwrap_or(Path::new("."));
            if !std::fs::metadata(folder)?.is_dir() {
                return Err(io::Error::from(io::ErrorKind::NotADirectory));
            }
            Ok(access(folder, Access::WRITE_OK | Access::EXEC_OK)?)
        }
        Err(error) => Err(error),
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
    use std::ffi::OsString;

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
        for path in [&save, &report] {
            let text = std::fs::read_to_string(path).expect("it is written");
            assert_eq!(Document::read(&text), Ok(document.clone()));
        }
        // One that has become none costs the others nothing.
        std::fs::remove_file(&report).expect("it is there");
        output.save = Some(folder.path().join("gone/a.json"));
        let xlsx = folder.path().join("a.xlsx");
        let tables = TableFiles { csv: Some(folder.path().join("gone/a.csv")), xlsx: Some(xlsx.clone()) };
        let troubles = tables.give("", &[]);
        assert_eq!(troubles.len(), 1, "{troubles:?}");
        assert_eq!(output.give_beside(troubles, &document, "", 0), ExitCode::from(WRONG_USE));
        assert!(report.exists() && xlsx.exists());
    }

    #[test]
    fn a_path_that_cannot_be_is_told_before_and_nothing_is_touched() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (here, new) = (folder.path().join("here"), folder.path().join("new"));
        std::fs::write(&here, "as it was").expect("a writable folder");
        let take = |option: &str, path: &Path| {
            let words = [OsString::from(format!("--{option}")), path.into()];
            let mut parser = Parser::from_args(words);
            assert!(parser.next().expect("words").is_some());
            let taken = Output::default().take(option, &mut parser).map_err(|error| error.to_string())?;
            if taken {
                Ok(taken)
            } else {
                TableFiles::default().take(option, &mut parser).map_err(|e| e.to_string())
            }
        };
        for option in ["save", "report", "csv", "xlsx"] {
            for good in [&here, &new, &PathBuf::from("/dev/null"), &PathBuf::from("a.json")] {
                assert_eq!(take(option, good), Ok(true), "{}", good.display());
            }
            for bad in [folder.path().join("none/a"), here.join("a"), folder.path().to_owned()] {
                let words = take(option, &bad).expect_err("it cannot be");
                assert!(words.starts_with(&format!("cannot write `{}`: ", bad.display())), "{words}");
            }
        }
        assert_eq!(std::fs::read_to_string(&here).expect("it is there"), "as it was");
        assert!(!new.exists());
    }
}

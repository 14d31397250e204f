//! `pointsman bench report`: results that were kept, drawn again, side by side.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use lexopt::{Arg, ValueExt};
use pointsman_measure::report::{DOCUMENT_BYTES_MAX, Document, RUNS_MAX, Run, page};

use super::output::write;
use super::with_options;
use crate::{WRONG_USE, say};

const HELP: &str = "\
pointsman bench report FILE... [-o FILE] [--title TITLE]

    FILE           what `--save` wrote, or a report; each may hold several runs
    -o FILE        or `--output FILE`: the page; without it, to standard output
    --title TITLE  its head; the titles of the files without it

All runs stand beside each other, on the same axes. What differs of machine, versions and settings is marked.
";

/// A page holds its document and what is drawn of it.
const FILE_BYTES_MAX: u64 = 2 * DOCUMENT_BYTES_MAX as u64;

#[derive(Debug, PartialEq, Eq)]
struct Options {
    files: Vec<PathBuf>,
    page: Option<PathBuf>,
    title: Option<String>,
}

impl Options {
    /// Nothing where help is wanted.
    fn read(arguments: Vec<OsString>) -> Result<Option<Options>, lexopt::Error> {
        let mut options = Options { files: Vec::new(), page: None, title: None };
        let mut parser = lexopt::Parser::from_args(arguments);
        while let Some(argument) = parser.next()? {
            match argument {
                Arg::Value(file) => options.files.push(file.into()),
                Arg::Short('o') | Arg::Long("output") => options.page = Some(parser.value()?.into()),
                Arg::Long("title") => options.title = Some(parser.value()?.string()?),
                Arg::Long("help") | Arg::Short('h') => return Ok(None),
                other => return Err(other.unexpected()),
            }
        }
        if options.files.is_empty() {
            return Err("a file is needed: what `--save FILE` of another command wrote".into());
        }
        Ok(Some(options))
    }
}

pub(super) fn report(arguments: Vec<OsString>) -> ExitCode {
    with_options(Options::read(arguments), &[HELP], carry_out)
}

fn carry_out(options: Options) -> ExitCode {
    let drawn = together(&options).map(|document| page(&document));
    let written = drawn.and_then(|drawn| match &options.page {
        Some(path) => write(path, drawn.as_bytes()).map(|()| String::new()),
        None => Ok(drawn),
    });
    match written {
        Ok(text) => say(&mut io::stdout(), &text, 0),
        Err(words) => say(&mut io::stderr(), &format!("error: {}\n", shown(&words)), WRONG_USE),
    }
}

/// What is wrong with a file may be in its own words: they are shown on a terminal.
fn shown(words: &str) -> String {
    words.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// One document of all files.
fn together(options: &Options) -> Result<Document, String> {
    let mut all = Document::default();
    let mut titles: Vec<String> = Vec::new();
    for path in &options.files {
        let Document { title, runs } = read(path)?;
        let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        for run in runs {
            let name = distinct(&run.name, &stem, &all.runs);
            all.runs.push(Run { name, ..run });
        }
        if !titles.contains(&title) {
            titles.push(title);
        }
    }
    if all.runs.len() > RUNS_MAX {
        return Err(format!("{} runs are too many for a page: {RUNS_MAX} are the most", all.runs.len()));
    }
    all.title = options.title.clone().unwrap_or_else(|| titles.join(" · "));
    Ok(all)
}

fn read(path: &Path) -> Result<Document, String> {
    let shown = path.display();
    // What is no regular file, such as /dev/zero or a FIFO, has no length before its end.
    let text =
        read_bounded(path, FILE_BYTES_MAX).map_err(|error| format!("cannot read `{shown}`: {error}"))?;
    let text = text
        .ok_or_else(|| format!("`{shown}` is too long for a report: {FILE_BYTES_MAX} bytes are the most"))?;
    Document::read(&text).map_err(|error| format!("`{shown}`: {error}"))
}

/// All of it, if it has no more bytes than that.
fn read_bounded(path: &Path, bytes_max: u64) -> io::Result<Option<String>> {
    let mut text = String::new();
    let count = File::open(path)?.take(bytes_max + 1).read_to_string(&mut text)? as u64;
    Ok((count <= bytes_max).then_some(text))
}

/// A name that no other run has: with the file that it comes from, and with a number where that is not enough.
fn distinct(name: &str, stem: &str, others: &[Run]) -> String {
    let is_taken = |name: &str| others.iter().any(|run| run.name == name);
    let with_file = format!("{name} ({stem})");
    let numbered = (2..).map(|number| format!("{with_file} {number}"));
    let mut names = [name.to_owned(), with_file.clone()].into_iter().chain(numbered);
    names.find(|name| !is_taken(name)).unwrap_or(with_file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_words(words: &str) -> Result<Option<Options>, lexopt::Error> {
        Options::read(words.split_ascii_whitespace().map(OsString::from).collect())
    }

    #[test]
    fn options_are_read() {
        let options = read_words("a.json b.html -o c.html --title d").expect("good").expect("no help");
        assert_eq!((options.files.len(), options.title.as_deref()), (2, Some("d")));
        assert_eq!(options.page, Some("c.html".into()));
        assert_eq!(read_words("--help").expect("good"), None);
        for bad in ["", "a.json --json", "a.json -o"] {
            assert!(read_words(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn runs_of_several_files_stand_together_under_names_of_their_own() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let files = ["a.json", "b.html", "b.json"].map(|name| folder.path().join(name));
        let document = Document { title: "t".to_owned(), runs: vec![Run::named("x")] };
        for file in &files {
            let is_page = file.extension().is_some_and(|end| end == "html");
            let text = if is_page { page(&document) } else { document.to_json().to_string() };
            std::fs::write(file, text).expect("a writable folder");
        }
        let options = Options { files: files.to_vec(), page: None, title: None };
        let all = together(&options).expect("three documents");
        let names: Vec<&str> = all.runs.iter().map(|run| run.name.as_str()).collect();
        assert_eq!((all.title.as_str(), names), ("t", vec!["x", "x (b)", "x (b) 2"]));
        std::fs::write(&files[0], "{}").expect("a writable folder");
        let words = together(&options).expect_err("no document");
        assert!(words.contains("a.json`: `schema`: it is missing"), "{words}");
    }

    #[test]
    fn what_is_read_is_bounded_and_what_is_said_harmless() {
        assert_eq!(read_bounded(Path::new("/dev/zero"), 1000).expect("zeros are text"), None);
        assert_eq!(read_bounded(Path::new("/dev/null"), 1000).expect("nothing"), Some(String::new()));
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("a.json");
        std::fs::write(&file, "{\"schema\": \"a\\u001b[31mb\"}").expect("a writable folder");
        let words = read(&file).expect_err("no schema of ours");
        assert!(words.contains('\u{1b}') && shown(&words).contains("\u{fffd}[31mb"), "{words}");
        assert!(!shown(&words).contains(char::is_control), "{words}");
    }
}

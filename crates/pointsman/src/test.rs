//! `pointsman test`: the tests of a rule set, run by the engine that decides requests.

mod assertion;
mod coverage;
mod generate;
mod mutants;
mod odds;
mod report;
mod said;
mod suite;
mod trial;

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use lexopt::{Arg, ValueExt};

use crate::check::{input, terminal};
use crate::usage::wrong_options;
use crate::{WRONG_USE, say};
use generate::Generated;
use mutants::Mutation;
use report::Report;
use suite::Suite;

const HELP: &str = "\
pointsman test RULES [TESTS...] [OPTION...]
pointsman test RULES --generate [OPTION...]     tests made of the rules

    RULES                 a rule set, or a configuration (.toml) with the rules that it names; tests may stand in it
    TESTS                 files with further tests of it
    --listener NAME       of a configuration: the rules of this listener, and no others
    --fail-under PERCENT  the tests have to take so many percent of the rules' branches; with --mutate, to kill so many
                          percent of the mutants
    --mutate              make small mistakes in the rules, one at a time, and show those that no test notices
    --mutants-max N       of each rule set, at most so many, evenly spread; 10000
    --json                all of it as JSON
    --generate            print tests that state what the rules do now: for each rule, and beside its borders
    --write FILE          with --generate: write them to a new file
    --tests-max N         with --generate: at most so many; 1000

exit status: 0 all passed or written, 1 one failed or too few branches are taken or mutants killed, 2 wrong use, no tests, or unreadable or wrong input
";

/// Of each rule set, where nobody says how many.
const MUTANTS_MAX: usize = 10_000;

/// More of them, or of tests that are made, are not kept in memory.
const MUTANTS_MOST: usize = 1_000_000;

/// Tests that are made, where nobody says how many.
const TESTS_MAX: usize = 1000;

/// Runs tests.
pub(crate) fn test(arguments: Vec<OsString>) -> ExitCode {
    let options = match Options::read(arguments) {
        Ok(Some(options)) => options,
        Ok(None) => return say(&mut io::stdout(), HELP, 0),
        Err(error) => return wrong_options(HELP, &error),
    };
    let loaded = match suite::load(&options, terminal::colour(&io::stderr())) {
        Ok(loaded) => loaded,
        Err(complaint) => return say(&mut io::stderr(), &complaint, WRONG_USE),
    };
    if options.generate {
        return generated(&options, &loaded.suites);
    }
    let report = Report::of(&loaded.suites);
    if report.tests() == 0 {
        let name = input::name(&options.rules);
        let help = "a test is written `test \"name\" { request path \"/a.gif\" expect R3 -> images }`";
        return say(&mut io::stderr(), &format!("error: `{name}` has no tests\nhelp: {help}\n"), WRONG_USE);
    }
    let mutation = (options.mutate && report.all_passed())
        .then(|| Mutation::of(&loaded.suites, options.mutants_max.unwrap_or(MUTANTS_MAX)));
    let shortfall = options.fail_under.and_then(|wanted| match &mutation {
        Some(mutation) => mutation.falls_under(wanted),
        None => report.falls_under(wanted),
    });
    let status = u8::from(!report.all_passed() || shortfall.is_some());
    let colour = terminal::colour(&io::stdout());
    let text = match (&mutation, options.json) {
        (mutation, true) => report.json(mutation.as_ref()),
        (None, false) => report.text(colour),
        (Some(mutation), false) => report.text(colour) + &mutation.text(colour),
    };
    let said = say(&mut io::stdout(), &text, status);
    let shortfall = shortfall.map(|sentence| format!("error: {sentence}\n")).unwrap_or_default();
    let mutants = match &mutation {
        Some(mutation) => format!("{}\n", mutation.summary()),
        None if options.mutate => "error: mutants are made of rules whose tests all pass\n".to_owned(),
        None => String::new(),
    };
    let last_words = format!("{}{shortfall}{}\n{mutants}", loaded.warnings, report.summary());
    if say(&mut io::stderr(), &last_words, 0) == ExitCode::SUCCESS { said } else { ExitCode::FAILURE }
}

/// Makes tests instead of running some.
fn generated(options: &Options, suites: &[Suite]) -> ExitCode {
    let [suite] = suites else {
        let names: Vec<_> = suites.iter().map(|suite| format!("`{}`", suite.name)).collect();
        let complaint = match names.as_slice() {
            [] => "error: the configuration names no rule sets\n".to_owned(),
            names => format!(
                "error: the configuration names several rule sets: {}\n\
                 help: `--listener NAME` says for whose rules tests are made\n",
                names.join(", ")
            ),
        };
        return say(&mut io::stderr(), &complaint, WRONG_USE);
    };
    let generated = Generated::of(suite, options.tests_max.unwrap_or(TESTS_MAX));
    let said = match &options.write {
        None => say(&mut io::stdout(), &generated.text, 0),
        Some(path) => match write_new(path, &generated.text) {
            Ok(()) => ExitCode::SUCCESS,
            Err(complaint) => return say(&mut io::stderr(), &complaint, WRONG_USE),
        },
    };
    let summary = format!("{}\n", generated.summary());
    if say(&mut io::stderr(), &summary, 0) == ExitCode::SUCCESS { said } else { ExitCode::FAILURE }
}

/// Writes a file that is not there yet; the error is a text for people.
fn write_new(path: &Path, text: &str) -> Result<(), String> {
    let written = File::options().write(true).create_new(true).open(path);
    written.and_then(|mut file| file.write_all(text.as_bytes())).map_err(|error| {
        let help = match error.kind() {
            io::ErrorKind::AlreadyExists => "help: a file that is there stays as it is\n",
            _ => "",
        };
        format!("error: cannot write `{}`: {}\n{help}", path.display(), pointsman_config::reason(&error))
    })
}

/// The command line.
#[derive(Debug, Default)]
struct Options {
    rules: PathBuf,
    tests: Vec<PathBuf>,
    listener: Option<String>,
    /// In percent, at most 100.
    fail_under: Option<u8>,
    mutate: bool,
    mutants_max: Option<usize>,
    json: bool,
    generate: bool,
    /// A new file for what is made.
    write: Option<PathBuf>,
    tests_max: Option<usize>,
}

impl Options {
    /// Nothing where help is wanted.
    fn read(arguments: Vec<OsString>) -> Result<Option<Options>, lexopt::Error> {
        let mut options = Options::default();
        let mut files: Vec<PathBuf> = Vec::new();
        let mut parser = lexopt::Parser::from_args(arguments);
        while let Some(argument) = parser.next()? {
            match argument {
                Arg::Long("listener") => options.listener = Some(parser.value()?.string()?),
                Arg::Long("fail-under") => options.fail_under = Some(share(&parser.value()?.string()?)?),
                Arg::Long("mutate") => options.mutate = true,
                Arg::Long("mutants-max") => {
                    options.mutants_max = Some(count("--mutants-max", &parser.value()?.string()?)?)
                }
                Arg::Long("json") => options.json = true,
                Arg::Long("generate") => options.generate = true,
                Arg::Long("write") => options.write = Some(parser.value()?.into()),
                Arg::Long("tests-max") => {
                    options.tests_max = Some(count("--tests-max", &parser.value()?.string()?)?)
                }
                Arg::Long("help") | Arg::Short('h') => return Ok(None),
                Arg::Value(file) => files.push(file.into()),
                _ => return Err(argument.unexpected()),
            }
        }
        let mut files = files.into_iter();
        options.rules = files.next().ok_or("`test` needs rules: pointsman test RULES [TESTS...]")?;
        options.tests = files.collect();
        if options.mutants_max.is_some() && !options.mutate {
            return Err("`--mutants-max` is for `--mutate`".into());
        }
        options.check_generate()?;
        Ok(Some(options))
    }

    /// Tests are made or run.
    fn check_generate(&self) -> Result<(), lexopt::Error> {
        let for_making = [("--write", self.write.is_some()), ("--tests-max", self.tests_max.is_some())];
        let for_running =
            [("--mutate", self.mutate), ("--fail-under", self.fail_under.is_some()), ("--json", self.json)];
        let misfits = if self.generate { &for_running[..] } else { &for_making };
        if let Some((option, _)) = misfits.iter().find(|(_, is_given)| *is_given) {
            let message = match self.generate {
                true => format!("`{option}` is for tests that are run, and `--generate` makes some"),
                false => format!("`{option}` is for `--generate`"),
            };
            return Err(message.into());
        }
        match self.generate && !self.tests.is_empty() {
            true => Err("`--generate` takes rules alone: pointsman test RULES --generate".into()),
            false => Ok(()),
        }
    }
}

fn count(option: &str, word: &str) -> Result<usize, String> {
    let number = word.parse().ok().filter(|number| (1..=MUTANTS_MOST).contains(number));
    number.ok_or_else(|| format!("`{option}` takes a number from 1 to {MUTANTS_MOST}, not `{word}`"))
}

/// `80`, or `80%`.
fn share(word: &str) -> Result<u8, String> {
    let number = word.strip_suffix('%').unwrap_or(word).parse().ok().filter(|percent| *percent <= 100);
    number.ok_or_else(|| format!("`--fail-under` takes a number from 0 to 100, not `{word}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_there_stays_as_it_is() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("a.test.rules");
        assert_eq!(write_new(&path, "new"), Ok(()));
        let complaint = write_new(&path, "newer").expect_err("it is there");
        assert!(complaint.contains("a.test.rules") && complaint.contains("help: a file that is there"));
        assert_eq!(std::fs::read_to_string(&path).expect("it is there"), "new");
    }

    #[test]
    fn options_are_read() {
        let read = |words: &[&str]| Options::read(words.iter().map(OsString::from).collect());
        let words = ["a.toml", "--listener", "web", "b.rules", "--fail-under", "80%", "--json", "c"];
        let options = read(&words).expect("good").expect("no help");
        assert_eq!((options.rules, options.tests), ("a.toml".into(), vec!["b.rules".into(), "c".into()]));
        assert_eq!(
            (options.listener.as_deref(), options.fail_under, options.json),
            (Some("web"), Some(80), true)
        );
        assert!(read(&["--help"]).expect("good").is_none());
        let options = read(&["--mutate", "--mutants-max", "7", "a"]).expect("good").expect("no help");
        assert_eq!((options.mutate, options.mutants_max), (true, Some(7)));
        let words = ["a", "--generate", "--write", "b", "--tests-max", "3"];
        let options = read(&words).expect("good").expect("no help");
        assert_eq!((options.generate, options.write, options.tests_max), (true, Some("b".into()), Some(3)));
        for bad in [
            "a --write b",
            "a --tests-max 3",
            "a b --generate",
            "a --generate --json",
            "a --generate --mutate",
        ] {
            assert!(read(&bad.split(' ').collect::<Vec<_>>()).is_err(), "{bad}");
        }
        for bad in [&["a", "--mutants-max", "7"][..], &["a", "--mutate", "--mutants-max", "0"]] {
            assert!(read(bad).is_err(), "{bad:?}");
        }
        for bad in [&[][..], &["--fail-under", "101", "a"], &["--fail-under", "-1", "a"], &["a", "--jsn"]] {
            assert!(read(bad).is_err(), "{bad:?}");
        }
    }
}

//! `pointsman test`: the tests of a rule set, run by the engine that decides requests.

mod coverage;
mod mutants;
mod report;
mod said;
mod suite;
mod trial;

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use lexopt::{Arg, ValueExt};

use crate::check::{input, terminal};
use crate::{WRONG_USE, say, wrong_use};
use mutants::Mutation;
use report::Report;

const HELP: &str = "\
pointsman test RULES [TESTS...] [OPTION...]

    RULES                 a rule set, or a configuration (.toml) with the rules that it names; tests may stand in it
    TESTS                 files with further tests of it
    --listener NAME       of a configuration: the rules of this listener, and no others
    --fail-under PERCENT  the tests have to take so many percent of the rules' branches; with --mutate, to kill so many
                          percent of the mutants
    --mutate              make small mistakes in the rules, one at a time, and show those that no test notices
    --mutants-max N       of each rule set, at most so many, evenly spread; 10000
    --json                all of it as JSON

exit status: 0 all passed, 1 one failed or too few branches are taken or mutants killed, 2 wrong use, no tests, or unreadable or wrong input
";

/// Of each rule set, where nobody says how many.
const MUTANTS_MAX: usize = 10_000;

/// More are not kept in memory.
const MUTANTS_MOST: usize = 1_000_000;

/// Runs tests.
pub(crate) fn test(arguments: Vec<OsString>) -> ExitCode {
    let options = match Options::read(arguments) {
        Ok(Some(options)) => options,
        Ok(None) => return say(&mut io::stdout(), HELP, 0),
        Err(error) => return wrong_use(&error.to_string()),
    };
    let loaded = match suite::load(&options, terminal::colour(&io::stderr())) {
        Ok(loaded) => loaded,
        Err(complaint) => return say(&mut io::stderr(), &complaint, WRONG_USE),
    };
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
                Arg::Long("mutants-max") => options.mutants_max = Some(count(&parser.value()?.string()?)?),
                Arg::Long("json") => options.json = true,
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
        Ok(Some(options))
    }
}

fn count(word: &str) -> Result<usize, String> {
    let number = word.parse().ok().filter(|number| (1..=MUTANTS_MOST).contains(number));
    number.ok_or_else(|| format!("`--mutants-max` takes a number from 1 to {MUTANTS_MOST}, not `{word}`"))
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
        for bad in [&["a", "--mutants-max", "7"][..], &["a", "--mutate", "--mutants-max", "0"]] {
            assert!(read(bad).is_err(), "{bad:?}");
        }
        for bad in [&[][..], &["--fail-under", "101", "a"], &["--fail-under", "-1", "a"], &["a", "--jsn"]] {
            assert!(read(bad).is_err(), "{bad:?}");
        }
    }
}

//! `pointsman replay`: which requests of a log new rules decide otherwise.

mod combined;
mod comparison;
mod lines;
mod own_log;
mod progress;
mod record;
mod report;
mod ruling;
pub(crate) mod stand;
mod tally;

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use lexopt::{Arg, ValueExt};
use pointsman_rules::{Condition, Targets};

use crate::check::{input, terminal};
use crate::{WRONG_USE, say, wrong_use};
use comparison::Comparison;
use lines::{Line, LogLines};
use progress::Progress;
use record::Record;
use ruling::{Asking, Room, Ruling};
use stand::{Rules, Sides, Stand};
use tally::Tally;

const HELP: &str = "\
pointsman replay LOG NEW [OPTION...]

    LOG                   recorded requests, compressed by gzip or not (`-`: standard input): the switch's access log, or
                          lines of the common or combined format, as nginx and Apache write them
    NEW                   a rule set, or a configuration (.toml) with the rules of its listeners
    --old OLD             the rules before, likewise; what the log says, where it says it, without it
    --listener NAME       only what came to this listener
    --absent FIELD        a field that no request had, where the log does not say it; may be given several times
    --same-rule           a decision of another rule is a change, too, if the same comes of it
    --samples N           so many lines are shown of each kind of change, up to 100; 3
    --json                all of it as JSON

exit status: 0 nothing changes, 1 some decision does, 2 wrong use or unreadable input, 3 nothing does that can be told
";

/// That nothing changes cannot be said.
const UNTOLD: u8 = 3;

/// More samples of a kind of change are not asked for.
const SAMPLES_MAX: usize = 100;

/// Of each kind of change.
const SAMPLES_DEFAULT: usize = 3;

/// Replays a log.
pub(crate) fn replay(arguments: Vec<OsString>) -> ExitCode {
    let options = match Options::read(arguments) {
        Ok(Some(options)) => options,
        Ok(None) => return say(&mut io::stdout(), HELP, 0),
        Err(error) => return wrong_use(&error.to_string()),
    };
    let sides = match Sides::load(&options, terminal::colour(&io::stderr())) {
        Ok(sides) => sides,
        Err(complaint) => return say(&mut io::stderr(), &complaint, WRONG_USE),
    };
    let tally = match replayed(&options, &sides) {
        Ok(tally) => tally,
        Err(complaint) => return say(&mut io::stderr(), &complaint, WRONG_USE),
    };
    let status = status(&tally, &options);
    let text = if options.json { tally.json() } else { tally.text(terminal::colour(&io::stdout())) };
    let said = say(&mut io::stdout(), &text, status);
    let last_words = format!("{}\n", tally.summary());
    if say(&mut io::stderr(), &last_words, 0) == ExitCode::SUCCESS { said } else { ExitCode::FAILURE }
}

/// A change weighs more than what nobody can tell.
fn status(tally: &Tally, options: &Options) -> u8 {
    match tally.changed > 0 || (options.same_rule && tally.other_rule > 0) {
        true => 1,
        false if tally.untold > 0 || tally.unreadable > 0 => UNTOLD,
        false => 0,
    }
}

/// Every line of the log; the error is a text for people.
fn replayed(options: &Options, sides: &Sides) -> Result<Tally, String> {
    let unreadable = |error| format!("error: {}\n", input::unreadable(&options.log, &error));
    let mut lines =
        LogLines::of(lines::plain(opened(&options.log).map_err(unreadable)?).map_err(unreadable)?);
    let mut tally = Tally::new(options.samples);
    let asking = Asking { absent: &options.absent };
    let mut replay = Replay { options, sides, asking, new: Room::default(), old: Room::default() };
    let mut progress = Progress::new();
    let done = loop {
        let line = match lines.next() {
            Ok(Some(Line::Whole([]))) => continue,
            Ok(Some(Line::Whole(line))) => Record::read(line),
            Ok(Some(Line::TooLong)) => Err("it is longer than 64 KiB"),
            Ok(None) => break Ok(()),
            Err(error) => break Err(unreadable(error)),
        };
        match line {
            Err(reason) => tally.add_unreadable(lines.number, reason),
            Ok(record) => {
                if let Err(complaint) = replay.add(&record, lines.number, &mut tally) {
                    break Err(complaint);
                }
            }
        }
        progress.tell(lines.number, lines.bytes, tally.changed);
    };
    progress.end();
    done?;
    let is_none_read = tally.compared + tally.undecided + tally.elsewhere == 0;
    if let (Some((line, reason)), true) = (tally.unreadable_lines.first(), is_none_read) {
        let name = input::name(&options.log);
        return Err(format!("error: `{name}` is no log that can be read: of line {line}, {reason}\n"));
    }
    Ok(tally)
}

fn opened(path: &Path) -> io::Result<Box<dyn BufRead>> {
    Ok(match input::is_standard(path) {
        true => Box::new(io::stdin().lock()),
        false => Box::new(BufReader::new(File::open(path)?)),
    })
}

/// What records are compared by.
struct Replay<'a> {
    options: &'a Options,
    sides: &'a Sides,
    asking: Asking<'a>,
    new: Room,
    old: Room,
}

impl Replay<'_> {
    /// Compares a record; the error is a text for people.
    fn add(&mut self, record: &Record, line: u64, tally: &mut Tally) -> Result<(), String> {
        let listener = record.listener.as_deref();
        if let (Some(wanted), Some(listener)) = (&self.options.listener, listener)
            && wanted != listener
        {
            tally.elsewhere += 1;
            return Ok(());
        }
        if let Some(listener) = listener {
            tally.hear_of(listener);
        } else if self.sides.old.is_none() {
            return Err(format!(
                "error: `{}` says of no request which rule decided: line {line} is of the common log format\n\
                 help: `--old OLD` says what decided before\n",
                input::name(&self.options.log)
            ));
        }
        let is_asked = if record.is_ours() { record.decided.is_some() } else { record.request.is_some() };
        let is_of_rules = record.request.is_some() || !self.sides.new.are_alone;
        if !is_of_rules || (!is_asked && record.request.is_none()) {
            tally.undecided += 1;
            return Ok(());
        }
        let Some(new) = stand(&self.sides.new, record, self.options)? else {
            tally.add(gone(listener), line, String::new);
            return Ok(());
        };
        let now = self.asking.ruling(new, record, &mut self.new);
        if !is_asked {
            match now {
                Ruling::Refused(_) => tally.add(Comparison::Refused, line, String::new),
                Ruling::Decided(..) | Ruling::Untold(_) => tally.undecided += 1,
            }
            return Ok(());
        }
        let comparison = match (&self.sides.old, &record.decided) {
            (Some(old), decided) => match stand(old, record, self.options)? {
                None => gone(listener),
                Some(old) => {
                    let then = self.asking.ruling(old, record, &mut self.old);
                    if let Some(decided) = decided
                        && let Comparison::Changed(..) = comparison::with_log(decided, &then, old)
                    {
                        tally.against_log += 1;
                    }
                    comparison::of_two((&then, old), (&now, new))
                }
            },
            (None, Some(decided)) => comparison::with_log(decided, &now, new),
            (None, None) => return Ok(()),
        };
        tally.add(comparison, line, || record.summary());
        Ok(())
    }
}

/// Where a record is decided; nothing where there is no such listener, and an error where nobody says which it is.
fn stand<'r>(rules: &'r Rules, record: &Record, options: &Options) -> Result<Option<&'r Stand>, String> {
    let stand = rules.stand(record.listener.as_deref());
    if stand.is_none() && record.listener.is_none() {
        return Err(format!(
            "error: `{}` names no listener, and the configuration has not one that reads requests\n\
             help: `--listener NAME` says which it is\n",
            input::name(&options.log)
        ));
    }
    Ok(stand)
}

fn gone(listener: Option<&str>) -> Comparison {
    let name: String = listener.unwrap_or_default().chars().take(100).collect();
    Comparison::Untold(vec![format!("a listener `{name}`, which is not there")])
}

/// The command line.
#[derive(Debug, Default)]
struct Options {
    log: PathBuf,
    new: PathBuf,
    old: Option<PathBuf>,
    listener: Option<String>,
    absent: Vec<String>,
    same_rule: bool,
    samples: usize,
    json: bool,
}

impl Options {
    /// Nothing where help is wanted.
    fn read(arguments: Vec<OsString>) -> Result<Option<Options>, lexopt::Error> {
        let mut options = Options { samples: SAMPLES_DEFAULT, ..Options::default() };
        let mut files: Vec<PathBuf> = Vec::new();
        let mut parser = lexopt::Parser::from_args(arguments);
        while let Some(argument) = parser.next()? {
            match argument {
                Arg::Long("old") => options.old = Some(parser.value()?.into()),
                Arg::Long("listener") => options.listener = Some(parser.value()?.string()?),
                Arg::Long("absent") => options.absent.push(field(&parser.value()?.string()?)?),
                Arg::Long("same-rule") => options.same_rule = true,
                Arg::Long("samples") => options.samples = samples(&parser.value()?.string()?)?,
                Arg::Long("json") => options.json = true,
                Arg::Long("help") | Arg::Short('h') => return Ok(None),
                Arg::Value(file) => files.push(file.into()),
                _ => return Err(argument.unexpected()),
            }
        }
        let (log, new) = match <[PathBuf; 2]>::try_from(files) {
            Ok([log, new]) => (log, new),
            Err(_) => return Err("`replay` needs two files: pointsman replay LOG NEW".into()),
        };
        let standard = [Some(&log), Some(&new), options.old.as_ref()];
        if standard.into_iter().flatten().filter(|path| input::is_standard(path)).count() > 1 {
            return Err("standard input is one file, and `-` stands for several".into());
        }
        Ok(Some(Options { log, new, ..options }))
    }
}

/// A field as rules spell it.
fn field(word: &str) -> Result<String, String> {
    let rules = format!("if ({word} exists) {{ reject(); }}");
    let compiled = pointsman_rules::compile(&rules, &Targets::Any).ok();
    let field = compiled.and_then(|compiled| match &compiled.program.rules.first()?.condition {
        Condition::Test(test) => Some(test.field.to_string()),
        _ => None,
    });
    field.ok_or_else(|| format!("`--absent` takes a field such as `cookie[\"sid\"]`, not `{word}`"))
}

fn samples(word: &str) -> Result<usize, String> {
    let number = word.parse().ok().filter(|number| *number <= SAMPLES_MAX);
    number.ok_or_else(|| format!("`--samples` takes a number from 0 to {SAMPLES_MAX}, not `{word}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read() {
        let read = |words: &str| {
            Options::read(words.split(' ').filter(|word| !word.is_empty()).map(OsString::from).collect())
        };
        let words =
            "log a.toml --old b.rules --listener web --absent cookie[\"a\"] --same-rule --samples 0 --json";
        let options = read(words).expect("good").expect("no help");
        assert_eq!((options.log, options.new), ("log".into(), "a.toml".into()));
        assert_eq!((options.old, options.samples), (Some("b.rules".into()), 0));
        assert_eq!(
            (options.listener.as_deref(), options.absent),
            (Some("web"), vec!["cookie[\"a\"]".to_owned()])
        );
        assert!(options.same_rule && options.json);
        assert!(read("--help").expect("good").is_none());
        for bad in [
            "",
            "a",
            "a b c",
            "- -",
            "- a --old -",
            "a b --samples 101",
            "a b --old",
            "a b --what",
            "a b --absent cooky[\"a\"]",
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}

//! `pointsman replay`: which requests of a log new rules decide otherwise.

mod combined;
mod comparison;
mod lines;
mod options;
mod own_log;
mod progress;
mod record;
pub(crate) mod report;
mod ruling;
pub(crate) mod stand;
mod tally;

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::process::ExitCode;

use pointsman_rules::Targets;

use crate::check::{input, terminal};
use crate::usage::wrong_options;
use crate::{WRONG_USE, say};
use comparison::Comparison;
use lines::{Line, LogLines};
use options::{HELP, Options};
use progress::Progress;
use record::Record;
use ruling::{Asking, Room, Ruling};
use stand::{Rules, Sides, Stand};
use tally::Tally;

/// That nothing changes cannot be said.
const UNTOLD: u8 = 3;

/// Replays a log.
pub(crate) fn replay(arguments: Vec<OsString>) -> ExitCode {
    let options = match Options::read(arguments) {
        Ok(Some(options)) => options,
        Ok(None) => return say(&mut io::stdout(), HELP, 0),
        Err(error) => return wrong_options(HELP, &error),
    };
    let sides = match Sides::load(&options, terminal::colour(&io::stderr())) {
        Ok(sides) => sides,
        Err(complaint) => {
            let complaint = swapped(&options).unwrap_or(complaint);
            return say(&mut io::stderr(), &complaint, WRONG_USE);
        }
    };
    let tally = match replayed(&options, &sides) {
        Ok(tally) => tally,
        Err(complaint) => return say(&mut io::stderr(), &complaint, WRONG_USE),
    };
    let status = if tally.cut_off.is_some() { WRONG_USE } else { status(&tally, &options) };
    let text = if options.json { tally.json() } else { tally.text(terminal::colour(&io::stdout())) };
    let said = say(&mut io::stdout(), &text, status);
    let cut_off = tally.cut_off.as_ref().map(|why| {
        format!("error: {why}\nhelp: the lines before, up to line {}, are counted\n", tally.lines)
    });
    let last_words = format!("{}\n{}", tally.summary(), cut_off.unwrap_or_default());
    if say(&mut io::stderr(), &last_words, 0) == ExitCode::SUCCESS { said } else { ExitCode::FAILURE }
}

/// A change weighs more than what nobody can tell.
fn status(tally: &Tally, options: &Options) -> u8 {
    match tally.changed > 0 || (options.same_rule && tally.other_rule > 0) {
        true => 1,
        false if tally.untold > 0 || tally.unreadable > 0 || tally.compared == 0 => UNTOLD,
        false => 0,
    }
}

/// Every line of the log; the error is a text for people.
fn replayed(options: &Options, sides: &Sides) -> Result<Tally, String> {
    let why = |error: io::Error| input::unreadable(&options.log, &error);
    let unreadable = |why: String| format!("error: {why}\n");
    let source = opened(&options.log).and_then(lines::plain).map_err(|error| unreadable(why(error)))?;
    let mut lines = LogLines::of(source);
    let mut tally = Tally::new(options.samples);
    let host = options.host.as_deref().map(str::as_bytes);
    let asking = Asking { absent: &options.absent, host, is_tls: options.is_tls };
    let mut replay = Replay { options, sides, asking, new: Room::default(), old: Room::default() };
    let mut progress = Progress::new();
    let done = loop {
        let line = match lines.next() {
            Ok(Some(Line::Whole([]))) => continue,
            Ok(Some(Line::Whole(line))) => Record::read(line),
            Ok(Some(Line::TooLong)) => Err("it is longer than 64 KiB"),
            Ok(None) => break Ok(None),
            Err(error) => break Ok(Some(why(error))),
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
    (tally.cut_off, tally.lines, tally.bytes) = (done?, lines.number, lines.bytes);
    let is_none_read = tally.compared + tally.undecided + tally.elsewhere == 0;
    if let (Some(why), true) = (&tally.cut_off, is_none_read) {
        return Err(unreadable(why.clone()));
    }
    if let (Some((line, reason)), true) = (tally.unreadable_lines.first(), is_none_read) {
        let name = input::name(&options.log);
        let hint = match has_rules(&options.log) {
            true => "help: it is a rule set; the log comes first: pointsman replay LOG NEW\n",
            false => "",
        };
        return Err(format!("error: `{name}` is no log that can be read: of line {line}, {reason}\n{hint}"));
    }
    Ok(tally)
}

/// That a log stands where rules are wanted, as a text for people.
fn swapped(options: &Options) -> Option<String> {
    let files = [Some(&options.new), options.old.as_ref()];
    let log = files.into_iter().flatten().find(|path| !input::is_standard(path) && is_log(path))?;
    Some(format!(
        "error: `{}` is a log, and no rule set\n\
         help: the log comes first: pointsman replay LOG NEW [--old OLD]\n",
        input::name(log)
    ))
}

/// Whether the first line of a file that is not empty is of a log.
fn is_log(path: &Path) -> bool {
    let Ok(source) = opened(path).and_then(lines::plain) else { return false };
    let mut lines = LogLines::of(source);
    loop {
        match lines.next() {
            Ok(Some(Line::Whole([]))) => {}
            Ok(Some(Line::Whole(line))) => return Record::read(line).is_ok(),
            Ok(Some(Line::TooLong) | None) | Err(_) => return false,
        }
    }
}

/// Whether a file that is no log holds rules.
fn has_rules(path: &Path) -> bool {
    if input::is_standard(path) {
        return false;
    }
    input::is_configuration(path)
        || input::text(path).is_ok_and(|text| pointsman_rules::compile(&text, &Targets::Any).is_ok())
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
                "error: `{}` says of no request which rule decided: line {line} is of {}\n\
                 help: `--old OLD` says what decided before\n",
                input::name(&self.options.log),
                record.format.name()
            ));
        }
        let is_asked = if record.is_ours() { record.decided.is_some() } else { record.request.is_some() };
        let is_of_rules = record.request.is_some() || !self.sides.new.are_alone;
        if !is_of_rules || (!is_asked && record.request.is_none()) {
            tally.undecided += 1;
            return Ok(());
        }
        let Some(new) = stand(&self.sides.new, record, self.options)? else {
            tally.add(gone(listener), line, || record.summary());
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

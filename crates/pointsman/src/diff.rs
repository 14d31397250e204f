//! `pointsman diff`: which requests new rules decide otherwise than old ones, whatever requests there are.

pub(crate) mod report;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use lexopt::{Arg, ValueExt};
use pointsman_analysis::{Effort, RuleSide, Setting, differences};
use pointsman_config::{Protocol, Settings};
use pointsman_rules::Program;

use self::report::{Compared, Report};
use crate::check::terminal;
use crate::explain::place::DefaultPool;
use crate::replay::stand::{Rules, Stand, both};
use crate::usage::wrong_options;
use crate::{WRONG_USE, say};

/// Steps for the rules of one listener; it takes seconds to use them up.
const STEPS: u64 = 400_000_000;

const HELP: &str = "\
pointsman diff [--listener NAME] [--json] OLD NEW

    OLD, NEW           rules, or configurations (.toml) with the rules of their listeners (`-`: standard input); of rules
                       beside a configuration it is said what they change at its listener, of two configurations also
                       which settings differ
    --listener NAME    only this listener
    --json             the differences as JSON

exit status: 0 proved to be equal, 1 different, 2 wrong use or unreadable input, 3 not settled
";

/// Says where two rule sets decide differently, and what two configurations set otherwise.
pub(crate) fn diff(arguments: Vec<OsString>) -> ExitCode {
    let options = match Options::read(arguments) {
        Ok(Some(options)) => options,
        Ok(None) => return say(&mut io::stdout(), HELP, 0),
        Err(error) => return wrong_options(HELP, &error),
    };
    let read = both(&options.old, &options.new, options.listener.as_deref(), terminal::colour(&io::stderr()));
    let (old, new) = match read {
        Ok(rules) => rules,
        Err(complaint) => return say(&mut io::stderr(), &complaint, WRONG_USE),
    };
    let report = compared(&old, &new);
    let status = report.status();
    let text = if options.json { report.json() } else { report.text(terminal::colour(&io::stdout())) };
    let said = say(&mut io::stdout(), &text, status);
    let last_words = format!("{}\n", report.summary());
    if say(&mut io::stderr(), &last_words, 0) == ExitCode::SUCCESS { said } else { ExitCode::FAILURE }
}

struct Options {
    old: PathBuf,
    new: PathBuf,
    listener: Option<String>,
    json: bool,
}

impl Options {
    /// Nothing where help is wanted.
    fn read(arguments: Vec<OsString>) -> Result<Option<Options>, lexopt::Error> {
        let (mut files, mut listener, mut json) = (Vec::new(), None, false);
        let mut parser = lexopt::Parser::from_args(arguments);
        while let Some(argument) = parser.next()? {
            match argument {
                Arg::Long("json") => json = true,
                Arg::Long("listener") => listener = Some(parser.value()?.string()?),
                Arg::Long("help") | Arg::Short('h') => return Ok(None),
                Arg::Value(file) => files.push(PathBuf::from(file)),
                _ => return Err(argument.unexpected()),
            }
        }
        let Ok([old, new]) = <[PathBuf; 2]>::try_from(files) else {
            return Err("`diff` needs two rule sets: pointsman diff OLD NEW".into());
        };
        if [&old, &new].iter().all(|path| path.as_os_str() == "-") {
            return Err("only one of `OLD` and `NEW` can be standard input".into());
        }
        let is_toml = |path: &PathBuf| crate::check::input::is_configuration(path);
        if listener.is_some() && !is_toml(&old) && !is_toml(&new) {
            return Err("`--listener` needs a configuration, a file that ends in `.toml`".into());
        }
        Ok(Some(Options { old, new, listener, json }))
    }
}

/// Each listener that stands in both, beside those that stand in one alone.
pub(crate) fn compared(old: &Rules, new: &Rules) -> Report {
    compared_with(old, new, &Effort::new(STEPS))
}

/// The same, as long as it is of use to somebody.
pub(crate) fn compared_until(
    old: &Rules,
    new: &Rules,
    ends: impl Fn() -> bool + Send + Sync + 'static,
) -> Report {
    compared_with(old, new, &Effort::new(STEPS).until(ends))
}

fn compared_with(old: &Rules, new: &Rules, effort: &Effort) -> Report {
    let mut report = Report::default();
    if old.are_alone {
        let stands = old.stands.first().zip(new.stands.first());
        report.compared.extend(stands.map(|(old, new)| of_stands(old, new, true, effort)));
        return report;
    }
    let named =
        |rules: &'_ Rules, name: &str| rules.stands.iter().any(|stand| &*stand.place.listener == name);
    for now in &new.stands {
        let name = &*now.place.listener;
        match old.stands.iter().find(|stand| &*stand.place.listener == name) {
            Some(then) => report.compared.push(of_stands(then, now, false, effort)),
            None => report.only_new.push(name.to_owned()),
        }
    }
    let gone = old.stands.iter().map(|stand| &*stand.place.listener).filter(|name| !named(new, name));
    report.only_old.extend(gone.map(str::to_owned));
    if let (Some(then), Some(now)) = (&old.settings, &new.settings) {
        report.settings = Settings::changed(then, now, |name| named(old, name) && named(new, name));
    }
    report
}

fn of_stands(old: &Stand, new: &Stand, are_alone: bool, effort: &Effort) -> Compared {
    let [setting_then, setting] = [old, new].map(|stand| setting(stand, are_alone));
    let program = |stand: &Stand| stand.place.program.clone().unwrap_or_else(no_rules);
    let (then, now) = (program(old), program(new));
    let reads_requests = [old, new].iter().all(|stand| stand.place.protocol == Protocol::Http);
    // Of rules that are about connections it can be seen that they are the same, and not more.
    let effort = if reads_requests { effort.clone() } else { Effort::new(0) };
    let pools = [old, new].map(|stand| match &stand.place.default_pool {
        DefaultPool::Named(pool) => Some(pool.as_str()),
        DefaultPool::None | DefaultPool::Unknown => None,
    });
    let [old_pool, new_pool] = pools;
    let before = RuleSide { program: &then, default_pool: old_pool };
    let after = RuleSide { program: &now, default_pool: new_pool };
    let setting = setting.with_classes_of(&setting_then);
    let found = differences(before, after, &setting, effort);
    let reads_otherwise = old.place.protocol != new.place.protocol
        || format!("{:?}", setting_then.of_any_name()) != format!("{:?}", setting.of_any_name());
    let listener = new.place.listener.to_string();
    Compared::new(listener, [before, after], &setting, found, reads_requests, reads_otherwise)
}

/// How a listener sees requests; rules without one may stand at any.
fn setting(stand: &Stand, is_alone: bool) -> Setting {
    if is_alone {
        return Setting::default();
    }
    stand.place.setting()
}

/// Of a listener without rules.
fn no_rules() -> Arc<Program> {
    Arc::new(Program::of_places([]))
}

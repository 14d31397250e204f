//! The command line of `replay`.

use std::ffi::OsString;
use std::path::PathBuf;

use lexopt::{Arg, ValueExt};
use pointsman_http::{HeadLimits, RequestHead};
use pointsman_rules::{Condition, Targets};

use crate::check::input;

pub(super) const HELP: &str = "\
pointsman replay LOG NEW [OPTION...]

    LOG                   recorded requests, compressed by gzip or not (`-`: standard input): the switch's access log, or
                          lines of the common or combined format, as nginx and Apache write them
    NEW                   a rule set, or a configuration (.toml) with the rules of its listeners
    --old OLD             the rules before, likewise; what the log says, where it says it, without it
    --listener NAME       only what came to this listener
    --host NAME           the host that all requests asked for, where the log does not say it
    --scheme SCHEME       `http` or `https`, likewise; a configuration says it of its listeners
    --absent FIELD        a field that no request had, where the log does not say it; may be given several times
    --same-rule           a decision of another rule is a change, too, if the same comes of it
    --samples N           so many lines are shown of each kind of change, up to 100; 3
    --json                all of it as JSON

exit status: 0 nothing changes, 1 some decision does, 2 wrong use or unreadable input, 3 nothing does that can be told, or nothing was there
";

/// More samples of a kind of change are not asked for.
const SAMPLES_MAX: usize = 100;

/// Of each kind of change.
const SAMPLES_DEFAULT: usize = 3;

/// The command line.
#[derive(Debug, Default)]
pub(super) struct Options {
    pub(super) log: PathBuf,
    pub(super) new: PathBuf,
    pub(super) old: Option<PathBuf>,
    pub(super) listener: Option<String>,
    pub(super) host: Option<String>,
    /// Whether it came over TLS.
    pub(super) is_tls: Option<bool>,
    pub(super) absent: Vec<String>,
    pub(super) same_rule: bool,
    pub(super) samples: usize,
    pub(super) json: bool,
}

impl Options {
    /// Nothing where help is wanted.
    pub(super) fn read(arguments: Vec<OsString>) -> Result<Option<Options>, lexopt::Error> {
        let mut options = Options { samples: SAMPLES_DEFAULT, ..Options::default() };
        let mut files: Vec<PathBuf> = Vec::new();
        let mut parser = lexopt::Parser::from_args(arguments);
        while let Some(argument) = parser.next()? {
            match argument {
                Arg::Long("old") => options.old = Some(parser.value()?.into()),
                Arg::Long("listener") => options.listener = Some(parser.value()?.string()?),
                Arg::Long("host") => options.host = Some(host(parser.value()?.string()?)?),
                Arg::Long("scheme") => options.is_tls = Some(is_tls(&parser.value()?.string()?)?),
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
        let has_configuration =
            input::is_configuration(&new) || options.old.as_deref().is_some_and(input::is_configuration);
        if options.is_tls.is_some() && has_configuration {
            return Err(
                "`--scheme` is for rule sets: a configuration says whether its listeners speak TLS".into()
            );
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

/// A host as it would stand in a request.
fn host(word: String) -> Result<String, String> {
    let is_line = !word.is_empty() && !word.contains(['\r', '\n']);
    let head = format!("GET / HTTP/1.1\r\nhost: {word}\r\n\r\n");
    match RequestHead::default().parse(head.as_bytes(), &HeadLimits::default()) {
        Ok(true) if is_line => Ok(word),
        _ => Err(format!("`--host` takes a host such as `shop.example`, not `{word}`")),
    }
}

fn is_tls(word: &str) -> Result<bool, String> {
    match word {
        "http" => Ok(false),
        "https" => Ok(true),
        _ => Err(format!("`--scheme` takes `http` or `https`, not `{word}`")),
    }
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
        let options =
            read("log new.rules --host shop.example:8443 --scheme https").expect("good").expect("no help");
        assert_eq!((options.host.as_deref(), options.is_tls), (Some("shop.example:8443"), Some(true)));
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
            "a b --scheme ftp",
            "a b.toml --scheme http",
            "a b --scheme http --old c.toml",
            "a b --host a/b",
            "a b --host=",
            "a b --host a\r\nx:y",
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}

//! `pointsman ask`: whether a request for which a condition is true can get somewhere, by all the rules together.

mod answer;
#[cfg(test)]
mod vectors;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use lexopt::{Arg, ValueExt};
use pointsman_analysis::{Effort, Setting, prove};
use pointsman_config::{Plan, Protocol};
use pointsman_rules::{Colour, Diagnostic, Program, Severity, Targets, Tests, draw};

use crate::check::meaning::STEPS;
use crate::check::{input, setting, terminal};
use crate::explain::place::listener;
use crate::usage::wrong_options;
use crate::{WRONG_USE, say};
use answer::Answer;

const HELP: &str = "\
pointsman ask RULES QUESTION [OPTION...]

    RULES              a rule set, or a configuration (.toml) with the rules of a listener (`-`: standard input)
    QUESTION           can <condition> reach <target>?
                       a target is a pool, a server, reject, discard, redirect, respond, or default: no rule decides
    --listener NAME    which listener of a configuration; the first one where none is named
    --json             the answer as JSON

exit status: 0 yes, 1 no, 2 wrong use or unreadable or wrong input, 3 unknown
";

/// What the question is called in what is said about it.
const QUESTION: &str = "the question";

/// Answers a question.
pub(crate) fn ask(arguments: Vec<OsString>) -> ExitCode {
    let options = match Options::read(arguments) {
        Ok(Some(options)) => options,
        Ok(None) => return say(&mut io::stdout(), HELP, 0),
        Err(error) => return wrong_options(HELP, &error),
    };
    let (answer, warnings) = match answered(&options, terminal::colour(&io::stderr())) {
        Ok(answered) => answered,
        Err(complaint) => return say(&mut io::stderr(), &complaint, WRONG_USE),
    };
    let text = if options.json { answer.json() } else { answer.text() };
    let said = say(&mut io::stdout(), &text, answer.status());
    if say(&mut io::stderr(), &warnings, 0) == ExitCode::SUCCESS { said } else { ExitCode::FAILURE }
}

#[derive(Debug, Default)]
struct Options {
    rules: PathBuf,
    question: String,
    listener: Option<String>,
    json: bool,
}

impl Options {
    /// Nothing where help is wanted.
    fn read(arguments: Vec<OsString>) -> Result<Option<Options>, lexopt::Error> {
        let mut options = Options::default();
        let mut words = Vec::new();
        let mut parser = lexopt::Parser::from_args(arguments);
        while let Some(argument) = parser.next()? {
            match argument {
                Arg::Long("listener") => options.listener = Some(parser.value()?.string()?),
                Arg::Long("json") => options.json = true,
                Arg::Long("help") | Arg::Short('h') => return Ok(None),
                Arg::Value(word) => words.push(word),
                _ => return Err(argument.unexpected()),
            }
        }
        let mut words = words.into_iter();
        let (Some(rules), Some(question), None) = (words.next(), words.next(), words.next()) else {
            return Err("`ask` needs rules and a question in quotes: \
                        pointsman ask RULES 'can path under \"/a\" reach fast?'"
                .into());
        };
        (options.rules, options.question) = (rules.into(), question.string()?);
        Ok(Some(options))
    }
}

/// The rules that are asked about.
struct Subject {
    program: Arc<Program>,
    tests: Tests,
    targets: Targets,
    setting: Setting,
}

/// The answer and what is odd about the question; the error is a text for people.
fn answered(options: &Options, colour: Colour) -> Result<(Answer, String), String> {
    let Subject { program, tests, targets, setting } = match input::is_configuration(&options.rules) {
        true => of_configuration(options, colour)?,
        false => of_rules(options, colour)?,
    };
    let source = &options.question;
    let (assertions, warnings) = tests
        .question(source, &program, &targets)
        .map_err(|findings| draw(&findings, QUESTION, source, colour))?;
    let proof = prove(&program, &assertions, &setting, Effort::new(STEPS)).pop();
    let asked = assertions.list.first().zip(proof);
    let (assertion, proof) = asked.ok_or("error: nothing is asked\n")?;
    let answer = Answer::new(&proof, &assertion.destination, &program, &setting);
    Ok((answer, draw(&warnings, QUESTION, source, colour)))
}

fn of_rules(options: &Options, colour: Colour) -> Result<Subject, String> {
    let path = &options.rules;
    if options.listener.is_some() {
        return Err("error: `--listener` needs a configuration, a file that ends in `.toml`\n".to_owned());
    }
    let source = input::text(path).map_err(|message| format!("error: {message}\n"))?;
    let compiled = pointsman_rules::compile(&source, &Targets::Any)
        .map_err(|findings| errors(&findings, path, &source, colour))?;
    let program = Arc::new(compiled.program);
    Ok(Subject { program, tests: compiled.tests, targets: Targets::Any, setting: Setting::default() })
}

fn errors(findings: &[Diagnostic], path: &Path, source: &str, colour: Colour) -> String {
    let errors = findings.iter().filter(|finding| finding.severity == Severity::Error);
    draw(errors, &input::name(path), source, colour)
}

fn of_configuration(options: &Options, colour: Colour) -> Result<Subject, String> {
    let loaded = Plan::check_only(&options.rules).map_err(|problems| problems.render(colour))?;
    let plan = &loaded.plan;
    let listener = listener(plan, options.listener.as_deref())?;
    let name = &listener.name;
    if listener.protocol != Protocol::Http {
        return Err(format!(
            "error: the listener `{name}` reads no requests\n\
             help: `pointsman explain` says what becomes of a connection\n"
        ));
    }
    let used = listener.program.as_ref();
    let set = loaded.rule_sets.iter().find(|set| used.is_some_and(|used| Arc::ptr_eq(used, &set.program)));
    let set = set.ok_or_else(|| format!("error: the listener `{name}` has no rules\n"))?;
    Ok(Subject {
        program: set.program.clone(),
        tests: set.tests.clone(),
        targets: (*loaded.plan.targets).clone(),
        setting: setting(listener, plan),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read() {
        let read = |words: &[&str]| Options::read(words.iter().map(OsString::from).collect());
        let options = read(&["a", "--listener", "b", "can", "--json"]).expect("good").expect("no help");
        assert_eq!(
            (options.question.as_str(), options.listener.as_deref(), options.json),
            ("can", Some("b"), true)
        );
        assert!(read(&["--help"]).expect("good").is_none());
        for bad in [&[][..], &["a"], &["a", "b", "c"], &["--jsn", "a", "b"], &["a", "b", "--listener"]] {
            assert!(read(bad).is_err(), "{bad:?}");
        }
    }
}

//! What is to be tested: rule sets with the tests beside them and in files of their own.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pointsman_config::{Plan, RuleSet};
use pointsman_rules::{
    Assertions, Colour, Diagnostic, Further, Program, Severity, Targets, TestCase, Tests, draw,
};

use super::Options;
use crate::check::input;
use crate::explain::place::Place;

/// A rule set, where it is asked, and its tests.
pub(super) struct Suite {
    pub(super) name: String,
    pub(super) program: Arc<Program>,
    pub(super) place: Place,
    /// What its rules can name.
    pub(super) targets: Targets,
    pub(super) files: Vec<TestFile>,
    /// What further files of tests need to know of it; its own tests are among the files.
    pub(super) beside: Tests,
}

/// A text with tests in it.
pub(super) struct TestFile {
    pub(super) name: String,
    pub(super) source: Arc<str>,
    pub(super) cases: Vec<TestCase>,
    /// Those in the rule set itself are for `check`.
    pub(super) assertions: Assertions,
}

/// All that is to be run, and what was odd about it.
pub(super) struct Loaded {
    pub(super) suites: Vec<Suite>,
    /// A text for people.
    pub(super) warnings: String,
}

/// Reads it all; the error is a text for people.
pub(super) fn load(options: &Options, colour: Colour) -> Result<Loaded, String> {
    match input::is_configuration(&options.rules) {
        true => of_configuration(options, colour),
        false => of_rules(options, colour),
    }
}

fn of_rules(options: &Options, colour: Colour) -> Result<Loaded, String> {
    if options.listener.is_some() {
        return Err("error: `--listener` needs a configuration, a file that ends in `.toml`\n".to_owned());
    }
    let (name, source) = (input::name(&options.rules), text(&options.rules)?);
    let compiled = pointsman_rules::compile(&source, &Targets::Any)
        .map_err(|findings| drawn(&name, &source, &findings, Severity::Error, colour))?;
    let program = Arc::new(compiled.program);
    let path = options.rules.clone();
    let set = RuleSet { path, name, source: source.into(), program: program.clone(), tests: compiled.tests };
    let (further, warnings) = further(&options.tests, &set.tests, &program, &Targets::Any, colour)?;
    let place = Place::of_no_listener(program, Vec::new());
    Ok(Loaded { suites: vec![suite(set, place, Targets::Any, further)], warnings })
}

fn of_configuration(options: &Options, colour: Colour) -> Result<Loaded, String> {
    let loaded = Plan::check_only(&options.rules).map_err(|problems| problems.render(colour))?;
    let plan = &loaded.plan;
    let wanted = match &options.listener {
        None => None,
        Some(name) => {
            let listener = plan.listener_named(name).ok_or_else(|| {
                let names: Vec<_> =
                    plan.listeners.iter().map(|listener| format!("`{}`", listener.name)).collect();
                format!(
                    "error: there is no listener `{name}`\nhelp: the listeners are {}\n",
                    names.join(", ")
                )
            })?;
            let program = listener.program.as_ref();
            Some(program.ok_or_else(|| format!("error: the listener `{name}` has no rules\n"))?)
        }
    };
    let mut sets = loaded.rule_sets;
    sets.retain(|set| wanted.is_none_or(|program| Arc::ptr_eq(program, &set.program)));
    let (mut tests, mut warnings) = (None, String::new());
    if !options.tests.is_empty() {
        let [set] = sets.as_slice() else {
            let names: Vec<_> = sets.iter().map(|set| format!("`{}`", set.name)).collect();
            return Err(format!(
                "error: the configuration names several rule sets: {}\n\
                 help: `--listener NAME` says whose rules the files of tests are about\n",
                names.join(", ")
            ));
        };
        let found = further(&options.tests, &set.tests, &set.program, &loaded.plan.targets, colour)?;
        (tests, warnings) = (Some(found.0), found.1);
    }
    let suites = sets.into_iter().filter_map(|set| {
        let is_wanted = |name: &str| options.listener.as_deref().is_none_or(|wanted| wanted == name);
        let mut listeners = plan.listeners.iter();
        let listener = listeners.find(|listener| {
            let program = listener.program.as_ref();
            is_wanted(&listener.name) && program.is_some_and(|program| Arc::ptr_eq(program, &set.program))
        })?;
        let place = Place::of_listener(listener, plan, &[]);
        Some(suite(set, place, (*loaded.plan.targets).clone(), tests.take().unwrap_or_default()))
    });
    Ok(Loaded { suites: suites.collect(), warnings })
}

fn suite(set: RuleSet, place: Place, targets: Targets, further: Vec<TestFile>) -> Suite {
    let mut beside = set.tests;
    let cases = std::mem::take(&mut beside.cases);
    let own =
        TestFile { name: set.name.clone(), source: set.source, cases, assertions: Assertions::default() };
    let files = std::iter::once(own).chain(further).collect();
    Suite { name: set.name, program: set.program, place, targets, files, beside }
}

/// Files of tests, and what is odd about them.
fn further(
    paths: &[PathBuf],
    beside: &Tests,
    program: &Program,
    targets: &Targets,
    colour: Colour,
) -> Result<(Vec<TestFile>, String), String> {
    let (mut files, mut warnings, mut wrong) = (Vec::new(), String::new(), String::new());
    for path in paths {
        let (name, source) = (input::name(path), text(path)?);
        match beside.further(&source, program, targets) {
            Ok((Further { cases, assertions }, findings)) => {
                warnings.push_str(&drawn(&name, &source, &findings, Severity::Warning, colour));
                files.push(TestFile { name, source: source.into(), cases, assertions });
            }
            Err(findings) => wrong.push_str(&drawn(&name, &source, &findings, Severity::Error, colour)),
        }
    }
    if wrong.is_empty() { Ok((files, warnings)) } else { Err(wrong) }
}

fn text(path: &Path) -> Result<String, String> {
    input::text(path).map_err(|message| format!("error: {message}\n"))
}

/// The findings of a severity and above, under their lines.
fn drawn(name: &str, source: &str, findings: &[Diagnostic], from: Severity, colour: Colour) -> String {
    draw(findings.iter().filter(|finding| finding.severity >= from), name, source, colour)
}

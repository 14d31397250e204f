//! `pointsman check`: everything that is wrong with configurations and rule sets.

mod asserted;
pub(crate) mod candidate;
mod changed;
mod costs;
pub(crate) mod doubt;
pub(crate) mod finding;
pub(crate) mod input;
pub(crate) mod meaning;
pub(crate) mod printed;
pub(crate) mod terminal;

use std::collections::HashSet;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lexopt::{Arg, ValueExt};
use pointsman_analysis::{Effort, Setting};
use pointsman_bench::read_time;
use pointsman_config::{Listener, Loaded, Plan, Protocol, RuleSet};
use pointsman_rules::{Colour, Diagnostic, Program, Severity, Suggestions, Targets, draw};

use crate::explain::place::Place;
use crate::usage::wrong_options;
use crate::{WRONG_USE, say};
use asserted::Asserted;
use costs::BodyCosts;
use finding::to_json;
use meaning::{About, Meaning, STEPS};

const HELP: &str = "\
pointsman check [--json] [--fail-on LEVEL] [--rule LABEL]... [--within TIME] FILE...

    FILE               a configuration (.toml), with the rules it names, or rules by themselves (`-`: standard input)
    --fail-on LEVEL    what makes the exit status 1: error, warning (the default) or note
    --rule LABEL       of what rules mean together, only what is about this rule: much sooner, where one was changed
    --within TIME      how long it is looked for what rules mean together: 200ms, 30s, 5m; the rest is unknown then. Without
                       it, until the work is too much, which is the same on every machine
    --json             findings as JSON

exit status: 0 fine, 1 findings of that level or above, 2 wrong use or unreadable input
";

/// Reports what is wrong with each file.
pub(crate) fn check(arguments: Vec<OsString>) -> ExitCode {
    let options = match Options::read(arguments) {
        Ok(Some(options)) => options,
        Ok(None) => return say(&mut io::stdout(), HELP, 0),
        Err(error) => return wrong_options(HELP, &error),
    };
    let mut report = Report::default();
    let effort = options.effort();
    for path in &options.files {
        match look_at(path, &options.rules, &effort) {
            Ok(looked) => report.add(looked),
            Err(message) => report.unreadable.push(message),
        }
    }
    let unknown_rules = report.unknown_rules(&options.rules);
    report.unreadable.extend(unknown_rules);
    let status = report.status(options.fail_on);
    let findings = if options.json { report.json() } else { report.drawn(terminal::colour(&io::stdout())) };
    let said = say(&mut io::stdout(), &findings, status);
    // Programs find them among the rest.
    let body_costs = if options.json { String::new() } else { report.drawn_costs() };
    let summary = report.summary();
    let last_words = format!("{}{}{body_costs}{summary}\n", report.complaints(), report.costs);
    if say(&mut io::stderr(), &last_words, 0) == ExitCode::SUCCESS { said } else { ExitCode::FAILURE }
}

struct Options {
    json: bool,
    fail_on: Severity,
    rules: Vec<String>,
    /// For what rules mean together.
    within: Option<Duration>,
    files: Vec<PathBuf>,
}

impl Options {
    /// How much may be tried of each rule set, from now on.
    fn effort(&self) -> Effort {
        let effort = Effort::new(STEPS);
        // A time that never comes is none.
        match self.within.and_then(|within| Instant::now().checked_add(within)) {
            Some(end) => effort.until(move || Instant::now() >= end),
            None => effort,
        }
    }

    /// Nothing where help is wanted.
    fn read(arguments: Vec<OsString>) -> Result<Option<Options>, lexopt::Error> {
        let mut options = Options {
            json: false,
            fail_on: Severity::Warning,
            rules: Vec::new(),
            within: None,
            files: Vec::new(),
        };
        let mut parser = lexopt::Parser::from_args(arguments);
        while let Some(argument) = parser.next()? {
            match argument {
                Arg::Long("json") => options.json = true,
                Arg::Long("fail-on") => options.fail_on = level(&parser.value()?.string()?)?,
                Arg::Long("rule") => options.rules.push(parser.value()?.string()?),
                Arg::Long("within") => options.within = Some(read_time(&parser.value()?.string()?)?),
                Arg::Long("help") | Arg::Short('h') => return Ok(None),
                Arg::Value(file) => options.files.push(file.into()),
                _ => return Err(argument.unexpected()),
            }
        }
        match options.files.is_empty() {
            true => Err("`check` needs a file: pointsman check FILE...".into()),
            false => Ok(Some(options)),
        }
    }
}

fn level(word: &str) -> Result<Severity, String> {
    match word {
        "error" => Ok(Severity::Error),
        "warning" => Ok(Severity::Warning),
        "note" => Ok(Severity::Note),
        _ => Err(format!("`--fail-on` takes `error`, `warning` or `note`, not `{word}`")),
    }
}

/// A source text and what was found in it.
struct Text {
    name: String,
    language: Language,
    source: Arc<str>,
    diagnostics: Vec<Diagnostic>,
    /// What the analyst adds to them.
    meanings: Vec<Meaning>,
}

impl Text {
    /// All findings in the order of the text.
    fn sorted(&self) -> Vec<&Diagnostic> {
        let mut all: Vec<_> = self.all().collect();
        all.sort_by_key(|finding| (finding.span.start, finding.span.end));
        all
    }

    fn all(&self) -> impl Iterator<Item = &Diagnostic> {
        self.diagnostics.iter().chain(self.meanings.iter().map(|meaning| &meaning.diagnostic))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Language {
    Toml,
    Rules,
}

/// What stands behind a file of the command line.
struct Looked {
    /// Of a configuration only the texts that something was found in.
    texts: Vec<Text>,
    is_configuration: bool,
    /// How many were compiled; not known of a configuration that has errors.
    rule_sets: usize,
    /// A line about each rule set that is large enough to have a cost of its own.
    costs: String,
    body_costs: Vec<BodyCosts>,
    asserted: Asserted,
    /// The labels of all rules that compile.
    labels: Vec<Box<str>>,
}

/// What was found behind a file of the command line, or why it cannot be read.
fn look_at(path: &Path, rules: &[String], effort: &Effort) -> Result<Looked, String> {
    if input::is_configuration(path) {
        return look_at_configuration(path, rules, effort);
    }
    let source = input::text(path)?;
    let name = input::name(path);
    let (mut asserted, mut labels) = (Asserted::default(), Vec::new());
    let (diagnostics, costs, body_costs, meanings) = match pointsman_rules::compile(&source, &Targets::Any) {
        Ok(compiled) => {
            let program = Arc::new(compiled.program);
            let settings = [Setting::default()];
            let mut meanings = Meaning::of(&program, &settings, &About::named(&program, rules), effort);
            let proofs = Asserted::of(&program, &compiled.tests.assertions, &settings, effort);
            asserted = proofs.0;
            labels = labels_of(&program);
            meanings.extend(proofs.1);
            (compiled.warnings, cost(&name, &program), BodyCosts::of(&name, &program), meanings)
        }
        Err(diagnostics) => (diagnostics, String::new(), None, Vec::new()),
    };
    let body_costs = body_costs.into_iter().collect();
    let text = Text { name, language: Language::Rules, source: source.into(), diagnostics, meanings };
    let texts = vec![text];
    Ok(Looked { texts, is_configuration: false, rule_sets: 1, costs, body_costs, asserted, labels })
}

fn look_at_configuration(path: &Path, rules: &[String], effort: &Effort) -> Result<Looked, String> {
    let (mut asserted, mut labels) = (Asserted::default(), Vec::new());
    let (problems, rule_sets, costs, body_costs, meant) = match Plan::check_only(path) {
        Ok(loaded) => {
            let sets = loaded.rule_sets.iter();
            let body_costs = sets.filter_map(|set| BodyCosts::of(&set.name, &set.program)).collect();
            let meant = meant(&loaded, rules, effort, &mut asserted);
            labels.extend(loaded.rule_sets.iter().flat_map(|set| labels_of(&set.program)));
            (loaded.warnings, rule_sets(&loaded.plan), costs(&loaded.plan), body_costs, meant)
        }
        Err(problems) => (problems, 0, String::new(), Vec::new(), Vec::new()),
    };
    if problems.is_unreadable() {
        let messages: Vec<_> = problems.diagnostics().map(|(_, finding)| finding.message.as_str()).collect();
        return Err(messages.join("; "));
    }
    let configuration = path.display().to_string();
    let texts = problems.files().iter().map(|file| Text {
        name: file.name.clone(),
        language: if file.name == configuration { Language::Toml } else { Language::Rules },
        source: file.source.clone(),
        diagnostics: file.diagnostics.clone(),
        meanings: Vec::new(),
    });
    let mut texts: Vec<_> = texts.collect();
    for text in meant {
        match texts.iter_mut().find(|known| known.name == text.name) {
            Some(known) => known.meanings.extend(text.meanings),
            None => texts.push(text),
        }
    }
    Ok(Looked { texts, is_configuration: true, rule_sets, costs, body_costs, asserted, labels })
}

/// The rules of a configuration of which the analyst has something to say; what is asserted of them is counted.
fn meant(loaded: &Loaded, rules: &[String], effort: &Effort, asserted: &mut Asserted) -> Vec<Text> {
    let mut of_set = |set: &RuleSet| {
        let uses = loaded.plan.listeners.iter().filter(|listener| {
            let program = listener.program.as_ref();
            listener.protocol == Protocol::Http && program.is_some_and(|used| Arc::ptr_eq(used, &set.program))
        });
        let settings: Vec<_> = uses.map(|listener| setting(listener, &loaded.plan)).collect();
        let mut meanings = Meaning::of(&set.program, &settings, &About::named(&set.program, rules), effort);
        let proofs = Asserted::of(&set.program, &set.tests.assertions, &settings, effort);
        asserted.add(proofs.0);
        meanings.extend(proofs.1);
        let source = set.source.clone();
        Text { name: set.name.clone(), language: Language::Rules, source, diagnostics: Vec::new(), meanings }
    };
    loaded.rule_sets.iter().map(&mut of_set).filter(|text| !text.meanings.is_empty()).collect()
}

fn labels_of(program: &Program) -> Vec<Box<str>> {
    program.rules.iter().chain(&program.fallback).map(|rule| rule.label.clone()).collect()
}

/// What the analyst is to know of a listener.
pub(crate) fn setting(listener: &Listener, plan: &Plan) -> Setting {
    Place::of_listener(listener, plan, &[]).setting()
}

/// How many rules files a plan was made of: listeners may share one.
fn rule_sets(plan: &Plan) -> usize {
    let programs = plan.listeners.iter().filter_map(|listener| listener.program.as_ref());
    programs.map(Arc::as_ptr).collect::<HashSet<_>>().len()
}

/// `listener shop: one request asks at most 3 of 2000 rules`
fn costs(plan: &Plan) -> String {
    let programs = plan.listeners.iter().filter_map(|listener| Some((listener, listener.program.as_ref()?)));
    programs.map(|(listener, program)| cost(&format!("listener {}", listener.name), program)).collect()
}

fn cost(name: &str, program: &Program) -> String {
    let certificate = program.certificate();
    if certificate.is_indexed() { format!("{name}: {certificate}\n") } else { String::new() }
}

#[derive(Default)]
struct Report {
    texts: Vec<Text>,
    unreadable: Vec<String>,
    configurations: usize,
    rule_sets: usize,
    costs: String,
    body_costs: Vec<BodyCosts>,
    asserted: Asserted,
    labels: Vec<Box<str>>,
}

impl Report {
    fn add(&mut self, looked: Looked) {
        self.texts.extend(looked.texts);
        self.configurations += usize::from(looked.is_configuration);
        self.rule_sets += looked.rule_sets;
        self.costs.push_str(&looked.costs);
        self.body_costs.extend(looked.body_costs);
        self.asserted.add(looked.asserted);
        self.labels.extend(looked.labels);
    }

    /// Complaints about labels that no rule has. Of rules that do not compile none are known.
    fn unknown_rules(&self, rules: &[String]) -> Vec<String> {
        let mut compiled = self.texts.iter().flat_map(|text| &text.diagnostics);
        if compiled.any(|finding| finding.severity == Severity::Error) {
            return Vec::new();
        }
        let suggestions = Suggestions::default();
        let unknown = rules.iter().filter(|rule| !self.labels.iter().any(|label| **label == ***rule));
        let complaint = |rule: &String| {
            let nearest = suggestions.nearest(rule, self.labels.iter().map(|label| &**label));
            let advice = nearest.map(|label| format!("; did you mean `{label}`?")).unwrap_or_default();
            format!("no rule `{rule}`{advice}")
        };
        unknown.map(complaint).collect()
    }

    fn diagnostics(&self) -> impl Iterator<Item = &Diagnostic> {
        self.texts.iter().flat_map(Text::all)
    }

    /// What cannot be read might hold anything, so it weighs more than what was found.
    fn status(&self, fail_on: Severity) -> u8 {
        match self.diagnostics().any(|finding| finding.severity >= fail_on) {
            _ if !self.unreadable.is_empty() => WRONG_USE,
            found => u8::from(found),
        }
    }

    fn drawn(&self, colour: Colour) -> String {
        let drawn = |text: &Text| draw(text.sorted(), &text.name, &text.source, colour);
        self.texts.iter().map(drawn).collect()
    }

    fn json(&self) -> String {
        let findings: Vec<_> = self.texts.iter().flat_map(to_json).collect();
        let costs: Vec<_> = self.body_costs.iter().map(BodyCosts::to_json).collect();
        let Asserted { stated, proved } = self.asserted;
        let whole = serde_json::json!({
            "version": 1,
            "findings": findings,
            "body_costs": costs,
            "assertions": { "stated": stated, "proved": proved },
        });
        format!("{whole:#}\n")
    }

    fn drawn_costs(&self) -> String {
        self.body_costs.iter().map(BodyCosts::text).collect()
    }

    fn complaints(&self) -> String {
        self.unreadable.iter().map(|message| format!("error: {message}\n")).collect()
    }

    /// In how many files what was found, those that a configuration names among them.
    fn summary(&self) -> String {
        let count = |severity| self.diagnostics().filter(|finding| finding.severity == severity).count();
        let counted = [
            (count(Severity::Error), "error"),
            (count(Severity::Warning), "warning"),
            (count(Severity::Note), "note"),
        ];
        let found: Vec<_> = counted
            .into_iter()
            .filter(|(number, _)| *number > 0)
            .map(|(number, what)| plural(number, what))
            .collect();
        if found.is_empty() && self.unreadable.is_empty() {
            return self.all_clear();
        }
        let texts = self.texts.iter().filter(|text| text.all().next().is_some());
        let files = texts.map(|text| text.name.as_str()).collect::<HashSet<_>>().len();
        let found = match found.is_empty() {
            true => "no findings".to_owned(),
            false => format!("{} in {}", found.join(", "), plural(files, "file")),
        };
        let unreadable = match self.unreadable.len() {
            0 => String::new(),
            number => format!(", {number} unreadable"),
        };
        let proved = self.asserted.shown().map(|proved| format!("; {proved}")).unwrap_or_default();
        format!("{found}{unreadable}{proved}")
    }

    /// `ok: 1 configuration, 2 rule sets, no findings`
    fn all_clear(&self) -> String {
        let read = [(self.configurations, "configuration"), (self.rule_sets, "rule set")];
        let read = read.into_iter().filter(|(number, _)| *number > 0);
        let read: Vec<_> =
            read.map(|(number, what)| plural(number, what)).chain(self.asserted.shown()).collect();
        format!("ok: {}, no findings", read.join(", "))
    }
}

/// How many there are of something.
pub(crate) fn plural(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use pointsman_rules::Span;

    use super::*;

    fn report(severities: &[Severity]) -> Report {
        let finding = |severity: &Severity| Diagnostic {
            severity: *severity,
            ..Diagnostic::error(Span::default(), "no matter")
        };
        let diagnostics = severities.iter().map(finding).collect();
        let meanings = Vec::new();
        let text =
            Text { name: "a".into(), language: Language::Rules, source: "".into(), diagnostics, meanings };
        Report { texts: vec![text], rule_sets: 1, ..Report::default() }
    }

    #[test]
    fn summaries_count_what_there_is() {
        use Severity::{Error, Note, Warning};
        assert_eq!(report(&[]).summary(), "ok: 1 rule set, no findings");
        let both = Report { configurations: 1, rule_sets: 2, ..report(&[]) };
        assert_eq!(both.summary(), "ok: 1 configuration, 2 rule sets, no findings");
        let unread = Report { unreadable: vec!["why".into()], ..Report::default() };
        assert_eq!(unread.summary(), "no findings, 1 unreadable");
        assert_eq!(report(&[Error, Warning, Error]).summary(), "2 errors, 1 warning in 1 file");
        let two = [report(&[Note]), report(&[]), report(&[Note])];
        let texts = two.into_iter().flat_map(|report| report.texts).zip(["a", "b", "c"]);
        let texts = texts.map(|(text, name)| Text { name: name.into(), ..text }).collect();
        assert_eq!(Report { texts, ..Report::default() }.summary(), "2 notes in 2 files");
        let unreadable = Report { unreadable: vec!["why".into()], ..report(&[Error]) };
        assert_eq!(unreadable.summary(), "1 error in 1 file, 1 unreadable");
    }

    #[test]
    fn large_rule_sets_have_a_cost() {
        let cost_of = |rules: usize| {
            let source: String =
                (0..rules).map(|n| format!("if (host == \"h{n}\") {{ discard(); }}\n")).collect();
            cost("a", &pointsman_rules::compile(&source, &Targets::Any).expect("a program").program)
        };
        assert_eq!(cost_of(16), "");
        assert_eq!(cost_of(2000), "a: one request asks at most 1 of 2000 rules\n");
    }

    #[test]
    fn the_level_says_what_counts() {
        use Severity::{Error, Note, Warning};
        assert_eq!(report(&[]).status(Note), 0);
        assert_eq!(report(&[Note]).status(Note), 1);
        assert_eq!(report(&[Note]).status(Warning), 0);
        assert_eq!(report(&[Warning]).status(Warning), 1);
        assert_eq!(report(&[Warning]).status(Error), 0);
        assert_eq!(report(&[Warning, Error]).status(Error), 1);
        assert_eq!(Report { unreadable: vec!["why".into()], ..report(&[]) }.status(Error), WRONG_USE);
    }

    #[test]
    fn options_are_read() {
        let read = |words: &[&str]| Options::read(words.iter().map(OsString::from).collect());
        let options = read(&["--fail-on", "note", "a", "--json", "b"]).expect("good").expect("no help");
        assert_eq!((options.fail_on, options.json, options.files.len()), (Severity::Note, true, 2));
        assert!(read(&["--help", "a"]).expect("good").is_none());
        let within = read(&["--within", "1500ms", "a"]).expect("good").expect("no help").within;
        assert_eq!(within, Some(Duration::from_millis(1500)));
        for bad in ["", "--fail-on all a", "--jsn a", "a --fail-on", "a --within", "a --within soon"] {
            let words: Vec<_> = bad.split_whitespace().collect();
            assert!(read(&words).is_err(), "{bad:?}");
        }
    }
}

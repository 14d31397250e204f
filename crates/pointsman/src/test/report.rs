//! What became of the tests, as text for people and as JSON for programs.

use std::sync::Arc;

use pointsman_rules::{Colour, Lines};
use serde_json::{Value, json};

use super::assertion;
use super::coverage::{Coverage, percent};
use super::mutants::Mutation;
use super::suite::Suite;
use super::trial::{self, Verdict};
use crate::check::plural;
use crate::check::terminal::{Style, cell};

/// What became of the tests of some rule sets.
pub(super) struct Report {
    suites: Vec<Ran>,
}

/// What became of the tests of one rule set.
struct Ran {
    name: String,
    tests: Vec<Test>,
    coverage: Coverage,
}

struct Test {
    name: String,
    file: String,
    source: Arc<str>,
    line: usize,
    verdict: Verdict,
}

impl Report {
    /// Runs all tests.
    pub(super) fn of(suites: &[Suite]) -> Report {
        Report { suites: suites.iter().map(ran).collect() }
    }

    /// How many tests there are.
    pub(super) fn tests(&self) -> usize {
        self.suites.iter().map(|suite| suite.tests.len()).sum()
    }

    fn failed(&self) -> usize {
        let tests = self.suites.iter().flat_map(|suite| &suite.tests);
        tests.filter(|test| test.verdict != Verdict::Passed).count()
    }

    /// Whether every test passed.
    pub(super) fn all_passed(&self) -> bool {
        self.failed() == 0
    }

    /// Whether less than so many percent of the branches of all rule sets were taken, and the sentence that says so.
    pub(super) fn falls_under(&self, wanted: u8) -> Option<String> {
        let (taken, all) = self.branches();
        let is_under = taken * 100 < all * usize::from(wanted);
        is_under.then(|| {
            format!("{} % of the branches are taken, and {wanted} % are wanted", percent(taken, all))
        })
    }

    fn branches(&self) -> (usize, usize) {
        let branches = self.suites.iter().map(|suite| suite.coverage.branches());
        branches.fold((0, 0), |(taken, all), (more, of)| (taken + more, all + of))
    }

    /// For people.
    pub(super) fn text(&self, colour: Colour) -> String {
        let several = self.suites.len() > 1;
        let mut text = String::new();
        for suite in &self.suites {
            if several {
                text.push_str(&format!("{}\n", cell(&suite.name, 0, Style::Bold, colour)));
            }
            for test in &suite.tests {
                text.push_str(&test.text(colour));
            }
            if !suite.tests.is_empty() {
                text.push('\n');
            }
            text.push_str(&suite.covered(colour));
            if several {
                text.push('\n');
            }
        }
        text
    }

    /// `3 tests: 2 passed, 1 failed`
    pub(super) fn summary(&self) -> String {
        let (tests, failed) = (self.tests(), self.failed());
        format!("{}: {} passed, {failed} failed", plural(tests, "test"), tests - failed)
    }

    /// For programs, with what became of mutants where there are some.
    pub(super) fn json(&self, mutation: Option<&Mutation>) -> String {
        let sets = self.suites.iter().map(|suite| {
            let tests: Vec<_> = suite.tests.iter().map(Test::to_json).collect();
            json!({ "rules": suite.name, "tests": tests, "coverage": suite.coverage.to_json() })
        });
        let (taken, all) = self.branches();
        let mut report = json!({
            "version": 1,
            "passed": self.tests() - self.failed(),
            "failed": self.failed(),
            "percent": percent(taken, all),
            "rule_sets": sets.collect::<Vec<_>>(),
        });
        if let Some(mutation) = mutation {
            report["mutants"] = mutation.to_json();
        }
        format!("{report:#}\n")
    }
}

fn ran(suite: &Suite) -> Ran {
    let mut coverage = Coverage::new(&suite.program);
    let mut tests = Vec::new();
    for file in &suite.files {
        let lines = Lines::of(&file.source);
        for case in &file.cases {
            tests.push(Test {
                name: case.name.to_string(),
                file: file.name.clone(),
                source: file.source.clone(),
                line: lines.line(case.span.start),
                verdict: trial::run(case, &suite.place, &suite.program, &mut coverage),
            });
        }
        tests.extend(assertion::all(suite, file).map(|(assertion, verdict)| Test {
            name: format!("assert {}", assertion.name),
            file: file.name.clone(),
            source: file.source.clone(),
            line: lines.line(assertion.span.start),
            verdict,
        }));
    }
    Ran { name: suite.name.clone(), tests, coverage }
}

impl Ran {
    /// How much of the rules the tests took, and what they never took.
    fn covered(&self, colour: Colour) -> String {
        let ((rules, all_rules), (taken, all)) = (self.coverage.rules(), self.coverage.branches());
        let share = percent(taken, all);
        let mut text = format!("{rules} of {all_rules} rules taken, {taken} of {all} branches ({share} %)\n");
        let width = self.coverage.gaps().map(|(label, _)| label.chars().count()).max().unwrap_or(0);
        for (label, gap) in self.coverage.gaps() {
            text.push_str(&format!("  {}  {gap}\n", cell(label, width, Style::Cyan, colour)));
        }
        text
    }
}

impl Test {
    fn text(&self, colour: Colour) -> String {
        let place = format!("{}:{}", self.file, self.line);
        match &self.verdict {
            Verdict::Passed => format!("{}  {}\n", cell("ok", 6, Style::Green, colour), self.name),
            Verdict::Failed { expected, seen, why } => {
                let why = why.as_ref().map(|why| format!("        {why}\n")).unwrap_or_default();
                format!(
                    "{}  {} ({place})\n        expected {expected}\n        seen     {seen}\n{why}",
                    cell("FAILED", 6, Style::Red, colour),
                    self.name
                )
            }
            Verdict::Never(error) => {
                let drawn = error.render(&self.file, &self.source, colour);
                let drawn: String =
                    drawn.trim_end().lines().map(|line| format!("        {line}\n")).collect();
                format!("{}  {} ({place})\n{drawn}", cell("FAILED", 6, Style::Red, colour), self.name)
            }
            Verdict::Impossible(sentence) => format!(
                "{}  {} ({place})\n        {sentence}\n",
                cell("FAILED", 6, Style::Red, colour),
                self.name
            ),
        }
    }

    fn to_json(&self) -> Value {
        let mut object = json!({ "name": self.name, "file": self.file, "line": self.line });
        match &self.verdict {
            Verdict::Passed => object["result"] = json!("passed"),
            Verdict::Failed { expected, seen, why } => {
                object["result"] = json!("failed");
                object["expected"] = json!(expected);
                object["seen"] = json!(seen);
                if let Some(why) = why {
                    object["why"] = json!(why);
                }
            }
            Verdict::Impossible(sentence) => {
                object["result"] = json!("failed");
                object["why"] = json!(sentence);
            }
            Verdict::Never(error) => {
                object["result"] = json!("failed");
                object["why"] = json!(error.message);
                if let Some(help) = &error.help {
                    object["help"] = json!(help);
                }
            }
        }
        object
    }
}

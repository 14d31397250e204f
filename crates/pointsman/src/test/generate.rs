//! `pointsman test --generate`: tests made of the rules themselves, which state what the engine does now.

mod writing;

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

use pointsman_analysis::{Effort, Reach, Sample, Samples, Why, samples};
use pointsman_rules::{Cause, Expectation, Field, Given, OwnedValue, Program, RuleIndex, Span, TestCase};

use super::coverage::Coverage;
use super::suite::Suite;
use super::trial::{self, Decided, Verdict, setting};
use crate::check::{doubt, plural};
use crate::explain::spelling;

/// Steps of the analyst for one rule set; it takes seconds to use them up.
const STEPS: u64 = 400_000_000;

/// So many rules that are never reached are named.
const NAMED_MAX: usize = 1000;

/// Tests that were made of a rule set.
pub(super) struct Generated {
    /// A file of tests, in its one form.
    pub(super) text: String,
    pub(super) tests: usize,
    /// How many more there could be.
    left_out: usize,
    /// Whether the analyst gave up before it was through.
    is_cut: bool,
}

/// A test that is to be written.
struct Draft {
    /// What it is called, if no other is.
    name: String,
    case: TestCase,
    rank: Rank,
    /// The rules whose conditions it is to show to be true.
    makes_true: Vec<RuleIndex>,
}

/// What is kept where there are too many.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Branch,
    Border,
}

impl Generated {
    /// At most so many tests. Each is asked about before it is written, and again as it is written.
    pub(super) fn of(suite: &Suite, tests_max: usize) -> Generated {
        let samples = samples(&suite.program, &setting(&suite.place), Effort::new(STEPS));
        let (mut drafts, mut untold) = drafts(suite, &samples);
        let left_out = drafts.len().saturating_sub(tests_max);
        let branches = drafts.iter().filter(|draft| draft.rank == Rank::Branch).count();
        let (mut branches, mut borders) = (branches.min(tests_max), tests_max.saturating_sub(branches));
        drafts.retain(|draft| {
            let room = if draft.rank == Rank::Branch { &mut branches } else { &mut borders };
            let has_room = *room > 0;
            *room = room.saturating_sub(1);
            has_room
        });
        let mut names = HashSet::new();
        let written = drafts.iter().map(|draft| {
            let name = unused(&draft.name, &mut names);
            (draft, writing::test(&name, &draft.case, &suite.program))
        });
        let (written, lost) = passing(suite, written.collect());
        untold.extend(lost.iter().flat_map(|draft| &draft.makes_true));
        let tests = written.len();
        let mut text = head(suite, tests);
        text.push_str(&written.concat());
        text.push('\n');
        text.push_str(&notes(&suite.program, &samples.reach, &untold));
        if left_out > 0 {
            text.push_str(&format!("# {left_out} more tests could be made: --tests-max\n"));
        }
        if samples.is_cut {
            text.push_str("# the search for tests was given up before its end\n");
        }
        let text = pointsman_rules::format(&text).unwrap_or(text);
        Generated { text, tests, left_out, is_cut: samples.is_cut }
    }

    /// `12 tests are made, 3 more could be`
    pub(super) fn summary(&self) -> String {
        let mut summary = match self.tests {
            1 => "1 test is made".to_owned(),
            tests => format!("{tests} tests are made"),
        };
        if self.left_out > 0 {
            summary.push_str(&format!(", {} more could be: `--tests-max`", self.left_out));
        }
        if self.is_cut {
            summary.push_str("; the search for more was given up");
        }
        summary
    }
}

/// The tests that can be made of samples, each with what is decided, no request twice; and the rules of which no test can say
/// the request that makes them true.
fn drafts(suite: &Suite, samples: &Samples) -> (Vec<Draft>, HashSet<RuleIndex>) {
    let (mut known, mut untold) = (HashMap::new(), HashSet::new());
    let mut drafts: Vec<Draft> = Vec::new();
    for sample in &samples.samples {
        let makes_true = matches!(sample.why, Why::True).then_some(sample.rule);
        let Some(case) = judged(suite, sample) else {
            untold.extend(makes_true);
            continue;
        };
        let said = format!("{:?} {:?} {:?}", values_of(&case), case.absent, case.rest);
        let place = *known.entry(said).or_insert(drafts.len());
        if let Some(same) = drafts.get_mut(place) {
            same.makes_true.extend(makes_true);
            continue;
        }
        let rank = match sample.why {
            Why::True | Why::False => Rank::Branch,
            _ => Rank::Border,
        };
        let makes_true = makes_true.into_iter().collect();
        drafts.push(Draft { name: name(&suite.program, sample), case, rank, makes_true });
    }
    (drafts, untold)
}

fn values_of(case: &TestCase) -> Vec<(&Field, &OwnedValue)> {
    case.given.iter().map(|given| (&given.field, &given.value)).collect()
}

/// The test with what is decided. What a test does not say is as tests have it; where that leads elsewhere than the sample
/// says, more is said. Nothing where no test can say enough.
fn judged(suite: &Suite, sample: &Sample) -> Option<TestCase> {
    let judged = |fields: &[(Field, Vec<OwnedValue>)], absent: &[Field], rest: Option<Cause>| {
        let case = unjudged(fields, absent, rest)?;
        let Decided { is_as_meant, expectation, effects } =
            trial::decided(&case, sample, &suite.place, &suite.program)?;
        // Where no rule has any, nobody wants to read of each request that there is none.
        let effects = effects.filter(|_| has_effects(&suite.program));
        is_as_meant.then_some(TestCase { expected: expectation, effects, ..case })
    };
    let Sample { values, others, absent, rest, others_rest, .. } = sample;
    let with_others = || judged(&[&values[..], others].concat(), absent, rest.or(*others_rest));
    judged(values, &[], *rest).or_else(|| judged(values, absent, *rest)).or_else(with_others)
}

/// A test without what it expects; nothing where a value cannot be said.
fn unjudged(fields: &[(Field, Vec<OwnedValue>)], absent: &[Field], rest: Option<Cause>) -> Option<TestCase> {
    let (mut given, mut rest) = (Vec::new(), rest);
    let content_type = Field::Header("content-type".into());
    let has_line = fields.iter().any(|(field, _)| *field == content_type);
    for (field, values) in fields {
        // A test says one media type at most; of several it says the lines.
        let field = match field {
            Field::ContentType if values.len() > 1 && has_line => continue,
            Field::ContentType if values.len() > 1 => &content_type,
            field => field,
        };
        for value in values {
            let value = match value {
                // A test says no value that nobody knows, but that more of the body is not known.
                OwnedValue::Unknown(cause @ Cause::Limit) => {
                    rest = rest.or(Some(*cause));
                    continue;
                }
                OwnedValue::Unknown(_) => return None,
                known => known.clone(),
            };
            given.push(Given { span: Span::default(), field: field.clone(), value });
        }
    }
    let expected = Expectation::Nothing;
    Some(TestCase {
        name: "".into(),
        span: Span::default(),
        given,
        absent: absent.to_vec(),
        rest,
        expected,
        effects: None,
    })
}

fn has_effects(program: &Program) -> bool {
    let mut rules = program.rules.iter().chain(&program.fallback);
    rules.any(|rule| [&rule.then, &rule.otherwise].iter().any(|block| !block.effects.is_empty()))
}

/// What a test shows, in words.
fn name(program: &Program, sample: &Sample) -> String {
    let label = label(program, sample.rule);
    let next = || self::label(program, RuleIndex(sample.rule.0.saturating_add(1)));
    match &sample.why {
        Why::True => label,
        Why::False => format!("not {label}"),
        Why::Unknown => format!("{label} ends unknown"),
        Why::TrueForNext => format!("{label} before {}", next()),
        Why::Holds(test) => format!("{label} with {}", spelling::test(test)),
        Why::Fails(test) => format!("{label} without {}", spelling::test(test)),
        Why::Beside(test) => {
            let mut values = sample.values.iter().filter(|(field, _)| *field == test.field);
            let values = values.next().map(|(_, values)| values.as_slice()).unwrap_or_default();
            let shown = match values {
                [value] => writing::shown(value),
                values => plural(values.len(), "value"),
            };
            format!("{label} where {} is {shown}", test.field)
        }
    }
}

fn label(program: &Program, rule: RuleIndex) -> String {
    match program.rule(rule) {
        Some(rule) => rule.label.to_string(),
        None => "no rule".to_owned(),
    }
}

/// The name, or with a number behind it where it was used before.
fn unused(name: &str, names: &mut HashSet<String>) -> String {
    let name = writing::name(name);
    let mut number = 1_usize;
    let mut candidate = name.clone();
    while !names.insert(candidate.clone()) {
        number += 1;
        candidate = format!("{name} ({number})");
    }
    candidate
}

/// Those that say what was meant, as they are read, and pass; and those that cannot be written or do not.
fn passing<'d>(suite: &Suite, written: Vec<(&'d Draft, Option<String>)>) -> (Vec<String>, Vec<&'d Draft>) {
    let passes = |source: &str| {
        let read = suite.beside.further(source, &suite.program, &suite.targets);
        let cases = read.map(|(further, _)| further.cases).unwrap_or_default();
        let mut coverage = Coverage::new(&suite.program);
        let mut verdicts =
            cases.iter().map(|case| trial::run(case, &suite.place, &suite.program, &mut coverage));
        !cases.is_empty() && verdicts.all(|verdict| verdict == Verdict::Passed)
    };
    let all: String = written.iter().filter_map(|(_, text)| text.as_deref()).collect();
    let all_pass = passes(&all);
    let (mut texts, mut lost) = (Vec::new(), Vec::new());
    for (draft, text) in written {
        match text.filter(|text| all_pass || passes(text)) {
            Some(text) => texts.push(text),
            None => lost.push(draft),
        }
    }
    (texts, lost)
}

fn head(suite: &Suite, tests: usize) -> String {
    let tests = plural(tests, "test");
    let name = suite.name.replace(char::is_control, "?");
    format!("# {tests} made of {name} by `pointsman test --generate`: what its rules do now.\n\n")
}

/// What no test could be made for, as comments.
fn notes(program: &Program, reach: &[Reach], untold: &HashSet<RuleIndex>) -> String {
    let mut notes = String::new();
    let mut named = 0;
    for (index, reach) in (0..).map(RuleIndex).zip(reach) {
        let why = match reach {
            Reach::Reached if label(program, index).starts_with('#') => {
                "it has no label, and no test can expect it".to_owned()
            }
            Reach::Reached if untold.contains(&index) => {
                "no test can say a request that makes it true".to_owned()
            }
            Reach::Reached => continue,
            Reach::Unknown(doubt) => {
                format!("it is unknown whether it is ever true: {}", doubt::sentence(doubt))
            }
            Reach::Never(others) if others.is_empty() => "its condition is never true".to_owned(),
            Reach::Never(others) => {
                let others: Vec<_> =
                    others.iter().take(NAMED_MAX).map(|other| label(program, *other)).collect();
                format!("no request makes it true, because of {}", others.join(", "))
            }
        };
        named += 1;
        if named > NAMED_MAX {
            continue;
        }
        // Memory takes it.
        writeln!(notes, "# {}: {why}", label(program, index)).unwrap_or_default();
    }
    if let Some(more @ 1..) = named.checked_sub(NAMED_MAX) {
        notes.push_str(&format!("# and {}\n", plural(more, "more rule")));
    }
    notes
}

#[cfg(test)]
mod tests;

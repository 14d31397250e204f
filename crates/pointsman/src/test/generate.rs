//! `pointsman test --generate`: tests made of the rules themselves, which state what the engine does now.

mod notes;
mod writing;

use std::collections::{HashMap, HashSet};

use pointsman_analysis::{Effort, Sample, Samples, Why, samples};
use pointsman_rules::{Cause, Expectation, Field, Given, OwnedValue, Program, Span, TestCase};

use self::notes::{Shown, Untold};

use super::coverage::Coverage;
use super::suite::Suite;
use super::trial::{self, Decided, Verdict};
use crate::check::plural;

/// Steps of the analyst for one rule set; it takes seconds to use them up.
const STEPS: u64 = 400_000_000;

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
    /// What it shows; it is called after the first.
    shows: Vec<Shown>,
    case: TestCase,
    rank: Rank,
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
        let samples = samples(&suite.program, &suite.place.known(), Effort::new(STEPS));
        let (mut drafts, mut untold) = drafts(suite, &samples);
        untold.extend(samples.missing.iter().map(|missing| Untold::of_missing(&suite.program, missing)));
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
            let name = draft.shows.first().map(|shown| &*shown.name).unwrap_or_default();
            let name = unused(name, &mut names);
            (draft, writing::test(&name, &draft.case, &suite.program))
        });
        let (written, lost) = passing(suite, written.collect());
        untold.extend(lost.into_iter().flat_map(|(draft, why)| draft.untold(why)));
        let tests = written.len();
        let mut text = head(suite, tests);
        text.push_str(&written.concat());
        text.push('\n');
        text.push_str(&notes::notes(&suite.program, &samples, untold));
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

/// The tests that can be made of samples, each with what is decided, no request twice; and what no test can say.
fn drafts(suite: &Suite, samples: &Samples) -> (Vec<Draft>, Vec<Untold>) {
    let (mut known, mut untold) = (HashMap::new(), Vec::new());
    let mut drafts: Vec<Draft> = Vec::new();
    for sample in &samples.samples {
        let shown = Shown::of_sample(&suite.program, sample);
        let case = match judged(suite, sample) {
            Ok(case) => case,
            Err(why) => {
                untold.push(shown.untold(format!("no test can say such a request: {why}")));
                continue;
            }
        };
        let said = format!("{:?} {:?} {:?}", values_of(&case), case.absent, case.rest);
        let place = *known.entry(said).or_insert(drafts.len());
        if let Some(same) = drafts.get_mut(place) {
            same.shows.push(shown);
            continue;
        }
        let rank = match sample.why {
            Why::True | Why::False => Rank::Branch,
            _ => Rank::Border,
        };
        drafts.push(Draft { shows: vec![shown], case, rank });
    }
    (drafts, untold)
}

impl Draft {
    /// All that it would have shown.
    fn untold(&self, why: String) -> impl Iterator<Item = Untold> {
        self.shows.iter().map(move |shown| shown.clone().untold(why.clone()))
    }
}

fn values_of(case: &TestCase) -> Vec<(&Field, &OwnedValue)> {
    case.given.iter().map(|given| (&given.field, &given.value)).collect()
}

/// The test with what is decided. What a test does not say is as tests have it; where that leads elsewhere than the sample
/// says, more is said: all that rules name, and then all there is, as far as it matters. The error says why no test can say
/// enough.
fn judged(suite: &Suite, sample: &Sample) -> Result<TestCase, String> {
    let Sample { values, others, absent, rest, others_rest, whole, .. } = sample;
    let judge = |fields: &[(Field, Vec<OwnedValue>)], absent: &[Field], rest| {
        judged_as(suite, sample, fields, absent, rest)
    };
    let all_rest = rest.or(*others_rest);
    if let Ok(case) = judge(values, &[], *rest).or_else(|_| judge(values, absent, *rest)) {
        return Ok(case);
    }
    let mut all = [&values[..], others].concat();
    if let Ok(case) = judge(&all, absent, all_rest) {
        return Ok(case);
    }
    let mut absent = absent.clone();
    for (field, values) in
        whole.iter().filter(|(field, _)| sample.values.iter().chain(others).all(|(said, _)| said != field))
    {
        match values.as_slice() {
            [] if absent.contains(field) => {}
            [] => absent.push(field.clone()),
            values => all.push((field.clone(), values.to_vec())),
        }
    }
    let ended = || all_rest.and_then(|_| judge(&all, &with_ends(&all, &absent)?, all_rest).ok());
    let mut case = judge(&all, &absent, all_rest)
        .map_err(|why| if ended().is_some() { NO_MORE_VALUES.to_owned() } else { why })?;
    for place in (values.len()..all.len()).rev() {
        let fewer: Vec<_> = all.iter().take(place).chain(all.iter().skip(place + 1)).cloned().collect();
        if let Ok(fewer_said) = judge(&fewer, &absent, all_rest) {
            (all, case) = (fewer, fewer_said);
        }
    }
    for place in (0..absent.len()).rev() {
        let fewer: Vec<_> = absent.iter().take(place).chain(absent.iter().skip(place + 1)).cloned().collect();
        if let Ok(fewer_said) = judge(&all, &fewer, all_rest) {
            (absent, case) = (fewer, fewer_said);
        }
    }
    Ok(case)
}

/// The same of a test that says these fields.
fn judged_as(
    suite: &Suite,
    sample: &Sample,
    fields: &[(Field, Vec<OwnedValue>)],
    absent: &[Field],
    rest: Option<Cause>,
) -> Result<TestCase, String> {
    let judged = |case: TestCase| {
        let Decided { is_as_meant, expectation, effects } =
            trial::decided(&case, sample, &suite.place, &suite.program)?;
        // Where no rule has any, nobody wants to read of each request that there is none.
        let effects = effects.filter(|_| has_effects(&suite.program));
        match is_as_meant {
            true => Ok(TestCase { expected: expectation, effects, ..case }),
            false => Err("as a test makes it, it comes out otherwise".to_owned()),
        }
    };
    let case = judged(unjudged(fields, absent, rest)?);
    let Some((field, _)) = fields.iter().find(|(_, values)| values.iter().any(is_too_long)) else {
        return case;
    };
    // Another value in front of what is not known may do as well.
    case.or_else(|_| {
        let known = fields.iter().map(|(field, values)| {
            let shown = |value: &OwnedValue| {
                if is_too_long(value) { OwnedValue::Text(STAND_IN.into()) } else { value.clone() }
            };
            (field.clone(), values.iter().map(shown).collect())
        });
        let known: Vec<_> = known.collect();
        judged(unjudged(&known, absent, rest.or(Some(Cause::Limit)))?)
    })
    .map_err(|_| format!("its `{field}` is longer than a value may be"))
}

/// Why a request with all values of such a field cannot be said, and would otherwise be as meant.
const NO_MORE_VALUES: &str =
    "of a body at fault it says no more than the first values of a field that may have several";

/// The fields that are absent, and with them those that are to have no more values than are said; nothing without any. No
/// test is written so: it says of a field that it is absent, or its values.
fn with_ends(fields: &[(Field, Vec<OwnedValue>)], absent: &[Field]) -> Option<Vec<Field>> {
    let is_open = |field: &Field| matches!(field, Field::Payload(_)) && field.is_many_valued();
    let open = fields.iter().filter(|(field, values)| is_open(field) && !values.is_empty());
    let open: Vec<_> = open.map(|(field, _)| field.clone()).collect();
    (!open.is_empty()).then(|| [absent, &open].concat())
}

/// In the place of a value that is too long.
const STAND_IN: &[u8] = b"a";

fn is_too_long(value: &OwnedValue) -> bool {
    *value == OwnedValue::Unknown(Cause::Limit)
}

/// A test without what it expects; the error says which value cannot be said.
fn unjudged(
    fields: &[(Field, Vec<OwnedValue>)],
    absent: &[Field],
    rest: Option<Cause>,
) -> Result<TestCase, String> {
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
                OwnedValue::Unknown(cause) => {
                    return Err(format!("`{field}` has a value that is unknown: {cause}"));
                }
                known => known.clone(),
            };
            given.push(Given { span: Span::default(), field: field.clone(), value });
        }
    }
    let expected = Expectation::Nothing;
    Ok(TestCase {
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

/// Those that say what was meant, as they are read, and pass; and those that cannot be written or do not, with why.
fn passing<'d>(
    suite: &Suite,
    written: Vec<(&'d Draft, Result<String, String>)>,
) -> (Vec<String>, Vec<(&'d Draft, String)>) {
    let passes = |source: &str| {
        let read = suite.beside.further(source, &suite.program, &suite.targets);
        let cases = read.map(|(further, _)| further.cases).unwrap_or_default();
        let mut coverage = Coverage::new(&suite.program);
        let mut verdicts =
            cases.iter().map(|case| trial::run(case, &suite.place, &suite.program, &mut coverage));
        !cases.is_empty() && verdicts.all(|verdict| verdict == Verdict::Passed)
    };
    let all: String = written.iter().filter_map(|(_, text)| text.as_deref().ok()).collect();
    let all_pass = passes(&all);
    let (mut texts, mut lost) = (Vec::new(), Vec::new());
    for (draft, text) in written {
        match text {
            Ok(text) if all_pass || passes(&text) => texts.push(text),
            Ok(_) => {
                lost.push((draft, "what a test says of such a request is read as something else".to_owned()))
            }
            Err(why) => lost.push((draft, why)),
        }
    }
    (texts, lost)
}

fn head(suite: &Suite, tests: usize) -> String {
    let tests = plural(tests, "test");
    let name = suite.name.replace(char::is_control, "?");
    format!("# {tests} made of {name} by `pointsman test --generate`: what its rules do now.\n\n")
}

#[cfg(test)]
mod tests;

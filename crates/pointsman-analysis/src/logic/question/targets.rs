//! A request target and the path that is made of it.

use std::sync::LazyLock;

use pointsman_rules::{Field, Op, OwnedValue, Test};

use super::Trial;
use super::exclusions::Part;
use super::related::{Mattering, Related, asked, made_up, numbers};
use super::spelled::coded_path;
use crate::Effort;
use crate::logic::lemmas::Lemma;
use crate::logic::states::States;
use crate::space::{Solved, solve};
use crate::wanted::{Asked, Sketch, Values, Wanted};

/// Segments that a path is led out of.
const SEGMENTS_MAX: usize = 32;

impl<'p> Trial<'_, 'p> {
    /// A target that is a path in normal form, and some that lead to a path from somewhere else.
    pub(super) fn other_targets(
        &mut self,
        sketch: &Sketch<'p>,
        tests: &[Mattering<'p>],
        others: &[Mattering<'p>],
        effort: &mut Effort,
    ) -> Vec<Related<'p>> {
        let (Some((url, _)), Some((path, _))) = (tests.first(), others.first()) else { return Vec::new() };
        let both: Vec<_> = asked(tests).chain(asked(others)).collect();
        let mut found = Vec::new();
        match solve(&Field::Path, &both, &mut self.analyst.automata, effort) {
            Solved::Values(values) => found.push(Related::Perhaps(vec![(&url.field, values)])),
            Solved::Nothing { because } => {
                if let Some(plain) = self.plain(tests, false, effort) {
                    let both = [tests, others].concat();
                    return vec![Related::Never([plain, numbers(because, &both)].concat())];
                }
            }
            Solved::Unknown => {}
        }
        found.extend(self.coded_targets(sketch, tests, others, effort));
        let begins = tests.iter().filter_map(|(test, states)| match &test.op {
            Op::StartsWith(start) if *states == States::TRUE && start.starts_with(b"/") => Some(&**start),
            _ => None,
        });
        let wanted = sketch.fields.iter().find(|(field, _)| **field == path.field);
        let Some(OwnedValue::Text(wanted)) = wanted.and_then(|(_, values)| values.known.first()) else {
            return found;
        };
        for start in begins.chain([&b"/x"[..]]) {
            let (start, path) = (start.strip_suffix(b"/").unwrap_or(start), wanted.strip_prefix(b"/"));
            let segments = start.iter().filter(|byte| **byte == b'/').count();
            if let (Some(path), true) = (path, segments <= SEGMENTS_MAX) {
                let target = [start, b"/", &b"../".repeat(segments), path].concat();
                let known = vec![OwnedValue::Text(target.into())];
                found.push(Related::Perhaps(vec![(&url.field, Values { known, rest: None })]));
            }
        }
        found
    }

    /// The tests of a target because of which the path stands in it as it is, behind it only a query, if there may be one.
    /// Nothing where that is not so.
    pub(super) fn plain(
        &mut self,
        tests: &[Mattering<'p>],
        may_have_query: bool,
        effort: &mut Effort,
    ) -> Option<Lemma> {
        // Nothing of it is decoded, taken away or merged.
        let path = match self.analyst.setting.path_options.merge_slashes {
            true => "/(?:[^%/?.][^%/?]*(?:/[^%/?.][^%/?]*)*/?)?",
            false => "(?:/(?:[^%/?.][^%/?]*)?)+",
        };
        let end = if may_have_query { "(?:[?]|$)" } else { "$" };
        let program = made_up(&[&format!("url matches \"^{path}{end}\"")])?;
        let mut all: Vec<_> = asked(tests).collect();
        program.rules.iter().for_each(|rule| {
            rule.condition.each_test(&mut |test| all.push(Asked { test, wanted: Wanted::NotTrue }));
        });
        match solve(&Field::Url, &all, &mut self.analyst.automata, effort) {
            Solved::Nothing { because } => Some(numbers(because, tests)),
            _ => None,
        }
    }

    /// Targets that spell letters of a path as codes, where a test of the target has codes, or is not to be true: of a path in
    /// which those letters stand, and of the one that was found.
    fn coded_targets(
        &mut self,
        sketch: &Sketch<'p>,
        tests: &[Mattering<'p>],
        others: &[Mattering<'p>],
        effort: &mut Effort,
    ) -> Vec<Related<'p>> {
        let (Some((url, _)), Some((path, _))) = (tests.first(), others.first()) else { return Vec::new() };
        let letters = tests.iter().filter_map(|(test, states)| match &test.op {
            Op::Contains(text) | Op::StartsWith(text) | Op::EndsWith(text) if *states == States::TRUE => {
                decoded(text)
            }
            _ => None,
        });
        let conditions: Vec<_> = letters.map(|letters| format!("path contains \"{letters}\"")).collect();
        // What must not stand in a target can stand in the path as codes.
        let avoids = tests.iter().any(|(test, states)| {
            let is_of_text = matches!(
                test.op,
                Op::Contains(_) | Op::StartsWith(_) | Op::EndsWith(_) | Op::Like(_) | Op::Matches(_)
            );
            is_of_text && !states.covers(States::TRUE)
        });
        if conditions.is_empty() && !avoids {
            return Vec::new();
        }
        let with_letters = self.with_further(&path.field, others, &conditions, effort);
        let found = sketch.fields.iter().find(|(field, _)| **field == path.field);
        let paths = with_letters.into_iter().chain(found.map(|(_, values)| values.clone()));
        let mut targets = Vec::new();
        for path in paths {
            let Some(OwnedValue::Text(path)) = path.known.first() else { continue };
            let Some(spelled) = coded_path(path) else { continue };
            let condition = format!("url matches \"^{spelled}(?:[?]|$)\"");
            let values = self.with_further(&url.field, tests, &[condition], effort);
            targets.extend(values.map(|values| Related::Perhaps(vec![(&url.field, values)])));
        }
        targets
    }

    /// Of a path that does not begin with a slash: it is `*`, which OPTIONS alone asks for, and without a query.
    pub(super) fn said_by_asterisk(
        &mut self,
        tests: &[Mattering<'p>],
        others: &[Mattering<'p>],
        effort: &mut Effort,
    ) -> Option<Related<'p>> {
        static SLASH: LazyLock<Option<Part>> =
            LazyLock::new(|| Part::read(&(r#"path startsWith "/""#, true)));
        let slash = SLASH.as_ref()?.test()?;
        let own: Vec<Mattering<'p>> =
            tests.iter().filter(|(_, states)| states.wanted().is_some()).copied().collect();
        let (first, _) = own.first()?;
        let all: Vec<_> = asked(&own).chain([Asked { test: slash, wanted: Wanted::NotFalse }]).collect();
        let Solved::Nothing { because } = self.analyst.solve_tests(&first.field, &all, effort) else {
            return None;
        };
        let mut lemma = numbers(because, &own);
        let fails = |_: &Test, states: States, comes_to| !states.covers(comes_to);
        lemma.push(self.first_of_text((&first.field, b"*"), others, fails, effort)?);
        Some(Related::Never(lemma))
    }

    /// Values of a field that satisfy its tests and further conditions.
    fn with_further(
        &mut self,
        field: &Field,
        tests: &[Mattering<'p>],
        conditions: &[String],
        effort: &mut Effort,
    ) -> Option<Values> {
        let conditions: Vec<&str> = conditions.iter().map(String::as_str).collect();
        let program = made_up(&conditions)?;
        let mut all: Vec<_> = asked(tests).collect();
        program.rules.iter().for_each(|rule| {
            rule.condition.each_test(&mut |test| all.push(Asked { test, wanted: Wanted::True }));
        });
        match solve(field, &all, &mut self.analyst.automata, effort) {
            Solved::Values(values) => Some(values),
            _ => None,
        }
    }
}

/// What a text of a target stands for in a path, where it has codes of unreserved characters, and nothing else that is no
/// letter of a path.
fn decoded(text: &[u8]) -> Option<String> {
    let mut letters = String::new();
    let mut rest = text;
    while let Some((byte, behind)) = rest.split_first() {
        let byte = match (byte, behind) {
            (b'%', [high, low, behind @ ..]) => {
                rest = behind;
                let digit = |byte: &u8| char::from(*byte).to_digit(16);
                u8::try_from(digit(high)? << 4 | digit(low)?).ok()?
            }
            (byte, behind) => {
                rest = behind;
                *byte
            }
        };
        let may_stand = byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
        letters.push(Some(char::from(byte)).filter(|_| may_stand)?);
    }
    (text.contains(&b'%')).then_some(letters)
}

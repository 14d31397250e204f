//! A request target and the path that is made of it.

use pointsman_rules::{Field, Op, OwnedValue};

use super::Trial;
use super::related::{Mattering, Related, asked};
use crate::Effort;
use crate::logic::states::States;
use crate::space::{Solved, solve};
use crate::wanted::{Sketch, Values};

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
        if let Solved::Values(values) = solve(&Field::Path, &both, &mut self.analyst.automata, effort) {
            found.push(Related::Perhaps(vec![(&url.field, values)]));
        }
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
}

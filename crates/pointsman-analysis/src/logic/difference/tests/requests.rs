//! Differences over all kinds of fields, bodies among them, against some hundred requests: each that is decided otherwise is
//! of a group, or of what is unknown.

use std::sync::Arc;

use pointsman_rules::Program;
use proptest::prelude::*;

use super::super::super::tests::requests::{REQUESTS, sources};
use super::{changed, changes, compiled, decided, side};
use crate::logic::difference::{Decider, differences};
use crate::witness::Witness;
use crate::{Effort, Setting, Spoilt};

/// What a program says of a request as the switch reads it.
fn said(program: &Arc<Program>, request: &Witness) -> Option<(Decider, String)> {
    let paths = Arc::new(pointsman_view::BodyPaths::new(program));
    crate::witness::with_subject(program, &paths, request, &Setting::default(), |view| decided(program, view))
}

proptest! {
    #[test]
    fn no_request_is_decided_otherwise_unsaid((old, other) in (sources(), sources()), edits in changes(), is_edit in any::<bool>()) {
        let inserted = other.lines().find(|line| line.starts_with("if")).unwrap_or_default();
        let edited = if is_edit { changed(&old, &edits, inserted) } else { other.clone() };
        let Some([before, now]) = compiled((&old, &edited)) else {
            return Err(TestCaseError::reject("a jump that leads nowhere"));
        };
        let found = differences(side(&before), side(&now), &Setting::default(), Effort::new(20_000_000));
        for group in &found.groups {
            let (one, other) = (said(&before, &group.witness), said(&now, &group.witness));
            let (Some(one), Some(other)) = (one, other) else { panic!("{old}---\n{edited}{group:?}") };
            prop_assert!((one.0, other.0) == (group.old, group.new) && one.1 != other.1, "{old}---\n{edited}{group:?}");
        }
        for request in REQUESTS.iter() {
            let (Some(one), Some(other)) = (said(&before, request), said(&now, request)) else { continue };
            let is_group = found.groups.iter().any(|group| (group.old, group.new) == (one.0, other.0));
            let spoilt = [&before, &now]
                .map(|program| matches!(request.spoilt(program, &Setting::default()), Some(Spoilt::Refused(_))));
            // What both refuse is no difference where that is for what stands behind a decision.
            let are_refused = [&one, &other].iter().zip(spoilt).all(|(said, spoilt)| spoilt || said.1.ends_with(" refused"));
            if are_refused && spoilt.contains(&true) {
                continue;
            }
            let is_unknown = found.undecided.iter().any(|unknown| {
                unknown.old.is_none_or(|known| known == one.0) && unknown.new.is_none_or(|known| known == other.0)
            });
            prop_assert!(one.1 == other.1 || is_group || is_unknown, "{old}---\n{edited}{request}{found:#?}");
        }
    }
}

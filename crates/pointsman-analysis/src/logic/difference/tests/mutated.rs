//! Rule sets with a small mistake each, beside the sets without it: the engine, `explain` and the analyst say the same of
//! every request that any of them is about.

use std::path::Path;
use std::sync::Arc;

use pointsman_rules::{Outcome, Program, Targets, Truths, compile, mutants};
use pointsman_view::BodyPaths;

use self::sets::Set;
use super::{decided, side};
use crate::logic::difference::{Decider, differences};
use crate::witness::{Witness, with_subject};
use crate::{Effort, Setting};

#[path = "../../../../tests/sets/mod.rs"]
mod sets;

/// So many mistakes of each set, evenly spread.
const MUTANTS_MAX: usize = 24;
/// Of a large set so many: what is compared grows with the set.
const MUTANTS_OF_LARGE_MAX: usize = 2;
/// So many requests of each set are asked of every mutant.
const REQUESTS_MAX: usize = 24;
const STEPS: u64 = 10_000_000;

/// The rules of the papers and of the examples, and sets as people write them.
fn corpus() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folders =
        ["testdata/rules/papers", "examples/grpc", "examples/models", "examples/orders", "examples/shop"];
    let files =
        folders.iter().flat_map(|folder| std::fs::read_dir(root.join(folder)).expect("a folder").flatten());
    let rules = files.map(|file| file.path()).filter(|path| path.to_string_lossy().ends_with(".rules"));
    let written =
        rules.map(|path| (path.display().to_string(), std::fs::read_to_string(&path).expect("a rule set")));
    let made = sets::all().into_iter().map(|Set { name, source, .. }| (name.to_owned(), source));
    written.chain(made).collect()
}

fn program(source: &str) -> Option<Arc<Program>> {
    compile(source, &Targets::Any).ok().map(|compiled| compiled.program.into())
}

/// What the interpreter says of a request, after the engine and `explain` have said the same.
fn said(program: &Arc<Program>, request: &Witness) -> Option<(Decider, String)> {
    let paths = Arc::new(BodyPaths::new(program));
    with_subject(program, &paths, request, &Setting::default(), |view| {
        let shown = |outcome: Outcome<'_>| format!("{outcome:?}");
        let engine = program.decide(view, &mut Truths::default());
        let explained = program.explain(view);
        let same = explained.decision;
        assert_eq!((engine.by, shown(engine.outcome)), (same.by, shown(same.outcome)), "{request}");
        assert_eq!(format!("{:?}", engine.effects), format!("{:?}", same.effects), "{request}");
        let last = explained.visited.last().map(|visited| visited.label);
        assert!(engine.by.label().is_none_or(|by| last == Some(by)), "{request}");
        decided(program, view)
    })
}

/// Returns how many mutants decide something differently.
fn check(name: &str, source: &str) -> usize {
    let Some(right) = program(source) else { return 0 };
    let mutants_max = if right.rules.len() > 50 { MUTANTS_OF_LARGE_MAX } else { MUTANTS_MAX };
    let made = mutants(source, mutants_max);
    let (mut requests, mut differ): (Vec<Witness>, usize) = (Vec::new(), 0);
    for mutant in &made.mutants {
        let text = made.text(mutant);
        let Some(wrong) = program(&text) else { continue };
        let found = differences(side(&right), side(&wrong), &Setting::default(), Effort::new(STEPS));
        differ += usize::from(found.groups_count > 0);
        let at = format!("{name}: {:?} at {:?}", mutant.kind, mutant.span);
        for group in &found.groups {
            let (one, other) = (said(&right, &group.witness), said(&wrong, &group.witness));
            let (Some(one), Some(other)) = (one, other) else {
                panic!("{at}: no request: {}", group.witness)
            };
            assert!(
                (one.0, other.0) == (group.old, group.new) && one.1 != other.1,
                "{at}: {}",
                group.witness
            );
        }
        requests.extend(found.groups.iter().map(|group| group.witness.clone()));
        requests.truncate(REQUESTS_MAX);
        for request in &requests {
            let (Some(one), Some(other)) = (said(&right, request), said(&wrong, request)) else { continue };
            let is_group = found.groups.iter().any(|group| (group.old, group.new) == (one.0, other.0));
            let is_left = found.undecided_count > 0 || found.groups_count > found.groups.len();
            assert!(one.1 == other.1 || is_group || is_left || found.reads_otherwise, "{at}: {request}");
        }
    }
    differ
}

#[test]
fn mistakes_are_seen_alike_by_all() {
    let differ: usize = corpus().iter().map(|(name, source)| check(name, source)).sum();
    // Most mistakes matter.
    assert!(differ > 140, "{differ}");
}

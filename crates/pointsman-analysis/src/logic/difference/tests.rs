//! Differences against what a look at every request says that the tests can tell apart.

mod examples;
mod fates;
mod mutated;
mod pairs;
mod requests;

use std::collections::BTreeSet;
use std::sync::Arc;

use pointsman_rules::{
    DecidedBy, Outcome, Program, RuleIndex, Stickiness, Subject, Targets, Terminal, compile,
};
use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::super::states::States;
use super::super::tests::{MadeUp, networks, program, rules, sources, sources_of, subjects};
use super::{Decider, Differences, Holds, RuleSide, differences};
use crate::{Effort, Setting};

/// What is written in the place of something else where a rule set is changed.
const EDITS: &[(&str, &str)] = &[
    ("routeTo(a)", "routeTo(b)"),
    ("routeTo(b)", "reject(403)"),
    ("routeTo(a)", "routeTo(split(90: a, 10: b))"),
    ("split(90: a, 10: b)", "split(80: a, 20: b)"),
    ("split(90: a, 10: b)", "split(10: b, 90.0: a)"),
    ("routeTo(a)", "routeTo(a, STICKY_ON_IP)"),
    ("reject(403)", "reject(404)"),
    ("redirect(302", "redirect(301"),
    ("setHeader(\"x\", \"1\")", "addHeader(\"x\", \"1\")"),
    ("setHeader(\"x\", \"1\")", "setHeader(\"x\", \"2\")"),
    ("discard()", "reject(403)"),
    ("routeTo(d)", "routeTo(a)"),
    ("routeTo(c)", "routeTo(b)"),
    ("tag(\"t\")", "tag(\"u\")"),
    ("tag(\"t\");", ""),
    ("tag(\"t\");", "limitRate(t);"),
    ("tag(\"t\");", "bandwidth(t);"),
    ("bandwidth(t);", "mirror(t);"),
    ("tag(\"t\");", "mirror(t); mirror(u);"),
    ("tag(\"t\");", "mirror(u); mirror(t);"),
    ("mirror(t);", "mirror(u);"),
    ("tag(\"t\");", "bandwidth(u); bandwidth(t);"),
    ("{  }", "{ tag(\"t\"); }"),
    ("reject;", "skip;"),
    ("skip;", "reject;"),
    ("goto R3", "goto R4"),
    ("goto R2", "goto R3"),
    ("\"x\"", "\"y\""),
    ("> 5", "> 2"),
    ("== 80", "== 81"),
    ("dstport < 81", "dstport < 82"),
    ("[::/80]", "[::/95]"),
    ("[0.0.0.0/0]", "[::ffff:0:0/96]"),
    ("[::/0]", "[::/1, 8000::/1]"),
    ("== ::7", "in [::7..::8]"),
    ("path == \"/a\"", "path == \"/b\""),
    ("&&", "||"),
    ("||", "&&"),
    ("!(", "("),
];

fn side(program: &Arc<Program>) -> RuleSide<'_> {
    RuleSide { program, default_pool: None }
}

/// What one program says of a request: who decides, and all that is decided.
pub(in crate::logic) fn decided<S: Subject + ?Sized>(program: &Program, subject: &S) -> (Decider, String) {
    let decision = program.decide_plainly(subject);
    let outcome = match decision.outcome {
        Outcome::Terminal(Terminal::RouteTo { target, sticky }) => {
            let sticky = match sticky {
                Stickiness::Field(field) => field.to_string(),
                sticky => format!("{sticky:?}"),
            };
            format!("{} {sticky}", program.targets[target.0 as usize])
        }
        Outcome::RouteUnknown { target, .. } => format!("{} None", program.targets[target.0 as usize]),
        Outcome::Terminal(Terminal::Split(split)) => {
            format!("{} {:?}", program.spell_split(&split.shares), split.sticky)
        }
        Outcome::Terminal(terminal) => format!("{terminal:?}"),
        Outcome::Refused(_) => "refused".to_owned(),
        Outcome::DefaultPool => "default pool".to_owned(),
        Outcome::Waits => "waits".to_owned(),
    };
    let index = match decision.by {
        DecidedBy::Rule { index, .. } => index,
        DecidedBy::Nothing => RuleIndex((program.rules.len() + program.fallback.iter().len()) as u32),
    };
    let truth = program.rule(index).map_or(States::TRUE, |rule| States::of(rule.truth(subject)));
    let holds = match truth {
        States::TRUE => Holds::True,
        States::FALSE => Holds::False,
        _ => Holds::Unknown,
    };
    let noticed = decision.noticed(decision.outcome.audience()).filter(|(_, idle)| idle.is_none());
    let effects: Vec<_> = noticed.map(|(effect, _)| effect).collect();
    (Decider { rule: index, holds }, format!("{effects:?} {outcome}"))
}

type Groups = BTreeSet<(Decider, Decider)>;

/// All that should be found.
fn expected(old: &Program, new: &Program, subjects: &[MadeUp]) -> Groups {
    let groups = subjects.iter().filter_map(|subject| {
        let (one, other) = (decided(old, subject), decided(new, subject));
        (one.1 != other.1).then_some((one.0, other.0))
    });
    groups.collect()
}

fn found(differences: &Differences) -> Groups {
    let groups = differences.groups.iter().map(|group| (group.old, group.new)).collect();
    assert_eq!(differences.groups_count, differences.groups.len());
    groups
}

/// Another version of a rule set: some lines edited, left out, doubled or moved.
fn changed(source: &str, changes: &[(u8, Index, Index)], inserted: &str) -> String {
    let mut lines: Vec<String> = source.lines().map(str::to_owned).collect();
    for (kind, line, what) in changes {
        if lines.is_empty() {
            break;
        }
        let at = line.index(lines.len());
        match kind {
            0 => drop(lines.remove(at)),
            1 => {
                let line = lines.remove(at);
                let to = what.index(lines.len() + 1);
                lines.insert(to, line);
            }
            2 => lines.insert(at, inserted.trim_end().replacen("R0:", "", 1)),
            _ => {
                let fitting: Vec<_> = EDITS.iter().filter(|(from, _)| lines[at].contains(from)).collect();
                if !fitting.is_empty() {
                    let (from, to) = fitting[what.index(fitting.len())];
                    lines[at] = lines[at].replacen(from, to, 1);
                }
            }
        }
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn changes() -> impl Strategy<Value = Vec<(u8, Index, Index)>> {
    prop::collection::vec((select(vec![0, 1, 2, 3, 3, 3, 3]), any::<Index>(), any::<Index>()), 0..3)
}

/// Two rule sets, often one an edit of the other.
fn pairs() -> impl Strategy<Value = (String, String)> {
    let edited = (sources(), changes(), rules(0, 1))
        .prop_map(|(old, changes, inserted)| (old.clone(), changed(&old, &changes, &inserted)));
    prop_oneof![5 => edited, 1 => (sources(), sources())]
}

fn compiled(sources: (&str, &str)) -> Option<[Arc<Program>; 2]> {
    let [old, new] = [sources.0, sources.1].map(|source| compile(source, &Targets::Any).ok());
    Some([old?.program.into(), new?.program.into()])
}

proptest! {
    #![proptest_config(ProptestConfig { max_global_rejects: 100_000, ..ProptestConfig::default() })]

    #[test]
    fn differences_are_all_that_differs((old_text, new_text) in pairs()) {
        let Some([old, new]) = compiled((&old_text, &new_text)) else {
            return Err(TestCaseError::reject("a jump that leads nowhere"));
        };
        let joint = Program::joined(&[&old, &new]);
        let all = expected(&old, &new, &subjects(&joint));
        let differences = differences(side(&old), side(&new), &Setting::default(), Effort::new(20_000_000));
        let found = found(&differences);
        prop_assert_eq!(&found, &all, "{}---\n{}{:#?}", old_text, new_text, differences);
        prop_assert_eq!(differences.undecided_count, 0, "{}---\n{}{:#?}", old_text, new_text, differences);
    }

    #[test]
    fn differences_of_networks_are_all_that_differs(
        old_text in sources_of(networks::TESTS), other in sources_of(networks::TESTS), changes in changes(), is_edit in any::<bool>()
    ) {
        let inserted = other.lines().find(|line| line.starts_with("R0:")).unwrap_or_default();
        let new_text = if is_edit { changed(&old_text, &changes, inserted) } else { other.clone() };
        let Some([old, new]) = compiled((&old_text, &new_text)) else {
            return Err(TestCaseError::reject("a jump that leads nowhere"));
        };
        let all = expected(&old, &new, &subjects(&Program::joined(&[&old, &new])));
        let differences = differences(side(&old), side(&new), &Setting::default(), Effort::new(20_000_000));
        prop_assert_eq!(&found(&differences), &all, "{}---\n{}{:#?}", old_text, new_text, differences);
        prop_assert_eq!(differences.undecided_count, 0, "{}---\n{}{:#?}", old_text, new_text, differences);
    }

    /// With too few steps less is said, and nothing that is not so.
    #[test]
    fn nothing_false_is_said_in_few_steps((old_text, new_text) in pairs(), steps in 0_u64..4_000) {
        let Some([old, new]) = compiled((&old_text, &new_text)) else {
            return Err(TestCaseError::reject("a jump that leads nowhere"));
        };
        let joint = Program::joined(&[&old, &new]);
        let all = expected(&old, &new, &subjects(&joint));
        let differences = differences(side(&old), side(&new), &Setting::default(), Effort::new(steps));
        let found = found(&differences);
        prop_assert!(found.is_subset(&all), "{old_text}---\n{new_text}{differences:#?}");
        let owned_up = |(old, new): &(Decider, Decider)| {
            differences.undecided.iter().any(|one| match (one.old, one.new) {
                (Some(known), Some(other)) => (known, other) == (*old, *new),
                // Of a rule that does something on the way all behind it may be meant.
                (Some(known), None) => known.rule <= old.rule,
                (None, Some(known)) => known.rule <= new.rule,
                (None, None) => false,
            })
        };
        let missed: Vec<_> = all.difference(&found).filter(|group| !owned_up(group)).collect();
        // Behind the first hundred, which are in the order of the rules, they are only counted.
        let counted = differences.undecided_count - differences.undecided.len();
        let last = differences.undecided.iter().filter_map(|one| one.old.zip(one.new)).max();
        let are_counted = missed.len() <= counted && missed.iter().all(|group| Some(**group) > last);
        prop_assert!(are_counted, "{missed:?} {counted} {old_text}---\n{new_text}{differences:#?}");
    }

    /// A rule set is equal to itself, however little may be asked.
    #[test]
    fn what_is_written_alike_is_equal_without_asking(source in sources()) {
        let [old, new] = [program(&source), program(&source)];
        let differences = differences(side(&old), side(&new), &Setting::default(), Effort::new(0));
        prop_assert!(differences.are_none(), "{source}{differences:#?}");
    }
}

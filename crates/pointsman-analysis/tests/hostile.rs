//! Rule sets that are made to be hard: whatever they ask for, an analysis ends with the steps that it has, and what it did
//! not come to is said to be unknown.

use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pointsman_analysis::{
    Code, Doubt, Effort, Missed, RuleSide, Setting, differences, findings, misses, samples,
};
use pointsman_rules::{Field, RuleIndex, Subject, Targets, Value, compile};

use self::hard::{MANNERS, UNLIKE, everyday, program};

#[path = "sets/hard.rs"]
mod hard;

/// Far too few for any of the sets.
const STEPS: u64 = 100_000;

const RULES: usize = 600;

/// Beyond this something is not counted among the steps.
const TIME_MAX: Duration = Duration::from_secs(120);

/// The steps are far from enough, which is said, and nothing takes long that is not counted among them.
#[test]
fn hard_sets_end_and_say_what_is_open() {
    let setting = Setting::default();
    for (name, rule) in MANNERS {
        let begun = Instant::now();
        let (old, new) = (program(rule, RULES), program(rule, RULES / 2));
        let found = findings(&old, &setting, Effort::new(STEPS));
        assert!(found.iter().any(|finding| finding.code == Code::Unknown), "{name}: nothing is unknown");
        assert!(samples(&old, &setting, Effort::new(STEPS)).is_cut, "{name}: all was found");
        let side = |program| RuleSide { program, default_pool: None };
        let differ = differences(side(&old), side(&new), &setting, Effort::new(STEPS));
        assert!(!differ.are_none(), "{name}: half of the rules are taken for all");
        // Seconds where nobody else computes.
        assert!(begun.elapsed() < TIME_MAX, "{name} took {:?}", begun.elapsed());
    }
}

/// What is not made to be hard is settled.
#[test]
fn everyday_regexes_are_settled() {
    let found = findings(&everyday(300), &Setting::default(), Effort::new(u64::MAX));
    let unknown: Vec<_> = found.iter().filter(|finding| finding.code == Code::Unknown).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

/// There are more pairs of them than are asked about.
#[test]
fn regexes_of_unlike_kinds_are_settled() {
    for (name, rule) in UNLIKE {
        let found = findings(&program(rule, 300), &Setting::default(), Effort::new(u64::MAX));
        let unknown: Vec<_> = found.iter().filter(|finding| finding.code == Code::Unknown).collect();
        assert!(unknown.is_empty(), "{name}: {unknown:?}");
    }
}

/// A request of a client at port 7.
struct AtPort7;

impl Subject for AtPort7 {
    fn each(&self, field: &Field, see: &mut dyn FnMut(Value<'_>) -> ControlFlow<()>) {
        let value = match field {
            Field::SrcPort => Value::Integer(7),
            Field::Path => Value::Text(b"/"),
            Field::Host => Value::Text(b"a"),
            _ => return,
        };
        let _seen_enough = see(value);
    }
}

/// Very many alternatives are not read anew for each that is false, and what is too much is left out.
#[test]
fn misses_of_very_many_alternatives_are_found_or_left_out() {
    let mut source = "if (srcport == 7) { routeTo(a); }\nif (".to_owned();
    for at in 0..100_000 {
        let or = if at == 0 { "" } else { " || " };
        write!(source, "{or}path == \"/p{at}\" && host == \"h{at}\"").expect("memory");
    }
    source.push_str(") { routeTo(b); }\nif (path == \"/x\") { routeTo(c); }\n");
    let program = Arc::new(compile(&source, &Targets::Any).expect("a rule set").program);
    let begun = Instant::now();
    let found = misses(&program, &Setting::default(), &AtPort7, Missed::Closest(3), Effort::new(20_000_000));
    // Seconds where nobody else computes; as long as the square of them takes otherwise.
    assert!(begun.elapsed() < TIME_MAX / 3, "{:?}", begun.elapsed());
    let rules: Vec<_> = found.found.iter().map(|miss| miss.rule).collect();
    let left = found.unknown.expect("not all of them");
    assert_eq!((rules, left.rules, left.doubt), (vec![RuleIndex(2)], vec![RuleIndex(1)], Doubt::Steps));
}

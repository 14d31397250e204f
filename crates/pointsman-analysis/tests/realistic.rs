//! The analyst on rule sets as people write them: all faults that were sown are found, and no others.

mod sets;

use std::collections::BTreeSet;
use std::sync::Arc;

use pointsman_analysis::{Code, Effort, Finding, Setting, findings};
use pointsman_rules::{Program, RuleIndex, Severity, Targets, compile};
use sets::{Fault, Set};

/// As much as `pointsman check` gives a set of a few thousand rules.
const STEPS: u64 = 2_000_000_000;

fn label(program: &Program, index: RuleIndex) -> String {
    program.rule(index).map_or_else(|| "default".to_owned(), |rule| rule.label.to_string())
}

fn fault(program: &Program, finding: &Finding) -> Fault {
    Fault {
        code: finding.code.word(),
        rule: label(program, finding.rule),
        others: finding.others.iter().map(|&other| label(program, other)).collect(),
    }
}

fn check(set: &Set) {
    let program = match compile(&set.source, &Targets::Any) {
        Ok(compiled) => Arc::new(compiled.program),
        Err(diagnostics) => panic!("{}: {diagnostics:?}", set.name),
    };
    let found = findings(&program, &Setting::default(), Effort::new(STEPS));
    let counts = |finding: &&Finding| finding.severity == Severity::Warning || finding.code == Code::Unknown;
    let found: BTreeSet<_> = found.iter().filter(counts).map(|finding| fault(&program, finding)).collect();
    let expected: BTreeSet<_> = set.faults.iter().cloned().collect();
    assert_eq!(found, expected, "{}", set.name);
}

#[test]
fn what_was_sown_is_found_and_nothing_else() {
    sets::all().iter().for_each(check);
}

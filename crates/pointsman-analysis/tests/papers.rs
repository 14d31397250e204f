//! What the rule sets of the papers mean, as `testdata/rules/papers` has it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pointsman_analysis::{Effort, Setting, findings};
use pointsman_rules::{Targets, compile};

fn rule_sets() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/rules/papers");
    let entries =
        std::fs::read_dir(&folder).expect("a folder of rule sets").flatten().map(|entry| entry.path());
    entries.filter(|path| path.extension().is_some_and(|extension| extension == "rules")).collect()
}

/// Each finding as a line, with its witness below it. `UPDATE_EXPECT=1` writes them anew.
fn said(source: &str) -> String {
    let program = Arc::new(compile(source, &Targets::Any).expect("rules of the papers").program);
    let mut said = String::new();
    for finding in findings(&program, &Setting::default(), Effort::new(400_000_000)) {
        let (severity, code) = (finding.severity, finding.code.word());
        writeln!(said, "{severity:?} {code}: {}", finding.message).expect("a text takes all");
        for line in finding.witness.iter().flat_map(|witness| {
            let text = witness.to_string();
            text.lines().map(str::to_owned).collect::<Vec<_>>()
        }) {
            writeln!(said, "{}", format!("    {line}").trim_end()).expect("a text takes all");
        }
    }
    said
}

#[test]
fn what_the_papers_rule_sets_mean() {
    let rule_sets = rule_sets();
    assert!(rule_sets.len() >= 3, "{rule_sets:?}");
    for path in rule_sets {
        let source = std::fs::read_to_string(&path).expect("a rule set");
        let (said, expected) = (said(&source), path.with_extension("meaning"));
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            std::fs::write(&expected, said).expect("a writable folder");
            continue;
        }
        let wanted = std::fs::read_to_string(&expected).unwrap_or_default();
        assert_eq!(said, wanted, "{} differs; UPDATE_EXPECT=1 rewrites it", expected.display());
    }
}

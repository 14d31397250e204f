//! Conditions as people write them, against `testdata/analysis/everyday.txt`: of none of them anything is unknown.
//!
//! `UPDATE_EXPECT=1` writes what is expected anew.

use super::super::{Code, Finding, findings};
use super::listeners::setting_of;
use super::{program, with_reasons};
use crate::{Effort, Setting};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/analysis/everyday.txt");

#[test]
fn everyday_conditions_are_settled() {
    let file = std::fs::read_to_string(FILE).expect("the vectors are there");
    let (mut anew, mut unknown, mut pairs) = (String::new(), String::new(), 0);
    let mut setting = Setting::default();
    for line in file.lines().filter(|line| !line.starts_with('=')) {
        anew.push_str(&format!("{line}\n"));
        if let Some(listener) = line.strip_prefix('@') {
            setting = setting_of(listener);
            continue;
        }
        if let Some((one, other)) = line.split_once(" ~ ").filter(|_| !line.starts_with('#')) {
            let (said, open) = said(one, other, &setting);
            anew.push_str(&format!("= {said}\n"));
            unknown.push_str(&open.iter().map(|open| format!("{line}: {open}\n")).collect::<String>());
            pairs += 1;
        }
    }
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(FILE, &anew).expect("a writable file");
    }
    assert_eq!(unknown, "");
    assert!(pairs > 150, "{pairs}");
    assert!(anew == file || std::env::var_os("UPDATE_EXPECT").is_some(), "UPDATE_EXPECT=1 rewrites it");
}

/// What is said of the rules, but that there is a rest, and what is not.
fn said(one: &str, other: &str, setting: &Setting) -> (String, Vec<String>) {
    let source =
        format!("A: if ({one}) {{ routeTo(a); }}\nB: if ({other}) {{ routeTo(b); }}\nelse: routeTo(c);\n");
    let program = program(&source);
    let line = |finding: &Finding| {
        let rules = with_reasons(&program, finding.rule, &finding.others);
        format!("{} {rules}", finding.code.word())
    };
    let found = findings(&program, setting, Effort::new(50_000_000));
    let (open, settled): (Vec<_>, Vec<_>) = found
        .iter()
        .filter(|finding| finding.code != Code::Gap)
        .partition(|finding| finding.code == Code::Unknown);
    let said: Vec<_> = settled.into_iter().map(line).collect();
    let said = if said.is_empty() { "nothing".to_owned() } else { said.join(", ") };
    (said, open.iter().map(|finding| format!("{} {:?}", finding.message, finding.doubts)).collect())
}

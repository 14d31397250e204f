//! What comes to a listener and what never does, against `testdata/analysis/listeners.txt`.
//!
//! `UPDATE_EXPECT=1` writes what is expected anew.

use super::super::{Code, findings};
use super::program;
use crate::witness::tests::settle;
use crate::{Effort, Setting};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/analysis/listeners.txt");

#[test]
fn listeners_by_example() {
    let file = std::fs::read_to_string(FILE).expect("the vectors are there");
    let (mut anew, mut setting) = (String::new(), Setting::default());
    for line in file.lines().filter(|line| !line.starts_with('=')) {
        anew.push_str(&format!("{line}\n"));
        match line.strip_prefix('@') {
            Some(listener) => setting = setting_of(listener),
            None if line.is_empty() || line.starts_with('#') => {}
            None => anew.push_str(&format!("= {}\n", said(line, &setting))),
        }
    }
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(FILE, anew).expect("a writable file");
        return;
    }
    assert_eq!(anew, file, "UPDATE_EXPECT=1 rewrites it");
}

/// The listener of a line; rules by themselves where it says nothing.
pub(super) fn setting_of(listener: &str) -> Setting {
    let mut setting = Setting::default();
    let words = listener.split(';').map(str::trim).filter(|word| !word.is_empty());
    words.for_each(|word| settle(&mut setting, word));
    setting
}

fn said(condition: &str, setting: &Setting) -> &'static str {
    let program = program(&format!("R: if ({condition}) {{ reject(); }}\nelse: routeTo(a);\n"));
    let found = findings(&program, setting, Effort::new(50_000_000));
    let has = |code| found.iter().any(|finding| finding.rule.0 == 0 && finding.code == code);
    match () {
        () if has(Code::Contradiction) => "never",
        () if has(Code::Unknown) => "unknown",
        () => "comes",
    }
}

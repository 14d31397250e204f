//! Answers to questions, against `testdata/ask/questions.txt`.
//!
//! `UPDATE_EXPECT=1` writes what is expected anew.

use std::path::Path;
use std::{env, fs};

use pointsman_rules::Colour;

use super::{Options, answered};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/ask/questions.txt");

/// Rules behind `rules| `, or a configuration with them behind `toml| `, then questions behind `? `, each with its status
/// and what is printed behind `= `.
#[test]
fn questions_are_answered() {
    let file = fs::read_to_string(FILE).expect("the vectors are there");
    let folder = tempfile::tempdir().expect("a folder");
    let (mut rules, mut toml, mut anew) = (String::new(), String::new(), String::new());
    for line in file.lines().filter(|line| !line.starts_with('=')) {
        anew.push_str(&format!("{line}\n"));
        if line.is_empty() {
            rules.clear();
            toml.clear();
        } else if let Some(rule) = line.strip_prefix("rules| ") {
            rules.push_str(&format!("{rule}\n"));
        } else if let Some(key) = line.strip_prefix("toml| ") {
            toml.push_str(&format!("{key}\n"));
        } else if let Some(question) = line.strip_prefix("? ") {
            let printed = printed(folder.path(), &rules, &toml, question);
            anew.extend(printed.lines().map(|line| format!("= {line}").trim_end().to_owned() + "\n"));
        } else {
            assert!(line.starts_with('#'), "`{line}` does not stand here");
        }
    }
    if env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(FILE, anew).expect("a writable file");
        return;
    }
    assert_eq!(anew, file, "UPDATE_EXPECT=1 rewrites it");
}

fn printed(folder: &Path, rules: &str, toml: &str, question: &str) -> String {
    let path = folder.join("a.rules");
    fs::write(&path, rules).expect("a writable folder");
    let configuration = folder.join("a.toml");
    fs::write(&configuration, toml).expect("a writable folder");
    let (listener, question) = match question.strip_prefix('@').and_then(|rest| rest.split_once(' ')) {
        Some((listener, question)) => (Some(listener.to_owned()), question),
        None => (None, question),
    };
    let rules = if toml.is_empty() { path } else { configuration };
    let options = Options { rules, question: question.to_owned(), listener, json: false };
    match answered(&options, Colour::Never) {
        Ok((answer, warnings)) => format!("{} {}{warnings}", answer.status(), answer.text()),
        Err(complaint) => format!("2 {}", complaint.replace(&format!("{}/", folder.display()), "")),
    }
}

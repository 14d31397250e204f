//! Pairs of conditions over fields that have to do with each other, against `testdata/analysis/pairs.txt`.
//!
//! `UPDATE_EXPECT=1` writes what is expected anew.

use super::examples::label;
use super::{differences, program, side};
use crate::{Effort, Setting};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/analysis/pairs.txt");

#[test]
fn pairs_by_example() {
    let file = std::fs::read_to_string(FILE).expect("the vectors are there");
    let mut anew = String::new();
    for line in file.lines().filter(|line| !line.starts_with('=')) {
        anew.push_str(&format!("{line}\n"));
        if let Some((old, new)) = line.split_once(" ~ ").filter(|_| !line.starts_with('#')) {
            anew.push_str(&format!("= {}\n", said(old, new)));
        }
    }
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(FILE, anew).expect("a writable file");
        return;
    }
    assert_eq!(anew, file, "UPDATE_EXPECT=1 rewrites it");
}

fn said(old: &str, new: &str) -> String {
    let [old, new] = [old, new]
        .map(|condition| program(&format!("R: if ({condition}) {{ routeTo(a); }}\nelse: routeTo(b);\n")));
    let found = differences(side(&old), side(&new), &Setting::default(), Effort::new(50_000_000));
    if found.are_none() {
        return "equal".to_owned();
    }
    let ways =
        found.groups.iter().map(|group| format!("{} -> {}", label(&old, group.old), label(&new, group.new)));
    let unknown = found.undecided.iter().map(|open| {
        let ends = [(&old, open.old), (&new, open.new)]
            .map(|(program, end)| end.map_or("any".to_owned(), |end| label(program, end)));
        format!("? {} -> {}", ends[0], ends[1])
    });
    ways.chain(unknown).collect::<Vec<_>>().join(", ")
}

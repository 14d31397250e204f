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
    if found.decide_alike() {
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

/// Two blocks of a rule, and whether they do the same.
const ACTIONS: &[(&str, &str, bool)] = &[
    (
        r#"setHeader("x","1"); setHeader("x","2"); routeTo(a);"#,
        r#"setHeader("x","2"); setHeader("x","1"); routeTo(a);"#,
        false,
    ),
    (
        r#"setHeader("x","1"); addHeader("x","2"); routeTo(a);"#,
        r#"addHeader("x","2"); setHeader("x","1"); routeTo(a);"#,
        false,
    ),
    (r#"reject(403);"#, r#"reject(403, "no");"#, false),
    (r#"reject(403);"#, r#"reject();"#, true),
    (r#"reject(403, "a");"#, r#"reject(403, "b");"#, false),
    (r#"redirect(301, "/x");"#, r#"redirect(302, "/x");"#, false),
    (r#"redirect(302, "/x");"#, r#"redirect(302, "/x${query}");"#, false),
    (r#"respond(200, "a");"#, r#"respond(200, "b");"#, false),
    (r#"routeTo(a, STICKY_ON_IP);"#, r#"routeTo(a, STICKY_ON_COOKIE);"#, false),
    (r#"routeTo(a);"#, r#"routeTo(a.one);"#, false),
    (r#"rewritePath("a", "b"); routeTo(a);"#, r#"rewritePath("b", "a"); routeTo(a);"#, false),
    (r#"setHeader("X-a","1"); routeTo(a);"#, r#"setHeader("x-A","1"); routeTo(a);"#, true),
    (r#"setHeader("x","${path}"); routeTo(a);"#, r#"setHeader("x","/a"); routeTo(a);"#, false),
    (r#"setResponseHeader("x","1"); routeTo(a);"#, r#"setHeader("x","1"); routeTo(a);"#, false),
    (r#"removeHeader("x"); routeTo(a);"#, r#"routeTo(a);"#, false),
    (r#"setHeader("x","1"); removeHeader("x"); routeTo(a);"#, r#"removeHeader("x"); routeTo(a);"#, true),
    (
        r#"addHeader("x","1"); setHeader("x","${path}"); routeTo(a);"#,
        r#"setHeader("x","${path}"); routeTo(a);"#,
        true,
    ),
    (
        r#"setHeader("x","${path}"); setHeader("x","1"); routeTo(a);"#,
        r#"setHeader("x","1"); routeTo(a);"#,
        false,
    ),
    (r#"setHeader("x","${json.a}"); routeTo(a);"#, r#"routeTo(a);"#, false),
];

#[test]
fn actions_are_compared_with_all_that_they_do() {
    for (old, new, is_same) in ACTIONS {
        let [before, now] = [old, new]
            .map(|block| program(&format!("R: if (path == \"/a\") {{ {block} }}\nelse: routeTo(b);\n")));
        let found = differences(side(&before), side(&now), &Setting::default(), Effort::new(50_000_000));
        let ways = found.groups.iter().map(|group| (group.old.rule.0, group.new.rule.0)).collect::<Vec<_>>();
        let expected = if *is_same { Vec::new() } else { vec![(0, 0)] };
        assert_eq!((ways, found.decide_alike()), (expected, *is_same), "{old} ~ {new}: {found:?}");
    }
}

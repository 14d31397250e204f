//! Which rules may meet, as texts and as a property: what shares a request is never told apart.

use std::sync::Arc;

use pointsman_rules::{Program, Targets, compile};

use super::Meetings;
use crate::logic::findings::Report;
use crate::logic::rooms::{Rooms, Standing};
use crate::{Effort, Setting};

fn program(source: &str) -> Arc<Program> {
    Arc::new(compile(source, &Targets::Any).expect("it compiles").program)
}

fn with_rooms<T>(source: &str, see: impl FnOnce(&[Rooms<'_>]) -> T) -> T {
    let program = program(source);
    let setting = Setting::default();
    let mut report = Report::new(&program, &setting, Effort::new(100_000));
    see(&report.rooms(Standing::True))
}

/// The rules before the last one that may meet it.
fn before_last(source: &str) -> Vec<u32> {
    with_rooms(source, |rooms| {
        let last = u32::try_from(rooms.len()).expect("few") - 1;
        let meetings = Meetings::new((0..=last).collect(), rooms);
        meetings.of(&rooms[last as usize], 0..last, &mut 100).expect("few")
    })
}

#[test]
fn rules_that_cannot_meet_are_told_apart() {
    for (conditions, expected) in [
        (&[r#"host == "a" && path == "/x""#, r#"host in ["a", "b"]"#, r#"host == "b""#][..], &[1][..]),
        (&[r#"lower(path) == "/y""#, r#"path == "/x""#, r#"path == "/Y""#], &[0]),
        (&[r#"path startsWith "/a""#, r#"path startsWith "/b""#, r#"path startsWith "/ab""#], &[0]),
        (&[r#"path startsWith "/ab""#, r#"path == "/a""#, r#"path startsWith "/a""#], &[0, 1]),
        (&[r#"path under "/a""#, r#"path under "/ab""#, r#"path == "/ab/c""#], &[1]),
        (&[r#"host endsWith ".a""#, r#"host endsWith ".b""#, r#"host like "*x.a""#], &[0]),
        (&[r#"host like "a*b""#, r#"host like "a*c""#, r#"host == "axb""#], &[0]),
        (&[r#"path matches "^/v[12]/a""#, r#"path matches "^/w""#, r#"path == "/v1""#], &[0]),
        (&[r#"path matches "^/v1/[0-9]+$""#, r#"path matches "x""#, r#"path under "/v2""#], &[1]),
        (&[r#"path matches "^/v[0-9]+/a/""#, r#"path matches "^/v[0-9]+/A""#, r#"path under "/v1/b""#], &[]),
        (&[r#"path matches "^/v[0-9]+/a/[0-9]$""#, r#"path matches "x$""#, r#"path == "/v1/a/2""#], &[0]),
        (
            &[r#"path matches "^/a(/x)?$""#, r#"path matches "^/[^/]*/y""#, r#"path matches "^/a(/y)?$""#],
            &[0, 1],
        ),
        (&[r#"path matches "/a/.*[.](gif|png)$""#, r#"path matches "/b$""#, r#"path endsWith ".GIF""#], &[0]),
        (&["dstport < 80", "dstport <= 80", "dstport in [1, 81..90]", "dstport >= 80"], &[1, 2]),
        (&["dstport in [(5..80)]", "dstport in [5..80]", "dstport == 80"], &[1]),
        (&["srcip in [10.0.0.0/8]", "srcip == 11.0.0.1", "srcip > 10.255.0.0", "srcip == 10.1.1.1"], &[0]),
        (&["srcip == ::1", "srcip < ffff::", "srcip in [10.0.0.1..10.0.0.9]", "srcip == 10.0.0.4"], &[2]),
        (&[r#"header["a"] == "x""#, r#"first(header["a"]) == "z""#, r#"first(header["a"]) == "y""#], &[0]),
        (
            &[r#"once(header["a"]) == "x""#, r#"all(header["a"]) == "y""#, r#"first(header["a"]) == "y""#],
            &[1],
        ),
        (&[r#"count(header["a"]) == 1"#, r#"first(header["a"]) == 2"#, r#"count(header["a"]) > 1"#], &[1]),
        (&[r#"host == "a" || host == "b""#, r#"host == "a" || path == "/""#, r#"host == "c""#], &[1]),
        (&[r#"!(host == "c")"#, r#"host != "c""#, "host exists", r#"host == "c""#], &[0, 1, 2]),
        (&[r#"method == "GET" && dstport > 5 && dstport < 9"#, "dstport == 9", "dstport == 7"], &[0]),
    ] {
        let rules: Vec<_> =
            conditions.iter().map(|condition| format!("if ({condition}) {{ discard(); }}\n")).collect();
        assert_eq!(before_last(&rules.concat()), expected, "{conditions:?}");
    }
}

/// Of many rules those are found that all would be, compared one by one, and few are looked at.
#[test]
fn many_rules_are_found_as_one_by_one() {
    let rule = |at: usize| match at % 5 {
        0 => format!("dstport in [{}..{}] && method == \"GET\"", at, at + at % 400),
        1 => format!("path under \"/{}/x\"", at % 30),
        2 => format!("host endsWith \".{}\" && path startsWith \"/{}\"", at % 70, at % 9),
        3 => format!("srcip in [10.{}.0.0/{}] && method == \"PUT\"", at % 250, 8 + at % 16),
        _ => format!("first(header[\"a\"]) in [\"{}\", \"{}\"] && path under \"/\"", at, at / 2),
    };
    let rules: Vec<_> = (0..700).map(|at| format!("if ({}) {{ discard(); }}\n", rule(at))).collect();
    with_rooms(&rules.concat(), |rooms| {
        let count = u32::try_from(rooms.len()).expect("few");
        let meetings = Meetings::new((0..count).collect(), rooms);
        for (rule, own) in (0..).zip(rooms) {
            let plainly: Vec<u32> =
                (rule + 1..count).filter(|other| rooms[*other as usize].may_meet(own)).collect();
            assert_eq!(meetings.of(own, rule + 1..count, &mut 10_000), Some(plainly), "{rule}");
        }
    });
    let apart: Vec<_> =
        (0..3000).map(|at| format!("if (host endsWith \".x{at}y\") {{ discard(); }}\n")).collect();
    with_rooms(&apart.concat(), |rooms| {
        let meetings = Meetings::new((0..3000).collect(), rooms);
        let mut looks = 100;
        assert_eq!(meetings.of(&rooms[2999], 0..2999, &mut looks), Some(Vec::new()));
        assert_eq!((meetings.of(&Rooms::default(), 0..2999, &mut looks), looks), (None, 99));
        assert_eq!(meetings.of(&Rooms::default(), 0..99, &mut looks).map(|all| all.len()), Some(99));
        assert_eq!((meetings.of(&Rooms::default(), 0..1, &mut looks), looks), (None, 0));
    });
}

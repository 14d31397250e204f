//! Conditions of very many parts.

use super::super::tests::program;
use super::{Rooms, Standing};
use crate::logic::question::Analyst;
use crate::{Effort, Setting};

/// So many that looking at each with each of the others would not end.
const PARTS: usize = 8_000;

fn alternatives(count: usize) -> String {
    let part = |at| format!("(path == \"/p{at}\" && host == \"h{at}\")");
    (0..count).map(part).collect::<Vec<_>>().join(" || ")
}

/// How many intervals the first condition leaves along each axis, and whether what it leaves meets what the second does.
fn seen(first: &str, second: &str, effort: Effort) -> (Vec<usize>, bool) {
    let program = program(&format!("if ({first}) {{ routeTo(a); }}\nif ({second}) {{ routeTo(b); }}\n"));
    let setting = Setting::default();
    let mut analyst = Analyst::new(&program, &setting, effort);
    let [one, other] =
        [0, 1].map(|rule: usize| Rooms::of(&program.rules[rule].condition, Standing::True, &mut analyst));
    (one.each().map(|(_, room)| room.len()).collect(), one.may_meet(&other))
}

#[test]
fn alternatives_are_put_in_order_once() {
    let of = |second: &str| seen(&alternatives(PARTS), second, Effort::new(u64::MAX));
    let (rooms, meets) = of(r#"path == "/p7""#);
    assert!(rooms.iter().filter(|count| **count == PARTS).count() >= 2, "{rooms:?}");
    assert!(meets && !of(r#"path == "/p8000""#).1 && !of(r#"host == "x""#).1);
    // Of what one of them does not ask nothing is known.
    let (rooms, meets) =
        seen(r#"path == "/a" || path == "/b" && host == "x""#, r#"host == "y""#, Effort::new(u64::MAX));
    assert!(!rooms.is_empty() && meets);
    assert_eq!(
        seen(r#"path == "/a" || host == "x""#, r#"host == "y""#, Effort::new(u64::MAX)),
        (Vec::new(), true)
    );
}

/// Where nothing is left for it, everything may be left, and no part behind that is looked at.
#[test]
fn what_there_is_no_effort_for_is_not_known() {
    let late = Effort::new(u64::MAX).until(|| true);
    assert_eq!(seen(&alternatives(PARTS), r#"path == "/x""#, late), (Vec::new(), true));
    assert_eq!(seen(&alternatives(PARTS), r#"path == "/x""#, Effort::new(1_000)), (Vec::new(), true));
}

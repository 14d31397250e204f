//! What is said of a text against what the view cuts out of it.

use std::sync::Arc;

use pointsman_rules::{Condition, Field, OwnedValue, Program, Test, Truth};
use pointsman_view::BodyPaths;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::ValueTree as _;

use super::super::related::made_up;
use super::Line;
use crate::Setting;
use crate::wanted::{Sketch, Values};
use crate::witness::{realisable, with_subject};

/// A text, a field that is cut out of it, and what the text is made of.
struct Family {
    line: Line,
    field: &'static str,
    pieces: &'static [&'static str],
    begin: &'static str,
}

const FAMILIES: [Family; 6] = [
    Family {
        line: Line::Cookie,
        field: r#"cookie["a"]"#,
        pieces: &["a=1", "a = 1", "a", "=", "1", ";", "; ", " ", "A=1", "b=a=1", "x", "."],
        begin: "",
    },
    Family {
        line: Line::Query,
        field: r#"query["a"]"#,
        pieces: &["a=", "a", "%61", "%41", "1", "%31", "%3", "%", "+", "%20", "&", "=", "x", "%2F", "/", "."],
        begin: "",
    },
    Family {
        line: Line::Url,
        field: r#"query["a"]"#,
        pieces: &["?", "a=", "&a=1", "1", "%31", "x", "?a", "&", "/", "."],
        begin: "/",
    },
    Family {
        line: Line::Url,
        field: "query",
        pieces: &["?", "a", "1", "/", "a=1", "x", "."],
        begin: "http://a.example/",
    },
    Family {
        line: Line::Host,
        field: "host",
        pieces: &["a", "A", ".", "1", "x", "a.x", ":", ":80", "[::1]", "[::A]", "[1::]"],
        begin: "",
    },
    Family {
        line: Line::ContentType,
        field: "content_type",
        pieces: &["a/", "A", "1", "x", ";", " ", "; a=1", "+", "."],
        begin: "",
    },
];

fn comparison() -> impl Strategy<Value = String> {
    let part =
        || vec(select(vec!["a", "1", "x", ".", "=", "A", "/", " "]), 0..3).prop_map(|parts| parts.concat());
    let pattern = vec(select(vec!["a", "1", "*", "?", ".", "x"]), 0..4).prop_map(|parts| parts.concat());
    let ops = vec!["==", "!=", "contains", "startsWith", "endsWith", "under"];
    prop_oneof![
        8 => (select(ops), part()).prop_map(|(op, text)| format!("{op} \"{text}\"")),
        3 => pattern.prop_map(|pattern| format!("like \"{pattern}\"")),
        1 => (part(), part()).prop_map(|(one, other)| format!("in [\"{one}\", \"{other}\"]")),
        1 => Just("exists".to_owned()),
    ]
}

fn only_test(program: &Program) -> &Test {
    match &program.rules[0].condition {
        Condition::Test(test) => test,
        other => panic!("{other:?} is not one test"),
    }
}

/// Whether each of some conditions is true of a request that has this text; nothing where none has.
fn truths(line: &Field, text: &str, conditions: &[&str]) -> Option<Vec<bool>> {
    let program = Arc::new(made_up(conditions).unwrap_or_else(|| panic!("{conditions:?}")));
    let known = vec![OwnedValue::Text(text.as_bytes().into())];
    let sketch = Sketch { fields: vec![(line, Values { known, rest: None })] };
    let witness = realisable(&sketch, &Setting::default())?;
    let paths = Arc::new(BodyPaths::new(&program));
    with_subject(&program, &paths, &witness, &Setting::default(), |subject| {
        program.rules.iter().map(|rule| rule.truth(subject) == Truth::True).collect()
    })
}

/// What was cut out and spelled, what of it was true, and what was not.
fn check(family: &Family, comparison: &str, folds: bool, text: &str) -> Option<[bool; 2]> {
    let Family { line, field, begin, .. } = family;
    let field = if folds { format!("lower({field})") } else { (*field).to_owned() };
    let condition = format!("{field} {comparison}");
    let program = made_up(&[&condition])?;
    let spelled = line.spelled(None, only_test(&program))?;
    let of_line = made_up(&[&format!("{} exists", line.name())])?;
    let covers = spelled.iter().flat_map(|(cover, _)| [&cover.within, &cover.around]);
    let covers: Vec<_> = covers.map(|regex| format!("{} matches \"{regex}\"", line.name())).collect();
    let conditions: Vec<&str> =
        [condition.as_str()].into_iter().chain(covers.iter().map(String::as_str)).collect();
    let text = format!("{begin}{text}");
    let found = truths(&only_test(&of_line).field, text.trim(), &conditions)?;
    let (is_true, covers) = found.split_first()?;
    let sides = |place: usize| {
        let pairs = covers.chunks(2).zip(&spelled);
        // What is not to hold is taken the other way round.
        pairs.into_iter().all(|(pair, (_, holds))| if *holds { pair[place] } else { !pair[1 - place] })
    };
    assert!(!sides(0) || *is_true, "{condition} is not true of {text:?}: {conditions:?}");
    assert!(sides(1) || !is_true, "{condition} is true of {text:?}: {conditions:?}");
    Some([*is_true, sides(0) == sides(1)])
}

#[test]
fn texts_are_true_within_and_no_others_around() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    for family in &FAMILIES {
        let texts = vec(select(family.pieces), 0..6).prop_map(|parts| parts.concat());
        let strategy = (comparison(), any::<bool>(), texts);
        let (mut looked_at, mut are_true, mut are_exact) = (0, 0, 0);
        for _ in 0..2_500 {
            let (comparison, folds, text) =
                strategy.new_tree(&mut runner).expect("nothing is rejected").current();
            if let Some([is_true, is_exact]) = check(family, &comparison, folds, &text) {
                looked_at += 1;
                are_true += u32::from(is_true);
                are_exact += u32::from(is_exact);
            }
        }
        let name = family.field;
        assert!(looked_at > 200 && are_true > 30, "{name}: {looked_at} looked at, {are_true} true");
        assert!(are_exact * 10 > looked_at * 8, "{name}: {are_exact} of {looked_at} are exact");
    }
}

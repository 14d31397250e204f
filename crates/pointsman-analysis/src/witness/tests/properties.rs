//! Whatever is sought: there is no request, or one that shows it to the engine.

use std::sync::{Arc, LazyLock};

use pointsman_rules::{Field, Outcome, OwnedValue, Place, Targets, Terminal, Truths, compile};
use pointsman_view::BodyPaths;
use proptest::prelude::*;
use proptest::sample::subsequence;

use super::{sketches, wish};
use crate::Effort;
use crate::wanted::{Sketch, Values};
use crate::witness::{Setting, Witness, realise, with_subject};

/// All lines of sketches in the vectors, each once, with what they mean.
static LINES: LazyLock<Vec<(String, Field, Values)>> = LazyLock::new(|| {
    let mut lines: Vec<String> = Vec::new();
    for sketch in sketches() {
        let new = sketch.lines().filter(|line| !line.starts_with("setting: ")).map(str::to_owned);
        lines.extend(new);
    }
    lines.sort();
    lines.dedup();
    let read = |line: String| {
        let (field, values) = wish(&line);
        (line, field, values)
    };
    lines.into_iter().map(read).collect()
});

/// Some lines of different fields.
fn some_lines() -> impl Strategy<Value = Vec<usize>> {
    let lines = subsequence((0..LINES.len()).collect::<Vec<_>>(), 1..8).prop_shuffle();
    lines.prop_map(|mut lines| {
        let mut fields: Vec<&Field> = Vec::new();
        lines.retain(|line| {
            let field = &LINES[*line].1;
            let is_new = !fields.contains(&field);
            fields.push(field);
            is_new
        });
        lines
    })
}

/// The same, with all that stands in bodies in one of a kind: otherwise hardly any is a request.
fn lines_of_a_kind() -> impl Strategy<Value = Vec<usize>> {
    (some_lines(), 0..3_usize).prop_map(|(mut lines, kind)| {
        lines.retain(|line| match &LINES[*line].1 {
            Field::Payload(payload) => match &payload.place {
                Place::Xml(_) => kind == 0,
                Place::Json(_) => kind == 1,
                Place::Form(_) => kind == 2,
                Place::Size => true,
            },
            _ => true,
        });
        lines
    })
}

fn sketch(lines: &[usize]) -> Sketch<'static> {
    let fields = lines.iter().map(|line| (&LINES[*line].1, LINES[*line].2.clone()));
    Sketch { fields: fields.collect() }
}

/// What a line says of a request, as a condition; nothing where no condition says that.
fn condition((line, field, values): &(String, Field, Values)) -> Option<String> {
    let is_json = matches!(field, Field::Payload(payload) if matches!(payload.place, Place::Json(_)));
    let is_in_body = matches!(field, Field::Payload(_));
    let (field, _) = line.split_once("  ")?;
    if values.rest.is_some() {
        return None;
    }
    let mut parts = vec![format!("count({field}) == {}", values.known.len())];
    for (number, value) in values.known.iter().enumerate() {
        let literal = match value {
            OwnedValue::Text(text) => {
                let text =
                    std::str::from_utf8(text).ok().filter(|text| !text.contains(['"', '\\', '\n', '\r']))?;
                format!("\"{text}\"")
            }
            OwnedValue::Integer(integer) => integer.to_string(),
            OwnedValue::Ip(address) if is_in_body => format!("\"{address}\""),
            OwnedValue::Boolean(truth) if is_in_body && !is_json => format!("\"{truth}\""),
            OwnedValue::Ip(address) => address.to_string(),
            OwnedValue::Boolean(truth) => truth.to_string(),
            OwnedValue::Nothing | OwnedValue::Unknown(_) => return None,
        };
        let asked = if number == 0 { format!("first({field})") } else { field.to_owned() };
        parts.push(format!("{asked} == {literal}"));
    }
    Some(parts.join(" && "))
}

/// Whether the engine sees in a witness what the lines say.
fn is_seen(lines: &[usize], witness: &Witness) -> bool {
    let conditions: Vec<String> = lines.iter().filter_map(|line| condition(&LINES[*line])).collect();
    if conditions.is_empty() {
        return true;
    }
    let namespaces = "namespace p = \"urn:p\"; namespace q = \"urn:q\";";
    let rules = format!(
        "{namespaces} if ({}) {{ respond(200, \"seen\"); }} else: reject();",
        conditions.join(" && ")
    );
    let program = compile(&rules, &Targets::Any).unwrap_or_else(|wrong| panic!("{rules}: {wrong:?}")).program;
    let program = Arc::new(program);
    let paths = Arc::new(BodyPaths::new(&program));
    let seen = with_subject(&program, &paths, witness, &Setting::default(), |subject| {
        let outcome = program.decide(subject, &mut Truths::default()).outcome;
        matches!(outcome, Outcome::Terminal(Terminal::Respond { .. }))
    });
    seen == Some(true)
}

/// As much as it takes.
fn effort() -> Effort {
    Effort::new(u64::MAX)
}

fn check(lines: &[usize]) -> Result<(), TestCaseError> {
    let setting = Setting::default();
    match realise(&sketch(lines), &setting, &mut effort()) {
        Ok(witness) => prop_assert!(is_seen(lines, &witness), "{witness}\n{:?}", texts(lines)),
        Err(unrealisable) => {
            let named: Vec<usize> =
                lines.iter().copied().filter(|line| unrealisable.fields.contains(&LINES[*line].1)).collect();
            prop_assert!(!named.is_empty() && named.len() == unrealisable.fields.len());
            prop_assert!(realise(&sketch(&named), &setting, &mut effort()).is_err(), "{:?}", texts(&named));
            for line in &named {
                let others: Vec<usize> = named.iter().copied().filter(|other| other != line).collect();
                let without = realise(&sketch(&others), &setting, &mut effort());
                prop_assert!(without.is_ok(), "{:?} without {}", texts(&named), LINES[*line].0);
            }
        }
    }
    Ok(())
}

fn texts(lines: &[usize]) -> Vec<&'static str> {
    lines.iter().map(|line| LINES[*line].0.as_str()).collect()
}

/// There is a request for each kind of field alone.
#[test]
fn every_kind_of_field_is_shown_by_some_request() {
    let kinds = |is_counted: &dyn Fn(&[usize]) -> bool| {
        let mut kinds: Vec<String> = Vec::new();
        for (at, (_, field, values)) in LINES.iter().enumerate() {
            let kind = match field {
                Field::Payload(payload) => format!("body {:?}", std::mem::discriminant(&payload.place)),
                field => format!("{:?}", std::mem::discriminant(field)),
            };
            if !values.known.is_empty() && is_counted(&[at]) && !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        kinds.len()
    };
    let realised = kinds(&|lines| realise(&sketch(lines), &Setting::default(), &mut effort()).is_ok());
    // 29 kinds of fields in connections and heads, and four in bodies.
    assert_eq!((kinds(&|_| true), realised), (33, 33));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases * 8 / 5))]

    #[test]
    fn what_is_sought_is_seen(lines in some_lines()) {
        check(&lines)?;
    }

    #[test]
    fn what_is_sought_in_one_body_is_seen(lines in lines_of_a_kind()) {
        check(&lines)?;
    }
}

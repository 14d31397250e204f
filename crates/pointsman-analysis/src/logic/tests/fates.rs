//! What hangs on a whole set, and not on one rule after another: which members of a JSON body may not stand there twice, whether
//! a body is looked into before a decision, and which fields with odd names are taken away.

use std::sync::{Arc, LazyLock};

use pointsman_http::{OddNames, RequestHead};
use pointsman_rules::{Program, Targets, compile};
use pointsman_view::BodyPaths;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::super::difference::tests::decided;
use super::super::{Code, findings};
use super::program;
use crate::witness::{Witness, with_subject};
use crate::{Effort, OddFields, Setting, Spoilt};

/// What is asked of a request in the generated rules.
pub(in crate::logic) const TESTS: &[&str] = &[
    r#"path == "/a""#,
    r#"host == "x""#,
    r#"header["x-a"] == "1""#,
    r#"header["x_a"] == "1""#,
    r#"header["x-b"] exists"#,
    r#"json.a == "1""#,
    r#"json.b == "1""#,
    r#"json.c.d == "1""#,
    r#"json.l[*].e == "1""#,
    r#"json.l[0].f exists"#,
    r#"xml.a/b == "1""#,
    r#"xml.a/c[2] == "1""#,
    r#"form["a"] == "1""#,
    "body.size > 9",
];

const BODIES: &[(&str, &[&str])] = &[
    (
        "application/json",
        &[
            r#"{"a":"1"}"#,
            r#"{"a":"1"} x"#,
            r#"{"b":"1"} x"#,
            r#"{"z":"1"} x"#,
            r#"{"a":"1","a":"2","b":"1"}"#,
            r#"{"b":"2","a":"1","b":"1"}"#,
            r#"{"c":{"d":"1","d":"2"},"a":"1"}"#,
            r#"{"c":{"d":"1"},"c":{},"a":"1"}"#,
            r#"{"l":[{"e":"1","e":"2"}],"a":"1","b":"1"}"#,
            r#"{"a":"1","l":[{"f":"1","f":"2"},{"e":"1"}]}"#,
            "x",
        ],
    ),
    ("text/xml", &["<a><b>1</b></a>", "<a><b>1</b><c/></a> <", "<a><c/><c>1</c></a>x", "<a>"]),
    ("application/x-www-form-urlencoded", &["a=1", "a=1&b=%ff", "b=1&b=2&%ff=1"]),
    ("text/plain", &["x"]),
];

/// Each body with some heads.
pub(in crate::logic) static REQUESTS: LazyLock<Vec<Witness>> = LazyLock::new(|| {
    let kinds = BODIES.iter().flat_map(|(kind, bodies)| bodies.iter().map(move |body| (*kind, *body)));
    let written = kinds.flat_map(|(kind, body)| {
        [("/a", "y"), ("/b", "x"), ("/b", "y")].into_iter().flat_map(move |(path, host)| {
            ["X-Z: 1", "X_A: 1", "X-A: 1", "X_B: 1"].map(|field| {
                let length = body.len();
                format!(
                    "POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n{field}\r\n\r\n{body}"
                )
            })
        })
    });
    written.map(|request| Witness::written(request.into_bytes())).collect()
});

/// A listener where fields with odd names stay, but for those that read like what these rules name, or what their class is keyed
/// by.
pub(in crate::logic) fn keeping(program: &Program) -> Setting {
    let key = program.limit_classes().next().map(|_| "x-a");
    let names = program.named_headers().all().into_iter().chain(key);
    let limit_keys = vec![("by-a".into(), "x-a".into())];
    Setting { odd_fields: OddFields::Keep(names.map(Box::from).collect()), limit_keys, ..Setting::default() }
}

/// What becomes of a request at a listener with these rules: what is decided, what a server gets of its body, and which fields it
/// has.
pub(in crate::logic) fn fate(program: &Arc<Program>, request: &Witness, keeps: bool) -> String {
    let setting = if keeps { keeping(program) } else { Setting::default() };
    let paths = Arc::new(BodyPaths::new(program));
    let said = with_subject(program, &paths, request, &setting, |view| decided(program, view).1);
    let said = said.expect("a request");
    let spoilt = request.spoilt(program, &setting);
    if said.ends_with(" refused") || matches!(spoilt, Some(Spoilt::Refused(_))) {
        return "refused".to_owned();
    }
    let broken_off = if spoilt.is_some() { ", broken off" } else { "" };
    format!("{said}{broken_off} with {:?}", fields(request.as_written(), &setting))
}

/// The names of fields that stay.
fn fields(bytes: &[u8], setting: &Setting) -> Vec<String> {
    let mut head = RequestHead::default();
    assert_eq!(head.parse(bytes, &setting.head_limits), Ok(true));
    let odd_names = match &setting.odd_fields {
        OddFields::Keep(names) => OddNames::Keep(names),
        _ => OddNames::Drop,
    };
    head.settle_odd_names(bytes, odd_names).expect("they are not refused");
    let lines = head.lines().iter().filter(|line| !line.hidden);
    lines.map(|line| String::from_utf8_lossy(line.name(bytes)).into_owned()).collect()
}

pub(in crate::logic) fn conditions() -> impl Strategy<Value = String> {
    let test = (select(TESTS), prop::bool::weighted(0.8))
        .prop_map(|(test, is_plain)| if is_plain { test.to_owned() } else { format!("!({test})") });
    prop_oneof![
        3 => test.clone(),
        1 => vec(test.clone(), 2).prop_map(|parts| parts.join(" && ")),
        1 => vec(test, 2).prop_map(|parts| parts.join(" || ")),
    ]
}

/// Rule sets that mostly do the same with all requests, a rule a line.
pub(in crate::logic) fn sources() -> impl Strategy<Value = String> {
    let policy = select(vec!["", "on_unknown skip;", "on_unknown routeTo(a);"]);
    let validate = select(vec!["", "validate full;", "validate stream;"]);
    let block = prop_oneof![
        6 => Just("routeTo(a);"),
        1 => Just("routeTo(b);"),
        1 => Just("reject(403);"),
        1 => Just("routeTo(a, STICKY_ON(json.b));"),
        1 => Just("limitRate(by-a);"),
    ];
    let rules = vec((conditions(), block), 1..5).prop_map(|rules| {
        let rules = (0..)
            .zip(rules)
            .map(|(at, (condition, block))| format!("R{at}: if ({condition}) {{ {block} }}\n"));
        rules.collect::<String>()
    });
    let fallback = select(vec!["routeTo(a)", "routeTo(a)", "reject(403)"]);
    (policy, validate, rules, fallback).prop_map(|(policy, validate, rules, fallback)| {
        format!("{policy} {validate}\n{rules}else: {fallback};\n")
    })
}

/// The same without a rule.
pub(in crate::logic) fn without(source: &str, rule: u32) -> String {
    let label = format!("R{rule}:");
    let lines = source.lines().filter(|line| !line.starts_with(&label));
    lines.map(|line| format!("{line}\n")).collect()
}

fn check_redundant(source: &str, keeps: bool) -> Result<(), TestCaseError> {
    let whole = program(source);
    let setting = if keeps { keeping(&whole) } else { Setting::default() };
    let found = findings(&whole, &setting, Effort::new(10_000_000));
    for finding in found.iter().filter(|finding| finding.code == Code::Redundant) {
        let rest = without(source, finding.rule.0);
        let rest = Arc::new(compile(&rest, &Targets::Any).expect("rules").program);
        for request in REQUESTS.iter() {
            let (one, other) = (fate(&whole, request, keeps), fate(&rest, request, keeps));
            prop_assert_eq!(one, other, "{}{}\n{}", source, finding.message, request);
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn without_a_redundant_rule_the_same_becomes_of_every_request(source in sources(), keeps in any::<bool>()) {
        check_redundant(&source, keeps)?;
    }
}

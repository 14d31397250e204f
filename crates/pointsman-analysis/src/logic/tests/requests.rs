//! Findings over all kinds of fields, bodies among them, against some hundred requests: none of them does what is said to
//! be done by none.

use std::sync::{Arc, LazyLock};

use pointsman_rules::{Cause, Condition, Field, OwnedValue, Program, Subject, Truths};
use pointsman_view::BodyPaths;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::super::states::States;
use super::super::walk::{Instead, Passage, Walk, truth};
use super::super::{Code, Finding, findings};
use super::program;
use crate::wanted::{Sketch, Values};
use crate::witness::{Witness, realisable, with_subject};
use crate::{Effort, Setting};

type Asked = &'static [(&'static [&'static str], &'static [&'static [&'static str]])];

/// Tests of fields that have to do with each other, and values that the fields may have.
const ASKED: Asked = &[
    (&["json.a == 1", "json.a > 5", "json.a exists", r#"json.a == "x""#], &[&["1"], &["7"], &["x"], &[]]),
    (&["json.b[*] == 1", "all(json.b[*]) > 5", "count(json.b[*]) > 1"], &[&["1"], &["7", "8"], &["x", "9"]]),
    (&[r#"xml.r/b == "x""#, "xml.r/b > 3", r#"first(xml.r/b) != "x""#], &[&["x"], &["5", "x"], &["1"]]),
    (&[r#"form["f"] == "x""#, r#"once(form["f"]) == "y""#], &[&["x"], &["y"], &["x", "y"]]),
    (&["body.size > 10", "body.size == 0", "body.size exists"], &[&["0"], &["5"], &["40"]]),
    (
        &[r#"url == "/a?k=1""#, r#"url startsWith "/b""#, r#"url in ["/a", "/b/../a", "*"]"#],
        &[
            &["/a?k=1"],
            &["/b"],
            &["/b/../a"],
            &["/%61"],
            &["*"],
            &["http://a.example/a?k=1"],
            &["http://a.example"],
        ],
    ),
    (&[r#"path == "/a""#, r#"path under "/b""#, r#"path endsWith "/""#], &[&["/a"], &["/b/c"], &["/c/"]]),
    (&[r#"query == "k=1""#, "query exists"], &[&["k=1"], &["k=2&k=1"]]),
    (&[r#"query["k"] == "1""#, r#"query["k"] exists"#], &[&["1"], &["2", "1"], &["x y"]]),
    (&[r#"host == "a.example""#, r#"host endsWith ".example""#], &[&["a.example"], &["b.test"]]),
    (
        &[r#"header["host"] == "a.example""#, r#"header["host"] contains ":""#, r#"header["host"] exists"#],
        &[&["a.example"], &["A.example:80"], &["a.example."], &["b.test:1"], &[]],
    ),
    (&[r#"scheme == "http""#], &[&["http"], &["https"]]),
    (&[r#"proto == "https""#], &[&["https"]]),
    (&[r#"tls.version == "1.3""#, "tls.version exists"], &[&["1.3"], &["1.2"]]),
    (&["tls.cipher exists"], &[&["TLS13_AES_128_GCM_SHA256"]]),
    (
        &[r#"header["content-type"] == "text/xml""#, r#"header["content-type"] exists"#],
        &[&["text/xml"], &["Text/XML; charset=utf-8"], &["application/json", "text/xml"]],
    ),
    (&[r#"header["content-length"] exists"#, r#"header["content-length"] == "5""#], &[&["5"], &[]]),
    (&[r#"tls.sni == "a.example""#], &[&["a.example"]]),
    (
        &[r#"content_type == "application/json""#, "content_type exists"],
        &[&["application/json"], &["text/xml"]],
    ),
    (&["content_length > 10", "content_length exists"], &[&["20"], &["3"]]),
    (&["srcip == 10.0.0.1", "clientip in [10.0.0.0/8]"], &[&["10.0.0.1"], &["192.0.2.7"]]),
    (&[r#"version == "1.0""#], &[&["1.0"], &["2"]]),
    (&[r#"method == "POST""#, r#"method == "GET""#], &[&["POST"], &["GET"], &["PUT"]]),
    (&[r#"upgrade == "websocket""#], &[&["websocket"]]),
    (&[r#"cookie["c"] == "1""#, r#"header["cookie"] contains "c=""#], &[&["1"], &["2"], &["1", "3"]]),
];

/// The same of fields that are cut out of each other, or say what others may be.
const CUT_OUT: Asked = &[
    (&[r#"json.a == 1"#, r#"json.a exists"#], &[&["1"], &["7"]]),
    (&[r#"form["f"] == "x""#], &[&["x"]]),
    (&["body.size != 8", "body.size > 8", "body.size exists"], &[&["8"], &["20"]]),
    (&["content_length == 8", "content_length > 8"], &[&["8"], &["0"], &["20"]]),
    (
        &[r#"content_type endsWith "+json""#, r#"content_type startsWith "text/""#],
        &[&["application/a+json"], &["text/json"], &["text/plain"]],
    ),
    (
        &[r#"header["content-type"] contains "json""#, r#"header["content-type"] endsWith "x=1""#],
        &[&["text/a+json; x=1"], &["Application/JSON"], &["text/plain;json"]],
    ),
    (
        &[r#"cookie["c"] == "1""#, r#"cookie["c"] startsWith "1""#, r#"all(cookie["c"]) == "1""#],
        &[&["1"], &["12"], &["1", "3"]],
    ),
    (
        &[r#"header["cookie"] contains "b=2""#, r#"header["cookie"] startsWith "c=1""#],
        &[&["b=2; c=1"], &["c = 1"], &["c=1;b=2"], &["c=12", "b=2"]],
    ),
    (
        &[r#"query["k"] == "1""#, r#"query["k"] contains "1""#, r#"query["k"] exists"#],
        &[&["1"], &["12"], &["1", "2"]],
    ),
    (
        &[r#"query contains "k=""#, r#"query startsWith "k""#, "query exists"],
        &[&["k=1&x=1"], &["%6B=%31"], &["k"], &["x=1&k=+"]],
    ),
    (
        &[r#"url endsWith "&x=1""#, r#"url startsWith "http://""#, r#"url contains "k=1""#],
        &[&["/a?k=1&x=1"], &["http://a.example/a?x=1&x=1"], &["http://b.test"], &["/%61/../b?k=12"]],
    ),
    (&[r#"path under "/a""#, r#"path endsWith "b""#], &[&["/a"], &["/a/b"], &["/"]]),
    (
        &[r#"host endsWith ".example""#, r#"host startsWith "a.""#, r#"host like "*.test""#],
        &[&["a.example"], &["b.test"], &["[::a]"]],
    ),
    (
        &[r#"header["host"] contains ":""#, r#"header["host"] startsWith "A.""#],
        &[&["A.Example:80"], &["a.example."], &["[::A]:1"]],
    ),
    (&["srcip == 192.0.2.1"], &[&["192.0.2.1"]]),
    (&["clientip == 192.0.2.1", "clientip in [10.0.0.0/8]"], &[&["192.0.2.1"], &["10.0.0.1"]]),
    (
        &[r#"header["x-forwarded-for"] contains "192.0.2.1""#, r#"header["x-forwarded-for"] exists"#],
        &[&["192.0.2.1"], &["192.0.2.1, 10.0.0.1"], &["10.0.0.1", "192.0.2.1"]],
    ),
];

/// Requests that have one or two of the values, or a body that breaks off behind one.
pub(in crate::logic) static REQUESTS: LazyLock<Vec<Witness>> = LazyLock::new(|| requests_of(ASKED));
static CUT_OUT_REQUESTS: LazyLock<Vec<Witness>> = LazyLock::new(|| requests_of(CUT_OUT));

fn requests_of(asked: Asked) -> Vec<Witness> {
    // Rules that ask all.
    let tests = asked.iter().flat_map(|(tests, _)| *tests);
    let all = program(&tests.map(|test| format!("if ({test}) {{ discard(); }}\n")).collect::<String>());
    let fields: Vec<&Field> = all
        .rules
        .iter()
        .map(|rule| match &rule.condition {
            Condition::Test(test) => &test.field,
            other => panic!("{other:?} is not one test"),
        })
        .collect();
    let mut choices: Vec<(&Field, Values)> = Vec::new();
    let mut at = 0;
    for (tests, lists) in asked {
        let field = fields[at];
        at += tests.len();
        for list in *lists {
            let known: Vec<_> = list.iter().map(|text| value(field, text)).collect();
            choices.push((field, Values { known: known.clone(), rest: None }));
            if matches!(field, Field::Payload(_)) {
                choices.push((field, Values { known, rest: Some(Cause::Malformed) }));
            }
        }
    }
    let setting = Setting::default();
    let mut requests = Vec::new();
    for (at, first) in choices.iter().enumerate() {
        for second in &choices[at..] {
            let pair = [first.clone(), second.clone()];
            let fields = if first.0 == second.0 { pair[..1].to_vec() } else { pair.to_vec() };
            requests.extend(realisable(&Sketch { fields }, &setting));
        }
    }
    // As many as there is time for.
    let step = requests.len().div_ceil(400).max(1);
    let requests: Vec<_> = requests.into_iter().step_by(step).collect();
    assert!(requests.len() > 200, "only {} requests", requests.len());
    requests
}

fn value(field: &Field, text: &str) -> OwnedValue {
    match field {
        Field::SrcIp | Field::ClientIp => OwnedValue::Ip(text.parse().expect("an address")),
        Field::ContentLength => OwnedValue::Integer(text.parse().expect("a number")),
        Field::Payload(payload) if payload.to_string() == "body.size" => {
            OwnedValue::Integer(text.parse().expect("a number"))
        }
        _ => OwnedValue::Text(text.as_bytes().into()),
    }
}

fn conditions(asked: Asked) -> impl Strategy<Value = String> {
    let tests: Vec<_> = asked.iter().flat_map(|(tests, _)| *tests).copied().collect();
    let test = (select(tests), any::<bool>())
        .prop_map(|(test, is_plain)| if is_plain { test.to_owned() } else { format!("!({test})") });
    prop_oneof![
        2 => test.clone(),
        3 => vec(test.clone(), 2..4).prop_map(|parts| parts.join(" && ")),
        2 => vec(test, 2..4).prop_map(|parts| parts.join(" || ")),
    ]
}

pub(in crate::logic) fn sources() -> impl Strategy<Value = String> {
    sources_of(ASKED)
}

fn sources_of(asked: Asked) -> impl Strategy<Value = String> {
    let policy = select(vec!["", "on_unknown skip;\n", "on_unknown routeTo(c);\n"]);
    let blocks = select(vec!["routeTo(a);", "routeTo(b);", "routeTo(a, STICKY_ON(json.a));", "goto last;"]);
    let rule = (conditions(asked), blocks, prop::option::weighted(0.3, Just("else { reject(404); }")));
    let rules = vec(rule, 1..6).prop_map(|rules| {
        let rule = |(condition, block, otherwise): (String, &str, Option<&str>)| {
            format!("if ({condition}) {{ {block} }} {}\n", otherwise.unwrap_or_default())
        };
        rules.into_iter().map(rule).collect::<String>()
    });
    let last = conditions(asked).prop_map(|condition| format!("last: if ({condition}) {{ discard(); }}\n"));
    (policy, rules, last)
        .prop_map(|(policy, rules, last)| format!("{policy}{rules}{last}else: routeTo(d);\n"))
}

/// Whether a request does what a finding says that none does.
pub(super) fn contradicts<S: Subject + ?Sized>(
    finding: &Finding,
    program: &Program,
    walk: &Walk,
    request: &S,
) -> bool {
    let rule = finding.rule.0;
    let state = truth(program, rule, request);
    let passage = walk.follow(program, request, rule, None, &mut Truths::default());
    let arrives = matches!(passage, Some(Passage::Arrived(_)));
    match finding.code {
        Code::Contradiction => state == States::TRUE,
        Code::Unreachable | Code::DeadGotoTarget if finding.message.starts_with("no request gets to") => {
            arrives
        }
        Code::Unreachable | Code::DeadGotoTarget => arrives && state == States::TRUE,
        Code::DeadElse => arrives && state == States::FALSE,
        Code::Redundant => {
            let is_same = matches!(
                walk.otherwise(program, request, rule, &mut Truths::default()),
                (Instead::Same(_), _)
            );
            arrives && state == States::TRUE && !is_same
        }
        _ => false,
    }
}

/// What is said of a rule set that one of some requests contradicts.
fn contradicted(source: &str, requests: &[Witness]) -> Option<String> {
    let program = program(source);
    let walk = Walk::new(&program);
    let paths = Arc::new(BodyPaths::new(&program));
    let found = findings(&program, &Setting::default(), Effort::new(10_000_000));
    let claims = |code| !matches!(code, Code::Conflict | Code::Gap | Code::Exception | Code::Unknown);
    let said: Vec<_> = found.iter().filter(|finding| claims(finding.code)).collect();
    requests.iter().filter(|_| !said.is_empty()).find_map(|request| {
        let wrong = with_subject(&program, &paths, request, &Setting::default(), |view| {
            said.iter().copied().find(|finding| contradicts(finding, &program, &walk, view))
        });
        wrong.flatten().map(|wrong| format!("{source}{wrong:#?}\n{request}"))
    })
}

proptest! {
    #[test]
    fn no_request_does_what_none_is_said_to_do(source in sources()) {
        prop_assert_eq!(contradicted(&source, &REQUESTS), None);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases / 2))]

    #[test]
    fn no_request_does_so_with_what_is_cut_out_of_it(source in sources_of(CUT_OUT)) {
        prop_assert_eq!(contradicted(&source, &CUT_OUT_REQUESTS), None);
    }
}

//! Generated tests are read again, pass, and take what can be taken.

mod related;

use std::fs;
use std::path::Path;
use std::sync::Arc;

use pointsman_rules::{Further, Targets, compile};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::explain::place::Place;
use crate::test::mutants::Mutation;
use crate::test::suite::TestFile;

fn suite(source: &str, files: Vec<TestFile>) -> Suite {
    let compiled = compile(source, &Targets::Any).unwrap_or_else(|wrong| panic!("{source}{wrong:?}"));
    let program = Arc::new(compiled.program);
    Suite {
        name: "a.rules".to_owned(),
        place: Place::of_no_listener(program.clone(), Vec::new()),
        program,
        targets: Targets::Any,
        files,
        beside: compiled.tests,
    }
}

/// What the tests take of the rules.
fn coverage(suite: &Suite, generated: &Generated) -> Coverage {
    let read = suite.beside.further(&generated.text, &suite.program, &suite.targets);
    let (Further { cases, .. }, _) = read.unwrap_or_else(|wrong| panic!("{}{wrong:?}", generated.text));
    assert_eq!(cases.len(), generated.tests, "{}", generated.text);
    let mut coverage = Coverage::new(&suite.program);
    for case in &cases {
        let verdict = trial::run(case, &suite.place, &suite.program, &mut coverage);
        assert_eq!(verdict, Verdict::Passed, "{} in {}", case.name, generated.text);
    }
    coverage
}

/// The sides of rules that no test takes, and no comment speaks of.
fn silent(coverage: &Coverage, generated: &Generated) -> Vec<String> {
    let comments: Vec<_> = generated.text.lines().filter_map(|line| line.strip_prefix("# ")).collect();
    let is_told = |side: &String| comments.iter().any(|comment| comment.starts_with(&format!("{side}: ")));
    let json = coverage.to_json();
    let rules = json["rules"].as_array().expect("rules").iter();
    let sides = rules.flat_map(|rule| {
        let label = rule["rule"].as_str().expect("a label");
        let is_last = label == "else";
        let sides =
            [(rule["true"] == 0, label.to_owned()), (rule["false"] == 0 && !is_last, format!("not {label}"))];
        sides.into_iter().filter(|(is_open, _)| *is_open).map(|(_, side)| side)
    });
    sides.filter(|side| !is_told(side)).collect()
}

const TESTS: &[&str] = &[
    r#"header["a"] == "x""#,
    r#"header["a"] > 5"#,
    r#"count(header["a"]) > 1"#,
    r#"once(header["b"]) == "x\"y""#,
    r#"dstport in [443, 80]"#,
    "dstport > 80",
    "srcip in [10.0.0.0/8]",
    "srcip == 10.1.2.3",
    r#"path startsWith "/a""#,
    r#"path under "/a/b""#,
    r#"path == "/b""#,
    r#"query["a"] contains "b""#,
    r#"method in ["GET", "PUT"]"#,
    "json.total > 52000",
    "json.total in [(1..5), 7]",
    "json.ok == true",
    r#"cookie["c"] like "a*""#,
    r#"header["d"] matches "^[0-9]+$""#,
    "content_length >= 100",
    r#"tls.sni endsWith ".blogs.example""#,
];

fn sources() -> impl Strategy<Value = String> {
    let joined = |sign: &'static str| {
        move |parts: Vec<String>| {
            let parts: Vec<_> = parts.iter().map(|part| format!("({part})")).collect();
            parts.join(sign)
        }
    };
    let condition = select(TESTS).prop_map(str::to_owned).prop_recursive(2, 5, 3, move |inner| {
        prop_oneof![
            inner.clone().prop_map(|inner| format!("!({inner})")),
            vec(inner.clone(), 2..4).prop_map(joined(" && ")),
            vec(inner, 2..4).prop_map(joined(" || ")),
        ]
    });
    let block = select(vec!["routeTo(a);", "routeTo(b);", "reject(403);", "tag(t);", "goto R9;"]);
    let rule = (condition, block, any::<bool>()).prop_map(|(condition, block, has_else)| {
        let otherwise = if has_else { " else { tag(u); }" } else { "" };
        format!("if ({condition}) {{ {block} }}{otherwise}\n")
    });
    let policy = select(vec!["", "on_unknown skip;\n", "on_unknown routeTo(c);\n"]);
    let fallback = select(vec!["", "else: routeTo(d);\n"]);
    (policy, vec(rule, 1..6), fallback).prop_map(|(policy, rules, fallback)| {
        let rules = (0..).zip(&rules).map(|(at, rule): (usize, _)| format!("R{at}: {rule}"));
        format!(
            "{policy}{}R9: if (host == \"last.example\") {{ routeTo(z); }}\n{fallback}",
            rules.collect::<String>()
        )
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases * 2 / 5))]
    #[test]
    fn what_is_generated_passes_and_takes_what_can_be_taken(source in sources()) {
        let suite = suite(&source, Vec::new());
        let generated = Generated::of(&suite, 10_000);
        let coverage = coverage(&suite, &generated);
        prop_assert_eq!(silent(&coverage, &generated), Vec::<String>::new(), "{}\n{}", &source, &generated.text);
        let again = Generated::of(&suite, 10_000);
        prop_assert_eq!(&generated.text, &again.text);
        prop_assert_eq!(pointsman_rules::format(&generated.text).ok(), Some(generated.text));
    }
}

/// Mutants that survive mean the same as the rules: of two that nothing meets both of, either may be first.
#[test]
fn generated_tests_of_the_examples_take_all_branches_and_kill_most_mutants() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for (file, percent) in [
        ("examples/shop/shop.rules", 100),
        ("examples/orders/orders.rules", 100),
        ("examples/models/models.rules", 100),
        ("crates/pointsman/src/demo/shop.rules", 100),
    ] {
        let source = fs::read_to_string(root.join(file)).expect("the rules are there");
        let rules = suite(&source, Vec::new());
        let generated = Generated::of(&rules, 1000);
        let (taken, all) = coverage(&rules, &generated).branches();
        assert_eq!(taken, all, "{file}: {}", generated.text);
        let (Further { cases, assertions }, _) =
            rules.beside.further(&generated.text, &rules.program, &rules.targets).expect("tests");
        let own = TestFile { name: "a.rules".to_owned(), source: source.clone().into(), cases, assertions };
        let mutation = Mutation::of(&[suite(&source, vec![own])], 10_000);
        assert_eq!(mutation.falls_under(percent), None, "{file}");
    }
}

/// Rules, and what stands in the tests that are made of them.
const WRITTEN: &[(&str, &[&str])] = &[
    // What no rule names is said where it matters.
    (
        "R1: if (url startsWith \"https://\") { routeTo(a); }\nR2: if (path == \"*\") { routeTo(b); }\n",
        &["test \"R1\" {\n    request url \"https://", "test \"R2\" {\n    request path \"*\"\n"],
    ),
    (
        "R1: if (tls.cipher contains \"_RSA_\") { routeTo(a); }\n",
        &["test \"R1\" {\n    request tls.cipher \"TLS_ECDHE_RSA_"],
    ),
    (
        "R1: if (version == \"2\" && tls.sni endsWith \".b\") { routeTo(a); }\n",
        &["test \"R1\" {\n    request version \"2\" tls.sni \""],
    ),
    (
        "R1: if (upgrade == \"websocket\" && header[\"sec-websocket-version\"] exists) { routeTo(a); }\n",
        &["test \"R1\" {\n    request upgrade \"websocket\"\n"],
    ),
    // What is too long to be known is there all the same.
    (
        "R1: if (!(form[\"f\"] exists)) { tag(t); }\nR2: if (!(form[\"f\"] == \"x\")) { tag(u); }\n",
        &["test \"R2 ends unknown\" {\n    request form[\"f\"] \"a\" body unknown(limit)\n"],
    ),
    // Of a body whose media type is not said, what its other fields come to is known.
    (
        "R1: if (!(body.size > 10) && !(content_type == \"text/json\") && !(json.a == 5)) { reject(403); }\n",
        &[
            "test \"R1 where body.size is 9\" {\n    request body.size 9\n    expect R1 -> reject(403)\n",
            "test \"R1 where body.size is 10\" {\n    request body.size 10\n    expect R1 -> reject(403)\n",
        ],
    ),
    // Before a fault of the body all values of one field are known, and another field is not.
    (
        "R1: if (!(count(json.b[*]) > 1)) { routeTo(a); }\nR2: if (json.a exists) { routeTo(b); }\n",
        &[
            "# R2 ends unknown: no test can say such a request: of a body at fault it says no more than the first",
        ],
    ),
    // Each border and side has a test or a reason.
    (
        "R1: if (path == \"/a\" || path under \"/a\") { routeTo(a); }\n",
        &["# R1 with path == \"/a\": that alone never decides it\n"],
    ),
    ("R1: if (path exists) { tag(t); }\n", &["# not R1: there is no such request\n"]),
    (
        "R1: if (dstport == 80) { routeTo(a); }\nR2: if (dstport > 80) { routeTo(b); }\n",
        &["# R2 where dstport is 80: R1 takes it before\n"],
    ),
    (
        "R1: if (method in [\"PUT\", \"POST\"]) { routeTo(a); }\n",
        &["# R1 where method is 'PUx', 'POSx': no request was found that has it\n"],
    ),
    (
        "R1: if (dstport > 80) { tag(t); }\nif (dstport > 90) { routeTo(b); }\n",
        &[
            "# R1 before #2: #2 decides it, has no label, and no test can expect it\n",
            "# #2: it has no label, and no test can expect it\n",
        ],
    ),
    // A text misses another one by a character.
    (
        "R1: if (header[\"a\"] contains \"é\") { routeTo(a); }\n",
        &["request header[\"a\"] \"xéx\"", "request header[\"a\"] \"xxx\""],
    ),
];

#[test]
fn what_is_written() {
    for (rules, expected) in WRITTEN {
        let suite = suite(rules, Vec::new());
        let generated = Generated::of(&suite, 1000);
        for part in *expected {
            assert!(generated.text.contains(part), "{part}\n{rules}{}", generated.text);
        }
        coverage(&suite, &generated);
    }
}

#[test]
fn that_not_all_borders_are_looked_at_is_said() {
    let rules = |count: usize| {
        let hosts: Vec<_> = (0..count).map(|host| format!("\"h{host}\"")).collect();
        let tests: Vec<_> = hosts.iter().take(count / 4 + 1).map(|host| format!("host == {host}")).collect();
        let list = hosts.join(", ");
        format!(
            "R1: if (host in [{list}]) {{ routeTo(a); }}\nR2: if ({}) {{ tag(t); }}\n",
            tests.join(" || ")
        )
    };
    for (count, expected) in [(8, 0), (257, 2)] {
        let generated = Generated::of(&suite(&rules(count), Vec::new()), 10_000);
        let comments = generated.text.matches(": it has more borders than are looked at\n").count();
        assert_eq!(comments, expected, "{}", generated.text);
    }
}

/// Where a listener has one port, every request has it.
#[test]
fn what_never_comes_to_a_listener_is_said() {
    let mut suite = suite("R1: if (dstport > 443) { routeTo(a); }\n", Vec::new());
    let place = &mut suite.place;
    (place.listener, place.takes_unix) = ("shop".into(), false);
    place.binds = vec!["127.0.0.1:443".parse().expect("an address")];
    let generated = Generated::of(&suite, 1000);
    for note in [
        "# R1: its condition is never true\n",
        "# R1 where dstport is 442, 444: no request that comes to this listener has it\n",
    ] {
        assert!(generated.text.contains(note), "{note}{}", generated.text);
    }
}

#[test]
fn what_cannot_be_tested_is_said() {
    let rules = "R1: if (path startsWith \"/a\") { routeTo(x); }\n\
                 R2: if (path startsWith \"/ab\") { routeTo(y); }\n\
                 if (dstport > 5 && dstport < 4) { routeTo(y); }\n\
                 if (method == \"PUT\") { routeTo(y); }\n";
    let suite = suite(rules, Vec::new());
    let generated = Generated::of(&suite, 2);
    assert_eq!(generated.tests, 2);
    for note in [
        "# R2: no request makes it true, because of R1\n",
        "# #3: its condition is never true\n",
        "# #4: it has no label, and no test can expect it\n",
        " more tests could be made: --tests-max\n",
    ] {
        assert!(generated.text.contains(note), "{note}{}", generated.text);
    }
    assert!(
        generated.summary().starts_with("2 tests are made, ") && generated.text.contains("test \"R1\" {")
    );
}

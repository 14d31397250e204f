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
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]
    #[test]
    fn what_is_generated_passes_and_takes_what_can_be_taken(source in sources()) {
        let suite = suite(&source, Vec::new());
        let generated = Generated::of(&suite, 10_000);
        let coverage = coverage(&suite, &generated);
        let missed = generated.text.lines().filter(|line| line.starts_with("# ") && line.contains(" true")).count();
        let (taken, all) = coverage.rules();
        prop_assert_eq!(taken + missed, all, "{}\n{}", &source, &generated.text);
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

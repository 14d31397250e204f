//! What the mutants of rule sets are.

use proptest::prelude::*;

use super::*;
use crate::{Targets, compile};

/// The mutants of a rule set as `kind: what becomes what`.
fn listed(source: &str) -> Vec<String> {
    let mutants = mutants(source, 1_000);
    assert_eq!(mutants.total, mutants.mutants.len());
    let line = |mutant: &Mutant| {
        let text = mutants.text(mutant);
        let compiled = compile(&text, &Targets::Any);
        let errors = compiled.err().unwrap_or_default();
        let is_jump = |finding: &crate::Diagnostic| finding.message.contains("jump");
        assert!(errors.iter().all(is_jump), "{source}: {text}: {errors:?}");
        assert_ne!(text, source);
        let was = mutant.span.of(source);
        format!("{}: {was} => {}", mutant.kind.word(), mutant.becomes)
    };
    mutants.mutants.iter().map(line).collect()
}

/// Of a condition those that are in it.
fn of_condition(condition: &str) -> Vec<String> {
    let mut lines = listed(&format!("if ({condition}) {{ reject(); }}"));
    assert!(lines.pop().is_some_and(|line| line.starts_with("rule: ")));
    lines
}

#[test]
fn every_comparison_has_neighbours() {
    for (condition, expected) in [
        ("path == \"/\"", &["comparison: path == \"/\" => path != \"/\""][..]),
        ("path != \"/\"", &["comparison: path != \"/\" => path == \"/\""]),
        (
            "srcport < 5",
            &[
                "comparison: srcport < 5 => srcport <= 5",
                "border: srcport < 5 => srcport < 4",
                "border: srcport < 5 => srcport < 6",
            ],
        ),
        ("host exists", &["comparison: host exists => !(host exists)"]),
        ("tls.resumed", &["comparison: tls.resumed => !(tls.resumed)"]),
        (
            "path under \"/a\"",
            &[
                "comparison: path under \"/a\" => path startsWith \"/a\"",
                "comparison: path under \"/a\" => !(path under \"/a\")",
            ],
        ),
        ("path endsWith \"a\"", &["comparison: path endsWith \"a\" => !(path endsWith \"a\")"]),
        (
            "srcip in [10.0.0.0/8, 192.0.2.1..192.0.2.9]",
            &[
                "comparison: srcip in [10.0.0.0/8, 192.0.2.1..192.0.2.9] => !(srcip in [10.0.0.0/8, 192.0.2.1..192.0.2.9])",
                "entry: 10.0.0.0/8,  => ",
                "border: 10.0.0.0/8 => 10.0.0.0/7",
                "border: 10.0.0.0/8 => 10.0.0.0/9",
                "entry: , 192.0.2.1..192.0.2.9 => ",
                "border: 192.0.2.1..192.0.2.9 => 192.0.2.0..192.0.2.9",
                "border: 192.0.2.1..192.0.2.9 => 192.0.2.2..192.0.2.9",
                "border: 192.0.2.1..192.0.2.9 => 192.0.2.1..192.0.2.8",
                "border: 192.0.2.1..192.0.2.9 => 192.0.2.1..192.0.2.10",
            ],
        ),
        (
            "!(host exists) || path == \"/\" && method == \"GET\"",
            &[
                "joint: !(host exists) || path == \"/\" && method == \"GET\" => !(host exists) && path == \"/\" && method == \"GET\"",
                "negation: !(host exists) => (host exists)",
                "comparison: host exists => !(host exists)",
                "joint: path == \"/\" && method == \"GET\" => path == \"/\" || method == \"GET\"",
                "comparison: path == \"/\" => path != \"/\"",
                "comparison: method == \"GET\" => method != \"GET\"",
            ],
        ),
        (
            "!(srcport in (1..5))",
            &[
                "negation: !(srcport in (1..5)) => (srcport in (1..5))",
                "comparison: srcport in (1..5) => !(srcport in (1..5))",
                "border: (1..5) => (0..5)",
                "border: (1..5) => (2..5)",
                "border: (1..5) => (1..4)",
                "border: (1..5) => (1..6)",
            ],
        ),
        ("strcmp(path, \"/\") == 0", &["comparison: strcmp(path, \"/\") == 0 => path != \"/\""]),
    ] {
        assert_eq!(of_condition(condition), expected, "{condition}");
    }
}

#[test]
fn rules_and_their_actions_have_neighbours() {
    let source = "# first\nR1: if (host exists) { routeTo(a); } else { routeTo(\"b.c\"); }\n{ discard(); }\nelse: routeTo(a);\n\
                  test \"t\" { request path \"/\" expect R1 -> a }\n";
    let expected = [
        "comparison: host exists => !(host exists)",
        "target: a => b.c",
        "target: \"b.c\" => a",
        "blocks: { routeTo(a); } else { routeTo(\"b.c\"); } => { routeTo(\"b.c\"); } else { routeTo(a); }",
        "rule: R1: if (host exists) { routeTo(a); } else { routeTo(\"b.c\"); } => R1: {}",
        "order: R1: if (host exists) { routeTo(a); } else { routeTo(\"b.c\"); }\n{ discard(); } => ",
        "rule: { discard(); } => {}",
        "target: a => b.c",
        "rule: else: routeTo(a); => ",
    ];
    assert_eq!(listed(source), expected);
    let mutants = mutants(source, 1_000);
    let places: Vec<_> = mutants.mutants.iter().map(|mutant| mutant.rule.0).collect();
    assert_eq!(places, [0, 0, 0, 0, 0, 0, 1, 2, 2]);
    let order = &mutants.mutants[5];
    let moved = [0, 1, 2].map(|rule| order.place_of(RuleIndex(rule)).0);
    assert_eq!(moved, [1, 0, 2]);
    assert!(mutants.text(order).starts_with("# first\n{ discard(); }\nR1: if"));
    assert!(!mutants.text(order).contains("test"));
}

#[test]
fn effects_are_left_out_one_by_one() {
    let source = "R1: if (host exists) { setHeader(\"a\", \"b\"); tag(x); }\nR2: { allow conflict(R1); }\nelse: routeTo(a);\n";
    let expected = [
        "comparison: host exists => !(host exists)",
        "effect: setHeader(\"a\", \"b\"); => ",
        "effect: tag(x); => ",
        "rule: R1: if (host exists) { setHeader(\"a\", \"b\"); tag(x); } => R1: {}",
        "rule: else: routeTo(a); => ",
    ];
    assert_eq!(listed(source), expected);
    assert_eq!(mutants(source, 2).mutants[1].rule, RuleIndex(0));
    assert_eq!(listed("if (host exists) tag(x);")[1], "effect: tag(x); => {}");
}

#[test]
fn many_are_spread_over_the_set() {
    let source: String = (0..100).map(|n| format!("if (path == \"/{n}\") {{ reject(); }}\n")).collect();
    let all = mutants(&source, usize::MAX);
    assert_eq!((all.total, all.mutants.len()), (299, 299));
    for max in [0, 1, 2, 7, 100, 298, 299, 300] {
        let some = mutants(&source, max);
        assert_eq!((some.total, some.mutants.len()), (299, max.min(299)), "{max}");
        let mut rest = all.mutants.iter();
        assert!(some.mutants.iter().all(|mutant| rest.any(|other| other == mutant)), "{max}");
        let last = some.mutants.last().map_or(0, |mutant| mutant.rule.0 as usize);
        assert!(last + 100 / max.max(1) + 1 >= 100 - 100 / max.max(1), "{max}: {last}");
    }
    assert_eq!(mutants("R1: if (", 10).total, 0);
}

proptest! {
    /// Whatever is read has mutants that can be written, and no text has more than it was asked for.
    #[test]
    fn any_text(source in "[ -~\n]{0,200}", max in 0_usize..20) {
        let mutants = mutants(&source, max);
        prop_assert!(mutants.mutants.len() <= max);
        for mutant in &mutants.mutants {
            prop_assert!(mutants.text(mutant).len() <= 2 * source.len() + 100);
        }
    }
}

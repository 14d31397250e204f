//! Assertions and questions: which decisions break them, and that nothing of them is in the program.

use std::collections::BTreeSet;

use pointsman_rules::{
    Cause, Claim, Colour, Exit, OnUnknown, Outcome, Program, RuleIndex, Targets, compile, draw,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

const RULES: &str = r#"
on_unknown routeTo(careful);
R1: if (path == "/1") { routeTo(fast); }
R2: if (path == "/2") { routeTo(fast.one); }
R3: if (path == "/3") { routeTo(slow); }
R4: if (path == "/4") { reject(404); }
R5: if (path == "/5") { discard(); }
R6: if (path == "/6") { redirect(301, "/new"); }
R7: if (path == "/7") { respond(200, "ok"); }
"#;

fn known() -> Targets {
    let pools =
        [("fast", vec!["one", "two"]), ("slow", vec!["three"]), ("careful", vec![]), ("idle", vec![])];
    Targets::known(pools)
}

/// By a letter or the number of its rule: `d` no rule decides, `u` the policy sends what is unknown, `r` it refuses that.
fn outcome(program: &Program, name: char) -> Outcome<'_> {
    let cause = Cause::Limit;
    match (name, name.to_digit(10).and_then(|number| program.rule(RuleIndex(number - 1)))) {
        ('d', _) => Outcome::DefaultPool,
        ('r', _) => Outcome::Refused(cause),
        (_, Some(rule)) => match &rule.then.exit {
            Exit::Terminal(terminal) => Outcome::Terminal(terminal),
            other => panic!("{other:?}"),
        },
        _ => match program.on_unknown {
            OnUnknown::RouteTo(target) => Outcome::RouteUnknown { target, cause },
            other => panic!("{other:?}"),
        },
    }
}

/// What breaks `never` and what breaks `always`, for each destination.
#[test]
fn destinations_take_what_leads_there() {
    let all: BTreeSet<char> = "1234567dur".chars().collect();
    for (destination, default_pool, perhaps, surely) in [
        ("fast", None, "", "12"),
        ("fast", Some("fast"), "", "12d"),
        ("fast.one", None, "1", "2"),
        ("one", None, "1", "2"),
        ("two", Some("fast"), "1d", ""),
        ("two", Some("slow"), "1", ""),
        ("slow", Some("idle"), "", "3"),
        ("three", None, "3", ""),
        ("careful", None, "", "u"),
        ("idle", Some("idle"), "", "d"),
        ("reject", None, "", "4r"),
        ("discard", None, "", "5"),
        ("redirect()", None, "", "6"),
        ("respond", None, "", "7"),
        ("default", Some("fast"), "", "d"),
    ] {
        for claim in ["never", "always"] {
            let source = format!("{RULES}assert \"a\": {claim} (method == \"GET\") -> {destination};\n");
            let compiled = compile(&source, &known()).unwrap_or_else(|wrong| panic!("{wrong:?}"));
            let [assertion] = compiled.tests.assertions.list.as_slice() else { panic!("{source}") };
            assert_eq!(assertion.claim.word(), claim);
            let breaks =
                |name: &char| assertion.is_broken_by(&outcome(&compiled.program, *name), default_pool);
            let broken: BTreeSet<char> = all.iter().copied().filter(breaks).collect();
            let (perhaps, surely) = (perhaps.chars(), surely.chars().collect::<BTreeSet<_>>());
            let expected = match assertion.claim {
                Claim::Never => perhaps.chain(surely).collect(),
                Claim::Always => all.difference(&surely).copied().collect(),
            };
            assert_eq!(broken, expected, "{claim} -> {destination}, {default_pool:?}");
        }
    }
}

/// An assertion costs nothing where requests are decided: the program is the same.
#[test]
fn assertions_leave_no_trace_in_the_program() {
    let rules = "R1: if (json.a == \"x\") { routeTo(fast); }\nelse: routeTo(slow);\n";
    let assertion = "assert \"a\": never (json.b == 1 || json.a == \"x\" || path matches \"x\") -> fast;\n";
    let [alone, beside] = [rules.to_owned(), format!("{rules}{assertion}")]
        .map(|source| compile(&source, &Targets::Any).expect("a rule set"));
    assert_eq!(format!("{:?}", alone.program), format!("{:?}", beside.program));
    assert_eq!(beside.tests.assertions.program().payloads.len(), 2);
    let mut numbers = Vec::new();
    beside.tests.assertions.list[0].condition.each_test(&mut |test| numbers.push(test.number()));
    // What the rules ask, too, is the same test.
    assert_eq!(numbers, [1, 0, 2]);
}

fn asked(question: &str, rules: &str, targets: &Targets) -> String {
    let compiled = compile(rules, targets).unwrap_or_else(|wrong| panic!("{wrong:?}"));
    match compiled.tests.question(question, &compiled.program, targets) {
        Ok((assertions, warnings)) => {
            let destination = &assertions.list[0].destination;
            let warnings: Vec<_> = warnings.iter().map(|warning| format!("; {}", warning.message)).collect();
            format!("{destination}{}", warnings.concat())
        }
        Err(findings) => draw(&findings, "the question", question, Colour::Never),
    }
}

#[test]
fn questions_are_read_as_people_write_them() {
    let rules = "namespace p = \"urn:p\"; if (xml.p:a == \"x\" || tls.resumed) { routeTo(fast.one); }";
    for (question, expected) in [
        ("can path == \"/\" reach fast?", "fast"),
        ("Can (path == \"/\") reach fast ?", "fast"),
        ("path == \"/\" && srcip in [10.0.0.0/8] reach fast.one", "fast.one"),
        ("can header[\"a\"] exists reach reject?", "reject"),
        ("can tls.resumed reach default?", "default"),
        ("can json.b > 1 || xml.p:c exists REACH \"fast\"?", "fast"),
        ("can url == \"*.gif\" reach fast?", "fast; `\"*.gif\"` is compared literally, with its `*`"),
    ] {
        assert_eq!(asked(question, rules, &Targets::Any), expected, "{question}");
    }
    for (question, message) in [
        ("", "expected a field, found the end of the question"),
        ("can", "expected a field, found the end of the question"),
        ("can path == \"/\"", "expected `reach`, found the end of the question"),
        ("can path == \"/\" get fast", "expected `reach`, found `get`"),
        ("can path == \"/\" reach", "expected a target, found the end of the question"),
        ("can path == \"/\" reach ?", "expected a target, found `?`"),
        ("can path == \"/\" reach fast or slow", "expected the end of the question, found `or`"),
        ("can pth == \"/\" reach fast", "help: did you mean `path`?"),
        ("can xml.q:a == 1 reach fast", "the prefix `q` is not declared"),
        ("can path == \"/\" reach fats", "help: did you mean `fast`?"),
        ("can path == \"/\" reach fast.two", "no rule sends to `fast.two`"),
    ] {
        let said = asked(question, rules, &Targets::Any);
        assert!(said.contains(message), "{question}\n{said}");
    }
    // Rules may name a target, and send nothing there.
    let idle = "R1: if (path == \"/\") { mirror(copies); routeTo(split(100: a, 0: b)); } else: routeTo(split(0: c.one, 100: a));";
    for (target, expected) in [
        ("copies", "copies; no rule sends to `copies`: only copies go there"),
        ("copies.one", "copies.one; no rule sends to `copies.one`: only copies go there"),
        ("b", "b; no rule sends to `b`: its share is 0 %"),
        ("c", "c; no rule sends to `c`: its share is 0 %"),
        ("a", "a"),
    ] {
        let question = format!("can path exists reach {target}?");
        assert_eq!(asked(&question, idle, &Targets::Any), expected, "{question}");
    }
    assert!(
        asked("can path exists reach c.two?", idle, &Targets::Any).contains("no rule sends to `c.two`\n")
    );
    // A pool of the configuration is one, whether a rule names it or not.
    let named = "if (path == \"/\") { routeTo(fast); }";
    assert_eq!(asked("can path == \"/\" reach idle?", named, &known()), "idle");
    assert!(asked("can path == \"/\" reach idel?", named, &known()).contains("did you mean `idle`?"));
}

const WORDS: &[&str] = &[
    "can",
    "reach",
    "path",
    "==",
    "\"/\"",
    "fast",
    "fast.one",
    "reject",
    "(",
    ")",
    "?",
    "&&",
    "||",
    "!",
    "json.a",
    "exists",
    "tls.resumed",
    "in",
    "[",
    "10.0.0.0/8",
    "]",
    "header",
    "[\"a\"]",
    ";",
    "assert \"x\":",
    "never",
    "always",
    "->",
    "#",
    "\"",
];

proptest! {
    /// Whatever is asked, there is an answer to it or an error, and never both.
    #[test]
    fn a_question_is_read_or_wrong(words in vec(select(WORDS), 0..12)) {
        let (question, targets) = (words.join(" "), known());
        let compiled = compile(RULES, &targets).expect("a rule set");
        match compiled.tests.question(&question, &compiled.program, &targets) {
            Ok((assertions, _)) => prop_assert_eq!(assertions.list.len(), 1),
            Err(findings) => prop_assert!(
                findings.iter().any(|finding| finding.severity == pointsman_rules::Severity::Error),
                "{}", question
            ),
        }
    }

    /// What an assertion is formatted to is what it was.
    #[test]
    fn assertions_are_read_or_wrong(words in vec(select(WORDS), 0..12)) {
        let source = format!("{RULES}assert \"x\": {};", words.join(" "));
        if let Ok(once) = pointsman_rules::format(&source) {
            prop_assert_eq!(pointsman_rules::format(&once), Ok(once.clone()));
        }
    }
}

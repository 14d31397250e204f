//! Proofs of assertions: small ones one by one, and all of generated rules against a look at every request.

use std::collections::BTreeSet;
use std::sync::Arc;

use pointsman_rules::{Assertions, DecidedBy, Program, Targets, Truth, Truths, compile};
use proptest::prelude::*;
use proptest::sample::select;

use super::super::{Barred, Proof, prove};
use super::{MadeUp, Sockets, conditions, sources, subjects};
use crate::{Effort, Setting};

fn compiled(source: &str) -> (Arc<Program>, Assertions) {
    let compiled = compile(source, &Targets::Any).unwrap_or_else(|wrong| panic!("{source}{wrong:?}"));
    (Arc::new(compiled.program), compiled.tests.assertions)
}

/// `R2 sends …` and the request's first line, or `holds` with the rules that bar others: `R4 by R1 R2`.
fn said(rules: &str, assertion: &str, default_pool: Option<&str>) -> String {
    let (program, assertions) = compiled(&format!("{rules}\nassert \"a\": {assertion};\n"));
    let setting = Setting { default_pool: default_pool.map(Into::into), ..Setting::default() };
    let name = |rule: &pointsman_rules::RuleIndex| {
        program.rule(*rule).map_or("nobody".to_owned(), |rule| rule.label.to_string())
    };
    let names = |rules: &[pointsman_rules::RuleIndex]| rules.iter().map(name).collect::<Vec<_>>().join(" ");
    let line = |barred: &Barred| match barred.by.as_slice() {
        [] => name(&barred.rule),
        by => format!("{} by {}", name(&barred.rule), names(by)),
    };
    let proofs = prove(&program, &assertions, &setting, Effort::new(50_000_000));
    let [proof] = proofs.as_slice() else { panic!("{proofs:?}") };
    match proof {
        Proof::Holds(barred) if barred.is_empty() => "holds".to_owned(),
        Proof::Holds(barred) => format!("holds: {}", barred.iter().map(line).collect::<Vec<_>>().join(", ")),
        Proof::Empty => "empty".to_owned(),
        Proof::Unknown(doubts) => format!("unknown: {}", names(&super::super::rules_in(doubts))),
        Proof::Broken(all) => {
            let broken = &all[0];
            let request = broken.witness.to_string();
            let first = request.lines().next().unwrap_or_default();
            format!("{}: {}; {first}", name(&broken.rule), broken.decision)
        }
    }
}

const SHOP: &str = r#"
R1: if (path under "/admin") { reject(403); }
R2: if (cookie["paid"] == "1") { routeTo(fast); }
R3: if (json.total > 100) { routeTo(fast.large); } else { routeTo(cheap.one); }
R4: if (path == "/late") { routeTo(cheap); }
"#;

#[test]
fn what_is_asserted_holds_or_is_refuted() {
    let shop = |assertion: &str| said(SHOP, assertion, None);
    assert_eq!(shop(r#"never (cookie["paid"] == "1") -> cheap"#), "holds: R3 by R2, R4 by R2");
    assert_eq!(
        shop(r#"never (cookie["paid"] exists) -> cheap"#),
        "R3: `R3` sends this request to `cheap.one`; GET / HTTP/1.1"
    );
    assert_eq!(shop(r#"never (path under "/admin/x") -> fast"#), "holds: R2 by R1, R3 by R1");
    assert_eq!(
        shop(r#"always (path under "/admin/x") -> reject"#),
        "holds: R2 by R1, R3 by R1, R4, nobody by R1"
    );
    assert_eq!(
        shop(r#"always (cookie["paid"] == "1") -> fast"#),
        "R1: `R1` rejects this request with 403; GET /admin HTTP/1.1"
    );
    assert_eq!(
        shop(r#"always (cookie["paid"] == "1" && !(path under "/admin")) -> fast"#),
        "holds: R1, R3 by R2, R4 by R2, nobody by R2"
    );
    // The policy refuses what ends unknown.
    assert_eq!(
        shop(r#"never (path == "/x") -> reject"#),
        "R3: the condition of `R3` ends unknown, and that refuses this request; POST /x HTTP/1.1"
    );
    assert_eq!(shop(r#"never (json.total > 200) -> reject"#).split(':').next(), Some("R1"));
    assert_eq!(shop(r#"never (json.total > 200 && !(path under "/admin")) -> cheap"#), "holds: R3, R4 by R3");
    // What no rule names, and what contradicts itself.
    assert_eq!(shop(r#"never (srcport > 5 && srcport < 3) -> cheap"#), "empty");
    assert_eq!(shop(r#"always (host == "Shop.example") -> cheap"#), "empty");
}

#[test]
fn pools_and_their_servers() {
    let rules = "R1: if (path == \"/1\") { routeTo(a); }\nR2: if (path == \"/2\") { routeTo(a.one); }\nelse: discard();";
    let first = |assertion: &str| said(rules, assertion, None).split(':').next().map(str::to_owned);
    for (assertion, expected) in [
        ("never (path == \"/1\") -> a.one", "R1"),
        ("never (path == \"/2\") -> a", "R2"),
        ("always (path == \"/1\") -> a.one", "R1"),
        ("always (path == \"/1\") -> a", "holds"),
        ("always (path == \"/2\") -> a", "holds"),
        ("always (path == \"/2\") -> a.one", "holds"),
        ("never (path == \"/3\") -> a", "holds"),
        ("always (path == \"/3\") -> discard", "holds"),
        ("never (path == \"/3\") -> default", "holds"),
    ] {
        assert_eq!(first(assertion).as_deref(), Some(expected), "{assertion}");
    }
}

#[test]
fn what_no_rule_decides_goes_to_the_default_pool() {
    let rules = "R1: if (path == \"/1\") { routeTo(a); }";
    let first = |assertion: &str, pool| said(rules, assertion, pool).split(':').next().map(str::to_owned);
    for (assertion, pool, expected) in [
        ("never (method == \"PUT\" && path == \"/2\") -> a", None, "holds"),
        ("never (method == \"PUT\" && path == \"/2\") -> a", Some("a"), "nobody"),
        ("never (method == \"PUT\" && path == \"/2\") -> a", Some("b"), "holds"),
        ("always (method == \"PUT\") -> a", None, "nobody"),
        ("always (method == \"PUT\") -> a", Some("a"), "holds"),
        ("never (method == \"PUT\") -> default", Some("a"), "nobody"),
        ("always (path == \"/2\") -> default", Some("a"), "holds"),
    ] {
        assert_eq!(first(assertion, pool).as_deref(), Some(expected), "{assertion} {pool:?}");
    }
}

/// Rules that name no key twice do not see that another one is there twice: only the condition does.
#[test]
fn a_condition_reads_its_own_fields_of_a_body() {
    let rules = "R1: if (json.a == 1) { routeTo(a); }\nelse: routeTo(b);";
    let first = |assertion: &str| said(rules, assertion, None).split(':').next().map(str::to_owned);
    for (assertion, expected) in [
        ("never (json.b == 2) -> a", "R1"),
        ("never (json.b == 2) -> b", "else"),
        ("always (json.b == 2 && json.a == 1) -> a", "holds"),
        // A body of one kind leaves no field of another unknown.
        ("always (xml.b == \"x\") -> b", "holds"),
        ("never (form[\"b\"] == \"x\" && json.a exists) -> a", "empty"),
    ] {
        assert_eq!(first(assertion).as_deref(), Some(expected), "{assertion}");
    }
}

fn asserted() -> impl Strategy<Value = String> {
    let destinations = select(vec!["a", "b", "c", "d", "reject", "default", "a.one"]);
    (select(vec!["never", "always"]), conditions(), destinations)
        .prop_map(|(claim, condition, destination)| format!("{claim} ({condition}) -> {destination}"))
}

/// Whether one of some subjects breaks the only assertion.
fn is_broken_by(subjects: &[MadeUp], program: &Arc<Program>, assertions: &Assertions) -> bool {
    let assertion = &assertions.list[0];
    subjects.iter().any(|subject| {
        assertion.condition.eval(subject) == Truth::True
            && assertion.is_broken_by(&program.decide(subject, &mut Truths::default()).outcome, None)
    })
}

/// The rules that decide one of some subjects so that the only assertion is broken.
fn breakers(subjects: &[MadeUp], program: &Arc<Program>, assertions: &Assertions) -> Vec<u32> {
    let assertion = &assertions.list[0];
    let decided = subjects.iter().filter(|subject| assertion.condition.eval(*subject) == Truth::True);
    let decisions = decided.filter_map(|subject| {
        let decision = program.decide_plainly(subject);
        let end = (program.rules.len() + program.fallback.iter().len()) as u32;
        let rule = match decision.by {
            DecidedBy::Rule { index, .. } => index.0,
            DecidedBy::Nothing => end,
        };
        assertion.is_broken_by(&decision.outcome, None).then_some(rule)
    });
    decisions.collect()
}

/// Whether the condition of the only assertion is true of one of them.
fn is_spoken_of(subjects: &[MadeUp], assertions: &Assertions) -> bool {
    subjects.iter().any(|subject| assertions.list[0].condition.eval(subject) == Truth::True)
}

/// Rules and an assertion, and all subjects that can be told apart by either.
fn all_of(source: &str, asserted: &str, sockets: Sockets) -> (Arc<Program>, Assertions, Vec<MadeUp>) {
    let (program, assertions) = compiled(&format!("{source}assert \"a\": {asserted};\n"));
    let condition = asserted.split_once(' ').and_then(|(_, rest)| rest.rsplit_once(" -> "));
    let (condition, _) = condition.expect("a condition and a destination");
    let (settings, rules) = source.split_at(source.find("R0:").expect("a first rule"));
    let (both, _) = compiled(&format!("{settings}if {condition} {{ tag(t); }}\n{rules}"));
    let subjects = subjects(&both, sockets);
    (program, assertions, subjects)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_answer_is_right(source in sources(), asserted in asserted()) {
        let (program, assertions, tcp) = all_of(&source, &asserted, Sockets::Tcp);
        let is_broken = is_broken_by(&tcp, &program, &assertions);
        let proofs = prove(&program, &assertions, &Setting::default(), Effort::new(50_000_000));
        match &proofs[0] {
            Proof::Holds(_) => {
                let (_, _, unix) = all_of(&source, &asserted, Sockets::Unix);
                prop_assert!(!is_broken_by(&unix, &program, &assertions), "{source}{asserted}");
            }
            Proof::Empty => {
                let (_, _, unix) = all_of(&source, &asserted, Sockets::Unix);
                prop_assert!(!is_spoken_of(&unix, &assertions), "{source}{asserted}");
            }
            Proof::Broken(all) => {
                prop_assert!(is_broken && !all.is_empty(), "{source}{asserted}{all:?}");
                // One for each rule that decides so, up to a few.
                let by: BTreeSet<_> = breakers(&tcp, &program, &assertions).into_iter().collect();
                let shown: BTreeSet<_> = all.iter().map(|broken| broken.rule.0).collect();
                prop_assert!(shown.len() == all.len() && shown.is_subset(&by), "{source}{asserted}{all:?}");
                prop_assert!(shown.len() == by.len().min(5), "{source}{asserted}{by:?}{all:?}");
            }
            // What only a Unix socket shows is unknown.
            Proof::Unknown(_) => {
                let (_, _, unix) = all_of(&source, &asserted, Sockets::Unix);
                let only_there = !is_broken && is_broken_by(&unix, &program, &assertions);
                prop_assert!(only_there, "{source}{asserted}{proofs:?}");
            }
        }
    }

    /// With too few steps less is known, and nothing is wrong.
    #[test]
    fn nothing_false_is_proved_in_few_steps(source in sources(), asserted in asserted(), steps in 0_u64..4_000) {
        let (program, assertions, unix) = all_of(&source, &asserted, Sockets::Unix);
        let proofs = prove(&program, &assertions, &Setting::default(), Effort::new(steps));
        let is_broken = is_broken_by(&unix, &program, &assertions);
        match &proofs[0] {
            Proof::Holds(_) => prop_assert!(!is_broken, "{source}{asserted}"),
            Proof::Empty => prop_assert!(!is_spoken_of(&unix, &assertions), "{source}{asserted}"),
            Proof::Broken(_) => prop_assert!(is_broken, "{source}{asserted}"),
            Proof::Unknown(doubts) => prop_assert!(doubts.iter().any(|doubt| !doubt.rules.is_empty()) || steps < 10),
        }
    }
}

//! Proofs of assertions: small ones one by one, and all of generated rules against a look at every request.

use std::collections::BTreeSet;
use std::sync::Arc;

use pointsman_rules::{Assertions, DecidedBy, Program, RuleIndex, Targets, Truth, Truths, compile};
use proptest::prelude::*;
use proptest::sample::select;

use super::super::{Barred, Proof, prove};
use super::{MadeUp, TESTS, conditions, sources, subjects, with_reasons};
use crate::{Effort, ProxyHeader, Setting};

fn compiled(source: &str) -> (Arc<Program>, Assertions) {
    let compiled = compile(source, &Targets::Any).unwrap_or_else(|wrong| panic!("{source}{wrong:?}"));
    (Arc::new(compiled.program), compiled.tests.assertions)
}

/// `R2 sends …` and the request's first line, or `holds` with the rules that bar others: `R4 by R1 R2`.
fn said(rules: &str, assertion: &str, default_pool: Option<&str>) -> String {
    said_in(rules, assertion, &Setting { default_pool: default_pool.map(Into::into), ..Setting::default() })
}

fn said_in(rules: &str, assertion: &str, setting: &Setting) -> String {
    let (program, assertions) = compiled(&format!("{rules}\nassert \"a\": {assertion};\n"));
    let name = |rule: RuleIndex| with_reasons(&program, rule, &[]);
    let names = |rules: &[RuleIndex]| rules.iter().map(|rule| name(*rule)).collect::<Vec<_>>().join(" ");
    let line = |barred: &Barred| with_reasons(&program, barred.rule, &barred.by);
    let proofs = prove(&program, &assertions, setting, Effort::new(50_000_000));
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
            let before = broken.before.as_ref().map(ToString::to_string).unwrap_or_default();
            let before = before.lines().next().map(|line| format!(" behind {line}")).unwrap_or_default();
            format!("{}: {}; {first}{before}", name(broken.rule), broken.decision)
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

/// With `sticky_scope = "listener"` it counts, too, where a client was sent before.
#[test]
fn clients_that_stay_break_what_rules_hold() {
    let rules = "R1: if (path == \"/a\" && method == \"GET\") { routeTo(a, STICKY_ON_IP); }\n\
                 R2: if (srcip == 10.0.0.1) { routeTo(b, STICKY_ON(header[\"x\"])); }\n\
                 R3: if (path == \"/c\") { routeTo(c, STICKY_ON_COOKIE); }\n\
                 R4: if (path == \"/n\" && path == \"/m\") { routeTo(e, STICKY_ON_IP); }\n\
                 R5: if (path == \"/no\") { reject(403); }\n\
                 R6: { routeTo(d); }";
    let scoped = |keeps_targets| Setting { keeps_targets, ..Setting::default() };
    let check = |assertion: &str, expected: &str| {
        let found = said_in(rules, assertion, &scoped(true));
        assert_eq!(found, expected, "{assertion}");
        assert!(said_in(rules, assertion, &scoped(false)).starts_with("holds"), "{assertion}");
    };
    check(
        "never (path == \"/x\") -> a",
        "R6: `R6` sends this request to `d`, but its client stays with `a`, where `R1` has sent it; GET /x HTTP/1.1 behind GET /a HTTP/1.1",
    );
    // The first request comes from where the second does, and says of its client what that one does.
    check(
        "always (path == \"/d\" && srcip == 10.0.0.2) -> d",
        "R6: `R6` sends this request to `d`, but its client stays with `a`, where `R1` has sent it; GET /d HTTP/1.1 behind GET /a HTTP/1.1",
    );
    check(
        "never (path == \"/x\" && srcip == 10.0.0.2) -> b",
        "R6: `R6` sends this request to `d`, but its client stays with `b`, where `R2` has sent it; GET /x HTTP/1.1 behind GET / HTTP/1.1",
    );
    // A client that comes from one address alone, and a cookie that the switch would give.
    let of_network = "R1: if (srcip in [10.0.0.0/8]) { routeTo(a, STICKY_ON_IP); }\nR2: { routeTo(d); }";
    let strict = Setting { may_trust_others: false, proxy_header: ProxyHeader::Off, ..scoped(true) };
    assert_eq!(said_in(of_network, "never (srcip in [192.0.2.0/24]) -> a", &strict), "unknown: R1");
    check("never (path == \"/x\") -> c", "unknown: R3");
    // A rule that nobody comes to, requests that nobody routes, and what is no target.
    check("never (path == \"/x\") -> e", "holds: R4");
    check("never (path == \"/no\" && srcip == 10.0.0.2) -> b", "holds: R2");
    check("never (path == \"/x\" && srcip == 10.0.0.2) -> default", "holds: nobody by R6");
    // Only who goes nowhere else goes there in any case.
    let holds = |rules: &str, assertion: &str| said_in(rules, assertion, &scoped(true)).starts_with("holds");
    let alone = "R1: if (path == \"/a\") { routeTo(a, STICKY_ON_IP); }\nR2: { routeTo(a.one); }";
    assert!(holds(alone, "always (method == \"GET\") -> a"));
    // What no rule decides goes to the default pool, and stays elsewhere.
    let open = "R1: if (path == \"/a\") { routeTo(a, STICKY_ON_IP); }";
    let with_pool = Setting { default_pool: Some("b".into()), ..scoped(true) };
    let left = "never (path == \"/x\") -> a";
    assert!(said_in(open, left, &with_pool).starts_with("nobody: no rule decides this request"));
    assert!(holds(open, left));
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
    (select(vec!["never", "always"]), conditions(TESTS), destinations)
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
fn all_of(source: &str, asserted: &str) -> (Arc<Program>, Assertions, Vec<MadeUp>) {
    let (program, assertions) = compiled(&format!("{source}assert \"a\": {asserted};\n"));
    let condition = asserted.split_once(' ').and_then(|(_, rest)| rest.rsplit_once(" -> "));
    let (condition, _) = condition.expect("a condition and a destination");
    let (settings, rules) = source.split_at(source.find("R0:").expect("a first rule"));
    let (both, _) = compiled(&format!("{settings}if {condition} {{ tag(t); }}\n{rules}"));
    let subjects = subjects(&both);
    (program, assertions, subjects)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases * 8 / 5))]

    #[test]
    fn every_answer_is_right(source in sources(), asserted in asserted()) {
        let (program, assertions, all) = all_of(&source, &asserted);
        let is_broken = is_broken_by(&all, &program, &assertions);
        let proofs = prove(&program, &assertions, &Setting::default(), Effort::new(50_000_000));
        match &proofs[0] {
            Proof::Holds(_) => prop_assert!(!is_broken, "{source}{asserted}"),
            Proof::Empty => prop_assert!(!is_spoken_of(&all, &assertions), "{source}{asserted}"),
            Proof::Broken(broken) => {
                prop_assert!(is_broken && !broken.is_empty(), "{source}{asserted}{broken:?}");
                // One for each rule that decides so, up to a few.
                let by: BTreeSet<_> = breakers(&all, &program, &assertions).into_iter().collect();
                let shown: BTreeSet<_> = broken.iter().map(|broken| broken.rule.0).collect();
                prop_assert!(shown.len() == broken.len() && shown.is_subset(&by), "{source}{asserted}{broken:?}");
                prop_assert!(shown.len() == by.len().min(5), "{source}{asserted}{by:?}{broken:?}");
            }
            Proof::Unknown(_) => prop_assert!(false, "{source}{asserted}{proofs:?}"),
        }
    }

    /// With too few steps less is known, and nothing is wrong.
    #[test]
    fn nothing_false_is_proved_in_few_steps(source in sources(), asserted in asserted(), steps in 0_u64..4_000) {
        let (program, assertions, all) = all_of(&source, &asserted);
        let proofs = prove(&program, &assertions, &Setting::default(), Effort::new(steps));
        let is_broken = is_broken_by(&all, &program, &assertions);
        // Before anything is asked each test is looked at.
        let mut prepared = 10;
        program.rules.iter().for_each(|rule| rule.condition.each_test(&mut |_| prepared += 4));
        match &proofs[0] {
            Proof::Holds(_) => prop_assert!(!is_broken, "{source}{asserted}"),
            Proof::Empty => prop_assert!(!is_spoken_of(&all, &assertions), "{source}{asserted}"),
            Proof::Broken(_) => prop_assert!(is_broken, "{source}{asserted}"),
            Proof::Unknown(doubts) => prop_assert!(doubts.iter().any(|doubt| !doubt.rules.is_empty()) || steps < prepared),
        }
    }
}

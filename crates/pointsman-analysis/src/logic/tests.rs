//! Findings against what a look at every request says that the tests can tell apart.

mod about;
mod arrivals;
mod everyday;
mod examples;
pub(super) mod fates;
mod handshakes;
mod hidden;
mod listeners;
pub(super) mod networks;
mod proofs;
pub(super) mod requests;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use pointsman_rules::{
    Condition, Exit, Field, OwnedValue, Program, RuleIndex, Subject, Targets, Test, Truth, Value, compile,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::states::States;
use super::walk::{Step, Walk};
use super::{Code, Finding, findings};
use crate::{Effort, Setting};

/// What is asked of a request in the generated rules.
const TESTS: &[&str] = &[
    r#"header["a"] == "x""#,
    r#"header["a"] != "x""#,
    r#"header["a"] in ["x", "y"]"#,
    r#"header["a"] exists"#,
    r#"header["a"] > 5"#,
    r#"header["a"] > 2"#,
    r#"header["a"] <= 5"#,
    r#"all(header["a"]) > 2"#,
    r#"header["a"] in [(2..6), 7]"#,
    r#"all(header["a"]) == "y""#,
    r#"first(header["a"]) == "x""#,
    r#"once(header["a"]) == "x""#,
    r#"count(header["a"]) > 1"#,
    "dstport == 80",
    "dstport < 81",
    "dstport in [443, 80]",
    "dstport > 80",
    r#"path startsWith "/a""#,
    r#"path == "/a""#,
    r#"path == "/b""#,
    r#"path under "/a/b""#,
    r#"path contains "b""#,
    r#"method == "GET""#,
    r#"method == "POST""#,
];

/// The name of a rule, with those by which something is so: `R4 by R1 R2`.
fn with_reasons(program: &Program, rule: RuleIndex, by: &[RuleIndex]) -> String {
    let name =
        |index: &RuleIndex| program.rule(*index).map_or("nobody".to_owned(), |rule| rule.label.to_string());
    let by: String = by.iter().map(|rule| format!(" {}", name(rule))).collect();
    if by.is_empty() { name(&rule) } else { format!("{} by{by}", name(&rule)) }
}

/// Conditions of some tests.
fn conditions(tests: &'static [&'static str]) -> impl Strategy<Value = String> {
    let test = select(tests).prop_map(str::to_owned);
    test.prop_recursive(3, 6, 3, |inner| {
        prop_oneof![
            inner.clone().prop_map(|inner| format!("!({inner})")),
            vec(inner.clone(), 2..4).prop_map(|parts| format!("({})", parts.join(" && "))),
            vec(inner, 2..4).prop_map(|parts| format!("({})", parts.join(" || "))),
        ]
    })
}

/// A block of the rule at `at` of so many.
fn blocks(at: usize, of: usize) -> impl Strategy<Value = String> {
    let next = prop_oneof![
        2 => Just("tag(\"t\");".to_owned()),
        1 => Just("setHeader(\"x\", \"1\");".to_owned()),
        3 => Just(String::new()),
    ];
    let plain = vec!["routeTo(a);", "routeTo(b);", "reject(403);"];
    let further = vec!["redirect(302, \"/x\");", "setHeader(\"x\", \"1\"); routeTo(a);", "discard();"];
    let ends = prop_oneof![4 => select(plain), 1 => select(further)].prop_map(str::to_owned);
    if at + 1 == of {
        return prop_oneof![4 => ends, 1 => next].boxed();
    }
    let jump = (at + 1..of).prop_map(|to| format!("goto R{to};"));
    prop_oneof![5 => ends, 1 => next, 2 => jump].boxed()
}

pub(super) fn rules(at: usize, of: usize) -> impl Strategy<Value = String> {
    let otherwise = prop::option::weighted(0.4, blocks(at, of));
    let plain = prop_oneof![
        12 => (conditions(TESTS), otherwise).prop_map(|(condition, otherwise)| (Some(condition), otherwise)),
        1 => Just((None, None)),
    ];
    (plain, blocks(at, of)).prop_map(move |((condition, otherwise), then)| {
        let head = condition.map(|condition| format!("if ({condition}) ")).unwrap_or_default();
        let otherwise = otherwise.map(|block| format!(" else {{ {block} }}")).unwrap_or_default();
        format!("R{at}: {head}{{ {then} }}{otherwise}\n")
    })
}

pub(super) fn sources() -> impl Strategy<Value = String> {
    let policy = select(vec!["", "on_unknown reject;\n", "on_unknown skip;\n", "on_unknown routeTo(c);\n"]);
    let fallback = select(vec!["", "else: routeTo(d);\n"]);
    let all = (1_usize..7).prop_flat_map(|of| (0..of).map(|at| rules(at, of)).collect::<Vec<_>>());
    (policy, all, fallback).prop_map(|(policy, all, fallback)| format!("{policy}{}{fallback}", all.concat()))
}

/// Rule sets of some tests, without a last `else`.
pub(super) fn sources_of(tests: &'static [&'static str]) -> impl Strategy<Value = String> {
    let rule = move |at, of| {
        let otherwise = prop::option::weighted(0.3, blocks(at, of));
        (conditions(tests), blocks(at, of), otherwise).prop_map(move |(condition, then, otherwise)| {
            let otherwise = otherwise.map(|block| format!(" else {{ {block} }}")).unwrap_or_default();
            format!("R{at}: if ({condition}) {{ {then} }}{otherwise}\n")
        })
    };
    let policy = select(vec!["", "on_unknown skip;\n"]);
    let all = (1_usize..6).prop_flat_map(move |of| (0..of).map(|at| rule(at, of)).collect::<Vec<_>>());
    (policy, all).prop_map(|(policy, all)| format!("{policy}{}", all.concat()))
}

pub(super) fn program(source: &str) -> Arc<Program> {
    let compiled = compile(source, &Targets::Any).unwrap_or_else(|wrong| panic!("{source}{wrong:?}"));
    Arc::new(compiled.program)
}

/// A subject of few fields.
#[derive(Clone, Debug, Default)]
pub(super) struct MadeUp(BTreeMap<&'static str, (Vec<OwnedValue>, Vec<Truth>)>);

impl Subject for MadeUp {
    fn each(&self, field: &Field, see: &mut dyn FnMut(Value<'_>) -> ControlFlow<()>) {
        let values = self.0.get(name(field)).map(|(values, _)| values.as_slice()).unwrap_or_default();
        for value in values {
            if see(value.as_value()).is_break() {
                break;
            }
        }
    }
}

fn name(field: &Field) -> &'static str {
    match field {
        Field::SrcIp => "srcip",
        Field::ClientIp => "clientip",
        Field::DstIp => "dstip",
        Field::DstPort => "dstport",
        Field::Path => "path",
        Field::Method => "method",
        Field::Header(name) if **name == *"x-forwarded-for" => "x-forwarded-for",
        Field::Header(name) if **name == *"forwarded" => "forwarded",
        Field::Header(name) if **name == *"x-real-ip" => "x-real-ip",
        Field::Header(name) if **name == *"x_a" => "x_a",
        Field::Header(_) => "header",
        Field::Version => "version",
        // Both say the same.
        Field::Scheme | Field::Proto => "scheme",
        Field::TlsVersion => "tls.version",
        Field::TlsCipher => "tls.cipher",
        Field::TlsAlpn => "tls.alpn",
        Field::TlsResumed => "tls.resumed",
        Field::TlsSni => "tls.sni",
        Field::TlsClientSubject => "tls.client.subject",
        Field::TlsClientFingerprint => "tls.client.fingerprint",
        Field::TlsClientCertificate => "tls.client.certificate",
        Field::TlsClientSan => "tls.client.san",
        other => panic!("{other:?} is not asked"),
    }
}

/// All fours of these, each once and in one order.
fn fours(values: &[OwnedValue]) -> Vec<Vec<OwnedValue>> {
    let sets = (0_u32..1 << values.len()).filter(|set| set.count_ones() == 4);
    let members = |set: u32| values.iter().enumerate().filter(move |(at, _)| set & (1 << at) != 0);
    sets.map(|set| members(set).map(|(_, value)| value.clone()).collect()).collect()
}

/// Lists of values, among them one for everything that the tests above can say of a field.
fn lists(field: &str) -> Vec<Vec<OwnedValue>> {
    let text = |text: &str| OwnedValue::Text(text.as_bytes().into());
    match field {
        "dstport" => {
            let ports = [0, 80, 81, 443, 444].map(|port| vec![OwnedValue::Integer(port)]);
            // A Unix socket has none.
            ports.into_iter().chain([Vec::new()]).collect()
        }
        "srcip" => networks::addresses().map(|ip| vec![OwnedValue::Ip(ip)]).chain([Vec::new()]).collect(),
        "path" => ["/", "/a", "/ab", "/a/b", "/b", "/cb", "/ac"].map(|path| vec![text(path)]).into(),
        "method" => ["GET", "POST", "PUT"].map(|method| vec![text(method)]).into(),
        _ => {
            let values = ["x", "y", "z", "7", "9", "3", "1"].map(text);
            let longer = |lists: &Vec<Vec<OwnedValue>>| -> Vec<Vec<OwnedValue>> {
                let one_more = |list: &Vec<OwnedValue>| {
                    values.clone().map(|value| list.iter().cloned().chain([value]).collect::<Vec<_>>())
                };
                lists.iter().flat_map(one_more).collect()
            };
            let mut lengths = vec![vec![Vec::new()]];
            for length in 0..3 {
                lengths.push(longer(&lengths[length]));
            }
            // Two texts, and numbers above and below: each may have to be there for another test.
            lengths.push(fours(&values));
            lengths.concat()
        }
    }
}

/// One subject for each way in which the tests of a program can come out.
pub(super) fn subjects(program: &Program) -> Vec<MadeUp> {
    let mut tests: BTreeMap<&'static str, BTreeMap<u32, &Test>> = BTreeMap::new();
    for rule in &program.rules {
        rule.condition.each_test(&mut |test| {
            tests.entry(name(&test.field)).or_default().insert(test.number(), test);
        });
    }
    let mut all = vec![MadeUp::default()];
    for (field, tests) in tests {
        let mut kinds: Vec<(Vec<OwnedValue>, Vec<Truth>)> = Vec::new();
        let mut known = BTreeSet::new();
        for list in lists(field) {
            let one = MadeUp([(field, (list.clone(), Vec::new()))].into());
            let truths: Vec<_> = tests.values().map(|test| test.eval(&one)).collect();
            if known.insert(truths.iter().map(|truth| States::of(*truth)).collect::<Vec<_>>()) {
                kinds.push((list, truths));
            }
        }
        let with = |subject: &MadeUp| {
            let add = |kind: &(Vec<OwnedValue>, Vec<Truth>)| {
                let mut subject = subject.clone();
                subject.0.insert(field, kind.clone());
                subject
            };
            kinds.iter().map(add).collect::<Vec<_>>()
        };
        all = all.iter().flat_map(with).collect();
    }
    all
}

/// What all subjects together do.
struct Seen {
    /// Of each rule what its condition came to where it was visited; the last is what no rule decides.
    visited: Vec<States>,
    /// The same whether it was visited or not.
    anywhere: Vec<States>,
}

fn look_at_all(program: &Program, subjects: &[MadeUp]) -> Seen {
    let walk = Walk::new(program);
    let rules = program.rules.len();
    let mut seen = Seen { visited: vec![States::NONE; rules + 1], anywhere: vec![States::NONE; rules] };
    for subject in subjects {
        let states: Vec<_> = program.rules.iter().map(|rule| States::of(rule.truth(subject))).collect();
        for (all, state) in seen.anywhere.iter_mut().zip(&states) {
            *all = all.or(*state);
        }
        let mut at = 0;
        while at < rules {
            seen.visited[at] = seen.visited[at].or(states[at]);
            at = match walk.step(at as u32, states[at]) {
                Step::Next => at + 1,
                Step::Goto(to) => to as usize,
                Step::Decides => break,
            };
        }
        if at == rules {
            seen.visited[rules] = States::TRUE;
        }
    }
    seen
}

/// Code and rule of all that should be said.
fn expected(program: &Program, seen: &Seen) -> BTreeSet<(Code, u32)> {
    let mut expected = BTreeSet::new();
    let walk = Walk::new(program);
    for (index, rule) in (0..).zip(&program.rules) {
        let (visited, anywhere) = (seen.visited[index as usize], seen.anywhere[index as usize]);
        let has_else =
            !super::findings::is_empty(&rule.otherwise) && !matches!(rule.condition, Condition::Always);
        let is_contradiction = !anywhere.covers(States::TRUE);
        if is_contradiction {
            expected.insert((Code::Contradiction, index));
        } else if !visited.covers(States::TRUE) {
            let is_target = visited == States::NONE && walk.is_target(index);
            expected.insert((if is_target { Code::DeadGotoTarget } else { Code::Unreachable }, index));
            continue;
        }
        if has_else && !visited.covers(States::FALSE) {
            expected.insert((Code::DeadElse, index));
        }
    }
    let end = program.rules.len() as u32;
    match (seen.visited[end as usize] == States::TRUE, &program.fallback) {
        (true, _) => expected.insert((Code::Gap, end)),
        (false, Some(_)) => expected.insert((Code::Unreachable, end)),
        (false, None) => false,
    };
    expected
}

/// What becomes of a subject.
struct Run {
    /// The rules that are visited, with what they come to.
    visited: Vec<(u32, States)>,
    /// All that is done.
    done: Vec<String>,
}

/// The way of a subject without one of the rules.
fn run(program: &Program, subject: &MadeUp, removed: Option<u32>) -> Run {
    let walk = Walk::new(program);
    let (mut visited, mut done) = (Vec::new(), Vec::new());
    let mut at = 0;
    while let Some(rule) = program.rule(RuleIndex(at)) {
        if removed == Some(at) {
            at += 1;
            continue;
        }
        let on = States::of(rule.truth(subject));
        visited.push((at, on));
        let block = walk.block(program, at, on);
        done.extend(block.into_iter().flat_map(|block| &block.effects).map(|effect| format!("{effect:?}")));
        match walk.step(at, on) {
            Step::Next => at += 1,
            Step::Goto(to) => at = to,
            Step::Decides => {
                done.push(block.map_or(format!("unknown at {at}"), |block| format!("{:?}", block.exit)));
                break;
            }
        }
    }
    Run { visited, done }
}

/// The rules that need not be there, and the pairs that conflict and are exceptions, the second first.
fn expected_of_more(
    program: &Program,
    subjects: &[MadeUp],
    seen: &Seen,
) -> BTreeSet<(Code, u32, Option<u32>)> {
    let live: Vec<u32> = (0..program.rules.len() as u32)
        .filter(|rule| {
            let index = *rule as usize;
            seen.anywhere[index].covers(States::TRUE) && seen.visited[index].covers(States::TRUE)
        })
        .collect();
    let mut expected = BTreeSet::new();
    let rule = |index: u32| &program.rules[index as usize];
    let all = |removed| subjects.iter().map(|subject| run(program, subject, removed)).collect::<Vec<_>>();
    let (whole, truths) =
        (all(None), |subject: &MadeUp, index: u32| rule(index).truth(subject) == Truth::True);
    let without: BTreeMap<u32, Vec<Run>> = live.iter().map(|index| (*index, all(Some(*index)))).collect();
    for index in live.iter().copied() {
        let is_same = whole.iter().zip(&without[&index]).all(|(one, other)| one.done == other.done);
        if super::redundant::plain_end(rule(index)).is_some() && is_same {
            expected.insert((Code::Redundant, index, None));
        }
    }
    let end = |index: u32| match (&rule(index).condition, &rule(index).then.exit) {
        (Condition::Always, _) => None,
        (_, Exit::Terminal(terminal)) => Some(terminal),
        _ => None,
    };
    for (first, second) in live.iter().flat_map(|first| live.iter().map(move |second| (*first, *second))) {
        let (Some(one), Some(other)) = (end(first), end(second)) else { continue };
        if first >= second || one == other {
            continue;
        }
        let takes = |run: &Run, rule: u32| run.visited.contains(&(rule, States::TRUE));
        let mut runs = whole.iter().zip(&without[&first]);
        let apart = |one: u32, other: u32| {
            subjects.iter().any(|subject| truths(subject, one) && !truths(subject, other))
        };
        if !runs.any(|(run, without)| takes(run, first) && takes(without, second)) || !apart(second, first) {
            continue;
        }
        let code = if apart(first, second) { Code::Conflict } else { Code::Exception };
        expected.insert((code, second, Some(first)));
    }
    expected
}

fn is_of_more(finding: &&Finding) -> bool {
    matches!(finding.code, Code::Redundant | Code::Conflict | Code::Exception)
}

/// Whether rules that are named as proof leave nothing, and each of them is needed. Where a `goto` may lead past some
/// of them it is more than they alone.
fn check_proof(program: &Program, subjects: &[MadeUp], finding: &Finding) -> Result<(), TestCaseError> {
    let wanted = match finding.code {
        Code::Unreachable | Code::DeadGotoTarget => States::TRUE,
        Code::DeadElse => States::FALSE,
        _ => return Ok(()),
    };
    let walk = Walk::new(program);
    let target = finding.rule.0;
    if walk.is_target(target) || (0..target).any(|rule| walk.jumps_of(rule).next().is_some()) {
        return Ok(());
    }
    let state = |rule: RuleIndex, subject: &MadeUp| {
        program.rule(rule).map_or(States::TRUE, |rule| States::of(rule.truth(subject)))
    };
    let leaves_none = |rules: &[RuleIndex]| {
        !subjects.iter().any(|subject| {
            let passes = |rule: &RuleIndex| walk.passing(rule.0, target).covers(state(*rule, subject));
            let comes = finding.message.starts_with("no request gets to")
                || wanted.covers(state(finding.rule, subject));
            rules.iter().all(passes) && comes
        })
    };
    prop_assert!(leaves_none(&finding.others), "{finding:?}");
    for left_out in 0..finding.others.len() {
        let mut rest = finding.others.clone();
        rest.remove(left_out);
        prop_assert!(!leaves_none(&rest), "{left_out} is not needed: {finding:?}");
    }
    Ok(())
}

/// Whether what is said of a program is all that is so of some subjects, each of which stands for all that its tests cannot
/// tell apart.
fn says_all_that_is_so(
    source: &str,
    program: &Arc<Program>,
    setting: &Setting,
    all: &[MadeUp],
) -> Result<(), TestCaseError> {
    let seen = look_at_all(program, all);
    let expected = (expected(program, &seen), expected_of_more(program, all, &seen));
    let found = findings(program, setting, Effort::new(10_000_000));
    // Where redirects lead has examples of its own, here and below.
    let of_conditions = found.iter().filter(|finding| finding.code != Code::RedirectLoop);
    let (more, plain): (Vec<_>, Vec<_>) = of_conditions.partition(is_of_more);
    let plain: BTreeSet<_> = plain.iter().map(|finding| (finding.code, finding.rule.0)).collect();
    let more = more.iter().flat_map(|finding| {
        let rule = finding.rule.0;
        // A guard is told with those behind it, and any other rule with those before it.
        let pair = |other: &RuleIndex| (finding.code, rule.max(other.0), Some(rule.min(other.0)));
        match finding.code {
            Code::Redundant => vec![(finding.code, rule, None)],
            _ => finding.others.iter().map(pair).collect(),
        }
    });
    let more: BTreeSet<_> = more.collect();
    prop_assert_eq!(&plain, &expected.0, "{}{:?}{:#?}", source, setting, found);
    prop_assert_eq!(&more, &expected.1, "{}{:?}{:#?}", source, setting, found);
    for finding in &found {
        check_proof(program, all, finding)?;
    }
    Ok(())
}

proptest! {
    #[test]
    fn findings_are_all_that_is_so(source in sources()) {
        let program = program(&source);
        says_all_that_is_so(&source, &program, &Setting::default(), &subjects(&program))?;
    }

    /// With too few steps less is said, and nothing that is not so.
    #[test]
    fn nothing_false_is_said_in_few_steps(source in sources(), steps in 0_u64..6_000) {
        let program = program(&source);
        let subjects = subjects(&program);
        let expected = expected(&program, &look_at_all(&program, &subjects));
        let found = findings(&program, &Setting::default(), Effort::new(steps));
        let unknown: BTreeSet<_> = found
            .iter()
            .filter(|finding| finding.code == Code::Unknown)
            .flat_map(|finding| finding.others.iter().copied().chain([finding.rule]))
            .map(|rule| rule.0)
            .collect();
        let others = [Code::Unknown, Code::RedirectLoop];
        let known = found.iter().filter(|finding| !others.contains(&finding.code) && !is_of_more(finding));
        let codes: BTreeSet<_> = known.map(|finding| (finding.code, finding.rule.0)).collect();
        for (code, rule) in &codes {
            // Less may be known of it: that some of it never happens, or that an equal condition stands before it.
            let mut never = [Code::DeadGotoTarget, Code::Unreachable, Code::Contradiction].into_iter();
            let is_never_there = never.any(|code| expected.contains(&(code, *rule)));
            let is_less = matches!(code, Code::Unreachable | Code::DeadElse) && is_never_there;
            prop_assert!(is_less || expected.contains(&(*code, *rule)), "{code:?} of {rule} {source}{found:#?}");
        }
        for (code, rule) in expected.difference(&codes) {
            let is_never_true = [Code::DeadGotoTarget, Code::Contradiction].contains(code);
            let is_less = is_never_true && codes.contains(&(Code::Unreachable, *rule));
            prop_assert!(is_less || unknown.contains(rule), "{code:?} of {rule} {source}{found:#?}");
        }
    }
}

//! What it takes to say what rules mean together, and what one changed rule among many.
//!
//! `cargo bench -p pointsman-analysis`. These are times of this machine: people wait for them. It ends with 1 where one is
//! beyond what an operator, or somebody who types, would wait for.
#![expect(clippy::print_stdout, reason = "its figures are what it is for")]

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pointsman_analysis::{Code, Effort, RuleSide, Setting, differences, findings, findings_about};
use pointsman_rules::{Program, RuleIndex, Targets, compile};

#[path = "../tests/sets/hard.rs"]
mod hard;

/// What somebody changes in one of 5,000 rules.
const EDITS: [(&str, &str); 3] = [
    ("/p4001", "/p4001/more"),
    ("json.amount > 4009", "json.amount > 4010"),
    ("startsWith \"/service4007/\"", "startsWith \"/service40\""),
];

/// So many steps `check` takes at most.
const STEPS: u64 = 400_000_000;

/// Each is done so often; the median counts.
const TURNS: usize = 5;

fn main() -> ExitCode {
    let mut is_fine = true;
    let mut say = |what: &str, took: Duration, bound: Duration, told: usize| {
        let late = if took > bound { "BEYOND ITS BOUND" } else { "" };
        is_fine &= took <= bound;
        println!(
            "{what:<60} {:>9.1} ms of {:>6} ms, {told} findings {late}",
            took.as_secs_f64() * 1e3,
            bound.as_millis()
        );
    };
    for (count, seconds) in [(1_000, 2), (20_000, 60)] {
        let program = program(&crowd(count, None));
        let turns = if count > 1_000 { 1 } else { TURNS };
        let (took, told) =
            timed(turns, || findings(&program, &Setting::default(), Effort::new(u64::MAX)).len());
        say(&format!("{count} rules"), took, Duration::from_secs(seconds), told);
    }
    // With the compiling: whoever types changes the text.
    for changed in [17, 2_500, 4_990] {
        let source = crowd(5_000, Some(changed));
        let about = [RuleIndex(u32::try_from(changed).unwrap_or(0))];
        let (took, told) = timed(TURNS, || {
            let program = program(&source);
            findings_about(&program, &about, &Setting::default(), Effort::new(u64::MAX)).len()
        });
        say(&format!("rule {changed} of 5000 changed"), took, Duration::from_millis(200), told);
    }
    let text = crowd(20_000, None);
    let (took, told) = timed(1, || groups(&text, &text));
    say("20000 rules beside themselves", took, Duration::from_secs(5), told);
    let text = crowd(5_000, None);
    for (from, to) in EDITS {
        let edited = text.replacen(from, to, 1);
        let (took, told) = timed(TURNS, || groups(&text, &edited));
        say(&format!("{from} -> {to}"), took, Duration::from_millis(400), told);
    }
    for (count, seconds) in [(1_000, 5), (5_000, 30)] {
        let program = hard::everyday(count);
        let (took, told) = timed(1, || {
            let found = findings(&program, &Setting::default(), Effort::new(STEPS));
            assert!(found.iter().all(|finding| finding.code != Code::Unknown), "something is unknown");
            found.len()
        });
        say(&format!("{count} everyday regexes"), took, Duration::from_secs(seconds), told);
    }
    for (name, rule) in hard::UNLIKE {
        let program = hard::program(rule, 1_000);
        let (took, told) = timed(1, || {
            let found = findings(&program, &Setting::default(), Effort::new(STEPS));
            assert!(found.iter().all(|finding| finding.code != Code::Unknown), "something is unknown");
            found.len()
        });
        say(&format!("1000 regexes: {name}"), took, Duration::from_secs(5), told);
    }
    for (name, rule) in hard::MANNERS {
        for count in [1_000, 20_000] {
            let program = hard::program(rule, count);
            let (took, told) = timed(1, || findings(&program, &Setting::default(), Effort::new(STEPS)).len());
            say(&format!("{count}: {name}"), took, Duration::from_secs(60), told);
        }
    }
    if is_fine { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// How many ways there are in which two sets decide differently.
fn groups(old: &str, new: &str) -> usize {
    let [old, new] = [program(old), program(new)];
    let [old, new] = [&old, &new].map(|program| RuleSide { program, default_pool: None });
    differences(old, new, &Setting::default(), Effort::new(u64::MAX)).groups_count
}

fn timed(turns: usize, work: impl Fn() -> usize) -> (Duration, usize) {
    let mut told = 0;
    let mut times: Vec<_> = (0..turns)
        .map(|_| {
            let started = Instant::now();
            told = work();
            started.elapsed()
        })
        .collect();
    times.sort_unstable();
    (times.get(turns / 2).copied().unwrap_or_default(), told)
}

fn program(source: &str) -> Arc<Program> {
    let compiled = compile(source, &Targets::Any);
    Arc::new(compiled.map(|compiled| compiled.program).unwrap_or_else(|found| panic!("{:?}", found.first())))
}

/// So many rules as switches have them; the changed one takes some requests of others.
fn crowd(rules: usize, changed: Option<usize>) -> String {
    let condition = |n: usize| match n % 10 {
        _ if changed == Some(n) => format!(r#"path under "/p{n}" && method == "PUT""#),
        0..5 => format!(r#"host == "h{}.example" && path under "/p{n}""#, n / 20),
        5 => format!(r#"host == "h{}.example" && path matches "^/r{n}/[0-9]+$""#, n / 20),
        6 => format!(r#"host == "h{}.example" && header["x-tenant"] == "t{n}""#, n / 20),
        7 => format!(r#"path startsWith "/service{n}/""#),
        8 => format!(r#"srcip in [10.{}.{}.0/24] && method == "POST""#, n / 250 % 250, n % 250),
        _ => format!(r#"host == "h{}.example" && json.amount > {n}"#, n / 20),
    };
    let rule = |n: usize| format!("R{n}: if ({}) {{ routeTo(s{}); }}\n", condition(n), n % 7);
    (0..rules).map(rule).chain(["else: routeTo(last);\n".to_owned()]).collect()
}

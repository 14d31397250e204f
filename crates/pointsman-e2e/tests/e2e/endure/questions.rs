//! Somebody types in a large rule set: what one changed rule means is said before the next key.

use std::time::{Duration, Instant};

use pointsman_e2e::{Bound, Origin, Setup, Switch, Unit, figure, scale};
use serde_json::{Value, json};

use super::{TICK_MS, whole};

pointsman_e2e::for_threads!(a_changed_rule_among_thousands);

const CHECK: &str = "/api/v1/listeners/shop/rules/check?client=editor&within_ms=10000";
/// What somebody would wait for while they type, where no other work is in the way.
const CPU_MS_MAX: u64 = 200;
/// What they would wait for at all: the work gives way to whatever else the machine does.
const ANSWER_MS_MAX: u64 = 1000;

/// One rule after another is changed, and each time it is asked what the whole of them means. What serves goes on meanwhile.
fn a_changed_rule_among_thousands(threads: usize) {
    let (rules, times) = (scale(40, 5_000), scale(3, 21));
    let fault = format!("one of {rules} rules changed, {threads} threads");
    let origin = Origin::new("origin");
    let pools = (0..7).fold(Setup::new(threads), |setup, pool| setup.pool(&format!("s{pool}"), &[&origin]));
    let switch = pools.rules(&crowd(rules, None)).with_token().start();
    let mut client = switch.client();
    let before = switch.cpu_ticks();
    let mut took: Vec<Duration> = (0..times)
        .map(|time| {
            let changed = rules / times * time;
            let text = crowd(rules, Some(changed));
            let (took, said) = asked(&switch, &text);
            assert_eq!(said["changed"], json!([format!("R{changed}")]), "{said}");
            assert_eq!(said["is_settled"], true, "{said}");
            let rule = json!(format!("R{changed}"));
            let findings = said["findings"].as_array().expect("a list");
            let is_about = |finding: &&Value| {
                finding["rule"] == rule || finding["others"].as_array().expect("a list").contains(&rule)
            };
            assert!(findings.iter().filter(is_about).count() > 0, "{said}");
            assert_eq!(client.get("/p1").server(), "origin");
            took
        })
        .collect();
    let cpu_ms = (switch.cpu_ticks() - before) * TICK_MS / times as u64;
    took.sort_unstable();
    let median = took.get(times / 2).copied().unwrap_or_default();
    // Of a debug build, and of few rules, the time says nothing.
    let bound = |ms| Bound::AtMost(scale(u64::MAX, ms));
    let median_ms = u64::try_from(median.as_millis()).expect("it has ended");
    figure(&fault, cpu_ms, Unit::Count("milliseconds of CPU for an answer"), bound(CPU_MS_MAX));
    figure(&fault, median_ms, Unit::Count("milliseconds to the answer, median"), bound(ANSWER_MS_MAX));
    // Nobody who types leaves anything behind.
    assert!(switch.metric("pointsman_connections_open", &[]) <= whole(1));
    assert!(!switch.said().contains("audit "), "{}", switch.said());
}

fn asked(switch: &Switch, text: &str) -> (Duration, Value) {
    let began = Instant::now();
    let (answer, said) = switch.admin_ask("POST", CHECK, "", text);
    let took = began.elapsed();
    assert_eq!(answer.status(), 200, "{said}");
    (took, said)
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
    (0..rules).map(rule).chain(["else: routeTo(s0);\n".to_owned()]).collect()
}

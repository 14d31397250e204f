//! The dashboard of the examples asks for nothing that the switch does not tell.

use std::collections::{BTreeMap, BTreeSet};

use pointsman_e2e::{Origin, Setup, until, workspace};
use serde_json::Value;

/// Labels that Prometheus adds.
const OF_PROMETHEUS: [&str; 2] = ["job", "instance"];

#[test]
fn queries_ask_for_what_there_is() {
    let origin = Origin::new("server1");
    let rules = "R1: { limitRate(api); routeTo(standard); }";
    let setup = Setup::new(1).rules(rules).raw("[limit.api]\nper_second = 1000");
    let switch = setup.pool("standard", &[&origin]).start();
    // What became of requests is told of rules that have decided.
    assert_eq!(switch.get("/").status(), 200);
    let page = until("a rule's answer", || {
        Some(switch.metrics()).filter(|page| page.contains("pointsman_rule_responses_total{"))
    });
    let mut told: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for line in page.lines().filter(|line| !line.starts_with('#')) {
        let (series, _) = line.rsplit_once(' ').expect("a value");
        let (name, labels) = series.split_once('{').unwrap_or((series, ""));
        told.entry(name).or_default().extend(names_of_labels(labels));
    }
    let path = workspace().join("examples/grafana/pointsman.json");
    let dashboard: Value =
        serde_json::from_str(&std::fs::read_to_string(path).expect("it is there")).expect("JSON");
    let mut queries = Vec::new();
    collect(&dashboard, &mut queries);
    assert!(queries.len() > 20, "{queries:?}");
    for query in queries {
        let names = names_in(query);
        assert!(!names.is_empty(), "it asks for nothing: {query}");
        let mut known: BTreeSet<&str> = OF_PROMETHEUS.into();
        for name in &names {
            let labels = told.get(name).unwrap_or_else(|| panic!("`{name}` is not told, in {query}"));
            known.extend(labels);
        }
        for label in labels_in(query) {
            assert!(known.contains(label), "no label `{label}` in {query}");
        }
    }
}

#[test]
fn a_wrong_query_is_noticed() {
    assert_eq!(
        names_in("sum by (le) (rate(pointsman_a_bucket{x=\"1\"}[1m])) / pointsman_b"),
        ["pointsman_a_bucket", "pointsman_b"]
    );
    assert_eq!(labels_in("sum by (le, pool) (pointsman_a{x=~\"$x\",y!=\"z\"})"), ["le", "pool", "x", "y"]);
    assert_eq!(labels_in("label_values(pointsman_a{x=~\"$x\"}, pool)"), ["x", "pool"]);
}

/// Every text that is a query.
fn collect<'v>(value: &'v Value, queries: &mut Vec<&'v str>) {
    match value {
        Value::Array(values) => values.iter().for_each(|value| collect(value, queries)),
        Value::Object(fields) => {
            for (name, value) in fields {
                match value.as_str() {
                    Some(text) if name == "expr" || name == "definition" => queries.push(text),
                    _ => collect(value, queries),
                }
            }
        }
        _ => {}
    }
}

fn is_of_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_'
}

fn names_in(query: &str) -> Vec<&str> {
    let words = query.split(|letter| !is_of_name(letter));
    words.filter(|word| word.starts_with("pointsman_")).collect()
}

/// Labels that are compared or kept, in their order.
fn labels_in(query: &str) -> Vec<&str> {
    let mut labels = Vec::new();
    for (at, _) in query.match_indices(['{', '(']) {
        let (before, inside) = query.split_at(at);
        let inside = &inside[1..];
        if query.as_bytes()[at] == b'{' {
            labels.extend(names_of_labels(inside));
        } else if before.ends_with("by ") {
            let list = inside.split(')').next().unwrap_or_default();
            labels.extend(list.split(',').map(str::trim));
        }
    }
    if let Some(list) = query.strip_prefix("label_values(") {
        let (_, last) = list.trim_end_matches(')').rsplit_once(", ").expect("a label");
        labels.push(last);
    }
    labels
}

/// What stands before `=`, `=~` and `!=`, up to the brace that closes.
fn names_of_labels(inside: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut rest = inside;
    while let Some((name, value)) = rest.split_once(['=', '!']) {
        if rest.find('}').is_some_and(|end| end < name.len()) {
            break;
        }
        names.push(name.trim_start_matches(','));
        let text = value.split_once('"').map_or("", |(_, text)| text);
        rest = text.split_once('"').map_or("", |(_, behind)| behind);
    }
    names
}

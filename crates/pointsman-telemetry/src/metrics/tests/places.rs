//! Which rules are told by name, and which together.

use super::*;

/// What the page says of responses by rule, and in all.
fn responses_by_rule(metrics: &Metrics) -> (Vec<(String, f64)>, f64) {
    let page = page(metrics);
    let name = "pointsman_rule_responses_total{listener=";
    let all = page.iter().filter(|(series, count)| series.starts_with(name) && **count > 0.0);
    let by_rule: Vec<_> = all.map(|(series, count)| (series[name.len()..].to_owned(), *count)).collect();
    let sum = by_rule.iter().map(|(_, count)| count).sum();
    (by_rule, sum)
}

/// Rules that never decide take no place, those that come too late count together, and nothing is lost or counted twice.
#[test]
fn so_many_rules_are_told_by_name_and_the_others_together() {
    const RULES: usize = 2000;
    let metrics = registry(2);
    metrics.set_rules_max(2);
    let (shop, other) = (metrics.listener("shop"), metrics.listener("other"));
    let rules: Vec<_> = (0..RULES).map(|number| metrics.rule("shop", &format!("R{number}"))).collect();
    let of_other = metrics.rule("other", "R1");
    assert_eq!(responses_by_rule(&metrics), (Vec::new(), 0.0));
    assert!(!page(&metrics).keys().any(|series| series.contains("rule_request_duration")));
    let recorders = [0, 1].map(|_| metrics.recorder(&Sinks::default(), BASE));
    let hear = |recorder: &Recorder, listener, rule: &RuleMetrics, status| {
        recorder.hear(&Event::Counted(&Counts { rule: Some(rule), status, ..Counts::new(listener) }));
    };
    for (recorder, rule) in [(0, 7), (1, 7), (0, 1999), (0, 3), (1, 4), (1, 1999), (1, 3)] {
        hear(&recorders[recorder], &shop, &rules[rule], 200);
    }
    hear(&recorders[1], &other, &of_other, 503);
    let named = |name: &str, class: &str, count: f64| (format!(r#"{name},status="{class}"}}"#), count);
    let expected = [
        named(r#""other",rule="(other)""#, "5xx", 1.0),
        named(r#""shop",rule="(other)""#, "2xx", 3.0),
        named(r#""shop",rule="R1999""#, "2xx", 2.0),
        named(r#""shop",rule="R7""#, "2xx", 2.0),
    ];
    assert_eq!(responses_by_rule(&metrics), (expected.to_vec(), 8.0));
    let known = |rule: &str| metrics.rules_of("shop").into_iter().find(|counts| counts.rule == rule).unwrap();
    let outcomes = known("R7").outcomes.expect("it has a place");
    assert_eq!(outcomes.responses[2], ("2xx", 2));
    let Durations { count, sum_us, up_to_us } = outcomes.durations;
    assert_eq!(
        (count, sum_us, up_to_us.first(), up_to_us.last()),
        (2, 0, Some(&(Some(64), 2)), Some(&(None, 2)))
    );
    assert!(known("R3").outcomes.is_none() && known("R0").outcomes.is_none());
    assert_eq!(metrics.other_rules_of("shop").map(|others| others.responses[2]), Some(("2xx", 3)));
    assert!(metrics.other_rules_of("none").is_none());
}

/// A rule that a reload takes away leaves its place to another one; one that stays keeps it, and those that had none have
/// none later.
#[test]
fn places_of_rules_are_free_again() {
    let metrics = registry(1);
    metrics.set_rules_max(1);
    let shop = metrics.listener("shop");
    let recorder = metrics.recorder(&Sinks::default(), BASE);
    let hear = |rule: &RuleMetrics| {
        recorder.hear(&Event::Counted(&Counts { rule: Some(rule), status: 200, ..Counts::new(&shop) }));
    };
    let (gone, late) = (metrics.rule("shop", "gone"), metrics.rule("shop", "late"));
    hear(&gone);
    hear(&late);
    drop(gone);
    metrics.forget_unused();
    hear(&late);
    hear(&metrics.rule("shop", "new"));
    let (responses, _) = responses_by_rule(&metrics);
    let counts: Vec<_> = responses.iter().map(|(_, count)| *count).collect();
    assert_eq!((counts, responses.len()), (vec![2.0, 1.0], 2), "{responses:?}");
    assert!(responses[1].0.contains(r#"rule="new""#), "{responses:?}");
    // More places are for those that decide for the first time.
    metrics.set_rules_max(2);
    hear(&late);
    hear(&metrics.rule("shop", "newer"));
    let (responses, sum) = responses_by_rule(&metrics);
    assert_eq!((responses.len(), sum), (3, 5.0), "{responses:?}");
}

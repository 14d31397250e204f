//! What two pages of metrics come to.

use super::*;

const TIMES: Times = Times { seconds: 2.0, now_s: 1100.0 };

/// A page of a switch that was started at 1000, and what else stands there.
fn page(started: u64, rest: &str) -> Scrape {
    let page = format!(
        "pointsman_build_info{{version=\"1.2.3\"}} 1\npointsman_start_time_seconds {started}\n\
         pointsman_plan_generation 7\n{rest}"
    );
    Scrape::read(&page).expect("a page")
}

fn view(before: &str, now: &str) -> View {
    View::between(&page(1000, before), &page(1000, now), TIMES)
}

#[test]
fn rates_are_over_the_interval() {
    let before = "pointsman_requests_total{listener=\"a\",status=\"2xx\"} 100\n\
                  pointsman_requests_total{listener=\"b\",status=\"5xx\"} 7\n\
                  pointsman_sent_bytes_total{listener=\"a\"} 1000\n";
    let now = "pointsman_connections_open{listener=\"a\"} 3\npointsman_connections_open{listener=\"b\"} 4\n\
               pointsman_requests_total{listener=\"a\",status=\"2xx\"} 110\n\
               pointsman_requests_total{listener=\"a\",status=\"none\"} 2\n\
               pointsman_requests_total{listener=\"b\",status=\"5xx\"} 8\n\
               pointsman_sent_bytes_total{listener=\"a\"} 3000\n";
    let view = view(before, now);
    assert_eq!((&*view.version, view.generation, view.uptime_s, view.interval_s), ("1.2.3", 7.0, 100.0, 2.0));
    assert_eq!(view.all.status_per_s, [1.0, 0.0, 5.0, 0.0, 0.0, 0.5]);
    assert_eq!((view.all.requests_per_s, view.all.connections_open), (6.5, 7.0));
    let [(a, of_a), (b, of_b)] = &view.listeners[..] else { panic!("{:?}", view.listeners) };
    assert_eq!((&**a, of_a.requests_per_s, of_a.sent_bytes_per_s), ("a", 6.0, 1000.0));
    assert_eq!((&**b, of_b.requests_per_s, of_b.connections_open), ("b", 0.5, 4.0));
}

#[test]
fn a_switch_that_was_started_anew_began_at_zero() {
    let requests = |count| format!("pointsman_requests_total{{listener=\"a\",status=\"2xx\"}} {count}\n");
    let times = Times { seconds: 2.0, now_s: 1100.0 };
    let view = View::between(&page(1000, &requests(500)), &page(1099, &requests(600)), times);
    assert_eq!((view.interval_s, view.uptime_s, view.all.requests_per_s), (1.0, 1.0, 600.0));
    // A counter that a reload forgot and another one brought back.
    let view = View::between(&page(1000, &requests(500)), &page(1000, &requests(10)), times);
    assert_eq!(view.all.requests_per_s, 5.0);
}

#[test]
fn quantiles_are_those_of_the_interval() {
    let check = |buckets: &[(f64, f64)], expected: [Option<f64>; 2]| {
        assert_eq!([quantile(buckets, 0.5), quantile(buckets, 0.99)], expected, "{buckets:?}");
    };
    let end = f64::INFINITY;
    check(&[], [None; 2]);
    check(&[(1.0, 0.0), (end, 0.0)], [None; 2]);
    check(&[(1.0, 100.0), (2.0, 100.0), (end, 100.0)], [Some(0.5), Some(0.99)]);
    check(&[(1.0, 0.0), (2.0, 100.0), (end, 100.0)], [Some(1.5), Some(1.99)]);
    check(&[(1.0, 0.0), (2.0, 50.0), (end, 100.0)], [Some(2.0); 2]);
    let bucket = |listener: &str, bound: &str, count: u64| {
        format!(
            "pointsman_request_duration_seconds_bucket{{listener=\"{listener}\",le=\"{bound}\"}} {count}\n"
        )
    };
    // What was slow before the interval counts for nothing; listeners are added up.
    let before = bucket("a", "1", 0) + &bucket("a", "2", 50) + &bucket("a", "+Inf", 50);
    let now = bucket("a", "1", 10)
        + &bucket("a", "2", 60)
        + &bucket("a", "+Inf", 60)
        + &bucket("b", "1", 0)
        + &bucket("b", "2", 10)
        + &bucket("b", "+Inf", 10);
    let view = view(&before, &now);
    assert_eq!((view.all.durations.p50_s, view.all.durations.p99_s), (Some(1.0), Some(1.98)));
}

#[test]
fn servers_have_the_state_that_weighs_most() {
    let check = |lines: &str, expected| {
        let page = format!("pointsman_server_requests_total{{pool=\"p\",server=\"s\"}} 4\n{lines}");
        let view = view("", &page);
        assert_eq!(view.servers.iter().map(|row| row.state).collect::<Vec<_>>(), [expected], "{lines}");
        assert_eq!(view.servers[0].requests_per_s, 2.0);
    };
    let figure =
        |name: &str, value: u8| format!("pointsman_server_{name}{{pool=\"p\",server=\"s\"}} {value}\n");
    let set = |admission: &str| {
        format!("pointsman_server_admission{{pool=\"p\",server=\"s\",admission=\"{admission}\"}} 1\n")
    };
    check("", State::Left);
    check(&(figure("up", 1) + &figure("ejected", 0) + &set("enabled")), State::Up);
    check(&(figure("up", 0) + &figure("ejected", 1)), State::Down);
    check(&(figure("up", 1) + &figure("ejected", 1)), State::Ejected);
    check(&(figure("up", 0) + &set("draining")), State::Draining);
    check(&(figure("up", 1) + &set("disabled")), State::Disabled);
}

/// Each server and each rule by itself; of rules that have no place of their own it is known what becomes of them
/// together.
#[test]
fn servers_and_rules_have_durations() {
    let bucket = |name: &str, labels: &str, [short, all]: [u8; 2]| {
        format!("{name}_bucket{{{labels},le=\"1\"}} {short}\n{name}_bucket{{{labels},le=\"+Inf\"}} {all}\n")
    };
    let page_of = |[a, b, r1, others]: [[u8; 2]; 4]| {
        let of_server = "pointsman_server_request_duration_seconds";
        let of_rule = "pointsman_rule_request_duration_seconds";
        "pointsman_server_requests_total{pool=\"p\",server=\"a\"} 9\n\
         pointsman_server_requests_total{pool=\"p\",server=\"b\"} 9\n\
         pointsman_rule_hits_total{listener=\"l\",rule=\"R1\"} 9\n"
            .to_owned()
            + &bucket(of_server, "pool=\"p\",server=\"a\"", a)
            + &bucket(of_server, "pool=\"p\",server=\"b\"", b)
            + &bucket(of_rule, "listener=\"l\",rule=\"R1\"", r1)
            + &bucket(of_rule, "listener=\"l\",rule=\"(other)\"", others)
            + &format!(
                "pointsman_rule_hits_total{{listener=\"l\",rule=\"R2\"}} {}\n\
                 pointsman_rule_hits_total{{listener=\"l\",rule=\"R3\"}} 2\n\
                 pointsman_rule_hits_total{{listener=\"m\",rule=\"R2\"}} 70\n",
                others[1]
            )
            + &format!(
                "pointsman_rule_responses_total{{listener=\"l\",rule=\"R1\",status=\"5xx\"}} {}\n\
                 pointsman_rule_responses_total{{listener=\"l\",rule=\"(other)\",status=\"2xx\"}} {}\n",
                r1[1], others[1]
            )
    };
    let view =
        view(&page_of([[50, 50], [7, 7], [0, 0], [3, 3]]), &page_of([[60, 60], [7, 7], [0, 4], [9, 9]]));
    let servers: Vec<_> = view.servers.iter().map(|row| (&*row.server, row.durations.p50_s)).collect();
    assert_eq!(servers, [("a", Some(0.5)), ("b", None)]);
    let of_l = view.rules.iter().filter(|row| row.listener == "l");
    let rules: Vec<_> = of_l.clone().map(|row| (&*row.rule, row.durations.p50_s, row.status_per_s)).collect();
    let expected = [
        ("(other)", Some(0.5), Some([0.0, 0.0, 3.0, 0.0, 0.0, 0.0])),
        ("R2", None, None),
        ("R1", Some(1.0), Some([0.0, 0.0, 0.0, 0.0, 0.0, 2.0])),
        ("R3", None, None),
    ];
    assert_eq!(rules, expected);
    let hits: Vec<_> = of_l.map(|row| (row.hits_per_s, row.hits)).collect();
    assert_eq!(hits, [(3.0, 11.0), (3.0, 9.0), (0.0, 9.0), (0.0, 2.0)], "R2 and R3 together");
}

#[test]
fn what_matters_most_stands_first() {
    let hits =
        |rule: &str, count| format!("pointsman_rule_hits_total{{listener=\"a\",rule=\"{rule}\"}} {count}\n");
    let now = hits("R1", 100) + &hits("R2", 30) + &hits("R3", 40);
    let view_of_rules = view(&hits("R1", 100), &now);
    let order: Vec<_> = view_of_rules.rules.iter().map(|row| (&*row.rule, row.hits_per_s)).collect();
    assert_eq!(order, [("R3", 20.0), ("R2", 15.0), ("R1", 0.0)]);
    let now = "pointsman_refusals_total{listener=\"a\",reason=\"rule\"} 2\n\
               pointsman_refusals_total{listener=\"b\",reason=\"rule\"} 2\n\
               pointsman_refusals_total{listener=\"a\",reason=\"rate\"} 0\n\
               pointsman_server_failures_total{pool=\"p\",server=\"s\",kind=\"connect\"} 6\n\
               pointsman_server_requests_total{pool=\"p\",server=\"s\"} 0\n\
               pointsman_server_requests_total{pool=\"p\",server=\"a\"} 0\n\
               pointsman_server_up{pool=\"p\",server=\"s\"} 0\npointsman_server_up{pool=\"p\",server=\"a\"} 1\n";
    let view = view("", now);
    let faults: Vec<_> = view.errors.iter().map(|fault| (fault.of, &*fault.why, fault.per_s)).collect();
    assert_eq!(faults, [("server", "connect", 3.0), ("refusal", "rule", 2.0)]);
    let rows: Vec<_> = view.servers.iter().map(|row| (&*row.server, row.failures_per_s)).collect();
    assert_eq!(rows, [("s", 3.0), ("a", 0.0)]);
}

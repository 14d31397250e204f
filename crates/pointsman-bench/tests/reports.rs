//! What reports show of runs that were measured.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use pointsman_bench::{Body, Load, Manner, NullServer, OrderOutcome, Outcome, Plan, Target, Url, Void};
use pointsman_bench::{NotRun, ladder, ladder_csv, orders, run};
use pointsman_measure::chart::{Chart, Content, Line};
use pointsman_measure::report::{Document, Run};
use pointsman_measure::verdict::Colour;
use pointsman_measure::workload::parse;

const WORKLOAD: &str =
    "DEFINE_CLASSES\nA: 75\nCLASS_404: 25\nDEFINE_REQUESTS\nA:\nGET /a\nCLASS_404:\nGET /b\n";

fn server() -> NullServer {
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    NullServer::start(any, &Manner { body_bytes: 50, ..Manner::default() }).expect("loopback")
}

fn plan(server: &NullServer, clients: u32) -> Plan {
    let url = Url::parse(&format!("http://{}/", server.address())).expect("a URL");
    let target = Target { url, weight: 1, method: "GET".into(), headers: Vec::new(), body: Body::None };
    let mut plan = Plan::new(vec![target], Load::Closed { clients });
    (plan.warm_up, plan.time) = (Duration::from_millis(50), Duration::from_millis(300));
    plan
}

fn outcome(plan: &Plan) -> Outcome {
    run(plan, &mut |_| {}).expect("it answers")
}

fn void(outcome: &mut Outcome) {
    outcome.voids.push(Void { code: "test", sentence: "it was none".into() });
}

fn lines<'r>(run: &'r Run, id: &str) -> &'r [Line] {
    let is_it = |chart: &&Chart| chart.id == id;
    match run.charts.iter().find(is_it).map(|chart| &chart.content) {
        Some(Content::Lines(lines)) => lines,
        _ => panic!("no lines in {id}"),
    }
}

/// What is written is what comes back.
fn comes_back(run: &Run) {
    let document = Document { title: "t".into(), runs: vec![run.clone()] };
    let json = document.to_json();
    let again = Document::from_json(&json.to_string()).expect("a document");
    // What is not known is equal to nothing, and `null` in JSON.
    assert_eq!(again.to_json(), json);
}

#[test]
fn a_run_has_its_figures_charts_and_everything_that_was_measured() {
    let server = server();
    let mut outcome = outcome(&plan(&server, 2));
    let report = outcome.report("two clients");
    let names: Vec<&str> = report.figures.iter().map(|figure| figure.name.as_str()).take(4).collect();
    assert_eq!(names, ["answered", "failed", "response p50", "response p99"]);
    assert_eq!(report.figures[0].value, Some(outcome.rate()));
    let latency = lines(&report, "latency");
    assert_eq!(latency[0].points[0].0, 1.0);
    let raw = report.outcome.as_ref().expect("everything");
    assert_eq!(raw["requests"]["answered"], outcome.record.answered);
    let buckets = raw["times_ns"]["response"]["buckets"].as_array().expect("a histogram");
    let count: u64 = buckets.iter().map(|bucket| bucket[1].as_u64().expect("a count")).sum();
    assert_eq!(count, outcome.record.response.len(), "so that histograms can be added");
    comes_back(&report);
    void(&mut outcome);
    let report = outcome.report("void");
    assert_eq!((report.colour, report.reasons[0].as_str()), (Colour::Red, "it was none"));
}

#[test]
fn a_red_step_of_a_ladder_is_marked_and_counts_for_nothing() {
    let server = server();
    let workload = parse(WORKLOAD).expect("a workload");
    let step = |clients| outcome(&plan(&server, clients).of_workload(&workload).expect("a plan"));
    let mut steps = [step(1), step(2), step(4)];
    // Whatever a busy machine makes of the client.
    let is_red = |outcome: &Outcome| outcome.verdict().colour == Colour::Red;
    void(&mut steps[1]);
    let run = ladder("w", &steps, None);
    comes_back(&run);
    let reds = steps.iter().filter(|step| !step.voids.is_empty() || is_red(step)).count();
    let requests = lines(&run, "ladder");
    assert_eq!((requests[0].points.len(), requests[1].points.len()), (3 - reds, reds));
    assert!(requests[1].is_scattered && requests[1].points.iter().any(|point| point.0 == 2.0));
    assert_eq!(run.colour, if reds == 3 { Colour::Red } else { Colour::Amber });
    assert!(run.reasons.iter().any(|reason| reason.starts_with("2 clients, red, not a result: it was none")));
    let there = run.figures.get(1).and_then(|figure| figure.value);
    assert_ne!(there, Some(2.0), "the most is not that of a red step");
    let csv = ladder_csv(&run);
    let rows: Vec<&str> = csv.lines().collect();
    assert!(rows.len() == 4 && rows[2].starts_with("2,red,"), "{csv}");
    assert!(rows[0].ends_with("A: failed,CLASS_404: failed"), "{csv}");
    // The server answers 200, which is wrong where 404 is wanted.
    let classes = &steps[0].record.classes;
    assert_eq!(classes[0].failed, 0);
    assert!(classes[1].failed > 0 && classes[1].failed == steps[0].record.failed());
}

#[test]
fn steps_that_could_not_be_run_are_void_and_the_others_stay() {
    let server = server();
    let workload = parse(WORKLOAD).expect("a workload");
    let steps = [outcome(&plan(&server, 1).of_workload(&workload).expect("a plan"))];
    let not_run = NotRun { steps: vec![4, 8], why: "cannot ask it".into(), was_interrupted: false };
    let run = ladder("w", &steps, Some(&not_run));
    comes_back(&run);
    assert_eq!(run.reasons[0], "void with 4, 8 clients, which were not run: cannot ask it");
    assert_ne!(run.colour, Colour::Green);
    assert_eq!(run.settings["load.clients"], "1, 4, 8");
    assert_eq!(run.outcome.as_ref().expect("everything")["not_run"]["steps"][1], 8);
    let csv = ladder_csv(&run);
    let rows: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(rows[2][..3], ["4", "void", ""]);
    assert_eq!(
        (rows[0][3..5].to_vec(), rows[1][3..5].to_vec()),
        (vec!["from", "to"], vec!["", ""]),
        "too short for any"
    );
    assert!(rows.len() == 4 && rows.iter().all(|row| row.len() == rows[0].len()), "{csv}");
}

#[test]
fn orders_are_listed_by_their_size() {
    let server = server();
    let step = |items| {
        let (plan, bytes) = plan(&server, 1).of_order(items);
        OrderOutcome { items, bytes, outcome: outcome(&plan) }
    };
    let mut steps = [step(1), step(200)];
    let not_run = NotRun { steps: vec![500], why: "nobody is there".into(), was_interrupted: false };
    let run = orders("o", &steps, Some(&not_run));
    comes_back(&run);
    assert_eq!(run.tables[0].rows.len(), 3);
    for figure in run.figures.iter().filter(|figure| figure.name.ends_with("items")) {
        let (mean, (low, high)) = (figure.value.expect("a mean"), figure.interval.expect("of many"));
        assert!(low < mean && mean < high, "{figure:?}");
    }
    assert_eq!(run.reasons[0], "void with 500 items, which were not run: nobody is there");
    assert_ne!(run.colour, Colour::Green);
    assert!(steps[1].outcome.record.bytes_sent > 10 * steps[1].bytes as u64, "orders are sent");
    steps.iter_mut().for_each(|step| void(&mut step.outcome));
    let run = orders("o", &steps, None);
    assert_eq!((run.colour, run.figures.len()), (Colour::Red, 0));
    assert_eq!(lines(&run, "orders")[1].points.len(), 2);
}

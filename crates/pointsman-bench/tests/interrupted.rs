//! Measurements of which somebody wants no more before their end: what was measured by then is told, and marked.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pointsman_bench::{
    Arrivals, Body, Bout, Bulk, Compare, Find, Haul, Interrupt, Ladder, Load, Manner, NullServer, Plan, Rung,
    Sight, Target, Url, Way, ceiling_of, climb, contest, find, haul, run,
};
use pointsman_measure::report::Run;
use pointsman_measure::search::Goal;
use pointsman_measure::verdict::Colour;

/// A server, a plan for it, and what interrupts the plan.
struct Bench {
    _server: NullServer,
    plan: Plan,
    flag: Arc<AtomicBool>,
}

fn bench(target: &str) -> Bench {
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let server = NullServer::start(any, &Manner::default()).expect("loopback");
    let url = Url::parse(&format!("http://{}{target}", server.address())).expect("a URL");
    let target = Target { url, weight: 1, method: "GET".into(), headers: Vec::new(), body: Body::None };
    let mut plan = Plan::new(vec![target], Load::Closed { clients: 2 });
    let flag = Arc::new(AtomicBool::new(false));
    (plan.warm_up, plan.time) = (Duration::ZERO, Duration::from_millis(100));
    plan.interrupt = Interrupt::by(flag.clone());
    Bench { _server: server, plan, flag }
}

/// Whether a report says that it is of what there was by then.
fn is_marked(run: &Run) -> bool {
    let reason = run.reasons.iter().any(|reason| reason.starts_with("it was interrupted: "));
    run.outcome.as_ref().expect("everything")["interrupted"] == true && run.colour != Colour::Green && reason
}

#[test]
fn load_is_that_of_the_time_there_was() {
    let mut bench = bench("/");
    (bench.plan.load, bench.plan.time) =
        (Load::Open { rate: 50.0, arrivals: Arrivals::Uniform }, Duration::from_secs(600));
    let began = Instant::now();
    let outcome = run(&bench.plan, &mut |progress| {
        bench.flag.store(progress.at_seconds >= 2.0, Ordering::Relaxed);
    });
    let outcome = outcome.expect("it answers");
    assert!(outcome.was_interrupted && began.elapsed() < Duration::from_secs(60));
    let record = &outcome.record;
    // Two seconds, and the few tenths in which all hear of it. What was due in them is there to its last answer.
    assert!((2.0..60.0).contains(&outcome.seconds), "{}", outcome.seconds);
    assert_eq!((record.due, record.answered), (record.due_in_time(), record.due));
    assert!((outcome.demanded() - 50.0).abs() < 1.0, "{}", outcome.demanded());
    assert_eq!(outcome.voids, []);
    assert_ne!(outcome.verdict().colour, Colour::Green);
    let report = outcome.report("it");
    let said =
        report.reasons.iter().any(|reason| reason.ends_with("of the 600.0 s that were to be measured"));
    assert!(said, "{:?}", report.reasons);
    assert_eq!(report.outcome.expect("everything")["interrupted"], true);
}

#[test]
fn what_ends_too_soon_is_no_result() {
    let mut bench = bench("/");
    (bench.plan.warm_up, bench.plan.time) = (Duration::from_secs(60), Duration::from_secs(60));
    let outcome = run(&bench.plan, &mut |_| bench.flag.store(true, Ordering::Relaxed)).expect("it answers");
    let codes: Vec<&str> = outcome.voids.iter().map(|void| void.code).collect();
    assert_eq!((codes, outcome.record.due), (vec!["interrupted"], 0));
    assert_eq!(
        outcome.voids[0].sentence,
        "it was interrupted before the measured time began, which is too soon for a result"
    );
    // Nothing else is begun either.
    let fault = run(&bench.plan, &mut |_| {}).expect_err("nobody wants it");
    assert_eq!(fault.to_string(), "it was interrupted");
    let identity =
        pointsman_bench::NullTls { certificate: String::new(), key: String::new(), resumes: false };
    assert!(ceiling_of(&outcome, &identity).is_err());
}

#[test]
fn searches_tell_their_trials() {
    let bench = bench("/");
    let goal = Goal {
        rate_min: 20.0,
        rate_max: 5_000.0,
        warm_up_ms: 0,
        coarse_ms: 100,
        fine_ms: 100,
        ..Goal::default()
    };
    let plan = bench.plan.clone();
    let asked = Find { plan, arrivals: Arrivals::Uniform, goal, within: None, ceiling: None };
    let found = find(&asked, &mut |sight| {
        if let Sight::Ended(tried) = sight {
            bench.flag.store(tried.judged.trial.number == 2, Ordering::Relaxed);
        }
    });
    let found = found.expect("it answered");
    assert_eq!((found.trials.len(), found.was_interrupted), (3, true));
    let report = found.report("it");
    assert!(is_marked(&report) && report.reasons[0].contains("3 trials"), "{:?}", report.reasons);
    assert!(find(&asked, &mut |_| {}).is_err(), "nothing was measured before");
}

#[test]
fn ladders_tell_their_steps() {
    let bench = bench("/");
    let asked = Ladder { plan: bench.plan.clone(), clients_max: 4, within: None, ceiling: None };
    let mut ended = 0;
    let top = climb(&asked, &mut |rung| {
        if let Rung::Ended(_) = rung {
            ended += 1;
            bench.flag.store(ended == 2, Ordering::Relaxed);
        }
    });
    let top = top.expect("it answered");
    assert_eq!((top.trials.len(), top.was_interrupted, &top.not_run), (2, true, &None));
    assert!(is_marked(&top.report("it")), "{:?}", top.report("it").reasons);
    assert!(climb(&asked, &mut |_| {}).is_err(), "nothing was measured before");
}

#[test]
fn comparisons_and_bodies_keep_what_was_whole() {
    let bench = bench("/bytes/{size}");
    let mut ended = 0;
    let mut plan = bench.plan.clone();
    plan.targets[0].url.target = "/".to_owned();
    let asked = Compare { a: plan.clone(), b: plan, blocks: 6, ceiling: None };
    let compared = contest(&asked, &mut |bout| {
        if let Bout::Ended(_) = bout {
            ended += 1;
            bench.flag.store(ended == 36, Ordering::Relaxed);
        }
    });
    let compared = compared.expect("both answered");
    let report = compared.report("it");
    assert_eq!(compared.trials.iter().filter(|trial| trial.was_run()).count(), 36);
    assert!(is_marked(&report), "{:?}", report.reasons);
    bench.flag.store(false, Ordering::Relaxed);
    let asked = Bulk { plans: vec![bench.plan.clone()], way: Way::Down, sizes: vec![10, 20], rounds: 4 };
    ended = 0;
    let hauled = haul(&asked, &mut |haul| {
        if let Haul::Ended(_) = haul {
            ended += 1;
            bench.flag.store(ended == 5, Ordering::Relaxed);
        }
    });
    let hauled = hauled.expect("it answered");
    assert_eq!(
        (hauled.trials.len(), hauled.interrupted.as_deref()),
        (5, Some("5 of 8 trials had ended by then"))
    );
    assert!(is_marked(&hauled.report("it")), "{:?}", hauled.report("it").reasons);
    // Rounds that were whole count as if no more had been asked for.
    assert_eq!(hauled.rows.iter().map(|row| row.trials).sum::<usize>(), 5);
}

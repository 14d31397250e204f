//! A generator that cannot do what it is told: it has to say so. Alone in its program, because it takes every core.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pointsman_bench::{Arrivals, Body, Load, Manner, NullServer, Plan, Target, Url, run, verdict_of_trial};
use pointsman_measure::search::Goal;
use pointsman_measure::verdict::{Colour, Measure};

#[test]
fn a_starved_generator_is_seen() {
    let address = "127.0.0.1:0".parse().expect("an address");
    let server = NullServer::start(address, &Manner::default()).expect("loopback");
    let url = Url::parse(&format!("http://{}/", server.address())).expect("a URL");
    let target = Target { url, weight: 1, method: "GET".into(), headers: Vec::new(), body: Body::None };
    // More than one thread can do, and others want its core as well.
    let mut plan = Plan::new(vec![target], Load::Open { rate: 1e6, arrivals: Arrivals::Poisson });
    (plan.time, plan.warm_up) = (Duration::from_secs(1), Duration::from_millis(100));
    (plan.timeout, plan.connections_max) = (Duration::from_secs(1), 50);
    let ends = AtomicBool::new(false);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let outcome = std::thread::scope(|scope| {
        for _ in 0..3 * cores {
            scope.spawn(|| {
                while !ends.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let outcome = run(&plan, &mut |_| {});
        ends.store(true, Ordering::Relaxed);
        outcome.expect("it answers")
    });
    let thread = outcome.generator.threads[0].expect("its account");
    assert!(thread.waited.is_some_and(|share| share > 0.1), "it could have run and had no core: {thread:?}");
    assert!(thread.involuntary_switches > 0, "{thread:?}");
    let record = &outcome.record;
    assert!(record.unsent > record.due / 10, "{} of {} unsent", record.unsent, record.due);
    let verdict = outcome.verdict();
    assert_eq!(verdict.colour, Colour::Red, "{verdict:?}");
    assert_eq!(verdict.reasons[0].colour, Colour::Red, "the worst comes first: {verdict:?}");
    assert!(!outcome.is_result() && outcome.voids.is_empty(), "{:?}", outcome.voids);
    let measures: Vec<Measure> = verdict.reasons.iter().map(|reason| reason.measure).collect();
    assert!(measures.contains(&Measure::Unsent), "{measures:?}");
    // A search forgives what was held back and not sent, but no generator without a core.
    let verdict = verdict_of_trial(&outcome, &Goal::default());
    let waited = verdict.reasons.iter().find(|reason| reason.measure == Measure::Waited);
    assert_eq!(waited.map(|reason| reason.colour), Some(Colour::Red), "{verdict:?}");
    assert_eq!(verdict.colour, Colour::Red, "{verdict:?}");
}

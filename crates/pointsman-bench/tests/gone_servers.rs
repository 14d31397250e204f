//! Servers that go away behind some trials: what was measured before is told.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use pointsman_bench::{
    Arrivals, Body, Bout, Compare, Ending, Find, Ladder, Load, Manner, NullServer, Plan, Rung, Sight, Target,
    Url, climb, contest, find,
};
use pointsman_measure::search::Goal;
use pointsman_measure::verdict::Colour;

fn server() -> NullServer {
    NullServer::start(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), &Manner::default()).expect("loopback")
}

fn plan(server: &NullServer) -> Plan {
    let url = Url::parse(&format!("http://{}/", server.address())).expect("a URL");
    let target = Target { url, weight: 1, method: "GET".into(), headers: Vec::new(), body: Body::None };
    let mut plan = Plan::new(vec![target], Load::Closed { clients: 2 });
    (plan.warm_up, plan.time) = (Duration::ZERO, Duration::from_millis(100));
    plan
}

#[test]
fn a_comparison_keeps_its_whole_blocks() {
    let (a, b) = (server(), server());
    let (plan_a, plan_b) = (plan(&a), plan(&b));
    let asked = Compare { a: plan_a, b: plan_b, blocks: 6, ceiling: None };
    let (mut b, mut ended) = (Some(b), 0);
    let compared = contest(&asked, &mut |bout| {
        if let Bout::Ended(_) = bout {
            ended += 1;
            b = b.take().filter(|_| ended < 36);
        }
    });
    let compared = compared.expect("both answered");
    assert_eq!(compared.trials.len(), 48);
    let run = compared.trials.iter().filter(|trial| trial.was_run()).count();
    // Whether A or B is next is drawn.
    assert!((36..42).contains(&run) && !compared.is_whole(), "{run}");
    assert_ne!(compared.colour(), Colour::Green);
    let void = format!("{} of 48 trials void, such as: cannot ask http://", 48 - run);
    assert!(compared.reasons().iter().any(|reason| reason.starts_with(&void)), "{:?}", compared.reasons());
    assert_eq!(compared.json()["whole"], false);
    // Where one of them was never there, nothing is compared.
    assert!(contest(&asked, &mut |_| {}).is_err());
}

#[test]
fn a_search_tells_its_trials() {
    let server = server();
    let goal = Goal {
        rate_min: 20.0,
        rate_max: 5_000.0,
        warm_up_ms: 0,
        coarse_ms: 100,
        fine_ms: 100,
        ..Goal::default()
    };
    let asked = Find { plan: plan(&server), arrivals: Arrivals::Uniform, goal, within: None, ceiling: None };
    let mut server = Some(server);
    let found = find(&asked, &mut |sight| {
        if let Sight::Ended(tried) = sight {
            server = server.take().filter(|_| tried.judged.trial.number < 2);
        }
    });
    let found = found.expect("it answered");
    assert_eq!((found.trials.len(), found.colour()), (3, Colour::Red));
    let Ending::Void { voids, .. } = &found.ending else { panic!("{:?}", found.ending) };
    assert!(voids[0].sentence.contains("(in trial 4, at "), "{voids:?}");
    assert_eq!(found.report("it").tables[0].rows.len(), 3);
    assert!(find(&asked, &mut |_| {}).is_err(), "nothing was measured before");
}

#[test]
fn a_ladder_tells_its_steps() {
    let server = server();
    let asked = Ladder { plan: plan(&server), clients_max: 4, within: None, ceiling: None };
    let mut server = Some(server);
    let top = climb(&asked, &mut |rung| {
        if let Rung::Ended(climbed) = rung {
            server = server.take().filter(|_| climbed.clients < 2);
        }
    });
    let top = top.expect("it answered");
    if top.not_in_control == Some(1) {
        // This machine had other things to do.
        return;
    }
    assert!(top.trials.iter().all(|trial| trial.clients <= 2) && top.trials.len() > 1, "{:?}", top.trials);
    assert!(
        top.not_run.as_ref().is_some_and(|why| why.starts_with("cannot ask http://")),
        "{:?}",
        top.not_run
    );
    assert_eq!(top.colour(), Colour::Red, "nothing was found");
    assert!(top.reasons()[0].starts_with("it ended before its time: cannot ask "), "{:?}", top.reasons());
    assert!(climb(&asked, &mut |_| {}).is_err(), "nothing was measured before");
}

//! The most that the generator itself can do with a plan: before servers that do nothing.

use pointsman_bench::{Handshakes, Load, Manner, ceiling};

use super::{of_tls, outcome, plan, started, tls};

#[test]
fn the_ceiling_is_far_above_a_slow_server() {
    let server = started(&Manner { capacity: Some(100.0), ..Manner::default() });
    let mut slow = outcome(&plan("http", &server, Load::Closed { clients: 2 }));
    let Some(tls) = tls(true).tls else { unreachable!("it speaks TLS") };
    let reached = ceiling(&slow.plan, &tls).expect("null servers");
    assert!(reached.per_s > 3.0 * slow.rate(), "{reached:?} and {}", slow.rate());
    reached.hold_against(&mut slow);
    assert!(slow.self_measures(None).null_server_factor.is_some_and(|factor| factor > 3.0));
    let server = started(&self::tls(true));
    let full = of_tls(&server, Load::Closed { clients: 2 }, Handshakes::Full);
    assert!(ceiling(&full, &tls).expect("null servers").per_s > 10.0);
}

#[test]
fn the_ceiling_has_answers_as_long_as_a_slow_server_gives() {
    let manner = Manner { body_bytes: 2 << 20, capacity: Some(4.0), ..Manner::default() };
    let Some(tls) = tls(false).tls else { unreachable!("it speaks TLS") };
    let server = started(&manner);
    let long = ceiling(&plan("http", &server, Load::Closed { clients: 1 }), &tls).expect("null servers");
    // That would be 5 GB/s; with empty answers it is many times as much.
    assert!(long.per_s < 2_500.0, "{long:?}");
}

#[test]
fn the_ceiling_of_heads_has_no_bodies() {
    let server = started(&Manner::default());
    let mut plan = plan("http", &server, Load::Closed { clients: 1 });
    plan.targets[0].method = "HEAD".to_owned();
    let Some(tls) = tls(false).tls else { unreachable!("it speaks TLS") };
    assert!(ceiling(&plan, &tls).expect("heads alone").per_s > 10.0);
}

//! Servers where requests fail get none for a while, and come back when one on trial passes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use pointsman_e2e::{Exchange, Origin, Setup, Switch, ok, until};

pointsman_e2e::for_threads!(
    ejected_and_tried_out,
    the_others_go_on,
    a_server_that_is_gone,
    a_success_begins_anew,
    off_after_a_reload,
);

/// A server that answers 503 as long as the flag says so.
fn fragile(name: &str) -> (Origin, Arc<AtomicBool>) {
    let is_well = Arc::new(AtomicBool::new(false));
    let theirs = is_well.clone();
    let origin =
        Origin::answering(name, move |exchange: &mut Exchange<'_>| match theirs.load(Ordering::SeqCst) {
            false => exchange.answer("503 Service Unavailable", ""),
            true => ok(exchange),
        });
    (origin, is_well)
}

fn ejections(switch: &Switch, server: &str) -> f64 {
    switch.metric("pointsman_server_ejections_total", &[("server", server)])
}

fn is_ejected(switch: &Switch, server: &str) -> bool {
    switch.metric("pointsman_server_ejected", &[("server", server)]) > 0.5
}

fn ejected_and_tried_out(threads: usize) {
    let (one, is_well) = fragile("one");
    let two = Origin::new("two");
    let keys = "outlier_failures_max = 3\noutlier_ms = 1000";
    let switch = Setup::new(threads).pool_with("standard", keys, &[&one, &two]).start();
    let failures = || (0..12).filter(|_| switch.get("/").status() == 503).count();
    assert_eq!(failures(), 3, "the fourth in a row is not sent");
    assert_eq!(switch.wait_for_line("server ejected"), "server ejected pool=standard server=one");
    assert!(is_ejected(&switch, "one"));
    // One on trial at a time, and that fails.
    until("a trial", || (switch.get("/").status() == 503).then_some(()));
    until("it is ejected again", || (ejections(&switch, "one") > 1.5).then_some(()));
    assert_eq!(one.count(), 4);
    is_well.store(true, Ordering::SeqCst);
    until("it is back", || (switch.get("/").server() == "one").then_some(()));
    assert!(!is_ejected(&switch, "one"));
    let from_one = (0..8).filter(|_| switch.get("/").server() == "one").count();
    assert!(from_one >= 2, "{from_one} of 8");
}

/// Half of two is one, of one is none.
fn the_others_go_on(threads: usize) {
    let (one, two, alone) = (fragile("one").0, fragile("two").0, fragile("alone").0);
    let keys = "outlier_failures_max = 2\noutlier_ms = 60000";
    let switch = Setup::new(threads)
        .rules("alone: if (path == \"/alone\") { routeTo(alone); }")
        .pool_with("standard", keys, &[&one, &two])
        .pool_with("alone", keys, &[&alone])
        .start();
    for _ in 0..20 {
        assert_eq!(switch.get("/").server().len(), 3, "a server answers");
        assert_eq!(switch.get("/alone").server(), "alone");
    }
    assert!((ejections(&switch, "one") + ejections(&switch, "two") - 1.0).abs() < 0.5);
    assert!(ejections(&switch, "alone") < 0.5);
    assert_eq!(alone.count(), 20);
}

/// Its clients are served by the other one, and cost no try any more.
fn a_server_that_is_gone(threads: usize) {
    let two = Origin::new("two");
    let keys = "outlier_failures_max = 2\noutlier_ms = 60000";
    let servers = [("gone", Origin::dead_address()), ("two", two.address())];
    let switch = Setup::new(threads).pool_at("standard", keys, &servers).start();
    for _ in 0..20 {
        assert_eq!(switch.get("/").server(), "two");
    }
    let failures = switch.metric("pointsman_server_failures_total", &[("server", "gone")]);
    assert!((failures - 2.0).abs() < 0.5, "{failures}");
}

/// Failures that are not in a row eject nobody.
fn a_success_begins_anew(threads: usize) {
    let seen = AtomicUsize::new(0);
    let one = Origin::answering("one", move |exchange: &mut Exchange<'_>| {
        match seen.fetch_add(1, Ordering::SeqCst) % 3 {
            2 => ok(exchange),
            _ => exchange.answer("502 Bad Gateway", ""),
        }
    });
    let two = Origin::new("two");
    let switch = Setup::new(threads).pool_with("standard", "outlier_failures_max = 3", &[&one, &two]).start();
    (0..60).for_each(|_| drop(switch.get("/")));
    assert!(ejections(&switch, "one") < 0.5);
    assert!(one.count() >= 15, "{}", one.count());
}

/// Who is ejected then is let in again.
fn off_after_a_reload(threads: usize) {
    let (one, is_well) = fragile("one");
    let two = Origin::new("two");
    let setup = |keys: &str| Setup::new(threads).pool_with("standard", keys, &[&one, &two]);
    let switch = setup("outlier_failures_max = 1\noutlier_ms = 60000").start();
    until("one is ejected", || {
        drop(switch.get("/"));
        is_ejected(&switch, "one").then_some(())
    });
    is_well.store(true, Ordering::SeqCst);
    switch.reload(&setup(""), 2);
    assert!(!is_ejected(&switch, "one"));
    until("one answers", || (switch.get("/").server() == "one").then_some(()));
}

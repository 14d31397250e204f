//! Who gets the next request.

use std::sync::Mutex;
use std::sync::mpsc::{Sender, channel};

use pointsman_e2e::{Exchange, Origin, Setup, Switch, Then, ok};

pointsman_e2e::for_threads!(
    round_robin,
    weighted_round_robin,
    least_connections,
    weighted_least_connections,
    random_two_choices,
    least_time,
    a_server_that_refuses_is_not_fast
);

fn origins(names: [&str; 3]) -> [Origin; 3] {
    names.map(Origin::new)
}

/// How many requests each server got.
fn counts<const N: usize>(origins: &[Origin; N]) -> [usize; N] {
    std::array::from_fn(|index| origins[index].count())
}

/// So many requests, each on a connection of its own, so that every thread takes part.
fn ask(switch: &Switch, count: usize) {
    for number in 0..count {
        assert_eq!(switch.get(&format!("/{number}")).status(), 200);
    }
}

/// Exactly even on one thread; even within one round a thread on several.
fn round_robin(threads: usize) {
    let origins = origins(["a", "b", "c"]);
    let [a, b, c] = &origins;
    let switch = Setup::new(threads).pool("standard", &[a, b, c]).start();
    ask(&switch, 300);
    let slack = if threads == 1 { 0 } else { threads };
    for count in counts(&origins) {
        assert!(count.abs_diff(100) <= slack, "{:?}", counts(&origins));
    }
}

/// By weight, and smooth: the heavy one does not get its share in a row.
fn weighted_round_robin(threads: usize) {
    let origins = origins(["a", "b", "c"]);
    let [a, b, c] = &origins;
    let servers = [(a, 5), (b, 1), (c, 1)];
    let setup = Setup::new(threads).weighted_pool("standard", "balance = \"weighted-round-robin\"", &servers);
    let switch = setup.start();
    let names: Vec<String> = (0..70).map(|_| switch.get("/").server().to_owned()).collect();
    let slack = if threads == 1 { 0 } else { 2 * threads };
    for (count, share) in counts(&origins).into_iter().zip([50_usize, 10, 10]) {
        assert!(count.abs_diff(share) <= slack, "{:?}", counts(&origins));
    }
    if threads == 1 {
        let first_round: Vec<&str> = names[..7].iter().map(String::as_str).collect();
        assert_eq!(first_round.iter().filter(|name| **name == "a").count(), 5, "{first_round:?}");
        assert!(!names[..7].join("").contains("aaaaa"), "not smooth: {first_round:?}");
    }
}

/// An origin that holds requests for `/held` until the returned sender speaks.
fn holding(name: &str) -> (Origin, Sender<()>) {
    let (go, may_go) = channel::<()>();
    let may_go = Mutex::new(may_go);
    let answer = move |exchange: &mut Exchange<'_>| -> Then {
        if exchange.target() == "/held" {
            may_go.lock().expect("no panic under the lock").recv().expect("the test is there");
        }
        ok(exchange)
    };
    (Origin::answering(name, answer), go)
}

/// A busy server gets nothing while another is free, whichever thread asks.
fn least_connections(threads: usize) {
    let ((a, let_a), (b, let_b)) = (holding("a"), holding("b"));
    let setup = Setup::new(threads).pool_with("standard", "balance = \"least-connections\"", &[&a, &b]);
    let switch = setup.start();
    let mut held = Vec::new();
    for number in 1..=3 {
        let before = a.count();
        let mut client = switch.client();
        client.send("GET /held HTTP/1.1\r\nHost: shop.example\r\n\r\n");
        wait_for_total(&[&a, &b], number);
        held.push((if a.count() > before { "a" } else { "b" }, client));
    }
    // Two on one, one on the other, which is let go: now there are two against none, and one that has
    // just been answered and is not yet counted off changes nothing.
    assert_eq!(a.count().abs_diff(b.count()), 1);
    let (busy, free) = if a.count() == 2 { ("a", "b") } else { ("b", "a") };
    let go = if free == "a" { &let_a } else { &let_b };
    go.send(()).expect("the origin is there");
    for (_, client) in held.iter_mut().filter(|(name, _)| *name == free) {
        assert_eq!(client.response().server(), free);
    }
    for _ in 0..20 {
        assert_eq!(switch.get("/").server(), free);
    }
    let go = if busy == "a" { &let_a } else { &let_b };
    for _ in 0..2 {
        go.send(()).expect("the origin is there");
    }
    for (_, client) in held.iter_mut().filter(|(name, _)| *name == busy) {
        assert_eq!(client.response().server(), busy);
    }
    // Both are free again: the one that was busy is not forgotten.
    let mut seen: Vec<String> = (0..40).map(|_| switch.get("/").server().to_owned()).collect();
    seen.sort();
    seen.dedup();
    assert_eq!(seen, ["a", "b"]);
}

/// Twice the weight may carry twice the requests.
fn weighted_least_connections(threads: usize) {
    let ((big, _hold_big), (small, _hold_small)) = (holding("big"), holding("small"));
    let servers = [(&big, 2), (&small, 1)];
    let setup = Setup::new(threads);
    let setup = setup.weighted_pool("standard", "balance = \"weighted-least-connections\"", &servers);
    let switch = setup.start();
    let mut held = Vec::new();
    for number in 1..=6 {
        let mut client = switch.client();
        client.send("GET /held HTTP/1.1\r\nHost: shop.example\r\n\r\n");
        // One at a time, so that the next choice sees it.
        wait_for_total(&[&big, &small], number);
        held.push(client);
    }
    assert_eq!((big.count(), small.count()), (4, 2));
}

/// Of two servers the less busy one: a busy one gets nothing, the others share, and when all are alike
/// everybody gets some.
fn random_two_choices(threads: usize) {
    let ((a, let_a), (b, _hold_b), (c, _hold_c)) = (holding("a"), holding("b"), holding("c"));
    let setup = Setup::new(threads).rules("if (path == \"/held\") { routeTo(standard.a); }");
    let switch = setup.pool_with("standard", "balance = \"random-two-choices\"", &[&a, &b, &c]).start();
    // Three, so that one elsewhere that has just been answered and is not yet counted off changes nothing.
    let mut held: Vec<_> = (1..=3)
        .map(|number| {
            let mut client = switch.client();
            client.send("GET /held HTTP/1.1\r\nHost: shop.example\r\n\r\n");
            a.wait_for_requests(number);
            client
        })
        .collect();
    ask(&switch, 200);
    assert_eq!(a.count(), 3, "the busy one was picked");
    // Seven standard deviations below and above a half of 200.
    assert!((50..=150).contains(&b.count()), "{} and {}", b.count(), c.count());
    // All may go before any is waited for: which of them goes first is the origin's affair.
    for _ in &held {
        let_a.send(()).expect("the origin is there");
    }
    for client in &mut held {
        assert_eq!(client.response().server(), "a");
    }
    let before = [a.count(), b.count(), c.count()];
    ask(&switch, 300);
    for (origin, before) in [&a, &b, &c].into_iter().zip(before) {
        // Six standard deviations below and above a third of 300.
        assert!((51..150).contains(&(origin.count() - before)), "{}", origin.count() - before);
    }
}

/// Who was slow once gets next to nothing while another answers, whichever thread has seen it; and a server that nobody
/// has heard yet gets one request at a time.
fn least_time(threads: usize) {
    let ((slow, let_slow), (fast, _hold_fast)) = (holding("slow"), holding("fast"));
    let setup = Setup::new(threads).rules("if (path == \"/held\") { routeTo(standard.slow); }");
    let switch = setup.pool_with("standard", "balance = \"least-time\"", &[&slow, &fast]).start();
    let mut client = switch.client();
    client.send("GET /held HTTP/1.1\r\nHost: shop.example\r\n\r\n");
    slow.wait_for_requests(1);
    ask(&switch, 100);
    assert_eq!((slow.count(), fast.count()), (1, 100), "it has not answered yet");
    // Its answer has taken as long as a hundred of the other.
    let_slow.send(()).expect("the origin is there");
    assert_eq!(client.response().server(), "slow");
    ask(&switch, 100);
    assert!(slow.count() <= 10, "{} of 100 went to the slow one", slow.count() - 1);
}

/// A server that refuses connections fails fast, and is tried again seldom all the same.
fn a_server_that_refuses_is_not_fast(threads: usize) {
    let origin = Origin::new("a");
    let servers = [("a", origin.address()), ("dead", Origin::dead_address())];
    let switch = Setup::new(threads).pool_at("standard", "balance = \"least-time\"", &servers).start();
    ask(&switch, 100);
    assert_eq!(origin.count(), 100);
    let labels = [("pool", "standard"), ("server", "dead")];
    let failures = switch.metric("pointsman_server_failures_total", &labels);
    assert!((0.0..=10.0).contains(&failures), "{failures} of 100 requests tried it");
}

/// Waits until the servers together saw so many requests.
fn wait_for_total(origins: &[&Origin], total: usize) {
    let until = std::time::Instant::now() + pointsman_e2e::PATIENCE;
    while origins.iter().map(|origin| origin.count()).sum::<usize>() < total {
        assert!(std::time::Instant::now() < until, "the servers never saw {total} requests");
        std::thread::yield_now();
    }
}

//! Pools that are balanced by a hash of a field.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::mpsc::channel;

use pointsman_e2e::{Exchange, Origin, Setup, Switch, ok};

pointsman_e2e::for_threads!(
    one_server_a_client,
    servers_that_go_and_come,
    requests_without_the_field,
    source_address,
    bounded_load,
    fields_of_a_connection,
    stickiness_comes_first
);

const METHODS: [&str; 2] = ["rendezvous", "maglev"];
const SESSIONS: usize = 60;

fn origins() -> Vec<Origin> {
    ["a", "b", "c"].map(Origin::new).into()
}

fn setup(threads: usize, keys: &str, origins: &[Origin]) -> Setup {
    let servers: Vec<&Origin> = origins.iter().collect();
    Setup::new(threads).pool_with("standard", keys, &servers)
}

/// Whom each session gets, each request on a connection of its own.
fn homes(switch: &Switch) -> Vec<String> {
    let home = |number| {
        let cookie = format!("Cookie: other=1; sid=s{number}\r\n");
        switch.client().ask("GET", "/", &cookie).server().to_owned()
    };
    (0..SESSIONS).map(home).collect()
}

fn by_cookie(method: &str) -> String {
    format!("balance = \"hash\"\nhash_on = 'cookie[\"sid\"]'\nhash_by = \"{method}\"")
}

/// A client always gets the same server, whichever thread it comes to, and many clients spread evenly.
fn one_server_a_client(threads: usize) {
    for method in METHODS {
        let origins = origins();
        let switch = setup(threads, &by_cookie(method), &origins).start();
        let first = homes(&switch);
        assert_eq!(homes(&switch), first, "{method}");
        let mut counts = HashMap::new();
        first.iter().for_each(|home| *counts.entry(home.as_str()).or_insert(0) += 1);
        // Five standard deviations around a third of 60.
        assert!(counts.len() == 3 && counts.values().all(|count| (2..=38).contains(count)), "{counts:?}");
    }
}

/// Only the clients of a server that is gone go elsewhere, and when it is back, so are they. A table is made anew
/// where a server leaves the plan, and then few others move.
fn servers_that_go_and_come(threads: usize) {
    for method in METHODS {
        let origins = origins();
        let before = setup(threads, &by_cookie(method), &origins);
        let switch = before.start();
        let first = homes(&switch);
        let moved = |homes: &[String]| {
            let others = first.iter().zip(homes).filter(|(old, _)| *old != "b");
            others.filter(|(old, new)| old != new).count()
        };
        let (a, c) = (("a", origins[0].address()), ("c", origins[2].address()));
        let with = |servers: &[_]| Setup::new(threads).pool_at("standard", &by_cookie(method), servers);
        switch.reload(&with(&[a, ("b", Origin::dead_address()), c]), 2);
        let dead = homes(&switch);
        assert!(!dead.contains(&"b".to_owned()) && moved(&dead) == 0, "{method}: {dead:?}");
        switch.reload(&with(&[c, a]), 3);
        let without = homes(&switch);
        let moved_max = if method == "maglev" { 5 } else { 0 };
        assert!(moved(&without) <= moved_max, "{method}: {without:?}");
        switch.reload(&before, 4);
        assert_eq!(homes(&switch), first, "{method}");
    }
}

/// Who lacks the field gets what `hash_absent` says.
fn requests_without_the_field(threads: usize) {
    let origins = origins();
    let switch = setup(threads, &by_cookie("rendezvous"), &origins).start();
    for _ in 0..60 {
        assert_eq!(switch.get("/").status(), 200);
    }
    let slack = if threads == 1 { 0 } else { threads };
    assert!(origins.iter().all(|origin| origin.count().abs_diff(20) <= slack), "round robin is even");
}

/// The client's address, whatever it asks for; behind a trusted proxy the one that the proxy names.
fn source_address(threads: usize) {
    let origins = origins();
    let setup = setup(threads, "balance = \"source-address\"", &origins);
    let switch = setup.listener("trusted_proxies = [\"127.0.0.1\"]").start();
    let mut all: Vec<String> = Vec::new();
    for client in 0..30 {
        let from = format!("X-Forwarded-For: 192.0.2.{client}\r\n");
        let ask = |path: &str| switch.client().ask("GET", path, &from).server().to_owned();
        let home = ask("/");
        assert_eq!([ask("/one"), ask("/two?x=1")], [home.clone(), home.clone()]);
        all.push(home);
    }
    all.sort();
    all.dedup();
    assert_eq!(all, ["a", "b", "c"]);
}

/// One client with many requests at a time gets a second server when the first has its share, and comes back.
fn bounded_load(threads: usize) {
    for method in METHODS {
        let (go, may_go) = channel::<()>();
        let may_go = std::sync::Arc::new(Mutex::new(may_go));
        let held = |name: &str| {
            let may_go = may_go.clone();
            Origin::answering(name, move |exchange: &mut Exchange<'_>| {
                if exchange.target() == "/held" {
                    may_go.lock().expect("no panic under the lock").recv().expect("the test is there");
                }
                ok(exchange)
            })
        };
        let (a, b) = (held("a"), held("b"));
        let keys = format!("{}\nhash_load_factor = 100", by_cookie(method));
        let switch = Setup::new(threads).pool_with("standard", &keys, &[&a, &b]).start();
        let home = switch.client().ask("GET", "/", "Cookie: sid=me\r\n").server().to_owned();
        let mut clients: Vec<_> = (1..=6)
            .map(|number| {
                let mut client = switch.client();
                client.send("GET /held HTTP/1.1\r\nHost: shop.example\r\nCookie: sid=me\r\n\r\n");
                // One at a time, so that the next choice sees it.
                wait_for_total(&[&a, &b], number + 1);
                client
            })
            .collect();
        let own = if home == "a" { &a } else { &b };
        assert_eq!((own.count(), a.count() + b.count()), (1 + 3, 7), "{method}");
        clients.iter().for_each(|_| go.send(()).expect("the origins are there"));
        clients.iter_mut().for_each(|client| assert_eq!(client.response().status(), 200));
        // What has just been answered may not be counted off yet.
        let back =
            (0..100).map(|_| switch.client().ask("GET", "/", "Cookie: sid=me\r\n").server().to_owned());
        assert!(back.filter(|server| *server == home).count() > 90, "{method}");
    }
}

/// A connection as it is has an address, and no cookie.
fn fields_of_a_connection(threads: usize) {
    for (keys, servers) in [("balance = \"source-address\"".to_owned(), 1), (by_cookie("maglev"), 3)] {
        let origins = origins();
        let switch = setup(threads, &keys, &origins).listener("protocol = \"tcp\"").start();
        let mut seen: Vec<_> = (0..30).map(|_| switch.get("/").server().to_owned()).collect();
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), servers, "{keys}");
    }
}

/// What a rule says of clients that stay is stronger than the pool's hash, and a rule that names a server the more.
fn stickiness_comes_first(threads: usize) {
    let origins = origins();
    let rules = "if (path == \"/b\") { routeTo(standard.b); } if (path == \"/ip\") { routeTo(standard, STICKY_ON_IP); }";
    let switch = setup(threads, &by_cookie("maglev"), &origins).rules(rules).start();
    let ask = |path: &str, number: usize| {
        let cookie = format!("Cookie: sid=s{number}\r\n");
        switch.client().ask("GET", path, &cookie).server().to_owned()
    };
    let mut by_address: Vec<_> = (0..20).map(|number| ask("/ip", number)).collect();
    by_address.dedup();
    assert_eq!(by_address.len(), 1);
    assert!((0..20).all(|number| ask("/b", number) == "b"));
    let mut by_hash: Vec<_> = (0..20).map(|number| ask("/", number)).collect();
    by_hash.dedup();
    assert!(by_hash.len() > 1);
}

/// Waits until the servers together saw so many requests.
fn wait_for_total(origins: &[&Origin], total: usize) {
    let until = std::time::Instant::now() + pointsman_e2e::PATIENCE;
    while origins.iter().map(|origin| origin.count()).sum::<usize>() < total {
        assert!(std::time::Instant::now() < until, "the servers never saw {total} requests");
        std::thread::yield_now();
    }
}

//! Shares of requests, and of clients, between targets.

use std::collections::{HashMap, HashSet};

use pointsman_e2e::{Origin, Setup, Switch};

pointsman_e2e::for_threads!(by_chance, by_client, by_cookie, shares_that_change, nothing_for_now);

fn setup(threads: usize, shares: &str, stickiness: &str, origins: &[Origin; 3]) -> Setup {
    let [s1, s2, c1] = origins;
    Setup::new(threads)
        .rules(&format!("R1: {{ routeTo(split({shares}), {stickiness}); }}"))
        .pool("stable", &[s1, s2])
        .pool("canary", &[c1])
        .listener("trusted_proxies = [\"127.0.0.1\"]")
}

fn origins() -> [Origin; 3] {
    ["s1", "s2", "c1"].map(Origin::new)
}

/// Who answers clients at so many addresses.
fn of_clients(switch: &Switch, count: usize) -> Vec<String> {
    let mut client = switch.client();
    let mut ask = |number: usize| {
        let from = format!("X-Forwarded-For: 192.0.{}.{}\r\n", number / 250, number % 250);
        client.ask("GET", "/", &from).server().to_owned()
    };
    (0..count).map(&mut ask).collect()
}

fn counted(seen: &[String]) -> HashMap<&str, usize> {
    let mut counts = HashMap::new();
    seen.iter().for_each(|server| *counts.entry(&**server).or_default() += 1);
    counts
}

/// Of 600 requests three quarters, within six standard deviations, and each pool shares its own in turn.
fn by_chance(threads: usize) {
    let origins = origins();
    let switch = setup(threads, "75: stable, 25: canary", "NON_STICKY", &origins).start();
    let seen = of_clients(&switch, 600);
    let counts = counted(&seen);
    assert!(counts["c1"].abs_diff(150) < 64, "{counts:?}");
    assert!(counts["s1"].abs_diff(counts["s2"]) <= threads.max(2), "{counts:?}");
}

/// Every client stays on its side, and with its server there.
fn by_client(threads: usize) {
    let origins = origins();
    let switch = setup(threads, "75: stable, 25: canary", "STICKY_ON_IP", &origins).start();
    let (first, again) = (of_clients(&switch, 300), of_clients(&switch, 300));
    assert_eq!(first, again);
    let counts = counted(&first);
    assert!(counts["c1"].abs_diff(75) < 46 && counts.len() == 3, "{counts:?}");
}

/// The cookie that a client is given with its first answer says the same later.
fn by_cookie(threads: usize) {
    let origins = origins();
    let switch = setup(threads, "50: stable, 50: canary", "STICKY_ON_COOKIE", &origins).start();
    let mut all = HashSet::new();
    for _ in 0..20 {
        let first = switch.get("/");
        let cookie = first.head.field("set-cookie").expect("a cookie").split(';').next().unwrap_or_default();
        let again = switch.client().ask("GET", "/", &format!("Cookie: {cookie}\r\n"));
        assert_eq!(again.server(), first.server());
        all.insert(first.server().to_owned());
    }
    assert!(all.contains("c1") && all.len() > 1, "{all:?}");
}

/// From 25 to 50 of a hundred: nobody leaves the side that gains.
fn shares_that_change(threads: usize) {
    let origins = origins();
    let switch = setup(threads, "75: stable, 25: canary", "STICKY_ON_IP", &origins).start();
    let before = of_clients(&switch, 300);
    switch.reload(&setup(threads, "50: stable, 50: canary", "STICKY_ON_IP", &origins), 2);
    let after = of_clients(&switch, 300);
    let moved: Vec<_> = before.iter().zip(&after).filter(|(before, after)| before != after).collect();
    assert!(moved.iter().all(|(_, after)| *after == "c1"), "{moved:?}");
    assert!(moved.len().abs_diff(75) < 46, "{}", moved.len());
}

fn nothing_for_now(threads: usize) {
    let origins = origins();
    let switch = setup(threads, "100: stable, 0: canary", "NON_STICKY", &origins).start();
    assert!(!counted(&of_clients(&switch, 50)).contains_key("c1"));
}

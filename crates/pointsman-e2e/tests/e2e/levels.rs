//! Servers that are asked before or after others: zones, backups, too few that are healthy, and slow starts.

use pointsman_e2e::{Exchange, Origin, PATIENCE, Setup, Switch, ok};

pointsman_e2e::for_threads!(backup, own_zone, panic, slow_start);

/// A server as it is written.
fn entry(origin: &Origin, keys: &str) -> String {
    format!("{{ name = \"{}\", address = \"{}\"{keys} }}", origin.name(), origin.address())
}

fn pool(keys: &str, servers: &[String]) -> String {
    format!("[pool.standard]\n{keys}\nservers = [{}]", servers.join(", "))
}

/// The servers that answer so many requests, each once.
fn seen(switch: &Switch, count: usize) -> Vec<String> {
    let mut seen: Vec<_> = (0..count)
        .map(|_| {
            let answer = switch.get("/");
            assert_eq!(answer.status(), 200);
            answer.server().to_owned()
        })
        .collect();
    seen.sort();
    seen.dedup();
    seen
}

/// Backups serve when no other does, even where only this request has found out; and a rule may name one.
fn backup(threads: usize) {
    let (a, b, c) = (Origin::new("a"), Origin::new("b"), Origin::new("c"));
    let last = entry(&c, ", backup = true");
    let rules = "if (path == \"/c\") { routeTo(standard.c); }";
    let setup = |servers: &[String]| {
        Setup::new(threads).rules(rules).raw(&pool("", servers)).default_pool("standard")
    };
    let switch = setup(&[entry(&a, ""), entry(&b, ""), last.clone()]).start();
    assert_eq!(seen(&switch, 30), ["a", "b"]);
    assert_eq!(switch.get("/c").server(), "c");
    let dead = format!("{{ name = \"b\", address = \"{}\" }}", Origin::dead_address());
    switch.reload(&setup(&[entry(&a, ""), dead.clone(), last.clone()]), 2);
    assert_eq!(seen(&switch, 30), ["a"]);
    switch.reload(&setup(&[dead, last]), 3);
    assert_eq!(seen(&switch, 30), ["c"]);
}

/// Servers of other zones get nothing while one of the own zone answers.
fn own_zone(threads: usize) {
    let (here, there, nowhere) = (Origin::new("here"), Origin::new("there"), Origin::new("nowhere"));
    let setup = |near: &str| {
        let near = format!("{{ name = \"here\", address = \"{near}\", zone = \"east\" }}");
        let servers = [near, entry(&there, ", zone = \"west\""), entry(&nowhere, "")];
        let pool = pool("zone_threshold_percent = 50", &servers);
        Setup::new(threads).top("zone = \"east\"").raw(&pool).default_pool("standard")
    };
    let switch = setup(&here.address().to_string()).start();
    assert_eq!(seen(&switch, 30), ["here", "nowhere"]);
    switch.reload(&setup(&Origin::dead_address().to_string()), 2);
    assert_eq!(seen(&switch, 30), ["nowhere"]);
}

/// One of three is healthy by its probes: it serves alone, unless that is too few.
fn panic(threads: usize) {
    let sick = |name: &str| {
        Origin::answering(name, |exchange: &mut Exchange<'_>| match exchange.target() {
            "/probe" => exchange.answer("500 Internal Server Error", ""),
            _ => ok(exchange),
        })
    };
    let (a, b, c) = (sick("a"), sick("b"), Origin::new("c"));
    for (threshold, expected) in [(0, &["c"][..]), (33, &["c"]), (34, &["a", "b", "c"])] {
        let keys = format!("health = {{ path = \"/probe\" }}\npanic_threshold_percent = {threshold}");
        let pool = pool(&keys, &[&a, &b, &c].map(|origin| entry(origin, "")));
        let switch = Setup::new(threads).raw(&pool).default_pool("standard").start();
        let until = std::time::Instant::now() + PATIENCE;
        while switch.metric("pointsman_server_up", &[("pool", "standard")]) > 1.0 {
            assert!(std::time::Instant::now() < until, "the probes never said that two are down");
            std::thread::yield_now();
        }
        assert_eq!(seen(&switch, 60), expected, "{threshold} percent");
    }
}

/// A server that a reload adds gets a tenth of its part at first. Those that were there from the start get all of theirs.
fn slow_start(threads: usize) {
    let (a, b, c) = (Origin::new("a"), Origin::new("b"), Origin::new("c"));
    let setup =
        |servers: &[&Origin]| Setup::new(threads).pool_with("standard", "slow_start_ms = 86400000", servers);
    let switch = setup(&[&a, &b]).start();
    assert_eq!(seen(&switch, 40), ["a", "b"]);
    assert!(a.count().abs_diff(b.count()) <= 2 * threads, "{} and {}", a.count(), b.count());
    switch.reload(&setup(&[&a, &b, &c]), 2);
    assert!(seen(&switch, 400).len() >= 2);
    // About a tenth of what each of the others gets: 19 of 400, and six standard deviations.
    assert!((1..=45).contains(&c.count()), "{} of 400", c.count());
}

//! Servers that may have only so many requests at a time, and the queue of those that wait for them.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use pointsman_e2e::{Client, Exchange, H2Origin, Origin, Random, Setup, Switch, Then, echo, ok, until};

pointsman_e2e::for_threads!(
    first_come_first_served,
    too_many_wait,
    others_take_what_a_full_one_cannot,
    the_other_zone_takes_it,
    whoever_leaves_leaves_the_queue,
    who_stays_waits_for_its_own,
    a_reload_changes_how_many,
    a_server_that_comes_up_is_seen,
    a_try_that_fails_gives_its_place_back,
    streams_count,
    connections_count,
    in_a_crowd
);

/// A server that answers when it is told, and how many requests it has.
pub(crate) struct Slow {
    pub(crate) origin: Origin,
    gate: Sender<()>,
    pub(crate) most: Arc<AtomicUsize>,
}

impl Slow {
    pub(crate) fn start(name: &str) -> Slow {
        let (gate, opened) = channel::<()>();
        let opened: Mutex<Receiver<()>> = Mutex::new(opened);
        let (now, most) = (AtomicUsize::new(0), Arc::new(AtomicUsize::new(0)));
        let seen = most.clone();
        let origin = Origin::answering(name, move |exchange: &mut Exchange<'_>| {
            if exchange.target() == "/health" {
                return ok(exchange);
            }
            seen.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            opened.lock().expect("no panic under the lock").recv().unwrap_or_default();
            now.fetch_sub(1, Ordering::SeqCst);
            echo(exchange)
        });
        Slow { origin, gate, most }
    }

    pub(crate) fn answers_one(&self) {
        self.gate.send(()).expect("it listens");
    }

    pub(crate) fn entry(&self, keys: &str) -> String {
        entry(&self.origin, keys)
    }
}

pub(crate) fn entry(origin: &Origin, keys: &str) -> String {
    format!("{{ name = \"{}\", address = \"{}\"{keys} }}", origin.name(), origin.address())
}

pub(crate) fn setup(threads: usize, keys: &str, servers: &[String]) -> Setup {
    let pool = format!("[pool.standard]\n{keys}\nservers = [{}]", servers.join(", "));
    Setup::new(threads).raw(&pool).default_pool("standard")
}

/// A client that has asked, and has no answer yet.
pub(crate) fn asks(switch: &Switch, path: &str) -> Client {
    let mut client = switch.client();
    client.send(format!("GET {path} HTTP/1.1\r\nHost: shop.example\r\n\r\n"));
    client
}

fn queued(switch: &Switch) -> usize {
    switch.metric("pointsman_pool_queued_requests", &[("pool", "standard")]) as usize
}

/// One that asks, and is in the queue behind so many others.
fn waits(switch: &Switch, path: &str, others: usize) -> Client {
    let client = asks(switch, path);
    until("one more in the queue", || (queued(switch) == others + 1).then_some(()));
    client
}

/// What those that wait get as soon as it is free, one after the other; it never has more than it may.
fn first_come_first_served(threads: usize) {
    let slow = Slow::start("slow");
    let switch = setup(threads, "", &[slow.entry(", connections_max = 2")]).start();
    let mut clients = vec![asks(&switch, "/0")];
    slow.origin.wait_for_requests(1);
    clients.push(asks(&switch, "/1"));
    slow.origin.wait_for_requests(2);
    for others in 0..5 {
        clients.push(waits(&switch, &format!("/{}", others + 2), others));
    }
    assert_eq!(slow.origin.count(), 2);
    for arrived in 3..=7 {
        slow.answers_one();
        slow.origin.wait_for_requests(arrived);
    }
    (0..2).for_each(|_| slow.answers_one());
    assert!(clients.iter_mut().all(|client| client.response().status() == 200));
    let targets: Vec<_> = slow.origin.requests().iter().map(|request| request.target().to_owned()).collect();
    assert_eq!(targets[2..], ["/2", "/3", "/4", "/5", "/6"]);
    assert_eq!((slow.most.load(Ordering::SeqCst), queued(&switch)), (2, 0));
    let line = switch.log_of("/6");
    let (queued, connected) = (line["queued_us"].as_u64(), line["connected_us"].as_u64());
    assert!(queued.is_some() && queued <= connected, "{line}");
    assert!(switch.log_of("/0")["queued_us"].is_null());
}

/// Who finds no room to wait, and who has waited for its time, is told to come again.
fn too_many_wait(threads: usize) {
    let slow = Slow::start("slow");
    let keys = "queue_max = 1\nqueue_ms_max = 400";
    let switch = setup(threads, keys, &[slow.entry(", connections_max = 1")]).start();
    let mut first = asks(&switch, "/first");
    slow.origin.wait_for_requests(1);
    let mut second = waits(&switch, "/second", 0);
    for (path, answer) in [("/third", switch.get("/third")), ("/second", second.response())] {
        assert_eq!((answer.status(), answer.head.field("retry-after")), (503, Some("1")), "{path}");
    }
    slow.answers_one();
    assert_eq!(first.response().status(), 200);
    for reason in ["queue_full", "queue_timeout"] {
        let refused = switch.metric("pointsman_refusals_total", &[("reason", reason)]);
        assert!((refused - 1.0).abs() < 0.1, "{reason}: {refused}");
    }
    assert!(switch.log_of("/second")["queued_us"].as_u64() >= Some(300_000));
    assert!(switch.log_of("/third")["queued_us"].is_null(), "it has not waited");
    assert_eq!(switch.log_of("/third")["error"], "all servers are busy, and too many requests wait for them");
    slow.answers_one();
    assert_eq!(switch.get("/").status(), 200, "its place came back");
    assert_eq!(slow.origin.count(), 2);
}

/// Under every way of balancing.
fn others_take_what_a_full_one_cannot(threads: usize) {
    for balance in [
        "balance = \"round-robin\"",
        "balance = \"weighted-round-robin\"",
        "balance = \"least-connections\"",
        "balance = \"weighted-least-connections\"",
        "balance = \"random-two-choices\"",
        "balance = \"least-time\"",
        "balance = \"source-address\"",
        "balance = \"hash\"\nhash_on = \"path\"\nhash_by = \"maglev\"",
    ] {
        let (slow, free) = (Slow::start("slow"), Origin::new("free"));
        let servers = [slow.entry(", connections_max = 1"), entry(&free, ", connections_max = 100")];
        let rules = "if (path == \"/slow\") { routeTo(standard.slow); }";
        let switch = setup(threads, balance, &servers).rules(rules).start();
        let mut first = asks(&switch, "/slow");
        slow.origin.wait_for_requests(1);
        for number in 0..20 {
            assert_eq!(switch.get(&format!("/{number}")).server(), "free", "{balance}");
        }
        slow.answers_one();
        assert_eq!(first.response().server(), "slow");
    }
}

fn the_other_zone_takes_it(threads: usize) {
    let (slow, distant) = (Slow::start("slow"), Origin::new("distant"));
    let servers =
        [slow.entry(", zone = \"east\", connections_max = 1"), entry(&distant, ", zone = \"west\"")];
    let switch = setup(threads, "", &servers).top("zone = \"east\"").start();
    let mut first = asks(&switch, "/");
    slow.origin.wait_for_requests(1);
    assert_eq!(switch.get("/").server(), "distant");
    slow.answers_one();
    assert_eq!(first.response().server(), "slow");
}

fn whoever_leaves_leaves_the_queue(threads: usize) {
    let slow = Slow::start("slow");
    let switch = setup(threads, "", &[slow.entry(", connections_max = 1")]).start();
    let mut first = asks(&switch, "/first");
    slow.origin.wait_for_requests(1);
    let leaves = waits(&switch, "/leaves", 0);
    let mut last = waits(&switch, "/last", 1);
    leaves.reset();
    until("one less in the queue", || (queued(&switch) == 1).then_some(()));
    slow.answers_one();
    slow.origin.wait_for_requests(2);
    assert_eq!(slow.origin.requests()[1].target(), "/last");
    slow.answers_one();
    assert_eq!((first.response().status(), last.response().status()), (200, 200));
    // A client that leaves its server gives the place back, too.
    let gone = asks(&switch, "/gone");
    slow.origin.wait_for_requests(3);
    gone.reset();
    let mut next = asks(&switch, "/next");
    slow.origin.wait_for_requests(4);
    (0..2).for_each(|_| slow.answers_one());
    assert_eq!(next.response().status(), 200);
}

/// A client that stays with a server waits for that, and so does one that a rule has sent there.
fn who_stays_waits_for_its_own(threads: usize) {
    let (slow, free) = (Slow::start("slow"), Origin::new("free"));
    let servers = [slow.entry(", connections_max = 1"), entry(&free, "")];
    let rules = "if (path startsWith \"/slow\") { routeTo(standard.slow); }\n\
                 if (path startsWith \"/stays\") { routeTo(standard, STICKY_ON(header[\"x-client\"])); }";
    let switch = setup(threads, "", &servers).rules(rules).start();
    let mut first = asks(&switch, "/slow/first");
    slow.origin.wait_for_requests(1);
    let _named = waits(&switch, "/slow/second", 0);
    // Of so many clients some are at home there.
    let mut clients: Vec<_> = (0..16).map(|_| switch.client()).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        client.send(format!("GET /stays HTTP/1.1\r\nHost: shop.example\r\nX-Client: {number}\r\n\r\n"));
    }
    let at_home = until("sticky clients", || {
        let waiting = queued(&switch) - 1;
        (waiting + free.count() == 16).then_some(waiting)
    });
    assert!((1..16).contains(&at_home), "{at_home}");
    (0..at_home + 2).for_each(|_| slow.answers_one());
    assert_eq!(first.response().server(), "slow");
    let answers = clients.iter_mut().map(|client| client.response().server().to_owned());
    assert_eq!(answers.filter(|server| server == "slow").count(), at_home);
}

fn a_reload_changes_how_many(threads: usize) {
    let slow = Slow::start("slow");
    let with = |max: usize| setup(threads, "", &[slow.entry(&format!(", connections_max = {max}"))]);
    let switch = with(1).start();
    let mut clients = vec![asks(&switch, "/0")];
    slow.origin.wait_for_requests(1);
    clients.push(waits(&switch, "/1", 0));
    clients.push(waits(&switch, "/2", 1));
    switch.reload(&with(2), 2);
    slow.origin.wait_for_requests(2);
    assert_eq!(queued(&switch), 1);
    switch.reload(&with(1), 3);
    slow.answers_one();
    // One of the two has ended, and that leaves one.
    clients.push(waits(&switch, "/3", 1));
    assert_eq!(slow.origin.count(), 2);
    (0..3).for_each(|_| slow.answers_one());
    assert!(clients.iter_mut().all(|client| client.response().status() == 200));
    assert_eq!(slow.most.load(Ordering::SeqCst), 2);
}

/// Nobody tells who waits that a server has come up: it is looked at now and then.
fn a_server_that_comes_up_is_seen(threads: usize) {
    let (slow, is_well) = (Slow::start("slow"), Arc::new(AtomicBool::new(false)));
    let well = is_well.clone();
    let late =
        Origin::answering("late", move |exchange: &mut Exchange<'_>| match well.load(Ordering::SeqCst) {
            true => ok(exchange),
            false => exchange.answer("503 Service Unavailable", ""),
        });
    let keys = "health = { path = \"/health\", interval_ms = 100, jitter_percent = 0, rise = 1, fall = 1 }";
    let servers = [slow.entry(", connections_max = 1"), entry(&late, "")];
    let switch = setup(threads, keys, &servers).start();
    switch.wait_for_line("server down pool=standard server=late");
    let mut first = asks(&switch, "/first");
    until("it is there", || {
        slow.origin.requests().iter().any(|seen| seen.target() == "/first").then_some(())
    });
    let mut second = waits(&switch, "/second", 0);
    is_well.store(true, Ordering::SeqCst);
    assert_eq!(second.response().server(), "late");
    slow.answers_one();
    assert_eq!(first.response().server(), "slow");
}

/// Also where it goes to another server.
fn a_try_that_fails_gives_its_place_back(threads: usize) {
    let torn = Origin::answering("torn", |_: &mut Exchange<'_>| Then::Close);
    let well = Origin::new("well");
    let dead =
        format!("{{ name = \"dead\", address = \"{}\", connections_max = 1 }}", Origin::dead_address());
    let servers = [entry(&torn, ", connections_max = 1"), entry(&well, ", connections_max = 1"), dead];
    let switch = setup(threads, "retries_percent_max = 100", &servers).start();
    for _ in 0..30 {
        assert_eq!(switch.get("/").server(), "well");
    }
    assert!(torn.count() > 0);
    assert_eq!(queued(&switch), 0);
}

/// Of HTTP/2 each request counts, not each connection.
fn streams_count(threads: usize) {
    let (gate, opened) = channel::<()>();
    let opened = Mutex::new(opened);
    let origin = H2Origin::serving(&[], move |peer| {
        while let Some(request) = peer.next_whole() {
            opened.lock().expect("no panic under the lock").recv().unwrap_or_default();
            peer.answer(request.stream, "200", &[], b"well");
        }
    });
    let server = format!("{{ name = \"s\", address = \"{}\", connections_max = 1 }}", origin.address());
    let switch = setup(threads, "protocol = \"h2\"", &[server]).start();
    let mut first = asks(&switch, "/first");
    origin.wait_for_requests(1);
    let mut second = waits(&switch, "/second", 0);
    gate.send(()).expect("it listens");
    origin.wait_for_requests(2);
    gate.send(()).expect("it listens");
    assert_eq!((first.response().status(), second.response().status()), (200, 200));
}

/// Where no request is read.
fn connections_count(threads: usize) {
    let slow = Slow::start("slow");
    let server = slow.entry(", connections_max = 1");
    let switch = setup(threads, "queue_ms_max = 60_000", &[server]).listener("protocol = \"tcp\"").start();
    let mut first = asks(&switch, "/first");
    slow.origin.wait_for_requests(1);
    let mut second = waits(&switch, "/second", 0);
    slow.answers_one();
    assert_eq!(first.response().status(), 200);
    assert_eq!((slow.origin.count(), queued(&switch)), (1, 1), "its connection is open");
    drop(first);
    slow.origin.wait_for_requests(2);
    slow.answers_one();
    assert_eq!(second.response().status(), 200);
}

/// Many clients ask, some leave, and ask again, while reloads change how many there may be: there are never more, and
/// in the end all places are there.
fn in_a_crowd(threads: usize) {
    const MOST: usize = 3;
    for leave in [false, true] {
        let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let origins = ["one", "two"].map(|name| {
            let (now, most) = (now.clone(), most.clone());
            Origin::answering(name, move |exchange: &mut Exchange<'_>| {
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                std::thread::yield_now();
                now.fetch_sub(1, Ordering::SeqCst);
                ok(exchange)
            })
        });
        let with = |max: usize| {
            let keys = format!(", connections_max = {max}");
            let servers = origins.each_ref().map(|origin| entry(origin, &keys));
            setup(threads, "queue_ms_max = 60_000", &servers)
        };
        let switch = with(MOST).start();
        std::thread::scope(|scope| {
            for number in 0..16 {
                let switch = &switch;
                scope.spawn(move || visits(switch, Random::new(number + 1), leave));
            }
            for generation in 2..8 {
                switch.reload(&with(generation % MOST + 1), generation as u32);
            }
        });
        // Where clients leave, their places are free before the servers know.
        assert!(leave || most.load(Ordering::SeqCst) <= 2 * MOST, "{most:?}");
        until("nobody waits", || (queued(&switch) == 0).then_some(()));
        let in_flight = || switch.metric("pointsman_server_in_flight_requests", &[]);
        until("nobody is served", || (in_flight() < 0.5).then_some(()));
        switch.reload(&with(1), 8);
        for _ in 0..4 {
            assert_eq!(switch.get("/").status(), 200, "a place is lost");
        }
    }
}

fn visits(switch: &Switch, mut chance: Random, leave: bool) {
    for _ in 0..40 {
        let mut client = asks(switch, "/");
        match leave && chance.below(4) == 0 {
            true => client.reset(),
            false => assert_eq!(client.response().status(), 200),
        }
    }
}

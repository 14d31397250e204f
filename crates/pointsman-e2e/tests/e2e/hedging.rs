//! A second server is asked where the first one is slow: the first answer of the two is taken, and the other server is given
//! up.

use std::net::{SocketAddr, TcpListener};
use std::sync::Mutex;
use std::sync::mpsc::{Sender, channel};

use pointsman_e2e::{
    Authority, Client, Exchange, H2Origin, Origin, Setup, Switch, Then, TlsServer, ok, until,
};

use crate::busy_servers::{Slow, asks, entry, setup};
use crate::http2::begin;

pointsman_e2e::for_threads!(
    the_second_wins,
    the_first_wins,
    streams_of_clients,
    one_of_them_fails,
    both_fail,
    answers_that_are_passed_over,
    who_is_not_asked_twice,
    without_a_try_left,
    with_no_other_server,
    bodies_go_to_both,
    a_stream_is_reset,
    a_server_that_does_not_shake_hands,
    the_client_leaves_both,
    places_come_back
);

/// RFC 9113 section 7.
const CANCEL: u32 = 8;

const GET: &str = "GET /a HTTP/1.1\r\nHost: shop.example\r\n\r\n";

/// Puts first the one of two servers that is asked first.
fn in_turn([one, two]: [Slow; 2]) -> [Slow; 2] {
    let is_one = until("the first is asked", || match (one.origin.count(), two.origin.count()) {
        (1, 0) => Some(true),
        (0, 1) => Some(false),
        (_, _) => None,
    });
    let servers = if is_one { [one, two] } else { [two, one] };
    servers[1].origin.wait_for_requests(1);
    servers
}

/// Two slow servers of which one has been asked, and then the other one: in this order.
fn asked_both(threads: usize, keys: &str, request: &str) -> (Switch, Client, [Slow; 2]) {
    let servers = ["one", "two"].map(Slow::start);
    let entries = servers.each_ref().map(|server| server.entry(""));
    let switch = setup(threads, &format!("hedge_ms = 300\n{keys}"), &entries).start();
    let mut client = switch.client();
    client.send(request);
    (switch, client, in_turn(servers))
}

fn hedges(switch: &Switch, server: &str, outcome: &str) -> usize {
    switch.metric("pointsman_hedges_total", &[("server", server), ("outcome", outcome)]) as usize
}

fn failures(switch: &Switch) -> usize {
    switch.metric("pointsman_server_failures_total", &[]) as usize
}

/// What the log says of a request that two servers were asked for.
fn logged(switch: &Switch, [server, other]: [&Slow; 2], outcome: &str) {
    let line = switch.log_of("/a");
    let names = [server, other].map(|slow| slow.origin.name());
    let said = ["hedge", "server", "other_server"].map(|key| line[key].as_str().unwrap_or_default());
    assert_eq!((said, line["tries"].as_u64()), ([outcome, names[0], names[1]], Some(2)), "{line}");
}

/// The connection of the first ends: what that server says later nobody hears.
fn the_second_wins(threads: usize) {
    let (switch, mut client, [first, second]) = asked_both(threads, "", GET);
    second.answers_one();
    assert_eq!(client.response().server(), second.origin.name());
    first.answers_one();
    first.origin.wait_for_ends(1);
    logged(&switch, [&second, &first], "won");
    assert_eq!(
        (hedges(&switch, second.origin.name(), "won"), failures(&switch)),
        (1, 0),
        "slow is not failed"
    );
    assert!(switch.metric("pointsman_server_retries_total", &[]) < 0.5);
    // Both connections serve on, the client's and that of the second.
    second.answers_one();
    first.answers_one();
    assert_eq!(client.get("/b").status(), 200);
}

fn the_first_wins(threads: usize) {
    let (switch, mut client, [first, second]) = asked_both(threads, "", GET);
    first.answers_one();
    assert_eq!(client.response().server(), first.origin.name());
    second.answers_one();
    second.origin.wait_for_ends(1);
    logged(&switch, [&first, &second], "lost");
    assert_eq!((hedges(&switch, second.origin.name(), "lost"), failures(&switch)), (1, 0));
}

/// Each by itself: the one does not wait for the other.
fn streams_of_clients(threads: usize) {
    let servers = ["one", "two"].map(Slow::start);
    let entries = servers.each_ref().map(|server| server.entry(""));
    let switch = setup(threads, "hedge_ms = 300\nretries_percent_max = 100", &entries).start();
    let mut client = begin(&switch);
    client.ask(1, "GET", "/a", &[]);
    let servers = in_turn(servers);
    client.ask(3, "GET", "/b", &[]);
    servers.iter().for_each(|server| server.origin.wait_for_requests(2));
    let [first, second] = &servers;
    // Of both requests, the one of which it heard first or the other one.
    (0..2).for_each(|_| second.answers_one());
    for stream in [1, 3] {
        assert_eq!(client.answer(stream).status(), 200);
    }
    (0..2).for_each(|_| first.answers_one());
    first.origin.wait_for_ends(2);
    logged(&switch, [second, first], "won");
}

/// A server that closes without an answer when it is told to.
fn closing(name: &str) -> (Origin, Sender<()>) {
    let (gate, opened) = channel::<()>();
    let opened = Mutex::new(opened);
    let origin = Origin::answering(name, move |_: &mut Exchange<'_>| {
        opened.lock().expect("no panic under the lock").recv().unwrap_or_default();
        Then::Close
    });
    (origin, gate)
}

/// Asks until each of two servers was the one that was asked beside the other, and how often that was: one of them fails each
/// time when it is told to, for which number of requests, and the slow one answers then.
fn until_each_was_first(switch: &Switch, failing: &Origin, slow: &Slow, fail: impl Fn(usize)) -> usize {
    let mut asked = 0;
    while hedges(switch, "slow", "won") == 0 || hedges(switch, failing.name(), "failed") == 0 {
        asked += 1;
        let mut client = asks(switch, "/a");
        failing.wait_for_requests(asked);
        slow.origin.wait_for_requests(asked);
        fail(asked);
        slow.answers_one();
        assert_eq!(client.response().server(), "slow");
    }
    asked
}

/// The other one is waited for then, whichever of the two it is.
fn one_of_them_fails(threads: usize) {
    let (fails, gate) = closing("fails");
    let slow = Slow::start("slow");
    let keys = "hedge_ms = 200\nretries_percent_max = 100";
    let switch = setup(threads, keys, &[entry(&fails, ""), slow.entry("")]).start();
    let asked = until_each_was_first(&switch, &fails, &slow, |asked| {
        gate.send(()).expect("it listens");
        until("a failure", || (failures(&switch) == asked).then_some(()));
    });
    assert_eq!(failures(&switch), asked);
}

/// Then it is as it is without: the error is that of the one that failed last, and no server is asked a third time.
fn both_fail(threads: usize) {
    let [(one, first), (two, second)] = ["one", "two"].map(closing);
    let servers = [entry(&one, ""), entry(&two, "")];
    let switch = setup(threads, "hedge_ms = 200\ntries_max = 2", &servers).start();
    let mut client = asks(&switch, "/a");
    [&one, &two].into_iter().for_each(|server| server.wait_for_requests(1));
    first.send(()).expect("it listens");
    until("a failure", || (failures(&switch) == 1).then_some(()));
    second.send(()).expect("it listens");
    assert_eq!(client.response().status(), 502);
    let line = switch.log_of("/a");
    assert_eq!((&line["tries"], &line["error"]), (&2.into(), &"the server closed the connection".into()));
    assert_eq!((failures(&switch), one.count() + two.count()), (2, 2));
}

/// An answer that `retry_on` asks another server for is none, as long as the other one may answer.
fn answers_that_are_passed_over(threads: usize) {
    let (gate, opened) = channel::<()>();
    let (says, said) = channel::<()>();
    let ends = Mutex::new((opened, says));
    let busy = Origin::answering("busy", move |exchange: &mut Exchange<'_>| {
        let ends = ends.lock().expect("no panic under the lock");
        ends.0.recv().unwrap_or_default();
        let then = exchange.answer("503 Service Unavailable", "");
        ends.1.send(()).unwrap_or_default();
        then
    });
    let slow = Slow::start("slow");
    let keys = "hedge_ms = 200\nretries_percent_max = 100\nretry_on = [\"status-503\"]\ntries_max = 2";
    let switch = setup(threads, keys, &[entry(&busy, ""), slow.entry("")]).start();
    let asked = until_each_was_first(&switch, &busy, &slow, |_| {
        gate.send(()).expect("it listens");
        said.recv().expect("it answers");
    });
    let failed = switch.metric("pointsman_server_failures_total", &[("server", "busy"), ("kind", "status")]);
    assert!((2..=asked).contains(&(failed as usize)), "{failed} of {asked}");
}

/// Asks `request` of one switch, and of its pool `clock` a request that is asked twice: by then the other one would have
/// been, too.
fn asked_once(threads: usize, keys: &str, rules: &str, request: &str) -> Switch {
    let servers = ["one", "two"].map(Slow::start);
    let clocks = ["c1", "c2"].map(Slow::start);
    let [entries, clock] =
        [&servers, &clocks].map(|servers| servers.each_ref().map(|server| server.entry("")).join(", "));
    let pools = format!(
        "[pool.standard]\n{keys}\nservers = [{entries}]\n[pool.clock]\nhedge_ms = 200\nservers = [{clock}]"
    );
    let rules = format!("if (path == \"/clock\") {{ routeTo(clock); }}\n{rules}");
    let switch = Setup::new(threads).raw(&pools).default_pool("standard").rules(&rules).start();
    let mut client = switch.client();
    client.send(request);
    let count = || servers.iter().map(|server| server.origin.count()).sum::<usize>();
    until("it is asked", || (count() == 1).then_some(()));
    let mut timer = asks(&switch, "/clock");
    clocks.iter().for_each(|server| server.origin.wait_for_requests(1));
    assert_eq!(count(), 1, "{keys} {rules} {request}");
    servers.iter().chain(&clocks).for_each(Slow::answers_one);
    assert_eq!((client.response().status(), timer.response().status()), (200, 200));
    switch
}

/// What may not be sent twice, and who is to get to a certain server.
fn who_is_not_asked_twice(threads: usize) {
    let post = "POST /a HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 0\r\n\r\n";
    for (keys, rules, request) in [
        ("", "", post),
        ("", "{ routeTo(standard, STICKY_ON_IP); }", GET),
        ("", "{ routeTo(standard.one); }", GET),
        ("retry_methods = []", "", GET),
        ("tries_max = 1", "", GET),
    ] {
        let switch = asked_once(threads, &format!("hedge_ms = 100\n{keys}"), rules, request);
        assert!(switch.log_of("/a")["hedge"].is_null());
    }
    asked_once(threads, "hedge_ms = 0", "", GET);
}

fn without_a_try_left(threads: usize) {
    let keys = "hedge_ms = 100\nretries_percent_max = 0\nretries_per_second_min = 0";
    let switch = asked_once(threads, keys, "", GET);
    let line = switch.log_of("/a");
    assert_eq!((&line["hedge"], &line["tries"]), (&"over_budget".into(), &1.into()), "{line}");
    let refused =
        switch.metric("pointsman_hedges_total", &[("pool", "standard"), ("outcome", "over_budget")]);
    assert!((refused - 1.0).abs() < 0.5, "{refused}");
}

/// Nor one that is there for when the others are down, nor one that has as many requests as it may have.
fn with_no_other_server(threads: usize) {
    for others in ["", ", backup = true", ", connections_max = 1"] {
        let (slow, other) = (Slow::start("slow"), Slow::start("other"));
        let clocks = ["c1", "c2"].map(Slow::start);
        let mut servers = vec![slow.entry("")];
        servers.extend((!others.is_empty()).then(|| other.entry(others)));
        let clock = clocks.each_ref().map(|server| server.entry("")).join(", ");
        let clock = format!("[pool.clock]\nhedge_ms = 300\nservers = [{clock}]");
        let rules = "if (path == \"/clock\") { routeTo(clock); }\n\
                     if (path == \"/other\") { routeTo(standard.other); }";
        let rules = if others.is_empty() { rules.lines().next().unwrap_or_default() } else { rules };
        let switch = setup(threads, "hedge_ms = 100", &servers).raw(&clock).rules(rules).start();
        let is_full = others.contains("connections_max");
        let mut busy = is_full.then(|| asks(&switch, "/other"));
        other.origin.wait_for_requests(usize::from(is_full));
        let mut client = asks(&switch, "/a");
        slow.origin.wait_for_requests(1);
        let mut timer = asks(&switch, "/clock");
        clocks.iter().for_each(|server| server.origin.wait_for_requests(1));
        assert_eq!(other.origin.count(), usize::from(is_full), "{others}");
        [&slow, &other, &clocks[0], &clocks[1]].into_iter().for_each(Slow::answers_one);
        assert_eq!((client.response().server(), timer.response().status()), ("slow", 200));
        assert!(busy.as_mut().is_none_or(|busy| busy.response().server() == "other"));
        assert!(switch.log_of("/a")["hedge"].is_null());
    }
}

/// Those that came with the head, and those that the rules have waited for.
fn bodies_go_to_both(threads: usize) {
    let body = format!("{{\"a\": \"b\", \"c\": [{}1]}}", "1, ".repeat(10_000));
    let head = |length: usize| {
        format!(
            "PUT /a HTTP/1.1\r\nHost: shop.example\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\n\r\n"
        )
    };
    for (rules, body) in [("", "all of it"), ("if (json.a == \"y\") { discard(); }", &*body)] {
        let servers = ["one", "two"].map(Slow::start);
        let entries = servers.each_ref().map(|server| server.entry(""));
        let before = setup(threads, "hedge_ms = 300", &entries);
        let switch = if rules.is_empty() { before.start() } else { before.rules(rules).start() };
        let mut client = switch.client();
        client.send(format!("{}{body}", head(body.len())));
        let servers = in_turn(servers);
        for server in &servers {
            server.answers_one();
            let seen = until("its body", || {
                let seen = server.origin.requests().into_iter().next()?;
                seen.complete.then_some(seen.body.bytes)
            });
            assert!(seen == body.as_bytes(), "{} bytes of {}", seen.len(), body.len());
        }
        assert_eq!(client.response().status(), 200);
        servers.iter().for_each(Slow::answers_one);
        assert_eq!(client.get("/b").status(), 200, "nothing of it is left");
    }
}

/// Over HTTP/2 the loser hears CANCEL, and its connection serves on.
fn a_stream_is_reset(threads: usize) {
    let stalled = H2Origin::serving(&[], |peer| {
        peer.wait(|_| false);
    });
    let well = H2Origin::echoing(&[]);
    let servers = [("stalled", stalled.address()), ("well", well.address())];
    let keys = "protocol = \"h2\"\nhedge_ms = 100\nretries_percent_max = 100";
    let switch = Setup::new(threads).pool_at("standard", keys, &servers).start();
    let (mut client, mut streams) = (switch.client(), begin(&switch));
    for number in 0..4 {
        assert_eq!(client.get("/a").status(), 200);
        assert_eq!(streams.fetch(2 * number + 1, "/b").status(), 200);
    }
    let all_are_reset = || {
        let requests = stalled.requests();
        let are_reset = requests.iter().all(|request| request.reset == Some(CANCEL));
        (are_reset && !requests.is_empty()).then_some(requests.len())
    };
    let reset = until("their resets", all_are_reset);
    assert_eq!(hedges(&switch, "well", "won"), reset);
    assert!(stalled.connections() <= threads.min(2), "they are streams of one connection for a thread");
}

/// The time runs from when the first server is chosen: one that takes a connection and nothing more is no better than one
/// that does not answer.
fn a_server_that_does_not_shake_hands(threads: usize) {
    let authority = Authority::new("server CA");
    let well = Origin::secured("well", &TlsServer::new(&authority.server(&["server.example"])), ok);
    let silent = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).expect("a free port");
    let servers = [("silent", silent.local_addr().expect("bound")), ("well", well.address())];
    let keys =
        "hedge_ms = 100\ntls = { ca = \"ca.crt\", name = \"server.example\" }\nretries_percent_max = 100";
    let setup = Setup::new(threads).file("ca.crt", &authority.pem()).pool_at("standard", keys, &servers);
    let switch = setup.start();
    let mut client = switch.client();
    for _ in 0..4 {
        assert_eq!(client.get("/a").server(), "well");
    }
    assert!(hedges(&switch, "well", "won") > 0);
}

/// Both connections end with it.
fn the_client_leaves_both(threads: usize) {
    let (switch, client, servers) = asked_both(threads, "", GET);
    client.reset();
    let line = switch.log_of("/a");
    assert_eq!((&line["hedge"], &line["status"]), (&"lost".into(), &serde_json::Value::Null), "{line}");
    for server in &servers {
        server.answers_one();
        server.origin.wait_for_ends(1);
    }
    // Also where one of them has failed before.
    let (fails, gate) = closing("fails");
    let slow = Slow::start("slow");
    let switch = setup(threads, "hedge_ms = 200", &[entry(&fails, ""), slow.entry("")]).start();
    let client = asks(&switch, "/a");
    fails.wait_for_requests(1);
    slow.origin.wait_for_requests(1);
    gate.send(()).expect("it listens");
    until("a failure", || (failures(&switch) == 1).then_some(()));
    client.reset();
    assert!(switch.log_of("/a")["status"].is_null());
    slow.answers_one();
    slow.origin.wait_for_ends(1);
}

/// Whoever is given up gives its place back.
fn places_come_back(threads: usize) {
    let servers = ["one", "two"].map(Slow::start);
    let entries = servers.each_ref().map(|server| server.entry(", connections_max = 1"));
    let keys = "hedge_ms = 100\nretries_percent_max = 100";
    let switch = setup(threads, keys, &entries).start();
    for round in 1..=6 {
        let mut client = asks(&switch, "/a");
        servers.iter().for_each(|server| server.origin.wait_for_requests(round));
        servers[round % 2].answers_one();
        assert_eq!(client.response().server(), servers[round % 2].origin.name());
        servers[1 - round % 2].answers_one();
        let none = || switch.metric("pointsman_server_in_flight_requests", &[]) < 0.5;
        until("nobody is there", || none().then_some(()));
    }
    assert!(servers.iter().all(|server| server.most.load(std::sync::atomic::Ordering::SeqCst) <= 2));
}

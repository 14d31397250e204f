//! Another number of threads at a reload: nobody is refused or cut, and nothing that was counted is lost.

use pointsman_e2e::{Client, Origin, Setup, Switch, until};

use crate::drain::{held, refuses};
use crate::http2::begin;
use crate::tunnels::{open, tunnelled};
use crate::upgrades::echo;

pointsman_e2e::for_threads!(
    to_fewer_and_to_more,
    open_connections_go_on_or_end_well,
    silent_connections_end_in_time,
    an_open_exchange,
    http2_is_told,
    a_tunnel_goes_on,
    a_unix_socket,
    an_upgrade_behind_it,
    with_tables_of_their_own,
    with_a_fault_nothing_changes,
);

fn setup(threads: usize, origin: &Origin) -> Setup {
    Setup::new(threads).pool("standard", &[origin])
}

/// Whoever connects gets to a thread that accepts, and every request is counted once.
fn to_fewer_and_to_more(threads: usize) {
    let origin = Origin::new("origin");
    let switch = setup(threads, &origin).start();
    let mut asked = 0.0;
    for (others, generation) in [2, 5, 1, 3, threads, 4, 2].into_iter().zip(2..) {
        switch.reload(&setup(others, &origin), generation);
        for _ in 0..40 {
            assert_eq!(switch.get("/").status(), 200);
            asked += 1.0;
        }
        switch.wait_for_threads(others);
        // The last one is counted behind its answer.
        let counted = || switch.metric("pointsman_requests_total", &[("status", "2xx")]);
        until("every request counted", || (counted() >= asked).then_some(()));
        assert_eq!(counted(), asked);
    }
    assert!(switch.said().contains("threads changed from=5 to=1"), "{}", switch.said());
    assert!(!switch.said().contains("takes effect at the next start"), "{}", switch.said());
}

/// So many connections that each thread has some, each of which has asked already.
fn used_clients(switch: &Switch) -> Vec<Client> {
    let mut clients: Vec<_> = (0..24).map(|_| switch.client()).collect();
    clients.iter_mut().for_each(|client| assert_eq!(client.get("/").status(), 200));
    clients
}

/// Every one of them gets its answer. That of a thread which goes says that it is the last.
fn open_connections_go_on_or_end_well(threads: usize) {
    let origin = Origin::new("origin");
    let switch = setup(4, &origin).top("upgrade_idle_ms_max = 600000").start();
    let mut clients = used_clients(&switch);
    switch.reload(&setup(threads, &origin).top("upgrade_idle_ms_max = 600000"), 2);
    // A thread learns of it a moment later than this test, and ends when all have asked once more.
    while switch.event_loops() != threads {
        clients.retain_mut(|client| {
            let answer = client.get("/");
            assert_eq!(answer.status(), 200);
            let is_last = answer.head.field("connection") == Some("close");
            assert!(!is_last || client.closes());
            !is_last
        });
    }
    assert_eq!(clients.len() == 24, threads == 4, "{} stay", clients.len());
    clients.iter_mut().for_each(|client| assert_eq!(client.get("/").status(), 200));
}

fn silent_connections_end_in_time(threads: usize) {
    let origin = Origin::new("origin");
    let few = |threads| setup(threads, &origin).top("upgrade_idle_ms_max = 50");
    let switch = few(threads + 3).start();
    let clients = used_clients(&switch);
    switch.reload(&few(threads), 2);
    switch.wait_for_threads(threads);
    let open = clients.into_iter().filter_map(|mut client| {
        let sent = client.try_send("GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n");
        sent.is_ok().then(|| client.try_response().ok()).flatten()
    });
    assert!(open.count() < 24, "those of the threads that went are closed");
}

/// The thread ends when the last answer is through, and no sooner.
fn an_open_exchange(threads: usize) {
    let (origin, go) = held();
    let switch = setup(threads + 3, &origin).start();
    let mut clients: Vec<_> = (0..16).map(|_| switch.client()).collect();
    clients.iter_mut().for_each(|client| client.send("GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n"));
    origin.wait_for_requests(16);
    switch.reload(&setup(threads, &origin), 2);
    (0..16).for_each(|_| go.send(()).expect("the origin is there"));
    for client in &mut clients {
        assert_eq!(client.response().status(), 200);
    }
    switch.wait_for_threads(threads);
}

fn http2_is_told(threads: usize) {
    let (origin, go) = held();
    let top = "upgrade_idle_ms_max = 600000";
    let switch = setup(threads + 3, &origin).top(top).start();
    let mut clients: Vec<_> = (0..16).map(|_| begin(&switch)).collect();
    clients.iter_mut().for_each(|client| client.ask(1, "GET", "/", &[]));
    origin.wait_for_requests(16);
    switch.reload(&setup(threads, &origin).top(top), 2);
    (0..16).for_each(|_| go.send(()).expect("the origin is there"));
    for client in &mut clients {
        assert_eq!(client.answer(1).status(), 200);
    }
    switch.wait_for_threads(threads);
}

/// Nobody waits for a thread that is not needed any more.
fn a_tunnel_goes_on(threads: usize) {
    let origin = tunnelled(echo);
    let setup = |threads| {
        let top = "upgrade_idle_ms_max = 0\ntunnel_drain_ms_max = 0";
        Setup::new(threads).top(top).pool_at("standard", "", &[("s", origin.address())])
    };
    let switch = setup(threads + 3).start();
    let mut tunnels: Vec<_> = (0..16).map(|_| open(switch.client())).collect();
    for (others, generation) in [threads, threads + 1, threads].into_iter().zip(2..) {
        switch.reload(&setup(others), generation);
        for tunnel in &mut tunnels {
            tunnel.send("over and over");
            tunnel.expect_body(b"over and over");
        }
    }
    drop(tunnels);
    switch.wait_for_threads(threads);
}

fn a_unix_socket(threads: usize) {
    let origin = Origin::new("origin");
    let on_socket = |threads| setup(threads, &origin).listener("bind = \"unix:shop.sock\"");
    let switch = on_socket(threads).start();
    let path = switch.folder().join("shop.sock");
    for (others, generation) in [3, 1, 2].into_iter().zip(2..) {
        switch.reload(&on_socket(others), generation);
        switch.wait_for_threads(others);
        for _ in 0..20 {
            assert_eq!(Client::unix(&path).get("/").status(), 200);
        }
    }
}

/// All sockets pass, also those that some threads have of others.
fn an_upgrade_behind_it(threads: usize) {
    let origin = Origin::new("origin");
    let mut switch = setup(4, &origin).start();
    switch.reload(&setup(2, &origin), 2);
    switch.upgrade_to(&setup(threads, &origin));
    switch.wait_for_predecessors();
    for _ in 0..40 {
        assert_eq!(switch.get("/").status(), 200);
    }
    switch.reload(&setup(3, &origin), 2);
    for _ in 0..40 {
        assert_eq!(switch.get("/").status(), 200);
    }
}

/// Also those that come later; and what a reload has removed is open in none of them. Where the system refuses tables of their
/// own all share one, and the switch has said so.
fn with_tables_of_their_own(threads: usize) {
    let origin = Origin::new("origin");
    let own = |threads| setup(threads, &origin).top("own_descriptor_tables = true");
    let switch = own(threads).start();
    let are_shared = switch.said().contains("threads share one descriptor table, which costs");
    for (others, generation) in [threads + 2, 1, 3, 1, 2].into_iter().zip((2..).step_by(2)) {
        let name = format!("second{generation}");
        switch.reload(&own(threads).another_listener(&name), generation);
        let second = switch.address(&name);
        switch.reload(&own(others), generation + 1);
        for _ in 0..40 {
            assert_eq!(switch.get("/").status(), 200);
        }
        switch.wait_for_threads(others);
        // One for each, one for those that start them, and one for the rest.
        let tables = if are_shared { 1 } else { 2 + others };
        until("a table for each", || (switch.descriptor_tables() == tables).then_some(()));
        refuses(&switch, second);
    }
}

/// No thread is left behind by a reload that is refused.
fn with_a_fault_nothing_changes(threads: usize) {
    let origin = Origin::new("origin");
    let switch = setup(threads, &origin).start();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback");
    let bind = format!("bind = \"{}\"", taken.local_addr().expect("bound"));
    setup(threads + 2, &origin).another_listener("taken").listener(&bind).write(switch.folder());
    switch.signal("HUP");
    switch.wait_for_line("reload refused: ");
    switch.wait_for_threads(threads);
    for _ in 0..20 {
        assert_eq!(switch.get("/").status(), 200);
    }
}

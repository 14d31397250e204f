//! SIGUSR2: what one process remembers of sticky clients the next one knows.

use pointsman_e2e::{Client, Origin, Setup, Switch, scale, until};

use crate::sticky_exceptions::{BY_ADDRESS, Site, exceptions, homes};
use crate::sticky_learned::{login, servers, setup};

pointsman_e2e::for_threads!(
    what_was_learned,
    who_is_not_at_home,
    where_servers_come_and_weigh_otherwise,
    with_their_targets,
    what_the_old_process_learns_after_all,
    all_of_a_crowd,
    under_another_key_nobody_is_known,
    where_nobody_is_sticky_any_more,
);

const BY_COOKIE: &str = "STICKY_ON(cookie[\"sid\"])";

/// The server that a client with this session comes to.
fn server_of(switch: &Switch, session: &str) -> String {
    switch.client().ask("GET", "/", &format!("Cookie: sid={session}\r\n")).server().to_owned()
}

fn what_was_learned(threads: usize) {
    let servers = servers();
    let mut switch = setup(threads, BY_COOKIE, &servers).start();
    let sessions: Vec<_> = (0..20).map(|_| login(&switch, "")).collect();
    let away = exceptions(&switch);
    assert!(away > 4, "{sessions:?}");
    for _ in 0..2 {
        switch.upgrade();
        for (session, server) in &sessions {
            assert_eq!(server_of(&switch, session), *server, "{session}");
        }
        assert_eq!(exceptions(&switch), away);
        switch.wait_for_predecessors();
    }
}

fn who_is_not_at_home(threads: usize) {
    let site = Site::new();
    let mut switch = site.setup(threads, BY_ADDRESS, "").start();
    let before = homes(&switch);
    site.set_well(&switch, 0, false);
    let (meanwhile, moved) = (homes(&switch), exceptions(&switch));
    assert_ne!(meanwhile, before);
    site.set_well(&switch, 0, true);
    switch.upgrade();
    // One connection asks for all: it is to be one of the new process.
    switch.wait_for_predecessors();
    assert_eq!((homes(&switch), exceptions(&switch)), (meanwhile, moved));
}

/// The new process has another configuration, and nobody moves who need not.
fn where_servers_come_and_weigh_otherwise(threads: usize) {
    let origins: Vec<_> = (0..5).map(|number| Origin::new(&format!("s{number}"))).collect();
    let with = |weights: [u32; 5]| {
        let servers =
            origins.iter().zip(weights).filter(|(_, weight)| *weight > 0).map(|(origin, weight)| {
                let (name, address) = (origin.name(), origin.address());
                format!("{{ name = \"{name}\", address = \"{address}\", weight = {weight} }}")
            });
        let pool = format!("[pool.standard]\nservers = [{}]", servers.collect::<Vec<_>>().join(", "));
        let setup = Setup::new(threads).rules(BY_ADDRESS).listener("trusted_proxies = [\"127.0.0.1\"]");
        setup.raw(&pool).default_pool("standard")
    };
    let mut switch = with([1, 1, 1, 0, 0]).start();
    let mut were = homes(&switch);
    for weights in [[1, 1, 1, 9, 1], [90, 1, 1, 9, 1], [90, 0, 1, 9, 1]] {
        switch.upgrade_to(&with(weights));
        switch.wait_for_predecessors();
        let are = homes(&switch);
        for (was, is) in were.iter().zip(&are) {
            assert_eq!(was == is, weights[1] > 0 || was != "s1", "{was} to {is} by {weights:?}");
        }
        were = are;
    }
    assert!(exceptions(&switch) > 0, "they are known to be away");
}

fn with_their_targets(threads: usize) {
    let (here, there) = (servers(), Origin::new("there"));
    let rules = format!(
        "R1: if (path == \"/login\") {{ routeTo(standard, {BY_COOKIE}); }} R2: {{ routeTo(other); }}"
    );
    let setup = setup(threads, "NON_STICKY", &here).rules(&rules).pool("other", &[&there]);
    let mut switch = setup.listener("sticky_scope = \"listener\"").start();
    let sessions: Vec<_> = (0..10).map(|_| login(&switch, "")).collect();
    switch.upgrade();
    for (session, server) in &sessions {
        assert_eq!(server_of(&switch, session), *server, "{session}");
    }
    switch.wait_for_predecessors();
    assert_eq!(switch.get("/").server(), "there");
}

/// Who is still served there gets a session; the next connection of it meets the new process.
fn what_the_old_process_learns_after_all(threads: usize) {
    let servers = servers();
    let keys = "upgrade_idle_ms_max = 600000\ndrain_ms_max = 600000";
    let mut switch = setup(threads, BY_COOKIE, &servers).top(keys).start();
    let mut clients: Vec<Client> = (0..12).map(|_| switch.client()).collect();
    assert!(clients.iter_mut().all(|client| client.get("/").status() == 200));
    switch.upgrade();
    for client in &mut clients {
        let answer = client.get("/login");
        let (session, server) = (answer.head.field("x-session").expect("a session"), answer.server());
        // By its hash it is elsewhere, most often, until the new process has heard of it, and is put right then.
        until(&format!("{session} at {server}"), || (server_of(&switch, session) == server).then_some(()));
    }
    drop(clients);
    switch.wait_for_predecessors();
}

/// The old process has nothing else to do, and ends only when it has given them all.
fn all_of_a_crowd(threads: usize) {
    const AT_ONCE: usize = 100;
    let (origin, clients) = (Origin::new("origin"), scale(4_000, 200_000));
    let rule = "R1: { routeTo(standard, STICKY_ON(header[\"x-client\"])); }";
    let setup = Setup::new(threads).rules(rule).top("sticky_entries_max = 1_000_000");
    let mut switch = setup.pool("standard", &[&origin]).start();
    let mut client = switch.client();
    for first in (0..clients).step_by(AT_ONCE) {
        let ask = |client| format!("GET / HTTP/1.1\r\nHost: shop.example\r\nX-Client: {client}\r\n\r\n");
        client.send((first..first + AT_ONCE).map(ask).collect::<String>());
        assert!((0..AT_ONCE).all(|_| client.response().status() == 200));
    }
    let remembered = |switch: &Switch| switch.metric("pointsman_sticky_clients", &[]);
    let before = remembered(&switch);
    assert!(before > clients as f64 * 0.99, "{before}");
    switch.upgrade();
    drop(client);
    switch.wait_for_predecessors();
    until("all of them", || (remembered(&switch) >= before).then_some(()));
}

fn under_another_key_nobody_is_known(threads: usize) {
    let servers = servers();
    let with = |key: &str| setup(threads, BY_COOKIE, &servers).top(&format!("sticky_key = \"{key}\""));
    let mut switch = with("0123456789abcdef0123456789abcdef").start();
    (0..10).for_each(|_| drop(login(&switch, "")));
    assert!(switch.metric("pointsman_sticky_clients", &[]) > 9.5);
    switch.upgrade_to(&with("fedcba9876543210fedcba9876543210"));
    assert!(switch.metric("pointsman_sticky_clients", &[]) < 0.5);
    assert_eq!(switch.get("/").status(), 200);
}

fn where_nobody_is_sticky_any_more(threads: usize) {
    let servers = servers();
    let mut switch = setup(threads, BY_COOKIE, &servers).start();
    (0..10).for_each(|_| drop(login(&switch, "")));
    switch.upgrade_to(&setup(threads, "NON_STICKY", &servers));
    switch.wait_for_predecessors();
    assert_eq!(switch.get("/").status(), 200);
    switch.upgrade_to(&setup(threads, BY_COOKIE, &servers));
    switch.wait_for_predecessors();
    let (session, server) = login(&switch, "");
    assert_eq!(server_of(&switch, &session), server);
}

//! Servers come, go and weigh more or less by reloads, and sticky clients stay with those that are still there.

use std::collections::HashSet;

use pointsman_e2e::{Authority, Client, Origin, Setup, Switch, TlsClient};

pointsman_e2e::for_threads!(
    clients_of_an_address,
    clients_with_a_cookie,
    clients_with_a_tls_session,
    without_room_only_those_move_that_must
);

const CLIENTS: usize = 40;

fn five() -> Vec<Origin> {
    (0..5).map(|number| Origin::new(&format!("s{number}"))).collect()
}

/// The pool of those whose weights are not 0.
fn pool(origins: &[Origin], weights: [u32; 5]) -> String {
    let servers = origins.iter().zip(weights).filter(|(_, weight)| *weight > 0);
    let entry = |(origin, weight): (&Origin, u32)| {
        format!("{{ name = \"{}\", address = \"{}\", weight = {weight} }}", origin.name(), origin.address())
    };
    let servers: Vec<_> = servers.map(entry).collect();
    format!("[pool.standard]\nservers = [{}]", servers.join(", "))
}

/// The servers at first, and after each reload.
const STEPS: [[u32; 5]; 5] =
    [[1, 1, 1, 0, 0], [1, 1, 1, 1, 1], [90, 1, 1, 1, 1], [90, 0, 1, 1, 9], [1, 1, 1, 1, 1]];

/// Goes through the steps. `setup` lacks its pool, and `ask` asks for one of the clients.
fn go_through(setup: &Setup, mut ask: impl FnMut(&Switch, usize) -> String) {
    let origins = five();
    let with = |weights| setup.clone().raw(&pool(&origins, weights)).default_pool("standard");
    let switch = with(STEPS[0]).start();
    let mut homes =
        |switch: &Switch| -> Vec<String> { (0..CLIENTS).map(|client| ask(switch, client)).collect() };
    let mut were = homes(&switch);
    assert_eq!(were.iter().collect::<HashSet<_>>().len(), 3, "{were:?}");
    for (weights, generation) in STEPS.into_iter().zip(1..).skip(1) {
        switch.reload(&with(weights), generation);
        let are = homes(&switch);
        for (was, is) in were.iter().zip(&are) {
            let is_there = (0..5).any(|at| weights[at] > 0 && origins[at].name() == was);
            assert!(if is_there { is == was } else { is != was }, "{was} to {is} by {weights:?}");
        }
        assert_eq!(homes(&switch), are);
        were = are;
    }
    assert!(were.iter().all(|server| server != "s1"), "who had to leave it does not come back");
    assert!(switch.metric("pointsman_sticky_exceptions", &[]) > 0.5);
}

/// Who is new goes to what is new, too.
fn clients_of_an_address(threads: usize) {
    let rule = "R1: { routeTo(standard, STICKY_ON_IP); }";
    let setup = Setup::new(threads).rules(rule).listener("trusted_proxies = [\"127.0.0.1\"]");
    let field = |net: u8, client| format!("X-Forwarded-For: 192.0.{net}.{client}\r\n");
    go_through(&setup, |switch, client| {
        switch.client().ask("GET", "/", &field(2, client)).server().to_owned()
    });
    let origins = five();
    let with = |weights| setup.clone().raw(&pool(&origins, weights)).default_pool("standard");
    let switch = with(STEPS[0]).start();
    let seen = |net| -> HashSet<String> {
        let servers = (0..CLIENTS).map(|client| switch.client().ask("GET", "/", &field(net, client)));
        servers.map(|answer| answer.server().to_owned()).collect()
    };
    assert_eq!(seen(0).len(), 3);
    switch.reload(&with(STEPS[1]), 2);
    assert_eq!((seen(0).len(), seen(2).len()), (3, 5));
}

fn clients_with_a_cookie(threads: usize) {
    let setup = Setup::new(threads).rules("R1: { routeTo(standard, STICKY_ON_COOKIE); }");
    let mut cookies = vec![String::new(); CLIENTS];
    go_through(&setup, |switch, client| {
        let answer = switch.client().ask("GET", "/", &cookies[client]);
        if let Some(set) = answer.head.field("set-cookie") {
            cookies[client] = format!("Cookie: {}\r\n", set.split(';').next().unwrap_or_default());
        }
        answer.server().to_owned()
    });
}

/// Over TLS 1.3 and 1.2, resumed each time.
fn clients_with_a_tls_session(threads: usize) {
    let authority = Authority::new("test CA");
    let rule = "R1: { routeTo(standard, STICKY_ON_TLS_SESSION); }";
    let setup = Setup::new(threads).tls(&authority.server(&["shop.example"]), "").rules(rule);
    let versions = [TlsClient::v13, TlsClient::v12];
    let clients: Vec<_> = (0..CLIENTS).map(|client| versions[client % 2](&authority)).collect();
    go_through(&setup, |switch, client| {
        let client = Client::plain(switch.address("shop")).into_tls(&clients[client], "shop.example");
        client.expect("a handshake").get("/").server().to_owned()
    });
}

/// What the hash says is all that is known then: of five servers a new one gets its fifth of the clients, and nobody else
/// moves.
fn without_room_only_those_move_that_must(threads: usize) {
    let origins = five();
    let rule = "R1: { routeTo(standard, STICKY_ON_IP); }";
    let setup = Setup::new(threads).rules(rule).listener("trusted_proxies = [\"127.0.0.1\"]");
    let setup = setup.top("sticky_entries_max = 0");
    let with = |weights| setup.clone().raw(&pool(&origins, weights)).default_pool("standard");
    let switch = with([1, 1, 1, 1, 0]).start();
    let homes = || -> Vec<String> {
        let field = |client| format!("X-Forwarded-For: 192.0.2.{client}\r\n");
        let answers = (0..CLIENTS).map(|client| switch.client().ask("GET", "/", &field(client)));
        answers.map(|answer| answer.server().to_owned()).collect()
    };
    let before = homes();
    switch.reload(&with([1, 1, 1, 1, 1]), 2);
    let after = homes();
    let moved: Vec<_> = before.iter().zip(&after).filter(|(before, after)| before != after).collect();
    assert!(!moved.is_empty() && moved.iter().all(|(_, after)| *after == "s4"), "{moved:?}");
}

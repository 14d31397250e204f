//! Connection limits: in all, of a listener, of an address.

use std::net::IpAddr;

use pointsman_e2e::{Authority, Client, Origin, Setup, Switch, TlsClient, until};

pointsman_e2e::for_threads!(
    of_the_process,
    of_a_listener,
    of_an_address,
    trusted_proxies_are_not_counted,
    over_tls_it_closes,
    the_answer_is_not_lost_to_a_reset,
    a_reload_changes_it
);

/// A connection that is turned away gets this status, before it has said a word, and the end.
fn turned_away(mut client: Client, status: u16) {
    let answer = client.response();
    assert_eq!((answer.status(), answer.head.field("connection")), (status, Some("close")));
    assert!(client.closes());
}

fn refused(switch: &Switch, reason: &str) -> f64 {
    switch.metric("pointsman_refusals_total", &[("reason", reason)])
}

/// There is room again as soon as the switch has noticed that somebody left.
fn room_again(mut connect: impl FnMut() -> Client) {
    until("room again", || {
        let mut client = connect();
        drop(client.try_send("GET /again HTTP/1.1\r\nHost: shop.example\r\n\r\n"));
        client.try_response().ok().filter(|answer| answer.status() == 200)
    });
}

/// All listeners together.
fn of_the_process(threads: usize) {
    let origin = Origin::new("origin");
    let setup = Setup::new(threads).top("connections_max = 2").another_listener("second");
    let switch = setup.pool("standard", &[&origin]).start();
    let (mut first, mut second) = (switch.client(), Client::plain(switch.address("second")));
    assert_eq!((first.get("/").status(), second.get("/").status()), (200, 200));
    turned_away(switch.client(), 503);
    turned_away(Client::plain(switch.address("second")), 503);
    assert_eq!(refused(&switch, "connections"), 2.0);
    assert_eq!(first.get("/").status(), 200);
    drop(second);
    room_again(|| switch.client());
}

/// Each for itself.
fn of_a_listener(threads: usize) {
    let origin = Origin::new("origin");
    let setup = Setup::new(threads).limits("connections_max = 1").another_listener("second");
    let switch = setup.pool("standard", &[&origin]).start();
    let mut first = switch.client();
    assert_eq!(first.get("/").status(), 200);
    turned_away(switch.client(), 503);
    assert_eq!(Client::plain(switch.address("second")).get("/").status(), 200);
    drop(first);
    room_again(|| switch.client());
}

/// Each address for itself, over all threads.
fn of_an_address(threads: usize) {
    let origin = Origin::new("origin");
    let setup = Setup::new(threads).limits("connections_per_address_max = 3");
    let switch = setup.pool("standard", &[&origin]).start();
    let mut first: Vec<Client> = (0..3).map(|_| switch.client()).collect();
    first.iter_mut().for_each(|client| assert_eq!(client.get("/").status(), 200));
    for _ in 0..5 {
        turned_away(switch.client(), 429);
    }
    assert_eq!(refused(&switch, "connections_per_address"), 5.0);
    let neighbour: IpAddr = [127, 0, 0, 2].into();
    assert_eq!(Client::plain_from(neighbour, switch.address("shop")).get("/").status(), 200);
    first.truncate(2);
    room_again(|| switch.client());
    assert_eq!(first[0].get("/").status(), 200);
}

/// A balancer in front stands for all its clients.
fn trusted_proxies_are_not_counted(threads: usize) {
    let origin = Origin::new("origin");
    let setup = Setup::new(threads).listener("trusted_proxies = [\"127.0.0.3\"]");
    let setup = setup.limits("connections_per_address_max = 1");
    let switch = setup.pool("standard", &[&origin]).start();
    let proxy: IpAddr = [127, 0, 0, 3].into();
    let mut many: Vec<Client> = (0..10).map(|_| Client::plain_from(proxy, switch.address("shop"))).collect();
    many.iter_mut().for_each(|client| assert_eq!(client.get("/").status(), 200));
    let _one = switch.client();
    until("the limit of others", || {
        let mut client = switch.client();
        drop(client.try_send("GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n"));
        client.try_response().ok().filter(|answer| answer.status() == 429)
    });
}

/// No answer could be read there.
fn over_tls_it_closes(threads: usize) {
    let (authority, origin) = (Authority::new("test CA"), Origin::new("origin"));
    let setup = Setup::new(threads).tls(&authority.server(&["shop.example"]), "");
    let setup = setup.limits("connections_per_address_max = 1").pool("standard", &[&origin]);
    let (switch, trust) = (setup.start(), TlsClient::new(&authority));
    let mut first = switch.tls_client(&trust, "shop.example").expect("a handshake");
    assert_eq!(first.get("/").status(), 200);
    assert!(switch.tls_client(&trust, "shop.example").is_err());
    assert!(switch.client().closes());
    assert_eq!(refused(&switch, "connections_per_address"), 2.0);
    assert_eq!(first.get("/").status(), 200);
}

/// Whoever sends at once, and a lot, still reads why it is turned away.
fn the_answer_is_not_lost_to_a_reset(threads: usize) {
    let origin = Origin::new("origin");
    let switch = Setup::new(threads).limits("connections_max = 1").pool("standard", &[&origin]).start();
    let mut first = switch.client();
    assert_eq!(first.get("/").status(), 200);
    let request = format!("GET / HTTP/1.1\r\nHost: shop.example\r\nX-Long: {}\r\n\r\n", "a".repeat(12_000));
    for round in 0..50 {
        let mut client = switch.client();
        client.send(&request);
        let answer = client.try_response().unwrap_or_else(|error| panic!("round {round}: {error}"));
        assert_eq!(answer.status(), 503, "round {round}");
        // What the client of these tests says of an orderly end: a reset is another error.
        let end = client.try_response().expect_err("the end");
        assert_eq!(end.to_string(), "closed before an answer", "round {round}");
    }
}

/// Both kinds of limit hold for new connections after a reload, and touch no old one.
fn a_reload_changes_it(threads: usize) {
    let origin = Origin::new("origin");
    let setup = Setup::new(threads).pool("standard", &[&origin]);
    let switch = setup.start();
    let mut old: Vec<Client> = (0..4).map(|_| switch.client()).collect();
    old.iter_mut().for_each(|client| assert_eq!(client.get("/").status(), 200));
    switch.reload(&setup.clone().top("connections_max = 2"), 2);
    until("the new limit", || {
        let mut client = switch.client();
        drop(client.try_send("GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n"));
        client.try_response().ok().filter(|answer| answer.status() == 503)
    });
    old.iter_mut().for_each(|client| assert_eq!(client.get("/").status(), 200));
    switch.reload(&setup, 3);
    room_again(|| switch.client());
}

//! Connection limits: in all, of a listener, of an address.

use std::net::IpAddr;

use pointsman_e2e::{Authority, Bound, Client, Origin, Setup, Switch, TlsClient, Unit, figure, scale, until};

use super::{Costs, clients, crowd, for_crowds, is_served, tell, whole};

pointsman_e2e::for_threads!(
    of_the_process,
    of_a_listener,
    of_an_address,
    trusted_proxies_are_not_counted,
    over_tls_it_closes,
    the_answer_is_not_lost_to_a_reset,
    a_reload_changes_it
);

/// How many are turned away at a time.
fn many() -> usize {
    crowd(100, 2000, 1)
}

/// What it costs to turn many away, while those who are inside are served.
fn turns_away(fault: &str, switch: &Switch, inside: &mut [Client], status: u16, more: impl Fn() -> Client) {
    let costs = Costs::since(switch);
    let many: Vec<Client> = (0..many()).map(|_| more()).collect();
    let count = many.len();
    served(fault, inside);
    costs.memory(fault, memory_max(count));
    turned_away(fault, many, status);
    costs.cpu_of(fault, count, us_each_max());
    served(fault, inside);
}

/// What so many may have of memory while they are turned away.
fn memory_max(count: usize) -> u64 {
    const OTHERS: u64 = 2 * 1024 * 1024;
    OTHERS + count as u64 * 8 * 1024
}

/// Microseconds of a processor that one may cost.
fn us_each_max() -> u64 {
    scale(500, 200)
}

/// Connections that are turned away get this status, before they have said a word, and the end.
fn turned_away(fault: &str, clients: Vec<Client>, status: u16) {
    let count = clients.len() as u64;
    let is_right = |mut client: Client| {
        let answer = client.try_response();
        let is_told = answer.as_ref().is_ok_and(|answer| {
            let is_dated = answer.head.check_date().is_ok();
            is_dated && (answer.status(), answer.head.field("connection")) == (status, Some("close"))
        });
        let is_right = is_told && client.closes();
        if !is_right {
            tell(&format!("{fault}: {answer:?}"));
        }
        is_right
    };
    let right = clients.into_iter().map(is_right).filter(|is_right| *is_right).count() as u64;
    let what = if status == 429 { "refused with 429 and closed" } else { "refused with 503 and closed" };
    figure(fault, right, Unit::Count(what), Bound::Exactly(count));
}

/// Everybody who is inside is served.
fn served(fault: &str, clients: &mut [Client]) {
    let count = clients.len() as u64;
    let served = clients.iter_mut().map(is_served).filter(|is_served| *is_served).count() as u64;
    figure(fault, served, Unit::Count("served meanwhile"), Bound::Exactly(count));
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
    let fault = format!("2 connections in all, {threads} threads");
    let origin = Origin::new("origin");
    let setup = Setup::new(threads).top("connections_max = 2").another_listener("second");
    let switch = setup.pool("standard", &[&origin]).start();
    let mut inside = [switch.client(), Client::plain(switch.address("second"))];
    assert!(inside.iter_mut().all(is_served));
    for listener in ["shop", "second"] {
        turns_away(&fault, &switch, &mut inside, 503, || Client::plain(switch.address(listener)));
    }
    assert_eq!(refused(&switch, "connections"), whole(2 * many()));
    let [_first, second] = inside;
    drop(second);
    room_again(|| switch.client());
}

/// Each for itself.
fn of_a_listener(threads: usize) {
    let fault = format!("1 connection of a listener, {threads} threads");
    let origin = Origin::new("origin");
    let setup = Setup::new(threads).limits("connections_max = 1").another_listener("second");
    let switch = setup.pool("standard", &[&origin]).start();
    let mut inside = [switch.client(), Client::plain(switch.address("second"))];
    assert!(inside.iter_mut().all(is_served));
    turns_away(&fault, &switch, &mut inside, 503, || switch.client());
    drop(inside);
    room_again(|| switch.client());
}

/// Each address for itself, over all threads.
fn of_an_address(threads: usize) {
    let fault = format!("3 connections of an address, {threads} threads");
    let origin = Origin::new("origin");
    let setup = Setup::new(threads).limits("connections_per_address_max = 3");
    let switch = setup.pool("standard", &[&origin]).start();
    let mut first: Vec<Client> = (0..3).map(|_| switch.client()).collect();
    assert!(first.iter_mut().all(is_served));
    let neighbour: IpAddr = [127, 0, 0, 2].into();
    first.push(Client::plain_from(neighbour, switch.address("shop")));
    turns_away(&fault, &switch, &mut first, 429, || switch.client());
    assert_eq!(refused(&switch, "connections_per_address"), whole(many()));
    first.truncate(2);
    room_again(|| switch.client());
    assert_eq!(first[0].get("/").status(), 200);
}

/// A balancer in front stands for all its clients.
fn trusted_proxies_are_not_counted(threads: usize) {
    let count = many();
    let fault = format!("{count} connections of a trusted proxy where an address has 1, {threads} threads");
    let origin = Origin::new("origin");
    let setup = for_crowds(threads).listener("trusted_proxies = [\"127.0.0.3\"]");
    let setup = setup.limits("connections_per_address_max = 1");
    let switch = setup.pool("standard", &[&origin]).start();
    let proxy: IpAddr = [127, 0, 0, 3].into();
    let mut one = switch.client();
    assert!(is_served(&mut one));
    let costs = Costs::since(&switch);
    let mut all: Vec<Client> =
        (0..count).map(|_| Client::plain_from(proxy, switch.address("shop"))).collect();
    served(&fault, &mut all);
    costs.memory(&fault, memory_max(count));
    costs.cpu_of(&fault, count, us_each_max());
    served(&fault, std::slice::from_mut(&mut one));
    until("the limit of others", || {
        let mut client = switch.client();
        drop(client.try_send("GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n"));
        client.try_response().ok().filter(|answer| answer.status() == 429)
    });
}

/// No answer could be read there.
fn over_tls_it_closes(threads: usize) {
    let fault = format!("1 connection of an address over TLS, {threads} threads");
    let (authority, origin) = (Authority::new("test CA"), Origin::new("origin"));
    let setup = Setup::new(threads).tls(&authority.server(&["shop.example"]), "");
    let setup = setup.limits("connections_per_address_max = 1").pool("standard", &[&origin]);
    let (switch, trust) = (setup.start(), TlsClient::new(&authority));
    let mut first = switch.tls_client(&trust, "shop.example").expect("a handshake");
    assert_eq!(first.get("/").status(), 200);
    let costs = Costs::since(&switch);
    // As many at a time as before plain ones.
    let mut more = clients(&switch, many());
    served(&fault, std::slice::from_mut(&mut first));
    costs.memory(&fault, memory_max(more.len()));
    let closed = more.iter_mut().filter_map(|client| client.closes().then_some(())).count();
    figure(&fault, closed as u64, Unit::Count("closed without a word"), Bound::Exactly(more.len() as u64));
    let handshakes = (0..many()).filter(|_| switch.tls_client(&trust, "shop.example").is_ok()).count();
    figure(&fault, handshakes as u64, Unit::Count("handshakes of as many more"), Bound::Exactly(0));
    costs.cpu_of(&fault, 2 * many(), us_each_max());
    assert_eq!(refused(&switch, "connections_per_address"), whole(2 * many()));
    served(&fault, std::slice::from_mut(&mut first));
}

/// Whoever sends at once, and a lot, still reads why it is turned away.
fn the_answer_is_not_lost_to_a_reset(threads: usize) {
    let count = many();
    let fault = format!("{count} turned away while they send, {threads} threads");
    let origin = Origin::new("origin");
    let switch = Setup::new(threads).limits("connections_max = 1").pool("standard", &[&origin]).start();
    let mut first = switch.client();
    assert_eq!(first.get("/").status(), 200);
    let request = format!("GET / HTTP/1.1\r\nHost: shop.example\r\nX-Long: {}\r\n\r\n", "a".repeat(12_000));
    let costs = Costs::since(&switch);
    let is_told = |round: usize| {
        let mut client = switch.client();
        client.send(&request);
        let answer = client.try_response().map(|answer| answer.status());
        // What the client of these tests says of an orderly end: a reset is another error.
        let end = client.try_response().expect_err("the end").to_string();
        let is_told = answer.as_ref().is_ok_and(|status| *status == 503) && end == "closed before an answer";
        if !is_told {
            tell(&format!("{fault}: round {round}: {answer:?}, {end}"));
        }
        is_told
    };
    let (mut told, mut served) = (0, 0);
    for round in 0..count {
        told += u64::from(is_told(round));
        served += u64::from(is_served(&mut first));
    }
    let all = Bound::Exactly(count as u64);
    figure(&fault, told, Unit::Count("read their 503 and an orderly end"), all);
    figure(&fault, served, Unit::Count("served meanwhile"), all);
    costs.memory(&fault, memory_max(count));
    costs.cpu_of(&fault, count, us_each_max());
}

/// Both kinds of limit hold for new connections after a reload, and touch no old one.
fn a_reload_changes_it(threads: usize) {
    let fault = format!("a reload to 2 connections where 4 are open, {threads} threads");
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
    turns_away(&fault, &switch, &mut old, 503, || switch.client());
    switch.reload(&setup, 3);
    room_again(|| switch.client());
}

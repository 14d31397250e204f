//! Many clients that hold something: an idle connection, half a head, a body, an answer, a handshake.

use std::io::{Read, Write};
use std::net::TcpStream;

use pointsman_e2e::{
    Authority, Bound, Client, Origin, PATIENCE, RawOrigin, Setup, Switch, TlsClient, Unit, figure, read_head,
    scale, until,
};

use super::{Costs, clients, crowd, each_at_most, for_crowds, tell};

pointsman_e2e::for_threads!(idle, slow_heads, slow_bodies, slow_readers, half_open_handshakes);

const EACH: Unit = Unit::Bytes("resident memory each");

/// Idle connections that have each had an answer. All of them are served again afterwards.
fn idle(threads: usize) {
    let count = crowd(1000, 10_000, 1);
    let fault = format!("{count} idle connections, {threads} threads");
    let origin = Origin::new("origin");
    let switch = for_crowds(threads).limits("idle_ms_max = 600000").pool("standard", &[&origin]).start();
    let mut other = switch.client();
    assert_eq!(other.get("/").status(), 200);
    let costs = Costs::since(&switch);
    let mut idle = clients(&switch, count);
    for client in &mut idle {
        assert_eq!(client.get("/").status(), 200);
    }
    let each = costs.resident_each(&mut other, count);
    figure(&fault, each, EACH, each_at_most(4 * 1024, count, threads));
    let served = idle.iter_mut().filter_map(|client| (client.get("/").status() == 200).then_some(())).count();
    figure(&fault, served as u64, Unit::Count("served again"), Bound::Exactly(count as u64));
}

/// Heads that stop in the middle: 408 when their time is over, and nobody else waits for them.
fn slow_heads(threads: usize) {
    let count = crowd(1000, 10_000, 1);
    let fault = format!("{count} slow heads, {threads} threads");
    let origin = Origin::new("origin");
    let limits = format!("head_ms_max = {}", scale(1500, 5000));
    let switch = for_crowds(threads).limits(&limits).pool("standard", &[&origin]).start();
    let mut other = switch.client();
    assert_eq!(other.get("/other").status(), 200);
    let costs = Costs::since(&switch);
    let mut slow = clients(&switch, count);
    // As large as a head may be, so that it costs what it can.
    let part = format!("GET /slow HTTP/1.1\r\nHost: shop.example\r\nX-Slow: {}", "a".repeat(15_000));
    slow.iter_mut().for_each(|client| client.send(&part));
    let each = costs.resident_each(&mut other, count);
    figure(&fault, each, EACH, each_at_most(24 * 1024, count, threads));
    all_get(&fault, &mut slow, 408);
    costs.cpu_of(&fault, count, scale(1000, 400));
    assert_eq!(refused(&switch, "head_timeout"), count);
    assert_eq!(other.get("/other").status(), 200);
    assert!(origin.requests().iter().all(|request| request.target() == "/other"));
}

/// Bodies that stop in the middle: 408, and the server's connection ends, too. Each is two connections.
fn slow_bodies(threads: usize) {
    let count = crowd(1000, 9000, 2);
    let fault = format!("{count} slow bodies, {threads} threads");
    let (origin, held) = (Origin::new("origin"), RawOrigin::silent());
    let setup = for_crowds(threads).rules("if (path == \"/slow\") { routeTo(held); }");
    let setup = setup.limits(&format!("body_ms_max = {}", scale(1500, 5000)));
    let setup = setup.pool("standard", &[&origin]);
    // Longer than the kernel takes to try again where the server's queue overflows after all.
    let switch = setup.pool_at("held", "connect_ms_max = 60000", &[("h1", held.address())]).start();
    let mut other = switch.client();
    assert_eq!(other.get("/other").status(), 200);
    let costs = Costs::since(&switch);
    let mut slow = clients(&switch, count);
    let head = "POST /slow HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 1000000\r\n\r\n";
    for client in &mut slow {
        client.send(head);
        client.send("a".repeat(1000));
    }
    until("every request at its server", || (held.connections() >= count).then_some(()));
    let each = costs.resident_each(&mut other, count);
    figure(&fault, each, EACH, each_at_most(24 * 1024, count, threads));
    all_get(&fault, &mut slow, 408);
    costs.cpu_of(&fault, count, scale(500, 300));
    assert_eq!(refused(&switch, "body_timeout"), count);
    assert_eq!(other.get("/other").status(), 200);
    until("no descriptor left behind", || (switch.descriptors() < 100).then_some(()));
}

/// Clients that take nothing of a large answer: they are cut, and their servers are let go.
fn slow_readers(threads: usize) {
    let count = scale(40, 200);
    let fault = format!("{count} slow readers, {threads} threads");
    let origin = Origin::new("origin");
    let large = RawOrigin::serving(|mut socket, _| {
        if read_head(&mut socket).is_none() {
            return;
        }
        drop(socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 67108864\r\n\r\n"));
        // Until the switch has had enough of its client.
        while socket.write_all(&[b'a'; 64 * 1024]).is_ok() {}
    });
    let setup = for_crowds(threads).rules("if (path == \"/large\") { routeTo(large); }");
    let setup = setup.limits("write_ms_max = 1500").pool("standard", &[&origin]);
    let switch = setup.pool_at("large", "", &[("l1", large.address())]).start();
    let mut other = switch.client();
    assert_eq!(other.get("/other").status(), 200);
    let costs = Costs::since(&switch);
    let mut slow = clients(&switch, count);
    slow.iter_mut().for_each(|client| client.send("GET /large HTTP/1.1\r\nHost: shop.example\r\n\r\n"));
    until("every request at its server", || (large.connections() == count).then_some(()));
    let each = costs.resident_each(&mut other, count);
    figure(&fault, each, EACH, each_at_most(128 * 1024, count, threads));
    // The log tells it, which costs the switch nothing: a look at its metrics does.
    until("every slow reader cut", || (cut(&switch) == count).then_some(()));
    costs.cpu_of(&fault, count, 8000);
    assert_eq!(refused(&switch, "write_timeout"), count);
    let whole = slow.iter_mut().filter_map(|client| client.try_response().ok()).count();
    figure(&fault, whole as u64, Unit::Count("cut answers that look whole"), Bound::Exactly(0));
    assert_eq!(other.get("/other").status(), 200);
}

/// TLS clients that say nothing, or half a hello: closed when their time is over; others shake hands meanwhile.
fn half_open_handshakes(threads: usize) {
    let count = crowd(1000, 10_000, 1);
    let fault = format!("{count} half-open handshakes, {threads} threads");
    let (authority, origin) = (Authority::new("test CA"), Origin::new("origin"));
    let setup = for_crowds(threads).tls(&authority.server(&["shop.example"]), "");
    let setup = setup.limits(&format!("handshake_ms_max = {}", scale(1500, 5000)));
    let switch = setup.pool("standard", &[&origin]).start();
    let trust = TlsClient::new(&authority).forgetful();
    let other = || switch.tls_client(&trust, "shop.example").expect("a handshake");
    assert_eq!(other().get("/other").status(), 200);
    let costs = Costs::since(&switch);
    let mut half_open: Vec<TcpStream> =
        (0..count).map(|number| half_open(&switch, number % 2 == 0)).collect();
    for _ in 0..4 {
        assert_eq!(other().get("/other").status(), 200);
    }
    let each = costs.resident_each(&mut other(), count);
    figure(&fault, each, EACH, each_at_most(16 * 1024, count, threads));
    // Some get an alert before the end, none a byte of HTTP.
    for socket in &mut half_open {
        let mut came = Vec::new();
        drop(socket.read_to_end(&mut came));
        assert!(came.len() < 100, "{}", String::from_utf8_lossy(&came));
    }
    costs.cpu_of(&fault, count, scale(300, 200));
    assert_eq!(other().get("/other").status(), 200);
    let closed = until("every handshake given up", || {
        let given_up = refused(&switch, "handshake_timeout");
        (given_up >= count).then_some(given_up)
    });
    figure(&fault, closed as u64, Unit::Count("given up in time"), Bound::Exactly(count as u64));
}

/// A TLS connection that is not to be: silent, or with the first part of a hello.
fn half_open(switch: &Switch, is_silent: bool) -> TcpStream {
    let mut socket = TcpStream::connect(switch.address("shop")).expect("it listens");
    socket.set_read_timeout(Some(PATIENCE * 2)).expect("an open socket");
    if !is_silent {
        // A record that announces 512 bytes of a hello, and some of them.
        let hello = [&[0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3][..], &[7; 100]].concat();
        socket.write_all(&hello).expect("it reads");
    }
    socket
}

/// Every one of them is answered with this status, and its connection closes.
fn all_get(fault: &str, clients: &mut [Client], status: u16) {
    let mut right = 0;
    for client in clients.iter_mut() {
        let (answer, closes) = (client.response(), client.closes());
        let is_right = answer.status() == status && closes;
        right += u64::from(is_right);
        if !is_right {
            tell(&format!("{fault}: closes: {closes}, {answer:?}"));
        }
    }
    figure(fault, right, Unit::Count("refused with 408 and closed"), Bound::Exactly(clients.len() as u64));
}

/// How many the log says were cut for taking nothing.
fn cut(switch: &Switch) -> usize {
    switch.output().all().iter().filter(|line| line.contains("the client took nothing of the answer")).count()
}

fn refused(switch: &Switch, reason: &str) -> usize {
    let labels = [("listener", "shop"), ("reason", reason)];
    let count = switch.metric("pointsman_refusals_total", &labels);
    // A count of a few thousand.
    format!("{count}").parse().expect("a whole number")
}

/// The setup of crowds does not hide what is under test: without it there would be room for fewer.
#[test]
fn more_than_the_descriptors_are_enough_for_is_said_at_start() {
    let origin = Origin::new("origin");
    let switch = Setup::new(1).top("connections_max = 10000000").pool("standard", &[&origin]).start();
    switch.wait_for_line("warning: `connections_max = 10000000` needs more descriptors");
}

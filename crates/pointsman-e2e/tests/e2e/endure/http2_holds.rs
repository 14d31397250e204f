//! HTTP/2 clients that hold what they have: answers without a window, streams that wait, heads and bodies that stop.

use std::io::Write;

use pointsman_e2e::h2_wire::{PREFACE, flag, kind, request, setting};
use pointsman_e2e::{
    Authority, Bound, Client, Frame, H2Client, Origin, Outcome, RawOrigin, Setup, Switch, TlsClient, Unit,
    figure, read_head, scale, until,
};

use super::{
    Costs, clients, crowd, each_at_most, for_crowds, is_served, modest, returns_to_rest, unhurried, whole,
};

pointsman_e2e::for_threads!(
    answers_without_a_window,
    large_answers_without_a_window,
    nothing_is_read,
    waiting_streams,
    slow_heads,
    slow_bodies,
    large_tables,
    handshakes_that_stop,
    connections_of_an_address
);

const KIB: u64 = 1024;
const EACH: Unit = Unit::Bytes("resident memory each");
/// Streams that a connection may have by default.
const STREAMS: u32 = 100;

/// As many requests as a connection may have at a time.
fn ask_all(client: &mut H2Client, path: &str) {
    let all: Vec<u8> = (0..STREAMS)
        .flat_map(|number| Frame::headers(2 * number + 1, flag::END_STREAM, &request("GET", path)).bytes())
        .collect();
    client.try_send(&all).expect("the switch reads");
}

/// A client that gives no leave to send content.
fn without_window(client: Client) -> H2Client {
    let mut client = H2Client::silent(client);
    let settings = Frame::settings(&[(setting::ENABLE_PUSH, 0), (setting::INITIAL_WINDOW_SIZE, 0)]);
    client.try_send(&[PREFACE, &settings.bytes()].concat()).expect("the switch reads");
    client
}

fn refused(switch: &Switch, reason: &str) -> f64 {
    switch.metric("pointsman_refusals_total", &[("listener", "shop"), ("reason", reason)])
}

fn booked(switch: &Switch) -> u64 {
    let figure = switch.metric("pointsman_buffer_booked_bytes", &[]);
    format!("{figure}").parse().expect("a whole number")
}

/// A server that answers each connection with so much.
fn serving(bytes: usize) -> RawOrigin {
    RawOrigin::serving(move |mut socket, _| {
        let answer =
            [format!("HTTP/1.1 200 OK\r\nContent-Length: {bytes}\r\n\r\n").into_bytes(), vec![b'a'; bytes]];
        while read_head(&mut socket).is_some() && socket.write_all(&answer.concat()).is_ok() {}
    })
}

/// A switch that soon gives up clients that take nothing of answers of so many bytes, and its servers.
fn before_large_answers(threads: usize, bytes: u64) -> ((Origin, RawOrigin), Switch) {
    let (origin, large) = (Origin::new("origin"), serving(bytes.try_into().expect("small")));
    let setup = Setup::new(threads).top("buffer_bytes_max = 268435456").limits("write_ms_max = 3000");
    let setup = setup.rules("if (path == \"/large\") { routeTo(large); }").pool("standard", &[&origin]);
    let switch = setup.pool_at("large", "", &[("l", large.address())]).start();
    ((origin, large), switch)
}

/// Answers that are whole, and that their clients give no leave to send: they are booked, and thrown away in time,
/// whatever else the clients say.
fn answers_without_a_window(threads: usize) {
    let (connections, bytes) = (scale(3_u32, 12), 60 * KIB);
    let fault =
        format!("{connections} HTTP/2 clients without a window, {STREAMS} answers each, {threads} threads");
    let (_servers, switch) = before_large_answers(threads, bytes);
    let mut other = switch.client();
    assert!(is_served(&mut other));
    let rest = returns_to_rest(&switch, threads);
    let booked_before = booked(&switch);
    let mut clients: Vec<_> = (0..connections).map(|_| without_window(switch.client())).collect();
    clients.iter_mut().for_each(|client| ask_all(client, "/large"));
    // Every answer has begun.
    for client in &mut clients {
        let mut begun = 0;
        while begun < STREAMS {
            let frame = client.frame().expect("frames").expect("open");
            begun += u32::from(frame.kind == kind::HEADERS);
            client.take(frame).expect("HTTP/2");
        }
    }
    assert!(is_served(&mut other));
    let held = u64::from(connections * STREAMS) * bytes;
    let booked_now = booked(&switch) - booked_before;
    figure(&fault, booked_now, Unit::Bytes("booked while they are held"), Bound::AtLeast(held));
    let mut pings = 0_u64;
    let cut = until("every answer given up", || {
        assert!(is_served(&mut other));
        // It is no sign that an answer is wanted.
        clients.iter_mut().for_each(|client| drop(client.send(&Frame::ping(pings.to_be_bytes()))));
        pings += 1;
        let cut = refused(&switch, "write_timeout");
        (cut >= f64::from(connections * STREAMS)).then_some(cut)
    });
    let wanted = connections * STREAMS;
    assert_eq!(format!("{cut}"), wanted.to_string());
    figure(&fault, wanted.into(), Unit::Count("answers given up in time"), Bound::Exactly(wanted.into()));
    for client in &mut clients {
        for number in 0..STREAMS {
            let outcome = client.outcome(2 * number + 1).expect("HTTP/2");
            assert!(matches!(outcome, Outcome::Reset(_)), "{fault}: {outcome:?}");
        }
    }
    drop(clients);
    rest(&fault);
}

/// Clients whose streams have all the windows they want, and who read nothing: their answers are whole and held, which
/// is booked until they are thrown away.
fn nothing_is_read(threads: usize) {
    let (count, bytes) = (scale(3_u32, 12), 60 * KIB);
    let fault =
        format!("{count} HTTP/2 clients that read nothing, {STREAMS} answers each, {threads} threads");
    let (_servers, switch) = before_large_answers(threads, bytes);
    let mut other = switch.client();
    assert!(is_served(&mut other));
    let rest = returns_to_rest(&switch, threads);
    let before = (booked(&switch), switch.allocated_bytes());
    let address = switch.address("shop");
    let mut clients: Vec<_> =
        (0..count).map(|_| H2Client::begin(Client::cramped(address, 16 * 1024))).collect();
    clients.iter_mut().for_each(|client| ask_all(client, "/large"));
    let is_asked = || switch.metric("pointsman_requests_total", &[]) > f64::from(count * STREAMS);
    until("every answer taken from its server", || {
        let in_flight = switch.metric("pointsman_server_in_flight_requests", &[]);
        (in_flight == 0.0 && is_asked()).then_some(())
    });
    assert!(is_served(&mut other));
    let (resident, booked) = (switch.allocated_bytes(), booked(&switch));
    let booked = booked.saturating_sub(before.0);
    // What the first of all needs, and the steps of the allocator.
    let bound = Bound::AtMost(booked + threads as u64 * 4 * 1024 * KIB);
    let resident = resident.saturating_sub(before.1);
    figure(&fault, resident, Unit::Bytes("resident, of what is booked for it"), bound);
    rest(&fault);
    assert!(refused(&switch, "write_timeout") > 0.0, "{fault}");
    assert!(is_served(&mut other));
}

/// Clients that ask for much and give no room for it: what waits for them is bounded, and they are let go in time.
fn large_answers_without_a_window(threads: usize) {
    // An origin has three descriptors of each.
    let count = crowd(1000, 5000, 3) / STREAMS as usize;
    let body = "x".repeat(1 << 20);
    let origin = Origin::answering("origin", move |exchange| exchange.answer("200 OK", &body));
    let limits = format!("write_ms_max = {}", scale(2000, 10_000));
    let switch = Setup::new(threads).limits(&limits).pool("standard", &[&origin]).start();
    let mut other = switch.client();
    let before = switch.allocated_bytes();
    let mut clients: Vec<_> = (0..count)
        .map(|_| {
            let mut client = without_window(switch.client());
            ask_all(&mut client, "/large");
            client
        })
        .collect();
    let wanted = count * STREAMS as usize;
    until("every request at its server", || (origin.count() >= wanted).then_some(()));
    let mut most = 0;
    for _ in 0..20 {
        assert!(other.ask("HEAD", "/large", "").status() == 200);
        most = most.max(switch.allocated_bytes());
    }
    let fault = format!("{count} clients with {STREAMS} closed windows each, {threads} threads");
    let each = most.saturating_sub(before) / wanted as u64;
    figure(&fault, each, Unit::Bytes("resident memory each stream"), Bound::AtMost(96 * 1024));
    // Its time may be as long as one look's patience.
    let is_let_go = |client: &mut H2Client| {
        let outcome = client.outcome(1).or_else(|_| client.outcome(1));
        !matches!(outcome, Ok(Outcome::Answer(_)) | Err(_))
    };
    let let_go = clients.iter_mut().filter_map(|client| is_let_go(client).then_some(()));
    figure(&fault, let_go.count() as u64, Unit::Count("clients let go"), Bound::Exactly(count as u64));
}

/// Streams that wait for their server: what they cost, and that they are all over when their clients leave.
fn waiting_streams(threads: usize) {
    let count = crowd(1000, 6000, 2) / STREAMS as usize * STREAMS as usize;
    let fault = format!("{count} HTTP/2 streams that wait, {threads} threads");
    let (origin, held) = (Origin::new("origin"), RawOrigin::silent());
    // Booked are some 130 KiB for each.
    let setup = Setup::new(threads).top("connections_max = 100000\nbuffer_bytes_max = 2147483648");
    let setup = setup.rules("if (path == \"/held\") { routeTo(held); }").pool("standard", &[&origin]);
    let switch = setup.pool_at("held", "connect_ms_max = 60000", &[("h", held.address())]).start();
    let mut other = switch.client();
    assert!(is_served(&mut other));
    let costs = Costs::since(&switch);
    let mut clients: Vec<_> =
        (0..count / STREAMS as usize).map(|_| H2Client::begin(switch.client())).collect();
    clients.iter_mut().for_each(|client| ask_all(client, "/held"));
    until("every request at its server", || (held.connections() >= count).then_some(()));
    let each = costs.resident_each(&mut other, count);
    figure(&fault, each, EACH, each_at_most(24 * KIB, count, threads));
    costs.cpu_of(&fault, count, 250);
    until("these are on their way, and nothing else", || {
        (switch.metric("pointsman_server_in_flight_requests", &[]) == whole(count)).then_some(())
    });
    drop(clients);
    until("all of them over", || {
        let names = ["pointsman_server_in_flight_requests", "pointsman_connections_open"];
        (names.map(|name| switch.metric(name, &[])) == [0.0, 1.0]).then_some(())
    });
    assert!(is_served(&mut other));
}

/// What HTTP/2 begins with, and heads of requests, that come a byte at a time or not at all: closed in time.
fn slow_heads(threads: usize) {
    let each = scale(20, 500);
    let fault = format!("{} slow HTTP/2 heads, {threads} threads", 5 * each);
    let origin = Origin::answering("origin", unhurried);
    let limits = "head_ms_max = 2000\nidle_ms_max = 2000";
    let switch = for_crowds(threads).limits(limits).pool("standard", &[&origin]).start();
    let rest = returns_to_rest(&switch, threads);
    let mut other = switch.client();
    assert!(is_served(&mut other));
    let costs = Costs::since(&switch);
    let settings = Frame::settings(&[]).bytes();
    let long = Frame::new(kind::HEADERS, flag::END_HEADERS, 1, [0; 16_000]).bytes();
    let open = Frame::new(kind::HEADERS, 0, 1, []).bytes();
    // What comes at once, and what then comes byte by byte.
    let ways: [(&[&[u8]], &[u8]); 5] = [
        (&[&PREFACE[..20]], b""),
        (&[PREFACE], b""),
        (&[PREFACE, &settings], &long),
        (&[PREFACE, &settings, &open], b""),
        (&[PREFACE, &settings, &long[..8000]], &long[8000..]),
    ];
    let mut slow = Vec::new();
    for (at_once, then) in ways {
        for _ in 0..each {
            let mut client = H2Client::silent(switch.client());
            client.try_send(&at_once.concat()).expect("the switch reads");
            slow.push((client, then));
        }
    }
    let count = slow.len();
    let resident = costs.resident_each(&mut other, count);
    figure(&fault, resident, EACH, each_at_most(96 * KIB, count, threads));
    let mut sent = 0;
    until("all of them closed", || {
        assert!(is_served(&mut other));
        for (client, then) in &mut slow {
            drop(client.try_send(then.get(sent..=sent).unwrap_or_default()));
        }
        sent += 1;
        (switch.metric("pointsman_connections_open", &[]) <= 1.0).then_some(())
    });
    costs.cpu_of(&fault, count, scale(25_000, 1600));
    figure(&fault, count as u64, Unit::Count("closed in time"), Bound::Exactly(count as u64));
    assert!(origin.requests().iter().all(|request| ["/", "/other"].contains(&request.target())));
    drop(other);
    rest(&fault);
}

/// Bodies that stop behind a byte: 408 for their stream, and the connection goes on.
fn slow_bodies(threads: usize) {
    let connections = scale(3, 30);
    let count = connections * STREAMS as usize;
    let fault = format!("{count} slow HTTP/2 bodies, {threads} threads");
    let (origin, held) = (Origin::new("origin"), RawOrigin::silent());
    let setup = Setup::new(threads).top("buffer_bytes_max = 2147483648").limits("body_ms_max = 3000");
    let setup = setup.rules("if (path == \"/held\") { routeTo(held); }").pool("standard", &[&origin]);
    let switch = setup.pool_at("held", "connect_ms_max = 60000", &[("h", held.address())]).start();
    let mut other = switch.client();
    assert!(is_served(&mut other));
    let costs = Costs::since(&switch);
    let mut clients: Vec<_> = (0..connections).map(|_| H2Client::begin(switch.client())).collect();
    for client in &mut clients {
        for number in 0..STREAMS {
            let stream = 2 * number + 1;
            let parts = [Frame::headers(stream, 0, &request("POST", "/held")), Frame::data(stream, 0, *b"a")];
            client.try_send(&parts.map(|frame| frame.bytes()).concat()).expect("the switch reads");
        }
    }
    let each = costs.resident_each(&mut other, count);
    figure(&fault, each, EACH, each_at_most(48 * KIB, count, threads));
    let mut refused = 0;
    for client in &mut clients {
        for number in 0..STREAMS {
            let outcome = client.outcome(2 * number + 1).expect("in time");
            refused += u64::from(matches!(outcome, Outcome::Answer(answer) if answer.status() == 408));
        }
        let next = client.get(2 * STREAMS + 1, "http", "/next").expect("in time");
        assert!(matches!(next, Outcome::Answer(answer) if answer.status() == 200));
    }
    costs.cpu_of(&fault, count, scale(600, 300));
    figure(&fault, refused, Unit::Count("answered with 408"), Bound::Exactly(count as u64));
    assert!(is_served(&mut other));
}

/// A client may say that it keeps a huge table of fields: the switch keeps none for it.
fn large_tables(threads: usize) {
    let (connections, answers) = (scale(10, 40), scale(100_u32, 400));
    let fault = format!("{connections} HTTP/2 clients with a huge table, {threads} threads");
    let origin = Origin::answering("origin", |exchange| {
        let field = format!("{}{}", exchange.target(), "a".repeat(3000));
        exchange.answer(&format!("200 OK\r\nX-Own: {field}"), "ok")
    });
    let switch = modest(threads).pool("standard", &[&origin]).start();
    let mut other = switch.client();
    assert!(is_served(&mut other));
    let costs = Costs::since(&switch);
    let mut clients: Vec<_> = (0..connections)
        .map(|_| {
            let mut client = H2Client::silent(switch.client());
            let table = Frame::settings(&[(setting::HEADER_TABLE_SIZE, u32::MAX)]).bytes();
            client.try_send(&[PREFACE, &table].concat()).expect("the switch reads");
            client
        })
        .collect();
    for client in &mut clients {
        for number in 0..answers {
            let answer = client.get(2 * number + 1, "http", &format!("/{number}")).expect("an answer");
            assert!(matches!(answer, Outcome::Answer(answer) if answer.status() == 200));
        }
    }
    let each = costs.resident_each(&mut other, connections);
    costs.cpu_of(&fault, connections * answers as usize, scale(2500, 400));
    figure(&fault, each, EACH, each_at_most(64 * KIB, connections, threads));
}

/// Clients that offer HTTP/2 in a whole hello, and then say nothing: closed in time, while others are served.
fn handshakes_that_stop(threads: usize) {
    let count = crowd(300, 5000, 1);
    let fault = format!("{count} handshakes for HTTP/2 that stop behind the hello, {threads} threads");
    let (authority, origin) = (Authority::new("test CA"), Origin::answering("origin", unhurried));
    let setup = for_crowds(threads).tls(&authority.server(&["shop.example"]), "");
    let setup = setup.limits(&format!("handshake_ms_max = {}", scale(3000, 10_000)));
    let switch = setup.pool("standard", &[&origin]).start();
    let trust = TlsClient::new(&authority).alpn(&["h2"]);
    let mut other = H2Client::begin(switch.tls_client(&trust, "shop.example").expect("a handshake"));
    assert_eq!(other.fetch(1, "/other").status(), 200);
    let costs = Costs::since(&switch);
    let hello = trust.hello("shop.example");
    let mut stopped: Vec<_> = (0..count)
        .map(|_| {
            let mut client = switch.client();
            client.send(&hello);
            client
        })
        .collect();
    let (mut others, mut most) = (0, 0);
    let closed = until("every handshake given up", || {
        others += 1;
        most = most.max(switch.allocated_bytes());
        let mut next = H2Client::begin(switch.tls_client(&trust, "shop.example").expect("a handshake"));
        assert_eq!(next.fetch(1, "/other").status(), 200);
        let given_up = refused(&switch, "handshake_timeout");
        (given_up >= whole(count)).then_some(given_up)
    });
    costs.cpu_of(&fault, count + others, scale(4000, 800));
    let each = most.saturating_sub(costs.allocated_bytes) / count as u64;
    figure(&fault, each, EACH, each_at_most(24 * KIB, count, threads));
    assert_eq!(format!("{closed}"), format!("{count}"));
    figure(&fault, count as u64, Unit::Count("given up in time"), Bound::Exactly(count as u64));
    // A TLS record is what the last of them is told, no HTTP/2.
    assert!(stopped.iter_mut().all(|client| !client.everything().contains("HTTP/")));
    assert_eq!(other.fetch(3, "/other").status(), 200);
}

/// One address has so many connections, and hears of it before it has said a word.
fn connections_of_an_address(threads: usize) {
    let fault = format!("3 HTTP/2 connections of an address, {threads} threads");
    let origin = Origin::new("origin");
    let setup = Setup::new(threads).limits("connections_per_address_max = 3");
    let switch = setup.pool("standard", &[&origin]).start();
    let mut inside: Vec<_> = (0..3).map(|_| H2Client::begin(switch.client())).collect();
    for client in &mut inside {
        assert!(matches!(client.get(1, "http", "/").expect("in time"), Outcome::Answer(_)));
    }
    let costs = Costs::since(&switch);
    let mut more = clients(&switch, crowd(100, 2000, 1));
    for client in &mut inside {
        assert!(matches!(client.get(3, "http", "/").expect("in time"), Outcome::Answer(_)));
    }
    costs.memory(&fault, 2048 * KIB + more.len() as u64 * 8 * KIB);
    let told = more.iter_mut().filter_map(|client| {
        let answer = client.try_response();
        (answer.is_ok_and(|answer| answer.status() == 429) && client.closes()).then_some(())
    });
    let (told, wanted) = (told.count() as u64, Bound::Exactly(more.len() as u64));
    figure(&fault, told, Unit::Count("refused with 429 and closed"), wanted);
    costs.cpu_of(&fault, more.len(), scale(500, 200));
    for client in &mut inside {
        assert!(matches!(client.get(5, "http", "/").expect("in time"), Outcome::Answer(_)));
    }
}

//! The memory of clients is used up: whoever comes then is told so, what runs goes on, and all is as before
//! afterwards.

use std::io::Write;
use std::sync::Mutex;
use std::sync::mpsc::{Sender, channel};

use pointsman_e2e::{
    Authority, Bound, Client, Origin, Pattern, RawOrigin, Response, Setup, Switch, TlsClient, Unit, figure,
    read_head, scale, until,
};

use super::{crowd, each_at_most, for_crowds};

pointsman_e2e::for_threads!(
    slow_heads_use_it_up,
    slow_heads_use_it_up_over_tls,
    less_than_the_crowd_asks_for,
    less_than_the_crowd_asks_for_over_tls,
    booked_is_what_is_resident,
    a_reload_changes_it
);

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;
/// Enough for some 180 heads of 15 kB, over TLS for some 70.
const SMALL: u64 = 4 * MIB;
/// Far more than that: whoever has not been refused by then never will be.
const CROWD_MAX: usize = 4000;
/// A body that goes through many buffers.
const BODY_BYTES: u64 = 3 * MIB;

/// As large as a head may be, so that it costs what it can.
fn slow_head() -> String {
    format!("GET /slow HTTP/1.1\r\nHost: shop.example\r\nX-Slow: {}", "a".repeat(15_000))
}

fn refused(switch: &Switch) -> f64 {
    switch.metric("pointsman_refusals_total", &[("reason", "memory")])
}

fn booked(switch: &Switch) -> u64 {
    whole(switch.metric("pointsman_buffer_booked_bytes", &[]))
}

fn budget(switch: &Switch) -> u64 {
    whole(switch.metric("pointsman_buffer_bytes_max", &[]))
}

fn whole(figure: f64) -> u64 {
    format!("{figure}").parse().expect("a whole number")
}

/// A server that answers with a long body when it is told to.
fn told_when() -> (RawOrigin, Sender<()>) {
    let (go, may_go) = channel::<()>();
    let may_go = Mutex::new(may_go);
    let origin = RawOrigin::serving(move |mut socket, _| {
        let Some(_) = read_head(&mut socket) else { return };
        may_go.lock().expect("one connection").recv().expect("the test goes on");
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {BODY_BYTES}\r\n\r\n");
        socket.write_all(head.as_bytes()).expect("the switch reads");
        let mut pattern = Pattern::default();
        while pattern.position() < BODY_BYTES {
            let left = BODY_BYTES - pattern.position();
            socket.write_all(pattern.next(left)).expect("the switch reads");
        }
    });
    (origin, go)
}

/// A client that need not be let in.
type Connect<'a> = &'a dyn Fn(&Switch) -> std::io::Result<Client>;

fn slow_heads_use_it_up(threads: usize) {
    let setup = Setup::new(threads).top("splice_pipes_max = 0");
    used_up(&format!("4 MiB for slow heads, {threads} threads"), setup, &|switch| Ok(switch.client()));
}

fn slow_heads_use_it_up_over_tls(threads: usize) {
    let authority = Authority::new("test CA");
    let trust = TlsClient::new(&authority);
    let setup = Setup::new(threads).tls(&authority.server(&["shop.example"]), "");
    let connect: Connect<'_> = &|switch| switch.tls_client(&trust, "shop.example");
    used_up(&format!("4 MiB for slow heads over TLS, {threads} threads"), setup, connect);
}

/// A crowd uses it up while an exchange runs and a client waits with its next request.
fn used_up(fault: &str, setup: Setup, connect: Connect<'_>) {
    let (origin, (held, go)) = (Origin::new("origin"), told_when());
    let setup = setup.top(&format!("connections_max = 100000\nbuffer_bytes_max = {SMALL}"));
    let setup = setup
        .limits("head_ms_max = 60000\nhandshake_ms_max = 60000")
        .rules("if (path == \"/held\") { routeTo(held); }");
    let setup = setup.pool("standard", &[&origin]).pool_at("held", "", &[("h1", held.address())]);
    let switch = setup.start();
    let mut open = connect(&switch).expect("let in");
    assert_eq!(open.get("/").status(), 200);
    let mut running = connect(&switch).expect("let in");
    running.send("GET /held HTTP/1.1\r\nHost: shop.example\r\n\r\n");
    until("the request at its server", || (held.connections() == 1).then_some(()));
    let before = booked(&switch);

    let mut crowd = Vec::new();
    let answer = until_refused(&switch, connect, &mut crowd, || Some(open.get("/open")));
    assert_eq!(
        (answer.text().as_str(), answer.head.field("connection")),
        ("no memory left\n", Some("close"))
    );
    assert!(open.closes());
    switch.log_entry("the refusal", |entry| entry["error"] == "no memory left" && entry["status"] == 503);
    let booked_bytes = booked(&switch);
    figure(fault, booked_bytes, Unit::Bytes("booked"), Bound::AtMost(SMALL));
    figure(
        fault,
        booked_bytes,
        Unit::Bytes("booked while clients are refused"),
        Bound::AtLeast(SMALL * 9 / 10),
    );
    let others = refused_of_others(&switch, connect, &mut crowd);
    figure(fault, others, Unit::Count("others refused, not served late"), Bound::Exactly(20));

    go.send(()).expect("the server waits");
    let answer = running.response();
    assert_eq!(answer.status(), 200, "{}", answer.text());
    let mut pattern = Pattern::default();
    pattern.expect(&answer.body.bytes);
    figure(fault, pattern.position(), Unit::Bytes("of an answer meanwhile"), Bound::Exactly(BODY_BYTES));
    switch.wait_for_line("out of memory for clients: `buffer_bytes_max`");

    drop((crowd, running));
    recovers(&switch, connect);
    let step = SMALL / 32;
    let after = until("what was booked is given back", || {
        Some(booked(&switch)).filter(|after| *after <= before + step)
    });
    figure(fault, after, Unit::Bytes("booked afterwards"), Bound::AtMost(before + step));
}

/// Sends slow heads until a request is refused that somebody else makes.
fn until_refused(
    switch: &Switch,
    connect: Connect<'_>,
    crowd: &mut Vec<Client>,
    mut ask: impl FnMut() -> Option<Response>,
) -> Response {
    while crowd.len() < CROWD_MAX {
        let before = refused(switch);
        while refused(switch) < before + 3.0 {
            assert!(crowd.len() < CROWD_MAX, "{CROWD_MAX} slow heads, and nobody is refused");
            add_slow_head(switch, connect, crowd);
        }
        if let Some(answer) = ask().filter(|answer| answer.status() != 200) {
            assert_eq!(answer.status(), 503);
            return answer;
        }
    }
    panic!("{CROWD_MAX} slow heads, and others are served");
}

/// Twenty more who come anew: in plain HTTP each can read why it is not served.
fn refused_of_others(switch: &Switch, connect: Connect<'_>, crowd: &mut Vec<Client>) -> u64 {
    let mut others = 0;
    while others < 20 && crowd.len() < CROWD_MAX {
        let Ok(mut client) = connect(switch) else {
            others += 1;
            continue;
        };
        drop(client.try_send("GET /other HTTP/1.1\r\nHost: shop.example\r\n\r\n"));
        match client.response().status() {
            503 => others += 1,
            // Somebody of the crowd has left, whom the next one replaces.
            200 => add_slow_head(switch, connect, crowd),
            other => panic!("{other}"),
        }
    }
    others
}

fn add_slow_head(switch: &Switch, connect: Connect<'_>, crowd: &mut Vec<Client>) {
    let Ok(mut client) = connect(switch) else {
        // There is too little for a handshake. What is left is used up by those who say nothing.
        crowd.push(switch.client());
        return;
    };
    // One that is turned away may be so before it has said all.
    drop(client.try_send(slow_head()));
    crowd.push(client);
}

fn recovers(switch: &Switch, connect: Connect<'_>) {
    until("a switch that serves again", || {
        let mut client = connect(switch).ok()?;
        drop(client.try_send("GET /after HTTP/1.1\r\nHost: shop.example\r\n\r\n"));
        client.try_response().ok().filter(|answer| answer.status() == 200)
    });
}

/// Nothing is configured, and the system gives the process less than a crowd of slow heads asks for.
fn less_than_the_crowd_asks_for(threads: usize) {
    let fault = format!("slow heads and little address space, {threads} threads");
    let sizes = (crowd(1000, 10_000, 1), scale(5, 2) * KIB);
    outlives(&fault, Setup::new(threads), threads, sizes, &|switch| Ok(switch.client()));
}

fn less_than_the_crowd_asks_for_over_tls(threads: usize) {
    let fault = format!("slow heads over TLS and little address space, {threads} threads");
    let authority = Authority::new("test CA");
    let trust = TlsClient::new(&authority);
    let setup = Setup::new(threads).tls(&authority.server(&["shop.example"]), "");
    let connect: Connect<'_> = &|switch| switch.tls_client(&trust, "shop.example");
    outlives(&fault, setup, threads, (crowd(700, 4000, 1), scale(7, 5) * KIB), connect);
}

/// So many clients, and so many bytes for each where they ask for several times as much. In full, on one thread,
/// they ask for more than the whole process may have: it would not outlive them if they got it.
fn outlives(fault: &str, setup: Setup, threads: usize, (count, each): (usize, u64), connect: Connect<'_>) {
    let origin = Origin::new("origin");
    // What the reference says: half of what is left after 96 MiB and 100 for each thread.
    let kib = (96 + 100 * threads as u64) * KIB + 2 * count as u64 * each / KIB;
    let setup = setup.after(&format!("ulimit -v {kib}")).top("connections_max = 100000");
    let setup = setup.limits("head_ms_max = 60000").pool("standard", &[&origin]);
    let switch = setup.start();
    let bytes_max = budget(&switch);
    figure(fault, bytes_max, Unit::Bytes("for clients by default"), Bound::Exactly(count as u64 * each));
    let mut slow = Vec::new();
    for _ in 0..count {
        add_slow_head(&switch, connect, &mut slow);
    }
    let refused_min = count as u64 / 2;
    let refused = until("most of them refused", || {
        Some(whole(refused(&switch))).filter(|refused| *refused >= refused_min)
    });
    figure(fault, refused, Unit::Count("refused"), Bound::AtLeast(refused_min));
    figure(fault, booked(&switch), Unit::Bytes("booked"), Bound::AtMost(bytes_max));
    drop(slow);
    recovers(&switch, connect);
    let mut client = connect(&switch).expect("let in");
    let served = (0..100).filter(|_| client.get("/after").status() == 200).count();
    figure(fault, served as u64, Unit::Count("served afterwards"), Bound::Exactly(100));
}

/// What clients cost is no more than what is booked for them, however they hold it.
fn booked_is_what_is_resident(threads: usize) {
    let count = crowd(400, 4000, 1);
    let fault = |what: &str| format!("{count} clients {what}, {threads} threads");
    let authority = Authority::new("test CA");
    let trust = TlsClient::new(&authority).forgetful();
    let (plain, tls) = (for_crowds(threads), for_crowds(threads));
    let tls = tls.tls(&authority.server(&["shop.example"]), "");
    let connect: Connect<'_> = &|switch| switch.tls_client(&trust, "shop.example");
    let bare: Connect<'_> = &|switch| Ok(switch.client());
    let asks = |client: &mut Client| assert_eq!(client.get("/").status(), 200);
    let begins = |client: &mut Client| client.send(slow_head());
    let stops_in_record = |client: &mut Client| client.send_but_last_byte(&[b'a'; 16 * 1024]);
    let stops_in_hello = |client: &mut Client| client.send(endless_hello());
    let check = |what, setup, connect: Connect<'_>, kib, hold: &dyn Fn(&mut Client)| {
        resident(&fault(what), setup, threads, count, connect, kib * KIB, hold);
    };
    check("at rest", &plain, bare, 6, &asks);
    check("with slow heads", &plain, bare, 6 + 16, &begins);
    check("at rest over TLS", &tls, connect, 6 + 34, &asks);
    check("with slow heads over TLS", &tls, connect, 6 + 34 + 16, &begins);
    check("with records that have come in part", &tls, connect, 6 + 34, &stops_in_record);
    check("with hellos that do not end", &tls, bare, 6 + 34 + 96, &stops_in_hello);
}

/// The first 60,000 bytes of a hello, in four records.
fn endless_hello() -> Vec<u8> {
    let mut message = vec![1, 0, 0xff, 0xf0, 3, 3];
    message.resize(60_000, 7);
    let record = |part: &[u8]| {
        let length = u16::try_from(part.len()).expect("a record's size").to_be_bytes();
        [&[0x16, 3, 1], &length[..], part].concat()
    };
    message.chunks(15_000).flat_map(record).collect()
}

fn resident(
    fault: &str,
    setup: &Setup,
    threads: usize,
    count: usize,
    connect: Connect<'_>,
    booked_each: u64,
    hold: impl Fn(&mut Client),
) {
    let origin = Origin::new("origin");
    let switch = setup.clone().limits("head_ms_max = 60000").pool("standard", &[&origin]).start();
    let (resident_before, booked_before) = (switch.allocated_bytes(), booked(&switch));
    let mut all: Vec<_> = (0..count).map(|_| connect(&switch).expect("let in")).collect();
    all.iter_mut().for_each(hold);
    let all_heard = booked_before + booked_each * count as u64;
    until("all of them booked", || (booked(&switch) >= all_heard).then_some(()));
    let most = (0..50).map(|_| (booked(&switch), switch.allocated_bytes()).1).max().unwrap_or_default();
    let resident_each = most.saturating_sub(resident_before) / count as u64;
    let bound = each_at_most(booked_each, count, threads);
    figure(fault, resident_each, Unit::Bytes("resident each, of what is booked"), bound);
}

/// What is booked stays so under a smaller budget, and nothing is booked beyond it; a larger one holds at once.
fn a_reload_changes_it(threads: usize) {
    let origin = Origin::new("origin");
    let setup = for_crowds(threads).limits("head_ms_max = 60000").pool("standard", &[&origin]);
    let switch = setup.start();
    let large = budget(&switch);
    let mut slow: Vec<Client> = (0..100).map(|_| switch.client()).collect();
    slow.iter_mut().for_each(|client| client.send(slow_head()));
    until("all of them booked", || (booked(&switch) >= 100 * 22 * KIB).then_some(()));
    switch.reload(&setup.clone().top("buffer_bytes_max = 1048576"), 2);
    assert_eq!(budget(&switch), MIB);
    let answer = until("a refusal", || {
        let mut client = switch.client();
        drop(client.try_send("GET /more HTTP/1.1\r\nHost: shop.example\r\n\r\n"));
        client.try_response().ok().filter(|answer| answer.status() != 200)
    });
    assert_eq!((answer.status(), answer.text().as_str()), (503, "no memory left\n"));
    switch.reload(&setup, 3);
    assert_eq!(budget(&switch), large);
    assert_eq!(switch.get("/more").status(), 200);
    for client in &mut slow {
        client.send("\r\n\r\n");
        assert_eq!(client.response().status(), 200, "it was never sent away");
    }
}

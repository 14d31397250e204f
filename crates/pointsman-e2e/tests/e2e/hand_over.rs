//! A thread with most of the streams leaves new connections to others.

use pointsman_e2e::{Authority, Client, H2Client, Origin, Setup, Switch, TlsClient, ok, until};

use crate::drain::held;
use crate::http2::begin;

pointsman_e2e::for_threads!(by_streams, over_tls, with_tables_of_their_own, in_a_drain);

/// More than a thread that has none beside it keeps for itself.
const STREAMS: u32 = 80;
/// Each comes to the busy one of four threads by chance: that none does happens once in 10^10 times.
const CONNECTIONS: usize = 80;

fn handed_over(switch: &Switch) -> f64 {
    switch.metric("pointsman_connections_handed_over_total", &[])
}

/// Gives one thread many streams that last, has others connect and ask, and lets the streams end.
fn check(threads: usize, setup: Setup, client: impl Fn(&Switch, &[&str]) -> Client) {
    let (waiting, go) = held();
    let origin = Origin::answering("origin", ok);
    let setup = setup.rules("if (path == \"/held\") { routeTo(waiting); }");
    let setup = setup.pool("standard", &[&origin]).pool("waiting", &[&waiting]);
    let mut switch = setup.start();
    let mut busy = H2Client::begin(client(&switch, &["h2"]));
    let client = |switch: &Switch| client(switch, &["http/1.1"]);
    let streams = (1..).step_by(2).take(STREAMS as usize);
    for stream in streams.clone() {
        busy.ask(stream, "GET", "/held", &[]);
    }
    waiting.wait_for_requests(STREAMS as usize);
    assert!(handed_over(&switch) < 0.5);
    let mut others: Vec<Client> = (0..CONNECTIONS).map(|_| client(&switch)).collect();
    for other in &mut others {
        assert_eq!(other.get("/").text(), "origin");
    }
    // Of one thread, and of two, none can have more than twice the mean.
    assert_eq!(handed_over(&switch) > 0.5, threads > 2, "{}", handed_over(&switch));
    for _ in 0..STREAMS {
        go.send(()).expect("the origin is there");
    }
    for stream in streams {
        assert_eq!(busy.answer(stream).status(), 200);
    }
    until("threads that keep what they take", || {
        let before = handed_over(&switch);
        (0..20).for_each(|_| assert_eq!(client(&switch).get("/").text(), "origin"));
        (handed_over(&switch) < before + 0.5).then_some(())
    });
    drop((others, busy));
    until("connections that are counted out", || {
        (switch.metric("pointsman_connections_open", &[]) < 0.5).then_some(())
    });
    switch.signal("TERM");
    assert_eq!(switch.wait_for_exit(), Some(0));
}

fn by_streams(threads: usize) {
    check(threads, Setup::new(threads), |switch, _| switch.client());
}

fn with_tables_of_their_own(threads: usize) {
    check(threads, Setup::new(threads).top("own_descriptor_tables = true"), |switch, _| switch.client());
}

fn over_tls(threads: usize) {
    let authority = Authority::new("test CA");
    let setup = Setup::new(threads).tls(&authority.server(&["shop.example"]), "");
    check(threads, setup, |switch, protocols| {
        let trust = TlsClient::new(&authority).alpn(protocols);
        switch.tls_client(&trust, "shop.example").expect("a handshake")
    });
}

/// What was handed over is served to its end, like all else.
fn in_a_drain(threads: usize) {
    let (origin, go) = held();
    let mut switch = Setup::new(threads).top("drain_ms_max = 600000").pool("standard", &[&origin]).start();
    let mut busy = begin(&switch);
    let streams = (1..).step_by(2).take(STREAMS as usize);
    for stream in streams.clone() {
        busy.ask(stream, "GET", "/", &[]);
    }
    origin.wait_for_requests(STREAMS as usize);
    let mut others: Vec<H2Client> = (0..CONNECTIONS).map(|_| begin(&switch)).collect();
    others.iter_mut().for_each(|other| other.ask(1, "GET", "/", &[]));
    origin.wait_for_requests(STREAMS as usize + CONNECTIONS);
    switch.signal("TERM");
    for _ in 0..STREAMS as usize + CONNECTIONS {
        go.send(()).expect("the origin is there");
    }
    streams.for_each(|stream| assert_eq!(busy.answer(stream).status(), 200));
    others.iter_mut().for_each(|other| assert_eq!(other.answer(1).status(), 200));
    assert_eq!(switch.wait_for_exit(), Some(0));
}

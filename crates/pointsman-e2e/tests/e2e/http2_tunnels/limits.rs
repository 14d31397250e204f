//! Limits and figures of tunnels over HTTP/2.

use pointsman_e2e::h2_wire::flag;
use pointsman_e2e::{Frame, H2Client, Origin, Outcome, RawOrigin, Setup, ok, until};

use super::{VERSION, expect, hears, open, say, setup};
use crate::http2::{begin, figure};
use crate::tunnels::{handed_over, next, tunnelled};
use crate::upgrades::echo;

pointsman_e2e::for_threads!(
    is_counted_and_logged,
    is_one_of_the_streams,
    outlives_its_connection_s_requests_max,
    memory_is_used_up,
    resets_of_open_tunnels_are_no_flood,
    resets_before_the_answer_are_one
);

const CANCEL: u32 = 8;

/// One tunnel is one request at its server, and one line, when it ends.
fn is_counted_and_logged(threads: usize) {
    let server = tunnelled(echo);
    let switch = setup(threads, &server).start();
    let mut client = begin(&switch);
    for stream in [1, 3, 5] {
        open(&mut client, stream);
    }
    let shop = [("listener", "shop")];
    let in_flight = [("pool", "standard"), ("server", "s")];
    figure(&switch, "pointsman_tunnels_open", &shop, 3.0);
    figure(&switch, "pointsman_server_in_flight_requests", &in_flight, 3.0);
    assert_eq!(switch.log_lines(), 0);
    say(&mut client, 3, &[b'x'; 5000]);
    hears(&mut client, 3, &[b'x'; 5000]);
    for stream in [1, 3, 5] {
        client.send(&Frame::data(stream, flag::END_STREAM, [])).expect("the switch reads");
        client.answer(stream);
    }
    figure(&switch, "pointsman_tunnels_open", &shop, 0.0);
    figure(&switch, "pointsman_server_in_flight_requests", &in_flight, 0.0);
    figure(&switch, "pointsman_tunnels_total", &shop, 3.0);
    figure(&switch, "pointsman_requests_total", &[("listener", "shop"), ("status", "1xx")], 3.0);
    let line = switch.log_entry("the one that spoke", |line| line["request_bytes"].as_u64() > Some(5000));
    let shown =
        ["version", "method", "path", "host", "server"].map(|key| line[key].as_str().unwrap_or_default());
    assert_eq!(shown, ["2", "GET", "/chat", "shop.example", "s"], "{line}");
    assert_eq!((&line["status"], line.get("error")), (&101.into(), None), "{line}");
    assert!(line["response_bytes"].as_u64() > Some(5000), "{line}");
    switch.expect_log_lines(3);
}

/// It takes one of `http2_streams_max` for as long as it is open.
fn is_one_of_the_streams(threads: usize) {
    let (server, handed) = handed_over();
    let switch = setup(threads, &server).limits("http2_streams_max = 2").start();
    let mut client = begin(&switch);
    client.turn();
    open(&mut client, 1);
    let socket = next(&handed);
    open(&mut client, 3);
    client.connect(5, "/chat", &[VERSION]);
    assert_eq!(client.reset(5), 7, "REFUSED_STREAM");
    client.send(&Frame::data(1, flag::END_STREAM, [])).expect("the switch reads");
    drop(socket);
    client.answer(1);
    open(&mut client, 7);
    assert_eq!((server.connections(), client.goaway()), (3, None));
}

/// A connection that is to take no more requests lets its tunnels go on.
fn outlives_its_connection_s_requests_max(threads: usize) {
    let (server, handed) = handed_over();
    let switch = setup(threads, &server).limits("requests_max = 1\nidle_ms_max = 200").start();
    let mut client = begin(&switch);
    open(&mut client, 1);
    let socket = next(&handed);
    client.wait("GOAWAY with the last stream", |client| client.goaway() == Some((1, 0)));
    for _ in 0..3 {
        say(&mut client, 1, b"still here");
        expect(&socket, b"still here");
    }
    drop(socket);
    client.send(&Frame::data(1, flag::END_STREAM, [])).expect("the switch reads");
    client.answer(1);
    assert_eq!(client.ending(), Some(0));
}

/// Where nothing is left of `buffer_bytes_max` a tunnel is refused; what others give back serves for the next one.
fn memory_is_used_up(threads: usize) {
    let server = tunnelled(echo);
    // As much as is kept back in each thread, and some tunnels.
    let switch = setup(threads, &server).top("buffer_bytes_max = 16777216").start();
    let mut client = begin(&switch);
    let mut tunnels = Vec::new();
    let refused = (1..200).step_by(2).find_map(|stream| {
        client.connect(stream, "/chat", &[VERSION]);
        client.wait("an answer", |client| client.seen(stream).status() != 0);
        let seen = client.seen(stream);
        if seen.status() == 200 {
            tunnels.push(stream);
            return None;
        }
        Some(client.answer(stream))
    });
    let refused = refused.expect("memory has an end");
    assert_eq!((refused.status(), refused.text().as_str()), (503, "no memory left\n"));
    assert!(tunnels.len() >= 3, "{tunnels:?}");
    for stream in &tunnels {
        say(&mut client, *stream, b"still here");
        hears(&mut client, *stream, b"still here");
    }
    for stream in tunnels {
        client.send(&Frame::rst_stream(stream, CANCEL)).expect("the switch reads");
    }
    let mut stream = 1001;
    until("memory that was given back", || {
        stream += 2;
        client.connect(stream, "/chat", &[VERSION]);
        client.wait("an answer", |client| client.seen(stream).status() != 0);
        (client.seen(stream).status() == 200).then_some(())
    });
    assert_eq!(client.goaway(), None);
}

/// A browser whose user leaves one page after the other takes back nothing that it asked for.
fn resets_of_open_tunnels_are_no_flood(threads: usize) {
    let (server, origin) = (tunnelled(echo), Origin::answering("origin", ok));
    let setup = Setup::new(threads).rules("if (upgrade == \"websocket\") { routeTo(chat); }");
    let setup = setup.pool("standard", &[&origin]);
    let switch = setup.pool_at("chat", "", &[("c", server.address())]).start();
    let mut client = begin(&switch);
    for stream in (1..301).step_by(2) {
        open(&mut client, stream);
        client.send(&Frame::rst_stream(stream, CANCEL)).expect("the switch reads");
    }
    figure(&switch, "pointsman_tunnels_open", &[], 0.0);
    assert_eq!((client.fetch(301, "/").text().as_str(), client.goaway()), ("origin", None));
    assert_eq!(server.connections(), 150);
}

/// Who asks for tunnels and takes that back is told to be calm (CVE-2023-44487).
fn resets_before_the_answer_are_one(threads: usize) {
    let server = RawOrigin::silent();
    let switch = setup(threads, &server).start();
    let mut client = begin(&switch);
    let end = (1..100_000_u32).step_by(2).find(|stream| {
        client.connect(*stream, "/chat", &[VERSION]);
        client.send(&Frame::rst_stream(*stream, CANCEL)).is_err()
    });
    assert!(end.is_some(), "it goes on");
    let outcome = client.outcome(99_999).expect("HTTP/2");
    assert!(matches!(outcome, Outcome::GoAway(11) | Outcome::Closed), "{outcome:?}");
    figure(&switch, "pointsman_server_in_flight_requests", &[], 0.0);
    figure(&switch, "pointsman_refusals_total", &[("reason", "http2")], 1.0);
    let mut next = H2Client::begin(switch.client());
    next.turn();
    assert_eq!(next.goaway(), None);
}

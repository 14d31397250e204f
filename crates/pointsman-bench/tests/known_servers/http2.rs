//! The generator in HTTP/2, before servers of which each does one thing: it is seen there, and in what it says.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use pointsman_bench::{
    Body, ErrorKind, Handshakes, Kind, Load, Manner, Outcome, Plan, Protocol, Target, Url, run,
};
use pointsman_e2e::h2_wire::setting;
use pointsman_e2e::{Authority, Frame, H2Origin, Nginx, Origin, TlsServer, installed, ok, pause};

use super::{open, outcome, started, tls};

const REFUSED_STREAM: u32 = 7;
const CANCEL: u32 = 8;
const INTERNAL_ERROR: u32 = 2;

fn target(scheme: &str, address: SocketAddr, path: &str) -> Target {
    let url = Url::parse(&format!("{scheme}://{address}{path}")).expect("a URL");
    Target { url, weight: 1, method: "GET".into(), headers: Vec::new(), body: Body::None }
}

fn plan(scheme: &str, address: SocketAddr, load: Load) -> Plan {
    let mut plan = Plan::new(vec![target(scheme, address, "/")], load);
    (plan.protocol, plan.verify) = (Protocol::Http2, false);
    (plan.warm_up, plan.time) = (Duration::from_millis(200), Duration::from_millis(500));
    plan
}

fn clients(clients: u32) -> Load {
    Load::Closed { clients }
}

fn is_clean(outcome: &Outcome) {
    let record = &outcome.record;
    assert!(record.answered > 20, "{}", record.answered);
    assert_eq!((record.failed(), record.unsent), (0, 0), "{:?}", record.errors);
    assert_eq!(record.answered, record.due);
    assert!(outcome.voids.is_empty(), "{:?}", outcome.voids);
}

#[test]
fn clients_share_connections() {
    let server = started(&Manner { capacity: Some(2000.0), body_bytes: 100, ..Manner::default() });
    let mut plan = plan("http", server.address(), clients(24));
    (plan.streams, plan.time) = (10, Duration::from_millis(1000));
    let mut connections = 0;
    let outcome = run(&plan, &mut |progress| connections = progress.connections).expect("it answers");
    is_clean(&outcome);
    assert_eq!(connections, 3);
    assert!((1800.0..=2200.0).contains(&outcome.rate()), "{}", outcome.rate());
    let little = outcome.generator.little;
    assert!((little.under_way - 24.0).abs() < 1.5 && little.gap() < 0.05, "{little:?}");
    assert!(outcome.record.bytes_in_time() >= 100 * outcome.record.completed_in_time());
}

#[test]
fn clients_of_several_threads_share_as_many_connections() {
    let server = started(&Manner { capacity: Some(2000.0), ..Manner::default() });
    let mut plan = plan("http", server.address(), clients(24));
    (plan.streams, plan.threads, plan.time) = (10, 2, Duration::from_millis(1000));
    let mut connections = 0;
    let outcome = run(&plan, &mut |progress| connections = progress.connections).expect("it answers");
    let record = &outcome.record;
    assert!(record.answered > 20 && record.failed() == 0, "{:?}", record.errors);
    assert_eq!(connections, 3);
}

#[test]
fn an_open_loop_opens_no_more_connections_than_streams_need() {
    let server = started(&Manner { capacity: Some(1000.0), ..Manner::default() });
    let mut plan = plan("http", server.address(), open(500.0));
    plan.streams = 100;
    let outcome = outcome(&plan);
    is_clean(&outcome);
    assert_eq!(outcome.record.due, 250);
    assert_eq!(outcome.record.opened, 0, "the one of the warm-up is enough");
}

#[test]
fn handshakes_are_of_the_kind_that_is_asked_for_and_agree_on_h2() {
    let server = started(&tls(true));
    let mut full = plan("https", server.address(), clients(2));
    full.handshakes = Handshakes::Full;
    let full = outcome(&full);
    is_clean(&full);
    assert!(full.record.handshake.len() + 2 >= full.record.answered, "one for each request");
    assert!(full.negotiated.iter().all(|(agreed, _)| agreed.kind == Kind::Full && agreed.protocol == "h2"));
    let mut resumed = plan("https", server.address(), open(200.0));
    (resumed.handshakes, resumed.streams) = (Handshakes::Resumed(1.0), 5);
    resumed.requests_per_connection = Some(5);
    let resumed = outcome(&resumed);
    is_clean(&resumed);
    let of =
        |kind| resumed.negotiated.iter().filter(|(a, _)| a.kind == kind).map(|(_, count)| count).sum::<u64>();
    assert!(of(Kind::Resumed) > 10 && of(Kind::Full) <= 2, "{:?}", resumed.negotiated);
    // 100 requests, and those of the warm-up.
    assert!(of(Kind::Resumed) < 60, "five on each: {:?}", resumed.negotiated);
}

#[test]
fn what_is_offered_by_alpn_is_said_and_verified() {
    let server = started(&tls(false));
    let mut plan = plan("https", server.address(), clients(1));
    plan.alpn = Some(vec!["http/1.1".into(), "h2".into()]);
    is_clean(&outcome(&plan));
    // This server likes h2 better.
    (plan.protocol, plan.alpn) = (Protocol::Http1, Some(vec!["http/1.1".into(), "h2".into()]));
    let fault = run(&plan, &mut |_| {}).expect_err("h2 is not spoken").to_string();
    assert!(fault.contains("agreed on `h2` by ALPN, not on `http/1.1`"), "{fault}");
    plan.alpn = Some(Vec::new());
    let none = outcome(&plan);
    assert!(none.voids.is_empty() && none.negotiated[0].0.protocol.is_empty(), "{:?}", none.voids);
    plan.protocol = Protocol::Http2;
    assert!(run(&plan, &mut |_| {}).is_err(), "h2 is spoken, and must be offered");
}

#[test]
fn a_server_of_http1_is_not_asked() {
    let authority = Authority::new("bench");
    let origin = Origin::answering("old", ok);
    let fault = run(&plan("http", origin.address(), clients(1)), &mut |_| {}).expect_err("it has no h2");
    assert!(fault.to_string().starts_with("cannot ask http://127.0.0.1:"), "{fault}");
    let pair = authority.server(&["localhost"]);
    let tls = TlsServer::new(&pair).alpn(&["http/1.1"]);
    let origin = H2Origin::secured(&tls, &[], |_| {});
    let fault = run(&plan("https", origin.address(), clients(1)), &mut |_| {}).expect_err("it has no h2");
    // TLS itself refuses it where a server has ALPN (RFC 7301 section 3.2).
    assert!(fault.to_string().starts_with("cannot ask https://127.0.0.1:"), "{fault}");
}

#[test]
fn bodies_larger_than_windows_go_both_ways() {
    // The origin's windows are those that all connections begin with; it gives more as it reads.
    let sum = Arc::new(AtomicUsize::new(0));
    let theirs = sum.clone();
    let origin = H2Origin::serving(&[], move |peer| {
        while let Some(request) = peer.next_whole() {
            let is_right =
                request.body.len() == 300_000 && request.field("content-length").as_deref() == Some("300000");
            theirs.fetch_add(usize::from(is_right), Ordering::Relaxed);
            peer.answer(request.stream, if is_right { "200" } else { "400" }, &[], b"");
        }
    });
    let mut up = plan("http", origin.address(), clients(4));
    (up.targets[0].method, up.targets[0].body) = ("POST".into(), Body::Bytes(vec![b'x'; 300_000]));
    (up.streams, up.timeout) = (2, Duration::from_secs(5));
    let up = outcome(&up);
    let record = &up.record;
    assert!(record.answered > 0 && record.failed() == 0, "{:?}", record.errors);
    assert!(sum.load(Ordering::Relaxed) as u64 >= record.answered);
    assert!(record.bytes_sent > 0);
    // More than a stream's window of ours.
    let server = started(&Manner { body_bytes: 20_000_000, ..Manner::default() });
    let mut down = plan("http", server.address(), clients(2));
    (down.streams, down.time, down.timeout) = (2, Duration::from_secs(2), Duration::from_secs(10));
    let down = outcome(&down);
    let record = &down.record;
    assert!(record.answered > 2 && record.failed() == 0, "{:?}", record.errors);
    assert!(record.bytes_in_time() > 20_000_000 * (record.completed_in_time() - 2));
}

#[test]
fn a_template_is_filled_in_for_each_stream() {
    let origin = H2Origin::serving(&[], |peer| {
        while let Some(request) = peer.next_whole() {
            let length = request.field("content-length").and_then(|length| length.parse().ok());
            let number = request.path().strip_prefix("/n/").and_then(|number| number.parse::<u64>().ok());
            let is_right = length == Some(request.body.len()) && number.is_some();
            peer.answer(request.stream, if is_right { "200" } else { "400" }, &[("x-a", "b")], b"fine");
        }
    });
    let mut plan = plan("http", origin.address(), clients(4));
    plan.targets = vec![target("http", origin.address(), "/n/{n}")];
    plan.targets[0].method = "POST".into();
    plan.targets[0].headers =
        vec![("X-Id".into(), "{random 1 100000}".into()), ("user-agent".into(), "a".into())];
    plan.targets[0].body = Body::Template("{\"a\": {random 1 99999999}}".into());
    plan.streams = 4;
    let outcome = outcome(&plan);
    is_clean(&outcome);
    assert_eq!(outcome.record.statuses[200], outcome.record.answered);
}

#[test]
fn no_more_streams_are_open_than_the_server_takes() {
    let most = Arc::new(AtomicUsize::new(0));
    let theirs = most.clone();
    let origin = H2Origin::serving(&[(setting::MAX_CONCURRENT_STREAMS, 3)], move |peer| {
        while let Some(request) = peer.next_whole() {
            let open = peer.turn();
            theirs.fetch_max(open, Ordering::Relaxed);
            peer.answer(request.stream, "200", &[], b"");
        }
    });
    let mut plan = plan("http", origin.address(), clients(20));
    plan.streams = 20;
    // The first request of all waits for the settings, as the server's come before its first answer.
    let outcome = outcome(&plan);
    is_clean(&outcome);
    let most = most.load(Ordering::Relaxed);
    assert!((2..=20).contains(&most), "{most}");
}

#[test]
fn a_stream_that_takes_too_long_is_cancelled_alone() {
    let origin = H2Origin::serving(&[], |peer| {
        while let Some(request) = peer.next_head() {
            // The first two ask once, before the run.
            if request.path() != "/slow" || request.connection < 2 {
                peer.answer(request.stream, "200", &[], b"");
            }
        }
    });
    let mut plan = plan("http", origin.address(), clients(10));
    plan.targets = vec![target("http", origin.address(), "/"), target("http", origin.address(), "/slow")];
    plan.targets[0].weight = 50;
    (plan.streams, plan.timeout) = (10, Duration::from_millis(200));
    let outcome = outcome(&plan);
    let record = &outcome.record;
    let late = record.errors_of(ErrorKind::Timeout);
    assert!(late > 0 && late == record.failed(), "{:?}", record.errors);
    assert!(record.answered > 50 && record.answered + late == record.due, "{} {late}", record.answered);
    assert!(record.response.max() >= 200_000_000);
    assert_eq!(record.opened, 0, "the connection goes on");
    let cancelled = origin.requests().into_iter().filter(|request| request.reset == Some(CANCEL));
    assert!(cancelled.count() as u64 >= late);
}

#[test]
fn a_silent_connection_is_broken_off() {
    let origin = H2Origin::serving(&[], |peer| {
        while let Some(request) = peer.next_head() {
            if request.connection == 0 {
                peer.answer(request.stream, "200", &[], b"");
            }
        }
    });
    let mut plan = plan("http", origin.address(), clients(4));
    (plan.streams, plan.timeout) = (4, Duration::from_millis(150));
    // Clients begin one after another.
    plan.warm_up = Duration::ZERO;
    let outcome = outcome(&plan);
    let record = &outcome.record;
    assert_eq!((record.answered, record.failed()), (0, record.errors_of(ErrorKind::Timeout)));
    assert!(record.response.min() >= 149_000_000, "each was waited for: {}", record.response.min());
    assert!(record.opened > 1, "{}", record.opened);
}

#[test]
fn a_server_that_goes_away_is_followed_and_what_it_left_is_sent_again() {
    let origin = H2Origin::serving(&[], |peer| {
        let mut last = 0;
        for _ in 0..20 {
            let Some(request) = peer.next_whole() else { return };
            last = request.stream;
            peer.answer(request.stream, "200", &[], b"");
        }
        peer.send_goaway(last, 0);
    });
    let mut plan = plan("http", origin.address(), clients(6));
    plan.streams = 3;
    let outcome = outcome(&plan);
    let record = &outcome.record;
    assert!(record.answered > 100 && record.sent_again > 10, "{} {}", record.answered, record.sent_again);
    assert_eq!(record.failed(), 0, "{:?}", record.errors);
    assert!(record.opened > 5, "{}", record.opened);
}

#[test]
fn what_is_refused_behind_the_measured_time_is_sent_again_too() {
    let origin = H2Origin::serving(&[], |peer| {
        while let Some(request) = peer.next_whole() {
            if (request.connection, request.stream) == (1, 1) {
                // It takes longer than all of the run.
                pause(Duration::from_millis(700));
                peer.send(&Frame::rst_stream(request.stream, REFUSED_STREAM));
            } else {
                peer.answer(request.stream, "200", &[], b"");
            }
        }
    });
    let mut plan = plan("http", origin.address(), clients(1));
    plan.warm_up = Duration::ZERO;
    let record = outcome(&plan).record;
    assert_eq!((record.due, record.answered, record.sent_again), (1, 1, 1), "{:?}", record.errors);
}

#[test]
fn what_is_refused_waits_where_there_are_as_many_connections_as_there_may_be() {
    let begun = Arc::new(AtomicUsize::new(0));
    let seen = Arc::new(AtomicUsize::new(0));
    let (theirs, saw) = (begun.clone(), seen.clone());
    let origin = H2Origin::serving(&[], move |peer| {
        theirs.fetch_add(1, Ordering::Relaxed);
        while let Some(first) = peer.next_whole() {
            if first.connection == 1 && first.stream == 1 {
                // The second is left to another connection, which there may not be as long as the first takes.
                let Some(_) = peer.next_whole() else { return };
                peer.send_goaway(first.stream, 0);
                pause(Duration::from_millis(150));
                saw.store(theirs.load(Ordering::Relaxed), Ordering::Relaxed);
            }
            peer.answer(first.stream, "200", &[], b"");
        }
    });
    let mut plan = plan("http", origin.address(), open(40.0));
    (plan.streams, plan.connections_max, plan.warm_up) = (4, 1, Duration::ZERO);
    let record = outcome(&plan).record;
    assert_eq!(seen.load(Ordering::Relaxed), 2, "the first question's, and this one");
    assert!(record.sent_again > 0 && record.failed() == 0, "{} {:?}", record.sent_again, record.errors);
    assert_eq!(record.answered + record.unsent, record.due);
}

#[test]
fn what_is_refused_and_has_no_connection_is_late_in_the_end() {
    let origin = H2Origin::serving(&[], |peer| {
        while let Some(first) = peer.next_whole() {
            if first.connection == 0 {
                peer.answer(first.stream, "200", &[], b"");
            } else if peer.next_whole().is_some() {
                peer.send_goaway(first.stream, 0);
            }
        }
    });
    let mut plan = plan("http", origin.address(), open(20.0));
    (plan.streams, plan.connections_max, plan.warm_up) = (4, 1, Duration::ZERO);
    plan.timeout = Duration::from_secs(1);
    let record = outcome(&plan).record;
    assert_eq!((record.answered, record.failed()), (0, 2), "{:?}", record.errors);
    assert_eq!((record.errors_of(ErrorKind::Timeout), record.sent_again), (2, 1), "{:?}", record.errors);
}

#[test]
fn resets_and_refusals_are_errors_of_their_own() {
    for (code, kind) in [(INTERNAL_ERROR, ErrorKind::Reset), (REFUSED_STREAM, ErrorKind::Refused)] {
        let origin = H2Origin::serving(&[], move |peer| {
            while let Some(request) = peer.next_whole() {
                if request.connection == 0 {
                    peer.answer(request.stream, "200", &[], b"");
                } else {
                    peer.send(&Frame::rst_stream(request.stream, code));
                }
            }
        });
        let mut plan = plan("http", origin.address(), clients(3));
        plan.streams = 3;
        let outcome = outcome(&plan);
        let record = &outcome.record;
        assert!(
            record.failed() > 5 && record.errors_of(kind) == record.failed(),
            "{kind:?} {:?}",
            record.errors
        );
        assert_eq!((record.answered, record.opened), (0, 0), "the connection goes on");
        assert_eq!(record.sent_again > 0, kind == ErrorKind::Refused);
    }
}

#[test]
fn what_is_no_http2_is_malformed() {
    let push = Frame::new(pointsman_e2e::h2_wire::kind::PUSH_PROMISE, 4, 1, [0, 0, 0, 2]);
    let wrong_block = Frame::new(pointsman_e2e::h2_wire::kind::HEADERS, 5, 1, [0xbf]);
    for bad in [push, wrong_block, Frame::data(1, 1, "early"), Frame::window_update(0, 0)] {
        let words = format!("{bad:?}");
        let origin = H2Origin::serving(&[], move |peer| {
            while let Some(request) = peer.next_whole() {
                if request.connection == 0 {
                    peer.answer(request.stream, "200", &[], b"");
                } else {
                    peer.send(&bad);
                }
            }
        });
        let mut plan = plan("http", origin.address(), clients(1));
        plan.time = Duration::from_millis(200);
        let record = outcome(&plan).record;
        assert!(record.failed() > 1, "{words} {:?}", record.errors);
        assert_eq!(record.errors_of(ErrorKind::Malformed), record.failed(), "{words} {:?}", record.errors);
    }
}

#[test]
fn an_answer_that_is_not_as_long_as_it_says_is_malformed() {
    for (status, length, body, is_right) in [
        ("200", "5000", "hello", false),
        ("200", "2", "hello", false),
        ("200", "5", "hello", true),
        ("200", "five", "hello", false),
        ("304", "5000", "", true),
    ] {
        let origin = H2Origin::serving(&[], move |peer| {
            while let Some(request) = peer.next_whole() {
                if request.connection == 0 {
                    peer.answer(request.stream, "200", &[], b"");
                } else {
                    peer.answer(request.stream, status, &[("content-length", length)], body.as_bytes());
                }
            }
        });
        let mut plan = plan("http", origin.address(), clients(2));
        (plan.streams, plan.time) = (2, Duration::from_millis(300));
        let record = outcome(&plan).record;
        assert!(record.due > 5 && record.opened <= 1, "{length}: the connection goes on");
        let expected = if is_right { (record.due, 0) } else { (0, record.due) };
        assert_eq!((record.answered, record.errors_of(ErrorKind::Malformed)), expected, "{length}");
    }
}

#[test]
fn nginx_answers() {
    if !installed("nginx") {
        return;
    }
    let pair = Authority::new("bench").server(&["localhost"]);
    let large = "0123456789abcdef".repeat(64 * 1024);
    let files = [("n.crt", &*pair.certificate), ("n.key", &*pair.key), ("large.txt", &*large)];
    // It ends connections behind so many requests, as it does by itself behind a thousand.
    let nginx = Nginx::start(&files, |[plain, tls]: [SocketAddr; 2]| {
        let places = "root .; ssl_certificate n.crt; ssl_certificate_key n.key; keepalive_requests 50;
                      location = / { return 200 fine; }
                      location = /upload { client_max_body_size 0; return 204; }";
        format!("server {{ listen {plain} http2; {places} }} server {{ listen {tls} ssl http2; {places} }}")
    });
    for (scheme, address) in [("http", nginx.address(0)), ("https", nginx.address(1))] {
        let mut plan = plan(scheme, address, clients(20));
        plan.targets = ["/", "/large.txt"].map(|path| target(scheme, address, path)).into();
        plan.targets[0].weight = 20;
        plan.streams = 10;
        let outcome = outcome(&plan);
        let record = &outcome.record;
        assert!(record.answered > 100, "{}", record.answered);
        assert_eq!(record.failed(), record.errors_of(ErrorKind::Refused), "{scheme} {:?}", record.errors);
        let again = record.sent_again;
        assert!(record.failed() < 20 && record.opened > 1, "{} {} {again}", record.failed(), record.opened);
        assert_eq!(record.statuses[200], record.answered);
        assert!(outcome.voids.is_empty(), "{:?}", outcome.voids);
    }
}

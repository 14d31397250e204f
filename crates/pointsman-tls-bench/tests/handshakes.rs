//! Handshakes with real servers: their phases come in order, and what differs from what was pinned is said.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use pointsman_bench::{Close, Manner, NullServer, NullTls, Offer, Url};
use pointsman_e2e::{Authority, Nginx, Origin, Then, TlsServer, installed};
use pointsman_measure::verdict::{Colour, Measure};
use pointsman_tls::OneVersion;
use pointsman_tls_bench::handshake::{KindWanted, Outcome, Phase, Plan, Wanted, handshake};
use pointsman_tls_bench::{Operation, Signature};

const ANY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

fn started(resumes: bool) -> NullServer {
    let pair = Authority::new("bench").server(&["localhost"]);
    let tls = NullTls { certificate: pair.certificate, key: pair.key, resumes };
    NullServer::start(ANY, &Manner { tls: Some(tls), ..Manner::default() }).expect("loopback")
}

fn plan(address: SocketAddr, series: Vec<Wanted>) -> Plan {
    let url = Url::parse(&format!("https://{address}/")).expect("a URL");
    Plan { verify: false, count: 20, close: Close::Reset, series, ..Plan::new(url) }
}

fn wanted(kind: KindWanted, version: OneVersion, groups: &[&str]) -> Wanted {
    let groups = groups.iter().map(|name| (*name).to_owned()).collect();
    Wanted { kind, offer: Offer { version: Some(version), suites: Vec::new(), groups } }
}

fn measured(plan: &Plan) -> Outcome {
    handshake(plan, &mut |_| {}).expect("it answers")
}

/// Handshakes count whatever comes behind them, and what comes is told.
#[test]
fn answers_are_told_by_their_status() {
    let pair = Authority::new("bench").server(&["localhost"]);
    let origin = Origin::secured("a", &TlsServer::new(&pair), |exchange| {
        let words = if exchange.target() == "/there" { "HTTP/1.1 200 OK" } else { "HTTP/1.1 404 Not Found" };
        exchange.send(format!("{words}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"));
        Then::Close
    });
    let of = |target: &str| {
        let mut plan = plan(origin.address(), vec![wanted(KindWanted::Full, OneVersion::Tls13, &[])]);
        (plan.predicted_with, plan.url.target) = (None, target.to_owned());
        let outcome = measured(&plan);
        assert_eq!(outcome.voids, []);
        let reason = outcome.verdict().reasons.into_iter().find(|reason| reason.measure == Measure::Answers);
        let series = &outcome.json()["series"][0];
        (reason.map(|reason| reason.text), series["statuses"].clone(), series["answers_not_2xx"].clone())
    };
    assert_eq!(of("/there"), (None, serde_json::json!({"200": 20}), 0.into()));
    let (reason, statuses, not_2xx) = of("/elsewhere");
    let said = "full, TLS 1.3: 20 of 20 answers were errors (20 × 404), so their phase is that of errors";
    assert_eq!(
        (reason.as_deref(), statuses, not_2xx),
        (Some(said), serde_json::json!({"404": 20}), 20.into())
    );
}

/// Interim answers come before the answer, and that may be longer than the library holds.
#[test]
fn answers_are_as_long_as_they_are_and_come_behind_interim_ones() {
    let pair = Authority::new("bench").server(&["localhost"]);
    let origin = Origin::secured("a", &TlsServer::new(&pair), |exchange| {
        let body = "x".repeat(300_000);
        let hints = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";
        let head =
            format!("HTTP/1.1 404 Not Found\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
        let before = if exchange.target() == "/hints" { hints } else { "" };
        exchange.send(format!("{before}{head}{body}"));
        Then::Close
    });
    for target in ["/", "/hints"] {
        let mut plan = plan(origin.address(), vec![wanted(KindWanted::Full, OneVersion::Tls13, &[])]);
        (plan.predicted_with, plan.url.target) = (None, target.to_owned());
        let outcome = measured(&plan);
        assert_eq!(outcome.voids, [], "{target}");
        assert_eq!(outcome.json()["series"][0]["statuses"], serde_json::json!({"404": 20}), "{target}");
    }
}

/// A server that takes its leave has ended the connection, whatever comes behind that.
#[test]
fn a_farewell_is_the_end_of_a_connection() {
    let server = TlsServer::new(&Authority::new("bench").server(&["localhost"]));
    let listener = TcpListener::bind(ANY).expect("loopback");
    let address = listener.local_addr().expect("it listens");
    std::thread::spawn(move || {
        let mut silent = 0;
        for socket in listener.incoming().map_while(Result::ok) {
            let Ok(mut stream) = server.open(socket) else { continue };
            let mut request = [0; 4096];
            let count = stream.read(&mut request).unwrap_or(0);
            silent += u32::from(request[..count].starts_with(b"GET /silent "));
            // The first is that before the run.
            if silent <= 1 {
                stream.write_all(b"HTTP/1.1 404 Not Found\r\n\r\n").expect("there is room");
            }
            stream.conn.send_close_notify();
            // The head of a record of 8 KiB, which is never whole.
            let left = stream.flush().and_then(|()| stream.sock.write_all(b"\x17\x03\x03\x20\x00 and so on"));
            let (Ok(_) | Err(_)) = left.and_then(|()| std::io::copy(&mut stream.sock, &mut std::io::sink()));
        }
    });
    let of = |target: &str| {
        let mut plan = plan(address, vec![wanted(KindWanted::Full, OneVersion::Tls13, &[])]);
        (plan.predicted_with, plan.url.target, plan.count) = (None, target.to_owned(), 3);
        let outcome = measured(&plan);
        let voids: Vec<_> = outcome.voids.iter().map(|void| void.sentence.clone()).collect();
        (voids, outcome.json()["series"][0]["statuses"].clone())
    };
    assert_eq!(of("/answered"), (vec![], serde_json::json!({"404": 3})));
    let failed = "full, TLS 1.3: 3 of 3 handshakes failed (the server ended the connection)";
    assert_eq!(of("/silent"), (vec![failed.to_owned()], serde_json::json!({})));
}

fn codes(outcome: &Outcome) -> Vec<&'static str> {
    outcome.voids.iter().map(|void| void.code).collect()
}

fn operations(outcome: &Outcome, series: usize) -> Vec<Operation> {
    let steps = &outcome.series[series].servers.as_ref().expect("predicted").steps;
    assert!(steps.iter().all(|step| step.us.is_some_and(|us| us.estimate > 0.0)), "{steps:?}");
    steps.iter().map(|step| step.operation).collect()
}

#[test]
fn each_kind_and_version_has_its_phases() {
    let server = started(true);
    let series = [
        wanted(KindWanted::Full, OneVersion::Tls13, &["X25519"]),
        wanted(KindWanted::Full, OneVersion::Tls12, &["P-256"]),
        wanted(KindWanted::Resumed, OneVersion::Tls13, &["X25519"]),
        wanted(KindWanted::Resumed, OneVersion::Tls12, &["P-256"]),
    ];
    let outcome = measured(&plan(server.address(), series.to_vec()));
    assert_eq!(outcome.voids, []);
    for (at, series) in outcome.series.iter().enumerate() {
        let phases: Vec<Phase> = series.phases.iter().map(|(phase, ..)| *phase).collect();
        let expected = Phase::ALL.into_iter().filter(|phase| *phase != Phase::ServerFinished || at == 1);
        assert_eq!(phases, expected.collect::<Vec<_>>(), "{}", series.name);
        assert_eq!(series.round_trips, if at == 1 { 2 } else { 1 });
        assert!(series.phases.iter().all(|(_, times, _)| times.sorted.len() == 20), "{}", series.name);
        let [(agreed, 20)] = series.negotiated.as_slice() else { panic!("{:?}", series.negotiated) };
        assert_eq!(agreed.version, if at % 2 == 0 { "1.3" } else { "1.2" });
    }
    // A full handshake is signed, a resumed one is not.
    let sign = Operation::Sign(Signature::EcdsaP256);
    let signs = [0, 1, 2, 3].map(|at| operations(&outcome, at).contains(&sign));
    assert_eq!(signs, [true, true, false, false]);
    // What was measured of the client is there, and decides.
    let seen = outcome.self_measures();
    assert!(seen.steal_share.is_some() && seen.switches_per_s.is_some());
    assert!(seen.waited_share.is_some_and(|share| (0.0..=1.0).contains(&share)), "{seen:?}");
    let mut busy = outcome.clone();
    busy.watched.waited_share = Some(0.9);
    let red = busy.report("busy");
    assert!(red.colour == Colour::Red && !red.reasons.is_empty(), "{:?}", red.reasons);
    let run = outcome.report("null");
    assert_eq!((run.charts.len(), run.tables.len(), run.figures.len()), (3, 3, 4 * 4));
}

#[test]
fn a_server_that_agrees_on_something_else_voids_the_run() {
    let server = started(false);
    let resumed = wanted(KindWanted::Resumed, OneVersion::Tls13, &[]);
    let outcome = measured(&Plan { predicted_with: None, ..plan(server.address(), vec![resumed]) });
    assert_eq!(codes(&outcome), ["kind"]);
    assert!(outcome.voids[0].sentence.contains("20 of 20 handshakes were full"), "{:?}", outcome.voids);
    assert!(outcome.series[0].servers.is_none() && outcome.primitives.is_none());
}

#[test]
fn no_handshake_is_no_run() {
    let server = started(true);
    let refusing = Plan { verify: true, ..plan(server.address(), Plan::new(nowhere()).series) };
    let trouble = handshake(&refusing, &mut |_| {}).expect_err("nobody knows its authority").to_string();
    assert!(trouble.contains("no handshake (full) with") && trouble.contains("certificate"), "{trouble}");
    let plain = Plan::new(Url::parse("http://127.0.0.1:1/").expect("a URL"));
    let trouble = handshake(&plain, &mut |_| {}).expect_err("no TLS").to_string();
    assert!(trouble.contains("is not `https`"), "{trouble}");
    let none = Plan { count: 0, ..Plan::new(nowhere()) };
    assert!(handshake(&none, &mut |_| {}).is_err());
}

fn nowhere() -> Url {
    Url::parse("https://127.0.0.1:1/").expect("a URL")
}

#[test]
fn secrets_and_bytes_are_kept_for_who_looks_closer() {
    let server = started(true);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (keys, capture) = (folder.path().join("keys"), folder.path().join("a.pcap"));
    let series = vec![wanted(KindWanted::Full, OneVersion::Tls13, &[])];
    let plan = Plan {
        key_log: Some(keys.clone()),
        capture: Some(capture.clone()),
        predicted_with: None,
        ..plan(server.address(), series)
    };
    assert_eq!(measured(&plan).voids, []);
    let keys = std::fs::read_to_string(keys).expect("text");
    let randoms: Vec<&str> = keys
        .lines()
        .filter(|line| line.starts_with("CLIENT_HANDSHAKE_TRAFFIC_SECRET "))
        .filter_map(|line| line.split(' ').nth(1))
        .collect();
    // One before anything counts.
    assert_eq!(randoms.len(), 21);
    let bytes = std::fs::read(capture).expect("a capture");
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let held = randoms.iter().filter(|random| hex.contains(**random)).count();
    assert_eq!(held, 20, "each captured hello has the random that its secrets stand under");
}

#[test]
fn nginx_is_measured_as_well() {
    if !installed("nginx") {
        return;
    }
    let pair = Authority::new("bench").server(&["localhost"]);
    let files = [("a.crt", pair.certificate.as_str()), ("a.key", pair.key.as_str())];
    let nginx = Nginx::start(&files, |[tls]: [SocketAddr; 1]| {
        format!(
            "server {{ listen {tls} ssl; ssl_certificate a.crt; ssl_certificate_key a.key;
               ssl_protocols TLSv1.2 TLSv1.3; ssl_session_cache shared:a:1m; location / {{ return 200 ok; }} }}"
        )
    });
    let series = [
        wanted(KindWanted::Full, OneVersion::Tls13, &["X25519"]),
        wanted(KindWanted::Full, OneVersion::Tls12, &["P-256"]),
        wanted(KindWanted::Resumed, OneVersion::Tls13, &["X25519"]),
        wanted(KindWanted::Resumed, OneVersion::Tls12, &["P-256"]),
    ];
    let outcome = measured(&Plan { predicted_with: None, ..plan(nginx.address(0), series.to_vec()) });
    assert_eq!(outcome.voids, []);
    assert_eq!(outcome.series[1].round_trips, 2);
}

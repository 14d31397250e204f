//! Names, plans, parts and versions, without a connection.

use std::net::{Ipv4Addr, TcpListener};

use super::*;
use crate::part::Part;
use crate::record::Record;
use crate::{Body, Generator, Load, Machine, Target, Url};

#[test]
fn agents_have_names() {
    for (name, host, port) in [
        ("a.example", "a.example", AGENT_PORT),
        ("10.0.0.1:81", "10.0.0.1", 81),
        ("[::1]:82", "::1", 82),
        ("[::1]", "::1", AGENT_PORT),
    ] {
        assert_eq!(split(name), Ok((host, port)));
    }
    for bad in ["", ":81", "a:0", "a:x", "[::1", "[::1]x", "::1"] {
        assert!(split(bad).is_err(), "{bad}");
    }
}

#[test]
fn versions_that_differ_are_named() {
    let own = Versions::own();
    assert_eq!(own.same_as(&own.clone(), "the agent", "this"), Ok(()));
    let json = r#"[["pointsman","0.0.1"]]"#;
    let other: Versions = serde_json::from_str(json).expect("versions");
    let fault = own.same_as(&other, "the agent `a`", "this controller").expect_err("another");
    assert!(
        fault.to_string().starts_with("versions differ: the agent `a` is pointsman 0.0.1, and"),
        "{fault}"
    );
    assert_eq!(fault.advice(), Some("copy the same binary to all machines"));
}

/// Both ends of a connection.
pub(super) fn sockets() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback");
    let near = TcpStream::connect(listener.local_addr().expect("it listens")).expect("it takes one");
    (near, listener.accept().expect("one came").0)
}

/// Frames over it, without TLS.
pub(super) fn link(socket: TcpStream) -> Link {
    let own = socket.try_clone().expect("a descriptor");
    Link::new(Box::new(socket), own, FRAME_BYTES_MAX).expect("a socket")
}

#[test]
fn all_addresses_of_a_name_are_tried() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback");
    let port = listener.local_addr().expect("it listens").port();
    // Where it has one of IPv6 too, nobody listens there.
    assert!(connect("localhost", port).is_ok());
    drop(listener);
    assert!(connect("localhost", port).is_err());
}

pub(super) fn plan() -> Plan {
    let url = Url::parse("https://127.0.0.1:9/a{n}?b").expect("a URL");
    let body = Body::Bytes((0..=255).collect());
    let target = Target { url, weight: 3, method: "POST".into(), headers: Vec::new(), body };
    let mut plan = Plan::new(vec![target], Load::Closed { clients: 7 });
    plan.time = Duration::from_secs(1);
    plan.offer.version = Some(OneVersion::Tls12);
    plan.sources = "127.0.0.0/30".parse().expect("a network");
    plan.think = "exp:20ms".parse().expect("a time");
    plan.classes = vec![crate::Class { name: "c".into(), targets: vec![0], right_status: Some(404) }];
    plan
}

#[test]
fn a_plan_arrives_as_it_was_sent() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("writable");
        path
    };
    let mut sent = plan();
    sent.ca = Some(file("ours.pem", "an authority"));
    sent.certificate = Some(CertificateFiles::new(file("c.pem", "a chain"), file("k.pem", "a key")));
    let errand = errand::Errand::pack(&sent, 2).expect("files");
    let json = serde_json::to_vec(&Message::Errand(Box::new(errand))).expect("JSON");
    let Message::Errand(errand) = serde_json::from_slice(&json).expect("the same") else {
        panic!("{json:?}")
    };
    let there = tempfile::tempdir().expect("a temporary folder");
    let (came, place) = errand.unpack(there.path()).expect("writable");
    assert_eq!((place.index, place.of), (0, 2));
    assert_eq!(came.settings(), sent.settings());
    assert_eq!((&came.targets[0].body, &came.sources), (&sent.targets[0].body, &sent.sources));
    assert_eq!((came.check(), came.classes == sent.classes), (Ok(()), true));
    let text = |path: PathBuf| std::fs::read_to_string(path).expect("it is there");
    let files = came.certificate.expect("it had one");
    assert_eq!(text(came.ca.expect("it had one")), "an authority");
    assert_eq!((text(files.certificate), text(files.key)), ("a chain".into(), "a key".into()));
}

#[test]
fn a_plan_that_is_too_long_for_its_agents_is_refused() {
    let mut plan = plan();
    plan.targets[0].body = Body::Bytes(vec![0; 41 << 20]);
    let fault = errand::Errand::pack(&plan, 2).expect_err("too long");
    assert!(
        fault.to_string().starts_with("the bodies of all requests together have 42991616 bytes"),
        "{fault}"
    );
    plan.targets[0].body = Body::Filled(41 << 20);
    let errand = errand::Errand::pack(&plan, 2).expect("so many bytes are no text");
    assert!(serde_json::to_vec(&Message::Errand(Box::new(errand))).expect("JSON").len() < 10_000);
}

#[test]
fn what_an_agent_says_is_no_order_to_a_terminal() {
    let fault = Fault::new("gone\x1b[2J\nwith it").help("look\x07");
    let named = of_agent("a", &fault);
    assert_eq!(named.to_string(), "agent `a`: gone\u{fffd}[2J\nwith it");
    assert_eq!(named.advice(), Some("look\u{fffd}"));
}

/// A record with one request of each of these times.
pub(super) fn part(times_ns: &[u64]) -> Part {
    let mut record = Record::new(10);
    record.due = times_ns.len() as u64;
    record.classes = vec![crate::ClassRecord::new(10)];
    for time_ns in times_ns {
        record.response.saturating_record(*time_ns);
        record.classes[0].response.saturating_record(*time_ns);
    }
    let mut generator = Generator::nothing();
    generator.threads =
        vec![Some(crate::ThreadUse { cpu: 0.5, waited: Some(0.0), involuntary_switches: 1, spun: 0.1 })];
    Part {
        addresses: vec![([127, 0, 0, 1], 9).into()],
        machine: Machine::look(),
        began_unix_s: 5,
        seconds: 1.0,
        record,
        generator,
    }
}

#[test]
fn rates_of_what_was_ended_are_of_the_same_time() {
    let mut whole = part(&[]);
    whole.record.due = 35;
    whole.record.handshakes[0] = 7;
    for (batch, due) in whole.record.batches.iter_mut().zip([10, 10, 10, 5]) {
        (batch.due, batch.completed, batch.handshakes[0]) = (due, due, due / 5);
    }
    let class = &mut whole.record.classes[0];
    for (batch, completed) in class.batches.iter_mut().zip([10, 10, 10, 5]) {
        batch.completed = completed;
    }
    for (batches, per_s, handshakes_per_s, of_class) in [(3, 100.0, 20.0, 30), (0, 0.0, 0.0, 0)] {
        let mut part = whole.clone();
        part.cut_to(batches);
        let outcome = part.outcome(plan(), None);
        let close = |found: f64, expected: f64| (found - expected).abs() < 1e-6;
        assert!(close(outcome.rate(), per_s) && close(outcome.demanded(), per_s), "{}", outcome.demanded());
        assert!(close(outcome.handshake_rate(), handshakes_per_s), "{}", outcome.handshake_rate());
        assert_eq!(outcome.record.classes[0].completed(), of_class);
    }
}

fn over_the_wire(part: &Part) -> Part {
    let json = serde_json::to_vec(part).expect("JSON");
    serde_json::from_slice(&json).expect("the same")
}

#[test]
fn percentiles_are_those_of_the_added_histograms() {
    let plan = plan();
    // Nine in ten are fast at one agent, and one in ten at the other: no mean of percentiles is that of both.
    let [fast, slow] = [90, 10].map(|fast| {
        let times = (0..100_u64).map(|at| if at < fast { 1_000_000 } else { 500_000_000 });
        part(&times.collect::<Vec<_>>())
    });
    let parts = [&fast, &slow].map(over_the_wire);
    assert!(parts.iter().all(|part| part.is_of(&plan) && part.is_whole(&plan)));
    let all = Part::together(&parts, &plan).expect("two parts");
    let mut expected = fast.record.response.clone();
    expected.add(&slow.record.response).expect("the same bounds");
    assert_eq!(all.record.response, expected);
    let p90 = |times: &hdrhistogram::Histogram<u64>| times.value_at_quantile(0.9) as f64 / 1e6;
    assert!((p90(&all.record.response) - 500.0).abs() < 1.0);
    let mean = (p90(&fast.record.response) + p90(&slow.record.response)) / 2.0;
    assert!((mean - 250.0).abs() < 1.0, "{mean}");
    assert_eq!((all.record.due, all.generator.threads.len()), (200, 2));
    assert_eq!(all.record.classes[0].response.len(), 200);
    assert_eq!((all.addresses.len(), all.machine.cores), (1, 2 * Machine::look().cores));
}

#[test]
fn a_part_of_another_plan_is_noticed() {
    let plan = plan();
    let longer = Plan { time: Duration::from_secs(2), ..plan.clone() };
    assert!(part(&[1]).is_of(&longer) && !part(&[1]).is_whole(&longer), "the beginning of one");
    let shorter = Plan { time: Duration::from_millis(900), ..plan.clone() };
    assert!(part(&[1]).is_of(&plan) && !part(&[1]).is_of(&shorter));
    let mut odd = part(&[1]);
    odd.record.looks.pop();
    assert!(!odd.is_of(&plan));
    let mut without = part(&[1]);
    without.record.classes.clear();
    assert!(!without.is_of(&plan));
    let json = r#"{"addresses":[]}"#;
    assert!(serde_json::from_str::<Part>(json).is_err());
}

#[test]
fn who_is_silent_in_the_handshake_is_told_in_words() {
    let (mut near, _far) = sockets();
    let settings = pointsman_tls::ClientTls {
        ca: None,
        certificate: None,
        verify: false,
        min_version: pointsman_tls::TlsVersion::Tls12,
        protocol: crate::Protocol::Http1.alpn(),
    };
    let config =
        crate::Offer::default().client_config(&settings, &pointsman_tls::SystemAuthorities::default());
    let name = ServerName::try_from("localhost").expect("a name");
    let mut connection =
        ClientConnection::new(Arc::new(config.expect("settings")), name).expect("it can be offered");
    let until = Instant::now() + Duration::from_millis(100);
    let error = shake(&mut connection, &mut near, until).expect_err("nobody answers");
    assert_eq!(error.to_string(), "it did not answer the TLS handshake in time");
}

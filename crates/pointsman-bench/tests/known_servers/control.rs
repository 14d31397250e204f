//! What the generator says of its own limits, of its machine's, and of what its warm-up left behind.

use std::io::{BufRead, BufReader, Write};
use std::sync::mpsc::channel;
use std::time::Duration;

use pointsman_bench::{Listening, Manner, Outcome, Service, Url};
use pointsman_measure::verdict::{Colour, Measure};
use socket2::{Domain, Socket, Type};

use super::{ANY, open, outcome, plan, started};

/// What is said of it, where something is.
fn said_of(outcome: &Outcome, measure: Measure) -> Option<(Colour, String)> {
    let reasons = outcome.verdict().reasons;
    reasons.into_iter().find(|reason| reason.measure == measure).map(|reason| (reason.colour, reason.text))
}

#[test]
fn waiting_for_a_connection_is_no_lag_and_is_told() {
    let server = started(&Manner { capacity: Some(100.0), ..Manner::default() });
    let mut plan = plan("http", &server, open(1000.0));
    plan.connections_max = 4;
    let outcome = outcome(&plan);
    let record = &outcome.record;
    assert!(record.held_back > 900, "{}", record.held_back);
    // Behind 270 requests of the warm-up each waits for more than two seconds; those that are begun are the warm-up's.
    assert!(record.left_waiting > 200 && record.left_of_warm_up <= record.left_waiting + 4, "{record:?}");
    assert_eq!(record.connections_most, 4);
    assert!(record.lag.len() > 900 && record.lag.value_at_quantile(0.9) < 50_000_000, "{}", record.lag.max());
    let said = said_of(&outcome, Measure::Connections);
    assert!(said.is_some_and(|(colour, text)| colour == Colour::Amber && text.contains("--connections")));
    assert_eq!(outcome.json()["requests"]["left_waiting"], record.left_waiting);
}

#[test]
fn how_long_requests_were_held_back_is_written_down() {
    let server = started(&Manner { capacity: Some(100.0), ..Manner::default() });
    let mut plan = plan("http", &server, open(200.0));
    (plan.connections_max, plan.warm_up) = (2, Duration::ZERO);
    let outcome = outcome(&plan);
    let record = &outcome.record;
    // The queue grows by 100 a second: the last one that is begun has waited for half of the time.
    assert!(record.held.len() > 50 && record.held.len() <= record.held_back, "{}", record.held.len());
    assert!((300_000_000..700_000_000).contains(&record.held.max()), "{}", record.held.max());
    assert_eq!(outcome.json()["times_ns"]["held"]["count"], record.held.len());
    let table = &outcome.report("it").tables[0];
    assert!(table.rows.iter().any(|row| row[0] == "held back, for a connection".into()), "{table:?}");
}

#[test]
fn what_the_warm_up_left_behind_is_told() {
    for (warm_up_ms, colour) in [(300, Colour::Amber), (800, Colour::Red)] {
        // It does nothing for a second, from 0.2 s of the warm-up on.
        let server = started(&Manner { stall: Some((100, Duration::from_secs(1))), ..Manner::default() });
        let mut plan = plan("http", &server, open(500.0));
        (plan.warm_up, plan.time) = (Duration::from_millis(warm_up_ms), Duration::from_millis(1500));
        // So many fit into its listening queue.
        plan.connections_max = 64;
        let outcome = outcome(&plan);
        let left = outcome.record.left_of_warm_up;
        let expected = (warm_up_ms - 200) / 2;
        assert!((expected - 10..=expected + 10).contains(&left), "{left} and {expected}");
        let said = said_of(&outcome, Measure::WarmUp);
        assert_eq!(
            said.map(|(colour, _)| colour),
            Some(colour),
            "{} due, {} in time, {left} left",
            outcome.record.due,
            outcome.record.completed_in_time()
        );
    }
    let server = started(&Manner::default());
    assert_eq!(outcome(&plan("http", &server, open(500.0))).made_good_share(), 0.0);
}

#[test]
fn a_full_listening_queue_of_this_machine_is_seen() {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    let listening = socket.bind(&ANY.into()).and_then(|()| socket.listen(1));
    listening.expect("loopback");
    let address = socket.local_addr().ok().and_then(|address| address.as_socket()).expect("it is bound");
    let (ended, ends) = channel::<()>();
    let server = std::thread::spawn(move || {
        let (first, _) = socket.accept().expect("the one that asks before the run");
        let first = std::net::TcpStream::from(first);
        let (mut reader, mut text) = (BufReader::new(&first), String::new());
        while !text.ends_with("\r\n\r\n") && reader.read_line(&mut text).expect("a head") > 0 {}
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        (&first).write_all(answer).expect("it listens");
        // Nobody else is accepted; the end of the run ends the wait.
        assert!(ends.recv().is_err());
    });
    let any = started(&Manner::default());
    let mut plan = plan("http", &any, open(100.0));
    plan.targets[0].url = Url::parse(&format!("http://{address}/")).expect("a URL");
    (plan.warm_up, plan.time) = (Duration::ZERO, Duration::from_millis(500));
    plan.timeout = Duration::from_millis(300);
    let mut outcome = outcome(&plan);
    drop(ended);
    server.join().expect("it has waited");
    let seen = outcome.generator.listening.expect("the server is here");
    assert!(seen.overflows > 0 && seen.drops >= seen.overflows, "{seen:?}");
    let said = said_of(&outcome, Measure::ListenQueue);
    assert_eq!(said.map(|(colour, _)| colour), Some(Colour::Red), "{seen:?} of {}", outcome.record.opened);
    // One of many counts, and should be known.
    outcome.generator.listening = Some(Listening { overflows: 1, drops: 1 });
    outcome.record.opened = 1_000;
    assert_eq!(said_of(&outcome, Measure::ListenQueue).map(|(colour, _)| colour), Some(Colour::Amber));
}

#[test]
fn errors_are_no_answers() {
    let server = started(&Manner { capacity: Some(100.0), service: Service::Limiter, ..Manner::default() });
    let mut plan = plan("http", &server, open(400.0));
    (plan.warm_up, plan.time) = (Duration::ZERO, Duration::from_secs(1));
    let mut outcome = outcome(&plan);
    let share = outcome.record.failed_share();
    assert!((0.3..1.0).contains(&share), "{share}");
    let (colour, text) = said_of(&outcome, Measure::Answers).expect("it is said");
    assert_eq!(colour, Colour::Amber);
    assert!(text.starts_with(&format!("{:.1} % of the requests failed", share * 100.0)), "{text}");
    assert!(outcome.verdict().colour >= Colour::Amber);
    // Few of many are for whoever reads the counts.
    outcome.record.due *= 200;
    assert_eq!(said_of(&outcome, Measure::Answers), None);
}

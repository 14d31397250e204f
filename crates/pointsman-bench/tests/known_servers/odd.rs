//! Servers that do not do as they say, or nothing at all: what the generator makes of them.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use pointsman_bench::{Arrivals, ErrorKind, Load, Manner, Plan, Script, Think, Url};
use pointsman_measure::verdict::{Colour, Measure};

use super::{ANY, RIGHT, open, outcome, plan, started};

/// A server that answers so: it is told which connection it is and which request on it, from 0, and says whether it goes on.
fn odd(answer: impl Fn(&TcpStream, u64, u64) -> io::Result<bool> + Clone + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind(ANY).expect("loopback");
    let address = listener.local_addr().expect("it listens");
    std::thread::spawn(move || {
        for (number, socket) in (0..).zip(listener.incoming().map_while(Result::ok)) {
            let answer = answer.clone();
            std::thread::spawn(move || -> io::Result<()> {
                let mut reader = BufReader::new(&socket);
                for request in 0.. {
                    let mut text = String::new();
                    while !text.ends_with("\r\n\r\n") {
                        if reader.read_line(&mut text)? == 0 {
                            return Ok(());
                        }
                    }
                    if !answer(&socket, number, request)? {
                        return Ok(());
                    }
                }
                Ok(())
            });
        }
    });
    address
}

fn of(address: SocketAddr, load: Load) -> Plan {
    let mut plan = plan("http", &started(&Manner::default()), load);
    plan.targets[0].url = Url::parse(&format!("http://{address}/")).expect("a URL");
    plan
}

fn codes(plan: &Plan) -> Vec<&'static str> {
    outcome(plan).voids.iter().map(|void| void.code).collect()
}

#[test]
fn a_run_in_which_nothing_was_measured_is_void() {
    // The first is answered, which asks before the run; all others are not.
    let hangs = odd(|mut socket, number, _| match number {
        0 => socket.write_all(RIGHT).map(|()| true),
        _ => Ok(true),
    });
    let mut plan = of(hangs, Load::Closed { clients: 4 });
    (plan.think, plan.timeout) = (Think::Constant(Duration::from_millis(10)), Duration::from_secs(2));
    let found = outcome(&plan);
    assert_eq!((found.record.due, found.record.completed_in_time()), (0, 0));
    let [void] = &found.voids[..] else { panic!("{:?}", found.voids) };
    assert!(void.sentence.contains("no answer came") && void.sentence.contains("4 requests"), "{void:?}");
    let server = started(&Manner::default());
    let seldom = self::plan("http", &server, open(0.1));
    assert_eq!(codes(&seldom), ["nothing due"]);
    let late = started(&Manner { capacity: Some(0.8), ..Manner::default() });
    let mut late = self::plan("http", &late, open(10.0));
    (late.warm_up, late.connections_max) = (Duration::ZERO, 1);
    late.time = Duration::from_millis(300);
    assert_eq!(codes(&late), ["late answers"]);
}

#[test]
fn a_server_that_closes_and_does_not_say_so_keeps_nothing() {
    let closes = odd(|mut socket, _, _| socket.write_all(RIGHT).map(|()| false));
    let mut plan = of(closes, open(200.0));
    plan.shares.persistent = Some(0.7);
    let found = outcome(&plan);
    assert!(found.record.answered > 100 && found.record.answered_kept > found.record.answered / 2);
    assert!(found.voids.iter().any(|void| void.code == "share"), "{:?} {:?}", found.voids, found.shares());
    let keeps = odd(|mut socket, _, _| socket.write_all(RIGHT).map(|()| true));
    let mut plan = of(keeps, open(200.0));
    plan.shares.persistent = Some(0.7);
    assert_eq!(codes(&plan), Vec::<&str>::new());
}

#[test]
fn what_comes_behind_the_end_of_an_answer_is_malformed() {
    // At once, or when the answer has been counted: what a server says to who is idle is not meant.
    let one_more = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    for (behind, is_counted) in [("more", true), (one_more, true), ("HTTP/1.1 408 Late\r\n\r\n", false)] {
        let longer = odd(move |mut socket, number, _| {
            socket.write_all(RIGHT)?;
            if number > 0 {
                std::thread::park_timeout(Duration::from_millis(5));
                socket.write_all(behind.as_bytes())?;
            }
            Ok(true)
        });
        let mut plan = of(longer, Load::Closed { clients: 2 });
        plan.think = Think::Constant(Duration::from_millis(50));
        let record = outcome(&plan).record;
        assert!(record.answered > 10, "{}", record.answered);
        let seen = record.errors_of(ErrorKind::Malformed);
        assert_eq!(seen > 5, is_counted, "{behind}: {:?}", record.errors);
    }
    for closes in ["", "Connection: close\r\n"] {
        let at_once = odd(move |mut socket, number, _| {
            if number == 0 {
                return socket.write_all(RIGHT).map(|()| true);
            }
            let answer = format!("HTTP/1.1 200 OK\r\n{closes}Content-Length: 2\r\n\r\nokay");
            socket.write_all(answer.as_bytes()).map(|()| closes.is_empty())
        });
        let record = outcome(&of(at_once, Load::Closed { clients: 1 })).record;
        assert!(record.errors_of(ErrorKind::Malformed) > 5 && record.answered == 0, "{:?}", record.errors);
    }
}

/// At once, and not when its time is over.
#[test]
fn an_upgrade_that_nobody_asked_for_and_a_status_that_is_none_are_malformed() {
    let upgrade = "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n";
    for answer in [upgrade, "HTTP/1.1 999 X\r\nContent-Length: 0\r\n\r\n"] {
        let server = odd(move |mut socket, number, _| {
            socket.write_all(if number == 0 { RIGHT } else { answer.as_bytes() }).map(|()| true)
        });
        let record = outcome(&of(server, Load::Closed { clients: 1 })).record;
        assert!(record.errors_of(ErrorKind::Malformed) > 5, "{answer}: {:?}", record.errors);
        assert_eq!(record.errors_of(ErrorKind::Malformed), record.failed(), "{answer}: {:?}", record.errors);
    }
}

#[test]
fn statuses_that_failed_are_told_from_others() {
    let mixed = odd(|mut socket, number, request| {
        let status = if number > 0 && request % 3 == 0 { "503 No" } else { "302 Found" };
        write!(&mut socket, "HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n").map(|()| true)
    });
    let record = outcome(&of(mixed, Load::Closed { clients: 1 })).record;
    assert!(record.statuses[302] > 10 && record.failed_statuses[302] == 0);
    assert_eq!(record.failed_statuses[503], record.errors_of(ErrorKind::Status));
    assert!(record.failed_statuses[503] > 5 && record.failed_statuses.iter().sum::<u64>() == record.failed());
}

#[test]
fn steps_of_sessions_are_no_arrivals() {
    let server = started(&Manner::default());
    let base = Url::parse(&format!("http://{}/", server.address())).expect("a URL");
    let text = "think 3ms\nGET /\nGET /\nGET /\nGET /\n";
    let script = Script::parse(text, Some(&base), &mut |_| Err(io::Error::other("no file"))).expect("steps");
    let load = Load::Open { rate: 300.0, arrivals: Arrivals::Poisson };
    let mut plan = Plan::of_sessions(script, load);
    (plan.warm_up, plan.time) = (Duration::from_millis(300), Duration::from_secs(2));
    let found = outcome(&plan);
    let gaps = found.record.gaps.sample().len() as u64;
    let begun = found.record.sessions.as_ref().expect("there are some").due;
    assert!(gaps <= begun && gaps + 60 > begun, "{gaps} of {begun} sessions, {} requests", found.record.due);
    let gaps = found.verdict().reasons.into_iter().find(|reason| reason.measure == Measure::Gaps);
    assert!(gaps.is_none_or(|reason| reason.colour != Colour::Red), "one in a hundred is amber by chance");
}

//! Servers that send without end: no thread of the generator is theirs, and the run says what they did.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use pointsman_bench::{ErrorKind, Load, Manner, Outcome, Protocol, Target, Url};
use pointsman_e2e::Frame;
use pointsman_e2e::h2_wire::kind;
use pointsman_measure::verdict::Colour;

use super::{ANY, RIGHT, outcome, plan, started};

/// Sends `right` to whoever asks first. To all others it sends `begin`, and then `more` over and over, until they are gone.
fn flooding(right: Vec<u8>, begin: Vec<u8>, more: &[u8]) -> SocketAddr {
    let listener = TcpListener::bind(ANY).expect("loopback");
    let address = listener.local_addr().expect("it listens");
    let more = more.repeat(1 + 60_000 / more.len());
    std::thread::spawn(move || {
        for (number, mut socket) in (0..).zip(listener.incoming().map_while(Result::ok)) {
            let (right, begin, more) = (right.clone(), begin.clone(), more.clone());
            std::thread::spawn(move || -> std::io::Result<()> {
                let _ = socket.read(&mut [0; 4096])?;
                if number == 0 {
                    socket.write_all(&right)?;
                    return std::io::copy(&mut socket, &mut std::io::sink()).map(drop);
                }
                socket.write_all(&begin)?;
                loop {
                    socket.write_all(&more)?;
                }
            });
        }
    });
    address
}

/// One thread asks that server as often as a good one, and waits so long for an answer.
fn beside_a_good_one(address: SocketAddr, protocol: Protocol, timeout_ms: u64) -> Outcome {
    let good = started(&Manner::default());
    let mut plan = plan("http", &good, Load::Closed { clients: 2 });
    let url = Url::parse(&format!("http://{address}/")).expect("a URL");
    plan.targets.push(Target { url, ..plan.targets[0].clone() });
    (plan.protocol, plan.threads, plan.timeout) = (protocol, 1, Duration::from_millis(timeout_ms));
    outcome(&plan)
}

#[test]
fn a_flood_of_frames_ends_its_connection() {
    let settings = Frame::settings(&[]).bytes();
    let head = |flags: u8| [settings.clone(), Frame::new(kind::HEADERS, flags, 1, [0x88]).bytes()].concat();
    let floods = [
        ("settings", settings.clone(), settings.clone()),
        ("settings with much to do", settings.clone(), Frame::settings(&[(4, 70_000); 2_000]).bytes()),
        ("pings", settings.clone(), Frame::ping([0; 8]).bytes()),
        ("empty data", head(4), Frame::data(1, 0, []).bytes()),
        ("a block without an end", head(0), Frame::new(kind::CONTINUATION, 0, 1, []).bytes()),
    ];
    for (name, begin, more) in floods {
        let found = beside_a_good_one(flooding(head(5), begin, &more), Protocol::Http2, 10_000);
        let record = &found.record;
        assert!(record.errors_of(ErrorKind::Flooded) > 5, "{name}: {:?}", record.errors);
        assert_eq!(record.errors_of(ErrorKind::Flooded), record.failed(), "{name}: {:?}", record.errors);
        assert!(record.answered > 5, "{name}: {}", record.answered);
        assert_ne!(found.verdict().colour, Colour::Green, "{name}");
    }
}

#[test]
fn an_answer_without_an_end_holds_nobody_up() {
    let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let floods: [(&str, &[u8], &[u8]); 2] =
        [("chunks", chunked, b"1\r\nx\r\n"), ("interim answers", b"", b"HTTP/1.1 103 Early Hints\r\n\r\n")];
    for (name, begin, more) in floods {
        let address = flooding(RIGHT.to_vec(), begin.to_vec(), more);
        let record = beside_a_good_one(address, Protocol::Http1, 300).record;
        assert!(record.errors_of(ErrorKind::Timeout) > 1, "{name}: {:?}", record.errors);
        assert_eq!(record.errors_of(ErrorKind::Timeout), record.failed(), "{name}: {:?}", record.errors);
        assert!(record.answered > 1, "{name}: {}", record.answered);
    }
}

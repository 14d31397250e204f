//! Servers, and a client, that say by TLS that they say no more: that is the end, whatever comes behind it.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use pointsman_bench::{ErrorKind, Handshakes, Load, Manner, NullServer, NullTls, Record, Target, Think, Url};
use pointsman_e2e::{Authority, TlsClient, TlsServer};

use super::{ANY, RIGHT, of_tls, outcome, started, tls};

/// The head of a record of 8 KiB, which is never whole.
const BEHIND: &[u8] = b"\x17\x03\x03\x20\x00 and so on";

/// Answers so, takes its leave, sends what is behind that, and closes when the client has. The first who asks is answered well.
fn leaving(answer: &'static [u8], behind: &'static [u8]) -> SocketAddr {
    let server = TlsServer::new(&Authority::new("bench").server(&["localhost"]));
    let listener = TcpListener::bind(ANY).expect("loopback");
    let address = listener.local_addr().expect("it listens");
    std::thread::spawn(move || {
        for (number, socket) in (0..).zip(listener.incoming().map_while(Result::ok)) {
            let server = server.clone();
            std::thread::spawn(move || -> io::Result<()> {
                let mut stream = server.open(socket)?;
                if stream.read(&mut [0; 4096])? == 0 {
                    return Ok(());
                }
                // All of it at once: nobody asks in between.
                stream.conn.writer().write_all(if number == 0 { RIGHT } else { answer })?;
                stream.conn.send_close_notify();
                stream.flush()?;
                stream.sock.write_all(behind)?;
                io::copy(&mut stream.sock, &mut io::sink()).map(drop)
            });
        }
    });
    address
}

/// Two clients ask it, and whoever waits does so for long.
fn record(address: SocketAddr) -> Record {
    let good = started(&tls(false));
    let mut plan = of_tls(&good, Load::Closed { clients: 2 }, Handshakes::Keep);
    let url = Url::parse(&format!("https://{address}/")).expect("a URL");
    plan.targets = vec![Target { url, ..plan.targets[0].clone() }];
    (plan.threads, plan.timeout) = (1, Duration::from_secs(5));
    plan.think = Think::Constant(Duration::from_millis(10));
    outcome(&plan).record
}

#[test]
fn a_farewell_ends_a_connection() {
    let to_its_end = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello";
    for (answer, behind) in [(RIGHT, &b""[..]), (RIGHT, BEHIND), (to_its_end, b""), (to_its_end, BEHIND)] {
        let record = record(leaving(answer, behind));
        assert!(record.answered > 5 && record.failed() == 0, "{} {:?}", record.answered, record.errors);
        assert!(record.opened + 2 >= record.answered, "{} of {}", record.opened, record.answered);
    }
}

#[test]
fn a_farewell_in_place_of_an_answer_is_a_connection_that_was_closed() {
    for behind in [&b""[..], BEHIND] {
        let record = record(leaving(b"", behind));
        assert!(record.errors_of(ErrorKind::Closed) > 5, "{:?}", record.errors);
        assert_eq!(record.errors_of(ErrorKind::Closed), record.failed(), "{:?}", record.errors);
    }
}

/// What a client is sent that asks in one flight with all that it says, and then waits for the end.
fn answered(server: &NullServer, path: &str, authority: Option<&Authority>) -> io::Result<u64> {
    let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n");
    let mut socket = TcpStream::connect(server.address())?;
    socket.set_read_timeout(Some(Duration::from_secs(10)))?;
    let Some(authority) = authority else {
        socket.write_all(request.as_bytes())?;
        socket.shutdown(Shutdown::Write)?;
        return io::copy(&mut socket, &mut io::sink());
    };
    let mut client = TlsClient::new(authority).connection("localhost");
    while client.is_handshaking() {
        client.complete_io(&mut socket)?;
    }
    client.writer().write_all(request.as_bytes())?;
    client.send_close_notify();
    let mut flight = Vec::new();
    while client.wants_write() {
        client.write_tls(&mut flight)?;
    }
    socket.write_all(&flight)?;
    // Its farewell is the end.
    let mut stream = rustls::Stream::new(&mut client, &mut socket);
    let count = io::copy(&mut stream, &mut io::sink())?;
    io::copy(&mut socket, &mut io::sink()).map(|_| count)
}

#[test]
fn a_client_that_has_asked_and_left_is_answered_in_full_and_let_go() {
    let authority = Authority::new("bench");
    let pair = authority.server(&["localhost"]);
    let tls = NullTls { certificate: pair.certificate, key: pair.key, resumes: false };
    let (plain, over_tls) =
        (started(&Manner::default()), started(&Manner { tls: Some(tls), ..Manner::default() }));
    // One that takes its time, and longer ones than sockets have room for.
    let late = started(&Manner { capacity: Some(20.0), ..Manner::default() });
    let long = 30_000_000;
    for (server, path, authority, bytes) in [
        (&plain, "/", None, 0),
        (&late, "/", None, 0),
        (&plain, "/bytes/30000000", None, long),
        (&over_tls, "/", Some(&authority), 0),
        (&over_tls, "/bytes/30000000", Some(&authority), long),
    ] {
        let came = answered(server, path, authority).expect("it ends the connection");
        assert!((bytes + 1..bytes + 200).contains(&came), "{path}: {came}");
    }
}

/// Whoever asks for a head gets that alone, and the next answer is behind it.
#[test]
fn a_head_is_all_that_is_sent_of_what_is_asked_for_so() {
    let server = started(&Manner { body_bytes: 100, ..Manner::default() });
    let mut socket = TcpStream::connect(server.address()).expect("loopback");
    let asked = "HEAD / HTTP/1.1\r\n\r\nHEAD /bytes/70 HTTP/1.1\r\n\r\nGET /bytes/3 HTTP/1.1\r\n\r\n";
    socket.write_all(asked.as_bytes()).expect("there is room");
    socket.shutdown(Shutdown::Write).expect("it is open");
    let mut came = String::new();
    socket.read_to_string(&mut came).expect("it ends the connection");
    let head = |bytes| format!("HTTP/1.1 200 OK\r\nContent-Length: {bytes}\r\n\r\n");
    assert_eq!(came, format!("{}{}{}xxx", head(100), head(70), head(3)));
}

/// Bytes behind its farewell hold up no null server, which ends the connection.
#[test]
fn a_client_that_goes_on_behind_its_farewell_is_let_go() {
    let authority = Authority::new("bench");
    let pair = authority.server(&["localhost"]);
    let tls = NullTls { certificate: pair.certificate, key: pair.key, resumes: false };
    let server = started(&Manner { tls: Some(tls), ..Manner::default() });
    let mut client = TlsClient::new(&authority).connection("localhost");
    let mut socket = TcpStream::connect(server.address()).expect("loopback");
    while client.is_handshaking() {
        client.complete_io(&mut socket).expect("a handshake");
    }
    client.send_close_notify();
    let mut last = Vec::new();
    client.write_tls(&mut last).expect("memory");
    last.extend_from_slice(BEHIND);
    socket.write_all(&last).expect("there is room");
    socket.set_read_timeout(Some(Duration::from_secs(5))).expect("a time");
    io::copy(&mut socket, &mut io::sink()).expect("it ends the connection");
}

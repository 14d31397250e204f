//! Servers that die before, in and after their answer, in every way a socket can end.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use pointsman_e2e::{RawOrigin, Setup, Switch, read_head};
use socket2::SockRef;

pointsman_e2e::for_threads!(before_the_answer, in_the_answer, after_the_answer);

/// How a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// In good order.
    Close,
    /// Broken off.
    Reset,
    /// The server says that it will say nothing more, and goes on listening.
    HalfClose,
}

const ENDS: [End; 3] = [End::Close, End::Reset, End::HalfClose];

impl End {
    fn of(self, mut socket: TcpStream) {
        match self {
            End::Close => {}
            End::Reset => {
                SockRef::from(&socket).set_linger(Some(Duration::ZERO)).expect("an open socket");
            }
            End::HalfClose => {
                socket.shutdown(Shutdown::Write).expect("an open socket");
                // Until the switch closes, too.
                while matches!(socket.read(&mut [0; 1024]), Ok(1..)) {}
            }
        }
    }
}

const GOOD: &str = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngood";
const GOOD_AND_MORE: &str =
    "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngoodHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil";

/// A server whose first connection ends so after it has said this much; all others are in order.
fn dies_once(reads: bool, says: &'static str, end: End) -> RawOrigin {
    RawOrigin::serving(move |mut socket, number| {
        if number == 0 {
            if reads && read_head(&mut socket).is_none() {
                return;
            }
            // The switch may be quicker.
            drop(socket.write_all(says.as_bytes()));
            return end.of(socket);
        }
        while read_head(&mut socket).is_some() {
            if socket.write_all(GOOD.as_bytes()).is_err() {
                return;
            }
        }
    })
}

fn request(method: &str) -> String {
    format!("{method} /{method} HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 0\r\n\r\n")
}

fn switch(threads: usize, origin: &RawOrigin) -> Switch {
    // Twice, for one that has failed is left out of the next try.
    let servers = [("one", origin.address()), ("two", origin.address())];
    Setup::new(threads).pool_at("standard", "", &servers).start()
}

/// Not a byte of an answer: what is idempotent is sent again, anything else is not.
fn before_the_answer(threads: usize) {
    for (reads, end) in [false, true].into_iter().flat_map(|reads| ENDS.map(|end| (reads, end))) {
        for method in ["GET", "POST"] {
            let case = format!("{method}, reads the head: {reads}, {end:?}");
            let origin = dies_once(reads, "", end);
            let switch = switch(threads, &origin);
            let mut client = switch.client();
            client.send(request(method));
            let seen = (client.response().status(), origin.connections());
            match method {
                "GET" => assert_eq!(seen, (200, 2), "{case}"),
                _ if reads => assert_eq!(seen, (502, 1), "{case}"),
                // A server that reads nothing may have ended before a byte was sent.
                _ => assert!([(502, 1), (200, 2)].contains(&seen), "{case}: {seen:?}"),
            }
            // The client's connection goes on, and so does the pool.
            client.send(request("GET"));
            assert_eq!(client.response().text(), "good", "{case}");
        }
    }
}

/// Some of an answer: nothing is sent again, and no half answer looks like a whole one.
fn in_the_answer(threads: usize) {
    let head = "HTTP/1.1 200 OK\r\nContent-Le";
    let bodies = [
        "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nhalf",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
        "HTTP/1.1 200 OK\r\n\r\nhalf",
    ];
    for (says, end) in bodies.into_iter().chain([head]).flat_map(|says| ENDS.map(|end| (says, end))) {
        let case = format!("{says:?}, {end:?}");
        let origin = dies_once(true, says, end);
        let switch = switch(threads, &origin);
        let mut client = switch.client();
        client.send(request("GET"));
        let outcome = client.try_response().map(|answer| (answer.status(), answer.text()));
        match outcome {
            // The end of the connection is the end of that answer.
            Ok((200, body)) => {
                assert!(says == bodies[3] && end != End::Reset && body == "half", "{case}: {body}")
            }
            // Nothing of it had gone to the client.
            Ok((502, _)) => assert!(says == head || end == End::Reset, "{case}"),
            Ok(other) => panic!("{case}: {other:?}"),
            Err(_) => assert!(says != head, "{case}: cut where a status was due"),
        }
        assert_eq!(origin.connections(), 1, "{case}: sent again");
        assert_eq!(switch.get("/").text(), "good", "{case}");
    }
}

/// After a whole answer: that one arrives, and the next request meets another connection.
fn after_the_answer(threads: usize) {
    for (says, end) in [GOOD, GOOD_AND_MORE].into_iter().flat_map(|says| ENDS.map(|end| (says, end))) {
        let case = format!("{says:?}, {end:?}");
        let origin = dies_once(true, says, end);
        let switch = switch(threads, &origin);
        let mut client = switch.client();
        for _ in 0..3 {
            client.send(request("GET"));
            let answer = client.try_response().unwrap_or_else(|error| panic!("{case}: {error}"));
            assert_eq!((answer.status(), answer.text().as_str()), (200, "good"), "{case}");
        }
        // Each of the two names has its own idle connections.
        assert!((2..=3).contains(&origin.connections()), "{case}: {}", origin.connections());
    }
}

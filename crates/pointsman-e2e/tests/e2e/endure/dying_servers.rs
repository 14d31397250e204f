//! Servers that die before, in and after their answer, in every way a socket can end.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use pointsman_e2e::{Bound, RawOrigin, Setup, Switch, Unit, figure, read_head};
use socket2::SockRef;

use super::tell;

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

/// How many cases there are, and in how many all was as it must be.
#[derive(Default)]
struct Cases {
    all: u64,
    right: u64,
}

impl Cases {
    fn add(&mut self, is_right: bool, what: &str) {
        self.all += 1;
        self.right += u64::from(is_right);
        if !is_right {
            tell(what);
        }
    }

    fn figure(&self, fault: &str, what: &'static str) {
        figure(fault, self.right, Unit::Count(what), Bound::Exactly(self.all));
    }
}

/// What becomes of another request; an error counts as nothing.
fn next(switch: &Switch) -> String {
    let mut client = switch.client();
    drop(client.try_send(request("GET")));
    client.try_response().map(|answer| answer.text()).unwrap_or_default()
}

/// Not a byte of an answer: what is idempotent is sent again, anything else is not.
fn before_the_answer(threads: usize) {
    let fault = format!("servers that end before their answer, {threads} threads");
    let (mut gets, mut posts, mut after) = (Cases::default(), Cases::default(), Cases::default());
    for (reads, end) in [false, true].into_iter().flat_map(|reads| ENDS.map(|end| (reads, end))) {
        for method in ["GET", "POST"] {
            let origin = dies_once(reads, "", end);
            let switch = switch(threads, &origin);
            let mut client = switch.client();
            client.send(request(method));
            let seen = (client.try_response().map_or(0, |answer| answer.status()), origin.connections());
            let case = format!("{method}, reads the head: {reads}, {end:?}: {seen:?}");
            match method {
                "GET" => gets.add(seen == (200, 2), &case),
                _ if reads => posts.add(seen == (502, 1), &case),
                // A server that reads nothing may have ended before a byte was sent.
                _ => posts.add([(502, 1), (200, 2)].contains(&seen), &case),
            }
            // The client's connection goes on, and so does the pool.
            drop(client.try_send(request("GET")));
            after.add(client.try_response().is_ok_and(|answer| answer.text() == "good"), &case);
        }
    }
    gets.figure(&fault, "GETs answered by another server");
    posts.figure(&fault, "POSTs not sent again once they were read");
    after.figure(&fault, "next requests of the same clients answered");
}

/// Some of an answer: once its head is there nothing is sent again, and no half answer looks like a whole one.
fn in_the_answer(threads: usize) {
    let fault = format!("servers that end in their answer, {threads} threads");
    let (mut visible, mut once, mut after) = (Cases::default(), Cases::default(), Cases::default());
    let head = "HTTP/1.1 200 OK\r\nContent-Le";
    let until_close = "HTTP/1.1 200 OK\r\n\r\nhalf";
    let bodies = [
        "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nhalf",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
        until_close,
        head,
    ];
    for (says, end) in bodies.into_iter().flat_map(|says| ENDS.map(|end| (says, end))) {
        let origin = dies_once(true, says, end);
        let switch = switch(threads, &origin);
        let mut client = switch.client();
        client.send(request("GET"));
        let outcome = client.try_response().map(|answer| (answer.status(), answer.text()));
        let case = format!("{says:?}, {end:?}: {outcome:?}, {} connections", origin.connections());
        let is_visible = match outcome {
            // The end of the connection is the end of that answer.
            Ok((200, body)) if says == until_close => end != End::Reset && body == "half",
            // Nothing of it had gone to the client, which gets the answer of the next one.
            Ok((200, body)) => says == head && body == "good",
            Ok((502, _)) => says != head && end == End::Reset,
            Ok(_) => false,
            // Cut, and not where a status was due.
            Err(_) => says != head,
        };
        visible.add(is_visible, &case);
        once.add(origin.connections() == if says == head { 2 } else { 1 }, &case);
        after.add(next(&switch) == "good", &case);
    }
    visible.figure(&fault, "half answers that look so");
    once.figure(&fault, "requests sent again only where no head had come");
    after.figure(&fault, "next requests answered");
}

/// After a whole answer: that one arrives, and the next request meets another connection.
fn after_the_answer(threads: usize) {
    let fault = format!("servers that end after their answer, {threads} threads");
    let (mut whole, mut kept) = (Cases::default(), Cases::default());
    for (says, end) in [GOOD, GOOD_AND_MORE].into_iter().flat_map(|says| ENDS.map(|end| (says, end))) {
        let origin = dies_once(true, says, end);
        let switch = switch(threads, &origin);
        let mut client = switch.client();
        for _ in 0..3 {
            drop(client.try_send(request("GET")));
            let answer = client.try_response().map(|answer| (answer.status(), answer.text()));
            let is_good = answer.as_ref().is_ok_and(|answer| *answer == (200, "good".to_owned()));
            whole.add(is_good, &format!("{says:?}, {end:?}: {answer:?}"));
        }
        // Each of the two names has its own idle connections.
        let connections = origin.connections();
        kept.add((2..=3).contains(&connections), &format!("{says:?}, {end:?}: {connections} connections"));
    }
    whole.figure(&fault, "answers whole, and no other's");
    kept.figure(&fault, "cases where what is alive is used again");
}

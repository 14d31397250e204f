//! Flow control of tunnels: who does not read holds up whoever sends to it, and nobody else.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pointsman_e2e::h2_wire::{flag, kind};
use pointsman_e2e::{Authority, Frame, H2Client, Origin, Pattern, RawOrigin, Setup, Switch, ok};

use super::{begin_tls, expect, open, say, setup};
use crate::http2::{begin, figure};
use crate::tunnels::{counts, handed_over, log_of_tunnel, next, tunnelled};

pointsman_e2e::for_threads!(
    a_client_that_takes_nothing,
    a_client_that_takes_nothing_for_too_long,
    a_server_that_takes_nothing,
    a_server_that_takes_nothing_for_too_long,
    carries_much_down,
    carries_much_up
);

const CANCEL: u32 = 8;
const WINDOW_BYTES: u32 = 20_000;
/// More than the kernel and the switch together hold of a tunnel that stands still.
const HELD_BYTES_MAX: usize = 32 * 1024 * 1024;
const LENGTH: u64 = 6 * 1024 * 1024;

/// A server that says as much as is taken of it, and counts that.
fn talking() -> (RawOrigin, Arc<AtomicUsize>) {
    let said = Arc::new(AtomicUsize::new(0));
    let counted = said.clone();
    let server = tunnelled(move |socket| {
        while let Ok(count @ 1..) = socket.write(&[7; 64 * 1024]) {
            counted.fetch_add(count, Ordering::SeqCst);
        }
    });
    (server, said)
}

/// Beside the server of tunnels another one, for requests.
fn beside(threads: usize, chat: &RawOrigin, origin: &Origin) -> Setup {
    let setup = Setup::new(threads).rules("if (upgrade == \"websocket\") { routeTo(chat); }");
    setup.pool("standard", &[origin]).pool_at("chat", "", &[("c", chat.address())])
}

/// Its server is held up, too, and other streams of its connection, tunnels or not, are not.
fn a_client_that_takes_nothing(threads: usize) {
    let ((server, said), origin) = (talking(), Origin::answering("origin", ok));
    let switch = beside(threads, &server, &origin).start();
    let mut client = H2Client::begin_with_window(switch.client(), WINDOW_BYTES);
    client.hold(1);
    open(&mut client, 1);
    let window = WINDOW_BYTES as usize;
    client.wait("all that may come", |client| client.seen(1).body.len() == window);
    for stream in (3..603).step_by(2) {
        assert_eq!(client.fetch(stream, "/").text(), "origin");
    }
    let said = said.load(Ordering::SeqCst);
    assert!(said < HELD_BYTES_MAX, "{said} bytes, although nobody takes them");
    assert_eq!(client.seen(1).body.len(), window, "more than there was leave for");
    // A little room, a few bytes.
    client.send(&Frame::window_update(1, 7)).expect("the switch reads");
    client.wait("seven bytes", |client| client.seen(1).body.len() == window + 7);
    client.turn();
    assert_eq!(client.seen(1).body.len(), window + 7);
    client.send(&Frame::rst_stream(1, CANCEL)).expect("the switch reads");
    figure(&switch, "pointsman_tunnels_open", &[], 0.0);
    assert_eq!(client.fetch(605, "/").text(), "origin");
}

/// It is given up, and what came does not look whole.
fn a_client_that_takes_nothing_for_too_long(threads: usize) {
    let ((server, _), origin) = (talking(), Origin::answering("origin", ok));
    let switch = beside(threads, &server, &origin).limits("write_ms_max = 400").start();
    let mut client = H2Client::begin_with_window(switch.client(), WINDOW_BYTES);
    client.hold(1);
    open(&mut client, 1);
    assert_eq!(client.reset(1), CANCEL);
    let line = log_of_tunnel(&switch);
    assert_eq!(line["error"], "the client took nothing of the answer in time", "{line}");
    assert_eq!((client.fetch(3, "/").text().as_str(), client.goaway()), ("origin", None));
}

/// Sends into a tunnel until there has been no leave for long. How much that was.
fn fill(client: &mut H2Client, stream: u32) -> usize {
    let (mut sent, mut still) = (0, 0);
    // So many turns without leave for another byte are taken for the end of it.
    while still < 100 {
        client.turn();
        let room = client.room(stream);
        still = if room == 0 { still + 1 } else { 0 };
        if room > 0 {
            say(client, stream, &vec![7; room]);
        }
        sent += room;
        assert!(sent < HELD_BYTES_MAX, "{sent} bytes, although nobody takes them");
    }
    sent
}

/// The client gets no leave to send more on that stream; on others it does.
fn a_server_that_takes_nothing(threads: usize) {
    let (server, handed) = handed_over();
    let origin = Origin::new("origin");
    let switch = beside(threads, &server, &origin).start();
    let mut client = begin(&switch);
    open(&mut client, 1);
    let mut stuck = next(&handed);
    let sent = fill(&mut client, 1);
    open(&mut client, 3);
    let socket = next(&handed);
    for _ in 0..3 {
        say(&mut client, 3, &[9; 50_000]);
        expect(&socket, &[9; 50_000]);
    }
    client.post(5, "/", &[]);
    client.send_content(5, flag::END_STREAM, &[7; 300_000]).expect("there is leave");
    assert_eq!(client.answer(5).status(), 200);
    // It goes on where it stopped.
    let reading = std::thread::spawn(move || {
        let mut came = Vec::new();
        stuck.read_to_end(&mut came).map(|_| came)
    });
    client.send_content(1, flag::END_STREAM, &[7; 100_000]).expect("there is leave again");
    let came = reading.join().expect("no panic").expect("an end in order");
    assert!(came.len() == sent + 100_000 && came.iter().all(|byte| *byte == 7), "{} of {sent}", came.len());
}

fn a_server_that_takes_nothing_for_too_long(threads: usize) {
    let (server, handed) = handed_over();
    let setup = Setup::new(threads).limits("write_ms_max = 60000");
    let switch = setup.pool_at("standard", "write_ms_max = 400", &[("s", server.address())]).start();
    let mut client = begin(&switch);
    open(&mut client, 1);
    let _socket = next(&handed);
    let bytes = vec![7; 64 * 1024];
    let held_back =
        (0..1024).find(|_| client.send_content(1, 0, &bytes).is_err() || client.seen(1).reset.is_some());
    assert!(held_back.is_some(), "nothing holds the client back");
    assert_eq!(client.seen(1).reset, Some(CANCEL));
    let line = log_of_tunnel(&switch);
    assert_eq!(line["error"], "the server took nothing of the request in time", "{line}");
}

/// Plain, and over TLS.
fn both(threads: usize, server: &RawOrigin, check: impl Fn(&Switch, H2Client)) {
    let authority = Authority::new("test CA");
    let plain = setup(threads, server).start();
    let over_tls = setup(threads, server).tls(&authority.server(&["shop.example"]), "").start();
    check(&plain, begin(&plain));
    check(&over_tls, begin_tls(&over_tls, &authority));
}

fn carries_much_down(threads: usize) {
    let server = tunnelled(|socket: &mut TcpStream| {
        let mut pattern = Pattern::default();
        while pattern.position() < LENGTH {
            let left = LENGTH - pattern.position();
            if socket.write_all(pattern.next(left)).is_err() {
                return;
            }
        }
    });
    both(threads, &server, |switch, mut client| {
        open(&mut client, 1);
        let mut came = Pattern::default();
        came.expect(&client.seen(1).body);
        let mut is_over = false;
        while !is_over {
            let frame = client.frame().expect("HTTP/2").expect("it is open");
            if frame.kind == kind::DATA {
                came.expect(&frame.payload);
                is_over = frame.flags & flag::END_STREAM != 0;
            }
            client.take(frame).expect("HTTP/2");
        }
        assert_eq!(came.position(), LENGTH);
        client.send(&Frame::data(1, flag::END_STREAM, [])).expect("the switch reads");
        let line = log_of_tunnel(switch);
        assert!(line["error"].is_null() && line["response_bytes"].as_u64() > Some(LENGTH), "{line}");
    });
}

fn carries_much_up(threads: usize) {
    let server = tunnelled(counts);
    both(threads, &server, |switch, mut client| {
        open(&mut client, 1);
        let mut sent = Pattern::default();
        while sent.position() < LENGTH {
            let left = LENGTH - sent.position();
            say(&mut client, 1, sent.next(left));
        }
        client.send(&Frame::data(1, flag::END_STREAM, [])).expect("the switch reads");
        assert_eq!(client.answer(1).text(), format!("{LENGTH} bytes"));
        let line = log_of_tunnel(switch);
        assert!(line["error"].is_null() && line["request_bytes"].as_u64() > Some(LENGTH), "{line}");
    });
}

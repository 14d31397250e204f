//! Back pressure: who is faster than the other end is stopped, and the switch stores nothing for them.

use std::io::{ErrorKind, Result, Write};
use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use pointsman_e2e::{Bound, PATIENCE, RawOrigin, Reader, Switch, Unit, figure, read_head, scale};

use super::framed::{WAYS, Way, expect};

pointsman_e2e::for_threads!(fast_server_slow_client, fast_client_slow_server);

const MIB: u64 = 1024 * 1024;
/// A sender that gets rid of less than this in so long has been stopped. The kernel still lets some through now and
/// then, when it asks a closed window whether it has opened.
const STOPPED: Duration = Duration::from_millis(700);
const STOPPED_BYTES: usize = 256 * 1024;
/// How long one write may wait in that time: one over TLS is several.
const WRITE_MAX: Duration = Duration::from_millis(50);
/// One buffer, and the steps of some MiB in which the allocator of each thread takes memory.
const RESIDENT_MAX: Bound = Bound::AtMost(10 * MIB);
/// What four buffers of the kernel may grow to between the two ends: they are the machine's, not the switch's.
const UNDER_WAY_MAX: Bound = Bound::AtMost(64 * MIB);

/// More than can be under way.
fn length() -> u64 {
    scale(80, 1024) * MIB
}

/// Writes until the sender is stopped, which is an error. A write must wait no longer than [`WRITE_MAX`].
fn until_stopped(mut write: impl FnMut(&[u8]) -> Result<usize>) -> impl FnMut(&[u8]) -> Result<usize> {
    let (mut since, mut bytes) = (Instant::now(), 0);
    move |piece| {
        if since.elapsed() >= STOPPED {
            if bytes < STOPPED_BYTES {
                return Err(ErrorKind::TimedOut.into());
            }
            (since, bytes) = (Instant::now(), 0);
        }
        match write(piece) {
            Err(error) if [ErrorKind::WouldBlock, ErrorKind::TimedOut].contains(&error.kind()) => {
                Err(ErrorKind::Interrupted.into())
            }
            outcome => outcome.inspect(|taken| bytes += taken),
        }
    }
}

fn tells(fault: &str, switch: &Switch, before: u64, under_way: u64) {
    figure(fault, under_way, Unit::Bytes("sent before it was stopped"), UNDER_WAY_MAX);
    let grown = switch.allocated_bytes().saturating_sub(before);
    figure(fault, grown, Unit::Bytes("memory that the switch took"), RESIDENT_MAX);
}

fn fast_server_slow_client(threads: usize) {
    for way in WAYS {
        fast_server(way, threads);
    }
}

fn fast_server(way: Way, threads: usize) {
    let fault = format!("fast server, slow client: {}, {threads} threads", way.name);
    let (stopped, has_stopped) = channel();
    let stopped = Mutex::new(stopped);
    let origin = RawOrigin::serving(move |mut socket, _| {
        let Some(_) = read_head(&mut socket) else { return };
        let mut body = way.body(length());
        let head = format!("HTTP/1.1 200 OK\r\n{}\r\n\r\n", body.field());
        socket.write_all(head.as_bytes()).expect("the switch reads");
        socket.set_write_timeout(Some(WRITE_MAX)).expect("an open socket");
        let is_whole = body.send(until_stopped(|piece| socket.write(piece))).expect("the switch stays");
        assert!(!is_whole, "nobody stopped it");
        socket.set_write_timeout(None).expect("an open socket");
        stopped.lock().expect("one connection").send(body.sent()).expect("the test waits");
        body.send(|piece| socket.write(piece)).expect("the switch reads on");
    });
    let site = way.start(threads, |setup| setup.pool_at("standard", "", &[("fast", origin.address())]));
    let mut client = site.client();
    let before = site.switch.allocated_bytes();
    client.send("GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n");
    let under_way = has_stopped.recv_timeout(PATIENCE * 3).expect("the server is stopped");
    tells(&fault, &site.switch, before, under_way);
    // And when the client reads, all of it is there.
    assert_eq!(client.head().word(1), "200");
    assert_eq!(expect(|| client.piece()).expect("a whole body"), length(), "{fault}");
}

fn fast_client_slow_server(threads: usize) {
    for way in WAYS {
        fast_client(way, threads);
    }
}

fn fast_client(way: Way, threads: usize) {
    let fault = format!("fast client, slow server: {}, {threads} threads", way.name);
    let (go, may_go) = channel::<()>();
    let may_go = Mutex::new(may_go);
    let origin = RawOrigin::serving(move |socket, _| {
        let mut reader = Reader::new(socket);
        let Ok(Some(head)) = reader.head() else { return };
        may_go.lock().expect("one connection").recv().expect("the test goes on");
        reader.begin_body(head.request_framing());
        let came = expect(|| reader.piece()).expect("a whole body").to_string();
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{came}", came.len());
        reader.stream().write_all(answer.as_bytes()).expect("the switch reads");
    });
    let site = way.start(threads, |setup| setup.pool_at("standard", "", &[("slow", origin.address())]));
    let mut client = site.client();
    let before = site.switch.allocated_bytes();
    let mut body = way.body(length());
    client.send(format!("PUT / HTTP/1.1\r\nHost: shop.example\r\n{}\r\n\r\n", body.field()));
    client.waits_to_send(WRITE_MAX);
    let is_whole = body.send(until_stopped(|piece| client.send_some(piece))).expect("the switch stays");
    assert!(!is_whole, "{fault}: nobody stopped it");
    tells(&fault, &site.switch, before, body.sent());
    go.send(()).expect("the server waits");
    client.waits_to_send(PATIENCE);
    assert!(body.send(|piece| client.send_some(piece)).expect("the switch reads on"), "{fault}: it stopped");
    let answer = client.response();
    assert_eq!((answer.status(), answer.text()), (200, length().to_string()), "{fault}");
}

//! Back pressure: who is faster than the other end is stopped, and the switch stores nothing for them.

use std::io::{ErrorKind, Write};
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::time::Duration;

use pointsman_e2e::{
    Bound, PATIENCE, Pattern, RawOrigin, Setup, Switch, Unit, figure, read_head, read_some, scale,
};

pointsman_e2e::for_threads!(fast_server_slow_client, fast_client_slow_server);

const MIB: u64 = 1024 * 1024;
/// A sender that gets rid of nothing for so long has been stopped.
const STOPPED: Duration = Duration::from_millis(700);
/// One buffer, and the steps of some MiB in which the allocator of each thread takes memory.
const RESIDENT_MAX: Bound = Bound::AtMost(10 * MIB);
/// What four buffers of the kernel may grow to between the two ends: they are the machine's, not the switch's.
const UNDER_WAY_MAX: Bound = Bound::AtMost(64 * MIB);

/// Sends until nothing more is taken; says how much was by then.
fn send_until_stopped(socket: &mut TcpStream, pattern: &mut Pattern, rest: &mut Vec<u8>, length: u64) {
    socket.set_write_timeout(Some(STOPPED)).expect("an open socket");
    send(socket, pattern, rest, length);
    socket.set_write_timeout(Some(PATIENCE)).expect("an open socket");
}

/// Sends to its end, or until the socket takes nothing in time. `rest` is what was made and not taken.
fn send(socket: &mut TcpStream, pattern: &mut Pattern, rest: &mut Vec<u8>, length: u64) {
    loop {
        if rest.is_empty() {
            if pattern.position() == length {
                return;
            }
            let left = length - pattern.position();
            rest.extend_from_slice(pattern.next(left));
        }
        match socket.write(rest) {
            Ok(taken) => drop(rest.drain(..taken)),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if [ErrorKind::WouldBlock, ErrorKind::TimedOut].contains(&error.kind()) => return,
            Err(error) => panic!("{error}"),
        }
    }
}

fn receive(socket: &mut TcpStream, came: &[u8], length: u64) {
    let (mut pattern, mut space) = (Pattern::default(), vec![0; 256 * 1024]);
    pattern.expect(came);
    while pattern.position() < length {
        let count = read_some(socket, &mut space).expect("more of the body");
        assert!(count > 0, "the end after {} bytes", pattern.position());
        pattern.expect(&space[..count]);
    }
}

fn tells(fault: &str, switch: &Switch, before: u64, under_way: u64) {
    figure(fault, under_way, Unit::Bytes("sent before it was stopped"), UNDER_WAY_MAX);
    let grown = switch.allocated_bytes().saturating_sub(before);
    figure(fault, grown, Unit::Bytes("memory that the switch took"), RESIDENT_MAX);
}

fn fast_server_slow_client(threads: usize) {
    let length = scale(256, 1024) * MIB;
    let fault = format!("fast server, slow client, {threads} threads");
    let (stopped, has_stopped) = channel();
    let stopped = Mutex::new(stopped);
    let origin = RawOrigin::serving(move |mut socket, _| {
        let Some(_) = read_head(&mut socket) else { return };
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
        socket.write_all(head.as_bytes()).expect("the switch reads");
        let (mut pattern, mut rest) = (Pattern::default(), Vec::new());
        send_until_stopped(&mut socket, &mut pattern, &mut rest, length);
        let sent = pattern.position() - rest.len() as u64;
        stopped.lock().expect("one connection").send(sent).expect("the test waits");
        send(&mut socket, &mut pattern, &mut rest, length);
    });
    let switch = Setup::new(threads).pool_at("standard", "", &[("fast", origin.address())]).start();
    let before = switch.allocated_bytes();
    let mut client = TcpStream::connect(switch.address("shop")).expect("it listens");
    client.set_read_timeout(Some(PATIENCE)).expect("an open socket");
    client.write_all(b"GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n").expect("it reads");
    let under_way = has_stopped.recv_timeout(PATIENCE * 3).expect("the server is stopped");
    tells(&fault, &switch, before, under_way);
    // And when the client reads, all of it is there.
    let (_, came) = read_head(&mut client).expect("an answer");
    receive(&mut client, &came, length);
}

fn fast_client_slow_server(threads: usize) {
    let length = scale(256, 1024) * MIB;
    let fault = format!("fast client, slow server, {threads} threads");
    let (go, may_go) = channel::<()>();
    let may_go = Mutex::new(may_go);
    let origin = RawOrigin::serving(move |mut socket, _| {
        let Some((_, came)) = read_head(&mut socket) else { return };
        may_go.lock().expect("one connection").recv().expect("the test goes on");
        receive(&mut socket, &came, length);
        socket.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").expect("the switch reads");
    });
    let switch = Setup::new(threads).pool_at("standard", "", &[("slow", origin.address())]).start();
    let before = switch.allocated_bytes();
    let mut client = TcpStream::connect(switch.address("shop")).expect("it listens");
    let head = format!("PUT / HTTP/1.1\r\nHost: shop.example\r\nContent-Length: {length}\r\n\r\n");
    client.write_all(head.as_bytes()).expect("it reads");
    let (mut pattern, mut rest) = (Pattern::default(), Vec::new());
    send_until_stopped(&mut client, &mut pattern, &mut rest, length);
    tells(&fault, &switch, before, pattern.position() - rest.len() as u64);
    go.send(()).expect("the server waits");
    send(&mut client, &mut pattern, &mut rest, length);
    client.set_read_timeout(Some(PATIENCE)).expect("an open socket");
    let (answer, _) = read_head(&mut client).expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 204"), "{answer}");
}

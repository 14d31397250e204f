//! WebSockets: much through one of them, and many in which nothing moves.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::mpsc::Receiver;
use std::time::Instant;

use pointsman_e2e::h2_wire::flag;
use pointsman_e2e::{
    Authority, Bound, Client, Frame, H2Client, Origin, PATIENCE, Pattern, RawOrigin, Setup, Switch,
    TlsClient, Unit, figure, scale,
};

use super::{Costs, crowd, each_at_most, for_crowds};
use crate::http2_tunnels::{expect, hears, open as open_stream, say};
use crate::tunnels::{handed_over, next, open, tunnelled};
use crate::upgrades::echo;

pointsman_e2e::for_threads!(echoed, echoed_over_tls, idle, idle_over_tls, idle_over_http2);

const MIB: u64 = 1024 * 1024;
const EACH: Unit = Unit::Bytes("resident memory each");
const RESIDENT: Unit = Unit::Bytes("resident at its peak");
const RESIDENT_MAX: Bound = Bound::AtMost(64 * MIB);
/// What a reload changes for tunnels that are yet to be.
const OTHER_LIMITS: &str = "tunnel_idle_ms_max = 5000";
/// Frames of a client and of a server (RFC 6455 section 5.2).
const UP: &[u8; 8] = b"\x82\x82\x00\x00\x00\x00up";
const DOWN: &[u8] = b"\x82\x04down";
/// A Close frame with 1001, going away (RFC 6455 section 7.4.1), and a client's answer to it.
const GOING_AWAY: &[u8] = b"\x88\x02\x03\xe9";
const ANSWER: &[u8; 8] = b"\x88\x82\x01\x02\x03\x04\x02\xeb";
/// How long the sides have to end when the Close frame was said.
const CLOSING_MS: u64 = 2000;
/// Tunnels that share a connection of HTTP/2.
const TUNNELS_EACH: usize = 10;

/// How long tunnels go on in a drain.
fn drain_ms() -> u64 {
    scale(3000, 10_000)
}

fn echoed(threads: usize) {
    let server = tunnelled(echo);
    let switch = Setup::new(threads).pool_at("standard", "", &[("s", server.address())]).start();
    echo_much(&switch, open(switch.client()), &format!("plain, {threads} threads"));
}

fn echoed_over_tls(threads: usize) {
    let (server, authority) = (tunnelled(echo), Authority::new("test CA"));
    let setup = Setup::new(threads).tls(&authority.server(&["shop.example"]), "");
    let switch = setup.pool_at("standard", "", &[("s", server.address())]).start();
    let client = switch.tls_client(&TlsClient::new(&authority), "shop.example").expect("a handshake");
    echo_much(&switch, open(client), &format!("TLS, {threads} threads"));
}

fn echo_much(switch: &Switch, mut client: Client, how: &str) {
    let length = scale(32, 1024) * MIB;
    let (mut sent, mut came) = (Pattern::default(), Pattern::default());
    while sent.position() < length {
        client.send(sent.next(length));
        while came.position() < sent.position() {
            came.expect(&client.piece().expect("open").expect("more"));
        }
    }
    client.finish_sending();
    assert!(client.closes());
    let fault = format!("{} MiB through a WebSocket and back, {how}", length / MIB);
    figure(&fault, switch.peak_resident_bytes(), RESIDENT, RESIDENT_MAX);
}

fn idle(threads: usize) {
    let setup = for_crowds(threads);
    crowd_of(threads, "plain", setup, 5 * 1024, Switch::client);
}

fn idle_over_tls(threads: usize) {
    let authority = Authority::new("test CA");
    let setup = for_crowds(threads).tls(&authority.server(&["shop.example"]), "");
    let config = TlsClient::new(&authority).forgetful();
    let client = |switch: &Switch| switch.tls_client(&config, "shop.example").expect("a handshake");
    crowd_of(threads, "TLS", setup, 16 * 1024, client);
}

/// WebSockets that have each carried something both ways, and do so again afterwards: also behind a reload, and in a
/// drain for their time.
fn crowd_of(threads: usize, how: &str, setup: Setup, bytes_max: u64, client: impl Fn(&Switch) -> Client) {
    let count = crowd(500, 5000, 2);
    let fault = format!("{count} idle WebSockets, {how}, {threads} threads");
    let ((server, handed), origin) = (handed_over(), Origin::new("origin"));
    let setup = of_two_pools(setup, &origin, &server);
    let switch = setup.start();
    let mut other = client(&switch);
    assert_eq!(other.get("/other").status(), 200);
    let costs = Costs::since(&switch);
    let mut open: Vec<(Client, TcpStream)> =
        (0..count).map(|_| (open(client(&switch)), next(&handed))).collect();
    open.iter_mut().for_each(carries_both_ways);
    let each = costs.resident_each(&mut other, count);
    figure(&fault, each, EACH, each_at_most(bytes_max, count, threads));
    open.iter_mut().for_each(carries_both_ways);
    figure(&fault, count as u64, Unit::Count("still carry bytes"), Bound::Exactly(count as u64));
    switch.reload(&setup.limits(OTHER_LIMITS), 2);
    open.iter_mut().for_each(carries_both_ways);
    figure(&fault, count as u64, Unit::Count("carry bytes behind a reload"), Bound::Exactly(count as u64));
    let drain = Drain::begin(&fault, switch);
    open.iter_mut().step_by(TUNNELS_EACH).for_each(carries_both_ways);
    drain.still_carried(count / TUNNELS_EACH);
    let told = |(client, _): &mut (Client, TcpStream)| {
        client.expect_body(GOING_AWAY);
        client.send(ANSWER);
    };
    open.iter_mut().for_each(told);
    drain.told(count);
    let mut answered = 0;
    for (client, socket) in &mut open {
        answered += u64::from(hears_the_answer(socket));
        assert_eq!(client.everything(), "", "its end, and nothing before it");
    }
    drop(open);
    drain.ended(answered, count);
}

/// Tunnels go to a server of their own, and have their time in a drain.
fn of_two_pools(setup: Setup, origin: &Origin, server: &RawOrigin) -> Setup {
    let setup = setup.rules("if (upgrade == \"websocket\") { routeTo(chat); }").pool("standard", &[origin]);
    let setup = setup.top(&format!("tunnel_drain_ms_max = {}", drain_ms()));
    // Longer than the kernel takes to try again where the server's queue overflows after all.
    setup.pool_at("chat", "connect_ms_max = 60000", &[("c", server.address())])
}

/// The same, several on each connection of HTTP/2.
fn idle_over_http2(threads: usize) {
    let count = crowd(500, 5000, 2) / TUNNELS_EACH * TUNNELS_EACH;
    let fault = format!("{count} idle WebSockets, HTTP/2, {threads} threads");
    let ((server, handed), origin) = (handed_over(), Origin::new("origin"));
    // Booked are 332 KiB for each.
    let setup = for_crowds(threads).top("buffer_bytes_max = 4294967296");
    let setup = of_two_pools(setup, &origin, &server);
    let switch = setup.start();
    let mut other = switch.client();
    assert_eq!(other.get("/other").status(), 200);
    let costs = Costs::since(&switch);
    let mut shared: Vec<_> = (0..count / TUNNELS_EACH).map(|_| Shared::open(&switch, &handed)).collect();
    shared.iter_mut().for_each(|shared| shared.carries_both_ways(TUNNELS_EACH));
    let each = costs.resident_each(&mut other, count);
    figure(&fault, each, EACH, each_at_most(12 * 1024, count, threads));
    shared.iter_mut().for_each(|shared| shared.carries_both_ways(TUNNELS_EACH));
    figure(&fault, count as u64, Unit::Count("still carry bytes"), Bound::Exactly(count as u64));
    switch.reload(&setup.limits(OTHER_LIMITS), 2);
    shared.iter_mut().for_each(|shared| shared.carries_both_ways(TUNNELS_EACH));
    figure(&fault, count as u64, Unit::Count("carry bytes behind a reload"), Bound::Exactly(count as u64));
    let drain = Drain::begin(&fault, switch);
    shared.iter_mut().for_each(|shared| shared.carries_both_ways(1));
    drain.still_carried(count / TUNNELS_EACH);
    shared.iter_mut().for_each(Shared::answers_the_close);
    drain.told(count);
    let answered = shared.into_iter().map(Shared::ends).sum();
    drain.ended(answered, count);
}

/// Tunnels that share a connection.
struct Shared {
    client: H2Client,
    sockets: Vec<TcpStream>,
    /// What has come of each.
    came: Vec<Vec<u8>>,
}

impl Shared {
    fn open(switch: &Switch, handed: &Receiver<TcpStream>) -> Self {
        let mut client = H2Client::begin(switch.client());
        let open = |stream| {
            open_stream(&mut client, stream);
            next(handed)
        };
        let sockets = streams().map(open).collect();
        Self { client, sockets, came: vec![Vec::new(); TUNNELS_EACH] }
    }

    /// The first of them do.
    fn carries_both_ways(&mut self, count: usize) {
        let tunnels = streams().zip(&mut self.sockets).zip(&mut self.came);
        for ((stream, socket), came) in tunnels.take(count) {
            say(&mut self.client, stream, UP);
            expect(socket, UP);
            socket.write_all(DOWN).expect("open");
            came.extend_from_slice(DOWN);
            hears(&mut self.client, stream, came);
        }
    }

    fn answers_the_close(&mut self) {
        for (stream, came) in streams().zip(&mut self.came) {
            came.extend_from_slice(GOING_AWAY);
            hears(&mut self.client, stream, came);
            say(&mut self.client, stream, ANSWER);
        }
    }

    /// How many of the servers heard the answer. Each client had nothing more than its end.
    fn ends(mut self) -> u64 {
        let answered = self.sockets.iter_mut().map(|socket| u64::from(hears_the_answer(socket))).sum();
        for (stream, came) in streams().zip(&self.came) {
            assert_eq!(&self.client.answer(stream).body, came);
            self.client.send(&Frame::data(stream, flag::END_STREAM, [])).unwrap_or_default();
        }
        assert_eq!(self.client.ending(), Some(0));
        answered
    }
}

/// A drain of tunnels that have some time for it.
struct Drain<'f> {
    fault: &'f str,
    switch: Switch,
    began: Instant,
}

impl<'f> Drain<'f> {
    fn begin(fault: &'f str, switch: Switch) -> Self {
        let began = Instant::now();
        switch.signal("TERM");
        switch.wait_for_line("draining connections=");
        Self { fault, switch, began }
    }

    fn ms(&self) -> u64 {
        self.began.elapsed().as_millis().try_into().expect("some seconds")
    }

    fn figure(&self, figure: u64, what: &'static str, bound: Bound) {
        pointsman_e2e::figure(self.fault, figure, Unit::Count(what), bound);
    }

    fn still_carried(&self, count: usize) {
        self.figure(count as u64, "carry bytes while it drains", Bound::Exactly(count as u64));
    }

    /// Everybody had the Close frame, not before its time.
    fn told(&self, count: usize) {
        assert!(self.ms() >= drain_ms(), "after {} ms", self.ms());
        self.figure(count as u64, "told to go with 1001", Bound::Exactly(count as u64));
        self.figure(self.ms(), "milliseconds to the last of them", Bound::AtMost(drain_ms() + CLOSING_MS));
    }

    fn ended(mut self, answered: u64, count: usize) {
        self.figure(answered, "answers at their servers", Bound::Exactly(count as u64));
        let status = self.switch.wait_for_exit();
        self.figure(u64::from(status == Some(0)), "process ended with 0", Bound::Exactly(1));
        // Nobody waits for anything else.
        let most = drain_ms() + 2 * CLOSING_MS;
        self.figure(self.ms(), "milliseconds to the end of the process", Bound::AtMost(most));
    }
}

/// Whether a client's answer to the Close frame comes to its server, which then ends.
fn hears_the_answer(socket: &mut TcpStream) -> bool {
    let mut said = [0; ANSWER.len()];
    let hears = socket.read_exact(&mut said).is_ok() && said == *ANSWER;
    // The switch may have had enough of it.
    drop(socket.write_all(GOING_AWAY));
    drop(socket.shutdown(Shutdown::Write));
    hears
}

fn streams() -> impl Iterator<Item = u32> {
    (1..).step_by(2).take(TUNNELS_EACH)
}

fn carries_both_ways((client, socket): &mut (Client, TcpStream)) {
    socket.set_read_timeout(Some(PATIENCE)).expect("an open socket");
    client.send(UP);
    expect(socket, UP);
    socket.write_all(DOWN).expect("open");
    client.expect_body(DOWN);
}

//! WebSockets: much through one of them, and many in which nothing moves.

use std::io::{Read, Write};
use std::net::TcpStream;

use pointsman_e2e::{
    Authority, Bound, Client, H2Client, Origin, PATIENCE, Pattern, RawOrigin, Setup, Switch, TlsClient, Unit,
    figure, scale,
};

use super::{crowd, each_at_most, for_crowds, resident_each};
use crate::http2_tunnels::{expect, hears, open as open_stream, say};
use crate::tunnels::{handed_over, next, open, tunnelled};
use crate::upgrades::echo;

pointsman_e2e::for_threads!(echoed, echoed_over_tls, idle, idle_over_tls, idle_over_http2);

const MIB: u64 = 1024 * 1024;
const EACH: Unit = Unit::Bytes("resident memory each");
const RESIDENT: Unit = Unit::Bytes("resident at its peak");
const RESIDENT_MAX: Bound = Bound::AtMost(64 * MIB);
/// Tunnels that share a connection of HTTP/2.
const TUNNELS_EACH: usize = 10;

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

/// WebSockets that have each carried something both ways, and do so again afterwards.
fn crowd_of(threads: usize, how: &str, setup: Setup, bytes_max: u64, client: impl Fn(&Switch) -> Client) {
    let count = crowd(500, 5000, 2);
    let fault = format!("{count} idle WebSockets, {how}, {threads} threads");
    let ((server, handed), origin) = (handed_over(), Origin::new("origin"));
    let switch = of_two_pools(setup, &origin, &server);
    let mut other = client(&switch);
    assert_eq!(other.get("/other").status(), 200);
    let before = switch.allocated_bytes();
    let mut open: Vec<(Client, TcpStream)> =
        (0..count).map(|_| (open(client(&switch)), next(&handed))).collect();
    open.iter_mut().for_each(carries_both_ways);
    let each = resident_each(&switch, &mut other, before, count);
    figure(&fault, each, EACH, each_at_most(bytes_max, count, threads));
    open.iter_mut().for_each(carries_both_ways);
    figure(&fault, count as u64, Unit::Count("still carry bytes"), Bound::Exactly(count as u64));
}

/// Tunnels go to a server of their own.
fn of_two_pools(setup: Setup, origin: &Origin, server: &RawOrigin) -> Switch {
    let setup = setup.rules("if (upgrade == \"websocket\") { routeTo(chat); }").pool("standard", &[origin]);
    // Longer than the kernel takes to try again where the server's queue overflows after all.
    setup.pool_at("chat", "connect_ms_max = 60000", &[("c", server.address())]).start()
}

/// The same, several on each connection of HTTP/2.
fn idle_over_http2(threads: usize) {
    let count = crowd(500, 5000, 2) / TUNNELS_EACH * TUNNELS_EACH;
    let fault = format!("{count} idle WebSockets, HTTP/2, {threads} threads");
    let ((server, handed), origin) = (handed_over(), Origin::new("origin"));
    // Booked are 332 KiB for each.
    let setup = for_crowds(threads).top("buffer_bytes_max = 4294967296");
    let switch = of_two_pools(setup, &origin, &server);
    let mut other = switch.client();
    assert_eq!(other.get("/other").status(), 200);
    let before = switch.allocated_bytes();
    let mut clients: Vec<_> = (0..count / TUNNELS_EACH).map(|_| H2Client::begin(switch.client())).collect();
    let mut sockets = Vec::new();
    for client in &mut clients {
        for stream in streams() {
            open_stream(client, stream);
            sockets.push(next(&handed));
        }
    }
    let mut carry_both_ways = |all: &[u8]| {
        for (client, sockets) in clients.iter_mut().zip(sockets.chunks_mut(TUNNELS_EACH)) {
            for (stream, socket) in streams().zip(sockets) {
                say(client, stream, b"up");
                expect(socket, b"up");
                socket.write_all(b"down").expect("open");
                hears(client, stream, all);
            }
        }
    };
    carry_both_ways(b"down");
    let each = resident_each(&switch, &mut other, before, count);
    figure(&fault, each, EACH, each_at_most(12 * 1024, count, threads));
    carry_both_ways(b"downdown");
    figure(&fault, count as u64, Unit::Count("still carry bytes"), Bound::Exactly(count as u64));
}

fn streams() -> impl Iterator<Item = u32> {
    (1..).step_by(2).take(TUNNELS_EACH)
}

fn carries_both_ways((client, socket): &mut (Client, TcpStream)) {
    socket.set_read_timeout(Some(PATIENCE)).expect("an open socket");
    client.send("up");
    let mut said = [0; 2];
    socket.read_exact(&mut said).expect("open");
    socket.write_all(b"down").expect("open");
    client.expect_body(b"down");
    assert_eq!(&said, b"up");
}

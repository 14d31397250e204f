//! Clients and servers of gRPC and WebSocket that nobody here wrote: past nginx, which shows that they are right, and
//! past the switch.

use std::net::SocketAddr;

use pointsman_e2e::{
    Front, Peer, RawOrigin, SPEAKS_WEBSOCKET, Setup, installed, peers_installed, read_head, run_peer,
};

/// How many cases each client has.
const GRPC_CASES: usize = 15;
const WEBSOCKET_CASES: [(&str, usize); 2] = [("ws_client.py", 14), ("ws_client.js", 11)];
const WEBSOCKET_SERVERS: [&str; 2] = ["ws_server.py", "ws_server.js"];

const WEBSOCKET_OVER_HTTP2: (&str, usize) = ("ws_h2_client.js", 13);

pointsman_e2e::for_threads!(websocket, websocket_over_http2, grpc);

/// HTTP/2 on both sides.
fn grpc(threads: usize) {
    if !peers_installed() {
        return;
    }
    let server = Peer::serving("grpc_server.py");
    let front = Front::switch_with(Setup::new(threads), "protocol = \"h2\"", server.address());
    grpc_client(front.http2(), &front, &server, false);
    grpc_client(front.tls(), &front, &server, true);
}

fn websocket(threads: usize) {
    if !SPEAKS_WEBSOCKET || !peers_installed() {
        return;
    }
    for script in WEBSOCKET_SERVERS {
        let server = Peer::serving(script);
        clients_of_websocket(&Front::switch(Setup::new(threads), server.address()), &server);
    }
}

/// Which nginx does not speak.
fn websocket_over_http2(threads: usize) {
    if !peers_installed() {
        return;
    }
    for script in WEBSOCKET_SERVERS {
        let server = Peer::serving(script);
        let front = Front::switch(Setup::new(threads), server.address());
        clients_of(&[WEBSOCKET_OVER_HTTP2], &front, &server);
    }
}

#[test]
fn websocket_past_nginx() {
    if !installed("nginx") || !peers_installed() {
        return;
    }
    for script in WEBSOCKET_SERVERS {
        let server = Peer::serving(script);
        clients_of_websocket(&Front::nginx(server.address()), &server);
    }
}

#[test]
fn grpc_past_nginx() {
    if !installed("nginx") || !peers_installed() {
        return;
    }
    let server = Peer::serving("grpc_server.py");
    let front = Front::nginx(server.address());
    grpc_client(front.http2(), &front, &server, false);
    grpc_client(front.tls(), &front, &server, true);
}

/// The constant that turns tests on says what the binary does.
#[test]
fn the_switch_upgrades_as_tests_say() {
    let server = RawOrigin::serving(|mut socket, _| {
        use std::io::Write as _;
        if read_head(&mut socket).is_some_and(|(head, _)| head.to_ascii_lowercase().contains("upgrade: ")) {
            // What the key makes of it (RFC 6455 section 4.2.2).
            let answer = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                          Sec-WebSocket-Accept: ICX+Yqv66kxgM0FcWaLWlFLwTAI=\r\n\r\n";
            drop(socket.write_all(answer.as_bytes()));
        } else {
            drop(socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"));
        }
    });
    let switch = Setup::new(1).pool_at("standard", "", &[("server", server.address())]).start();
    let mut client = switch.client();
    let upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                   Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n";
    client.send(format!("GET / HTTP/1.1\r\nHost: shop.example\r\n{upgrade}\r\n"));
    assert_eq!(client.head().word(1) == "101", SPEAKS_WEBSOCKET);
}

fn clients_of_websocket(front: &Front, server: &Peer) {
    clients_of(&WEBSOCKET_CASES, front, server);
}

/// Each client, in plain text and under TLS.
fn clients_of(clients: &[(&str, usize)], front: &Front, server: &Peer) {
    for (script, cases) in clients {
        let authority = front.authority_file();
        for (address, authority) in [(front.plain(), None), (front.tls(), Some(authority.as_path()))] {
            let done = run_peer(script, address, authority);
            let done =
                done.unwrap_or_else(|said| panic!("{script}: {said}\n{}\n{}", server.said(), front.said()));
            assert_eq!(done, *cases, "{script}");
        }
    }
}

fn grpc_client(address: SocketAddr, front: &Front, server: &Peer, is_tls: bool) {
    let authority = is_tls.then(|| front.authority_file());
    let done = run_peer("grpc_client.py", address, authority.as_deref());
    let done = done.unwrap_or_else(|said| panic!("{said}\n{}\n{}", server.said(), front.said()));
    assert_eq!(done, GRPC_CASES);
}

//! WebSockets over HTTP/2 (RFC 8441): a stream is a tunnel, and to its server it is what it is over HTTP/1.1.

mod ends;
mod handshakes;
mod limits;
mod windows;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};

use pointsman_e2e::{
    Authority, Field, H2Client, Origin, PATIENCE, RawOrigin, Setup, Switch, TlsClient, ok, read_head,
};

use crate::http2::begin;
use crate::tunnels::{handed_over, next, switching, tunnelled};
use crate::upgrades::echo;

pointsman_e2e::for_threads!(echoes, echoes_over_tls, several_at_once, early_bytes_wait_for_the_answer);

/// What a handshake of WebSocket has in any case.
pub(crate) const VERSION: (&str, &str) = ("sec-websocket-version", "13");

fn setup(threads: usize, server: &RawOrigin) -> Setup {
    Setup::new(threads).pool_at("standard", "", &[("s", server.address())])
}

/// A client over TLS.
fn begin_tls(switch: &Switch, authority: &Authority) -> H2Client {
    let trust = TlsClient::new(authority).alpn(&["h2"]);
    H2Client::begin(switch.tls_client(&trust, "shop.example").expect("a handshake"))
}

/// Asks for a WebSocket on a stream, and gets one.
pub(crate) fn open(client: &mut H2Client, stream: u32) {
    client.connect(stream, "/chat", &[VERSION]);
    is_open(client, stream);
}

fn is_open(client: &mut H2Client, stream: u32) {
    client.wait("an answer", |client| client.seen(stream).status() != 0);
    let seen = client.seen(stream);
    assert_eq!((seen.status(), seen.is_whole), (200, false), "{seen:?}");
}

/// Waits until all that came of a stream is this.
pub(crate) fn hears(client: &mut H2Client, stream: u32, all: &[u8]) {
    client.wait("bytes of a tunnel", |client| client.seen(stream).body.len() >= all.len());
    assert_eq!(client.seen(stream).body, all);
}

/// Sends into a tunnel.
pub(crate) fn say(client: &mut H2Client, stream: u32, bytes: &[u8]) {
    client.send_content(stream, 0, bytes).expect("there is leave");
}

/// Reads what comes to a server.
pub(crate) fn expect(mut socket: &TcpStream, bytes: &[u8]) {
    let mut came = vec![0; bytes.len()];
    socket.read_exact(&mut came).expect("open");
    assert_eq!(came, bytes);
}

/// The values of a field of an answer.
fn values(fields: &[Field], name: &str) -> Vec<String> {
    let of_name = fields.iter().filter(|(other, _)| other == name.as_bytes());
    of_name.map(|(_, value)| String::from_utf8_lossy(value).into_owned()).collect()
}

/// Servers that hand out the head of each request with its connection, and answer nothing.
fn asked() -> (RawOrigin, Receiver<(String, TcpStream)>) {
    let (hand, handed) = channel();
    let hand = Mutex::new(hand);
    let server = RawOrigin::serving(move |mut socket, _| {
        if let Some((head, early)) = read_head(&mut socket) {
            assert!(early.is_empty(), "bytes came before the answer");
            // The test may have ended.
            hand.lock().expect("no panic under the lock").send((head, socket)).unwrap_or_default();
        }
    });
    (server, handed)
}

fn echoes(threads: usize) {
    let server = tunnelled(echo);
    let switch = setup(threads, &server).start();
    echo_much(begin(&switch));
}

fn echoes_over_tls(threads: usize) {
    let (authority, server) = (Authority::new("test CA"), tunnelled(echo));
    let switch = setup(threads, &server).tls(&authority.server(&["shop.example"]), "").start();
    echo_much(begin_tls(&switch, &authority));
}

/// Pieces of many sizes, each of which comes back before the next goes.
fn echo_much(mut client: H2Client) {
    open(&mut client, 1);
    let mut all = Vec::new();
    for size in [1, 2, 125, 126, 16_384, 16_385, 65_536, 200_000, 1] {
        let from = all.len();
        all.extend((from..from + size).map(|at| u8::try_from(at % 251).expect("a byte")));
        say(&mut client, 1, &all[from..]);
        hears(&mut client, 1, &all);
    }
    client.send_content(1, 1, b"last").expect("there is leave");
    all.extend(b"last");
    assert!(client.answer(1).body == all, "the end comes behind all bytes");
    assert_eq!(client.goaway(), None);
}

/// Each stream of a connection is routed by itself, whether it becomes a tunnel or not.
fn several_at_once(threads: usize) {
    let (origin, (chat, chats), (news, newses)) =
        (Origin::answering("origin", ok), handed_over(), handed_over());
    let rules = "if (upgrade == \"websocket\" && path == \"/news\") { routeTo(news); }
                 if (upgrade == \"websocket\") { routeTo(chat); }";
    let setup = Setup::new(threads).rules(rules).pool("standard", &[&origin]);
    let setup = setup.pool_at("chat", "", &[("c", chat.address())]);
    let switch = setup.pool_at("news", "", &[("n", news.address())]).start();
    let mut client = begin(&switch);
    let mut sockets = Vec::new();
    for (stream, path, handed) in
        [(1, "/chat", &chats), (5, "/news", &newses), (9, "/chat", &chats), (13, "/news", &newses)]
    {
        client.connect(stream, path, &[VERSION]);
        is_open(&mut client, stream);
        sockets.push((stream, next(handed)));
        assert_eq!(client.fetch(stream + 2, "/").text(), "origin");
    }
    for (stream, socket) in &sockets {
        let text = format!("from stream {stream}");
        say(&mut client, *stream, text.as_bytes());
        expect(socket, text.as_bytes());
    }
    for (stream, mut socket) in sockets.iter().map(|(stream, socket)| (*stream, socket)).rev() {
        let text = format!("to stream {stream}");
        socket.write_all(text.as_bytes()).expect("open");
        hears(&mut client, stream, text.as_bytes());
    }
    // One that ends leaves the others as they are.
    let (stream, socket) = sockets.remove(1);
    drop(socket);
    assert!(client.answer(stream).is_whole);
    for (stream, mut socket) in sockets.iter().map(|(stream, socket)| (*stream, socket)) {
        say(&mut client, stream, b", still");
        expect(socket, b", still");
        socket.write_all(b", still").expect("open");
        hears(&mut client, stream, format!("to stream {stream}, still").as_bytes());
    }
    assert_eq!((origin.count(), client.goaway()), (4, None));
}

/// What a client says before the server has agreed is for nobody yet. What the server says with its 101 comes behind it.
fn early_bytes_wait_for_the_answer(threads: usize) {
    let (server, handed) = asked();
    let switch = setup(threads, &server).start();
    let mut client = begin(&switch);
    client.connect(1, "/chat", &[VERSION]);
    say(&mut client, 1, b"with it,");
    let (head, mut socket) = next(&handed);
    say(&mut client, 1, b" behind it");
    client.turn();
    socket.set_read_timeout(Some(std::time::Duration::from_millis(50))).expect("an open socket");
    socket.read(&mut [0]).expect_err("too early");
    socket.set_read_timeout(Some(PATIENCE)).expect("an open socket");
    socket.write_all((switching(&head) + "hello").as_bytes()).expect("open");
    is_open(&mut client, 1);
    hears(&mut client, 1, b"hello");
    expect(&socket, b"with it, behind it");
}

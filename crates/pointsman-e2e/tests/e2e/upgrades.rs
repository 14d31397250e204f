//! Handshakes that change the protocol, by the table in `testdata/upgrades/handshakes.txt`.

use std::fmt::Write as _;
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};

use pointsman_e2e::{Client, RawOrigin, Setup, read_head, read_lines, read_some, testdata, unescape, until};

pointsman_e2e::for_threads!(table, routed_by_the_protocol, none_allowed, a_refused_version_is_told);

pub(crate) const KEY: &str = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
pub(crate) const WEBSOCKET: &str =
    "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n";
pub(crate) const SWITCHING: &str = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n";
const ACCEPTED: &str = "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n";
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n";
/// In how many pieces a request comes at the most.
const PIECES_MAX: usize = 60;

struct Row {
    place: String,
    outcome: String,
    asked: String,
    request: Vec<u8>,
    answer: Vec<u8>,
}

fn rows() -> Vec<Row> {
    let row = |(line, text): (usize, String)| {
        let columns: Vec<&str> = text.split(" | ").collect();
        let [outcome, asked, what, request, answer] = columns[..] else { panic!("line {line}: `{text}`") };
        let request = request.replace("{ws}", WEBSOCKET).replace("{key}", KEY);
        let request = request.replacen("\\r\\n", "\r\nHost: shop.example\r\n", 1);
        let answer = answer.replace("{101}", SWITCHING).replace("{ok}", ACCEPTED).replace("{200}", OK);
        Row {
            place: format!("line {line}, {what}"),
            outcome: outcome.to_owned(),
            asked: asked.to_owned(),
            request: unescape(&format!("{request}\\r\\n")),
            answer: unescape(&format!("{answer}\\r\\n")),
        }
    };
    read_lines(&testdata("upgrades/handshakes.txt")).into_iter().map(row).collect()
}

/// What a server of this test is to answer, and what it was asked.
#[derive(Default)]
struct Shared {
    answer: Mutex<Vec<u8>>,
    heads: Mutex<Vec<String>>,
}

/// A server that answers as it is told, and sends back whatever comes behind a 101.
fn server(shared: Arc<Shared>) -> RawOrigin {
    RawOrigin::serving(move |mut socket, _| {
        while let Some((head, early)) = read_head(&mut socket) {
            assert!(early.is_empty(), "bytes came before the answer");
            shared.heads.lock().expect("no panic under the lock").push(head);
            let answer = shared.answer.lock().expect("no panic under the lock").clone();
            if socket.write_all(&answer).is_err() {
                return;
            }
            if answer.windows(5).any(|part| part == b" 101 ") {
                return echo(&mut socket);
            }
        }
    })
}

/// Sends back what comes, to its end.
pub(crate) fn echo(socket: &mut TcpStream) {
    let mut space = vec![0; 64 * 1024];
    while let Ok(count @ 1..) = read_some(socket, &mut space) {
        if socket.write_all(&space[..count]).is_err() {
            return;
        }
    }
}

fn table(threads: usize) {
    let rows = rows();
    assert!(rows.len() >= 40, "{} rows", rows.len());
    let shared = Arc::new(Shared::default());
    let server = server(shared.clone());
    let setup = Setup::new(threads).listener("upgrades = [\"websocket\", \"foo/2\", \"bar\"]");
    let switch = setup.pool_at("standard", "", &[("s", server.address())]).start();
    let mut failures = String::new();
    for row in &rows {
        *shared.answer.lock().expect("no panic under the lock") = row.answer.clone();
        for in_pieces in [false, true] {
            shared.heads.lock().expect("no panic under the lock").clear();
            if let Err(failure) = play(row, in_pieces, switch.address("shop"), &shared) {
                let how = if in_pieces { "in pieces" } else { "at once" };
                writeln!(failures, "{}, {how}: {failure}", row.place).expect("memory");
            }
        }
    }
    assert!(failures.is_empty(), "{failures}");
}

fn play(row: &Row, in_pieces: bool, address: SocketAddr, shared: &Shared) -> Result<(), String> {
    let mut client = Client::plain(address);
    let piece = if in_pieces { row.request.len().div_ceil(PIECES_MAX) } else { row.request.len() };
    for piece in row.request.chunks(piece) {
        client.send(piece);
    }
    let head = client.head();
    let got = if head.word(1) == "101" { "tunnel" } else { head.word(1) };
    let heads = shared.heads.lock().expect("no panic under the lock").clone();
    if got != row.outcome {
        return Err(format!("the client gets {got}, not {}: {head:?}, the server {heads:?}", row.outcome));
    }
    let asked = asked(&heads)?;
    if asked != row.asked {
        return Err(format!("the server sees {asked}, not {}: {heads:?}", row.asked));
    }
    if row.request.starts_with(b"HEAD ") {
        return Ok(());
    }
    if got != "tunnel" {
        return client.rest().map(|_| ()).map_err(|error| error.to_string());
    }
    let wanted = unescaped_field(&row.answer, "upgrade: ");
    if head.all("upgrade") != [wanted.as_str()] || head.all("connection") != ["Upgrade"] {
        return Err(format!("the client sees {head:?}"));
    }
    client.begin_tunnel();
    client.send("GET / HTTP/1.1\r\n\r\n");
    client.expect_body(b"GET / HTTP/1.1\r\n\r\n");
    client.finish_sending();
    client.closes().then_some(()).ok_or_else(|| "the end does not come back".to_owned())
}

/// What the server was asked to change to.
fn asked(heads: &[String]) -> Result<String, String> {
    let [head] = heads else {
        return if heads.is_empty() { Ok("nothing".to_owned()) } else { Err(format!("{heads:?}")) };
    };
    let fields = |name: &str| {
        let lines = head.lines().filter(|line| line.to_ascii_lowercase().starts_with(name));
        lines.map(|line| line[name.len()..].to_owned()).collect::<Vec<_>>()
    };
    match (&fields("connection: ")[..], &fields("upgrade: ")[..]) {
        ([], []) => Ok("plain".to_owned()),
        ([connection], [upgrade]) if connection == "Upgrade" => Ok(upgrade.clone()),
        both => Err(format!("{both:?}")),
    }
}

fn unescaped_field(answer: &[u8], name: &str) -> String {
    let text = String::from_utf8_lossy(answer);
    let line = text.lines().find(|line| line.to_ascii_lowercase().starts_with(name));
    line.map(|line| line[name.len()..].to_owned()).unwrap_or_default()
}

/// Rules see which protocols a request asks for, in small letters, whether they may be changed to or not.
fn routed_by_the_protocol(threads: usize) {
    let (chat, plain) = (Arc::new(Shared::default()), Arc::new(Shared::default()));
    *chat.answer.lock().expect("no panic under the lock") =
        format!("{SWITCHING}Upgrade: websocket\r\n{ACCEPTED}\r\n").into();
    *plain.answer.lock().expect("no panic under the lock") = format!("{OK}\r\n").into();
    let (chat_server, plain_server) = (server(chat), server(plain));
    let rules = "R1: if (upgrade == \"websocket\") { routeTo(chat); }\n\
                 R2: if (upgrade == \"h2c\") { reject(403, \"no h2c\"); }";
    let setup = Setup::new(threads).rules(rules).pool_at("standard", "", &[("s", plain_server.address())]);
    let switch = setup.pool_at("chat", "", &[("c", chat_server.address())]).start();
    let mut client = switch.client();
    assert_eq!(client.get("/").status(), 200);
    let h2c = "Connection: Upgrade\r\nUpgrade: h2c\r\n";
    assert_eq!(client.ask("GET", "/", h2c).text(), "no h2c\n");
    assert_eq!(client.ask("GET", "/", "Upgrade: websocket\r\n").status(), 200);
    client.send(format!(
        "GET / HTTP/1.1\r\nHost: shop.example\r\n{}{KEY}\r\n",
        WEBSOCKET.replace("web", "WEB")
    ));
    assert_eq!(client.head().word(1), "101");
    drop(client);
    let line = switch.log_entry("the tunnel", |line| line["status"] == 101);
    assert_eq!((line["rule"].as_str(), line["pool"].as_str()), (Some("R1"), Some("chat")), "{line}");
}

/// With an empty list a handshake is a request like any other, however it looks.
fn none_allowed(threads: usize) {
    let shared = Arc::new(Shared::default());
    *shared.answer.lock().expect("no panic under the lock") = format!("{OK}\r\n").into();
    let server = server(shared.clone());
    let setup = Setup::new(threads).listener("upgrades = []");
    let switch = setup.pool_at("standard", "", &[("s", server.address())]).start();
    let mut client = switch.client();
    for fields in [format!("{WEBSOCKET}{KEY}"), WEBSOCKET.to_owned()] {
        assert_eq!(client.ask("GET", "/chat", &fields).status(), 200);
    }
    let heads = shared.heads.lock().expect("no panic under the lock").clone();
    assert_eq!(heads.len(), 2);
    for head in heads {
        assert_eq!(asked(&[head]), Ok("plain".to_owned()));
    }
}

/// Which version there is stands in the answer (RFC 6455 section 4.2.2).
fn a_refused_version_is_told(threads: usize) {
    let server = RawOrigin::silent();
    let switch = Setup::new(threads).pool_at("standard", "", &[("s", server.address())]).start();
    let fields = WEBSOCKET.replace("13", "8") + KEY;
    let answer = switch.client().ask("GET", "/chat", &fields);
    assert_eq!((answer.status(), answer.text().as_str()), (426, "WebSocket version not supported\n"));
    assert_eq!(answer.head.field("sec-websocket-version"), Some("13"));
    assert_eq!(answer.head.field("upgrade"), Some("websocket"));
    assert_eq!(answer.head.all("connection"), ["Upgrade", "close"]);
    let refused = [("listener", "shop"), ("reason", "unsupported")];
    // The answer is there before it is counted.
    until("it is counted", || {
        ((switch.metric("pointsman_refusals_total", &refused) - 1.0).abs() < 0.1).then_some(())
    });
    assert_eq!(server.connections(), 0);
}

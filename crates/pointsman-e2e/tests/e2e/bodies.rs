//! Bodies too large or too slow for a transcript.

use std::io::{Read, Write};
use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use pointsman_e2e::{Authority, Client, Origin, RawOrigin, Setup, Switch, Then, TlsClient, read_head, until};

pointsman_e2e::for_threads!(
    large_both_ways,
    large_over_tls,
    backpressure,
    streamed_over_tls,
    many_chunks,
    chunk_extensions,
    early_answer_to_a_large_body,
    early_answer_to_a_body_that_was_handed_over,
    slow_reader,
    stray_bytes_behind_the_last_request,
    client_takes_nothing,
    server_takes_nothing
);

const LARGE: usize = 8 * 1024 * 1024;

/// 8 MiB each way, by length and by chunks.
fn large_both_ways(threads: usize) {
    let origin = Origin::answering("origin", mirror);
    let switch = Setup::new(threads).pool("standard", &[&origin]).start();
    large(&mut switch.client(), &origin);
}

/// The same through TLS.
fn large_over_tls(threads: usize) {
    let authority = Authority::new("test CA");
    let origin = Origin::answering("origin", mirror);
    let setup = Setup::new(threads).tls(&authority.server(&["shop.example"]), "");
    let switch = setup.pool("standard", &[&origin]).start();
    let client = switch.tls_client(&TlsClient::new(&authority), "shop.example");
    large(&mut client.expect("a handshake"), &origin);
}

fn large(client: &mut Client, origin: &Origin) {
    let body = noise(LARGE);
    for chunked in [false, true] {
        let (head, sent) = if chunked {
            ("Transfer-Encoding: chunked".to_owned(), chunks(&body, 65_521))
        } else {
            (format!("Content-Length: {LARGE}"), body.clone())
        };
        client.send(format!("POST /{chunked} HTTP/1.1\r\nHost: shop.example\r\n{head}\r\n\r\n"));
        client.send(sent);
        let answer = client.response();
        assert_eq!(answer.status(), 200);
        // Not assert_eq: nobody wants to read 8 MiB.
        assert!(origin.last().body.bytes == body, "the request's body changed on its way");
        assert!(answer.body.bytes == body, "the answer's body changed on its way");
    }
}

/// Answers with the body it got, framed the same way.
fn mirror(exchange: &mut pointsman_e2e::Exchange<'_>) -> Then {
    let chunked = exchange.head.field("transfer-encoding").is_some();
    let body = exchange.body().bytes;
    if chunked {
        exchange.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        exchange.send(chunks(&body, 100_003));
    } else {
        exchange.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len()));
        exchange.send(body);
    }
    Then::KeepAlive
}

/// A client that does not read stops its own answer, and nobody else's; when it reads, all is there.
fn backpressure(threads: usize) {
    let body = noise(LARGE);
    let answer = [format!("HTTP/1.1 200 OK\r\nContent-Length: {LARGE}\r\n\r\n").as_bytes(), &body].concat();
    let origin = Origin::saying("origin", answer, Then::KeepAlive);
    let other = Origin::new("other");
    let rules = "if (path == \"/other\") { routeTo(quick); }";
    let switch =
        Setup::new(threads).rules(rules).pool("standard", &[&origin]).pool("quick", &[&other]).start();
    let mut slow = switch.client();
    slow.send("GET /large HTTP/1.1\r\nHost: shop.example\r\n\r\n");
    let head = slow.head();
    assert_eq!(head.word(1), "200");
    for _ in 0..20 {
        assert_eq!(switch.get("/other").server(), "other");
    }
    assert!(slow.rest().expect("a whole body").bytes == body, "the answer's body changed on its way");
}

/// Over TLS, too, every part is there before the next is sent, both ways.
fn streamed_over_tls(threads: usize) {
    let authority = Authority::new("test CA");
    let (go, may_go) = channel::<()>();
    let may_go = Mutex::new(may_go);
    let origin = Origin::answering("origin", move |exchange| {
        let may_go = may_go.lock().expect("one exchange at a time");
        exchange.body();
        exchange.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        for part in ["one", "two", "three"] {
            exchange.send(format!("{:x}\r\n{part}\r\n", part.len()));
            may_go.recv().expect("the test is there");
        }
        exchange.send("0\r\n\r\n");
        Then::KeepAlive
    });
    let setup = Setup::new(threads).tls(&authority.server(&["shop.example"]), "");
    let switch = setup.pool("standard", &[&origin]).start();
    let client = switch.tls_client(&TlsClient::new(&authority), "shop.example");
    let mut client = client.expect("a handshake");
    client.send("POST / HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 6\r\n\r\nabc");
    origin.wait_for_requests(1);
    client.send("def");
    assert_eq!(client.head().word(1), "200");
    for part in ["one", "two", "three"] {
        client.expect_body(part.as_bytes());
        go.send(()).expect("the origin is there");
    }
    assert_eq!(client.rest().expect("a whole body").bytes, b"");
    assert_eq!(origin.last().body.bytes, b"abcdef");
}

/// Chunks of one byte, sent in packets that cut them anywhere.
fn many_chunks(threads: usize) {
    let origin = Origin::answering("origin", mirror);
    let switch = Setup::new(threads).pool("standard", &[&origin]).start();
    let body = noise(5000);
    let mut client = switch.client();
    client.send("POST / HTTP/1.1\r\nHost: shop.example\r\nTransfer-Encoding: chunked\r\n\r\n");
    for packet in chunks(&body, 1).chunks(7) {
        client.send(packet);
    }
    assert_eq!(client.response().body.bytes, body);
}

/// Extensions mean nothing to anybody: some pass, thousands of bytes of them do not.
fn chunk_extensions(threads: usize) {
    let origin = Origin::answering("origin", mirror);
    let switch = Setup::new(threads).pool("standard", &[&origin]).start();
    let request = |count: usize| {
        let chunks = "1;name=0123456789a\r\nx\r\n".repeat(count);
        let head = "Host: shop.example\r\nTransfer-Encoding: chunked";
        format!("POST /{count} HTTP/1.1\r\n{head}\r\n\r\n{chunks}0\r\n\r\n")
    };
    let mut client = switch.client();
    client.send(request(20));
    let answer = client.response();
    assert_eq!((answer.status(), answer.text()), (200, "x".repeat(20)));
    // 257 times 16 bytes are more than 4096.
    client.send(request(257));
    assert_eq!(client.response().status(), 400);
    assert!(client.closes());
    let whole = |request: &pointsman_e2e::Request| request.target() == "/257" && request.complete;
    assert!(!origin.requests().iter().any(whole));
}

/// A server that answers before it has all of a large body, and reads on, gets all of it. The client is told that this
/// is its last answer, and hears the end behind it although it has not sent everything. It keeps its last byte back
/// until then: what all lies in the kernel's buffers would be no early answer any more, see below.
fn early_answer_to_a_large_body(threads: usize) {
    let origin = Origin::answering("origin", |exchange| {
        exchange.piece();
        exchange.answer("200 OK", "early");
        exchange.body();
        Then::KeepAlive
    });
    let switch = Setup::new(threads).pool("standard", &[&origin]).start();
    let (mut client, body) = (switch.client(), noise(LARGE));
    let (most, last) = body.split_at(LARGE - 1);
    client.send(format!("POST / HTTP/1.1\r\nHost: shop.example\r\nContent-Length: {LARGE}\r\n\r\n"));
    client.send(most);
    let answer = client.response();
    assert_eq!((answer.status(), answer.text().as_str()), (200, "early"));
    assert_eq!(answer.head.field("connection"), Some("close"));
    assert!(client.closes());
    client.send(last);
    origin.wait_for_body();
    assert!(origin.last().body.bytes == body, "the request's body changed on its way");
}

/// A server that answers before it reads a body, all of which has been handed over to it: nothing of that request is
/// left to come, and the client's connection serves the next one. How much of a body that is, is up to the kernel: it
/// holds megabytes between the switch and a server that is slow to read.
fn early_answer_to_a_body_that_was_handed_over(threads: usize) {
    const LENGTH: usize = 40_000;
    let origin = RawOrigin::serving(|mut socket, _| {
        while let Some((_, early)) = read_head(&mut socket) {
            let mut body = vec![0; LENGTH - early.len()];
            until("the body", || (socket.peek(&mut body).expect("open") == body.len()).then_some(()));
            socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nearly").expect("open");
            socket.read_exact(&mut body).expect("it is there");
        }
    });
    let setup = Setup::new(threads).pool_at("standard", "", &[("raw", origin.address())]);
    let (switch, body) = (setup.start(), noise(LENGTH));
    let mut client = switch.client();
    for _ in 0..2 {
        client.send(format!("POST / HTTP/1.1\r\nHost: shop.example\r\nContent-Length: {LENGTH}\r\n\r\n"));
        client.send(&body);
        let answer = client.response();
        assert_eq!((answer.status(), answer.text().as_str()), (200, "early"));
        assert_eq!(answer.head.field("connection"), None);
    }
}

/// The limit is on taking nothing: a client that reads slowly and steadily may take longer in all.
fn slow_reader(threads: usize) {
    let (body, other) = (noise(LARGE), Origin::new("other"));
    let answer = [format!("HTTP/1.1 200 OK\r\nContent-Length: {LARGE}\r\n\r\n").as_bytes(), &body].concat();
    let origin = Origin::saying("origin", answer, Then::KeepAlive);
    let setup = Setup::new(threads).rules("if (path == \"/other\") { routeTo(quick); }");
    let setup = setup.limits("write_ms_max = 300").pool("standard", &[&origin]).pool("quick", &[&other]);
    let switch = setup.start();
    let mut client = switch.client();
    client.send("GET /large HTTP/1.1\r\nHost: shop.example\r\n\r\n");
    assert_eq!(client.head().word(1), "200");
    assert!(read_slowly(&mut client, &switch, LARGE, 3000) == body, "the answer's body changed on its way");
}

/// Bytes behind the last request of a connection do no harm to its answer, however slowly that is read: a
/// socket that is closed with unread bytes in it is reset, and what is on its way is lost.
fn stray_bytes_behind_the_last_request(threads: usize) {
    const LENGTH: usize = 3 * 1024 * 1024;
    let (body, other) = (noise(LENGTH), Origin::new("other"));
    let answer = [format!("HTTP/1.1 200 OK\r\nContent-Length: {LENGTH}\r\n\r\n").as_bytes(), &body].concat();
    let origin = Origin::saying("origin", answer, Then::KeepAlive);
    let setup = Setup::new(threads).rules("if (path == \"/other\") { routeTo(quick); }");
    let switch = setup.pool("standard", &[&origin]).pool("quick", &[&other]).start();
    let mut client = switch.client();
    client.send("GET / HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n\r\n");
    assert_eq!(client.head().word(1), "200");
    client.send("\r\n");
    // Longer than the switch listens to a connection that it closes.
    assert!(read_slowly(&mut client, &switch, LENGTH, 2600) == body, "the answer's body changed on its way");
    assert!(client.closes());
}

/// Reads a body piece by piece, so that all of it takes about so many milliseconds. Between two pieces
/// others are served.
fn read_slowly(client: &mut Client, switch: &Switch, length: usize, ms: usize) -> Vec<u8> {
    let (started, mut others, mut came) = (Instant::now(), switch.client(), Vec::new());
    while came.len() < length {
        let due = Duration::from_millis((ms * came.len() / length) as u64);
        while started.elapsed() < due {
            assert_eq!(others.get("/other").server(), "other");
        }
        let piece = client.piece().unwrap_or_else(|error| panic!("{error} after {} bytes", came.len()));
        came.extend(piece.unwrap_or_else(|| panic!("the end after {} bytes", came.len())));
    }
    assert_eq!(client.piece().expect("the end of the body"), None);
    came
}

/// A client that takes nothing of its answer is let go, and its server, too.
fn client_takes_nothing(threads: usize) {
    let answer = [b"HTTP/1.1 200 OK\r\n\r\n".to_vec(), noise(64 * 1024 * 1024)].concat();
    let origin = Origin::saying("origin", answer, Then::Close);
    let switch = Setup::new(threads).limits("write_ms_max = 200").pool("standard", &[&origin]).start();
    let mut client = switch.client();
    client.send("GET /large HTTP/1.1\r\nHost: shop.example\r\n\r\n");
    assert!(switch.log_of("/large")["error"].is_string());
    assert!(client.try_response().is_err(), "an answer that was given up looks whole");
}

/// A server that takes nothing of its request: the client hears of it.
fn server_takes_nothing(threads: usize) {
    let (go, may_go) = channel::<()>();
    let may_go = Mutex::new(may_go);
    let origin = Origin::answering("origin", move |_| {
        // Until the test ends.
        may_go.lock().expect("no panic under the lock").recv().unwrap_or_default();
        Then::Close
    });
    let switch = Setup::new(threads).pool_with("standard", "write_ms_max = 200", &[&origin]).start();
    let mut client = switch.client();
    client.send("POST /large HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 67108864\r\n\r\n");
    // The switch stops reading, and then it answers and closes.
    drop(client.try_send(noise(64 * 1024 * 1024)));
    let entry = switch.log_of("/large");
    assert!(entry["error"].is_string() && (entry["status"] == 504 || entry["status"] == 502), "{entry}");
    drop(go);
}

/// A body in chunks of at most so many bytes.
pub(crate) fn chunks(body: &[u8], size: usize) -> Vec<u8> {
    let mut sent = Vec::with_capacity(body.len() + body.len() / size * 12);
    for chunk in body.chunks(size) {
        sent.extend(format!("{:x}\r\n", chunk.len()).bytes());
        sent.extend(chunk);
        sent.extend(b"\r\n");
    }
    sent.extend(b"0\r\n\r\n");
    sent
}

/// Bytes that no mistake repeats: a linear congruence.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 1_u32;
    let next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    };
    std::iter::repeat_with(next).take(length).collect()
}

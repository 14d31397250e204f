//! Messages of either version on their way to the other: framing, trailers, interim answers, long bodies.

use pointsman_e2e::h2_wire::{fields, flag};
use pointsman_e2e::{
    Authority, Exchange, Frame, H2Client, Origin, Pattern, Setup, Switch, Then, TlsClient, ok,
};

use crate::http2::begin;

pointsman_e2e::for_threads!(
    trailers_of_requests,
    trailers_of_grpc,
    trailers_of_answers,
    interim_answers,
    answers_without_content,
    framings_of_answers,
    requests_without_content,
    an_end_that_comes_alone,
    early_answers,
    uploads_behind_a_success,
    own_responses_to_grpc,
    answers_beside_uploads,
    long_bodies,
    long_bodies_over_tls
);

/// Allowed trailers follow the chunks of the HTTP/1 request; where it has a length they are dropped.
fn trailers_of_requests(threads: usize) {
    let origin = Origin::answering("origin", ok);
    let switch =
        Setup::new(threads).listener("trailers = [\"x-sum\", \"x-b\"]").pool("standard", &[&origin]).start();
    let mut client = begin(&switch);
    for (stream, more, framing) in [
        (1, vec![], ("transfer-encoding", "chunked")),
        (3, vec![("content-length", "3")], ("content-length", "3")),
    ] {
        client.post(stream, "/", &more);
        client.send_content(stream, 0, b"abc").expect("the switch reads");
        client
            .send_fields(stream, flag::END_STREAM, &fields(&[("x-sum", "9"), ("x-user", "a"), ("x-b", "2")]))
            .expect("it reads");
        assert_eq!(client.answer(stream).text(), "origin");
        let request = origin.last();
        assert_eq!(request.body.bytes, b"abc");
        assert_eq!(request.head.field(framing.0), Some(framing.1));
        let sent = [("x-sum", "9"), ("x-b", "2")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        let expected = if stream == 1 { &sent[..] } else { &[] };
        assert_eq!(request.body.trailers, expected);
    }
    assert_eq!(origin.connections(), 1);
}

/// Trailers of a gRPC request pass without a list, but for those that a rule uses and those that never pass.
fn trailers_of_grpc(threads: usize) {
    let origin = Origin::answering("origin", ok);
    let switch = Setup::new(threads)
        .rules("R1: if (header[\"x-role\"] == \"root\") { reject(403); }\nelse: routeTo(standard);\n")
        .pool("standard", &[&origin])
        .start();
    let mut client = begin(&switch);
    for (stream, kind, passes) in
        [(1, "application/grpc+proto", true), (3, "application/grpc-web", false), (5, "text/plain", false)]
    {
        client.post(stream, "/", &[("content-type", kind)]);
        client.send_content(stream, 0, b"abc").expect("the switch reads");
        let trailers = [("x-sum", "9"), ("x-role", "root"), ("x-http-method-override", "DELETE")];
        client.send_fields(stream, flag::END_STREAM, &fields(&trailers)).expect("it reads");
        assert_eq!(client.answer(stream).text(), "origin");
        let expected = if passes { vec![("x-sum".to_owned(), "9".to_owned())] } else { Vec::new() };
        assert_eq!(origin.last().body.trailers, expected, "{kind}");
    }
}

/// Trailers of chunked answers follow their content.
fn trailers_of_answers(threads: usize) {
    let origin = Origin::answering("origin", |exchange| {
        let chunks = match exchange.target() {
            "/empty" => "",
            _ => "3\r\nabc\r\n2\r\nde\r\n",
        };
        exchange.send("HTTP/1.1 200 OK\r\nTrailer: x-sum\r\nTransfer-Encoding: chunked\r\n\r\n");
        exchange.send(format!("{chunks}0\r\nX-Sum: 9\r\nx-b: 2\r\n\r\n"));
        Then::KeepAlive
    });
    let switch = Setup::new(threads).pool("standard", &[&origin]).start();
    let mut client = begin(&switch);
    for (stream, path, content) in [(1, "/", "abcde"), (3, "/empty", "")] {
        let answer = client.fetch(stream, path);
        assert_eq!((answer.status(), answer.text().as_str()), (200, content));
        assert_eq!(answer.trailers, fields(&[("x-sum", "9"), ("x-b", "2")]));
        assert_eq!(answer.field("transfer-encoding"), None);
    }
    // HTTP/1.0 knows no trailers.
    let mut old = switch.client();
    old.send("GET / HTTP/1.0\r\nHost: shop.example\r\n\r\n");
    let text = old.everything();
    assert!(text.ends_with("\r\n\r\nabcde"), "{text}");
}

/// 100 and 103 come before the answer, in order; who expects 100 gets it before it sends its content.
fn interim_answers(threads: usize) {
    let origin = Origin::answering("origin", |exchange| {
        exchange.send("HTTP/1.1 100 Continue\r\n\r\n");
        let body = exchange.body();
        exchange.send("HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </b.css>\r\n\r\n");
        let text = String::from_utf8_lossy(&body.bytes).into_owned();
        exchange.answer("200 OK", &text)
    });
    let switch = Setup::new(threads).pool("standard", &[&origin]).start();
    let mut client = begin(&switch);
    client.post(1, "/", &[("expect", "100-continue"), ("content-length", "3")]);
    client.wait("100", |client| !client.seen(1).interim.is_empty());
    assert_eq!(origin.last().head.field("expect"), Some("100-continue"));
    client.send_content(1, flag::END_STREAM, b"abc").expect("the switch reads");
    let answer = client.answer(1);
    assert_eq!((answer.status(), answer.text().as_str()), (200, "abc"));
    let interim: Vec<_> = answer
        .interim
        .iter()
        .map(|block| {
            block.iter().map(|(_, value)| String::from_utf8_lossy(value).into_owned()).collect::<Vec<_>>()
        })
        .collect();
    assert_eq!(interim, [vec!["100"], vec!["103", "</a.css>"], vec!["103", "</b.css>"]]);
}

/// HEAD, 204, 205 and 304 end with their head.
fn answers_without_content(threads: usize) {
    let origin = Origin::answering("origin", |exchange| {
        let (status, length) = match (exchange.method(), exchange.target()) {
            ("HEAD", "/chunked") => ("200 OK", "Transfer-Encoding: chunked\r\n"),
            ("HEAD", _) => ("200 OK", "Content-Length: 1234\r\n"),
            (_, "/204") => ("204 No Content", ""),
            (_, "/205") => ("205 Reset Content", "Content-Length: 0\r\n"),
            (_, "/304") => ("304 Not Modified", "Content-Length: 77\r\nETag: \"x\"\r\n"),
            _ => ("200 OK", "Content-Length: 0\r\n"),
        };
        exchange.send(format!("HTTP/1.1 {status}\r\n{length}\r\n"));
        Then::KeepAlive
    });
    let switch = Setup::new(threads).pool("standard", &[&origin]).start();
    let mut client = begin(&switch);
    let cases = [
        ("HEAD", "/", 200, Some("1234")),
        ("HEAD", "/chunked", 200, None),
        ("GET", "/204", 204, None),
        ("GET", "/205", 205, Some("0")),
        ("GET", "/304", 304, Some("77")),
        ("GET", "/", 200, Some("0")),
    ];
    for (stream, (method, path, status, length)) in (1..).step_by(2).zip(cases) {
        client.ask(stream, method, path, &[]);
        let answer = client.answer(stream);
        let came = (answer.status(), answer.body.len(), answer.field("content-length"));
        assert_eq!(came, (status, 0, length.map(str::to_owned)), "{method} {path}");
        assert_eq!((answer.field("transfer-encoding"), answer.reset), (None, None));
    }
    assert_eq!(client.goaway(), None);
}

/// By a length, in chunks, until the server closes, and as HTTP/1.0: to the client all the same.
fn framings_of_answers(threads: usize) {
    let origin = Origin::answering("origin", |exchange| {
        let (answer, then) = match exchange.target() {
            "/length" => ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabcde", Then::KeepAlive),
            "/chunks" => (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n1\r\ne\r\n0\r\n\r\n",
                Then::KeepAlive,
            ),
            "/close" => ("HTTP/1.1 200 OK\r\n\r\nabcde", Then::Close),
            "/1.0" => ("HTTP/1.0 200 OK\r\n\r\nabcde", Then::Close),
            _ => ("HTTP/1.0 200 OK\r\n\r\n", Then::Close),
        };
        exchange.send(answer);
        then
    });
    let switch = Setup::new(threads).pool("standard", &[&origin]).start();
    let mut client = begin(&switch);
    let cases = ["/length", "/chunks", "/close", "/1.0", "/nothing", "/length"];
    for (stream, path) in (1..).step_by(2).zip(cases) {
        let answer = client.fetch(stream, path);
        let expected = if path == "/nothing" { "" } else { "abcde" };
        assert_eq!((answer.status(), answer.text().as_str()), (200, expected), "{path}");
        let length = (path == "/length").then(|| "5".to_owned());
        assert_eq!((answer.field("content-length"), answer.field("connection")), (length, None), "{path}");
        assert_eq!(answer.reset, None);
    }
    assert_eq!(client.goaway(), None);
}

/// Nothing, a length of zero, and an empty frame are no content, and none of them is chunked to the server.
fn requests_without_content(threads: usize) {
    let origin = Origin::answering("origin", ok);
    let switch = Setup::new(threads).pool("standard", &[&origin]).start();
    let mut client = begin(&switch);
    client.ask(1, "POST", "/", &[]);
    client.answer(1);
    client.ask(3, "POST", "/", &[("content-length", "0")]);
    client.answer(3);
    client.post(5, "/", &[("content-length", "0")]);
    client.send(&Frame::data(5, flag::END_STREAM, "")).expect("the switch reads");
    client.answer(5);
    client.ask(7, "GET", "/", &[]);
    client.answer(7);
    for (request, length) in origin.requests().iter().zip([None, Some("0"), Some("0"), None]) {
        let came = (request.head.field("transfer-encoding"), request.body.bytes.len(), request.complete);
        assert_eq!(came, (None, 0, true), "{request:?}");
        if length.is_some() {
            assert_eq!(request.head.field("content-length"), length);
        }
    }
    assert_eq!((origin.count(), origin.connections()), (4, 1));
}

/// An empty frame that ends the content, when all before it has been read, is its end and no break.
fn an_end_that_comes_alone(threads: usize) {
    let origin = Origin::answering("origin", ok);
    let switch = Setup::new(threads).pool("standard", &[&origin]).start();
    let mut client = begin(&switch);
    for (stream, more, content) in
        [(1, vec![], "abc"), (3, vec![], ""), (5, vec![("content-length", "3")], "abc")]
    {
        let before = origin.count();
        client.post(stream, "/", &more);
        client.send_content(stream, 0, content.as_bytes()).expect("the switch reads");
        origin.wait_for_requests(before + 1);
        client.turn();
        client.send(&Frame::data(stream, flag::END_STREAM, "")).expect("the switch reads");
        assert_eq!(client.answer(stream).text(), "origin");
        let request = origin.last();
        assert_eq!((request.body.bytes, request.complete), (content.as_bytes().to_vec(), true));
    }
    assert_eq!(origin.connections(), 1);
}

/// A server that answers before it has the content: the client gets all of it, and then that no more is wanted.
fn early_answers(threads: usize) {
    let origin = Origin::answering("origin", |exchange| match exchange.target() {
        "/early" => {
            exchange.answer("413 Content Too Large", "too much");
            Then::Close
        }
        _ => ok(exchange),
    });
    let switch = Setup::new(threads).pool("standard", &[&origin]).start();
    let mut client = begin(&switch);
    client.post(1, "/early", &[("content-length", "100000")]);
    client.send_content(1, 0, b"abc").expect("the switch reads");
    let answer = client.answer(1);
    assert_eq!((answer.status(), answer.text().as_str()), (413, "too much"));
    client.wait("a reset", |client| client.seen(1).reset.is_some());
    assert_eq!(client.seen(1).reset, Some(0), "NO_ERROR");
    // What was on its way hurts nobody.
    client.send(&Frame::data(1, 0, "more")).expect("the switch reads");
    assert_eq!(client.fetch(3, "/").text(), "origin");
    assert_eq!(client.goaway(), None);
}

/// An upload of more than all windows that is answered early with 2xx is read to its end, and then answered.
fn uploads_behind_a_success(threads: usize) {
    let origin = Origin::answering("origin", |exchange| {
        exchange.answer("200 OK", "early");
        Then::Close
    });
    let rules = "R1: if (path == \"/own\") { respond(200, \"own\"); }\nelse: routeTo(standard);\n";
    let switch = Setup::new(threads).rules(rules).pool("standard", &[&origin]).start();
    let mut client = begin(&switch);
    let body = vec![b'z'; 1 << 20];
    for (stream, path, text) in [(1, "/early", "early"), (3, "/own", "own")] {
        client.post(stream, path, &[("content-length", "1048576")]);
        client.send_content(stream, flag::END_STREAM, &body).expect("the switch reads");
        let answer = client.answer(stream);
        assert_eq!((answer.status(), answer.text().as_str()), (200, text));
        assert_eq!(client.seen(stream).reset, None);
    }
}

/// Own responses to gRPC calls carry the status of gRPC, and the log that of HTTP.
fn own_responses_to_grpc(threads: usize) {
    let origin = Origin::answering("origin", ok);
    let rules = "R1: if (path == \"/no\") { reject(403, \"no\"); }\nelse: routeTo(standard);\n";
    let switch = Setup::new(threads).rules(rules).pool("standard", &[&origin]).start();
    let mut client = begin(&switch);
    client.post(1, "/no", &[("content-type", "application/grpc"), ("te", "trailers")]);
    let answer = client.answer(1);
    let field = |name| answer.field(name);
    assert_eq!((answer.status(), answer.text().as_str()), (200, ""));
    assert_eq!(field("content-type").as_deref(), Some("application/grpc"));
    assert_eq!((field("grpc-status").as_deref(), field("grpc-message").as_deref()), (Some("7"), Some("no")));
    assert_eq!(switch.log_of("/no")["status"], 403);
    client.ask(3, "POST", "/no", &[("content-type", "application/grpc-web")]);
    assert_eq!(client.answer(3).status(), 403);
}

/// An answer that goes on beside its request, piece by piece.
fn answers_beside_uploads(threads: usize) {
    let origin = Origin::answering("origin", |exchange| {
        exchange.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        while let Some(piece) = exchange.piece() {
            exchange.send(format!("{:x}\r\n", piece.len()));
            exchange.send(piece);
            exchange.send("\r\n");
        }
        exchange.send("0\r\n\r\n");
        Then::KeepAlive
    });
    let switch = Setup::new(threads).pool("standard", &[&origin]).start();
    let mut client = begin(&switch);
    client.post(1, "/", &[]);
    let mut sent = Vec::new();
    for number in 0..20 {
        let piece = format!("piece {number};");
        client.send_content(1, 0, piece.as_bytes()).expect("the switch reads");
        sent.extend_from_slice(piece.as_bytes());
        client.wait("what was sent", |client| client.seen(1).body == sent);
    }
    client.send(&Frame::data(1, flag::END_STREAM, "")).expect("the switch reads");
    let answer = client.answer(1);
    assert_eq!((answer.status(), answer.body == sent, answer.reset), (200, true, None));
}

const LONG_BYTES: usize = 10 * 1024 * 1024;

fn long_bodies(threads: usize) {
    let origin = Origin::answering("origin", long);
    let switch = Setup::new(threads).pool("standard", &[&origin]).start();
    goes_whole(&switch, &mut begin(&switch), &origin);
}

fn long_bodies_over_tls(threads: usize) {
    let (authority, origin) = (Authority::new("test CA"), Origin::answering("origin", long));
    let setup = Setup::new(threads).tls(&authority.server(&["shop.example"]), "");
    let switch = setup.pool("standard", &[&origin]).start();
    let trust = TlsClient::new(&authority).alpn(&["h2"]);
    let client = switch.tls_client(&trust, "shop.example").expect("a handshake");
    goes_whole(&switch, &mut H2Client::begin(client), &origin);
}

/// Sends back what it is sent, or as much.
fn long(exchange: &mut Exchange<'_>) -> Then {
    let body = match exchange.target() {
        "/down" => content(LONG_BYTES),
        _ => exchange.body().bytes,
    };
    exchange.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len()));
    exchange.send(body);
    Then::KeepAlive
}

fn content(bytes: usize) -> Vec<u8> {
    let (mut pattern, mut content) = (Pattern::default(), Vec::new());
    while content.len() < bytes {
        content.extend_from_slice(pattern.next((bytes - content.len()) as u64));
    }
    content
}

/// Ten MiB up, down, and both, with and without a length: each byte is the one that was sent.
fn goes_whole(switch: &Switch, client: &mut H2Client, origin: &Origin) {
    let content = content(LONG_BYTES);
    assert!(client.fetch(1, "/down").body == content, "the answer is another one");
    let length = content.len().to_string();
    for (stream, more) in [(3, vec![]), (5, vec![("content-length", length.as_str())])] {
        client.post(stream, "/up", &more);
        client.send_content(stream, flag::END_STREAM, &content).expect("the switch reads");
        let answer = client.answer(stream);
        assert!(origin.last().body.bytes == content, "the request is another one");
        assert!(answer.body == content, "the answer is another one");
    }
    let entry = switch.log_of("/down");
    assert!(entry["response_bytes"].as_u64() > Some(LONG_BYTES as u64), "{entry}");
}

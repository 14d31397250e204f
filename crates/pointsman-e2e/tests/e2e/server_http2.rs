//! Messages to and from servers of HTTP/2, as they see them and as clients of either version see their answers.

use pointsman_e2e::h2_wire::{fields, flag, kind, setting};
use pointsman_e2e::{Authority, Frame, H2Origin, H2Peer, Origin, Setup, Switch, TlsServer, ok};

use crate::http2::begin;

pointsman_e2e::for_threads!(
    requests,
    fields_that_end_here,
    answers,
    interim_answers,
    trailers,
    uploads,
    an_end_without_a_window,
    over_tls,
    a_server_that_does_not_agree,
);

pub(crate) const H2: &str = "protocol = \"h2\"";

/// A switch before this server.
pub(crate) fn before(threads: usize, keys: &str, server: &H2Origin) -> Setup {
    Setup::new(threads).pool_at("standard", &format!("{H2}\n{keys}"), &[("server", server.address())])
}

fn start(threads: usize, server: &H2Origin) -> Switch {
    before(threads, "", server).listener("trailers = [\"x-check\"]").start()
}

/// Method, scheme, authority and path; a body's length, where it was said.
fn requests(threads: usize) {
    let server = H2Origin::echoing(&[]);
    let switch = start(threads, &server);
    let (mut first, mut second) = (switch.client(), begin(&switch));
    assert_eq!(first.get("/one?a=b").text(), "/one?a=b");
    assert_eq!(second.fetch(1, "/two").text(), "/two");
    for request in server.requests() {
        let pseudo =
            [":method", ":scheme", ":authority"].map(|name| request.field(name).expect("it is there"));
        assert_eq!(pseudo, ["GET", "http", "shop.example"]);
        assert!(request.is_whole && request.field("host").is_none(), "{request:?}");
        let first_plain = request.fields.iter().position(|(name, _)| !name.starts_with(b":"));
        assert!(request.fields[first_plain.expect("some")..].iter().all(|(name, _)| !name.starts_with(b":")));
    }
    first.send("POST /post HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 3\r\n\r\nabc");
    assert_eq!(first.response().text(), "/post");
    let last = server.last();
    assert_eq!((last.field("content-length").as_deref(), &*last.body), (Some("3"), &b"abc"[..]));
    // Without content a POST says so, and the head is all of it.
    assert_eq!(first.ask("POST", "/empty", "Content-Length: 0\r\n").status(), 200);
    assert_eq!((server.last().field("content-length").as_deref(), server.last().is_whole), (Some("0"), true));
    assert_eq!(switch.log_of("/empty")["status"], 200);
    assert!(server.connections() <= threads.min(2), "they are shared");
}

/// What is about a connection has no place in HTTP/2 (RFC 9113 section 8.2.2), and cookies go on.
fn fields_that_end_here(threads: usize) {
    let server = H2Origin::echoing(&[]);
    let switch = start(threads, &server);
    let mut client = switch.client();
    let lines = "Connection: keep-alive, x-hop\r\nKeep-Alive: timeout=5\r\nProxy-Connection: keep-alive\r\n\
                 X-Hop: 1\r\nTE: gzip, trailers\r\nUpgrade: example/1\r\nX-Kept: 2\r\nCookie: a=b; c=d\r\n\
                 Transfer-Encoding: chunked\r\n";
    client.send(format!("POST / HTTP/1.1\r\nHost: shop.example\r\n{lines}\r\n1\r\nx\r\n0\r\n\r\n"));
    assert_eq!(client.response().status(), 200);
    let request = server.last();
    let gone =
        ["connection", "keep-alive", "proxy-connection", "x-hop", "upgrade", "transfer-encoding", "host"];
    for name in gone {
        assert_eq!(request.field(name), None, "{name}");
    }
    assert!(request.field("te").is_none_or(|te| te == "trailers"), "{request:?}");
    assert!(request.fields.iter().all(|(name, _)| !name.iter().any(u8::is_ascii_uppercase)), "{request:?}");
    assert_eq!((request.field("x-kept").as_deref(), &*request.body), (Some("2"), &b"x"[..]));
    let cookies: Vec<_> = request.fields.iter().filter(|(name, _)| name == b"cookie").collect();
    assert_eq!(cookies, [&(b"cookie".to_vec(), b"a=b; c=d".to_vec())]);
}

fn answer_by_path(peer: &mut H2Peer) {
    while let Some(request) = peer.next_whole() {
        let stream = request.stream;
        match request.path().as_str() {
            "/head" => peer.answer(stream, "200", &[("content-length", "12345")], b""),
            "/head-bare" | "/204" => peer.answer(stream, "204", &[], b""),
            "/304" => peer.answer(stream, "304", &[("etag", "\"x\""), ("content-length", "77")], b""),
            "/205" => peer.answer(stream, "205", &[], b""),
            "/length" => peer.answer(stream, "200", &[("content-length", "4")], b"four"),
            "/unknown" => peer.answer(stream, "299", &[], b"what"),
            "/none" => peer.answer(stream, "200", &[], b""),
            "/empty" => {
                peer.head(stream, "200", &[]) && peer.send(&Frame::data(stream, flag::END_STREAM, []))
            }
            "/padded" => {
                let payload = [&[200][..], b"content", &[0; 200]].concat();
                peer.head(stream, "200", &[("content-length", "7")])
                    && peer.send(&Frame::new(kind::DATA, flag::PADDED | flag::END_STREAM, stream, payload))
            }
            _ => peer.answer(stream, "404", &[("x-two", "1"), ("x-two", "2")], b"nowhere"),
        };
    }
}

/// With and without content, and a length that stands for what is not there.
fn answers(threads: usize) {
    let server = H2Origin::serving(&[], answer_by_path);
    let switch = start(threads, &server);
    let (mut first, mut second) = (switch.client(), begin(&switch));
    let head = first.ask("HEAD", "/head", "");
    assert_eq!((head.status(), head.head.field("content-length")), (200, Some("12345")));
    assert_eq!(first.ask("HEAD", "/head-bare", "").status(), 204);
    second.ask(1, "HEAD", "/head", &[]);
    let head = second.answer(1);
    assert_eq!((head.field("content-length").as_deref(), head.text().as_str()), (Some("12345"), ""));
    let expected = [
        ("/204", 204, ""),
        ("/304", 304, ""),
        ("/205", 205, ""),
        ("/length", 200, "four"),
        ("/unknown", 299, "what"),
        ("/none", 200, ""),
        ("/empty", 200, ""),
        ("/padded", 200, "content"),
        ("/absent", 404, "nowhere"),
    ];
    for (number, (path, status, body)) in (1..).zip(expected) {
        let of_first = first.get(path);
        assert_eq!((of_first.status(), of_first.text().as_str()), (status, body), "{path}");
        let of_second = second.fetch(2 * number + 1, path);
        assert_eq!((of_second.status(), of_second.text().as_str()), (status, body), "{path}");
    }
    let start = |client: &mut pointsman_e2e::Client, path| client.get(path).head.start;
    assert_eq!(start(&mut first, "/unknown"), "HTTP/1.1 299 ");
    assert_eq!(start(&mut first, "/304"), "HTTP/1.1 304 Not Modified");
    assert_eq!(first.get("/length").head.field("content-length"), Some("4"));
    assert_eq!(first.get("/unknown").head.field("transfer-encoding"), Some("chunked"));
}

/// They come in their order and under their names; too many of them are a server gone wrong.
fn interim_answers(threads: usize) {
    let server = H2Origin::serving(&[], |peer| {
        while let Some(request) = peer.next_whole() {
            let stream = request.stream;
            let hints = if request.path() == "/many" { 50 } else { 2 };
            for number in 0..hints {
                let link = format!("</{number}.css>");
                peer.head(stream, if number == 0 { "103" } else { "102" }, &[("link", &link)]);
            }
            peer.answer(stream, "200", &[], b"done");
        }
    });
    let switch = start(threads, &server);
    let mut client = switch.client();
    let answer = client.get("/two");
    let interim: Vec<_> = answer.interim.iter().map(|head| head.start.as_str()).collect();
    assert_eq!(interim, ["HTTP/1.1 103 Early Hints", "HTTP/1.1 102 Processing"]);
    assert_eq!((answer.interim[0].field("link"), answer.text().as_str()), (Some("</0.css>"), "done"));
    let answer = begin(&switch).fetch(1, "/two");
    assert_eq!((answer.interim.len(), answer.text().as_str()), (2, "done"));
    assert_eq!(client.get("/many").status(), 502);
}

/// Trailers pass both ways; they do so behind chunks alone where the other side speaks HTTP/1.
fn trailers(threads: usize) {
    let server = H2Origin::serving(&[], |peer| {
        while let Some(request) = peer.next_whole() {
            let stream = request.stream;
            let head: &[_] = if request.path() == "/length" { &[("content-length", "4")] } else { &[] };
            peer.head(stream, "200", head);
            peer.content(stream, b"body", 0);
            peer.send(&Frame::headers(stream, flag::END_STREAM, &fields(&[("x-sum", "7")])));
        }
    });
    let switch = start(threads, &server);
    let (mut first, mut second) = (switch.client(), begin(&switch));
    let chunked = "POST /chunks HTTP/1.1\r\nHost: shop.example\r\nTransfer-Encoding: chunked\r\n\r\n";
    first.send(format!("{chunked}3\r\nabc\r\n0\r\nX-Check: 5\r\n\r\n"));
    let answer = first.response();
    assert_eq!((answer.text().as_str(), answer.status()), ("body", 200));
    assert_eq!(answer.body.trailers, [("x-sum".to_owned(), "7".to_owned())]);
    let request = server.last();
    assert_eq!((&*request.body, request.trailers), (&b"abc"[..], fields(&[("x-check", "5")])));
    assert_eq!(first.get("/length").text(), "body");
    let answer = second.fetch(1, "/chunks");
    assert_eq!((answer.text().as_str(), answer.trailers), ("body", fields(&[("x-sum", "7")])));
    assert_eq!(second.fetch(3, "/length").text(), "body");
}

/// A body of 1 MiB arrives whole at a server whose windows are small, from either version.
fn uploads(threads: usize) {
    let server = H2Origin::echoing(&[(setting::INITIAL_WINDOW_SIZE, 1000)]);
    let switch = start(threads, &server);
    let body: Vec<u8> = (0..1 << 20).map(|number: u32| number.to_be_bytes()[2]).collect();
    let mut first = switch.client();
    first.send(format!("POST /one HTTP/1.1\r\nHost: shop.example\r\nContent-Length: {}\r\n\r\n", body.len()));
    first.send(&body);
    assert_eq!(first.response().text(), "/one");
    assert!(server.last().body == body, "it changed on its way");
    let mut second = begin(&switch);
    second.post(1, "/two", &[]);
    second.send_content(1, flag::END_STREAM, &body).expect("the switch reads");
    assert_eq!(second.answer(1).text(), "/two");
    assert!(server.last().body == body, "it changed on its way");
}

/// The end of a body takes no window: a server that grants none sees it all the same, and answers.
fn an_end_without_a_window(threads: usize) {
    let server = H2Origin::serving(&[(setting::INITIAL_WINDOW_SIZE, 4)], |peer| {
        peer.give_no_window();
        peer.echo();
    });
    let switch = start(threads, &server);
    let mut first = switch.client();
    let head = "HTTP/1.1\r\nHost: shop.example\r\nTransfer-Encoding: chunked\r\n\r\n";
    // The end comes with the rest, behind it, and alone.
    first.send(format!("POST /whole {head}4\r\nfour\r\n0\r\n\r\n"));
    assert_eq!(first.response().text(), "/whole");
    first.send(format!("POST /empty {head}0\r\n\r\n"));
    assert_eq!(first.response().text(), "/empty");
    first.send(format!("POST /later {head}4\r\nfo"));
    server.wait_for_requests(3);
    first.send("ur\r\n");
    pointsman_e2e::until("four bytes at the server", || (server.last().body == b"four").then_some(()));
    first.send("0\r\nX-Check: 1\r\n\r\n");
    assert_eq!(first.response().text(), "/later");
    assert_eq!(server.last().trailers, fields(&[("x-check", "1")]));
    let mut second = begin(&switch);
    second.post(1, "/second", &[]);
    second.send_content(1, 0, b"four").expect("the switch reads");
    server.wait_for_requests(4);
    second.send_content(1, flag::END_STREAM, b"").expect("the switch reads");
    assert_eq!(second.answer(1).text(), "/second");
    second.post(3, "/nothing", &[]);
    second.send_content(3, flag::END_STREAM, b"").expect("the switch reads");
    assert_eq!(second.answer(3).text(), "/nothing");
}

/// By ALPN, under the name of its certificate, as `https`.
fn over_tls(threads: usize) {
    let authority = Authority::new("server CA");
    let tls = TlsServer::new(&authority.server(&["server.example"]));
    let server = H2Origin::secured(&tls, &[], H2Peer::echo);
    let keys = "tls = { ca = \"ca.crt\", name = \"server.example\" }";
    let switch = before(threads, keys, &server).file("ca.crt", &authority.pem()).start();
    let (mut first, mut second) = (switch.client(), begin(&switch));
    for number in 0..10 {
        assert_eq!(first.get(&format!("/{number}")).text(), format!("/{number}"));
        assert_eq!(second.fetch(2 * number + 1, "/second").text(), "/second");
    }
    assert_eq!(server.last().field(":scheme").as_deref(), Some("https"));
    assert!(server.connections() <= threads.min(2), "they are shared");
}

/// A server over TLS that speaks HTTP/1 only is not spoken to.
fn a_server_that_does_not_agree(threads: usize) {
    let authority = Authority::new("server CA");
    let pair = authority.server(&["server.example"]);
    // Without ALPN, and with another protocol.
    for protocols in [&[][..], &["http/1.1"]] {
        let server = Origin::secured("server", &TlsServer::new(&pair).alpn(protocols), ok);
        let keys = format!("{H2}\ntls = {{ ca = \"ca.crt\", name = \"server.example\" }}");
        let setup = Setup::new(threads).file("ca.crt", &authority.pem());
        let switch = setup.pool_with("standard", &keys, &[&server]).start();
        assert_eq!(switch.client().ask("POST", "/", "Content-Length: 0\r\n").status(), 502);
        let error = switch.log_of("/")["error"].clone();
        assert_eq!(error, "TLS with the server: it does not speak the protocol of its pool");
        let failures = switch.metric("pointsman_server_failures_total", &[("kind", "tls")]);
        assert_eq!((failures, server.count()), (1.0, 0));
    }
}

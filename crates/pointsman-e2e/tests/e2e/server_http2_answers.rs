//! Answers of HTTP/2 servers gone wrong: 502, or an answer that breaks off, and never another one than was sent.

use pointsman_e2e::h2_wire::{flag, kind};
use pointsman_e2e::{Field, Frame, H2Origin, Outcome, literal};

use crate::http2::begin;
use crate::server_http2::before;

pointsman_e2e::for_threads!(malformed_answers, heads_over_the_limits);

/// What a client sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    /// 502.
    Refused,
    /// The head, and no end.
    Cut,
    /// The answer without its content.
    Bare,
}
use Seen::{Bare, Cut, Refused};

type Frames = fn(u32) -> Vec<Frame>;

/// A head of these fields, and the end.
fn only(stream: u32, pairs: &[(&[u8], &[u8])]) -> Vec<Frame> {
    vec![Frame::headers(stream, flag::END_STREAM, &raw(pairs))]
}

/// A head of status 200 with these fields, and content behind it.
fn with(stream: u32, pairs: &[(&[u8], &[u8])], content: &[u8]) -> Vec<Frame> {
    let all = [&[(&b":status"[..], &b"200"[..])], pairs].concat();
    vec![Frame::headers(stream, 0, &raw(&all)), Frame::data(stream, flag::END_STREAM, content)]
}

fn raw(pairs: &[(&[u8], &[u8])]) -> Vec<Field> {
    pairs.iter().map(|(name, value)| (name.to_vec(), value.to_vec())).collect()
}

/// RFC 9113 sections 8.1.1, 8.2, 8.3.2, 8.6 and 6.
const ROWS: &[(&str, Frames, Seen)] = &[
    ("no status", |id| only(id, &[(b"x", b"y")]), Refused),
    ("no fields", |id| only(id, &[]), Refused),
    ("two statuses", |id| only(id, &[(b":status", b"200"), (b":status", b"404")]), Refused),
    ("a status of four digits", |id| only(id, &[(b":status", b"2000")]), Refused),
    ("a status of two digits", |id| only(id, &[(b":status", b"20")]), Refused),
    ("a status that is no number", |id| only(id, &[(b":status", b"2x0")]), Refused),
    ("an empty status", |id| only(id, &[(b":status", b"")]), Refused),
    ("status 101", |id| only(id, &[(b":status", b"101")]), Refused),
    ("an interim answer that ends the stream", |id| only(id, &[(b":status", b"103")]), Refused),
    ("an unknown pseudo-header field", |id| only(id, &[(b":status", b"200"), (b":x", b"y")]), Refused),
    ("a status behind a field", |id| only(id, &[(b"x", b"y"), (b":status", b"200")]), Refused),
    ("an upper-case name", |id| with(id, &[(b"X-Upper", b"1")], b"abc"), Refused),
    ("an empty name", |id| with(id, &[(b"", b"1")], b"abc"), Refused),
    ("a name with a space", |id| with(id, &[(b"a b", b"1")], b"abc"), Refused),
    ("a name with a colon", |id| with(id, &[(b"a:b", b"1")], b"abc"), Refused),
    ("a name with a line end", |id| with(id, &[(b"a\r\nevil", b"1")], b"abc"), Refused),
    ("connection", |id| with(id, &[(b"connection", b"close")], b"abc"), Refused),
    ("keep-alive", |id| with(id, &[(b"keep-alive", b"timeout=5")], b"abc"), Refused),
    ("proxy-connection", |id| with(id, &[(b"proxy-connection", b"close")], b"abc"), Refused),
    ("transfer-encoding", |id| with(id, &[(b"transfer-encoding", b"chunked")], b"0\r\n\r\nevil"), Refused),
    ("upgrade", |id| with(id, &[(b"upgrade", b"h2c")], b"abc"), Refused),
    ("a line end in a value", |id| with(id, &[(b"x", b"a\r\nevil: 1")], b"abc"), Refused),
    (
        "an answer in a value",
        |id| with(id, &[(b"x", b"a\r\n\r\nHTTP/1.1 200 evil\r\n\r\n")], b"abc"),
        Refused,
    ),
    ("LF in a value", |id| with(id, &[(b"x", b"a\nevil: 1")], b"abc"), Refused),
    ("CR in a value", |id| with(id, &[(b"x", b"a\revil: 1")], b"abc"), Refused),
    ("NUL in a value", |id| with(id, &[(b"x", b"a\0b")], b"abc"), Refused),
    ("a value that begins with a space", |id| with(id, &[(b"x", b" a")], b"abc"), Refused),
    ("a value that ends with a tab", |id| with(id, &[(b"x", b"a\t")], b"abc"), Refused),
    ("two lengths", |id| with(id, &[(b"content-length", b"3"), (b"content-length", b"4")], b"abc"), Refused),
    ("two lengths in one", |id| with(id, &[(b"content-length", b"3, 4")], b"abc"), Refused),
    ("a length with a sign", |id| with(id, &[(b"content-length", b"+3")], b"abc"), Refused),
    ("no length in it", |id| with(id, &[(b"content-length", b"")], b"abc"), Refused),
    (
        "a length past 64 bits",
        |id| with(id, &[(b"content-length", b"99999999999999999999")], b"abc"),
        Refused,
    ),
    ("a length without content", |id| only(id, &[(b":status", b"200"), (b"content-length", b"3")]), Refused),
    ("less than its length", |id| with(id, &[(b"content-length", b"5")], b"abc"), Cut),
    ("more than its length", |id| with(id, &[(b"content-length", b"2")], b"abc"), Cut),
    (
        "content of 204",
        |id| {
            vec![
                Frame::headers(id, 0, &raw(&[(b":status", b"204")])),
                Frame::data(id, 1, *b"HTTP/1.1 200 evil"),
            ]
        },
        Bare,
    ),
    ("content before the head", |id| vec![Frame::data(id, flag::END_STREAM, *b"abc")], Refused),
    (
        "trailers that do not end it",
        |id| {
            let mut frames = with(id, &[], b"abc");
            frames[1].flags = 0;
            frames.push(Frame::headers(id, 0, &raw(&[(b"x", b"y")])));
            frames
        },
        Cut,
    ),
    ("a line end in trailers", |id| trailers(id, &[(b"x", b"a\r\nevil: 1")]), Cut),
    ("padding in trailers", |id| trailers(id, &[(b"x", b" a")]), Cut),
    (
        "padding longer than its frame",
        |id| {
            vec![Frame::new(
                kind::HEADERS,
                flag::PADDED | flag::END_HEADERS | flag::END_STREAM,
                id,
                [200, 0x88],
            )]
        },
        Refused,
    ),
    (
        "padding longer than its content",
        |id| {
            let head = Frame::headers(id, 0, &raw(&[(b":status", b"200")]));
            vec![head, Frame::new(kind::DATA, flag::PADDED | flag::END_STREAM, id, [200, b'a'])]
        },
        Cut,
    ),
    (
        "a block that is none",
        |id| vec![Frame::new(kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, id, [0xff; 40])],
        Refused,
    ),
    (
        "a promise",
        |id| {
            let block = [&2_u32.to_be_bytes()[..], &literal(&raw(&[(b":method", b"GET")]))].concat();
            vec![Frame::new(kind::PUSH_PROMISE, flag::END_HEADERS, id, block)]
        },
        Refused,
    ),
    ("content of the connection", |_| vec![Frame::data(0, 0, *b"abc")], Refused),
    ("a stream of its own", |_| only(2, &[(b":status", b"200")]), Refused),
    ("a window of nothing", |id| vec![Frame::window_update(id, 0)], Refused),
    ("settings of five bytes", |_| vec![Frame::new(kind::SETTINGS, 0, 0, [0; 5])], Refused),
    ("a frame that is too long", |id| vec![Frame::data(id, 0, vec![0; 1 << 15])], Refused),
];

fn trailers(stream: u32, pairs: &[(&[u8], &[u8])]) -> Vec<Frame> {
    let mut frames = with(stream, &[], b"abc");
    frames[1].flags = 0;
    frames.push(Frame::headers(stream, flag::END_STREAM, &raw(pairs)));
    frames
}

fn malformed_answers(threads: usize) {
    let server = H2Origin::serving(&[], |peer| {
        while let Some(request) = peer.next_whole() {
            let row = request.field("x-row").and_then(|row| row.parse::<usize>().ok());
            match row {
                Some(row) => (ROWS[row].1)(request.stream).iter().for_each(|frame| {
                    peer.send(frame);
                }),
                None => drop(peer.answer(request.stream, "200", &[], b"fine")),
            }
        }
    });
    let switch = before(threads, "response_ms_max = 5000", &server).start();
    let mut failures = Vec::new();
    for (row, (what, _, expected)) in ROWS.iter().enumerate() {
        // It is not sent again, and nobody else's answer follows.
        let mut first = switch.client();
        let post = format!("POST / HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 0\r\nX-Row: {row}\r\n");
        first.send(format!("{post}Connection: close\r\n\r\n"));
        let all = first.everything();
        let is_whole = all.ends_with("\r\n0\r\n\r\n") || all.matches("HTTP/1.1").count() > 1;
        let seen = match &all {
            all if all.contains("HTTP/1.1 502 ") => Refused,
            all if all.starts_with("HTTP/1.1 204 ") && all.ends_with("\r\n\r\n") => Bare,
            _ => Cut,
        };
        if seen != *expected || seen == Cut && is_whole || all.contains("evil") {
            failures.push(format!("{what}, HTTP/1: {all:?}"));
        }
        let mut second = begin(&switch);
        second.ask(1, "POST", "/", &[("x-row", &row.to_string())]);
        let outcome = second.outcome(1).expect("HTTP/2");
        let is_fine = match &outcome {
            Outcome::Answer(answer) if *expected == Bare => answer.body.is_empty(),
            Outcome::Answer(answer) => answer.status() == 502,
            Outcome::Reset(_) => *expected != Refused,
            _ => false,
        };
        if !is_fine {
            failures.push(format!("{what}, HTTP/2: {outcome:?}"));
        }
        // The server's next answers are right.
        assert_eq!(
            (first_of(&switch), second.fetch(3, "/next").text().as_str()),
            ("fine".to_owned(), "fine"),
            "{what}"
        );
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

fn first_of(switch: &pointsman_e2e::Switch) -> String {
    switch.get("/next").text()
}

/// As over HTTP/1: bytes and number.
fn heads_over_the_limits(threads: usize) {
    let server = H2Origin::serving(&[], |peer| {
        while let Some(request) = peer.next_whole() {
            let long = "x".repeat(30_000);
            let many: Vec<_> = (0..300).map(|number| (format!("x-{number}"), "1".to_owned())).collect();
            let many: Vec<_> = many.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            match request.path().as_str() {
                "/long" => peer.answer(request.stream, "200", &[("x-long", &long)], b"long"),
                "/fits" => peer.answer(request.stream, "200", &[("x-long", &long[..9000])], b"fits"),
                "/many" => peer.answer(request.stream, "200", &many, b"many"),
                _ => peer.answer(request.stream, "200", &[], b"fine"),
            };
        }
    });
    let keys = "head_bytes_max = 16384\nheaders_max = 100";
    let switch = before(threads, keys, &server).start();
    let (mut first, mut second) = (switch.client(), begin(&switch));
    for (number, (path, status)) in (0..).zip([("/long", 502), ("/fits", 200), ("/many", 502), ("/", 200)]) {
        assert_eq!(first.get(path).status(), status, "{path}");
        assert_eq!(second.fetch(2 * number + 1, path).status(), status, "{path}");
    }
    let error = |path| switch.log_of(path)["error"].as_str().expect("text").to_owned();
    // The frame reader does not tell the two apart.
    let long =
        "the server's response: malformed message of HTTP/2, or head over `head_bytes_max` of the pool";
    assert_eq!(error("/long"), long);
    let many = error("/many");
    assert!(
        many.starts_with(
            "the server's response: more header lines than `headers_max` of the pool (100), at byte "
        ),
        "{many}"
    );
    assert_eq!(server.requests().len(), 8, "none is sent again");
}

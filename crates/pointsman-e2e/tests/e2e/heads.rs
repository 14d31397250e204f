//! Heads that fill the buffers they are read into.

use pointsman_e2e::{Origin, Setup, Then};

pointsman_e2e::for_threads!(
    heads_of_every_length_pass_whole,
    lines_put_right_have_room,
    what_follows_a_head_stays_behind_it
);

/// Lengths on both sides of where a head has no room to grow.
fn lengths() -> impl Iterator<Item = usize> {
    [200].into_iter().chain((16_384 - 260..=16_384).step_by(13)).chain([16_384])
}

/// A head of this length in all, which `start` begins.
fn filled(start: &str, length: usize) -> String {
    let field = "X-Fill: ";
    let end = "\r\n\r\n";
    let fill = "f".repeat(length - start.len() - field.len() - end.len());
    format!("{start}{field}{fill}{end}")
}

fn heads_of_every_length_pass_whole(threads: usize) {
    let origin = Origin::answering("origin", |exchange| {
        let length = exchange.head.field("X-Length").and_then(|text| text.parse().ok()).expect("a length");
        let start = format!("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nX-Length: {length}\r\n");
        exchange.send(filled(&start, length) + "yes");
        Then::KeepAlive
    });
    let switch = Setup::new(threads).pool("standard", &[&origin]).start();
    let mut client = switch.client();
    for length in lengths() {
        let start = format!("GET /a HTTP/1.1\r\nHost: shop.example\r\nX-Length: {length}\r\n");
        let sent = filled(&start, length);
        client.send(&sent);
        let answer = client.response();
        let fill = |text: &str| text.rsplit("X-Fill: ").next().map(|rest| rest.trim_end().to_owned());
        let head = origin.last().head;
        assert_eq!(head.field("X-Fill").map(str::to_owned), fill(&sent), "the request of {length} bytes");
        let names: Vec<_> = head.fields.iter().map(|(name, _)| name.as_str()).collect();
        let added = ["X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host"];
        assert_eq!(names, [&["Host", "X-Length", "X-Fill"][..], &added].concat());
        let came = answer.head.field("X-Fill").map(str::len);
        let start = format!("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nX-Length: {length}\r\n");
        assert_eq!(came, fill(&filled(&start, length)).map(|text| text.len()), "the answer to {length}");
        assert_eq!(answer.text(), "yes");
    }
}

/// Each line that is put right is a space longer than it came.
fn lines_put_right_have_room(threads: usize) {
    const LINES: usize = 90;
    let origin = Origin::answering("origin", |exchange| {
        let start = format!("HTTP/1.1 200 OK\r\nContent-Length:3\r\n{}", "Trailer:a\r\n".repeat(LINES));
        exchange.send(filled(&start, 16_300) + "yes");
        Then::KeepAlive
    });
    let switch = Setup::new(threads).pool("standard", &[&origin]).start();
    let mut client = switch.client();
    for length in [16_250, 16_384] {
        let start = format!("GET / HTTP/1.1\r\nHost:a\r\n{}", "Cookie:aa\r\n".repeat(LINES));
        client.send(filled(&start, length));
        let answer = client.response();
        assert_eq!((answer.status(), answer.text().as_str()), (200, "yes"));
        assert_eq!(answer.head.all("Trailer"), ["a"; LINES]);
        assert_eq!(origin.last().head.all("Cookie"), ["aa"; LINES]);
    }
}

/// The next request, or a body, lies in the same buffer.
fn what_follows_a_head_stays_behind_it(threads: usize) {
    let origin = Origin::answering("origin", |exchange| {
        let target = exchange.target().to_owned();
        let body = exchange.body();
        let body = String::from_utf8(body.bytes).expect("text");
        exchange.answer("200 OK", &format!("{target} {body}"))
    });
    let switch = Setup::new(threads).pool("standard", &[&origin]).start();
    let mut client = switch.client();
    let get = |target: &str| format!("GET {target} HTTP/1.1\r\nHost: shop.example\r\n\r\n");
    let post = |target: &str, body: &str| {
        let length = body.len();
        format!("POST {target} HTTP/1.1\r\nHost: shop.example\r\nContent-Length: {length}\r\n\r\n{body}")
    };
    let pipelined =
        [get("/1"), post("/2", "two"), get("/3"), get("/4"), post("/5", ""), post("/6", "six")].concat();
    client.send(pipelined);
    for expected in ["/1 ", "/2 two", "/3 ", "/4 ", "/5 ", "/6 six"] {
        assert_eq!(client.response().text(), expected);
    }
}

//! Changes of protocol: which are asked of the server, and which of its answers grant one.

use pointsman_http::{AnswerTo, HeadLimits, RequestHead, ResponseHead, Upgrade};

const KEY: &str = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
const ACCEPT: &str = "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n";
const WEBSOCKET: &str = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n";

fn asked(start: &str, fields: &str, allowed: &[&str]) -> Result<Option<Upgrade>, String> {
    let text = format!("{start}\r\nHost: a\r\n{fields}\r\n");
    let mut head = RequestHead::default();
    assert_eq!(head.parse(text.as_bytes(), &HeadLimits::default()), Ok(true), "{text}");
    let allowed: Vec<Box<str>> = allowed.iter().map(|name| Box::from(*name)).collect();
    head.upgrade(text.as_bytes(), &allowed).map_err(|refusal| format!("{} {refusal:?}", refusal.status()))
}

/// `expected` is the list that the server is sent, `no` where it is sent none, or the refusal.
fn check(start: &str, fields: &str, allowed: &[&str], expected: &str) {
    let found = match asked(start, fields, allowed) {
        Ok(None) => "no".to_owned(),
        Ok(Some(upgrade)) => String::from_utf8(upgrade.lines().to_vec()).expect("a text"),
        Err(refusal) => refusal,
    };
    let expected = match expected {
        "no" => expected.to_owned(),
        refused if refused.starts_with('4') => refused.to_owned(),
        list => format!("Connection: Upgrade\r\nUpgrade: {list}\r\n"),
    };
    assert_eq!(found, expected, "{start} {fields}");
}

#[test]
fn only_what_is_allowed_is_asked_of_the_server() {
    let get = "GET / HTTP/1.1";
    let any = &["websocket", "foo/2", "bar"][..];
    let ask = |list: &str| format!("Connection: keep-alive, upgrade\r\nUpgrade: {list}\r\n");
    check(get, "", any, "no");
    check(get, "Upgrade: bar\r\n", any, "no");
    check(get, "Connection: Upgrade\r\n", any, "no");
    check(get, &ask("bar"), any, "bar");
    check(get, &ask("BAR"), any, "BAR");
    check(get, &ask("bar"), &[], "no");
    check(get, &ask("h2c"), any, "no");
    check(get, &ask("h2c, bar"), any, "bar");
    check(get, &ask(" bar ,, foo/2,foo/3"), any, "bar, foo/2");
    check(get, &format!("{}Upgrade: foo/2\r\n", ask("bar")), any, "bar, foo/2");
    check("GET / HTTP/1.0", &ask("bar"), any, "no");
    check("HEAD / HTTP/1.1", &ask("bar"), any, "no");
    check("POST / HTTP/1.1", &ask("bar"), any, "bar");
    check("POST / HTTP/1.1", &format!("{}Content-Length: 0\r\n", ask("bar")), any, "bar");
    check("POST / HTTP/1.1", &format!("{}Content-Length: 1\r\n", ask("bar")), any, "no");
    check("POST / HTTP/1.1", &format!("{}Transfer-Encoding: chunked\r\n", ask("bar")), any, "no");
}

#[test]
fn a_websocket_handshake_is_whole_or_refused() {
    let get = "GET /chat HTTP/1.1";
    let allowed = &["websocket"][..];
    let whole = format!("{WEBSOCKET}{KEY}");
    check(get, &whole, allowed, "websocket");
    check(get, &whole.replace("websocket", "WebSocket"), allowed, "WebSocket");
    check(get, &whole.replace("websocket", "h2c, websocket"), allowed, "websocket");
    check(get, &whole, &[], "no");
    check("GET /chat HTTP/1.0", &whole, allowed, "no");
    for start in ["POST /chat HTTP/1.1", "HEAD /chat HTTP/1.1", "OPTIONS * HTTP/1.1"] {
        check(start, &whole, allowed, "400 WebSocket");
    }
    let bad = [
        format!("{WEBSOCKET}{KEY}{KEY}"),
        WEBSOCKET.to_owned(),
        format!("{WEBSOCKET}Sec-WebSocket-Key: short\r\n"),
        format!("{WEBSOCKET}Sec-WebSocket-Version: 13\r\n{KEY}"),
        format!("{whole}Content-Length: 3\r\n"),
        format!("{whole}Transfer-Encoding: chunked\r\n"),
        whole.replace("Sec-WebSocket-Version: 13\r\n", ""),
        whole.replace("Connection: Upgrade", "Connection: Upgrade, Sec-WebSocket-Key"),
    ];
    bad.iter().for_each(|fields| check(get, fields, allowed, "400 WebSocket"));
    for version in ["8", "013", "13, 8", "", "99"] {
        let fields = whole.replace("Version: 13", &format!("Version: {version}"));
        check(get, &fields, allowed, "426 WebSocketVersion");
    }
    // Where nobody may change to it, nobody looks whether it could be done.
    check(get, WEBSOCKET, &["bar"], "no");
}

#[test]
fn an_answer_grants_what_was_asked_for() {
    let fields = format!("{WEBSOCKET}{KEY}").replace("websocket", "websocket, bar");
    let asked = asked("GET / HTTP/1.1", &fields, &["websocket", "bar"]).expect("whole").expect("asked");
    let check = |answer: &str, expected: Option<(&str, bool)>| {
        let text = format!("HTTP/1.1 {answer}\r\n");
        let mut head = ResponseHead::default();
        let limits = HeadLimits::default();
        assert_eq!(head.parse(text.as_bytes(), AnswerTo::Other, &limits), Ok(true), "{text}");
        let found = head.grants(text.as_bytes(), &asked);
        let found = found
            .map(|granted| (std::str::from_utf8(granted.protocol).expect("a text"), granted.is_websocket));
        assert_eq!(found, expected, "{answer}");
    };
    let to = |list: &str| format!("101 Go\r\nConnection: upgrade\r\nUpgrade: {list}\r\n");
    check(&to("bar"), Some(("bar", false)));
    check(&format!("{}{ACCEPT}", to("WebSocket")), Some(("WebSocket", true)));
    check(&to("websocket"), None);
    check(&format!("{}{}", to("websocket"), ACCEPT.replace("s3p", "s3q")), None);
    check(&format!("{}{ACCEPT}{ACCEPT}", to("websocket")), None);
    check(&to("foo"), None);
    check(&to(""), None);
    check(&to("bar, websocket"), None);
    check(&format!("{}Upgrade: bar\r\n", to("bar")), None);
    check("101 Go\r\nUpgrade: bar\r\n", None);
    check("101 Go\r\nConnection: upgrade\r\n", None);
    check("200 OK\r\nConnection: upgrade\r\nUpgrade: bar\r\n", None);
}

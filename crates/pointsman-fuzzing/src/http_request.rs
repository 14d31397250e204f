//! Request heads: the codec reads what a second reading reads, in pieces as in one, and forwards what it read.

use pointsman_http::{Framing, HeadLimits, Refusal, RequestHead, Version};

use crate::random::cuts;
use crate::second_reading::{self, Reading, as_sent};

pub(crate) const TOKENS: &[&str] = &[
    "\r\n",
    "\r\n\r\n",
    "\n",
    "\r",
    " ",
    "\t",
    ":",
    ",",
    ";",
    "\0",
    "\u{b}",
    "\r\n ",
    "\r\n\t",
    "GET ",
    "POST ",
    "OPTIONS * ",
    "CONNECT ",
    "TRACE ",
    "HTTP/1.0",
    "HTTP/1.1",
    "HTTP/2.0",
    "/",
    "*",
    "http://a/",
    "https://",
    "a:80",
    "[::1]:8080",
    "Host: a\r\n",
    "Host: a.example\r\n",
    "Transfer-Encoding: chunked\r\n",
    "Transfer-Encoding: ",
    "chunked",
    "gzip, chunked",
    "Content-Length: 5\r\n",
    "Content-Length: ",
    "0",
    "+5",
    "5, 5",
    "999999999999999999",
    "9999999999999999999",
    "Connection: close\r\n",
    "Connection: keep-alive\r\n",
    "Connection: ",
    "x-a, close",
    "host",
    "content-length",
    "Keep-Alive: 1\r\n",
    "TE: trailers\r\n",
    "Upgrade: websocket\r\n",
    "Upgrade: ",
    "foo/2, WebSocket,h2c",
    "Connection: Upgrade\r\n",
    "Connection: upgrade, Sec-WebSocket-Key\r\n",
    "Sec-WebSocket-Version: 13\r\n",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n",
    "Expect: 100-continue\r\n",
    "Proxy-Connection: close\r\n",
    "Max-Forwards: 1\r\n",
    "Trailer: ",
    "X_A: 1\r\n",
    "Content.Length: 1\r\n",
    "X-A: 1\r\n",
    "é",
    "\u{7f}",
];

/// Panics where a property does not hold.
///
/// # Panics
/// With the property.
pub fn check(input: &[u8]) {
    let limits = HeadLimits::default();
    let verdict = parse(input, &limits);
    match &verdict {
        Ok(Some(head)) => {
            let reading = second_reading::request(input).expect("the second reading accepts it too");
            agree(head, &reading, input);
            forwarded_is_read_alike(head, input);
            asked_is_read_alike(head, input);
            tighter_limits(head, input);
        }
        Ok(None) => {
            assert_eq!(second_reading::request(input), None, "unfinished, but whole in the second reading")
        }
        Err(refusal) if is_about_size(*refusal) => {}
        Err(refusal) => {
            assert_eq!(
                second_reading::request(input),
                None,
                "refused for {refusal:?}, but not in the second reading"
            );
        }
    }
    in_pieces(input, &verdict, &limits);
}

/// A head, nothing where it is unfinished, or why it is refused.
fn parse(input: &[u8], limits: &HeadLimits) -> Result<Option<RequestHead>, Refusal> {
    let mut head = RequestHead::default();
    Ok(head.parse(input, limits)?.then_some(head))
}

fn is_about_size(refusal: Refusal) -> bool {
    matches!(refusal, Refusal::HeadTooLarge | Refusal::TooManyHeaders | Refusal::TargetTooLong)
}

fn agree(head: &RequestHead, reading: &Reading<'_>, input: &[u8]) {
    let version: &[u8] = if head.version() == Version::Http11 { b"HTTP/1.1" } else { b"HTTP/1.0" };
    assert_eq!([head.method_name(input), head.target(input), version], reading.first[..]);
    let lines: Vec<_> = head.lines().iter().map(|line| (line.name(input), line.value(input))).collect();
    assert_eq!(lines, reading.lines);
    assert_eq!(head.framing(), reading.announced.unwrap_or(Framing::None));
    assert_eq!(head.head_bytes(), reading.head_bytes);
    assert_eq!(head.keeps_alive(), reading.keeps_alive(version));
    for line in head.lines() {
        let name = line.name(input);
        let is_idle = name.eq_ignore_ascii_case(b"expect") && !head.expects_continue();
        let ends_here = reading.ends_here(name) || is_idle;
        assert_eq!(line.dropped, ends_here, "what ends here: {}", name.escape_ascii());
        assert_eq!(line.hidden, reading.named.contains(&name.to_ascii_lowercase()));
    }
    let hosts: Vec<&[u8]> = reading.values(b"host").collect();
    assert!(hosts.is_empty() || hosts == [head.authority(input)]);
}

/// The server reads in what it is sent the change of protocol that it is asked for, and no other.
fn asked_is_read_alike(head: &RequestHead, input: &[u8]) {
    let allowed: [Box<str>; 2] = ["websocket", "foo/2"].map(Box::from);
    let Ok(Some(upgrade)) = head.upgrade(input, &allowed) else { return };
    let mut out = Vec::new();
    head.forward(input, None, upgrade.lines(), &mut out);
    let next = parse(&out, &roomy()).expect("the forwarded head is accepted").expect("it is whole");
    let is_allowed =
        |protocol: &[u8]| allowed.iter().any(|name| protocol.eq_ignore_ascii_case(name.as_bytes()));
    assert!(next.offered_protocols(&out).all(is_allowed), "{}", out.escape_ascii());
    assert_eq!(next.upgrade(&out, &allowed), Ok(Some(upgrade)));
}

/// The server reads in what it is sent the request that was received.
fn forwarded_is_read_alike(head: &RequestHead, input: &[u8]) {
    let mut out = Vec::new();
    let has_host = head.lines().iter().any(|line| line.name(input).eq_ignore_ascii_case(b"host"));
    let authority = match head.authority(input) {
        b"" => b"a",
        authority => authority,
    };
    let host = [b"Host: ", authority, b"\r\n"].concat();
    head.forward(input, None, if has_host { b"" } else { &host }, &mut out);
    let next = parse(&out, &roomy()).expect("the forwarded head is accepted").expect("it is whole");
    assert_eq!(next.head_bytes(), out.len(), "nothing follows the forwarded head");
    assert_eq!(next.method_name(&out), head.method_name(input));
    assert_eq!(next.target(&out), head.target(input));
    assert_eq!(next.framing(), head.framing());
    assert_eq!(next.version(), Version::Http11);
    assert!(next.keeps_alive(), "nothing is said of the connection");
    let kept = head.lines().iter().filter(|line| !line.dropped);
    let kept: Vec<_> =
        kept.map(|line| (line.name(input), as_sent(line.name(input), line.value(input)))).collect();
    let mut sent: Vec<_> = next.lines().iter().map(|line| (line.name(&out), line.value(&out))).collect();
    if !has_host {
        assert_eq!(sent.pop(), Some((&b"Host"[..], authority)));
    }
    assert_eq!(sent, kept);
    let mut again = Vec::new();
    next.forward(&out, None, b"", &mut again);
    assert_eq!(again, out, "a second hop changes nothing");
}

/// The Host line that 1.0 lacks may not be what breaks a limit.
fn roomy() -> HeadLimits {
    let limits = HeadLimits::default();
    HeadLimits { head_bytes_max: limits.head_bytes_max + 300, headers_max: limits.headers_max + 1, ..limits }
}

/// Limits that just fit change nothing, and one less refuses for its size.
fn tighter_limits(head: &RequestHead, input: &[u8]) {
    let fits = HeadLimits {
        head_bytes_max: head.head_bytes(),
        headers_max: head.lines().len(),
        target_bytes_max: head.target(input).len(),
    };
    let whole = &input[..head.head_bytes()];
    if head.method_name(input).len() <= 32 {
        assert!(matches!(parse(whole, &fits), Ok(Some(_))), "limits that just fit");
    }
    let refused = |limits| parse(whole, &limits).err();
    let shorter = HeadLimits { head_bytes_max: fits.head_bytes_max - 1, ..HeadLimits::default() };
    assert_eq!(refused(shorter), Some(Refusal::HeadTooLarge));
    let target = HeadLimits { target_bytes_max: fits.target_bytes_max - 1, ..HeadLimits::default() };
    assert_eq!(refused(target), Some(Refusal::TargetTooLong));
    if let Some(fewer) = fits.headers_max.checked_sub(1) {
        let fewer = HeadLimits { headers_max: fewer, ..HeadLimits::default() };
        assert_eq!(refused(fewer), Some(Refusal::TooManyHeaders));
    }
}

/// What is said of a prefix is said of the whole, and one value read again and again says the same.
fn in_pieces(input: &[u8], whole: &Result<Option<RequestHead>, Refusal>, limits: &HeadLimits) {
    let head_bytes = whole.as_ref().ok().and_then(|head| Some(head.as_ref()?.head_bytes()));
    let mut used = RequestHead::default();
    for cut in cuts(input, head_bytes.unwrap_or(input.len())) {
        let found = used.parse(&input[..cut], limits);
        match (whole, head_bytes) {
            (_, Some(head_bytes)) => {
                assert_eq!(found, Ok(cut >= head_bytes), "{cut} bytes of an accepted head")
            }
            (Err(refusal), _) => match found {
                Ok(accepted) => {
                    assert!(!accepted, "{cut} bytes are accepted, all are refused for {refusal:?}")
                }
                Err(early) => {
                    let alike = early == *refusal || is_about_size(early) || is_about_size(*refusal);
                    assert!(alike, "{cut} bytes are refused for {early:?}, all for {refusal:?}");
                }
            },
            _ => assert_eq!(found, Ok(false), "{cut} bytes of an unfinished head"),
        }
        if found == Ok(true) {
            let fresh = parse(&input[..cut], limits).expect("as before").expect("as before");
            assert_eq!(
                format!("{used:?}"),
                format!("{fresh:?}"),
                "something is left over from an earlier head"
            );
        }
    }
}

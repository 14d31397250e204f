//! Requests from one version to the other: each is one head with the lines that it has, and no other.

use pointsman_h2::heads::{Asked, Fields, request_as_http1, request_as_http2};
use pointsman_http::{Framing, HeadLimits, RequestHead, TargetForm};

pub(crate) const TOKENS: &[&str] = &[
    "GET",
    "POST",
    "CONNECT",
    "OPTIONS",
    "*",
    "/",
    "/a?b=c",
    "a.example",
    "a.example:443",
    "user@a",
    "[::1]",
    "websocket",
    "foo/2",
    "web socket",
    "websocket\r\nX: 1",
    "\n",
    "\r\n",
    "\r\n\r\n",
    "\0",
    " ",
    "\t",
    ":",
    "#",
    "host:a.example",
    "host:b",
    "cookie:a=1",
    "cookie:b=2",
    "te:trailers",
    "content-length:5",
    "content-length:0",
    "transfer-encoding:chunked",
    "connection:close",
    "upgrade:h2c",
    "sec-websocket-key:x",
    "sec-websocket-version:13",
    "x:1",
    "x: padded ",
    "X:1",
    "é",
];

/// The pieces of an input: the four pseudo-headers, and fields behind them. NUL stands between them, so that a line's
/// end may stand anywhere in them.
///
/// # Panics
/// With the property that does not hold.
pub fn check(input: &[u8]) {
    let asked = asked(input);
    for has_body in [false, true] {
        if let Some((head, framing, oddity)) = request_as_http1(&asked, has_body) {
            assert_eq!(is_one_head(&head), Ok(()), "{}", head.escape_ascii());
            let expected = expected(&asked);
            let lines = head.iter().filter(|byte| **byte == b'\n').count() - 2;
            let made = lines.checked_sub(expected.len()).expect("no line is lost");
            let is_upgrade = asked.protocol.as_deref().is_some_and(is_protocol);
            let upgrade_lines = match asked.protocol.as_deref() {
                Some(name) if is_upgrade && name.eq_ignore_ascii_case("websocket") => 3,
                _ if is_upgrade => 2,
                _ => 0,
            };
            assert_eq!(made, upgrade_lines + usize::from(framing == Framing::Chunked), "lines are made up");
            let is_padded = asked.fields.iter().any(|(_, value)| value.trim_ascii() != value);
            assert!(oddity.is_some() || !is_padded || !is_shown(&asked), "white space is told");
            assert!(oddity.is_some() || asked.protocol.is_none() || is_upgrade, "no name is told");
            read_alike(&asked, &expected, &head, framing);
        }
    }
    if let Some(message) = input.split(|byte| *byte == 0).nth(5) {
        to_server(message);
    }
}

/// Whether white space around one of its values can be seen: of TE and of a key that is not passed on it cannot.
fn is_shown(asked: &Asked) -> bool {
    asked.fields.iter().any(|(name, value)| name != b"te" && value.trim_ascii() != value)
}

pub(crate) fn asked(input: &[u8]) -> Asked {
    let mut pieces = input.split(|byte| *byte == 0);
    let mut next = || pieces.next().unwrap_or_default();
    let (method, path, authority, protocol) = (next(), next(), next(), next());
    let some = |piece: &[u8]| (!piece.is_empty()).then(|| piece.to_vec());
    Asked {
        method: method.to_vec(),
        path: some(path),
        authority: some(authority),
        protocol: some(protocol).and_then(|protocol| String::from_utf8(protocol).ok()),
        fields: fields(next()),
    }
}

/// Fields of which each stands in a line, as far as lines go; the rest of a text is the last one's value.
pub(crate) fn fields(text: &[u8]) -> Fields {
    let field = |line: &[u8]| {
        let colon = line.iter().position(|byte| *byte == b':')?;
        Some((line[..colon].to_vec(), line[colon + 1..].to_vec()))
    };
    text.split(|byte| *byte == b'\n').filter_map(field).collect()
}

/// Line ends stand where lines end, and an empty line only at the end.
pub(crate) fn is_one_head(head: &[u8]) -> Result<(), &'static str> {
    let body = head.strip_suffix(b"\r\n\r\n").ok_or("it has no end")?;
    for line in body.split(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() || line.contains(&b'\r') || line.contains(&0) {
            return Err("a line is none");
        }
    }
    let ends = |byte| body.iter().filter(|other| **other == byte).count();
    if ends(b'\r') == ends(b'\n') { Ok(()) } else { Err("a line ends otherwise") }
}

/// A name, and perhaps a version behind it (RFC 9110 section 7.8); whoever parses the head is stricter.
fn is_protocol(name: &str) -> bool {
    pointsman_http::is_token(name.replace('/', "a").as_bytes())
}

/// What the lines must be, but for those that ask for another protocol or frame a body.
fn expected(asked: &Asked) -> Fields {
    let mut lines: Fields = Vec::new();
    lines.extend(asked.authority.clone().map(|authority| (b"host".to_vec(), authority)));
    let mut names: Vec<&[u8]> = Vec::new();
    for (name, _) in &asked.fields {
        if !names.contains(&&name[..]) {
            names.push(name);
        }
    }
    for name in names {
        let values = asked.fields.iter().filter(|(other, _)| other == name).map(|(_, value)| value.clone());
        let is_left_out = name == b"te"
            || name == b"host" && asked.authority.is_some()
            || name == b"sec-websocket-key" && asked.protocol.is_some();
        if name == b"cookie" {
            lines.push((name.to_vec(), values.collect::<Vec<_>>().join(&b"; "[..])));
        } else if !is_left_out {
            lines.extend(values.map(|value| (name.to_vec(), value)));
        }
    }
    // An empty port is none (RFC 3986 section 6.2.3).
    for (_, value) in lines.iter_mut().filter(|(name, _)| name == b"host") {
        value.pop_if(|last| *last == b':');
    }
    lines
}

/// Where the switch takes the head, it reads what was asked for.
fn read_alike(asked: &Asked, expected: &Fields, head: &[u8], framing: Framing) {
    let mut read = RequestHead::default();
    if read.parse(head, &HeadLimits::default()) != Ok(true) {
        return;
    }
    assert_eq!(read.head_bytes(), head.len(), "nothing follows");
    let method = if asked.protocol.is_some() { b"GET" } else { &asked.method[..] };
    assert_eq!(read.method_name(head), method);
    let path = asked.path.as_deref().unwrap_or(b"/");
    // A fragment is no part of what is asked for (RFC 9112 section 3.2).
    let path = path.split(|byte| *byte == b'#').next().unwrap_or_default();
    let target = read.target(head);
    assert!(target == path || path.is_empty() && target == b"/", "{}", target.escape_ascii());
    let lines = read.lines().iter().map(|line| (line.name(head).to_ascii_lowercase(), line.value(head)));
    let lines: Vec<_> = lines.collect();
    for (line, (name, value)) in lines.iter().zip(expected) {
        assert_eq!((&line.0, line.1), (name, value.trim_ascii()));
    }
    let more: Vec<&[u8]> = lines[expected.len()..].iter().map(|(name, _)| &name[..]).collect();
    let made: [&[u8]; 4] = [b"connection", b"upgrade", b"sec-websocket-key", b"transfer-encoding"];
    assert!(more.iter().all(|name| made.contains(name)), "{}", head.escape_ascii());
    // The frame reader sees to it that a request that has ended with its head announces nothing.
    if framing != Framing::None && framing != Framing::Length(0) {
        assert_eq!(read.framing(), framing);
    }
}

/// What the switch sends a server of HTTP/2 is the request that it read.
fn to_server(message: &[u8]) {
    let mut read = RequestHead::default();
    if read.parse(message, &HeadLimits::default()) != Ok(true) || read.form() != TargetForm::Origin {
        return;
    }
    let mut head = Vec::new();
    read.forward(message, None, b"", &mut head);
    let Some((asked, framing)) = request_as_http2(&head) else { return };
    assert_eq!(asked.method, read.method_name(message));
    assert_eq!(framing, read.framing());
    let mut sent = RequestHead::default();
    assert_eq!(sent.parse(&head, &HeadLimits::default()), Ok(true));
    let target = sent.target(&head);
    assert!(asked.path.as_deref() == Some(target), "{}", target.escape_ascii());
    assert!(asked.authority.as_deref() == Some(sent.authority(&head)), "{asked:?}");
    for (name, value) in &asked.fields {
        let is_there = sent
            .lines()
            .iter()
            .any(|line| line.name(&head).eq_ignore_ascii_case(name) && line.value(&head) == &value[..]);
        assert!(is_there || name == b"te" && value == b"trailers", "{}", name.escape_ascii());
    }
}

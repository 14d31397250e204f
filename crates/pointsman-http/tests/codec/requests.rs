//! Request heads: what is accepted, what is refused, however the bytes arrive.

use pointsman_http::{
    Framing, HeadLimits, HeaderKind, Method, Refusal, RequestHead, TargetForm, Unfinished, Version,
};
use proptest::prelude::*;

use crate::vectors::{cases, name_of};

/// What a head was taken for, as vector files have it, and what is forwarded.
fn outcome(head: &mut RequestHead, raw: &[u8]) -> (String, Vec<u8>) {
    let parsed = head.parse(raw, &HeadLimits::default());
    outcome_of(parsed, head, raw)
}

fn outcome_of(parsed: Result<bool, Refusal>, head: &RequestHead, raw: &[u8]) -> (String, Vec<u8>) {
    let mut forwarded = Vec::new();
    let line = match parsed {
        Ok(false) => "more".to_owned(),
        Ok(true) => {
            head.forward(raw, None, b"", &mut forwarded);
            let keeps = if head.keeps_alive() { "keep" } else { "close" };
            format!("{keeps} {}", name_of(head.framing()))
        }
        Err(refusal) => format!("{} {refusal:?}", refusal.status()),
    };
    (line, forwarded)
}

/// The outcome when bytes come one by one. What is remembered of a head changes nothing about it.
fn outcome_one_by_one(raw: &[u8]) -> (String, Vec<u8>) {
    let mut head = RequestHead::default();
    let mut unfinished = Unfinished::default();
    let mut found = outcome(&mut head, b"");
    for bytes in 0..=raw.len() {
        let raw = &raw[..bytes];
        let parsed = head.parse_on(raw, &mut unfinished, &HeadLimits::default());
        found = outcome_of(parsed, &head, raw);
        assert_eq!(outcome(&mut head, raw), found, "{}", String::from_utf8_lossy(raw));
        if found.0 != "more" {
            break;
        }
    }
    found
}

#[test]
fn vectors() {
    let cases = cases(include_str!("../../../../testdata/http1/requests.txt"));
    assert!(cases.len() > 90);
    // One head for all: nothing may be left over from the one before.
    let mut head = RequestHead::default();
    for case in cases {
        let expected = (case.expected.to_owned(), case.forwarded);
        assert_eq!(outcome(&mut head, &case.raw), expected, "{}", case.title);
        assert_eq!(outcome_one_by_one(&case.raw), expected, "{}, one by one", case.title);
    }
}

fn parsed(raw: &[u8]) -> RequestHead {
    let mut head = RequestHead::default();
    assert_eq!(head.parse(raw, &HeadLimits::default()), Ok(true), "{}", String::from_utf8_lossy(raw));
    head
}

#[test]
fn the_parts_of_a_head() {
    let raw = b"\r\nPUT http://A.example:80/x?y HTTP/1.1\r\nhost: A.example:80\r\nX: \t v w \t\r\n\
        Expect: 100-continue\r\nContent-Length: 3\r\n\r\nabc";
    let head = parsed(raw);
    assert_eq!(head.method(), Method::Put);
    assert_eq!(head.method_name(raw), b"PUT");
    assert_eq!(head.target(raw), b"http://A.example:80/x?y");
    assert_eq!(head.form(), TargetForm::Absolute);
    assert_eq!(head.path_and_query(raw), b"/x?y");
    assert_eq!(head.authority(raw), b"A.example:80");
    assert_eq!(head.version(), Version::Http11);
    assert_eq!(head.framing(), Framing::Length(3));
    assert_eq!(&raw[head.head_bytes()..], b"abc");
    assert!(head.expects_continue() && head.keeps_alive());
    let lines: Vec<_> =
        head.lines().iter().map(|line| (line.name(raw), line.value(raw), line.kind)).collect();
    assert_eq!(
        lines,
        [
            (&b"host"[..], &b"A.example:80"[..], HeaderKind::Host),
            (b"X", b"v w", HeaderKind::Plain),
            (b"Expect", b"100-continue", HeaderKind::Expect),
            (b"Content-Length", b"3", HeaderKind::ContentLength),
        ]
    );
}

#[test]
fn the_path_of_an_absolute_target_may_be_empty() {
    let raw = b"GET http://a HTTP/1.0\r\n\r\n";
    let head = parsed(raw);
    assert_eq!(head.path_and_query(raw), b"");
    assert_eq!(head.authority(raw), b"a");
}

#[test]
fn nobody_waits_for_100_without_a_body_or_in_1_0() {
    for (raw, expected) in [
        (&b"PUT / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n"[..], false),
        (b"PUT / HTTP/1.0\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n", false),
        (b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n", false),
        (b"PUT / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n", true),
    ] {
        assert_eq!(parsed(raw).expects_continue(), expected, "{}", String::from_utf8_lossy(raw));
    }
}

#[test]
fn what_connection_names_is_hidden_and_what_ends_here_is_only_dropped() {
    let raw = b"GET / HTTP/1.1\r\nHost: a\r\nX: 1\r\nTE: a\r\nConnection: x\r\nY: 1\r\n\r\n";
    let head = parsed(raw);
    let marks: Vec<_> = head.lines().iter().map(|line| (line.name(raw), line.hidden, line.dropped)).collect();
    assert_eq!(
        marks,
        [
            (&b"Host"[..], false, false),
            (b"X", true, true),
            (b"TE", false, true),
            (b"Connection", false, true),
            (b"Y", false, false),
        ]
    );
}

#[test]
fn every_refusal_has_a_sentence() {
    for refusal in [Refusal::Syntax, Refusal::HeadTooLarge, Refusal::Connect] {
        assert!(!refusal.sentence().is_empty() && refusal.status() >= 400);
    }
}

/// Mostly what is right, so that heads get far enough for what is wrong to matter.
fn mostly(right: &[&'static str], wrong: &[&'static str]) -> impl Strategy<Value = &'static str> + Clone {
    prop_oneof![20 => prop::sample::select(right.to_vec()), 1 => prop::sample::select(wrong.to_vec())]
}

/// Heads out of pieces that are right, nearly right and wrong.
fn heads() -> impl Strategy<Value = Vec<u8>> {
    let before = mostly(&["", "\r\n", "\r\n\r\n"], &["\n", "\r", " "]);
    let method = mostly(&["GET", "POST", "OPTIONS", "X-Y"], &["CONNECT", "G T", ""]);
    let target = mostly(&["/", "/a?b", "http://a", "http://a/x"], &["*", "/a b", "a", ""]);
    let version = mostly(&["HTTP/1.1", "HTTP/1.0"], &["HTTP/2", "HTTP/1.", "HTTP/12", "HTTP", ""]);
    let host = mostly(&["Host: a\r\n"], &["Host: b\r\n", "Host:\r\n", "Host: a\r\nHost: a\r\n", ""]);
    let end = mostly(&["\r\n"], &["\n", "\r", "", "\r\r\n"]);
    let lines = prop::collection::vec((header_lines(), end.clone()), 0..6);
    (before, method, target, version, host, lines, end).prop_map(
        |(before, method, target, version, host, lines, end)| {
            let lines: String = lines.into_iter().flat_map(|(line, end)| [line, end]).collect();
            format!("{before}{method} {target} {version}\r\n{host}{lines}{end}").into_bytes()
        },
    )
}

fn header_lines() -> impl Strategy<Value = &'static str> {
    const RIGHT: &[&str] = &[
        "X: 1",
        "x:",
        "X: \t1 \t",
        "X: caf\u{e9}",
        "Content-Length: 5",
        "Transfer-Encoding: chunked",
        "Connection: close",
        "Connection: keep-alive",
        "Connection: X, y",
        "Keep-Alive: 1",
        "Y: 1",
        "Upgrade: a",
        "Expect: 100-continue",
    ];
    const WRONG: &[&str] = &[
        "Content-Length: +5",
        "Transfer-Encoding: gzip, chunked",
        "transfer-encoding:\u{b}chunked",
        "Connection: host",
        "Expect: x",
        "X: \u{7f}",
        "X: \0",
        "X : 1",
        " X: 1",
        "X",
        ": 1",
    ];
    mostly(RIGHT, WRONG)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn it_is_the_same_head_however_it_arrives(raw in heads()) {
        prop_assert_eq!(outcome_one_by_one(&raw), outcome(&mut RequestHead::default(), &raw));
    }

    #[test]
    fn what_is_forwarded_is_a_head_without_hop_by_hop_fields(raw in heads()) {
        let mut head = RequestHead::default();
        if head.parse(&raw, &HeadLimits::default()) == Ok(true) && !head.authority(&raw).is_empty() {
            let has_host = head.lines().iter().any(|line| line.kind == HeaderKind::Host);
            let added: &[u8] = if has_host { b"" } else { b"Host: a\r\n" };
            let mut forwarded = Vec::new();
            head.forward(&raw, None, added, &mut forwarded);
            let mut again = RequestHead::default();
            prop_assert_eq!(again.parse(&forwarded, &HeadLimits::default()), Ok(true));
            prop_assert_eq!(again.head_bytes(), forwarded.len());
            prop_assert_eq!(again.framing(), head.framing());
            prop_assert_eq!(again.target(&forwarded), head.target(&raw));
            prop_assert_eq!(again.authority(&forwarded), head.authority(&raw));
            prop_assert!(again.lines().iter().all(|line| !line.dropped && !line.hidden));
        }
    }

    #[test]
    fn any_bytes_are_a_head_or_not(raw in prop::collection::vec(any::<u8>(), 0..80)) {
        let found = outcome(&mut RequestHead::default(), &raw);
        prop_assert_eq!(outcome_one_by_one(&raw), found);
    }
}

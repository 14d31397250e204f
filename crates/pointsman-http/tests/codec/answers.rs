//! Answers' heads: what is accepted, what is refused, however the bytes arrive.

use pointsman_http::{AnswerTo, HeadLimits, Refusal, ResponseHead, Unfinished};
use proptest::prelude::*;

use crate::vectors::{cases, name_of};

fn outcome(head: &mut ResponseHead, raw: &[u8], to: AnswerTo) -> (String, Vec<u8>) {
    let parsed = head.parse(raw, to, &HeadLimits::default());
    outcome_of(parsed, head, raw)
}

fn outcome_of(parsed: Result<bool, Refusal>, head: &ResponseHead, raw: &[u8]) -> (String, Vec<u8>) {
    let mut forwarded = Vec::new();
    let line = match parsed {
        Ok(false) => "more".to_owned(),
        Ok(true) => {
            head.forward(raw, b"", &mut forwarded);
            let keeps = if head.keeps_alive() { "keep" } else { "close" };
            format!("{} {keeps} {}", head.status(), name_of(head.framing()))
        }
        Err(refusal) => format!("refused {refusal:?}"),
    };
    (line, forwarded)
}

/// The outcome when bytes come one by one. What is remembered of a head changes nothing about it.
fn outcome_one_by_one(raw: &[u8], to: AnswerTo) -> (String, Vec<u8>) {
    let mut head = ResponseHead::default();
    let mut unfinished = Unfinished::default();
    let mut found = outcome(&mut head, b"", to);
    for bytes in 0..=raw.len() {
        let raw = &raw[..bytes];
        let parsed = head.parse_on(raw, &mut unfinished, to, &HeadLimits::default());
        found = outcome_of(parsed, &head, raw);
        assert_eq!(outcome(&mut head, raw, to), found, "{}", String::from_utf8_lossy(raw));
        if found.0 != "more" {
            break;
        }
    }
    found
}

#[test]
fn vectors() {
    let cases = cases(include_str!("../../../../testdata/http1/answers.txt"));
    assert!(cases.len() > 30);
    let mut head = ResponseHead::default();
    for case in cases {
        let to = if case.title.starts_with("[HEAD]") { AnswerTo::Head } else { AnswerTo::Other };
        let expected = (case.expected.to_owned(), case.forwarded);
        assert_eq!(outcome(&mut head, &case.raw, to), expected, "{}", case.title);
        assert_eq!(outcome_one_by_one(&case.raw, to), expected, "{}, one by one", case.title);
    }
}

#[test]
fn only_1xx_is_interim() {
    for (status, interim) in [(100, true), (103, true), (199, true), (200, false), (304, false)] {
        let raw = format!("HTTP/1.1 {status} x\r\n\r\nnext");
        let mut head = ResponseHead::default();
        assert_eq!(head.parse(raw.as_bytes(), AnswerTo::Other, &HeadLimits::default()), Ok(true));
        assert_eq!(head.is_interim(), interim, "{status}");
        assert_eq!(&raw[head.head_bytes()..], "next");
    }
}

proptest! {
    #[test]
    fn any_bytes_are_an_answer_or_not(rest in prop::collection::vec(any::<u8>(), 0..60)) {
        for start in [&b""[..], b"HTTP/1.1 ", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.0 204\r\nX:"] {
            let raw = [start, &rest].concat();
            let found = outcome(&mut ResponseHead::default(), &raw, AnswerTo::Other);
            prop_assert_eq!(outcome_one_by_one(&raw, AnswerTo::Other), found);
        }
    }
}

#[test]
fn a_fault_has_its_place() {
    let limits = HeadLimits { head_bytes_max: 60, headers_max: 2, target_bytes_max: 0 };
    for (head, at) in [
        ("HTTP/1.1 200 OK\r\nBad Header: x\r\n\r\n", 21),
        ("HTTP/1.1 200 OK\nX: y\r\n\r\n", 15),
        ("HTTX/1.1 200 OK\r\n\r\n", 3),
        ("HTTP/1.1 200 OK\r\nX: \x01\r\n\r\n", 20),
        ("HTTP/1.1 200 OK\r\nA: 1\r\nContent-Length: x\r\n\r\n", 23),
        ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 36),
        ("HTTP/1.1 200 OK\r\nA: 1\r\nB: 2\r\nC: 3\r\n\r\n", 30),
        ("HTTP/1.1 200 OK\r\nA: 12345678901234567890123456789012345678901234567890\r\n\r\n", 59),
    ] {
        let found = ResponseHead::default().fault_at(head.as_bytes(), AnswerTo::Other, &limits);
        assert_eq!(found, at, "{head:?}");
    }
}

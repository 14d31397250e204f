//! Answers' heads: what is accepted, what is refused, however the bytes arrive.

use pointsman_http::{AnswerTo, HeadLimits, ResponseHead};
use proptest::prelude::*;

use crate::vectors::{cases, name_of};

fn outcome(head: &mut ResponseHead, raw: &[u8], to: AnswerTo) -> (String, Vec<u8>) {
    let mut forwarded = Vec::new();
    let line = match head.parse(raw, to, &HeadLimits::default()) {
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

fn outcome_one_by_one(raw: &[u8], to: AnswerTo) -> (String, Vec<u8>) {
    let mut head = ResponseHead::default();
    for bytes in 0..raw.len() {
        let found = outcome(&mut head, &raw[..bytes], to);
        if found.0 != "more" {
            return found;
        }
    }
    outcome(&mut head, raw, to)
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

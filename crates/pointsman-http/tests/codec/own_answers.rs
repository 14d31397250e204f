//! Answers that the switch gives itself, read back by its own parser.

use pointsman_http::{Answer, AnswerTo, Framing, HeadLimits, ResponseHead, Version, reason_phrase};

const ANSWER: Answer<'static> = Answer {
    status: 403,
    lines: b"",
    body: b"no agent",
    closes: false,
    version: Version::Http11,
    to_head: false,
};

fn check(answer: &Answer<'_>, expected: &str) {
    let mut out = Vec::new();
    answer.write(&mut out);
    assert_eq!(String::from_utf8_lossy(&out), expected);
    let to = if answer.to_head { AnswerTo::Head } else { AnswerTo::Other };
    let mut head = ResponseHead::default();
    assert_eq!(head.parse(&out, to, &HeadLimits::default()), Ok(true));
    assert_eq!(head.keeps_alive(), !answer.closes);
    let body_bytes = out.len() - head.head_bytes();
    let framing = if body_bytes == 0 { Framing::None } else { Framing::Length(body_bytes as u64) };
    assert_eq!(head.framing(), framing, "{expected}");
}

#[test]
fn with_a_body() {
    let head = "HTTP/1.1 403 Forbidden\r\nContent-Length: 8\r\n";
    check(&ANSWER, &format!("{head}\r\nno agent"));
    check(&Answer { to_head: true, ..ANSWER }, &format!("{head}\r\n"));
    check(&Answer { closes: true, ..ANSWER }, &format!("{head}Connection: close\r\n\r\nno agent"));
    check(
        &Answer { version: Version::Http10, ..ANSWER },
        &format!("{head}Connection: keep-alive\r\n\r\nno agent"),
    );
}

#[test]
fn without_a_body() {
    check(
        &Answer { status: 302, lines: b"Location: /a\r\n", body: b"", ..ANSWER },
        "HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\
            Location: /a\r\n\r\n",
    );
    check(&Answer { status: 204, ..ANSWER }, "HTTP/1.1 204 No Content\r\n\r\n");
    check(&Answer { status: 304, ..ANSWER }, "HTTP/1.1 304 Not Modified\r\n\r\n");
}

#[test]
fn a_status_without_a_phrase_is_still_an_answer() {
    assert_eq!(reason_phrase(599), "");
    check(&Answer { status: 599, body: b"", ..ANSWER }, "HTTP/1.1 599 \r\nContent-Length: 0\r\n\r\n");
}

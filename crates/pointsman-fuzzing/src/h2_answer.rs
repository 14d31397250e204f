//! Answers from one version to the other: each is one head with the status and the lines that it has, and no other.

use pointsman_h2::heads::{Fields, answer_as_http1, answer_as_http2};
use pointsman_http::{AnswerTo, HeadLimits, ResponseHead};

use crate::h2_request::{fields, is_one_head};

/// What is about a connection, and stays on it.
const OF_CONNECTION: [&[u8]; 5] =
    [b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade"];

/// An answer of a server of HTTP/1.1, which goes to a client of HTTP/2; and a status with fields, the other way.
///
/// # Panics
/// With the property that does not hold.
pub fn check(input: &[u8]) {
    to_client(input);
    let (status, text) = input.split_at(input.len().min(3));
    let status = std::str::from_utf8(status).ok().and_then(|status| status.parse().ok()).unwrap_or(200);
    from_server(status, &fields(text));
}

fn to_client(input: &[u8]) {
    let mut read = ResponseHead::default();
    if read.parse(input, AnswerTo::Other, &HeadLimits::default()) != Ok(true) {
        return;
    }
    let mut head = Vec::new();
    read.forward(input, b"", &mut head);
    let (status, fields, used) = answer_as_http2(&head).expect("what the codec takes can be said");
    assert_eq!((status, used), (read.status(), head.len()));
    let mut sent = ResponseHead::default();
    assert_eq!(sent.parse(&head, AnswerTo::Other, &HeadLimits::default()), Ok(true));
    let lines =
        sent.lines().iter().map(|line| (line.name(&head).to_ascii_lowercase(), line.value(&head).to_vec()));
    let lines: Fields = lines.filter(|(name, _)| !OF_CONNECTION.contains(&&name[..])).collect();
    let sorted = |mut fields: Fields| {
        // The order of fields of other names says nothing (RFC 9110 section 5.3); the sort keeps that of one name.
        fields.sort_by(|one, other| one.0.cmp(&other.0));
        fields
    };
    assert_eq!(sorted(fields), sorted(lines));
}

fn from_server(status: u16, fields: &Fields) {
    let has_length = fields.iter().any(|(name, _)| name == b"content-length");
    let Some(head) = answer_as_http1(status, fields, has_length) else { return };
    assert_eq!(is_one_head(&head), Ok(()), "{}", head.escape_ascii());
    let lines = head.iter().filter(|byte| **byte == b'\n').count() - 2;
    assert_eq!(lines, fields.len() + usize::from(!has_length), "a line for each field");
    let mut read = ResponseHead::default();
    if read.parse(&head, AnswerTo::Other, &HeadLimits::default()) != Ok(true) {
        return;
    }
    assert_eq!((read.head_bytes(), read.status()), (head.len(), status));
    for (name, value) in fields {
        let is_there = read.lines().iter().any(|line| {
            line.name(&head).eq_ignore_ascii_case(name) && line.value(&head) == value.trim_ascii()
        });
        assert!(is_there, "{}", name.escape_ascii());
    }
}

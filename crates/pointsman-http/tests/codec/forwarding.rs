//! Forwarding with edits.

use pointsman_http::{AnswerTo, HeadLimits, RequestHead, ResponseHead};

const REQUEST: &[u8] = b"GET /%61?b HTTP/1.1\r\nHost: a\r\nX: 1\r\nConnection: close\r\nY: 2\r\n\r\nbody";

fn check(edit: impl FnOnce(&mut RequestHead), target: Option<&[u8]>, added: &[u8], expected: &str) {
    let mut head = RequestHead::default();
    assert_eq!(head.parse(REQUEST, &HeadLimits::default()), Ok(true));
    edit(&mut head);
    let mut out = b"before ".to_vec();
    head.forward(REQUEST, target, added, &mut out);
    assert_eq!(String::from_utf8_lossy(&out), format!("before {expected}"));
}

#[test]
fn the_target_is_replaced() {
    check(|_| {}, Some(b"/a?b"), b"", "GET /a?b HTTP/1.1\r\nHost: a\r\nX: 1\r\nY: 2\r\n\r\n");
}

#[test]
fn lines_are_added_after_the_others() {
    check(
        |_| {},
        None,
        b"A: 1\r\nB: 2\r\n",
        "GET /%61?b HTTP/1.1\r\nHost: a\r\nX: 1\r\nY: 2\r\nA: 1\r\nB: 2\r\n\r\n",
    );
}

#[test]
fn lines_are_taken_out_wherever_they_stand() {
    let without = |names: &'static [&'static [u8]]| {
        move |head: &mut RequestHead| {
            for line in head.lines_mut().iter_mut().filter(|line| names.contains(&line.name(REQUEST))) {
                line.dropped = true;
            }
        }
    };
    check(without(&[b"Host"]), None, b"", "GET /%61?b HTTP/1.1\r\nX: 1\r\nY: 2\r\n\r\n");
    check(without(&[b"Y"]), None, b"", "GET /%61?b HTTP/1.1\r\nHost: a\r\nX: 1\r\n\r\n");
    check(without(&[b"Host", b"X", b"Y"]), None, b"Z: 1\r\n", "GET /%61?b HTTP/1.1\r\nZ: 1\r\n\r\n");
    check(without(&[b"Host", b"X", b"Y"]), Some(b"*"), b"", "GET * HTTP/1.1\r\n\r\n");
}

#[test]
fn a_line_may_be_put_back() {
    check(
        |head| head.lines_mut().iter_mut().for_each(|line| line.dropped = false),
        None,
        b"",
        "GET /%61?b HTTP/1.1\r\nHost: a\r\nX: 1\r\nConnection: close\r\nY: 2\r\n\r\n",
    );
}

#[test]
fn an_answer_is_edited_the_same_way() {
    let raw = b"HTTP/1.0 200 OK\r\nServer: s\r\nX: 1\r\nContent-Length: 0\r\n\r\n";
    let mut head = ResponseHead::default();
    assert_eq!(head.parse(raw, AnswerTo::Other, &HeadLimits::default()), Ok(true));
    head.lines_mut()[0].dropped = true;
    let mut out = Vec::new();
    head.forward(raw, b"Connection: close\r\n", &mut out);
    let expected = "HTTP/1.1 200 OK\r\nX: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    assert_eq!(String::from_utf8_lossy(&out), expected);
}

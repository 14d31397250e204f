//! Limits of a head: the same answer at the limit and one beyond, however the bytes arrive.

use pointsman_http::{AnswerTo, HeadLimits, Refusal, RequestHead, ResponseHead, Unfinished};

fn whole(raw: &[u8], limits: &HeadLimits) -> Result<bool, Refusal> {
    RequestHead::default().parse(raw, limits)
}

/// The first answer that does not ask for more, when bytes come one by one.
fn one_by_one(raw: &[u8], limits: &HeadLimits) -> Result<bool, Refusal> {
    let (mut head, mut unfinished) = (RequestHead::default(), Unfinished::default());
    let mut parse_on = |bytes| head.parse_on(&raw[..bytes], &mut unfinished, limits);
    (0..=raw.len()).map(&mut parse_on).find(|answer| *answer != Ok(false)).unwrap_or(Ok(false))
}

fn check(raw: &str, limits: &HeadLimits, expected: Result<bool, Refusal>) {
    assert_eq!(whole(raw.as_bytes(), limits), expected, "{raw}");
    assert_eq!(one_by_one(raw.as_bytes(), limits), expected, "one by one: {raw}");
}

#[test]
fn bytes_of_the_head() {
    let raw = "\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let limits = |head_bytes_max| HeadLimits { head_bytes_max, ..HeadLimits::default() };
    check(raw, &limits(raw.len()), Ok(true));
    check(raw, &limits(raw.len() - 1), Err(Refusal::HeadTooLarge));
    // A body in the same buffer does not count.
    assert_eq!(whole(format!("{raw}more and more").as_bytes(), &limits(raw.len())), Ok(true));
    // What stands behind the limit changes nothing, nor does what is wrong with it.
    for behind in ["", "\r\n\r\n", "\x01", " "] {
        check(
            &format!("GET / HTTP/1.1\r\nX: {}{behind}", "x".repeat(100)),
            &limits(100),
            Err(Refusal::HeadTooLarge),
        );
    }
    check("GET / HTTP/1.1\r\nX:\x01", &limits(20), Err(Refusal::Syntax));
}

#[test]
fn empty_lines_before_the_request() {
    let limits = HeadLimits::default();
    for lines in 0..=5 {
        let empty = "\r\n".repeat(lines);
        let (begun, whole) = if lines < 5 {
            (Ok(false), Ok(true))
        } else {
            (Err(Refusal::EmptyLines), Err(Refusal::EmptyLines))
        };
        check(&empty, &limits, begun);
        check(&format!("{empty}GET / HTTP/1.1\r\nHost: a\r\n\r\n"), &limits, whole);
    }
}

#[test]
fn header_lines() {
    let limits = HeadLimits { headers_max: 2, ..HeadLimits::default() };
    check("GET / HTTP/1.1\r\nHost: a\r\nX: 1\r\n\r\n", &limits, Ok(true));
    check("GET / HTTP/1.1\r\nHost: a\r\nX: 1\r\nX: 2\r\n\r\n", &limits, Err(Refusal::TooManyHeaders));
    assert_eq!(Refusal::TooManyHeaders.status(), 431);
}

#[test]
fn bytes_of_the_target() {
    let limits = HeadLimits { target_bytes_max: 100, ..HeadLimits::default() };
    let request = |method: &str, target_bytes: usize| {
        format!("{method} /{} HTTP/1.1\r\nHost: a\r\n\r\n", "x".repeat(target_bytes - 1))
    };
    check(&request("GET", 100), &limits, Ok(true));
    check(&request("GET", 101), &limits, Err(Refusal::TargetTooLong));
    check(&request("GET", 5000), &limits, Err(Refusal::TargetTooLong));
    // A method takes none of the target's room, and what stands behind the limit changes nothing.
    check(&request(&"M".repeat(32), 100), &limits, Ok(true));
    for behind in ["", " HTTP/1.1\r\n\r\n", "\x01", "\n", " x"] {
        check(&format!("GET /{}{behind}", "x".repeat(200)), &limits, Err(Refusal::TargetTooLong));
    }
    check(&format!("GET /{}\x01{}", "x".repeat(90), "x".repeat(200)), &limits, Err(Refusal::Syntax));
    assert_eq!(Refusal::TargetTooLong.status(), 414);
}

#[test]
fn bytes_of_the_method() {
    let limits = HeadLimits { target_bytes_max: 100, ..HeadLimits::default() };
    for behind in ["", "M", " / HTTP/1.1\r\nHost: a\r\n\r\n", " / HTTP/9", "\x01"] {
        check(&format!("{}{behind}", "M".repeat(33)), &limits, Err(Refusal::MethodTooLong));
    }
    check(&"M".repeat(32), &limits, Ok(false));
    check(&format!("{}(", "M".repeat(32)), &limits, Err(Refusal::Syntax));
    assert_eq!(Refusal::MethodTooLong.status(), 501);
}

#[test]
fn an_answer_has_limits_too() {
    let raw = b"HTTP/1.1 200 OK\r\nX: 1\r\nContent-Length: 0\r\n\r\n";
    let parse = |bytes: usize, limits: HeadLimits| {
        ResponseHead::default().parse(&raw[..bytes], AnswerTo::Other, &limits)
    };
    let limits = |head_bytes_max| HeadLimits { head_bytes_max, ..HeadLimits::default() };
    assert_eq!(parse(raw.len(), limits(raw.len())), Ok(true));
    assert_eq!(parse(raw.len(), limits(raw.len() - 1)), Err(Refusal::HeadTooLarge));
    assert_eq!(parse(raw.len() - 1, limits(raw.len() - 1)), Err(Refusal::HeadTooLarge));
    let one_line = HeadLimits { headers_max: 1, ..HeadLimits::default() };
    assert_eq!(parse(raw.len(), one_line), Err(Refusal::TooManyHeaders));
}

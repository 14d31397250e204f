//! Which line of a head the switch refuses it for.

use pointsman_http::{HeadLimits, OddNames, Refusal};

use super::report::shown;
use super::request::{NoRequest, Request};

/// Characters of a line that are shown.
const LINE_CHARS_MAX: usize = 80;

/// `line 3: `Foo : bar``: the first line with which the head is refused so, where it is a line's fault.
pub(super) fn line_at_fault(
    bytes: &[u8],
    limits: &HeadLimits,
    odd_names: OddNames<'_>,
    refusal: Refusal,
) -> Option<String> {
    if matches!(refusal, Refusal::NoHost | Refusal::HeadTooLarge | Refusal::TooManyHeaders) {
        return None;
    }
    // What is wrong only beside a host is not looked for with one that nobody has written.
    let host = if refusal == Refusal::HostConflict { "" } else { "Host: a" };
    let mut head = Vec::new();
    let mut has_host = false;
    for (number, line) in (1..).zip(bytes.split_inclusive(|byte| *byte == b'\n')) {
        let text = line.trim_ascii_end();
        if text.is_empty() {
            match head.trim_ascii() {
                [] => head.extend_from_slice(line),
                _ => return None,
            }
            continue;
        }
        let end: &[u8] = if line.ends_with(b"\r\n") || !line.ends_with(b"\n") { b"\r\n" } else { b"\n" };
        head.extend_from_slice(line);
        if !line.ends_with(b"\n") {
            head.extend_from_slice(end);
        }
        has_host |= text.get(..5).is_some_and(|name| name.eq_ignore_ascii_case(b"host:"));
        let further = if has_host || host.is_empty() { &b""[..] } else { &[host.as_bytes(), end].concat() };
        let tried = [&head, further, end].concat();
        if let Err(NoRequest::Refused(found)) = Request::read(tried, limits, odd_names, &mut Vec::new())
            && found == refusal
        {
            let text: String = shown(text).chars().take(LINE_CHARS_MAX).collect();
            return Some(format!("line {number}: `{text}`"));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_is_named_that_is_at_fault() {
        for (text, expected) in [
            ("GET / HTTP/1.1\nHost: a\nFoo : b\nBar: c\n\nx", Some("line 3: `Foo : b`")),
            ("GET / HTTP/1.1\r\nHost: a\r\nA: b\r\n c\r\n\r\n", Some("line 4: ` c`")),
            ("\r\nGET  / HTTP/1.1\r\nHost: a\r\n\r\n", Some("line 2: `GET  / HTTP/1.1`")),
            ("GET / HTTP/1.1\r\nHost: a\nA: b\r\n\r\n", Some("line 2: `Host: a`")),
            ("GET / HTTP/1.1\nA: b\nHost: a\nHost: a\n\n", Some("line 4: `Host: a`")),
            ("GET / HTTP/1.1\nHost: a:b:c\nA: b\n\n", Some("line 2: `Host: a:b:c`")),
            ("GET http://b/ HTTP/1.1\nA: b\nHost: a\n\n", Some("line 3: `Host: a`")),
            (
                "POST / HTTP/1.1\nContent-Length: 1\nTransfer-Encoding: chunked\n\n",
                Some("line 3: `Transfer-Encoding: chunked`"),
            ),
            ("GET / HTTP/1.1\nHost: a\nA: b\u{1b}[2J\n\n", Some("line 3: `A: b\\u{1b}[2J`")),
            ("GET / HTTP/3\nHost: a\n\n", Some("line 1: `GET / HTTP/3`")),
            ("GET / HTTP/1.1\nA: b\n\n", None),
        ] {
            let limits = HeadLimits::default();
            let read = Request::read(text.into(), &limits, OddNames::Drop, &mut Vec::new());
            let Err(NoRequest::Refused(refusal)) = read else { panic!("{text:?}: {read:?}") };
            let found = line_at_fault(text.as_bytes(), &limits, OddNames::Drop, refusal);
            assert_eq!(found.as_deref(), expected, "{text:?}: {refusal:?}");
        }
    }
}

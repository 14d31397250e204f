//! The line of an exchange in the Common Log Format of NCSA httpd, and in the combined one, as Apache and nginx write
//! them: `192.0.2.7 - - [21/Nov/2026:02:17:54 +0000] "GET /x HTTP/1.1" 200 1300 "referer" "agent"`.

use crate::event::{Exchange, Query};
use crate::exchange_line::push_details;
use crate::json::push_number;
use crate::style::LogStyle;

/// Appends the line of an exchange, with its line feed.
pub(crate) fn push_common_line(out: &mut Vec<u8>, time: &[u8], exchange: &Exchange<'_>, style: &LogStyle) {
    let client = exchange.client_ip.or(exchange.peer.map(|(address, _)| address));
    out.extend_from_slice(client.unwrap_or(b"-"));
    out.extend_from_slice(b" - - [");
    out.extend_from_slice(time);
    out.extend_from_slice(b"] ");
    push_request_line(out, exchange);
    out.push(b' ');
    match exchange.counts.status {
        0 => out.push(b'-'),
        status => push_number(out, status.into()),
    }
    out.push(b' ');
    push_number(out, exchange.counts.response_bytes);
    if style.wants_agent() {
        for field in [exchange.referer, exchange.user_agent] {
            out.extend_from_slice(b" \"");
            push_quoted(out, field.unwrap_or(b"-"));
            out.push(b'"');
        }
    }
    if style.details {
        push_details(out, exchange);
    }
    out.push(b'\n');
}

/// `"-"` where there is none.
fn push_request_line(out: &mut Vec<u8>, exchange: &Exchange<'_>) {
    out.push(b'"');
    match (exchange.method, exchange.version) {
        (Some(method), Some(version)) => {
            push_quoted(out, method);
            out.push(b' ');
            push_quoted(out, exchange.path.unwrap_or_default());
            if let Query::Text(query) = exchange.query {
                out.push(b'?');
                push_quoted(out, query);
            }
            out.extend_from_slice(b" HTTP/");
            // As everybody writes it there, though the protocol has no minor version.
            out.extend_from_slice(if version == "2" { b"2.0" } else { version.as_bytes() });
        }
        _ => out.push(b'-'),
    }
    out.push(b'"');
}

/// What a client has chosen: all that is no plain ASCII, quotes and backslashes too, is written as nginx does, `\x22`.
fn push_quoted(out: &mut Vec<u8>, bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for &byte in bytes {
        match byte {
            b'"' | b'\\' | ..b' ' | 0x7f.. => {
                let digit = |four: u8| DIGITS[usize::from(four)];
                out.extend_from_slice(&[b'\\', b'x', digit(byte >> 4), digit(byte & 15)]);
            }
            plain => out.push(plain),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Counts;
    use crate::family::{ListenerMetrics, ServerMetrics};
    use crate::style::{LogForm, Sample};

    const TIME: &[u8] = b"21/Nov/2026:02:17:54 +0000";

    fn check(exchange: &Exchange<'_>, form: LogForm, details: bool, expected: &str) {
        let mut out = Vec::new();
        push_common_line(&mut out, TIME, exchange, &LogStyle { form, details, sample: Sample::ALL });
        assert_eq!(String::from_utf8(out).unwrap(), expected.to_owned() + "\n");
    }

    #[test]
    fn all_facts() {
        let listener = ListenerMetrics::new("shop", 1);
        let server = ServerMetrics::new("fast", "server1", 1);
        let counts = Counts {
            server: Some(&server),
            status: 200,
            request_bytes: 120,
            response_bytes: 1300,
            total_us: 1200,
            ..Counts::new(&listener)
        };
        let exchange = Exchange {
            peer: Some((b"10.0.0.1", 5555)),
            client_ip: Some(b"2001:db8::7"),
            tls: Some("1.3"),
            method: Some(b"GET"),
            host: Some(b"a.example"),
            path: Some(b"/x\"\\\xe9"),
            query: Query::Text(b"a=b"),
            version: Some("1.1"),
            referer: Some(b"https://b.example/?\""),
            user_agent: Some(b"curl/8\x1b"),
            rule: Some(b"R1"),
            pool: Some(b"fast"),
            decided_us: Some(3),
            tries: 1,
            reused: Some(true),
            tags: &["gold".into(), "new".into()],
            error: Some("it \"failed\""),
            ..Exchange::new(counts)
        };
        let common =
            r#"2001:db8::7 - - [21/Nov/2026:02:17:54 +0000] "GET /x\x22\x5C\xE9?a=b HTTP/1.1" 200 1300"#;
        check(&exchange, LogForm::Common, false, common);
        let combined = format!(r#"{common} "https://b.example/?\x22" "curl/8\x1B""#);
        check(&exchange, LogForm::Combined, false, &combined);
        let details = concat!(
            r#" listener="shop" tls="1.3" host="a.example" rule="R1" pool="fast" server="server1" decided_us=3"#,
            r#" total_us=1200 tries=1 reused=true tags=["gold","new"] error="it \"failed\"""#,
        );
        check(&exchange, LogForm::Common, true, &format!("{common}{details}"));
        check(&exchange, LogForm::Combined, true, &format!("{combined}{details}"));
    }

    #[test]
    fn what_is_not_known_is_a_dash() {
        let listener = ListenerMetrics::new("shop", 1);
        let unix = Exchange::new(Counts::new(&listener));
        check(&unix, LogForm::Common, false, r#"- - - [21/Nov/2026:02:17:54 +0000] "-" - 0"#);
        check(&unix, LogForm::Combined, false, r#"- - - [21/Nov/2026:02:17:54 +0000] "-" - 0 "-" "-""#);
        let http2 = Exchange {
            peer: Some((b"127.0.0.1", 5555)),
            method: Some(b"GET"),
            path: Some(b"/"),
            query: Query::Absent,
            version: Some("2"),
            ..unix
        };
        let expected = r#"127.0.0.1 - - [21/Nov/2026:02:17:54 +0000] "GET / HTTP/2.0" - 0"#;
        check(&http2, LogForm::Common, false, expected);
    }
}

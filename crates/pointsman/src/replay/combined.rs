//! Lines of the common and of the combined log format, as nginx and Apache write them.

use pointsman_http::{Version, is_field_value};

use super::record::{Client, Format, Host, Query, Record, Request, Target, Tls};

const NO_LINE: &str = "it is of no log format that is known";

/// `192.0.2.7 - - [10/Oct/2000:13:55:36 -0700] "GET /x HTTP/1.0" 200 2326 "referer" "agent"`; whatever stands behind is
/// not looked at.
pub(super) fn read(line: &[u8]) -> Result<Record, &'static str> {
    let (address, rest) = split_at(line, b" ")?;
    let (_, rest) = split_at(rest, b" [")?;
    let (time, rest) = split_at(rest, b"] \"")?;
    let (request, rest) = quoted(rest)?;
    let (status, rest) = word(rest)?;
    let (bytes, rest) = word(rest)?;
    if !is_number(status) || !is_number(bytes) || !time.first().is_some_and(u8::is_ascii_digit) {
        return Err(NO_LINE);
    }
    let two = two_headers(rest);
    let client = std::str::from_utf8(address).ok().and_then(|address| address.parse().ok());
    Ok(Record {
        format: if two.is_some() { Format::Combined } else { Format::Common },
        listener: None,
        client: client.map_or(Client::Unknown, Client::Address),
        client_ip: None,
        tls: Tls::Unknown,
        request: read_request(&request, headers(two)),
        decided: None,
    })
}

fn split_at<'l>(text: &'l [u8], border: &[u8]) -> Result<(&'l [u8], &'l [u8]), &'static str> {
    let at = text.windows(border.len()).position(|window| window == border).ok_or(NO_LINE)?;
    let (before, behind) = text.split_at(at);
    Ok((before, behind.get(border.len()..).unwrap_or_default()))
}

/// The next word behind a blank.
fn word(text: &[u8]) -> Result<(&[u8], &[u8]), &'static str> {
    let text = text.strip_prefix(b" ").ok_or(NO_LINE)?;
    let end = text.iter().position(|byte| *byte == b' ').unwrap_or(text.len());
    Ok(text.split_at(end))
}

fn is_number(word: &[u8]) -> bool {
    word == b"-" || (!word.is_empty() && word.iter().all(u8::is_ascii_digit))
}

/// What stands up to the next quote, its escapes undone, and what stands behind it.
fn quoted(text: &[u8]) -> Result<(Vec<u8>, &[u8]), &'static str> {
    let mut meant = Vec::new();
    let mut rest = text;
    loop {
        (meant, rest) = match rest {
            [] => return Err(NO_LINE),
            [b'"', behind @ ..] => return Ok((meant, behind)),
            [b'\\', behind @ ..] => escape(meant, behind),
            [byte, behind @ ..] => with(meant, *byte, behind),
        };
    }
}

fn with(mut text: Vec<u8>, byte: u8, behind: &[u8]) -> (Vec<u8>, &[u8]) {
    text.push(byte);
    (text, behind)
}

/// The byte that is meant by what stands behind a backslash: nginx writes `\x22`, Apache also `\"`, `\\`, `\n` and so on.
fn escape(text: Vec<u8>, behind: &[u8]) -> (Vec<u8>, &[u8]) {
    match behind {
        [b'x', high, low, behind @ ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
            with(text, digit(*high) << 4 | digit(*low), behind)
        }
        [byte @ (b'"' | b'\\'), behind @ ..] => with(text, *byte, behind),
        [b'n', behind @ ..] => with(text, b'\n', behind),
        [b'r', behind @ ..] => with(text, b'\r', behind),
        [b't', behind @ ..] => with(text, b'\t', behind),
        [b'v', behind @ ..] => with(text, 0x0b, behind),
        [b'b', behind @ ..] => with(text, 0x08, behind),
        _ => with(text, b'\\', behind),
    }
}

fn digit(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => (digit | 0x20).wrapping_sub(b'a').wrapping_add(10),
    }
}

/// The two fields of the combined format, where both are there.
fn two_headers(rest: &[u8]) -> Option<[(&'static str, Vec<u8>); 2]> {
    let (referer, rest) = quoted(rest.strip_prefix(b" \"")?).ok()?;
    let (agent, _) = quoted(rest.strip_prefix(b" \"")?).ok()?;
    Some([("referer", referer), ("user-agent", agent)])
}

fn headers(two: Option<[(&'static str, Vec<u8>); 2]>) -> Vec<(&'static str, Option<Vec<u8>>)> {
    let fields = two.into_iter().flatten();
    // What no request can have in a field is not what this one had.
    let fields = fields.filter(|(_, value)| is_field_value(value));
    fields.map(|(name, value)| (name, (value != b"-").then_some(value))).collect()
}

/// Nothing where it is no request line.
fn read_request(line: &[u8], headers: Vec<(&'static str, Option<Vec<u8>>)>) -> Option<Request> {
    let method_end = line.iter().position(|byte| *byte == b' ')?;
    let target_end = line.iter().rposition(|byte| *byte == b' ').filter(|end| *end > method_end)?;
    let version = match line.get(target_end + 1..)?.strip_prefix(b"HTTP/")? {
        b"1.0" => Some(Version::Http10),
        b"1.1" => Some(Version::Http11),
        b"2" | b"2.0" => Some(Version::Http2),
        b"3" | b"3.0" => None,
        _ => return None,
    };
    Some(Request {
        method: line.get(..method_end)?.to_vec(),
        target: Target::Whole(line.get(method_end + 1..target_end)?.to_vec()),
        query: Query::Unknown,
        content: None,
        version,
        host: Host::Unknown,
        headers,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn target(line: &str) -> Option<String> {
        let request = read(line.as_bytes()).expect("a line").request?;
        let Target::Whole(target) = request.target else { panic!("{line}") };
        Some(String::from_utf8_lossy(&target).into_owned())
    }

    #[test]
    fn the_formats_of_nginx_and_apache() {
        let common =
            r#"127.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] "GET /apache_pb.gif HTTP/1.0" 200 2326"#;
        let record = read(common.as_bytes()).expect("a line");
        assert_eq!(record.client, Client::Address([127, 0, 0, 1].into()));
        assert_eq!(
            (record.format, &*record.summary()),
            (Format::Common, "GET /apache_pb.gif from 127.0.0.1")
        );
        let request = record.request.expect("it has one");
        assert_eq!((request.version, request.headers), (Some(Version::Http10), vec![]));

        let combined = format!(r#"{common} "http://a.example/" "Mozilla/4.08 \x22x\x22 \"y\"" "more" rt=1"#);
        let record = read(combined.as_bytes()).expect("a line");
        assert_eq!(record.format, Format::Combined);
        let headers = record.request.expect("it has one").headers;
        let agent = b"Mozilla/4.08 \"x\" \"y\"".to_vec();
        assert_eq!(headers, [("referer", Some(b"http://a.example/".to_vec())), ("user-agent", Some(agent))]);
        let without = format!(r#"{common} "-" "-""#);
        let headers = read(without.as_bytes()).expect("a line").request.expect("it has one").headers;
        assert_eq!(headers, [("referer", None), ("user-agent", None)]);
        let impossible = format!(r#"{common} "a\r\nx: y" "b""#);
        let headers = read(impossible.as_bytes()).expect("a line").request.expect("it has one").headers;
        assert_eq!(headers, [("user-agent", Some(b"b".to_vec()))]);
    }

    #[test]
    fn request_lines_are_read_or_there_is_no_request() {
        let line = |request: &str| format!("::1 - - [1/Jan/2026:00:00:00 +0000] \"{request}\" 400 -");
        for (request, expected) in [
            ("GET /a?b=c HTTP/1.1", Some("/a?b=c")),
            (r"GET /a\x22b HTTP/2.0", Some("/a\"b")),
            ("GET http://a.example/x HTTP/1.1", Some("http://a.example/x")),
            ("GET /a b HTTP/1.1", Some("/a b")),
            ("GET /old", None),
            ("GET /a HTTP/9", None),
            ("GET HTTP/1.1", None),
            ("-", None),
            ("", None),
            (r"\x16\x03\x01", None),
        ] {
            assert_eq!(target(&line(request)).as_deref(), expected, "{request}");
        }
    }

    #[test]
    fn other_lines_are_none() {
        for line in [
            "",
            "x",
            "127.0.0.1 - - [10/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.0",
            "127.0.0.1 - - [10/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.0\" x 5",
            "127.0.0.1 - - [10/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.0\" 200",
            "127.0.0.1 - - [when] \"GET / HTTP/1.0\" 200 5",
            "2026/11/22 [error] 1#1: *1 open() \"/x\" failed",
        ] {
            assert!(read(line.as_bytes()).is_err(), "{line}");
        }
    }

    proptest! {
        /// Whatever stands in a line, it is read or it is not; what a quote holds comes out as it went in.
        #[test]
        fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _either = super::super::record::Record::read(&bytes);
            let escaped: String = bytes.iter().map(|byte| format!("\\x{byte:02X}")).collect();
            let found = quoted(format!("{escaped}\" rest").as_bytes()).map(|(text, _)| text);
            prop_assert_eq!(found, Ok(bytes.clone()));
            let around = [b"1.2.3.4 - - [1] \"", &bytes[..], b"\" 200 5 \"", &bytes, b"\" \"", &bytes, b"\""].concat();
            if let Ok(record) = read(&around) {
                prop_assert!(!record.summary().chars().any(char::is_control));
            }
        }
    }
}

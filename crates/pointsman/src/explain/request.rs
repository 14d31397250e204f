//! A raw request out of a file, which somebody may have written with an editor.

use pointsman_analysis::server_name;
use pointsman_http::{HeadLimits, HeaderKind, HeaderLine, OddNames, Refusal, RequestHead};
use pointsman_view::take_away_forwarding;

/// A request with a whole head.
#[derive(Debug)]
pub(crate) struct Request {
    /// Head and body, as they would come over the wire.
    pub(crate) bytes: Vec<u8>,
    pub(crate) head: RequestHead,
}

/// Why there is no request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NoRequest {
    /// The head does not come to its end.
    Incomplete,
    /// The switch refuses the head.
    Refused(Refusal),
}

impl Request {
    /// Parses what a file holds. Where an editor has left its marks they are mended, and noted.
    pub(crate) fn read(
        bytes: Vec<u8>,
        limits: &HeadLimits,
        odd_names: OddNames<'_>,
        notes: &mut Vec<String>,
    ) -> Result<Request, NoRequest> {
        let (bytes, is_http2) = as_http1(bytes, notes);
        let mut request = Request::mended(bytes, limits, notes)?;
        let Request { bytes, head } = &mut request;
        if is_http2 {
            head.is_of_http2().map_err(NoRequest::Refused)?;
            for line in head.lines_mut().iter_mut().filter(|line| line.is_named(b"te", bytes)) {
                (line.hidden, line.dropped) = (true, true);
                notes.push("`TE` is taken away: in HTTP/2 it is about the connection".to_owned());
            }
        }
        head.settle_odd_names(bytes, odd_names).map_err(NoRequest::Refused)?;
        let is_taken_away = |line: &&HeaderLine| line.kind == HeaderKind::Odd && line.hidden;
        for line in head.lines().iter().filter(is_taken_away) {
            let name = String::from_utf8_lossy(line.name(bytes));
            notes.push(format!("`{name}` is taken away: some servers take such a name for another one"));
        }
        Ok(request)
    }

    /// What the switch does to the fields of somebody who is no trusted proxy.
    pub(crate) fn take_away_forwarding(&mut self, notes: &mut Vec<String>) {
        let were_hidden: Vec<bool> = self.head.lines().iter().map(|line| line.hidden).collect();
        take_away_forwarding(&mut self.head);
        for (line, _) in self.head.lines().iter().zip(were_hidden).filter(|(line, was)| line.hidden && !was) {
            let name = String::from_utf8_lossy(line.name(&self.bytes));
            notes.push(format!("`{name}` is taken away: the client is no trusted proxy"));
        }
    }

    /// What the switch does to a request that asks for another protocol; says whether it changes to one.
    pub(crate) fn settle_upgrade(
        &self,
        allowed: &[Box<str>],
        notes: &mut Vec<String>,
    ) -> Result<bool, Refusal> {
        let (head, bytes) = (&self.head, &self.bytes[..]);
        let upgrade = head.upgrade(bytes, allowed)?;
        if upgrade.is_none() && head.offered_protocols(bytes).next().is_some() {
            notes.push("`Upgrade` is taken away: the connection does not change to what it names".to_owned());
        }
        Ok(upgrade.is_some())
    }

    fn mended(bytes: Vec<u8>, limits: &HeadLimits, notes: &mut Vec<String>) -> Result<Request, NoRequest> {
        let mut bytes = bytes;
        if let Some(mended) = with_crlf(&bytes) {
            notes.push(
                "the lines of the head end in LF alone; they are read as if they ended in CRLF".to_owned(),
            );
            bytes = mended;
        }
        let mut head = RequestHead::default();
        if head.parse(&bytes, limits).map_err(NoRequest::Refused)? {
            return Ok(Request { bytes, head });
        }
        let has_whole_lines = bytes.ends_with(b"\r\n");
        bytes.extend_from_slice(if has_whole_lines { b"\r\n" } else { b"\r\n\r\n" });
        let parsed = head.parse(&bytes, limits);
        // A last line that is cut off may be wrong only for that; a request line alone lacks its host.
        let is_mended = match parsed {
            Ok(whole) => whole,
            Err(refusal) => has_whole_lines || refusal == Refusal::NoHost,
        };
        if !is_mended {
            return Err(NoRequest::Incomplete);
        }
        notes.push("the empty line that ends the head is missing; it is read as if it were there".to_owned());
        parsed.map(|_| Request { bytes, head }).map_err(NoRequest::Refused)
    }

    /// What stands behind the head.
    pub(crate) fn behind_head(&self) -> &[u8] {
        self.bytes.get(self.head.head_bytes()..).unwrap_or_default()
    }

    /// The host, if it is a name: what a client would ask for in its TLS handshake.
    pub(crate) fn host_name(&self) -> Option<String> {
        server_name(self.head.authority(&self.bytes))
    }
}

/// A request of HTTP/2 as HTTP/1.1 writes it, where its first line ends in `HTTP/2`; and whether it does.
fn as_http1(mut bytes: Vec<u8>, notes: &mut Vec<String>) -> (Vec<u8>, bool) {
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default().trim_ascii_end();
    if !line.ends_with(b" HTTP/2") {
        return (bytes, false);
    }
    let end = line.len();
    bytes.splice(end - b"2".len()..end, *b"1.1");
    if let Some(joined) = with_one_cookie_line(&bytes) {
        notes.push("the `Cookie` lines are joined to one: in HTTP/2 there may be several".to_owned());
        bytes = joined;
    }
    (bytes, true)
}

/// The same with all cookies in the place of the first Cookie line, as the switch joins them (RFC 9113 section 8.2.3). It
/// counts lines and bytes behind that. Nothing where there are not several.
fn with_one_cookie_line(bytes: &[u8]) -> Option<Vec<u8>> {
    let start = bytes.iter().take_while(|byte| b"\r\n".contains(byte)).count();
    let is_end = |line: &[u8]| matches!(line, b"\n" | b"\r\n");
    let (mut rest, mut place) = (start, None);
    let (mut others, mut cookies) = (bytes.get(..start)?.to_vec(), Vec::new());
    for line in bytes.get(start..)?.split_inclusive(|byte| *byte == b'\n').take_while(|line| !is_end(line)) {
        rest += line.len();
        match cookies_of(line) {
            Some(value) => {
                place.get_or_insert(others.len());
                cookies.push(value);
            }
            None => others.extend_from_slice(line),
        }
    }
    let place = place.filter(|_| cookies.len() > 1)?;
    // As the first line ends; the last may have no end yet.
    let has_crlf = others.split(|byte| *byte == b'\n').any(|line| line.ends_with(b"\r"));
    let end: &[u8] = if has_crlf { b"\r\n" } else { b"\n" };
    let line = [b"Cookie: ", cookies.join(&b"; "[..]).as_slice(), end].concat();
    others.splice(place..place, line);
    others.extend_from_slice(bytes.get(rest..)?);
    Some(others)
}

/// What a Cookie line holds; nothing of another line.
fn cookies_of(line: &[u8]) -> Option<&[u8]> {
    let colon = line.iter().position(|byte| *byte == b':')?;
    let (name, value) = line.split_at_checked(colon)?;
    name.eq_ignore_ascii_case(b"cookie").then(|| value.get(1..).unwrap_or_default().trim_ascii())
}

/// The same with CRLF in the head, if every line of the head ends in LF alone. A mixture is left as it is:
/// it may be what somebody wants to have explained.
fn with_crlf(bytes: &[u8]) -> Option<Vec<u8>> {
    let start = bytes.iter().take_while(|byte| **byte == b'\n').count();
    let end = bytes[start..].windows(2).position(|pair| pair == b"\n\n");
    let (head, body) = bytes.split_at(end.map_or(bytes.len(), |end| start + end + 2));
    if head.contains(&b'\r') || !head.contains(&b'\n') {
        return None;
    }
    let mut mended = Vec::with_capacity(bytes.len() + 64);
    for byte in head {
        if *byte == b'\n' {
            mended.push(b'\r');
        }
        mended.push(*byte);
    }
    let is_chunked = head.to_ascii_lowercase().windows(CHUNKED.len()).any(|window| window == CHUNKED);
    match is_chunked.then(|| chunks_with_crlf(body)).flatten() {
        Some(chunks) => mended.extend(chunks),
        None => mended.extend_from_slice(body),
    }
    Some(mended)
}

/// As a witness has it.
const CHUNKED: &[u8] = b"\ntransfer-encoding: chunked\n";

/// The same for the lines of a chunked body; nothing where it is not written so.
fn chunks_with_crlf(body: &[u8]) -> Option<Vec<u8>> {
    let mut mended = Vec::with_capacity(body.len() + 64);
    let mut rest = body;
    loop {
        let end = rest.iter().position(|byte| *byte == b'\n')?;
        let (line, behind) = (rest.get(..end)?, rest.get(end + 1..)?);
        let size = usize::from_str_radix(std::str::from_utf8(line).ok()?, 16).ok()?;
        mended.extend_from_slice(line);
        mended.extend_from_slice(b"\r\n");
        if size == 0 {
            let trailers = behind.iter().flat_map(|byte| match byte {
                b'\n' => b"\r\n".as_slice(),
                byte => std::slice::from_ref(byte),
            });
            mended.extend(trailers);
            return Some(mended);
        }
        mended.extend_from_slice(behind.get(..size)?);
        mended.extend_from_slice(b"\r\n");
        rest = behind.get(size..)?.strip_prefix(b"\n")?;
    }
}

#[cfg(test)]
mod tests {
    use pointsman_http::Version;

    use super::*;

    fn read(text: &str) -> (Result<String, NoRequest>, usize) {
        let mut notes = Vec::new();
        let request = Request::read(text.into(), &HeadLimits::default(), OddNames::Drop, &mut notes);
        (request.map(|request| String::from_utf8(request.bytes).expect("text")), notes.len())
    }

    #[test]
    fn what_an_editor_did_is_mended_and_noted() {
        let wire = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\na\nb\n";
        assert_eq!(read(wire), (Ok(wire.to_owned()), 0));
        let edited = "POST / HTTP/1.1\nHost: a\nContent-Length: 4\n\na\nb\n";
        assert_eq!(read(edited), (Ok(wire.to_owned()), 1));
        let chunked =
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\na\nb\r\n0\r\nA: b\r\n\r\n";
        let edited = "POST / HTTP/1.1\nHost: a\nTransfer-Encoding: chunked\n\n3\na\nb\n0\nA: b\n\n";
        assert_eq!(read(edited), (Ok(chunked.to_owned()), 1));
        let broken = edited.replace("\n3\n", "\n4\n");
        let as_it_was = chunked.split_once("3\r").map(|(head, _)| format!("{head}4\na\nb\n0\nA: b\n\n"));
        assert_eq!(read(&broken), (as_it_was.ok_or(NoRequest::Incomplete), 1));
        let bare = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
        assert_eq!(read("GET / HTTP/1.1\nHost: a\n"), (Ok(bare.to_owned()), 2));
        assert_eq!(read("GET / HTTP/1.1\r\nHost: a"), (Ok(bare.to_owned()), 1));
    }

    #[test]
    fn what_is_wrong_stays_wrong() {
        assert_eq!(read("GET / HTTP/1.1\r\nHost: a\n\r\n").0, Err(NoRequest::Refused(Refusal::BareLineFeed)));
        assert_eq!(read("GET / HTTP/1.1\n\n").0, Err(NoRequest::Refused(Refusal::NoHost)));
        let only_a_line = (Err(NoRequest::Refused(Refusal::NoHost)), 2);
        assert_eq!(read("GET / HTTP/1.1\n"), only_a_line);
        assert_eq!(read("GET / HTTP/1.1\r\n"), (Err(NoRequest::Refused(Refusal::NoHost)), 1));
        assert_eq!(read("").0, Err(NoRequest::Incomplete));
        assert_eq!(read("GET / HTTP/1.1\r\nHost").0, Err(NoRequest::Incomplete));
    }

    #[test]
    fn http2_is_written_as_http1() {
        let read = |text: &str| {
            Request::read(text.into(), &HeadLimits::default(), OddNames::Drop, &mut Vec::new())
                .map(|request| request.head.version())
        };
        assert_eq!(read("GET / HTTP/2\nHost: a\n\n"), Ok(Version::Http2));
        assert_eq!(read("GET / HTTP/2\r\nHost: a\r\n\r\n"), Ok(Version::Http2));
        assert_eq!(read("GET / HTTP/1.1\nHost: a\nX: HTTP/2\n\n"), Ok(Version::Http11));
        assert_eq!(read("GET http://a/ HTTP/2\nHost: a\n\n"), Err(NoRequest::Refused(Refusal::Target)));
        assert!(read("GET / HTTP/3\nHost: a\n\n").is_err());
    }

    #[test]
    fn te_ends_where_it_came_in_http2() {
        let hidden = |text: &str| {
            let mut notes = Vec::new();
            let request = Request::read(text.into(), &HeadLimits::default(), OddNames::Drop, &mut notes);
            let head = request.expect("a request").head;
            (head.lines().iter().map(|line| line.hidden).collect::<Vec<_>>(), notes.len())
        };
        assert_eq!(hidden("GET / HTTP/2\r\nHost: a\r\nTE: trailers\r\n\r\n"), (vec![false, true], 1));
        assert_eq!(hidden("GET / HTTP/1.1\r\nHost: a\r\nTE: trailers\r\n\r\n"), (vec![false, false], 0));
    }

    #[test]
    fn cookies_of_http2_are_one_line() {
        let head =
            "GET / HTTP/1.1\r\nHost: a\r\nA: b\r\nCookie: a=1; b=2; c=3\r\nB: c\r\n\r\ncookie: d=4\r\n";
        let lines = "GET / HTTP/2\nHost: a\nA: b\ncookie: a=1\nB: c\nCOOKIE:b=2; c=3 \n\ncookie: d=4\r\n";
        assert_eq!(read(lines), (Ok(head.to_owned()), 2));
        let (head_lines, behind) = lines.split_once("\n\n").expect("a head");
        let with_crlf = format!("{}\r\n\r\n{behind}", head_lines.replace('\n', "\r\n"));
        assert_eq!(read(&with_crlf), (Ok(head.to_owned()), 1));
        let without_end = "GET / HTTP/2\r\nHost: a\r\nCookie: a=1\r\nCookie: b=2";
        let joined = "GET / HTTP/1.1\r\nHost: a\r\nCookie: a=1; b=2\r\n\r\n";
        assert_eq!(read(without_end), (Ok(joined.to_owned()), 2));
        let of_http1 = "GET / HTTP/1.1\r\nHost: a\r\nCookie: a=1\r\nCookie: b=2\r\n\r\n";
        assert_eq!(read(of_http1), (Ok(of_http1.to_owned()), 0));
        let one = of_http1.replace("1.1", "2").replace("Cookie: b", "Cookies: b");
        assert_eq!(read(&one), (Ok(one.replace("HTTP/2", "HTTP/1.1")), 0));
        // As many as there may be lines are one.
        let many = "Cookie: a=1\r\n".repeat(HeadLimits::default().headers_max + 1);
        let many = format!("GET / HTTP/2\r\nHost: a\r\n{many}\r\n");
        assert!(read(&many).0.is_ok());
    }

    #[test]
    fn only_names_are_asked_for() {
        for (host, expected) in
            [("A.Example:8443", Some("a.example")), ("127.0.0.1:1", None), ("[::1]:1", None)]
        {
            let text = format!("GET / HTTP/1.1\nHost: {host}\n\n");
            let request = Request::read(text.into(), &HeadLimits::default(), OddNames::Drop, &mut Vec::new());
            assert_eq!(request.expect("a request").host_name().as_deref(), expected);
        }
    }
}

//! A second reading of message heads: slow, obvious, from the RFCs and our own refusals, without our codec.

use pointsman_http::{Framing, HeaderKind, is_authority};

/// A head as this reading has it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Reading<'a> {
    /// The words of the first line; of an answer's, version and status.
    pub(crate) first: Vec<&'a [u8]>,
    /// Names and values of the header lines, in order.
    pub(crate) lines: Vec<(&'a [u8], &'a [u8])>,
    /// How the body ends, as the head announces it; nothing where it does not.
    pub(crate) announced: Option<Framing>,
    pub(crate) says_close: bool,
    pub(crate) says_keep_alive: bool,
    /// What Connection names, in lower case.
    pub(crate) named: Vec<Vec<u8>>,
    /// Bytes up to the end of the head.
    pub(crate) head_bytes: usize,
}

/// A whole request head at the start of `input`, or nothing: unfinished or refused.
pub(crate) fn request(input: &[u8]) -> Option<Reading<'_>> {
    let empty_lines = input.chunks(2).take_while(|pair| *pair == b"\r\n").count() * 2;
    if empty_lines > 8 {
        return None;
    }
    let (first, mut lines, head_bytes) = cut(input, empty_lines, tight)?;
    for (name, value) in &mut lines {
        if name.eq_ignore_ascii_case(b"host") {
            *value = without_empty_port(value);
        }
    }
    let words: Vec<&[u8]> = first.split(|byte| *byte == b' ').collect();
    let [method, target, version] = words[..] else { return None };
    if !is_name(method)
        || method.len() > 32
        || method == b"CONNECT"
        || method.iter().any(u8::is_ascii_lowercase)
        || !matches!(version, b"HTTP/1.1" | b"HTTP/1.0")
    {
        return None;
    }
    let reading = fields(words, lines, version, head_bytes)?;
    let expectations: Vec<&[u8]> = reading.values(b"expect").collect();
    if expectations.len() > 1 || expectations.iter().any(|it| !it.eq_ignore_ascii_case(b"100-continue")) {
        return None;
    }
    let hosts: Vec<&[u8]> = reading.values(b"host").collect();
    let is_named_once = hosts.len() == 1 || hosts.is_empty() && version == b"HTTP/1.0";
    if !is_named_once || !hosts.iter().all(|host| is_authority(host)) {
        return None;
    }
    let hops: Vec<&[u8]> = reading.values(b"max-forwards").collect();
    let is_one_number = |hops: &[&[u8]]| match hops {
        [] => true,
        [number] => !number.is_empty() && number.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    if matches!(method, b"TRACE" | b"OPTIONS") && !is_one_number(&hops) {
        return None;
    }
    let has_content = !matches!(reading.announced, None | Some(Framing::None));
    if method == b"TRACE" && has_content {
        return None;
    }
    target_fits(method, target, hosts.first().copied()).then_some(reading)
}

/// A whole answer's head at the start of `input`, or nothing.
pub(crate) fn answer(input: &[u8]) -> Option<Reading<'_>> {
    let (first, mut lines, head_bytes) = cut(input, 0, loose)?;
    merge_lengths(&mut lines)?;
    let (version, rest) = first.split_at_checked(8)?;
    let status = rest.strip_prefix(b" ")?.get(..3)?;
    let is_final_or_interim = status.iter().all(u8::is_ascii_digit) && status[0] != b'0';
    if !is_final_or_interim || !matches!(version, b"HTTP/1.1" | b"HTTP/1.0") {
        return None;
    }
    fields(vec![version, status], lines, version, head_bytes)
}

impl<'a> Reading<'a> {
    /// The values of a field, whose name is given in lower case.
    pub(crate) fn values<'n>(&self, name: &'n [u8]) -> impl Iterator<Item = &'a [u8]> + use<'a, '_, 'n> {
        self.lines.iter().filter(move |(there, _)| there.eq_ignore_ascii_case(name)).map(|(_, value)| *value)
    }

    /// Whether a line ends at this hop: by its own name, or because Connection says so.
    pub(crate) fn ends_here(&self, name: &[u8]) -> bool {
        let name = name.to_ascii_lowercase();
        let own: [&[u8]; 7] = [
            b"connection",
            b"keep-alive",
            b"te",
            b"upgrade",
            b"http2-settings",
            b"proxy-connection",
            b"proxy-authorization",
        ];
        own.contains(&&name[..]) || self.named.contains(&name)
    }

    /// Whether the connection goes on after this message.
    pub(crate) fn keeps_alive(&self, version: &[u8]) -> bool {
        !self.says_close && (version == b"HTTP/1.1" || self.says_keep_alive)
    }
}

type Cut<'a> = (&'a [u8], Vec<(&'a [u8], &'a [u8])>, usize);

/// RFC 3986 section 6.2.3.
fn without_empty_port(authority: &[u8]) -> &[u8] {
    authority.strip_suffix(b":").unwrap_or(authority)
}

/// The first line and the fields of a head: CRLF and nothing else ends a line.
fn cut(input: &[u8], start: usize, name_of: fn(&[u8]) -> Option<&[u8]>) -> Option<Cut<'_>> {
    let bytes = input[start..].windows(4).position(|end| end == b"\r\n\r\n")?;
    let mut lines = Vec::new();
    let mut rest = &input[start..start + bytes];
    loop {
        let end = rest.windows(2).position(|end| end == b"\r\n");
        let line = &rest[..end.unwrap_or(rest.len())];
        if line.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0)) {
            return None;
        }
        lines.push(line);
        match end {
            Some(end) => rest = &rest[end + 2..],
            None => break,
        }
    }
    let first = lines.remove(0);
    let fields: Option<Vec<_>> = lines.into_iter().map(|line| field(line, name_of)).collect();
    Some((first, fields?, start + bytes + 4))
}

/// The name before a colon of a request.
fn tight(name: &[u8]) -> Option<&[u8]> {
    Some(name)
}

/// The same of a response: blanks behind it are no part of it, where nobody acts on the field.
fn loose(name: &[u8]) -> Option<&[u8]> {
    let trimmed = name.trim_ascii_end();
    let is_plain = || matches!(HeaderKind::of_name(trimmed), HeaderKind::Plain | HeaderKind::Date);
    (trimmed.len() == name.len() || is_name(trimmed) && is_plain()).then_some(trimmed)
}

/// Takes a list of equal lengths for its first member. Nothing where members or lines differ.
fn merge_lengths(lines: &mut [(&[u8], &[u8])]) -> Option<()> {
    let mut known = None;
    for (_, value) in lines.iter_mut().filter(|(name, _)| name.eq_ignore_ascii_case(b"content-length")) {
        for member in value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
            let is_length = (1..=18).contains(&member.len()) && member.iter().all(u8::is_ascii_digit);
            let bytes: u64 = std::str::from_utf8(member).ok()?.parse().ok().filter(|_| is_length)?;
            if *known.get_or_insert(bytes) != bytes {
                return None;
            }
        }
        *value = value.split(|byte| *byte == b',').next()?.trim_ascii();
    }
    Some(())
}

fn field(line: &[u8], name_of: fn(&[u8]) -> Option<&[u8]>) -> Option<(&[u8], &[u8])> {
    let colon = line.iter().position(|byte| *byte == b':')?;
    let (name, value) = (name_of(&line[..colon])?, &line[colon + 1..]);
    let blanks = |byte: &&u8| matches!(**byte, b' ' | b'\t');
    let front = value.iter().take_while(blanks).count();
    let back = value[front..].iter().rev().take_while(blanks).count();
    let value = &value[front..value.len() - back];
    (is_name(name) && value.iter().all(is_printable)).then_some((name, value))
}

fn is_name(name: &[u8]) -> bool {
    let fits = |byte: &u8| byte.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(char::from(*byte));
    !name.is_empty() && name.iter().all(fits)
}

fn is_printable(byte: &u8) -> bool {
    *byte == b'\t' || *byte >= b' ' && *byte != 0x7f
}

fn fields<'a>(
    first: Vec<&'a [u8]>,
    lines: Vec<(&'a [u8], &'a [u8])>,
    version: &[u8],
    head_bytes: usize,
) -> Option<Reading<'a>> {
    let mut reading = Reading {
        first,
        lines,
        announced: None,
        says_close: false,
        says_keep_alive: false,
        named: Vec::new(),
        head_bytes,
    };
    // CGI takes them for the real ones.
    let looks_like_framing = |name: &[u8]| {
        let real =
            name.eq_ignore_ascii_case(b"content-length") || name.eq_ignore_ascii_case(b"transfer-encoding");
        !real && matches!(&for_cgi(name)[..], b"CONTENT_LENGTH" | b"TRANSFER_ENCODING")
    };
    if reading.lines.iter().any(|(name, _)| looks_like_framing(name)) {
        return None;
    }
    if !reading.values(b"trailer").flat_map(|value| value.split(|byte| *byte == b',')).all(may_be_announced) {
        return None;
    }
    let mut lengths: Vec<&[u8]> = reading.values(b"content-length").collect();
    if reading.first.len() == 2 {
        // Of a response they are equal.
        lengths.truncate(1);
    }
    let codings: Vec<&[u8]> = reading.values(b"transfer-encoding").collect();
    reading.announced = match (&lengths[..], &codings[..]) {
        ([], []) => None,
        ([length], []) if (1..=18).contains(&length.len()) && length.iter().all(u8::is_ascii_digit) => {
            let bytes = std::str::from_utf8(length).ok()?.parse().ok()?;
            Some(if bytes == 0 { Framing::None } else { Framing::Length(bytes) })
        }
        ([], [coding]) if coding.eq_ignore_ascii_case(b"chunked") && version == b"HTTP/1.1" => {
            Some(Framing::Chunked)
        }
        _ => return None,
    };
    let options: Vec<Vec<u8>> = reading
        .values(b"connection")
        .flat_map(|value| value.split(|byte| *byte == b','))
        .map(|option| option.trim_ascii().to_ascii_lowercase())
        .filter(|option| !option.is_empty())
        .collect();
    for option in options {
        match &option[..] {
            b"close" => reading.says_close = true,
            b"keep-alive" => reading.says_keep_alive = true,
            _ if !is_name(&option) || must_go_on(&option) => return None,
            _ => reading.named.push(option),
        }
    }
    Some(reading)
}

/// A field's value as it is sent on: what says where a message ends has one spelling.
pub(crate) fn as_sent<'v>(name: &[u8], value: &'v [u8]) -> &'v [u8] {
    match &name.to_ascii_lowercase()[..] {
        b"transfer-encoding" => b"chunked",
        b"expect" => b"100-continue",
        b"content-length" => {
            let first = value.iter().position(|digit| *digit != b'0').unwrap_or(value.len() - 1);
            &value[first..]
        }
        _ => value,
    }
}

/// The variable that CGI makes of a field.
fn for_cgi(name: &[u8]) -> Vec<u8> {
    name.iter()
        .map(|byte| if byte.is_ascii_alphanumeric() { byte.to_ascii_uppercase() } else { b'_' })
        .collect()
}

/// Whether Trailer may announce it: nothing at all, or a plain name that decides nothing.
fn may_be_announced(name: &[u8]) -> bool {
    const DECIDE: &str = "age authorization cache-control connection cookie expect forwarded host keep-alive \
        location max-forwards proxy-authorization proxy-connection set-cookie te trailer transfer-encoding upgrade \
        x-real-ip";
    let name = String::from_utf8_lossy(name.trim_ascii()).to_lowercase();
    let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let is_free = !name.starts_with("content-") && !name.starts_with("x-forwarded-");
    let decides = DECIDE.split_whitespace().any(|other| other == name);
    is_plain && !decides && (is_free || name == "content-digest")
}

/// What Connection may not take away.
fn must_go_on(name: &[u8]) -> bool {
    let names: [&[u8]; 9] = [
        b"host",
        b"cookie",
        b"authorization",
        b"expect",
        b"forwarded",
        b"max-forwards",
        b"transfer-encoding",
        b"set-cookie",
        b"x-real-ip",
    ];
    names.contains(&name) || name.starts_with(b"content-") || name.starts_with(b"x-forwarded-")
}

/// RFC 9112 section 3.2: a path; a whole URL, that names the host that Host names; `*` with OPTIONS.
fn target_fits(method: &[u8], target: &[u8], host: Option<&[u8]>) -> bool {
    if target.iter().any(|byte| !byte.is_ascii_graphic() || *byte == b'#') {
        return false;
    }
    if target.starts_with(b"/") {
        return true;
    }
    if target == b"*" {
        return method == b"OPTIONS";
    }
    let lower = target.to_ascii_lowercase();
    let scheme = [&b"http://"[..], b"https://"].into_iter().find(|scheme| lower.starts_with(scheme));
    let Some(rest) = scheme.map(|scheme| &lower[scheme.len()..]) else { return false };
    let authority = rest.split(|byte| matches!(byte, b'/' | b'?')).next().unwrap_or_default();
    let authority = without_empty_port(authority);
    is_authority(authority) && host.is_none_or(|host| host.eq_ignore_ascii_case(authority))
}

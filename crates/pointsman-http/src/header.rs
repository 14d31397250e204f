//! Header lines as offsets into the buffer they lie in, and the few names the codec knows.

use crate::odd_name;

/// One header line of a parsed head.
#[derive(Clone, Copy, Debug)]
pub struct HeaderLine {
    pub(crate) start: u32,
    pub(crate) name_bytes: u16,
    pub(crate) value_start: u32,
    pub(crate) value_bytes: u32,
    /// One past the line's CRLF.
    pub(crate) end: u32,
    /// What the codec knows of the name.
    pub kind: HeaderKind,
    /// Not forwarded: hop-by-hop, or taken out by an edit.
    pub dropped: bool,
    /// Named by Connection, or an odd name that is taken away: neither forwarded nor seen by rules.
    pub hidden: bool,
    /// Forwarded with one space behind the colon and nothing behind the value: the switch acts on it, and whoever
    /// is next may read white space, case or zeros otherwise.
    pub(crate) respelled: bool,
}

impl HeaderLine {
    /// The name as it was written.
    pub fn name<'b>(&self, buffer: &'b [u8]) -> &'b [u8] {
        &buffer[self.start as usize..][..usize::from(self.name_bytes)]
    }

    /// The value without the white space around it.
    pub fn value<'b>(&self, buffer: &'b [u8]) -> &'b [u8] {
        &buffer[self.value_start as usize..][..self.value_bytes as usize]
    }
}

/// The names that the switch itself acts on. All others are [`HeaderKind::Plain`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderKind {
    /// A name the codec has no business with.
    Plain,
    /// Host
    Host,
    /// Cookie
    Cookie,
    /// Content-Length
    ContentLength,
    /// Content-Type
    ContentType,
    /// Transfer-Encoding
    TransferEncoding,
    /// Connection
    Connection,
    /// Expect
    Expect,
    /// Forwarded
    Forwarded,
    /// X-Forwarded-For
    XForwardedFor,
    /// X-Forwarded-Proto
    XForwardedProto,
    /// X-Forwarded-Host
    XForwardedHost,
    /// X-Forwarded-Port, X-Forwarded-Prefix and whatever else begins so; X-Real-IP.
    OtherForwarded,
    /// Max-Forwards
    MaxForwards,
    /// Trailer
    Trailer,
    /// Keep-Alive, Proxy-Connection, Proxy-Authorization, TE, Upgrade, HTTP2-Settings: end at each hop.
    HopByHop,
    /// A name that holds more than letters, digits and `-`: some servers take it for another one.
    Odd,
    /// Content_Length, Transfer.Encoding: refused.
    Lookalike,
}

impl HeaderKind {
    /// Looks a name up by its length first, so that most names cost one comparison or none.
    pub(crate) fn of(name: &[u8]) -> HeaderKind {
        let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
        match name.len() {
            2 if is("te") => HeaderKind::HopByHop,
            4 if is("host") => HeaderKind::Host,
            6 if is("cookie") => HeaderKind::Cookie,
            6 if is("expect") => HeaderKind::Expect,
            7 if is("trailer") => HeaderKind::Trailer,
            7 if is("upgrade") => HeaderKind::HopByHop,
            9 if is("forwarded") => HeaderKind::Forwarded,
            9 if is("x-real-ip") => HeaderKind::OtherForwarded,
            10 if is("connection") => HeaderKind::Connection,
            10 if is("keep-alive") => HeaderKind::HopByHop,
            12 if is("content-type") => HeaderKind::ContentType,
            12 if is("max-forwards") => HeaderKind::MaxForwards,
            14 if is("content-length") => HeaderKind::ContentLength,
            14 if is("http2-settings") => HeaderKind::HopByHop,
            15 if is("x-forwarded-for") => HeaderKind::XForwardedFor,
            16 if is("x-forwarded-host") => HeaderKind::XForwardedHost,
            16 if is("proxy-connection") => HeaderKind::HopByHop,
            17 if is("transfer-encoding") => HeaderKind::TransferEncoding,
            17 if is("x-forwarded-proto") => HeaderKind::XForwardedProto,
            19 if is("proxy-authorization") => HeaderKind::HopByHop,
            _ if !odd_name::is_odd(name) => match name.get(.."x-forwarded-".len()) {
                Some(start) if start.eq_ignore_ascii_case(b"x-forwarded-") => HeaderKind::OtherForwarded,
                _ => HeaderKind::Plain,
            },
            14 if odd_name::reads_like(name, b"content-length") => HeaderKind::Lookalike,
            17 if odd_name::reads_like(name, b"transfer-encoding") => HeaderKind::Lookalike,
            _ => HeaderKind::Odd,
        }
    }

    fn is_acted_on(self) -> bool {
        !matches!(self, HeaderKind::Plain | HeaderKind::Odd)
    }

    /// The same value as nobody misreads it: a length without zeros before it, words in small letters.
    pub(crate) fn plain_value(self, value: &[u8]) -> &[u8] {
        const CHUNKED: &[u8] = b"chunked";
        const CONTINUE: &[u8] = b"100-continue";
        match self {
            HeaderKind::Expect if value.eq_ignore_ascii_case(CONTINUE) => CONTINUE,
            HeaderKind::ContentLength => {
                let zeros = value.iter().take_while(|&&digit| digit == b'0').count();
                &value[zeros.min(value.len().saturating_sub(1))..]
            }
            HeaderKind::TransferEncoding if value.eq_ignore_ascii_case(CHUNKED) => CHUNKED,
            _ => value,
        }
    }

    pub(crate) fn ends_at_hop(self) -> bool {
        matches!(self, HeaderKind::HopByHop | HeaderKind::Connection)
    }
}

/// Whether `bytes` is a token (RFC 9110 section 5.6.2).
pub fn is_token(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().all(|&byte| is_token_byte(byte))
}

pub(crate) fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Whether `bytes` may stand as a field value: no control but tab (RFC 9110 section 5.5).
pub fn is_field_value(bytes: &[u8]) -> bool {
    bytes.iter().all(|&byte| is_value_byte(byte))
}

pub(crate) fn is_value_byte(byte: u8) -> bool {
    byte == b'\t' || (byte >= 0x20 && byte != 0x7f)
}

/// Remembers the header lines that `httparse` found, and holds each to its exact form: the name
/// right after the line before it, one CRLF at its end.
///
/// Returns the offset of the empty line that ends the head.
pub(crate) fn remember(
    lines: &mut Vec<HeaderLine>,
    found: &[httparse::Header<'_>],
    buffer: &[u8],
    first: usize,
) -> Result<usize, crate::Refusal> {
    use crate::Refusal;
    lines.clear();
    let mut start = first;
    for header in found {
        let name = header.name.as_bytes();
        // Where it lies, not only what it says: nothing may stand between two lines.
        let is_here = name.as_ptr() == buffer[start..].as_ptr();
        if !is_here || buffer.get(start + name.len()) != Some(&b':') {
            return Err(Refusal::Syntax);
        }
        let value_start = skip_blanks(buffer, start + name.len() + 1);
        let value_end = value_start + header.value.len();
        let line_end = skip_blanks(buffer, value_end);
        if buffer.get(line_end..line_end + 2) != Some(b"\r\n") {
            return Err(Refusal::BareLineFeed);
        }
        let kind = HeaderKind::of(name);
        let is_tight = value_start == start + name.len() + 2 && buffer[value_start - 1] == b' ';
        // Offsets fit: a head is never longer than `head_bytes_max`, far below 4 GiB.
        lines.push(HeaderLine {
            start: start as u32,
            name_bytes: u16::try_from(name.len()).map_err(|_| Refusal::HeadTooLarge)?,
            value_start: value_start as u32,
            value_bytes: header.value.len() as u32,
            end: (line_end + 2) as u32,
            kind,
            dropped: false,
            hidden: false,
            respelled: kind.is_acted_on()
                && !(is_tight && line_end == value_end && kind.plain_value(header.value) == header.value),
        });
        start = line_end + 2;
    }
    Ok(start)
}

fn skip_blanks(buffer: &[u8], mut at: usize) -> usize {
    while matches!(buffer.get(at), Some(b' ' | b'\t')) {
        at += 1;
    }
    at
}

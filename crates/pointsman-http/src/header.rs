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

    /// Whether it is of that name, in whatever case.
    pub fn is_named(&self, name: &[u8], buffer: &[u8]) -> bool {
        usize::from(self.name_bytes) == name.len() && self.name(buffer).eq_ignore_ascii_case(name)
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
    /// Date
    Date,
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
    /// X-Forwarded-Port, X-Forwarded-Prefix and whatever else begins so; X-Real-IP; Client-Cert and other fields in which
    /// a proxy says what certificate a client has shown.
    OtherForwarded,
    /// Max-Forwards
    MaxForwards,
    /// Trailer
    Trailer,
    /// Upgrade: ends here, and is said anew where a change of protocol is passed on.
    Upgrade,
    /// Keep-Alive, Proxy-Connection, Proxy-Authorization, TE, HTTP2-Settings: end at each hop.
    HopByHop,
    /// A name that holds more than letters, digits and `-`: some servers take it for another one.
    Odd,
    /// Content_Length, Transfer.Encoding: refused.
    Lookalike,
}

impl HeaderKind {
    /// What the codec knows of a name, which is a token.
    pub fn of_name(name: &[u8]) -> HeaderKind {
        HeaderKind::of(name, odd_name::is_odd(name))
    }

    /// Looks a name up by its length and first bytes, so that most names cost a comparison or two.
    /// `is_odd`: whether it holds more than letters, digits and `-`.
    pub(crate) fn of(name: &[u8], is_odd: bool) -> HeaderKind {
        match name.len() {
            2 if is(name, b"te") => HeaderKind::HopByHop,
            4 if is(name, b"date") => HeaderKind::Date,
            4 if is(name, b"host") => HeaderKind::Host,
            6 if is(name, b"cookie") => HeaderKind::Cookie,
            6 if is(name, b"expect") => HeaderKind::Expect,
            7 if is(name, b"trailer") => HeaderKind::Trailer,
            7 if is(name, b"upgrade") => HeaderKind::Upgrade,
            9 if is(name, b"forwarded") => HeaderKind::Forwarded,
            9 if is(name, b"x-real-ip") => HeaderKind::OtherForwarded,
            10 if is(name, b"connection") => HeaderKind::Connection,
            10 if is(name, b"keep-alive") => HeaderKind::HopByHop,
            12 if is(name, b"content-type") => HeaderKind::ContentType,
            12 if is(name, b"max-forwards") => HeaderKind::MaxForwards,
            14 if is(name, b"content-length") => HeaderKind::ContentLength,
            14 if is(name, b"http2-settings") => HeaderKind::HopByHop,
            15 if is(name, b"x-forwarded-for") => HeaderKind::XForwardedFor,
            16 if is(name, b"x-forwarded-host") => HeaderKind::XForwardedHost,
            16 if is(name, b"proxy-connection") => HeaderKind::HopByHop,
            17 if is(name, b"transfer-encoding") => HeaderKind::TransferEncoding,
            17 if is(name, b"x-forwarded-proto") => HeaderKind::XForwardedProto,
            19 if is(name, b"proxy-authorization") => HeaderKind::HopByHop,
            13.. if !is_odd && is(&name[..12], b"x-forwarded-") => HeaderKind::OtherForwarded,
            7.. if !is_odd && is_about_client_certificate(name) => HeaderKind::OtherForwarded,
            _ if !is_odd => HeaderKind::Plain,
            14 if odd_name::reads_like(name, b"content-length") => HeaderKind::Lookalike,
            17 if odd_name::reads_like(name, b"transfer-encoding") => HeaderKind::Lookalike,
            _ => HeaderKind::Odd,
        }
    }

    pub(crate) fn is_acted_on(self) -> bool {
        !matches!(self, HeaderKind::Plain | HeaderKind::Date | HeaderKind::Odd)
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
        matches!(self, HeaderKind::HopByHop | HeaderKind::Connection | HeaderKind::Upgrade)
    }
}

/// Whether a proxy says by a field of this name whom a certificate names: those of RFC 9440, and what nginx, Apache, IIS and
/// cloud balancers are commonly set to write.
fn is_about_client_certificate(name: &[u8]) -> bool {
    let starts = |start: &[u8]| name.len() >= start.len() && is(&name[..start.len()], start);
    match name[0] | 0x20 {
        b'c' => is_one_of(name, &[b"client-cert", b"client-cert-chain"]),
        b's' => starts(b"ssl-client-"),
        b'x' => starts(b"x-ssl-") || starts(b"x-client-cert") || is_one_of(name, &[b"x-arr-clientcert"]),
        _ => false,
    }
}

fn is_one_of(name: &[u8], known: &[&[u8]]) -> bool {
    known.iter().any(|known| known.len() == name.len() && is(name, known))
}

/// Whether a token is `known`, which is as long and made of small letters, digits and `-`: of all that a token
/// may hold, only letters become such with the bit set that tells their cases apart.
#[inline]
fn is(token: &[u8], known: &[u8]) -> bool {
    const SMALL: u64 = u64::from_le_bytes([0x20; 8]);
    let (token, token_rest) = token.as_chunks();
    let (known, known_rest) = known.as_chunks();
    let is_same =
        |(word, known): (&[u8; 8], &[u8; 8])| u64::from_le_bytes(*word) | SMALL == u64::from_le_bytes(*known);
    token.iter().zip(known).all(is_same) && token_rest.eq_ignore_ascii_case(known_rest)
}

/// Whether `bytes` is a token (RFC 9110 section 5.6.2).
pub fn is_token(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().all(|&byte| is_token_byte(byte))
}

pub(crate) const fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'!' | b'#'
                | b'$'
                | b'%'
                | b'&'
                | b'\''
                | b'*'
                | b'+'
                | b'-'
                | b'.'
                | b'^'
                | b'_'
                | b'`'
                | b'|'
                | b'~'
        )
}

/// Whether `bytes` may stand as a field value: no control but tab (RFC 9110 section 5.5).
pub fn is_field_value(bytes: &[u8]) -> bool {
    bytes.iter().all(|&byte| is_value_byte(byte))
}

pub(crate) fn is_value_byte(byte: u8) -> bool {
    byte == b'\t' || (byte >= 0x20 && byte != 0x7f)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With any byte of a token in any place, a name is what it is without regard to case, and nothing else.
    #[test]
    fn names_are_known_whatever_their_case() {
        let known = "content-length transfer-encoding proxy-authorization host te http2-settings x-real-ip";
        for name in known.split(' ').map(str::as_bytes) {
            let kind = HeaderKind::of(name, false);
            for place in 0..name.len() {
                for byte in (0..=u8::MAX).filter(|byte| is_token_byte(*byte)) {
                    let mut other = name.to_vec();
                    other[place] = byte;
                    assert_eq!(
                        is(&other, name),
                        other.eq_ignore_ascii_case(name),
                        "{}",
                        other.escape_ascii()
                    );
                }
                let mut capital = name.to_vec();
                capital[place].make_ascii_uppercase();
                assert_eq!(HeaderKind::of(&capital, false), kind);
            }
            assert_ne!(kind, HeaderKind::Plain);
        }
    }

    #[test]
    fn fields_about_client_certificates_are_of_proxies() {
        for name in [
            "Client-Cert",
            "client-cert-chain",
            "X-Forwarded-Client-Cert",
            "X-Forwarded-Tls-Client-Cert",
            "X-SSL-Client-CN",
            "x-ssl-cert",
            "SSL-Client-Verify",
            "ssl-client-cert",
            "X-Client-Cert",
            "X-Client-Certificate",
            "X-ARR-ClientCert",
        ] {
            assert_eq!(HeaderKind::of_name(name.as_bytes()), HeaderKind::OtherForwarded, "{name}");
        }
        for name in [
            "Client-Certs",
            "client-id",
            "X-SSL",
            "ssl-client",
            "x-client-id",
            "SSL-Session",
            "Sec-Fetch-Site",
        ] {
            assert_eq!(HeaderKind::of_name(name.as_bytes()), HeaderKind::Plain, "{name}");
        }
    }
}

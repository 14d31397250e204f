//! The four forms of a request target (RFC 9112 section 3.2) and what an authority is.

use std::ops::Range;

use crate::sixteen::{WIDTH, labels_and_dots, up_to_invisible_or_hash};
use crate::{Method, Refusal};

/// The form a request target was written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum TargetForm {
    /// `/path?query`
    #[default]
    Origin,
    /// `http://host/path?query`
    Absolute,
    /// `*`, with OPTIONS
    Asterisk,
}

/// A request target cut into its parts, as offsets into it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TargetParts {
    pub(crate) form: TargetForm,
    /// Empty unless the form is absolute.
    pub(crate) authority: Range<usize>,
    /// Path and query. The path is empty in `http://host` and `http://host?query`, and means `/`.
    pub(crate) origin: Range<usize>,
}

pub(crate) fn split(method: Method, target: &[u8]) -> Result<TargetParts, Refusal> {
    // Everything a server could take for the end of the target, or for a fragment, is refused.
    if up_to_invisible_or_hash(target, 0) < target.len() {
        return Err(Refusal::Target);
    }
    if target.first() == Some(&b'/') {
        return Ok(TargetParts { form: TargetForm::Origin, authority: 0..0, origin: 0..target.len() });
    }
    if target == b"*" {
        return match method {
            Method::Options => Ok(TargetParts { form: TargetForm::Asterisk, authority: 0..0, origin: 0..1 }),
            _ => Err(Refusal::Target),
        };
    }
    let scheme_bytes = match target {
        _ if starts_with_ignoring_case(target, b"http://") => 7,
        _ if starts_with_ignoring_case(target, b"https://") => 8,
        _ => return Err(Refusal::Target),
    };
    let rest = &target[scheme_bytes..];
    let authority_bytes = rest.iter().position(|&byte| matches!(byte, b'/' | b'?')).unwrap_or(rest.len());
    let origin = scheme_bytes + authority_bytes..target.len();
    let authority_bytes = without_empty_port(&rest[..authority_bytes]).len();
    let authority = scheme_bytes..scheme_bytes + authority_bytes;
    if !is_authority(&target[authority.clone()]) {
        return Err(Refusal::Target);
    }
    Ok(TargetParts { form: TargetForm::Absolute, origin, authority })
}

/// An authority without the `:` of an empty port, which is the port of the scheme (RFC 3986 section 6.2.3).
pub(crate) fn without_empty_port(authority: &[u8]) -> &[u8] {
    authority.strip_suffix(b":").unwrap_or(authority)
}

fn starts_with_ignoring_case(target: &[u8], prefix: &[u8]) -> bool {
    target.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
}

/// Whether `bytes` is a host with an optional port, and no user (RFC 3986 section 3.2).
///
/// Registered names are held to what hosts are made of in practice: labels of letters, digits, `-`, `_` and `~`
/// with single dots between them, and one at the end at most. Percent-codes and other sub-delimiters are refused.
pub fn is_authority(bytes: &[u8]) -> bool {
    let port = match bytes.first() {
        Some(b'[') => address_bytes(bytes),
        _ => name_bytes(bytes),
    };
    match port.map(|at| &bytes[at..]) {
        Some([]) => true,
        Some([b':', digits @ ..]) => is_port(digits),
        _ => false,
    }
}

/// Bytes of the IPv6 address in brackets at the start.
fn address_bytes(bytes: &[u8]) -> Option<usize> {
    let close = bytes.iter().position(|&byte| byte == b']')?;
    let text = std::str::from_utf8(&bytes[1..close]).ok()?;
    text.parse::<std::net::Ipv6Addr>().is_ok().then_some(close + 1)
}

/// Bytes of the name or IPv4 address at the start.
fn name_bytes(bytes: &[u8]) -> Option<usize> {
    let mut end = 0;
    let mut is_behind_label = 0;
    loop {
        let (labels, dots) = labels_and_dots(&bytes[end..]);
        let run = (labels | dots).trailing_ones();
        let misplaced = dots & !(labels << 1 | is_behind_label);
        if misplaced.trailing_zeros() < run {
            return None;
        }
        end += run as usize;
        if (run as usize) < WIDTH {
            break;
        }
        is_behind_label = labels >> (WIDTH - 1);
    }
    let is_over = matches!(bytes.get(end), None | Some(b':'));
    (is_over && (1..=HOST_BYTES_MAX).contains(&end)).then_some(end)
}

/// What DNS can carry, and two more.
const HOST_BYTES_MAX: usize = 255;

fn is_port(digits: &[u8]) -> bool {
    let is_number = (1..=5).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit);
    is_number
        && digits.iter().fold(0, |number, digit| number * 10 + u32::from(digit & 0xf)) <= u32::from(u16::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(method: Method, target: &str, expected: Result<(TargetForm, &str, &str), Refusal>) {
        let found = split(method, target.as_bytes())
            .map(|parts| (parts.form, &target[parts.authority], &target[parts.origin]));
        assert_eq!(found, expected, "{target}");
    }

    #[test]
    fn targets_are_cut_or_refused() {
        use TargetForm::*;
        check(Method::Get, "/a?b", Ok((Origin, "", "/a?b")));
        check(Method::Get, "http://a.example", Ok((Absolute, "a.example", "")));
        check(Method::Get, "HTTPS://a.example:8443/x?y", Ok((Absolute, "a.example:8443", "/x?y")));
        check(Method::Get, "http://[::1]:80/", Ok((Absolute, "[::1]:80", "/")));
        check(Method::Get, "http://a:/x", Ok((Absolute, "a", "/x")));
        check(Method::Get, "http://[::1]:", Ok((Absolute, "[::1]", "")));
        check(Method::Get, "http://a::/x", Err(Refusal::Target));
        check(Method::Get, "http://:/x", Err(Refusal::Target));
        check(Method::Options, "*", Ok((Asterisk, "", "*")));
        for bad in ["*", "a", "", "a.example:80", "ftp://a/", "http://", "http:///x", "http://u@a/", "/a#b"] {
            check(Method::Get, bad, Err(Refusal::Target));
        }
        check(Method::Get, "http://a.example?q", Ok((Absolute, "a.example", "?q")));
        check(Method::Get, "/a\u{e9}", Err(Refusal::Target));
    }

    proptest! {
        #[test]
        fn names_are_labels_with_single_dots_between(name in "[a-zA-Z0-9~_.:%-]{0,40}") {
            let (host, port) = name.split_once(':').map_or((&*name, None), |(host, port)| (host, Some(port)));
            let labels = host.strip_suffix('.').unwrap_or(host).split('.');
            let is_name = labels.into_iter().all(|label| !label.is_empty() && !label.contains('%'));
            let is_port = port.is_none_or(|port| !port.is_empty() && port.parse::<u16>().is_ok() && port.len() < 6);
            prop_assert_eq!(is_authority(name.as_bytes()), is_name && is_port);
        }
    }

    #[test]
    fn hosts_are_as_long_as_dns_can_carry() {
        for (bytes, expected) in [(15, true), (16, true), (17, true), (255, true), (256, false)] {
            assert_eq!(is_authority("a".repeat(bytes).as_bytes()), expected, "{bytes}");
            assert_eq!(is_authority(("a".repeat(bytes) + ":80").as_bytes()), expected, "{bytes} and a port");
            assert!(!is_authority(("a".repeat(bytes) + "..").as_bytes()), "{bytes} and dots");
        }
    }

    #[test]
    fn authorities_are_hosts_with_a_port_at_most() {
        for good in ["a", "a.b", "a:80", "127.0.0.1:1", "[::1]", "[::1]:443", "a_b.example."] {
            assert!(is_authority(good.as_bytes()), "{good}");
        }
        for bad in [
            "", ":80", "a:", "a:x", "a:65536", "a:+80", "a:999999", "u@a", "a b", "a,b", "[::1", "[x]",
            "[::1]x", "a/b", "a%20", ".", "..", ".a", "a..b", "a..", ".:80",
        ] {
            assert!(!is_authority(bad.as_bytes()), "{bad}");
        }
    }
}

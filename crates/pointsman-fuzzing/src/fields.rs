//! Fields inside a line that a client wrote: query parameters, cookies, hosts, the switch's own cookie.

use pointsman_balance::{ROUTE_COOKIE_BYTES, RouteCookie};
use pointsman_view::{HOST_BYTES_MAX, cookie_values, normal_host, query_values, without_cookie};

pub(crate) const TOKENS: &[&str] = &[
    "=",
    "&",
    "&&",
    ";",
    "; ",
    ",",
    "+",
    "%",
    "%2",
    "%26",
    "%3D",
    "%00",
    "%zz",
    "\"",
    " ",
    "\t",
    "a",
    "a=",
    "a=b",
    "pm_route=",
    "pm_route",
    "A",
    ".",
    ":80",
    "[::1]",
    "[::ffff:1.2.3.4]",
    "é",
    "\0",
];

/// Panics where a property does not hold.
///
/// # Panics
/// With the property.
pub fn check(input: &[u8]) {
    // A key that is there, more often than not, and one that the vectors have.
    let first = input.split(|byte| b"=&;".contains(byte)).next().unwrap_or_default();
    for key in [first.trim_ascii(), b"a"] {
        query(input, key);
        cookie(input, key);
    }
    host(input);
    route_cookie(input);
}

fn query(input: &[u8], key: &[u8]) {
    let found: Vec<Vec<u8>> = query_values(input, key).map(|value| value.as_bytes().to_vec()).collect();
    let mut expected = Vec::new();
    for parameter in input.split(|byte| *byte == b'&').filter(|parameter| !parameter.is_empty()) {
        let mut halves = parameter.splitn(2, |byte| *byte == b'=');
        let name = halves.next().unwrap_or_default();
        if decoded(name) == key {
            expected.push(decoded(halves.next().unwrap_or_default()));
        }
    }
    assert_eq!(found, expected, "the values of {}", key.escape_ascii());
}

/// As forms are decoded: `+` is a space, and a code that is none stays.
fn decoded(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let digits = text.get(at + 1..at + 3).and_then(|digits| std::str::from_utf8(digits).ok());
        let digits = digits.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        match (text[at], digits.and_then(|digits| u8::from_str_radix(digits, 16).ok())) {
            (b'%', Some(meant)) => {
                out.push(meant);
                at += 2;
            }
            (b'+', _) => out.push(b' '),
            (byte, _) => out.push(byte),
        }
        at += 1;
    }
    out
}

fn cookie(input: &[u8], name: &[u8]) {
    let found: Vec<&[u8]> = cookie_values(input, name).collect();
    let others = |line: &[u8]| {
        let pairs = line.split(|byte| *byte == b';').map(|pair| pair.trim_ascii().to_vec());
        let is_named = |pair: &Vec<u8>| {
            let equals = pair.iter().position(|byte| *byte == b'=');
            equals.is_some_and(|at| pair[..at].trim_ascii_end() == name)
        };
        pairs.filter(|pair| !pair.is_empty()).partition::<Vec<_>, _>(is_named)
    };
    let (mine, rest) = others(input);
    assert_eq!(found.len(), mine.len());
    for (value, pair) in found.iter().zip(&mine) {
        assert!(pair.ends_with(value));
    }
    let mut out = b"before".to_vec();
    if without_cookie(input, name, &mut out) {
        let left = out.strip_prefix(b"before").expect("what stood there stays");
        assert!(!mine.is_empty());
        assert_eq!(others(left), (vec![], rest), "no other cookie is lost or changed");
    } else {
        assert!(mine.is_empty() && out == b"before");
    }
}

fn host(input: &[u8]) {
    let mut scratch = [0; HOST_BYTES_MAX];
    let Some(host) = normal_host(input, &mut scratch).map(<[u8]>::to_vec) else { return };
    assert!(!host.is_empty() && !host.ends_with(b".") && !host.iter().any(u8::is_ascii_uppercase));
    let mut scratch = [0; HOST_BYTES_MAX];
    assert_eq!(
        normal_host(&host, &mut scratch),
        Some(&host[..]),
        "the normal form of a normal form is itself"
    );
}

/// Only what was sealed is opened.
fn route_cookie(input: &[u8]) {
    let cookie = RouteCookie::new([7; 16]);
    if let Some(id) = cookie.open(input) {
        assert_eq!(input, cookie.seal(id));
    }
    let mut id = [0; 16];
    id.iter_mut().zip(input).for_each(|(id, byte)| *id = *byte);
    let mut sealed = cookie.seal(id);
    assert_eq!(cookie.open(&sealed), Some(id));
    let at = input.len() % ROUTE_COOKIE_BYTES;
    sealed[at] = if sealed[at] == b'0' { b'1' } else { b'0' };
    assert_eq!(cookie.open(&sealed), None, "a forged cookie");
}

//! What names of hosts can be: `host`, its line, and the name that a client asks for in its handshake.

use std::net::Ipv6Addr;
use std::sync::LazyLock;

use pointsman_http::is_authority;
use pointsman_view::{HOST_BYTES_MAX, normal_host};

use crate::space::texts::{Exact, Language};

/// In lower case, without a port and a dot at the end; an address of IPv6 as RFC 5952 writes it, in brackets.
pub(super) const HOST: Language = Language {
    exact: Some(Exact { pattern: || &EXACT_HOST, takes: is_host }),
    bytes_max: Some(NAME_BYTES_MAX),
    ..Language::of(r"[a-z0-9_~-]+(?:\.[a-z0-9_~-]+)*|\[[0-9a-f:.]+\]", &["www.example.com"])
};

/// The Host line: with what the client likes of that. The codec refuses all else.
pub(super) const LINE: Language = Language {
    exact: Some(Exact { pattern: || &EXACT_LINE, takes: is_authority }),
    bytes_max: Some(HOST_BYTES_MAX),
    ..Language::of(
        r"(?:[A-Za-z0-9_~-]+(?:\.[A-Za-z0-9_~-]+)*\.?|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?",
        &["www.example.com", "a"],
    )
};

/// What [`is_server_name`] takes.
pub(super) const SERVER_NAME: Language = Language {
    bytes_max: Some(SERVER_NAME_BYTES_MAX),
    ..Language::of(
        r"(?:[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?\.)*(?:[0-9]*[a-z_](?:[a-z0-9_-]*[a-z0-9_])?|[0-9]+-[a-z0-9_-]*[a-z0-9_])",
        &["www.example.com"],
    )
};

/// Bytes of the longest name of DNS, and of its labels (RFC 1035 section 2.3.4).
const SERVER_NAME_BYTES_MAX: usize = 253;
const LABEL_BYTES_MAX: usize = 63;

/// Whether `tls.sni` of a request can be this: a name of DNS in lower case, without a dot at the end, whose labels neither
/// begin nor end with `-`, and whose last label is no number.
#[must_use]
pub fn is_server_name(name: &str) -> bool {
    let is_inner = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-');
    let is_label = |label: &str| {
        (1..=LABEL_BYTES_MAX).contains(&label.len())
            && label.bytes().all(is_inner)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let last = name.rsplit('.').next().unwrap_or_default();
    name.len() <= SERVER_NAME_BYTES_MAX
        && name.split('.').all(is_label)
        && !last.bytes().all(|byte| byte.is_ascii_digit())
}

/// Bytes of the longest name that the codec takes.
const NAME_BYTES_MAX: usize = 255;

/// A group of an address as it may be written, and one that is not 0 as it is in normal form; the last is not `ffff` either.
const GROUP: &str = "[0-9A-Fa-f]{1,4}";
const NOT_0: &str = "[1-9a-f][0-9a-f]{0,3}";
const NOT_0_OR_FFFF: &str =
    "(?:[1-9a-e][0-9a-f]{0,3}|f(?:[0-9a-f]{0,2}|[0-9a-e][0-9a-f]{2}|f[0-9a-e][0-9a-f]|ff[0-9a-e]))";
const IPV4: &str =
    r"(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])(?:\.(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])){3}";
const GROUPS: usize = 8;

static EXACT_HOST: LazyLock<String> =
    LazyLock::new(|| format!(r"[a-z0-9_~-]+(?:\.[a-z0-9_~-]+)*|\[(?:{})\]", normal_addresses()));
static EXACT_LINE: LazyLock<String> = LazyLock::new(|| {
    let name = r"[A-Za-z0-9_~-]+(?:\.[A-Za-z0-9_~-]+)*\.?";
    let port = "[0-5]?[0-9]{1,4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]";
    format!(r"(?:{name}|\[(?:{})\])(?::(?:{port}))?", addresses())
});

fn is_host(text: &[u8]) -> bool {
    let mut scratch = [0; HOST_BYTES_MAX];
    is_authority(text) && normal_host(text, &mut scratch) == Some(text)
}

/// A regex of all addresses of IPv6 in normal form: one way to write it for each choice of the groups that are 0.
fn normal_addresses() -> String {
    let mut regex = format!("::ffff:{IPV4}");
    for zeros in 0..1_u16 << GROUPS {
        let groups: [u16; GROUPS] = std::array::from_fn(|place| zeros >> place & 1 ^ 1);
        // Only where it is `ffff` an address of IPv4 follows.
        let begins_as_mapped = groups.starts_with(&[0, 0, 0, 0, 0, 1]);
        let mut group = if begins_as_mapped { NOT_0_OR_FFFF } else { NOT_0 };
        regex.push('|');
        for character in Ipv6Addr::from(groups).to_string().chars() {
            match character {
                '1' => regex.push_str(std::mem::replace(&mut group, NOT_0)),
                other => regex.push(other),
            }
        }
    }
    regex
}

/// A regex of all addresses of IPv6 as the codec reads them.
fn addresses() -> String {
    let mut regex = format!("(?:{GROUP}:){{7}}{GROUP}|(?:{GROUP}:){{6}}{IPV4}");
    for before in 0..GROUPS {
        let head = vec![GROUP; before].join(":");
        let behind = GROUPS - 1 - before;
        let groups = behind.checked_sub(1).map(|more| format!("(?:{GROUP}:){{0,{more}}}{GROUP}"));
        let mapped = behind.checked_sub(2).map(|more| format!("(?:{GROUP}:){{0,{more}}}{IPV4}"));
        let tail: Vec<_> = groups.into_iter().chain(mapped).collect();
        regex.push_str(&format!("|{head}::(?:{})?", tail.join("|")));
    }
    regex
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::space::automata::{Automata, Table};
    use std::sync::Arc;

    fn tables() -> [(Language, Arc<Table>); 2] {
        let mut automata = Automata::default();
        [HOST, LINE].map(|language| {
            let exact = language.exact.expect("it is said");
            (language, automata.language((exact.pattern)()).expect("it is not too large"))
        })
    }

    /// Addresses in normal form and otherwise, with some that are none.
    fn written() -> impl Strategy<Value = String> {
        let group = prop_oneof![
            4 => Just("0".to_owned()),
            2 => Just("ffff".to_owned()),
            3 => "[1-9a-f][0-9a-f]{0,3}",
            1 => "[0-9a-fA-F]{0,5}",
            1 => "[0-9]{1,3}([.][0-9]{1,3}){3}",
        ];
        let groups = proptest::collection::vec(group, 0..10);
        let colons = prop_oneof![Just(""), Just("::"), Just(":")];
        (groups, 0..10_usize, colons, any::<bool>(), "(:[0-9]{0,5})?").prop_map(
            |(mut groups, place, colons, is_normal, port)| {
                let tail = groups.split_off(place.min(groups.len()));
                let text = format!("{}{colons}{}", groups.join(":"), tail.join(":"));
                let normal =
                    text.parse().ok().filter(|_| is_normal).map(|address: Ipv6Addr| address.to_string());
                format!("[{}]{port}", normal.unwrap_or(text))
            },
        )
    }

    #[test]
    fn the_regexes_take_just_what_the_codec_does() {
        let tables = tables();
        let names = "[a-bA-F0-9_.~:-]{1,12}";
        let mut runner = proptest::test_runner::TestRunner::deterministic();
        let mut taken = [0; 2];
        for strategy in [written().boxed(), names.boxed()] {
            for _ in 0..20_000 {
                let text = strategy.new_tree(&mut runner).expect("nothing is rejected").current();
                for ((language, table), taken) in tables.iter().zip(&mut taken) {
                    let takes = language.exact.is_some_and(|exact| (exact.takes)(text.as_bytes()));
                    assert_eq!(table.takes(text.as_bytes()), takes, "{text}");
                    *taken += u32::from(takes);
                }
            }
        }
        assert!(taken.iter().all(|taken| *taken > 5_000), "{taken:?}");
    }

    #[test]
    fn the_regex_of_server_names_takes_just_them() {
        let table = Automata::default().language(SERVER_NAME.pattern).expect("it is not too large");
        let mut runner = proptest::test_runner::TestRunner::deterministic();
        let (names, mut taken) = ("[aA_0.~:-]{0,8}".boxed(), 0);
        for _ in 0..20_000 {
            let text = names.new_tree(&mut runner).expect("nothing is rejected").current();
            assert_eq!(table.takes(text.as_bytes()), is_server_name(&text), "{text}");
            taken += u32::from(is_server_name(&text));
        }
        assert!(taken > 1_000, "{taken}");
        assert!(is_server_name(&"a".repeat(63)) && !is_server_name(&"a".repeat(64)));
        assert!(!is_server_name(&["a"; 128].join(".")));
    }
}

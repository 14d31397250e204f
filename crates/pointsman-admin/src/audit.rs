//! What is kept of each change, refused ones included.

use std::borrow::Cow;
use std::fmt;
use std::net::SocketAddr;

use serde_json::json;

/// Bytes of a target that are kept.
const TARGET_BYTES_MAX: usize = 200;

/// A change, or what was to be one: who, from where, what, and what came of it.
#[derive(Debug)]
pub struct Audit<'a> {
    /// The name of the token, or the subject of the client certificate; absent where neither was shown that is known.
    pub who: Option<&'a str>,
    /// Where it came from.
    pub from: SocketAddr,
    /// The method.
    pub method: &'a str,
    /// Path and query.
    pub target: &'a str,
    /// The status of the answer.
    pub status: u16,
    /// Why not, where it was refused.
    pub refusal: Option<&'a str>,
}

impl Audit<'_> {
    /// The same for programs, as an object in a line; `time` is that of the wall, as RFC 3339 writes it.
    pub fn to_json(&self, time: &str) -> String {
        let Audit { who, from, method, target, status, refusal } = self;
        let refusal = refusal.map(shown);
        let (from, target) = (from.to_string(), shown(target));
        let object = json!({
            "time": time,
            "who": who.map(shown),
            "from": from,
            "method": method,
            "target": target,
            "status": status,
            "refusal": refusal,
        });
        object.to_string()
    }
}

impl fmt::Display for Audit<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Audit { who, from, method, target, status, refusal } = self;
        let target = shown(target);
        write!(
            f,
            "audit who={} from={from} method={method} target={target:?} status={status}",
            word(shown(who.unwrap_or("-")))
        )?;
        refusal.map_or(Ok(()), |refusal| write!(f, " refusal={:?}", shown(refusal)))
    }
}

/// A name as a word of a line: as it is, or in quotes where it has white space, a quote or anything else that is not
/// plain.
pub fn word(name: &str) -> Cow<'_, str> {
    let is_plain = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"');
    if is_plain { name.into() } else { format!("{name:?}").into() }
}

/// The beginning, as far as it is shown.
fn shown(text: &str) -> &str {
    let end = text.char_indices().map(|(at, _)| at).find(|at| *at >= TARGET_BYTES_MAX);
    &text[..end.unwrap_or(text.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_cannot_be_broken() {
        let audit = |target| {
            let from = SocketAddr::from(([127, 0, 0, 1], 1));
            Audit { who: None, from, method: "PUT", target, status: 401, refusal: Some("no\n\"token\"") }
                .to_string()
        };
        let expected =
            r#"audit who=- from=127.0.0.1:1 method=PUT target="/a\"b" status=401 refusal="no\n\"token\"""#;
        assert_eq!(audit("/a\"b"), expected);
        assert!(audit(&"ü".repeat(10_000)).len() < 500);
        assert_eq!(word("CN=ops,O=Example"), "CN=ops,O=Example");
        assert_eq!(word("CN=a status=200"), "\"CN=a status=200\"");
        assert_eq!(word("CN=\""), "\"CN=\\\"\"");
    }
}

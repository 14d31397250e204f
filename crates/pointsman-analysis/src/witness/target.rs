//! The request target: from the whole of it, or from path, query and parameters.

use pointsman_rules::{Field, OwnedValue};

use super::sought::{Sought, text};

/// A target to be written.
pub(super) struct Target {
    pub(super) bytes: Vec<u8>,
    /// Host and port in an absolute one.
    pub(super) authority: Option<Vec<u8>>,
}

impl Target {
    /// Nothing where no target can be as is sought.
    pub(super) fn new(sought: &Sought<'_>, scheme: &str) -> Option<Target> {
        if let Some(url) = sought.of(&Field::Url) {
            return Some(Target::read(text(url.first()?)?));
        }
        let mut target = match sought.of(&Field::Path) {
            Some(path) => text(path.first()?)?.to_vec(),
            None => b"/".to_vec(),
        };
        if let Some(query) = query(sought)? {
            target.push(b'?');
            target.extend_from_slice(&query);
        }
        // Without a Host line only the target can name the host.
        if sought.header("host").is_some_and(<[_]>::is_empty)
            && let Some(host) = sought.text(&Field::Host)
        {
            let absolute = [scheme.as_bytes(), b"://", host, &target].concat();
            return Some(Target::read(&absolute));
        }
        Some(Target { bytes: target, authority: None })
    }

    fn read(url: &[u8]) -> Target {
        let end = url.iter().position(|byte| *byte == b':').unwrap_or_default();
        let authority = url.get(end..).and_then(|rest| rest.strip_prefix(b"://")).map(|rest| {
            let end = rest.iter().position(|byte| b"/?".contains(byte)).unwrap_or(rest.len());
            rest.get(..end).unwrap_or_default().to_vec()
        });
        Target { bytes: url.to_vec(), authority }
    }
}

/// The query, as it is sought or made of the parameters that are; the inner nothing is none at all.
fn query(sought: &Sought<'_>) -> Option<Option<Vec<u8>>> {
    match sought.of(&Field::Query) {
        Some([]) => return Some(None),
        Some([query, ..]) => return Some(Some(text(query)?.to_vec())),
        None => {}
    }
    let mut query = Vec::new();
    for wish in sought.wishes() {
        let Field::QueryParam(key) = wish.field else { continue };
        for value in &wish.values.known {
            parameter(key, value, &mut query)?;
        }
    }
    Some(Some(query).filter(|query| !query.is_empty()))
}

fn parameter(key: &[u8], value: &OwnedValue, query: &mut Vec<u8>) -> Option<()> {
    if !query.is_empty() {
        query.push(b'&');
    }
    encode(key, query);
    query.push(b'=');
    encode(text(value)?, query);
    Some(())
}

/// Appends text with percent-codes (RFC 3986 section 2.1) for all but unreserved characters.
pub(super) fn encode(text: &[u8], out: &mut Vec<u8>) {
    const DIGITS: [u8; 16] = *b"0123456789ABCDEF";
    let digit = |half: u8| DIGITS.get(usize::from(half)).copied().unwrap_or_default();
    for &byte in text {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(byte);
        } else {
            out.extend([b'%', digit(byte >> 4), digit(byte & 0xf)]);
        }
    }
}

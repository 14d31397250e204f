//! The header lines of a witness.

use pointsman_rules::{Field, OwnedValue};

use super::sought::{Sought, text};
use crate::wanted::Values;

/// Lines, one behind another.
#[derive(Debug, Default)]
pub(super) struct Lines {
    pub(super) bytes: Vec<u8>,
}

impl Lines {
    /// Adds one, with capitals in its name as usual.
    pub(super) fn add(&mut self, name: &str, value: &[u8]) {
        for (at, part) in name.split('-').enumerate() {
            if at > 0 {
                self.bytes.push(b'-');
            }
            let (first, rest) = part.split_at_checked(1).unwrap_or((part, ""));
            self.bytes.extend(first.bytes().map(|byte| byte.to_ascii_uppercase()));
            self.bytes.extend_from_slice(rest.as_bytes());
        }
        self.bytes.extend_from_slice(if value.is_empty() { b":" } else { b": " });
        self.bytes.extend_from_slice(value);
        self.bytes.extend_from_slice(b"\r\n");
    }

    /// The lines that are sought by their names, but for Host, which stands first. Nothing where a value cannot stand in
    /// a line: there is more than a line then.
    pub(super) fn add_sought(&mut self, sought: &Sought<'_>) -> Option<()> {
        for wish in sought.wishes() {
            let Field::Header(name) = wish.field else { continue };
            if &**name == "host" {
                continue;
            }
            for value in &wish.values.known {
                self.add_value(name, value)?;
            }
        }
        Some(())
    }

    fn add_value(&mut self, name: &str, value: &OwnedValue) -> Option<()> {
        let value = text(value).filter(|value| pointsman_http::is_field_value(value))?;
        if !pointsman_http::is_token(name.as_bytes()) {
            return None;
        }
        self.add(name, value);
        Some(())
    }

    /// The cookies that are sought, in one line.
    pub(super) fn add_cookies(&mut self, sought: &Sought<'_>) -> Option<()> {
        if sought.header("cookie").is_some() {
            return Some(());
        }
        let cookies = sought.wishes().map(|wish| (wish.field, &wish.values));
        let line = cookie_line(cookies)?;
        if !line.is_empty() {
            self.add_value("cookie", &OwnedValue::Text(line.into()))?;
        }
        Some(())
    }

    /// The protocols that it asks to change to, and with WebSocket what its handshake needs (RFC 6455 section 4.1).
    pub(super) fn add_upgrade(&mut self, sought: &Sought<'_>) -> Option<()> {
        let protocols = sought.of(&Field::Upgrade).unwrap_or_default();
        if protocols.is_empty() {
            return Some(());
        }
        let protocols: Vec<&[u8]> = protocols.iter().map(text).collect::<Option<_>>()?;
        self.add_value("upgrade", &OwnedValue::Text(protocols.join(&b", "[..]).into()))?;
        if sought.header("connection").is_none() {
            self.add("connection", b"Upgrade");
        }
        let is_websocket = protocols.contains(&&b"websocket"[..]);
        for (name, value) in
            [("sec-WebSocket-version", "13"), ("sec-WebSocket-key", "AAAAAAAAAAAAAAAAAAAAAA==")]
        {
            if is_websocket && sought.header(&name.to_ascii_lowercase()).is_none() {
                self.add(name, value.as_bytes());
            }
        }
        Some(())
    }
}

/// The cookies among some fields, as they stand in one line; it is empty where there are none.
pub(crate) fn cookie_line<'w>(fields: impl IntoIterator<Item = (&'w Field, &'w Values)>) -> Option<Vec<u8>> {
    let mut line = Vec::new();
    for (field, values) in fields {
        let Field::Cookie(name) = field else { continue };
        for value in &values.known {
            let separator: &[u8] = if line.is_empty() { b"" } else { b"; " };
            line.extend_from_slice(separator);
            line.extend_from_slice(name.as_bytes());
            line.push(b'=');
            line.extend_from_slice(text(value)?);
        }
    }
    Some(line)
}

//! What a listener reads of its connections, and which of its keys say nothing then.

use pointsman_rules::Scope;

use crate::limits::{BODY_LIMIT_KEYS, LISTENER_LIMIT_KEYS};
use crate::section::Section;

/// What is read of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// Its requests.
    #[default]
    Http,
    /// Nothing: it goes to a server as it is.
    Tcp,
    /// The ClientHello of TLS that it begins with; its server ends TLS.
    TlsPassthrough,
}

/// Keys of a listener that are about requests, or about TLS that is ended here.
const KEYS_OF_HTTP: &[&str] = &[
    "tls",
    "http2",
    "pipeline",
    "upgrades",
    "trailers",
    "x_forwarded",
    "forwarded",
    "encoded_slash",
    "misdirected",
    "merge_slashes",
    "readings",
    "odd_names",
    "body_kind",
    "body_label",
];

/// The limits that hold for connections, whatever they carry.
const LIMITS_OF_CONNECTIONS: &[&str] = &[
    "connections_max",
    "connections_per_address_max",
    "proxy_header_ms_max",
    "half_closed_ms_max",
    "tunnel_idle_ms_max",
    "write_ms_max",
];

impl Protocol {
    pub(crate) fn read(section: &Section<'_>) -> Protocol {
        match section.word("protocol") {
            "tcp" => Protocol::Tcp,
            "tls-passthrough" => Protocol::TlsPassthrough,
            _ => Protocol::Http,
        }
    }

    /// As it is written.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Protocol::Http => "http",
            Protocol::Tcp => "tcp",
            Protocol::TlsPassthrough => "tls-passthrough",
        }
    }

    /// What rules are asked about.
    #[must_use]
    pub fn scope(self) -> Scope {
        match self {
            Protocol::Http => Scope::Requests,
            Protocol::Tcp => Scope::Connections,
            Protocol::TlsPassthrough => Scope::Hellos,
        }
    }

    /// Reports the keys of a listener, and of its limits, that say nothing of what it reads.
    pub(crate) fn check_keys(self, section: &Section<'_>, limits: Option<&Section<'_>>) {
        let word = match self {
            Protocol::Http => return,
            Protocol::Tcp => "tcp",
            Protocol::TlsPassthrough => "tls-passthrough",
        };
        let findings = section.findings();
        for key in KEYS_OF_HTTP.iter().copied().filter(|key| section.has(key)) {
            let message = format!("`{key}` says nothing under `protocol = \"{word}\"`: no request is read");
            let help = match (key, self) {
                ("tls", Protocol::Tcp) => {
                    "leave it out: the server may end TLS, and `tls-passthrough` reads whom clients ask for"
                }
                ("tls", _) => "leave it out: the server ends TLS, and has the certificate",
                _ => "leave it out",
            };
            findings.error(section.place(key), message, help);
        }
        let Some(limits) = limits else { return };
        let holds = |key: &str| {
            LIMITS_OF_CONNECTIONS.contains(&key)
                || (key == "handshake_ms_max" && self == Protocol::TlsPassthrough)
        };
        let keys = LISTENER_LIMIT_KEYS.iter().chain(BODY_LIMIT_KEYS);
        for key in keys.filter(|key| limits.has(key.name) && !holds(key.name)) {
            let message = format!("`{}` has no effect under `protocol = \"{word}\"`", key.name);
            findings.warning(limits.place(key.name), message, "leave it out");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limits_that_hold_are_limits() {
        for name in LIMITS_OF_CONNECTIONS {
            assert!(LISTENER_LIMIT_KEYS.iter().any(|key| key.name == *name), "{name}");
        }
    }
}

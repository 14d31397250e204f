//! TLS of listeners as written, the admin listener among them.

use std::path::Path;

use pointsman_rules::Span;
use pointsman_tls::{CertificateFiles, ClientAuth, TlsVersion};

use crate::findings::Spanned;
use crate::section::Section;
use crate::{Http2, notation};

/// TLS of a listener as written.
pub(crate) struct TlsSpec {
    pub(crate) at: Span,
    /// The first is the default.
    pub(crate) certificates: Vec<CertificateSpec>,
    pub(crate) min_version: TlsVersion,
    pub(crate) alpn: Vec<Spanned<String>>,
    pub(crate) tickets: bool,
    pub(crate) session_s_max: u32,
    pub(crate) ticket_key_file: Option<Spanned<String>>,
    pub(crate) client_ca: Option<Spanned<String>>,
    pub(crate) client_auth: ClientAuth,
}

/// A chain and its key, relative to the configuration file.
pub(crate) struct CertificateSpec {
    pub(crate) certificate: Spanned<String>,
    pub(crate) key: Spanned<String>,
    pub(crate) key_passphrase: Option<Spanned<String>>,
}

impl TlsSpec {
    pub(crate) fn read(section: &Section<'_>, http2: Http2) -> Self {
        let spec = Self {
            at: section.at(),
            certificates: std::iter::once(*section)
                .chain(section.sections("certificates"))
                .filter_map(|section| CertificateSpec::read(&section))
                .collect(),
            min_version: min_version(section),
            alpn: protocols(section, http2),
            tickets: section.flag("tickets"),
            session_s_max: section.number("session_s_max").unwrap_or(1),
            ticket_key_file: section.parsed("ticket_key_file", notation::path),
            client_ca: section.parsed("client_ca", notation::path),
            client_auth: match section.word("client_auth") {
                "request" => ClientAuth::Request,
                "require" => ClientAuth::Require,
                _ => ClientAuth::Off,
            },
        };
        let asks = spec.client_auth != ClientAuth::Off;
        if asks && !section.has("client_ca") {
            section.findings().error(
                section.place("client_auth"),
                "`client_auth` needs `client_ca`",
                NO_CLIENT_CA,
            );
        }
        if !asks && let Some(client_ca) = &spec.client_ca {
            section.findings().warning(
                client_ca.span,
                "`client_ca` has no effect while `client_auth` is `off`",
                "set `client_auth` to `request` or `require`",
            );
        }
        if !spec.tickets && section.has("session_s_max") {
            let help = "leave one of them out";
            let place = section.place("session_s_max");
            section.findings().warning(place, "`session_s_max` has no effect without `tickets`", help);
        }
        if let Some(file) = spec.ticket_key_file.as_ref().filter(|_| !spec.tickets) {
            let help = "leave one of them out";
            section.findings().warning(file.span, "`ticket_key_file` has no effect without `tickets`", help);
        }
        spec
    }
}

impl TlsSpec {
    /// TLS of the admin listener: it speaks HTTP/1.1 alone, and each of its connections says anew who it is.
    pub(crate) fn of_admin(section: &Section<'_>) -> Self {
        let client_ca = section.parsed("client_ca", notation::path);
        if section.has("client_auth") && !section.has("client_ca") {
            section.findings().error(
                section.place("client_auth"),
                "`client_auth` needs `client_ca`",
                NO_CLIENT_CA,
            );
        }
        Self {
            at: section.at(),
            certificates: CertificateSpec::read(section).into_iter().collect(),
            min_version: min_version(section),
            alpn: vec![Spanned { value: "http/1.1".to_owned(), span: section.at() }],
            tickets: false,
            session_s_max: 1,
            ticket_key_file: None,
            client_auth: match section.word("client_auth") {
                _ if client_ca.is_none() => ClientAuth::Off,
                "require" => ClientAuth::Require,
                _ => ClientAuth::Request,
            },
            client_ca,
        }
    }
}

/// What is missing where clients are asked for certificates.
const NO_CLIENT_CA: &str =
    "set `client_ca` to a PEM file with the authorities that client certificates must come from";

/// The oldest version of TLS that a table allows.
pub(crate) fn min_version(section: &Section<'_>) -> TlsVersion {
    match section.word("min_version") {
        "1.3" => TlsVersion::Tls13,
        _ => TlsVersion::Tls12,
    }
}

impl CertificateSpec {
    pub(crate) fn read(section: &Section<'_>) -> Option<Self> {
        let certificate = section.parsed("certificate", notation::path);
        let key = section.parsed("key", notation::path);
        let key_passphrase = section.parsed("key_passphrase_file", notation::path);
        Some(Self { certificate: certificate?, key: key?, key_passphrase })
    }

    /// All files that it names.
    pub(crate) fn named(&self) -> impl Iterator<Item = &Spanned<String>> {
        [&self.certificate, &self.key].into_iter().chain(&self.key_passphrase)
    }

    /// The same for TLS.
    pub(crate) fn files(&self, folder: &Path) -> CertificateFiles {
        let full = |path: &Spanned<String>| folder.join(&path.value);
        CertificateFiles {
            certificate: full(&self.certificate),
            key: full(&self.key),
            key_passphrase: self.key_passphrase.as_ref().map(full),
        }
    }
}

/// What TLS offers. What was written must not speak against the listener.
fn protocols(section: &Section<'_>, http2: Http2) -> Vec<Spanned<String>> {
    let usual: &[&str] = match http2 {
        Http2::Off => &["http/1.1"],
        Http2::On => &["h2", "http/1.1"],
        Http2::Only => &["h2"],
    };
    if !section.has("alpn") {
        return usual.iter().map(|&name| Spanned { value: name.to_owned(), span: section.at() }).collect();
    }
    let written = section.parsed_list("alpn", notation::alpn);
    for protocol in written.iter().filter(|protocol| !usual.contains(&protocol.value.as_str())) {
        let message = match http2 {
            Http2::Only => "the listener speaks HTTP/2 alone: its `http2` is `only`",
            _ => "the listener does not speak HTTP/2: its `http2` is `off`",
        };
        section.findings().error(protocol.span, message, "leave `alpn` out: it follows `http2`");
    }
    written
}

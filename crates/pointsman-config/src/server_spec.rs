//! A server of a pool as it was written: an address, a name, or a service that stands for several.

use pointsman_rules::Span;

use crate::findings::Spanned;
use crate::notation::{self, ServerAddress};
use crate::section::{Section, TextOrSection};

/// A server as written, or a service.
pub(crate) struct ServerSpec {
    /// The address as written where the operator set none; absent only where that was reported.
    pub(crate) name: Option<Spanned<String>>,
    /// Absent only where that was reported.
    pub(crate) address: Option<Spanned<ServerAddress>>,
    pub(crate) weight: u32,
    /// Where the weight stands, if the operator set one.
    pub(crate) weight_at: Option<Span>,
    pub(crate) connections_max: u32,
    pub(crate) backup: bool,
    pub(crate) zone: Option<Spanned<String>>,
    pub(crate) tls_name: Option<Spanned<String>>,
}

impl ServerSpec {
    pub(crate) fn read(pool: &Section<'_>, server: &TextOrSection<'_>) -> Self {
        match server {
            TextOrSection::Text(text) => Self {
                name: Some(text.clone()),
                address: pool.parse(text, notation::server_address),
                weight: 1,
                weight_at: None,
                connections_max: 0,
                backup: false,
                zone: None,
                tls_name: None,
            },
            TextOrSection::Section(section) => Self::of_table(section),
        }
    }

    fn of_table(section: &Section<'_>) -> Self {
        let written = if section.has("service") { "service" } else { "address" };
        let text = section.text(written);
        look_at_service(section);
        Self {
            name: match section.has("name") {
                true => section.parsed("name", notation::server_name),
                false => text.clone(),
            },
            address: text.and_then(|text| match written {
                "service" => section.parse(&text, notation::service),
                _ => section.parse(&text, notation::server_address),
            }),
            weight: section.number("weight").unwrap_or(1),
            weight_at: section.has("weight").then(|| section.place("weight")),
            connections_max: section.number("connections_max").unwrap_or_default(),
            backup: section.flag("backup"),
            zone: section.parsed("zone", notation::server_name),
            tls_name: section.parsed("tls_name", notation::tls_name),
        }
    }

    /// Whether it stands for the servers of a service.
    pub(crate) fn is_service(&self) -> bool {
        matches!(&self.address, Some(Spanned { value: ServerAddress::Service(_), .. }))
    }
}

/// Reports where neither an address nor a service is there, and what a service cannot have.
fn look_at_service(section: &Section<'_>) {
    if !section.has("service") {
        if !section.has("address") {
            let help = "it must be an address such as `127.0.0.1:9001` or `host:9001`, in quotation marks; or name \
                        a `service`";
            section.missing(format!("`address` is missing {}", section.written_place()), help);
        }
        return;
    }
    for (key, help) in [
        ("address", "leave one of them out"),
        ("name", "leave it out: each of its servers is called by its target and port"),
        ("weight", "leave it out: the records say the weights"),
    ] {
        if section.has(key) {
            let message = format!("`{key}` cannot stand beside `service`");
            section.findings().error(section.place(key), message, help);
        }
    }
}

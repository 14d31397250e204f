//! TLS to the servers of a pool: what was written becomes a connector for each of them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use pointsman_rules::Span;
use pointsman_tls::{
    AuthorityFacts, CertificateFacts, ClientTls, Connector, Connectors, SystemAuthorities, TlsError,
    TlsVersion,
};

use crate::ServerProtocol;
use crate::findings::{Findings, Spanned};
use crate::notation::{self, ServerAddress};
use crate::section::Section;
use crate::server_spec::ServerSpec;
use crate::tls::place_of;
use crate::tls_spec::{CertificateSpec, min_version};

/// TLS of a pool as written.
pub(crate) struct PoolTlsSpec {
    pub(crate) at: Span,
    ca: Option<Spanned<String>>,
    name: Option<Spanned<String>>,
    certificate: Option<CertificateSpec>,
    /// Where only one of the two is there.
    is_half: bool,
    verify: bool,
    min_version: TlsVersion,
}

impl PoolTlsSpec {
    pub(crate) fn read(section: &Section<'_>) -> Self {
        let spec = Self {
            at: section.at(),
            ca: section.parsed("ca", notation::path),
            name: section.parsed("name", notation::tls_name),
            certificate: CertificateSpec::read(section),
            is_half: section.has("certificate") != section.has("key"),
            verify: section.flag("verify"),
            min_version: min_version(section),
        };
        for (one, other, help) in [
            ("certificate", "key", "set `key` to the private key of the certificate"),
            ("key", "certificate", "set `certificate` to what the key belongs to"),
        ] {
            if section.has(one) && !section.has(other) {
                let message = format!("`{one}` needs `{other}`");
                section.findings().error(section.place(one), message, help);
            }
        }
        if !spec.verify {
            section.findings().warning(
                section.place("verify"),
                "the servers' certificates are not checked: anybody can pass for these servers",
                "leave `verify` out, and set `ca` to the authorities that the certificates come from, or to the \
                 certificates themselves",
            );
            if let Some(ca) = &spec.ca {
                let help = "set `verify` to `true`";
                section.findings().warning(ca.span, "`ca` has no effect while `verify` is `false`", help);
            }
        }
        spec
    }

    /// The files that it names.
    pub(crate) fn files(&self, folder: &Path) -> Vec<Spanned<PathBuf>> {
        let named = self.ca.iter().chain(self.certificate.iter().flat_map(CertificateSpec::named));
        named.map(|path| Spanned { value: folder.join(&path.value), span: path.span }).collect()
    }
}

/// TLS of one pool, its files read.
pub(crate) struct PoolTls<'a> {
    spec: &'a PoolTlsSpec,
    /// Absent where something is wrong, which was reported.
    connectors: Option<Connectors>,
}

impl<'a> PoolTls<'a> {
    /// Reads the files.
    pub(crate) fn read(
        spec: &'a PoolTlsSpec,
        folder: &Path,
        system: &SystemAuthorities,
        protocol: ServerProtocol,
        findings: &Findings<'_>,
    ) -> Self {
        let files = spec.files(folder);
        let full = |path: &Spanned<String>| folder.join(&path.value);
        let settings = ClientTls {
            ca: spec.ca.as_ref().map(full),
            certificate: spec.certificate.as_ref().map(|certificate| certificate.files(folder)),
            verify: spec.verify,
            min_version: spec.min_version,
            protocol: match protocol {
                ServerProtocol::Http1 => "http/1.1",
                ServerProtocol::Http2 => "h2",
            },
        };
        let report = |error: TlsError| {
            let help = error.help().unwrap_or_default();
            findings.error(place_of(error.file(), &files, spec.at), error.to_string(), help);
        };
        let connectors = match Connectors::build(&settings, system) {
            Ok(connectors) => {
                for warning in connectors.warnings(SystemTime::now()) {
                    let place = place_of(Some(&warning.file), &files, spec.at);
                    findings.warning(place, warning.to_string(), warning.help());
                }
                Some(connectors)
            }
            Err(errors) => {
                errors.into_iter().for_each(report);
                None
            }
        };
        Self { spec, connectors: connectors.filter(|_| !spec.is_half) }
    }

    /// Authorities that a file names.
    pub(crate) fn authorities(&self) -> Arc<[AuthorityFacts]> {
        self.connectors.iter().flat_map(|connectors| connectors.authorities().iter().cloned()).collect()
    }

    /// What is shown to servers.
    pub(crate) fn certificate(&self) -> Option<Arc<CertificateFacts>> {
        self.connectors.as_ref()?.certificate().cloned().map(Arc::new)
    }

    /// The connector to a server. `previous` is what the server of this name had, so that its sessions live on.
    pub(crate) fn to(
        &self,
        server: &ServerSpec,
        previous: Option<&Connector>,
        findings: &Findings<'_>,
    ) -> Option<Connector> {
        let connectors = self.connectors.as_ref()?;
        let address = server.address.as_ref()?;
        let host = match &address.value {
            ServerAddress::Socket(address) => address.ip().to_string(),
            ServerAddress::Host(name, _) => name.clone(),
            // Whoever forges an answer names what targets he likes, so the domain that was asked for is what counts (RFC
            // 9525 section 6.1).
            ServerAddress::Service(name) => {
                notation::service_domain(name).unwrap_or(name.as_str()).to_owned()
            }
        };
        let written = server.tls_name.as_ref().or(self.spec.name.as_ref());
        let (name, span) = written.map_or((host.as_str(), address.span), |name| (&name.value, name.span));
        let connector = connectors.to(name, previous);
        if connector.is_none() {
            let message = format!("no certificate can be for the name `{name}`");
            findings.error(span, message, "set `tls_name` of the server to the name in its certificate");
        }
        connector
    }
}

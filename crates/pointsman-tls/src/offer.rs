//! What a client that measures offers: narrower than what the switch offers its servers, to see one thing at a time.

use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::{ALL_CIPHER_SUITES, ALL_KX_GROUPS};
use rustls::version::TLS12;
use rustls::{ClientConfig, SupportedProtocolVersion};

use crate::acceptor::{provider, versions};
use crate::connector::{Connectors, SystemAuthorities};
use crate::error::{Problem, TlsError};
use crate::settings::{ClientTls, TlsVersion};
use crate::stream::iana_name;

/// One version of TLS and no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OneVersion {
    /// TLS 1.2.
    Tls12,
    /// TLS 1.3.
    Tls13,
}

impl OneVersion {
    /// `1.2` or `1.3`.
    pub fn name(self) -> &'static str {
        match self {
            OneVersion::Tls12 => "1.2",
            OneVersion::Tls13 => "1.3",
        }
    }
}

/// What a client offers, where that is narrower than usual.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Offer {
    /// The version; `None`: 1.3 and 1.2.
    pub version: Option<OneVersion>,
    /// Names of cipher suites in IANA's registry, best first; none: all that the library takes for good.
    pub suites: Vec<String>,
    /// Names of groups there (`X25519`, `secp256r1`, `X25519MLKEM768`), best first; none: those that the switch offers.
    pub groups: Vec<String>,
}

impl Offer {
    /// What a client does with these settings and this offer, for code that does its own input and output. Sessions are
    /// not resumed unless the caller sees to it.
    ///
    /// # Errors
    /// All that is wrong with the files, or names that the library does not have.
    pub fn client_config(
        &self,
        settings: &ClientTls,
        system: &SystemAuthorities,
    ) -> Result<ClientConfig, Vec<TlsError>> {
        let provider = self.provider().map_err(|reason| vec![refused(reason)])?;
        let connectors = Connectors::offering(settings, system, Arc::new(provider), self.versions())?;
        let mut config = connectors.into_config();
        config.resumption = rustls::client::Resumption::disabled();
        if settings.protocol.is_empty() {
            config.alpn_protocols.clear();
        }
        Ok(config)
    }

    fn versions(&self) -> &'static [&'static SupportedProtocolVersion] {
        match self.version {
            None => versions(TlsVersion::Tls12),
            Some(OneVersion::Tls12) => {
                static V12: [&SupportedProtocolVersion; 1] = [&TLS12];
                &V12
            }
            Some(OneVersion::Tls13) => versions(TlsVersion::Tls13),
        }
    }

    fn provider(&self) -> Result<CryptoProvider, String> {
        let mut provider = provider();
        if !self.suites.is_empty() {
            let known = |name: &String| {
                let found = ALL_CIPHER_SUITES
                    .iter()
                    .find(|suite| iana_name(suite.suite()).eq_ignore_ascii_case(name.trim()));
                found.copied().ok_or_else(|| {
                    unknown(
                        "cipher suite",
                        name,
                        ALL_CIPHER_SUITES.iter().map(|suite| iana_name(suite.suite())),
                    )
                })
            };
            provider.cipher_suites = self.suites.iter().map(known).collect::<Result<_, _>>()?;
            let is_of_one = |suite: &rustls::SupportedCipherSuite| self.versions().contains(&suite.version());
            if let Some(version) = self.version
                && !provider.cipher_suites.iter().any(is_of_one)
            {
                let all = ALL_CIPHER_SUITES.iter().filter(|suite| is_of_one(suite));
                let all: Vec<_> = all.map(|suite| iana_name(suite.suite())).collect();
                return Err(format!(
                    "none of the cipher suites (`{}`) is one of TLS {}; there are {}",
                    self.suites.join("`, `"),
                    version.name(),
                    all.join(", ")
                ));
            }
        }
        if !self.groups.is_empty() {
            let name_of =
                |group: &&dyn rustls::crypto::SupportedKxGroup| group.name().as_str().unwrap_or_default();
            let known = |name: &String| {
                let found =
                    ALL_KX_GROUPS.iter().find(|group| name_of(group).eq_ignore_ascii_case(group_name(name)));
                found.copied().ok_or_else(|| unknown("group", name, ALL_KX_GROUPS.iter().map(name_of)))
            };
            provider.kx_groups = self.groups.iter().map(known).collect::<Result<_, _>>()?;
        }
        Ok(provider)
    }
}

fn refused(reason: String) -> TlsError {
    TlsError::without_file(Problem::Refused { reason })
}

fn unknown<'a>(what: &str, name: &str, all: impl Iterator<Item = &'a str>) -> String {
    let all: Vec<_> = all.collect();
    format!("no {what} `{name}`; there are {}", all.join(", "))
}

/// The name in the registry of a group that people may call otherwise: `P-256` is `secp256r1`.
pub fn group_name(name: &str) -> &str {
    match name.trim() {
        "P-256" | "prime256v1" => "secp256r1",
        "P-384" => "secp384r1",
        name => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(offer: &Offer) -> Result<ClientConfig, Vec<TlsError>> {
        let settings = ClientTls {
            ca: None,
            certificate: None,
            verify: false,
            min_version: TlsVersion::Tls12,
            protocol: "h2",
        };
        offer.client_config(&settings, &SystemAuthorities::default())
    }

    #[test]
    fn nothing_else_is_offered() {
        let offer = Offer {
            version: Some(OneVersion::Tls13),
            suites: vec!["TLS_AES_256_GCM_SHA384".into()],
            groups: vec!["P-384".into(), "x25519mlkem768".into()],
        };
        let config = config(&offer).expect("known names");
        let provider = config.crypto_provider();
        let suites: Vec<_> = provider.cipher_suites.iter().map(|suite| iana_name(suite.suite())).collect();
        assert_eq!(suites, ["TLS_AES_256_GCM_SHA384"]);
        let groups: Vec<_> = provider.kx_groups.iter().filter_map(|group| group.name().as_str()).collect();
        assert_eq!(groups, ["secp384r1", "X25519MLKEM768"]);
        assert_eq!(config.alpn_protocols, [b"h2"]);
    }

    #[test]
    fn unknown_names_are_refused_and_the_known_ones_shown() {
        for offer in [
            Offer { suites: vec!["TLS_NULL".into()], ..Offer::default() },
            Offer { groups: vec!["P-512".into()], ..Offer::default() },
        ] {
            let errors = config(&offer).expect_err("no such name");
            assert!(errors[0].to_string().contains("there are "), "{}", errors[0]);
        }
    }

    #[test]
    fn a_version_without_its_suites_is_refused() {
        let offer = Offer {
            version: Some(OneVersion::Tls12),
            suites: vec!["TLS_AES_256_GCM_SHA384".into()],
            groups: Vec::new(),
        };
        let errors = config(&offer).expect_err("it is of TLS 1.3");
        assert_eq!(
            errors[0].to_string(),
            "these settings cannot be used: none of the cipher suites (`TLS_AES_256_GCM_SHA384`) is one of TLS 1.2; there are \
             TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, \
             TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384, \
             TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256"
        );
    }
}

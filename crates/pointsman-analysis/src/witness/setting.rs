//! What becomes of a request depends on besides itself and its connection.

use std::net::SocketAddr;

use ipnet::IpNet;
use pointsman_http::{HeadLimits, OddNames};
use pointsman_rules::{Field, OwnedValue};
use pointsman_view::{BodyOptions, PathOptions, TrustedProxies};

use super::handshake::Handshakes;
use crate::wanted::Values;

/// A listener, as far as it says what rules see. By default it is the one that `pointsman explain` takes for rules without
/// a configuration.
#[derive(Clone, Debug)]
pub struct Setting {
    /// What a head may be.
    pub head_limits: HeadLimits,
    /// What becomes of paths.
    pub path_options: PathOptions,
    /// How bodies are read.
    pub body_options: BodyOptions,
    /// What becomes of fields with odd names.
    pub odd_fields: OddFields,
    /// Protocols that a connection may change to.
    pub upgrades: Vec<Box<str>>,
    /// Networks of the proxies that are believed.
    pub trusted_proxies: Vec<IpNet>,
    /// Whether other proxies may be believed, too: rules without a configuration do not say which they are.
    pub may_trust_others: bool,
    /// Whether connections begin with a PROXY header, which may name another client.
    pub proxy_header: ProxyHeader,
    /// Whether it speaks TLS; nothing where that is not said.
    pub speaks_tls: Option<bool>,
    /// What its handshakes may come to, where it does.
    pub tls: Handshakes,
    /// Whether peers of Unix sockets are believed when they name the client. No witness comes from one.
    pub trusts_unix: bool,
    /// Whether connections come to Unix sockets, too, and have no addresses. Where that is not said, they may.
    pub takes_unix: bool,
    /// Where all its requests come to. An unspecified address and port 0 are not known; nothing where there are Unix
    /// sockets, too.
    pub bind: Option<SocketAddr>,
    /// Whether it takes requests of HTTP/1.
    pub takes_http1: bool,
    /// Whether it takes those of HTTP/2.
    pub takes_http2: bool,
    /// Bytes of a body that are held until it is decided; nothing where that is not said.
    pub hold_bytes_max: Option<u32>,
    /// The pool that takes what no rule decides; nothing where that is not said.
    pub default_pool: Option<Box<str>>,
    /// Whether clients stay with the targets of sticky rules, wherever other rules route them.
    pub keeps_targets: bool,
    /// The name that `explain` is to be told of the listener; nothing where it need not be told.
    pub listener: Option<Box<str>>,
}

/// Whether connections begin with a PROXY header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyHeader {
    /// That is not said: they may.
    Unsaid,
    /// They do not.
    Off,
    /// They do, and come from trusted proxies alone.
    Required,
}

/// What becomes of fields whose names hold more than letters, digits and `-`, as [`OddNames`] has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum OddFields {
    /// They are taken away.
    #[default]
    Drop,
    /// The request is refused.
    Refuse,
    /// They stay, but for those that read like one of these names.
    Keep(Vec<Box<str>>),
}

impl Default for Setting {
    fn default() -> Setting {
        Setting {
            head_limits: HeadLimits::default(),
            path_options: PathOptions::default(),
            body_options: BodyOptions::default(),
            odd_fields: OddFields::default(),
            upgrades: vec!["websocket".into()],
            trusted_proxies: Vec::new(),
            may_trust_others: true,
            proxy_header: ProxyHeader::Unsaid,
            speaks_tls: None,
            tls: Handshakes::default(),
            trusts_unix: false,
            takes_unix: true,
            bind: None,
            takes_http1: true,
            takes_http2: true,
            hold_bytes_max: None,
            default_pool: None,
            keeps_targets: false,
            listener: None,
        }
    }
}

impl Setting {
    /// Those that are believed, as views take them. No witness comes to a Unix socket.
    pub(super) fn trusted<'n>(&self, networks: &'n [IpNet]) -> TrustedProxies<'n> {
        TrustedProxies { networks, unix: false }
    }

    /// Whether nobody is believed who names another client than the peer.
    pub(crate) fn clients_are_peers(&self) -> bool {
        !self.may_trust_others && !self.trusts_unix && self.trusted_proxies.is_empty()
    }

    /// The same, of whatever listener it is, and where no rule decides.
    #[must_use]
    pub fn of_any_name(&self) -> Setting {
        Setting { default_pool: None, keeps_targets: false, listener: None, ..self.clone() }
    }

    /// Whether a PROXY header may name another client.
    pub(super) fn may_be_proxied(&self) -> bool {
        self.proxy_header != ProxyHeader::Off
    }

    /// Whether every request has a value of a field, since every connection has addresses.
    pub(super) fn is_addressed(&self, field: &Field) -> bool {
        let is_of_ends =
            matches!(field, Field::SrcIp | Field::SrcPort | Field::DstIp | Field::DstPort | Field::ClientIp);
        is_of_ends && !self.takes_unix
    }

    /// What a field is for every request, where all come to one address or port.
    pub(crate) fn fixed(&self, field: &Field) -> Option<Values> {
        let value = match field {
            Field::DstPort => {
                let port = self.bind.map(|bind| bind.port()).filter(|port| *port != 0)?;
                OwnedValue::Integer(port.into())
            }
            Field::DstIp => {
                let address = self.bind.map(|bind| bind.ip()).filter(|address| !address.is_unspecified())?;
                OwnedValue::Ip(address.to_canonical())
            }
            _ => return None,
        };
        Some(Values { known: vec![value], rest: None })
    }

    /// A condition that is true of every request, which comes from a trusted proxy or not at all; nothing where anybody
    /// may send one.
    pub(crate) fn admits(&self) -> Option<String> {
        if self.proxy_header != ProxyHeader::Required || self.trusts_unix {
            return None;
        }
        let networks: Vec<_> = self.trusted_proxies.iter().map(ToString::to_string).collect();
        (!networks.is_empty()).then(|| format!("srcip in [{}]", networks.join(", ")))
    }

    pub(super) fn odd_names(&self) -> OddNames<'_> {
        match &self.odd_fields {
            OddFields::Drop => OddNames::Drop,
            OddFields::Refuse => OddNames::Refuse,
            OddFields::Keep(names) => OddNames::Keep(names),
        }
    }
}

//! What becomes of a request depends on besides itself and its connection.

use std::net::{IpAddr, SocketAddr};

use ipnet::IpNet;
use pointsman_http::{HeadLimits, OddNames};
use pointsman_rules::{Field, OwnedValue};
use pointsman_view::{BodyOptions, EncodedSlash, PathOptions};

use super::handshake::Handshakes;
use super::hosts::Hosts;
use crate::wanted::{Values, Wanted};

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
    /// The classes that limit requests by a field, and its name: rules that name the class name the field.
    pub limit_keys: Vec<(Box<str>, Box<str>)>,
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
    /// Which hosts it may be asked for over HTTP/2 and TLS.
    pub hosts: Hosts,
    /// Whether peers of Unix sockets are believed when they name the client.
    pub trusts_unix: bool,
    /// Whether connections may come to Unix sockets, and have no addresses. Where that is not said, they may.
    pub takes_unix: bool,
    /// Whether connections come to addresses, and not to Unix sockets alone.
    pub takes_addresses: bool,
    /// Where it listens; an unspecified address stands for any, and port 0 for any port. Nothing where that is not said.
    pub binds: Vec<SocketAddr>,
    /// Whether `[::]` stands for IPv6 alone, and not for IPv4 too.
    pub ipv6_only: bool,
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
    /// That is not said: they are taken away where nothing else is.
    #[default]
    Unsaid,
    /// They are taken away.
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
            limit_keys: Vec::new(),
            upgrades: vec!["websocket".into()],
            trusted_proxies: Vec::new(),
            may_trust_others: true,
            proxy_header: ProxyHeader::Unsaid,
            speaks_tls: None,
            tls: Handshakes::default(),
            hosts: Hosts::default(),
            trusts_unix: false,
            takes_unix: true,
            takes_addresses: true,
            binds: Vec::new(),
            ipv6_only: false,
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
    /// Whether nobody is believed who names another client than the peer.
    pub(crate) fn clients_are_peers(&self) -> bool {
        !self.may_trust_others && !self.trusts_unix && self.trusted_proxies.is_empty()
    }

    /// The same, of whatever listener it is, where no rule decides, and whatever rules name.
    #[must_use]
    pub fn of_any_name(&self) -> Setting {
        let odd_fields = match &self.odd_fields {
            OddFields::Keep(_) => OddFields::Keep(Vec::new()),
            other => other.clone(),
        };
        Setting {
            default_pool: None,
            keeps_targets: false,
            listener: None,
            odd_fields,
            limit_keys: Vec::new(),
            ..self.clone()
        }
    }

    /// The same, where the classes that there were before are known, too; of those that there are still this one knows the key.
    #[must_use]
    pub fn with_classes_of(mut self, before: &Setting) -> Setting {
        let gone = before.limit_keys.iter().filter(|(class, _)| self.limit_key(class).is_none());
        let gone: Vec<_> = gone.cloned().collect();
        self.limit_keys.extend(gone);
        self
    }

    /// Whether who has an address comes to one that is listened on: those of a family to one of it, and those of IPv4 to
    /// `[::]`, too.
    pub(super) fn is_open_to(&self, source: IpAddr, bind: &SocketAddr) -> bool {
        let (source, bound) = (source.to_canonical(), bind.ip().to_canonical());
        source.is_ipv4() == bound.is_ipv4() || source.is_ipv4() && bound.is_unspecified() && !self.ipv6_only
    }

    /// Whether who has an address comes to any of those.
    pub(super) fn is_reached_from(&self, source: IpAddr) -> bool {
        self.binds.is_empty() || self.binds.iter().any(|bind| self.is_open_to(source, bind))
    }

    /// Bytes of a body that are held until it is decided; any number where that is not said.
    pub(super) fn held_bytes_max(&self) -> u64 {
        self.hold_bytes_max.map_or(u64::MAX, u64::from)
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

    /// What a field is one of for every request, where all come to some addresses and ports, or to Unix sockets.
    pub(crate) fn choices(&self, field: &Field) -> Option<Vec<Values>> {
        let is_of_ends = matches!(field, Field::SrcIp | Field::SrcPort | Field::DstIp | Field::DstPort);
        let is_nobody = *field == Field::ClientIp && !self.hears_of_clients();
        if !self.takes_addresses && (is_of_ends || is_nobody) {
            return Some(vec![Values::default()]);
        }
        let value = |bind: &SocketAddr| match field {
            Field::DstPort => (bind.port() != 0).then(|| OwnedValue::Integer(bind.port().into())),
            Field::DstIp => (!bind.ip().is_unspecified()).then(|| OwnedValue::Ip(bind.ip().to_canonical())),
            _ => None,
        };
        let known: Vec<OwnedValue> = self.binds.iter().map(value).collect::<Option<_>>()?;
        let mut choices: Vec<Values> = Vec::new();
        for value in known {
            let values = Values { known: vec![value], rest: None };
            if !choices.contains(&values) {
                choices.push(values);
            }
        }
        if choices.is_empty() {
            return None;
        }
        choices.extend(self.takes_unix.then(Values::default));
        Some(choices)
    }

    /// Whether somebody may name another client than the peer of a Unix socket.
    fn hears_of_clients(&self) -> bool {
        self.may_be_proxied() || self.trusts_unix || self.may_trust_others
    }

    /// What is true of every request that is let in, whatever else it is: conditions of one test, and what they come to.
    pub(crate) fn always(&self) -> Vec<(String, Wanted)> {
        let mut always = Vec::new();
        let networks: Vec<_> = self.trusted_proxies.iter().map(ToString::to_string).collect();
        if self.proxy_header == ProxyHeader::Required && !self.trusts_unix && !networks.is_empty() {
            always.push((format!("srcip in [{}]", networks.join(", ")), Wanted::True));
        }
        // What has another form is brought into this one, or refused.
        if self.path_options.merge_slashes {
            always.push((r#"path contains "//""#.to_owned(), Wanted::False));
        }
        if self.path_options.encoded_slash == EncodedSlash::Refuse {
            always.push((r#"path matches "%(?:2F|5C)""#.to_owned(), Wanted::False));
        }
        always
    }

    /// Whether no request has a field, for its name: the codec refuses it, or takes the field away.
    pub(super) fn hides(&self, field: &Field) -> bool {
        let odd_names = match self.odd_fields {
            OddFields::Unsaid => OddNames::Keep(&[]),
            _ => self.odd_names(),
        };
        matches!(field, Field::Header(name) if odd_names.hide(name.as_bytes()))
    }

    /// The name of the field that a class limits requests by.
    pub(crate) fn limit_key(&self, class: &str) -> Option<&str> {
        self.limit_keys.iter().find(|(name, _)| **name == *class).map(|(_, key)| &**key)
    }

    pub(super) fn odd_names(&self) -> OddNames<'_> {
        match &self.odd_fields {
            OddFields::Unsaid | OddFields::Drop => OddNames::Drop,
            OddFields::Refuse => OddNames::Refuse,
            OddFields::Keep(names) => OddNames::Keep(names),
        }
    }
}

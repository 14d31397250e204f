//! Where a request or a connection is decided: a listener of a configuration, or rules by themselves.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use ipnet::IpNet;
use pointsman_analysis::{ClientCertificates, Handshakes, Hosts, OddFields, ProxyHeader, Setting};
use pointsman_config::{
    Bind, BodyLimits, Http2, Listener, OddNames, Plan, Protocol, ProxyProtocol, RuleSet, StickyScope,
    limit_keys,
};
use pointsman_http::{HeadLimits, Version};
use pointsman_rules::{Audience, Colour, Diagnostic, Outcome, Program, Severity, Targets, Terminal, draw};
use pointsman_tls::{Acceptor, CertificateFacts, ClientAuth, Terms, TlsVersion};
use pointsman_view::{BodyOptions, EncodedSlash, PathOptions, TrustedProxies};

use super::fitting::check_use;
use super::options::Options;
use crate::check::input;

/// What a decision depends on besides the request and its connection.
pub(crate) struct Place {
    /// What is read of a connection.
    pub(crate) protocol: Protocol,
    http2: Http2,
    /// The listener's name; empty where the rules stand alone.
    pub(crate) listener: Arc<str>,
    /// Whether the configuration has other listeners, too.
    needs_name: bool,
    /// Absent where a listener has no rules.
    pub(crate) program: Option<Arc<Program>>,
    /// Its text, where somebody is shown places in it; otherwise empty.
    pub(crate) source: Arc<str>,
    pub(crate) limits: HeadLimits,
    pub(crate) body_options: BodyOptions,
    /// Bytes of a body that are held until it is decided, with what frames them.
    pub(crate) hold_bytes_max: u32,
    pub(crate) path_options: PathOptions,
    pub(crate) odd_names: OddNames,
    /// The fields that the rules name.
    pub(crate) named_fields: Vec<Box<str>>,
    /// By which of them each class limits requests.
    limit_keys: Vec<(Box<str>, Box<str>)>,
    /// Protocols that a connection may change to.
    pub(crate) upgrades: Vec<Box<str>>,
    pub(crate) trusted_proxies: Vec<IpNet>,
    pub(crate) is_tls: bool,
    /// What its handshakes may come to, where it speaks TLS.
    pub(crate) handshakes: Handshakes,
    /// What it may be asked for over HTTP/2, where it speaks TLS.
    hosts: Hosts,
    pub(crate) proxy_header: ProxyHeader,
    /// The addresses that the listener listens on.
    pub(crate) binds: Vec<SocketAddr>,
    /// Whether `[::]` among them stands for IPv6 alone.
    ipv6_only: bool,
    /// Whether it listens on Unix sockets, too; rules by themselves may be of any listener.
    pub(crate) takes_unix: bool,
    /// Whether peers of Unix sockets are believed.
    pub(crate) trusts_unix: bool,
    sticky_scope: StickyScope,
    /// Takes what no rule decides.
    pub(crate) default_pool: DefaultPool,
}

/// What takes a request that no rule decides.
pub(crate) enum DefaultPool {
    /// Nobody can say without a configuration.
    Unknown,
    /// Nothing: the rules decide every request.
    None,
    /// The pool of this name.
    Named(String),
}

impl Place {
    /// Reads the rules or the configuration; the error is a text for people.
    pub(super) fn load(options: &Options, colour: Colour) -> Result<Place, String> {
        match options.has_configuration() {
            true => Place::of_configuration(options, colour),
            false => Place::of_rules(options, colour),
        }
    }

    fn of_rules(options: &Options, colour: Colour) -> Result<Place, String> {
        if options.listener.is_some() {
            return Err("error: `--listener` needs a configuration, a file that ends in `.toml`\n".to_owned());
        }
        let source = input::text(&options.rules).map_err(|message| format!("error: {message}\n"))?;
        if is_request(&source) {
            let name = input::name(&options.rules);
            return Err(format!(
                "error: `{name}` is a request, and no rule set\nhelp: pointsman explain RULES REQUEST\n"
            ));
        }
        let compiled = pointsman_rules::compile(&source, &Targets::Any)
            .map_err(|findings| drawn(&input::name(&options.rules), &source, &findings, colour))?;
        let place = Place::of_no_listener(Arc::new(compiled.program), options.trusted_proxies.clone());
        Ok(Place { trusts_unix: options.trusts_unix, source: source.into(), ..place })
    }

    /// Where rules stand without a configuration.
    pub(crate) fn of_no_listener(program: Arc<Program>, trusted_proxies: Vec<IpNet>) -> Place {
        Place {
            protocol: Protocol::Http,
            http2: Http2::On,
            listener: "".into(),
            needs_name: false,
            program: Some(program),
            source: "".into(),
            limits: HeadLimits::default(),
            body_options: BodyOptions::default(),
            hold_bytes_max: BodyLimits::default().hold_bytes_max,
            path_options: PathOptions::default(),
            odd_names: OddNames::default(),
            named_fields: Vec::new(),
            limit_keys: Vec::new(),
            upgrades: vec!["websocket".into()],
            trusted_proxies,
            is_tls: false,
            handshakes: Handshakes::default(),
            hosts: Hosts::default(),
            proxy_header: ProxyHeader::Unsaid,
            binds: Vec::new(),
            ipv6_only: false,
            takes_unix: true,
            trusts_unix: false,
            sticky_scope: StickyScope::Target,
            default_pool: DefaultPool::Unknown,
        }
    }

    fn of_configuration(options: &Options, colour: Colour) -> Result<Place, String> {
        let loaded = Plan::check_only(&options.rules).map_err(|problems| {
            if problems.is_unreadable() {
                let messages = problems.diagnostics().map(|(_, finding)| &finding.message);
                return messages.map(|message| format!("error: {message}\n")).collect::<String>();
            }
            let files = problems.files().iter();
            files.map(|file| drawn(&file.name, &file.source, &file.diagnostics, colour)).collect()
        })?;
        let plan = &loaded.plan;
        let listener = listener(plan, options.listener.as_deref())?;
        check_use(options, listener, plan)?;
        let mut place = Place::of_listener(listener, plan, &options.trusted_proxies);
        place.trusts_unix |= options.trusts_unix;
        let is_used =
            |set: &&RuleSet| place.program.as_ref().is_some_and(|used| Arc::ptr_eq(used, &set.program));
        if let Some(set) = loaded.rule_sets.iter().find(is_used) {
            place.source = set.source.clone();
        }
        Ok(place)
    }

    /// The same of a listener that serves, with rules of its own or others; the error is a text for people.
    pub(super) fn served(
        mut self,
        options: &Options,
        listener: &Listener,
        plan: &Plan,
    ) -> Result<Place, String> {
        check_use(options, listener, plan)?;
        self.trusted_proxies.extend(&options.trusted_proxies);
        self.trusts_unix |= options.trusts_unix;
        Ok(self)
    }

    /// A listener of a plan, which believes further proxies.
    pub(crate) fn of_listener(listener: &Listener, plan: &Plan, further_proxies: &[IpNet]) -> Place {
        let mut trusted_proxies = listener.trusted_proxies.clone();
        trusted_proxies.extend(further_proxies);
        Place {
            protocol: listener.protocol,
            http2: listener.http2,
            listener: listener.name.clone(),
            needs_name: plan.listeners.len() > 1,
            program: listener.program.clone(),
            source: "".into(),
            limits: HeadLimits {
                head_bytes_max: listener.limits.head_bytes_max as usize,
                headers_max: listener.limits.headers_max as usize,
                target_bytes_max: listener.limits.target_bytes_max as usize,
            },
            body_options: listener.body_options,
            hold_bytes_max: listener.body_limits.hold_bytes_max,
            path_options: path_options(listener),
            odd_names: listener.odd_names,
            named_fields: listener.named_fields.clone(),
            limit_keys: limit_keys(&plan.limits).map(|(class, key)| (class.into(), key.into())).collect(),
            upgrades: listener.upgrades.clone(),
            trusted_proxies,
            is_tls: listener.is_tls(),
            handshakes: listener.tls.as_ref().map(|tls| handshakes(tls.terms())).unwrap_or_default(),
            hosts: listener.tls.as_ref().map(hosts).unwrap_or_default(),
            proxy_header: match listener.proxy_protocol {
                ProxyProtocol::Off => ProxyHeader::Off,
                ProxyProtocol::Required => ProxyHeader::Required,
            },
            binds: listener.binds.iter().filter_map(Bind::address).collect(),
            ipv6_only: listener.ipv6_only,
            takes_unix: listener.binds.iter().any(|bind| bind.address().is_none()),
            trusts_unix: listener.trusts_unix,
            sticky_scope: listener.sticky_scope,
            default_pool: match listener.default_pool {
                Some(pool) => DefaultPool::Named(plan.pool(pool).name.to_string()),
                None => DefaultPool::None,
            },
        }
    }
}

/// What the certificates of a listener are for.
fn hosts(tls: &Acceptor) -> Hosts {
    let certificate = |facts: &CertificateFacts| (facts.fingerprint.clone(), facts.names.clone());
    let certificates = tls.certificates().iter().map(certificate).collect();
    let tls = tls.clone();
    Hosts::new(certificates, move |name, host| tls.serves(name, host))
}

/// What TLS of a listener takes.
fn handshakes(terms: &Terms) -> Handshakes {
    let names = |protocol: &[u8]| terms.alpn.iter().any(|name| name == protocol);
    Handshakes {
        takes_tls12: terms.min_version == TlsVersion::Tls12,
        signs_by_rsa: terms.signs_by_rsa,
        signs_by_ecdsa: terms.signs_by_ecdsa,
        names_http1: names(b"http/1.1"),
        names_http2: names(b"h2"),
        resumes: terms.tickets,
        clients: match terms.client_auth {
            ClientAuth::Off => ClientCertificates::Never,
            ClientAuth::Request => ClientCertificates::Perhaps,
            ClientAuth::Require => ClientCertificates::Always,
        },
    }
}

impl Place {
    /// The address that all requests come to, where it is known.
    pub(crate) fn dst_ip(&self) -> Option<IpAddr> {
        self.of_all_binds(|bind| bind.ip()).filter(|ip| !ip.is_unspecified())
    }

    /// The port that all requests come to, where it is known.
    pub(crate) fn dst_port(&self) -> Option<u16> {
        self.of_all_binds(|bind| bind.port()).filter(|port| *port != 0)
    }

    fn of_all_binds<T: PartialEq>(&self, part: impl Fn(&SocketAddr) -> T) -> Option<T> {
        let mut parts = self.binds.iter().map(part);
        let first = parts.next().filter(|_| !self.takes_unix)?;
        parts.all(|other| other == first).then_some(first)
    }

    /// Whom the listener believes.
    pub(crate) fn trusted_proxies(&self) -> TrustedProxies<'_> {
        TrustedProxies { networks: &self.trusted_proxies, unix: self.trusts_unix }
    }

    /// Whether all connections come to Unix sockets.
    pub(crate) fn takes_unix_alone(&self) -> bool {
        self.binds.is_empty() && !self.listener.is_empty()
    }

    /// Who is told of an outcome here.
    pub(super) fn audience(&self, outcome: &Outcome<'_>) -> Audience {
        match (outcome, &self.default_pool) {
            (Outcome::DefaultPool, DefaultPool::None) => Audience::Client,
            (outcome, _) => outcome.audience(),
        }
    }

    /// Whether a client that stays with its target goes there, and not where this leads.
    pub(crate) fn may_override(&self, outcome: &Outcome<'_>) -> bool {
        let is_route = match outcome {
            Outcome::DefaultPool => true,
            Outcome::Terminal(terminal) => matches!(terminal, Terminal::RouteTo { .. } | Terminal::Split(_)),
            Outcome::Waits | Outcome::Refused(_) | Outcome::RouteUnknown { .. } => false,
        };
        is_route && self.sticky_scope == StickyScope::Listener
    }

    /// Whether the listener speaks a version; the error is a text for people.
    pub(crate) fn check_version(&self, version: Version) -> Result<(), String> {
        let (word, help) = match (self.http2, version) {
            (Http2::Off, Version::Http2) => ("off", "end the first line of the request in `HTTP/1.1`"),
            (Http2::Only, Version::Http10 | Version::Http11) => {
                ("only", "end the first line of the request in `HTTP/2`")
            }
            _ => return Ok(()),
        };
        let name = &self.listener;
        Err(format!(
            "error: the listener `{name}` does not take such a request: its `http2` is `{word}`\nhelp: {help}\n"
        ))
    }

    /// The same for the analyst.
    pub(crate) fn setting(&self) -> Setting {
        Setting {
            head_limits: self.limits,
            path_options: self.path_options,
            body_options: self.body_options,
            odd_fields: match self.odd_names {
                OddNames::Drop => OddFields::Drop,
                OddNames::Refuse => OddFields::Refuse,
                OddNames::Keep => OddFields::Keep(self.named_fields.clone()),
            },
            limit_keys: self.limit_keys.clone(),
            upgrades: self.upgrades.clone(),
            trusted_proxies: self.trusted_proxies.clone(),
            may_trust_others: false,
            proxy_header: self.proxy_header,
            // Rules by themselves say nothing of it.
            speaks_tls: (!self.listener.is_empty()).then_some(self.is_tls),
            tls: self.handshakes.clone(),
            hosts: self.hosts.clone(),
            binds: self.binds.clone(),
            ipv6_only: self.ipv6_only,
            trusts_unix: self.trusts_unix,
            takes_unix: self.takes_unix,
            takes_addresses: !self.takes_unix_alone(),
            takes_http1: self.http2 != Http2::Only,
            takes_http2: self.http2 != Http2::Off,
            hold_bytes_max: Some(self.hold_bytes_max),
            default_pool: match &self.default_pool {
                DefaultPool::Named(pool) => Some(pool.as_str().into()),
                DefaultPool::Unknown | DefaultPool::None => None,
            },
            keeps_targets: self.sticky_scope == StickyScope::Listener,
            listener: self.needs_name.then(|| (*self.listener).into()),
        }
    }

    /// The same where it is asked what comes: of connections it is known where they come from and to, and of rules by
    /// themselves nothing but how paths are read.
    pub(crate) fn known(&self) -> Setting {
        let setting = self.setting();
        if self.listener.is_empty() {
            return Setting { path_options: setting.path_options, ..Setting::default() };
        }
        if self.protocol == Protocol::Http {
            return setting;
        }
        // Nobody writes there in a head whom he speaks for.
        let is_proxied = setting.proxy_header == ProxyHeader::Required;
        Setting {
            path_options: setting.path_options,
            trusted_proxies: if is_proxied { setting.trusted_proxies } else { Vec::new() },
            trusts_unix: setting.trusts_unix && is_proxied,
            may_trust_others: false,
            proxy_header: setting.proxy_header,
            binds: setting.binds,
            ipv6_only: setting.ipv6_only,
            takes_unix: setting.takes_unix,
            takes_addresses: setting.takes_addresses,
            ..Setting::default()
        }
    }

    /// What becomes of odd names, as the codec has it.
    pub(crate) fn odd_names(&self) -> pointsman_http::OddNames<'_> {
        match self.odd_names {
            OddNames::Drop => pointsman_http::OddNames::Drop,
            OddNames::Refuse => pointsman_http::OddNames::Refuse,
            OddNames::Keep => pointsman_http::OddNames::Keep(&self.named_fields),
        }
    }
}

/// The listener of this name, or the first one.
pub(crate) fn listener<'p>(plan: &'p Plan, name: Option<&str>) -> Result<&'p Listener, String> {
    let Some(name) = name else {
        return plan.listeners.first().ok_or("error: the configuration has no listener\n".to_owned());
    };
    plan.listener_named(name).ok_or_else(|| {
        let names: Vec<_> = plan.listeners.iter().map(|listener| format!("`{}`", listener.name)).collect();
        format!("error: there is no listener `{name}`\nhelp: the listeners are {}\n", names.join(", "))
    })
}

/// Whether a text begins with a request line, as no rule set does.
fn is_request(text: &str) -> bool {
    let words: Vec<_> = text.lines().next().unwrap_or_default().split(' ').collect();
    matches!(words.as_slice(), [_, _, version] if version.starts_with("HTTP/"))
}

fn path_options(listener: &Listener) -> PathOptions {
    PathOptions {
        encoded_slash: match listener.encoded_slash {
            pointsman_config::EncodedSlash::Keep => EncodedSlash::Keep,
            pointsman_config::EncodedSlash::Refuse => EncodedSlash::Refuse,
        },
        merge_slashes: listener.merge_slashes,
    }
}

/// The errors under their lines; `check` is there for what is merely odd.
fn drawn(name: &str, source: &str, findings: &[Diagnostic], colour: Colour) -> String {
    let errors = findings.iter().filter(|finding| finding.severity == Severity::Error);
    draw(errors, name, source, colour)
}

#[cfg(test)]
mod tests {
    use super::is_request;

    #[test]
    fn a_request_is_no_rule_set() {
        assert!(is_request("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
        assert!(!is_request("# GET / HTTP/1.1\nelse: routeTo(a);\n"));
        assert!(!is_request(""));
    }
}

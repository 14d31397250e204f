//! What the operator wrote, with spans: every value of the right type and within its range, names not yet
//! looked up and files not yet read.

use std::net::SocketAddr;

use ipnet::IpNet;
use pointsman_rules::Span;
use pointsman_view::{BodyKind, BodyLabel, Servers};
use toml::de::DeTable;

use crate::access_log::AccessLogSpec;
use crate::bandwidth::BandwidthSpec;
use crate::findings::{Findings, Spanned};
use crate::health::{self, HealthCheck, PoolSpeaks};
use crate::idle_keys;
use crate::lists::ListSpec;
use crate::notation::{self, BindAddress, Trusted};
use crate::pool_tls::PoolTlsSpec;
use crate::rate_limits::RateLimitSpec;
use crate::section::Section;
use crate::server_spec::ServerSpec;
use crate::tls_spec::TlsSpec;
use crate::traces::{self, Traces};
use crate::{
    Balancing, BodyLimits, DnsSettings, EncodedSlash, ForwardedMode, Http2, ListenerLimits, LogLevel,
    Misdirected, OddNames, OnDown, Pipeline, PoolLimits, Protocol, ProxyProtocol, ProxyVersion, RetryPolicy,
    ServerProtocol,
};

/// The text of a configuration, read.
pub(crate) struct Spec {
    pub(crate) threads: Option<usize>,
    pub(crate) drain_ms_max: u64,
    pub(crate) tunnel_drain_ms_max: u64,
    pub(crate) upgrade_ms_max: u32,
    pub(crate) upgrade_idle_ms_max: u64,
    pub(crate) watch_ms: u64,
    pub(crate) connections_max: Option<u32>,
    pub(crate) buffer_bytes_max: Option<u64>,
    pub(crate) hold_total_bytes_max: u64,
    pub(crate) upstream_idle_connections_max: u32,
    pub(crate) splice_pipes_max: u32,
    pub(crate) own_descriptor_tables: bool,
    pub(crate) mirrors_max: u32,
    pub(crate) mirror_bytes_max: u32,
    pub(crate) mirror_ms_max: u32,
    pub(crate) sticky_key: Option<[u8; 16]>,
    pub(crate) zone: Option<String>,
    pub(crate) sticky_entries_max: u32,
    pub(crate) sticky_idle_ms_max: u64,
    pub(crate) log_level: LogLevel,
    pub(crate) access_log: Option<AccessLogSpec>,
    pub(crate) traces: Option<Traces>,
    pub(crate) admin: Option<AdminSpec>,
    pub(crate) listeners: Vec<ListenerSpec>,
    pub(crate) pools: Vec<PoolSpec>,
    pub(crate) limits: Vec<RateLimitSpec>,
    pub(crate) bandwidth: Vec<BandwidthSpec>,
    pub(crate) lists: Vec<ListSpec>,
    pub(crate) dns: DnsSettings,
}

/// The admin listener as written.
pub(crate) struct AdminSpec {
    /// Absent only where that was reported.
    pub(crate) bind: Option<Spanned<SocketAddr>>,
    pub(crate) tls: Option<TlsSpec>,
    /// Relative to the configuration file.
    pub(crate) token_file: Option<Spanned<String>>,
    /// Likewise.
    pub(crate) audit_log: Option<Spanned<String>>,
    pub(crate) allowed_origins: Vec<Spanned<Box<str>>>,
    pub(crate) metrics_rules_max: u32,
}

/// A listener as written.
pub(crate) struct ListenerSpec {
    /// Absent only where that was reported.
    pub(crate) name: Option<Spanned<String>>,
    pub(crate) binds: Vec<Spanned<BindAddress>>,
    pub(crate) ipv6_only: bool,
    pub(crate) unix_mode: u32,
    pub(crate) protocol: Protocol,
    pub(crate) tls: Option<TlsSpec>,
    /// Relative to the configuration file.
    pub(crate) rules: Option<Spanned<String>>,
    pub(crate) pool: Option<Spanned<String>>,
    pub(crate) trusted_proxies: Vec<IpNet>,
    pub(crate) trusts_unix: bool,
    pub(crate) proxy_protocol: ProxyProtocol,
    pub(crate) x_forwarded: ForwardedMode,
    pub(crate) forwarded: ForwardedMode,
    /// Where `sticky_scope` is `"listener"`, if it is.
    pub(crate) sticky_to_listener_at: Option<Span>,
    /// As the rules say, if nothing is said.
    pub(crate) encoded_slash: Option<EncodedSlash>,
    pub(crate) misdirected: Misdirected,
    /// As the rules say, if nothing is said.
    pub(crate) merge_slashes: Option<bool>,
    pub(crate) readings: Servers,
    pub(crate) http2: Http2,
    pub(crate) odd_names: OddNames,
    pub(crate) body_kind: BodyKind,
    pub(crate) body_label: BodyLabel,
    /// Where it stands, if the operator set it.
    pub(crate) body_kind_at: Option<Span>,
    pub(crate) pipeline: Pipeline,
    pub(crate) upgrades: Vec<Box<str>>,
    pub(crate) trailers: Vec<Spanned<Box<str>>>,
    pub(crate) limits: ListenerLimits,
    pub(crate) body_limits: BodyLimits,
    /// Where `hold_bytes_max` is set, if it is.
    pub(crate) hold_bytes_max_at: Option<Span>,
}

/// A pool as written.
pub(crate) struct PoolSpec {
    pub(crate) name: Spanned<String>,
    pub(crate) balancing: Balancing,
    pub(crate) servers: Vec<ServerSpec>,
    pub(crate) tls: Option<PoolTlsSpec>,
    pub(crate) proxy_protocol: Option<ProxyVersion>,
    pub(crate) protocol: ServerProtocol,
    pub(crate) on_down: OnDown,
    pub(crate) health: Option<HealthCheck>,
    pub(crate) retries: RetryPolicy,
    pub(crate) limits: PoolLimits,
}

impl Spec {
    /// Reads a configuration's table. Where something is wrong with it the specification holds what could be
    /// read, so that more can be found wrong with it.
    pub(crate) fn read(table: &DeTable<'_>, findings: &Findings<'_>) -> Spec {
        let root = Section::root(table, findings);
        root.require_elements(
            "listener",
            "a configuration needs at least one listener",
            "one begins with the line `[[listener]]`",
        );
        Spec {
            threads: root.number("threads").and_then(|threads: u64| usize::try_from(threads).ok()),
            drain_ms_max: root.number("drain_ms_max").unwrap_or_default(),
            tunnel_drain_ms_max: root.number("tunnel_drain_ms_max").unwrap_or_default(),
            upgrade_ms_max: root.number("upgrade_ms_max").unwrap_or_default(),
            upgrade_idle_ms_max: root.number("upgrade_idle_ms_max").unwrap_or_default(),
            watch_ms: root.number("watch_ms").unwrap_or_default(),
            splice_pipes_max: root.number("splice_pipes_max").unwrap_or_default(),
            mirrors_max: root.number("mirrors_max").unwrap_or_default(),
            mirror_bytes_max: root.number("mirror_bytes_max").unwrap_or_default(),
            mirror_ms_max: root.number("mirror_ms_max").unwrap_or_default(),
            own_descriptor_tables: root.flag("own_descriptor_tables"),
            connections_max: root.number("connections_max"),
            buffer_bytes_max: root.number("buffer_bytes_max"),
            hold_total_bytes_max: root.number("hold_total_bytes_max").unwrap_or_default(),
            upstream_idle_connections_max: root.number("upstream_idle_connections_max").unwrap_or_default(),
            sticky_key: root.parsed("sticky_key", notation::sticky_key).map(|key| key.value),
            zone: root.parsed("zone", notation::server_name).map(|zone| zone.value),
            sticky_entries_max: root.number("sticky_entries_max").unwrap_or_default(),
            sticky_idle_ms_max: root.number("sticky_idle_ms_max").unwrap_or_default(),
            log_level: LogLevel::named(root.word("log_level")).unwrap_or_default(),
            access_log: root.section("access_log").as_ref().map(AccessLogSpec::read),
            traces: root.section("traces").as_ref().and_then(traces::read),
            admin: root.section("admin").as_ref().map(AdminSpec::read),
            listeners: root.sections("listener").iter().map(ListenerSpec::read).collect(),
            pools: root.named_sections("pool").into_iter().map(PoolSpec::read).collect(),
            limits: root.named_sections("limit").into_iter().map(RateLimitSpec::read).collect(),
            bandwidth: root.named_sections("bandwidth").into_iter().map(BandwidthSpec::read).collect(),
            lists: root.named_sections("list").into_iter().map(ListSpec::read).collect(),
            dns: root.section("dns").as_ref().map(DnsSettings::read).unwrap_or_default(),
        }
    }
}

impl AdminSpec {
    pub(crate) fn read(section: &Section<'_>) -> Self {
        Self {
            bind: section.parsed("bind", notation::bind_address),
            tls: section.section("tls").as_ref().map(TlsSpec::of_admin),
            token_file: section.parsed("token_file", notation::path),
            audit_log: section.parsed("audit_log", notation::path),
            allowed_origins: section.parsed_list("allowed_origins", notation::origin),
            metrics_rules_max: section.number("metrics_rules_max").unwrap_or_default(),
        }
    }
}

impl ListenerSpec {
    fn read(section: &Section<'_>) -> Self {
        let (trusted_proxies, trusts_unix) =
            trusted(&section.parsed_list("trusted_proxies", notation::trusted));
        let http2 = match section.word("http2") {
            "off" => Http2::Off,
            "only" => Http2::Only,
            _ => Http2::On,
        };
        let protocol = Protocol::read(section);
        let limits = section.section("limits");
        protocol.check_keys(section, limits.as_ref());
        let spec = Self {
            name: section.parsed("name", notation::name),
            binds: section.parsed_list("bind", notation::bind),
            ipv6_only: section.flag("ipv6_only"),
            unix_mode: section.parsed("unix_mode", notation::unix_mode).map_or(UNIX_MODE, |mode| mode.value),
            protocol,
            tls: section.section("tls").as_ref().map(|section| TlsSpec::read(section, http2)),
            rules: section.parsed("rules", notation::path),
            pool: section.text("pool"),
            trusted_proxies,
            trusts_unix,
            proxy_protocol: match section.word("proxy_protocol") {
                "required" => ProxyProtocol::Required,
                _ => ProxyProtocol::Off,
            },
            x_forwarded: forwarded_mode(section.word("x_forwarded")),
            forwarded: forwarded_mode(section.word("forwarded")),
            sticky_to_listener_at: (section.word("sticky_scope") == "listener")
                .then(|| section.place("sticky_scope")),
            encoded_slash: encoded_slash(section.word("encoded_slash")),
            misdirected: misdirected(section),
            merge_slashes: section.has("merge_slashes").then(|| section.flag("merge_slashes")),
            readings: readings(section),
            http2,
            odd_names: odd_names(section.word("odd_names")),
            body_kind: body_kind(section.word("body_kind")),
            body_label: match section.word("body_label") {
                "believe" => BodyLabel::Believed,
                _ => BodyLabel::Checked,
            },
            body_kind_at: section.has("body_kind").then(|| section.place("body_kind")),
            pipeline: pipeline(section.word("pipeline")),
            upgrades: upgrades(section),
            trailers: section.parsed_list("trailers", notation::trailer),
            limits: limits.as_ref().map(ListenerLimits::read).unwrap_or_default(),
            body_limits: limits.as_ref().map(BodyLimits::read).unwrap_or_default(),
            hold_bytes_max_at: limits
                .as_ref()
                .filter(|limits| limits.has("hold_bytes_max"))
                .map(|limits| limits.place("hold_bytes_max")),
        };
        section.require_elements(
            "bind",
            "`bind` needs at least one address",
            "name an address and a port, as in `0.0.0.0:8443`",
        );
        idle_keys::of_listener(section, limits.as_ref(), (protocol, http2, spec.pipeline));
        spec.look_at_proxies(section);
        if !section.has("rules") && !section.has("pool") {
            section.missing(
                "a listener needs `rules` or `pool`",
                "set `pool` to send every request to one pool",
            );
        }
        spec
    }

    /// Reports where a PROXY header is asked for and nobody is believed.
    fn look_at_proxies(&self, section: &Section<'_>) {
        if self.proxy_protocol == ProxyProtocol::Required
            && self.trusted_proxies.is_empty()
            && !self.trusts_unix
        {
            section.findings().error(
                section.place("proxy_protocol"),
                "`proxy_protocol` needs `trusted_proxies`",
                "set `trusted_proxies` to the addresses of the proxies in front: nobody else is let in",
            );
        }
        let paths = self.binds.iter().filter(|bind| matches!(bind.value, BindAddress::Unix(_)));
        let asks_paths = self.proxy_protocol == ProxyProtocol::Required && !self.trusted_proxies.is_empty();
        for path in paths.filter(|_| asks_paths && !self.trusts_unix) {
            section.findings().warning(
                path.span,
                "nobody is let in here: peers of a Unix socket are not in `trusted_proxies`",
                "add `unix:` to `trusted_proxies`, if all that may connect are to be believed",
            );
        }
    }
}

impl PoolSpec {
    /// Its servers but for the services, which stand for others.
    pub(crate) fn written_servers(&self) -> impl Iterator<Item = &ServerSpec> {
        self.servers.iter().filter(|server| !server.is_service())
    }

    fn read((name, section): (Spanned<String>, Section<'_>)) -> Self {
        if let Err(refusal) = notation::name(&name.value) {
            section.findings().error(name.span, refusal.message, refusal.help);
        }
        section.require_elements(
            "servers",
            "a pool needs at least one server",
            "name one by its address and port: `[\"127.0.0.1:9001\"]`",
        );
        let balancing = Balancing::read(&section);
        let servers = section.texts_or_sections("servers");
        let servers: Vec<_> = servers.iter().map(|server| ServerSpec::read(&section, server)).collect();
        for server in servers
            .iter()
            .filter(|server| server.weight != 1 && !server.is_service() && !balancing.looks_at_weights())
        {
            section.findings().warning(
                server.weight_at.unwrap_or(section.at()),
                format!("`weight` has no effect under `{}`", balancing.algorithm),
                "set `balance` to `weighted-round-robin`, `weighted-least-connections` or `least-time`",
            );
        }
        for service in servers.iter().filter(|server| server.is_service() && !balancing.looks_at_weights()) {
            section.findings().note(
                service.address.as_ref().map_or(section.at(), |address| address.span),
                format!("the weights of its records have no effect under `{}`", balancing.algorithm),
                "set `balance` to `weighted-round-robin`, `weighted-least-connections` or `least-time`",
            );
        }
        if !servers.is_empty() && servers.iter().all(|server| server.backup) {
            let help = "take `backup` away from those that serve as a rule";
            section.findings().error(section.place("servers"), "every server of the pool is a backup", help);
        }
        let tls = section.section("tls").as_ref().map(PoolTlsSpec::read);
        for name in
            servers.iter().filter_map(|server| server.tls_name.as_ref()).filter(|_| !section.has("tls"))
        {
            let help = "add `tls = {}` to the pool, or leave `tls_name` out";
            section.findings().error(name.span, "`tls_name` needs `tls` of the pool", help);
        }
        let proxy_protocol = match section.word("proxy_protocol") {
            "v1" => Some(ProxyVersion::V1),
            "v2" => Some(ProxyVersion::V2),
            _ => None,
        };
        let protocol = match section.word("protocol") {
            "h2" => ServerProtocol::Http2,
            _ => ServerProtocol::Http1,
        };
        let on_down = match section.word("on_down") {
            "fail" => OnDown::Fail,
            _ => OnDown::Repick,
        };
        let health = section
            .section("health")
            .as_ref()
            .map(|health| health::read(health, PoolSpeaks { tls: section.has("tls"), protocol }));
        let (retries, limits) = (RetryPolicy::read(&section), PoolLimits::read(&section));
        idle_keys::of_pool(&section, protocol, &servers, &limits);
        Self { name, balancing, servers, tls, proxy_protocol, protocol, on_down, health, retries, limits }
    }
}

fn body_kind(word: &str) -> BodyKind {
    match word {
        "absent" => BodyKind::Absent,
        "unknown" => BodyKind::Unknown,
        "sniff" => BodyKind::Sniff,
        _ => BodyKind::ByRules,
    }
}

fn readings(section: &Section<'_>) -> Servers {
    if !section.has("readings") {
        return Servers::default();
    }
    let named = section.parsed_list("readings", notation::readings);
    named.iter().map(|readings| readings.value).fold(Servers::NONE, Servers::and)
}

fn encoded_slash(word: &str) -> Option<EncodedSlash> {
    match word {
        "refuse" => Some(EncodedSlash::Refuse),
        "keep" => Some(EncodedSlash::Keep),
        _ => None,
    }
}

fn pipeline(word: &str) -> Pipeline {
    match word {
        "concurrent" => Pipeline::Concurrent,
        "latest" => Pipeline::Latest,
        _ => Pipeline::Hold,
    }
}

/// Who may write to the file of a Unix socket, where nothing else is said.
const UNIX_MODE: u32 = 0o660;

/// The networks, and whether Unix sockets are among them.
fn trusted(written: &[Spanned<Trusted>]) -> (Vec<IpNet>, bool) {
    let networks = written.iter().filter_map(|trusted| match trusted.value {
        Trusted::Network(network) => Some(network),
        Trusted::Unix => None,
    });
    (networks.collect(), written.iter().any(|trusted| trusted.value == Trusted::Unix))
}

/// The protocols that a connection may change to.
fn odd_names(word: &str) -> OddNames {
    match word {
        "keep" => OddNames::Keep,
        "refuse" => OddNames::Refuse,
        _ => OddNames::Drop,
    }
}

fn upgrades(section: &Section<'_>) -> Vec<Box<str>> {
    if !section.has("upgrades") {
        return vec![Box::from(notation::WEBSOCKET)];
    }
    let protocols = section.parsed_list("upgrades", notation::upgrade).into_iter();
    protocols.map(|protocol| protocol.value).collect()
}

fn forwarded_mode(word: &str) -> ForwardedMode {
    match word {
        "replace" => ForwardedMode::Replace,
        "off" => ForwardedMode::Off,
        _ => ForwardedMode::Append,
    }
}

/// Which hosts a client may ask for beside the server name.
fn misdirected(section: &Section<'_>) -> Misdirected {
    match section.word("misdirected") {
        "certificate" => Misdirected::Certificate,
        "name" => Misdirected::Name,
        _ => Misdirected::Http2,
    }
}

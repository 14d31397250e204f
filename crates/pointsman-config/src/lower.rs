//! From what was written to what it means: names looked up, files read.

use std::collections::{BTreeSet, HashMap};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pointsman_balance::Level;
use pointsman_rules::{Program, Span};
use pointsman_tls::SystemAuthorities;
use pointsman_view::Readings;

use crate::binds::{Bound, Ipv6};
use crate::findings::{Findings, Spanned};
use crate::lists::ReadList;
use crate::notation::{BindAddress, ServerAddress};
use crate::pool_tls::PoolTls;
use crate::rules::{Compiled, RuleSet, RulesFiles};
use crate::server_spec::ServerSpec;
use crate::spec::{ListenerSpec, PoolSpec, Spec};
use crate::{
    Answers, Bind, BodyLimits, EncodedSlash, Host, Listener, Lookup, OddNames, Plan, Pool, PoolIndex,
    Problems, Protocol, Server, Service, StickyScope, WatchedFile, candidate, lists, tls,
};

/// Bytes of the longest path that a socket may have (`unix(7)`).
const SOCKET_PATH_BYTES_MAX: usize = 107;

/// What may be looked at beyond the text of the configuration.
#[derive(Clone, Copy)]
pub(crate) enum Outside<'a> {
    /// The files that it names; one text may stand for that of a file.
    System { instead: Option<Instead<'a>> },
    /// Nothing: each rules file has this text.
    Texts { rules: &'a str },
}

/// A text that stands for that of a file, which is not read then.
#[derive(Clone, Copy, Debug)]
pub struct Instead<'a> {
    /// The configuration, as it is named, or rules, as [`RuleSet::path`] has them.
    pub path: &'a Path,
    /// What would stand in it.
    pub text: &'a str,
}

/// A plan in the making.
pub(crate) struct Lowering<'a> {
    pub(crate) spec: &'a Spec,
    /// The folder that paths are relative to.
    folder: &'a Path,
    outside: Outside<'a>,
    /// The plan that is to be replaced.
    previous: Option<&'a Plan>,
    /// What is wrong with the configuration itself.
    pub(crate) findings: &'a Findings<'a>,
    rules: RulesFiles<'a>,
    lists: Arc<[ReadList]>,
    pool_names: Vec<&'a str>,
    pools_by_name: HashMap<&'a str, PoolIndex>,
    authorities: SystemAuthorities,
    /// Every file that was read, besides the configuration.
    files: Vec<WatchedFile>,
    /// What has to be known of names, and where they stand.
    lookups: Vec<(Lookup, Span)>,
}

/// What came of it. With errors among the findings or the problems, the plan is incomplete.
pub(crate) struct Lowered {
    pub(crate) plan: Plan,
    /// What is wrong with rules files.
    pub(crate) problems: Problems,
    pub(crate) rule_sets: Vec<RuleSet>,
    pub(crate) files: Vec<WatchedFile>,
    pub(crate) lookups: Vec<(Lookup, Span)>,
}

impl<'a> Lowering<'a> {
    pub(crate) fn new(
        spec: &'a Spec,
        folder: &'a Path,
        outside: Outside<'a>,
        previous: Option<&'a Plan>,
        findings: &'a Findings<'a>,
    ) -> Self {
        let pool_names: Vec<_> = spec.pools.iter().map(|pool| pool.name.value.as_str()).collect();
        let (mut files, mut problems) = (Vec::new(), Problems::default());
        let before = previous.map_or(&[][..], |plan| &plan.lists);
        let lists = lists::read(&spec.lists, before, folder, outside, &mut files, findings, &mut problems);
        Self {
            spec,
            folder,
            outside,
            previous,
            findings,
            rules: RulesFiles::new(spec, &lists, previous, problems),
            lists,
            pools_by_name: pool_names.iter().copied().zip((0..).map(PoolIndex)).collect(),
            pool_names,
            authorities: SystemAuthorities::default(),
            files,
            lookups: Vec::new(),
        }
    }

    /// Looks at everything, whatever is found wrong on the way.
    pub(crate) fn lower(mut self) -> Lowered {
        let spec = self.spec;
        self.check_names();
        self.check_binds();
        let pools = spec.pools.iter().map(|pool| self.pool(pool)).collect();
        let listeners: Vec<Listener> =
            spec.listeners.iter().map(|listener| self.listener(listener)).collect();
        if !self.findings.has_errors() && !self.rules.problems().has_errors() {
            self.note_idle_pools(&listeners);
            crate::rate_limits::note_idle(&spec.limits, &listeners, self.findings);
            crate::bandwidth::note_idle(&spec.bandwidth, &listeners, self.findings);
            lists::note_idle(&spec.lists, &listeners, self.findings);
        }
        let bandwidth = crate::bandwidth::lower(&spec.bandwidth, self.findings);
        let lower_admin =
            |admin| crate::admin::lower(admin, self.folder, self.outside, &mut self.files, self.findings);
        let admin = spec.admin.as_ref().and_then(lower_admin);
        let plan = Plan {
            threads: spec.threads,
            drain_ms_max: spec.drain_ms_max,
            tunnel_drain_ms_max: spec.tunnel_drain_ms_max,
            upgrade_ms_max: spec.upgrade_ms_max,
            upgrade_idle_ms_max: spec.upgrade_idle_ms_max,
            watch_ms: spec.watch_ms,
            connections_max: spec.connections_max,
            buffer_bytes_max: spec.buffer_bytes_max,
            hold_total_bytes_max: spec.hold_total_bytes_max,
            upstream_idle_connections_max: spec.upstream_idle_connections_max,
            splice_pipes_max: spec.splice_pipes_max,
            own_descriptor_tables: spec.own_descriptor_tables,
            mirrors_max: spec.mirrors_max,
            mirror_bytes_max: spec.mirror_bytes_max,
            mirror_ms_max: spec.mirror_ms_max,
            sticky_key: spec.sticky_key,
            sticky_entries_max: spec.sticky_entries_max,
            sticky_idle_ms_max: spec.sticky_idle_ms_max,
            log_level: spec.log_level,
            access_log: spec
                .access_log
                .as_ref()
                .and_then(|log| log.lower(self.folder, self.outside, self.findings)),
            traces: spec.traces.clone(),
            admin,
            listeners,
            pools,
            bandwidth,
            limits: spec.limits.iter().map(|limit| limit.limit.clone()).collect(),
            // They are read off the text, when it is known what its files hold.
            settings: Arc::default(),
            dns: spec.dns.clone(),
            targets: self.rules.names(),
            lists: self.lists,
            rules: self.rules.take_read(),
        };
        let (problems, rule_sets) = self.rules.into_parts();
        Lowered { plan, problems, rule_sets, files: self.files, lookups: self.lookups }
    }

    fn check_names(&self) {
        let listeners = self.spec.listeners.iter().filter_map(|listener| listener.name.as_ref());
        self.check_unique(listeners, |name| format!("two listeners are called `{name}`"));
        for pool in &self.spec.pools {
            let servers = pool.servers.iter().filter_map(|server| server.name.as_ref());
            self.check_unique(servers, |name| {
                format!("two servers of the pool `{}` are called `{name}`", pool.name.value)
            });
        }
    }

    fn check_binds(&self) {
        let mut bound = Bound::default();
        let mut paths = HashMap::new();
        let addresses = self.spec.listeners.iter().flat_map(|listener| {
            let family = if listener.ipv6_only { Ipv6::Only } else { Ipv6::Dual };
            listener.binds.iter().map(move |bind| (bind, family))
        });
        for (bind, family) in addresses {
            match &bind.value {
                BindAddress::Socket(address) => self.check_address(&mut bound, *address, bind.span, family),
                BindAddress::Unix(path) => self.check_path(&mut paths, path, bind.span),
            }
        }
        if let Some(admin) = self.spec.admin.as_ref().and_then(|admin| admin.bind.as_ref()) {
            self.check_address(&mut bound, admin.value, admin.span, Ipv6::Dual);
        }
    }

    fn check_address(&self, bound: &mut Bound, address: SocketAddr, span: Span, ipv6: Ipv6) {
        // Port 0 is another port each time.
        if address.port() == 0 {
            return;
        }
        let Some(first) = bound.add(Spanned { value: address, span }, ipv6) else { return };
        let message = match first.value == address {
            true => format!("`{address}` is bound twice"),
            false => format!("`{address}` and `{}` overlap", first.value),
        };
        self.findings.error(
            span,
            message,
            format!("the first one is on line {}", self.findings.line(first.span)),
        );
    }

    fn check_path(&self, paths: &mut HashMap<PathBuf, Span>, written: &str, span: Span) {
        let path = self.folder.join(written);
        let bytes = path.as_os_str().len();
        if bytes > SOCKET_PATH_BYTES_MAX {
            let message =
                format!("the path has {bytes} bytes, and a socket's has {SOCKET_PATH_BYTES_MAX} at most");
            self.findings.error(span, message, "relative paths count with the folder of this file");
        }
        if let Some(first) = paths.insert(path, span) {
            let help = format!("the first one is on line {}", self.findings.line(first));
            self.findings.error(span, format!("`unix:{written}` is bound twice"), help);
        }
    }

    fn check_unique<'s, T: Eq + std::hash::Hash + 's>(
        &self,
        values: impl Iterator<Item = &'s Spanned<T>>,
        message: impl Fn(&T) -> String,
    ) {
        let mut seen: HashMap<&T, Span> = HashMap::new();
        for value in values {
            if let Some(first) = seen.get(&value.value) {
                let help = format!("the first one is on line {}", self.findings.line(*first));
                self.findings.error(value.span, message(&value.value), help);
            } else {
                seen.insert(&value.value, value.span);
            }
        }
    }

    fn pool(&mut self, spec: &PoolSpec) -> Pool {
        let tls = spec.tls.as_ref().and_then(|tls| {
            if let Outside::Texts { .. } = self.outside {
                self.findings.error(tls.at, "TLS needs files", "and there are none");
                return None;
            }
            self.files.extend(tls.files(self.folder).iter().map(|file| WatchedFile::look(&file.value)));
            Some(PoolTls::read(tls, self.folder, &self.authorities, spec.protocol, self.findings))
        });
        let services =
            spec.servers.iter().filter_map(|server| self.service(spec, server, tls.as_ref())).collect();
        let servers =
            spec.written_servers().filter_map(|server| self.server(spec, server, tls.as_ref())).collect();
        let pool = Pool {
            name: spec.name.value.as_str().into(),
            balancing: spec.balancing.clone(),
            servers,
            services,
            proxy_protocol: spec.proxy_protocol,
            protocol: spec.protocol,
            on_down: spec.on_down,
            health: spec.health.clone().map(Arc::new),
            retries: spec.retries,
            limits: spec.limits,
            certificate: tls.as_ref().and_then(PoolTls::certificate),
            authorities: tls.as_ref().map(PoolTls::authorities).unwrap_or_default(),
        };
        // Nothing is known of services yet.
        pool.with_answers(&Answers::default())
    }

    fn service(&mut self, pool: &PoolSpec, spec: &ServerSpec, tls: Option<&PoolTls<'_>>) -> Option<Service> {
        let address = spec.address.as_ref()?;
        let ServerAddress::Service(name) = &address.value else { return None };
        let name: Arc<str> = name.to_ascii_lowercase().into();
        let previous = self.previous.and_then(|plan| plan.service_named(&pool.name.value, &name));
        let previous = previous.and_then(|service| service.tls.as_ref());
        let service = Service {
            tls: tls.and_then(|tls| tls.to(spec, previous, self.findings)),
            name,
            connections_max: spec.connections_max,
            level: self.level(spec),
        };
        self.lookups.push((service.lookup(), address.span));
        Some(service)
    }

    fn server(&mut self, pool: &PoolSpec, spec: &ServerSpec, tls: Option<&PoolTls<'_>>) -> Option<Server> {
        let (name, address) = (spec.name.as_ref()?, spec.address.as_ref()?);
        let previous = self.previous.and_then(|plan| plan.server_named(&pool.name.value, &name.value));
        let previous = previous.and_then(|server| server.tls.as_ref());
        let tls = tls.and_then(|tls| tls.to(spec, previous, self.findings));
        let (socket, host) = match &address.value {
            ServerAddress::Socket(socket) => (Some(*socket), None),
            ServerAddress::Host(name, port) => {
                let host = Host { name: name.to_ascii_lowercase().into(), port: *port };
                self.lookups.push((Lookup::Addresses(host.name.clone()), address.span));
                (None, Some(host))
            }
            ServerAddress::Service(_) => return None,
        };
        Some(Server {
            name: name.value.as_str().into(),
            address: socket,
            host,
            service: None,
            weight: spec.weight,
            connections_max: spec.connections_max,
            level: self.level(spec),
            tls,
        })
    }

    /// A server without a zone is at home in every one.
    fn level(&self, spec: &ServerSpec) -> Level {
        match (&spec.zone, &self.spec.zone) {
            _ if spec.backup => Level::WRITTEN_BACKUP,
            (Some(zone), Some(own)) if zone.value != *own => Level::Distant,
            (Some(zone), None) => {
                let help = "set `zone` at the top level to where the switch stands";
                self.findings.warning(zone.span, "`zone` has no effect: the switch has none", help);
                Level::Local
            }
            (Some(_) | None, _) => Level::Local,
        }
    }

    fn listener(&mut self, spec: &ListenerSpec) -> Listener {
        let name = spec.name.as_ref().map(|name| name.value.as_str()).unwrap_or_default();
        let default_pool = spec.pool.as_ref().and_then(|pool| self.default_pool(pool));
        let rules = spec.rules.as_ref().and_then(|path| self.rules(path, spec));
        let (program, body_paths, targets) = match rules {
            Some(compiled) => (Some(compiled.program), compiled.body_paths, compiled.targets),
            None => (None, None, Vec::new()),
        };
        let readings =
            program.as_ref().and_then(|program| Readings::new(program, spec.readings)).map(Arc::new);
        let guards_path = program.as_ref().is_some_and(|program| Readings::guard_paths(program));
        let mirrors = self.mirrors(program.as_deref());
        let names_content = body_paths.as_ref().is_some_and(|paths| paths.names_content());
        if let Some(span) = spec.body_kind_at
            && spec.protocol == Protocol::Http
            && !names_content
            && (program.is_some() || spec.rules.is_none())
        {
            let message = "`body_kind` has no effect: no rule names a field of XML, JSON or a form";
            self.findings.warning(span, message, "leave it out");
        }
        let named_fields = match (&spec.rules, &program) {
            (Some(path), Some(program)) => self.named_fields(path, program, spec.odd_names),
            _ => Vec::new(),
        };
        self.look_at_stickiness(spec, program.as_deref());
        let trailers = self.trailers(spec, program.as_deref());
        let previous = self.previous.and_then(|plan| plan.listener_named(name)?.tls.as_ref());
        let tls = spec.tls.as_ref().and_then(|spec| {
            tls::lower(spec, self.folder, self.outside, previous, (&mut self.files, self.findings))
        });
        Listener {
            name: name.into(),
            binds: spec.binds.iter().map(|bind| self.bind(&bind.value)).collect(),
            ipv6_only: spec.ipv6_only,
            unix_mode: spec.unix_mode,
            protocol: spec.protocol,
            tls,
            program,
            targets,
            default_pool,
            trusted_proxies: spec.trusted_proxies.clone(),
            trusts_unix: spec.trusts_unix,
            proxy_protocol: spec.proxy_protocol,
            x_forwarded: spec.x_forwarded,
            forwarded: spec.forwarded,
            sticky_scope: match spec.sticky_to_listener_at {
                Some(_) if self.spec.sticky_entries_max > 0 => StickyScope::Listener,
                // Nobody is remembered.
                Some(_) | None => StickyScope::Target,
            },
            encoded_slash: spec.encoded_slash.unwrap_or(match guards_path {
                true => EncodedSlash::Refuse,
                false => EncodedSlash::Keep,
            }),
            misdirected: spec.misdirected,
            merge_slashes: spec.merge_slashes.unwrap_or(guards_path),
            readings,
            http2: spec.http2,
            odd_names: spec.odd_names,
            named_fields,
            mirrors,
            body_paths,
            body_options: spec.body_limits.body_options(spec.body_kind, spec.body_label, spec.readings),
            pipeline: spec.pipeline,
            upgrades: spec.upgrades.clone(),
            trailers,
            limits: spec.limits,
            body_limits: self.body_limits(spec),
            logs_query: self.spec.access_log.as_ref().is_some_and(|log| log.query),
        }
    }

    /// A body alone holds no more than all may together.
    fn body_limits(&self, spec: &ListenerSpec) -> BodyLimits {
        let total_bytes_max = self.spec.hold_total_bytes_max;
        let written = spec.body_limits.hold_bytes_max;
        let hold_bytes_max = written.min(u32::try_from(total_bytes_max).unwrap_or(u32::MAX));
        if hold_bytes_max < written
            && let Some(span) = spec.hold_bytes_max_at
        {
            let message = format!(
                "no body holds more than all may together, and `hold_total_bytes_max` is {total_bytes_max}"
            );
            self.findings.warning(span, message, "make that larger, or this smaller");
        }
        BodyLimits { hold_bytes_max, ..spec.body_limits }
    }

    fn bind(&self, written: &BindAddress) -> Bind {
        match written {
            BindAddress::Socket(address) => Bind::Address(*address),
            BindAddress::Unix(path) => Bind::Unix(self.folder.join(path).into()),
        }
    }

    /// The fields that the rules name. One with an odd name is never there when they read it, unless such names
    /// are kept.
    fn named_fields(&self, rules: &Spanned<String>, program: &Program, odd_names: OddNames) -> Vec<Box<str>> {
        let named = program.named_headers();
        let is_odd = |name: &&&str| !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        for name in named.read.iter().filter(is_odd).filter(|_| odd_names != OddNames::Keep) {
            let message = format!("no rule of `{}` ever sees `header[\"{name}\"]`", rules.value);
            let help = "fields with other bytes than letters, digits and `-` in their names are there only with \
                        `odd_names = \"keep\"`";
            self.findings.warning(rules.span, message, help);
        }
        candidate::named_fields(program, self.spec.limits.iter().map(|spec| &spec.limit))
    }

    fn default_pool(&self, written: &Spanned<String>) -> Option<PoolIndex> {
        let found = self.pools_by_name.get(written.value.as_str()).copied();
        if found.is_none() {
            let message = format!("there is no pool `{}`", written.value);
            let help = self.findings.did_you_mean(&written.value, &self.pool_names, "pools");
            self.findings.error(written.span, message, help);
        }
        found
    }

    fn rules(&mut self, path: &Spanned<String>, listener: &ListenerSpec) -> Option<Compiled> {
        let full: PathBuf = self.folder.join(&path.value);
        let compiled =
            match self.rules.compile(&full, listener.protocol.scope(), self.outside, &mut self.files) {
                Ok(compiled) => compiled?,
                Err(reason) => {
                    let message = format!("cannot read `{}`: {reason}", full.display());
                    self.findings.error(path.span, message, "paths are relative to the configuration file");
                    return None;
                }
            };
        if listener.pool.is_none()
            && let Some(open) = candidate::open_end(&compiled.program)
        {
            let message = open.sentence(&path.value);
            self.findings.error(path.span, message, open.help());
        }
        Some(compiled)
    }

    /// The pools that rules send copies to; the compiler knows them all.
    fn mirrors(&self, program: Option<&Program>) -> Vec<(Box<str>, PoolIndex)> {
        let names: BTreeSet<&str> = program.into_iter().flat_map(Program::mirror_pools).collect();
        let found = names.into_iter().filter_map(|name| Some((name.into(), *self.pools_by_name.get(name)?)));
        found.collect()
    }

    fn note_idle_pools(&self, listeners: &[Listener]) {
        let mut idle = vec![true; self.spec.pools.len()];
        let targets = listeners.iter().flat_map(|listener| listener.targets.iter().map(|target| target.pool));
        let mirrors = listeners.iter().flat_map(|listener| listener.mirrors.iter().map(|(_, pool)| *pool));
        let defaults = listeners.iter().filter_map(|listener| listener.default_pool);
        for pool in targets.chain(mirrors).chain(defaults) {
            idle[pool.0 as usize] = false;
        }
        for (pool, _) in self.spec.pools.iter().zip(idle).filter(|(_, idle)| *idle) {
            let message = format!("nothing is sent to the pool `{}`", pool.name.value);
            self.findings.note(pool.name.span, message, "no listener and no rule names it or a server of it");
        }
    }
}

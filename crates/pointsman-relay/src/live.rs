//! A plan and the run-time state beside it, which survives reloads.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use pointsman_balance::{Maglev, RouteCookie, StickyHash};
use pointsman_config::{Listener, Plan, Pool, PoolIndex, ProxyVersion, ServerProtocol, Target};
use pointsman_rules::{DecidedBy, Evidence, NO_RULE, Program, Rule, Stickiness, pace};
use pointsman_telemetry::{ListenerMetrics, Metrics, OwnLines, RuleMetrics, ServerMetrics};
use pointsman_tls::Connector;
use pointsman_upstream::ServerId;

use crate::admission::AddressCounts;
use crate::bandwidth::{BandwidthStates, LiveBandwidth};
use crate::capacity::Capacity;
use crate::handshake_rate::HandshakeRates;
use crate::hash_tables::HashTables;
use crate::limit::{LimitStates, LiveLimit};
use crate::load::{Places, ServerLoad};
use crate::named_servers::NamedServers;
use crate::pool_state::{PoolState, PoolStates};
use crate::response_time::SharedResponseTime;
use crate::standing::{Health, NOT_PROBED, Standing};
use crate::sticky_targets::{KeptBy, targets_by_number};

/// A listener's number, given once by name and kept over reloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ListenerId(u32);

impl ListenerId {
    /// The number: small, as there are no more than were ever named.
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// A listening socket's number, given once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SocketId(pub(crate) u32);

/// A plan joined with the state of the listeners, rules and servers it names.
pub(crate) struct Live {
    pub(crate) plan: Plan,
    pub(crate) sticky: StickyHash,
    pub(crate) route_cookie: RouteCookie,
    /// Parallel to the plan's listeners.
    listeners: Vec<LiveListener>,
    /// Parallel to the plan's pools.
    pools: Vec<Vec<LiveServer>>,
    /// Likewise.
    pool_states: Vec<Arc<PoolState>>,
    /// Likewise.
    hash_tables: Vec<Option<Arc<Maglev>>>,
    /// Positions by number: asked several times a request.
    by_id: Vec<Option<usize>>,
    /// Whom each socket accepts for. Part of the generation: a socket and the rules that its connections
    /// meet change together.
    pub(crate) sockets: HashMap<SocketId, ListenerId>,
    pub(crate) bandwidth: LiveBandwidth,
    /// Classes of `limitRate`, by name.
    pub(crate) limits: HashMap<Arc<str>, LiveLimit>,
    /// Every target by its number, where some listener keeps clients with targets.
    pub(crate) sticky_targets: HashMap<u32, Target>,
    /// Whether some rule keeps clients by the switch's own cookie. It is host-wide, whatever the port, so
    /// servers behind other listeners must not see it either.
    pub(crate) uses_route_cookie: bool,
}

/// The state of a listener.
pub(crate) struct LiveListener {
    pub(crate) id: ListenerId,
    pub(crate) state: Arc<ListenerState>,
    /// Its place among the plan's listeners.
    pub(crate) place: usize,
    /// The rules in order, then the final `else:` if there is one, then the default pool.
    pub(crate) rules: Vec<Arc<RuleMetrics>>,
    /// What is known of a body before any of it is read, where the rules name something of it.
    pub(crate) unread: Option<Evidence>,
    /// What clients are known by that stay with a target; nothing where they stay with a server inside it only.
    pub(crate) keeps: Box<[KeptBy]>,
}

/// What a listener's connections share.
#[derive(Debug)]
pub(crate) struct ListenerState {
    pub(crate) metrics: Arc<ListenerMetrics>,
    /// Open connections in the whole process.
    pub(crate) open: OwnLines<AtomicU32>,
    /// The same by address, where the listener limits those.
    pub(crate) addresses: OwnLines<AddressCounts>,
    /// Their TLS handshakes by address, likewise.
    pub(crate) handshakes: OwnLines<HandshakeRates>,
}

/// The state of a server.
#[derive(Clone)]
pub(crate) struct LiveServer {
    pub(crate) id: ServerId,
    pub(crate) load: Arc<ServerLoad>,
    pub(crate) capacity: Arc<Capacity>,
    pub(crate) standing: Arc<Standing>,
    pub(crate) response_time: SharedResponseTime,
    pub(crate) metrics: Arc<ServerMetrics>,
}

impl Live {
    pub(crate) fn listener(&self, id: ListenerId) -> Option<(&Listener, &LiveListener)> {
        let index = (*self.by_id.get(id.0 as usize)?)?;
        Some((&self.plan.listeners[index], &self.listeners[index]))
    }

    /// The listener that a socket belongs to, as long as it is there.
    pub(crate) fn listener_of(&self, socket: SocketId) -> Option<(ListenerId, &Listener, &LiveListener)> {
        let id = *self.sockets.get(&socket)?;
        self.listener(id).map(|(listener, live)| (id, listener, live))
    }

    pub(crate) fn listeners(&self) -> impl Iterator<Item = (&Listener, &LiveListener)> {
        self.plan.listeners.iter().zip(&self.listeners)
    }

    pub(crate) fn pools(&self) -> impl Iterator<Item = (&Pool, &[LiveServer])> {
        self.plan.pools.iter().zip(self.pools.iter().map(Vec::as_slice))
    }

    /// The table of a pool, where it is balanced by one.
    pub(crate) fn hash_table(&self, pool: PoolIndex) -> Option<&Arc<Maglev>> {
        self.hash_tables[pool.0 as usize].as_ref()
    }

    /// Says how many requests each server may have. From now on that holds, on all threads.
    pub(crate) fn bound_servers(&self) {
        for ((plan, servers), state) in self.pools().zip(&self.pool_states) {
            for (server, live) in plan.servers.iter().zip(servers) {
                live.capacity.set_max(server.connections_max);
                state.queue.serve(&live.capacity);
            }
        }
    }

    pub(crate) fn pool_state(&self, pool: PoolIndex) -> &Arc<PoolState> {
        &self.pool_states[pool.0 as usize]
    }

    pub(crate) fn servers(&self, pool: PoolIndex) -> &[LiveServer] {
        &self.pools[pool.0 as usize]
    }
}

impl Drop for LiveListener {
    /// Rules may be many.
    fn drop(&mut self) {
        pace::drop_each(self.rules.drain(..));
    }
}

impl LiveListener {
    /// The place of the rule that decided among its rules.
    pub(crate) fn place_of(&self, by: DecidedBy<'_>) -> usize {
        let last = self.rules.len() - 1;
        match by {
            DecidedBy::Rule { index, .. } => (index.0 as usize).min(last),
            DecidedBy::Nothing => last,
        }
    }
}

/// What makes a server the same one after a reload: idle connections that were made under other settings, to an
/// authority that is no longer trusted for instance, must not serve the new ones.
#[derive(PartialEq, Eq, Hash)]
struct ServerKey {
    pool: Arc<str>,
    name: Arc<str>,
    address: Option<SocketAddr>,
    tls: Option<[u8; 32]>,
    proxy_protocol: Option<ProxyVersion>,
    protocol: ServerProtocol,
}

/// Gives numbers and state to names, and remembers them.
pub(crate) struct Registry {
    metrics: Arc<Metrics>,
    sticky_key: [u8; 16],
    listeners: HashMap<Arc<str>, (ListenerId, Arc<ListenerState>)>,
    servers: HashMap<ServerKey, LiveServer>,
    named_servers: NamedServers,
    pool_states: PoolStates,
    hash_tables: HashTables,
    limits: LimitStates,
    bandwidth: BandwidthStates,
    places: Places,
    /// How many numbers were given to listeners and servers: none is given twice.
    listeners_numbered: u32,
    servers_numbered: u32,
}

impl Registry {
    /// `sticky_key` stands in where a plan names none.
    pub(crate) fn new(metrics: Arc<Metrics>, sticky_key: [u8; 16], threads: usize) -> Registry {
        Registry {
            metrics,
            sticky_key,
            listeners: HashMap::new(),
            servers: HashMap::new(),
            named_servers: NamedServers::default(),
            pool_states: PoolStates::new(threads),
            hash_tables: HashTables::default(),
            limits: LimitStates::default(),
            bandwidth: BandwidthStates::default(),
            places: Places::new(threads),
            listeners_numbered: 0,
            servers_numbered: 0,
        }
    }

    /// Joins a plan with its state. Servers that are new are up since `now_us`.
    pub(crate) fn attach(&mut self, plan: Plan, now_us: u64) -> Live {
        // Without an admin listener nobody is told.
        self.metrics.set_rules_max(plan.admin.as_ref().map_or(0, |admin| admin.metrics_rules_max));
        let key = plan.sticky_key.unwrap_or(self.sticky_key);
        let listeners = plan.listeners.iter().enumerate();
        let listeners: Vec<_> = listeners.map(|(place, listener)| self.listener(place, listener)).collect();
        let pools: Vec<_> = plan.pools.iter().map(|pool| self.pool(pool, now_us)).collect();
        self.named_servers.follow(&plan.pools, &pools, now_us);
        let pool_states = plan.pools.iter().map(|pool| self.pool_states.of(&pool.name)).collect();
        let sticky = StickyHash::new(key);
        let hash_tables = self.hash_tables.of(&plan.pools, &sticky);
        let sticky_targets = targets_by_number(&plan, &sticky);
        let mut by_id = vec![None; self.listeners_numbered as usize + 1];
        for (index, listener) in listeners.iter().enumerate() {
            by_id[listener.id.0 as usize] = Some(index);
        }
        let programs = plan.listeners.iter().filter_map(|listener| listener.program.as_deref());
        let uses_route_cookie =
            programs.flat_map(Program::stickinesses).any(|sticky| *sticky == Stickiness::Cookie);
        Live {
            uses_route_cookie,
            bandwidth: self.bandwidth.attach(&plan.bandwidth, &self.metrics, now_us),
            limits: self.limits.attach(&plan.limits, &self.metrics),
            sticky,
            route_cookie: RouteCookie::new(key),
            listeners,
            pools,
            pool_states,
            hash_tables,
            sticky_targets,
            by_id,
            sockets: HashMap::new(),
            plan,
        }
    }

    fn listener(&mut self, place: usize, listener: &Listener) -> LiveListener {
        let (id, state) = self
            .listeners
            .entry(listener.name.clone())
            .or_insert_with(|| {
                self.listeners_numbered += 1;
                let metrics = self.metrics.listener(&listener.name);
                let state = ListenerState {
                    metrics,
                    open: OwnLines::default(),
                    addresses: OwnLines::default(),
                    handshakes: OwnLines::default(),
                };
                (ListenerId(self.listeners_numbered), Arc::new(state))
            })
            .clone();
        let program = listener.program.as_deref();
        let rules = program.into_iter().flat_map(all_rules);
        let labels = rules.map(|rule| &*rule.label).chain([NO_RULE]);
        LiveListener {
            id,
            state,
            place,
            rules: labels.map(|label| self.metrics.rule(&listener.name, label)).collect(),
            unread: program.filter(|program| !program.payloads.is_empty()).map(Evidence::new),
            keeps: KeptBy::of(listener),
        }
    }

    fn pool(&mut self, pool: &Pool, now_us: u64) -> Vec<LiveServer> {
        let mut servers = Vec::with_capacity(pool.servers.len());
        for server in &pool.servers {
            let key = ServerKey {
                pool: pool.name.clone(),
                name: server.name.clone(),
                address: server.address,
                tls: server.tls.as_ref().map(Connector::identity),
                proxy_protocol: pool.proxy_protocol,
                protocol: pool.protocol,
            };
            let live = match self.servers.get(&key) {
                Some(known) => known.clone(),
                None => self.new_server(pool, key, now_us),
            };
            match &pool.health {
                // Nobody would ever say that it is up.
                None if live.standing.health() == Health::Starting => {
                    live.standing.set_health(Health::Unknown, NOT_PROBED, now_us);
                }
                _ => {}
            }
            if pool.limits.outlier_failures_max == 0 {
                live.standing.readmit("the pool ejects nobody any more", now_us);
            }
            servers.push(live);
        }
        servers
    }

    /// What was set by hand holds for the name, at whatever address: the one that had it before hands that on.
    fn new_server(&mut self, pool: &Pool, key: ServerKey, now_us: u64) -> LiveServer {
        self.servers_numbered += 1;
        let namesakes =
            self.servers.iter().filter(|(known, _)| (&known.pool, &known.name) == (&key.pool, &key.name));
        let standing = Standing::new(now_us);
        match &pool.health {
            _ if key.address.is_none() => {
                standing.set_health(Health::Down, "nothing is known of its name", now_us);
            }
            Some(check) if check.starts_down => {
                standing.set_health(Health::Starting, "it waits for its first probe", now_us);
            }
            _ => {}
        }
        if let Some((_, before)) = namesakes.max_by_key(|(_, server)| server.id) {
            standing.take_over(&before.standing, now_us);
        }
        let server = LiveServer {
            id: ServerId(self.servers_numbered),
            load: Arc::new(self.places.next()),
            capacity: Arc::default(),
            standing: Arc::new(standing),
            response_time: SharedResponseTime::default(),
            metrics: self.metrics.server(&key.pool, &key.name),
        };
        self.servers.insert(key, server.clone());
        server
    }

    /// Forgets what no generation, thread or connection holds any more, so that reloads with ever
    /// new names do not add up.
    pub(crate) fn forget_unused(&mut self) {
        self.listeners.retain(|_, (_, state)| Arc::strong_count(state) > 1);
        self.servers.retain(|_, server| Arc::strong_count(&server.load) > 1);
        self.pool_states.forget_unused();
        self.limits.forget_unused();
        self.bandwidth.forget_unused();
        self.metrics.forget_unused();
    }

    /// Every server that a generation names, or something still on its way.
    pub(crate) fn servers(&self) -> impl Iterator<Item = &LiveServer> {
        self.servers.values()
    }
}

fn all_rules(program: &Program) -> impl Iterator<Item = &Rule> {
    pace::each(program.rules.iter().chain(&program.fallback))
}

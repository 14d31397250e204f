//! What a configuration means: one immutable value that joins listeners, rules and pools.

use std::fmt;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use ipnet::IpNet;
use pointsman_balance::Level;
use pointsman_rules::{Program, TargetId, Targets};
use pointsman_view::{BodyOptions, BodyPaths, Readings};

use crate::lists::ReadList;
use crate::rules::ReadRules;
use crate::{
    AccessLog, Admin, Balancing, BandwidthClass, BodyLimits, DnsSettings, HealthCheck, Host, ListenerLimits,
    LogLevel, PoolLimits, Protocol, RateLimit, RetryPolicy, Service, Settings, Traces,
};

/// A checked configuration. A reload builds a new one and swaps a pointer, and so does a change of what its names stand
/// for; nothing changes one in place.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Event-loop threads; as many as there are cores where the operator set none.
    pub threads: Option<usize>,
    /// How long open exchanges may take to end after SIGTERM.
    pub drain_ms_max: u64,
    /// How long open tunnels go on after SIGTERM, if [`Plan::tunnel_drain_ms`] lets them.
    pub tunnel_drain_ms_max: u64,
    /// How long the process that is to take this one's place may take to be ready.
    pub upgrade_ms_max: u32,
    /// How long silent connections go on when it has, if [`Plan::upgrade_idle_ms`] lets them.
    pub upgrade_idle_ms_max: u64,
    /// How often the files are looked at for changes; 0: never.
    pub watch_ms: u64,
    /// Open connections of clients, in the whole process; what the descriptors allow where the operator set
    /// none.
    pub connections_max: Option<u32>,
    /// Memory that clients may take, in the whole process; half of what the process may have where the operator
    /// set none.
    pub buffer_bytes_max: Option<u64>,
    /// Room that bodies may take that are held, in the whole process.
    pub hold_total_bytes_max: u64,
    /// Idle connections to servers, in the whole process.
    pub upstream_idle_connections_max: u32,
    /// Pipes that bodies pass through inside the kernel, in the whole process.
    pub splice_pipes_max: u32,
    /// Whether each thread has a descriptor table of its own, where the system lets it.
    pub own_descriptor_tables: bool,
    /// Keys stickiness hashes and the `pm_route` cookie; random at start where the operator set none.
    pub sticky_key: Option<[u8; 16]>,
    /// Sticky clients that are remembered with their servers.
    pub sticky_entries_max: u32,
    /// How long they are remembered after their last request.
    pub sticky_idle_ms_max: u64,
    /// How much the switch says of itself.
    pub log_level: LogLevel,
    /// Absent: there is none.
    pub access_log: Option<AccessLog>,
    /// Absent: nothing is traced.
    pub traces: Option<Traces>,
    /// Where the switch shows itself and takes changes; nowhere when absent.
    pub admin: Option<Arc<Admin>>,
    /// In the order of the file.
    pub listeners: Vec<Listener>,
    /// In the order of the file; [`PoolIndex`] is a position here.
    pub pools: Vec<Pool>,
    /// Copies of requests on their way, in the whole process.
    pub mirrors_max: u32,
    /// Bytes of a request of which a copy is sent.
    pub mirror_bytes_max: u32,
    /// How long a copy may take with its answer.
    pub mirror_ms_max: u32,
    /// Classes of `bandwidth`, each behind the one that it borrows of.
    pub bandwidth: Vec<BandwidthClass>,
    /// Classes of `limitRate`, in the order of the file.
    pub limits: Vec<RateLimit>,
    /// How names of servers are looked up.
    pub dns: DnsSettings,
    /// What was set, to be held against what another plan sets.
    pub settings: Arc<Settings>,
    /// What rules can name.
    pub targets: Arc<Targets>,
    /// What rules look into, for a plan after this one that has the same.
    pub(crate) lists: Arc<[ReadList]>,
    /// What rules mean, likewise.
    pub(crate) rules: Arc<[ReadRules]>,
}

/// Where clients connect to, and what happens to their requests.
#[derive(Clone, Debug)]
pub struct Listener {
    /// Unique among listeners.
    pub name: Arc<str>,
    /// One place each; at least one.
    pub binds: Vec<Bind>,
    /// Whether `[::]` takes connections to IPv6 addresses alone.
    pub ipv6_only: bool,
    /// The permissions of the files of Unix sockets.
    pub unix_mode: u32,
    /// What is read of a connection.
    pub protocol: Protocol,
    /// Ends TLS; plain HTTP when absent.
    pub tls: Option<pointsman_tls::Acceptor>,
    /// The compiled rules; without them every request goes to the default pool.
    pub program: Option<Arc<Program>>,
    /// What each [`TargetId`] of `program` stands for.
    pub targets: Vec<Target>,
    /// Takes what no rule decided; absent only when the rules end in `else:`.
    pub default_pool: Option<PoolIndex>,
    /// Peers that are believed when they name the client.
    pub trusted_proxies: Vec<IpNet>,
    /// Whether peers of Unix sockets are believed likewise.
    pub trusts_unix: bool,
    /// Whether connections begin with a PROXY header.
    pub proxy_protocol: ProxyProtocol,
    /// What becomes of X-Forwarded-For, X-Forwarded-Proto and X-Forwarded-Host.
    pub x_forwarded: ForwardedMode,
    /// What becomes of the Forwarded field (RFC 7239).
    pub forwarded: ForwardedMode,
    /// How far stickiness reaches.
    pub sticky_scope: StickyScope,
    /// What becomes of a path with `%2F` or `%5C` in it.
    pub encoded_slash: EncodedSlash,
    /// Which hosts a client may ask for that named a server in its handshake.
    pub misdirected: Misdirected,
    /// Whether runs of slashes in a path count as one.
    pub merge_slashes: bool,
    /// The readings of requests that `program` is asked about beside the literal one.
    pub readings: Option<Arc<Readings>>,
    /// Whether a connection may be HTTP/2.
    pub http2: Http2,
    /// What becomes of fields whose names hold more than letters, digits and `-`.
    pub odd_names: OddNames,
    /// Every request field that `program` reads or changes, in lower case, each once.
    pub named_fields: Vec<Box<str>>,
    /// Whether the access log has the queries of its requests.
    pub logs_query: bool,
    /// The pools that `program` sends copies to, by their names.
    pub mirrors: Vec<(Box<str>, PoolIndex)>,
    /// The fields of the body that `program` names; absent where it names none.
    pub body_paths: Option<Arc<BodyPaths>>,
    /// How bodies are read for them.
    pub body_options: BodyOptions,
    /// What becomes of a request that comes before the answer to the one before it.
    pub pipeline: Pipeline,
    /// Protocols that a connection may change to, as `Upgrade` names them.
    pub upgrades: Vec<Box<str>>,
    /// Names of request trailers that servers get, in lower case. None of them is in `named_fields`.
    pub trailers: Vec<Box<str>>,
    /// What a client may take.
    pub limits: ListenerLimits,
    /// What a body may be, and take, that is read for `program`.
    pub body_limits: BodyLimits,
}

/// Where a rule sends a request: a pool, or one server of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    /// The pool.
    pub pool: PoolIndex,
    /// The server inside it, if the rule names one.
    pub server: Option<ServerIndex>,
}

/// Servers that stand in for each other.
#[derive(Clone, Debug, PartialEq)]
pub struct Pool {
    /// Unique among pools.
    pub name: Arc<str>,
    /// How a server is picked.
    pub balancing: Balancing,
    /// Those that are written, in the order of the file, and behind them those of the services; at least one.
    /// [`ServerIndex`] is a position here, of one that is written.
    pub servers: Vec<Server>,
    /// What stands for as many servers as there are, in the order of the file.
    pub services: Vec<Service>,
    /// The PROXY header that connections begin with; none when absent.
    pub proxy_protocol: Option<ProxyVersion>,
    /// What the servers speak.
    pub protocol: ServerProtocol,
    /// What becomes of a sticky client whose server is down.
    pub on_down: OnDown,
    /// How its servers are probed, if they are.
    pub health: Option<Arc<HealthCheck>>,
    /// When another server is asked, and for which requests.
    pub retries: RetryPolicy,
    /// What a server may take.
    pub limits: PoolLimits,
    /// What is shown to servers that ask for a certificate; absent where they are shown none.
    pub certificate: Option<Arc<pointsman_tls::CertificateFacts>>,
    /// Authorities that a file names for its servers' certificates.
    pub authorities: Arc<[pointsman_tls::AuthorityFacts]>,
}

/// What becomes of a sticky client whose server is down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnDown {
    /// It gets another one, and stays with that.
    #[default]
    Repick,
    /// It gets none.
    Fail,
}

/// What the servers of a pool speak.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ServerProtocol {
    /// HTTP/1.1.
    #[default]
    Http1,
    /// HTTP/2: over TLS as agreed on, otherwise with prior knowledge.
    Http2,
}

/// A version of the PROXY protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProxyVersion {
    /// A line of text.
    V1,
    /// Binary, with more to say.
    V2,
}

/// One server of a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// Unique in its pool; the address as written where the operator set none, and target and port of one that belongs
    /// to a service.
    pub name: Arc<str>,
    /// Where it listens; of one with a name nothing until an address of that is known.
    pub address: Option<SocketAddr>,
    /// The name that its address is looked up by, if it has one.
    pub host: Option<Host>,
    /// The service that it belongs to, where it is not written itself.
    pub service: Option<Arc<str>>,
    /// Its share, from 1 to 1000.
    pub weight: u32,
    /// Requests that it may have at a time; 0: no limit.
    pub connections_max: u32,
    /// When it is asked.
    pub level: Level,
    /// Speaks TLS to it; plain HTTP when absent.
    pub tls: Option<pointsman_tls::Connector>,
}

/// Position of a pool in [`Plan::pools`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PoolIndex(pub u32);

/// Position of a server in [`Pool::servers`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerIndex(pub u32);

/// A place to listen on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Bind {
    /// An address; an IPv4-mapped one is IPv4.
    Address(SocketAddr),
    /// The path of a Unix socket.
    Unix(Arc<Path>),
}

impl Bind {
    /// The address, where it is one.
    pub fn address(&self) -> Option<SocketAddr> {
        match self {
            Bind::Address(address) => Some(*address),
            Bind::Unix(_) => None,
        }
    }
}

impl fmt::Display for Bind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bind::Address(address) => write!(f, "{address}"),
            Bind::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// Whether connections begin with a PROXY header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProxyProtocol {
    /// They begin with TLS or a request.
    #[default]
    Off,
    /// They do, and come from trusted proxies alone.
    Required,
}

/// What becomes of forwarding fields on the way to the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ForwardedMode {
    /// Earlier values from trusted proxies are kept, the peer is added; from others they are replaced.
    #[default]
    Append,
    /// Earlier values are replaced by the peer.
    Replace,
    /// The switch adds none.
    Off,
}

/// How far stickiness reaches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StickyScope {
    /// It chooses a server inside the target of the rule that decides.
    #[default]
    Target,
    /// A client stays with the target that it was first sent to, wherever later rules send it.
    Listener,
}

/// What becomes of a path with an encoded slash or backslash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EncodedSlash {
    /// It stays encoded, and is no segment border.
    #[default]
    Keep,
    /// The request is refused with 400.
    Refuse,
}

/// Which requests are answered with 421 for their host: those that the certificate of the handshake is not for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Misdirected {
    /// Those of HTTP/2, whose clients send requests for several hosts on one connection.
    #[default]
    Http2,
    /// Those of HTTP/1.1, too.
    Certificate,
    /// Besides, those whose host is another one than the server name.
    Name,
}

/// Whether HTTP/2 is spoken. Over TLS the handshake agrees on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Http2 {
    /// It is not.
    Off,
    /// A connection may be either.
    #[default]
    On,
    /// HTTP/1 is not.
    Only,
}

/// What becomes of a request's fields whose names hold more than letters, digits and `-`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum OddNames {
    /// They are taken away: neither rules nor servers see them.
    #[default]
    Drop,
    /// The request is refused.
    Refuse,
    /// They stay, but for those that read like a field which the switch or a rule names.
    Keep,
}

/// What becomes of a request that comes before the answer to the one before it (RFC 9112 section 9.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Pipeline {
    /// It waits until that answer is complete.
    #[default]
    Hold,
    /// Safe requests are on their way side by side, and their answers wait for their turn.
    Concurrent,
    /// It takes the place of the one before it, if that one is safe and not answered.
    Latest,
}

/// What a drain keeps, at most, for closing tunnels in order.
const LAST_WORDS_MS_MAX: u64 = 2000;

impl Plan {
    /// How long open tunnels go on after SIGTERM before they are closed: as long as is written, but a part of the drain
    /// is left to close them in order.
    pub fn tunnel_drain_ms(&self) -> u64 {
        self.tunnel_drain_ms_max.min(self.before_last_words_ms())
    }

    /// How long silent connections go on after an upgrade, within the same bound.
    pub fn upgrade_idle_ms(&self) -> u64 {
        self.upgrade_idle_ms_max.min(self.before_last_words_ms())
    }

    fn before_last_words_ms(&self) -> u64 {
        self.drain_ms_max - (self.drain_ms_max / 4).min(LAST_WORDS_MS_MAX)
    }

    /// The pool at a position that this plan gave out.
    pub fn pool(&self, index: PoolIndex) -> &Pool {
        &self.pools[index.0 as usize]
    }

    /// The server of that name in the pool of that name.
    pub fn server_named(&self, pool: &str, name: &str) -> Option<&Server> {
        let pool = self.pools.iter().find(|known| &*known.name == pool)?;
        pool.servers.iter().find(|server| &*server.name == name)
    }

    /// The service of that name in the pool of that name.
    pub(crate) fn service_named(&self, pool: &str, name: &str) -> Option<&Service> {
        let pool = self.pools.iter().find(|known| &*known.name == pool)?;
        pool.services.iter().find(|service| &*service.name == name)
    }

    /// The listener of that name.
    pub fn listener_named(&self, name: &str) -> Option<&Listener> {
        self.listeners.iter().find(|listener| &*listener.name == name)
    }
}

impl Listener {
    /// What a rule's target stands for.
    pub fn target(&self, id: TargetId) -> Target {
        self.targets[id.0 as usize]
    }

    /// Whether clients speak TLS here.
    pub fn is_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// Whether a client that is turned away reads an answer in plain HTTP.
    pub fn is_plain_http(&self) -> bool {
        self.tls.is_none() && self.protocol == Protocol::Http
    }
}

impl Pool {
    /// The server at a position that this plan gave out.
    pub fn server(&self, index: ServerIndex) -> &Server {
        &self.servers[index.0 as usize]
    }
}
